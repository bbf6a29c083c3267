//! Texts of single values: floats, decimals.

use arrow_buffer::i256;
use half::f16;

/// A float that is written with the fewest digits that parse back to it at its own width.
pub(crate) trait Float: Copy {
    /// Appends a finite value.
    fn write_finite(self, out: &mut Vec<u8>);
    /// The value as float64, which is exact.
    fn widen(self) -> f64;
}

impl Float for f64 {
    fn write_finite(self, out: &mut Vec<u8>) {
        append(zmij::Buffer::new().format_finite(self), self.widen(), out);
    }

    fn widen(self) -> f64 {
        self
    }
}

impl Float for f32 {
    fn write_finite(self, out: &mut Vec<u8>) {
        append(zmij::Buffer::new().format_finite(self), self.widen(), out);
    }

    fn widen(self) -> f64 {
        f64::from(self)
    }
}

impl Float for f16 {
    /// The shortest text of 1 to 5 significant digits (5 always suffice) that rounds back to the same
    /// float16.
    fn write_finite(self, out: &mut Vec<u8>) {
        let exact = self.to_f64();
        for digits in 0..5 {
            let text = format!("{exact:.digits$e}");
            if let Ok(value) = text.parse::<f64>()
                && f16::from_f64(value).to_bits() == self.to_bits()
            {
                // The float64 nearest to so few digits is printed with these digits.
                return value.write_finite(out);
            }
        }
        exact.write_finite(out);
    }

    fn widen(self) -> f64 {
        self.to_f64()
    }
}

/// Appends the text of a value; an exponent is written without a plus sign.
fn append(text: &str, value: f64, out: &mut Vec<u8>) {
    // Texts of smaller ones have none, and are not searched.
    let parts = if value.abs() >= 1e12 { text.split_once('+') } else { None };
    let (start, end) = parts.unwrap_or((text, ""));
    out.extend_from_slice(start.as_bytes());
    out.extend_from_slice(end.as_bytes());
}

/// The text of a float that is not finite.
pub(crate) fn special_float(value: f64) -> Option<&'static str> {
    if value.is_nan() {
        Some("NaN")
    } else if value.is_infinite() {
        Some(if value > 0.0 { "Infinity" } else { "-Infinity" })
    } else {
        None
    }
}

/// Appends a decimal whose digits are `digits` (perhaps with a sign) and whose last `scale` digits are its fraction.
pub(crate) fn write_decimal(out: &mut Vec<u8>, digits: &str, scale: i8) {
    let digits = match digits.strip_prefix('-') {
        Some(digits) => {
            out.push(b'-');
            digits
        }
        None => digits,
    }
    .as_bytes();
    if scale <= 0 {
        out.extend_from_slice(digits);
        if digits != b"0" {
            out.extend((scale..0).map(|_| b'0'));
        }
        return;
    }
    let scale = usize::from(scale.unsigned_abs());
    match digits.split_at_checked(digits.len().wrapping_sub(scale)) {
        Some((whole, fraction)) if !whole.is_empty() => {
            out.extend_from_slice(whole);
            out.push(b'.');
            out.extend_from_slice(fraction);
        }
        _ => {
            out.extend_from_slice(b"0.");
            out.extend((digits.len()..scale).map(|_| b'0'));
            out.extend_from_slice(digits);
        }
    }
}

/// The digits (as an integer) of a decimal text at `scale`; `None` if it is not a decimal or does not fit exactly.
pub(crate) fn parse_decimal(text: &str, scale: i8) -> Option<i256> {
    let (negative, unsigned) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
    let all_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let sound = !whole.is_empty() && unsigned.len() <= 256 && all_digits(whole) && all_digits(fraction);
    if !sound || unsigned.ends_with('.') {
        return None;
    }
    let mut digits = whole.to_owned();
    let wanted = usize::try_from(scale).unwrap_or(0);
    if fraction.len() > wanted && fraction.get(wanted..)?.bytes().any(|byte| byte != b'0') {
        return None;
    }
    digits.extend(fraction.chars().chain(std::iter::repeat('0')).take(wanted));
    // A negative scale: the last digits are zeros that are not stored.
    let dropped = usize::from((-scale.min(0)).unsigned_abs());
    if dropped > 0 && digits.trim_start_matches('0').is_empty() {
        return Some(i256::ZERO);
    }
    let (kept, zeros) = digits.split_at_checked(digits.len().checked_sub(dropped)?)?;
    if zeros.bytes().any(|byte| byte != b'0') {
        return None;
    }
    let kept = kept.trim_start_matches('0');
    let value = if kept.is_empty() { i256::ZERO } else { i256::from_string(kept)? };
    Some(if negative { value.wrapping_neg() } else { value })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn text(write: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        write(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn floats_are_shortest_at_their_own_width() {
        assert_eq!(text(|out| 0.1f64.write_finite(out)), "0.1");
        assert_eq!(text(|out| 0.1f32.write_finite(out)), "0.1");
        assert_eq!(text(|out| (-0.0f64).write_finite(out)), "-0.0");
        assert_eq!(text(|out| 1e300f64.write_finite(out)), "1e300");
        assert_eq!(text(|out| 5e-324f64.write_finite(out)), "5e-324");
        assert_eq!(text(|out| 1e15f64.write_finite(out)), "1000000000000000.0");
        assert_eq!(text(|out| (-1e16f64).write_finite(out)), "-1e16");
        assert_eq!(text(|out| 1.5e23f64.write_finite(out)), "1.5e23");
        assert_eq!(text(|out| 0.00001f64.write_finite(out)), "0.00001");
        assert_eq!(text(|out| 1e-6f64.write_finite(out)), "1e-6");
        assert_eq!(text(|out| 1e12f32.write_finite(out)), "1000000000000.0");
        assert_eq!(text(|out| 1e13f32.write_finite(out)), "1e13");
        assert_eq!(text(|out| 3.0f32.write_finite(out)), "3.0");
        assert_eq!(text(|out| f16::from_f32(0.1).write_finite(out)), "0.1");
        assert_eq!(text(|out| f16::MAX.write_finite(out)), "65500.0");
        assert_eq!(text(|out| f16::NEG_ZERO.write_finite(out)), "-0.0");
    }

    proptest! {
        /// An independent implementation, also of ties between two shortest texts.
        #[test]
        fn floats_are_those_of_ryu(bits: u64, digits in -100_000_000i64..100_000_000, power in -30..30) {
            let wide: f64 = format!("{digits}e{power}").parse().unwrap();
            for value in [f64::from_bits(bits), wide].into_iter().filter(|value| value.is_finite()) {
                let expected = ryu::Buffer::new().format_finite(value).to_owned();
                prop_assert_eq!(text(|out| value.write_finite(out)), expected);
            }
            for value in [f32::from_bits(bits as u32), wide as f32].into_iter().filter(|value| value.is_finite()) {
                let expected = ryu::Buffer::new().format_finite(value).to_owned();
                prop_assert_eq!(text(|out| value.write_finite(out)), expected);
            }
        }
    }

    #[test]
    fn every_half_comes_back() {
        for bits in 0..=u16::MAX {
            let half = f16::from_bits(bits);
            if half.is_finite() {
                let value: f64 = text(|out| half.write_finite(out)).parse().unwrap();
                assert_eq!(f16::from_f64(value).to_bits(), bits);
            }
        }
    }

    #[test]
    fn decimals_come_back() {
        for (digits, scale, expected) in [
            ("12345", 2, "123.45"),
            ("-5", 3, "-0.005"),
            ("5", 0, "5"),
            ("12", -2, "1200"),
            ("0", -2, "0"),
            ("-100", 2, "-1.00"),
            ("0", 2, "0.00"),
        ] {
            let written = text(|out| write_decimal(out, digits, scale));
            assert_eq!(written, expected);
            assert_eq!(parse_decimal(&written, scale).unwrap().to_string(), digits);
        }
        assert_eq!(parse_decimal("1.5", 2).unwrap().to_string(), "150");
        assert_eq!(parse_decimal("1.500", 2).unwrap().to_string(), "150");
        for (bad, scale) in
            [("", 0), ("1.", 1), (".5", 1), ("1.234", 2), ("1250", -2), ("1e3", 0), ("+1", 0), ("-", 0)]
        {
            assert_eq!(parse_decimal(bad, scale), None, "{bad}");
        }
    }
}
