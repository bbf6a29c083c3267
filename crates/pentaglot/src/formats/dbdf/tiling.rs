//! Checks that blocks cover an object: each cell is in exactly one block.
//!
//! A sweep line over the rows. Blocks enter at their first row and leave after their last; those on the line are
//! ordered by column, so that an overlap is one with a neighbour and a gap is missing width. The time depends on the
//! number of blocks, not of cells.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use crate::error::Error;
use crate::hub::Columns;

use super::layout::{Block, DbdfLayout};
use super::types::Dialect;

/// Reports every block that extends outside the object or overlaps another, and the first gap, in no particular
/// order. Stops when `report` returns `false`.
pub(super) fn check(layout: &DbdfLayout, mut report: impl FnMut(Error) -> bool) {
    // DAPHNE's dialects have one block, which the walk has checked against the header.
    if layout.header.dialect != Dialect::Spec {
        return;
    }
    let (rows, cols) = (layout.header.rows, layout.header.cols);
    // (row, enters, block): blocks leave before others enter.
    let mut events: Vec<(u64, bool, usize)> = Vec::new();
    for (index, block) in layout.blocks.iter().enumerate() {
        if let Some(error) = block.outside(index, rows, cols) {
            if !report(error) {
                return;
            }
        } else if !block.is_void() {
            events.push((block.row, true, index));
            events.push((block.row_end(), false, index));
        }
    }
    if rows == 0 || cols == 0 {
        return;
    }
    events.sort_unstable();
    let mut sweep = Sweep { blocks: &layout.blocks, line: BTreeMap::new(), width: 0 };
    let mut complete = true;
    let mut reached = 0;
    for (row, enters, index) in events {
        // The line is the same for all rows between the last event and this one.
        if row > reached {
            if complete && sweep.width < cols {
                complete = false;
                if !report(gap(reached, sweep.first_gap(), layout.bytes)) {
                    return;
                }
            }
            reached = row;
        }
        if !enters {
            sweep.leave(index);
        } else if let Some(other) = sweep.enter(index) {
            // An overlapping block is not added to the line, so that its other neighbours are not reported.
            if !report(overlap(&layout.blocks, index, other)) {
                return;
            }
        }
    }
    if complete && reached < rows {
        report(gap(reached, sweep.first_gap(), layout.bytes));
    }
}

/// The rows of which some of the wanted columns, or of all, are in no block or in several; in order.
pub(super) fn uncovered(layout: &DbdfLayout, wanted: Option<&Columns>) -> Vec<Range<u64>> {
    let (rows, cols) = (layout.header.rows, layout.header.cols);
    if layout.header.dialect != Dialect::Spec || rows == 0 || cols == 0 {
        return Vec::new();
    }
    // The wanted columns as ranges that do not overlap.
    let all = std::iter::once(0..cols);
    let mut ranges: Vec<Range<u64>> = wanted.map_or_else(|| all.collect(), |wanted| wanted.ranges().to_vec());
    ranges.sort_unstable_by_key(|range| range.start);
    ranges.dedup_by(|next, last| {
        let joins = next.start <= last.end;
        if joins {
            last.end = last.end.max(next.end);
        }
        joins
    });
    let width: u64 = ranges.iter().map(|range| range.end - range.start).sum();
    let within = |block: &Block| -> u64 {
        let common =
            |range: &Range<u64>| range.end.min(block.col_end()).saturating_sub(range.start.max(block.col));
        ranges.iter().map(common).sum()
    };
    let mut events: Vec<(u64, bool, usize)> = vec![(rows, false, usize::MAX)];
    for (index, block) in layout.blocks.iter().enumerate() {
        if block.outside(index, rows, cols).is_none() && !block.is_void() && within(block) > 0 {
            events.push((block.row, true, index));
            events.push((block.row_end(), false, index));
        }
    }
    events.sort_unstable();
    let mut sweep = Sweep { blocks: &layout.blocks, line: BTreeMap::new(), width: 0 };
    // Cells under the line, and blocks under it that overlap another.
    let (mut covered, mut overlaps) = (0, BTreeSet::new());
    let mut found: Vec<Range<u64>> = Vec::new();
    let mut reached = 0;
    for (row, enters, index) in events {
        if row > reached {
            if covered != width || !overlaps.is_empty() {
                match found.last_mut() {
                    Some(last) if last.end == reached => last.end = row,
                    _ => found.push(reached..row),
                }
            }
            reached = row;
        }
        let Some(block) = layout.blocks.get(index) else { continue };
        if !enters {
            if !overlaps.remove(&index) {
                sweep.leave(index);
                covered -= within(block);
            }
        } else if sweep.enter(index).is_some() {
            overlaps.insert(index);
        } else {
            covered += within(block);
        }
    }
    found
}

/// The first row of `rows` that is in one of the ranges, which are in order.
pub(super) fn first_within(ranges: &[Range<u64>], rows: &Range<u64>) -> Option<u64> {
    let range = ranges.iter().find(|range| range.end > rows.start)?;
    Some(range.start.max(rows.start)).filter(|row| *row < rows.end)
}

struct Sweep<'a> {
    blocks: &'a [Block],
    /// First column to block.
    line: BTreeMap<u64, usize>,
    width: u64,
}

impl Sweep<'_> {
    /// Adds a block to the line, unless it overlaps another, which is returned.
    fn enter(&mut self, index: usize) -> Option<usize> {
        let block = self.blocks.get(index)?;
        let before = self.line.range(..=block.col).next_back().map(|(_, other)| *other);
        let overlaps_before =
            before.filter(|other| self.blocks.get(*other).is_some_and(|other| other.col_end() > block.col));
        let inside = || self.line.range(block.col..block.col_end()).next().map(|(_, other)| *other);
        if let Some(other) = overlaps_before.or_else(inside) {
            return Some(other);
        }
        self.line.insert(block.col, index);
        self.width += block.cols;
        None
    }

    fn leave(&mut self, index: usize) {
        if let Some(block) = self.blocks.get(index)
            && self.line.get(&block.col) == Some(&index)
        {
            self.line.remove(&block.col);
            self.width -= block.cols;
        }
    }

    fn first_gap(&self) -> u64 {
        let mut next = 0;
        for (col, index) in &self.line {
            if *col > next {
                break;
            }
            next = self.blocks.get(*index).map_or(next, Block::col_end);
        }
        next
    }
}

fn overlap(blocks: &[Block], index: usize, other: usize) -> Error {
    // The error names the later block in the file.
    let (late, early) = (index.max(other), index.min(other));
    let offset = blocks.get(late).map_or(0, |block| block.offset);
    Error::malformed("blocks that do not overlap", format_args!("an overlap with block {early}"))
        .at(offset)
        .index(late as u64)
        .field("block")
        .rule("block-overlap")
}

fn gap(row: u64, col: u64, end: u64) -> Error {
    Error::malformed("a block for every cell", format_args!("none for row {row}, column {col}"))
        .at(end)
        .field("block")
        .rule("block-gap")
}
