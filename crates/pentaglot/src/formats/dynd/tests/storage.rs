//! `storage[T, axis=[…]]`: data in another order than its dimensions.

use crate::testing::asked::Asked;
use serde_json::json;

use super::super::*;
use super::golden::{type_of, value_of};
use super::hub::{check_round_trip, open, raw, write};
use crate::testing::writing::Writing as _;
use crate::{ErrorKind, Limits, Sink, Source};

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn the_published_vectors_hold() {
    let vectors: serde_json::Value =
        serde_json::from_str(include_str!("../../../../../../testdata/dynd/storage.json")).unwrap();
    for vector in vectors["vectors"].as_array().unwrap() {
        let ty = type_of(&vector["type"]);
        assert_eq!(ty.to_string(), vector["type"].as_str().unwrap());
        let value = value_of(&ty, &vector["value"]).unwrap();
        assert_eq!(hex(&write_value(&ty, &value).unwrap()), vector["hex"].as_str().unwrap(), "{vector}");
        check_round_trip(&ty, &value);
        // Column order has a CBOR tag; other orders have none.
        let reversed = matches!(&ty, Type::Storage { axis, .. } if axis.iter().rev().is_sorted());
        let (dims, element) = match &ty {
            Type::Storage { of, .. } => of.fixed_dims(),
            other => other.fixed_dims(),
        };
        let number = matches!(element, Type::Int(_) | Type::Uint(_) | Type::Float(_));
        assert_eq!(cbor::is_native(&ty), reversed && number && !dims.contains(&0), "{ty}");
    }
    for vector in vectors["types_canonical"].as_array().unwrap() {
        assert_eq!(type_of(&vector["input"]).to_string(), vector["canonical"].as_str().unwrap());
    }
    for vector in vectors["types_invalid"].as_array().unwrap() {
        let text = vector["text"].as_str().unwrap();
        assert_eq!(text.parse::<Type>().unwrap_err().rule_name(), "type-syntax", "{text}");
    }
}

#[test]
fn the_axes_are_those_of_a_transposed_array() {
    // numpy.arange(24).reshape(2, 3, 4).transpose(2, 0, 1).tobytes()
    let ty: Type = "storage[2 * 3 * 4 * uint8, axis=[2, 0, 1]]".parse().unwrap();
    let plain: Type = "2 * 3 * 4 * uint8".parse().unwrap();
    let value = read_value(&(0..24).collect::<Vec<u8>>(), &plain, &Limits::default()).unwrap();
    let expected: Vec<u8> =
        (0..4).flat_map(|k| (0..2).flat_map(move |i| (0..3).map(move |j| 12 * i + 4 * j + k))).collect();
    assert_eq!(write_value(&ty, &value).unwrap(), expected);
}

#[test]
fn a_matrix_is_written_in_fortran_order_if_its_type_says_so() {
    let rows = open(&[1, 2, 3, 4, 5, 6], &raw("2 * 3 * uint8")).unwrap().all_rows().unwrap();
    let options = WriteOptions {
        dialect: Some("raw".to_owned()),
        type_text: Some("storage[2 * 3 * uint8, order='F']".to_owned()),
        ..WriteOptions::default()
    };
    let stored = write(rows, &options).unwrap();
    assert_eq!(stored, [1, 4, 2, 5, 3, 6]);
    // And some of its rows are read.
    let document = open(&stored, &raw("storage[2 * 3 * uint8, axis=[1, 0]]")).unwrap();
    let request = Asked { rows: Some(1..2), ..Asked::default() };
    let rows = document.ask(&request).unwrap();
    assert_eq!(
        write(rows, &WriteOptions { dialect: Some("raw".to_owned()), ..WriteOptions::default() }).unwrap(),
        [4, 5, 6]
    );
}

#[test]
fn element_i_is_read_at_its_offset() {
    let ty: Type = "100000 * {a: int32, b: float64}".parse().unwrap();
    let text = ty.to_string();
    let mut bytes = vec![text.len() as u8];
    bytes.extend_from_slice(text.as_bytes());
    bytes.extend((0..1_200_000u32).map(|at| at.to_le_bytes()[0]));
    let mut file = tempfile::NamedTempFile::new().unwrap();
    std::io::Write::write_all(&mut file, &bytes).unwrap();
    let source = Source::open(file.path()).unwrap();
    let document = Dynd.open(source.clone(), &ReadOptions::default()).unwrap();
    let before = source.bytes_read();
    let request = Asked { rows: Some(77_777..77_780), ..Asked::default() };
    let rows: Vec<_> = document.ask(&request).unwrap().map(Result::unwrap).collect();
    assert_eq!(rows[0].num_rows(), 3);
    assert_eq!(source.bytes_read() - before, 3 * 12);
    assert_eq!(ty.fixed_size(), Some(1_200_000));
}

#[test]
fn json_forms_are_those_of_the_command() {
    let json_of = |text: &str, json: serde_json::Value| {
        let ty: Type = text.parse().unwrap();
        let data = write_value(&ty, &value_of(&ty, &json).unwrap()).unwrap();
        array_json(text, &data, &Limits::default())
            .unwrap()
            .split_once("\"value\":")
            .unwrap()
            .1
            .trim_end_matches('}')
            .to_owned()
    };
    assert_eq!(json_of("float32", json!("0x3dcccccd")), "0.1");
    assert_eq!(json_of("float16", json!("0x2e66")), "0.1");
    assert_eq!(json_of("float64", json!("0x8000000000000000")), "-0.0");
    assert_eq!(json_of("float64", json!("0x7ff00000000007a2")), "\"NaN\"");
    assert_eq!(json_of("complex[float32]", json!(["0x3f800000", "0xff800000"])), "[1.0,\"-Infinity\"]");
    assert_eq!(
        json_of("float128", json!("0x3fff0000000000000000000000000000")),
        "\"0x3fff0000000000000000000000000000\""
    );
    assert_eq!(
        json_of("uint128", json!("340282366920938463463374607431768211455")),
        "340282366920938463463374607431768211455"
    );
    assert_eq!(json_of("datetime[tz='UTC']", json!("15000000")), "\"1970-01-01T00:00:01.5Z\"");
    assert_eq!(json_of("date", json!("-1")), "\"1969-12-31\"");
    assert_eq!(json_of("time", json!("-1")), "-1");
    assert_eq!(
        json_of("(bytes, ?char, type, void)", json!(["00ff", {"some": "U+00E9"}, "?int8", "void"])),
        "[\"AP8=\",\"é\",\"?int8\",null]"
    );
    let nested = array_json("array[Any]", &[4, b'b', b'o', b'o', b'l', 1], &Limits::default()).unwrap();
    assert_eq!(nested, r#"{"type":"array[Any]","value":{"type":"bool","value":true}}"#);
}

#[test]
fn a_missing_count_is_spooled_and_a_known_one_is_not() {
    let data =
        write_value(&"var * string".parse().unwrap(), &Value::List(vec![Value::String("x".into()); 300]))
            .unwrap();
    for row_count in [None, Some(300)] {
        let rows = open(&data, &raw("var * string")).unwrap().all_rows().unwrap();
        let options = WriteOptions { dialect: Some("raw".to_owned()), row_count, ..WriteOptions::default() };
        assert_eq!(write(rows, &options).unwrap(), data);
        // To a pipe, too.
        let rows = open(&data, &raw("var * string")).unwrap().all_rows().unwrap();
        let (sink, out) = Sink::memory();
        let mut writer = Dynd.create(sink, rows.schema(), &options).unwrap();
        for batch in rows {
            writer.write(&batch.unwrap()).unwrap();
        }
        assert_eq!(out.take().is_empty(), row_count.is_none(), "before the end");
        writer.finish().unwrap();
    }
    let rows = open(&data, &raw("var * string")).unwrap().all_rows().unwrap();
    let options = WriteOptions { row_count: Some(299), ..WriteOptions::default() };
    assert_eq!(write(rows, &options).unwrap_err().kind(), ErrorKind::Lossy);
}
