//! Queries by position and value, one at a time and batched.

use std::hint::select_unpredictable;

use super::{Level, Wavelet};
use crate::queries::BATCH;
use crate::storage::Words;

/// Levels up to this many bits are taken to be in a cache near the processor.
const CACHED: u64 = 1 << 22;

impl<L: Level, W: Words> Wavelet<L, W> {
    /// The value at `index`, or `None` past the end.
    #[inline]
    pub fn access(&self, index: u64) -> Option<u64> {
        self.map_down(index).map(|(_, value)| value)
    }

    /// Where `index` ends up in the reordered sequence, and its value.
    #[inline]
    pub fn map_down(&self, index: u64) -> Option<(u64, u64)> {
        if index >= self.len() {
            return None;
        }
        Some(if self.len() > CACHED { self.follow::<true>(index) } else { self.follow::<false>(index) })
    }

    /// Goes down by the bits on the way, each as good as random.
    ///
    /// A wrong guess costs more than waiting for the bit if that is in a cache. If it has to come from memory, guessing is
    /// better: every other time the next level's lines are under way long before the bit is known.
    #[inline(always)]
    fn follow<const GUESS: bool>(&self, index: u64) -> (u64, u64) {
        let (mut position, mut value) = (index, 0);
        for level in &self.core.levels {
            let (bit, rank) = level.bit_and_rank(position);
            value = value << 1 | u64::from(bit);
            position = if !GUESS {
                select_unpredictable(bit, level.count_zeros().wrapping_add(rank), position.wrapping_sub(rank))
            } else if bit {
                level.count_zeros().wrapping_add(rank)
            } else {
                position.wrapping_sub(rank)
            };
        }
        (position, value)
    }

    /// Where the values equal to `value` before `index` end in the reordered sequence.
    #[inline]
    fn map_down_with(&self, index: u64, value: u64) -> u64 {
        let mut position = index.min(self.len());
        for (level, bit) in self.core.levels.iter().zip((0..self.width()).rev()) {
            let rank = level.rank(position);
            let if_set = level.count_zeros().wrapping_add(rank);
            let if_not = position.min(level.len()).wrapping_sub(rank);
            position = select_unpredictable(value >> bit & 1 == 1, if_set, if_not);
        }
        position
    }

    /// Where `value` starts in the reordered sequence; `None` if it does not occur.
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
        // A position in the wrong half of some level belongs to another value.
        for (level, bit) in self.core.levels.iter().rev().zip(0..) {
            let zeros = level.count_zeros();
            position = if value >> bit & 1 == 1 {
                level.select(position.checked_sub(zeros)?)?
            } else {
                level.select0(position)?
            };
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
    /// If there are fewer places for answers than questions, as do the other batched forms.
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
        for (depth, level) in self.core.levels.iter().enumerate() {
            level.descend(positions, values, self.core.levels.get(depth + 1));
        }
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
                (*position, *value) = query;
                self.first.prefetch(*value);
            }
            let (positions, values) = (&mut positions[..queries.len()], &values[..queries.len()]);
            for (depth, level) in self.core.levels.iter().enumerate() {
                let bit = self.width() - 1 - depth as u32;
                level.descend_with(positions, values, bit, self.core.levels.get(depth + 1));
            }
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
                // Split into two batches by the bit; those without an answer ask for what is not there.
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
}
