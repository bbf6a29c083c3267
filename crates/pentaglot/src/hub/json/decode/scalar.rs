//! Decoders of types without children; nulls, booleans and integers.

use std::sync::Arc;

use arrow_array::types::*;
use arrow_array::{ArrayRef, ArrowPrimitiveType, BooleanArray, NullArray};
use arrow_buffer::{BooleanBufferBuilder, NullBuffer};
use arrow_schema::{DataType, IntervalUnit, TimeUnit};

use super::floats::Floats;
use super::stamps::{Intervals, Stamp, decimals, stamps};
use super::texts::{Bytes, Strings, Texts};
use super::{Decode, Decoder, Input, primitive, unfit};
use crate::error::{Error, Result};
use crate::hub::type_text::print_type;
use crate::wire::json::Scanner;

pub(super) fn decoder<R: Input>(data_type: &DataType) -> Result<Decoder<R>> {
    Ok(match data_type {
        DataType::Null => Box::new(Nulls(0)),
        DataType::Boolean => Box::new(Booleans(BooleanBufferBuilder::new(0))),
        DataType::Int8 => integers::<Int8Type, R>(data_type),
        DataType::Int16 => integers::<Int16Type, R>(data_type),
        DataType::Int32 => integers::<Int32Type, R>(data_type),
        DataType::Int64 => integers::<Int64Type, R>(data_type),
        DataType::UInt8 => integers::<UInt8Type, R>(data_type),
        DataType::UInt16 => integers::<UInt16Type, R>(data_type),
        DataType::UInt32 => integers::<UInt32Type, R>(data_type),
        DataType::UInt64 => integers::<UInt64Type, R>(data_type),
        DataType::Float16 => Box::new(Floats::<Float16Type>(Vec::new())),
        DataType::Float32 => Box::new(Floats::<Float32Type>(Vec::new())),
        DataType::Float64 => Box::new(Floats::<Float64Type>(Vec::new())),
        DataType::Duration(unit) => match unit {
            TimeUnit::Second => integers::<DurationSecondType, R>(data_type),
            TimeUnit::Millisecond => integers::<DurationMillisecondType, R>(data_type),
            TimeUnit::Microsecond => integers::<DurationMicrosecondType, R>(data_type),
            TimeUnit::Nanosecond => integers::<DurationNanosecondType, R>(data_type),
        },
        DataType::Interval(IntervalUnit::YearMonth) => integers::<IntervalYearMonthType, R>(data_type),
        DataType::Interval(IntervalUnit::DayTime) => {
            Box::new(Intervals::<IntervalDayTimeType>(Vec::new(), &["days", "milliseconds"]))
        }
        DataType::Interval(IntervalUnit::MonthDayNano) => {
            Box::new(Intervals::<IntervalMonthDayNanoType>(Vec::new(), &["months", "days", "nanoseconds"]))
        }
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => Box::new(Strings::new(data_type, false)),
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => {
            Box::new(Bytes { values: Texts::new(data_type), size: None })
        }
        DataType::FixedSizeBinary(size) => {
            Box::new(Bytes { values: Texts::new(data_type), size: usize::try_from(*size).ok() })
        }
        DataType::Date32 => stamps::<Date32Type, R>(data_type, Stamp::Date),
        DataType::Date64 => stamps::<Date64Type, R>(data_type, Stamp::Date64),
        DataType::Time32(TimeUnit::Second) => {
            stamps::<Time32SecondType, R>(data_type, Stamp::Time(TimeUnit::Second))
        }
        DataType::Time32(_) => {
            stamps::<Time32MillisecondType, R>(data_type, Stamp::Time(TimeUnit::Millisecond))
        }
        DataType::Time64(TimeUnit::Microsecond) => {
            stamps::<Time64MicrosecondType, R>(data_type, Stamp::Time(TimeUnit::Microsecond))
        }
        DataType::Time64(_) => {
            stamps::<Time64NanosecondType, R>(data_type, Stamp::Time(TimeUnit::Nanosecond))
        }
        DataType::Timestamp(unit, zone) => {
            let stamp = Stamp::Timestamp(*unit, zone.is_some());
            match unit {
                TimeUnit::Second => stamps::<TimestampSecondType, R>(data_type, stamp),
                TimeUnit::Millisecond => stamps::<TimestampMillisecondType, R>(data_type, stamp),
                TimeUnit::Microsecond => stamps::<TimestampMicrosecondType, R>(data_type, stamp),
                TimeUnit::Nanosecond => stamps::<TimestampNanosecondType, R>(data_type, stamp),
            }
        }
        DataType::Decimal32(_, scale) => decimals::<Decimal32Type, R>(data_type, *scale),
        DataType::Decimal64(_, scale) => decimals::<Decimal64Type, R>(data_type, *scale),
        DataType::Decimal128(_, scale) => decimals::<Decimal128Type, R>(data_type, *scale),
        DataType::Decimal256(_, scale) => decimals::<Decimal256Type, R>(data_type, *scale),
        other => return Err(Error::unsupported(format!("values of {} as text", print_type(other)))),
    })
}

struct Nulls(usize);

impl<R: Input> Decode<R> for Nulls {
    fn read(&mut self, scanner: &mut Scanner<R>) -> Result<()> {
        Err(scanner.wrong_type("null"))
    }

    fn text(&mut self, text: &[u8]) -> Result<()> {
        Err(unfit("null", text))
    }

    fn null(&mut self) {
        self.0 += 1;
    }

    fn finish(&mut self, _: Option<NullBuffer>) -> Result<ArrayRef> {
        Ok(Arc::new(NullArray::new(std::mem::take(&mut self.0))))
    }
}

struct Booleans(BooleanBufferBuilder);

impl<R: Input> Decode<R> for Booleans {
    fn read(&mut self, scanner: &mut Scanner<R>) -> Result<()> {
        self.0.append(scanner.bool()?);
        Ok(())
    }

    fn text(&mut self, text: &[u8]) -> Result<()> {
        self.0.append(parse_bool(text).ok_or_else(|| unfit("true or false", text))?);
        Ok(())
    }

    fn null(&mut self) {
        self.0.append(false);
    }

    fn finish(&mut self, nulls: Option<NullBuffer>) -> Result<ArrayRef> {
        Ok(Arc::new(BooleanArray::new(self.0.finish(), nulls)))
    }
}

/// `true` and `false`, with spellings that common programs write.
pub(crate) fn parse_bool(text: &[u8]) -> Option<bool> {
    match text {
        b"true" | b"True" | b"TRUE" => Some(true),
        b"false" | b"False" | b"FALSE" => Some(false),
        _ => None,
    }
}

/// An integer of up to 64 bits.
trait Integer: Copy + Default + Send + std::str::FromStr + TryFrom<i64> {
    fn read<R: Input>(scanner: &mut Scanner<R>) -> Result<Option<Self>>;
}

macro_rules! integer {
    ($($native:ty, $read:ident;)*) => {
        $(impl Integer for $native {
            #[inline]
            fn read<R: Input>(scanner: &mut Scanner<R>) -> Result<Option<Self>> {
                scanner.$read().map(|value| value.try_into().ok())
            }
        })*
    };
}

integer! { i8, i64; i16, i64; i32, i64; i64, i64; u8, u64; u16, u64; u32, u64; u64, u64; }

/// A number of up to 18 digits; `None` for all other text. Most numbers in files are such, and this is faster than the standard
/// parser, which needs UTF-8 to be checked first.
fn few_digits(text: &[u8]) -> Option<i64> {
    let (digits, is_negative) = match text {
        [b'-', digits @ ..] => (digits, true),
        _ => (text, false),
    };
    if digits.is_empty() || digits.len() > 18 {
        return None;
    }
    let add = |value: i64, byte: &u8| byte.is_ascii_digit().then(|| value * 10 + i64::from(byte - b'0'));
    let value = digits.iter().try_fold(0, add)?;
    // `-0` is not an unsigned number.
    match (is_negative, value) {
        (true, 0) => None,
        (true, _) => Some(-value),
        (false, _) => Some(value),
    }
}

struct Integers<T: ArrowPrimitiveType> {
    values: Vec<T::Native>,
    data_type: DataType,
}

fn integers<T, R: Input>(data_type: &DataType) -> Decoder<R>
where
    T: ArrowPrimitiveType,
    T::Native: Integer,
{
    Box::new(Integers::<T> { values: Vec::new(), data_type: data_type.clone() })
}

impl<T, R: Input> Decode<R> for Integers<T>
where
    T: ArrowPrimitiveType,
    T::Native: Integer,
{
    #[inline]
    fn read(&mut self, scanner: &mut Scanner<R>) -> Result<()> {
        scanner.skip_space()?;
        let offset = scanner.offset();
        let Some(value) = T::Native::read(scanner)? else {
            let expected = format!("a number in the range of {}", print_type(&self.data_type));
            return Err(Error::malformed(expected, "one outside").at(offset).rule("type"));
        };
        self.values.push(value);
        Ok(())
    }

    fn text(&mut self, text: &[u8]) -> Result<()> {
        let value = match few_digits(text) {
            Some(value) => T::Native::try_from(value).ok(),
            None => std::str::from_utf8(text).ok().and_then(|text| text.parse().ok()),
        };
        self.values.push(value.ok_or_else(|| unfit(&print_type(&self.data_type), text))?);
        Ok(())
    }

    fn null(&mut self) {
        self.values.push(T::Native::default());
    }

    fn finish(&mut self, nulls: Option<NullBuffer>) -> Result<ArrayRef> {
        primitive::<T>(std::mem::take(&mut self.values), &self.data_type, nulls)
    }
}
