//! Queries on the levels alone: without `first`, the start of a value in the reordered sequence is found by going
//! down the levels.

use std::ops::Range;

use super::{Level, Wavelet, WaveletCore};
use crate::queries::BATCH;
use crate::storage::Words;

impl<L: Level> WaveletCore<L> {
    /// Whether `value` has no more bits than there are levels.
    fn fits(&self, value: u64) -> bool {
        self.width() >= 64 || value >> self.width() == 0
    }

    fn map_down(&self, index: u64) -> Option<(u64, u64)> {
        if index >= self.len() {
            return None;
        }
        let down = |(position, value): (u64, u64), level: &L| {
            let (bit, rank) = level.bit_and_rank(position);
            let next = if bit { level.count_zeros().wrapping_add(rank) } else { position.wrapping_sub(rank) };
            (next, value << 1 | u64::from(bit))
        };
        Some(self.levels.iter().fold((index, 0), down))
    }

    /// Where the values equal to `value` before `index` end in the reordered sequence.
    fn map_down_with(&self, index: u64, value: u64) -> u64 {
        let levels = self.levels.iter().zip((0..self.width()).rev());
        levels.fold(index.min(self.len()), |position, (level, bit)| {
            let rank = level.rank(position);
            if value >> bit & 1 == 1 {
                level.count_zeros().wrapping_add(rank)
            } else {
                position.wrapping_sub(rank)
            }
        })
    }

    /// The value at `index`, or `None` past the end.
    ///
    /// ```
    /// use pentaglot_succinct::WaveletCore;
    /// let core = WaveletCore::from_values(&[3, 1, 4, 1, 5]);
    /// assert_eq!(core.access(2), Some(4));
    /// assert_eq!(core.rank(4, 1), 2);
    /// assert_eq!(core.select(1, 1), Some(3));
    /// assert_eq!(core.select(2, 1), None);
    /// ```
    pub fn access(&self, index: u64) -> Option<u64> {
        self.map_down(index).map(|(_, value)| value)
    }

    /// How often `value` occurs before `index`; all occurrences past the end.
    pub fn rank(&self, index: u64, value: u64) -> u64 {
        if !self.fits(value) {
            return 0;
        }
        self.map_down_with(index, value).saturating_sub(self.map_down_with(0, value))
    }

    /// How often `value` occurs.
    pub fn count(&self, value: u64) -> u64 {
        self.rank(self.len(), value)
    }

    /// The position of the occurrence of `value` that has `rank` before it.
    pub fn select(&self, rank: u64, value: u64) -> Option<u64> {
        if !self.fits(value) {
            return None;
        }
        let start = self.map_down_with(0, value);
        let position = start.checked_add(rank).filter(|at| *at < self.map_down_with(self.len(), value))?;
        let mut levels = self.levels.iter().rev().enumerate();
        levels.try_fold(position, |position, (bit, level)| match value >> bit & 1 {
            1 => level.select(position.checked_sub(level.count_zeros())?),
            _ => level.select0(position),
        })
    }

    /// The value at `index`, and how often it occurs before: (rank, value).
    pub fn inverse_select(&self, index: u64) -> Option<(u64, u64)> {
        let (position, value) = self.map_down(index)?;
        Some((position.saturating_sub(self.map_down_with(0, value)), value))
    }

    /// Rank and position of the last occurrence of `value` at or before `index`.
    pub fn predecessor(&self, index: u64, value: u64) -> Option<(u64, u64)> {
        let rank = self.rank(index.saturating_add(1), value).checked_sub(1)?;
        Some((rank, self.select(rank, value)?))
    }

    /// Rank and position of the first occurrence of `value` at or after `index`.
    pub fn successor(&self, index: u64, value: u64) -> Option<(u64, u64)> {
        if index >= self.len() {
            return None;
        }
        let rank = self.rank(index, value);
        Some((rank, self.select(rank, value)?))
    }

    /// The positions of `value`, in order.
    pub fn positions_of(&self, value: u64) -> impl Iterator<Item = u64> + '_ {
        (0..self.count(value)).map_while(move |rank| self.select(rank, value))
    }

    /// How many of the values at `positions` lie in `values`; both ranges may extend past the end.
    pub fn range_count(&self, positions: Range<u64>, values: Range<u64>) -> u64 {
        let positions = self.clamp(positions);
        if values.start >= values.end || positions.start >= positions.end {
            return 0;
        }
        let below = |limit| self.count_below(positions.clone(), limit);
        below(values.end).saturating_sub(below(values.start))
    }

    /// How often `value` occurs at `positions`, which may reach past the end.
    pub fn range_rank(&self, positions: Range<u64>, value: u64) -> u64 {
        let positions = self.clamp(positions);
        self.rank(positions.end, value).saturating_sub(self.rank(positions.start, value))
    }

    /// The value of rank `rank` (from 0) among the values at `positions`, sorted; `None` if there are fewer.
    pub fn quantile(&self, positions: Range<u64>, mut rank: u64) -> Option<u64> {
        let mut range = self.clamp(positions);
        if rank >= range.end - range.start {
            return None;
        }
        let mut value = 0;
        for level in &self.levels {
            let (zero, one) = split(level, &range);
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

    fn clamp(&self, range: Range<u64>) -> Range<u64> {
        let end = range.end.min(self.len());
        range.start.min(end)..end
    }

    /// How many values at `positions` are below `limit`.
    fn count_below(&self, positions: Range<u64>, limit: u64) -> u64 {
        if !self.fits(limit) {
            return positions.end - positions.start;
        }
        let (mut range, mut count) = (positions, 0_u64);
        for (level, bit) in self.levels.iter().zip((0..self.width()).rev()) {
            let (zero, one) = split(level, &range);
            if limit >> bit & 1 == 1 {
                count = count.wrapping_add(zero.end.saturating_sub(zero.start));
                range = one;
            } else {
                range = zero;
            }
        }
        count
    }
}

/// Where a range of positions continues on the next level, by the bit.
fn split(level: &impl Level, range: &Range<u64>) -> (Range<u64>, Range<u64>) {
    let (len, zeros) = (level.len(), level.count_zeros());
    let (before, until) = (level.rank(range.start), level.rank(range.end));
    let zero = range.start.min(len).wrapping_sub(before)..range.end.min(len).wrapping_sub(until);
    (zero, zeros.wrapping_add(before)..zeros.wrapping_add(until))
}

impl<L: Level, W: Words> Wavelet<L, W> {
    /// How often `value` occurs.
    pub fn count(&self, value: u64) -> u64 {
        self.rank(self.len(), value)
    }

    /// The positions of `value`, in order, found 32 at a time.
    ///
    /// ```
    /// use pentaglot_succinct::WaveletMatrix;
    /// let text = WaveletMatrix::from_values(&[3, 1, 4, 1, 5, 1]).unwrap();
    /// assert_eq!(text.positions_of(1).collect::<Vec<_>>(), [1, 3, 5]);
    /// assert_eq!(text.positions_of(9).next(), None);
    /// ```
    pub fn positions_of(&self, value: u64) -> impl Iterator<Item = u64> + '_ {
        let count = self.count(value);
        let (mut next, mut used, mut filled) = (0_u64, 0, 0);
        let mut positions = [None; BATCH];
        std::iter::from_fn(move || {
            if used == filled {
                (used, filled) = (0, (count - next).min(BATCH as u64) as usize);
                let queries: [(u64, u64); BATCH] =
                    std::array::from_fn(|place| (next.wrapping_add(place as u64), value));
                self.select_many(&queries[..filled], &mut positions);
                next += filled as u64;
            }
            let position = if used < filled { positions[used] } else { None };
            used += usize::from(used < filled);
            position
        })
    }

    /// How many of the values at `positions` lie in `values`; both ranges may extend past the end.
    pub fn range_count(&self, positions: Range<u64>, values: Range<u64>) -> u64 {
        self.core.range_count(positions, values)
    }

    /// How often `value` occurs at `positions`, which may reach past the end.
    pub fn range_rank(&self, positions: Range<u64>, value: u64) -> u64 {
        let end = positions.end.min(self.len());
        self.rank(end, value).saturating_sub(self.rank(positions.start.min(end), value))
    }

    /// The value of rank `rank` (from 0) among the values at `positions`, sorted; `None` if there are fewer.
    pub fn quantile(&self, positions: Range<u64>, rank: u64) -> Option<u64> {
        self.core.quantile(positions, rank)
    }
}
