//! Messages, their metadata and their buffers as named byte ranges. A message is read when its node is opened.

use std::sync::Arc;

use arrow_schema::{Field, Fields};

use super::body;
use super::layout::{
    FILE_HEAD_BYTES, FILE_TAIL_BYTES, MAGIC, Message, MessageKind, Next, first_message, read_message,
};
use super::read::Store;
use crate::error::{Result, count};
use crate::formats::{Expand, Node, Outline};
use crate::hub::type_text::print_field;

pub(super) fn store(store: &Arc<Store>) -> Outline {
    let total = store.source.len().unwrap_or(0);
    let mut parts = Vec::new();
    let mut first = 0;
    if store.footer.is_some() {
        let magic = MAGIC.len() as u64;
        parts.push(Node::new("magic", 0, magic).value("ARROW1"));
        first = first_message(&store.source).unwrap_or(FILE_HEAD_BYTES);
        parts.push(Node::new("padding", magic, first - magic));
    }
    if let Ok(Next::Message(message)) = read_message(&store.source, first, &store.budget) {
        parts.push(message_node(store, "schema".to_owned(), first, message.end() - first, None));
    }
    let (mut dictionary, mut batch) = (0, 0);
    for entry in &store.entries {
        let bytes = entry.block.metadata_bytes + entry.block.body_bytes;
        let (name, rows) = match entry.kind {
            MessageKind::Dictionary { rows, .. } => {
                dictionary += 1;
                (format!("dictionary[{}]", dictionary - 1), rows)
            }
            MessageKind::Batch { rows } => {
                batch += 1;
                (format!("batch[{}]", batch - 1), rows)
            }
            MessageKind::Schema | MessageKind::Other(_) => continue,
        };
        parts.push(message_node(store, name, entry.block.offset, bytes, Some(rows)));
    }
    if let Some(footer) = &store.footer {
        let value = format!("{} batches, {} dictionaries", footer.batches.len(), footer.dictionaries.len());
        parts.push(Node::new("footer", footer.offset, footer.bytes).value(value));
        let tail = total.saturating_sub(FILE_TAIL_BYTES);
        parts.push(Node::new("footer_length", tail, 4).value(footer.bytes));
        parts.push(Node::new("magic", tail + 4, MAGIC.len() as u64).value("ARROW1"));
    } else {
        parts.push(Node::new("end_of_stream", store.end.start, store.end.end - store.end.start));
    }
    parts.sort_by_key(|part| part.offset);
    Node::new(store.id, 0, total).parts(parts)
}

fn message_node(store: &Arc<Store>, name: String, offset: u64, bytes: u64, rows: Option<u64>) -> Node {
    let node = Node::new(name, offset, bytes).expand(MessageParts { store: Arc::clone(store), offset });
    match rows {
        Some(rows) => node.value(count(rows, "row")),
        None => node,
    }
}

struct MessageParts {
    store: Arc<Store>,
    offset: u64,
}

impl MessageParts {
    fn make(&self) -> Result<Vec<Node>> {
        let Next::Message(message) = read_message(&self.store.source, self.offset, &self.store.budget)?
        else {
            return Ok(Vec::new());
        };
        let length = message.metadata_offset() - 4;
        let mut parts = Vec::new();
        if message.prefix_bytes == 8 {
            parts.push(Node::new("continuation", message.offset, 4).value("0xffffffff"));
        }
        let metadata_bytes = message.metadata.len() as u64;
        parts.push(Node::new("metadata_length", length, 4).value(metadata_bytes));
        let value = format!("{:?}, version {:?}", message.kind, message.version);
        parts.push(Node::new("metadata", message.metadata_offset(), metadata_bytes).value(value));
        if message.body_bytes > 0 {
            let body = Node::new("body", message.body_offset(), message.body_bytes);
            parts.push(body.parts(self.columns(&message)?));
        }
        Ok(parts)
    }

    /// The columns of a batch (or the values of a dictionary), each with its buffers.
    fn columns(&self, message: &Message) -> Result<Vec<Node>> {
        let limits = self.store.budget.limits();
        let fields = match message.kind {
            MessageKind::Batch { .. } => self.store.schema.fields().clone(),
            MessageKind::Dictionary { id, .. } => {
                let known = body::dictionary_fields(self.store.schema.fields());
                let values = known.into_iter().find(|(known, _)| *known == id).map(|(_, values)| values);
                values.into_iter().map(|values| Field::new("values", values, true)).collect::<Fields>()
            }
            MessageKind::Schema | MessageKind::Other(_) => return Ok(Vec::new()),
        };
        let batch = message.record_batch(limits)?;
        let extents = body::extents(batch, message)?;
        let slots = body::slots(&fields, batch, message.version, limits, None)?;
        let mut columns = Vec::new();
        for (field, slots) in fields.iter().zip(slots) {
            let buffers: Vec<Node> = extents
                .get(slots.buffers.clone())
                .unwrap_or_default()
                .iter()
                .enumerate()
                .map(|(index, extent)| {
                    let offset = message.body_offset() + extent.start;
                    Node::new(format!("[{index}]"), offset, extent.end - extent.start)
                })
                .collect();
            let start = buffers.iter().map(|buffer| buffer.offset).min().unwrap_or(message.body_offset());
            let end = buffers.iter().map(|buffer| buffer.offset + buffer.bytes).max().unwrap_or(start);
            let node = Node::new(field.name().clone(), start, end - start).value(print_field(field));
            columns.push(node.parts(buffers));
        }
        Ok(columns)
    }
}

impl Expand for MessageParts {
    fn nodes(&self, from: u64) -> Box<dyn Iterator<Item = Result<Node>> + '_> {
        let from = usize::try_from(from).unwrap_or(usize::MAX);
        match self.make() {
            Ok(parts) => Box::new(parts.into_iter().skip(from).map(Ok)),
            Err(error) => Box::new(std::iter::once(Err(error))),
        }
    }
}
