//! Queries about the values in a range of positions.

use std::ops::Range;

use super::{Level, Wavelet};
use crate::storage::Words;

impl<L: Level, W: Words> Wavelet<L, W> {
    fn clamp(&self, range: Range<u64>) -> Range<u64> {
        let end = range.end.min(self.len());
        range.start.min(end)..end
    }

    /// Where a range of positions continues on the next level, by the bit.
    fn split(&self, depth: usize, range: &Range<u64>) -> (Range<u64>, Range<u64>) {
        let level = &self.core.levels[depth];
        let (len, zeros) = (level.len(), level.count_zeros());
        let (before, until) = (level.rank(range.start), level.rank(range.end));
        let zero = range.start.min(len).wrapping_sub(before)..range.end.min(len).wrapping_sub(until);
        (zero, zeros.wrapping_add(before)..zeros.wrapping_add(until))
    }

    /// How many values at `positions` are below `limit`.
    fn count_below(&self, positions: Range<u64>, limit: u64) -> u64 {
        if self.width() < 64 && limit >> self.width() != 0 {
            return positions.end - positions.start;
        }
        let (mut range, mut count) = (positions, 0_u64);
        for depth in 0..self.core.levels.len() {
            let (zero, one) = self.split(depth, &range);
            if limit >> (self.core.levels.len() - 1 - depth) & 1 == 1 {
                count = count.wrapping_add(zero.end.saturating_sub(zero.start));
                range = one;
            } else {
                range = zero;
            }
        }
        count
    }

    /// How many of the values at `positions` lie in `values`; both ranges may reach past what there is.
    pub fn range_count(&self, positions: Range<u64>, values: Range<u64>) -> u64 {
        let positions = self.clamp(positions);
        if values.start >= values.end || positions.start >= positions.end {
            return 0;
        }
        let below = |limit| self.count_below(positions.clone(), limit);
        below(values.end).saturating_sub(below(values.start))
    }

    /// The value of rank `rank` (from 0) among the values at `positions`, sorted; `None` if there are not so many.
    pub fn quantile(&self, positions: Range<u64>, mut rank: u64) -> Option<u64> {
        let mut range = self.clamp(positions);
        if rank >= range.end - range.start {
            return None;
        }
        let mut value = 0;
        for depth in 0..self.core.levels.len() {
            let (zero, one) = self.split(depth, &range);
            let zeros = zero.end.saturating_sub(zero.start);
            if rank < zeros {
                (value, range) = (value << 1, zero);
            } else {
                rank -= zeros;
                (value, range) = (value << 1 | 1, one);
            }
        }
        Some(value)
    }
}
