//! The schema that is stored: types without encodings that chunks do not have, and its bytes in a root.

use std::sync::Arc;

use arrow_ipc::writer::{DictionaryTracker, IpcDataGenerator, IpcWriteOptions};
use arrow_schema::{DataType, Field, FieldRef, Schema};

use crate::error::{Error, Result};
use crate::formats::arrow_flatbuffers;
use crate::limits::Limits;

/// The field that stored values come back as: views, run ends and dictionaries are their plain values.
pub(super) fn plain(field: &Field) -> Field {
    let inner = |field: &FieldRef| Arc::new(plain(field));
    let data_type = match field.data_type() {
        DataType::Utf8View => DataType::Utf8,
        DataType::BinaryView => DataType::Binary,
        DataType::List(item) | DataType::ListView(item) => DataType::List(inner(item)),
        DataType::LargeList(item) | DataType::LargeListView(item) => DataType::LargeList(inner(item)),
        DataType::FixedSizeList(item, size) => DataType::FixedSizeList(inner(item), *size),
        DataType::Map(entries, sorted) => DataType::Map(inner(entries), *sorted),
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(inner).collect()),
        DataType::Dictionary(_, value) => {
            return plain(&field.clone().with_data_type(value.as_ref().clone()));
        }
        DataType::RunEndEncoded(_, values) => {
            return plain(&field.clone().with_data_type(values.data_type().clone()));
        }
        other => other.clone(),
    };
    field.clone().with_data_type(data_type)
}

/// The field that a dictionary comes back as: one of plain values. `None` for other fields.
pub(super) fn plain_dictionary(field: &Field) -> Option<Field> {
    let DataType::Dictionary(key, value) = field.data_type() else { return None };
    let values = plain(&Field::new("", value.as_ref().clone(), true));
    let data_type = DataType::Dictionary(key.clone(), Box::new(values.data_type().clone()));
    Some(field.clone().with_data_type(data_type))
}

/// The schema as an Arrow IPC message.
pub(super) fn to_bytes(schema: &Schema) -> Vec<u8> {
    let mut dictionaries = DictionaryTracker::new(false);
    let options = IpcWriteOptions::default();
    IpcDataGenerator::default()
        .schema_to_bytes_with_dictionary_tracker(schema, &mut dictionaries, &options)
        .ipc_message
}

/// The schema of an Arrow IPC message.
pub(super) fn from_bytes(bytes: &[u8], limits: &Limits) -> Result<Schema> {
    let message = arrow_flatbuffers::message(bytes, limits)?;
    let schema = message.header_as_schema().ok_or_else(|| Error::malformed("a schema", "another message"))?;
    arrow_flatbuffers::schema(schema, limits)
}
