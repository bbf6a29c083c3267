//! Lengths that are kept, patterns that check a file, CBOR of other programs, times past the examined rows.

use std::sync::Arc;

use arrow_array::{ArrayRef, Int32Array, RecordBatch};
use arrow_schema::{DataType, Field};

use super::super::*;
use super::golden::{bytes_of, type_of};
use super::hub::{array_any, batches, dialect, open};
use crate::error::ErrorKind;
use crate::hub::{rows, shape};
use crate::testing::writing::Writing as _;
use crate::{Limits, Sink};

fn written(batch: &RecordBatch, options: &WriteOptions) -> Vec<u8> {
    let (sink, memory) = Sink::memory();
    let mut writer = Dynd.create(sink, batch.schema(), options).unwrap();
    writer.write(batch).unwrap();
    writer.finish().unwrap();
    memory.take()
}

fn numbers() -> RecordBatch {
    let schema = Arc::new(shape::array_schema(Field::new("item", DataType::Int32, false)));
    let items: ArrayRef = Arc::new(Int32Array::from(vec![10, 20, 30]));
    rows::batch(schema, vec![items], 3).unwrap()
}

#[test]
fn an_array_of_known_length_keeps_it() {
    let known = WriteOptions { row_count: Some(3), ..WriteOptions::default() };
    assert_eq!(written(&numbers(), &known), b"\x093 * int32\x0a\0\0\0\x14\0\0\0\x1e\0\0\0");
    let unknown = written(&numbers(), &WriteOptions::default());
    assert!(unknown.starts_with(b"\x0bvar * int32\x03"));
    // A `var` dimension is kept.
    let again = open(&unknown, &ReadOptions::default()).unwrap().all_rows().unwrap();
    let batch = batches(again).unwrap().remove(0);
    assert_eq!(written(&batch, &known), unknown);
    // A table may have any number of rows.
    let schema = Arc::new(arrow_schema::Schema::new(vec![Field::new("x", DataType::Int32, false)]));
    let table = rows::batch(schema, numbers().columns().to_vec(), 3).unwrap();
    assert!(written(&table, &known).starts_with(b"\x10var * {x: int32}\x03"));
    // A single value that is an array is one.
    let list = Arc::new(Field::new_list_field(DataType::Int32, false));
    let schema =
        shape::value_schema(Field::new("value", DataType::FixedSizeList(Arc::clone(&list), 3), false));
    let items = arrow_array::FixedSizeListArray::new(list, 3, Arc::clone(numbers().column(0)), None);
    let value = rows::batch(Arc::new(schema), vec![Arc::new(items)], 1).unwrap();
    let one = WriteOptions { row_count: Some(1), ..WriteOptions::default() };
    assert_eq!(written(&value, &one), written(&numbers(), &known));
}

#[test]
fn the_name_decides_where_the_content_does_not() {
    let named =
        WriteOptions { row_count: Some(3), name: Some("x.CBOR".to_owned()), ..WriteOptions::default() };
    assert_eq!(written(&numbers(), &named), b"\xd8\x4e\x4c\x0a\0\0\0\x14\0\0\0\x1e\0\0\0");
    let registry = crate::Registry::default();
    let detect = |name: &str, bytes: &[u8]| {
        registry.detect(&Source::from_bytes(name, bytes.to_vec())).map(|format| format.info().id)
    };
    assert_eq!(detect("x.cbor", &[0xf5]).unwrap(), "dynd");
    assert!(detect("x.bin", &[0xf5]).is_err());
    let document =
        Dynd.open(Source::from_bytes("x.cbor", vec![0x82_u8, 1, 2]), &ReadOptions::default()).unwrap();
    assert_eq!(document.summary().dialect, Some("cbor"));
    // Other CBOR is an error that says what is wrong, and is not detected as another format.
    let error =
        Dynd.open(Source::from_bytes("x.cbor", vec![0x18_u8, 5]), &ReadOptions::default()).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Malformed, "{error}");
}

#[test]
fn patterns_check_a_file() {
    let file = |text: &str| {
        let ty = Type::parse(text).unwrap();
        let size = usize::try_from(ty.fixed_size().unwrap()).unwrap();
        array_any(&ty, &read_value(&vec![0; size], &ty, &Limits::default()).unwrap())
    };
    let check = |bytes: &[u8], pattern: &str| {
        let options = ReadOptions { type_text: Some(pattern.to_owned()), ..ReadOptions::default() };
        open(bytes, &options).map(drop)
    };
    let matrix = file("2 * 3 * float64");
    for pattern in ["N * M * float64", "... * float64", "Dims... * T", "2 * M * Float", "Any", "Fixed**N * T"]
    {
        check(&matrix, pattern).unwrap_or_else(|error| panic!("{pattern}: {error}"));
    }
    let error = check(&matrix, "N * N * float64").unwrap_err();
    let expected =
        "dynd: at byte 1, type: expected a type that matches `N * N * float64`, found `2 * 3 * float64`";
    assert_eq!((error.kind(), error.to_string().as_str()), (ErrorKind::Malformed, expected));
    for pattern in ["N * float64", "var * M * float64", "N * M * int64", "N * M * K * float64"] {
        assert!(check(&matrix, pattern).is_err(), "{pattern}");
    }
    check(&file("3 * 3 * int8"), "N * N * T").unwrap();
    check(&file("3 * {x: int8, y: int8}"), "N * {x: T, ...}").unwrap();
    assert!(check(&file("3 * {x: int8, y: int16}"), "N * {x: T, y: T}").is_err());
    // The storage order is ignored, unless the type names it.
    let stored = file("storage[2 * 3 * float64, axis=[1, 0]]");
    check(&stored, "N * M * float64").unwrap();
    check(&stored, "storage[2 * 3 * float64, axis=[1, 0]]").unwrap();
    assert!(check(&matrix, "storage[2 * 3 * float64, axis=[1, 0]]").is_err());
}

#[test]
fn cbor_of_another_program_is_read_and_written_again() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/dynd/cbor.json");
    let found: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    for case in found["cases"].as_array().unwrap() {
        let bytes = bytes_of(&case["hex"]);
        let ty = type_of(&case["type"]);
        let (found, value) = read_cbor(&bytes, &Limits::default()).unwrap();
        assert_eq!(found, ty);
        assert_eq!(write_cbor(&ty, &value).unwrap(), bytes, "{ty}");
        let json: serde_json::Value =
            serde_json::from_str(&super::super::json::value_json(&ty, &value)).unwrap();
        assert_eq!(json, case["value"], "{ty}");
        assert!(open(&bytes, &dialect("cbor")).unwrap().all_rows().is_ok());
    }
    // The general form of a value with a native form would be a second form of the same value.
    let column_major = Type::parse("storage[2 * 2 * uint8, axis=[1, 0]]").unwrap();
    let text = column_major.to_string();
    let mut general = vec![0xda, 0x64, 0x79, 0x6e, 0x64, 0x82, 0x78, u8::try_from(text.len()).unwrap()];
    general.extend_from_slice(text.as_bytes());
    general.extend_from_slice(&[0x44, 1, 2, 3, 4]);
    let error = read_cbor(&general, &Limits::default()).unwrap_err();
    assert!(error.to_string().contains("expected the native form of this type"), "{error}");
    for bad in ["d9041082820203d8404101", "d90410828106d84046010203040506", "d9041082820003d84040"] {
        let error = read_cbor(&bytes_of(&bad.into()), &Limits::default()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Malformed, "{bad}");
    }
}

#[test]
fn times_are_looked_at_in_the_first_rows_only() {
    let far = i128::from(i64::MAX) / 10;
    let file = |rows: i128, place: Option<i128>| {
        let ty = Type::parse("var * datetime").unwrap();
        let ticks = (0..rows).map(|row| Value::Int(if Some(row) == place { far } else { row }));
        array_any(&ty, &Value::List(ticks.collect()))
    };
    let kind = |bytes: &[u8], stream: bool| {
        let source = match stream {
            true => Source::from_reader("t", std::io::Cursor::new(bytes.to_vec())),
            false => Source::from_bytes("t", bytes.to_vec()),
        };
        let document = Dynd.open(source, &ReadOptions::default()).unwrap();
        let kind = document.summary().schema.field(0).data_type().clone();
        (kind == DataType::Int64, batches(document.all_rows().unwrap()))
    };
    for stream in [false, true] {
        assert!(!kind(&file(20_000, None), stream).0);
        let (ticks, rows) = kind(&file(20_000, Some(500)), stream);
        assert!(ticks && rows.unwrap().iter().map(RecordBatch::num_rows).sum::<usize>() == 20_000);
        // A later one is an error with a hint.
        let (ticks, rows) = kind(&file(20_000, Some(15_000)), stream);
        assert!(!ticks);
        let error = rows.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Lossy);
        assert!(error.to_string().contains("row 15000, column \"item\""), "{error}");
        assert!(
            matches!(error.advice(), Some(crate::error::Hint::Option(option)) if option == "times=ticks")
        );
    }
}
