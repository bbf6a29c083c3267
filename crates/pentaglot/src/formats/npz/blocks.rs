//! SciPy's layouts of dense parts, from rows of entries: blocks (BSR) and diagonals (DIA).

use std::collections::{BTreeMap, BTreeSet};

use super::by_column::{Waiting, index, zeroed};
use crate::cursor::Reserved;
use crate::error::{Error, Result};
use crate::limits::{Budget, Reservation};

/// Blocks of a matrix, those of a row of blocks in the order of their columns.
pub(super) struct ByBlock {
    /// The number of each block's column of blocks.
    pub(super) cols: Reserved<u64>,
    /// How many blocks there are up to the end of each row of blocks.
    pub(super) ends: Reserved<u64>,
    pub(super) values: Reserved<u8>,
}

/// The blocks of `height` x `width` that have entries. Cells without one are zero.
pub(super) fn by_block(
    waiting: &mut Waiting<'_>,
    (height, width): (u64, u64),
    budget: &Budget,
) -> Result<ByBlock> {
    let size = waiting.values.1;
    let bytes = height.saturating_mul(width).saturating_mul(size as u64);
    let mut found =
        ByBlock { cols: Reserved::new(budget), ends: Reserved::new(budget), values: Reserved::new(budget) };
    // Those of the current row of blocks, and what they take.
    let (mut blocks, mut held) = (BTreeMap::new(), budget.reservation());
    let end = waiting.counts.rows / height;
    let mut current = 0;
    waiting.each(|row, col, value| {
        if row / height > current {
            found.finish_rows(&mut blocks, current..row / height)?;
            (current, held) = (row / height, budget.reservation());
        }
        let block = match blocks.entry(col / width) {
            std::collections::btree_map::Entry::Occupied(known) => known.into_mut(),
            std::collections::btree_map::Entry::Vacant(place) => place.insert(new_block(bytes, &mut held)?),
        };
        let cell = index((row % height) * width + col % width) * size;
        let place = block.get_mut(cell..).and_then(|rest| rest.get_mut(..size));
        place.ok_or_else(|| Error::usage("an entry outside its block"))?.copy_from_slice(value);
        Ok(())
    })?;
    found.finish_rows(&mut blocks, current..end)?;
    Ok(found)
}

fn new_block(bytes: u64, held: &mut Reservation) -> Result<Vec<u8>> {
    held.grow(bytes)?;
    Ok(vec![0; index(bytes)])
}

impl ByBlock {
    /// Ends these rows of blocks, of which the first has the blocks that were gathered.
    fn finish_rows(&mut self, blocks: &mut BTreeMap<u64, Vec<u8>>, rows: std::ops::Range<u64>) -> Result<()> {
        for _ in rows {
            for (col, values) in std::mem::take(blocks) {
                self.cols.extend_from_slice(&[col])?;
                self.values.extend_from_slice(&values)?;
            }
            self.ends.extend_from_slice(&[self.cols.len() as u64])?;
        }
        Ok(())
    }
}

/// Diagonals of a matrix: how far each lies to the right of the main one, and its value in each column.
pub(super) struct ByDiagonal {
    pub(super) offsets: Vec<i64>,
    pub(super) values: Reserved<u8>,
}

/// The diagonals that have entries.
pub(super) fn by_diagonal(waiting: &mut Waiting<'_>, budget: &Budget) -> Result<ByDiagonal> {
    let size = waiting.values.1;
    let (mut known, mut held) = (BTreeSet::new(), budget.reservation());
    // Rows and columns are counted up to 2^63 - 1.
    let offset = |row: u64, col: u64| (col as i64).wrapping_sub(row as i64);
    waiting.each(|row, col, _| {
        if known.insert(offset(row, col)) {
            held.grow(2 * size_of::<i64>() as u64)?;
        }
        Ok(())
    })?;
    let offsets: Vec<i64> = known.into_iter().collect();
    let cols = waiting.counts.cols;
    let cells = (offsets.len() as u64).saturating_mul(cols);
    let mut values = zeroed::<u8>(cells.saturating_mul(size as u64), budget)?;
    waiting.each(|row, col, value| {
        let diagonal = offsets.binary_search(&offset(row, col)).unwrap_or(0);
        let cell = (diagonal * index(cols) + index(col)) * size;
        let place = values.get_mut(cell..).and_then(|rest| rest.get_mut(..size));
        place.ok_or_else(|| Error::usage("an entry outside its diagonal"))?.copy_from_slice(value);
        Ok(())
    })?;
    Ok(ByDiagonal { offsets, values })
}
