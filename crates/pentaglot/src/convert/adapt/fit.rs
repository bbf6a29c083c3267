//! Casts that may change values: which values are kept, what the others become if that is allowed, and how many
//! there are.
//!
//! | from, to | kind | with the kind allowed |
//! |---|---|---|
//! | a number or time with more digits than the target has | precision | rounded to nearest even; float to integer: cut towards zero; timestamp to date: the day it is in |
//! | a number, time or text outside the target's values; NaN and infinities to integers | range | null, if the target is nullable |
//!
//! Values never wrap around or saturate.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::*;
use arrow_array::{Array, ArrayRef, BooleanArray, PrimitiveArray, make_array};
use arrow_buffer::{BooleanBufferBuilder, Buffer, NullBuffer, i256};
use arrow_data::ArrayData;
use arrow_schema::{DataType, Field, TimeUnit};

use super::apply::Place;
use super::{scalar, unplanned};
use crate::error::{Hint, Result};
use crate::hub::LossKind;
use crate::hub::type_text::print_type;

/// The result of casting one value.
pub(super) enum Fit<T> {
    Exact(T),
    Rounded(T),
    Misfit,
}

/// Decides what happens to the values of one array that the target cannot hold, and counts those that are
/// changed.
pub(super) struct Judge<'a> {
    array: &'a ArrayRef,
    to: &'a Field,
    place: &'a Place<'a>,
    rounded: u64,
    first_rounded: usize,
    misfits: Vec<usize>,
}

impl<'a> Judge<'a> {
    pub(super) fn new(array: &'a ArrayRef, to: &'a Field, place: &'a Place<'a>) -> Self {
        Judge { array, to, place, rounded: 0, first_rounded: 0, misfits: Vec::new() }
    }

    /// Returns an error unless values may be rounded.
    #[cold]
    pub(super) fn rounded(&mut self, index: usize) -> Result<()> {
        if !(self.place.is_live)(index) {
            return Ok(());
        }
        if !self.place.allowed.contains(LossKind::Precision) {
            return Err(self.refuse(index).hint(LossKind::Precision.hint()));
        }
        if self.rounded == 0 {
            self.first_rounded = index;
        }
        self.rounded += 1;
        Ok(())
    }

    /// Returns an error unless values may become null.
    #[cold]
    pub(super) fn misfit(&mut self, index: usize) -> Result<()> {
        if !(self.place.is_live)(index) {
            return Ok(());
        }
        if !self.to.is_nullable() {
            return Err(self.refuse(index));
        }
        if !self.place.allowed.contains(LossKind::Range) {
            let error = self.refuse(index);
            // A text that is no number at all is not out of range.
            return Err(match scalar::is_text(self.array.data_type()) && !self.is_number(index) {
                true => {
                    error.hint(Hint::Advice("such texts become null if losses of range are allowed".into()))
                }
                false => error.hint(LossKind::Range.hint()),
            });
        }
        self.misfits.push(index);
        Ok(())
    }

    /// Whether a text is a number, which may be too large for the target.
    fn is_number(&self, index: usize) -> bool {
        scalar::shown(self.array, index).parse::<f64>().is_ok()
    }

    fn refuse(&self, index: usize) -> crate::error::Error {
        let kind = print_type(self.to.data_type());
        self.place.refuse(index, format!("{:?} does not become {kind}", scalar::shown(self.array, index)))
    }

    /// Records what was changed and returns the nulls of the result: those of the array and the values that do not
    /// fit.
    pub(super) fn finish(self) -> Option<NullBuffer> {
        let lost = |kind, values: u64, first: Option<usize>| {
            self.place
                .lost
                .add(kind, self.place.column, values, || first.map(|index| scalar::shown(self.array, index)));
        };
        lost(LossKind::Precision, self.rounded, Some(self.first_rounded));
        lost(LossKind::Range, self.misfits.len() as u64, self.misfits.first().copied());
        let nulls = self.array.logical_nulls();
        if self.misfits.is_empty() {
            return nulls;
        }
        let mut valid = BooleanBufferBuilder::new(self.array.len());
        match &nulls {
            Some(nulls) => valid.append_buffer(nulls.inner()),
            None => valid.append_n(self.array.len(), true),
        }
        self.misfits.iter().for_each(|index| valid.set_bit(*index, false));
        Some(NullBuffer::new(valid.finish()))
    }

    /// One result per value of the array; null values are skipped.
    fn collect<T: Default>(&mut self, fit: impl Fn(usize) -> Fit<T>) -> Result<Vec<T>> {
        let nulls = self.array.nulls().cloned();
        let mut out = Vec::new();
        for index in 0..self.array.len() {
            if nulls.as_ref().is_some_and(|nulls| nulls.is_null(index)) {
                out.push(T::default());
                continue;
            }
            out.push(match fit(index) {
                Fit::Exact(value) => value,
                Fit::Rounded(value) => {
                    self.rounded(index)?;
                    value
                }
                Fit::Misfit => {
                    self.misfit(index)?;
                    T::default()
                }
            });
        }
        Ok(out)
    }
}

/// A numeric type that numbers are cast to.
trait Number: ArrowPrimitiveType {
    fn of_integer(value: i128) -> Fit<Self::Native>;
    fn of_float(value: f64) -> Fit<Self::Native>;
}

macro_rules! integers {
    ($($type:ty),*) => {$(
        impl Number for $type {
            fn of_integer(value: i128) -> Fit<Self::Native> {
                Self::Native::try_from(value).map_or(Fit::Misfit, Fit::Exact)
            }

            fn of_float(value: f64) -> Fit<Self::Native> {
                if !value.is_finite() {
                    return Fit::Misfit;
                }
                // The cast saturates at 2^127, which is out of range for every target type.
                let cut = value as i128;
                match Self::Native::try_from(cut) {
                    // Compares bits, not values: -0.0 is not an integer.
                    Ok(integer) if (cut as f64).to_bits() == value.to_bits() => Fit::Exact(integer),
                    Ok(integer) => Fit::Rounded(integer),
                    Err(_) => Fit::Misfit,
                }
            }
        }
    )*};
}

integers!(Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type);

macro_rules! floats {
    ($($type:ty, $narrow:expr, $wide:expr;)*) => {$(
        impl Number for $type {
            fn of_integer(value: i128) -> Fit<Self::Native> {
                let narrow = $narrow(value as f64);
                match $wide(narrow) {
                    wide if wide.is_infinite() => Fit::Misfit,
                    wide if wide as i128 == value => Fit::Exact(narrow),
                    // Rounded only once, since float64 holds every float16 exactly.
                    _ => Fit::Rounded(narrow),
                }
            }

            fn of_float(value: f64) -> Fit<Self::Native> {
                let narrow = $narrow(value);
                match $wide(narrow) {
                    wide if value.is_nan() || wide == value => Fit::Exact(narrow),
                    wide if wide.is_infinite() => Fit::Misfit,
                    _ => Fit::Rounded(narrow),
                }
            }
        }
    )*};
}

floats! {
    Float16Type, half::f16::from_f64, half::f16::to_f64;
    Float64Type, |value: f64| value, |value: f64| value;
}

impl Number for Float32Type {
    fn of_integer(value: i128) -> Fit<f32> {
        // Not through float64, which would round twice.
        let narrow = value as f32;
        if narrow as i128 == value { Fit::Exact(narrow) } else { Fit::Rounded(narrow) }
    }

    fn of_float(value: f64) -> Fit<f32> {
        let narrow = value as f32;
        match f64::from(narrow) {
            wide if value.is_nan() || wide == value => Fit::Exact(narrow),
            wide if wide.is_infinite() => Fit::Misfit,
            _ => Fit::Rounded(narrow),
        }
    }
}

/// The numbers of an array, as the widest type of their kind.
enum Numbers {
    Integers(Vec<i128>),
    Floats(Vec<f64>),
}

impl Numbers {
    fn of(array: &ArrayRef) -> Result<Self> {
        macro_rules! integers {
            ($type:ty) => {
                Numbers::Integers(
                    array.as_primitive::<$type>().values().iter().map(|v| i128::from(*v)).collect(),
                )
            };
        }
        Ok(match array.data_type() {
            DataType::Int8 => integers!(Int8Type),
            DataType::Int16 => integers!(Int16Type),
            DataType::Int32 => integers!(Int32Type),
            DataType::Int64 => integers!(Int64Type),
            DataType::UInt8 => integers!(UInt8Type),
            DataType::UInt16 => integers!(UInt16Type),
            DataType::UInt32 => integers!(UInt32Type),
            DataType::UInt64 => integers!(UInt64Type),
            DataType::Float16 => {
                let values = array.as_primitive::<Float16Type>().values();
                Numbers::Floats(values.iter().map(|value| value.to_f64()).collect())
            }
            DataType::Float32 => {
                let values = array.as_primitive::<Float32Type>().values();
                Numbers::Floats(values.iter().map(|value| f64::from(*value)).collect())
            }
            DataType::Float64 => Numbers::Floats(array.as_primitive::<Float64Type>().values().to_vec()),
            _ => return Err(unplanned()),
        })
    }

    fn fit<T: Number>(&self, index: usize) -> Fit<T::Native> {
        match self {
            Numbers::Integers(values) => T::of_integer(values[index]),
            Numbers::Floats(values) => T::of_float(values[index]),
        }
    }
}

/// Casts numbers to numeric types or booleans that may not hold them.
pub(super) fn numbers(array: &ArrayRef, to: &Field, place: &Place<'_>) -> Result<ArrayRef> {
    let numbers = Numbers::of(array)?;
    let mut judge = Judge::new(array, to, place);
    macro_rules! fitted {
        ($type:ty) => {{
            let values = judge.collect(|index| numbers.fit::<$type>(index))?;
            Arc::new(PrimitiveArray::<$type>::new(values.into(), judge.finish()))
        }};
    }
    Ok(match to.data_type() {
        DataType::Int8 => fitted!(Int8Type),
        DataType::Int16 => fitted!(Int16Type),
        DataType::Int32 => fitted!(Int32Type),
        DataType::Int64 => fitted!(Int64Type),
        DataType::UInt8 => fitted!(UInt8Type),
        DataType::UInt16 => fitted!(UInt16Type),
        DataType::UInt32 => fitted!(UInt32Type),
        DataType::UInt64 => fitted!(UInt64Type),
        DataType::Float16 => fitted!(Float16Type),
        DataType::Float32 => fitted!(Float32Type),
        DataType::Float64 => fitted!(Float64Type),
        DataType::Boolean => {
            // Booleans are the integers 0 and 1.
            let bits = judge.collect(|index| match numbers.fit::<UInt8Type>(index) {
                Fit::Exact(bit @ 0..=1) => Fit::Exact(bit == 1),
                Fit::Rounded(bit @ 0..=1) => Fit::Rounded(bit == 1),
                _ => Fit::Misfit,
            })?;
            Arc::new(BooleanArray::new(bits.into(), judge.finish()))
        }
        _ => return Err(unplanned()),
    })
}

const DAY: i128 = 86_400_000_000_000;

/// Nanoseconds per tick of a date, time or duration type.
pub(super) fn tick(kind: &DataType) -> Option<i128> {
    let unit = |unit: &TimeUnit| match unit {
        TimeUnit::Second => 1_000_000_000,
        TimeUnit::Millisecond => 1_000_000,
        TimeUnit::Microsecond => 1_000,
        TimeUnit::Nanosecond => 1,
    };
    Some(match kind {
        DataType::Date32 => DAY,
        DataType::Date64 => 1_000_000,
        DataType::Timestamp(own, _)
        | DataType::Time32(own)
        | DataType::Time64(own)
        | DataType::Duration(own) => unit(own),
        _ => return None,
    })
}

/// Casts dates, times and durations to other units.
pub(super) fn times(array: &ArrayRef, to: &Field, place: &Place<'_>) -> Result<ArrayRef> {
    let (Some(from_tick), Some(to_tick)) = (tick(array.data_type()), tick(to.data_type())) else {
        return Err(unplanned());
    };
    let data = array.to_data();
    let values: Vec<i64> = match array.data_type().primitive_width() {
        Some(4) => data.buffer::<i32>(0)[..array.len()].iter().map(|value| i64::from(*value)).collect(),
        Some(8) => data.buffer::<i64>(0)[..array.len()].to_vec(),
        _ => return Err(unplanned()),
    };
    let is_date = matches!(to.data_type(), DataType::Date32 | DataType::Date64);
    let is_time = matches!(to.data_type(), DataType::Time32(_) | DataType::Time64(_));
    // A date64 counts milliseconds, but holds whole days.
    let step = if is_date { DAY } else { to_tick };
    let fit = |index: usize| -> Fit<i64> {
        let nanoseconds = i128::from(values[index]) * from_tick;
        let below = nanoseconds.div_euclid(step);
        let rest = nanoseconds.rem_euclid(step);
        let up = !is_date && (rest * 2 > step || rest * 2 == step && below % 2 != 0);
        let ticks = (below + i128::from(up)) * (step / to_tick);
        let day_is_over = is_time && ticks * to_tick >= DAY && nanoseconds < DAY;
        let narrow = to.data_type().primitive_width() == Some(4) && i32::try_from(ticks).is_err();
        match i64::try_from(ticks) {
            Ok(ticks) if !narrow && !day_is_over => match rest {
                0 => Fit::Exact(ticks),
                _ => Fit::Rounded(ticks),
            },
            _ => Fit::Misfit,
        }
    };
    let mut judge = Judge::new(array, to, place);
    let ticks = judge.collect(fit)?;
    let nulls = judge.finish();
    let buffer = match to.data_type().primitive_width() {
        Some(4) => Buffer::from_iter(ticks.iter().map(|ticks| *ticks as i32)),
        _ => Buffer::from_vec(ticks),
    };
    let data = ArrayData::builder(to.data_type().clone()).len(array.len()).add_buffer(buffer).nulls(nulls);
    Ok(make_array(data.build()?))
}

/// Casts decimals to another scale or to fewer digits.
pub(super) fn decimals(array: &ArrayRef, to: &Field, place: &Place<'_>) -> Result<ArrayRef> {
    let scale = |kind: &DataType| match kind {
        DataType::Decimal32(precision, scale)
        | DataType::Decimal64(precision, scale)
        | DataType::Decimal128(precision, scale)
        | DataType::Decimal256(precision, scale) => Ok((*precision, *scale)),
        _ => Err(unplanned()),
    };
    let (_, from_scale) = scale(array.data_type())?;
    let (to_precision, to_scale) = scale(to.data_type())?;
    let wide = arrow_cast::cast(array, &DataType::Decimal256(76, from_scale))?;
    let wide = wide.as_primitive::<Decimal256Type>();
    let power = |digits: u32| i256::from_i128(10).checked_pow(digits);
    let shift = i32::from(to_scale) - i32::from(from_scale);
    let factor = power(shift.unsigned_abs());
    let most = power(u32::from(to_precision)).unwrap_or(i256::MAX);
    let fit = |index: usize| -> Fit<i256> {
        let value = wide.value(index);
        let (scaled, is_exact) = match (shift, factor) {
            (0.., Some(factor)) => match value.checked_mul(factor) {
                Some(scaled) => (scaled, true),
                None => return Fit::Misfit,
            },
            (0.., None) => return if value == i256::ZERO { Fit::Exact(value) } else { Fit::Misfit },
            (_, Some(factor)) => {
                let (quotient, rest) = (value / factor, value % factor);
                let one = if value < i256::ZERO { i256::MINUS_ONE } else { i256::ONE };
                let half = factor / i256::from_i128(2);
                let away = rest.wrapping_abs();
                let is_odd = quotient % i256::from_i128(2) != i256::ZERO;
                let up = away > half || away == half && is_odd;
                (if up { quotient + one } else { quotient }, rest == i256::ZERO)
            }
            (_, None) => (i256::ZERO, value == i256::ZERO),
        };
        match scaled.wrapping_abs() < most {
            true if is_exact => Fit::Exact(scaled),
            true => Fit::Rounded(scaled),
            false => Fit::Misfit,
        }
    };
    let mut judge = Judge::new(array, to, place);
    let values = judge.collect(fit)?;
    let scaled = PrimitiveArray::<Decimal256Type>::new(values.into(), judge.finish())
        .with_precision_and_scale(76, to_scale)?;
    Ok(arrow_cast::cast(&scaled, to.data_type())?)
}

/// The result of a cast, checked by casting back: a value that becomes null does not fit, one that comes back different
/// was rounded.
pub(super) fn compare(array: &ArrayRef, there: ArrayRef, to: &Field, place: &Place<'_>) -> Result<ArrayRef> {
    let back = match arrow_cast::can_cast_types(to.data_type(), array.data_type()) {
        true => Some(arrow_cast::cast(&there, array.data_type())?),
        false => None,
    };
    if there.null_count() == array.null_count() && back.as_ref().is_none_or(|back| back == array) {
        return Ok(there);
    }
    let mut judge = Judge::new(array, to, place);
    for index in 0..array.len() {
        let changed = |back: &ArrayRef| back.slice(index, 1) != array.slice(index, 1);
        if array.is_null(index) {
            continue;
        } else if there.is_null(index) {
            judge.misfit(index)?;
        } else if back.as_ref().is_some_and(changed) {
            judge.rounded(index)?;
        }
    }
    judge.finish();
    Ok(there)
}
