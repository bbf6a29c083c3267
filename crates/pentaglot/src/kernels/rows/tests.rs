use arrow_buffer::{BooleanBuffer, NullBuffer, OffsetBuffer};
use proptest::prelude::*;

use super::*;

/// An integer in the fewest bytes, branch by branch.
fn naive_integer(value: i128) -> Vec<u8> {
    let bytes = value.to_be_bytes();
    let with = |code: u8, width: usize| [&[code], &bytes[16 - width..]].concat();
    match value {
        -32..=127 => vec![bytes[15]],
        128..=0xff => with(0xcc, 1),
        0x100..=0xffff => with(0xcd, 2),
        0x1_0000..=0xffff_ffff => with(0xce, 4),
        0x1_0000_0000.. => with(0xcf, 8),
        -0x80..-32 => with(0xd0, 1),
        -0x8000..-0x80 => with(0xd1, 2),
        -0x8000_0000..-0x8000 => with(0xd2, 4),
        _ => with(0xd3, 8),
    }
}

/// Every form that holds an integer, the shortest first.
fn all_forms(value: i128) -> Vec<Vec<u8>> {
    let bytes = value.to_be_bytes();
    let mut forms = vec![naive_integer(value)];
    for (index, width) in [1usize, 2, 4, 8].into_iter().enumerate() {
        let bits = 8 * width as u32;
        let low = &bytes[16 - width..];
        if (0..1i128 << bits).contains(&value) {
            forms.push([&[0xcc + index as u8], low].concat());
        }
        if (-(1i128 << (bits - 1))..1i128 << (bits - 1)).contains(&value) {
            forms.push([&[0xd0 + index as u8], low].concat());
        }
    }
    forms
}

/// Numbers near the limits of all widths.
fn borders() -> Vec<i128> {
    let near = |power: u32| [-1, 0, 1].map(|by| (1i128 << power) + by);
    let numbers = (0..=64).flat_map(near).flat_map(|number| [number, -number]);
    let range = i128::from(i64::MIN)..=i128::from(u64::MAX);
    numbers.chain([-31, -32, -33]).filter(|number| range.contains(number)).collect()
}

fn padded(bytes: &[u8]) -> Vec<u8> {
    [bytes, &[0xc1; 64]].concat()
}

fn integer<T: Integer>(form: &[u8]) -> Option<T> {
    let bytes = padded(form);
    let mut wire = MsgPack::new(&bytes, false);
    let value = wire.integer();
    assert!(value.is_none() || wire.position() == form.len());
    value
}

#[test]
fn integers_of_every_form_are_read_where_they_fit() {
    for value in borders() {
        for form in all_forms(value) {
            assert_eq!(integer::<u8>(&form), u8::try_from(value).ok(), "{form:x?}");
            assert_eq!(integer::<i8>(&form), i8::try_from(value).ok(), "{form:x?}");
            assert_eq!(integer::<u32>(&form), u32::try_from(value).ok(), "{form:x?}");
            assert_eq!(integer::<i32>(&form), i32::try_from(value).ok(), "{form:x?}");
            assert_eq!(integer::<u64>(&form), u64::try_from(value).ok(), "{form:x?}");
            assert_eq!(integer::<i64>(&form), i64::try_from(value).ok(), "{form:x?}");
        }
    }
    for code in (0x80..=0xcb).chain(0xd4..=0xdf) {
        assert_eq!(integer::<i64>(&[code]), None, "{code:x}");
    }
}

#[test]
fn integers_are_written_in_the_fewest_bytes() {
    for value in borders() {
        let write = |values: Given<'_>| {
            let mut out = vec![7];
            write_rows(&[Cells { values, nulls: None }], 0..1, false, &mut out);
            out[2..].to_vec()
        };
        if let Ok(value) = u64::try_from(value) {
            assert_eq!(write(Given::UInt64(&[value])), naive_integer(value.into()));
        }
        if let Ok(value) = i64::try_from(value) {
            assert_eq!(write(Given::Int64(&[value])), naive_integer(value.into()));
        }
    }
}

#[test]
fn the_header_of_a_row_takes_the_fewest_bytes() {
    for (count, header) in
        [(1, vec![0x91]), (15, vec![0x9f]), (16, vec![0xdc, 0, 16]), (70_000, vec![0xdd, 0, 1, 0x11, 0x70])]
    {
        let columns: Vec<_> = (0..count).map(|_| Cells { values: Given::UInt8(&[5]), nulls: None }).collect();
        let mut out = Vec::new();
        write_rows(&columns, 0..1, false, &mut out);
        assert_eq!(out, [header, vec![5; count]].concat());
    }
}

#[test]
#[should_panic(expected = "a column that has these rows")]
fn rows_that_a_column_does_not_have_are_refused() {
    write_rows(&[Cells { values: Given::UInt8(&[1, 2]), nulls: None }], 1..3, false, &mut Vec::new());
}

#[test]
fn a_length_that_no_input_has_costs_nothing() {
    for len in [usize::MAX, usize::MAX / 2, 1 << 40] {
        let (mut offsets, mut bytes) = (vec![0], vec![]);
        let mut columns = [RowColumn { values: Values::Fixed(&mut offsets, &mut bytes, len), valid: None }];
        let input = padded(&[0x91, 0xc6, 0xff, 0xff, 0xff, 0xff]);
        let taken = read_rows(&mut MsgPack::new(&input, false), &mut columns, 100, input.len());
        let text = padded(b"[\"AAAA\"]");
        let read = read_rows(&mut Json::new(&text, true), &mut columns, 100, text.len());
        assert_eq!((taken.rows, read.rows, bytes.capacity()), (0, 0, 0));
    }
}

/// One row of each kind of column.
type Row = (Option<i32>, i64, f64, bool, Option<String>, [u8; 5], u64, f32);

fn naive_row(row: &Row, fixed: bool) -> Vec<u8> {
    let (a, b, c, d, e, f, g, h) = row;
    let number = |code: u8, bytes: &[u8], value: i128| {
        if fixed { [&[code], bytes].concat() } else { naive_integer(value) }
    };
    let text = |text: &String| {
        let len = text.len();
        let header = match len {
            0..32 => vec![0xa0 | len as u8],
            32..256 => vec![0xd9, len as u8],
            _ => vec![0xda, (len >> 8) as u8, len as u8],
        };
        [header, text.clone().into_bytes()].concat()
    };
    [
        vec![0x98],
        a.map_or(vec![0xc0], |a| number(0xd2, &a.to_be_bytes(), a.into())),
        number(0xd3, &b.to_be_bytes(), (*b).into()),
        [&[0xcb][..], &c.to_be_bytes()].concat(),
        vec![0xc2 + u8::from(*d)],
        e.as_ref().map_or(vec![0xc0], text),
        [&[0xc4, 5], &f[..]].concat(),
        number(0xcf, &g.to_be_bytes(), (*g).into()),
        [&[0xca][..], &h.to_be_bytes()].concat(),
    ]
    .concat()
}

fn written(rows: &[Row], fixed: bool) -> Vec<u8> {
    let a: Vec<i32> = rows.iter().map(|row| row.0.unwrap_or(0)).collect();
    let a_nulls = NullBuffer::from_iter(rows.iter().map(|row| row.0.is_some()));
    let b: Vec<i64> = rows.iter().map(|row| row.1).collect();
    let c: Vec<f64> = rows.iter().map(|row| row.2).collect();
    let d = BooleanBuffer::from_iter(rows.iter().map(|row| row.3));
    let e: Vec<String> = rows.iter().map(|row| row.4.clone().unwrap_or_default()).collect();
    let e_nulls = NullBuffer::from_iter(rows.iter().map(|row| row.4.is_some()));
    let (e_bytes, e) = (e.concat(), OffsetBuffer::from_lengths(e.iter().map(String::len)));
    let f_bytes: Vec<u8> = rows.iter().flat_map(|row| row.5).collect();
    let f = OffsetBuffer::from_lengths(rows.iter().map(|_| 5));
    let g: Vec<u64> = rows.iter().map(|row| row.6).collect();
    let h: Vec<f32> = rows.iter().map(|row| row.7).collect();
    let columns = [
        Cells { values: Given::Int32(&a), nulls: Some(&a_nulls) },
        Cells { values: Given::Int64(&b), nulls: None },
        Cells { values: Given::Float64(&c), nulls: None },
        Cells { values: Given::Bool(&d), nulls: None },
        Cells { values: Given::Text(&e, e_bytes.as_bytes()), nulls: Some(&e_nulls) },
        Cells { values: Given::Bytes(&f, &f_bytes), nulls: None },
        Cells { values: Given::UInt64(&g), nulls: None },
        Cells { values: Given::Float32(&h), nulls: None },
    ];
    let mut out = Vec::new();
    let middle = rows.len() / 2;
    write_rows(&columns, 0..middle, fixed, &mut out);
    write_rows(&columns, middle..rows.len(), fixed, &mut out);
    out
}

/// Reads rows with the fast loop, which must leave `left` bytes unread.
fn read<W: Wire>(mut wire: W, count: usize, left: usize) -> Vec<Row> {
    let (mut a, mut b, mut c, mut d) = (vec![], vec![], vec![], vec![]);
    let (mut e, mut e_bytes, mut f, mut f_bytes) = (vec![0], vec![], vec![0], vec![]);
    let (mut g, mut h, mut a_valid, mut e_valid) = (vec![], vec![], vec![], vec![]);
    let mut columns = [
        RowColumn { values: Values::Int32(&mut a), valid: Some(&mut a_valid) },
        RowColumn { values: Values::Int64(&mut b), valid: None },
        RowColumn { values: Values::Float64(&mut c), valid: None },
        RowColumn { values: Values::Bool(&mut d), valid: None },
        RowColumn { values: Values::Text(&mut e, &mut e_bytes), valid: Some(&mut e_valid) },
        RowColumn { values: Values::Fixed(&mut f, &mut f_bytes, 5), valid: None },
        RowColumn { values: Values::UInt64(&mut g), valid: None },
        RowColumn { values: Values::Float32(&mut h), valid: None },
    ];
    let until = wire.len();
    let taken = read_rows(&mut wire, &mut columns, usize::MAX, until);
    assert_eq!((taken.rows, until - wire.position()), (count, left));
    assert_eq!([a.len(), b.len(), c.len(), d.len(), e.len() - 1, f.len() - 1, g.len(), h.len()], [count; 8]);
    assert_eq!((a_valid.len(), e_valid.len()), (count, count));
    let nulls = |valid: &[bool]| valid.iter().filter(|valid| !**valid).count() as u64;
    assert_eq!(taken.placeholder_bytes, 4 * nulls(&a_valid) + 4 * nulls(&e_valid));
    let text =
        |row: usize| String::from_utf8(e_bytes[e[row] as usize..e[row + 1] as usize].to_vec()).unwrap();
    let row = |row: usize| {
        let image = f_bytes[5 * row..5 * row + 5].try_into().unwrap();
        let (a, e) = (a_valid[row].then_some(a[row]), e_valid[row].then(|| text(row)));
        (a, b[row], c[row], d[row], e, image, g[row], h[row])
    };
    (0..count).map(row).collect()
}

fn any_row() -> impl Strategy<Value = Row> {
    let text = prop_oneof![
        30 => "[ -~]{0,40}",
        10 => "\\PC{0,12}",
        5 => Just("x".repeat(300)),
        1 => Just("x".repeat(20_000)),
    ];
    let small = prop_oneof![any::<i64>(), (any::<i64>(), 0..64u32).prop_map(|(value, by)| value >> by)];
    let float = prop_oneof![
        prop::num::f64::NORMAL,
        Just(-0.0),
        (0..1_000_000u32).prop_map(|value| f64::from(value) / 1000.0),
    ];
    let single = prop_oneof![prop::num::f32::NORMAL, (0..9999u16).prop_map(|value| f32::from(value) / 100.0)];
    (
        any::<Option<i32>>(),
        small,
        float,
        any::<bool>(),
        prop::option::of(text),
        any::<[u8; 5]>(),
        any::<u64>(),
        single,
    )
}

fn json_row((a, b, c, d, e, f, g, h): &Row) -> String {
    let image = base64_simd::STANDARD.encode_to_string(f);
    serde_json::to_string(&serde_json::json!([a, b, c, d, e, image, g])).unwrap().replace(']', "")
        + &format!(",{h:?}]")
}

proptest! {
    #[test]
    fn rows_are_written_and_read_as_by_the_plain_versions(
        rows in prop_oneof![prop::collection::vec(any_row(), 1..40), prop::collection::vec(any_row(), 100..300)],
        fixed: bool,
    ) {
        let naive: Vec<u8> = rows.iter().flat_map(|row| naive_row(row, fixed)).collect();
        prop_assert_eq!(&written(&rows, fixed), &naive);
        let bytes = padded(&naive);
        prop_assert_eq!(read(MsgPack::new(&bytes, false), rows.len(), 64), rows);
    }

    #[test]
    fn rows_of_json_are_read_as_another_program_wrote_them(
        rows in prop::collection::vec(any_row(), 1..20),
        space in prop_oneof![Just(""), Just(" "), Just("\n\t ")],
    ) {
        let rows: Vec<Row> = rows.into_iter().filter(|row| {
            row.4.as_ref().is_none_or(|text| !text.contains(['"', '\\', ']']) && !text.contains(char::is_control))
        }).collect();
        let text: Vec<String> = rows.iter().map(json_row).collect();
        let text = text.join(&format!("{space},{space}")) + &" ".repeat(64);
        // Between two cells too, but not inside texts.
        let text = text.replacen("[", &format!("{space}[{space}"), 1);
        prop_assert_eq!(read(Json::new(text.as_bytes(), true), rows.len(), 64), rows);
    }

    #[test]
    fn a_number_is_what_the_standard_library_says(
        text in "-?(0|[1-9][0-9]{0,21}|[0-9]{1,9})(\\.[0-9]{0,20})?([eE][+-]?[0-9]{0,3})?",
    ) {
        let bytes = format!("{text},{}", " ".repeat(64));
        let sound = serde_json::from_str::<serde_json::Value>(&text);
        let mut wire = Json::new(bytes.as_bytes(), true);
        let value = wire.float64().filter(|_| wire.position() == text.len()).map(f64::to_bits);
        let naive = text.parse().ok().filter(|value: &f64| value.is_finite()).map(f64::to_bits);
        prop_assert_eq!(value, naive.filter(|_| sound.is_ok()));
        let mut wire = Json::new(bytes.as_bytes(), true);
        let value = wire.float32().filter(|_| wire.position() == text.len()).map(f32::to_bits);
        let naive = text.parse().ok().filter(|value: &f32| value.is_finite()).map(f32::to_bits);
        // A number out of range for float32 may be in range for float64, never the reverse.
        prop_assert_eq!(value, naive.filter(|_| sound.is_ok()));
        let mut wire = Json::new(bytes.as_bytes(), true);
        let value = wire.integer::<i64>().filter(|_| wire.position() == text.len());
        prop_assert_eq!(value, text.parse().ok().filter(|_| sound.is_ok()));
        let mut wire = Json::new(bytes.as_bytes(), true);
        let value = wire.integer::<u64>().filter(|_| wire.position() == text.len());
        let naive = if text == "-0" { Some(0) } else { text.parse().ok() };
        prop_assert_eq!(value, naive.filter(|_| sound.is_ok()));
    }

    #[test]
    fn a_broken_text_ends_the_rows_before_it(count in 1..9000usize, broken in 0..9000usize) {
        let broken = broken % count;
        let bytes: Vec<u8> = (0..count).flat_map(|row| {
            if row == broken { [0x91, 0xa2, b'x', 0xc3] } else { [0x91, 0xa2, 0xc3, 0xa4] }
        }).collect();
        let bytes = padded(&bytes);
        let (mut offsets, mut text) = (vec![0], vec![]);
        let mut columns = [RowColumn { values: Values::Text(&mut offsets, &mut text), valid: None }];
        let mut wire = MsgPack::new(&bytes, false);
        let taken = read_rows(&mut wire, &mut columns, count, bytes.len());
        prop_assert_eq!((taken.rows, wire.position()), (broken, 4 * broken));
        prop_assert_eq!((offsets.len(), text.len()), (broken + 1, 2 * broken));
    }
}
