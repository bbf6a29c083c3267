//! The named bytes of an archive: its members and the directory.

use super::read::{NpzDocument, open_member};
use crate::formats::npy::outline as array_outline;
use crate::formats::{Node, Outline};

pub(super) fn outline(document: &NpzDocument) -> Outline {
    let total = document.source.len().unwrap_or(0);
    let mut parts: Vec<Node> = document
        .directory
        .entries
        .iter()
        .map(|entry| {
            let header = entry.data_offset - entry.offset;
            let node = Node::new(entry.name(), entry.offset, header + entry.packed_bytes);
            let local = Node::new("local_header", entry.offset, header).value(&entry.file_name);
            let packed = entry.packed_bytes != entry.bytes || entry.method != 0;
            let body = Node::new("npy", entry.data_offset, entry.packed_bytes);
            let body = match open_member(&document.source, entry, &document.budget) {
                Ok(array) if !packed => body.parts(array_outline::parts(&array)),
                Ok(array) => body.value(format_args!(
                    "deflated, {} bytes: {}",
                    entry.bytes,
                    array.header.text.trim_end()
                )),
                Err(error) => body.value(format_args!("({error})")),
            };
            node.parts(vec![local, body])
        })
        .collect();
    parts.sort_by_key(|part| part.offset);
    parts.push(Node::new("directory", document.directory.offset, document.directory.bytes));
    let end = document.directory.offset + document.directory.bytes;
    parts.push(Node::new("end", end, total.saturating_sub(end)));
    Outline::new("npz", 0, total).parts(parts)
}
