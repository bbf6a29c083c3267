//! Select by inventory: where every so-many-th bit is.

use std::io;

use super::rank::BLOCK;
use crate::bits::bit_len;
use crate::cpu::{Isa, prefetch};
use crate::cursor::WordCursor;
use crate::error::Error;
use crate::layout::WordSink;
use crate::storage::SharedWords;

/// The position of every 2^`log`-th bit of one kind, chosen so that a stride spans about [`SPAN`] bits.
///
/// A query reads one sample and counts words from there. Where the bits are clustered a stride may span much
/// more, and its sample says so: up to `512 << log` bits the rank support is searched instead of the words;
/// above, all positions are listed, which costs less than an eighth of the bits they span.
#[derive(Debug, Clone)]
pub(crate) struct Inventory {
    log: u32,
    count: u64,
    // One entry per stride: kind in the top two bits; below, a position or an index into `listed`.
    samples: SharedWords,
    listed: SharedWords,
}

/// Aimed-at bits per stride.
const SPAN: u64 = 1024;
/// A stride is scanned word by word up to this many bits.
const SCAN: u64 = 4096;
const KIND_SHIFT: u32 = 62;
const SEARCH: u64 = 1 << KIND_SHIFT;
const LISTED: u64 = 2 << KIND_SHIFT;
const VALUE: u64 = SEARCH - 1;

#[inline(always)]
fn flip<const ONE: bool>() -> u64 {
    if ONE { 0 } else { u64::MAX }
}

/// Counts words from `from` to the bit of rank `rank` among those at or after `from`.
#[inline(always)]
pub(crate) fn scan<const ONE: bool, I: Isa>(isa: I, words: &[u64], from: u64, mut rank: u64) -> Option<u64> {
    let mut index = (from / 64) as usize;
    let mut word = (words.get(index)? ^ flip::<ONE>()) & (u64::MAX << (from % 64));
    loop {
        let count = isa.popcount(word);
        if rank < count {
            return Some(index as u64 * 64 + isa.select_in_word(word, rank));
        }
        rank -= count;
        index += 1;
        word = words.get(index)? ^ flip::<ONE>();
    }
}

impl Inventory {
    /// The stride for `count` bits among `len`.
    pub(crate) fn log_for(count: u64, len: u64) -> u32 {
        let per_span = (u128::from(count) * u128::from(SPAN) / u128::from(len.max(1))) as u64;
        (bit_len(per_span) - 1).min(9)
    }

    /// Completes an inventory from the position of every 2^`log`-th bit.
    pub(crate) fn finish<const ONE: bool>(
        log: u32,
        count: u64,
        len: u64,
        mut samples: Vec<u64>,
        words: &[u64],
    ) -> Self {
        let mut listed = Vec::new();
        let stride = 1_u64 << log;
        for index in 0..if log == 0 { 0 } else { samples.len() } {
            let start = samples[index];
            let span = samples.get(index + 1).copied().unwrap_or(len) - start;
            if span >= BLOCK << log && span > SCAN {
                samples[index] = LISTED | listed.len() as u64;
                let bits = stride.min(count - index as u64 * stride);
                let mut at = start;
                for _ in 0..bits {
                    let Some(position) = crate::bits::scan_forward(words, at, ONE, usize::MAX) else { break };
                    listed.push(position);
                    at = position + 1;
                }
            } else if span > SCAN {
                samples[index] |= SEARCH;
            }
        }
        Inventory { log, count, samples: SharedWords::new(samples), listed: SharedWords::new(listed) }
    }

    /// How many bits of the kind there are.
    #[inline]
    pub(crate) fn count(&self) -> u64 {
        self.count
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
        let sample = *self.samples.as_ref().get((rank >> self.log) as usize)?;
        if sample < SEARCH {
            return scan::<ONE, I>(isa, words, sample, rank & ((1 << self.log) - 1));
        }
        self.select_in_wide_stride::<ONE, I>(isa, words, pairs(), sample, rank)
    }

    #[inline(never)]
    fn select_in_wide_stride<const ONE: bool, I: Isa>(
        &self,
        isa: I,
        words: &[u64],
        pairs: &[u64],
        sample: u64,
        rank: u64,
    ) -> Option<u64> {
        let within = rank & ((1 << self.log) - 1);
        if sample >= LISTED {
            return self.listed.as_ref().get(((sample & VALUE) + within) as usize).copied();
        }
        let start = sample & VALUE;
        let before = |block: u64| {
            let ones = pairs.get(2 * block as usize).copied().unwrap_or(u64::MAX);
            if ONE { ones } else { (block * BLOCK).wrapping_sub(ones) }
        };
        // The last block with at most `rank` bits before it; the stride ends within `512 << log` bits.
        let mut low = start / BLOCK;
        let mut high = (low + (1 << self.log) + 1).min(pairs.len() as u64 / 2);
        while low + 1 < high {
            let middle = low + (high - low) / 2;
            if before(middle) <= rank { low = middle } else { high = middle }
        }
        let from = (low * BLOCK).max(start);
        if from == start {
            return scan::<ONE, I>(isa, words, start, within);
        }
        scan::<ONE, I>(isa, words, from, rank.wrapping_sub(before(low)))
    }

    /// Asks for the sample of `rank`.
    #[inline(always)]
    pub(crate) fn prefetch_sample(&self, rank: u64) {
        prefetch(self.samples.as_ref(), (rank >> self.log) as usize);
    }

    /// Asks for the words where the search for `rank` will start.
    #[inline(always)]
    pub(crate) fn prefetch_words(&self, words: &[u64], rank: u64) {
        if let Some(&sample) = self.samples.as_ref().get((rank >> self.log) as usize) {
            let word = ((sample & VALUE) / 64) as usize;
            prefetch(words, word);
            prefetch(words, word + 8);
        }
    }

    /// Rank and position of each sample that has one, for searches over many strides.
    pub(crate) fn sample(&self, stride: u64) -> Option<(u64, u64)> {
        let sample = *self.samples.as_ref().get(stride as usize)?;
        let position = if sample >= LISTED {
            *self.listed.as_ref().get((sample & VALUE) as usize)?
        } else {
            sample & VALUE
        };
        Some((stride << self.log, position))
    }

    /// How many strides there are.
    pub(crate) fn strides(&self) -> u64 {
        self.samples.as_ref().len() as u64
    }

    pub(crate) fn write(&self, sink: &mut impl WordSink) -> io::Result<()> {
        sink.put(&[u64::from(self.log), self.count])?;
        for words in [self.samples.as_ref(), self.listed.as_ref()] {
            sink.put(&[words.len() as u64])?;
            sink.put(words)?;
        }
        Ok(())
    }

    pub(crate) fn read(cursor: &mut WordCursor<SharedWords>, len: u64) -> Result<Self, Error> {
        let at = cursor.position();
        let (log, count) = (cursor.element("log")?, cursor.element("count")?);
        if log > 9 {
            return Err(Error::malformed(at, "log", "0 to 9", log));
        }
        if count > len {
            return Err(Error::malformed(at + 1, "count", format!("at most {len}"), count));
        }
        let (log, samples) = (log as u32, cursor.vector(1, "samples")?);
        let needed = count.div_ceil(1 << log);
        if samples.as_ref().len() as u64 != needed {
            return Err(Error::malformed(at + 2, "samples", needed, samples.as_ref().len()));
        }
        Ok(Inventory { log, count, samples, listed: cursor.vector(1, "listed")? })
    }
}
