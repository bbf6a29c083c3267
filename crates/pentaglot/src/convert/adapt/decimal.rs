//! Floats as decimals, rounded to nearest even.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Decimal256Type, Float64Type};
use arrow_array::{ArrayRef, PrimitiveArray};
use arrow_buffer::i256;
use arrow_schema::DataType;

use super::unplanned;
use crate::error::Result;

/// The most digits of a decimal.
const MOST_DIGITS: u8 = 76;

/// The nearest decimals of this type; null for what is not finite or has too many digits. The scale is not negative.
pub(super) fn from_floats(array: &ArrayRef, to: &DataType) -> Result<ArrayRef> {
    let (precision, scale) = match to {
        DataType::Decimal32(precision, scale)
        | DataType::Decimal64(precision, scale)
        | DataType::Decimal128(precision, scale)
        | DataType::Decimal256(precision, scale) => (*precision, *scale),
        _ => return Err(unplanned()),
    };
    let most = power(10, u32::from(precision)).unwrap_or(i256::MAX);
    let digits = u32::try_from(scale).map_err(|_| unplanned())?;
    let floats = arrow_cast::cast(array, &DataType::Float64)?;
    let floats = floats.as_primitive::<Float64Type>();
    let decimal = |value: f64| nearest(value, digits).filter(|scaled| scaled.wrapping_abs() < most);
    let scaled: PrimitiveArray<Decimal256Type> = floats.iter().map(|value| decimal(value?)).collect();
    let scaled: ArrayRef = Arc::new(scaled.with_precision_and_scale(MOST_DIGITS, scale)?);
    Ok(arrow_cast::cast(&scaled, to)?)
}

fn power(base: i128, exponent: u32) -> Option<i256> {
    i256::from_i128(base).checked_pow(exponent)
}

/// The integer nearest to `value * 10^digits`, ties to even; `None` if it is not finite or too large.
fn nearest(value: f64, digits: u32) -> Option<i256> {
    if !value.is_finite() {
        return None;
    }
    let (mantissa, exponent) = parts(value);
    // m * 2^e * 10^d = (m * 5^d) * 2^(e + d): the first factor is exact, since 53 bits and those of 5^76 are 230.
    let whole = i256::from_i128(i128::from(mantissa)).checked_mul(power(5, digits)?)?;
    let shift = exponent + i32::try_from(digits).ok()?;
    let scaled = match u32::try_from(shift) {
        Ok(shift) => whole.checked_mul(power(2, shift)?)?,
        Err(_) => match power(2, shift.unsigned_abs()).filter(|factor| *factor > i256::ZERO) {
            Some(factor) => halved(whole, factor),
            // Less than half of one.
            None => i256::ZERO,
        },
    };
    Some(if value.is_sign_negative() { i256::ZERO.wrapping_sub(scaled) } else { scaled })
}

/// `whole / factor`, a power of two, to nearest even.
fn halved(whole: i256, factor: i256) -> i256 {
    let two = i256::from_i128(2);
    let (quotient, rest, half) = (whole / factor, whole % factor, factor / two);
    let is_odd = quotient % two != i256::ZERO;
    if rest > half || rest == half && is_odd { quotient.wrapping_add(i256::ONE) } else { quotient }
}

/// The absolute value as `mantissa * 2^exponent`.
fn parts(value: f64) -> (u64, i32) {
    let bits = value.to_bits();
    let (biased, fraction) = ((bits >> 52 & 0x7ff) as i32, bits & ((1 << 52) - 1));
    match biased {
        0 => (fraction, -1074),
        _ => (fraction | 1 << 52, biased - 1075),
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::{Array, Float64Array};

    use super::*;

    #[test]
    fn floats_are_rounded_to_nearest_even() {
        let floats: ArrayRef = Arc::new(Float64Array::from(vec![
            1.25,
            1.35,
            0.75,
            -1.25,
            0.1,
            1e-300,
            99999.0,
            9999.94,
            1e300,
            f64::NAN,
            f64::INFINITY,
            -0.0,
        ]));
        let decimals = from_floats(&floats, &DataType::Decimal128(5, 1)).unwrap();
        let texts = arrow_cast::cast(&decimals, &DataType::Utf8).unwrap();
        let texts: Vec<Option<&str>> = texts.as_string::<i32>().iter().collect();
        let expected = ["1.2", "1.4", "0.8", "-1.2", "0.1", "0.0", "", "9999.9", "", "", "", "0.0"];
        let expected = expected.map(|text| Some(text).filter(|text| !text.is_empty()));
        assert_eq!(texts, expected);
        let large = from_floats(&floats, &DataType::Decimal256(76, 70)).unwrap();
        assert_eq!(large.null_count(), 3);
    }
}
