//! Instructions that a build for any x86-64 processor may not use, detected once at run time.
//!
//! An ordinary x86-64 build uses neither POPCNT nor PDEP. Intrinsics need functions with `#[target_feature]`, which
//! are not inlined into code without that feature. Instead the instructions are inline assembly behind an [`Isa`]
//! value that exists only if the processor has them: generic query code is compiled once per `Isa` and chosen by one
//! well-predicted branch on entry.
//!
//! Whole queries as `#[target_feature]` functions with intrinsics were measured against this, with random positions in
//! 2^16, 2^20 and 2^23 bits: rank takes 33 %, 40 % and 13 % longer (0.84 ns becomes 1.12 ns), since the call is as long
//! as the query; select takes 12 %, 9 % and 6 % longer.

mod bmi2;
mod portable;
mod wide;

use std::sync::atomic::{AtomicU8, Ordering};

/// Bit operations of one kind of processor.
pub(crate) trait Isa: Copy {
    /// Number of set bits.
    fn popcount(self, word: u64) -> u64;
    /// Position of the set bit of rank `rank`; an unspecified position below 64 if there are fewer set bits.
    fn select_in_word(self, word: u64, rank: u64) -> u64;
    /// Position of the set bit of rank `rank`, which must exist.
    #[inline(always)]
    fn select_present(self, word: u64, rank: u64) -> u64 {
        self.select_in_word(word, rank)
    }
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
    /// That word must be readable.
    #[inline(always)]
    unsafe fn popcount_at<const OFFSET: usize>(self, words: *const u64) -> u64 {
        // SAFETY: guaranteed by the caller.
        self.popcount(unsafe { words.byte_add(OFFSET).read() })
    }

    /// Words that [`find_in_chunk`](Self::find_in_chunk) examines.
    const CHUNK: usize = 4;

    /// The bit of the kind with `rank` others before it in the `CHUNK` words at `chunk`; `None` if it is not there.
    /// For a rank of 255 or more it may return `None`.
    ///
    /// The plain version: go from word to word, subtracting counts, until the rank is below the next count; the bit is
    /// in that word. A branch on the number of words would be unpredictable, so all words are counted, and the rank is
    /// compared with each sum of counts without a branch.
    ///
    /// # Safety
    ///
    /// `CHUNK` words must be readable.
    #[inline(always)]
    unsafe fn find_in_chunk<const ONE: bool>(self, chunk: *const u64, rank: u64) -> Option<u64> {
        // SAFETY: four words are readable; three of them are counted, and `place` is at most the fourth.
        let (left, place, word) = unsafe {
            let one = self.popcount_at::<0>(chunk);
            let two = one + self.popcount_at::<8>(chunk);
            let three = two + self.popcount_at::<16>(chunk);
            let found = self.step::<ONE, 64>(rank, (rank, 0), one);
            let found = self.step::<ONE, 128>(rank, found, two);
            let (left, place) = self.step::<ONE, 192>(rank, found, three);
            (left, place, *chunk.add(place))
        };
        let word = if ONE { word } else { !word };
        if left >= self.popcount(word) {
            return None;
        }
        Some(64 * place as u64 + self.select_present(word, left))
    }

    /// One step of a search by counting. `found` is the rest of `rank` at some word, and that word's number. If the bit
    /// of that rank is past the first `BITS` bits, `ones` of which are set, returns the same for the next word, which
    /// begins there. Set bits are counted if `ONE`, else unset ones.
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

    /// The low three bits of each 4-bit unit, concatenated: PEXT with the mask 0x7777….
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

/// x86-64 as above, with AVX-512, its vector POPCNT and its double shifts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wide(());

/// The processor that runs this program.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Level {
    Bmi2(Bmi2),
    Popcnt(Popcnt),
    Portable(Portable),
}

// 0: not yet known; 1: portable; 2: POPCNT; 3: BMI2; 4: also AVX-512.
static LEVEL: AtomicU8 = AtomicU8::new(0);

/// The processor that runs this program: one load and one or two predictable branches.
#[inline(always)]
pub(crate) fn level() -> Level {
    match LEVEL.load(Ordering::Relaxed) {
        3.. => Level::Bmi2(Bmi2(())),
        2 => Level::Popcnt(Popcnt(())),
        1 => Level::Portable(Portable),
        0 => detect(),
    }
}

#[cold]
#[inline(never)]
fn detect() -> Level {
    // Slower paths can be selected, to test them.
    let limit = match std::env::var("PENTAGLOT_SUCCINCT_CPU").as_deref() {
        Ok("portable") => 1,
        Ok("popcnt") => 2,
        Ok("bmi2") => 3,
        _ => 4,
    };
    let level = detect_code().min(limit);
    LEVEL.store(level, Ordering::Relaxed);
    match level {
        3.. => Level::Bmi2(Bmi2(())),
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
    if !bmi || deposit_is_microcoded() {
        return 2;
    }
    let wide = std::arch::is_x86_feature_detected!("avx512f")
        && std::arch::is_x86_feature_detected!("avx512bw")
        && std::arch::is_x86_feature_detected!("avx512dq")
        && std::arch::is_x86_feature_detected!("avx512vl")
        && std::arch::is_x86_feature_detected!("avx512vbmi2")
        && std::arch::is_x86_feature_detected!("avx512vpopcntdq");
    if wide { 4 } else { 3 }
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

/// The fast processor, if it is one: for queries whose other versions are not inlined, so that the fast one is
/// small enough to be inlined.
#[inline(always)]
pub(crate) fn fast() -> Option<Bmi2> {
    if LEVEL.load(Ordering::Relaxed) >= 3 { Some(Bmi2(())) } else { None }
}

/// The wide processor, if it is one.
#[inline(always)]
pub(crate) fn wide() -> Option<Wide> {
    level();
    if LEVEL.load(Ordering::Relaxed) == 4 { Some(Wide(())) } else { None }
}

/// Prefetches the cache line of `slice[index]`; an index out of bounds has no effect.
#[inline(always)]
pub(crate) fn prefetch<T>(slice: &[T], index: usize) {
    prefetch_at(slice.as_ptr(), index);
}

/// Prefetches the cache line of `start + index`; any address is allowed.
#[inline(always)]
pub(crate) fn prefetch_at<T>(start: *const T, index: usize) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: SSE is part of x86-64; a prefetch reads nothing and faults on no address.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(start.wrapping_add(index).cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (start, index);
}

#[cfg(test)]
mod tests;
