//! Numbers, strings, bytes, dates and times.

use std::sync::Arc;

use arrow_array::types::*;
use arrow_array::{
    ArrayRef, ArrowPrimitiveType, BinaryArray, BinaryViewArray, BooleanArray, FixedSizeBinaryArray,
    LargeBinaryArray, LargeStringArray, NullArray, PrimitiveArray, StringArray, StringViewArray,
};
use arrow_buffer::{
    BooleanBufferBuilder, Buffer, IntervalDayTime, IntervalMonthDayNano, NullBuffer, OffsetBuffer,
    ScalarBuffer, i256,
};
use arrow_schema::{DataType, IntervalUnit, TimeUnit};
use half::f16;

use super::{Decode, Decoder, Input};
use crate::error::{Error, Result};
use crate::hub::json::{parse_date, parse_decimal, parse_time, parse_timestamp};
use crate::hub::type_text::print_type;
use crate::wire::json::{Kind, Scanner};

/// The error of a text that is not what a type needs.
#[cold]
pub(super) fn unfit(expected: &str, text: &[u8]) -> Error {
    let text = String::from_utf8_lossy(text);
    let mut shown: String = text.chars().take(40).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    Error::malformed(expected, format_args!("{shown:?}")).rule("type")
}

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

fn primitive<T: ArrowPrimitiveType>(
    values: Vec<T::Native>,
    data_type: &DataType,
    nulls: Option<NullBuffer>,
) -> Result<ArrayRef> {
    let array = PrimitiveArray::<T>::try_new(ScalarBuffer::from(values), nulls)?;
    Ok(Arc::new(array.with_data_type(data_type.clone())))
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

/// `true` and `false` in the spellings of everyday programs.
pub(crate) fn parse_bool(text: &[u8]) -> Option<bool> {
    match text {
        b"true" | b"True" | b"TRUE" => Some(true),
        b"false" | b"False" | b"FALSE" => Some(false),
        _ => None,
    }
}

/// An integer of up to 64 bits.
trait Integer: Copy + Default + Send + std::str::FromStr {
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
        let value = std::str::from_utf8(text).ok().and_then(|text| text.parse().ok());
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

/// A float of any width.
trait Real: Copy + Default + Send {
    const NAME: &'static str;
    fn read<R: Input>(scanner: &mut Scanner<R>) -> Result<Self>;
    fn parse(text: &str) -> Option<Self>;
    fn special(value: f64) -> Self;
}

impl Real for f64 {
    const NAME: &'static str = "float64";

    #[inline]
    fn read<R: Input>(scanner: &mut Scanner<R>) -> Result<Self> {
        scanner.f64()
    }

    fn parse(text: &str) -> Option<Self> {
        text.parse().ok().filter(|value: &f64| value.is_finite())
    }

    fn special(value: f64) -> Self {
        value
    }
}

impl Real for f32 {
    const NAME: &'static str = "float32";

    fn read<R: Input>(scanner: &mut Scanner<R>) -> Result<Self> {
        scanner.f32()
    }

    fn parse(text: &str) -> Option<Self> {
        text.parse().ok().filter(|value: &f32| value.is_finite())
    }

    #[expect(clippy::cast_possible_truncation, reason = "NaN and infinities have every width")]
    fn special(value: f64) -> Self {
        value as f32
    }
}

impl Real for f16 {
    const NAME: &'static str = "float16";

    fn read<R: Input>(scanner: &mut Scanner<R>) -> Result<Self> {
        scanner.skip_space()?;
        let offset = scanner.offset();
        let text = scanner.number()?;
        Self::parse(text).ok_or_else(|| unfit("a number in the range of float16", text.as_bytes()).at(offset))
    }

    /// By way of a double, whose 53 bits only matter if the text has far more digits than a half can tell apart.
    fn parse(text: &str) -> Option<Self> {
        text.parse().ok().map(f16::from_f64).filter(|value| value.is_finite())
    }

    fn special(value: f64) -> Self {
        f16::from_f64(value)
    }
}

/// The floats that are not finite, as text.
fn parse_special(text: &[u8]) -> Option<f64> {
    match text {
        b"NaN" => Some(f64::NAN),
        b"Infinity" => Some(f64::INFINITY),
        b"-Infinity" => Some(f64::NEG_INFINITY),
        _ => None,
    }
}

/// Whether a string stands for a float that is not finite.
pub(crate) fn is_special_float(text: &[u8]) -> bool {
    parse_special(text).is_some()
}

/// The same in the spellings of everyday programs.
pub(crate) fn parse_special_cell(text: &[u8]) -> Option<f64> {
    parse_special(text).or(match text {
        b"nan" | b"NAN" => Some(f64::NAN),
        b"inf" | b"Inf" | b"INF" => Some(f64::INFINITY),
        b"-inf" | b"-Inf" | b"-INF" => Some(f64::NEG_INFINITY),
        _ => None,
    })
}

struct Floats<T: ArrowPrimitiveType>(Vec<T::Native>);

impl<T, R: Input> Decode<R> for Floats<T>
where
    T: ArrowPrimitiveType,
    T::Native: Real,
{
    #[inline]
    fn read(&mut self, scanner: &mut Scanner<R>) -> Result<()> {
        if scanner.skip_space()? == Some(b'"') {
            let offset = scanner.offset();
            let text = scanner.str_bytes()?;
            let Some(value) = parse_special(text) else {
                let expected = "a number, \"NaN\", \"Infinity\" or \"-Infinity\"";
                return Err(unfit(expected, text).at(offset));
            };
            self.0.push(T::Native::special(value));
            return Ok(());
        }
        self.0.push(T::Native::read(scanner)?);
        Ok(())
    }

    fn text(&mut self, text: &[u8]) -> Result<()> {
        // The standard parser also takes words; those have been looked at.
        let number = |text: &&str| text.bytes().any(|byte| byte.is_ascii_digit());
        let value = match parse_special_cell(text) {
            Some(value) => Some(T::Native::special(value)),
            None => std::str::from_utf8(text).ok().filter(number).and_then(T::Native::parse),
        };
        self.0.push(value.ok_or_else(|| unfit(T::Native::NAME, text))?);
        Ok(())
    }

    fn null(&mut self) {
        self.0.push(T::Native::default());
    }

    fn finish(&mut self, nulls: Option<NullBuffer>) -> Result<ArrayRef> {
        primitive::<T>(std::mem::take(&mut self.0), &T::DATA_TYPE, nulls)
    }
}

/// Values of any length, one after the other.
struct Texts {
    values: Vec<u8>,
    ends: Vec<usize>,
    data_type: DataType,
}

impl Texts {
    fn new(data_type: &DataType) -> Self {
        Texts { values: Vec::new(), ends: Vec::new(), data_type: data_type.clone() }
    }

    #[inline]
    fn end(&mut self) -> Result<()> {
        let len = self.values.len();
        if len > i32::MAX as usize && matches!(self.data_type, DataType::Utf8 | DataType::Binary) {
            let needed = format!("{len} are (large_utf8 and large_binary hold more)");
            return Err(Error::limit("bytes in a batch of utf8 or binary", i32::MAX, needed));
        }
        self.ends.push(len);
        Ok(())
    }

    fn finish(&mut self, nulls: Option<NullBuffer>) -> Result<ArrayRef> {
        fn offsets<O: arrow_buffer::ArrowNativeType>(ends: &[usize]) -> OffsetBuffer<O> {
            let starts = std::iter::once(0).chain(ends.iter().copied());
            OffsetBuffer::new(starts.map(|end| O::from_usize(end).unwrap_or_default()).collect())
        }
        let ends = std::mem::take(&mut self.ends);
        let values = Buffer::from(std::mem::take(&mut self.values));
        Ok(match self.data_type {
            DataType::Utf8 => Arc::new(StringArray::try_new(offsets(&ends), values, nulls)?),
            DataType::LargeUtf8 => Arc::new(LargeStringArray::try_new(offsets(&ends), values, nulls)?),
            DataType::Binary => Arc::new(BinaryArray::try_new(offsets(&ends), values, nulls)?),
            DataType::LargeBinary => Arc::new(LargeBinaryArray::try_new(offsets(&ends), values, nulls)?),
            DataType::Utf8View => {
                let array = LargeStringArray::try_new(offsets(&ends), values, nulls)?;
                Arc::new(StringViewArray::from(&array))
            }
            DataType::FixedSizeBinary(size) => {
                Arc::new(FixedSizeBinaryArray::try_new_with_len(size, values, nulls, ends.len())?)
            }
            _ => {
                let array = LargeBinaryArray::try_new(offsets(&ends), values, nulls)?;
                Arc::new(BinaryViewArray::from(&array))
            }
        })
    }
}

pub(super) struct Strings {
    values: Texts,
    /// Whether values of other kinds are taken as their text.
    mixed: bool,
}

impl Strings {
    pub(super) fn new(data_type: &DataType, mixed: bool) -> Self {
        Strings { values: Texts::new(data_type), mixed }
    }
}

impl<R: Input> Decode<R> for Strings {
    #[inline]
    fn read(&mut self, scanner: &mut Scanner<R>) -> Result<()> {
        if self.mixed && scanner.peek()? != Kind::String {
            scanner.capture_value(&mut self.values.values)?;
        } else {
            self.values.values.extend_from_slice(scanner.str_bytes()?);
        }
        self.values.end()
    }

    #[inline]
    fn text(&mut self, text: &[u8]) -> Result<()> {
        if simdutf8::basic::from_utf8(text).is_err() {
            return Err(Error::malformed("UTF-8", "other bytes").rule("utf8"));
        }
        self.values.values.extend_from_slice(text);
        self.values.end()
    }

    fn null(&mut self) {
        self.values.ends.push(self.values.values.len());
    }

    fn finish(&mut self, nulls: Option<NullBuffer>) -> Result<ArrayRef> {
        self.values.finish(nulls)
    }
}

struct Bytes {
    values: Texts,
    size: Option<usize>,
}

impl Bytes {
    fn push(&mut self, text: &[u8]) -> Result<()> {
        let before = self.values.values.len();
        let values = &mut self.values.values;
        if base64_simd::STANDARD.decode_append(text, values).is_err() {
            return Err(unfit("base64", text));
        }
        let len = values.len() - before;
        if self.size.is_some_and(|size| size != len) {
            return Err(Error::malformed(format_args!("{} bytes", self.size.unwrap_or(0)), len));
        }
        self.values.end()
    }
}

impl<R: Input> Decode<R> for Bytes {
    fn read(&mut self, scanner: &mut Scanner<R>) -> Result<()> {
        scanner.skip_space()?;
        let offset = scanner.offset();
        let text = scanner.str_bytes()?;
        self.push(text).map_err(|error| error.at(offset))
    }

    fn text(&mut self, text: &[u8]) -> Result<()> {
        self.push(text)
    }

    fn null(&mut self) {
        let len = self.values.values.len() + self.size.unwrap_or(0);
        self.values.values.resize(len, 0);
        self.values.ends.push(len);
    }

    fn finish(&mut self, nulls: Option<NullBuffer>) -> Result<ArrayRef> {
        self.values.finish(nulls)
    }
}

/// What a date or time counts.
#[derive(Clone, Copy)]
enum Stamp {
    Date,
    Date64,
    Time(TimeUnit),
    Timestamp(TimeUnit, bool),
}

struct Stamps<T: ArrowPrimitiveType> {
    values: Vec<T::Native>,
    stamp: Stamp,
    data_type: DataType,
}

fn stamps<T, R: Input>(data_type: &DataType, stamp: Stamp) -> Decoder<R>
where
    T: ArrowPrimitiveType,
    T::Native: TryFrom<i64> + std::str::FromStr,
{
    Box::new(Stamps::<T> { values: Vec::new(), stamp, data_type: data_type.clone() })
}

impl<T> Stamps<T>
where
    T: ArrowPrimitiveType,
    T::Native: TryFrom<i64>,
{
    fn parse(&self, text: &[u8]) -> Option<T::Native> {
        let value = match self.stamp {
            Stamp::Date => parse_date(text),
            Stamp::Date64 => parse_date(text).map(|days| days * 86_400_000),
            Stamp::Time(unit) => parse_time(text, unit),
            Stamp::Timestamp(unit, zoned) => parse_timestamp(text, unit, zoned),
        };
        value.and_then(|value| T::Native::try_from(value).ok())
    }
}

impl<T, R: Input> Decode<R> for Stamps<T>
where
    T: ArrowPrimitiveType,
    T::Native: TryFrom<i64> + std::str::FromStr + Default,
{
    fn read(&mut self, scanner: &mut Scanner<R>) -> Result<()> {
        let text = scanner.skip_space()? == Some(b'"');
        let offset = scanner.offset();
        let (value, text) = if text {
            let text = scanner.str_bytes()?;
            (self.parse(text), text)
        } else {
            // What has no text is its raw integer.
            let text = scanner.number()?;
            (text.parse().ok(), text.as_bytes())
        };
        let value = value.ok_or_else(|| unfit(&print_type(&self.data_type), text).at(offset))?;
        self.values.push(value);
        Ok(())
    }

    fn text(&mut self, text: &[u8]) -> Result<()> {
        let raw = || std::str::from_utf8(text).ok().and_then(|text| text.parse().ok());
        let value = self.parse(text).or_else(raw);
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

/// A decimal from its digits.
trait FromDigits: Sized {
    fn from_digits(digits: i256) -> Option<Self>;
}

impl FromDigits for i32 {
    fn from_digits(digits: i256) -> Option<Self> {
        digits.to_i128()?.try_into().ok()
    }
}

impl FromDigits for i64 {
    fn from_digits(digits: i256) -> Option<Self> {
        digits.to_i128()?.try_into().ok()
    }
}

impl FromDigits for i128 {
    fn from_digits(digits: i256) -> Option<Self> {
        digits.to_i128()
    }
}

impl FromDigits for i256 {
    fn from_digits(digits: i256) -> Option<Self> {
        Some(digits)
    }
}

struct Decimals<T: DecimalType> {
    values: Vec<T::Native>,
    precision: u8,
    scale: i8,
    data_type: DataType,
}

fn decimals<T, R: Input>(data_type: &DataType, scale: i8) -> Decoder<R>
where
    T: DecimalType,
    T::Native: FromDigits,
{
    let precision = match data_type {
        DataType::Decimal32(precision, _)
        | DataType::Decimal64(precision, _)
        | DataType::Decimal128(precision, _)
        | DataType::Decimal256(precision, _) => *precision,
        _ => T::MAX_PRECISION,
    };
    Box::new(Decimals::<T> { values: Vec::new(), precision, scale, data_type: data_type.clone() })
}

impl<T: DecimalType> Decimals<T>
where
    T::Native: FromDigits,
{
    fn parse(&self, text: &[u8]) -> Result<T::Native> {
        let plain = std::str::from_utf8(text).ok();
        let digits = plain.and_then(|text| parse_decimal(text, self.scale));
        let value = digits.and_then(T::Native::from_digits);
        let value =
            value.filter(|value| T::validate_decimal_precision(*value, self.precision, self.scale).is_ok());
        value.ok_or_else(|| unfit(&print_type(&self.data_type), text))
    }
}

impl<T: DecimalType, R: Input> Decode<R> for Decimals<T>
where
    T::Native: FromDigits,
{
    fn read(&mut self, scanner: &mut Scanner<R>) -> Result<()> {
        scanner.skip_space()?;
        let offset = scanner.offset();
        let text = scanner.str_bytes()?;
        let value = self.parse(text).map_err(|error| error.at(offset))?;
        self.values.push(value);
        Ok(())
    }

    fn text(&mut self, text: &[u8]) -> Result<()> {
        let value = self.parse(text)?;
        self.values.push(value);
        Ok(())
    }

    fn null(&mut self) {
        self.values.push(T::Native::default());
    }

    fn finish(&mut self, nulls: Option<NullBuffer>) -> Result<ArrayRef> {
        primitive::<T>(std::mem::take(&mut self.values), &self.data_type, nulls)
    }
}

/// An interval of several numbers.
trait Parts: Sized + Default + Send {
    fn from_parts(parts: [i64; 3]) -> Option<Self>;
}

impl Parts for IntervalDayTime {
    fn from_parts([days, milliseconds, _]: [i64; 3]) -> Option<Self> {
        Some(IntervalDayTime::new(days.try_into().ok()?, milliseconds.try_into().ok()?))
    }
}

impl Parts for IntervalMonthDayNano {
    fn from_parts([months, days, nanoseconds]: [i64; 3]) -> Option<Self> {
        Some(IntervalMonthDayNano::new(months.try_into().ok()?, days.try_into().ok()?, nanoseconds))
    }
}

struct Intervals<T: ArrowPrimitiveType>(Vec<T::Native>, &'static [&'static str]);

impl<T, R: Input> Decode<R> for Intervals<T>
where
    T: ArrowPrimitiveType,
    T::Native: Parts,
{
    fn read(&mut self, scanner: &mut Scanner<R>) -> Result<()> {
        scanner.skip_space()?;
        let offset = scanner.offset();
        let unfit =
            || Error::malformed(format_args!("an object of {}", self.1.join(", ")), "another").at(offset);
        let mut parts = [None; 3];
        scanner.begin_object()?;
        while let Some(key) = scanner.next_key()? {
            let index = self.1.iter().position(|name| *name == key).ok_or_else(unfit)?;
            let part = parts.get_mut(index).filter(|part| part.is_none()).ok_or_else(unfit)?;
            *part = Some(scanner.i64()?);
        }
        if parts.iter().flatten().count() != self.1.len() {
            return Err(unfit());
        }
        let value = T::Native::from_parts(parts.map(Option::unwrap_or_default)).ok_or_else(unfit)?;
        self.0.push(value);
        Ok(())
    }

    fn text(&mut self, text: &[u8]) -> Result<()> {
        Err(unfit("an interval as a JSON object", text))
    }

    fn null(&mut self) {
        self.0.push(T::Native::default());
    }

    fn finish(&mut self, nulls: Option<NullBuffer>) -> Result<ArrayRef> {
        primitive::<T>(std::mem::take(&mut self.0), &T::DATA_TYPE, nulls)
    }
}
