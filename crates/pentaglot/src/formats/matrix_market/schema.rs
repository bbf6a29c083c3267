//! The Arrow schema of a matrix.

use std::sync::Arc;

use arrow_schema::{DataType, Field, Fields, Schema, SchemaRef};
use serde_json::json;

use super::INFO;
use super::layout::{Header, MarketField, MarketLayout};
use crate::error::Result;
use crate::hub::{extension, native, shape};

/// The schema of a matrix's rows.
pub(super) fn schema(header: &Header) -> Result<SchemaRef> {
    let value = arrow(header.kind);
    let named = |field: Field| match extension_name(header.kind) {
        Some(name) => extension::with(field, name, None),
        None => field,
    };
    let schema = match header.layout {
        MarketLayout::Array => {
            let plain = shape::dense_schema(value.clone(), Some(header.rows), header.cols)?;
            let item = named(Field::new_list_field(value, false));
            let width = i32::try_from(header.cols).unwrap_or(i32::MAX);
            let row = Field::new_fixed_size_list(shape::ROW_FIELD, item, width, false);
            Schema::new_with_metadata(vec![row], plain.metadata().clone())
        }
        MarketLayout::Coordinate => {
            let plain = shape::sparse_schema(value.clone(), Some(header.rows), header.cols);
            let fields: Vec<Field> = shape::entry_fields(value, header.cols)
                .iter()
                .map(|field| {
                    if field.name() == "value" {
                        named(field.as_ref().clone())
                    } else {
                        field.as_ref().clone()
                    }
                })
                .collect();
            let entry = Field::new_list_field(DataType::Struct(Fields::from(fields)), false);
            let row = plain.field(0).clone().with_data_type(DataType::LargeList(Arc::new(entry)));
            Schema::new_with_metadata(vec![row], plain.metadata().clone())
        }
    };
    let native = json!({
        "format": header.layout.word(),
        "field": header.kind.word(),
        "symmetry": header.symmetry.word(),
    });
    Ok(Arc::new(native::with(schema, INFO.id, native)))
}

/// The field of values in a table of entries.
pub(super) fn value_field(kind: MarketField) -> Field {
    let field = Field::new("value", arrow(kind), false);
    match extension_name(kind) {
        Some(name) => extension::with(field, name, None),
        None => field,
    }
}

/// The Arrow type of a field's values.
fn arrow(kind: MarketField) -> DataType {
    match kind {
        MarketField::Real => DataType::Float64,
        MarketField::Integer => DataType::Int64,
        MarketField::Unsigned => DataType::UInt64,
        MarketField::Complex => {
            let part = Field::new_list_field(DataType::Float64, false);
            DataType::FixedSizeList(Arc::new(part), 2)
        }
        MarketField::Pattern => DataType::Int8,
    }
}

/// The extension name of the type of a field's values.
fn extension_name(kind: MarketField) -> Option<&'static str> {
    (kind == MarketField::Complex).then_some(extension::COMPLEX)
}
