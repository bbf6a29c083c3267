//! Numbers: integers are exact, and a float is the value of its type that is nearest to the text.

use std::io::Read;

use super::Scanner;
use crate::error::{Error, Result};

/// Powers of ten that are exact as a double.
const EXACT_POWERS: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18,
    1e19, 1e20, 1e21, 1e22,
];

/// The extent of a number's text.
struct Text {
    /// How many bytes it takes.
    len: usize,
    /// Whether it has neither fraction nor exponent.
    whole: bool,
}

/// The number at the start of `bytes` by the grammar of JSON; `None` if there is none.
fn number_text(bytes: &[u8]) -> Option<Text> {
    fn digits(bytes: &[u8]) -> usize {
        bytes.iter().take_while(|byte| byte.is_ascii_digit()).count()
    }
    let mut len = usize::from(bytes.first() == Some(&b'-'));
    match bytes.get(len)? {
        b'0' => len += 1,
        b'1'..=b'9' => len += digits(bytes.get(len..)?),
        _ => return None,
    }
    let mut whole = true;
    if bytes.get(len) == Some(&b'.') {
        let fraction = digits(bytes.get(len + 1..)?);
        if fraction == 0 {
            return None;
        }
        len += 1 + fraction;
        whole = false;
    }
    if let Some(b'e' | b'E') = bytes.get(len) {
        len += 1 + usize::from(matches!(bytes.get(len + 1), Some(b'+' | b'-')));
        let exponent = digits(bytes.get(len..)?);
        if exponent == 0 {
            return None;
        }
        len += exponent;
        whole = false;
    }
    // `01`, `1x` and `1.2.3` are not numbers followed by something else.
    match bytes.get(len) {
        Some(byte) if is_number_byte(*byte) => None,
        _ => Some(Text { len, whole }),
    }
}

fn is_number_byte(byte: u8) -> bool {
    matches!(byte, b'0'..=b'9' | b'+' | b'-' | b'.' | b'a'..=b'z' | b'A'..=b'Z' | b'_')
}

/// The value of up to 19 digits with a fraction and an exponent, if double arithmetic is exact.
///
/// With a mantissa below 2^53 and a power of ten up to 10^22, both are exact doubles, so their product or quotient is
/// the correctly rounded result (Clinger 1990).
#[inline]
fn exact_float(text: &[u8]) -> Option<f64> {
    let (negative, mut rest) = match text.split_first() {
        Some((b'-', rest)) => (true, rest),
        _ => (false, text),
    };
    if rest.len() > 19 {
        return None;
    }
    let mut mantissa = 0u64;
    let mut power = 0i32;
    let mut fraction = 0;
    while let Some((byte, after)) = rest.split_first() {
        rest = after;
        match byte {
            b'0'..=b'9' => {
                mantissa = mantissa * 10 + u64::from(byte - b'0');
                power -= fraction;
            }
            b'.' => fraction = 1,
            _ => {
                power += std::str::from_utf8(rest).ok()?.parse::<i32>().ok()?;
                break;
            }
        }
    }
    if mantissa >= 1 << 53 {
        return None;
    }
    let exact = EXACT_POWERS.get(usize::try_from(power.unsigned_abs()).ok()?)?;
    #[expect(clippy::cast_precision_loss, reason = "below 2^53")]
    let value = if power < 0 { mantissa as f64 / exact } else { mantissa as f64 * exact };
    Some(if negative { -value } else { value })
}

/// The value of a text of few digits, perhaps with a fraction: exact for the reason given at [`exact_float`]. `None` for all other
/// text, also where it is a number.
#[inline]
pub(crate) fn short_decimal(text: &[u8]) -> Option<f64> {
    let (negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        _ => (false, text),
    };
    if digits.len() > 19 {
        return None;
    }
    let (mut mantissa, mut point) = (0u64, None);
    for (index, byte) in digits.iter().enumerate() {
        match byte.wrapping_sub(b'0') {
            digit @ 0..=9 => mantissa = mantissa * 10 + u64::from(digit),
            _ if *byte == b'.' && point.is_none() => point = Some(index),
            _ => return None,
        }
    }
    let (whole, fraction) = match point {
        Some(point) => (point, digits.len() - point - 1),
        None => (digits.len(), 0),
    };
    if whole == 0 || point.is_some() && fraction == 0 || mantissa >= 1 << 53 {
        return None;
    }
    #[expect(clippy::cast_precision_loss, reason = "below 2^53")]
    let value = mantissa as f64 / EXACT_POWERS.get(fraction)?;
    Some(if negative { -value } else { value })
}

impl<R: Read> Scanner<R> {
    /// The text of the next number, and whether it is an integer.
    fn number_token(&mut self) -> Result<(&str, bool)> {
        if !matches!(self.skip_space()?, Some(b'-' | b'0'..=b'9')) {
            return Err(self.wrong_type("a number"));
        }
        let run = loop {
            let run = self.rest().iter().take_while(|byte| is_number_byte(**byte)).count();
            if run < self.rest().len() || !self.more()? {
                break run;
            }
        };
        let bytes = self.rest().get(..run).unwrap_or_default();
        let Some(text) = number_text(bytes) else {
            let shown: String = String::from_utf8_lossy(bytes).chars().take(40).collect();
            return Err(Error::malformed("a number", format_args!("`{shown}`")).at(self.offset()));
        };
        self.window.advance(text.len);
        let bytes = self.window.before(text.len);
        // The grammar allows only ASCII.
        Ok((std::str::from_utf8(bytes).unwrap_or_default(), text.whole))
    }

    /// The text of the next number: all of its digits, as written.
    pub(crate) fn number(&mut self) -> Result<&str> {
        self.number_token().map(|(text, _)| text)
    }

    /// The next number, parsed from its text; it must be an integer if `whole` is set.
    fn parse<T: std::str::FromStr>(&mut self, whole: bool, expected: &str) -> Result<T> {
        self.skip_space()?;
        let offset = self.offset();
        let (text, is_whole) = self.number_token()?;
        if whole && !is_whole {
            return Err(Error::malformed(expected, format_args!("`{text}`")).at(offset).rule("mismatch"));
        }
        text.parse()
            .map_err(|_| Error::malformed(expected, format_args!("`{text}`")).at(offset).rule("range"))
    }

    /// Up to 18 digits in the window, and the byte after them; the caller has read the sign.
    #[inline]
    fn short_whole(&self, skip: usize) -> Option<(u64, usize)> {
        let rest = self.rest().get(skip..)?;
        let mut value = 0u64;
        for (index, byte) in rest.iter().enumerate().take(19) {
            let digit = byte.wrapping_sub(b'0');
            if digit > 9 {
                let leading_zero = index > 1 && rest.first() == Some(&b'0');
                let ends = !is_number_byte(*byte) && index > 0 && !leading_zero;
                return ends.then_some((value, skip + index));
            }
            value = value.wrapping_mul(10).wrapping_add(u64::from(digit));
        }
        None
    }

    /// A whole number in 64 unsigned bits.
    #[inline]
    pub(crate) fn u64(&mut self) -> Result<u64> {
        self.skip_space()?;
        if let Some((value, len)) = self.short_whole(0) {
            self.window.advance(len);
            return Ok(value);
        }
        self.parse(true, "a whole number 0..=18446744073709551615")
    }

    /// A whole number in 64 signed bits.
    #[inline]
    pub(crate) fn i64(&mut self) -> Result<i64> {
        let negative = self.skip_space()? == Some(b'-');
        if let Some((value, len)) = self.short_whole(usize::from(negative)) {
            self.window.advance(len);
            // At most 18 digits, so the sign bit is not set.
            let value = value.cast_signed();
            return Ok(if negative { -value } else { value });
        }
        self.parse(true, "a whole number -9223372036854775808..=9223372036854775807")
    }

    /// A whole number in 128 unsigned bits.
    pub(crate) fn u128(&mut self) -> Result<u128> {
        self.parse(true, "a whole number in 128 unsigned bits")
    }

    /// A whole number in 128 signed bits.
    pub(crate) fn i128(&mut self) -> Result<i128> {
        self.parse(true, "a whole number in 128 signed bits")
    }

    /// A number of few digits, without an exponent, that the window holds entirely: its value and its length.
    /// One pass, and exact for the reason given at [`exact_float`]; the slow path handles other numbers.
    #[inline]
    fn short_float(&self) -> Option<(f64, usize)> {
        let rest = self.rest();
        let sign = usize::from(rest.first() == Some(&b'-'));
        let digits = rest.get(sign..)?;
        let mut mantissa = 0u64;
        let mut point = None;
        for (index, byte) in digits.iter().enumerate().take(19) {
            let digit = byte.wrapping_sub(b'0');
            if digit <= 9 {
                mantissa = mantissa.wrapping_mul(10).wrapping_add(u64::from(digit));
            } else if *byte == b'.' && point.is_none() && index > 0 {
                point = Some(index);
            } else {
                let whole = point.unwrap_or(index);
                let fraction = index - point.map_or(index, |point| point + 1);
                let leading_zero = whole > 1 && digits.first() == Some(&b'0');
                let ends = !is_number_byte(*byte) && whole > 0 && !leading_zero;
                if !ends || (point.is_some() && fraction == 0) || mantissa >= 1 << 53 {
                    return None;
                }
                #[expect(clippy::cast_precision_loss, reason = "below 2^53")]
                let value = mantissa as f64 / EXACT_POWERS.get(fraction)?;
                return Some((if sign == 1 { -value } else { value }, sign + index));
            }
        }
        None
    }

    /// A number as the nearest float64; one out of range is an error.
    #[inline]
    pub(crate) fn f64(&mut self) -> Result<f64> {
        self.skip_space()?;
        if let Some((value, len)) = self.short_float() {
            self.window.advance(len);
            return Ok(value);
        }
        let offset = self.offset();
        let (text, _) = self.number_token()?;
        if let Some(value) = exact_float(text.as_bytes()) {
            return Ok(value);
        }
        match text.parse::<f64>() {
            Ok(value) if value.is_finite() => Ok(value),
            _ => Err(Error::malformed("a number in the range of float64", format_args!("`{text}`"))
                .at(offset)
                .rule("range")),
        }
    }

    /// A number as the nearest float32; one out of range is an error.
    pub(crate) fn f32(&mut self) -> Result<f32> {
        self.skip_space()?;
        let offset = self.offset();
        let (text, _) = self.number_token()?;
        // Not through float64, which would round twice.
        match text.parse::<f32>() {
            Ok(value) if value.is_finite() => Ok(value),
            _ => Err(Error::malformed("a number in the range of float32", format_args!("`{text}`"))
                .at(offset)
                .rule("range")),
        }
    }
}
