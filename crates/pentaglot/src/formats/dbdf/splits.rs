//! Ranges of rows that can be read in parallel: bands that no block crosses, divided further if all blocks of a band
//! can be read from any row on.

use std::ops::Range;

use crate::formats::Split;

use super::layout::{Block, DbdfLayout, Encoding};
use super::open::File;
use super::tiling;

/// The splits of a file.
pub(super) fn of(file: &File, wanted: usize) -> Vec<Split> {
    let bands = bands(&file.layout);
    if bands.is_empty() {
        // No rows, or no columns and so no blocks.
        return Split::whole(&file.summary);
    }
    let each = wanted.div_ceil(bands.len());
    let pieces = bands.iter().flat_map(|band| band.cut(each));
    if file.damaged {
        // Rows that are not covered are apart from the others.
        let uncovered = tiling::uncovered(&file.layout, None);
        let mut splits: Vec<Split> = pieces.flat_map(|piece| cut_at(piece, &uncovered)).collect();
        let elsewhere = unplaced(&file.layout);
        for split in &mut splits {
            if uncovered.iter().any(|range| range.contains(&split.rows.start)) {
                split.bytes = elsewhere.clone();
            }
        }
        // Those of one range are one part.
        splits.dedup_by(|next, last| {
            let is_one = uncovered.iter().any(|range| {
                range.start <= last.rows.start
                    && next.rows.end <= range.end
                    && last.rows.end == next.rows.start
            });
            if is_one {
                last.rows.end = next.rows.end;
                last.bytes.end = last.bytes.end.max(next.bytes.end);
            }
            is_one
        });
        return splits;
    }
    Split::joined(pieces, wanted)
}

/// The bytes in which rows are that no block covers: blocks that say they are elsewhere, or what follows the last
/// block.
fn unplaced(layout: &DbdfLayout) -> Range<u64> {
    let end = |block: &Block| block.data_offset.saturating_add(block.data_bytes).min(layout.bytes);
    let outside =
        |block: &&Block| block.row.checked_add(block.rows).is_none_or(|end| end > layout.header.rows);
    let blocks = || layout.blocks.iter();
    match blocks().filter(outside).map(|block| block.offset).min() {
        Some(first) => first..blocks().filter(outside).map(end).max().unwrap_or(first),
        None => blocks().map(end).max().unwrap_or(0)..layout.bytes,
    }
}

/// A split, cut where ranges of rows begin and end.
fn cut_at(split: Split, ranges: &[Range<u64>]) -> Vec<Split> {
    let within = |row: &u64| split.rows.start < *row && *row < split.rows.end;
    let mut ends: Vec<u64> =
        ranges.iter().flat_map(|range| [range.start, range.end]).filter(within).collect();
    ends.push(split.rows.end);
    let mut start = split.rows.start;
    ends.into_iter()
        .map(|end| {
            let rows = std::mem::replace(&mut start, end)..end;
            Split { rows, bytes: split.bytes.clone() }
        })
        .collect()
}

/// A range of rows such that every block is inside it or outside it.
struct Band {
    rows: Range<u64>,
    /// The bytes of its blocks.
    bytes: Range<u64>,
    /// Whether all blocks can be read from any row on.
    is_seekable: bool,
    /// The offset of the cells and the bytes per row, if the band is one block of rows of constant size.
    cells: Option<(u64, u64)>,
}

/// The bands, which cover all rows even if the blocks do not.
fn bands(layout: &DbdfLayout) -> Vec<Band> {
    let rows = layout.header.rows;
    let mut blocks: Vec<&Block> =
        layout.blocks.iter().filter(|block| !block.is_void() && block.row < rows).collect();
    blocks.sort_by_key(|block| block.row);
    let mut bands: Vec<Band> = Vec::new();
    for block in blocks {
        let encoding = layout.encoding(block);
        let same_size = matches!(encoding, Encoding::Empty | Encoding::Dense | Encoding::FrameRows);
        let is_seekable = same_size || encoding == Encoding::CsrArrays;
        let (end, bytes) =
            (block.row_end().min(rows), block.offset..block.data_offset.saturating_add(block.data_bytes));
        let before = bands.last().map_or(0, |band| band.rows.end);
        match bands.last_mut() {
            Some(band) if block.row < before => {
                band.rows.end = before.max(end);
                band.bytes = band.bytes.start.min(bytes.start)..band.bytes.end.max(bytes.end);
                band.is_seekable &= is_seekable;
                band.cells = None;
            }
            _ => {
                let cells = same_size.then(|| (block.data_offset, block.data_bytes / block.rows.max(1)));
                bands.push(Band { rows: before..end, bytes, is_seekable, cells });
            }
        }
    }
    if let Some(last) = bands.last_mut() {
        last.rows.end = rows;
    }
    bands
}

impl Band {
    /// About `wanted` parts of it.
    fn cut(&self, wanted: usize) -> Vec<Split> {
        if let Some((offset, row_bytes)) = self.cells {
            return Split::strided(self.rows.clone(), offset, row_bytes, wanted);
        }
        let parts = Split::strided(self.rows.clone(), 0, 0, if self.is_seekable { wanted } else { 1 });
        parts.into_iter().map(|part| Split { bytes: self.bytes.clone(), ..part }).collect()
    }
}
