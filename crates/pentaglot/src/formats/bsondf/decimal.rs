//! The text of a BSON decimal128 (IEEE 754-2008, binary integer decimal): read and written, never computed with.

const EXPONENT_BIAS: i32 = 6176;
const MAX_DIGITS: usize = 34;
/// 10 to the power of 34, less 1.
const MAX_COEFFICIENT: u128 = 9_999_999_999_999_999_999_999_999_999_999_999;

/// The text of the bits.
pub(super) fn print(bits: u128) -> String {
    let sign = if bits >> 127 == 1 { "-" } else { "" };
    let combination = (bits >> 122) & 0x1f;
    if combination == 0x1f {
        return "NaN".to_owned();
    }
    if combination == 0x1e {
        return format!("{sign}Infinity");
    }
    // With 11 in front, the coefficient is larger than any of 34 digits: that is 0.
    let (biased, coefficient) = match combination >> 3 {
        3 => ((bits >> 111) & 0x3fff, 0),
        _ => ((bits >> 113) & 0x3fff, bits & ((1 << 113) - 1)),
    };
    let coefficient = if coefficient > MAX_COEFFICIENT { 0 } else { coefficient };
    let exponent = i32::try_from(biased).unwrap_or(0) - EXPONENT_BIAS;
    let digits = coefficient.to_string();
    let count = i32::try_from(digits.len()).unwrap_or(0);
    let scientific = exponent + count - 1;
    if exponent > 0 || scientific < -6 {
        let (first, rest) = digits.split_at(1);
        let point = if rest.is_empty() { "" } else { "." };
        return format!("{sign}{first}{point}{rest}E{scientific:+}");
    }
    if exponent == 0 {
        return format!("{sign}{digits}");
    }
    let places = usize::try_from(-exponent).unwrap_or(0);
    let padded = format!("{digits:0>width$}", width = places + 1);
    let (whole, fraction) = padded.split_at(padded.len() - places);
    format!("{sign}{whole}.{fraction}")
}

/// The bits of a text; `None` if it is not a decimal of at most 34 digits.
pub(super) fn parse(text: &str) -> Option<u128> {
    let (sign, rest) = match text.strip_prefix('-') {
        Some(rest) => (1u128 << 127, rest),
        None => (0, text.strip_prefix('+').unwrap_or(text)),
    };
    match rest.to_ascii_lowercase().as_str() {
        "nan" => return Some(0x1f << 122),
        "infinity" | "inf" => return Some(sign | 0x1e << 122),
        _ => {}
    }
    let (mantissa, exponent) = match rest.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
        None => (rest, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{fraction}");
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let digits = digits.trim_start_matches('0');
    if digits.len() > MAX_DIGITS {
        return None;
    }
    let mut coefficient: u128 = if digits.is_empty() { 0 } else { digits.parse().ok()? };
    let mut exponent = exponent.checked_sub(i32::try_from(fraction.len()).ok()?)?;
    // An exponent past the largest may be made of zeros.
    while exponent > 6111 && coefficient > 0 && coefficient <= MAX_COEFFICIENT / 10 {
        (coefficient, exponent) = (coefficient * 10, exponent - 1);
    }
    let biased =
        u128::try_from(exponent.checked_add(EXPONENT_BIAS)?).ok().filter(|biased| *biased < 0x3000)?;
    Some(sign | biased << 113 | coefficient)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_print_and_parse_as_the_bson_crate_does() {
        for text in [
            "0",
            "-0",
            "1",
            "-1.5",
            "0.001234",
            "0.0000001",
            "1E+3",
            "1.234E-9",
            "NaN",
            "Infinity",
            "-Infinity",
            "9999999999999999999999999999999999",
            "1E-6176",
            "9.999999999999999999999999999999999E+6144",
        ] {
            let theirs: bson::Decimal128 = text.parse().unwrap();
            let bits = u128::from_le_bytes(theirs.bytes());
            assert_eq!(parse(text), Some(bits), "{text}");
            assert_eq!(print(bits), theirs.to_string(), "{text}");
        }
        for text in ["", ".", "1e", "x", "12345678901234567890123456789012345", "1E+99999"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
