//! The loops of reshaping: dense rows, columns, sparse rows and `row, col, value`, batch by batch.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{
    Array, ArrayRef, ArrowPrimitiveType, BooleanArray, FixedSizeBinaryArray, FixedSizeListArray,
    PrimitiveArray, RecordBatch, UInt64Array, downcast_primitive_array, make_array,
};
use arrow_buffer::{Buffer, ScalarBuffer};
use arrow_data::ArrayData;
use arrow_schema::{DataType, Schema, SchemaRef};
use arrow_select::concat::concat;
use arrow_select::take::take;

use crate::cursor::{allocate, allocate_zeroed};
use crate::error::{Error, Result};
use crate::hub::matrix::{self, SparseRows, widen};
use crate::hub::rows;
use crate::hub::type_text::print_type;
use crate::hub::{LossKind, LossKinds, LossRecord, relax, shape};
use crate::limits::Budget;

/// Rows that are transposed together, so that a chunk stays in cache.
const CHUNK_ROWS: usize = 128;
/// Bytes of one densified batch.
const DENSE_BATCH_BYTES: u64 = 16 << 20;

/// One column per matrix column.
pub(super) fn dense_to_columns(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch> {
    let list = batch.column(0).as_fixed_size_list();
    let (rows, cols) = (list.len(), schema.fields().len());
    let values = list.values().as_ref();
    let pick = |col: usize| (0..rows).map(|row| (row * cols + col) as u64).collect::<UInt64Array>();
    let picked = || (0..cols).map(|col| Ok(take(values, &pick(col), None)?)).collect::<Result<Vec<_>>>();
    let columns = if values.null_count() > 0 {
        picked()?
    } else {
        downcast_primitive_array!(
            values => split(values, rows, cols),
            _ => picked()?
        )
    };
    rows::batch(Arc::clone(schema), columns, rows)
}

fn split<T: ArrowPrimitiveType>(values: &PrimitiveArray<T>, rows: usize, cols: usize) -> Vec<ArrayRef> {
    let mut columns: Vec<Vec<T::Native>> = vec![Vec::new(); cols];
    for chunk in values.values().chunks((CHUNK_ROWS * cols).max(1)) {
        for (col, column) in columns.iter_mut().enumerate() {
            column.extend(chunk[col..].iter().step_by(cols).copied());
        }
    }
    debug_assert!(columns.iter().all(|column| column.len() == rows));
    let array = |column: Vec<T::Native>| {
        let typed = PrimitiveArray::<T>::new(ScalarBuffer::from(column), None);
        Arc::new(typed.with_data_type(values.data_type().clone())) as ArrayRef
    };
    columns.into_iter().map(array).collect()
}

/// One dense row per table row; columns are widened to the matrix's type. A null is an error that names row and column,
/// unless it may become NaN; such nulls and rounded numbers are added to `lost`.
pub(super) fn columns_to_dense(
    batch: &RecordBatch,
    schema: &Schema,
    start: u64,
    allowed: LossKinds,
    lost: &LossRecord,
) -> Result<RecordBatch> {
    let (item, _) = matrix::dense_item(schema)?;
    let (rows, cols) = (batch.num_rows(), batch.num_columns());
    let mut columns: Vec<ArrayRef> = Vec::new();
    for (field, column) in batch.schema().fields().iter().zip(batch.columns()) {
        let cast = arrow_cast::cast(column, item.data_type())?;
        if !widen::holds(item.data_type(), widen::value_type(column.data_type())) {
            check_rounded(field.name(), column, &cast, start, allowed, lost)?;
        }
        columns.push(without_nulls(&cast, field.name(), start, allowed, lost)?);
    }
    let values: ArrayRef = match columns.first().map(|first| first.as_ref()) {
        None => arrow_array::new_empty_array(item.data_type()),
        Some(first) => downcast_primitive_array!(
            first => interleave_like(first, &columns, rows),
            _ => {
                let all: Vec<&dyn Array> = columns.iter().map(|column| column.as_ref()).collect();
                let order = (0..rows).flat_map(|row| (0..cols).map(move |col| (col * rows + row) as u64));
                take(&concat(&all)?, &order.collect::<UInt64Array>(), None)?
            }
        ),
    };
    let list = matrix::dense_rows(schema, values, rows)?;
    rows::batch(Arc::new(schema.clone()), vec![list], rows)
}

/// The values of a matrix column without nulls: a null becomes NaN where that is allowed.
pub(super) fn without_nulls(
    values: &ArrayRef,
    column: &str,
    start: u64,
    allowed: LossKinds,
    lost: &LossRecord,
) -> Result<ArrayRef> {
    if values.null_count() == 0 {
        return Ok(Arc::clone(values));
    }
    match relax::nan_for_nulls(values) {
        Some(filled) if allowed.contains(LossKind::Nulls) => {
            let example = || Some("null".to_owned());
            lost.add(LossKind::Nulls, column, values.null_count() as u64, example);
            Ok(filled)
        }
        _ => {
            let row = (0..values.len()).find(|row| values.is_null(*row)).unwrap_or(0) as u64 + start;
            let error = Error::lossy(format!("row {row}, column {column:?}: a matrix holds no nulls"));
            Err(error.hint(relax::no_nulls_hint(values.data_type(), column)))
        }
    }
}

/// Counts the numbers that a cast to floats has rounded. The first one is an error if rounding is not
/// allowed.
fn check_rounded(
    column: &str,
    from: &ArrayRef,
    to: &ArrayRef,
    start: u64,
    allowed: LossKinds,
    lost: &LossRecord,
) -> Result<()> {
    let back = arrow_cast::cast(to, widen::value_type(from.data_type()))?;
    let from = arrow_cast::cast(from, back.data_type())?;
    let same = arrow_ord::cmp::not_distinct(&from, &back)?;
    let Some(first) = (0..same.len()).find(|row| !same.value(*row)) else { return Ok(()) };
    let text = arrow_cast::display::array_value_to_string(&from, first)?;
    if !allowed.contains(LossKind::Precision) {
        let (row, kind) = (start + first as u64, print_type(to.data_type()));
        let error =
            Error::lossy(format!("row {row}, column {column:?}: {kind} does not hold {text} exactly"));
        return Err(error.hint(LossKind::Precision.hint()));
    }
    lost.add(LossKind::Precision, column, (same.len() - same.true_count()) as u64, || Some(text));
    Ok(())
}

fn interleave_like<T: ArrowPrimitiveType>(
    _: &PrimitiveArray<T>,
    columns: &[ArrayRef],
    rows: usize,
) -> ArrayRef {
    let cols = columns.len();
    let columns: Vec<&[T::Native]> =
        columns.iter().map(|column| column.as_primitive::<T>().values().as_ref()).collect();
    let mut values = vec![T::Native::default(); rows * cols];
    for (chunk, first_row) in values.chunks_mut((CHUNK_ROWS * cols).max(1)).zip((0..).step_by(CHUNK_ROWS)) {
        for (col, column) in columns.iter().enumerate() {
            let cells = chunk[col..].iter_mut().step_by(cols);
            cells.zip(&column[first_row..]).for_each(|(cell, value)| *cell = *value);
        }
    }
    Arc::new(PrimitiveArray::<T>::new(values.into(), None))
}

/// The entries that are not zero (not all bits zero: -0.0 and NaN stay).
pub(super) fn dense_to_sparse(row: &ArrayRef, schema: &Schema, start: u64) -> Result<ArrayRef> {
    let list = row.as_fixed_size_list();
    let cols = list.value_length() as usize;
    if let Some(at) = (list.values().null_count() > 0)
        .then(|| (0..list.values().len()).find(|at| list.values().is_null(*at)))
        .flatten()
    {
        let (row, col) = (start + (at / cols.max(1)) as u64, shape::column_name((at % cols.max(1)) as u64));
        return Err(Error::lossy(format!("row {row}, column {col:?}: a sparse matrix holds no nulls")));
    }
    let is_zero = zero_test(list.values().as_ref())?;
    let mut kept: Vec<u64> = Vec::new();
    let mut indices: Vec<u64> = Vec::new();
    let mut offsets: Vec<i64> = vec![0];
    for row in 0..list.len() {
        for col in 0..cols {
            let index = row * cols + col;
            if !is_zero(index) {
                kept.push(index as u64);
                indices.push(col as u64);
            }
        }
        offsets.push(kept.len() as i64);
    }
    let values = take(list.values(), &UInt64Array::from(kept), None)?;
    matrix::sparse_rows_of(schema, offsets, indices, values)
}

fn zero_test(values: &dyn Array) -> Result<Box<dyn Fn(usize) -> bool>> {
    if let Some(bits) = values.as_boolean_opt() {
        let bits = bits.values().clone();
        return Ok(Box::new(move |index| !bits.value(index)));
    }
    let data = values.to_data();
    let (data, width) = match values.data_type() {
        DataType::FixedSizeList(_, size) => {
            let child = values.as_fixed_size_list().values().to_data();
            let width = child.data_type().primitive_width().map(|width| width * *size as usize);
            (child, width)
        }
        other => (data, other.primitive_width()),
    };
    let width = width.ok_or_else(|| {
        Error::unsupported(format!("a sparse matrix of {}", print_type(values.data_type())))
    })?;
    let bytes = data.buffers()[0].clone();
    let base = data.offset() * data.data_type().primitive_width().unwrap_or(1);
    Ok(match width {
        8 => Box::new(move |index| bytes[base + index * 8..][..8] == [0; 8]),
        4 => Box::new(move |index| bytes[base + index * 4..][..4] == [0; 4]),
        _ => Box::new(move |index| bytes[base + index * width..][..width].iter().all(|byte| *byte == 0)),
    })
}

/// Columns, values and offsets (from 0) of a batch of sparse rows.
fn entries(batch: &RecordBatch) -> Result<(UInt64Array, ArrayRef, Vec<i64>)> {
    let rows = SparseRows::of(batch.column(0), 0)?;
    let range = rows.entries();
    let cols = range.clone().map(|entry| rows.cols.get(entry)).collect();
    let offsets = rows.offsets.iter().map(|offset| offset - rows.offsets[0]).collect();
    Ok((cols, rows.values.slice(range.start, range.len()), offsets))
}

/// `row, col, value`, in stored order.
pub(super) fn sparse_to_coo(batch: &RecordBatch, schema: &SchemaRef, start: u64) -> Result<RecordBatch> {
    let ends = batch.column(0).as_list::<i64>().value_offsets();
    // A batch without entries needs no work.
    if ends.first() == ends.last() {
        return Ok(RecordBatch::new_empty(Arc::clone(schema)));
    }
    let (cols, values, offsets) = entries(batch)?;
    let rows = offsets.windows(2).zip(start..).flat_map(|(ends, row)| (ends[0]..ends[1]).map(move |_| row));
    let rows: ArrayRef = Arc::new(rows.collect::<UInt64Array>());
    let cols = arrow_cast::cast(&cols, schema.field(1).data_type())?;
    let count = values.len();
    self::rows::batch(Arc::clone(schema), vec![rows, cols, values], count)
}

/// One zero of a type: all bits zero.
fn zero(kind: &DataType) -> Result<ArrayRef> {
    Ok(match kind {
        DataType::Boolean => Arc::new(BooleanArray::from(vec![false])),
        DataType::FixedSizeBinary(size) => {
            let bytes = Buffer::from(vec![0u8; usize::try_from(*size).unwrap_or(0)]);
            Arc::new(FixedSizeBinaryArray::try_new(*size, bytes, None)?)
        }
        DataType::FixedSizeList(item, size) => {
            let one = zero(item.data_type())?;
            let all: Vec<&dyn Array> = (0..*size).map(|_| one.as_ref()).collect();
            Arc::new(FixedSizeListArray::try_new(Arc::clone(item), *size, concat(&all)?, None)?)
        }
        other => {
            let width = other.primitive_width();
            let width = width
                .ok_or_else(|| Error::unsupported(format!("a sparse matrix of {}", print_type(other))))?;
            let data =
                ArrayData::try_new(other.clone(), 1, None, 0, vec![Buffer::from(vec![0u8; width])], vec![])?;
            make_array(data)
        }
    })
}

/// Dense rows with the zeros written out, in batches of bounded size.
pub(super) fn sparse_to_dense(
    batch: &RecordBatch,
    schema: &SchemaRef,
    budget: &Budget,
) -> Result<Vec<RecordBatch>> {
    let (item, size) = matrix::dense_item(schema)?;
    let cols = size as u64;
    let row_bytes = cols * item.data_type().primitive_width().unwrap_or(16) as u64;
    let rows_at_once = (budget.batch_bytes(DENSE_BATCH_BYTES) / row_bytes.max(1)).max(1) as usize;
    let mut batches = Vec::new();
    for first in (0..batch.num_rows()).step_by(rows_at_once) {
        let part = batch.slice(first, rows_at_once.min(batch.num_rows() - first));
        let cells = part.num_rows() as u64 * cols;
        let (indices, values, offsets) = entries(&part)?;
        let place = |row: usize, entry: usize| -> Result<usize> {
            let col = indices.value(entry);
            if col >= cols {
                return Err(Error::malformed(format_args!("a column below {cols}"), col).field("col"));
            }
            Ok(row * cols as usize + col as usize)
        };
        let dense = if let Some(width) = item.data_type().primitive_width() {
            let mut bytes = allocate_zeroed(cells * width as u64, budget)?;
            let source = values.to_data();
            let source = &source.buffers()[0].as_slice()[source.offset() * width..];
            for (row, ends) in offsets.windows(2).enumerate() {
                for entry in ends[0] as usize..ends[1] as usize {
                    let at = place(row, entry)? * width;
                    bytes.as_slice_mut()[at..at + width].copy_from_slice(&source[entry * width..][..width]);
                }
            }
            let data = ArrayData::try_new(
                item.data_type().clone(),
                cells as usize,
                None,
                0,
                vec![bytes.into()],
                vec![],
            )?;
            make_array(data)
        } else {
            let mut order = allocate::<u64>(cells, budget)?;
            order.resize(cells as usize, values.len() as u64);
            for (row, ends) in offsets.windows(2).enumerate() {
                for entry in ends[0] as usize..ends[1] as usize {
                    order[place(row, entry)?] = entry as u64;
                }
            }
            let with_zero = concat(&[values.as_ref(), zero(item.data_type())?.as_ref()])?;
            take(&with_zero, &UInt64Array::from(order), None)?
        };
        let list = matrix::dense_rows(schema, dense, part.num_rows())?;
        batches.push(rows::batch(Arc::clone(schema), vec![list], part.num_rows())?);
    }
    Ok(batches)
}
