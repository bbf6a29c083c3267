//! Quantiles of many values in bounded memory: exact up to [`EXACT`] values, then with a rank error of at most 1 %.
//!
//! Past the bound, values pass through a chain of buffers of [`BUFFER`] values. A full buffer is sorted, and every
//! second value is moved to the next buffer, where each value has twice the weight. Halving a buffer of weight `w`
//! changes the rank of any value by at most `w`. Buffer `h` is halved at most `n / (BUFFER * 2^h)` times with
//! `w = 2^h`, so each buffer adds at most `n / BUFFER` to the error: 40 buffers, which take more than 2^51 values, stay
//! below 1 %.
//!
//! Past [`SAMPLED`] values, one of every `2^h` values in a row is taken, at a random place, and enters buffer `h`. `h` grows so
//! slowly that at least [`SAMPLED`] values are taken, so that the standard deviation of a rank is 0.14 % at the most.

use super::frequent::hash_word;

/// Up to this many values, all are kept.
pub(super) const EXACT: usize = 100_000;
/// Values of one buffer.
const BUFFER: usize = 4096;
/// Past this many values, not all are looked at.
const SAMPLED: u64 = 1 << 17;

/// Values as keys whose order is that of the values.
#[derive(Debug, Clone, Default)]
pub(super) struct Quantiles {
    /// `levels[h]`: values of weight `2^h`. While all values are kept there is one level, of any length.
    levels: Vec<Vec<u64>>,
    /// Which half the next halving of a level keeps; alternates.
    keep_odd: Vec<bool>,
    count: u64,
    is_halved: bool,
}

impl Quantiles {
    pub(super) fn extend(&mut self, keys: &[u64]) {
        if self.levels.is_empty() {
            self.add_level();
        }
        self.count += keys.len() as u64;
        if !self.is_halved {
            self.levels[0].extend_from_slice(keys);
            if self.levels[0].len() > EXACT {
                self.is_halved = true;
                let all = std::mem::take(&mut self.levels[0]);
                all.chunks(BUFFER).for_each(|chunk| self.fill(chunk));
            }
            return;
        }
        match self.count / SAMPLED {
            0 | 1 => self.fill(keys),
            times => self.fill_sampled(keys, times.ilog2() as usize),
        }
    }

    /// Takes one of every `2^level` values, and all of those that are left at the end.
    fn fill_sampled(&mut self, keys: &[u64], level: usize) {
        while self.levels.len() <= level {
            self.add_level();
        }
        let blocks = keys.chunks_exact(1 << level);
        let rest = blocks.remainder();
        for block in blocks {
            let place = hash_word(self.count ^ block[0]) as usize & (block.len() - 1);
            self.levels[level].push(block[place]);
            if self.levels[level].len() >= BUFFER {
                self.halve_full();
            }
        }
        self.fill(rest);
    }

    /// Adds the values of another sketch.
    pub(super) fn merge(&mut self, other: Self) {
        if !other.is_halved {
            other.levels.iter().for_each(|keys| self.extend(keys));
            return;
        }
        let own = std::mem::replace(self, other);
        match own.is_halved {
            false => own.levels.iter().for_each(|keys| self.extend(keys)),
            true => {
                self.count += own.count;
                for (level, keys) in own.levels.into_iter().enumerate() {
                    while self.levels.len() <= level {
                        self.add_level();
                    }
                    self.levels[level].extend(keys);
                }
                self.halve_full();
            }
        }
    }

    fn fill(&mut self, mut keys: &[u64]) {
        while !keys.is_empty() {
            let room = BUFFER.saturating_sub(self.levels[0].len()).min(keys.len());
            let (now, later) = keys.split_at(room);
            self.levels[0].extend_from_slice(now);
            keys = later;
            self.halve_full();
        }
    }

    fn halve_full(&mut self) {
        let mut level = 0;
        while level < self.levels.len() {
            if self.levels[level].len() >= BUFFER {
                if level + 1 == self.levels.len() {
                    self.add_level();
                }
                let mut keys = std::mem::take(&mut self.levels[level]);
                keys.sort_unstable();
                // A value left over stays in its level.
                let rest = if keys.len() % 2 == 1 { keys.pop() } else { None };
                let skip = usize::from(self.keep_odd[level]);
                self.keep_odd[level] = !self.keep_odd[level];
                self.levels[level + 1].extend(keys.iter().skip(skip).step_by(2));
                keys.clear();
                keys.extend(rest);
                self.levels[level] = keys;
            }
            level += 1;
        }
    }

    fn add_level(&mut self) {
        self.levels.push(Vec::new());
        self.keep_odd.push(false);
    }

    pub(super) fn bytes(&self) -> u64 {
        self.levels.iter().map(|keys| keys.capacity() as u64 * 8).sum()
    }

    /// The values in order, each with its weight.
    pub(super) fn sorted(&self) -> Sorted {
        let weighted = self.levels.iter().enumerate();
        let weighted = weighted.flat_map(|(level, keys)| keys.iter().map(move |key| (*key, 1u64 << level)));
        let mut items: Vec<(u64, u64)> = weighted.collect();
        items.sort_unstable();
        Sorted { items, is_exact: !self.is_halved }
    }
}

/// Values in order.
pub(super) struct Sorted {
    /// Key and how many values it represents.
    pub(super) items: Vec<(u64, u64)>,
    is_exact: bool,
}

impl Sorted {
    /// The neighbours of the quantile `q` and its relative position between them: `q * (n - 1)`, linear between values.
    /// `None` if there are no values.
    pub(super) fn at(&self, q: f64) -> Option<(u64, u64, f64)> {
        let last = self.items.len().checked_sub(1)?;
        if self.is_exact {
            let place = q * last as f64;
            let low = (place.floor() as usize).min(last);
            let high = (low + 1).min(last);
            return Some((self.items[low].0, self.items[high].0, place - low as f64));
        }
        let total: u64 = self.items.iter().map(|(_, weight)| weight).sum();
        let rank = (q * (total - 1) as f64).round() as u64;
        let mut before = 0;
        for (key, weight) in &self.items {
            before += weight;
            if before > rank {
                return Some((*key, *key, 0.0));
            }
        }
        let key = self.items[last].0;
        Some((key, key, 0.0))
    }
}
