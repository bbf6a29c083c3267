//! Dates, times, decimals and intervals: values with a specific text form.

use arrow_array::types::*;
use arrow_array::{ArrayRef, ArrowPrimitiveType};
use arrow_buffer::{IntervalDayTime, IntervalMonthDayNano, NullBuffer, i256};
use arrow_schema::{DataType, TimeUnit};

use super::{Decode, Decoder, Input, primitive, unfit};
use crate::error::{Error, Result};
use crate::hub::json::{parse_date, parse_decimal, parse_time, parse_timestamp};
use crate::hub::type_text::print_type;
use crate::wire::json::Scanner;

/// The unit of a date or time.
#[derive(Clone, Copy)]
pub(super) enum Stamp {
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

pub(super) fn stamps<T, R: Input>(data_type: &DataType, stamp: Stamp) -> Decoder<R>
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
            // A value without a text form is written as its raw integer.
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

/// Dates or times that are written as text, not as raw integers.
pub(super) struct TextOnly<R> {
    values: Decoder<R>,
    data_type: DataType,
}

impl<R: Input> TextOnly<R> {
    pub(super) fn new(values: Decoder<R>, data_type: &DataType) -> Self {
        TextOnly { values, data_type: data_type.clone() }
    }

    fn refuse(&self, text: &[u8]) -> Error {
        unfit(&print_type(&self.data_type), text)
    }
}

impl<R: Input> Decode<R> for TextOnly<R> {
    fn read(&mut self, scanner: &mut Scanner<R>) -> Result<()> {
        if scanner.skip_space()? == Some(b'"') {
            return self.values.read(scanner);
        }
        let offset = scanner.offset();
        let text = scanner.number()?.to_owned();
        Err(self.refuse(text.as_bytes()).at(offset))
    }

    fn text(&mut self, text: &[u8]) -> Result<()> {
        let digits = text.strip_prefix(b"-").or(text.strip_prefix(b"+")).unwrap_or(text);
        let is_number = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
        if is_number { Err(self.refuse(text)) } else { self.values.text(text) }
    }

    fn null(&mut self) {
        self.values.null();
    }

    fn nulls(&mut self, count: usize) {
        self.values.nulls(count);
    }

    fn finish(&mut self, nulls: Option<NullBuffer>) -> Result<ArrayRef> {
        self.values.finish(nulls)
    }
}

/// A decimal from its digits.
pub(super) trait FromDigits: Sized {
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

pub(super) fn decimals<T, R: Input>(data_type: &DataType, scale: i8) -> Decoder<R>
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
        let is_text = scanner.skip_space()? == Some(b'"');
        let offset = scanner.offset();
        // Programs without a decimal type write numbers.
        let text = if is_text { scanner.str_bytes()? } else { scanner.number()?.as_bytes() };
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
pub(super) trait Parts: Sized + Default + Send {
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

pub(super) struct Intervals<T: ArrowPrimitiveType>(
    pub(super) Vec<T::Native>,
    pub(super) &'static [&'static str],
);

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
