//! How Arrow types map to Parquet. A type that Parquet (or the `parquet` crate) lacks is stored as a similar one and is
//! restored exactly: the footer keeps the original schema under [`SCHEMA_KEY`].
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
//! | dictionary without an order, of texts or integers | a dictionary, and its levels in the footer if they are few | exact |
//! | ordered dictionary of others, or inside a list or struct | a dictionary of the values that occur | lossy |
//! | dictionary of views, booleans, float16, decimals past 18 digits, intervals or nested values | its values | widened |
//! | union, run-end encoded null, nested or dictionary values | | impossible |
//!
//! Logical types of Parquet that Arrow has as extension types: UUID is `arrow.uuid`, JSON is `arrow.json`. The crate keeps
//! them only in an Arrow schema in the footer, which other programs need not write. This is for columns only: fields inside
//! lists and structs keep their storage type.

use std::sync::Arc;

use arrow_schema::{DataType, Field, Fields, IntervalUnit, Schema, TimeUnit};
use parquet::basic::{LogicalType, Type as PhysicalType};
use parquet::schema::types::{SchemaDescriptor, Type};

use super::levels;
use crate::hub::{Effect, LossKind, extension};

/// Footer key of the true Arrow schema (base64 of an IPC schema message), where it is not the stored one.
pub(super) const SCHEMA_KEY: &str = "pentaglot.schema";

/// How a field is stored.
pub(super) struct Stored {
    pub data_type: DataType,
    pub effect: Effect,
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

/// The schema that is stored.
pub(super) fn stored_schema(schema: &Schema) -> Schema {
    let fields: Vec<Field> = schema.fields().iter().map(|field| stored_field(field).0).collect();
    Schema::new_with_metadata(fields, schema.metadata().clone())
}

pub(super) fn stored_field(field: &Field) -> (Field, Stored) {
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
        DataType::Dictionary(key, values) if **values == DataType::Utf8View => Stored {
            data_type: DataType::Dictionary(key.clone(), Box::new(DataType::Utf8)),
            effect: Effect::widened().because("its values come back as utf8"),
        },
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
        DataType::Dictionary(key, values) if **values == DataType::Utf8View => {
            DataType::Dictionary(key.clone(), Box::new(DataType::Utf8))
        }
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

const UUID: &str = "arrow.uuid";
const JSON: &str = "arrow.json";

/// The schema with the extension types that the columns' logical types say.
pub(super) fn with_extensions(schema: Schema, stored: &SchemaDescriptor) -> Schema {
    let columns = stored.root_schema().get_fields();
    if columns.len() != schema.fields().len() {
        return schema;
    }
    let extended = |(field, column): (&Arc<Field>, &Arc<Type>)| {
        let name = match (column.get_basic_info().logical_type_ref(), field.data_type()) {
            (Some(LogicalType::Uuid), DataType::FixedSizeBinary(16)) => UUID,
            (Some(LogicalType::Json), DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View) => JSON,
            _ => return Arc::clone(field),
        };
        match extension::name(field) {
            None => Arc::new(extension::with(field.as_ref().clone(), name, Some(String::new()))),
            Some(_) => Arc::clone(field),
        }
    };
    let fields: Vec<Arc<Field>> = schema.fields().iter().zip(columns).map(extended).collect();
    Schema::new_with_metadata(fields, schema.metadata().clone())
}

/// The Parquet schema with the logical types that the columns' extension types say.
pub(super) fn with_logical_types(
    stored: SchemaDescriptor,
    schema: &Schema,
) -> parquet::errors::Result<SchemaDescriptor> {
    let root = stored.root_schema();
    let typed = |(field, column): (&Arc<Field>, &Arc<Type>)| {
        let (physical, logical, length) = match (extension::name(field), field.data_type()) {
            (Some(UUID), DataType::FixedSizeBinary(16)) => {
                (PhysicalType::FIXED_LEN_BYTE_ARRAY, LogicalType::Uuid, 16)
            }
            (Some(JSON), DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View) => {
                (PhysicalType::BYTE_ARRAY, LogicalType::Json, -1)
            }
            _ => return Ok(Arc::clone(column)),
        };
        let builder = Type::primitive_type_builder(column.name(), physical)
            .with_repetition(column.get_basic_info().repetition())
            .with_length(length)
            .with_logical_type(Some(logical));
        Ok(Arc::new(builder.build()?))
    };
    let columns = schema
        .fields()
        .iter()
        .zip(root.get_fields())
        .map(typed)
        .collect::<parquet::errors::Result<Vec<_>>>()?;
    let root = Type::group_type_builder(root.name()).with_fields(columns).build()?;
    Ok(SchemaDescriptor::new(Arc::new(root)))
}
