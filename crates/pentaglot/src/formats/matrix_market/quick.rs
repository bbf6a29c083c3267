//! Numbers as they are usually written, eight digits at a time.
//!
//! The functions here read what files mostly have: numbers of a usual length, one blank between them, a newline after
//! the last. For anything else they return `None`, and [`Scanner`](super::number_text::Scanner) reads the line, so that one place
//! decides what is an error. What they do return is what the scanner would.
//!
//! Eight characters are one 64-bit word, with the first in the lowest byte. A digit xor `'0'` is 0 to 9; adding `0x76` to any
//! larger byte sets its top bit, so that the number of digits before the first other character is a count of trailing zeros.
//! Shifted to the top of the word, with zeros in front, they become a number by adding neighbours three times: pairs, groups of
//! four, all eight. No step depends on how many digits there are, which a processor could not predict.

use super::decimal;

/// The powers of ten that fit.
#[allow(clippy::indexing_slicing, reason = "runs when this crate is compiled")]
const TENS: [u64; 20] = {
    let mut tens = [1; 20];
    let mut power = 1;
    while power < 20 {
        tens[power] = tens[power - 1] * 10;
        power += 1;
    }
    tens
};

/// The digits at the start of a word, as a number, and how many there are; the number of no digits is arbitrary.
#[inline(always)]
fn digits(word: u64) -> (u64, usize) {
    const EACH: u64 = 0x0101_0101_0101_0101;
    let low = word ^ (0x30 * EACH);
    // A carry changes only bytes after the first that is not a digit.
    let others = (low.wrapping_add(0x76 * EACH) | low) & (0x80 * EACH);
    let bits = others.trailing_zeros() & !7;
    let aligned = low.wrapping_shl(64 - bits);
    let pairs = aligned.wrapping_mul(10).wrapping_add(aligned >> 8);
    let fours = (pairs & 0x0000_00FF_0000_00FF).wrapping_mul(0x000F_4240_0000_0064);
    let rest = ((pairs >> 16) & 0x0000_00FF_0000_00FF).wrapping_mul(0x0000_2710_0000_0001);
    (fours.wrapping_add(rest) >> 32, bits as usize / 8)
}

#[inline(always)]
fn word(text: &[u8], at: usize) -> Option<u64> {
    text.get(at..at + 8)?.first_chunk().copied().map(u64::from_le_bytes)
}

/// The place after a blank.
#[inline(always)]
pub(super) fn blank(text: &[u8], at: usize) -> Option<usize> {
    (*text.get(at)? == b' ').then_some(at + 1)
}

/// The place after a line end.
#[inline(always)]
pub(super) fn line_end(text: &[u8], at: usize) -> Option<usize> {
    match *text.get(at)? {
        b'\n' => Some(at + 1),
        b'\r' if *text.get(at + 1)? == b'\n' => Some(at + 2),
        _ => None,
    }
}

/// A number of 1 to 15 digits, and where it ends.
#[inline(always)]
pub(super) fn unsigned(text: &[u8], at: usize) -> Option<(u64, usize)> {
    let (value, count) = digits(word(text, at)?);
    match count {
        0 => None,
        1..8 => Some((value, at + count)),
        _ => {
            let (low, more) = digits(word(text, at + 8)?);
            // No digits have an arbitrary number, times one.
            let low = if more == 0 { 0 } else { low };
            (more < 8).then_some((value * TENS.get(more)? + low, at + 8 + more))
        }
    }
}

/// The number at the start of the previous line, which the next line often has too.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Previous {
    /// The bytes of the word that are the number and the blank after it.
    mask: u64,
    bytes: u64,
    value: u64,
    length: usize,
}

impl Previous {
    /// A number of 1 to 15 digits and a blank; also returns where they end.
    #[inline(always)]
    pub(super) fn unsigned(&mut self, text: &[u8], at: usize) -> Option<(u64, usize)> {
        let word = word(text, at)?;
        // Where it ends is then known before its digits are looked at.
        if word & self.mask == self.bytes && self.mask != 0 {
            return Some((self.value, at + self.length));
        }
        let (value, end) = unsigned(text, at)?;
        let end = blank(text, end)?;
        let length = end - at;
        if length <= 8 {
            let mask = u64::MAX >> (64 - 8 * length);
            *self = Previous { mask, bytes: word & mask, value, length };
        }
        Some((value, end))
    }
}

/// A number of 1 to 15 digits, perhaps with a minus sign, and where it ends.
#[inline(always)]
pub(super) fn signed(text: &[u8], at: usize) -> Option<(i64, usize)> {
    let is_negative = *text.get(at)? == b'-';
    let (value, end) = unsigned(text, at + usize::from(is_negative))?;
    let value = i64::try_from(value).ok()?;
    Some((if is_negative { -value } else { value }, end))
}

/// A decimal of at most 19 digits, perhaps with a minus sign, a fraction and an exponent, and where it ends.
#[inline(always)]
pub(super) fn float(text: &[u8], at: usize) -> Option<(f64, usize)> {
    let is_negative = *text.get(at)? == b'-';
    let start = at + usize::from(is_negative);
    // Most have one digit before the point.
    let (mut mantissa, mut at) = match text.get(start..start + 2)? {
        [digit @ b'0'..=b'9', b'.'] => (u64::from(digit - b'0'), start + 1),
        _ => unsigned(text, start)?,
    };
    let mut power = 0;
    if *text.get(at)? == b'.' {
        let whole = if mantissa == 0 { 0 } else { at - start };
        let (fraction, count) = fraction(text, at + 1)?;
        if whole + count > 19 {
            return None;
        }
        mantissa = mantissa * TENS.get(count)? + fraction;
        power = -(count as i64);
        at += 1 + count;
    }
    if let b'e' | b'E' = *text.get(at)? {
        let sign = *text.get(at + 1)?;
        let first = at + 1 + usize::from(matches!(sign, b'-' | b'+'));
        let (exponent, end) = exponent(text, first)?;
        power += if sign == b'-' { -exponent } else { exponent };
        at = end;
    }
    let value = decimal::to_float(mantissa, power)?;
    Some((if is_negative { -value } else { value }, at))
}

/// An exponent of one or two digits, and where it ends.
#[inline(always)]
fn exponent(text: &[u8], at: usize) -> Option<(i64, usize)> {
    match text.get(at..at + 3)? {
        [b'0'..=b'9', b'0'..=b'9', b'0'..=b'9'] => None,
        [tens @ b'0'..=b'9', digit @ b'0'..=b'9', _] => {
            Some((i64::from(tens - b'0') * 10 + i64::from(digit - b'0'), at + 2))
        }
        [digit @ b'0'..=b'9', ..] => Some((i64::from(digit - b'0'), at + 1)),
        _ => None,
    }
}

/// 1 to 19 digits after a point, and how many they are.
#[inline(always)]
fn fraction(text: &[u8], at: usize) -> Option<(u64, usize)> {
    let (first, count) = digits(word(text, at)?);
    if count < 8 {
        return (count > 0).then_some((first, count));
    }
    let (second, more) = digits(word(text, at + 8)?);
    if more < 8 {
        let second = if more == 0 { 0 } else { second };
        return Some((first * TENS.get(more)? + second, 8 + more));
    }
    let (third, more) = digits(word(text, at + 16)?);
    if more > 3 {
        return None;
    }
    let third = if more == 0 { 0 } else { third };
    Some(((first * 100_000_000 + second) * TENS.get(more)? + third, 16 + more))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::number_text::Scanner;
    use super::*;

    /// What the scanner says of a text, if it is one number.
    fn scanned<T>(text: &[u8], scan: impl FnOnce(&mut Scanner<'_>) -> Option<T>) -> Option<(T, usize)> {
        let mut scanner = Scanner::new(text);
        Some((scan(&mut scanner)?, scanner.at()))
    }

    /// Compares with the scanner, where the number ends with a blank. Returns whether all three were read here.
    fn check(number: &str) -> bool {
        let line = format!("{number} {}\n", "7".repeat(40));
        let text = line.as_bytes();
        let ends = |end: usize| text.get(end) == Some(&b' ');
        let whole = unsigned(text, 0).filter(|(_, end)| ends(*end));
        assert!(whole.is_none() || whole == scanned(text, |scanner| scanner.unsigned()), "{number}");
        let signed = signed(text, 0).filter(|(_, end)| ends(*end));
        assert!(signed.is_none() || signed == scanned(text, |scanner| scanner.signed()), "{number}");
        let float = float(text, 0).filter(|(_, end)| ends(*end)).map(|(value, end)| (value.to_bits(), end));
        let expected = number.parse::<f64>().ok().map(|value| (value.to_bits(), number.len()));
        assert!(float.is_none() || float == expected, "{number}");
        whole.is_some() && signed.is_some() && float.is_some()
    }

    #[test]
    fn numbers_of_a_usual_length_are_read() {
        for count in 1..=15 {
            assert!(check(&"9".repeat(count)) && check(&"0".repeat(count)));
            assert!(check(&format!("{:0count$}", 7)));
        }
        for text in ["1234567890123456", "", "-", "+1", "x", "1x", "18446744073709551616"] {
            assert!(!check(text), "{text}");
        }
        // What is not a digit, and the bytes beside those that are.
        for byte in 0..=255u8 {
            let text = [b'1', byte, b'2', b' ', b' ', b' ', b' ', b' ', b' '];
            let expected =
                if byte.is_ascii_digit() { (102 + 10 * u64::from(byte - b'0'), 3) } else { (1, 1) };
            assert_eq!(unsigned(&text, 0), Some(expected), "{byte}");
        }
    }

    #[test]
    fn floats_as_they_are_usually_written_are_read() {
        let read = |text: &str| {
            check(text);
            float(format!("{text}\n{}", " ".repeat(24)).as_bytes(), 0).filter(|(_, end)| *end == text.len())
        };
        for text in [
            "0.1",
            "-2.469329605194156E-1",
            "0.24693296051941561",
            "123456789.12345",
            "-0.0",
            "1e22",
            "1.5e+10",
            "0.0000000000000000001",
            "999999999999999.9999",
        ] {
            assert_eq!(read(text).map(|(value, _)| value), text.parse().ok(), "{text}");
        }
        for text in [
            "1.",
            ".5",
            "+1.5",
            "nan",
            "inf",
            "1e",
            "1e-",
            "1e400",
            "1e99999",
            "0.00000000000000000001",
            "--1",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
    }

    #[test]
    fn text_that_ends_early_is_left_to_the_scanner() {
        let line = b"12345678901 0.1234567890123456789e-5\n";
        for end in 0..line.len() {
            let text = line.get(..end).unwrap();
            assert!(unsigned(text, 0).is_none_or(|(_, at)| at < end));
            assert!(float(text, 12).is_none_or(|(_, at)| at <= end));
        }
    }

    proptest! {
        #[test]
        fn numbers_are_what_the_scanner_says(text in "-?[0-9]{1,17}(\\.[0-9]{0,21})?([eE][-+]?[0-9]{1,5})?x?") {
            check(&text);
        }

        #[test]
        fn any_text_is_what_the_scanner_says(text in "[-+.eE0-9x]{1,30}") {
            check(&text);
        }

        #[test]
        fn every_float_is_what_the_standard_library_says(bits: u64, value in -1e6..1e6f64, digits in 0usize..20) {
            for value in [value, f64::from_bits(bits)] {
                check(&format!("{value:?}"));
                check(&format!("{value:.digits$e}"));
                check(&format!("{value:.digits$}"));
            }
        }
    }
}
