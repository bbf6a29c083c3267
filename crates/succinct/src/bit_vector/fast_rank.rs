//! Rank on a fast processor.

use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

use super::rank::{Counts, LARGE};
use crate::cpu::{Bmi2, prefetch};

/// What rank on a fast processor needs, side by side, once there are counts of our own.
///
/// The pointers are to counts that stay in place as long as the vector lives.
#[derive(Debug, Default)]
pub(crate) struct FastRank {
    // 0 until the pointers are set.
    len: AtomicU64,
    small: AtomicPtr<u64>,
    large: AtomicPtr<u64>,
}

impl FastRank {
    /// Remembers the counts of `len` bits; always the same ones.
    pub(crate) fn set(&self, _: Bmi2, len: u64, counts: Counts<'_>) {
        self.small.store(counts.small.as_ptr().cast_mut(), Ordering::Relaxed);
        self.large.store(counts.large.as_ptr().cast_mut(), Ordering::Relaxed);
        self.len.store(len, Ordering::Release);
    }

    /// Whether the counts are known.
    #[inline(always)]
    pub(crate) fn is_set(&self) -> bool {
        self.len.load(Ordering::Relaxed) != 0
    }

    /// Ones before `index`, if the counts are known and `index` is below the length.
    ///
    /// A query waits for two cache lines and nothing else, so what counts is how many queries the processor has under way:
    /// that is, how few instructions each takes.
    ///
    /// # Safety
    ///
    /// `words` must be to the words of as many bits as were set.
    #[inline(always)]
    pub(crate) unsafe fn rank(&self, words: *const u64, index: u64) -> Option<u64> {
        if index >= self.len.load(Ordering::Acquire) {
            return None;
        }
        let (small, large) = (self.small.load(Ordering::Relaxed), self.large.load(Ordering::Relaxed));
        // SAFETY: the length was set by somebody who had this processor.
        let isa = unsafe { Bmi2::found_earlier() };
        // SAFETY: `index` is below the length that `words` and the counts have.
        Some(unsafe { rank_in_counts(isa, small, large, words, index) })
    }
}

/// The words and counts of a vector, for many queries.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FastBits<'a> {
    isa: Bmi2,
    words: &'a [u64],
    len: u64,
    counts: Counts<'a>,
}

impl<'a> FastBits<'a> {
    /// `None` if there is no bit, the words are not as many as `len` bits take, or the counts not as many as the words.
    pub(crate) fn new(isa: Bmi2, words: &'a [u64], len: u64, counts: Counts<'a>) -> Option<Self> {
        let fits = len > 0
            && words.len() as u64 == len.div_ceil(64)
            && counts.small.len() == words.len().div_ceil(4)
            && counts.large.len() == words.len().div_ceil(LARGE);
        fits.then_some(FastBits { isa, words, len, counts })
    }

    /// Bit `index` and the ones before it; of the last bit if `index` is past the end.
    #[inline(always)]
    pub(crate) fn bit_and_rank(self, index: u64) -> (bool, u64) {
        let index = index.min(self.len - 1);
        let (small, large) = (self.counts.small.as_ptr(), self.counts.large.as_ptr());
        // SAFETY: `index` is below the number of bits, and words and counts are as many as `new` found they must be.
        unsafe {
            let word = self.words.as_ptr().add((index / 64) as usize).read();
            (
                word >> (index % 64) & 1 == 1,
                rank_in_counts(self.isa, small, large, self.words.as_ptr(), index),
            )
        }
    }

    /// Asks for the lines that a query for `index` reads.
    #[inline(always)]
    pub(crate) fn prefetch(self, index: u64) {
        let word = (index / 64) as usize;
        prefetch(self.words, word);
        prefetch(self.counts.small, word / 4);
    }
}

/// The large count, the small count, and the bits before `index` in its word.
///
/// # Safety
///
/// `index` must be below the number of bits that `words` holds and the counts are of.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn rank_in_counts(
    _: Bmi2,
    small: *const u64,
    large: *const u64,
    words: *const u64,
    index: u64,
) -> u64 {
    let rank: u64;
    // SAFETY: a `Bmi2` value exists only after POPCNT, BMI1 and BMI2 were detected.
    // SAFETY: the caller keeps `index` within the bits, which take `index / 64` words rounded up, with a small count for each
    // and a large one for each 1024; nothing else is read, and nothing written but the named registers and the flags.
    unsafe {
        std::arch::asm!(
            "and {index:e}, 63",
            "bzhi {index}, qword ptr [{words} + 8 * {word}], {index}",
            "movzx {word:e}, word ptr [{small} + 2 * {word}]",
            "popcnt {index}, {index}",
            "add {word}, qword ptr [{large} + 8 * {part}]",
            "add {index}, {word}",
            index = inout(reg) index => rank,
            word = inout(reg) index / 64 => _,
            part = in(reg) index / 65536,
            small = in(reg) small,
            large = in(reg) large,
            words = in(reg) words,
            options(pure, readonly, nostack)
        );
    }
    rank
}

/// As above, on processors of which none is called fast.
#[cfg(not(target_arch = "x86_64"))]
unsafe fn rank_in_counts(
    isa: Bmi2,
    small: *const u64,
    large: *const u64,
    words: *const u64,
    index: u64,
) -> u64 {
    use crate::cpu::Isa;
    let word = (index / 64) as usize;
    // SAFETY: the caller keeps `index` within the bits, which take `index / 64` words rounded up, with a small count for each
    // and a large one for each 1024.
    let (small, large, bits) =
        unsafe { (*small.add(word / 4), *large.add((index / 65536) as usize), *words.add(word)) };
    let small = (small >> (16 * (word % 4))) & 0xFFFF;
    large.wrapping_add(small).wrapping_add(isa.popcount(isa.low_bits(bits, index)))
}
