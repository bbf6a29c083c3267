//! [`Selection`]: the selected rows and columns of a document, resolved once against its schema.

use std::ops::Range;
use std::sync::Arc;

use arrow_schema::{Schema, SchemaRef};

use super::columns::Columns;
use super::rows::{self, Rows, sliced_schema};
use super::shape::{self, Form};
use crate::error::{self, Error, Result};

/// The selected rows and columns of a document, and the size of batches.
///
/// A selection is made for the schema of one document: names are resolved, indices are in range, and the schema of the
/// result is known.
///
/// ```
/// use std::sync::Arc;
/// use arrow_schema::{DataType, Field, Schema};
/// use pentaglot::hub::Selection;
/// let fields = ["a", "b", "c"].map(|name| Field::new(name, DataType::Int32, false));
/// let schema = Arc::new(Schema::new(fields.to_vec()));
/// let selection = Selection::new(&schema, Some(100)).with_columns(&["c", "a"])?.with_rows(90..200);
/// assert_eq!(selection.range(100), 90..100);
/// assert_eq!(selection.schema().field(0).name(), "c");
/// assert!(Selection::new(&schema, None).with_columns(&["d"]).is_err());
/// # Ok::<(), pentaglot::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Selection {
    full: SchemaRef,
    total: Option<u64>,
    columns: Option<Columns>,
    rows: Range<u64>,
    batch_rows: usize,
    /// The schema of the chosen rows, with all columns.
    row_schema: SchemaRef,
    /// The schema of the chosen rows and columns.
    schema: SchemaRef,
}

impl Selection {
    /// Selects all of a document with this schema and, if known, this many rows.
    pub fn new(schema: &SchemaRef, total: Option<u64>) -> Self {
        Selection {
            full: Arc::clone(schema),
            total,
            columns: None,
            rows: 0..u64::MAX,
            batch_rows: 0,
            row_schema: Arc::clone(schema),
            schema: Arc::clone(schema),
        }
    }

    /// Selects these columns, in this order: names of a table; also positions such as `3`, `7..9`, if no column has
    /// that name.
    pub fn with_columns(self, names: &[impl AsRef<str>]) -> Result<Self> {
        let ranges = self.resolve(names)?;
        self.with_column_ranges(ranges)
    }

    /// Removes these columns from the selection; they are named as in [`with_columns`](Self::with_columns).
    pub fn without_columns(self, names: &[impl AsRef<str>]) -> Result<Self> {
        if names.is_empty() {
            return Ok(self);
        }
        let all = Columns::of(&self.full);
        let mut left = self.columns.as_ref().unwrap_or(&all).ranges().to_vec();
        for gone in self.resolve(names)? {
            let cut = |range: Range<u64>| {
                [range.start..range.end.min(gone.start), range.start.max(gone.end)..range.end]
            };
            left = left.into_iter().flat_map(cut).filter(|range| range.start < range.end).collect();
        }
        if left.is_empty() {
            return Err(Error::usage("no column is left"));
        }
        self.with_column_ranges(left)
    }

    fn resolve(&self, names: &[impl AsRef<str>]) -> Result<Vec<Range<u64>>> {
        let is_matrix = matches!(Form::of(&self.full), Form::Dense | Form::Sparse);
        let ranges = names.iter().map(|name| {
            let range = match is_matrix {
                true => matrix_range(name.as_ref(), shape::matrix_cols(&self.full).unwrap_or(0)),
                false => table_column(name.as_ref(), &self.full),
            }?;
            match range.is_empty() {
                true => {
                    Err(Error::usage(format!("there is no column in {:?}", error::excerpt(name.as_ref()))))
                }
                false => Ok(range),
            }
        });
        ranges.collect()
    }

    /// Selects the columns at these indices, in this order.
    pub fn with_column_ranges(mut self, ranges: Vec<Range<u64>>) -> Result<Self> {
        let columns = Columns::new(ranges, &self.full)?;
        self.schema = columns.schema(&self.row_schema)?;
        self.columns = Some(columns);
        Ok(self)
    }

    /// Selects these rows (a half-open range), clipped to the number of rows.
    #[must_use]
    pub fn with_rows(mut self, range: Range<u64>) -> Self {
        let end = range.end.min(self.total.unwrap_or(u64::MAX));
        let range = range.start.min(end)..end;
        self.rows = if self.total.is_some_and(|total| range == (0..total)) { 0..u64::MAX } else { range };
        self.row_schema = sliced_schema(&self.full, &self.rows);
        self.schema = sliced_schema(&self.schema, &self.rows);
        self
    }

    /// The maximum number of rows in a batch; 0 for the format's default.
    #[must_use]
    pub fn with_batch_rows(mut self, batch_rows: usize) -> Self {
        self.batch_rows = batch_rows;
        self
    }

    /// The schema of the result.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The schema of the chosen rows with all columns: for readers that decode all and [`project`](Self::project).
    pub fn row_schema(&self) -> &SchemaRef {
        &self.row_schema
    }

    /// The chosen columns; `None` for all.
    pub fn columns(&self) -> Option<&Columns> {
        self.columns.as_ref()
    }

    /// The indices of the chosen fields, in order. For a matrix whose rows are lists, that is its only field.
    pub fn fields(&self) -> Vec<usize> {
        match &self.columns {
            Some(columns) if !self.cuts_lists() => columns.indices().map(|index| index as usize).collect(),
            _ => (0..self.full.fields().len()).collect(),
        }
    }

    /// Whether the chosen columns are parts of the lists of a matrix, not fields.
    pub fn cuts_lists(&self) -> bool {
        self.columns.is_some() && matches!(Form::of(&self.full), Form::Dense | Form::Sparse)
    }

    /// Whether only some rows are selected.
    pub fn is_sliced(&self) -> bool {
        self.rows != (0..u64::MAX)
    }

    /// Whether the last row is selected, as far as that is known.
    pub(crate) fn is_to_the_end(&self) -> bool {
        self.rows.end >= self.total.unwrap_or(u64::MAX)
    }

    /// The selected rows of `total`, clipped to it.
    pub fn range(&self, total: u64) -> Range<u64> {
        let end = self.rows.end.min(total);
        self.rows.start.min(end)..end
    }

    /// The number of rows of the result, if known.
    pub fn row_count(&self) -> Option<u64> {
        self.total.map(|total| self.range(total)).map(|range| range.end - range.start)
    }

    /// The maximum number of rows in a batch; 0 for the format's default.
    pub fn batch_rows(&self) -> usize {
        self.batch_rows
    }

    /// The number of rows in a batch, given the format's default.
    pub fn batch_rows_or(&self, own: usize) -> usize {
        if self.batch_rows == 0 { own.max(1) } else { self.batch_rows }
    }

    /// Projects rows that have all columns to the chosen ones.
    pub fn project(&self, rows: Rows) -> Result<Rows> {
        match &self.columns {
            Some(columns) => rows::project(rows, columns.clone(), Arc::clone(&self.schema)),
            None => Ok(rows),
        }
    }

    /// Like [`project`](Self::project), for readers that decode only the chosen fields: it slices the lists of a
    /// matrix.
    pub fn project_lists(&self, rows: Rows) -> Result<Rows> {
        if self.cuts_lists() { self.project(rows) } else { Ok(rows) }
    }

    /// The schema of a reader that decodes only the chosen fields, but whole lists.
    pub fn decoded_schema(&self) -> &SchemaRef {
        if self.cuts_lists() { &self.row_schema } else { &self.schema }
    }
}

fn table_column(name: &str, schema: &Schema) -> Result<Range<u64>> {
    let named = schema.fields().iter().position(|field| field.name() == name);
    let count = schema.fields().len() as u64;
    if let (None, Some(range)) = (named, places(name, count)) {
        return Ok(range);
    }
    let index = named.ok_or_else(|| {
        let names = error::list(schema.fields().iter().map(|field| field.name()));
        Error::usage(format!("there is no column {:?} (there is {names})", error::excerpt(name)))
    })?;
    Ok(index as u64..index as u64 + 1)
}

/// The columns that `3` or `7..9` denotes among `count`; `None` if the text is no such range.
fn places(text: &str, count: u64) -> Option<Range<u64>> {
    let number = |text: &str| text.parse::<u64>().ok().filter(|_| !text.starts_with('+'));
    match text.split_once("..") {
        Some((start, end)) => {
            let start = if start.is_empty() { 0 } else { number(start)? };
            let end = if end.is_empty() { count } else { number(end)?.min(count) };
            Some(start.min(end)..end)
        }
        None => number(text).filter(|index| *index < count).map(|index| index..index + 1),
    }
}

fn matrix_range(name: &str, cols: u64) -> Result<Range<u64>> {
    let bad = || {
        let last = shape::column_name(cols.saturating_sub(1));
        Error::usage(format!(
            "there is no matrix column {name:?} (there are col_0 to {last}, or ranges such as 7..9)"
        ))
    };
    let number = |text: &str| text.strip_prefix("col_").unwrap_or(text).parse::<u64>().map_err(|_| bad());
    match name.split_once("..") {
        Some((start, end)) => {
            let start = if start.is_empty() { 0 } else { number(start)? };
            let end = if end.is_empty() { cols } else { number(end)?.min(cols) };
            Ok(start.min(end)..end)
        }
        None => {
            let index = number(name)?;
            if index < cols { Ok(index..index + 1) } else { Err(bad()) }
        }
    }
}
