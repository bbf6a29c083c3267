//! Rank on a fast processor.

use std::marker::PhantomData;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

use super::rank::{Counts, LARGE};
use crate::bits::lane;
use crate::cpu::{Bmi2, Isa, Wide, prefetch_at, wide};

/// Bits per large count.
pub(crate) const PART: u64 = 64 * LARGE as u64;

/// An estimate of the number of ones before `index`, which must be below `len`, if there are `ones` in total. `before`
/// returns the number before a part, for each part that starts below `len`.
///
/// For random bits the error is about 50 on average, which is mostly within the right cache line.
#[inline(always)]
pub(crate) fn rank_between(index: u64, len: u64, ones: u64, before: impl Fn(u64) -> u64) -> u64 {
    let (part, last) = (index / PART, (len - 1) / PART);
    let start = before(part);
    if part < last {
        return start.wrapping_add(before(part + 1).wrapping_sub(start).wrapping_mul(index % PART) / PART);
    }
    start.wrapping_add(ones.wrapping_sub(start).wrapping_mul(index % PART) / (len - last * PART))
}

/// The data of rank on a fast processor, next to each other, once our own counts exist.
///
/// The pointers are to counts that do not move as long as the vector lives.
#[derive(Debug, Default)]
pub(crate) struct FastRank {
    // 0 until the pointers are set.
    len: AtomicU64,
    // The same on the wide processor, elsewhere 0.
    wide_len: AtomicU64,
    small: AtomicPtr<u64>,
    large: AtomicPtr<u64>,
}

impl FastRank {
    /// Stores the counts of `len` bits; every call has the same ones.
    pub(crate) fn set(&self, _: Bmi2, len: u64, counts: Counts<'_>) {
        self.small.store(counts.small.as_ptr().cast_mut(), Ordering::Relaxed);
        self.large.store(counts.large.as_ptr().cast_mut(), Ordering::Relaxed);
        if wide().is_some() {
            self.wide_len.store(len, Ordering::Release);
        }
        self.len.store(len, Ordering::Release);
    }

    /// Whether the counts are known.
    #[inline(always)]
    pub(crate) fn is_set(&self) -> bool {
        self.len.load(Ordering::Relaxed) != 0
    }

    /// Ones before `index`, if the counts are known and `index` is below the length.
    ///
    /// A query waits only for two cache lines, so the throughput depends on how many queries are in flight: that is, on
    /// how few instructions and registers each takes.
    ///
    /// # Safety
    ///
    /// `words` must be to the words of as many bits as were set.
    #[inline(always)]
    pub(crate) unsafe fn rank(&self, words: *const u64, index: u64) -> Option<u64> {
        let counts = || (self.small.load(Ordering::Relaxed), self.large.load(Ordering::Relaxed));
        if index < self.wide_len.load(Ordering::Acquire) {
            let (small, large) = counts();
            // SAFETY: the length is set only on this processor.
            let isa = unsafe { Wide::found_earlier() };
            // SAFETY: `index` is below the length that `words` and the counts have.
            return Some(unsafe { isa.rank(small, large, words, index) });
        }
        if index >= self.len.load(Ordering::Acquire) {
            return None;
        }
        let (small, large) = counts();
        // SAFETY: the length is set only on this processor.
        let isa = unsafe { Bmi2::found_earlier() };
        // SAFETY: `index` is below the length that `words` and the counts have.
        Some(unsafe { isa.rank(small, large, words, index) })
    }

    /// The same for many queries, if the counts are known.
    ///
    /// # Safety
    ///
    /// `words` must be the words of as many bits as were set.
    #[inline(always)]
    pub(crate) unsafe fn bits<'a>(&'a self, words: &'a [u64]) -> Option<FastBits<'a>> {
        let last = self.len.load(Ordering::Acquire).checked_sub(1)?;
        // SAFETY: the length is set only on this processor.
        let isa = unsafe { Bmi2::found_earlier() };
        let small = self.small.load(Ordering::Relaxed).cast();
        let large = self.large.load(Ordering::Relaxed);
        Some(FastBits { isa, words: words.as_ptr(), small, large, last, lifetime: PhantomData })
    }

    /// An estimate of how many of all `ones` are before `index`; `None` if the counts are not known.
    #[inline(always)]
    pub(crate) fn rank_roughly(&self, index: u64, ones: u64) -> Option<u64> {
        let len = self.len.load(Ordering::Acquire);
        if index >= len {
            return if len == 0 { None } else { Some(ones) };
        }
        let large = self.large.load(Ordering::Relaxed);
        // SAFETY: there is a large count for every part that starts below the length.
        Some(rank_between(index, len, ones, |part| unsafe { *large.add(part as usize) }))
    }

    /// Prefetches the counts that `rank(index)` will read.
    #[inline(always)]
    pub(crate) fn prefetch_counts(&self, index: u64) {
        prefetch_at(self.small.load(Ordering::Relaxed), (index / 256) as usize);
    }
}

/// The words and counts of a vector, for many queries.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FastBits<'a> {
    isa: Bmi2,
    words: *const u64,
    small: *const u16,
    large: *const u64,
    // The last bit: words and counts exist up to it.
    last: u64,
    lifetime: PhantomData<&'a [u64]>,
}

impl FastBits<'_> {
    /// Bit `index` and the ones before it; of the last bit if `index` is past the end.
    #[inline(always)]
    pub(crate) fn bit_and_rank(self, index: u64) -> (bool, u64) {
        let index = index.min(self.last);
        // SAFETY: `index` is not past the last bit.
        let word = unsafe { *self.words.add((index / 64) as usize) };
        (word >> (index % 64) & 1 == 1, self.rank(index))
    }

    /// Ones before `index`, which must be at most the number of bits for the answer to make sense.
    #[inline(always)]
    pub(crate) fn rank(self, index: u64) -> u64 {
        // The word of the last bit also has the ones before the end: all of them, if all its bits are used.
        let word = index.min(self.last) / 64;
        // SAFETY: the word is not past the one of the last bit.
        let (bits, small, large) = unsafe {
            (
                *self.words.add(word as usize),
                *self.small.add(lane(word as usize)),
                *self.large.add(word as usize / LARGE),
            )
        };
        let before = large.wrapping_add(u64::from(small));
        before.wrapping_add(self.isa.popcount(self.isa.low_bits_to_64(bits, index.wrapping_sub(64 * word))))
    }

    /// The processor that every fast one is.
    #[inline(always)]
    pub(crate) fn isa(self) -> Bmi2 {
        self.isa
    }

    /// Ones before `index`, if it is below the number of bits.
    #[inline(always)]
    pub(crate) fn rank_below(self, isa: impl RankIsa, index: u64) -> Option<u64> {
        if index > self.last {
            return None;
        }
        // SAFETY: `index` is not past the last bit of the words, which the counts are of.
        Some(unsafe { isa.rank(self.small.cast(), self.large, self.words, index) })
    }

    /// Prefetches the lines that a query for `index` reads.
    #[inline(always)]
    pub(crate) fn prefetch(self, index: u64) {
        let word = (index / 64) as usize;
        prefetch_at(self.words, word);
        prefetch_at(self.small, word);
    }
}

/// A processor that computes ranks fast.
pub(crate) trait RankIsa: Isa {
    /// The large count, the small count, and the bits before `index` in its word.
    ///
    /// # Safety
    ///
    /// `index` must be below the number of bits that `words` holds and the counts are of.
    #[inline(always)]
    unsafe fn rank(self, small: *const u64, large: *const u64, words: *const u64, index: u64) -> u64 {
        let word = (index / 64) as usize;
        // SAFETY: the caller keeps `index` within the bits, whose words have a small count each and a
        // large one for each 1024.
        let (small, large, bits) =
            unsafe { (*small.add(word / 4), *large.add((index / PART) as usize), *words.add(word)) };
        let small = (small >> (16 * (word % 4))) & 0xFFFF;
        large.wrapping_add(small).wrapping_add(self.popcount(self.low_bits(bits, index)))
    }
}

impl RankIsa for Bmi2 {
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn rank(self, small: *const u64, large: *const u64, words: *const u64, index: u64) -> u64 {
        let rank: u64;
        // SAFETY: a `Bmi2` value exists only after POPCNT, BMI1 and BMI2 were detected.
        // SAFETY: the caller keeps `index` within the bits, whose words have a small count each and a
        // large one for each 1024; nothing else is read, and nothing written but the named registers and the flags.
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
                part = in(reg) index / PART,
                small = in(reg) small,
                large = in(reg) large,
                words = in(reg) words,
                options(pure, readonly, nostack)
            );
        }
        rank
    }
}

impl RankIsa for Wide {
    /// What waits for memory is in the vector unit: the registers of the others are too few for as many queries in flight.
    ///
    /// Shifted right out of the upper half of 128 bits by `index % 64`, the word leaves the bits before `index`.
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn rank(self, small: *const u64, large: *const u64, words: *const u64, index: u64) -> u64 {
        let rank: u64;
        // SAFETY: a `Wide` value exists only after all of these instructions were detected.
        // SAFETY: the caller keeps `index` within the bits, whose words have a small count each and a
        // large one for each 1024; nothing else is read, and nothing written but the named registers.
        unsafe {
            std::arch::asm!(
                "vmovq xmm16, {index}",
                "vpxorq xmm18, xmm18, xmm18",
                "vmovq xmm17, qword ptr [{words} + 8 * {word}]",
                "vpshrdvq xmm18, xmm17, xmm16",
                "vpinsrw xmm17, {zero}, word ptr [{small} + 2 * {word}], 0",
                "vmovq xmm16, qword ptr [{large} + 8 * {part}]",
                "vpopcntq xmm18, xmm18",
                "vpaddq xmm16, xmm16, xmm17",
                "vpaddq xmm16, xmm16, xmm18",
                "vmovq {index}, xmm16",
                index = inout(reg) index => rank,
                word = in(reg) index / 64,
                part = in(reg) index / PART,
                small = in(reg) small,
                large = in(reg) large,
                words = in(reg) words,
                zero = in(xmm_reg) 0.0_f64,
                out("xmm16") _, out("xmm17") _, out("xmm18") _,
                options(pure, readonly, nostack, preserves_flags)
            );
        }
        rank
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bit_vector::rank::Counter;
    use crate::cpu::{Portable, fast};

    impl RankIsa for Portable {}

    #[test]
    fn all_processors_count_alike() {
        let mut word = 1u64;
        let words: Vec<u64> = (0..3000)
            .map(|index| {
                word = word.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(index);
                [word ^ word >> 31, 0, u64::MAX][usize::from(index % 5 > 2) + usize::from(index % 7 == 6)]
            })
            .collect();
        let mut counter = Counter::new(words.len());
        words.chunks(8).for_each(|block| counter.take(Portable, block));
        let counts = counter.finish();
        let counts = Counts::new(&counts, words.len()).unwrap();
        fn check(isa: impl RankIsa, counts: Counts<'_>, words: &[u64]) {
            let mut expected = 0;
            for index in 0..64 * words.len() as u64 {
                // SAFETY: the index is that of a bit of the words, which the counts are of.
                let rank =
                    unsafe { isa.rank(counts.small.as_ptr(), counts.large.as_ptr(), words.as_ptr(), index) };
                assert_eq!(rank, expected, "before bit {index}");
                expected += words[(index / 64) as usize] >> (index % 64) & 1;
            }
        }
        check(Portable, counts, &words);
        wide().into_iter().for_each(|isa| check(isa, counts, &words));
        // Known by now.
        fast().into_iter().for_each(|isa| check(isa, counts, &words));
    }
}
