//! The queries of a sparse vector.

use super::{SparseValues, SparseVector};
use crate::bits::{low_mask, scan_backward, scan_forward};
use crate::cpu::prefetch;
use crate::queries::{BATCH, BitQueries};
use crate::storage::Words;

/// Values of one bucket are searched one by one up to this many.
const FEW: u64 = 8;
/// Neighbouring buckets are looked for in this many words.
const NEARBY: usize = 8;

/// The values whose high part is `high`: ranks `start..end`, at the bits from `position` on.
struct Bucket {
    high: u64,
    position: u64,
    start: u64,
    end: u64,
}

impl<W: Words> SparseVector<W> {
    #[inline(always)]
    fn combine(&self, high: u64, rank: u64) -> u64 {
        high.checked_shl(self.low.width()).unwrap_or(0) | self.low.read(rank)
    }

    /// The bucket of `value`, which must be below the universe.
    #[inline(always)]
    fn bucket(&self, value: u64) -> Option<Bucket> {
        let high = value.checked_shr(self.low.width()).unwrap_or(0);
        let position = if high == 0 { 0 } else { self.high.select0(high - 1)? + 1 };
        self.bucket_at(high, position)
    }

    /// The bucket `high` that starts at bit `position`.
    #[inline(always)]
    fn bucket_at(&self, high: u64, position: u64) -> Option<Bucket> {
        let words = self.high.bits().words();
        let start = position.wrapping_sub(high);
        let zero = match scan_forward(words, position, false, NEARBY) {
            Some(zero) => zero,
            None => self.high.select0(high)?,
        };
        Some(Bucket { high, position, start, end: start.wrapping_add(zero.wrapping_sub(position)) })
    }

    /// The first rank in the bucket whose low part is not below `low`.
    #[inline(always)]
    fn lower_bound(&self, bucket: &Bucket, low: u64) -> u64 {
        let (mut start, mut end) = (bucket.start, bucket.end.max(bucket.start));
        while end - start > FEW {
            let middle = start + (end - start) / 2;
            if self.low.read(middle) < low { start = middle + 1 } else { end = middle }
        }
        while start < end && self.low.read(start) < low {
            start += 1;
        }
        start
    }

    /// The first rank in the bucket whose low part is above `low`.
    #[inline(always)]
    fn upper_bound(&self, bucket: &Bucket, low: u64) -> u64 {
        low.checked_add(1).map_or(bucket.end, |next| self.lower_bound(bucket, next))
    }

    #[inline(always)]
    fn low_of(&self, value: u64) -> u64 {
        value & low_mask(self.low.width())
    }

    #[inline(always)]
    fn rank_in(&self, bucket: &Bucket, value: u64) -> u64 {
        self.lower_bound(bucket, self.low_of(value)).min(self.count_ones())
    }

    /// The value of rank `rank - 1`, given that it is the last at or below the bucket's `value`.
    #[inline(always)]
    fn predecessor_in(&self, bucket: &Bucket, value: u64) -> Option<(u64, u64)> {
        let after = self.upper_bound(bucket, self.low_of(value));
        let rank = after.checked_sub(1)?;
        if after > bucket.start {
            return Some((rank, self.combine(bucket.high, rank)));
        }
        let nearby = scan_backward(self.high.bits().words(), bucket.position.checked_sub(1)?, true, NEARBY);
        match nearby {
            Some(bit) => Some((rank, self.combine(bit.wrapping_sub(rank), rank))),
            None => Some((rank, self.select(rank)?)),
        }
    }

    #[inline(always)]
    fn successor_in(&self, bucket: &Bucket, value: u64) -> Option<(u64, u64)> {
        let rank = self.lower_bound(bucket, self.low_of(value));
        if rank < bucket.end {
            return Some((rank, self.combine(bucket.high, rank)));
        }
        if rank >= self.count_ones() {
            return None;
        }
        let zero = bucket.position.wrapping_add(bucket.end.wrapping_sub(bucket.start));
        match scan_forward(self.high.bits().words(), zero, true, NEARBY) {
            Some(bit) => Some((rank, self.combine(bit.wrapping_sub(rank), rank))),
            None => Some((rank, self.select(rank)?)),
        }
    }

    fn last(&self) -> Option<(u64, u64)> {
        let rank = self.count_ones().checked_sub(1)?;
        Some((rank, self.select(rank)?))
    }

    /// Finds the buckets of up to [`BATCH`] values with prefetching, then answers each.
    fn by_bucket<T: Copy>(
        &self,
        values: &[u64],
        answers: &mut [T],
        past_end: impl Fn() -> T,
        nothing: T,
        answer: impl Fn(&Bucket, u64) -> T,
    ) {
        let answers = &mut answers[..values.len()];
        let (mut highs, mut zeros) = ([0; BATCH], [None; BATCH]);
        let words = self.high.bits().words();
        for (values, answers) in values.chunks(BATCH).zip(answers.chunks_mut(BATCH)) {
            for (high, value) in highs.iter_mut().zip(values) {
                *high = value.checked_shr(self.low.width()).unwrap_or(0).wrapping_sub(1);
            }
            self.high.select0_many(&highs[..values.len()], &mut zeros);
            for (&zero, &high) in zeros.iter().zip(&highs).take(values.len()) {
                let position = zero.map_or(0, |zero: u64| zero + 1);
                prefetch(words, (position / 64) as usize);
                self.low.prefetch(position.wrapping_sub(high.wrapping_add(1)));
            }
            for (((place, &value), &zero), &high) in answers.iter_mut().zip(values).zip(&zeros).zip(&highs) {
                let high = high.wrapping_add(1);
                *place = if value >= self.universe {
                    past_end()
                } else {
                    let position = if high == 0 { Some(0) } else { zero.map(|zero| zero + 1) };
                    let bucket = position.and_then(|position| self.bucket_at(high, position));
                    bucket.map_or(nothing, |bucket| answer(&bucket, value))
                };
            }
        }
    }

    /// Zeros before the first value of bucket `bucket`, whose ones before it are `ones`.
    fn zeros_before_bucket(&self, bucket: u64, ones: u64) -> u128 {
        (u128::from(bucket) << self.low.width()).saturating_sub(u128::from(ones))
    }

    /// Select0 on a set: a search over the inventory of buckets, then over the buckets of one group, then over
    /// the values of one bucket.
    fn select0_of_set(&self, rank: u64) -> Option<u64> {
        let inventory = self.high.inventory::<false>();
        // Zero z of `high` at bit p ends bucket z: bucket z + 1 has p - z values before it.
        let (mut low, mut high) = (0, inventory.group_count());
        let fits = |zero: u64, position: u64| {
            self.zeros_before_bucket(zero + 1, position.wrapping_sub(zero)) <= u128::from(rank)
        };
        while low < high {
            let middle = low + (high - low) / 2;
            match self.high.first_zero_of_group(middle) {
                Some((zero, position)) if fits(zero, position) => low = middle + 1,
                _ => high = middle,
            }
        }
        let (mut first, mut position) = (0, 0);
        let mut limit = self.high.first_zero_of_group(low).map_or(inventory.count(), |(zero, _)| zero + 1);
        if let Some((zero, at)) = low.checked_sub(1).and_then(|group| self.high.first_zero_of_group(group)) {
            (first, position) = (zero + 1, at + 1);
        }
        // The last bucket in `first..limit` with at most `rank` zeros before it.
        limit = limit.max(first + 1);
        while first + 1 < limit {
            let middle = first + (limit - first) / 2;
            match self.high.select0(middle - 1) {
                Some(at) if fits(middle - 1, at) => (first, position) = (middle, at + 1),
                _ => limit = middle,
            }
        }
        let bucket = self.bucket_at(first, position)?;
        // The first value of the bucket with more than `rank` zeros before it.
        let (mut low, mut high) = (bucket.start, bucket.end.max(bucket.start));
        while low < high {
            let middle = low + (high - low) / 2;
            if self.combine(bucket.high, middle).wrapping_sub(middle) <= rank {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        rank.checked_add(low).filter(|&position| position < self.universe)
    }

    /// The values in order; with their ranks by `enumerate`.
    pub fn iter(&self) -> SparseValues<'_, W> {
        self.iter_from(0)
    }

    /// The values from rank `rank` on.
    pub fn iter_from(&self, rank: u64) -> SparseValues<'_, W> {
        SparseValues::new(self, rank)
    }

    /// The values that are not below `value`.
    pub fn ones_from(&self, value: u64) -> SparseValues<'_, W> {
        self.iter_from(self.rank(value))
    }
}

impl<W: Words> BitQueries for SparseVector<W> {
    #[inline]
    fn len(&self) -> u64 {
        self.universe
    }

    #[inline]
    fn count_ones(&self) -> u64 {
        self.low.len()
    }

    fn get(&self, index: u64) -> Option<bool> {
        if index >= self.universe {
            return None;
        }
        let found = self.bucket(index).is_some_and(|bucket| {
            let rank = self.lower_bound(&bucket, self.low_of(index));
            rank < bucket.end && self.low.read(rank) == self.low_of(index)
        });
        Some(found)
    }

    #[inline]
    fn rank(&self, index: u64) -> u64 {
        if index >= self.universe {
            return self.count_ones();
        }
        self.bucket(index).map_or(0, |bucket| self.rank_in(&bucket, index))
    }

    fn rank0(&self, index: u64) -> Option<u64> {
        if self.is_multiset() {
            return None;
        }
        Some(index.min(self.universe).wrapping_sub(self.rank(index)))
    }

    #[inline]
    fn select(&self, rank: u64) -> Option<u64> {
        if rank >= self.low.len() {
            return None;
        }
        let position = self.high.select(rank)?;
        Some(self.combine(position.wrapping_sub(rank), rank))
    }

    fn select0(&self, rank: u64) -> Option<u64> {
        if rank >= self.count_zeros() || self.is_multiset() {
            return None;
        }
        self.select0_of_set(rank)
    }

    fn inverse_select(&self, index: u64) -> Option<(u64, bool)> {
        if index >= self.universe || self.is_multiset() {
            return None;
        }
        let bucket = self.bucket(index)?;
        let rank = self.lower_bound(&bucket, self.low_of(index));
        let bit = rank < bucket.end && self.low.read(rank) == self.low_of(index);
        Some((if bit { rank } else { index.wrapping_sub(rank) }, bit))
    }

    #[inline]
    fn predecessor(&self, index: u64) -> Option<u64> {
        self.predecessor_ranked(index).map(|(_, value)| value)
    }

    #[inline]
    fn successor(&self, index: u64) -> Option<u64> {
        self.successor_ranked(index).map(|(_, value)| value)
    }

    #[inline]
    fn predecessor_ranked(&self, index: u64) -> Option<(u64, u64)> {
        if index >= self.universe {
            return self.last();
        }
        self.bucket(index).and_then(|bucket| self.predecessor_in(&bucket, index))
    }

    #[inline]
    fn successor_ranked(&self, index: u64) -> Option<(u64, u64)> {
        if index >= self.universe {
            return None;
        }
        self.bucket(index).and_then(|bucket| self.successor_in(&bucket, index))
    }

    fn rank_many(&self, indexes: &[u64], answers: &mut [u64]) {
        let all = self.count_ones();
        self.by_bucket(indexes, answers, || all, 0, |bucket, value| self.rank_in(bucket, value));
    }

    fn select_many(&self, ranks: &[u64], answers: &mut [Option<u64>]) {
        let answers = &mut answers[..ranks.len()];
        for (ranks, answers) in ranks.chunks(BATCH).zip(answers.chunks_mut(BATCH)) {
            ranks.iter().for_each(|&rank| self.low.prefetch(rank));
            self.high.select_many(ranks, answers);
            for (answer, &rank) in answers.iter_mut().zip(ranks) {
                let position = answer.filter(|_| rank < self.low.len());
                *answer = position.map(|position| self.combine(position.wrapping_sub(rank), rank));
            }
        }
    }

    fn predecessor_many(&self, indexes: &[u64], answers: &mut [Option<u64>]) {
        let last = || self.last().map(|(_, value)| value);
        self.by_bucket(indexes, answers, last, None, |bucket, value| {
            self.predecessor_in(bucket, value).map(|(_, value)| value)
        });
    }

    fn successor_many(&self, indexes: &[u64], answers: &mut [Option<u64>]) {
        self.by_bucket(
            indexes,
            answers,
            || None,
            None,
            |bucket, value| self.successor_in(bucket, value).map(|(_, value)| value),
        );
    }
}
