//! Schemas: read from a schema message, and what writing does to each field. The types are those of Arrow, so only
//! dictionaries need care.

use std::sync::Arc;

use arrow_schema::{DataType, Field, SchemaRef};

use super::dictionary::has_dictionary;
use super::layout::{Message, MessageKind, Next};
use crate::error::{Context, Error, Result};
use crate::formats::arrow_flatbuffers;
use crate::hub::{Effect, LossKind, inner_fields};
use crate::limits::Budget;

/// The schema of the first message of a stream, and that message.
pub(super) fn schema_message(next: Next, budget: &Budget) -> Result<(SchemaRef, Message)> {
    match next {
        Next::Message(message) if message.kind == MessageKind::Schema => {
            let schema = message.flatbuffer(budget.limits())?.header_as_schema();
            let schema = schema.ok_or_else(|| Error::malformed("a schema", "none"));
            let schema = schema.and_then(|schema| arrow_flatbuffers::schema(schema, budget.limits()));
            Ok((Arc::new(schema.at(message.metadata_offset())?), message))
        }
        Next::Message(message) => Err(Error::malformed("a schema message first", message.kind.name())
            .at(message.offset)
            .rule("order")),
        Next::End(_) => Err(Error::truncated("a schema message", "the end of the stream").at(0)),
    }
}

/// The worst that happens to a field or to one inside it.
pub(super) fn effect(field: &Field, file: bool) -> Effect {
    match field.data_type() {
        DataType::Dictionary(_, values) if has_dictionary(values) => {
            Effect::impossible("Arrow IPC has no dictionary of dictionaries that programs agree on")
        }
        DataType::Dictionary(key, _) if file => {
            let narrow = key.primitive_width().unwrap_or(8) < 4;
            match (field.dict_is_ordered().unwrap_or(false), narrow) {
                (true, _) => Effect::checked(LossKind::Order)
                    .because("an Arrow file has one dictionary per field: the batches' must agree in order"),
                (false, true) => Effect::checked(LossKind::Range)
                    .because("an Arrow file has one dictionary per field: its size must fit the index type"),
                (false, false) => Effect::exact(),
            }
        }
        kind => inner_fields(kind)
            .into_iter()
            .fold(Effect::exact(), |worst, field| worst.and(effect(field, file))),
    }
}
