//! MessagePack tokens: read from a [`Cursor`], written to an [`Output`].
//!
//! ```text
//! 00-7f 0..127      90-9f array      c0 nil           c4-c6 bytes      cc-cf unsigned, 1 2 4 8 bytes   dc dd array
//! 80-8f map         a0-bf string     c2 c3 bool       ca cb float      d0-d3 signed                    de df map
//! e0-ff -32..-1                      c1 not used      c7-c9 d4-d8 ext  d9-db string                    (big-endian)
//! ```
//!
//! A value of another family than the requested one is an error with the rule `mismatch`. A length is checked against
//! the bytes left before it is used.

use crate::cursor::Cursor;
use crate::error::{Error, Result};

/// An integer of any width.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Integer {
    /// 0 and above.
    Unsigned(u64),
    /// Below 0.
    Negative(i64),
}

impl std::fmt::Display for Integer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Integer::Unsigned(value) => value.fmt(f),
            Integer::Negative(value) => value.fmt(f),
        }
    }
}

impl From<i64> for Integer {
    #[inline]
    fn from(value: i64) -> Self {
        if value < 0 { Integer::Negative(value) } else { Integer::Unsigned(value.cast_unsigned()) }
    }
}

/// The family of a code, for messages.
pub(crate) fn family(code: u8) -> &'static str {
    match code {
        0x00..=0x7f | 0xcc..=0xd3 | 0xe0..=0xff => "an integer",
        0x80..=0x8f | 0xde | 0xdf => "a map",
        0x90..=0x9f | 0xdc | 0xdd => "an array",
        0xa0..=0xbf | 0xd9..=0xdb => "a string",
        0xc0 => "nil",
        0xc1 => "the unused code 0xc1",
        0xc2 | 0xc3 => "a bool",
        0xc4..=0xc6 => "bytes",
        0xc7..=0xc9 | 0xd4..=0xd8 => "an extension",
        0xca | 0xcb => "a float",
    }
}

/// Whether a code begins a map.
pub(crate) fn is_map(code: u8) -> bool {
    matches!(code, 0x80..=0x8f | 0xde | 0xdf)
}

/// Whether a code begins an integer.
pub(crate) fn is_integer(code: u8) -> bool {
    matches!(code, 0x00..=0x7f | 0xcc..=0xd3 | 0xe0..=0xff)
}

#[cold]
fn mismatch(expected: &str, code: u8, offset: u64) -> Error {
    Error::malformed(expected, family(code)).at(offset).rule("mismatch")
}

/// Reads an integer of any width.
#[inline]
pub(crate) fn read_integer(cursor: &mut Cursor<'_>) -> Result<Integer> {
    let offset = cursor.offset();
    let code = cursor.u8()?;
    Ok(match code {
        0x00..=0x7f => Integer::Unsigned(u64::from(code)),
        0xe0..=0xff => Integer::Negative(i64::from(code.cast_signed())),
        0xcc => Integer::Unsigned(u64::from(cursor.u8()?)),
        0xcd => Integer::Unsigned(u64::from(cursor.u16_be()?)),
        0xce => Integer::Unsigned(u64::from(cursor.u32_be()?)),
        0xcf => Integer::Unsigned(cursor.u64_be()?),
        0xd0 => Integer::from(i64::from(cursor.i8()?)),
        0xd1 => Integer::from(i64::from(cursor.i16_be()?)),
        0xd2 => Integer::from(i64::from(cursor.i32_be()?)),
        0xd3 => Integer::from(cursor.i64_be()?),
        _ => return Err(mismatch("an integer", code, offset)),
    })
}

/// A float of either width.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Float {
    /// Four bytes.
    Single(f32),
    /// Eight bytes.
    Double(f64),
}

/// Reads a float of either width.
#[inline]
pub(crate) fn read_float(cursor: &mut Cursor<'_>) -> Result<Float> {
    let offset = cursor.offset();
    match cursor.u8()? {
        0xcb => cursor.f64_be().map(Float::Double),
        0xca => cursor.f32_be().map(Float::Single),
        code => Err(mismatch("a float", code, offset)),
    }
}

/// Reads a bool.
#[inline]
pub(crate) fn read_bool(cursor: &mut Cursor<'_>) -> Result<bool> {
    let offset = cursor.offset();
    match cursor.u8()? {
        0xc2 => Ok(false),
        0xc3 => Ok(true),
        code => Err(mismatch("a bool", code, offset)),
    }
}

/// Reads nil.
#[inline]
pub(crate) fn read_nil(cursor: &mut Cursor<'_>) -> Result<()> {
    let offset = cursor.offset();
    match cursor.u8()? {
        0xc0 => Ok(()),
        code => Err(mismatch("nil", code, offset)),
    }
}

/// Reads a string or bytes, which are interchangeable.
#[inline]
pub(crate) fn read_bytes<'a>(cursor: &mut Cursor<'a>, expected: &str) -> Result<&'a [u8]> {
    let offset = cursor.offset();
    let len = match cursor.u8()? {
        code @ 0xa0..=0xbf => u64::from(code & 0x1f),
        0xc4 | 0xd9 => u64::from(cursor.u8()?),
        0xc5 | 0xda => u64::from(cursor.u16_be()?),
        0xc6 | 0xdb => u64::from(cursor.u32_be()?),
        code => return Err(mismatch(expected, code, offset)),
    };
    cursor.take(len)
}

/// Reads a string and checks that it is UTF-8.
pub(crate) fn read_str<'a>(cursor: &mut Cursor<'a>) -> Result<&'a str> {
    let bytes = read_bytes(cursor, "a string")?;
    std::str::from_utf8(bytes).map_err(|error| {
        let offset = cursor.offset() - (bytes.len() - error.valid_up_to()) as u64;
        Error::malformed("UTF-8", "other bytes").at(offset).rule("utf8")
    })
}

/// Reads the header of an array: how many elements follow, which fit the bytes left.
#[inline]
pub(crate) fn read_array(cursor: &mut Cursor<'_>) -> Result<usize> {
    let count = read_array_count(cursor)?;
    cursor.check_count(u64::from(count), 1)
}

/// Reads the header of an array whose elements may extend past the bytes available.
#[inline]
pub(crate) fn read_array_count(cursor: &mut Cursor<'_>) -> Result<u32> {
    let offset = cursor.offset();
    Ok(match cursor.u8()? {
        code @ 0x90..=0x9f => u32::from(code & 0x0f),
        0xdc => u32::from(cursor.u16_be()?),
        0xdd => cursor.u32_be()?,
        code => return Err(mismatch("an array", code, offset)),
    })
}

/// Reads the header of a map: how many pairs follow.
pub(crate) fn read_map(cursor: &mut Cursor<'_>) -> Result<usize> {
    let offset = cursor.offset();
    let count = match cursor.u8()? {
        code @ 0x80..=0x8f => u64::from(code & 0x0f),
        0xde => u64::from(cursor.u16_be()?),
        0xdf => u64::from(cursor.u32_be()?),
        code => return Err(mismatch("a map", code, offset)),
    };
    cursor.check_count(count, 2)
}

/// Skips one value of any depth, without recursion.
pub(crate) fn skip(cursor: &mut Cursor<'_>) -> Result<()> {
    let mut pending = 1u64;
    while pending > 0 {
        pending -= 1;
        let offset = cursor.offset();
        let code = cursor.peek();
        match code {
            Some(0x90..=0x9f | 0xdc | 0xdd) => pending += read_array(cursor)? as u64,
            Some(0x80..=0x8f | 0xde | 0xdf) => pending += 2 * read_map(cursor)? as u64,
            Some(0xc1) => return Err(mismatch("a value", 0xc1, offset)),
            _ => {
                let bytes = match cursor.u8()? {
                    code @ 0xa0..=0xbf => u64::from(code & 0x1f),
                    0xc4 | 0xd9 => u64::from(cursor.u8()?),
                    0xc5 | 0xda => u64::from(cursor.u16_be()?),
                    0xc6 | 0xdb => u64::from(cursor.u32_be()?),
                    0xc7 => u64::from(cursor.u8()?) + 1,
                    0xc8 => u64::from(cursor.u16_be()?) + 1,
                    0xc9 => u64::from(cursor.u32_be()?) + 1,
                    0xcc | 0xd0 => 1,
                    0xcd | 0xd1 | 0xd4 => 2,
                    0xd5 => 3,
                    0xca | 0xce | 0xd2 => 4,
                    0xd6 => 5,
                    0xcb | 0xcf | 0xd3 => 8,
                    0xd7 => 9,
                    0xd8 => 17,
                    _ => 0,
                };
                cursor.skip(bytes)?;
            }
        }
        // Each pending value takes at least one byte.
        if pending > cursor.remaining() as u64 {
            return Err(Error::truncated(
                format_args!("{pending} more values"),
                format_args!("{} bytes", cursor.remaining()),
            )
            .at(cursor.offset()));
        }
    }
    Ok(())
}

/// Bytes being written. Small tokens are stored with a fixed size and then truncated, which needs no branch
/// on the length.
#[derive(Debug, Default)]
pub(crate) struct Output {
    bytes: Vec<u8>,
    len: usize,
}

impl Output {
    /// The bytes written so far.
    pub(crate) fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or_default()
    }

    #[cold]
    fn grow(&mut self, room: usize) {
        let size = (self.len + room).max(self.bytes.len() * 2).max(4096);
        self.bytes.resize(size, 0);
    }

    /// Stores all of `token`, of which the first `len` bytes count.
    #[inline]
    fn put<const N: usize>(&mut self, token: [u8; N], len: usize) {
        if self.bytes.len() - self.len < N {
            self.grow(N);
        }
        if let Some(slot) = self.bytes.get_mut(self.len..).and_then(|rest| rest.first_chunk_mut::<N>()) {
            *slot = token;
            self.len += len;
        }
    }

    /// Writes bytes as they are.
    #[inline]
    pub(crate) fn raw(&mut self, bytes: &[u8]) {
        if self.bytes.len() - self.len < bytes.len() {
            self.grow(bytes.len());
        }
        if let Some(slot) = self.bytes.get_mut(self.len..self.len + bytes.len()) {
            slot.copy_from_slice(bytes);
            self.len += bytes.len();
        }
    }

    /// A code and eight bytes of which `size` (1, 2, 4 or 8) count: the low ones of `value`.
    #[inline]
    fn sized(&mut self, code: u8, value: u64, size: u32) {
        let [a, b, c, d, e, f, g, h] = (value << (64 - 8 * size)).to_be_bytes();
        self.put([code, a, b, c, d, e, f, g, h], 1 + size as usize);
    }

    /// Writes an unsigned integer in the fewest bytes.
    #[inline]
    pub(crate) fn unsigned(&mut self, value: u64) {
        if value < 0x80 {
            return self.put([low_byte(value)], 1);
        }
        let class = width_class(value);
        self.sized(0xcc + class, value, 1 << class);
    }

    /// Writes a signed integer in the fewest bytes; 0 and above take the unsigned forms.
    #[inline]
    pub(crate) fn signed(&mut self, value: i64) {
        let bits = value.cast_unsigned();
        if value >= 0 {
            return self.unsigned(bits);
        }
        if value >= -32 {
            return self.put([low_byte(bits)], 1);
        }
        let class = width_class((!bits << 1) | 1);
        self.sized(0xd0 + class, bits, 1 << class);
    }

    /// Writes an integer in `size` (1, 2, 4 or 8) bytes, for any value; `code` is that of the type.
    #[inline]
    pub(crate) fn fixed(&mut self, code: u8, bits: u64, size: u32) {
        self.sized(code, bits, size);
    }

    /// Writes four bytes as a float.
    #[inline]
    pub(crate) fn single(&mut self, value: f32) {
        let [a, b, c, d] = value.to_be_bytes();
        self.put([0xca, a, b, c, d], 5);
    }

    /// Writes eight bytes as a float.
    #[inline]
    pub(crate) fn double(&mut self, value: f64) {
        self.sized(0xcb, value.to_bits(), 8);
    }

    /// Writes a bool.
    #[inline]
    pub(crate) fn bool(&mut self, value: bool) {
        self.put([0xc2 + u8::from(value)], 1);
    }

    /// Writes nil.
    #[inline]
    pub(crate) fn nil(&mut self) {
        self.put([0xc0], 1);
    }

    /// Writes a string; more than 2^32-1 bytes are an error.
    #[inline]
    pub(crate) fn str(&mut self, text: &[u8]) -> Result<()> {
        match text.len() {
            len @ 0..32 => self.put([0xa0 | low_byte(len as u64)], 1),
            len => self.length([0xd9, 0xda, 0xdb], len)?,
        }
        self.raw(text);
        Ok(())
    }

    /// Writes bytes; more than 2^32-1 are an error.
    #[inline]
    pub(crate) fn bin(&mut self, bytes: &[u8]) -> Result<()> {
        self.length([0xc4, 0xc5, 0xc6], bytes.len())?;
        self.raw(bytes);
        Ok(())
    }

    /// Writes the header of an array.
    #[inline]
    pub(crate) fn array(&mut self, count: usize) -> Result<()> {
        match count {
            0..16 => self.put([0x90 | low_byte(count as u64)], 1),
            _ => self.count([0xdc, 0xdd], count)?,
        }
        Ok(())
    }

    /// Writes the header of a map.
    pub(crate) fn map(&mut self, count: usize) -> Result<()> {
        match count {
            0..16 => self.put([0x80 | low_byte(count as u64)], 1),
            _ => self.count([0xde, 0xdf], count)?,
        }
        Ok(())
    }

    fn length(&mut self, codes: [u8; 3], len: usize) -> Result<()> {
        let [one, two, four] = codes;
        let value = len as u64;
        match value {
            0..=0xff => self.sized(one, value, 1),
            0x100..=0xffff => self.sized(two, value, 2),
            0x1_0000..=0xffff_ffff => self.sized(four, value, 4),
            _ => return Err(too_long(value)),
        }
        Ok(())
    }

    fn count(&mut self, codes: [u8; 2], count: usize) -> Result<()> {
        let [two, four] = codes;
        let value = count as u64;
        match value {
            0..=0xffff => self.sized(two, value, 2),
            0x1_0000..=0xffff_ffff => self.sized(four, value, 4),
            _ => return Err(too_long(value)),
        }
        Ok(())
    }
}

#[cold]
fn too_long(value: u64) -> Error {
    Error::lossy(format!("a MessagePack length is at most 4294967295, found {value}"))
}

#[inline]
fn low_byte(value: u64) -> u8 {
    let [byte, ..] = value.to_le_bytes();
    byte
}

/// The class of the smallest width that holds `value`: 0, 1, 2, 3 for 1, 2, 4, 8 bytes.
#[inline]
fn width_class(value: u64) -> u8 {
    let bits = 64 - value.leading_zeros();
    u8::from(bits > 8) + u8::from(bits > 16) + u8::from(bits > 32)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(write: impl FnOnce(&mut Output)) -> Vec<u8> {
        let mut output = Output::default();
        write(&mut output);
        output.bytes().to_vec()
    }

    #[test]
    fn integers_take_the_fewest_bytes() {
        let cases: [(i64, &[u8]); 14] = [
            (0, &[0]),
            (127, &[0x7f]),
            (128, &[0xcc, 0x80]),
            (255, &[0xcc, 0xff]),
            (256, &[0xcd, 1, 0]),
            (65536, &[0xce, 0, 1, 0, 0]),
            (1 << 32, &[0xcf, 0, 0, 0, 1, 0, 0, 0, 0]),
            (-1, &[0xff]),
            (-32, &[0xe0]),
            (-33, &[0xd0, 0xdf]),
            (-128, &[0xd0, 0x80]),
            (-129, &[0xd1, 0xff, 0x7f]),
            (-32769, &[0xd2, 0xff, 0xff, 0x7f, 0xff]),
            (i64::MIN, &[0xd3, 0x80, 0, 0, 0, 0, 0, 0, 0]),
        ];
        for (value, bytes) in cases {
            assert_eq!(written(|output| output.signed(value)), bytes, "{value}");
            assert_eq!(read_integer(&mut Cursor::new(bytes)).unwrap(), Integer::from(value));
        }
    }

    #[test]
    fn lengths_take_the_fewest_bytes_and_are_skipped() {
        for len in [0, 31, 32, 255, 256, 65535, 65536] {
            let text = vec![b'x'; len];
            let bytes = written(|output| {
                output.array(3).unwrap();
                output.str(&text).unwrap();
                output.bin(&text).unwrap();
                output.nil();
            });
            let mut cursor = Cursor::new(&bytes);
            skip(&mut cursor).unwrap();
            assert!(cursor.is_empty());
            for cut in 0..bytes.len().min(40) {
                assert_eq!(
                    skip(&mut Cursor::new(&bytes[..cut])).unwrap_err().kind(),
                    crate::ErrorKind::Truncated
                );
            }
        }
    }

    #[test]
    fn a_deep_value_is_skipped_without_recursion() {
        let mut bytes = vec![0x91; 1_000_000];
        bytes.push(0xc0);
        skip(&mut Cursor::new(&bytes)).unwrap();
        bytes.pop();
        assert!(skip(&mut Cursor::new(&bytes)).is_err());
    }

    #[test]
    fn a_length_bomb_costs_nothing() {
        assert!(skip(&mut Cursor::new(&[0xdf, 0xff, 0xff, 0xff, 0xff, 0xc0])).is_err());
        assert!(read_array(&mut Cursor::new(&[0xdd, 0xff, 0xff, 0xff, 0xff, 0xc0])).is_err());
    }
}
