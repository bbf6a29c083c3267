//! Rank support: rank9 as simple-sds lays it out.

use crate::cpu::{Bmi2, Isa};

/// Bits per block.
pub(crate) const BLOCK: u64 = 512;

/// Elements that the pairs for `len` bits take.
pub(crate) fn pair_elements(len: u64) -> u64 {
    2 * len.div_ceil(BLOCK)
}

/// Ones before `index`, which must be below the length.
///
/// Block k has a pair: the ones before the block, and seven 9-bit counts of the ones before words 1 to 7 within
/// it. For word 0 the shift ends at bit 63, which is 0.
#[inline(always)]
pub(crate) fn rank9<I: Isa>(isa: I, pairs: &[u64], words: &[u64], index: u64) -> u64 {
    let word = (index / 64) as usize;
    let Some(&[before, packed]) = pairs.get(word / 8 * 2..).and_then(|pairs| pairs.first_chunk::<2>()) else {
        return 0;
    };
    let field = ((word as u64 & 7).wrapping_sub(1)) & 7;
    let within = (packed >> (9 * field)) & 511;
    let bits = words.get(word).map_or(0, |bits| bits & !(u64::MAX << (index % 64)));
    before.wrapping_add(within).wrapping_add(isa.popcount(bits))
}

/// Bit `index` as it is in its word shifted down, and the ones before it.
///
/// # Safety
///
/// `index` must be below the number of bits that `words` holds and `pairs` is the rank support of.
#[inline(always)]
pub(crate) unsafe fn rank9_unchecked(
    isa: Bmi2,
    pairs: *const u64,
    words: *const u64,
    index: u64,
) -> (u64, u64) {
    let word = (index / 64) as usize;
    // SAFETY: the caller keeps `index` within the bits, which take `index / 64` words rounded up and a pair for each
    // eight of them.
    let (before, packed, bits) =
        unsafe { (*pairs.add(word / 8 * 2), *pairs.add(word / 8 * 2 + 1), *words.add(word)) };
    let field = ((word as u64).wrapping_sub(1)) & 7;
    let within = isa.shift_right(packed, 9 * field) & 511;
    let rank = before.wrapping_add(within).wrapping_add(isa.popcount(isa.low_bits(bits, index)));
    (isa.shift_right(bits, index), rank)
}

/// The packed counts of a block. Spec by example: simple-sds writes the field after each word that exists, so
/// the one after the last word is the block's total and later ones are 0; bit 63 is always 0.
#[inline(always)]
pub(crate) fn pack_block<I: Isa>(isa: I, words: &[u64]) -> (u64, u64) {
    let (mut packed, mut count) = (0, 0);
    for (index, &word) in words.iter().enumerate() {
        count += isa.popcount(word);
        packed |= count << (9 * index);
    }
    (packed & (u64::MAX >> 1), count)
}
