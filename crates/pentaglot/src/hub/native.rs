//! The format's own type in the schema's metadata: `pentaglot.native` = `{"format", "type"}`.
//!
//! A reader sets its format's own canonical type; a writer of the same format uses it if that type maps to exactly the
//! Arrow schema of its input, and otherwise ignores it. Identity and diff never use it.
//!
//! Counts in a native type are no longer correct once rows are selected: it is then marked `"rows": "sliced"`, and only
//! a writer that adapts counts uses it.

use std::sync::Arc;

use arrow_schema::{Schema, SchemaRef};
use serde_json::Value;

/// Schema-metadata key of the native type.
pub const NATIVE_KEY: &str = "pentaglot.native";

/// The schema with a native type.
pub(crate) fn with(schema: Schema, format: &str, native: impl Into<Value>) -> Schema {
    let text = serde_json::json!({ "format": format, "type": native.into() }).to_string();
    let mut metadata = schema.metadata().clone();
    metadata.insert(NATIVE_KEY.to_owned(), text);
    schema.with_metadata(metadata)
}

/// The native type that `format` stored in the schema, unless the rows are a selection.
pub(crate) fn of(schema: &Schema, format: &str) -> Option<Value> {
    if is_sliced(schema) { None } else { of_sliced(schema, format) }
}

/// The native type that `format` stored in the schema, also if the rows are a selection: for writers whose types hold
/// no counts of rows, or that adapt them if [`is_sliced`].
pub(crate) fn of_sliced(schema: &Schema, format: &str) -> Option<Value> {
    let mut native = parse(schema)?;
    (native.get("format")?.as_str()? == format).then(|| native["type"].take())
}

/// The id of the format whose native type the schema has, and that type as JSON text.
///
/// ```
/// use pentaglot::formats::{Format, ReadOptions, bsondf::Bsondf};
/// use pentaglot::{Source, hub::native};
/// let empty = Source::from_bytes("empty.bson", b"\x05\0\0\0\0".to_vec());
/// let document = Bsondf.open(empty, &ReadOptions::default())?;
/// let (format, _) = native::text(&document.summary().schema).unwrap();
/// assert_eq!(format, "bsondf");
/// # Ok::<(), pentaglot::Error>(())
/// ```
pub fn text(schema: &Schema) -> Option<(String, String)> {
    let native = parse(schema)?;
    Some((native.get("format")?.as_str()?.to_owned(), native.get("type")?.to_string()))
}

/// Whether the rows are a selection of those that the native type describes.
pub fn is_sliced(schema: &Schema) -> bool {
    parse(schema).is_some_and(|native| native.get("rows").is_some())
}

fn parse(schema: &Schema) -> Option<Value> {
    serde_json::from_str(schema.metadata().get(NATIVE_KEY)?).ok()
}

/// The schema of a selection of rows: the native type, if any, is marked.
pub fn sliced(schema: &SchemaRef) -> SchemaRef {
    let Some(Value::Object(mut native)) = parse(schema) else { return without(schema) };
    native.insert("rows".to_owned(), "sliced".into());
    let mut metadata = schema.metadata().clone();
    metadata.insert(NATIVE_KEY.to_owned(), Value::Object(native).to_string());
    Arc::new(schema.as_ref().clone().with_metadata(metadata))
}

/// The schema without a native type, for changes of columns or types.
pub fn without(schema: &SchemaRef) -> SchemaRef {
    if !schema.metadata().contains_key(NATIVE_KEY) {
        return Arc::clone(schema);
    }
    let mut metadata = schema.metadata().clone();
    metadata.remove(NATIVE_KEY);
    Arc::new(schema.as_ref().clone().with_metadata(metadata))
}
