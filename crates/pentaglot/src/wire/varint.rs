//! Base-128 varints in their shortest form: little-endian groups of seven bits; the high bit is set if more
//! follow.

use crate::cursor::Cursor;
use crate::error::{Error, Result};

/// The maximum number of bytes of a varint of 64 bits.
pub(crate) const MAX_BYTES: usize = 10;

/// Reads a varint. A padded one is an error (rule `varint-overlong`), as is one past 64 bits (`varint-overflow`).
#[inline]
pub(crate) fn read(cursor: &mut Cursor<'_>) -> Result<u64> {
    match cursor.peek() {
        Some(byte) if byte < 0x80 => {
            cursor.skip(1)?;
            Ok(byte.into())
        }
        _ => read_long(cursor),
    }
}

fn read_long(cursor: &mut Cursor<'_>) -> Result<u64> {
    let start = cursor.offset();
    let mut value = 0u64;
    for shift in (0..70).step_by(7) {
        let byte = cursor.u8()?;
        if shift == 63 && byte > 1 {
            break;
        }
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            if byte == 0 && shift > 0 {
                let found = format_args!("{value} in {} bytes", shift / 7 + 1);
                return Err(Error::malformed("a varint in its shortest form", found)
                    .at(start)
                    .rule("varint-overlong"));
            }
            return Ok(value);
        }
    }
    Err(Error::malformed("a varint of at most 64 bits", "more").at(start).rule("varint-overflow"))
}

/// Writes a varint.
#[inline]
pub(crate) fn write(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value.to_le_bytes()[0] | 0x80);
        value >>= 7;
    }
    out.push(value.to_le_bytes()[0]);
}

/// How many bytes a varint takes.
pub(crate) fn size(value: u64) -> u64 {
    u64::from((64 - (value | 1).leading_zeros()).div_ceil(7))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn varints_have_one_form() {
        for (value, bytes) in [
            (0, &[0][..]),
            (127, &[0x7f]),
            (128, &[0x80, 1]),
            (300, &[0xac, 2]),
            (16384, &[0x80, 0x80, 1]),
            (u64::MAX, &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1]),
        ] {
            let mut out = Vec::new();
            write(value, &mut out);
            assert_eq!(out, bytes);
            assert_eq!(size(value), bytes.len() as u64);
            assert_eq!(read(&mut Cursor::new(bytes)).unwrap(), value);
        }
        let rule = |bytes: &[u8]| read(&mut Cursor::new(bytes)).unwrap_err().rule_name();
        assert_eq!(rule(&[0x80, 0]), "varint-overlong");
        assert_eq!(rule(&[0xff; 10]), "varint-overflow");
        assert_eq!(rule(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2]), "varint-overflow");
        assert_eq!(rule(&[0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0]), "varint-overflow");
        assert_eq!(rule(&[0x80]), "truncated");
    }
}
