//! Compares the statistics of a document with the values of its columns.

use std::cmp::Ordering;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Float64Type;
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_cast::cast;
use arrow_ord::ord::make_comparator;
use arrow_schema::{DataType, SortOptions};

use crate::formats::Document;

/// Fails unless the counts are correct and the bounds hold for every value.
pub(crate) fn check(document: &dyn Document, rows: &RecordBatch) {
    let statistics = document.statistics();
    assert!(statistics.rows.is_none_or(|count| count == rows.num_rows() as u64));
    assert!(statistics.columns.is_empty() || statistics.columns.len() == rows.num_columns());
    for (index, (found, column)) in statistics.columns.iter().zip(rows.columns()).enumerate() {
        let nulls = column.logical_null_count() as u64;
        assert!(found.nulls.is_none_or(|count| count == nulls), "nulls of column {index}");
        for (bound, wrong) in [(&found.min, Ordering::Greater), (&found.max, Ordering::Less)] {
            let Some(bound) = bound else { continue };
            assert_eq!((bound.len(), bound.data_type()), (1, column.data_type()), "column {index}");
            let (bound, values) = (plain(bound), plain(column));
            let compare = make_comparator(&bound, &values, SortOptions::default()).unwrap();
            for row in (0..values.len()).filter(|row| values.is_valid(*row) && !is_nan(&values, *row)) {
                assert_ne!(compare(0, row), wrong, "column {index}, row {row}: {bound:?} {values:?}");
            }
        }
    }
}

/// The values of a dictionary or of runs.
pub(crate) fn plain(array: &ArrayRef) -> ArrayRef {
    match array.data_type() {
        DataType::Dictionary(_, values) => cast(array, values).unwrap(),
        DataType::RunEndEncoded(_, values) => cast(array, values.data_type()).unwrap(),
        _ => Arc::clone(array),
    }
}

fn is_nan(array: &ArrayRef, row: usize) -> bool {
    let float = matches!(array.data_type(), DataType::Float16 | DataType::Float32 | DataType::Float64);
    let value = || cast(&array.slice(row, 1), &DataType::Float64).unwrap();
    float && value().as_primitive::<Float64Type>().value(0).is_nan()
}
