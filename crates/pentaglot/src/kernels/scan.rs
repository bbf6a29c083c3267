//! Running sums, differences and bit order, in place: one pass over memory that was written a moment ago.

#![allow(
    unsafe_code,
    reason = "vector loads and stores, and calls of functions for a processor that was asked for"
)]

/// Each number becomes the sum of itself and all before it, modulo 2^64.
///
/// The plain loop runs at the speed of memory: a version with vectors was measured and gains nothing.
pub(crate) fn prefix_sums_u64(values: &mut [u64]) {
    let mut sum = 0u64;
    for value in values {
        sum = sum.wrapping_add(*value);
        *value = sum;
    }
}

/// Each number becomes the sum of itself and all before it, modulo 2^32.
///
/// Gives whether all numbers and all sums are below 2^31. Then no sum has wrapped: the first that goes past 2^31
/// is the sum of two numbers below it, so it shows before it could wrap.
pub(crate) fn prefix_sums_u32(values: &mut [u32]) -> bool {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has AVX2, as was asked just now.
        return unsafe { avx2::prefix_sums_u32(values) };
    }
    plain::prefix_sums_u32(values, 0, 0)
}

/// Each little-endian number becomes its difference from the one before it, modulo 2^64; `previous` comes before the first. Gives
/// the last number.
pub(crate) fn differences_u64(values: &mut [[u8; 8]], mut previous: u64) -> u64 {
    for value in values {
        let number = u64::from_le_bytes(*value);
        *value = number.wrapping_sub(previous).to_le_bytes();
        previous = number;
    }
    previous
}

/// Each little-endian number becomes its difference from the one before it, modulo 2^32; `previous` comes before the first. Gives
/// the last number.
pub(crate) fn differences_u32(values: &mut [[u8; 4]], mut previous: u32) -> u32 {
    for value in values {
        let number = u32::from_le_bytes(*value);
        *value = number.wrapping_sub(previous).to_le_bytes();
        previous = number;
    }
    previous
}

/// Turns the bit order of each byte round.
pub(crate) fn reverse_bits(bytes: &mut [u8]) {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has AVX2, as was asked just now.
        return unsafe { avx2::reverse_bits(bytes) };
    }
    plain::reverse_bits(bytes);
}

/// Bytes to bits, least significant first: a byte that is not 0 is a 1.
pub(crate) fn pack_bools(bytes: &[u8]) -> Vec<u8> {
    let (chunks, rest) = bytes.as_chunks::<8>();
    let full = chunks.iter().map(|chunk| {
        let word = u64::from_le_bytes(*chunk);
        // The top bit of each byte that is not 0, moved down, is 0 or 1; the product gathers the eight in its top byte.
        let low = 0x7f7f_7f7f_7f7f_7f7f;
        let ones = ((((word & low) + low) | word) >> 7) & 0x0101_0101_0101_0101;
        (ones.wrapping_mul(0x0102_0408_1020_4080) >> 56) as u8
    });
    let last = rest.iter().enumerate().fold(0, |bits, (index, byte)| bits | u8::from(*byte != 0) << index);
    full.chain((!rest.is_empty()).then_some(last)).collect()
}

mod plain {
    pub(super) fn prefix_sums_u32(values: &mut [u32], mut sum: u32, mut seen: u32) -> bool {
        for value in values {
            seen |= *value;
            sum = sum.wrapping_add(*value);
            *value = sum;
            seen |= sum;
        }
        seen >> 31 == 0
    }

    #[inline(always)]
    pub(super) fn reverse_bits(bytes: &mut [u8]) {
        for byte in bytes {
            *byte = byte.reverse_bits();
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    use std::arch::x86_64::*;

    /// Sums inside a vector in three steps (neighbours, pairs, halves), then adds the sum of all vectors before it:
    /// only that last addition waits for the one before it.
    #[target_feature(enable = "avx2")]
    pub(super) fn prefix_sums_u32(values: &mut [u32]) -> bool {
        let (chunks, rest) = values.as_chunks_mut::<8>();
        let upper_half = _mm256_setr_epi32(0, 0, 0, 0, -1, -1, -1, -1);
        let (third, seventh) = (_mm256_set1_epi32(3), _mm256_set1_epi32(7));
        let mut sum = _mm256_setzero_si256();
        let mut seen = _mm256_setzero_si256();
        for chunk in chunks {
            let place = chunk.as_mut_ptr().cast::<__m256i>();
            // SAFETY: `place` is 32 bytes that belong to `chunk`; the load needs no alignment.
            let numbers = unsafe { _mm256_loadu_si256(place) };
            let pairs = _mm256_add_epi32(numbers, _mm256_slli_si256(numbers, 4));
            let halves = _mm256_add_epi32(pairs, _mm256_slli_si256(pairs, 8));
            let lower_sum = _mm256_and_si256(_mm256_permutevar8x32_epi32(halves, third), upper_half);
            let sums = _mm256_add_epi32(halves, lower_sum);
            let total = _mm256_add_epi32(sums, sum);
            // SAFETY: `place` is 32 bytes that belong to `chunk`; the store needs no alignment.
            unsafe { _mm256_storeu_si256(place, total) };
            sum = _mm256_add_epi32(sum, _mm256_permutevar8x32_epi32(sums, seventh));
            seen = _mm256_or_si256(seen, _mm256_or_si256(numbers, total));
        }
        let high_bits = _mm256_movemask_ps(_mm256_castsi256_ps(seen));
        let seen = if high_bits == 0 { 0 } else { 1 << 31 };
        super::plain::prefix_sums_u32(rest, _mm256_extract_epi32::<0>(sum).cast_unsigned(), seen)
    }

    /// The plain loop; the compiler may use AVX2 here, which is four times as fast.
    #[target_feature(enable = "avx2")]
    pub(super) fn reverse_bits(bytes: &mut [u8]) {
        super::plain::reverse_bits(bytes);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// All sums in numbers that cannot wrap.
    fn naive_sums(values: &[u32]) -> Vec<u128> {
        let mut sum = 0u128;
        values
            .iter()
            .map(|value| {
                sum += u128::from(*value);
                sum
            })
            .collect()
    }

    proptest! {
        #[test]
        fn sums_of_u32_equal_their_naive_twin(
            values in prop_oneof![
                prop::collection::vec(any::<u32>(), 0..70),
                prop::collection::vec(0u32..1 << 26, 0..70),
                prop::collection::vec(0u32..9, 0..200),
            ],
        ) {
            let naive = naive_sums(&values);
            let small = values.iter().all(|value| value >> 31 == 0) && naive.iter().all(|sum| sum >> 31 == 0);
            for dispatch in [true, false] {
                let mut sums = values.clone();
                let fits = if dispatch { prefix_sums_u32(&mut sums) } else { plain::prefix_sums_u32(&mut sums, 0, 0) };
                prop_assert_eq!(fits, small);
                prop_assert!(sums.iter().zip(&naive).all(|(sum, naive)| *sum == *naive as u32));
                let last = sums.last().copied().unwrap_or(0);
                let mut numbers: Vec<[u8; 4]> = sums.iter().map(|sum| sum.to_le_bytes()).collect();
                // In two pieces, as batches come.
                let (one, other) = numbers.split_at_mut(values.len() / 3);
                let previous = differences_u32(one, 0);
                prop_assert_eq!(differences_u32(other, previous), last);
                prop_assert!(numbers.iter().map(|bytes| u32::from_le_bytes(*bytes)).eq(values.iter().copied()));
            }
        }

        #[test]
        fn sums_of_u64_wrap_and_come_back(values: Vec<u64>) {
            let mut sums = values.clone();
            prefix_sums_u64(&mut sums);
            if let [first, second, ..] = values[..] {
                prop_assert_eq!(sums[1], first.wrapping_add(second));
            }
            let mut numbers: Vec<[u8; 8]> = sums.iter().map(|sum| sum.to_le_bytes()).collect();
            let (one, other) = numbers.split_at_mut(values.len() / 3);
            let previous = differences_u64(one, 0);
            differences_u64(other, previous);
            prop_assert!(numbers.iter().map(|bytes| u64::from_le_bytes(*bytes)).eq(values.iter().copied()));
        }

        #[test]
        fn bits_are_turned_round_and_packed(bytes: Vec<u8>) {
            let mut turned = bytes.clone();
            reverse_bits(&mut turned);
            prop_assert!(turned.iter().zip(&bytes).all(|(turned, byte)| *turned == byte.reverse_bits()));
            let packed = pack_bools(&bytes);
            prop_assert_eq!(packed.len(), bytes.len().div_ceil(8));
            for (index, byte) in bytes.iter().enumerate() {
                prop_assert_eq!(packed[index / 8] >> (index % 8) & 1 == 1, *byte != 0);
            }
        }
    }
}
