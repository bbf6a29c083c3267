//! [`Rows`]: a stream of record batches, and operations on it that all formats share.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchOptions, RecordBatchReader, UInt64Array};
use arrow_schema::{ArrowError, Field, Schema, SchemaRef};
use arrow_select::take::take;

use super::columns::Columns;
use super::inner::inner_fields;
use super::shape::{self, Form};
use super::{matrix, native};
use crate::error::{Error, Result};
use crate::limits::Budget;

/// A stream of record batches with one schema.
///
/// Its items are results with Arrow's error. `Error::from` gives back the [`Error`] inside, with its kind, byte and hint:
///
/// ```
/// use pentaglot::{Error, Registry, Source, job};
/// let source = Source::from_bytes("x.csv", b"a,b\n1,2\n3\n".to_vec());
/// let opened = job::open_source(&Registry::default(), source, None, &job::OpenOptions::default())?;
/// let batches: Result<Vec<_>, Error> = opened.rows(&job::View::default())?.map(|batch| Ok(batch?)).collect();
/// assert_eq!(batches.unwrap_err().offset(), Some(8));
/// # Ok::<(), Error>(())
/// ```
pub type Rows = Box<dyn RecordBatchReader + Send>;

/// Rows from an iterator of batches that all have `schema`.
pub fn from_batches<I>(schema: SchemaRef, batches: I) -> Rows
where
    I: IntoIterator<Item = Result<RecordBatch>>,
    I::IntoIter: Send + 'static,
{
    Box::new(Batches {
        schema,
        batches: batches.into_iter().map(|batch| batch.map_err(ArrowError::from)),
        failed: false,
    })
}

struct Batches<I> {
    schema: SchemaRef,
    batches: I,
    failed: bool,
}

impl<I: Iterator<Item = Result<RecordBatch, ArrowError>>> Iterator for Batches<I> {
    type Item = Result<RecordBatch, ArrowError>;

    /// After an error or a panic the stream has ended.
    fn next(&mut self) -> Option<Self::Item> {
        if std::mem::replace(&mut self.failed, true) {
            return None;
        }
        let batch = self.batches.next();
        self.failed = matches!(batch, Some(Err(_)));
        batch
    }
}

impl<I: Iterator<Item = Result<RecordBatch, ArrowError>>> RecordBatchReader for Batches<I> {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}

/// A batch that has `rows` rows even if it has no columns.
pub fn batch(schema: SchemaRef, columns: Vec<ArrayRef>, rows: usize) -> Result<RecordBatch> {
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    Ok(RecordBatch::try_new_with_options(schema, columns, &options)?)
}

/// The approximate memory of a field in a few schemas, without its name.
const FIELD_BYTES: u64 = 1024;

/// Returns an error if a matrix of this schema has more columns than the budget has room for as fields.
pub(crate) fn check_columns(schema: &Schema, to: Form, budget: &Budget) -> Result<()> {
    match shape::matrix_cols(schema) {
        Some(cols) if to == Form::Columns && Form::of(schema) != to => {
            budget.check(cols.saturating_mul(FIELD_BYTES))
        }
        _ => Ok(()),
    }
}

/// The approximate memory of a schema.
pub(crate) fn schema_bytes(schema: &Schema) -> u64 {
    fn field_bytes(field: &Field) -> u64 {
        let children: u64 = inner_fields(field.data_type()).into_iter().map(|field| field_bytes(field)).sum();
        let metadata: usize = field.metadata().iter().map(|(key, value)| 64 + key.len() + value.len()).sum();
        // The field, its pointer in a few schemas, and its name there and in the summary.
        children + FIELD_BYTES + (4 * field.name().len() + metadata) as u64
    }
    schema.fields().iter().map(|field| field_bytes(field)).sum()
}

/// The rows `range` of a stream: earlier ones are read and dropped, later ones are not read.
pub fn slice(rows: Rows, range: Range<u64>) -> Rows {
    let schema = sliced_schema(&rows.schema(), &range);
    let inner = Arc::clone(&schema);
    let mut position = 0u64;
    let batches = rows.map_while(move |batch| {
        if range.is_empty() || position >= range.end {
            return None;
        }
        Some(batch.map_err(Error::from).and_then(|batch| {
            let start = position;
            position += batch.num_rows() as u64;
            let from = range.start.clamp(start, position) - start;
            let to = range.end.clamp(start, position) - start;
            let cut = batch.slice(from as usize, (to - from) as usize);
            Ok(cut.with_schema(Arc::clone(&inner))?)
        }))
    });
    from_batches(schema, batches)
}

/// The schema of the rows `range`: a matrix's declared row count follows the selection, and the native type is marked.
pub fn sliced_schema(schema: &SchemaRef, range: &Range<u64>) -> SchemaRef {
    if *range == (0..u64::MAX) {
        return Arc::clone(schema);
    }
    let sliced = native::sliced(schema);
    let Some(total) = shape::matrix_rows(schema) else { return sliced };
    let count = range.end.min(total).saturating_sub(range.start);
    let mut metadata = sliced.metadata().clone();
    metadata.insert(shape::ROWS_KEY.to_owned(), count.to_string());
    Arc::new(schema.as_ref().clone().with_metadata(metadata))
}

/// The chosen columns of a stream, which have `schema`; for formats that cannot read fewer.
pub(super) fn project(rows: Rows, columns: Columns, schema: SchemaRef) -> Result<Rows> {
    let from = rows.schema();
    if from.fields().is_empty() {
        return Ok(rows);
    }
    let form = Form::of(&from);
    let inner = Arc::clone(&schema);
    let batches = rows.map(move |batch| {
        let batch = batch?;
        let projected: Vec<ArrayRef> = match form {
            Form::Dense => vec![project_dense(&columns, batch.column(0), &inner)?],
            Form::Sparse => vec![project_sparse(&columns, batch.column(0), &inner)?],
            _ => columns.indices().map(|index| Arc::clone(batch.column(index as usize))).collect(),
        };
        self::batch(Arc::clone(&inner), projected, batch.num_rows())
    });
    Ok(from_batches(schema, batches))
}

fn project_dense(columns: &Columns, row: &ArrayRef, schema: &Schema) -> Result<ArrayRef> {
    let row = row.as_fixed_size_list();
    let width = row.value_length() as u64;
    let indices: UInt64Array = (0..row.len() as u64)
        .flat_map(|index| columns.indices().map(move |col| (index, col)))
        .map(|(index, col)| index * width + col)
        .collect();
    matrix::dense_rows(schema, take(row.values(), &indices, None)?, row.len())
}

fn project_sparse(columns: &Columns, row: &ArrayRef, schema: &Schema) -> Result<ArrayRef> {
    let list = row.as_list::<i64>();
    if list.value_offsets().first() == list.value_offsets().last() {
        // Choosing columns does not change the type.
        return Ok(arrow_array::make_array(
            list.to_data().into_builder().data_type(schema.field(0).data_type().clone()).build()?,
        ));
    }
    let rows = matrix::SparseRows::of(row, 0)?;
    let mut kept: Vec<u64> = Vec::new();
    let mut new_cols: Vec<u64> = Vec::new();
    let mut offsets: Vec<i64> = vec![0];
    for index in 0..rows.len() {
        for entry in rows.row(index) {
            let mut base = 0;
            for range in columns.ranges() {
                let col = rows.cols.get(entry);
                if range.contains(&col) {
                    kept.push(entry as u64);
                    new_cols.push(base + col - range.start);
                }
                base += range.end - range.start;
            }
        }
        offsets.push(kept.len() as i64);
    }
    let values = take(&rows.values, &UInt64Array::from(kept), None)?;
    matrix::sparse_rows_of(schema, offsets, new_cols, values)
}
