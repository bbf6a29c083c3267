//! Takes the samples of an inventory, in one pass over the words.

use super::inventory::{FEW_GROUP, GROUP, Inventory, LISTED, SEARCH, VALUE};
use super::rank::BLOCK;
use crate::bits::scan_forward;
use crate::cpu::{Isa, wide};

/// Every bit is sampled if at most one bit in this many is of the kind.
const FEW: u64 = 64;
/// The longest stride, as a logarithm: with the bits before it in its first word, less than 255.
pub(crate) const LOG_LIMIT: u32 = 7;
/// A stride is scanned word by word up to this many bits.
const SCAN: u64 = 2048;

/// Takes a sample of every 2^`log`-th bit, in order.
pub(crate) struct Sampler {
    log: u32,
    // The next rank to be sampled, and the bits so far.
    next: u64,
    count: u64,
    groups: Vec<u64>,
    offsets: Vec<u64>,
    strides: u64,
    // The origin of the offsets of the current group; its last sample, and its widest stride.
    origin: u64,
    last: u64,
    widest: u64,
}

impl Sampler {
    /// For about `count` bits of the kind among `len`; only the choice of strides depends on it.
    pub(crate) fn new(wanted: bool, count: u64, len: u64) -> Self {
        let log = log_of_strides(count, len);
        let strides = if wanted { (count.min(len) >> log) + 1 } else { 0 };
        let groups = Vec::with_capacity((strides / FEW_GROUP + 1) as usize);
        let offsets = Vec::with_capacity((strides / 4 + 1) as usize);
        Sampler { log, next: 0, count: 0, groups, offsets, strides: 0, origin: 0, last: 0, widest: 0 }
    }

    fn group(&self) -> u64 {
        if self.log == 0 { FEW_GROUP } else { GROUP }
    }

    /// The bits of the kind in the word at `position`, `count` of them.
    #[inline(always)]
    pub(crate) fn take<I: Isa>(&mut self, isa: I, word: u64, count: u64, position: u64) {
        while self.next < self.count + count {
            let within = self.next - self.count;
            if self.log == 0 {
                let at = position + isa.select_in_word(word, within);
                self.push(at, at);
            } else {
                self.push(position, position + within);
            }
            self.next += 1 << self.log;
        }
        self.count += count;
    }

    /// Adds the sample `mark`; if it starts a group, offsets count from `origin`.
    #[inline(always)]
    fn push(&mut self, origin: u64, mark: u64) {
        if self.strides.is_multiple_of(self.group()) {
            self.close(mark);
            self.groups.push(origin);
            (self.origin, self.widest) = (origin, 0);
        } else {
            self.widest = self.widest.max(mark - self.last);
        }
        let lane = self.strides % 4;
        let offset = (mark - self.origin) & 0xFFFF;
        match self.offsets.last_mut() {
            Some(word) if lane != 0 => *word |= offset << (16 * lane),
            _ => self.offsets.push(offset),
        }
        self.last = mark;
        self.strides += 1;
    }

    /// Chooses the kind of the last group, which ends before `limit`.
    #[inline(always)]
    fn close(&mut self, limit: u64) {
        let widest = self.widest.max(limit - self.last);
        let bits = self.group() << self.log;
        if let Some(group) = self.groups.last_mut()
            && (widest > SCAN && self.log > 0 || self.last - self.origin > 0xFFFF)
        {
            *group |= if limit - self.origin >= bits * BLOCK { LISTED } else { SEARCH };
        }
    }

    /// The inventory of the `len` bits in `words`.
    pub(crate) fn finish<const ONE: bool>(mut self, words: &[u64], len: u64) -> Inventory {
        self.close(len);
        let mut listed = Vec::new();
        let bits = self.group() << self.log;
        for (index, group) in self.groups.iter_mut().enumerate().filter(|(_, group)| **group >= LISTED) {
            let mut at = *group & VALUE;
            // Its first sample has the number of bits of its word that belong to the group before.
            let first = self.offsets[index * (bits >> self.log) as usize / 4] & 0xFFFF;
            for _ in 0..first {
                at = scan_forward(words, at, ONE, 1).map_or(at, |position| position + 1);
            }
            *group = LISTED | listed.len() as u64;
            for _ in 0..bits {
                let Some(position) = scan_forward(words, at, ONE, usize::MAX).filter(|&p| p < len) else {
                    break;
                };
                listed.push(position);
                at = position + 1;
            }
        }
        Inventory::new(self.log, self.count, self.groups, self.offsets, listed)
    }
}

/// The longest strides, as a logarithm, that nearly always end within the words that the processor examines at once,
/// with up to a word before them. If there are few bits, all are sampled, so that nothing is counted.
fn log_of_strides(count: u64, len: u64) -> u32 {
    if count <= len / FEW {
        return 0;
    }
    let density = (count as f64 / len as f64).min(1.0);
    let fits = |log: u32| {
        let bits = f64::from(1_u32 << log);
        let (mean, deviation) = (bits / density, (bits * (1.0 - density)).sqrt() / density);
        if wide().is_some() { mean + 3.0 * deviation <= 448.0 } else { mean <= 192.0 }
    };
    (1..=LOG_LIMIT).rev().find(|&log| fits(log)).unwrap_or(1)
}
