//! Queries by position and value, one at a time and batched.

use std::hint::select_unpredictable;

use super::{Level, Wavelet};
use crate::queries::BATCH;
use crate::storage::Words;

/// Matrices of fewer bits are assumed to be in a cache.
const CACHED: u64 = 1 << 22;

/// The position on the next level of a position on this one, if its bit is not set and if it is; `rank` ones are
/// before it.
#[inline(always)]
fn children(level: &impl Level, position: u64, rank: u64) -> [u64; 2] {
    [position.wrapping_sub(rank), level.count_zeros().wrapping_add(rank)]
}

impl<L: Level, W: Words> Wavelet<L, W> {
    /// The value at `index`, or `None` past the end.
    #[inline]
    pub fn access(&self, index: u64) -> Option<u64> {
        self.map_down(index).map(|(_, value)| value)
    }

    /// Bits on all levels, if the levels give estimates.
    #[inline(always)]
    fn bits(&self) -> u64 {
        if L::FORESEES { self.len().saturating_mul(u64::from(self.width())) } else { 0 }
    }

    /// The position of `index` in the reordered sequence, and its value.
    #[inline]
    pub fn map_down(&self, index: u64) -> Option<(u64, u64)> {
        if index >= self.len() {
            return None;
        }
        Some(if self.bits() < CACHED { self.follow::<false>(index) } else { self.follow::<true>(index) })
    }

    /// Goes down the levels by the bits of the value, which are unpredictable.
    ///
    /// The position on each level depends on the level before. But estimates of it, for a set and for an unset bit, are
    /// known earlier: with `AHEAD`, both are prefetched meanwhile.
    #[inline(always)]
    fn follow<const AHEAD: bool>(&self, index: u64) -> (u64, u64) {
        let (mut position, mut value) = (index, 0);
        let levels = &self.core.levels;
        for (depth, level) in levels.iter().enumerate() {
            if AHEAD && let Some(next) = levels.get(depth + 1) {
                let below = children(level, position, level.rank_roughly(position));
                below.into_iter().for_each(|position| next.prefetch(position));
            }
            let (bit, rank) = level.bit_and_rank(position);
            value = value << 1 | u64::from(bit);
            let [if_not, if_set] = children(level, position, rank);
            position = select_unpredictable(bit, if_set, if_not);
        }
        (position, value)
    }

    /// Where the values equal to `value` before `index` end in the reordered sequence.
    #[inline]
    fn map_down_with(&self, index: u64, value: u64) -> u64 {
        let start = index.min(self.len());
        let levels = || self.core.levels.iter().zip((0..self.width()).rev());
        let down = |level: &L, bit: u32, position: u64, rank: u64| {
            let [if_not, if_set] = children(level, position, rank);
            select_unpredictable(value >> bit & 1 == 1, if_set, if_not)
        };
        if self.bits() >= CACHED {
            levels().fold(start, |position, (level, bit)| {
                level.prefetch(position);
                down(level, bit, position, level.rank_roughly(position))
            });
        }
        levels().fold(start, |position, (level, bit)| down(level, bit, position, level.rank(position)))
    }

    /// The start of `value` in the reordered sequence; `None` if it does not occur.
    #[inline]
    fn start(&self, value: u64) -> Option<u64> {
        self.first.get(value).filter(|&start| start < self.len())
    }

    /// Whether `value` occurs.
    pub fn contains(&self, value: u64) -> bool {
        self.start(value).is_some()
    }

    /// How often `value` occurs before `index`; all occurrences past the end.
    #[inline]
    pub fn rank(&self, index: u64, value: u64) -> u64 {
        self.start(value).map_or(0, |start| self.map_down_with(index, value).saturating_sub(start))
    }

    /// The position of the occurrence of `value` that has `rank` before it.
    pub fn select(&self, rank: u64, value: u64) -> Option<u64> {
        let mut position = self.start(value)?.checked_add(rank)?;
        let (levels, ahead) = (&self.core.levels, self.bits() >= CACHED);
        let is_set = |bit: usize| value >> bit & 1 == 1;
        // A position in the wrong half of some level belongs to another value: its rank is too large.
        let rank_of = |level: &L, bit: usize, position: u64| {
            position.wrapping_sub(if is_set(bit) { level.count_zeros() } else { 0 })
        };
        for (bit, level) in levels.iter().rev().enumerate() {
            let rank = rank_of(level, bit, position);
            if ahead && bit + 1 < levels.len() {
                let (above, next) =
                    (level.select_roughly(is_set(bit), rank), &levels[levels.len() - bit - 2]);
                next.select_roughly(is_set(bit + 1), rank_of(next, bit + 1, above));
            }
            position = if is_set(bit) { level.select(rank)? } else { level.select0(rank)? };
        }
        Some(position)
    }

    /// The value at `index`, and how often it occurs before: (rank, value).
    pub fn inverse_select(&self, index: u64) -> Option<(u64, u64)> {
        let (position, value) = self.map_down(index)?;
        Some((position.saturating_sub(self.first.get(value).unwrap_or(0)), value))
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

    /// [`access`](Self::access) for many indexes.
    ///
    /// # Panics
    ///
    /// If `answers` is shorter than the queries, as do the other batched forms.
    pub fn access_many(&self, indexes: &[u64], answers: &mut [Option<u64>]) {
        let answers = &mut answers[..indexes.len()];
        let (mut positions, mut values) = ([0; BATCH], [0; BATCH]);
        for (indexes, answers) in indexes.chunks(BATCH).zip(answers.chunks_mut(BATCH)) {
            self.descend(indexes, &mut positions, &mut values);
            for ((answer, &index), value) in answers.iter_mut().zip(indexes).zip(values) {
                *answer = (index < self.len()).then_some(value);
            }
        }
    }

    fn descend(&self, indexes: &[u64], positions: &mut [u64; BATCH], values: &mut [u64; BATCH]) {
        let (positions, values) = (&mut positions[..indexes.len()], &mut values[..indexes.len()]);
        positions.copy_from_slice(indexes);
        values.fill(0);
        L::descend(&self.core.levels, positions, values);
    }

    /// [`inverse_select`](Self::inverse_select) for many indexes.
    pub fn inverse_select_many(&self, indexes: &[u64], answers: &mut [Option<(u64, u64)>]) {
        let answers = &mut answers[..indexes.len()];
        let (mut positions, mut values) = ([0; BATCH], [0; BATCH]);
        for (indexes, answers) in indexes.chunks(BATCH).zip(answers.chunks_mut(BATCH)) {
            self.descend(indexes, &mut positions, &mut values);
            values[..indexes.len()].iter().for_each(|&value| self.first.prefetch(value));
            for (((answer, &index), value), position) in
                answers.iter_mut().zip(indexes).zip(values).zip(positions)
            {
                let rank = position.saturating_sub(self.first.get(value).unwrap_or(0));
                *answer = (index < self.len()).then_some((rank, value));
            }
        }
    }

    /// [`rank`](Self::rank) for many pairs of an index and a value.
    pub fn rank_many(&self, queries: &[(u64, u64)], answers: &mut [u64]) {
        let answers = &mut answers[..queries.len()];
        let (mut positions, mut values) = ([0; BATCH], [0; BATCH]);
        for (queries, answers) in queries.chunks(BATCH).zip(answers.chunks_mut(BATCH)) {
            for ((position, value), &query) in positions.iter_mut().zip(&mut values).zip(queries) {
                (*position, *value) = (query.0.min(self.len()), query.1);
                self.first.prefetch(*value);
            }
            let (positions, values) = (&mut positions[..queries.len()], &values[..queries.len()]);
            L::descend_with(&self.core.levels, positions, values);
            for ((answer, &position), &value) in answers.iter_mut().zip(&*positions).zip(values) {
                *answer = self.start(value).map_or(0, |start| position.saturating_sub(start));
            }
        }
    }

    /// [`select`](Self::select) for many pairs of a rank and a value.
    pub fn select_many(&self, queries: &[(u64, u64)], answers: &mut [Option<u64>]) {
        let answers = &mut answers[..queries.len()];
        let (mut ones, mut zeros) = ([0; BATCH], [0; BATCH]);
        let (mut from_ones, mut from_zeros) = ([None; BATCH], [None; BATCH]);
        for (queries, answers) in queries.chunks(BATCH).zip(answers.chunks_mut(BATCH)) {
            queries.iter().for_each(|&(_, value)| self.first.prefetch(value));
            for (answer, &(rank, value)) in answers.iter_mut().zip(queries) {
                *answer = self.start(value).and_then(|start| start.checked_add(rank));
            }
            for (level, bit) in self.core.levels.iter().rev().zip(0..) {
                // Split into two batches by the bit; queries without an answer have a rank that does not
                // exist.
                let (mut one_count, mut zero_count) = (0, 0);
                for (answer, &(_, value)) in answers.iter().zip(queries) {
                    if value >> bit & 1 == 1 {
                        let rank = answer.and_then(|position| position.checked_sub(level.count_zeros()));
                        ones[one_count] = rank.unwrap_or(u64::MAX);
                        one_count += 1;
                    } else {
                        zeros[zero_count] = answer.unwrap_or(u64::MAX);
                        zero_count += 1;
                    }
                }
                level.select_many(&ones[..one_count], &mut from_ones);
                level.select0_many(&zeros[..zero_count], &mut from_zeros);
                let (mut next_one, mut next_zero) = (from_ones.iter(), from_zeros.iter());
                for (answer, &(_, value)) in answers.iter_mut().zip(queries) {
                    let next = if value >> bit & 1 == 1 { next_one.next() } else { next_zero.next() };
                    *answer = next.copied().flatten();
                }
            }
        }
    }

    /// [`predecessor`](Self::predecessor) for many pairs of an index and a value.
    pub fn predecessor_many(&self, queries: &[(u64, u64)], answers: &mut [Option<(u64, u64)>]) {
        self.neighbours(queries, answers, |index| index.saturating_add(1), |rank| rank.checked_sub(1));
    }

    /// [`successor`](Self::successor) for many pairs of an index and a value.
    pub fn successor_many(&self, queries: &[(u64, u64)], answers: &mut [Option<(u64, u64)>]) {
        // Past the end there is none: no occurrence has that rank.
        self.neighbours(queries, answers, |index| index, Some);
    }

    /// Rank and position of an occurrence, whose rank `choose` computes from the rank at `before` of the
    /// index.
    fn neighbours(
        &self,
        queries: &[(u64, u64)],
        answers: &mut [Option<(u64, u64)>],
        before: impl Fn(u64) -> u64,
        choose: impl Fn(u64) -> Option<u64>,
    ) {
        let answers = &mut answers[..queries.len()];
        let (mut pairs, mut ranks, mut positions) = ([(0, 0); BATCH], [0; BATCH], [None; BATCH]);
        for (queries, answers) in queries.chunks(BATCH).zip(answers.chunks_mut(BATCH)) {
            let pairs = &mut pairs[..queries.len()];
            for (pair, &(index, value)) in pairs.iter_mut().zip(queries) {
                *pair = (before(index), value);
            }
            self.rank_many(pairs, &mut ranks);
            for (pair, rank) in pairs.iter_mut().zip(ranks) {
                // A rank that does not exist.
                pair.0 = choose(rank).unwrap_or(u64::MAX);
            }
            self.select_many(pairs, &mut positions);
            for ((answer, &(rank, _)), position) in answers.iter_mut().zip(&*pairs).zip(positions) {
                *answer = position.map(|position| (rank, position));
            }
        }
    }
}
