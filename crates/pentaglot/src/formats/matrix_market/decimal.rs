//! Decimals of at most 19 digits as floats, correctly rounded (Eisel and Lemire; Lemire, "Number parsing at a gigabyte per
//! second", 2021; Mushtak and Lemire, "Fast number parsing without fallback", 2023).
//!
//! In words: the float nearest to `digits * 10^power` has the leading bits of `digits * 5^power`. The powers of five are in a
//! table with 128 bits each. The product of the digits with the upper 64 bits of a power decides the 53 bits of the float in
//! nearly all cases; if it does not, the lower 64 bits do. Ties are possible only for few powers, where the product is exact.

/// The largest power of ten in the table, also negated.
const MOST: usize = 54;

/// The powers of five from `-MOST` to `MOST`, scaled by a power of two to 128 bits: exact, or the reciprocal of one.
const FIVES: [u128; 2 * MOST + 1] = fives();

#[allow(clippy::indexing_slicing, reason = "runs when this crate is compiled")]
const fn fives() -> [u128; 2 * MOST + 1] {
    let mut all = [0; 2 * MOST + 1];
    let (mut five, mut power) = (1u128, 0);
    while power <= MOST {
        all[MOST + power] = five << five.leading_zeros();
        if power > 0 {
            all[MOST - power] = reciprocal(five, power);
        }
        five *= 5;
        power += 1;
    }
    all
}

/// The first 128 bits of `1 / five`, by long division.
const fn reciprocal(five: u128, power: usize) -> u128 {
    let (mut rest, mut quotient) = ((1u128 << (128 - five.leading_zeros())) - five, 1u128);
    let mut bit = 0;
    while bit < 127 {
        rest *= 2;
        quotient *= 2;
        if rest >= five {
            rest -= five;
            quotient += 1;
        }
        bit += 1;
    }
    // Up to this power the product with 64 bits is then exact enough to find ties.
    if power <= 27 { quotient + 1 } else { quotient }
}

/// The float nearest to `digits * 10^power`; `None` if the power is not in the table.
#[inline(always)]
#[allow(
    clippy::cast_sign_loss,
    clippy::cast_possible_truncation,
    reason = "halves of 128 bits, and a positive exponent"
)]
pub(super) fn to_float(digits: u64, power: i64) -> Option<f64> {
    let five = *FIVES.get(usize::try_from(power + MOST as i64).ok()?)?;
    if digits == 0 {
        return Some(0.0);
    }
    let zeros = digits.leading_zeros();
    let scaled = digits << zeros;
    let product = u128::from(scaled) * (five >> 64);
    let (mut high, mut low) = ((product >> 64) as u64, product as u64);
    // The lower half of the power could carry into the 53 bits and the two after them.
    if high & 0x1FF == 0x1FF {
        let more = (u128::from(scaled) * u128::from(five as u64)) >> 64;
        let (sum, carry) = low.overflowing_add(more as u64);
        low = sum;
        high += u64::from(carry);
    }
    let upper = high >> 63;
    // 54 bits: the last one says how to round.
    let shift = upper + 9;
    let mut mantissa = high >> shift;
    // 217706 / 2^16 is the logarithm of 10 to the base 2.
    let mut exponent = ((power * 217_706) >> 16) + 63 + upper as i64 - i64::from(zeros) + 1023;
    // A tie is rounded to the even neighbour.
    if low <= 1 && (-4..=23).contains(&power) && mantissa & 3 == 1 && mantissa << shift == high {
        mantissa &= !1;
    }
    mantissa += mantissa & 1;
    mantissa >>= 1;
    if mantissa >= 1 << 53 {
        mantissa = 1 << 52;
        exponent += 1;
    }
    Some(f64::from_bits((exponent as u64) << 52 | mantissa & ((1 << 52) - 1)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LARGEST: i64 = MOST as i64;

    fn check(digits: u64, power: i64) -> std::result::Result<(), TestCaseError> {
        let expected: f64 = format!("{digits}e{power}").parse().unwrap();
        prop_assert_eq!(
            to_float(digits, power).map(f64::to_bits),
            Some(expected.to_bits()),
            "{}e{}",
            digits,
            power
        );
        Ok(())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4_000))]
        #[test]
        fn floats_are_what_the_standard_library_says(digits: u64, less in 0..64, power in -LARGEST..=LARGEST) {
            check(digits, power)?;
            check(digits >> less, power)?;
        }

        /// A float and the middle between it and the next, as decimals: exact for these powers.
        #[test]
        fn ties_are_rounded_to_even(mantissa in 1u64 << 52..1 << 53, up in 0u32..10, power in 0i64..=4) {
            for digits in [mantissa * 2, mantissa * 2 + 1, (mantissa * 2 + 1) << up, ((mantissa * 2 + 1) << up) + 1] {
                check(digits, 0)?;
                if let Some(scaled) = digits.checked_mul(10u64.pow(power as u32)) {
                    check(scaled, -power)?;
                }
            }
        }
    }

    #[test]
    fn the_ends_of_the_table_are_right() {
        for power in -LARGEST..=LARGEST {
            for digits in [0, 1, 9, 9_007_199_254_740_993, 9_999_999_999_999_999_999, u64::MAX] {
                check(digits, power).unwrap();
            }
        }
        assert_eq!(
            (to_float(1, LARGEST + 1), to_float(1, -LARGEST - 1), to_float(1, i64::MIN / 2)),
            (None, None, None)
        );
    }
}
