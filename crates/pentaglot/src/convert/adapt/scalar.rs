//! Casts of single values, and which of them preserve every value.

use std::sync::Arc;

use arrow_array::builder::{BooleanBuilder, PrimitiveBuilder};
use arrow_array::cast::AsArray;
use arrow_array::types::Float64Type;
use arrow_array::{Array, ArrayRef, BooleanArray, PrimitiveArray, StringArray, new_null_array};
use arrow_cast::display::{ArrayFormatter, FormatOptions};
use arrow_cast::{CastOptions, can_cast_types, cast_with_options};
use arrow_schema::{DataType, TimeUnit};

use super::apply::Place;
use crate::convert::reshape::holds;
use crate::error::{Error, Result};
use crate::hub::type_text::print_type;

/// How single values are cast.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ScalarCast {
    /// Every value survives: Arrow's own cast.
    Plain,
    /// Arrow's own cast; a value that does not fit ends the run.
    Checked,
    /// Integers keep their low bits.
    Wrap,
    /// Floats are cut towards zero and saturate; NaN becomes 0.
    Saturate,
    /// Not zero is true.
    Truth,
    /// The shortest text.
    Text,
    Parse,
    Nulls,
    VoidText,
}

/// The cast from one type to another and what it does, if there is one.
pub(super) fn plan(from: &DataType, to: &DataType) -> Option<(ScalarCast, crate::hub::Verdict)> {
    use crate::hub::Verdict::{Checked, Lossy, Widened};
    use DataType::{
        Binary, Boolean, Decimal128, Decimal256, Dictionary, LargeBinary, LargeUtf8, Utf8, Utf8View,
    };
    let number = |kind: &DataType| kind.is_integer() || kind.is_floating();
    let text = |kind: &DataType| matches!(kind, Utf8 | LargeUtf8 | Utf8View);
    Some(match (from, to) {
        (a, b) if number(a) && number(b) && holds(b, a) => (ScalarCast::Plain, Widened),
        (a, b) if a.is_integer() && b.is_integer() => (ScalarCast::Wrap, Lossy),
        (a, b) if a.is_floating() && b.is_integer() => (ScalarCast::Saturate, Lossy),
        (a, b) if number(a) && number(b) => (ScalarCast::Plain, Lossy),
        (Boolean, b) if number(b) => (ScalarCast::Plain, Widened),
        (a, Boolean) if number(a) => (ScalarCast::Truth, Lossy),
        (Decimal128(p, s) | Decimal256(p, s), Decimal128(q, t) | Decimal256(q, t))
            if t >= s && i16::from(*q) - i16::from(*t) >= i16::from(*p) - i16::from(*s) =>
        {
            (ScalarCast::Plain, Widened)
        }
        (a, b) if text(a) && text(b) => (ScalarCast::Plain, Widened),
        (Binary | LargeBinary, b) if text(b) => (ScalarCast::Checked, Checked),
        (a, Binary | LargeBinary) if text(a) => (ScalarCast::Plain, Widened),
        (Dictionary(_, value), b) if value.as_ref() == b => (ScalarCast::Plain, Widened),
        (a, b) if text(b) && (number(a) || a == &Boolean || a.is_temporal()) => (ScalarCast::Text, Widened),
        (a, b) if text(a) && (number(b) || b == &Boolean) => (ScalarCast::Parse, Checked),
        (a, b) if !can_cast_types(a, b) => return None,
        (a, b) if text(a) || text(b) => (ScalarCast::Checked, Checked),
        (a, b) if a.is_temporal() && b.is_temporal() => match (resolution(a), resolution(b)) {
            (Some(fine), Some(coarse)) if coarse < fine => (ScalarCast::Checked, Lossy),
            _ => (ScalarCast::Checked, Checked),
        },
        _ => (ScalarCast::Checked, Lossy),
    })
}

/// Ticks per day, as a rank.
fn resolution(kind: &DataType) -> Option<u8> {
    let unit = |unit: &TimeUnit| match unit {
        TimeUnit::Second => 1,
        TimeUnit::Millisecond => 2,
        TimeUnit::Microsecond => 3,
        TimeUnit::Nanosecond => 4,
    };
    Some(match kind {
        DataType::Date32 => 0,
        DataType::Date64 => 2,
        DataType::Timestamp(own, _)
        | DataType::Time32(own)
        | DataType::Time64(own)
        | DataType::Duration(own) => unit(own),
        _ => return None,
    })
}

/// Casts an array.
pub(super) fn cast(array: &ArrayRef, how: ScalarCast, to: &DataType, place: &Place<'_>) -> Result<ArrayRef> {
    let strict = CastOptions { safe: false, ..CastOptions::default() };
    match how {
        ScalarCast::Plain => Ok(cast_with_options(array, to, &strict)?),
        ScalarCast::Checked => {
            let lenient = cast_with_options(array, to, &CastOptions::default())?;
            match (0..array.len()).find(|index| lenient.is_null(*index) && array.is_valid(*index)) {
                None => Ok(lenient),
                Some(index) => Err(does_not_fit(array, index, to, place)),
            }
        }
        ScalarCast::Wrap => wrapped(array, to),
        ScalarCast::Saturate => {
            let floats = cast_with_options(array, &DataType::Float64, &strict)?;
            saturated(floats.as_primitive::<Float64Type>(), to)
        }
        ScalarCast::Truth => {
            let floats = cast_with_options(array, &DataType::Float64, &CastOptions::default())?;
            let floats = floats.as_primitive::<Float64Type>();
            Ok(Arc::new(floats.iter().map(|value| value.map(|value| value != 0.0)).collect::<BooleanArray>()))
        }
        ScalarCast::Text => text(array, to),
        ScalarCast::Parse => parse(array, to, place),
        ScalarCast::Nulls => Ok(new_null_array(to, array.len())),
        ScalarCast::VoidText => {
            Ok(Arc::new(StringArray::from_iter_values(std::iter::repeat_n("void", array.len()))))
        }
    }
}

fn does_not_fit(array: &ArrayRef, index: usize, to: &DataType, place: &Place<'_>) -> Error {
    let shown = ArrayFormatter::try_new(array, &FormatOptions::default());
    let shown = shown.map_or(String::new(), |formatter| formatter.value(index).to_string());
    place.refuse(index, format!("{shown:?} does not become {}", print_type(to)))
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

/// Integers keep their low bits, as every program that narrows them does.
fn wrapped(array: &ArrayRef, to: &DataType) -> Result<ArrayRef> {
    use arrow_array::types::*;
    // All integers through 64 bits: the low bits are the same whether signed or not.
    let wide: Vec<u64> = {
        macro_rules! widen {
            ($type:ident) => {
                array.as_primitive::<$type>().values().iter().map(|value| *value as u64).collect()
            };
        }
        for_integers!(array.data_type(), widen)
    };
    macro_rules! narrow {
        ($type:ident) => {{
            let values = wide.iter().map(|value| *value as <$type as ArrowPrimitiveType>::Native);
            Arc::new(PrimitiveArray::<$type>::new(values.collect(), array.nulls().cloned()))
        }};
    }
    Ok(for_integers!(to, narrow))
}

/// Floats are cut towards zero and saturate; NaN becomes 0: what `as` does.
fn saturated(floats: &PrimitiveArray<Float64Type>, to: &DataType) -> Result<ArrayRef> {
    use arrow_array::types::*;
    macro_rules! narrow {
        ($type:ident) => {{
            let values = floats.values().iter().map(|value| *value as <$type as ArrowPrimitiveType>::Native);
            Arc::new(PrimitiveArray::<$type>::new(values.collect(), floats.nulls().cloned()))
        }};
    }
    Ok(for_integers!(to, narrow))
}

/// The shortest text that reads back to the same value.
fn text(array: &ArrayRef, to: &DataType) -> Result<ArrayRef> {
    let options = FormatOptions::default();
    let formatter = ArrayFormatter::try_new(array, &options)?;
    let cell = |index: usize| array.is_valid(index).then(|| formatter.value(index).to_string());
    let texts: StringArray = (0..array.len()).map(cell).collect();
    Ok(arrow_cast::cast(&texts, to)?)
}

/// Text to numbers and truth values. No spaces; `true`, `false`, `t`, `f`, `1`, `0` in any case.
fn parse(array: &ArrayRef, to: &DataType, place: &Place<'_>) -> Result<ArrayRef> {
    use arrow_array::types::*;
    let texts = arrow_cast::cast(array, &DataType::Utf8)?;
    let texts = texts.as_string::<i32>();
    macro_rules! numbers {
        ($type:ident) => {{
            let mut values = PrimitiveBuilder::<$type>::new();
            for (index, text) in texts.iter().enumerate() {
                match text.map(str::parse) {
                    None => values.append_null(),
                    Some(Ok(value)) => values.append_value(value),
                    Some(Err(_)) => return Err(does_not_fit(array, index, to, place)),
                }
            }
            Arc::new(values.finish())
        }};
    }
    Ok(match to {
        DataType::Float32 => numbers!(Float32Type),
        DataType::Float64 => numbers!(Float64Type),
        DataType::Float16 => {
            let wide = parse(array, &DataType::Float64, place)?;
            arrow_cast::cast(&wide, to)?
        }
        DataType::Boolean => {
            let mut values = BooleanBuilder::new();
            for (index, text) in texts.iter().enumerate() {
                match text.map(|text| text.to_ascii_lowercase()).as_deref() {
                    None => values.append_null(),
                    Some("true" | "t" | "1") => values.append_value(true),
                    Some("false" | "f" | "0") => values.append_value(false),
                    Some(_) => return Err(does_not_fit(array, index, to, place)),
                }
            }
            Arc::new(values.finish())
        }
        integer => for_integers!(integer, numbers),
    })
}
