//! Arrays of types that Parquet lacks, converted to what is stored for them and back. `schema.rs` says which these are.

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
use arrow_schema::{DataType, Field, Fields, IntervalUnit, SchemaRef, TimeUnit};

use crate::error::{Error, ErrorKind, Result};
use crate::hub::rows;
use crate::hub::type_text::print_type;

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
        (DataType::Utf8View, DataType::Utf8) => Ok(arrow_cast::cast(array, to)?),
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
