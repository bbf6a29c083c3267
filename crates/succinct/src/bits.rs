//! Words as a sequence of bits: masks, counts, and integers that start at any bit.

use crate::cpu::{Isa, dispatch};

/// How many bits `value` needs; at least one.
#[inline]
pub(crate) fn bit_len(value: u64) -> u32 {
    64 - (value | 1).leading_zeros()
}

/// The lowest `width` bits, for `width <= 64`.
#[inline]
pub(crate) fn low_mask(width: u32) -> u64 {
    if width >= 64 { u64::MAX } else { (1 << width) - 1 }
}

/// Reads the integer of `width` (1 to 64) bits at bit `bit`; bits past the end of `words` are zero.
///
/// The plain version: take the word with the first bit, shift it right, add the low bits of the next word if
/// the integer crosses into it, mask. Integers of up to 57 bits are within eight bytes, which one unaligned
/// load reads.
#[inline]
pub(crate) fn read_int(words: &[u64], bit: u64, width: u32) -> u64 {
    if width <= 57 && ((bit / 64) as usize) + 1 < words.len() {
        // SAFETY: there is another word after the one with the bit.
        return unsafe { read_window(words, bit) } & low_mask(width);
    }
    let (index, shift) = ((bit / 64) as usize, (bit % 64) as u32);
    let mut value = words.get(index).map_or(0, |word| word >> shift);
    if shift + width > 64 {
        value |= words.get(index + 1).map_or(0, |word| word << (64 - shift));
    }
    value & low_mask(width)
}

/// At least 57 bits from bit `bit` on, in one unaligned load.
///
/// # Safety
///
/// There must be a word after the one that holds the bit.
#[inline(always)]
pub(crate) unsafe fn read_window(words: &[u64], bit: u64) -> u64 {
    if cfg!(target_endian = "big") {
        let index = (bit / 64) as usize;
        return ((u128::from(words[index + 1]) << 64 | u128::from(words[index])) >> (bit % 64)) as u64;
    }
    // SAFETY: the caller guarantees at least eight bytes from the bit's byte on. SAFETY: any eight bytes are
    // a `u64`; the load is unaligned.
    let window =
        unsafe { words.as_ptr().cast::<u8>().add((bit / 8) as usize).cast::<u64>().read_unaligned() };
    window >> (bit % 8)
}

/// Overwrites the integer of `width` bits at bit `bit`, which must lie within `words`.
pub(crate) fn write_int(words: &mut [u64], bit: u64, width: u32, value: u64) {
    let (index, shift) = ((bit / 64) as usize, (bit % 64) as u32);
    let (mask, value) = (low_mask(width), value & low_mask(width));
    words[index] = words[index] & !(mask << shift) | value << shift;
    if shift + width > 64 {
        let written = 64 - shift;
        words[index + 1] = words[index + 1] & !(mask >> written) | value >> written;
    }
}

/// Where the 16 bits of number `index` are in memory, if words hold four of them each, the first at the low end.
#[inline(always)]
pub(crate) fn lane(index: usize) -> usize {
    if cfg!(target_endian = "big") { index ^ 3 } else { index }
}

/// The number of set bits in `words`.
pub(crate) fn count_ones(words: &[u64]) -> u64 {
    #[cfg(target_arch = "x86_64")]
    if words.len() >= 64 && crate::cpu::wide().is_some() {
        // SAFETY: a `Wide` value exists only after the two features were detected.
        return unsafe { count_ones_avx512(words) };
    }
    dispatch!(isa => words.iter().map(|&word| isa.popcount(word)).sum())
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512vpopcntdq")]
fn count_ones_avx512(words: &[u64]) -> u64 {
    words.iter().map(|word| u64::from(word.count_ones())).sum()
}

/// Position of the first bit at or after `from` that equals `bit`, if it lies within `word_limit` words.
#[inline]
pub(crate) fn scan_forward(words: &[u64], from: u64, bit: bool, word_limit: usize) -> Option<u64> {
    let flip = if bit { 0 } else { u64::MAX };
    let first = (from / 64) as usize;
    let mut word = (words.get(first)? ^ flip) & (u64::MAX << (from % 64));
    for step in 0..word_limit {
        if word != 0 {
            return Some((first + step) as u64 * 64 + u64::from(word.trailing_zeros()));
        }
        word = words.get(first + step + 1)? ^ flip;
    }
    None
}

/// Position of the last bit at or before `from` that equals `bit`, if it lies within `word_limit` words.
#[inline]
pub(crate) fn scan_backward(words: &[u64], from: u64, bit: bool, word_limit: usize) -> Option<u64> {
    let flip = if bit { 0 } else { u64::MAX };
    let first = (from / 64) as usize;
    let mut word = (words.get(first)? ^ flip) & (u64::MAX >> (63 - from % 64));
    for step in 0..word_limit {
        if word != 0 {
            return Some((first - step) as u64 * 64 + u64::from(63 - word.leading_zeros()));
        }
        word = words.get(first.checked_sub(step + 1)?)? ^ flip;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_read_and_written_at_every_bit() {
        for width in 1..=64 {
            for bit in 0..=(320 - u64::from(width)) {
                let mut words = [0x5555_5555_5555_5555_u64; 5];
                let value = 0xDEAD_BEEF_0123_4567_u64.rotate_left(bit as u32) & low_mask(width);
                write_int(&mut words, bit, width, value);
                assert_eq!(read_int(&words, bit, width), value);
                for other in (0..320).filter(|&other| other < bit || other >= bit + u64::from(width)) {
                    assert_eq!(read_int(&words, other, 1), (other + 1) % 2);
                }
            }
        }
        assert_eq!(read_int(&[u64::MAX], 60, 64), 15);
        assert_eq!(read_int(&[], 1 << 63, 64), 0);
    }

    #[test]
    fn counting_uses_every_word() {
        for len in [0, 1, 63, 64, 65, 1000] {
            assert_eq!(count_ones(&vec![0x8000_0000_0000_0001; len]), 2 * len as u64);
        }
    }

    #[test]
    fn scans_stop_at_the_limit() {
        let words = [0, 1 << 5, 0, 0, u64::MAX];
        assert_eq!(scan_forward(&words, 3, true, 2), Some(69));
        assert_eq!(scan_forward(&words, 3, true, 1), None);
        assert_eq!(scan_forward(&words, 70, true, 8), Some(256));
        assert_eq!(scan_forward(&words, 256, false, 8), None);
        assert_eq!(scan_backward(&words, 255, true, 3), Some(69));
        assert_eq!(scan_backward(&words, 255, true, 2), None);
        assert_eq!(scan_backward(&words, 68, true, 8), None);
        assert_eq!(scan_backward(&words, 319, false, 8), Some(255));
    }
}
