//! Sparse rows from pieces of blocks.

use std::cmp::Reverse;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_buffer::{Buffer, MutableBuffer, OffsetBuffer, ScalarBuffer};

use super::assemble::{Build, array_of, does_not_survive, index};
use super::cast;
use super::layout::Block;
use super::sparse::Piece;
use super::types::ValueType;
use crate::cursor::{allocate, allocate_zeroed};
use crate::error::{Error, Result};
use crate::hub::matrix::{self, ColumnNumbers};

impl Build<'_> {
    pub(super) fn sparse(&self, mut pieces: Vec<Piece>) -> Result<ArrayRef> {
        let Some(value_type) = self.file.layout.header.value_type(0) else {
            return Err(Error::unsupported("a matrix without a value type"));
        };
        self.plain_blocks(|_, block, rows| {
            pieces.push(self.entries_of_cells(block, rows)?);
            Ok(())
        })?;
        pieces.retain(|piece| !piece.cols.is_empty());
        pieces.sort_by_key(|piece| (piece.col, piece.rows.start));
        let whole = |piece: &Piece| piece.rows == self.chunk.rows && piece.col == 0;
        let offsets = |ends: Vec<i64>| OffsetBuffer::new(ScalarBuffer::from(ends));
        let (offsets, cols, values) = match <[Piece; 1]>::try_from(pieces) {
            Ok([piece]) if whole(&piece) => {
                let values = self.cast_entries(&piece, value_type)?;
                (offsets(piece.ends), Indices::Narrow(piece.cols), values)
            }
            Err(pieces) if pieces.is_empty() => {
                let none = self.selection.no_entries(self.row_count(), &self.file.budget)?;
                (none, Indices::Narrow(Vec::new()), Buffer::default())
            }
            Ok([piece]) => self.merge(&[piece], value_type)?,
            Err(pieces) => self.merge(&pieces, value_type)?,
        };
        let count = cols.len();
        let numbers = match cols {
            Indices::Narrow(cols) => ColumnNumbers::Narrow(ScalarBuffer::from(cols)),
            Indices::Wide(cols) => ColumnNumbers::Wide(ScalarBuffer::from(cols)),
        };
        let cols: ArrayRef = match &numbers {
            ColumnNumbers::Narrow(cols) => Arc::new(arrow_array::UInt32Array::new(cols.clone(), None)),
            ColumnNumbers::Wide(cols) => Arc::new(arrow_array::UInt64Array::new(cols.clone(), None)),
        };
        let values = array_of(value_type, values, count, &|entry, error| {
            let row = offsets.partition_point(|end| *end <= entry as i64).saturating_sub(1) as u64;
            self.place(self.chunk.rows.start + row, numbers.get(entry), error)
        })?;
        matrix::sparse_rows(&self.selection.schema, offsets, cols, values)
    }

    /// The values of a piece as the object's type.
    fn cast_entries(&self, piece: &Piece, to: ValueType) -> Result<Buffer> {
        let from = piece.value_type;
        if from == to {
            return Ok(piece.values.clone());
        }
        let bytes = (piece.cols.len() as u64).saturating_mul(to.size() as u64);
        let mut out = allocate_zeroed(bytes, &self.file.budget)?;
        cast::cast(&piece.values, from, to, out.as_slice_mut()).map_err(|entry| {
            let bytes = piece.values.get(index(entry) * from.size()..).unwrap_or_default();
            let row = piece.ends.partition_point(|end| *end <= entry.cast_signed()).saturating_sub(1) as u64;
            let col = piece.col + u64::from(piece.cols.get(index(entry)).copied().unwrap_or(0));
            self.place(piece.rows.start + row, col, does_not_survive(bytes, from, to))
        })?;
        Ok(out.into())
    }

    /// Converts cells to entries: those with a non-zero bit.
    fn entries_of_cells(&self, block: &Block, rows: Range<u64>) -> Result<Piece> {
        let value_type = block.value_type.unwrap_or(ValueType::Float64);
        let size = value_type.size();
        let row_bytes = block.cols * size as u64;
        let mut ends: Vec<i64> = allocate(rows.end - rows.start + 1, &self.file.budget)?;
        ends.push(0);
        let (mut cols, mut values) = (Vec::new(), MutableBuffer::new(0));
        self.slabs(block, rows.clone(), row_bytes, |_, slab| {
            for cells in slab.chunks_exact(index(row_bytes).max(1)) {
                for (col, cell) in (0u32..).zip(cells.chunks_exact(size)) {
                    if cell.iter().any(|byte| *byte != 0) {
                        cols.push(col);
                        values.extend_from_slice(cell);
                    }
                }
                self.file.budget.check((cols.len() as u64).saturating_mul(4 + size as u64))?;
                ends.push(cols.len() as i64);
            }
            Ok(())
        })?;
        Ok(Piece { rows, col: block.col, ends, cols, value_type, values: values.into() })
    }

    /// Merges pieces with adjacent columns (in order of their columns) and adjacent rows into one run of
    /// rows.
    fn merge(&self, pieces: &[Piece], to: ValueType) -> Result<(OffsetBuffer<i64>, Indices, Buffer)> {
        let total: u64 = pieces.iter().map(|piece| piece.cols.len() as u64).sum();
        let budget = &self.file.budget;
        let mut ends: Vec<i64> = allocate(self.row_count() + 1, budget)?;
        ends.push(0);
        let wide = self.file.layout.header.cols > 1 << 32;
        let mut narrow_cols: Vec<u32> = allocate(if wide { 0 } else { total }, budget)?;
        let mut wide_cols: Vec<u64> = allocate(if wide { total } else { 0 }, budget)?;
        let mut values = allocate_zeroed(total.saturating_mul(to.size() as u64), budget)?;
        let cast: Vec<Buffer> =
            pieces.iter().map(|piece| self.cast_entries(piece, to)).collect::<Result<_>>()?;
        let size = to.size();
        let mut done = 0;
        // Entries of a piece, in bulk.
        let mut take = |piece: &Piece, from: &Buffer, span: Range<usize>| {
            let cols = piece.cols.get(span.clone()).unwrap_or_default();
            if wide {
                wide_cols.extend(cols.iter().map(|col| piece.col + u64::from(*col)));
            } else {
                let base = u32::try_from(piece.col).unwrap_or(u32::MAX);
                narrow_cols.extend(cols.iter().map(|col| base.wrapping_add(*col)));
            }
            let bytes = from.get(span.start * size..span.end * size).unwrap_or_default();
            let place =
                values.as_slice_mut().get_mut(done * size..).and_then(|out| out.get_mut(..bytes.len()));
            place.unwrap_or_default().copy_from_slice(bytes);
            done += cols.len();
            done as i64
        };
        let rows = self.chunk.rows.clone();
        if pieces.is_sorted_by(|above, below| above.rows.end <= below.rows.start) {
            // No two pieces share rows, so each is copied as a whole.
            for (piece, from) in pieces.iter().zip(&cast) {
                let before = ends.last().copied().unwrap_or(0);
                ends.resize(index(piece.rows.start - rows.start) + 1, before);
                take(piece, from, 0..piece.cols.len());
                ends.extend(piece.ends.iter().skip(1).map(|end| before + end));
            }
            ends.resize(index(self.row_count()) + 1, total.cast_signed());
        } else {
            // The pieces of the current row, in order of their columns; pieces of later rows are in `waiting`,
            // the next one last.
            let mut waiting: Vec<_> = pieces.iter().zip(&cast).enumerate().collect();
            waiting.sort_by_key(|(_, (piece, _))| Reverse(piece.rows.start));
            let mut active: Vec<(usize, (&Piece, &Buffer))> = Vec::new();
            for row in rows {
                active.retain(|(_, (piece, _))| row < piece.rows.end);
                let before = active.len();
                while let Some(next) = waiting.pop_if(|(_, (piece, _))| piece.rows.start <= row) {
                    active.push(next);
                }
                if active.len() > before {
                    active.sort_unstable_by_key(|(order, _)| *order);
                }
                let mut end = ends.last().copied().unwrap_or(0);
                for (_, (piece, from)) in &active {
                    let local = index(row - piece.rows.start);
                    if let Some(&[first, last]) = piece.ends.get(local..).and_then(|ends| ends.first_chunk())
                    {
                        end = take(piece, from, index(first.cast_unsigned())..index(last.cast_unsigned()));
                    }
                }
                ends.push(end);
            }
        }
        let cols = if wide { Indices::Wide(wide_cols) } else { Indices::Narrow(narrow_cols) };
        Ok((OffsetBuffer::new(ScalarBuffer::from(ends)), cols, values.into()))
    }
}

enum Indices {
    Narrow(Vec<u32>),
    Wide(Vec<u64>),
}

impl Indices {
    fn len(&self) -> usize {
        match self {
            Indices::Narrow(cols) => cols.len(),
            Indices::Wide(cols) => cols.len(),
        }
    }
}
