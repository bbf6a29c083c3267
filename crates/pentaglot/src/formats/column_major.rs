//! Rows of a matrix that is stored column by column, read a band at a time.

#![allow(
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    reason = "every index is below a size that was allocated from the same numbers"
)]

use std::ops::Range;

use arrow_buffer::Buffer;

use crate::cursor::allocate_zeroed;
use crate::error::{Error, Result};
use crate::limits::Budget;
use crate::source::Source;

/// How many columns are read before they are copied to the rows: few enough for their cache lines to stay in
/// cache.
const GROUP: u64 = 64;
/// A band holds at least this many bytes.
const BAND_BYTES: u64 = 16 << 20;
/// A band has enough rows for a column's part of it to have this many bytes, so that reads are not too small.
const PART_BYTES: u64 = 4 << 10;

/// The location of a column-major matrix.
#[derive(Debug, Clone)]
pub(crate) struct ColumnMajor {
    /// A source that can be read at any offset.
    pub(crate) source: Source,
    /// The offset of the first column.
    pub(crate) offset: u64,
    /// Elements per column.
    pub(crate) rows: u64,
    /// Stored columns.
    pub(crate) cols: u64,
    /// Bytes per element; not 0.
    pub(crate) item_bytes: u64,
    /// The position of each stored column in a row; `None` if in order.
    pub(crate) order: Option<Vec<u32>>,
}

impl ColumnMajor {
    /// How many rows a band should have.
    pub(crate) fn band_rows(&self, budget: &Budget) -> u64 {
        let row_bytes = self.cols.saturating_mul(self.item_bytes).max(1);
        let wanted = self.cols.saturating_mul(PART_BYTES).max(BAND_BYTES).min(budget.limits().max_alloc / 10);
        (wanted / row_bytes).max(1)
    }

    /// The rows `range`, row by row.
    pub(crate) fn read(&self, range: Range<u64>, budget: &Budget) -> Result<Buffer> {
        let too_many = || Error::limit("max-alloc", budget.limits().max_alloc, "more than 2^64 bytes");
        let count = range.end.saturating_sub(range.start);
        let part = count.checked_mul(self.item_bytes).ok_or_else(too_many)?;
        let total = part.checked_mul(self.cols).ok_or_else(too_many)?;
        let mut out = allocate_zeroed(total, budget)?;
        if total == 0 {
            return Ok(out.into());
        }
        let group = GROUP.min(self.cols);
        let mut scratch = allocate_zeroed(part.checked_mul(group).ok_or_else(too_many)?, budget)?;
        let whole = count == self.rows;
        let mut first = 0;
        while first < self.cols {
            let cols = group.min(self.cols - first);
            let scratch = &mut scratch.as_slice_mut()[..(part * cols) as usize];
            if whole {
                let offset = self.offset + first * self.rows * self.item_bytes;
                self.source.read_exact_at(offset, scratch)?;
            } else {
                for (col, target) in (first..first + cols).zip(scratch.chunks_exact_mut(part as usize)) {
                    let offset = self.offset + (col * self.rows + range.start) * self.item_bytes;
                    self.source.read_exact_at(offset, target)?;
                }
            }
            let targets: Vec<usize> = (first..first + cols)
                .map(|col| self.order.as_ref().map_or(col as usize, |order| order[col as usize] as usize))
                .collect();
            let (out, width) = (out.as_slice_mut(), self.cols as usize);
            match self.item_bytes {
                1 => spread::<1>(scratch, out, &targets, width),
                2 => spread::<2>(scratch, out, &targets, width),
                4 => spread::<4>(scratch, out, &targets, width),
                8 => spread::<8>(scratch, out, &targets, width),
                16 => spread::<16>(scratch, out, &targets, width),
                size => spread_any(scratch, out, &targets, width, size as usize),
            }
            first += cols;
        }
        Ok(out.into())
    }
}

/// Copies each column of `scratch` to its column in `targets` of the rows of `out`.
fn spread<const N: usize>(scratch: &[u8], out: &mut [u8], targets: &[usize], width: usize) {
    let scratch = scratch.as_chunks::<N>().0;
    let out = out.as_chunks_mut::<N>().0;
    let rows = scratch.len() / targets.len();
    for (index, row) in out.chunks_exact_mut(width).enumerate() {
        for (col, target) in targets.iter().enumerate() {
            row[*target] = scratch[col * rows + index];
        }
    }
}

fn spread_any(scratch: &[u8], out: &mut [u8], targets: &[usize], width: usize, size: usize) {
    let rows = scratch.len() / size / targets.len();
    for (index, row) in out.chunks_exact_mut(width * size).enumerate() {
        for (col, target) in targets.iter().enumerate() {
            let from = (col * rows + index) * size;
            row[target * size..][..size].copy_from_slice(&scratch[from..from + size]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bands_are_the_transposed_columns() {
        for item_bytes in [1u64, 2, 3, 4, 8, 16] {
            for (rows, cols) in [(1u64, 1u64), (5, 3), (3, 130), (70, 65)] {
                let element = |row: u64, col: u64, byte: u64| (row * 31 + col * 7 + byte) as u8;
                let mut bytes = vec![9; 5];
                for col in 0..cols {
                    for row in 0..rows {
                        bytes.extend((0..item_bytes).map(|byte| element(row, col, byte)));
                    }
                }
                let source = Source::from_bytes("columns", bytes);
                let matrix = ColumnMajor { source, offset: 5, rows, cols, item_bytes, order: None };
                for range in [0..rows, 0..rows / 2, rows / 3..rows] {
                    let mut naive = Vec::new();
                    for row in range.clone() {
                        for col in 0..cols {
                            naive.extend((0..item_bytes).map(|byte| element(row, col, byte)));
                        }
                    }
                    assert_eq!(matrix.read(range, &Budget::default()).unwrap().as_slice(), naive);
                }
            }
        }
    }
}
