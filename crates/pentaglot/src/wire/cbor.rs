//! CBOR heads and floats in deterministic encoding (RFC 8949, section 4.2.1): shortest heads, definite lengths,
//! shortest floats. Longer encodings are errors.

use crate::cursor::Cursor;
use crate::error::{Error, Result};

/// Major types.
pub(crate) mod major {
    pub(crate) const UNSIGNED: u8 = 0;
    pub(crate) const NEGATIVE: u8 = 1;
    pub(crate) const BYTES: u8 = 2;
    pub(crate) const TEXT: u8 = 3;
    pub(crate) const ARRAY: u8 = 4;
    pub(crate) const MAP: u8 = 5;
    pub(crate) const TAG: u8 = 6;
    pub(crate) const SIMPLE: u8 = 7;
}

/// The head of an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) major: u8,
    /// The low five bits: the encoding of the argument.
    pub(crate) info: u8,
    pub(crate) argument: u64,
}

/// The error for an item that is not in deterministic encoding, or not the expected one.
#[cold]
pub(crate) fn malformed(expected: impl std::fmt::Display, found: impl std::fmt::Display) -> Error {
    Error::malformed(expected, found).rule("cbor-form")
}

/// Reads a head; one that is not the shortest is an error (the argument of major type 7 is a float's bits:
/// see [`widen_float`]).
pub(crate) fn read_head(cursor: &mut Cursor<'_>) -> Result<Head> {
    let offset = cursor.offset();
    let first = cursor.u8()?;
    let (major, info) = (first >> 5, first & 31);
    let (argument, least) = match info {
        0..24 => (info.into(), 0),
        24 => (cursor.u8()?.into(), 24),
        25 => (cursor.u16_be()?.into(), 1 << 8),
        26 => (cursor.u32_be()?.into(), 1 << 16),
        27 => (cursor.u64_be()?, 1 << 32),
        _ => return Err(malformed("a definite length", format_args!("byte {first:02x}")).at(offset)),
    };
    if major != major::SIMPLE && argument < least {
        return Err(malformed(
            "a head in its shortest form",
            format_args!("{argument} after byte {first:02x}"),
        )
        .at(offset));
    }
    Ok(Head { major, info, argument })
}

/// Writes a head in its shortest form.
pub(crate) fn write_head(major: u8, argument: u64, out: &mut Vec<u8>) {
    let first = major << 5;
    let bytes = argument.to_be_bytes();
    let [.., low] = bytes;
    let tail = |count: usize| bytes.iter().skip(8 - count).copied();
    match argument {
        0..24 => out.push(first | low),
        24..0x100 => {
            out.push(first | 24);
            out.extend(tail(1));
        }
        0x100..0x1_0000 => {
            out.push(first | 25);
            out.extend(tail(2));
        }
        0x1_0000..0x1_0000_0000 => {
            out.push(first | 26);
            out.extend(tail(4));
        }
        _ => {
            out.push(first | 27);
            out.extend(tail(8));
        }
    }
}

/// Exponent and mantissa bits of a float of `bits` bits.
fn layout(bits: u32) -> (u32, u32) {
    match bits {
        16 => (5, 10),
        32 => (8, 23),
        _ => (11, 52),
    }
}

/// The bits of a float of `bits` bits (16 or 32) at twice the width. NaN payloads and the signalling bit are
/// preserved.
fn widen(value: u64, bits: u32) -> u64 {
    let (exponent_bits, mantissa_bits) = layout(bits);
    let (wide_exponent_bits, wide_mantissa_bits) = layout(2 * bits);
    let shift = wide_mantissa_bits - mantissa_bits;
    let sign = value >> (bits - 1) & 1;
    let exponent = value >> mantissa_bits & ((1 << exponent_bits) - 1);
    let mantissa = value & ((1 << mantissa_bits) - 1);
    let bias = (1 << (wide_exponent_bits - 1)) - (1 << (exponent_bits - 1));
    let (exponent, mantissa) = if exponent == (1 << exponent_bits) - 1 {
        ((1 << wide_exponent_bits) - 1, mantissa << shift)
    } else if exponent > 0 {
        (exponent + bias, mantissa << shift)
    } else if mantissa == 0 {
        (0, 0)
    } else {
        // Subnormal: shifted up until the leading one is implicit.
        let up = mantissa_bits + 1 - (64 - mantissa.leading_zeros());
        let implicit = (mantissa << up) & ((1 << mantissa_bits) - 1);
        (bias + 1 - u64::from(up), implicit << shift)
    };
    sign << (2 * bits - 1) | exponent << wide_mantissa_bits | mantissa
}

/// The bits of a float of `bits` bits (32 or 64) at half the width, if nothing is lost.
fn narrow(value: u64, bits: u32) -> Option<u64> {
    let half = bits / 2;
    let (exponent_bits, mantissa_bits) = layout(half);
    let (wide_exponent_bits, wide_mantissa_bits) = layout(bits);
    let shift = wide_mantissa_bits - mantissa_bits;
    let sign = value >> (bits - 1) & 1;
    let exponent = value >> wide_mantissa_bits & ((1 << wide_exponent_bits) - 1);
    let mantissa = value & ((1 << wide_mantissa_bits) - 1);
    let bias = (1 << (wide_exponent_bits - 1)) - (1 << (exponent_bits - 1));
    let largest = (1 << exponent_bits) - 1;
    let magnitude = if exponent == (1 << wide_exponent_bits) - 1 {
        largest << mantissa_bits | mantissa >> shift
    } else if exponent > bias && exponent - bias < largest {
        (exponent - bias) << mantissa_bits | mantissa >> shift
    } else if exponent == 0 {
        0
    } else {
        let below = (bias + 1).checked_sub(exponent).filter(|below| *below <= u64::from(mantissa_bits))?;
        (mantissa | 1 << wide_mantissa_bits) >> (u64::from(shift) + below)
    };
    let narrowed = sign << (half - 1) | magnitude;
    (widen(narrowed, half) == value).then_some(narrowed)
}

/// Writes the bits of a float64 in the shortest form that keeps them all.
pub(crate) fn write_float(bits: u64, out: &mut Vec<u8>) {
    let (info, bytes, value) = match narrow(bits, 64) {
        None => (27, 8, bits),
        Some(single) => match narrow(single, 32) {
            None => (26, 4, single),
            Some(half) => (25, 2, half),
        },
    };
    out.push(major::SIMPLE << 5 | info);
    out.extend(value.to_be_bytes().iter().skip(8 - bytes));
}

/// The float64 bits of a float's head; an encoding that is not the shortest is an error.
pub(crate) fn widen_float(head: Head) -> Result<u64> {
    let bits = match head.info {
        25 => widen(widen(head.argument, 16), 32),
        26 => widen(head.argument, 32),
        _ => head.argument,
    };
    let mut shortest = Vec::new();
    write_float(bits, &mut shortest);
    if shortest.first().map(|first| first & 31) != Some(head.info) {
        let found = format_args!("{} bytes", 1u32 << (head.info.saturating_sub(24)));
        return Err(malformed("a float in its shortest form", found));
    }
    Ok(bits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_take_their_shortest_form_bit_for_bit() {
        let form = |bits: u64| {
            let mut out = Vec::new();
            write_float(bits, &mut out);
            let head = read_head(&mut Cursor::new(&out)).unwrap();
            assert_eq!(widen_float(head).unwrap(), bits);
            out
        };
        assert_eq!(form(1.5f64.to_bits()), [0xf9, 0x3e, 0]);
        assert_eq!(form(0x7ff4_0000_0000_0000), [0xf9, 0x7d, 0]);
        assert_eq!(form(0x7ff8_0000_0000_0000), [0xf9, 0x7e, 0]);
        assert_eq!(form(0x7ff0_0000_0000_07a2)[0], 0xfb);
        assert_eq!(form((-0.0f64).to_bits()), [0xf9, 0x80, 0]);
        assert_eq!(form(f64::from(f32::MIN_POSITIVE / 8.0).to_bits())[0], 0xfa);
        // Every float16, compared with another conversion to float64 (except for quiet NaNs).
        for half in 0..=u16::MAX {
            let float = half::f16::from_bits(half);
            let wide = widen(widen(half.into(), 16), 32);
            if !float.is_nan() {
                assert_eq!(wide, float.to_f64().to_bits(), "{half:04x}");
            }
            assert_eq!(form(wide), [[0xf9].as_slice(), &half.to_be_bytes()].concat());
        }
        for bits in (0..=u32::MAX).step_by(65_537) {
            let float = f32::from_bits(bits);
            if !float.is_nan() {
                assert_eq!(widen(bits.into(), 32), f64::from(float).to_bits());
                assert_eq!(narrow(f64::from(float).to_bits(), 64), Some(bits.into()));
            }
        }
        assert_eq!(narrow(1e300f64.to_bits(), 64), None);
        assert_eq!(narrow(1e-300f64.to_bits(), 64), None);
        assert_eq!(narrow(1, 64), None);
    }
}
