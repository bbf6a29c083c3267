//! Values of at most eight bytes as keys: unsigned numbers whose order is that of the values.

use arrow_array::{Array, ArrayRef, make_array};
use arrow_buffer::{ArrowNativeType, Buffer};
use arrow_data::ArrayData;
use arrow_schema::DataType;
use half::f16;

use crate::error::Result;

/// How the bytes of a value are decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lane {
    Signed(usize),
    Unsigned(usize),
    Float(usize),
}

impl Lane {
    /// The lane of a type; `None` for types of other sizes or other order.
    pub(super) fn of(data_type: &DataType) -> Option<Self> {
        use DataType::*;
        Some(match data_type {
            Int8 => Lane::Signed(1),
            Int16 => Lane::Signed(2),
            Int32 | Date32 | Time32(_) => Lane::Signed(4),
            Int64 | Date64 | Time64(_) | Timestamp(_, _) | Duration(_) => Lane::Signed(8),
            UInt8 => Lane::Unsigned(1),
            UInt16 => Lane::Unsigned(2),
            UInt32 => Lane::Unsigned(4),
            UInt64 => Lane::Unsigned(8),
            Float16 => Lane::Float(2),
            Float32 => Lane::Float(4),
            Float64 => Lane::Float(8),
            _ => return None,
        })
    }

    fn width(self) -> usize {
        match self {
            Lane::Signed(width) | Lane::Unsigned(width) | Lane::Float(width) => width,
        }
    }

    /// Appends the keys and the numbers of the values that are present; NaNs are only counted.
    pub(super) fn read(self, array: &dyn Array, keys: &mut Vec<u64>, numbers: &mut Vec<f64>) -> u64 {
        match self {
            Lane::Signed(1) => read::<i8>(array, keys, numbers),
            Lane::Signed(2) => read::<i16>(array, keys, numbers),
            Lane::Signed(4) => read::<i32>(array, keys, numbers),
            Lane::Signed(_) => read::<i64>(array, keys, numbers),
            Lane::Unsigned(1) => read::<u8>(array, keys, numbers),
            Lane::Unsigned(2) => read::<u16>(array, keys, numbers),
            Lane::Unsigned(4) => read::<u32>(array, keys, numbers),
            Lane::Unsigned(_) => read::<u64>(array, keys, numbers),
            Lane::Float(2) => read::<f16>(array, keys, numbers),
            Lane::Float(4) => read::<f32>(array, keys, numbers),
            Lane::Float(_) => read::<f64>(array, keys, numbers),
        }
    }

    /// The value as an integer, for lanes of integers.
    pub(super) fn whole(self, key: u64) -> i128 {
        match self {
            Lane::Signed(_) => i128::from((key ^ SIGN) as i64),
            _ => i128::from(key),
        }
    }

    /// The value as a double.
    pub(super) fn number(self, key: u64) -> f64 {
        match self {
            Lane::Signed(_) => ((key ^ SIGN) as i64) as f64,
            Lane::Unsigned(_) => key as f64,
            // Keys of shorter floats are those of the same value as a double.
            Lane::Float(_) => f64::from_bits(if key & SIGN == 0 { !key } else { key ^ SIGN }),
        }
    }

    /// An array of this type with these values.
    pub(super) fn array(self, data_type: &DataType, keys: &[u64]) -> Result<ArrayRef> {
        let mut bytes = Vec::new();
        for key in keys {
            let raw = match self {
                Lane::Signed(_) => key ^ SIGN,
                Lane::Unsigned(_) => *key,
                Lane::Float(2) => u64::from(f16::from_f64(self.number(*key)).to_bits()),
                Lane::Float(4) => u64::from((self.number(*key) as f32).to_bits()),
                Lane::Float(_) => self.number(*key).to_bits(),
            };
            bytes.extend_from_slice(&raw.to_le_bytes()[..self.width()]);
        }
        raw_array(data_type, keys.len(), bytes)
    }
}

/// An array of a type of fixed width from the little-endian bytes of its values.
pub(super) fn raw_array(data_type: &DataType, len: usize, bytes: Vec<u8>) -> Result<ArrayRef> {
    let data = ArrayData::builder(data_type.clone()).len(len).add_buffer(Buffer::from(bytes));
    Ok(make_array(data.align_buffers(true).build()?))
}

const SIGN: u64 = 1 << 63;

trait Word: ArrowNativeType {
    fn key(self) -> u64;
    fn number(self) -> f64;
    fn is_nan(self) -> bool {
        false
    }
}

macro_rules! whole_words {
    ($($type:ty, $wide:ty, $flip:expr);*) => {$(
        impl Word for $type {
            #[inline(always)]
            fn key(self) -> u64 {
                (<$wide>::from(self) as u64) ^ $flip
            }

            #[inline(always)]
            fn number(self) -> f64 {
                self as f64
            }
        }
    )*};
}

whole_words!(i8, i64, SIGN; i16, i64, SIGN; i32, i64, SIGN; i64, i64, SIGN; u8, u64, 0; u16, u64, 0; u32, u64, 0; u64, u64, 0);

macro_rules! float_words {
    ($($type:ty, $number:expr);*) => {$(
        impl Word for $type {
            #[inline(always)]
            fn key(self) -> u64 {
                // Adding zero makes -0.0 the same value as 0.0.
                let bits = (Word::number(self) + 0.0).to_bits();
                if bits & SIGN == 0 { bits ^ SIGN } else { !bits }
            }

            #[inline(always)]
            fn number(self) -> f64 {
                $number(self)
            }

            #[inline(always)]
            fn is_nan(self) -> bool {
                f64::is_nan(Word::number(self))
            }
        }
    )*};
}

float_words!(f16, |value: f16| value.to_f64(); f32, f64::from; f64, |value: f64| value);

fn read<T: Word>(array: &dyn Array, keys: &mut Vec<u64>, numbers: &mut Vec<f64>) -> u64 {
    let data = array.to_data();
    let values = &data.buffer::<T>(0)[..array.len()];
    let mut nans = 0;
    let mut take = |value: T| {
        if value.is_nan() {
            nans += 1;
        } else {
            keys.push(value.key());
            numbers.push(value.number());
        }
    };
    match array.nulls().filter(|nulls| nulls.null_count() > 0) {
        None => values.iter().for_each(|value| take(*value)),
        Some(nulls) => nulls.valid_indices().for_each(|index| take(values[index])),
    }
    nans
}
