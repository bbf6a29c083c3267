//! Types and values beyond the vectors.

use crate::testing::asked::Asked;
use proptest::prelude::*;

use super::*;
use crate::formats::ds::Type;

#[test]
fn yaml_is_read_into_ordered_pairs() {
    let kind = Type::parse(
        "columns:\n  y: int8\n  no: bool\n  x:\n    type: tensor\n    shape: [2, 3]\n    componentType: float32\nrowCount: 3\n",
    );
    let canonical = r#"{"type":"tabular","columns":{"y":"int8","no":"bool","x":{"type":"tensor","componentType":"float32","shape":[2,3]}},"rowCount":3}"#;
    assert_eq!(kind.unwrap().to_string(), canonical);
    assert_eq!(Type::parse("int32").unwrap().to_string(), r#""int32""#);
    assert_eq!(
        Type::parse("{columns: {a: int8}}").unwrap(),
        Type::parse(r#"{"columns":{"a":"int8"}}"#).unwrap()
    );
    // The first document only.
    assert_eq!(Type::parse("int8\n---\nint32\n").unwrap().to_string(), r#""int8""#);
    for (text, rule) in [
        ("columns:\n  1: int8\n", "type"),
        ("columns:\n  true: int8\n", "type"),
        ("columns:\n  a: int8\n  a: int32\n", "duplicate"),
        ("columns: [", "type"),
        ("", "type"),
    ] {
        let error = Type::parse(text).unwrap_err();
        assert_eq!(error.rule_name(), rule, "{text:?}: {error}");
    }
}

#[test]
fn type_errors_name_their_place() {
    let cases = [
        (
            r#"{"columns":{"x":"int16"}}"#,
            "columns.x: expected uint8, int8, uint32, int32, uint64, int64, bool, float32, float64, string or void, found \"int16\"",
        ),
        (r#"{"type":5,"columns":{"x":"int8"}}"#, "type: expected the name of a type, found 5"),
        (
            r#"{"type":"image","width":0,"height":1,"components":{"red":{"componentType":"uint8"}}}"#,
            "width: expected a number 1..=2147483647, found 0",
        ),
        (
            r#"{"type":"image","width":1,"height":1,"componentType":{"red":"bool"}}"#,
            "componentType.red: expected a type of fixed byte length (no bool, string or void), found \"bool\"",
        ),
        (
            r#"{"type":"image","width":1,"height":1,"components":{}}"#,
            "components: expected an image with components, found none",
        ),
        (
            r#"{"type":"image","width":1,"height":1,"components":{"red":{"componentType":"uint8"}},"format":""}"#,
            "format: expected plain, png or jpeg, found \"\"",
        ),
        (
            r#"{"type":"tensor","componentType":"int8","shape":[2,0]}"#,
            "shape[1]: expected a number 1..=2147483647, found 0",
        ),
        (
            r#"{"type":"array","underlying":{"columns":{}}}"#,
            "underlying.columns: expected a table with columns, found none",
        ),
        (r#"{"columns":{"x":"int8"},"rowCount":-1}"#, "rowCount: expected a number of rows, found -1"),
        (r#"{"columns":{"x":"int8","x":"int8"}}"#, "columns: expected every name once, found \"x\" twice"),
        (r#"{"type":"struct"}"#, "expected a struct with \"fields\", found none"),
    ];
    for (text, words) in cases {
        assert_eq!(Type::parse(text).unwrap_err().to_string(), words, "{text}");
    }
}

#[test]
fn the_specs_own_example_is_taken() {
    let text = r#"{"columns":{"x":"float64","icon":{"type":"image","width":"100","height":"100",
        "componentType":{"red":"uint8","blue":"uint8","green":"uint8"},"format":"png"}}}"#;
    let canonical = r#"{"type":"tabular","columns":{"x":"float64","icon":{"type":"image","width":100,"height":100,"components":{"red":{"componentType":"uint8"},"blue":{"componentType":"uint8"},"green":{"componentType":"uint8"}},"format":"png"}}}"#;
    assert_eq!(Type::parse(text).unwrap().to_string(), canonical);
}

#[test]
fn json_keeps_all_digits_and_signs() {
    let json = br#"{"type":{"columns":{"a":"int64","b":"uint64","c":"float64","d":"float32","e":"uint8"}},"value":
        [[-9223372036854775808, 18446744073709551615, 0.1, 16777217, -0], [9007199254740993, 0, -0, 3.4028235e38, 0]]}"#;
    let batch = read(json, &[]).unwrap();
    let text = String::from_utf8(write(&batch, "json", &[]).unwrap()).unwrap();
    let values = r#"[[-9223372036854775808,18446744073709551615,0.1,16777216.0,0],[9007199254740993,0,-0.0,3.4028235e38,0]]}"#;
    assert!(text.ends_with(values), "{text}");
}

#[test]
fn plain_json_is_read_with_a_type() {
    let kind = r#"{"columns":{"x":"int8","v":"void"}}"#;
    let batch = read(b" [[1, null], [2, {}], [3, []]] ", &[("type", kind)]).unwrap();
    assert_eq!(batch.num_rows(), 3);
    assert_eq!(read(b"{}", &[("type", "void")]).unwrap().num_rows(), 1);
    assert_eq!(read(b"5", &[("type", "int8"), ("dialect", "json")]).unwrap().num_rows(), 1);
    assert_eq!(read(b"[[1,null]] 2", &[("type", kind)]).unwrap_err().rule_name(), "json");
}

#[test]
fn repeated_keys_of_a_bundle_are_errors_at_any_position() {
    for text in [
        r#"{"type":"int8","type":"int8","value":1}"#,
        r#"{"type":"int8","value":1,"type":"int8"}"#,
        r#"{"type":"int8","value":1,"value":2}"#,
        r#"{"value":1,"value":2,"type":"int8"}"#,
    ] {
        assert_eq!(read(text.as_bytes(), &[]).unwrap_err().rule_name(), "duplicate", "{text}");
    }
    assert_eq!(read(br#"{"a":[1],"type":"int8","b":{},"value":1,"c":null}"#, &[]).unwrap().num_rows(), 1);
}

#[test]
fn lenient_takes_what_python_sends() {
    let mut bytes = Type::parse(r#"{"columns":{"a":"float32","b":"float64"}}"#).unwrap().header().unwrap();
    bytes.extend_from_slice(&[0x92, 1, 0xd0, 0xfe]);
    assert_eq!(read(&bytes, &[]).unwrap_err().rule_name(), "mismatch");
    let batch = read(&bytes, &[("lenient", "true")]).unwrap();
    let text = String::from_utf8(write(&batch, "json", &[]).unwrap()).unwrap();
    assert!(text.ends_with("[[1.0,-2.0]]}"), "{text}");
    let image = r#"{"type":{"type":"image","width":1,"height":1,"components":{"black":{"componentType":"uint8"}}},"value":"Bw"}"#;
    assert_eq!(read(image.as_bytes(), &[]).unwrap_err().rule_name(), "base64");
    assert!(read(image.as_bytes(), &[("lenient", "true")]).is_ok());
}

#[test]
fn a_type_behind_a_long_value_is_found_in_a_stream() {
    let rows: Vec<String> = (0..30_000).map(|index| format!("[{index}]")).collect();
    let text = format!(r#"{{"value":[{}],"type":{{"columns":{{"x":"int32"}}}}}}"#, rows.join(","));
    assert!(text.len() > 3 * crate::source::HEAD_BYTES);
    let source = Source::from_reader("stream", std::io::Cursor::new(text.into_bytes()));
    let document = Ds.open(source, &ReadOptions::default()).unwrap();
    let batches = collect(document.as_ref(), &Asked::default()).unwrap();
    assert_eq!(batches.iter().map(RecordBatch::num_rows).sum::<usize>(), 30_000);
}

#[test]
fn a_header_longer_than_the_head_is_read_from_a_stream() {
    let columns: Vec<String> = (0..9000).map(|index| format!(r#""column number {index}":"uint8""#)).collect();
    let kind = Type::parse(&format!(r#"{{"columns":{{{}}}}}"#, columns.join(","))).unwrap();
    let mut bytes = kind.header().unwrap();
    bytes.extend_from_slice(&[0xdc, 0x23, 0x28]);
    bytes.extend(std::iter::repeat_n(7, 9000));
    let source = Source::from_reader("stream", std::io::Cursor::new(bytes.clone()));
    let document = Ds.open(source, &ReadOptions::default()).unwrap();
    assert_eq!(collect(document.as_ref(), &Asked::default()).unwrap()[0].num_columns(), 9000);
    assert_eq!(through(&bytes, "msgpack").unwrap(), bytes);
}

fn fundamental() -> impl Strategy<Value = String> {
    let names = [
        "uint8", "int8", "uint32", "int32", "uint64", "int64", "bool", "float32", "float64", "string", "void",
    ];
    proptest::sample::select(names.to_vec()).prop_map(|name| format!("\"{name}\""))
}

fn any_type() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        4 => fundamental(),
        1 => (fundamental(), 1u32..4, 1u32..3).prop_map(|(kind, a, b)| format!(
            r#"{{"type":"tensor","componentType":{kind},"shape":[{a},{b}]}}"#
        )),
        1 => (1u32..4, 1u32..4).prop_map(|(w, h)| format!(
            r#"{{"type":"image","width":{w},"height":{h},"components":{{"green":{{"componentType":"int32"}}}}}}"#
        )),
    ];
    leaf.prop_recursive(4, 16, 3, |inner| {
        prop_oneof![
            inner.clone().prop_map(|kind| format!(r#"{{"type":"nullable","underlying":{kind}}}"#)),
            inner.clone().prop_map(|kind| format!(r#"{{"type":"array","underlying":{kind}}}"#)),
            proptest::collection::vec(inner.clone(), 0..3)
                .prop_map(|kinds| named("struct", "fields", &kinds)),
            proptest::collection::vec(inner, 1..4).prop_map(|kinds| named("tabular", "columns", &kinds)),
        ]
    })
}

fn named(kind: &str, key: &str, kinds: &[String]) -> String {
    let pairs: Vec<String> =
        kinds.iter().enumerate().map(|(index, kind)| format!(r#""f{index}":{kind}"#)).collect();
    format!(r#"{{"type":"{kind}","{key}":{{{}}}}}"#, pairs.join(","))
}

/// A JSON value of a type, made from a stream of numbers.
fn value(kind: &Type, seeds: &mut impl Iterator<Item = u64>) -> Value {
    use crate::formats::ds::Fundamental as F;
    let fundamental = |kind: F, seed: u64| match kind {
        F::UInt8 => Value::from(seed as u8),
        F::Int8 => Value::from(seed as i8),
        F::UInt32 => Value::from((seed >> (seed % 32)) as u32),
        F::Int32 => Value::from((seed as i32) >> (seed % 31)),
        F::UInt64 => Value::from(seed >> (seed % 64)),
        F::Int64 => Value::from((seed as i64) >> (seed % 63)),
        F::Bool => Value::from(seed.is_multiple_of(2)),
        F::Float32 => Value::from(f64::from(seed as i16) / 8.0),
        F::Float64 => Value::from(seed as i64 as f64 / 3.0),
        F::String => Value::from("aé\"\\🚀\n".chars().cycle().take(seed as usize % 40).collect::<String>()),
        F::Void => Value::Null,
    };
    let seed = seeds.next().unwrap();
    let row = |fields: &[(String, Type)], seeds: &mut dyn Iterator<Item = u64>| {
        let mut seeds = seeds;
        Value::Array(fields.iter().map(|(_, kind)| value(kind, &mut seeds)).collect())
    };
    match kind {
        Type::Fundamental(kind) => fundamental(*kind, seed),
        Type::Tensor(tensor) => (0..tensor.count())
            .map(|index| fundamental(tensor.component, seed.rotate_left(index as u32)))
            .collect(),
        Type::Image(image) => {
            let bytes: Vec<u8> =
                (0..image.plain_bytes().unwrap()).map(|index| (seed >> (index % 7)) as u8).collect();
            Value::from(base64_simd::STANDARD.encode_to_string(bytes))
        }
        Type::Nullable(inner) => {
            if seed.is_multiple_of(3) {
                Value::Null
            } else {
                value(inner, seeds)
            }
        }
        Type::Array(item) => (0..seed % 3).map(|_| value(item, &mut *seeds)).collect(),
        Type::Struct(fields) => row(fields, seeds),
        Type::Tabular(table) => (0..seed % 20).map(|_| row(&table.columns, &mut *seeds)).collect(),
    }
}

/// A dyn iterator, so that the generator above does not recurse through ever new types.
fn make(kind: &Type, seed: u64) -> Value {
    let mut state = seed;
    let mut seeds: Box<dyn Iterator<Item = u64>> = Box::new(std::iter::from_fn(move || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        Some(state ^ state >> 29)
    }));
    value(kind, &mut seeds)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn any_value_goes_through_every_form_unchanged(text in any_type(), seed: u64) {
        let kind = Type::parse(&text).unwrap();
        prop_assert_eq!(&Type::parse(&kind.to_string()).unwrap(), &kind);
        let json = serde_json::json!({ "type": serde_json::from_str::<Value>(&text).unwrap(), "value": make(&kind, seed) });
        let batch = read(json.to_string().as_bytes(), &[]).unwrap();
        let minimal = write(&batch, "msgpack", &[]).unwrap();
        let fixed = write(&batch, "msgpack-fixed", &[]).unwrap();
        let back = write(&batch, "json", &[]).unwrap();
        prop_assert_eq!(&through(&fixed, "msgpack").unwrap(), &minimal);
        prop_assert_eq!(&through(&minimal, "msgpack-fixed").unwrap(), &fixed);
        prop_assert_eq!(&through(&back, "msgpack").unwrap(), &minimal);
        let again: Value = serde_json::from_slice(&back).unwrap();
        prop_assert_eq!(&again["value"], &json["value"]);
    }
}
