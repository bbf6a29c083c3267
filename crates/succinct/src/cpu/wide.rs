//! x86-64 with AVX-512 and its vector POPCNT.

use super::{Bmi2, Isa, Wide};

impl Wide {
    /// The wide processor, which was detected earlier.
    ///
    /// # Safety
    ///
    /// [`wide`](super::wide) must have returned it before.
    #[inline(always)]
    pub(crate) unsafe fn found_earlier() -> Self {
        Wide(())
    }

    /// Which of eight words have a set bit.
    ///
    /// # Safety
    ///
    /// Eight words must be readable.
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    pub(crate) unsafe fn words_with_ones(self, chunk: *const u64) -> u64 {
        let words: u64;
        // SAFETY: a `Wide` value exists only after AVX-512 was detected.
        // SAFETY: the caller guarantees that eight words are readable; nothing is written but the named registers.
        unsafe {
            std::arch::asm!(
                "vmovdqu64 zmm16, zmmword ptr [{chunk}]", "vptestmq k1, zmm16, zmm16", "kmovb {words:e}, k1",
                chunk = in(reg) chunk, words = lateout(reg) words, out("xmm16") _, out("k1") _,
                options(pure, readonly, nostack, preserves_flags)
            );
        }
        words
    }

    /// Never called: other architectures have no wide processor.
    #[cfg(not(target_arch = "x86_64"))]
    pub(crate) unsafe fn words_with_ones(self, chunk: *const u64) -> u64 {
        // SAFETY: guaranteed by the caller.
        (0..8).map(|index| u64::from(unsafe { *chunk.add(index) } != 0) << index).sum()
    }
}

/// For each of eight words, whether the bit of rank `$rank` is past it, and the bits of the kind in those words.
///
/// The plain version: count each word, narrow the counts to bytes, compute prefix sums (which saturate at 255; so does
/// the rank, which is then past all words), compare with the rank, and add the counts of the words before the bit.
/// Registers from 16 on do not dirty the upper halves of the others, which would slow down SSE instructions.
#[cfg(target_arch = "x86_64")]
macro_rules! pass {
    ($chunk:ident, $rank:ident, $($count:literal),+) => {{
        let (passed, before): (u64, u64);
        std::arch::asm!(
            $($count,)+
            "vmovq xmm19, {rank}",
            "vpmovqb xmm16, zmm16",
            "vpmovusqb xmm19, xmm19",
            "vpsllq xmm17, xmm16, 8",
            "vpbroadcastb xmm19, xmm19",
            "vpaddusb xmm17, xmm17, xmm16",
            "vpsllq xmm18, xmm17, 16",
            "vpaddusb xmm17, xmm17, xmm18",
            "vpsllq xmm18, xmm17, 32",
            "vpaddusb xmm17, xmm17, xmm18",
            "vpxorq xmm18, xmm18, xmm18",
            "vpcmpleub k1, xmm17, xmm19",
            "vmovdqu8 xmm16{{k1}}{{z}}, xmm16",
            "vpsadbw xmm16, xmm16, xmm18",
            "kmovb {passed:e}, k1",
            "vmovq {before}, xmm16",
            chunk = in(reg) $chunk,
            rank = in(reg) $rank,
            passed = lateout(reg) passed,
            before = lateout(reg) before,
            out("xmm16") _, out("xmm17") _, out("xmm18") _, out("xmm19") _, out("k1") _,
            options(pure, readonly, nostack, preserves_flags)
        );
        (passed, before)
    }};
}

impl Isa for Wide {
    const CHUNK: usize = if cfg!(target_arch = "x86_64") { 8 } else { 4 };

    /// Almost all instructions that wait for the words are in the vector unit, which allows more queries in flight.
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn find_in_chunk<const ONE: bool>(self, chunk: *const u64, rank: u64) -> Option<u64> {
        // SAFETY: a `Wide` value exists only after all of these instructions were detected.
        // SAFETY: the caller guarantees that eight words are readable; nothing is written but the named registers.
        let (passed, before) = unsafe {
            if ONE {
                pass!(chunk, rank, "vpopcntq zmm16, zmmword ptr [{chunk}]")
            } else {
                pass!(
                    chunk,
                    rank,
                    "vmovdqu64 zmm16, zmmword ptr [{chunk}]",
                    "vpternlogq zmm16, zmm16, zmm16, 0x55",
                    "vpopcntq zmm16, zmm16"
                )
            }
        };
        let place = self.popcount(passed);
        if place == Self::CHUNK as u64 {
            return None;
        }
        // SAFETY: `place` is below eight.
        let word = unsafe { *chunk.add(place as usize) };
        let word = if ONE { word } else { !word };
        Some(64 * place + self.select_present(word, rank.wrapping_sub(before)))
    }

    #[inline(always)]
    fn popcount(self, word: u64) -> u64 {
        Bmi2(()).popcount(word)
    }

    #[inline(always)]
    fn select_in_word(self, word: u64, rank: u64) -> u64 {
        Bmi2(()).select_in_word(word, rank)
    }

    #[inline(always)]
    fn select_present(self, word: u64, rank: u64) -> u64 {
        Bmi2(()).select_present(word, rank)
    }

    #[inline(always)]
    fn deposit(self, word: u64, mask: u64) -> u64 {
        Bmi2(()).deposit(word, mask)
    }

    #[inline(always)]
    fn low_bits(self, word: u64, count: u64) -> u64 {
        Bmi2(()).low_bits(word, count)
    }

    #[inline(always)]
    fn shift_right(self, word: u64, count: u64) -> u64 {
        Bmi2(()).shift_right(word, count)
    }
}
