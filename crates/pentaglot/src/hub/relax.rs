//! Changes values that do not fit, where that is allowed, for writers and reshaping.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date64Type, Float16Type, Float32Type, Float64Type, Time64NanosecondType, TimestampNanosecondType,
};
use arrow_array::{
    Array, ArrayRef, ArrowPrimitiveType, FixedSizeListArray, PrimitiveArray, RecordBatch, make_array,
};
use arrow_buffer::NullBuffer;
use arrow_schema::{DataType, Field, TimeUnit};

use super::loss::{LossKind, LossKinds, LossRecord};
use super::plan::Effect;
use crate::error::{Hint, Result};

/// How a target changes values that it cannot hold, where that is allowed.
#[derive(Debug, Clone, Copy, Default)]
pub struct Rules {
    /// Precision: times in nanoseconds are rounded to a multiple of this.
    pub time_step: Option<i64>,
    /// Precision: a `date64` is truncated to its day.
    pub whole_days: bool,
    /// Range: NaN and infinities become null, in nullable fields.
    pub null_for_nan: bool,
    /// Nulls: they become NaN.
    pub nan_for_null: bool,
}

impl Rules {
    /// The rules of the allowed kinds; `None` if there are none.
    pub fn allowed(self, kinds: LossKinds) -> Option<Self> {
        let precision = kinds.contains(LossKind::Precision);
        let rules = Rules {
            time_step: self.time_step.filter(|_| precision),
            whole_days: self.whole_days && precision,
            null_for_nan: self.null_for_nan && kinds.contains(LossKind::Range),
            nan_for_null: self.nan_for_null && kinds.contains(LossKind::Nulls),
        };
        let is_empty =
            rules.time_step.is_none() && !rules.whole_days && !rules.null_for_nan && !rules.nan_for_null;
        (!is_empty).then_some(rules)
    }

    /// Applies these rules to a batch; changes are added to `lost`.
    pub fn apply(&self, batch: &RecordBatch, lost: &LossRecord) -> Result<RecordBatch> {
        let schema = batch.schema();
        let columns = schema.fields().iter().zip(batch.columns());
        let columns = columns.map(|(field, column)| self.array(column, field, field.name(), lost));
        let columns = columns.collect::<Result<Vec<_>>>()?;
        super::rows::batch(schema, columns, batch.num_rows())
    }

    fn array(&self, array: &ArrayRef, field: &Field, column: &str, lost: &LossRecord) -> Result<ArrayRef> {
        let children: Vec<&Field> = match array.data_type() {
            DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => vec![item],
            DataType::Struct(fields) => fields.iter().map(AsRef::as_ref).collect(),
            _ => return Ok(self.leaf(array, field, column, lost)),
        };
        let data = array.to_data();
        let parts = data.child_data().iter().zip(children);
        let parts = parts
            .map(|(part, field)| Ok(self.array(&make_array(part.clone()), field, column, lost)?.to_data()));
        let parts = parts.collect::<Result<Vec<_>>>()?;
        Ok(make_array(data.into_builder().child_data(parts).build()?))
    }

    fn leaf(&self, array: &ArrayRef, field: &Field, column: &str, lost: &LossRecord) -> ArrayRef {
        let changed = match array.data_type() {
            DataType::Timestamp(TimeUnit::Nanosecond, _) => self.time_step.and_then(|step| {
                rounded(
                    array.as_primitive::<TimestampNanosecondType>(),
                    |value| nearest(value, step),
                    column,
                    lost,
                )
            }),
            DataType::Time64(TimeUnit::Nanosecond) => self.time_step.and_then(|step| {
                rounded(
                    array.as_primitive::<Time64NanosecondType>(),
                    |value| nearest(value, step),
                    column,
                    lost,
                )
            }),
            DataType::Date64 if self.whole_days => rounded(
                array.as_primitive::<Date64Type>(),
                |value| Some(value - value.rem_euclid(DAY)),
                column,
                lost,
            ),
            kind if kind.is_floating() && self.nan_for_null && array.null_count() > 0 => {
                let example = || Some("null".to_owned());
                lost.add(LossKind::Nulls, column, array.null_count() as u64, example);
                nan_for_nulls(array)
            }
            kind if kind.is_floating() && self.null_for_nan && field.is_nullable() => {
                null_for_nan(array, column, lost)
            }
            _ => None,
        };
        changed.unwrap_or_else(|| Arc::clone(array))
    }
}

/// Milliseconds.
const DAY: i64 = 86_400_000;

/// The nearest multiple, ties to even; `None` if it exceeds 64 bits.
fn nearest(value: i64, step: i64) -> Option<i64> {
    let (below, rest) = (value.div_euclid(step), value.rem_euclid(step));
    let up = rest > step - rest || rest == step - rest && below % 2 != 0;
    (below + i64::from(up)).checked_mul(step)
}

/// The array with every value rounded, if that changes any. A value that cannot be rounded stays as it is.
fn rounded<T: ArrowPrimitiveType<Native = i64>>(
    array: &PrimitiveArray<T>,
    round: impl Fn(i64) -> Option<i64>,
    column: &str,
    lost: &LossRecord,
) -> Option<ArrayRef> {
    let changes = |index: usize| {
        let value = array.value(index);
        array.is_valid(index) && round(value).is_some_and(|rounded| rounded != value)
    };
    let count = (0..array.len()).filter(|index| changes(*index)).count();
    if count == 0 {
        return None;
    }
    let first = (0..array.len()).find(|index| changes(*index))?;
    let example = || Some(array.value(first).to_string());
    lost.add(LossKind::Precision, column, count as u64, example);
    let values: PrimitiveArray<T> = array.unary(|value| round(value).unwrap_or(value));
    Some(Arc::new(values.with_data_type(array.data_type().clone())))
}

/// The array with nulls in place of NaN and infinities, if there are any.
fn null_for_nan(array: &ArrayRef, column: &str, lost: &LossRecord) -> Option<ArrayRef> {
    let wide = arrow_cast::cast(array, &DataType::Float64).ok()?;
    let wide = wide.as_primitive::<Float64Type>();
    let is_kept = |index: usize| array.is_null(index) || wide.value(index).is_finite();
    let first = (0..array.len()).find(|index| !is_kept(*index))?;
    let count = (0..array.len()).filter(|index| !is_kept(*index)).count();
    lost.add(LossKind::Range, column, count as u64, || Some(wide.value(first).to_string()));
    let finite: NullBuffer = (0..array.len()).map(|index| wide.value(index).is_finite()).collect();
    let nulls = NullBuffer::union(array.nulls(), Some(&finite));
    Some(make_array(array.to_data().into_builder().nulls(nulls).build().ok()?))
}

/// The effect on nullable values of this type in a target without nulls: NaN takes their place if that is allowed, and
/// the type has it.
pub fn no_nulls(kind: &DataType, note: &str) -> Effect {
    match kind {
        DataType::Dictionary(_, value) => no_nulls(value, note),
        kind if kind.is_floating() => Effect::checked(LossKind::Nulls).because(note),
        kind if kind.is_integer() => Effect::strict().because(format!("{note}; integers have no NaN")),
        _ => Effect::strict().because(note),
    }
}

/// What helps where a null of this column is refused.
pub fn no_nulls_hint(kind: &DataType, column: &str) -> Hint {
    match kind {
        kind if kind.is_floating() => Hint::Option("nulls=nan".into()),
        kind if kind.is_integer() => {
            Hint::Advice("after a cast to float64 the option nulls=nan makes them NaN".into())
        }
        _ => Hint::Argument("where", format!("\"{}\" is not null", column.replace('"', "\"\"")).into()),
    }
}

/// The array with NaN in place of nulls, if it is of floats.
pub fn nan_for_nulls(array: &ArrayRef) -> Option<ArrayRef> {
    macro_rules! filled {
        ($type:ty, $nan:expr) => {{
            let values = array.as_primitive::<$type>();
            let filled = values.iter().map(|value| value.unwrap_or($nan));
            Some(Arc::new(PrimitiveArray::<$type>::from_iter_values(filled)) as ArrayRef)
        }};
    }
    match array.data_type() {
        DataType::Float16 => filled!(Float16Type, half::f16::NAN),
        DataType::Float32 => filled!(Float32Type, f32::NAN),
        DataType::Float64 => filled!(Float64Type, f64::NAN),
        _ => None,
    }
}

/// An array of a nullable field, or a list of such, with nulls in place of NaN.
pub(crate) fn null_for_nan_in(array: &ArrayRef, field: &Field) -> ArrayRef {
    if let (DataType::FixedSizeList(item, size), Some(list)) =
        (field.data_type(), array.as_fixed_size_list_opt())
    {
        let values = null_for_nan_in(list.values(), item);
        let again = FixedSizeListArray::try_new_with_length(
            Arc::clone(item),
            *size,
            values,
            list.nulls().cloned(),
            list.len(),
        );
        return again.map_or_else(|_| Arc::clone(array), |list| Arc::new(list) as ArrayRef);
    }
    macro_rules! nulled {
        ($type:ty) => {{
            let values = array.as_primitive::<$type>();
            let valid: NullBuffer = values.values().iter().map(|value| !value.is_nan()).collect();
            let nulls =
                NullBuffer::union(values.nulls(), Some(&valid)).filter(|nulls| nulls.null_count() > 0);
            Arc::new(PrimitiveArray::<$type>::new(values.values().clone(), nulls)) as ArrayRef
        }};
    }
    match array.data_type() {
        DataType::Float16 if field.is_nullable() => nulled!(Float16Type),
        DataType::Float32 if field.is_nullable() => nulled!(Float32Type),
        DataType::Float64 if field.is_nullable() => nulled!(Float64Type),
        _ => Arc::clone(array),
    }
}
