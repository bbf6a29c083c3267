//! Select by inventory: where every so-many-th bit is.

use std::io;

use super::rank::BLOCK;
use crate::bits::{bit_len, scan_forward};
use crate::cpu::{Isa, prefetch};
use crate::cursor::WordCursor;
use crate::error::Error;
use crate::layout::WordSink;
use crate::storage::SharedWords;

/// The position of every 2^`log`-th bit of one kind, chosen so that a stride spans about [`SPAN`] bits.
///
/// Strides come in groups of [`GROUP`]: a group has the position of its first bit, a stride the offset from there in
/// 16 bits. A query reads both and counts a few words. Where the bits are clustered a stride may span much more, and
/// its group says so: up to 512 bits per bit of the kind, the rank support is searched instead of the words; above,
/// all positions of the group are listed, which costs less than an eighth of the bits they span.
#[derive(Debug, Clone)]
pub(crate) struct Inventory {
    log: u32,
    count: u64,
    // One per group: kind in the top two bits; below, a position or an index into `listed`.
    groups: SharedWords,
    // Four to a word.
    offsets: SharedWords,
    listed: SharedWords,
}

/// Aimed-at bits per stride.
const SPAN: u64 = 192;
/// Up to one bit of the kind in so many, every one is sampled.
const FEW: u64 = 64;
/// The longest stride, as a logarithm.
const LOG_LIMIT: u32 = 8;
/// Strides per group.
const GROUP: u64 = 16;
/// A stride is scanned word by word up to this many bits.
const SCAN: u64 = 2048;
const KIND_SHIFT: u32 = 62;
const SEARCH: u64 = 1 << KIND_SHIFT;
const LISTED: u64 = 2 << KIND_SHIFT;
const VALUE: u64 = SEARCH - 1;

#[inline(always)]
fn flip<const ONE: bool>() -> u64 {
    if ONE { 0 } else { u64::MAX }
}

/// The bit of rank `rank` in a chunk of four words, or how many bits of the kind the chunk has.
///
/// In words: add up the counts of words until they exceed the rank; the bit is in that word. This needs no branch: the
/// counts up to each word are compared with the rank all at once.
#[inline(always)]
fn find_in_chunk<const ONE: bool, I: Isa>(isa: I, chunk: &[u64; 4], rank: u64) -> Result<u64, u64> {
    let [a, b, c, d] = chunk.map(|word| isa.popcount(word ^ flip::<ONE>()));
    let (ab, abc) = (a + b, a + b + c);
    if rank >= abc + d {
        return Err(abc + d);
    }
    let past = [rank >= a, rank >= ab, rank >= abc].map(u64::from);
    let before = (a & past[0].wrapping_neg()) + (b & past[1].wrapping_neg()) + (c & past[2].wrapping_neg());
    let place = past[0] + past[1] + past[2];
    let word = chunk[place as usize & 3] ^ flip::<ONE>();
    Ok(place * 64 + isa.select_in_word(word, rank - before))
}

/// Counts words from `from` to the bit of rank `rank` among those at or after `from`.
#[inline(always)]
pub(crate) fn scan<const ONE: bool, I: Isa>(isa: I, words: &[u64], from: u64, rank: u64) -> Option<u64> {
    let index = (from / 64) as usize;
    let rest = words.get(index..)?;
    let Some(chunk) = rest.first_chunk::<4>() else {
        return scan_rest::<ONE, I>(
            isa,
            words,
            index,
            rank_in_words::<ONE, I>(isa, *rest.first()?, from, rank),
        );
    };
    let rank = rank_in_words::<ONE, I>(isa, chunk[0], from, rank);
    match find_in_chunk::<ONE, I>(isa, chunk, rank) {
        Ok(place) => Some(from / 64 * 64 + place),
        Err(count) => scan_rest::<ONE, I>(isa, words, index + 4, rank - count),
    }
}

/// Bits of the first word before `from` count as well if the whole word is counted, and so does the rank.
#[inline(always)]
fn rank_in_words<const ONE: bool, I: Isa>(isa: I, first: u64, from: u64, rank: u64) -> u64 {
    rank.wrapping_add(isa.popcount(isa.low_bits(first ^ flip::<ONE>(), from)))
}

#[cold]
#[inline(never)]
fn scan_rest<const ONE: bool, I: Isa>(isa: I, words: &[u64], mut index: usize, mut rank: u64) -> Option<u64> {
    while let Some(chunk) = words.get(index..).and_then(|words| words.first_chunk::<4>()) {
        match find_in_chunk::<ONE, I>(isa, chunk, rank) {
            Ok(place) => return Some(index as u64 * 64 + place),
            Err(count) => rank -= count,
        }
        index += 4;
    }
    for &word in words.get(index..)? {
        let word = word ^ flip::<ONE>();
        let count = isa.popcount(word);
        if rank < count {
            return Some(index as u64 * 64 + isa.select_in_word(word, rank));
        }
        rank -= count;
        index += 1;
    }
    None
}

/// Takes the position of every 2^`log`-th bit, in order.
pub(crate) struct Sampler {
    log: u32,
    // The next rank to be sampled, and the bits so far.
    next: u64,
    count: u64,
    groups: Vec<u64>,
    offsets: Vec<u64>,
    strides: u64,
    start: u64,
    last: u64,
    widest: u64,
}

impl Sampler {
    /// For about `count` bits of the kind among `len`; the choice of strides is all that depends on it.
    pub(crate) fn new(wanted: bool, count: u64, len: u64) -> Self {
        let per_span = (u128::from(count) * u128::from(SPAN) / u128::from(len.max(1))) as u64;
        // Few bits are best all sampled: then nothing is counted at all.
        let log = if per_span < SPAN.div_ceil(FEW) { 0 } else { (bit_len(per_span) - 1).min(LOG_LIMIT) };
        let strides = if wanted { (count.min(len) >> log) + 1 } else { 0 };
        let groups = Vec::with_capacity((strides / GROUP + 1) as usize);
        let offsets = Vec::with_capacity((strides / 4 + 1) as usize);
        Sampler { log, next: 0, count: 0, groups, offsets, strides: 0, start: 0, last: 0, widest: 0 }
    }

    /// The bits of the kind in the word at `position`, `count` of them.
    #[inline(always)]
    pub(crate) fn take<I: Isa>(&mut self, isa: I, word: u64, count: u64, position: u64) {
        while self.next < self.count + count {
            self.push(position + isa.select_in_word(word, self.next - self.count));
            self.next += 1 << self.log;
        }
        self.count += count;
    }

    #[inline(always)]
    fn push(&mut self, position: u64) {
        if self.strides.is_multiple_of(GROUP) {
            self.close(position);
            self.groups.push(position);
            (self.start, self.widest) = (position, 0);
        } else {
            self.widest = self.widest.max(position - self.last);
        }
        let lane = self.strides % 4;
        let offset = (position - self.start) & 0xFFFF;
        match self.offsets.last_mut() {
            Some(word) if lane != 0 => *word |= offset << (16 * lane),
            _ => self.offsets.push(offset),
        }
        self.last = position;
        self.strides += 1;
    }

    /// Decides about the last group, which ends before `limit`.
    #[inline(always)]
    fn close(&mut self, limit: u64) {
        let widest = self.widest.max(limit - self.last);
        if let Some(group) = self.groups.last_mut()
            && (widest > SCAN && self.log > 0 || self.last - self.start > 0xFFFF)
        {
            let bits = GROUP << self.log;
            *group |= if limit - self.start >= bits * BLOCK { LISTED } else { SEARCH };
        }
    }

    /// The inventory of the `len` bits in `words`.
    pub(crate) fn finish<const ONE: bool>(mut self, words: &[u64], len: u64) -> Inventory {
        self.close(len);
        let mut listed = Vec::new();
        for group in self.groups.iter_mut().filter(|group| **group >= LISTED) {
            let mut at = *group & VALUE;
            *group = LISTED | listed.len() as u64;
            for _ in 0..GROUP << self.log {
                let Some(position) = scan_forward(words, at, ONE, usize::MAX).filter(|&p| p < len) else {
                    break;
                };
                listed.push(position);
                at = position + 1;
            }
        }
        let [groups, offsets, listed] = [self.groups, self.offsets, listed].map(SharedWords::new);
        Inventory { log: self.log, count: self.count, groups, offsets, listed }
    }
}

impl Inventory {
    /// Where the stride of `rank` starts, with the kind of its group.
    #[inline(always)]
    fn start<I: Isa>(&self, isa: I, rank: u64) -> Option<u64> {
        let stride = isa.shift_right(rank, u64::from(self.log));
        let group = *self.groups.as_ref().get((stride / GROUP) as usize)?;
        let offset =
            isa.shift_right(*self.offsets.as_ref().get((stride / 4) as usize)?, 16 * stride) & 0xFFFF;
        // A wide group is far from the next kind, whatever the offset adds.
        Some(group.wrapping_add(offset))
    }

    /// The position of the bit of rank `rank`; `pairs` gives the rank support where it is needed.
    #[inline(always)]
    pub(crate) fn select<'p, const ONE: bool, I: Isa>(
        &self,
        isa: I,
        words: &[u64],
        pairs: impl FnOnce() -> &'p [u64],
        rank: u64,
    ) -> Option<u64> {
        if rank >= self.count {
            return None;
        }
        let start = self.start(isa, rank)?;
        if start < SEARCH {
            if self.log == 0 {
                return Some(start);
            }
            return scan::<ONE, I>(isa, words, start, isa.low_bits(rank, u64::from(self.log)));
        }
        self.select_in_wide_group::<ONE, I>(isa, words, pairs(), rank)
    }

    #[cold]
    #[inline(never)]
    fn select_in_wide_group<const ONE: bool, I: Isa>(
        &self,
        isa: I,
        words: &[u64],
        pairs: &[u64],
        rank: u64,
    ) -> Option<u64> {
        let (group_log, group) = (self.log + GROUP.ilog2(), rank >> self.log >> GROUP.ilog2());
        let within = rank & ((1 << group_log) - 1);
        let entry = *self.groups.as_ref().get(group as usize)?;
        if entry >= LISTED {
            return self.listed.as_ref().get((entry & VALUE).checked_add(within)? as usize).copied();
        }
        let start = entry & VALUE;
        let before = |block: u64| {
            let ones = pairs.get(2 * block as usize).copied().unwrap_or(u64::MAX);
            if ONE { ones } else { (block * BLOCK).wrapping_sub(ones) }
        };
        // The last block with at most `rank` bits before it; it starts before the next group does.
        let mut low = start / BLOCK;
        let blocks = pairs.len() as u64 / 2;
        let mut high = self.group(group + 1).map_or(blocks, |(_, end)| end / BLOCK + 1).min(blocks);
        while low + 1 < high {
            let middle = low + (high - low) / 2;
            if before(middle) <= rank { low = middle } else { high = middle }
        }
        if low * BLOCK <= start {
            return scan::<ONE, I>(isa, words, start, within);
        }
        scan::<ONE, I>(isa, words, low * BLOCK, rank.wrapping_sub(before(low)))
    }

    /// Asks for the sample of `rank`.
    #[inline(always)]
    pub(crate) fn prefetch_sample(&self, rank: u64) {
        let stride = rank >> self.log;
        prefetch(self.groups.as_ref(), (stride / GROUP) as usize);
        prefetch(self.offsets.as_ref(), (stride / 4) as usize);
    }

    /// Asks for the words where the search for `rank` will start.
    #[inline(always)]
    pub(crate) fn prefetch_words<I: Isa>(&self, isa: I, words: &[u64], rank: u64) {
        if let Some(start) = self.start(isa, rank) {
            let word = ((start & VALUE) / 64) as usize;
            prefetch(words, word);
            prefetch(words, word + 4);
        }
    }

    /// Rank and position of the first bit of a group, for searches over many.
    pub(crate) fn group(&self, group: u64) -> Option<(u64, u64)> {
        let entry = *self.groups.as_ref().get(usize::try_from(group).ok()?)?;
        let position = if entry >= LISTED {
            *self.listed.as_ref().get((entry & VALUE) as usize)?
        } else {
            entry & VALUE
        };
        Some((group << self.log << GROUP.ilog2(), position))
    }

    pub(crate) fn write(&self, sink: &mut impl WordSink) -> io::Result<()> {
        sink.put(&[u64::from(self.log), self.count])?;
        for words in [self.groups.as_ref(), self.offsets.as_ref(), self.listed.as_ref()] {
            sink.put(&[words.len() as u64])?;
            sink.put(words)?;
        }
        Ok(())
    }

    pub(crate) fn read(cursor: &mut WordCursor<SharedWords>, len: u64) -> Result<Self, Error> {
        let at = cursor.position();
        let (log, count) = (cursor.element("log")?, cursor.element("count")?);
        if log > u64::from(LOG_LIMIT) {
            return Err(Error::malformed(at, "log", format!("0 to {LOG_LIMIT}"), log));
        }
        if count > len {
            return Err(Error::malformed(at + 1, "count", format!("at most {len}"), count));
        }
        let log = log as u32;
        let groups = cursor.vector(1, "groups")?;
        let offsets = cursor.vector(1, "offsets")?;
        let strides = count.div_ceil(1 << log);
        for (name, found, needed) in [
            ("groups", groups.as_ref().len() as u64, strides.div_ceil(GROUP)),
            ("offsets", offsets.as_ref().len() as u64, strides.div_ceil(4)),
        ] {
            if found != needed {
                return Err(Error::malformed(at + 2, name, needed, found));
            }
        }
        Ok(Inventory { log, count, groups, offsets, listed: cursor.vector(1, "listed")? })
    }
}
