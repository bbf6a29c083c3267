//! Cells of JSON.

use super::{Integer, Wire, append};

/// Rows of JSON: arrays of cells with commas between them.
#[derive(Clone)]
pub(crate) struct Json<'a> {
    rest: &'a [u8],
    len: usize,
    /// Whether no comma comes before the next row.
    fresh: bool,
    /// Whether each row is a cell without brackets.
    bare: bool,
}

/// Powers of ten that are exact as a double.
const POWERS: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18,
    1e19, 1e20, 1e21, 1e22,
];

const ONES: u64 = 0x0101_0101_0101_0101;
const TOPS: u64 = 0x8080_8080_8080_8080;

impl<'a> Json<'a> {
    pub(crate) fn new(bytes: &'a [u8], fresh: bool) -> Self {
        Json { rest: bytes, len: bytes.len(), fresh, bare: false }
    }

    /// The elements of an array, each like a row of one cell.
    pub(crate) fn elements(bytes: &'a [u8], fresh: bool) -> Self {
        Json { bare: true, ..Json::new(bytes, fresh) }
    }

    /// Skips white space.
    #[inline(always)]
    fn space(&mut self) {
        if let Some(0..=b' ') = self.rest.first() {
            let spaces = self.rest.iter().take_while(|byte| matches!(byte, b' ' | b'\n' | b'\r' | b'\t'));
            self.rest = self.rest.get(spaces.count()..).unwrap_or_default();
        }
    }

    /// Skips this byte.
    #[inline(always)]
    fn byte(&mut self, byte: u8) -> Option<()> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        (*first == byte).then_some(())
    }
}

/// The digits at the start of eight bytes: their value and their number.
///
/// The plain version: `value = value * 10 + digit`, byte by byte. All at once: each byte of `word ^ 0x30…` is a digit,
/// and adding 0x76 sets its top bit if it is greater than 9 (a carry only reaches later bytes). The digits are shifted
/// so that leading zeros make them eight; then neighbours, pairs and groups of four are combined.
#[inline(always)]
fn eight_digits(bytes: &[u8; 8]) -> (u64, usize) {
    let digits = u64::from_le_bytes(*bytes) ^ (ONES * u64::from(b'0'));
    let others = (digits.wrapping_add(ONES * 0x76) | digits) & TOPS;
    let count = others.trailing_zeros() as usize / 8;
    // In two steps, since a shift by 64 bits overflows.
    let digits = digits << (32 - 4 * count) << (32 - 4 * count);
    let pairs = digits.wrapping_mul(10).wrapping_add(digits >> 8);
    let low = (pairs & 0x0000_00ff_0000_00ff).wrapping_mul(0x000f_4240_0000_0064);
    let high = (pairs >> 16 & 0x0000_00ff_0000_00ff).wrapping_mul(0x0000_2710_0000_0001);
    (low.wrapping_add(high) >> 32, count)
}

/// Powers of ten up to eight digits.
const TENS: [u64; 9] = [1, 10, 100, 1000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000];

/// The digits at the start of `bytes`, at most `most` of them, which is 24 or less; `None` if there are more.
#[inline(always)]
fn digits(bytes: &[u8; 24], mut value: u64, most: usize) -> Option<(u64, usize)> {
    let (words, _) = bytes.as_chunks::<8>();
    let mut len = 0;
    for word in words {
        let (more, count) = eight_digits(word);
        len += count;
        if len > most {
            return None;
        }
        value = value * TENS[count] + more;
        if count < 8 {
            return Some((value, len));
        }
    }
    None
}

/// The length of the number at the start of `bytes`, by the grammar of JSON.
fn number_len(bytes: &[u8]) -> Option<usize> {
    let digits = |from: usize| -> Option<usize> {
        let count = bytes.get(from..)?.iter().take_while(|byte| byte.is_ascii_digit()).count();
        (count > 0).then_some(from + count)
    };
    let sign = usize::from(bytes.first() == Some(&b'-'));
    let mut len = digits(sign)?;
    if bytes.get(sign) == Some(&b'0') && len > sign + 1 {
        return None;
    }
    if bytes.get(len) == Some(&b'.') {
        len = digits(len + 1)?;
    }
    if let Some(b'e' | b'E') = bytes.get(len) {
        let sign = usize::from(matches!(bytes.get(len + 1), Some(b'+' | b'-')));
        len = digits(len + 1 + sign)?;
    }
    // At the end of the bytes more digits may follow.
    (len < bytes.len()).then_some(len)
}

impl Json<'_> {
    /// A number of few digits as its digits, how many of them follow the point, and whether it is below 0.
    #[inline(always)]
    fn short_number(&self) -> Option<(u64, usize, bool, usize)> {
        let sign = usize::from(self.rest.first()? == &b'-');
        let first = self.rest.get(sign..)?.first_chunk::<24>()?;
        let (value, whole) = digits(first, 0, 19)?;
        if whole == 0 || (first[0] == b'0' && whole > 1) {
            return None;
        }
        let mut len = sign + whole;
        let mut fraction = 0;
        let mut mantissa = value;
        if self.rest.get(len) == Some(&b'.') {
            let behind = self.rest.get(len + 1..)?.first_chunk::<24>()?;
            (mantissa, fraction) = digits(behind, value, 19 - whole)?;
            if fraction == 0 {
                return None;
            }
            len += 1 + fraction;
        }
        let more = matches!(self.rest.get(len), Some(b'e' | b'E'));
        (!more).then_some((mantissa, fraction, sign == 1, len))
    }

    /// Any number, parsed by the standard library.
    #[cold]
    fn long_number<T: std::str::FromStr>(&mut self) -> Option<T> {
        let (text, rest) = self.rest.split_at_checked(number_len(self.rest)?)?;
        self.rest = rest;
        std::str::from_utf8(text).ok()?.parse().ok()
    }
}

/// The length of the string whose opening quote was read; `None` unless it is plain characters up to a quote.
///
/// The plain version: the first quote, if no backslash or control character comes before it. Eight bytes at a time:
/// in `word ^ pattern` the byte searched for is zero; subtracting one from each byte sets the top bit of a zero
/// byte (borrows only reach later bytes).
#[inline(always)]
fn plain_len(bytes: &[u8]) -> Option<usize> {
    let (words, _) = bytes.as_chunks::<8>();
    for (index, word) in words.iter().enumerate() {
        let word = u64::from_le_bytes(*word);
        let quote = word ^ (ONES * u64::from(b'"'));
        let slash = word ^ (ONES * u64::from(b'\\'));
        let stops = (quote.wrapping_sub(ONES) & !quote)
            | (slash.wrapping_sub(ONES) & !slash)
            | (word.wrapping_sub(ONES * 0x20) & !word);
        let stops = stops & TOPS;
        if stops != 0 {
            let len = index * 8 + stops.trailing_zeros() as usize / 8;
            return (bytes.get(len) == Some(&b'"')).then_some(len);
        }
    }
    None
}

impl Wire for Json<'_> {
    fn len(&self) -> usize {
        self.len
    }

    #[inline(always)]
    fn position(&self) -> usize {
        self.len - self.rest.len()
    }

    #[inline(always)]
    fn begin(&mut self, _: usize) -> Option<()> {
        self.space();
        if !self.fresh {
            self.byte(b',')?;
            self.space();
        }
        self.fresh = false;
        if !self.bare {
            self.byte(b'[')?;
            self.space();
        }
        Some(())
    }

    #[inline(always)]
    fn separator(&mut self, first: bool) -> Option<()> {
        if !first {
            self.space();
            self.byte(b',')?;
            self.space();
        }
        Some(())
    }

    #[inline(always)]
    fn end(&mut self) -> Option<()> {
        self.space();
        if self.bare {
            // A comma or bracket must follow the cell; it belongs to the next token.
            return matches!(self.rest.first()?, b',' | b']').then_some(());
        }
        self.byte(b']')
    }

    #[inline(always)]
    fn null(&mut self) -> bool {
        match self.rest.strip_prefix(b"null") {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    #[inline(always)]
    fn bool(&mut self) -> Option<bool> {
        let word = u32::from_le_bytes(*self.rest.first_chunk()?);
        let value = word == u32::from_le_bytes(*b"true");
        if !value && (word != u32::from_le_bytes(*b"fals") || self.rest.get(4) != Some(&b'e')) {
            return None;
        }
        self.rest = self.rest.get(5 - usize::from(value)..)?;
        Some(value)
    }

    #[inline(always)]
    fn integer<T: Integer>(&mut self) -> Option<T> {
        let negative = self.rest.first()? == &b'-';
        let text = self.rest.get(usize::from(negative)..)?;
        let first = text.first_chunk::<24>()?;
        // Numbers past these limits do not fit in 64 bits.
        let most = if T::SIGNED { i64::MAX as u64 } else { u64::MAX * u64::from(!negative) };
        let (value, len) = match digits(first, 0, 19) {
            Some((value, len)) if value <= most => (value, len),
            _ => return self.long_number(),
        };
        if len == 0 || (first[0] == b'0' && len > 1) {
            return None;
        }
        self.rest = text.get(len..)?;
        let bits = if negative { value.wrapping_neg() } else { value };
        T::from_bits(bits, !negative)
    }

    #[inline(always)]
    fn float64(&mut self) -> Option<f64> {
        // A mantissa up to 2^53 and a power of ten up to 10^22 are exact, so their quotient is the correctly rounded
        // result (Clinger 1990).
        if let Some((mantissa, fraction, negative, len)) = self.short_number()
            && mantissa <= 1 << 53
        {
            self.rest = self.rest.get(len..)?;
            let value = mantissa as f64 / POWERS[fraction];
            return Some(if negative { -value } else { value });
        }
        self.long_number().filter(|value: &f64| value.is_finite())
    }

    #[inline(always)]
    fn float32(&mut self) -> Option<f32> {
        // The same at this width: 2^24 and 10^10.
        if let Some((mantissa, fraction, negative, len)) = self.short_number()
            && mantissa <= 1 << 24
            && fraction <= 10
        {
            self.rest = self.rest.get(len..)?;
            let value = mantissa as f32 / POWERS[fraction] as f32;
            return Some(if negative { -value } else { value });
        }
        self.long_number().filter(|value: &f32| value.is_finite())
    }

    #[inline(always)]
    fn text(&mut self, text: &mut Vec<u8>) -> Option<()> {
        self.byte(b'"')?;
        let len = plain_len(self.rest)?;
        append(self.rest, len, text)?;
        self.rest = self.rest.get(len + 1..)?;
        Some(())
    }

    /// Base64. Its length is known; its content is checked by decoding it.
    fn bytes(&mut self, len: usize, bytes: &mut Vec<u8>) -> Option<()> {
        self.byte(b'"')?;
        let (text, rest) = self.rest.split_at_checked(len.div_ceil(3).checked_mul(4)?)?;
        self.rest = rest;
        self.byte(b'"')?;
        let end = bytes.len() + len;
        #[expect(clippy::disallowed_methods, reason = "the size is bounded by the text in memory")]
        bytes.reserve(text.len());
        base64_simd::STANDARD.decode_append(text, bytes).ok()?;
        (bytes.len() == end).then_some(())
    }

    fn skip(&mut self) -> Option<()> {
        None
    }
}
