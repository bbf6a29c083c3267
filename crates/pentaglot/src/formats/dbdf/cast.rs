//! Casts values from one type to another; every cast is exact to the bit, or fails.

use super::types::ValueType;
use crate::hub::matrix::widen;

/// Any value of any numeric type.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Number {
    Int(i128),
    /// The bits of a float64. Widening a float32 keeps sign, payload and signalling bit of a NaN.
    Float(u64),
}

impl Number {
    /// The value in `bytes`, which are as many as the type has.
    #[inline]
    pub(super) fn read(value_type: ValueType, bytes: &[u8]) -> Option<Number> {
        macro_rules! integer {
            ($type:ty) => {
                Number::Int(i128::from(<$type>::from_le_bytes(*bytes.first_chunk()?)))
            };
        }
        Some(match value_type {
            ValueType::UInt8 => integer!(u8),
            ValueType::UInt16 => integer!(u16),
            ValueType::UInt32 => integer!(u32),
            ValueType::UInt64 => integer!(u64),
            ValueType::Int8 => integer!(i8),
            ValueType::Int16 => integer!(i16),
            ValueType::Int32 => integer!(i32),
            ValueType::Int64 => integer!(i64),
            ValueType::Float32 => Number::Float(widen(u32::from_le_bytes(*bytes.first_chunk()?))),
            ValueType::Float64 => Number::Float(u64::from_le_bytes(*bytes.first_chunk()?)),
            ValueType::FixedStr16 | ValueType::Str => return None,
        })
    }

    /// Writes the value as another type into `out`, which has that type's length; returns `None` if the cast is not
    /// exact.
    #[inline]
    pub(super) fn write(self, value_type: ValueType, out: &mut [u8]) -> Option<()> {
        macro_rules! integer {
            ($type:ty) => {
                out.copy_from_slice(&<$type>::try_from(self.integer()?).ok()?.to_le_bytes())
            };
        }
        match value_type {
            ValueType::UInt8 => integer!(u8),
            ValueType::UInt16 => integer!(u16),
            ValueType::UInt32 => integer!(u32),
            ValueType::UInt64 => integer!(u64),
            ValueType::Int8 => integer!(i8),
            ValueType::Int16 => integer!(i16),
            ValueType::Int32 => integer!(i32),
            ValueType::Int64 => integer!(i64),
            ValueType::Float32 => out.copy_from_slice(&narrow(self.float()?)?.to_le_bytes()),
            ValueType::Float64 => out.copy_from_slice(&self.float()?.to_le_bytes()),
            ValueType::FixedStr16 | ValueType::Str => return None,
        }
        Some(())
    }

    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "the result of casting back is compared")]
    fn integer(self) -> Option<i128> {
        match self {
            Number::Int(integer) => Some(integer),
            Number::Float(bits) => {
                let integer = f64::from_bits(bits) as i128;
                // Compares bits, not values: -0.0 is not an integer.
                ((integer as f64).to_bits() == bits).then_some(integer)
            }
        }
    }

    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "the result of casting back is compared")]
    fn float(self) -> Option<u64> {
        match self {
            Number::Int(integer) => {
                let float = integer as f64;
                (float as i128 == integer).then_some(float.to_bits())
            }
            Number::Float(bits) => Some(bits),
        }
    }
}

impl std::fmt::Display for Number {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Number::Int(integer) => write!(f, "{integer}"),
            Number::Float(bits) => write!(f, "{:?}", f64::from_bits(*bits)),
        }
    }
}

const NAN32: u32 = 0x7f80_0000;

/// float32 bits to float64 bits; a NaN keeps its payload and signalling bit, which `as` would change.
fn widen(bits: u32) -> u64 {
    if bits & NAN32 != NAN32 {
        return f64::from(f32::from_bits(bits)).to_bits();
    }
    u64::from(bits >> 31) << 63 | 0x7ff << 52 | u64::from(bits & 0x007f_ffff) << 29
}

/// The float32 bits that widen to these float64 bits, if there are any.
#[expect(clippy::cast_possible_truncation, reason = "the result of casting back is compared")]
fn narrow(bits: u64) -> Option<u32> {
    let narrow = if f64::from_bits(bits).is_nan() {
        ((bits >> 63) as u32) << 31 | NAN32 | ((bits >> 29) as u32 & 0x007f_ffff)
    } else {
        (f64::from_bits(bits) as f32).to_bits()
    };
    (widen(narrow) == bits).then_some(narrow)
}

/// Whether every value of `from` is a value of `to`.
pub(super) fn always_fits(from: ValueType, to: ValueType) -> bool {
    from == to
        || !matches!(from, ValueType::FixedStr16 | ValueType::Str) && widen::holds(&to.arrow(), &from.arrow())
}

/// Casts values one by one; `Err` is the index of the first that cannot be cast exactly.
pub(super) fn cast(bytes: &[u8], from: ValueType, to: ValueType, out: &mut [u8]) -> Result<(), u64> {
    // Dispatches on the pair of types once, outside the loops.
    macro_rules! to {
        ($from:expr) => {
            match to {
                ValueType::UInt8 => cast_as(bytes, $from, ValueType::UInt8, out),
                ValueType::UInt16 => cast_as(bytes, $from, ValueType::UInt16, out),
                ValueType::UInt32 => cast_as(bytes, $from, ValueType::UInt32, out),
                ValueType::UInt64 => cast_as(bytes, $from, ValueType::UInt64, out),
                ValueType::Int8 => cast_as(bytes, $from, ValueType::Int8, out),
                ValueType::Int16 => cast_as(bytes, $from, ValueType::Int16, out),
                ValueType::Int32 => cast_as(bytes, $from, ValueType::Int32, out),
                ValueType::Int64 => cast_as(bytes, $from, ValueType::Int64, out),
                ValueType::Float32 => cast_as(bytes, $from, ValueType::Float32, out),
                ValueType::Float64 => cast_as(bytes, $from, ValueType::Float64, out),
                ValueType::FixedStr16 | ValueType::Str => Err(0),
            }
        };
    }
    match from {
        ValueType::UInt8 => to!(ValueType::UInt8),
        ValueType::UInt16 => to!(ValueType::UInt16),
        ValueType::UInt32 => to!(ValueType::UInt32),
        ValueType::UInt64 => to!(ValueType::UInt64),
        ValueType::Int8 => to!(ValueType::Int8),
        ValueType::Int16 => to!(ValueType::Int16),
        ValueType::Int32 => to!(ValueType::Int32),
        ValueType::Int64 => to!(ValueType::Int64),
        ValueType::Float32 => to!(ValueType::Float32),
        ValueType::Float64 => to!(ValueType::Float64),
        ValueType::FixedStr16 | ValueType::Str => Err(0),
    }
}

#[inline(always)]
fn cast_as(bytes: &[u8], from: ValueType, to: ValueType, out: &mut [u8]) -> Result<(), u64> {
    let cells = bytes.chunks_exact(from.size()).zip(out.chunks_exact_mut(to.size()));
    for (index, (cell, out)) in (0u64..).zip(cells) {
        Number::read(from, cell).and_then(|number| number.write(to, out)).ok_or(index)?;
    }
    Ok(())
}
