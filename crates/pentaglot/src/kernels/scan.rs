//! Running sums and bit order, in place: one pass over memory that is still in the cache.

#![allow(unsafe_code, reason = "vector loads and stores, and calls of functions for a detected processor")]

/// Each number becomes the sum of itself and all before it, modulo 2^32.
///
/// Returns whether all numbers and all sums are below 2^31. Then no sum has wrapped: the first sum of 2^31 or
/// more is the sum of two smaller numbers, so it is below 2^32 and is detected.
pub(crate) fn prefix_sums_u32(values: &mut [u32]) -> bool {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has AVX2, checked above.
        return unsafe { avx2::prefix_sums_u32(values) };
    }
    plain::prefix_sums_u32(values, 0, 0)
}

/// Reverses the order of the bits in each byte.
pub(crate) fn reverse_bits(bytes: &mut [u8]) {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has AVX2, checked above.
        return unsafe { avx2::reverse_bits(bytes) };
    }
    plain::reverse_bits(bytes);
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
    /// only that last addition depends on the previous vector.
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

    /// The sums in a type that cannot wrap.
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
        fn sums_of_u32_equal_the_plain_version(
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
            }
        }

        #[test]
        fn the_bits_of_each_byte_are_reversed(bytes: Vec<u8>) {
            let mut turned = bytes.clone();
            reverse_bits(&mut turned);
            prop_assert!(turned.iter().zip(&bytes).all(|(turned, byte)| *turned == byte.reverse_bits()));
        }
    }
}
