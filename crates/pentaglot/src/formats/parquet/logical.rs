//! Logical types of Parquet that Arrow has as extension types: UUID is `arrow.uuid`, JSON is `arrow.json`. The crate keeps
//! them only by way of an Arrow schema in the footer, which other programs need not write. Columns only: fields inside lists
//! and structs stay as they are.

use std::sync::Arc;

use arrow_schema::{DataType, Field, Schema};
use parquet::basic::{LogicalType, Type as PhysicalType};
use parquet::errors::Result;
use parquet::schema::types::{SchemaDescriptor, Type};

use crate::hub::extension;

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
pub(super) fn with_logical_types(stored: SchemaDescriptor, schema: &Schema) -> Result<SchemaDescriptor> {
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
    let columns = schema.fields().iter().zip(root.get_fields()).map(typed).collect::<Result<Vec<_>>>()?;
    let root = Type::group_type_builder(root.name()).with_fields(columns).build()?;
    Ok(SchemaDescriptor::new(Arc::new(root)))
}
