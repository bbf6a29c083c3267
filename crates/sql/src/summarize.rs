//! `SUMMARIZE`: the statistics of `describe`, a row for each column.

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, StringArray, UInt64Array};
use pentaglot::hub::{Rows, rows};
use pentaglot::job::{ColumnDescription, Description, Opened, View};
use pentaglot::{Error, Result};

/// Describes rows, which are read once.
pub(crate) fn rows(opened: &Opened) -> Result<Rows> {
    let Description::Table(table) = opened.describe(&View::default())? else {
        return Err(Error::unsupported("the statistics of what is not a table"));
    };
    let columns = &table.columns;
    let texts = |text: &dyn Fn(&ColumnDescription) -> Option<String>| {
        Arc::new(columns.iter().map(text).collect::<StringArray>()) as ArrayRef
    };
    let counts = |count: &dyn Fn(&ColumnDescription) -> u64| {
        Arc::new(UInt64Array::from_iter_values(columns.iter().map(count))) as ArrayRef
    };
    // Those of 5, 25, 50, 75 and 95 %.
    let quantile = |index: usize| texts(&|column| Some(plain(&column.quantiles.as_ref()?[index])));
    let batch = RecordBatch::try_from_iter([
        ("column", texts(&|column| Some(column.name.clone()))),
        ("type", texts(&|column| Some(column.data_type.clone()))),
        ("count", counts(&|column| column.count)),
        ("nulls", counts(&|column| column.nulls)),
        ("nans", counts(&|column| column.nans)),
        ("distinct", counts(&|column| column.distinct)),
        ("min", texts(&|column| column.min.as_deref().map(plain))),
        ("max", texts(&|column| column.max.as_deref().map(plain))),
        ("mean", texts(&|column| column.mean.as_deref().map(plain))),
        ("std", texts(&|column| column.std.as_deref().map(plain))),
        ("q25", quantile(1)),
        ("median", quantile(2)),
        ("q75", quantile(3)),
    ])?;
    Ok(rows::from_batches(batch.schema(), std::iter::once(Ok::<_, Error>(batch))))
}

/// A JSON value as plain text: a text without its quotes.
fn plain(json: &str) -> String {
    serde_json::from_str::<String>(json).unwrap_or_else(|_| json.to_owned())
}
