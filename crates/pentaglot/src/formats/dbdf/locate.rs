//! Finds the file offset of a cell's value, for errors about that value.

use crate::error::Result;

use super::layout::{Block, Encoding};
use super::open::File;
use super::sparse::{BlockWindow, for_each_coordinate};
use super::types::{DataType, ValueType};

/// The offset of the value of a cell, given by row and column of the block; `None` if the block stores none.
pub(super) fn value_offset(file: &File, block: &Block, row: u64, col: u64) -> Result<Option<u64>> {
    let size = block.value_type.map_or(0, ValueType::size) as u64;
    match file.layout.encoding(block) {
        Encoding::Empty => Ok(None),
        Encoding::Dense => Ok(Some(block.data_offset + (row * block.cols + col) * size)),
        Encoding::FrameRows => Ok(frame_cell(file, block, row, col)),
        Encoding::Sparse => in_rows(file, block, row, col, 4),
        Encoding::WideSparse => in_rows(file, block, row, col, 8),
        Encoding::CsrArrays => in_arrays(file, block, row, col),
        Encoding::UltraSparse => {
            let mut found = None;
            let index_bytes = if block.cols == 1 { 4 } else { 8 };
            for_each_coordinate(&file.source, block, &file.budget, |_, offset, own_row, own_col, _| {
                if (u64::from(own_row), u64::from(own_col)) == (row, col) {
                    found.get_or_insert(offset + index_bytes);
                }
                Ok(())
            })?;
            Ok(found)
        }
    }
}

/// Cells of a frame have the width of their column.
fn frame_cell(file: &File, block: &Block, row: u64, col: u64) -> Option<u64> {
    let header = &file.layout.header;
    debug_assert_eq!(header.data_type, DataType::Frame);
    let before =
        (0..col).filter_map(|col| header.value_type(col)).map(|kind| kind.size() as u64).sum::<u64>();
    Some(block.data_offset + row * header.row_bytes()? + before)
}

/// A number of 4 or 8 bytes.
fn number(window: &mut BlockWindow, offset: u64, bytes: u64) -> Result<u64> {
    let found = window.at(offset, bytes)?;
    Ok(found
        .iter()
        .take(usize::try_from(bytes).unwrap_or(8))
        .rev()
        .fold(0, |sum, byte| sum << 8 | u64::from(*byte)))
}

/// Rows of a count and pairs; earlier rows have to be skipped. Counts and columns have `word` bytes.
fn in_rows(file: &File, block: &Block, row: u64, col: u64, word: u64) -> Result<Option<u64>> {
    let pair = word + block.value_type.map_or(0, ValueType::size) as u64;
    let mut window = BlockWindow::new(&file.source, block, &file.budget);
    let mut offset = block.data_offset;
    for _ in 0..row {
        let count = number(&mut window, offset, word)?;
        offset = offset.saturating_add(word).saturating_add(count.saturating_mul(pair));
    }
    let count = number(&mut window, offset, word)?;
    for entry in 0..count {
        let at = offset + word + entry * pair;
        if number(&mut window, at, word)? == col {
            return Ok(Some(at + word));
        }
    }
    Ok(None)
}

/// DAPHNE's three arrays.
fn in_arrays(file: &File, block: &Block, row: u64, col: u64) -> Result<Option<u64>> {
    let size = block.value_type.map_or(0, ValueType::size) as u64;
    let mut window = BlockWindow::new(&file.source, block, &file.budget);
    let start = number(&mut window, block.data_offset + row * 8, 8)?;
    let end = number(&mut window, block.data_offset + (row + 1) * 8, 8)?.min(block.entries);
    let cols = block.data_offset + (block.rows + 1) * 8;
    for entry in start..end {
        if number(&mut window, cols + entry * 8, 8)? == col {
            return Ok(Some(cols + block.entries * 8 + entry * size));
        }
    }
    Ok(None)
}
