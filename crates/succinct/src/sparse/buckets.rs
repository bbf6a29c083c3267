//! Finds the start of buckets in the high part, and searches their values.

use std::io;

use crate::bits::{low_mask, read_window};
use crate::cpu::{Bmi2, Isa, prefetch};
use crate::cursor::WordCursor;
use crate::error::Error;
use crate::layout::WordSink;
use crate::storage::SharedWords;

/// The start of every 16th bucket.
///
/// A record of 64 bits is for 64 buckets: in the upper 40 bits the values before them, below in 8 bits each the values
/// before their second, third and fourth quarter. The zeros that end 15 buckets are in the 57 bits of one load, unless
/// values are clustered; then the high part's own select is used.
///
/// Space: one bit per bucket, 1 to 2 per value. Cache misses: 2 that depend on each other, the record and the high part.
#[derive(Debug, Clone)]
pub(super) struct Buckets {
    records: SharedWords,
    pub(super) lanes: Lanes,
}

/// A bucket: bits `start..end` of a window of the high part, which starts at its bit `from`.
pub(super) struct Found {
    pub(super) window: u64,
    pub(super) from: u64,
    pub(super) start: u64,
    pub(super) end: u64,
}

impl Found {
    /// `zeros` has the unset bits of the window, from the zero before the quarter on, `earlier` bits after `from`.
    #[inline(always)]
    fn new(isa: Bmi2, bucket: u64, window: u64, zeros: u64, from: u64, earlier: u64) -> Option<Self> {
        // The zero before the bucket, and the one that ends it.
        let both = isa.deposit(3 << (bucket % QUARTER), zeros);
        let end = both & both.wrapping_sub(1);
        if end == 0 {
            return None;
        }
        let start = earlier + u64::from(both.trailing_zeros()) + 1;
        Some(Found { window, from, start, end: earlier + u64::from(end.trailing_zeros()) })
    }

    /// A bucket of the first quarter: its window is the first word, after a virtual zero.
    #[cold]
    fn first(isa: Bmi2, word: u64, bucket: u64) -> Option<Self> {
        Found::new(isa, bucket, word << 1, !(word << 1), u64::MAX, 0)
    }
}

/// Buckets per record.
const RECORD: u64 = 64;
/// Buckets per quarter.
const QUARTER: u64 = 16;
/// The upper bits of a record that is not usable: more values than there can be.
const UNKNOWN: u64 = (1 << 40) - 1;
/// Low parts up to this width are read by one load.
const WINDOW: u32 = 57;

impl Buckets {
    /// For the `len` bits of a high part with `count` buckets, and low parts of `width` bits.
    pub(super) fn build<I: Isa>(isa: I, words: &[u64], len: u64, count: u64, width: u32) -> Self {
        let mut records = Vec::new();
        // The next bucket to record, and how many have ended.
        let (mut next, mut ended) = (0, 0);
        let (mut record, mut first) = (0, 0);
        let mut note = |bucket: u64, start: u64| {
            let values = start - bucket;
            let quarter = bucket % RECORD / QUARTER;
            if quarter == 0 {
                first = values;
                record = values.min(UNKNOWN) << 24;
            } else if values - first > 255 {
                record = UNKNOWN << 24;
            } else {
                record |= (values - first) << (8 * (quarter - 1));
            }
            match records.last_mut() {
                Some(last) if quarter != 0 => *last = record,
                _ => records.push(record),
            }
        };
        let needed = Self::records_for(count, width);
        if needed > 0 {
            note(0, 0);
            next += QUARTER;
        } else {
            next = u64::MAX;
        }
        for (index, &word) in words.iter().take(len.div_ceil(64) as usize).enumerate() {
            let at = index as u64 * 64;
            let zeros = !word & (u64::MAX >> (at + 64).saturating_sub(len));
            let here = isa.popcount(zeros);
            while next <= ended + here {
                note(next, at + isa.select_in_word(zeros, next - 1 - ended) + 1);
                next += QUARTER;
            }
            ended += here;
        }
        // A damaged file may have fewer zeros than it should, or more.
        records.resize(needed as usize, UNKNOWN << 24);
        Buckets { records: SharedWords::new(records), lanes: Lanes::new(width) }
    }

    /// The bits of bucket `bucket`, and some before and after.
    ///
    /// The plain version: from the zero before the quarter on, skip a zero for each bucket of the quarter; the next
    /// zero ends the bucket. For the first buckets of a quarter the window starts a byte earlier, so that it has some
    /// values before.
    #[inline(always)]
    pub(super) fn find(&self, isa: Bmi2, words: &[u64], low: &[u64], bucket: u64) -> Option<Found> {
        let zero = self.quarter(isa, bucket)?;
        // Their line is fetched while the high part's is waited for.
        self.prefetch_low_from(low, zero, bucket);
        let earlier = if bucket % QUARTER < 4 { 8 } else { 0 };
        let from = zero.wrapping_sub(earlier);
        if (from / 64) as usize + 1 >= words.len() {
            return if bucket < QUARTER { Found::first(isa, *words.first()?, bucket) } else { None };
        }
        // SAFETY: another word follows the one with the bit.
        let bytes = unsafe { read_window(words, from / 8 * 8) };
        let (window, zeros) = (isa.shift_right(bytes, from % 8), isa.shift_right(!bytes, from % 8 + earlier));
        Found::new(isa, bucket, window, zeros, from, earlier)
    }

    /// The zero before the quarter of `bucket`; the first quarter has none.
    #[inline(always)]
    fn quarter(&self, isa: Bmi2, bucket: u64) -> Option<u64> {
        let record = *self.records.as_ref().get((bucket / RECORD) as usize)?;
        let within = isa.shift_right(record << 8, bucket / QUARTER % 4 * 8) & 255;
        Some(((record >> 24) + within + bucket / QUARTER * QUARTER).wrapping_sub(1))
    }

    /// Prefetches the record of `bucket`.
    #[inline(always)]
    pub(super) fn prefetch(&self, bucket: u64) {
        self.prefetch_record(bucket / RECORD);
    }

    /// Prefetches record `record`.
    #[inline(always)]
    pub(super) fn prefetch_record(&self, record: u64) {
        prefetch(self.records.as_ref(), record as usize);
    }

    /// Prefetches the words that `find` will read.
    #[inline(always)]
    pub(super) fn prefetch_words(&self, isa: Bmi2, words: &[u64], bucket: u64) {
        if let Some(zero) = self.quarter(isa, bucket) {
            prefetch(words, (zero / 64) as usize);
            prefetch(words, (zero / 64) as usize + 1);
        }
    }

    /// Prefetches low parts of the quarter of `bucket`, which include its own or are next to them.
    #[inline(always)]
    pub(super) fn prefetch_low(&self, isa: Bmi2, low: &[u64], bucket: u64) {
        if let Some(zero) = self.quarter(isa, bucket) {
            self.prefetch_low_from(low, zero, bucket);
        }
    }

    #[inline(always)]
    fn prefetch_low_from(&self, low: &[u64], zero: u64, bucket: u64) {
        prefetch(
            low,
            (zero.wrapping_sub(bucket / QUARTER * QUARTER).wrapping_mul(self.lanes.width) / 64) as usize,
        );
    }

    /// The first bucket of record `record` and the values before it; `start` finds its start if that is not known.
    pub(super) fn record(&self, record: u64, start: impl Fn(u64) -> Option<u64>) -> Option<(u64, u64)> {
        let values = *self.records.as_ref().get(usize::try_from(record).ok()?)? >> 24;
        let bucket = record * RECORD;
        Some((bucket, if values == UNKNOWN { start(bucket)?.wrapping_sub(bucket) } else { values }))
    }

    /// How many records there are.
    pub(super) fn record_count(&self) -> u64 {
        self.records.as_ref().len() as u64
    }

    pub(super) fn write(&self, sink: &mut impl WordSink) -> io::Result<()> {
        sink.put(&[self.records.as_ref().len() as u64])?;
        sink.put(self.records.as_ref())
    }

    /// For `count` buckets and low parts of `width` bits.
    pub(super) fn read(cursor: &mut WordCursor<SharedWords>, count: u64, width: u32) -> Result<Self, Error> {
        let at = cursor.position();
        let records = cursor.vector(1, "buckets")?;
        let (found, needed) = (records.as_ref().len() as u64, Self::records_for(count, width));
        if found != needed {
            return Err(Error::malformed(at, "buckets", needed, found));
        }
        Ok(Buckets { records, lanes: Lanes::new(width) })
    }

    /// One for bucket 0 and for each 64th, up to that after the last; none if [`Lanes`] cannot be used.
    fn records_for(count: u64, width: u32) -> u64 {
        if count == 0 || width > WINDOW { 0 } else { count / RECORD + 1 }
    }
}

/// How low parts of some width are compared, several at a time.
///
/// The plain version: count the low parts from some rank on that are below a limit, until one is not. As many as one
/// load contains are put into lanes of 8, 16, 32 or 64 bits, wider than they are; a subtraction in all lanes at once
/// keeps the top bit of those that are not below.
#[derive(Debug, Clone, Copy)]
pub(super) struct Lanes {
    width: u64,
    // The bits of a low part, and the lowest and highest bit, in each lane.
    items: u64,
    lows: u64,
    tops: u64,
    // Bits per lane, as a logarithm, and lanes.
    log: u64,
    per_load: u64,
}

impl Lanes {
    /// For low parts of up to [`WINDOW`] bits.
    pub(super) fn new(width: u32) -> Self {
        let log = match width {
            1..=7 => 3,
            8..=14 => 4,
            15..=28 => 5,
            _ => 6,
        };
        let lows = u64::MAX / low_mask(1 << log);
        let (items, tops) = (lows * low_mask(width), lows << ((1 << log) - 1));
        Lanes { width: u64::from(width), items, lows, tops, log, per_load: 64 >> log }
    }

    /// How many of the `count` low parts from `rank` on are below `limit`, up to the first that is not.
    #[inline(always)]
    pub(super) fn count_below(
        &self,
        isa: Bmi2,
        low: &[u64],
        rank: u64,
        count: u64,
        limit: u64,
    ) -> Option<u64> {
        let below = self.count_in_load(isa, low, rank, limit)?;
        if count <= self.per_load {
            return Some(below.min(count));
        }
        self.count_in_loads(isa, low, rank, count, limit)
    }

    /// The same if one load does not hold all of them.
    #[inline(never)]
    fn count_in_loads(&self, isa: Bmi2, low: &[u64], rank: u64, count: u64, limit: u64) -> Option<u64> {
        let mut seen = 0;
        while seen < count {
            let below = self.count_in_load(isa, low, rank.wrapping_add(seen), limit)?;
            if below < self.per_load {
                return Some((seen + below).min(count));
            }
            seen += self.per_load;
        }
        Some(count)
    }

    /// How many of the low parts in one load are below `limit`, up to the first that is not.
    #[inline(always)]
    fn count_in_load(&self, isa: Bmi2, low: &[u64], rank: u64, limit: u64) -> Option<u64> {
        let bit = rank.wrapping_mul(self.width);
        if (bit / 64) as usize + 1 >= low.len() {
            return None;
        }
        // SAFETY: another word follows the one with the bit.
        let window = unsafe { read_window(low, bit) };
        let limits = limit.wrapping_mul(self.lows);
        let reached = (isa.deposit(window, self.items) | self.tops).wrapping_sub(limits) & self.tops;
        Some(isa.shift_right(u64::from(reached.trailing_zeros()), self.log))
    }

    /// The value of rank `rank`, whose bit in the high part is `bit`.
    #[inline(always)]
    pub(super) fn value(&self, isa: Bmi2, low: &[u64], bit: u64, rank: u64) -> Option<u64> {
        Some(bit.wrapping_sub(rank).wrapping_shl(self.width as u32) | self.read(isa, low, rank)?)
    }

    #[inline(always)]
    fn read(&self, isa: Bmi2, low: &[u64], rank: u64) -> Option<u64> {
        let bit = rank.wrapping_mul(self.width);
        if (bit / 64) as usize + 1 >= low.len() {
            return None;
        }
        // SAFETY: another word follows the one with the bit.
        Some(isa.low_bits(unsafe { read_window(low, bit) }, self.width))
    }

    /// A value as its bucket and its low part.
    #[inline(always)]
    pub(super) fn split(&self, isa: Bmi2, value: u64) -> (u64, u64) {
        (isa.shift_right(value, self.width), isa.low_bits(value, self.width))
    }
}
