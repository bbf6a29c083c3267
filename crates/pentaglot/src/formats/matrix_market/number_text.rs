//! Numbers in text: a scanner that does not cross the end of a line and rounds correctly.
//!
//! Decimals of at most 19 digits and moderate powers of ten are computed here ([`decimal`]). The standard library parses
//! all others.

#![allow(
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    reason = "the position never passes the end, and there are at most 19 digits"
)]

use super::decimal;

/// A position in text that is read token by token.
#[derive(Debug, Clone)]
pub(crate) struct Scanner<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Scanner<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Scanner { bytes, at: 0 }
    }

    /// Goes to an offset within the text.
    #[inline]
    pub(crate) fn go_to(&mut self, at: usize) {
        self.at = at.min(self.bytes.len());
    }

    /// The offset of the next byte.
    #[inline]
    pub(crate) fn at(&self) -> usize {
        self.at
    }

    #[inline]
    pub(crate) fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    /// Skips spaces, tabs and carriage returns.
    #[inline]
    pub(crate) fn blanks(&mut self) {
        while let Some(b' ' | b'\t' | b'\r') = self.peek() {
            self.at += 1;
        }
    }

    /// Skips blanks, blank lines and lines that begin with `%`; returns whether anything is left.
    #[inline]
    pub(crate) fn next_line(&mut self) -> bool {
        loop {
            self.blanks();
            match self.peek() {
                None => return false,
                Some(b'\n') => self.at += 1,
                Some(b'%') => self.skip_line(),
                Some(_) => return true,
            }
        }
    }

    /// Skips the rest of the line and its newline.
    pub(crate) fn skip_line(&mut self) {
        let rest = &self.bytes[self.at..];
        self.at += rest.iter().position(|byte| *byte == b'\n').map_or(rest.len(), |end| end + 1);
    }

    /// Skips blanks and the end of the line; `false` if something else comes first.
    #[inline]
    pub(crate) fn line_end(&mut self) -> bool {
        self.blanks();
        match self.peek() {
            None => true,
            Some(b'\n') => {
                self.at += 1;
                true
            }
            Some(_) => false,
        }
    }

    /// The next token, without reading it.
    pub(crate) fn token(&self) -> &'a [u8] {
        let rest = &self.bytes[self.at.min(self.bytes.len())..];
        let end = rest.iter().position(|byte| matches!(byte, b' ' | b'\t' | b'\r' | b'\n'));
        &rest[..end.unwrap_or(rest.len())]
    }

    #[inline]
    fn at_token_end(&self) -> bool {
        matches!(self.peek(), None | Some(b' ' | b'\t' | b'\r' | b'\n'))
    }

    /// An unsigned integer, after blanks. The scanner does not move if there is none.
    #[inline]
    pub(crate) fn unsigned(&mut self) -> Option<u64> {
        self.blanks();
        let start = self.at;
        if self.peek() == Some(b'+') {
            self.at += 1;
        }
        let digits = self.at;
        let mut value = 0u64;
        while let Some(byte @ b'0'..=b'9') = self.peek() {
            let digit = u64::from(byte - b'0');
            // Nineteen digits always fit.
            value = if self.at - digits < 19 {
                value * 10 + digit
            } else {
                match value.checked_mul(10).and_then(|value| value.checked_add(digit)) {
                    Some(value) => value,
                    None => {
                        self.at = start;
                        return None;
                    }
                }
            };
            self.at += 1;
        }
        if self.at == digits || !self.at_token_end() {
            self.at = start;
            return None;
        }
        Some(value)
    }

    /// An integer, after blanks.
    #[inline]
    pub(crate) fn signed(&mut self) -> Option<i64> {
        self.blanks();
        if self.peek() != Some(b'-') {
            let start = self.at;
            let value = self.unsigned().and_then(|value| i64::try_from(value).ok());
            if value.is_none() {
                self.at = start;
            }
            return value;
        }
        let start = self.at;
        self.at += 1;
        let digits = matches!(self.peek(), Some(b'0'..=b'9'));
        let value = self.unsigned().filter(|_| digits).and_then(|value| 0i64.checked_sub_unsigned(value));
        if value.is_none() {
            self.at = start;
        }
        value
    }

    /// A float, after blanks, correctly rounded.
    #[inline]
    pub(crate) fn float(&mut self) -> Option<f64> {
        self.blanks();
        let start = self.at;
        if let Some(value) = self.fast_float() {
            return Some(value);
        }
        self.at = start;
        let token = self.token();
        let value = std::str::from_utf8(token).ok()?.parse().ok()?;
        self.at += token.len();
        Some(value)
    }

    #[inline]
    fn fast_float(&mut self) -> Option<f64> {
        let negative = match self.peek()? {
            b'-' => {
                self.at += 1;
                true
            }
            b'+' => {
                self.at += 1;
                false
            }
            _ => false,
        };
        let mut mantissa = 0u64;
        let whole = self.at;
        while let Some(byte @ b'0'..=b'9') = self.peek() {
            mantissa = mantissa.wrapping_mul(10).wrapping_add(u64::from(byte - b'0'));
            self.at += 1;
        }
        let mut digits = self.at - whole;
        let mut exponent = 0i64;
        if self.peek() == Some(b'.') {
            self.at += 1;
            let fraction = self.at;
            while let Some(byte @ b'0'..=b'9') = self.peek() {
                mantissa = mantissa.wrapping_mul(10).wrapping_add(u64::from(byte - b'0'));
                self.at += 1;
            }
            digits += self.at - fraction;
            exponent -= (self.at - fraction) as i64;
        }
        // More digits may have overflowed.
        if digits == 0 || digits > 19 {
            return None;
        }
        if let Some(b'e' | b'E') = self.peek() {
            self.at += 1;
            let minus = match self.peek()? {
                b'-' => {
                    self.at += 1;
                    true
                }
                b'+' => {
                    self.at += 1;
                    false
                }
                _ => false,
            };
            let first = self.at;
            let mut power = 0i64;
            while let Some(byte @ b'0'..=b'9') = self.peek() {
                power = power * 10 + i64::from(byte - b'0');
                self.at += 1;
                if power > 400 {
                    return None;
                }
            }
            if self.at == first {
                return None;
            }
            exponent += if minus { -power } else { power };
        }
        if !self.at_token_end() {
            return None;
        }
        let value = decimal::to_float(mantissa, exponent)?;
        Some(if negative { -value } else { value })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn float(text: &str) -> Option<u64> {
        let mut scanner = Scanner::new(text.as_bytes());
        let value = scanner.float()?;
        (scanner.at() == text.len()).then_some(value.to_bits())
    }

    #[test]
    fn floats_are_what_the_standard_library_says() {
        for text in [
            "0",
            "-0",
            "-0.0",
            "+1.5",
            ".5",
            "5.",
            "1e5",
            "1E-5",
            "1e22",
            "1e23",
            "1e-22",
            "9007199254740993",
            "9007199254740992",
            "123456789012345678901234567890",
            "4.9e-324",
            "1e400",
            "-1e-400",
            "inf",
            "-Infinity",
            "0.000000000000000000000000000001",
            "2.2250738585072011e-308",
            "00000000000000000000001",
            "1e0000000000005",
        ] {
            assert_eq!(float(text), Some(text.parse::<f64>().unwrap().to_bits()), "{text}");
        }
        for text in ["", "-", ".", "e5", "1e", "1e+", "1x", "1.2.3", "0x10", "1d5", "--1", "1_0"] {
            assert_eq!(float(text), None, "{text}");
        }
    }

    #[test]
    fn whole_numbers_end_where_their_type_ends() {
        let signed = |text: &str| Scanner::new(text.as_bytes()).signed();
        assert_eq!(signed("9223372036854775807"), Some(i64::MAX));
        assert_eq!(signed("9223372036854775808"), None);
        assert_eq!(signed("-9223372036854775808"), Some(i64::MIN));
        assert_eq!(signed("-9223372036854775809"), None);
        assert_eq!((signed("-+1"), signed("- 1"), signed("1.0"), signed("+7")), (None, None, None, Some(7)));
        let unsigned = |text: &str| Scanner::new(text.as_bytes()).unsigned();
        assert_eq!(unsigned("18446744073709551615"), Some(u64::MAX));
        assert_eq!(unsigned("18446744073709551616"), None);
        assert_eq!(unsigned("00000000000000000000000000012"), Some(12));
    }

    proptest! {
        #[test]
        fn every_float_reads_back(bits: u64, digits in 0usize..20) {
            let value = f64::from_bits(bits);
            prop_assume!(value.is_finite());
            for text in [format!("{value:?}"), format!("{value:e}"), format!("{value:.digits$e}")] {
                prop_assert_eq!(float(&text), Some(text.parse::<f64>().unwrap().to_bits()));
            }
        }
    }
}
