//! Rank support: rank9 as simple-sds lays it out.

use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

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

/// [`rank9`] on a fast processor, without checks.
///
/// It waits for two cache lines and nothing else, so what counts is how many queries the processor has under way: that is,
/// how few instructions each takes. Compilers that do not know of BMI2 take half as many again.
///
/// # Safety
///
/// `index` must be below the number of bits that `words` holds and `pairs` is the rank support of.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(crate) unsafe fn rank9_unchecked(_: Bmi2, pairs: *const u64, words: *const u64, index: u64) -> u64 {
    let rank: u64;
    // SAFETY: a `Bmi2` value exists only after POPCNT, BMI1 and BMI2 were detected.
    // SAFETY: the caller keeps `index` within the bits, which take `index / 64` words rounded up and a pair for each eight
    // of them; nothing else is read, and nothing written but the named registers and the flags.
    unsafe {
        std::arch::asm!(
            // The bits before `index` in its word.
            "and {index:e}, 63",
            "bzhi {index}, qword ptr [{words} + 8 * {word}], {index}",
            // The pair is at byte 16 * (word / 8).
            "mov {pair}, {word}",
            "and {pair}, -8",
            // The field is at bit 9 * ((word - 1) % 8).
            "dec {word:e}",
            "and {word:e}, 7",
            "lea {word:e}, [{word} + 8 * {word}]",
            "shrx {word}, qword ptr [{pairs} + 2 * {pair} + 8], {word}",
            "and {word:e}, 511",
            "popcnt {index}, {index}",
            "add {index}, {word}",
            "add {index}, qword ptr [{pairs} + 2 * {pair}]",
            index = inout(reg) index => rank,
            word = inout(reg) index / 64 => _,
            pair = out(reg) _,
            pairs = in(reg) pairs,
            words = in(reg) words,
            options(pure, readonly, nostack)
        );
    }
    rank
}

/// [`rank9`] without checks.
///
/// # Safety
///
/// `index` must be below the number of bits that `words` holds and `pairs` is the rank support of.
#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
pub(crate) unsafe fn rank9_unchecked(isa: Bmi2, pairs: *const u64, words: *const u64, index: u64) -> u64 {
    let (pair, word) = ((index / 512 * 2) as usize, (index / 64) as usize);
    // SAFETY: the caller keeps `index` within the bits, which take `index / 64` words rounded up and a pair for each eight
    // of them.
    let (before, packed, bits) = unsafe { (*pairs.add(pair), *pairs.add(pair + 1), *words.add(word)) };
    let field = (word as u64).wrapping_sub(1) & 7;
    let within = (packed >> (9 * field)) & 511;
    before.wrapping_add(within).wrapping_add(isa.popcount(isa.low_bits(bits, index)))
}

/// What rank on a fast processor needs, once there is a rank support.
#[derive(Debug, Default)]
pub(crate) struct FastRank {
    // 0 until the pointer is set.
    len: AtomicU64,
    pairs: AtomicPtr<u64>,
}

impl FastRank {
    /// The processor and the pairs, if they are known and `index` is below the length.
    #[inline(always)]
    pub(crate) fn at(&self, index: u64) -> Option<(Bmi2, *const u64)> {
        if index < self.len.load(Ordering::Acquire) {
            // SAFETY: the length was set by somebody who had this processor.
            Some((unsafe { Bmi2::found_earlier() }, self.pairs.load(Ordering::Relaxed)))
        } else {
            None
        }
    }

    /// Remembers the pairs of `len` bits; always the same ones.
    pub(crate) fn set(&self, _: Bmi2, len: u64, pairs: &[u64]) {
        self.pairs.store(pairs.as_ptr().cast_mut(), Ordering::Relaxed);
        self.len.store(len, Ordering::Release);
    }

    /// Whether the pairs are known.
    #[inline(always)]
    pub(crate) fn is_set(&self) -> bool {
        self.len.load(Ordering::Relaxed) != 0
    }
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
