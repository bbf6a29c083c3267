//! What Parquet (or the `parquet` crate) has no type for is stored as something near, and comes back exactly: the true
//! schema stands in the footer under [`SCHEMA_KEY`].
//!
//! | Arrow type | stored as | |
//! |---|---|---|
//! | `FixedSizeBinary(0)`, struct without fields | Boolean: null, or false | exact |
//! | interval of months, days and nanoseconds | struct `months`, `days`, `nanoseconds` | exact |
//! | decimal with a negative scale | decimal of scale 0 with more digits | exact, up to 76 digits |
//! | `Decimal32(1, s)` | `Decimal64(1, s)` | exact |
//! | `timestamp[s]`, with a zone or without | `timestamp[ms]` | exact, if milliseconds fit 64 bits |
//! | `time[s]` | `time[ms]` | exact, if milliseconds fit 32 bits |
//! | `date64` | `date32` | exact, if every value is a whole day |
//! | run-end encoded numbers, texts, bytes | their values | exact |
//! | ordered dictionary of texts or integers | a dictionary, and its levels in the footer | checked |
//! | ordered dictionary of others, or inside a list or struct | a dictionary of the values that occur | lossy |
//! | dictionary of views, booleans, float16, decimals past 18 digits, intervals or nested values | its values | widened |
//! | union, run-end encoded null, nested or dictionary values | | impossible |

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Date64Type, Int32Type, Int64Type, IntervalMonthDayNanoType, Time32MillisecondType,
    Time32SecondType, TimestampMillisecondType, TimestampSecondType,
};
use arrow_array::{
    Array, ArrayRef, BooleanArray, FixedSizeBinaryArray, Int32Array, Int64Array, IntervalMonthDayNanoArray,
    PrimitiveArray, RecordBatch, StructArray, UInt64Array, make_array,
};
use arrow_buffer::{BooleanBuffer, Buffer, IntervalMonthDayNano};
use arrow_schema::{DataType, Field, Fields, IntervalUnit, Schema, SchemaRef, TimeUnit};

use super::levels;
use crate::error::{Error, ErrorKind, Result};
use crate::hub::type_text::{print_field, print_type};
use crate::hub::{Effect, LossKind, Plan, Verdict, rows};

/// Footer key of the true Arrow schema (base64 of an IPC schema message), where it is not the stored one.
pub(super) const SCHEMA_KEY: &str = "pentaglot.schema";

/// How a field is stored.
struct Stored {
    data_type: DataType,
    effect: Effect,
}

impl Stored {
    fn same(data_type: &DataType) -> Self {
        Stored { data_type: data_type.clone(), effect: Effect::exact() }
    }

    fn as_type(data_type: DataType, note: &'static str) -> Self {
        Stored { data_type, effect: Effect::exact().because(note) }
    }

    fn checked(data_type: DataType, kind: LossKind, note: &'static str) -> Self {
        Stored { data_type, effect: Effect::checked(kind).because(note) }
    }

    fn impossible(data_type: &DataType, note: &'static str) -> Self {
        Stored { data_type: data_type.clone(), effect: Effect::impossible(note) }
    }
}

/// What writing this schema would do.
pub(super) fn plan(schema: &Schema) -> Plan {
    let mut plan = Plan::default();
    for field in schema.fields() {
        let (to, mut stored) = stored_field(field);
        if levels::kept(field).is_some() {
            stored.effect =
                Effect::checked(LossKind::Order).because("all batches must have one order of values");
        }
        let from = print_field(field);
        let is_impossible = stored.effect.verdict == Verdict::Impossible;
        let to = if is_impossible { "nothing".to_owned() } else { print_field(&to) };
        plan.step(field.name(), from, to, stored.effect);
    }
    plan
}

/// The schema that is stored.
pub(super) fn stored_schema(schema: &Schema) -> Schema {
    let fields: Vec<Field> = schema.fields().iter().map(|field| stored_field(field).0).collect();
    Schema::new_with_metadata(fields, schema.metadata().clone())
}

fn stored_field(field: &Field) -> (Field, Stored) {
    let mut stored = stored(field.data_type());
    if levels::is_ordered(field) && matches!(stored.data_type, DataType::Dictionary(..)) {
        stored.effect = Effect::lossy(LossKind::Order)
            .because("its levels will be those that occur, in the order of their first use");
    }
    (field.clone().with_data_type(stored.data_type.clone()), stored)
}

/// Whether the crate reads back a dictionary of these values as one.
fn dictionary_values(data_type: &DataType) -> bool {
    match data_type {
        DataType::Null
        | DataType::Boolean
        | DataType::Float16
        | DataType::BinaryView
        | DataType::Utf8View
        | DataType::FixedSizeBinary(0)
        | DataType::Interval(_)
        | DataType::Decimal32(1, _) => false,
        DataType::Decimal32(_, scale) | DataType::Decimal64(_, scale) => *scale >= 0,
        DataType::Decimal128(precision, scale) | DataType::Decimal256(precision, scale) => {
            *precision <= 18 && *scale >= 0
        }
        other => !other.is_nested() && !matches!(other, DataType::Dictionary(..)),
    }
}

/// Whether runs of these values can be unpacked and packed again.
fn run_values(data_type: &DataType) -> bool {
    !data_type.is_nested()
        && !matches!(data_type, DataType::Null | DataType::FixedSizeBinary(0) | DataType::Dictionary(..))
}

fn stored(data_type: &DataType) -> Stored {
    match data_type {
        DataType::FixedSizeBinary(0) => {
            Stored::as_type(DataType::Boolean, "stored as booleans, all false: Parquet has no such type")
        }
        DataType::Struct(fields) if fields.is_empty() => {
            Stored::as_type(DataType::Boolean, "stored as booleans, all false: Parquet has no such type")
        }
        DataType::Interval(IntervalUnit::MonthDayNano) => Stored::as_type(
            DataType::Struct(interval_fields()),
            "stored as a struct: Parquet's interval has no nanoseconds",
        ),
        DataType::Timestamp(TimeUnit::Second, zone) => Stored::checked(
            DataType::Timestamp(TimeUnit::Millisecond, zone.clone()),
            LossKind::Range,
            "stored in milliseconds, which must fit 64 bits: Parquet has no seconds",
        ),
        DataType::Time32(TimeUnit::Second) => Stored::checked(
            DataType::Time32(TimeUnit::Millisecond),
            LossKind::Range,
            "stored in milliseconds, which must fit 32 bits: Parquet has no seconds",
        ),
        DataType::Date64 => Stored::checked(
            DataType::Date32,
            LossKind::Precision,
            "stored in days, so each must be a whole one: Parquet has no other dates",
        ),
        DataType::Decimal32(1, scale @ 0..) => {
            Stored::as_type(DataType::Decimal64(1, *scale), "stored with 64 bits")
        }
        DataType::Decimal32(precision, scale @ ..0)
        | DataType::Decimal64(precision, scale @ ..0)
        | DataType::Decimal128(precision, scale @ ..0)
        | DataType::Decimal256(precision, scale @ ..0) => {
            match precision.checked_add(scale.unsigned_abs()).filter(|digits| *digits <= 76) {
                Some(digits) => {
                    let wide = if digits <= 38 { DataType::Decimal128 } else { DataType::Decimal256 };
                    Stored::as_type(wide(digits, 0), "stored with scale 0: Parquet has no negative scales")
                }
                None => {
                    let note = "Parquet has no negative scales, and scale 0 takes more than 76 digits";
                    Stored::impossible(data_type, note)
                }
            }
        }
        DataType::Union(..) => Stored::impossible(data_type, "Parquet has no unions"),
        DataType::RunEndEncoded(_, values) if !run_values(values.data_type()) => {
            Stored::impossible(data_type, "runs of such values cannot be unpacked")
        }
        DataType::RunEndEncoded(_, values) => {
            let mut inner = stored(values.data_type());
            inner.effect.note.get_or_insert_with(|| "stored as its values".to_owned());
            inner
        }
        DataType::Dictionary(_, values) if !dictionary_values(values) => {
            let Stored { data_type, effect } = stored(values);
            Stored { data_type, effect: effect.and(Effect::widened().because("stored as its values")) }
        }
        DataType::Dictionary(key, values) => {
            let inner = stored(values);
            Stored { data_type: DataType::Dictionary(key.clone(), Box::new(inner.data_type)), ..inner }
        }
        DataType::List(item) => one(item, DataType::List),
        DataType::LargeList(item) => one(item, DataType::LargeList),
        DataType::ListView(item) => one(item, DataType::ListView),
        DataType::LargeListView(item) => one(item, DataType::LargeListView),
        DataType::FixedSizeList(item, size) => one(item, |item| DataType::FixedSizeList(item, *size)),
        DataType::Map(entries, sorted) => one(entries, |entries| DataType::Map(entries, *sorted)),
        DataType::Struct(fields) => {
            let parts: Vec<(Field, Stored)> = fields.iter().map(|field| stored_field(field)).collect();
            let effects = parts.iter().map(|(_, part)| part.effect.clone());
            let effect = effects.fold(Effect::exact(), Effect::and);
            let data_type = DataType::Struct(parts.into_iter().map(|(field, _)| field).collect());
            Stored { data_type, effect }
        }
        other => Stored::same(other),
    }
}

fn one(item: &Arc<Field>, make: impl FnOnce(Arc<Field>) -> DataType) -> Stored {
    let (field, stored) = stored_field(item);
    Stored { data_type: make(Arc::new(field)), ..stored }
}

fn interval_fields() -> Fields {
    let field = |name, data_type| Field::new(name, data_type, false);
    Fields::from(vec![
        field("months", DataType::Int32),
        field("days", DataType::Int32),
        field("nanoseconds", DataType::Int64),
    ])
}

/// The schema that comes back from the stored one: dictionaries that were stored as values stay values.
pub(super) fn restored_schema(schema: &Schema) -> Schema {
    let fields: Vec<Field> = schema.fields().iter().map(|field| restored_field(field)).collect();
    Schema::new_with_metadata(fields, schema.metadata().clone())
}

fn restored_field(field: &Field) -> Field {
    field.clone().with_data_type(restored(field.data_type()))
}

fn restored(data_type: &DataType) -> DataType {
    let one = |item: &Arc<Field>| Arc::new(restored_field(item));
    match data_type {
        DataType::Dictionary(_, values) if !dictionary_values(values) => restored(values),
        DataType::List(item) => DataType::List(one(item)),
        DataType::LargeList(item) => DataType::LargeList(one(item)),
        DataType::ListView(item) => DataType::ListView(one(item)),
        DataType::LargeListView(item) => DataType::LargeListView(one(item)),
        DataType::FixedSizeList(item, size) => DataType::FixedSizeList(one(item), *size),
        DataType::Map(entries, sorted) => DataType::Map(one(entries), *sorted),
        DataType::Struct(fields) => {
            DataType::Struct(fields.iter().map(|field| restored_field(field)).collect())
        }
        other => other.clone(),
    }
}

/// A batch with every column in the type that `schema` has: to storage, or back from it. `first` is the number of its
/// first row.
pub(super) fn convert_batch(batch: &RecordBatch, schema: &SchemaRef, first: u64) -> Result<RecordBatch> {
    let columns = batch.columns().iter().zip(schema.fields());
    let columns = columns
        .map(|(column, field)| match convert(column, field.data_type()) {
            Err(error) if error.kind() == ErrorKind::Lossy => convert_rows(column, field, first),
            converted => converted,
        })
        .collect::<Result<_>>()?;
    rows::batch(Arc::clone(schema), columns, batch.num_rows())
}

/// Converts what the rows hold and no more: a slice of lists still has the values of all of them. The error names the
/// first row with a value that does not fit.
fn convert_rows(column: &ArrayRef, field: &Field, first: u64) -> Result<ArrayRef> {
    let rows = |rows: std::ops::Range<u64>| {
        let held = arrow_select::take::take(column, &rows.collect::<UInt64Array>(), None)?;
        convert(&held, field.data_type())
    };
    let count = column.len() as u64;
    rows(0..count).map_err(|error| {
        let row = (0..count).find(|row| rows(*row..row + 1).is_err());
        let place = row.map_or(0, |row| first + row);
        Error::lossy(format!("row {place}, column {:?}: {}", field.name(), error.message()))
    })
}

/// An array in another type: to storage, or back from it.
pub(super) fn convert(array: &ArrayRef, to: &DataType) -> Result<ArrayRef> {
    let from = array.data_type();
    if from == to {
        return Ok(Arc::clone(array));
    }
    let empty = |data_type: &DataType| match data_type {
        DataType::FixedSizeBinary(0) => true,
        DataType::Struct(fields) => fields.is_empty(),
        _ => false,
    };
    let months = DataType::Interval(IntervalUnit::MonthDayNano);
    match (from, to) {
        (from, DataType::Boolean) if empty(from) => {
            let values = BooleanBuffer::new_unset(array.len());
            Ok(Arc::new(BooleanArray::new(values, array.nulls().cloned())))
        }
        (DataType::Boolean, DataType::FixedSizeBinary(0)) => {
            let (nulls, none) = (array.nulls().cloned(), Buffer::default());
            Ok(Arc::new(FixedSizeBinaryArray::try_new_with_len(0, none, nulls, array.len())?))
        }
        (DataType::Boolean, to) if empty(to) => {
            Ok(Arc::new(StructArray::new_empty_fields(array.len(), array.nulls().cloned())))
        }
        (from, DataType::Struct(fields)) if *from == months => interval_to_struct(array, fields),
        (DataType::Struct(_), to) if *to == months => interval_from_struct(array),
        (DataType::RunEndEncoded(_, values), to) => {
            convert(&arrow_cast::cast(array, values.data_type())?, to)
        }
        (_, DataType::RunEndEncoded(_, values)) => {
            Ok(arrow_cast::cast(&convert(array, values.data_type())?, to)?)
        }
        (DataType::Timestamp(TimeUnit::Second, _), DataType::Timestamp(TimeUnit::Millisecond, _)) => {
            let lossy = |value| Error::lossy(format!("{value} seconds in milliseconds do not fit 64 bits"));
            let from = array.as_primitive::<TimestampSecondType>();
            let wide: PrimitiveArray<TimestampMillisecondType> =
                from.try_unary(|value| value.checked_mul(1000).ok_or_else(|| lossy(value)))?;
            Ok(Arc::new(wide.with_data_type(to.clone())))
        }
        (DataType::Timestamp(TimeUnit::Millisecond, _), DataType::Timestamp(TimeUnit::Second, _)) => {
            let from = array.as_primitive::<TimestampMillisecondType>();
            let seconds: PrimitiveArray<TimestampSecondType> = from.try_unary(whole_seconds)?;
            Ok(Arc::new(seconds.with_data_type(to.clone())))
        }
        (DataType::Time32(TimeUnit::Second), DataType::Time32(TimeUnit::Millisecond)) => {
            let lossy = |value| Error::lossy(format!("{value} seconds in milliseconds do not fit 32 bits"));
            let from = array.as_primitive::<Time32SecondType>();
            let wide: PrimitiveArray<Time32MillisecondType> =
                from.try_unary(|value| value.checked_mul(1000).ok_or_else(|| lossy(value)))?;
            Ok(Arc::new(wide))
        }
        (DataType::Time32(TimeUnit::Millisecond), DataType::Time32(TimeUnit::Second)) => {
            let from = array.as_primitive::<Time32MillisecondType>();
            let seconds: PrimitiveArray<Time32SecondType> = from.try_unary(whole_seconds)?;
            Ok(Arc::new(seconds))
        }
        (DataType::Date64, DataType::Date32) => {
            let from = array.as_primitive::<Date64Type>();
            let days: PrimitiveArray<Date32Type> = from.try_unary(|value| {
                let days = (value % DAY == 0).then(|| i32::try_from(value / DAY).ok()).flatten();
                days.ok_or_else(|| Error::lossy(format!("{value} milliseconds are no whole days")))
            })?;
            Ok(Arc::new(days))
        }
        (DataType::Date32, DataType::Date64) => {
            let from = array.as_primitive::<Date32Type>();
            let moments: PrimitiveArray<Date64Type> = from.unary(|days| i64::from(days) * DAY);
            Ok(Arc::new(moments))
        }
        (DataType::Dictionary(..), DataType::Dictionary(..)) => convert_parts(array, to),
        (DataType::Dictionary(_, values), to) => convert(&arrow_cast::cast(array, values)?, to),
        (from, to) if from.is_decimal() && to.is_decimal() => Ok(arrow_cast::cast(array, to)?),
        _ => convert_parts(array, to),
    }
}

/// Milliseconds in a day.
const DAY: i64 = 86_400_000;

/// Seconds that were stored as milliseconds; others than ours would be a change of the file.
fn whole_seconds<T>(value: T) -> Result<T>
where
    T: Copy
        + std::fmt::Display
        + From<i16>
        + std::ops::Rem<Output = T>
        + std::ops::Div<Output = T>
        + PartialEq,
{
    let thousand = T::from(1000);
    if value % thousand != T::from(0) {
        return Err(Error::malformed("whole seconds, as the stored schema says", format_args!("{value} ms")));
    }
    Ok(value / thousand)
}

/// The same array over converted parts.
fn convert_parts(array: &ArrayRef, to: &DataType) -> Result<ArrayRef> {
    let types: Vec<&DataType> = match to {
        DataType::Struct(fields) => fields.iter().map(|field| field.data_type()).collect(),
        DataType::List(item)
        | DataType::LargeList(item)
        | DataType::ListView(item)
        | DataType::LargeListView(item)
        | DataType::FixedSizeList(item, _)
        | DataType::Map(item, _) => vec![item.data_type()],
        DataType::Dictionary(_, values) => vec![values.as_ref()],
        _ => {
            return Err(Error::unsupported(format!(
                "{} as {}",
                print_type(array.data_type()),
                print_type(to)
            )));
        }
    };
    let data = array.to_data();
    let parts = data.child_data().iter().zip(types);
    let parts = parts
        .map(|(part, to)| Ok(convert(&make_array(part.clone()), to)?.to_data()))
        .collect::<Result<Vec<_>>>()?;
    Ok(make_array(data.into_builder().data_type(to.clone()).child_data(parts).build()?))
}

fn interval_to_struct(array: &ArrayRef, fields: &Fields) -> Result<ArrayRef> {
    let array = array.as_primitive::<IntervalMonthDayNanoType>();
    let months: Int32Array = array.values().iter().map(|value| value.months).collect::<Vec<_>>().into();
    let days: Int32Array = array.values().iter().map(|value| value.days).collect::<Vec<_>>().into();
    let nanoseconds: Int64Array =
        array.values().iter().map(|value| value.nanoseconds).collect::<Vec<_>>().into();
    let columns: Vec<ArrayRef> = vec![Arc::new(months), Arc::new(days), Arc::new(nanoseconds)];
    Ok(Arc::new(StructArray::try_new(fields.clone(), columns, array.nulls().cloned())?))
}

fn interval_from_struct(array: &ArrayRef) -> Result<ArrayRef> {
    let parts = array.as_struct();
    let [months, days, nanoseconds] = parts.columns() else {
        return Err(Error::malformed("months, days and nanoseconds", parts.num_columns()));
    };
    let (Some(months), Some(days), Some(nanoseconds)) = (
        months.as_primitive_opt::<Int32Type>(),
        days.as_primitive_opt::<Int32Type>(),
        nanoseconds.as_primitive_opt::<Int64Type>(),
    ) else {
        return Err(Error::malformed("whole months, days and nanoseconds", "other types"));
    };
    let values = months.values().iter().zip(days.values()).zip(nanoseconds.values());
    let values: Vec<IntervalMonthDayNano> =
        values.map(|((months, days), rest)| IntervalMonthDayNano::new(*months, *days, *rest)).collect();
    Ok(Arc::new(IntervalMonthDayNanoArray::new(values.into(), parts.nulls().cloned())))
}
