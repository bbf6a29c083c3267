//! Literals exactly as written: they are rounded only when the column's type is known.

use std::fmt;

use arrow_buffer::i256;

/// A literal of a filter.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Literal {
    Number(Number),
    NaN,
    Infinity { negative: bool },
    Text(String),
    Bool(bool),
}

impl fmt::Display for Literal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Literal::Number(number) => f.write_str(&number.text),
            Literal::NaN => f.write_str("nan"),
            Literal::Infinity { negative: false } => f.write_str("inf"),
            Literal::Infinity { negative: true } => f.write_str("-inf"),
            Literal::Text(text) => write!(f, "'{text}'"),
            Literal::Bool(value) => write!(f, "{value}"),
        }
    }
}

/// A decimal number: `digits` times ten to the power of `exponent`.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Number {
    negative: bool,
    /// Without zeros at either end; empty for zero.
    digits: String,
    exponent: i64,
    /// As written.
    pub(super) text: String,
}

/// The greatest integer that is not greater than a literal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Floor {
    /// The integer, and whether it equals the literal.
    At(i256, bool),
    /// Less than every value of every type.
    Below,
    /// Greater than every value of every type.
    Above,
}

/// An integer of this many digits fits in 256 bits, and every value of every type is smaller than 10 to this power.
const MAX_DIGITS: i64 = 76;

impl Number {
    /// `[+-]digits[.digits][e[+-]digits]`.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
        let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, parse_exponent(exponent)?),
            None => (unsigned, 0),
        };
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let all = format!("{whole}{fraction}");
        if all.is_empty() || !all.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let stripped = all.trim_end_matches('0');
        let exponent = exponent - fraction.len() as i64 + (all.len() - stripped.len()) as i64;
        let digits = stripped.trim_start_matches('0').to_owned();
        Some(Number { negative: text.starts_with('-'), digits, exponent, text: text.to_owned() })
    }

    /// The floor of this number times ten to the power of `scale`.
    pub(super) fn floor(&self, scale: i64) -> Floor {
        let shift = self.exponent.saturating_add(scale);
        let length = self.digits.len() as i64;
        if self.digits.is_empty() {
            return Floor::At(i256::ZERO, true);
        }
        let whole_digits = length.saturating_add(shift);
        if whole_digits > MAX_DIGITS {
            return if self.negative { Floor::Below } else { Floor::Above };
        }
        let text = match usize::try_from(shift) {
            Ok(zeros) => format!("{}{}", self.digits, "0".repeat(zeros)),
            Err(_) => format!("0{}", &self.digits[..usize::try_from(whole_digits).unwrap_or(0)]),
        };
        let magnitude = i256::from_string(&text).expect("at most 76 digits");
        // The last digit is not zero, so the digits that are cut off are not zero either.
        let exact = shift >= 0;
        Floor::At(
            match (self.negative, exact) {
                (false, _) => magnitude,
                (true, true) => magnitude.wrapping_neg(),
                (true, false) => magnitude.wrapping_neg().wrapping_sub(i256::ONE),
            },
            exact,
        )
    }

    /// The nearest float; infinite if the number is out of range.
    pub(super) fn nearest<T: std::str::FromStr>(&self) -> Option<T> {
        self.text.parse().ok()
    }
}

/// An exponent; large ones saturate.
fn parse_exponent(text: &str) -> Option<i64> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    const MOST: i64 = 1 << 40;
    let value = digits.parse().unwrap_or(MOST).min(MOST);
    Some(if text.starts_with('-') { -value } else { value })
}

/// The floor of `seconds` and a fraction with this many decimal digits, in units of ten to the power of `-scale` seconds.
pub(super) fn floor_seconds(seconds: i64, fraction: &str, scale: usize) -> Floor {
    let kept: String = fraction.chars().chain(std::iter::repeat('0')).take(scale).collect();
    let exact = fraction.chars().skip(scale).all(|digit| digit == '0');
    let units = i128::from(seconds) * 10i128.pow(scale as u32) + kept.parse::<i128>().unwrap_or(0);
    Floor::At(i256::from_i128(units), exact)
}
