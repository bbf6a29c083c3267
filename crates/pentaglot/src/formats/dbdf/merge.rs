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
            Ok([piece]) => self.merge(vec![piece], value_type)?,
            Err(pieces) => self.merge(pieces, value_type)?,
        };
        self.entries(offsets, cols, values, value_type)
    }

    fn entries(
        &self,
        offsets: OffsetBuffer<i64>,
        cols: Indices,
        values: Buffer,
        value_type: ValueType,
    ) -> Result<ArrayRef> {
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
    fn merge(&self, pieces: Vec<Piece>, to: ValueType) -> Result<(OffsetBuffer<i64>, Indices, Buffer)> {
        let total = pieces.iter().map(|piece| piece.cols.len() as u64).sum();
        let mut stack = self.stack(total, to)?;
        if pieces.is_sorted_by(|above, below| above.rows.end <= below.rows.start) {
            pieces.into_iter().try_for_each(|piece| stack.push(&piece))?;
            return Ok(stack.finish());
        }
        let cast: Vec<Buffer> =
            pieces.iter().map(|piece| self.cast_entries(piece, to)).collect::<Result<_>>()?;
        // The pieces of the current row, in order of their columns; pieces of later rows are in `waiting`,
        // the next one last.
        let mut waiting: Vec<_> = pieces.iter().zip(&cast).enumerate().collect();
        waiting.sort_by_key(|(_, (piece, _))| Reverse(piece.rows.start));
        let mut active: Vec<(usize, (&Piece, &Buffer))> = Vec::new();
        for row in self.chunk.rows.clone() {
            active.retain(|(_, (piece, _))| row < piece.rows.end);
            let before = active.len();
            while let Some(next) = waiting.pop_if(|(_, (piece, _))| piece.rows.start <= row) {
                active.push(next);
            }
            if active.len() > before {
                active.sort_unstable_by_key(|(order, _)| *order);
            }
            for (_, (piece, from)) in &active {
                let local = index(row - piece.rows.start);
                if let Some(&[first, last]) = piece.ends.get(local..).and_then(|ends| ends.first_chunk()) {
                    stack.take(piece, from, index(first.cast_unsigned())..index(last.cast_unsigned()));
                }
            }
            stack.ends.push(stack.done as i64);
        }
        Ok(stack.finish())
    }

    /// Room for `total` entries.
    pub(super) fn stack(&self, total: u64, to: ValueType) -> Result<Stack<'_>> {
        let budget = &self.file.budget;
        let mut ends: Vec<i64> = allocate(self.row_count() + 1, budget)?;
        ends.push(0);
        let cols = if self.file.layout.header.cols > 1 << 32 {
            Indices::Wide(allocate(total, budget)?)
        } else {
            Indices::Narrow(allocate(total, budget)?)
        };
        let values = allocate_zeroed(total.saturating_mul(to.size() as u64), budget)?;
        Ok(Stack { build: self, to, ends, cols, values, done: 0 })
    }

    /// The array of a finished stack.
    pub(super) fn stacked(&self, stack: Stack<'_>) -> Result<ArrayRef> {
        let to = stack.to;
        let (offsets, cols, values) = stack.finish();
        self.entries(offsets, cols, values, to)
    }
}

/// The entries of a chunk, from pieces that come one after the other.
pub(super) struct Stack<'a> {
    build: &'a Build<'a>,
    to: ValueType,
    ends: Vec<i64>,
    cols: Indices,
    values: MutableBuffer,
    /// How many entries there are.
    done: usize,
}

impl Stack<'_> {
    /// Adds a piece below all others, as a whole.
    pub(super) fn push(&mut self, piece: &Piece) -> Result<()> {
        if piece.cols.is_empty() {
            return Ok(());
        }
        let values = self.build.cast_entries(piece, self.to)?;
        let before = self.done as i64;
        self.ends.resize(index(piece.rows.start - self.build.chunk.rows.start) + 1, before);
        self.take(piece, &values, 0..piece.cols.len());
        self.ends.extend(piece.ends.iter().skip(1).map(|end| before + end));
        Ok(())
    }

    /// Adds some entries of a piece, whose values have been cast.
    fn take(&mut self, piece: &Piece, from: &Buffer, span: Range<usize>) {
        let size = self.to.size();
        let cols = piece.cols.get(span.clone()).unwrap_or_default();
        match &mut self.cols {
            Indices::Wide(all) => all.extend(cols.iter().map(|col| piece.col + u64::from(*col))),
            Indices::Narrow(all) => {
                let base = u32::try_from(piece.col).unwrap_or(u32::MAX);
                all.extend(cols.iter().map(|col| base.wrapping_add(*col)));
            }
        }
        let bytes = from.get(span.start * size..span.end * size).unwrap_or_default();
        let rest = self.values.as_slice_mut().get_mut(self.done * size..);
        rest.and_then(|rest| rest.get_mut(..bytes.len())).unwrap_or_default().copy_from_slice(bytes);
        self.done += cols.len();
    }

    fn finish(mut self) -> (OffsetBuffer<i64>, Indices, Buffer) {
        self.ends.resize(index(self.build.row_count()) + 1, self.done as i64);
        self.values.truncate(self.done * self.to.size());
        (OffsetBuffer::new(ScalarBuffer::from(self.ends)), self.cols, self.values.into())
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
