//! The loops of reshaping: dense rows, columns, sparse rows and `row, col, value`, batch by batch.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use arrow_array::{
    Array, ArrayRef, ArrowPrimitiveType, BooleanArray, FixedSizeBinaryArray, FixedSizeListArray,
    LargeListArray, PrimitiveArray, RecordBatch, StructArray, UInt32Array, UInt64Array,
    downcast_primitive_array, make_array,
};
use arrow_buffer::{Buffer, OffsetBuffer, ScalarBuffer};
use arrow_data::ArrayData;
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use arrow_select::concat::concat;
use arrow_select::take::take;

use crate::cursor::{allocate, allocate_zeroed};
use crate::error::{Error, Hint, Result};
use crate::hub::rows::{self, Rows};
use crate::hub::type_text::print_type;
use crate::hub::{LossKind, LossRecord, relax, shape};
use crate::limits::Budget;

/// Rows handled together when rows turn into columns, so that a chunk stays in cache.
const CHUNK_ROWS: usize = 128;
/// Bytes of one densified batch.
const DENSE_BATCH_BYTES: u64 = 16 << 20;

fn list_item(field: &Field) -> Result<(&Arc<Field>, i32)> {
    match field.data_type() {
        DataType::FixedSizeList(item, size) => Ok((item, *size)),
        other => Err(Error::unsupported(format!("a dense matrix with rows of {}", print_type(other)))),
    }
}

/// One column per matrix column.
pub(super) fn dense_to_columns(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch> {
    let list = batch.column(0).as_fixed_size_list();
    let (rows, cols) = (list.len(), schema.fields().len());
    let values = list.values().as_ref();
    let columns = downcast_primitive_array!(
        values => split(values, rows, cols),
        _ => {
            let pick = |col: usize| (0..rows).map(|row| (row * cols + col) as u64).collect::<UInt64Array>();
            (0..cols).map(|col| Ok(take(values, &pick(col), None)?)).collect::<Result<Vec<_>>>()?
        }
    );
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

/// One dense row per table row; columns are widened to the matrix's type. A null is refused by row and column, unless it
/// may become NaN, which is then added to what is `lost`.
pub(super) fn columns_to_dense(
    batch: &RecordBatch,
    schema: &Schema,
    start: u64,
    lost: Option<&LossRecord>,
) -> Result<RecordBatch> {
    let (item, size) = list_item(schema.field(0))?;
    let (rows, cols) = (batch.num_rows(), batch.num_columns());
    let mut columns: Vec<ArrayRef> = Vec::new();
    for (field, column) in batch.schema().fields().iter().zip(batch.columns()) {
        let widened = arrow_cast::cast(column, item.data_type())?;
        if column.null_count() == 0 {
            columns.push(widened);
            continue;
        }
        let filled = relax::nan_for_nulls(&widened);
        match (filled, lost) {
            (Some(filled), Some(lost)) => {
                let example = || Some("null".to_owned());
                lost.add(LossKind::Nulls, field.name(), column.null_count() as u64, example);
                columns.push(filled);
            }
            (filled, _) => {
                let row = (0..rows).find(|row| column.is_null(*row)).unwrap_or(0) as u64 + start;
                let why = format!("row {row}, column {:?}: a matrix holds no nulls", field.name());
                let error = Error::lossy(why);
                return Err(if filled.is_some() { error.hint(Hint::AllowLossy) } else { error });
            }
        }
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
    let list = FixedSizeListArray::try_new_with_length(Arc::clone(item), size, values, None, rows)?;
    rows::batch(Arc::new(schema.clone()), vec![Arc::new(list)], rows)
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
pub(super) fn dense_to_sparse(row: &ArrayRef, schema: &Schema) -> Result<ArrayRef> {
    let list = row.as_fixed_size_list();
    let cols = list.value_length() as usize;
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
    sparse_rows(schema, offsets, indices, values)
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

fn sparse_rows(schema: &Schema, offsets: Vec<i64>, indices: Vec<u64>, values: ArrayRef) -> Result<ArrayRef> {
    let DataType::LargeList(entry) = schema.field(0).data_type() else {
        return Err(Error::unsupported("a sparse matrix whose rows are no lists"));
    };
    let DataType::Struct(fields) = entry.data_type() else {
        return Err(Error::unsupported("a sparse matrix whose entries are no structs"));
    };
    let cols: ArrayRef = match fields[0].data_type() {
        DataType::UInt32 => Arc::new(indices.iter().map(|col| *col as u32).collect::<UInt32Array>()),
        _ => Arc::new(UInt64Array::from(indices)),
    };
    let entries = StructArray::try_new(fields.clone(), vec![cols, values], None)?;
    let offsets = OffsetBuffer::new(offsets.into());
    Ok(Arc::new(LargeListArray::try_new(Arc::clone(entry), offsets, Arc::new(entries), None)?))
}

/// Columns, values and offsets (from 0) of a batch of sparse rows.
fn entries(batch: &RecordBatch) -> Result<(UInt64Array, ArrayRef, Vec<i64>)> {
    let list = batch.column(0).as_list::<i64>();
    let offsets = list.value_offsets();
    let (first, last) = (offsets[0], offsets[offsets.len() - 1]);
    let entries = list.values().slice(first as usize, (last - first) as usize);
    let entries = entries.as_struct();
    let cols = arrow_cast::cast(entries.column(0), &DataType::UInt64)?;
    let offsets = offsets.iter().map(|offset| offset - first).collect();
    Ok((cols.as_primitive::<UInt64Type>().clone(), Arc::clone(entries.column(1)), offsets))
}

/// `row, col, value`, in stored order.
pub(super) fn sparse_to_coo(batch: &RecordBatch, schema: &SchemaRef, start: u64) -> Result<RecordBatch> {
    let ends = batch.column(0).as_list::<i64>().value_offsets();
    // Long stretches without entries cost nothing.
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
    let (item, size) = list_item(schema.field(0))?;
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
        let list =
            FixedSizeListArray::try_new_with_length(Arc::clone(item), size, dense, None, part.num_rows())?;
        batches.push(rows::batch(Arc::clone(schema), vec![Arc::new(list)], part.num_rows())?);
    }
    Ok(batches)
}

/// Sparse rows from `row, col, value` in any order of rows. Holds all entries, within the budget.
pub(super) fn coo_to_sparse(rows: Rows, schema: SchemaRef, budget: &Budget) -> Result<Rows> {
    let batches: Vec<RecordBatch> = {
        let mut held = Vec::new();
        for batch in rows {
            let batch = batch?;
            budget.charge(&batch)?;
            held.push(batch);
        }
        held
    };
    let column = |index: usize| -> Result<ArrayRef> {
        let parts: Vec<&dyn Array> = batches.iter().map(|batch| batch.column(index).as_ref()).collect();
        if parts.is_empty() {
            let kind = if index == 2 { shape::matrix_value_type(&schema) } else { None };
            return Ok(arrow_array::new_empty_array(&kind.unwrap_or(DataType::UInt64)));
        }
        let all = concat(&parts)?;
        if all.null_count() > 0 {
            return Err(Error::lossy(format!(
                "column {:?}: a matrix holds no nulls",
                ["row", "col", "value"][index]
            )));
        }
        Ok(all)
    };
    let numbers = |index: usize| -> Result<UInt64Array> {
        let options = arrow_cast::CastOptions { safe: false, ..Default::default() };
        let cast = arrow_cast::cast_with_options(&column(index)?, &DataType::UInt64, &options);
        let cast = cast.map_err(|_| Error::lossy("a row or column number below 0".to_owned()))?;
        Ok(cast.as_primitive::<UInt64Type>().clone())
    };
    let (row_numbers, col_numbers, values) = (numbers(0)?, numbers(1)?, column(2)?);
    drop(batches);
    let seen = row_numbers.values().iter().max().map_or(0, |last| last + 1);
    let row_count = shape::matrix_rows(&schema).unwrap_or(seen);
    let col_count = shape::matrix_cols(&schema).unwrap_or(u64::MAX);
    let bad_col = col_numbers.values().iter().find(|col| **col >= col_count);
    if seen > row_count || bad_col.is_some() {
        let found = bad_col.map_or(format!("row {}", seen - 1), |col| format!("column {col}"));
        return Err(Error::malformed(format_args!("entries within {row_count} x {col_count}"), found));
    }
    budget.limits().check_free_rows(row_count.saturating_sub(row_numbers.len() as u64))?;
    // Counting sort by row keeps the stored order within a row.
    let mut offsets = allocate::<i64>(row_count + 1, budget)?;
    offsets.resize(row_count as usize + 1, 0);
    row_numbers.values().iter().for_each(|row| offsets[*row as usize + 1] += 1);
    (1..offsets.len()).for_each(|row| offsets[row] += offsets[row - 1]);
    let mut next = offsets.clone();
    let mut order = vec![0u64; row_numbers.len()];
    for (entry, row) in row_numbers.values().iter().enumerate() {
        order[next[*row as usize] as usize] = entry as u64;
        next[*row as usize] += 1;
    }
    let order = UInt64Array::from(order);
    let cols = take(&col_numbers, &order, None)?;
    let values = take(&values, &order, None)?;
    let list = sparse_rows(&schema, offsets, cols.as_primitive::<UInt64Type>().values().to_vec(), values)?;
    let batch = rows::batch(Arc::clone(&schema), vec![list], row_count as usize)?;
    Ok(rows::from_batches(schema, [Ok(batch)]))
}
