//! Any processor.

use super::{Isa, Portable};

impl Isa for Portable {
    #[inline(always)]
    fn popcount(self, word: u64) -> u64 {
        u64::from(word.count_ones())
    }

    /// Vigna's broadword select: sums per byte, the byte by comparison in parallel, the bit by clearing.
    #[inline]
    fn select_in_word(self, word: u64, rank: u64) -> u64 {
        const ONES: u64 = 0x0101_0101_0101_0101;
        const HIGHS: u64 = 0x8080_8080_8080_8080;
        let rank = rank & 63;
        let mut sums = word - ((word >> 1) & 0x5555_5555_5555_5555);
        sums = (sums & 0x3333_3333_3333_3333) + ((sums >> 2) & 0x3333_3333_3333_3333);
        sums = ((sums + (sums >> 4)) & 0x0F0F_0F0F_0F0F_0F0F).wrapping_mul(ONES);
        let before = ((rank * ONES) | HIGHS).wrapping_sub(sums) & HIGHS;
        let place = (u64::from(before.count_ones()) * 8).min(56);
        let mut byte = (word >> place) & 0xFF;
        for _ in 0..rank.saturating_sub(((sums << 8) >> place) & 0xFF).min(7) {
            byte &= byte.wrapping_sub(1);
        }
        place + u64::from(byte.trailing_zeros()).min(7)
    }

    #[inline]
    fn deposit(self, word: u64, mut mask: u64) -> u64 {
        let (mut result, mut bit) = (0, 1_u64);
        while mask != 0 {
            if word & bit != 0 {
                result |= mask & mask.wrapping_neg();
            }
            mask &= mask - 1;
            bit <<= 1;
        }
        result
    }
}
