//! One encoder per column, chosen once for a batch.

use std::collections::HashSet;

use arrow_array::cast::AsArray;
use arrow_array::types::*;
use arrow_array::{Array, ArrowPrimitiveType, BooleanArray, PrimitiveArray, RecordBatch};
use arrow_buffer::NullBuffer;
use arrow_schema::{DataType, Field, IntervalUnit, Schema, TimeUnit};

use super::JsonOptions;
use super::nested::{
    DyndArrays, FixedLists, Indirect, ListViews, NormalizedKeys, Record, Tuple, lists, map, run_ends, union,
    write_tuple,
};
use super::text::{Float, special_float, write_decimal};
use super::time::{Zone, write_date, write_time, write_timestamp};
use crate::error::{Error, Result};
use crate::hub::extension::{self, tensor_shape};
use crate::hub::shape::Form;
use crate::wire::json::write_string;

/// Writes the value of one row of one array. Several threads may write different rows.
pub(super) trait Encode: Send + Sync {
    fn write(&self, row: usize, out: &mut Vec<u8>) -> Result<()>;
}

pub(super) type Encoder<'a> = Box<dyn Encode + 'a>;

/// A function is an encoder.
impl<F: Fn(usize, &mut Vec<u8>) + Send + Sync> Encode for F {
    fn write(&self, row: usize, out: &mut Vec<u8>) -> Result<()> {
        self(row, out);
        Ok(())
    }
}

/// The columns of a batch, ready to be written.
///
/// ```
/// use std::sync::Arc;
/// use pentaglot::arrow::array::{Float64Array, RecordBatch};
/// use pentaglot::hub::json::{Columns, JsonOptions};
/// let batch = RecordBatch::try_from_iter([("x", Arc::new(Float64Array::from(vec![0.5, f64::NAN])) as _)])?;
/// let columns = Columns::new(&batch, &JsonOptions::default())?;
/// let mut out = Vec::new();
/// columns.write_object(1, &mut out)?;
/// assert_eq!(out, br#"{"x":"NaN"}"#);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Columns<'a>(Record<'a>);

impl<'a> Columns<'a> {
    /// What separates the rows of an array.
    pub(crate) const SEPARATOR: &'static [u8] = b",\n";

    /// Returns an error if two columns have the same name: rows would be objects that have a key twice.
    pub(crate) fn check_names(schema: &Schema) -> Result<()> {
        let mut names = HashSet::new();
        match schema.fields().iter().find(|field| !names.insert(field.name())) {
            Some(twice) => Err(Error::unsupported(format!("an object with two keys {:?}", twice.name()))),
            None => Ok(()),
        }
    }

    /// Prepares the columns of a batch.
    pub fn new(batch: &'a RecordBatch, options: &JsonOptions) -> Result<Self> {
        let schema = batch.schema_ref();
        Ok(Columns(Record::new(schema.fields(), batch.columns(), options)?))
    }

    /// Appends a row as an object with every key.
    #[inline]
    pub fn write_object(&self, row: usize, out: &mut Vec<u8>) -> Result<()> {
        self.0.write(row, out)
    }

    /// Appends a row as an array of its values.
    pub fn write_array(&self, row: usize, out: &mut Vec<u8>) -> Result<()> {
        write_tuple(&self.0.columns, row, out)
    }

    /// Appends a row of data of this form.
    #[inline]
    pub(crate) fn write_row(&self, form: Form, row: usize, out: &mut Vec<u8>) -> Result<()> {
        match form {
            Form::Table => self.write_object(row, out),
            Form::Columns | Form::Coo => self.write_array(row, out),
            _ => self.write_cell(0, row, out),
        }
    }

    /// Appends the value of one column of a row.
    pub fn write_cell(&self, column: usize, row: usize, out: &mut Vec<u8>) -> Result<()> {
        match self.0.columns.get(column) {
            Some(encoder) => encoder.write(row, out),
            None => Err(Error::usage(format!("there is no column {column}"))),
        }
    }
}

/// The encoder of a column. It writes nulls itself, so that the encoder of values never sees one.
pub(super) fn encoder<'a>(field: &Field, array: &'a dyn Array, options: &JsonOptions) -> Result<Encoder<'a>> {
    let values = values(field, array, options)?;
    Ok(match array.nulls() {
        Some(nulls) if nulls.null_count() > 0 => Box::new(Nullable { nulls, values }),
        _ => values,
    })
}

struct Nullable<'a> {
    nulls: &'a NullBuffer,
    values: Encoder<'a>,
}

impl Encode for Nullable<'_> {
    fn write(&self, row: usize, out: &mut Vec<u8>) -> Result<()> {
        if self.nulls.is_null(row) {
            out.extend_from_slice(b"null");
            return Ok(());
        }
        self.values.write(row, out)
    }
}

fn values<'a>(field: &Field, array: &'a dyn Array, options: &JsonOptions) -> Result<Encoder<'a>> {
    if let Some(name) = extension::name(field)
        && let Some(encoder) = extension_values(name, field, array, options)?
    {
        return Ok(encoder);
    }
    Ok(match array.data_type() {
        DataType::Null => Box::new(|_, out: &mut Vec<u8>| out.extend_from_slice(b"null")),
        DataType::Boolean => booleans(array.as_boolean()),
        DataType::Int8 => integers::<Int8Type>(array),
        DataType::Int16 => integers::<Int16Type>(array),
        DataType::Int32 => integers::<Int32Type>(array),
        DataType::Int64 => integers::<Int64Type>(array),
        DataType::UInt8 => integers::<UInt8Type>(array),
        DataType::UInt16 => integers::<UInt16Type>(array),
        DataType::UInt32 => integers::<UInt32Type>(array),
        DataType::UInt64 => integers::<UInt64Type>(array),
        DataType::Float16 => floats::<Float16Type>(array),
        DataType::Float32 => floats::<Float32Type>(array),
        DataType::Float64 => floats::<Float64Type>(array),
        DataType::Utf8 => {
            let array = array.as_string::<i32>();
            Box::new(|row, out: &mut Vec<u8>| write_string(out, array.value(row)))
        }
        DataType::LargeUtf8 => {
            let array = array.as_string::<i64>();
            Box::new(|row, out: &mut Vec<u8>| write_string(out, array.value(row)))
        }
        DataType::Utf8View => {
            let array = array.as_string_view();
            Box::new(|row, out: &mut Vec<u8>| write_string(out, array.value(row)))
        }
        DataType::Binary => {
            let array = array.as_binary::<i32>();
            Box::new(|row, out: &mut Vec<u8>| write_base64(out, array.value(row)))
        }
        DataType::LargeBinary => {
            let array = array.as_binary::<i64>();
            Box::new(|row, out: &mut Vec<u8>| write_base64(out, array.value(row)))
        }
        DataType::BinaryView => {
            let array = array.as_binary_view();
            Box::new(|row, out: &mut Vec<u8>| write_base64(out, array.value(row)))
        }
        DataType::FixedSizeBinary(_) => {
            let array = array.as_fixed_size_binary();
            Box::new(|row, out: &mut Vec<u8>| write_base64(out, array.value(row)))
        }
        DataType::Date32 => {
            let array = array.as_primitive::<Date32Type>();
            Box::new(|row, out: &mut Vec<u8>| {
                let days = i64::from(array.value(row));
                text_or_raw(out, days, |out| write_date(out, days));
            })
        }
        DataType::Date64 => {
            let array = array.as_primitive::<Date64Type>();
            Box::new(|row, out: &mut Vec<u8>| {
                let (value, day) = (array.value(row), 86_400_000);
                text_or_raw(out, value, |out| value % day == 0 && write_date(out, value / day));
            })
        }
        DataType::Time32(unit) => match unit {
            TimeUnit::Second => times::<Time32SecondType>(array, *unit),
            _ => times::<Time32MillisecondType>(array, *unit),
        },
        DataType::Time64(unit) => match unit {
            TimeUnit::Microsecond => times::<Time64MicrosecondType>(array, *unit),
            _ => times::<Time64NanosecondType>(array, *unit),
        },
        DataType::Timestamp(unit, zone) => {
            let zone = zone.as_deref();
            match unit {
                TimeUnit::Second => timestamps::<TimestampSecondType>(array, *unit, zone),
                TimeUnit::Millisecond => timestamps::<TimestampMillisecondType>(array, *unit, zone),
                TimeUnit::Microsecond => timestamps::<TimestampMicrosecondType>(array, *unit, zone),
                TimeUnit::Nanosecond => timestamps::<TimestampNanosecondType>(array, *unit, zone),
            }
        }
        DataType::Duration(unit) => match unit {
            TimeUnit::Second => integers::<DurationSecondType>(array),
            TimeUnit::Millisecond => integers::<DurationMillisecondType>(array),
            TimeUnit::Microsecond => integers::<DurationMicrosecondType>(array),
            TimeUnit::Nanosecond => integers::<DurationNanosecondType>(array),
        },
        DataType::Interval(unit) => intervals(array, *unit),
        DataType::Decimal32(_, scale) => decimals::<Decimal32Type>(array, *scale),
        DataType::Decimal64(_, scale) => decimals::<Decimal64Type>(array, *scale),
        DataType::Decimal128(_, scale) => decimals::<Decimal128Type>(array, *scale),
        DataType::Decimal256(_, scale) => decimals::<Decimal256Type>(array, *scale),
        DataType::List(item) => lists::<i32>(item, array, options)?,
        DataType::LargeList(item) => lists::<i64>(item, array, options)?,
        DataType::ListView(item) => {
            let array = array.as_list_view::<i32>();
            let items = encoder(item, array.values(), options)?;
            Box::new(ListViews { offsets: array.offsets(), sizes: array.sizes(), items })
        }
        DataType::LargeListView(item) => {
            let array = array.as_list_view::<i64>();
            let items = encoder(item, array.values(), options)?;
            Box::new(ListViews { offsets: array.offsets(), sizes: array.sizes(), items })
        }
        DataType::FixedSizeList(item, _) => {
            let array = array.as_fixed_size_list();
            let items = encoder(item, array.values(), options)?;
            Box::new(FixedLists { shape: vec![array.value_length() as usize], items })
        }
        DataType::Struct(fields) => Box::new(Record::new(fields, array.as_struct().columns(), options)?),
        DataType::Map(_, _) => map(array, options)?,
        DataType::Dictionary(_, value) => {
            let array = array.as_any_dictionary();
            let value = Field::new("", value.as_ref().clone(), true);
            let keys = array.normalized_keys_checked();
            Box::new(Indirect { keys, values: encoder(&value, array.values().as_ref(), options)? })
        }
        DataType::RunEndEncoded(ends, value) => match ends.data_type() {
            DataType::Int16 => run_ends::<Int16Type>(array, value, options)?,
            DataType::Int32 => run_ends::<Int32Type>(array, value, options)?,
            _ => run_ends::<Int64Type>(array, value, options)?,
        },
        DataType::Union(_, mode) => union(array.as_union(), *mode, options)?,
    })
}

/// Encoders of extension types; `None` if the storage type does not match the extension, or is written like
/// any other.
fn extension_values<'a>(
    name: &str,
    field: &Field,
    array: &'a dyn Array,
    options: &JsonOptions,
) -> Result<Option<Encoder<'a>>> {
    let words = |array: &'a dyn Array| {
        let array = array.as_fixed_size_binary();
        move |row| <[u8; 16]>::try_from(array.value(row)).unwrap_or_default()
    };
    Ok(Some(match (name, array.data_type()) {
        (extension::INT128, DataType::FixedSizeBinary(16)) => {
            let words = words(array);
            Box::new(move |row, out: &mut Vec<u8>| write_integer(out, i128::from_le_bytes(words(row))))
        }
        (extension::UINT128, DataType::FixedSizeBinary(16)) => {
            let words = words(array);
            Box::new(move |row, out: &mut Vec<u8>| write_integer(out, u128::from_le_bytes(words(row))))
        }
        (extension::FLOAT128, DataType::FixedSizeBinary(16)) => {
            let words = words(array);
            Box::new(move |row, out: &mut Vec<u8>| {
                let bits = u128::from_le_bytes(words(row));
                out.extend_from_slice(format!("\"0x{bits:032x}\"").as_bytes());
            })
        }
        (extension::TUPLE, DataType::Struct(fields)) => {
            let columns = array.as_struct().columns();
            Box::new(Tuple(Record::new(fields, columns, options)?.columns))
        }
        (extension::FIXED_SHAPE_TENSOR, DataType::FixedSizeList(item, _)) => {
            let Some(shape) = tensor_shape(field) else { return Ok(None) };
            let shape = shape.iter().map(|dim| *dim as usize).collect();
            let items = encoder(item, array.as_fixed_size_list().values(), options)?;
            let tensor = FixedLists { shape, items };
            tensor.check()?;
            Box::new(tensor)
        }
        (extension::DYND_ARRAY, DataType::Struct(_)) => {
            let array = array.as_struct();
            let types = array.column_by_name("type").and_then(|column| column.as_string_opt::<i32>());
            let data = array.column_by_name("data").and_then(|column| column.as_binary_opt::<i32>());
            match (types, data) {
                (Some(types), Some(data)) => Box::new(DyndArrays { types, data, value: options.dynd_value }),
                _ => return Ok(None),
            }
        }
        _ => return Ok(None),
    }))
}

fn write_integer(out: &mut Vec<u8>, value: impl itoa::Integer) {
    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

pub(super) fn write_base64(out: &mut Vec<u8>, bytes: &[u8]) {
    out.push(b'"');
    base64_simd::STANDARD.encode_append(bytes, out);
    out.push(b'"');
}

/// A string if `write` has a text for the value, otherwise the raw integer.
fn text_or_raw(out: &mut Vec<u8>, raw: i64, write: impl FnOnce(&mut Vec<u8>) -> bool) {
    out.push(b'"');
    if write(out) {
        out.push(b'"');
    } else {
        out.pop();
        write_integer(out, raw);
    }
}

fn booleans(array: &BooleanArray) -> Encoder<'_> {
    Box::new(|row, out: &mut Vec<u8>| {
        let word: &[u8] = if array.value(row) { b"true" } else { b"false" };
        out.extend_from_slice(word);
    })
}

fn integers<T>(array: &dyn Array) -> Encoder<'_>
where
    T: ArrowPrimitiveType,
    T::Native: itoa::Integer,
{
    let values = array.as_primitive::<T>().values();
    Box::new(|row: usize, out: &mut Vec<u8>| write_integer(out, values[row]))
}

fn floats<T>(array: &dyn Array) -> Encoder<'_>
where
    T: ArrowPrimitiveType,
    T::Native: Float,
{
    let values = array.as_primitive::<T>().values();
    Box::new(|row: usize, out: &mut Vec<u8>| {
        let value = values[row];
        match special_float(value.widen()) {
            None => value.write_finite(out),
            Some(word) => write_string(out, word),
        }
    })
}

fn times<T>(array: &dyn Array, unit: TimeUnit) -> Encoder<'_>
where
    T: ArrowPrimitiveType,
    i64: From<T::Native>,
{
    let values = array.as_primitive::<T>().values();
    Box::new(move |row: usize, out: &mut Vec<u8>| {
        let value = i64::from(values[row]);
        text_or_raw(out, value, |out| write_time(out, value, unit));
    })
}

fn timestamps<'a, T>(array: &'a dyn Array, unit: TimeUnit, zone: Option<&str>) -> Encoder<'a>
where
    T: ArrowPrimitiveType<Native = i64>,
{
    let values = array.as_primitive::<T>().values();
    let zone = Zone::new(zone);
    Box::new(move |row: usize, out: &mut Vec<u8>| {
        let value = values[row];
        text_or_raw(out, value, |out| write_timestamp(out, value, unit, &zone));
    })
}

fn intervals(array: &dyn Array, unit: IntervalUnit) -> Encoder<'_> {
    match unit {
        IntervalUnit::YearMonth => integers::<IntervalYearMonthType>(array),
        IntervalUnit::DayTime => {
            let values = array.as_primitive::<IntervalDayTimeType>();
            Box::new(|row, out: &mut Vec<u8>| {
                let value = values.value(row);
                let text = format!("{{\"days\":{},\"milliseconds\":{}}}", value.days, value.milliseconds);
                out.extend_from_slice(text.as_bytes());
            })
        }
        IntervalUnit::MonthDayNano => {
            let values = array.as_primitive::<IntervalMonthDayNanoType>();
            Box::new(|row, out: &mut Vec<u8>| {
                let value = values.value(row);
                let (months, days, nanoseconds) = (value.months, value.days, value.nanoseconds);
                let text = format!("{{\"months\":{months},\"days\":{days},\"nanoseconds\":{nanoseconds}}}");
                out.extend_from_slice(text.as_bytes());
            })
        }
    }
}

fn decimals<T>(array: &dyn Array, scale: i8) -> Encoder<'_>
where
    T: ArrowPrimitiveType,
    T::Native: std::fmt::Display,
{
    let array: &PrimitiveArray<T> = array.as_primitive::<T>();
    Box::new(move |row, out: &mut Vec<u8>| {
        out.push(b'"');
        write_decimal(out, &array.value(row).to_string(), scale);
        out.push(b'"');
    })
}
