//! The queries of a sparse vector.

use std::sync::atomic::Ordering;

use super::{PATIENCE, SparseRuns, SparseValues, SparseVector};
use crate::bits::{low_mask, scan_backward, scan_forward};
use crate::cpu::fast;
use crate::queries::{BATCH, BitQueries, Zeros};
use crate::storage::Words;

/// Values of one bucket are searched one by one up to this many.
const FEW: u64 = 8;
/// Adjacent buckets are searched for in this many words.
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

    /// Whether to build an index of buckets: the file has no support, or there were many queries.
    fn should_build_index(&self) -> bool {
        self.high.stored_supports()[2].is_none()
            || self.index.patience.fetch_add(1, Ordering::Relaxed) >= PATIENCE
    }

    /// The start of the bucket `high` in the high part, for any processor and data.
    fn bucket_start(&self, high: u64) -> Option<u64> {
        if high == 0 {
            return Some(0);
        }
        if self.index.buckets.get().is_none() && self.should_build_index() {
            self.build_buckets();
        }
        let buckets = fast().zip(self.index.buckets.get());
        let found = buckets.and_then(|(isa, buckets)| {
            buckets.find(isa, self.high.bits().words(), self.low.bits().words(), high)
        });
        found
            .map(|found| found.from.wrapping_add(found.start))
            .or_else(|| Some(self.high.select0(high - 1)? + 1))
    }

    /// The bucket of `value`, which must be below the universe.
    fn bucket(&self, value: u64) -> Option<Bucket> {
        let high = value.checked_shr(self.low.width()).unwrap_or(0);
        self.bucket_at(high, self.bucket_start(high)?)
    }

    /// The bucket `high` that starts at bit `position`.
    fn bucket_at(&self, high: u64, position: u64) -> Option<Bucket> {
        let words = self.high.bits().words();
        let start = position.wrapping_sub(high);
        let zero = match scan_forward(words, position, false, NEARBY) {
            Some(zero) => zero,
            None => self.bucket_start(high + 1)? - 1,
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

    /// Answers queries one by one, after the lines of [`BATCH`] of them were prefetched.
    fn by_bucket<T>(&self, values: &[u64], answers: &mut [T], answer: impl Fn(u64) -> T) {
        let (answers, words) = (&mut answers[..values.len()], self.high.bits().words());
        if values.len() >= BATCH {
            self.build_buckets();
        }
        let bucket_of = |value: &u64| value.checked_shr(self.low.width()).unwrap_or(0);
        for (values, answers) in values.chunks(BATCH).zip(answers.chunks_mut(BATCH)) {
            if let (Some(isa), Some(buckets)) = (fast(), self.index.buckets.get()) {
                values.iter().map(bucket_of).for_each(|bucket| buckets.prefetch(bucket));
                values.iter().map(bucket_of).for_each(|bucket| buckets.prefetch_words(isa, words, bucket));
                let low = self.low.bits().words();
                values.iter().map(bucket_of).for_each(|bucket| buckets.prefetch_low(isa, low, bucket));
            }
            for (place, &value) in answers.iter_mut().zip(values) {
                *place = answer(value);
            }
        }
    }

    #[inline(never)]
    fn rank_slowly(&self, value: u64) -> u64 {
        let bucket = self.bucket(value);
        bucket.map_or(0, |bucket| self.lower_bound(&bucket, self.low_of(value)).min(self.count_ones()))
    }

    #[inline(never)]
    fn predecessor_slowly(&self, value: u64) -> Option<(u64, u64)> {
        self.bucket(value).and_then(|bucket| self.predecessor_in(&bucket, value))
    }

    #[inline(never)]
    fn predecessor_plainly(&self, value: u64) -> Option<u64> {
        self.predecessor_ranked(value).map(|(_, value)| value)
    }

    #[inline(never)]
    fn successor_plainly(&self, value: u64) -> Option<u64> {
        self.successor_ranked(value).map(|(_, value)| value)
    }

    #[inline(never)]
    fn successor_slowly(&self, value: u64) -> Option<(u64, u64)> {
        self.bucket(value).and_then(|bucket| self.successor_in(&bucket, value))
    }

    /// Whether there are at most `rank` zeros before a bucket that has `values` values before it.
    fn has_at_most(&self, rank: u64, bucket: u64, values: u64) -> bool {
        let zeros = (u128::from(bucket) << self.low.width()).saturating_sub(u128::from(values));
        zeros <= u128::from(rank)
    }

    /// The first bucket of a record and the values before it.
    fn record(&self, record: u64) -> Option<(u64, u64)> {
        self.build_buckets().record(record, |bucket| self.bucket_start(bucket))
    }

    /// One step of the search for the first record in `low..high` with more than `rank` zeros before it.
    fn narrow(&self, rank: u64, (low, high): (u64, u64)) -> (u64, u64) {
        let middle = low.midpoint(high);
        match self.record(middle) {
            Some((bucket, values)) if self.has_at_most(rank, bucket, values) => (middle + 1, high),
            _ => (low, middle),
        }
    }

    /// Select0 on a set, once the first record with more than `rank` zeros before it is found: a search over the buckets
    /// before that, then over the values of one bucket.
    fn select0_before(&self, record: u64, rank: u64) -> Option<u64> {
        let bucket_of = |record| self.record(record).map(|(bucket, _)| bucket);
        let mut first = record.checked_sub(1).and_then(bucket_of).unwrap_or(0);
        let mut limit = bucket_of(record).unwrap_or_else(|| self.high.count_zeros()).max(first + 1);
        // The last bucket in `first..limit` with at most `rank` zeros before it.
        while first + 1 < limit {
            let middle = first + (limit - first) / 2;
            match self.bucket_start(middle) {
                Some(start) if self.has_at_most(rank, middle, start.wrapping_sub(middle)) => first = middle,
                _ => limit = middle,
            }
        }
        let position = self.bucket_start(first)?;
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

    /// Maximal runs of consecutive values as (start, length), in order; equal values count once.
    pub fn runs(&self) -> SparseRuns<'_, W> {
        self.runs_from(0)
    }

    /// Maximal runs of consecutive values from `from` on; a run that holds `from` starts there.
    pub fn runs_from(&self, from: u64) -> SparseRuns<'_, W> {
        SparseRuns::new(self.ones_from(from))
    }

    /// Positions that are not values, in order.
    pub fn zeros(&self) -> Zeros<SparseRuns<'_, W>> {
        self.zeros_from(0)
    }

    /// Positions that are not values, at or after `from`, in order.
    pub fn zeros_from(&self, from: u64) -> Zeros<SparseRuns<'_, W>> {
        Zeros::new(self.runs_from(from), from, self.universe)
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
        match self.rank_fast(index) {
            Some(rank) => rank,
            None => self.rank_slowly(index),
        }
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
        let bit = self.high.select(rank)?;
        Some(self.combine(bit.wrapping_sub(rank), rank))
    }

    fn select0(&self, rank: u64) -> Option<u64> {
        if rank >= self.count_zeros() || self.is_multiset() {
            return None;
        }
        let mut range = (0, self.build_buckets().record_count());
        while range.0 < range.1 {
            range = self.narrow(rank, range);
        }
        self.select0_before(range.0, rank)
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
        match self.predecessor_fast(index) {
            Some((_, value)) if index < self.universe => Some(value),
            _ => self.predecessor_plainly(index),
        }
    }

    #[inline]
    fn successor(&self, index: u64) -> Option<u64> {
        match self.successor_fast(index) {
            Some((_, value)) if index < self.universe => Some(value),
            _ => self.successor_plainly(index),
        }
    }

    #[inline]
    fn predecessor_ranked(&self, index: u64) -> Option<(u64, u64)> {
        if index >= self.universe {
            return self.last();
        }
        match self.predecessor_fast(index) {
            Some(found) => Some(found),
            None => self.predecessor_slowly(index),
        }
    }

    #[inline]
    fn successor_ranked(&self, index: u64) -> Option<(u64, u64)> {
        if index >= self.universe {
            return None;
        }
        match self.successor_fast(index) {
            Some(found) => Some(found),
            None => self.successor_slowly(index),
        }
    }

    fn get_many(&self, indexes: &[u64], answers: &mut [Option<bool>]) {
        self.by_bucket(indexes, answers, |index| self.get(index));
    }

    fn rank_many(&self, indexes: &[u64], answers: &mut [u64]) {
        self.by_bucket(indexes, answers, |index| self.rank(index));
    }

    fn rank0_many(&self, indexes: &[u64], answers: &mut [Option<u64>]) {
        self.by_bucket(indexes, answers, |index| self.rank0(index));
    }

    fn inverse_select_many(&self, indexes: &[u64], answers: &mut [Option<(u64, bool)>]) {
        self.by_bucket(indexes, answers, |index| self.inverse_select(index));
    }

    fn select_many(&self, ranks: &[u64], answers: &mut [Option<u64>]) {
        let (answers, mut bits) = (&mut answers[..ranks.len()], [None; BATCH]);
        for (ranks, answers) in ranks.chunks(BATCH).zip(answers.chunks_mut(BATCH)) {
            ranks.iter().for_each(|&rank| self.low.prefetch(rank));
            self.high.select_many(ranks, &mut bits);
            for ((answer, &rank), bit) in answers.iter_mut().zip(ranks).zip(bits) {
                let bit = bit.filter(|_| rank < self.low.len());
                *answer = bit.map(|bit| self.combine(bit.wrapping_sub(rank), rank));
            }
        }
    }

    fn select0_many(&self, ranks: &[u64], answers: &mut [Option<u64>]) {
        let answers = &mut answers[..ranks.len()];
        if self.is_multiset() {
            return answers.fill(None);
        }
        let buckets = self.build_buckets();
        for (ranks, answers) in ranks.chunks(BATCH).zip(answers.chunks_mut(BATCH)) {
            let mut ranges = [(0, buckets.record_count()); BATCH];
            let ranges = &mut ranges[..ranks.len()];
            // All searches advance together: each prefetches its next record before the first of them needs
            // one.
            while ranges.iter().any(|range| range.0 < range.1) {
                ranges.iter().for_each(|range| buckets.prefetch_record(range.0.midpoint(range.1)));
                for (range, &rank) in ranges.iter_mut().zip(ranks).filter(|(range, _)| range.0 < range.1) {
                    *range = self.narrow(rank, *range);
                }
            }
            for ((answer, &rank), range) in answers.iter_mut().zip(ranks).zip(&*ranges) {
                let known = rank < self.count_zeros();
                *answer = if known { self.select0_before(range.0, rank) } else { None };
            }
        }
    }

    fn predecessor_many(&self, indexes: &[u64], answers: &mut [Option<u64>]) {
        self.by_bucket(indexes, answers, |index| self.predecessor(index));
    }

    fn successor_many(&self, indexes: &[u64], answers: &mut [Option<u64>]) {
        self.by_bucket(indexes, answers, |index| self.successor(index));
    }
}
