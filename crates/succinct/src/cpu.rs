//! The few instructions that an ordinary build may not use, found once at run time.
//!
//! An ordinary x86-64 build knows neither POPCNT nor PDEP. Functions with `#[target_feature]` would help, but
//! they cannot be inlined into a query, and a call per word costs what the instruction saves. Instead the
//! instructions are written as inline assembly behind an [`Isa`] value that exists only if the processor has
//! them: generic query code is compiled once per `Isa` and chosen by one well-predicted branch on entry.

use std::sync::atomic::{AtomicU8, Ordering};

/// Bit operations of one kind of processor.
pub(crate) trait Isa: Copy {
    /// Number of set bits.
    fn popcount(self, word: u64) -> u64;
    /// Position of the set bit of rank `rank`; some position below 64 if there are not so many.
    fn select_in_word(self, word: u64, rank: u64) -> u64;
    /// Position of the set bit of rank `rank`, which must be there.
    #[inline(always)]
    fn select_present(self, word: u64, rank: u64) -> u64 {
        self.select_in_word(word, rank)
    }
    /// The bits of `word` under `mask`, gathered at the low end.
    fn extract(self, word: u64, mask: u64) -> u64;
    /// The low bits of `word`, scattered to the positions in `mask`.
    fn deposit(self, word: u64, mask: u64) -> u64;

    /// The lowest `count % 64` bits of `word`.
    #[inline(always)]
    fn low_bits(self, word: u64, count: u64) -> u64 {
        word & !(u64::MAX << (count % 64))
    }

    /// Number of set bits in the word at `words + OFFSET`, in bytes.
    ///
    /// # Safety
    ///
    /// That word must be there to read.
    #[inline(always)]
    unsafe fn popcount_at<const OFFSET: usize>(self, words: *const u64) -> u64 {
        // SAFETY: as the caller promises.
        self.popcount(unsafe { words.byte_add(OFFSET).read() })
    }

    /// One step of a search by counting. `found` is what is left of `rank` at some word, and that word's number. If the
    /// bit of that rank is past the first `BITS` bits, `ones` of which are set, the same for the word there, which must be
    /// the next one. Set bits are counted if `ONE`, else unset ones.
    #[inline(always)]
    fn step<const ONE: bool, const BITS: u64>(
        self,
        rank: u64,
        found: (u64, usize),
        ones: u64,
    ) -> (u64, usize) {
        let count = if ONE { ones } else { BITS - ones };
        if rank >= count { (rank - count, found.1 + 1) } else { found }
    }

    /// `word` shifted right by `count % 64`.
    #[inline(always)]
    fn shift_right(self, word: u64, count: u64) -> u64 {
        word >> (count % 64)
    }

    /// The low three bits of each 4-bit unit, put together: what PEXT does with the mask 0x7777….
    #[inline(always)]
    fn join_octal(self, units: u64) -> u64 {
        let mut value = units & 0x7777_7777_7777_7777;
        value = (value & 0x0707_0707_0707_0707) | (value & 0x7070_7070_7070_7070) >> 1;
        value = (value & 0x003F_003F_003F_003F) | (value & 0x3F00_3F00_3F00_3F00) >> 2;
        value = (value & 0x0000_0FFF_0000_0FFF) | (value & 0x0FFF_0000_0FFF_0000) >> 4;
        (value & 0x00FF_FFFF) | (value >> 32) << 24
    }
}

/// Any processor.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Portable;

/// x86-64 with POPCNT; its PDEP is missing or slow.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Popcnt(());

/// x86-64 with POPCNT, BMI1 and a fast BMI2.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bmi2(());

/// The processor we run on.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Level {
    Bmi2(Bmi2),
    Popcnt(Popcnt),
    Portable(Portable),
}

// 0: not yet known; 1: portable; 2: POPCNT; 3: BMI2.
static LEVEL: AtomicU8 = AtomicU8::new(0);

/// The processor we run on: one load and one or two predictable branches.
#[inline(always)]
pub(crate) fn level() -> Level {
    match LEVEL.load(Ordering::Relaxed) {
        3 => Level::Bmi2(Bmi2(())),
        2 => Level::Popcnt(Popcnt(())),
        1 => Level::Portable(Portable),
        _ => detect(),
    }
}

#[cold]
#[inline(never)]
fn detect() -> Level {
    // Slower paths can be asked for, to test them: `portable` or `popcnt`.
    let limit = match std::env::var("PENTAGLOT_SUCCINCT_CPU").as_deref() {
        Ok("portable") => 1,
        Ok("popcnt") => 2,
        _ => 3,
    };
    let level = detect_code().min(limit);
    LEVEL.store(level, Ordering::Relaxed);
    match level {
        3 => Level::Bmi2(Bmi2(())),
        2 => Level::Popcnt(Popcnt(())),
        _ => Level::Portable(Portable),
    }
}

#[cfg(target_arch = "x86_64")]
fn detect_code() -> u8 {
    if !std::arch::is_x86_feature_detected!("popcnt") {
        return 1;
    }
    let bmi = std::arch::is_x86_feature_detected!("bmi1") && std::arch::is_x86_feature_detected!("bmi2");
    if bmi && !deposit_is_microcoded() { 3 } else { 2 }
}

#[cfg(not(target_arch = "x86_64"))]
fn detect_code() -> u8 {
    1
}

/// AMD before Zen 3 (family 25) runs PDEP and PEXT as microcode, up to hundreds of cycles each.
#[cfg(target_arch = "x86_64")]
fn deposit_is_microcoded() -> bool {
    use std::arch::x86_64::__cpuid;
    let vendor = __cpuid(0);
    let amd = (vendor.ebx, vendor.edx, vendor.ecx) == (0x6874_7541, 0x6974_6E65, 0x444D_4163);
    let signature = __cpuid(1).eax;
    let family = ((signature >> 8) & 15) + ((signature >> 20) & 255);
    amd && family < 25
}

/// Runs `$body` with `$isa` bound to the processor's [`Isa`].
macro_rules! dispatch {
    ($isa:ident => $body:expr) => {
        match $crate::cpu::level() {
            $crate::cpu::Level::Bmi2($isa) => $body,
            $crate::cpu::Level::Popcnt($isa) => $body,
            $crate::cpu::Level::Portable($isa) => $body,
        }
    };
}
pub(crate) use dispatch;

/// The fast processor, if it is one: for queries whose other versions are kept out of line, so that the fast one is
/// small enough to be inlined where it is asked.
#[inline(always)]
pub(crate) fn fast() -> Option<Bmi2> {
    if LEVEL.load(Ordering::Relaxed) == 3 { Some(Bmi2(())) } else { None }
}

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
    fn extract(self, word: u64, mut mask: u64) -> u64 {
        let (mut result, mut bit) = (0, 1_u64);
        while mask != 0 {
            if word & mask & mask.wrapping_neg() != 0 {
                result |= bit;
            }
            mask &= mask - 1;
            bit <<= 1;
        }
        result
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
    fn extract(self, word: u64, mask: u64) -> u64 {
        Portable.extract(word, mask)
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
    /// The fast processor, found earlier.
    ///
    /// # Safety
    ///
    /// [`level`] must have returned it before.
    #[inline(always)]
    pub(crate) unsafe fn found_earlier() -> Self {
        Bmi2(())
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
        // SAFETY: a `Bmi2` value exists only after POPCNT was detected.
        // SAFETY: the instruction reads the word, which the caller promises to be there, and writes one register and
        // the flags.
        unsafe {
            std::arch::asm!("popcnt {0}, qword ptr [{1} + {2}]", lateout(reg) count, in(reg) words, const OFFSET,
                options(pure, readonly, nostack));
        }
        count
    }

    /// Without a branch, which nobody could predict: subtract; without a borrow, take the difference and the next word.
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
    fn extract(self, word: u64, mask: u64) -> u64 {
        let result: u64;
        // SAFETY: a `Bmi2` value exists only after BMI2 was detected.
        // SAFETY: the instruction reads and writes the named registers.
        unsafe {
            std::arch::asm!("pext {0}, {1}, {2}", lateout(reg) result, in(reg) word, in(reg) mask,
                options(pure, nomem, nostack, preserves_flags));
        }
        result
    }

    #[inline(always)]
    fn join_octal(self, units: u64) -> u64 {
        self.extract(units, 0x7777_7777_7777_7777)
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
    fn extract(self, word: u64, mask: u64) -> u64 {
        Portable.extract(word, mask)
    }

    #[inline]
    fn deposit(self, word: u64, mask: u64) -> u64 {
        Portable.deposit(word, mask)
    }
}

/// Asks for the cache line of `slice[index]`; an index out of bounds is harmless.
#[inline(always)]
pub(crate) fn prefetch<T>(slice: &[T], index: usize) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: SSE is part of x86-64; a prefetch reads nothing and faults on no address.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(slice.as_ptr().wrapping_add(index).cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (slice, index);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words() -> impl Iterator<Item = u64> {
        let mut state = 7_u64;
        let random = std::iter::repeat_with(move || {
            state = state.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(0x1405_7B7E_F767_814F);
            (state ^ (state >> 29)) & (state.rotate_left(17) | (state >> 63).wrapping_neg())
        });
        [0, 1, u64::MAX, 1 << 63, 0x8000_0000_0000_0001].into_iter().chain(random.take(2000))
    }

    fn agrees_with_the_plain_loop(isa: impl Isa) {
        for word in words() {
            assert_eq!(isa.popcount(word), (0..64).filter(|&bit| word >> bit & 1 == 1).count() as u64);
            for (rank, bit) in (0..64).filter(|&bit| word >> bit & 1 == 1).enumerate() {
                assert_eq!(isa.select_in_word(word, rank as u64), bit, "{word:#x} {rank}");
                assert_eq!(isa.select_present(word, rank as u64), bit, "{word:#x} {rank}");
            }
            assert!(isa.select_in_word(word, 63) < 64 && isa.select_in_word(word, 64) < 64);
            // SAFETY: the second word is there.
            assert_eq!(unsafe { isa.popcount_at::<8>([0, word].as_ptr()) }, isa.popcount(word));
            let ones = isa.popcount(word);
            for rank in 0..130 {
                let expected = |count: u64| if rank < count { (99, 7) } else { (rank - count, 8) };
                assert_eq!(isa.step::<true, 64>(rank, (99, 7), ones), expected(ones));
                assert_eq!(isa.step::<false, 128>(rank, (99, 7), ones), expected(128 - ones));
            }
            let mask = word.rotate_left(13) ^ 0xF0F0;
            assert_eq!(isa.extract(word, mask), Portable.extract(word, mask));
            assert_eq!(isa.deposit(word, mask), Portable.deposit(word, mask));
            assert_eq!(isa.join_octal(word), Portable.extract(word, 0x7777_7777_7777_7777));
            assert_eq!(Portable.deposit(Portable.extract(word, mask), mask), word & mask);
        }
    }

    #[test]
    fn portable_bit_operations_are_right() {
        agrees_with_the_plain_loop(Portable);
    }

    #[test]
    fn fast_shifts_are_right() {
        let Level::Bmi2(isa) = level() else { return };
        for word in words() {
            for count in 0..200 {
                assert_eq!(isa.low_bits(word, count), word & !(u64::MAX << (count % 64)));
                assert_eq!(isa.shift_right(word, count), word >> (count % 64));
            }
        }
    }

    #[test]
    fn detected_bit_operations_are_right() {
        dispatch!(isa => agrees_with_the_plain_loop(isa));
        if let Level::Bmi2(_) = level() {
            agrees_with_the_plain_loop(Popcnt(()));
        }
    }
}
