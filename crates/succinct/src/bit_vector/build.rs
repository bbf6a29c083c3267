//! One pass over the words for everything that queries need.

use super::inventory::Inventory;
use super::rank::{BLOCK, pack_block};
use crate::bits::low_mask;
use crate::cpu::{Isa, dispatch};

/// What a pass has built.
#[derive(Default)]
pub(crate) struct Built {
    pub(crate) pairs: Vec<u64>,
    pub(crate) ones: Option<Inventory>,
    pub(crate) zeros: Option<Inventory>,
}

/// The parts of an index, as flags.
pub(crate) const RANK: u8 = 1;
pub(crate) const ONES: u8 = 2;
pub(crate) const ZEROS: u8 = 4;

/// Builds the parts in `PARTS`. `ones` only guides the choice of strides: it may be wrong.
pub(crate) fn build<const PARTS: u8>(words: &[u64], len: u64, ones: u64) -> Built {
    dispatch!(isa => pass::<PARTS, _>(isa, words, len, ones))
}

/// The position of every 2^`log`-th bit of one kind, as words go by.
struct Sampler {
    log: u32,
    next: u64,
    count: u64,
    samples: Vec<u64>,
}

impl Sampler {
    fn new(wanted: bool, count: u64, len: u64) -> Self {
        let log = Inventory::log_for(count, len);
        let room = if wanted { (count.min(len) >> log) as usize + 1 } else { 0 };
        Sampler { log, next: 0, count: 0, samples: Vec::with_capacity(room) }
    }

    #[inline(always)]
    fn take<I: Isa>(&mut self, isa: I, word: u64, count: u64, position: u64) {
        while self.next < self.count + count {
            self.samples.push(position + isa.select_in_word(word, self.next - self.count));
            self.next += 1 << self.log;
        }
        self.count += count;
    }
}

fn pass<const PARTS: u8, I: Isa>(isa: I, words: &[u64], len: u64, ones: u64) -> Built {
    let mut one = Sampler::new(PARTS & ONES != 0, ones, len);
    let mut zero = Sampler::new(PARTS & ZEROS != 0, len.saturating_sub(ones), len);
    let mut pairs = Vec::with_capacity(if PARTS & RANK != 0 { 2 * words.len().div_ceil(8) } else { 0 });
    let mut before = 0;
    let mut position = 0;
    for block in words.chunks(8) {
        let (packed, count) = pack_block(isa, block);
        if PARTS & RANK != 0 {
            pairs.extend_from_slice(&[before, packed]);
            before += count;
        }
        // Unused bits of a last word are neither ones nor zeros, whatever a damaged file has there.
        let bits = (len - position).min(BLOCK);
        let whole = bits == BLOCK;
        for (index, &word) in block.iter().enumerate() {
            let valid = if whole { u64::MAX } else { low_mask((bits - 64 * index as u64).min(64) as u32) };
            let at = position + 64 * index as u64;
            if PARTS & ONES != 0 {
                let word = word & valid;
                one.take(isa, word, isa.popcount(word), at);
            }
            if PARTS & ZEROS != 0 {
                let word = !word & valid;
                zero.take(isa, word, isa.popcount(word), at);
            }
        }
        position += bits;
    }
    let mut built = Built { pairs, ..Built::default() };
    if PARTS & ONES != 0 {
        built.ones = Some(Inventory::finish::<true>(one.log, one.count, len, one.samples, words));
    }
    if PARTS & ZEROS != 0 {
        built.zeros = Some(Inventory::finish::<false>(zero.log, zero.count, len, zero.samples, words));
    }
    built
}
