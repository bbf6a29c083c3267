//! [`Split`]: parts of a document that can be read in parallel, and [`Statistics`] of columns that a file stores.

use std::ops::Range;

use arrow_array::ArrayRef;

use super::Summary;

/// Rows that can be read at a reasonable cost without the rows before them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Split {
    /// The rows.
    pub rows: Range<u64>,
    /// The bytes of the file that contain them, possibly with others.
    pub bytes: Range<u64>,
}

impl Split {
    /// All rows of a document as one split, or none if there are no rows; the end is `u64::MAX` if the number of rows
    /// is not known.
    pub fn whole(summary: &Summary) -> Vec<Split> {
        let split = Split { rows: 0..summary.rows.unwrap_or(u64::MAX), bytes: 0..summary.bytes.unwrap_or(0) };
        std::iter::once(split).filter(|split| !split.rows.is_empty()).collect()
    }

    /// Rows of `row_bytes` bytes each from `offset` on, divided into about `wanted` splits of equal size.
    pub(crate) fn strided(rows: Range<u64>, offset: u64, row_bytes: u64, wanted: usize) -> Vec<Split> {
        let (start, count) = (rows.start, rows.end.saturating_sub(rows.start));
        let each = count.div_ceil(wanted.max(1) as u64).max(1);
        let at = |row: u64| offset.saturating_add(row.saturating_mul(row_bytes));
        let pieces = (0..count.div_ceil(each)).map(|index| {
            let (first, last) = (index * each, ((index + 1) * each).min(count));
            Split { rows: start + first..start + last, bytes: at(first)..at(last) }
        });
        pieces.collect()
    }

    /// Joins adjacent pieces to about `wanted` splits of similar size. The pieces are in the order of rows.
    pub(crate) fn joined(pieces: impl IntoIterator<Item = Split>, wanted: usize) -> Vec<Split> {
        let pieces: Vec<Split> = pieces.into_iter().collect();
        let size = |split: &Split| split.bytes.end.saturating_sub(split.bytes.start);
        let total: u64 = pieces.iter().map(size).fold(0, u64::saturating_add);
        let each = total.div_ceil(wanted.max(1) as u64).max(1);
        let mut joined: Vec<Split> = Vec::new();
        let mut filled = 0u64;
        for piece in pieces {
            let bytes = size(&piece);
            match joined.last_mut() {
                Some(last) if filled < each => {
                    last.rows.end = piece.rows.end;
                    last.bytes = last.bytes.start.min(piece.bytes.start)..last.bytes.end.max(piece.bytes.end);
                    filled = filled.saturating_add(bytes);
                }
                _ => {
                    filled = bytes;
                    joined.push(piece);
                }
            }
        }
        joined
    }
}

/// Statistics of rows and columns that are known without reading values.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Statistics {
    /// How many rows, if known.
    pub rows: Option<u64>,
    /// Per field of the schema; empty if nothing is known.
    pub columns: Vec<ColumnStatistics>,
}

/// Statistics of one column.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct ColumnStatistics {
    /// How many values are missing, if known.
    pub nulls: Option<u64>,
    /// A lower bound of the values (ignoring nulls and NaN), as an array of one value of the column's type, if known.
    pub min: Option<ArrayRef>,
    /// An upper bound of the values (ignoring nulls and NaN), as an array of one value of the column's type, if known.
    pub max: Option<ArrayRef>,
}

impl Statistics {
    /// The statistics of the summary: the number of rows, and of nulls if known.
    pub fn of(summary: &Summary) -> Self {
        let column = |nulls: &Option<u64>| ColumnStatistics { nulls: *nulls, ..ColumnStatistics::default() };
        Statistics { rows: summary.rows, columns: summary.null_counts.iter().map(column).collect() }
    }
}

#[cfg(test)]
mod tests;
