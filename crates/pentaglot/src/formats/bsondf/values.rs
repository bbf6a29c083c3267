//! Values as the format stores them: differences of dates, lengths of lists, a byte for each boolean.

use crate::kernels::scan;

/// Each number becomes the sum of itself and all before it, modulo 2^64; `sum` comes before the first, and becomes the last.
///
/// The plain loop is limited by memory: a version with vector instructions was measured and is not faster.
pub(super) fn sums_u64(values: &mut [u64], sum: &mut u64) {
    for value in values {
        *sum = sum.wrapping_add(*value);
        *value = *sum;
    }
}

/// As [`sums_u64`], modulo 2^32.
pub(super) fn sums_u32(values: &mut [u32], sum: &mut u32) {
    if let Some(first) = values.first_mut() {
        *first = first.wrapping_add(*sum);
    }
    scan::prefix_sums_u32(values);
    *sum = values.last().copied().unwrap_or(*sum);
}

/// Each little-endian number becomes its difference from the one before it, modulo 2^64; `previous` comes before the first. Gives
/// the last number.
pub(super) fn differences_u64(values: &mut [[u8; 8]], mut previous: u64) -> u64 {
    for value in values {
        let number = u64::from_le_bytes(*value);
        *value = number.wrapping_sub(previous).to_le_bytes();
        previous = number;
    }
    previous
}

/// Each little-endian number becomes its difference from the one before it, modulo 2^32; `previous` comes before the first. Gives
/// the last number.
pub(super) fn differences_u32(values: &mut [[u8; 4]], mut previous: u32) -> u32 {
    for value in values {
        let number = u32::from_le_bytes(*value);
        *value = number.wrapping_sub(previous).to_le_bytes();
        previous = number;
    }
    previous
}

/// Bytes to bits, least significant first: a byte that is not 0 is a 1.
pub(super) fn pack_bools(bytes: &[u8]) -> Vec<u8> {
    let (chunks, rest) = bytes.as_chunks::<8>();
    let full = chunks.iter().map(|chunk| {
        let word = u64::from_le_bytes(*chunk);
        // For each byte 0 or 1: whether it is not 0. The product collects these eight bits in its top byte.
        let low = 0x7f7f_7f7f_7f7f_7f7f;
        let ones = ((((word & low) + low) | word) >> 7) & 0x0101_0101_0101_0101;
        let [top, ..] = ones.wrapping_mul(0x0102_0408_1020_4080).to_be_bytes();
        top
    });
    let last = rest.iter().enumerate().fold(0, |bits, (index, byte)| bits | u8::from(*byte != 0) << index);
    full.chain((!rest.is_empty()).then_some(last)).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn differences_of_u32_are_the_inverse_of_sums(values: Vec<u32>) {
            let (mut sums, mut sum) = (values.clone(), 0);
            let (one, other) = sums.split_at_mut(values.len() / 2);
            sums_u32(one, &mut sum);
            sums_u32(other, &mut sum);
            let mut numbers: Vec<[u8; 4]> = sums.iter().map(|sum| sum.to_le_bytes()).collect();
            // In two pieces, as batches come.
            let (one, other) = numbers.split_at_mut(values.len() / 3);
            let previous = differences_u32(one, 0);
            prop_assert_eq!(differences_u32(other, previous), sums.last().copied().unwrap_or(0));
            prop_assert!(numbers.iter().map(|bytes| u32::from_le_bytes(*bytes)).eq(values.iter().copied()));
        }

        #[test]
        fn differences_of_u64_are_the_inverse_of_sums(values: Vec<u64>) {
            let (mut sums, mut sum) = (values.clone(), 0);
            let (one, other) = sums.split_at_mut(values.len() / 2);
            sums_u64(one, &mut sum);
            sums_u64(other, &mut sum);
            let mut numbers: Vec<[u8; 8]> = sums.into_iter().map(u64::to_le_bytes).collect();
            let (one, other) = numbers.split_at_mut(values.len() / 3);
            let previous = differences_u64(one, 0);
            differences_u64(other, previous);
            prop_assert!(numbers.iter().map(|bytes| u64::from_le_bytes(*bytes)).eq(values.iter().copied()));
        }

        #[test]
        fn bytes_become_bits(bytes: Vec<u8>) {
            let packed = pack_bools(&bytes);
            prop_assert_eq!(packed.len(), bytes.len().div_ceil(8));
            for (index, byte) in bytes.iter().enumerate() {
                prop_assert_eq!(packed[index / 8] >> (index % 8) & 1 == 1, *byte != 0);
            }
        }
    }
}
