//! Floats, including the strings for NaN and infinities.

use arrow_array::{ArrayRef, ArrowPrimitiveType};
use arrow_buffer::NullBuffer;
use half::f16;

use super::{Decode, Input, primitive, unfit};
use crate::error::Result;
use crate::wire::json::{Scanner, short_decimal};

/// A float of any width.
trait Real: Copy + Default + Send {
    const NAME: &'static str;
    fn read<R: Input>(scanner: &mut Scanner<R>) -> Result<Self>;
    fn parse(text: &str) -> Option<Self>;
    /// As [`parse`](Self::parse), of text of few digits only.
    fn parse_short(_text: &[u8]) -> Option<Self> {
        None
    }
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

    #[inline]
    fn parse_short(text: &[u8]) -> Option<Self> {
        short_decimal(text)
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

    /// Parsed as float64. Rounding twice matters only if the text has far more digits than float16 can
    /// distinguish.
    fn parse(text: &str) -> Option<Self> {
        text.parse().ok().map(f16::from_f64).filter(|value| value.is_finite())
    }

    fn special(value: f64) -> Self {
        f16::from_f64(value)
    }
}

/// Parses the text of a float that is not finite.
fn parse_special(text: &[u8]) -> Option<f64> {
    match text {
        b"NaN" => Some(f64::NAN),
        b"Infinity" => Some(f64::INFINITY),
        b"-Infinity" => Some(f64::NEG_INFINITY),
        _ => None,
    }
}

/// Whether a string means a float that is not finite.
pub(crate) fn is_special_float(text: &[u8]) -> bool {
    parse_special(text).is_some()
}

/// The same, with spellings that common programs write.
pub(crate) fn parse_special_cell(text: &[u8]) -> Option<f64> {
    parse_special(text).or(match text {
        b"nan" | b"NAN" => Some(f64::NAN),
        b"inf" | b"Inf" | b"INF" => Some(f64::INFINITY),
        b"-inf" | b"-Inf" | b"-INF" => Some(f64::NEG_INFINITY),
        _ => None,
    })
}

pub(super) struct Floats<T: ArrowPrimitiveType>(pub(super) Vec<T::Native>);

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
        if let Some(value) = T::Native::parse_short(text) {
            self.0.push(value);
            return Ok(());
        }
        // The standard parser also accepts words; those are special here.
        let has_digits = |text: &&str| text.bytes().any(|byte| byte.is_ascii_digit());
        let plain = || std::str::from_utf8(text).ok().filter(has_digits).and_then(T::Native::parse);
        let value = match text.first() {
            Some(b'0'..=b'9') => plain(),
            _ => parse_special_cell(text).map(T::Native::special).or_else(plain),
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
