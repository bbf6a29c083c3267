//! x86-64 with POPCNT, and with a fast PDEP.

use super::{Bmi2, Isa, Popcnt, Portable};

impl Isa for Popcnt {
    #[inline(always)]
    fn popcount(self, word: u64) -> u64 {
        popcnt(self, word)
    }

    #[inline]
    fn select_in_word(self, word: u64, rank: u64) -> u64 {
        Portable.select_in_word(word, rank)
    }

    #[inline]
    fn deposit(self, word: u64, mask: u64) -> u64 {
        Portable.deposit(word, mask)
    }
}

#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn popcnt(_: Popcnt, word: u64) -> u64 {
    let count: u64;
    // SAFETY: a `Popcnt` or `Bmi2` value exists only after POPCNT was detected.
    // SAFETY: the instruction reads and writes the named registers and the flags.
    unsafe {
        std::arch::asm!("popcnt {0}, {1}", lateout(reg) count, in(reg) word, options(pure, nomem, nostack));
    }
    count
}

#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
fn popcnt(_: Popcnt, word: u64) -> u64 {
    u64::from(word.count_ones())
}

impl Bmi2 {
    /// The fast processor, which was detected earlier.
    ///
    /// # Safety
    ///
    /// [`level`](super::level) must have returned it before.
    #[inline(always)]
    pub(crate) unsafe fn found_earlier() -> Self {
        Bmi2(())
    }

    /// The lowest `count` bits of `word`, for a count of at most 64.
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    pub(crate) fn low_bits_to_64(self, word: u64, count: u64) -> u64 {
        let result: u64;
        // SAFETY: a `Bmi2` value exists only after BMI2 was detected.
        // SAFETY: the instruction reads and writes the named registers and the flags.
        unsafe {
            std::arch::asm!("bzhi {0}, {1}, {2}", lateout(reg) result, in(reg) word, in(reg) count,
                options(pure, nomem, nostack));
        }
        result
    }

    /// The lowest `count` bits of `word`, for a count of at most 64.
    #[cfg(not(target_arch = "x86_64"))]
    pub(crate) fn low_bits_to_64(self, word: u64, count: u64) -> u64 {
        word & crate::bits::low_mask(count as u32)
    }
}

#[cfg(target_arch = "x86_64")]
impl Isa for Bmi2 {
    #[inline(always)]
    fn popcount(self, word: u64) -> u64 {
        popcnt(Popcnt(()), word)
    }

    #[inline(always)]
    fn select_in_word(self, word: u64, rank: u64) -> u64 {
        self.select_present(word, rank) & 63
    }

    #[inline(always)]
    fn select_present(self, word: u64, rank: u64) -> u64 {
        let position: u64;
        // SAFETY: a `Bmi2` value exists only after BMI1 and BMI2 were detected.
        // SAFETY: the instructions read and write the named registers and the flags.
        unsafe {
            std::arch::asm!(
                "shlx {0}, {1}, {2}",
                "pdep {0}, {0}, {3}",
                "tzcnt {0}, {0}",
                out(reg) position,
                in(reg) 1_u64,
                in(reg) rank,
                in(reg) word,
                options(pure, nomem, nostack)
            );
        }
        position
    }

    #[inline(always)]
    unsafe fn popcount_at<const OFFSET: usize>(self, words: *const u64) -> u64 {
        let count: u64;
        // SAFETY: a `Bmi2` value exists only after POPCNT was detected. SAFETY: the instruction reads the word,
        // which the caller guarantees to be readable, and writes one register and the flags.
        unsafe {
            std::arch::asm!("popcnt {0}, qword ptr [{1} + {2}]", lateout(reg) count, in(reg) words, const OFFSET,
                options(pure, readonly, nostack));
        }
        count
    }

    /// Without a branch, which would be unpredictable: subtract; if there is no borrow, take the difference and the
    /// next word.
    #[inline(always)]
    fn step<const ONE: bool, const BITS: u64>(
        self,
        rank: u64,
        found: (u64, usize),
        ones: u64,
    ) -> (u64, usize) {
        let (mut left, mut place) = found;
        // SAFETY: the instructions read and write the named registers and the flags.
        unsafe {
            if ONE {
                std::arch::asm!(
                    "sub {rest}, {ones}", "cmovae {left}, {rest}", "sbb {place}, -1",
                    rest = inout(reg) rank => _, left = inout(reg) left, place = inout(reg) place, ones = in(reg) ones,
                    options(pure, nomem, nostack)
                );
            } else {
                std::arch::asm!(
                    "lea {rest}, [{rank} + {ones}]", "sub {rest}, {bits}", "cmovae {left}, {rest}", "sbb {place}, -1",
                    rest = out(reg) _, rank = in(reg) rank, left = inout(reg) left, place = inout(reg) place,
                    ones = in(reg) ones, bits = const BITS,
                    options(pure, nomem, nostack)
                );
            }
        }
        (left, place)
    }

    #[inline(always)]
    fn low_bits(self, word: u64, count: u64) -> u64 {
        let result: u64;
        // SAFETY: a `Bmi2` value exists only after BMI2 was detected.
        // SAFETY: the instruction reads and writes the named registers and the flags.
        unsafe {
            std::arch::asm!("bzhi {0}, {1}, {2}", lateout(reg) result, in(reg) word, in(reg) count & 63,
                options(pure, nomem, nostack));
        }
        result
    }

    /// Without the fixed register that the ordinary shift needs.
    #[inline(always)]
    fn shift_right(self, word: u64, count: u64) -> u64 {
        let result: u64;
        // SAFETY: a `Bmi2` value exists only after BMI2 was detected.
        // SAFETY: the instruction reads and writes the named registers.
        unsafe {
            std::arch::asm!("shrx {0}, {1}, {2}", lateout(reg) result, in(reg) word, in(reg) count,
                options(pure, nomem, nostack, preserves_flags));
        }
        result
    }

    #[inline(always)]
    fn join_octal(self, units: u64) -> u64 {
        let result: u64;
        // SAFETY: a `Bmi2` value exists only after BMI2 was detected.
        // SAFETY: the instruction reads and writes the named registers.
        unsafe {
            std::arch::asm!("pext {0}, {1}, {2}", lateout(reg) result, in(reg) units, in(reg) 0x7777_7777_7777_7777_u64,
                options(pure, nomem, nostack, preserves_flags));
        }
        result
    }

    #[inline(always)]
    fn deposit(self, word: u64, mask: u64) -> u64 {
        let result: u64;
        // SAFETY: a `Bmi2` value exists only after BMI2 was detected.
        // SAFETY: the instruction reads and writes the named registers.
        unsafe {
            std::arch::asm!("pdep {0}, {1}, {2}", lateout(reg) result, in(reg) word, in(reg) mask,
                options(pure, nomem, nostack, preserves_flags));
        }
        result
    }
}

#[cfg(not(target_arch = "x86_64"))]
impl Isa for Bmi2 {
    #[inline(always)]
    fn popcount(self, word: u64) -> u64 {
        Portable.popcount(word)
    }

    #[inline]
    fn select_in_word(self, word: u64, rank: u64) -> u64 {
        Portable.select_in_word(word, rank)
    }

    #[inline]
    fn deposit(self, word: u64, mask: u64) -> u64 {
        Portable.deposit(word, mask)
    }
}
