//! Builds everything that queries need in one pass over the words.

use super::inventory::Inventory;
use super::rank::{BLOCK, Counter};
use super::sampler::Sampler;
use crate::bits::low_mask;
use crate::cpu::{Isa, dispatch};

/// The result of a pass.
#[derive(Default)]
pub(crate) struct Built {
    /// Our own counts for rank.
    pub(crate) counts: Vec<u64>,
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

fn pass<const PARTS: u8, I: Isa>(isa: I, words: &[u64], len: u64, ones: u64) -> Built {
    let mut one = Sampler::new(PARTS & ONES != 0, ones, len);
    let mut zero = Sampler::new(PARTS & ZEROS != 0, len.saturating_sub(ones), len);
    let mut counter = Counter::new(if PARTS & RANK != 0 { words.len() } else { 0 });
    let mut position = 0;
    for block in words.chunks(8) {
        if PARTS & RANK != 0 {
            counter.take(isa, block);
        }
        // Unused bits of the last word are neither ones nor zeros, also in a damaged file.
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
    let mut built = Built { counts: counter.finish(), ..Built::default() };
    if PARTS & ONES != 0 {
        built.ones = Some(one.finish::<true>(words, len));
    }
    if PARTS & ZEROS != 0 {
        built.zeros = Some(zero.finish::<false>(words, len));
    }
    built
}
