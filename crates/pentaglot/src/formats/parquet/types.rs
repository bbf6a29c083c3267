//! What Parquet (or the `parquet` crate) has no type for is stored as something near, and comes back exactly: the true
//! schema stands in the footer under [`SCHEMA_KEY`].
//!
//! | Arrow type | stored as | |
//! |---|---|---|
//! | `FixedSizeBinary(0)`, struct without fields | Boolean: null, or false | exact |
//! | interval of months, days and nanoseconds | struct `months`, `days`, `nanoseconds` | exact |
//! | decimal with a negative scale | decimal of scale 0 with more digits | exact, up to 76 digits |
//! | `Decimal32(1, s)` | `Decimal64(1, s)` | exact |
//! | run-end encoded numbers, texts, bytes | their values | exact |
//! | ordered dictionary of texts or integers | a dictionary, and its levels in the footer | checked |
//! | ordered dictionary of others, or inside a list or struct | a dictionary of the values that occur | lossy |
//! | dictionary of views, booleans, float16, decimals past 18 digits, intervals or nested values | its values | widened |
//! | union, run-end encoded null, nested or dictionary values | | impossible |

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type, IntervalMonthDayNanoType};
use arrow_array::{
    Array, ArrayRef, BooleanArray, FixedSizeBinaryArray, Int32Array, Int64Array, IntervalMonthDayNanoArray,
    RecordBatch, StructArray, make_array,
};
use arrow_buffer::{BooleanBuffer, Buffer, IntervalMonthDayNano};
use arrow_schema::{DataType, Field, Fields, IntervalUnit, Schema, SchemaRef};

use super::levels;
use crate::error::{Error, Result};
use crate::hub::type_text::print_field;
use crate::hub::{Plan, Verdict, rows};

/// Footer key of the true Arrow schema (base64 of an IPC schema message), where it is not the stored one.
pub(super) const SCHEMA_KEY: &str = "pentaglot.schema";

/// How a field is stored.
struct Stored {
    data_type: DataType,
    verdict: Verdict,
    note: Option<&'static str>,
}

impl Stored {
    fn same(data_type: &DataType) -> Self {
        Stored { data_type: data_type.clone(), verdict: Verdict::Exact, note: None }
    }

    fn as_type(data_type: DataType, note: &'static str) -> Self {
        Stored { data_type, verdict: Verdict::Exact, note: Some(note) }
    }
}

/// What writing this schema would do.
pub(super) fn plan(schema: &Schema) -> Plan {
    let mut plan = Plan::default();
    for field in schema.fields() {
        let (to, mut stored) = stored_field(field);
        if levels::kept(field).is_some() {
            stored.verdict = Verdict::Checked;
            stored.note = Some("all batches must have one order of values");
        }
        let from = print_field(field);
        let to = if stored.verdict == Verdict::Impossible { "nothing".to_owned() } else { print_field(&to) };
        match stored.note {
            Some(note) => plan.push_with(field.name(), from, to, stored.verdict, note),
            None => plan.push(field.name(), from, to, stored.verdict),
        }
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
        stored.verdict = Verdict::Lossy;
        stored.note = Some("its levels will be those that occur, in the order of their first use");
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
                None => Stored {
                    verdict: Verdict::Impossible,
                    note: Some("Parquet has no negative scales, and scale 0 takes more than 76 digits"),
                    ..Stored::same(data_type)
                },
            }
        }
        DataType::Union(..) => Stored {
            verdict: Verdict::Impossible,
            note: Some("Parquet has no unions"),
            ..Stored::same(data_type)
        },
        DataType::RunEndEncoded(_, values) if !run_values(values.data_type()) => Stored {
            verdict: Verdict::Impossible,
            note: Some("runs of such values cannot be unpacked"),
            ..Stored::same(data_type)
        },
        DataType::RunEndEncoded(_, values) => {
            let inner = stored(values.data_type());
            let note = inner.note.or(Some("stored as its values"));
            Stored { note, ..inner }
        }
        DataType::Dictionary(_, values) if !dictionary_values(values) => {
            let inner = stored(values);
            let verdict = inner.verdict.max(Verdict::Widened);
            Stored { verdict, note: inner.note.or(Some("stored as its values")), ..inner }
        }
        DataType::List(item) => one(item, DataType::List),
        DataType::LargeList(item) => one(item, DataType::LargeList),
        DataType::ListView(item) => one(item, DataType::ListView),
        DataType::LargeListView(item) => one(item, DataType::LargeListView),
        DataType::FixedSizeList(item, size) => one(item, |item| DataType::FixedSizeList(item, *size)),
        DataType::Map(entries, sorted) => one(entries, |entries| DataType::Map(entries, *sorted)),
        DataType::Struct(fields) => {
            let parts: Vec<(Field, Stored)> = fields.iter().map(|field| stored_field(field)).collect();
            let worst = parts.iter().map(|(_, part)| part.verdict).max().unwrap_or(Verdict::Exact);
            let note = parts.iter().filter(|(_, part)| part.verdict == worst).find_map(|(_, part)| part.note);
            let data_type = DataType::Struct(parts.into_iter().map(|(field, _)| field).collect());
            Stored { data_type, verdict: worst, note }
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

/// A batch with every column in the type that `schema` has: to storage, or back from it.
pub(super) fn convert_batch(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch> {
    let columns = batch.columns().iter().zip(schema.fields());
    let columns = columns.map(|(column, field)| convert(column, field.data_type())).collect::<Result<_>>()?;
    rows::batch(Arc::clone(schema), columns, batch.num_rows())
}

fn convert(array: &ArrayRef, to: &DataType) -> Result<ArrayRef> {
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
        (DataType::Dictionary(_, values), to) => convert(&arrow_cast::cast(array, values)?, to),
        (from, to) if from.is_decimal() && to.is_decimal() => Ok(arrow_cast::cast(array, to)?),
        _ => convert_parts(array, to),
    }
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
        _ => return Err(Error::unsupported(format!("{} as {to}", array.data_type()))),
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
