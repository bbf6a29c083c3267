use std::sync::Arc;

use arrow_array::types::Int32Type;
use arrow_array::*;
use arrow_ord::sort::sort;
use arrow_schema::TimeUnit;
use parquet::arrow::ArrowWriter;
use parquet::file::properties::WriterProperties;

use super::*;
use crate::formats::parquet::Parquet;
use crate::formats::{Document, Format, ReadOptions};
use crate::source::Source;
use crate::testing::conformance::{Suite, collect};
use crate::testing::statistics::{check, plain};

const ROWS: usize = 100;

/// A document with row groups of ten rows.
fn document(columns: &[(&str, ArrayRef)]) -> Arc<dyn Document> {
    let rows = RecordBatch::try_from_iter(columns.to_vec()).unwrap();
    let properties = WriterProperties::builder().set_max_row_group_row_count(Some(10)).build();
    let mut writer = ArrowWriter::try_new(Vec::new(), rows.schema(), Some(properties)).unwrap();
    writer.write(&rows).unwrap();
    open(writer.into_inner().unwrap())
}

fn open(bytes: Vec<u8>) -> Arc<dyn Document> {
    Parquet.open(Source::from_bytes("x", bytes), &ReadOptions::default()).unwrap()
}

/// The smallest and the largest value of an array.
fn bounds(array: &ArrayRef) -> (ArrayRef, ArrayRef) {
    let plain = plain(array);
    let valid = arrow_select::filter::filter(&plain, &arrow_is_valid(&plain)).unwrap();
    let sorted = sort(&valid, None).unwrap();
    (sorted.slice(0, 1), sorted.slice(sorted.len() - 1, 1))
}

fn arrow_is_valid(array: &ArrayRef) -> BooleanArray {
    (0..array.len()).map(|row| Some(array.is_valid(row))).collect()
}

/// Scrambled whole numbers 0..100 with a null at every seventh; the whole second row group is null.
fn scrambled<T>(make: impl Fn(i64) -> T) -> impl Iterator<Item = Option<T>> {
    let values = (0..ROWS as i64).map(|row| (row, row * 37 % 100 - 50));
    values.map(move |(row, value)| (row % 7 > 0 && !(10..20).contains(&row)).then(|| make(value)))
}

#[test]
fn statistics_have_the_bounds_and_nulls_of_all_row_groups() {
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("i8", Arc::new(scrambled(|value| value as i8).collect::<Int8Array>())),
        ("i64", Arc::new(scrambled(|value| value << 40).collect::<Int64Array>())),
        ("u32", Arc::new(scrambled(|value| (value as u32).wrapping_mul(1 << 24)).collect::<UInt32Array>())),
        ("u64", Arc::new(scrambled(|value| value as u64).collect::<UInt64Array>())),
        ("f32", Arc::new(scrambled(|value| value as f32 / 3.0).collect::<Float32Array>())),
        ("f64", Arc::new(scrambled(|value| value as f64 / 3.0).collect::<Float64Array>())),
        ("bool", Arc::new(scrambled(|value| value > 0).collect::<BooleanArray>())),
        ("text", Arc::new(scrambled(|value| format!("é{value}")).collect::<StringArray>())),
        ("bytes", Arc::new(scrambled(|value| vec![(value + 100) as u8]).collect::<LargeBinaryArray>())),
        ("date", Arc::new(scrambled(|value| value as i32).collect::<Date32Array>())),
        (
            "time",
            Arc::new(
                scrambled(|value| value * 1_000_000)
                    .collect::<TimestampMicrosecondArray>()
                    .with_timezone("Europe/Berlin"),
            ),
        ),
        (
            "decimal",
            Arc::new(
                scrambled(i128::from).collect::<Decimal128Array>().with_precision_and_scale(30, 2).unwrap(),
            ),
        ),
        ("word", {
            let words: Vec<Option<String>> = scrambled(|value| format!("w{value}")).collect();
            Arc::new(words.iter().map(Option::as_deref).collect::<DictionaryArray<Int32Type>>())
        }),
    ];
    let document = document(&columns);
    let rows = collect(document.all_rows().unwrap()).unwrap();
    check(document.as_ref(), &rows);
    let statistics = document.statistics();
    assert_eq!(statistics.rows, Some(ROWS as u64));
    for (((name, column), found), schema) in
        columns.iter().zip(&statistics.columns).zip(document.summary().schema.fields())
    {
        assert_eq!(found.nulls, Some(column.null_count() as u64), "{name}");
        let (min, max) = (found.min.as_ref().expect(name), found.max.as_ref().expect(name));
        assert_eq!((min.data_type(), max.data_type()), (schema.data_type(), schema.data_type()), "{name}");
        assert_eq!(schema.data_type(), column.data_type(), "{name}");
        assert_eq!((plain(min), plain(max)), bounds(column), "{name}");
    }
}

#[test]
fn statistics_that_are_cut_are_still_bounds() {
    let long = |value: i64| format!("{}{value}", "ü".repeat(100));
    let texts: ArrayRef = Arc::new(scrambled(long).collect::<StringArray>());
    let document = document(&[("text", Arc::clone(&texts))]);
    let found = document.statistics().columns.remove(0);
    assert_ne!((found.min.unwrap(), found.max.unwrap()), bounds(&texts));
    check(document.as_ref(), &collect(document.all_rows().unwrap()).unwrap());
}

#[test]
fn statistics_without_bounds_have_none() {
    let nan =
        Float64Array::from_iter_values((0..ROWS).map(|row| if row < 10 { f64::NAN } else { row as f64 }));
    let nulls = Int32Array::new_null(ROWS);
    let list = ListArray::from_iter_primitive::<Int32Type, _, _>((0..ROWS).map(|_| Some([Some(1)])));
    let document = document(&[("nan", Arc::new(nan)), ("null", Arc::new(nulls)), ("list", Arc::new(list))]);
    let statistics = document.statistics();
    assert_eq!(statistics.columns.len(), 3);
    for column in &statistics.columns {
        assert!(column.min.is_none() && column.max.is_none(), "{column:?}");
    }
    assert_eq!(statistics.columns[1].nulls, Some(ROWS as u64));
}

/// Types that are stored as something near: the bounds are of the type that the rows have.
#[test]
fn statistics_are_of_the_type_of_the_rows() {
    let seconds = scrambled(|value| value).collect::<TimestampSecondArray>().with_timezone("+02:00");
    let days = scrambled(|value| value * 86_400_000).collect::<Date64Array>();
    let columns: Vec<(&str, ArrayRef)> = vec![("seconds", Arc::new(seconds)), ("days", Arc::new(days))];
    let rows = RecordBatch::try_from_iter(columns.clone()).unwrap();
    let (_, bytes) = Suite::new(&Parquet).encode(&rows.schema(), &[rows]).unwrap();
    let statistics = open(bytes).statistics();
    let seconds = DataType::Timestamp(TimeUnit::Second, Some("+02:00".into()));
    assert_eq!(statistics.columns[0].min.as_ref().unwrap().data_type(), &seconds);
    for ((name, column), found) in columns.iter().zip(&statistics.columns) {
        assert_eq!((found.min.clone().unwrap(), found.max.clone().unwrap()), bounds(column), "{name}");
    }
}
