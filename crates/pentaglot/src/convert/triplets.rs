//! Converts entries in any order, as `row, col, value`, to sparse rows.
//!
//! Entries are distributed over bands of rows while they are read; each band is kept in a spool, which moves to a
//! temporary file past a few megabytes. Then one band after the other is sorted and returned, so that only one band is
//! in memory at a time.

use std::io::Write;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use arrow_array::{Array, ArrayRef, BooleanArray, FixedSizeListArray, RecordBatch, UInt64Array, make_array};
use arrow_buffer::{BooleanBuffer, Buffer};
use arrow_data::ArrayData;
use arrow_schema::{DataType, Schema, SchemaRef};

use super::matrix::without_nulls;
use crate::cursor::{allocate, allocate_zeroed};
use crate::error::{Error, Hint, Result};
use crate::hub::matrix::{self, widen};
use crate::hub::rows::{self, Rows};
use crate::hub::type_text::print_type;
use crate::hub::{LossKinds, LossRecord, shape};
use crate::limits::Budget;
use crate::source::Spool;

/// Maximum number of bands.
const BANDS: u64 = 128;
/// Maximum number of rows of a batch.
const BATCH_ROWS: u64 = 1 << 16;
/// Bytes of a band that are buffered before they are written to its spool.
const PIECE_BYTES: usize = 32 << 10;

/// Which columns of a table are row, column and value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Triplets {
    /// The field of the row numbers.
    pub row: usize,
    /// The field of the column numbers.
    pub col: usize,
    /// The field of the values.
    pub value: usize,
}

const ROW_NAMES: &[&str] = &["row", "i", "row_index"];
const COL_NAMES: &[&str] = &["col", "column", "j", "col_index", "column_index"];
const VALUE_NAMES: &[&str] = &["value", "val", "v", "data"];

impl Triplets {
    /// The columns of a table of three columns: whole numbers for rows and columns, numeric values. They are
    /// identified by name, or with `by_place` by position if the names do not tell. A table that has the names, but
    /// not only these columns or other types, is an error.
    pub fn of(schema: &Schema, by_place: bool) -> Result<Option<Self>> {
        let named = |names: &[&str]| {
            schema.fields().iter().position(|field| names.contains(&field.name().to_lowercase().as_str()))
        };
        let count = schema.fields().len();
        let triplets = match (named(ROW_NAMES), named(COL_NAMES), named(VALUE_NAMES)) {
            (Some(row), Some(col), Some(value)) => Triplets { row, col, value },
            _ if by_place && count == 3 => Triplets { row: 0, col: 1, value: 2 },
            _ => return Ok(None),
        };
        let name = |index: usize| schema.field(index).name().as_str();
        if count != 3 {
            let Triplets { row, col, value } = triplets;
            let entries = format!("{:?}, {:?} and {:?}", name(row), name(col), name(value));
            let columns = [row, col, value].map(|index| name(index).replace(',', "\\,")).join(",");
            return Err(Error::usage(format!(
                "a table of {count} columns: {entries} are entries, what are the others?"
            ))
            .hint(Hint::Argument("columns", columns.into())));
        }
        let wrong = |index: usize, expected: &str| {
            let found = print_type(schema.field(index).data_type());
            Error::usage(format!("column {:?}: expected {expected}, found {found}", name(index)))
        };
        for (index, expected) in [(triplets.row, "row numbers"), (triplets.col, "column numbers")] {
            let kind = widen::value_type(schema.field(index).data_type());
            // Columns of a text file without rows are texts.
            if !(kind.is_integer() || kind.is_floating() || matches!(kind, DataType::Null | DataType::Utf8)) {
                return Err(wrong(index, expected));
            }
        }
        let value = triplets.value_type(schema);
        let is_value = widen::is_matrix_value(&value) || width(&value).is_some_and(|_| value.is_nested());
        if is_value { Ok(Some(triplets)) } else { Err(wrong(triplets.value, "values of a matrix")) }
    }

    /// The new names, as `old=new`, with which the columns of a table are row, column and value: those that have no such
    /// name yet, in their order.
    pub(super) fn renames(schema: &Schema) -> Vec<String> {
        let names: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
        let is_named = |known: &&[&str], name: &str| known.contains(&name.to_lowercase().as_str());
        let roles = [("row", ROW_NAMES), ("col", COL_NAMES), ("value", VALUE_NAMES)];
        let free = roles.iter().filter(|(_, known)| !names.iter().any(|name| is_named(known, name)));
        let others = names.iter().filter(|name| !roles.iter().any(|(_, known)| is_named(known, name)));
        free.zip(others).map(|((role, _), name)| format!("{name}={role}")).collect()
    }

    /// The type of the values.
    pub fn value_type(self, schema: &Schema) -> DataType {
        match widen::value_type(schema.field(self.value).data_type()) {
            // A text file without rows says no more.
            DataType::Null | DataType::Utf8 => DataType::Float64,
            other => other.clone(),
        }
    }
}

/// The largest row and column numbers plus one, from one pass over all entries.
pub fn size(rows: Rows, triplets: Triplets) -> Result<(u64, u64)> {
    let schema = rows.schema();
    let (mut size, mut start) = ((0, 0), 0);
    for batch in rows {
        let batch = batch?;
        for (index, most) in [(triplets.row, &mut size.0), (triplets.col, &mut size.1)] {
            let numbers = numbers(&batch, &schema, index, start)?;
            let last = numbers.values().iter().max().copied();
            if let Some(last) = last {
                let next = last.checked_add(1).filter(|count| i64::try_from(*count).is_ok());
                *most =
                    (*most).max(next.ok_or_else(|| {
                        Error::limit("the limit", i64::MAX, format!("{last} rows or columns"))
                    })?);
            }
        }
        start += batch.num_rows() as u64;
    }
    Ok(size)
}

/// The row or column numbers of a batch, none of them null or negative.
fn numbers(batch: &RecordBatch, schema: &Schema, index: usize, start: u64) -> Result<UInt64Array> {
    let column = batch.column(index);
    let fault = |at: usize, what: &str| {
        let (row, name) = (start + at as u64, schema.field(index).name());
        Error::lossy(format!("row {row}, column {name:?}: {what} is not a row or column number of a matrix"))
    };
    if let Some(at) = (column.logical_null_count() > 0)
        .then(|| (0..column.len()).find(|at| column.logical_nulls().is_some_and(|nulls| nulls.is_null(*at))))
        .flatten()
    {
        return Err(fault(at, "null"));
    }
    let cast = arrow_cast::cast(column, &DataType::UInt64)?;
    if let Some(at) = (cast.null_count() > 0).then(|| (0..cast.len()).find(|at| cast.is_null(*at))).flatten()
    {
        let text = arrow_cast::display::array_value_to_string(column, at).unwrap_or_default();
        return Err(fault(at, &text));
    }
    // pandas makes floats of integers where a value was missing.
    if column.data_type().is_floating() {
        let same = arrow_ord::cmp::not_distinct(&arrow_cast::cast(&cast, column.data_type())?, column)?;
        if let Some(at) = (0..same.len()).find(|at| !same.value(*at)) {
            let text = arrow_cast::display::array_value_to_string(column, at).unwrap_or_default();
            return Err(fault(at, &text));
        }
    }
    Ok(cast.as_primitive::<UInt64Type>().clone())
}

/// Bytes of a value in a spool; `None` for values that a sparse matrix does not have.
fn width(kind: &DataType) -> Option<usize> {
    match kind {
        DataType::Boolean => Some(1),
        DataType::FixedSizeList(item, size) => {
            Some(item.data_type().primitive_width()? * usize::try_from(*size).ok()?)
        }
        other => other.primitive_width(),
    }
}

/// The bytes of values, one after the other.
fn bytes_of(values: &ArrayRef) -> Option<Buffer> {
    if let Some(bits) = values.as_boolean_opt() {
        return Some(Buffer::from_vec(bits.values().iter().map(u8::from).collect::<Vec<u8>>()));
    }
    let data = match values.as_fixed_size_list_opt() {
        Some(list) => list.values().to_data(),
        None => values.to_data(),
    };
    let width = data.data_type().primitive_width()?;
    Some(data.buffers().first()?.slice_with_length(data.offset() * width, data.len() * width))
}

fn array_of(kind: &DataType, bytes: Buffer, count: usize) -> Result<ArrayRef> {
    Ok(match kind {
        DataType::Boolean => {
            Arc::new(BooleanArray::new(BooleanBuffer::collect_bool(count, |at| bytes[at] != 0), None))
        }
        DataType::FixedSizeList(item, size) => {
            let parts = array_of(item.data_type(), bytes, count * *size as usize)?;
            Arc::new(FixedSizeListArray::try_new(Arc::clone(item), *size, parts, None)?)
        }
        other => make_array(ArrayData::try_new(other.clone(), count, None, 0, vec![bytes], vec![])?),
    })
}

/// Sparse rows from a stream of entries in any order. Entries of a row keep their order. A null, a row or column
/// number outside the matrix, and a second entry for a cell are errors.
/// Where `allowed`, a null becomes NaN and is added to `lost`.
pub(super) fn to_sparse(
    rows: Rows,
    triplets: Triplets,
    schema: SchemaRef,
    budget: &Budget,
    allowed: LossKinds,
    lost: &LossRecord,
) -> Result<Rows> {
    let kind = shape::matrix_value_type(&schema).unwrap_or(DataType::Null);
    let Some(width) = width(&kind) else {
        return Err(Error::unsupported(format!("a sparse matrix of {}", print_type(&kind))));
    };
    let total = shape::matrix_rows(&schema);
    let height = total.map_or(u64::MAX, |total| total.div_ceil(BANDS).max(1));
    let mut collected = Bands {
        triplets,
        width,
        kind,
        height,
        size: (total, shape::matrix_cols(&schema).unwrap_or(u64::MAX)),
        bands: Vec::new(),
        start: 0,
        seen: 0,
        budget: budget.clone(),
        allowed,
        lost: lost.clone(),
    };
    let mut pending = Some(rows);
    let mut next = 0;
    let inner = Arc::clone(&schema);
    let mut ready: std::vec::IntoIter<RecordBatch> = Vec::new().into_iter();
    let batches = std::iter::from_fn(move || {
        let mut step = || -> Result<Option<RecordBatch>> {
            if let Some(rows) = pending.take() {
                collected.collect(rows)?;
            }
            loop {
                if let Some(batch) = ready.next() {
                    return Ok(Some(batch));
                }
                let total = collected.size.0.unwrap_or(collected.seen);
                if next >= total {
                    return Ok(None);
                }
                let end = next.saturating_add(collected.height).min(total);
                ready = collected.sorted(next..end, &inner)?.into_iter();
                next = end;
            }
        };
        step().transpose()
    });
    Ok(rows::from_batches(schema, batches))
}

struct Bands {
    triplets: Triplets,
    /// Bytes of a value.
    width: usize,
    kind: DataType,
    /// Rows of a band.
    height: u64,
    size: (Option<u64>, u64),
    bands: Vec<Band>,
    /// Entries before the current batch.
    start: u64,
    /// The largest row number of an entry plus one.
    seen: u64,
    budget: Budget,
    allowed: LossKinds,
    lost: LossRecord,
}

/// Entries of some rows: row, column and value of each.
struct Band {
    spool: Spool,
    piece: Vec<u8>,
}

impl Bands {
    fn collect(&mut self, rows: Rows) -> Result<()> {
        let schema = rows.schema();
        for batch in rows {
            let batch = batch?;
            self.push(&batch, &schema)?;
            self.start += batch.num_rows() as u64;
        }
        for band in &mut self.bands {
            let piece = std::mem::take(&mut band.piece);
            band.spool.write_all(&piece)?;
        }
        if self.size.0.is_none() {
            self.height = self.seen.max(1);
        }
        let free = self.size.0.unwrap_or(self.seen).saturating_sub(self.start);
        self.budget.limits().check_free_rows(free)
    }

    fn push(&mut self, batch: &RecordBatch, schema: &Schema) -> Result<()> {
        let row = numbers(batch, schema, self.triplets.row, self.start)?;
        let col = numbers(batch, schema, self.triplets.col, self.start)?;
        let column = batch.column(self.triplets.value);
        let values = if *column.data_type() == self.kind {
            Arc::clone(column)
        } else {
            arrow_cast::cast(column, &self.kind)?
        };
        let outside =
            |at: usize, what: String| Err(Error::lossy(format!("row {}: {what}", self.start + at as u64)));
        let name = schema.field(self.triplets.value).name();
        if values.null_count() > column.logical_null_count() {
            let at = (0..values.len()).find(|at| values.is_null(*at) && !column.is_null(*at)).unwrap_or(0);
            let text = arrow_cast::display::array_value_to_string(column, at).unwrap_or_default();
            return outside(at, format!("column {name:?}: {text:?} is not a number"));
        }
        let values = without_nulls(&values, name, self.start, self.allowed, &self.lost)?;
        let (rows, cols) = self.size;
        let rows = rows.unwrap_or(u64::MAX);
        if let Some(at) = row.values().iter().position(|row| *row >= rows) {
            return outside(at, format!("the entry is in row {} of a matrix of {rows} rows", row.value(at)));
        }
        if let Some(at) = col.values().iter().position(|col| *col >= cols) {
            return outside(
                at,
                format!("the entry is in column {} of a matrix of {cols} columns", col.value(at)),
            );
        }
        let bytes = bytes_of(&values).unwrap_or_default();
        let memory = (self.budget.limits().max_alloc / (4 * BANDS)).clamp(1 << 12, 1 << 20);
        for ((row, col), value) in row.values().iter().zip(col.values()).zip(bytes.chunks_exact(self.width)) {
            let index = (row / self.height) as usize;
            while self.bands.len() <= index {
                let spool = Spool::with_memory(memory, &self.budget);
                self.bands.push(Band { spool, piece: Vec::new() });
            }
            let band = &mut self.bands[index];
            band.piece.extend(row.to_le_bytes());
            band.piece.extend(col.to_le_bytes());
            band.piece.extend(value);
            if band.piece.len() >= PIECE_BYTES {
                band.spool.write_all(&band.piece)?;
                band.piece.clear();
            }
            self.seen = self.seen.max(row.saturating_add(1));
        }
        Ok(())
    }

    /// The rows of one band.
    fn sorted(&mut self, rows: Range<u64>, schema: &SchemaRef) -> Result<Vec<RecordBatch>> {
        let index = (rows.start / self.height) as usize;
        let record = 16 + self.width;
        let mut bytes: Vec<u8> = Vec::new();
        let mut held = self.budget.reservation();
        if let Some(band) = self.bands.get_mut(index) {
            // The bytes, and the sorted columns and values.
            held.grow(band.spool.len().saturating_mul(2))?;
            band.spool.copy_to(&mut bytes)?;
            *band = Band { spool: Spool::on_disk(), piece: Vec::new() };
        }
        let number = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap_or_default());
        let count = bytes.len() / record;
        let height = rows.end - rows.start;
        let mut offsets = allocate::<i64>(height + 1, &self.budget)?;
        offsets.resize(height as usize + 1, 0);
        for entry in 0..count {
            offsets[(number(entry * record) - rows.start) as usize + 1] += 1;
        }
        (1..offsets.len()).for_each(|row| offsets[row] += offsets[row - 1]);
        // Counting sort by row keeps the order within a row.
        let mut next = offsets.clone();
        let mut cols = vec![0u64; count];
        let mut values = allocate_zeroed((count * self.width) as u64, &self.budget)?;
        for entry in 0..count {
            let at = entry * record;
            let slot = &mut next[(number(at) - rows.start) as usize];
            let place = *slot as usize;
            *slot += 1;
            cols[place] = number(at + 8);
            values.as_slice_mut()[place * self.width..][..self.width]
                .copy_from_slice(&bytes[at + 16..at + record]);
        }
        drop(bytes);
        let mut seen: Vec<u64> = Vec::new();
        for (row, ends) in offsets.windows(2).enumerate() {
            let own = &cols[ends[0] as usize..ends[1] as usize];
            if own.is_sorted_by(|one, two| one < two) {
                continue;
            }
            seen.clear();
            seen.extend(own);
            seen.sort_unstable();
            if let Some(pair) = seen.windows(2).find(|pair| pair[0] == pair[1]) {
                let (row, col) = (rows.start + row as u64, pair[0]);
                return Err(Error::lossy(format!(
                    "row {row}, column {col} of the matrix: a second entry for the cell"
                )));
            }
        }
        let mut batches = Vec::new();
        let values = array_of(&self.kind, values.into(), count)?;
        let list = matrix::sparse_rows_of(schema, offsets, cols, values)?;
        for first in (0..height).step_by(BATCH_ROWS as usize) {
            let count = BATCH_ROWS.min(height - first) as usize;
            batches.push(rows::batch(Arc::clone(schema), vec![list.slice(first as usize, count)], count)?);
        }
        Ok(batches)
    }
}
