//! The table that `testdata/make_columnar.py` writes in many ways.

use std::path::PathBuf;
use std::sync::Arc;

use arrow_array::types::Int32Type;
use arrow_array::*;
use arrow_buffer::{NullBuffer, OffsetBuffer};
use arrow_schema::{DataType, Field, Fields, Schema};

use super::conformance::collect;
use crate::formats::{Document, Findings, Format, ReadOptions};
use crate::source::Source;

/// A file under `testdata`.
pub(crate) fn path(name: &str) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata")).join(name)
}

/// Opens a file under `testdata`, which must be valid.
pub(crate) fn open(format: &dyn Format, name: &str) -> Arc<dyn Document> {
    let source = Source::open(path(name)).unwrap();
    let document =
        format.open(source, &ReadOptions::default()).unwrap_or_else(|error| panic!("{name}: {error}"));
    let mut findings = Findings::new(false);
    document.validate(&mut findings).unwrap();
    assert!(findings.list().is_empty(), "{name}: {:#?}", findings.list());
    document
}

/// All rows of a file under `testdata`.
pub(crate) fn read(format: &dyn Format, name: &str) -> RecordBatch {
    let rows = open(format, name).all_rows().unwrap();
    collect(rows).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Fails unless the columns have equal values, of any types.
pub(crate) fn assert_same(name: &str, expected: &RecordBatch, found: &RecordBatch) {
    assert_eq!(expected.num_rows(), found.num_rows(), "{name}");
    assert_eq!(expected.num_columns(), found.num_columns(), "{name}");
    for (index, field) in expected.schema().fields().iter().enumerate() {
        let column = arrow_cast::cast(found.column(index), field.data_type()).unwrap();
        assert_eq!(expected.column(index), &column, "{name}: {}", field.name());
    }
}

pub(crate) fn expected() -> RecordBatch {
    let micros = |days: i64| Some(1_709_209_815_123_456 - days * 86_400_000_000);
    let nulls = || Some(NullBuffer::from(vec![true, true, false, true, true]));
    let x = Int16Array::from(vec![Some(1), None, None, Some(4), Some(5)]);
    let y = StringArray::from(vec![Some("one"), None, None, Some(""), Some("five")]);
    let parts =
        Fields::from(vec![Field::new("x", DataType::Int16, true), Field::new("y", DataType::Utf8, true)]);
    let items = Int64Array::from(vec![Some(1), None, Some(3), Some(4), Some(5), Some(6)]);
    let item = Arc::new(Field::new_list_field(DataType::Int64, true));
    let offsets = OffsetBuffer::from_lengths([3, 0, 0, 1, 2]);
    let long = "x".repeat(40);
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("i", Arc::new(Int32Array::from(vec![Some(1), None, Some(-3), Some(i32::MAX), Some(0)]))),
        (
            "f",
            Arc::new(Float64Array::from(vec![
                Some(0.5),
                Some(-0.0),
                None,
                Some(f64::INFINITY),
                Some(1e-300),
            ])),
        ),
        (
            "s",
            Arc::new(StringArray::from(vec![
                Some(""),
                Some("é日本"),
                None,
                Some("a,b\n\"c\""),
                Some(long.as_str()),
            ])),
        ),
        ("b", Arc::new(BooleanArray::from(vec![Some(true), Some(false), None, Some(true), Some(true)]))),
        (
            "d",
            Arc::new(Date32Array::from(vec![Some(0), None, Some(-141_427), Some(2_932_896), Some(19_782)])),
        ),
        (
            "t",
            Arc::new(
                TimestampMicrosecondArray::from(vec![micros(0), None, micros(40_000), micros(0), micros(0)])
                    .with_timezone("UTC"),
            ),
        ),
        (
            "n",
            Arc::new(
                Decimal128Array::from(vec![Some(125), None, Some(-9_999_999_999), Some(0), Some(300)])
                    .with_precision_and_scale(10, 2)
                    .unwrap(),
            ),
        ),
        ("l", Arc::new(ListArray::new(item, offsets, Arc::new(items), nulls()))),
        ("o", Arc::new(StructArray::new(parts, vec![Arc::new(x), Arc::new(y)], nulls()))),
        (
            "c",
            Arc::new(
                [Some("red"), Some("green"), None, Some("red"), Some("blue")]
                    .into_iter()
                    .collect::<DictionaryArray<Int32Type>>(),
            ),
        ),
        (
            "z",
            Arc::new(BinaryArray::from(vec![
                Some(&b"\x00\xff"[..]),
                Some(b""),
                None,
                Some(b"abc"),
                Some(b"\x80"),
            ])),
        ),
    ];
    let fields: Vec<Field> =
        columns.iter().map(|(name, column)| Field::new(*name, column.data_type().clone(), true)).collect();
    let metadata = [("origin".to_owned(), "make_columnar.py".to_owned())].into();
    let schema = Schema::new_with_metadata(fields, metadata);
    RecordBatch::try_new(Arc::new(schema), columns.into_iter().map(|(_, column)| column).collect()).unwrap()
}
