//! Casts of single values, and which of them preserve every value.

use std::sync::Arc;

use arrow_array::builder::{BooleanBuilder, PrimitiveBuilder};
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, StringArray, new_null_array};
use arrow_cast::display::{ArrayFormatter, FormatOptions};
use arrow_cast::{CastOptions, can_cast_types, cast_with_options};
use arrow_schema::{DataType, Field};

use super::apply::Place;
use super::decimal;
use super::fit::{self, Judge, tick};
use crate::error::Result;
use crate::hub::matrix::widen::holds;
use crate::hub::{Effect, LossKind};

/// How single values are cast.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ScalarCast {
    /// Every value is preserved: Arrow's own cast.
    Plain,
    /// Numbers to types that may not hold all of them.
    Numbers,
    /// Dates, times and durations in other units.
    Times,
    /// Decimals of another scale or with fewer digits.
    Decimals,
    /// Floats to decimals.
    ToDecimals,
    /// Arrow's own cast, checked by casting back.
    Compared,
    /// The shortest text.
    Text,
    Parse,
    Nulls,
    VoidText,
}

/// The cast from one type to another and its effect, if there is such a cast.
pub(super) fn plan(from: &DataType, to: &DataType) -> Option<(ScalarCast, Effect)> {
    use DataType::{Binary, Boolean, Dictionary, LargeBinary, Time32, Time64, Timestamp};
    let number = |kind: &DataType| kind.is_integer() || kind.is_floating();
    let text = is_text;
    let (precision, range) = (LossKind::Precision, LossKind::Range);
    Some(match (from, to) {
        (a, b) if number(a) && number(b) && holds(b, a) => (ScalarCast::Plain, Effect::widened()),
        (a, b) if a.is_integer() && b.is_integer() => (ScalarCast::Numbers, Effect::checked(range)),
        // The largest float16 is 65504.
        (a, b) if a.is_integer() && b.is_floating() && *b != DataType::Float16 => {
            (ScalarCast::Numbers, Effect::checked(precision))
        }
        (a, Boolean) if a.is_integer() => (ScalarCast::Numbers, Effect::checked(range)),
        (a, b) if number(a) && (number(b) || *b == Boolean) => {
            (ScalarCast::Numbers, Effect::checked(precision | range))
        }
        (Boolean, b) if number(b) => (ScalarCast::Plain, Effect::widened()),
        (a, b) if a.is_decimal() && b.is_decimal() => (ScalarCast::Decimals, decimals(a, b)),
        (a, b) if a.is_floating() && b.is_decimal() && !has_negative_scale(b) => {
            (ScalarCast::ToDecimals, Effect::checked(precision | range))
        }
        (a, b) if text(a) && text(b) => (ScalarCast::Plain, Effect::widened()),
        (Binary | LargeBinary, b) if text(b) => (ScalarCast::Compared, Effect::checked(range)),
        (a, Binary | LargeBinary) if text(a) => (ScalarCast::Plain, Effect::widened()),
        (Dictionary(_, value), b) if value.as_ref() == b => (ScalarCast::Plain, Effect::widened()),
        (a, b) if text(b) && (number(a) || a == &Boolean || a.is_temporal()) => {
            (ScalarCast::Text, Effect::widened())
        }
        (a, b) if text(a) && (number(b) || b == &Boolean) => (ScalarCast::Parse, Effect::checked(range)),
        (a, b) if !can_cast_types(a, b) || text(a) && has_negative_scale(b) => return None,
        (Timestamp(..), Time32(_) | Time64(_)) => {
            let effect = Effect::lossy(LossKind::Dropped).because("the date is dropped");
            (ScalarCast::Compared, effect)
        }
        (a, b) if tick(a).is_some() && tick(b).is_some() => times(a, b),
        _ => (ScalarCast::Compared, Effect::checked(precision | range)),
    })
}

pub(super) fn is_text(kind: &DataType) -> bool {
    matches!(kind, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View)
}

fn has_negative_scale(kind: &DataType) -> bool {
    use DataType::{Decimal32, Decimal64, Decimal128, Decimal256};
    matches!(kind, Decimal32(_, ..0) | Decimal64(_, ..0) | Decimal128(_, ..0) | Decimal256(_, ..0))
}

/// The effect of casting decimals: exact if the target has at least as many digits on both sides of the
/// point.
fn decimals(from: &DataType, to: &DataType) -> Effect {
    use DataType::{Decimal32, Decimal64, Decimal128, Decimal256};
    let digits = |kind: &DataType| match kind {
        Decimal32(p, s) | Decimal64(p, s) | Decimal128(p, s) | Decimal256(p, s) => {
            (i16::from(*p) - i16::from(*s), *s)
        }
        _ => (0, 0),
    };
    let ((before, after), (room_before, room_after)) = (digits(from), digits(to));
    match (room_before >= before, room_after >= after) {
        (true, true) => Effect::widened(),
        (false, true) => Effect::checked(LossKind::Range),
        // Rounding up may take one more digit.
        (_, false) => Effect::checked(LossKind::Precision | LossKind::Range),
    }
}

/// How dates, times and durations are cast, and the effect.
fn times(from: &DataType, to: &DataType) -> (ScalarCast, Effect) {
    use DataType::{Date32, Date64, Timestamp};
    let is_date = |kind: &DataType| matches!(kind, Date32 | Date64);
    let units = match (tick(from), tick(to)) {
        (Some(fine), Some(coarse)) if is_date(to) && !is_date(from) || coarse > fine => {
            Effect::checked(LossKind::Precision | LossKind::Range)
        }
        (from, to) if from == to => Effect::exact(),
        _ => Effect::checked(LossKind::Range),
    };
    match (from, to) {
        // The same instants.
        (Timestamp(_, Some(a)), Timestamp(_, Some(b))) if a != b => {
            let note = format!("the zone {a} becomes {b}, the instants stay");
            (ScalarCast::Times, units.and(Effect::widened().because(note)))
        }
        (Timestamp(_, Some(zone)), Timestamp(_, None)) => {
            let note = format!("the zone {zone} is dropped, the times are those of UTC");
            (ScalarCast::Times, units.and(Effect::lossy(LossKind::Timezone).because(note)))
        }
        (Timestamp(_, None), Timestamp(_, Some(zone))) => {
            let note = format!("taken as the local time of {zone}");
            let effect = Effect::checked(LossKind::Precision | LossKind::Range).because(note);
            (ScalarCast::Compared, effect)
        }
        (Timestamp(_, Some(zone)), b) if is_date(b) => {
            let note = format!("the local date of {zone}");
            (ScalarCast::Compared, Effect::lossy(LossKind::Precision | LossKind::Timezone).because(note))
        }
        (a, Timestamp(_, Some(_))) if is_date(a) => (ScalarCast::Compared, units),
        _ => (ScalarCast::Times, units.and(Effect::widened())),
    }
}

/// Casts an array.
pub(super) fn cast(array: &ArrayRef, how: ScalarCast, to: &Field, place: &Place<'_>) -> Result<ArrayRef> {
    let strict = CastOptions { safe: false, ..CastOptions::default() };
    match how {
        ScalarCast::Plain => Ok(cast_with_options(array, to.data_type(), &strict)?),
        ScalarCast::Numbers => fit::numbers(array, to, place),
        ScalarCast::Times => fit::times(array, to, place),
        ScalarCast::Decimals => fit::decimals(array, to, place),
        ScalarCast::ToDecimals => {
            fit::compare(array, decimal::from_floats(array, to.data_type())?, to, place)
        }
        ScalarCast::Compared => fit::compare(array, arrow_cast::cast(array, to.data_type())?, to, place),
        ScalarCast::Text => text(array, to.data_type()),
        ScalarCast::Parse => parse(array, to, place),
        ScalarCast::Nulls => Ok(new_null_array(to.data_type(), array.len())),
        ScalarCast::VoidText => {
            Ok(Arc::new(StringArray::from_iter_values(std::iter::repeat_n("void", array.len()))))
        }
    }
}

/// The text of a value, for messages.
pub(super) fn shown(array: &ArrayRef, index: usize) -> String {
    let text = |array: &ArrayRef| {
        let formatter = ArrayFormatter::try_new(array, &FormatOptions::default()).ok()?;
        formatter.value(index).try_to_string().ok()
    };
    // A date or time that has no text is its number.
    let number = || text(&arrow_cast::cast(array, &DataType::Int64).ok()?);
    text(array).or_else(number).unwrap_or_default()
}

macro_rules! for_integers {
    ($to:expr, $with:ident) => {
        match $to {
            DataType::Int8 => $with!(Int8Type),
            DataType::Int16 => $with!(Int16Type),
            DataType::Int32 => $with!(Int32Type),
            DataType::Int64 => $with!(Int64Type),
            DataType::UInt8 => $with!(UInt8Type),
            DataType::UInt16 => $with!(UInt16Type),
            DataType::UInt32 => $with!(UInt32Type),
            DataType::UInt64 => $with!(UInt64Type),
            _ => return Err(super::unplanned()),
        }
    };
}

/// The shortest text that parses back to the same value.
fn text(array: &ArrayRef, to: &DataType) -> Result<ArrayRef> {
    let options = FormatOptions::default();
    let formatter = ArrayFormatter::try_new(array, &options)?;
    let cell = |index: usize| array.is_valid(index).then(|| formatter.value(index).to_string());
    let texts: StringArray = (0..array.len()).map(cell).collect();
    Ok(arrow_cast::cast(&texts, to)?)
}

/// Parses text as numbers and booleans. No spaces; `true`, `false`, `t`, `f`, `1`, `0` in any case.
fn parse(array: &ArrayRef, to: &Field, place: &Place<'_>) -> Result<ArrayRef> {
    use arrow_array::types::*;
    let texts = arrow_cast::cast(array, &DataType::Utf8)?;
    let texts = texts.as_string::<i32>();
    let mut judge = Judge::new(array, to, place);
    macro_rules! values {
        ($values:expr, $parse:expr) => {{
            let mut values = $values;
            for (index, text) in texts.iter().enumerate() {
                match text.map($parse) {
                    None => values.append_null(),
                    Some(Some(value)) => values.append_value(value),
                    Some(None) => {
                        judge.misfit(index)?;
                        values.append_null();
                    }
                }
            }
            judge.finish();
            Arc::new(values.finish())
        }};
    }
    macro_rules! numbers {
        ($type:ident) => {
            values!(PrimitiveBuilder::<$type>::new(), |text: &str| text.parse().ok())
        };
    }
    // `str::parse` turns a number past the largest float into an infinity.
    let float = |text: &str| text.parse::<f64>().ok().filter(|value| value.is_finite() || is_infinity(text));
    Ok(match to.data_type() {
        DataType::Float64 => values!(PrimitiveBuilder::<Float64Type>::new(), float),
        DataType::Float32 => values!(PrimitiveBuilder::<Float32Type>::new(), |text: &str| {
            text.parse::<f32>().ok().filter(|value| value.is_finite() || is_infinity(text))
        }),
        DataType::Float16 => values!(PrimitiveBuilder::<Float16Type>::new(), |text: &str| {
            let value = half::f16::from_f64(float(text)?);
            (value.is_finite() || is_infinity(text)).then_some(value)
        }),
        DataType::Boolean => values!(BooleanBuilder::new(), |text: &str| {
            match text.to_ascii_lowercase().as_str() {
                "true" | "t" | "1" => Some(true),
                "false" | "f" | "0" => Some(false),
                _ => None,
            }
        }),
        integer => for_integers!(integer, numbers),
    })
}

/// Whether a text that parses as a float spells an infinity or NaN.
fn is_infinity(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_alphabetic() || matches!(byte, b'+' | b'-'))
}
