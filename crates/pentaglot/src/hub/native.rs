//! The native type travels along: schema metadata `pentaglot.native` = `{"format", "type"}`.
//!
//! A reader sets its format's own canonical type; a writer of the same format uses it when that type maps to exactly the
//! Arrow schema at hand, else ignores it. Identity and diff never look at it.

use std::sync::Arc;

use arrow_schema::{Schema, SchemaRef};
use serde_json::Value;

/// Schema-metadata key of the native type.
pub const NATIVE_KEY: &str = "pentaglot.native";

/// The schema with a native type.
pub fn with(schema: Schema, format: &str, native: impl Into<Value>) -> Schema {
    let text = serde_json::json!({ "format": format, "type": native.into() }).to_string();
    let mut metadata = schema.metadata().clone();
    metadata.insert(NATIVE_KEY.to_owned(), text);
    schema.with_metadata(metadata)
}

/// The native type that `format` left in the schema.
pub fn of(schema: &Schema, format: &str) -> Option<Value> {
    let mut native: Value = serde_json::from_str(schema.metadata().get(NATIVE_KEY)?).ok()?;
    (native.get("format")?.as_str()? == format).then(|| native["type"].take())
}

/// The schema without a native type: for whoever changes columns or types.
pub fn without(schema: &SchemaRef) -> SchemaRef {
    if !schema.metadata().contains_key(NATIVE_KEY) {
        return Arc::clone(schema);
    }
    let mut metadata = schema.metadata().clone();
    metadata.remove(NATIVE_KEY);
    Arc::new(schema.as_ref().clone().with_metadata(metadata))
}
