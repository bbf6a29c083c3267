//! Values that `hub::json` writes are read back equal, for any type.

use std::io::Cursor;

use arrow_array::{Array, RecordBatch};
use arrow_schema::{Schema, SchemaRef, TimeUnit};
use proptest::prelude::*;

use super::*;
use crate::hub::json::{Columns, JsonOptions};
use crate::hub::type_text::parse_schema;
use crate::limits::Limits;

/// A deterministic random number generator.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }
}

/// The JSON text of a random value of a field: an independent, simple writer of the documented forms.
fn random_json(field: &Field, random: &mut Random, out: &mut String) {
    if field.is_nullable() && random.below(4) == 0 || *field.data_type() == DataType::Null {
        return out.push_str("null");
    }
    let mut bits = [0u8; 16];
    bits[..8].copy_from_slice(&random.next().to_le_bytes());
    bits[8..].copy_from_slice(&random.next().to_le_bytes());
    match extension::name(field) {
        Some(extension::INT128) => return out.push_str(&i128::from_le_bytes(bits).to_string()),
        Some(extension::UINT128) => return out.push_str(&u128::from_le_bytes(bits).to_string()),
        Some(extension::FLOAT128) => {
            return out.push_str(&format!("\"0x{:032x}\"", u128::from_le_bytes(bits)));
        }
        Some(extension::TUPLE) => {
            let DataType::Struct(fields) = field.data_type() else { unreachable!() };
            out.push('[');
            for (index, field) in fields.iter().enumerate() {
                out.push_str(if index > 0 { "," } else { "" });
                random_json(field, random, out);
            }
            return out.push(']');
        }
        _ => {}
    }
    let word = i64::from_le_bytes(bits[..8].try_into().unwrap());
    let shift = random.below(63);
    let small = word >> shift;
    let time = |unit: &TimeUnit, random: &mut Random| {
        let digits = match unit {
            TimeUnit::Second => 0,
            TimeUnit::Millisecond => 3,
            TimeUnit::Microsecond => 6,
            TimeUnit::Nanosecond => 9,
        };
        let fraction = format!("{:0digits$}", random.below(10u64.pow(digits as u32).max(1)));
        let fraction = fraction.trim_end_matches('0');
        let fraction = if fraction.is_empty() { String::new() } else { format!(".{fraction}") };
        format!("{:02}:{:02}:{:02}{fraction}", random.below(24), random.below(60), random.below(60))
    };
    let date = |random: &mut Random| {
        format!("{:04}-{:02}-{:02}", 1700 + random.below(500), 1 + random.below(12), 1 + random.below(28))
    };
    let text = match field.data_type() {
        DataType::Boolean => (small % 2 == 0).to_string(),
        DataType::Int8 => (small as i8).to_string(),
        DataType::Int16 => (small as i16).to_string(),
        DataType::Int32 | DataType::Interval(_) => (small as i32).to_string(),
        DataType::Int64 | DataType::Duration(_) => small.to_string(),
        DataType::UInt8 => (small as u8).to_string(),
        DataType::UInt16 => (small as u16).to_string(),
        DataType::UInt32 => (small as u32).to_string(),
        DataType::UInt64 => (small as u64).to_string(),
        DataType::Float16 => {
            ["0.1", "-0.0", "65500.0", "6e-8", "\"NaN\"", "1.5"][random.below(6) as usize].to_owned()
        }
        DataType::Float32 => match f32::from_bits(word as u32) {
            value if value.is_finite() => serde_json::to_string(&value).unwrap().replace("e+", "e"),
            _ => "\"-Infinity\"".to_owned(),
        },
        DataType::Float64 => match f64::from_bits(word as u64) {
            value if value.is_finite() => serde_json::to_string(&value).unwrap().replace("e+", "e"),
            _ => "\"NaN\"".to_owned(),
        },
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => {
            let words =
                ["", "a", "é,\"\n", "null", "12", " x ", "日本語\t", "a;b", "\u{1f600}\\", "true", "\r"];
            serde_json::to_string(words[random.below(words.len() as u64) as usize]).unwrap()
        }
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => {
            let bytes = &bits[..random.below(16) as usize];
            format!("{:?}", base64_simd::STANDARD.encode_to_string(bytes))
        }
        DataType::FixedSizeBinary(size) => {
            let bytes: Vec<u8> = (0..*size).map(|_| random.next() as u8).collect();
            format!("{:?}", base64_simd::STANDARD.encode_to_string(bytes))
        }
        DataType::Date32 | DataType::Date64 if random.below(8) == 0 => i32::MAX.to_string(),
        DataType::Date32 | DataType::Date64 => format!("{:?}", date(random)),
        DataType::Time32(unit) | DataType::Time64(unit) => format!("{:?}", time(unit, random)),
        DataType::Timestamp(unit, zone) => {
            let zone = match zone.as_deref() {
                None => "",
                Some("UTC") => "Z",
                Some(offset) => offset,
            };
            format!("\"{}T{}{zone}\"", date(random), time(unit, random))
        }
        DataType::Decimal128(_, scale) | DataType::Decimal256(_, scale) => {
            let digits = format!("{:0width$}", random.below(1_000_000), width = *scale as usize + 1);
            let (whole, fraction) = digits.split_at(digits.len() - *scale as usize);
            format!("\"{whole}{}{fraction}\"", if *scale > 0 { "." } else { "" })
        }
        DataType::List(item) | DataType::LargeList(item) | DataType::ListView(item) => {
            let count = random.below(4);
            out.push('[');
            for index in 0..count {
                out.push_str(if index > 0 { "," } else { "" });
                random_json(item, random, out);
            }
            "]".to_owned()
        }
        DataType::FixedSizeList(item, size) => {
            out.push('[');
            for index in 0..*size {
                out.push_str(if index > 0 { "," } else { "" });
                random_json(item, random, out);
            }
            "]".to_owned()
        }
        DataType::Struct(fields) => {
            out.push('{');
            for (index, field) in fields.iter().enumerate() {
                out.push_str(if index > 0 { "," } else { "" });
                out.push_str(&serde_json::to_string(field.name()).unwrap());
                out.push(':');
                random_json(field, random, out);
            }
            "}".to_owned()
        }
        DataType::Map(entries, _) => {
            let DataType::Struct(fields) = entries.data_type() else { unreachable!() };
            out.push_str("{\"k\":");
            random_json(&fields[1], random, out);
            "}".to_owned()
        }
        DataType::Dictionary(_, _) | DataType::RunEndEncoded(_, _) => {
            ["\"\"", "\"x\"", "\"y\""][random.below(3) as usize].to_owned()
        }
        other => unreachable!("{other}"),
    };
    out.push_str(&text);
}

/// A schema of every type that has a JSON form, including nested ones.
pub(crate) const EVERY_TYPE: &str = "struct{b: ?bool, i8: ?int8, i16: ?int16, i32: ?int32, i64: int64, u8: ?uint8, \
    u16: ?uint16, u32: ?uint32, u64: ?uint64, f16: ?float16, f32: ?float32, f64: ?float64, s: ?utf8, ls: large_utf8, \
    sv: ?utf8_view, bin: ?binary, lbin: ?large_binary, bv: ?binary_view, fb: ?fixed_binary[3], fb0: fixed_binary[0], \
    d32: ?date32, d64: ?date64, ts: ?time[s], tms: time[ms], tus: ?time[us], tns: time[ns], \
    t0: ?timestamp[s], t1: ?timestamp[ms, 'UTC'], t2: timestamp[us], t3: ?timestamp[ns, '+01:30'], dur: ?duration[us], \
    dec: ?decimal128[12, 3], dec0: decimal256[60, 0], n: ?null, n0: null, l: ?list[?int32], ll: large_list[?utf8], \
    lv: ?list_view[int8], fl: ?fixed_list[2, ?float32], fl0: ?fixed_list[0, int8], st: ?struct{a: ?int8, 'b c': utf8}, \
    e: ?struct{}, dict: ?dict[int8, utf8], odict: ordered_dict[uint16, large_utf8], m: ?map[utf8, ?int64], \
    ym: ?interval[year_month], re: run_end[int32, ?utf8], \
    deep: ?list[?struct{x: ?list[?list[?int8]], y: ?fixed_list[2, struct{z: ?bool}]}], \
    i128: extension['pentaglot.int128', ?fixed_binary[16]], u128: extension['pentaglot.uint128', fixed_binary[16]], \
    f128: extension['pentaglot.float128', ?fixed_binary[16]], \
    cx: extension['pentaglot.complex', ?fixed_list[2, float64]], \
    tu: extension['pentaglot.tuple', ?struct{_0: ?int32, _1: utf8}], ch: extension['pentaglot.char', ?utf8], \
    im: extension['pentaglot.image', '{}', ?binary]}";

pub(crate) fn every_type() -> SchemaRef {
    SchemaRef::new(parse_schema(EVERY_TYPE, &Limits::default()).unwrap())
}

fn record(schema: &Schema) -> Record<Cursor<Vec<u8>>> {
    Record::new(schema.fields(), |_| true, &Budget::default()).unwrap()
}

pub(crate) fn read_lines(schema: &SchemaRef, text: &str) -> Result<RecordBatch> {
    let mut scanner = Scanner::new(Cursor::new(text.as_bytes().to_vec()), Budget::default());
    let mut record = record(schema);
    while scanner.skip_space()?.is_some() {
        record.read(&mut scanner)?;
    }
    let rows = record.rows();
    let columns = record.finish()?;
    crate::hub::rows::batch(SchemaRef::clone(schema), columns, rows)
}

pub(crate) fn write_lines(batch: &RecordBatch) -> String {
    let columns = Columns::new(batch, &JsonOptions::default()).unwrap();
    let mut out = Vec::new();
    for row in 0..batch.num_rows() {
        columns.write_object(row, &mut out).unwrap();
        out.push(b'\n');
    }
    String::from_utf8(out).unwrap()
}

/// Random rows of a schema as JSON lines.
pub(crate) fn random_lines(schema: &Schema, rows: usize, seed: u64) -> String {
    let mut random = Random(seed);
    let row = Field::new("", DataType::Struct(schema.fields().clone()), false);
    let mut text = String::new();
    for _ in 0..rows {
        random_json(&row, &mut random, &mut text);
        text.push('\n');
    }
    text
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_type_is_read_and_written_back_to_the_same_text(seed in any::<u64>()) {
        let schema = every_type();
        let text = random_lines(&schema, 9, seed);
        let batch = read_lines(&schema, &text).unwrap();
        prop_assert_eq!(batch.num_rows(), 9);
        let written = write_lines(&batch);
        prop_assert_eq!(&written, &text);
        prop_assert_eq!(read_lines(&schema, &written).unwrap(), batch.clone());
        // A slice writes its own rows.
        let some: Vec<&str> = text.lines().skip(3).take(4).collect();
        prop_assert_eq!(write_lines(&batch.slice(3, 4)), some.join("\n") + "\n");
    }
}

#[test]
fn keys_may_come_in_any_order_and_be_missing() {
    let schema = SchemaRef::new(parse_schema("struct{a: ?int8, b: ?utf8}", &Limits::default()).unwrap());
    let batch = read_lines(&schema, "{\"b\": \"x\", \"a\": 1}\n{\"b\": \"y\"}\n{}\n{ \"a\" : 2 }").unwrap();
    let expected =
        "{\"a\":1,\"b\":\"x\"}\n{\"a\":null,\"b\":\"y\"}\n{\"a\":null,\"b\":null}\n{\"a\":2,\"b\":null}\n";
    assert_eq!(write_lines(&batch), expected);
}

#[test]
fn values_that_do_not_fit_name_their_place() {
    for (schema, text, expected) in [
        (
            "struct{a: int8}",
            "{\"a\":128}",
            "at byte 5, a: expected a number in the range of int8, found one outside",
        ),
        ("struct{a: int8}", "{\"a\":1.5}", "at byte 5, a: expected a whole number"),
        ("struct{a: int8}", "{\"a\":null}", "at byte 5, a: expected int8, found null"),
        ("struct{a: int8}", "{}", "at byte 0: expected key \"a\", found an object without it"),
        ("struct{a: int8}", "{\"a\":1,\"a\":1}", "expected each key once, found \"a\" twice"),
        ("struct{a: int8}", "{\"b\":1}", "expected a known key (a), found key \"b\""),
        (
            "struct{a: ?list[?int8]}",
            "{\"a\":[1,\"x\"]}",
            "at byte 8, a[1]: expected a number, found a string",
        ),
        ("struct{a: fixed_list[2, int8]}", "{\"a\":[1,2,3]}", "at byte 5, a: expected 2 elements, found 3"),
        (
            "struct{a: date32}",
            "{\"a\":\"2023-02-29\"}",
            "at byte 5, a: expected date32, found \"2023-02-29\"",
        ),
        ("struct{a: fixed_binary[2]}", "{\"a\":\"AA==\"}", "at byte 5, a: expected 2 bytes, found 1"),
        ("struct{a: binary}", "{\"a\":\"A\"}", "at byte 5, a: expected base64, found \"A\""),
        ("struct{a: decimal128[3, 1]}", "{\"a\":\"100.0\"}", "expected decimal128[3, 1], found \"100.0\""),
        ("struct{a: float64}", "{\"a\":\"x\"}", "found \"x\""),
        ("struct{a: null}", "{\"a\":1}", "at byte 5, a: expected null, found a number"),
        ("struct{a: bool}", "[]", "at byte 0: expected an object, found an array"),
    ] {
        let schema = SchemaRef::new(parse_schema(schema, &Limits::default()).unwrap());
        let error = read_lines(&schema, text).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn a_null_under_a_null_is_no_error() {
    let schema = "struct{a: ?struct{b: int8, c: fixed_list[2, utf8], d: dict[int8, utf8]}}";
    let schema = SchemaRef::new(parse_schema(schema, &Limits::default()).unwrap());
    let batch = read_lines(&schema, "{\"a\":null}").unwrap();
    assert_eq!(batch.column(0).null_count(), 1);
    assert_eq!(write_lines(&batch), "{\"a\":null}\n");
}

#[test]
fn an_object_costs_its_own_keys_and_not_those_of_all_columns() {
    let fields: Fields =
        (0..50).map(|index| Field::new(format!("k{index}"), DataType::Int64, true)).collect();
    let text: String = (0..30).map(|row| format!("{{\"k{}\":{row}}}\n", row % 2)).collect();
    let mut scanner = Scanner::new(Cursor::new(text.into_bytes()), Budget::default());
    let mut record = Record::new(&fields, |_| true, &Budget::default()).unwrap();
    for _ in 0..30 {
        record.read(&mut scanner).unwrap();
        scanner.end_line().unwrap();
    }
    // Row 28 is the last with k0, row 29 the last with k1; the others have no value yet.
    let held = record.held();
    assert_eq!((&held[..2], held[2..].iter().sum::<usize>()), (&[29, 30][..], 0));
    let columns = record.finish().unwrap();
    assert!(columns.iter().all(|column| column.len() == 30));
    assert_eq!(columns.iter().map(|column| column.null_count()).collect::<Vec<_>>()[..3], [15, 15, 30]);
}
