//! Select by inventory: the position of every k-th bit.

use std::io;

use super::rank::{BLOCK, RankSupport};
use super::sampler::LOG_LIMIT;
use super::scan::{find, find_from};
use crate::bits::lane;
use crate::cpu::{Bmi2, Isa, Level, Wide, level, prefetch, wide};
use crate::cursor::WordCursor;
use crate::error::Error;
use crate::layout::WordSink;
use crate::storage::SharedWords;

/// Samples of every 2^`log`-th bit of one kind, chosen so that a stride nearly always ends within the words that the
/// processor examines at once: four, or eight with AVX-512.
///
/// A sample says in which word its bit is, and how many bits of the kind come before it in that word: both as one
/// number, 64 times the word plus the count. So a query knows its target count before it has loaded the word. Strides
/// come in groups: a group has the start of the word where it begins, a stride its sample relative to that, in 16 bits.
/// A query reads both, which are in the second-level cache up to about 10^8 bits, and counts words: one cache miss. A
/// kind that is at most one bit in 64 has every bit sampled (`log` 0), by its position.
///
/// If the bits are clustered a stride may span much more, which its group indicates: up to 512 bits per bit of the
/// kind, the rank support is searched instead of the words; above, all positions of the group are listed, which costs
/// less than an eighth of the bits they span.
#[derive(Debug, Clone)]
pub(crate) struct Inventory {
    log: u32,
    count: u64,
    // `count` on a fast processor, else 0; the same for a wide one.
    fast_count: u64,
    wide_count: u64,
    // One per group: kind in the top two bits; below, where it starts or an index into `listed`.
    // There is a group for every stride, and a stride for every bit: `new` and `read` make sure of it.
    groups: SharedWords,
    // One per stride, four to a word.
    offsets: SharedWords,
    listed: SharedWords,
}

/// Strides per group, and its logarithm.
pub(crate) const GROUP: u64 = 1 << GROUP_LOG;
const GROUP_LOG: u32 = 6;
/// The same where every bit is sampled.
pub(crate) const FEW_GROUP: u64 = 1 << FEW_GROUP_LOG;
const FEW_GROUP_LOG: u32 = 4;
const KIND_SHIFT: u32 = 62;
// Both are negative as signed numbers.
pub(crate) const SEARCH: u64 = 2 << KIND_SHIFT;
pub(crate) const LISTED: u64 = 3 << KIND_SHIFT;
pub(crate) const VALUE: u64 = !LISTED;

impl Inventory {
    /// The inventory of a pass: one offset for each stride of `count` bits, one group for each 2^`group_log`
    /// strides.
    pub(crate) fn new(log: u32, count: u64, groups: Vec<u64>, offsets: Vec<u64>, listed: Vec<u64>) -> Self {
        assert_eq!(
            (groups.len() as u64, offsets.len() as u64),
            shape(log, count),
            "a sample for every stride"
        );
        Self::from_parts(log, count, [groups, offsets, listed].map(SharedWords::new))
    }

    fn from_parts(log: u32, count: u64, [groups, offsets, listed]: [SharedWords; 3]) -> Self {
        let fast_count = if matches!(level(), Level::Bmi2(_)) { count } else { 0 };
        let wide_count = if wide().is_some() { count } else { 0 };
        Inventory { log, count, fast_count, wide_count, groups, offsets, listed }
    }

    /// The processor, if it is fast and there is a bit of rank `rank`.
    #[inline(always)]
    pub(crate) fn fast(&self, rank: u64) -> Option<Bmi2> {
        // SAFETY: `fast_count` is not 0 only after `level` has returned this processor.
        if rank < self.fast_count { Some(unsafe { Bmi2::found_earlier() }) } else { None }
    }

    /// The processor, if it is wide and there is a bit of rank `rank`.
    #[inline(always)]
    pub(crate) fn wide(&self, rank: u64) -> Option<Wide> {
        // SAFETY: `wide_count` is not 0 only after `wide` has returned this processor.
        if rank < self.wide_count { Some(unsafe { Wide::found_earlier() }) } else { None }
    }

    fn group_log(&self) -> u32 {
        if self.log == 0 { FEW_GROUP_LOG } else { GROUP_LOG }
    }

    /// The entry of a group and the offset of a stride in it.
    ///
    /// # Safety
    ///
    /// The stride must be one of those of `count` bits, and the group the one it is in.
    #[inline(always)]
    unsafe fn sample(&self, group: u64, stride: u64) -> (u64, u64) {
        // SAFETY: there are as many groups and offsets (four to a word) as `count` bits have.
        unsafe {
            let group = *self.groups.as_ref().get_unchecked(group as usize);
            let offset = *self.offsets.as_ref().as_ptr().cast::<u16>().add(lane(stride as usize));
            (group, u64::from(offset))
        }
    }

    /// The position of the bit of rank `rank`; `support` gives the rank support where it is needed.
    #[inline(always)]
    pub(crate) fn select<'p, const ONE: bool, I: Isa>(
        &self,
        isa: I,
        words: &[u64],
        support: impl FnOnce() -> RankSupport<'p>,
        rank: u64,
    ) -> Option<u64> {
        if rank >= self.count {
            return None;
        }
        // SAFETY: the rank is below the count.
        unsafe { self.select_unchecked::<ONE, I>(isa, words, support, rank) }
    }

    /// [`select`](Self::select) without the check of the rank.
    ///
    /// # Safety
    ///
    /// `rank` must be below `count`.
    #[inline(always)]
    pub(crate) unsafe fn select_unchecked<'p, const ONE: bool, I: Isa>(
        &self,
        isa: I,
        words: &[u64],
        support: impl FnOnce() -> RankSupport<'p>,
        rank: u64,
    ) -> Option<u64> {
        if self.log == 0 {
            // SAFETY: the rank is below the count.
            let (group, offset) = unsafe { self.sample(rank >> FEW_GROUP_LOG, rank) };
            if group < SEARCH {
                return Some(group + offset);
            }
        } else {
            let stride = isa.shift_right(rank, u64::from(self.log));
            // SAFETY: the rank is below the count.
            let (group, offset) = unsafe { self.sample(stride >> GROUP_LOG, stride) };
            if group < SEARCH {
                let mark = group + offset;
                let left = isa.low_bits(rank, u64::from(self.log)) + offset % 64;
                return find::<ONE, I>(isa, words, (mark / 64) as usize, left);
            }
        }
        self.select_in_wide_group::<ONE, I>(isa, words, support(), rank)
    }

    #[cold]
    #[inline(never)]
    fn select_in_wide_group<const ONE: bool, I: Isa>(
        &self,
        isa: I,
        words: &[u64],
        support: RankSupport<'_>,
        rank: u64,
    ) -> Option<u64> {
        let (bits_log, group) = (self.log + self.group_log(), rank >> self.log >> self.group_log());
        let within = rank & ((1 << bits_log) - 1);
        let entry = *self.groups.as_ref().get(group as usize)?;
        if entry >= LISTED {
            return self.listed.as_ref().get((entry & VALUE).checked_add(within)? as usize).copied();
        }
        let start = entry & VALUE;
        let before = |block: u64| {
            let ones = support.before(8 * block as usize);
            if ONE { ones } else { (block * BLOCK).wrapping_sub(ones) }
        };
        // The last block with at most `rank` bits before it; it starts before the next group does.
        let mut low = start / BLOCK;
        let blocks = words.len().div_ceil(8) as u64;
        let mut high = self.start(group + 1).map_or(blocks, |end| end / BLOCK + 1).min(blocks);
        while low + 1 < high {
            let middle = low + (high - low) / 2;
            if before(middle) <= rank { low = middle } else { high = middle }
        }
        if low * BLOCK <= start {
            // SAFETY: the stride is the first of the group of `rank`.
            let (_, first) = unsafe { self.sample(group, group << self.group_log()) };
            return find_from::<ONE, I>(isa, words, start, within + first);
        }
        find::<ONE, I>(isa, words, (low * BLOCK / 64) as usize, rank.wrapping_sub(before(low)))
    }

    /// Prefetches the sample of `rank`.
    #[inline(always)]
    pub(crate) fn prefetch_sample(&self, rank: u64) {
        let stride = rank >> self.log;
        prefetch(self.groups.as_ref(), (stride >> self.group_log()) as usize);
        prefetch(self.offsets.as_ref(), (stride / 4) as usize);
    }

    /// Prefetches the words where the search for `rank` will start.
    #[inline(always)]
    pub(crate) fn prefetch_words(&self, words: &[u64], rank: u64, chunk: usize) {
        if rank < self.count && self.log > 0 {
            let stride = rank >> self.log;
            // SAFETY: the rank is below the count.
            let (group, offset) = unsafe { self.sample(stride >> GROUP_LOG, stride) };
            let word = (((group & VALUE) + offset) / 64) as usize;
            prefetch(words, word);
            prefetch(words, word.wrapping_add(chunk - 1));
        }
    }

    /// An estimate of the position of the bit of rank `rank`, from the starts of its group and the next; prefetches
    /// what select will read.
    #[inline(always)]
    pub(crate) fn select_roughly(&self, words: &[u64], rank: u64) -> u64 {
        let bits_log = self.log + self.group_log();
        let group = rank >> bits_log;
        let Some(start) = self.start(group) else { return 0 };
        let end = self.start(group + 1).unwrap_or(start);
        let within = rank & ((1 << bits_log) - 1);
        let position = start.wrapping_add(end.wrapping_sub(start).wrapping_mul(within) >> bits_log);
        prefetch(self.offsets.as_ref(), ((rank >> self.log) / 4) as usize);
        prefetch(words, (position / 64) as usize);
        position
    }

    /// Where a group starts, at most a word before its first bit.
    fn start(&self, group: u64) -> Option<u64> {
        let entry = *self.groups.as_ref().get(usize::try_from(group).ok()?)?;
        if entry >= LISTED {
            self.listed.as_ref().get((entry & VALUE) as usize).copied()
        } else {
            Some(entry & VALUE)
        }
    }

    pub(crate) fn write(&self, sink: &mut impl WordSink) -> io::Result<()> {
        sink.put(&[u64::from(self.log), self.count])?;
        for words in [self.groups.as_ref(), self.offsets.as_ref(), self.listed.as_ref()] {
            sink.put(&[words.len() as u64])?;
            sink.put(words)?;
        }
        Ok(())
    }

    /// The inventory of `expected` bits.
    pub(crate) fn read(cursor: &mut WordCursor<SharedWords>, expected: u64) -> Result<Self, Error> {
        let at = cursor.position();
        let (log, count) = (cursor.element("log")?, cursor.element("count")?);
        if log > u64::from(LOG_LIMIT) {
            return Err(Error::malformed(at, "log", format!("0 to {LOG_LIMIT}"), log));
        }
        if count != expected {
            return Err(Error::malformed(at + 1, "count", expected, count));
        }
        let log = log as u32;
        let groups = cursor.vector(1, "groups")?;
        let offsets = cursor.vector(1, "offsets")?;
        let needed = shape(log, count);
        for (name, found, needed) in [
            ("groups", groups.as_ref().len() as u64, needed.0),
            ("offsets", offsets.as_ref().len() as u64, needed.1),
        ] {
            if found != needed {
                return Err(Error::malformed(at + 2, name, needed, found));
            }
        }
        let listed = cursor.vector(1, "listed")?;
        Ok(Self::from_parts(log, count, [groups, offsets, listed]))
    }
}

/// How many groups, and words of offsets, `count` bits have.
fn shape(log: u32, count: u64) -> (u64, u64) {
    let strides = count.div_ceil(1 << log);
    (strides.div_ceil(if log == 0 { FEW_GROUP } else { GROUP }), strides.div_ceil(4))
}
