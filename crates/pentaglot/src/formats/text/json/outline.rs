//! Records and columns, and their values, with their places.

use super::read::JsonDocument;
use crate::formats::text::json_outline::Values;
use crate::formats::{Node, Outline};
use crate::limits::Budget;
use crate::source::Source;

/// The records as `row[i]`, their values as `row[i].key`; the columns of an object by their names. A stream cannot be read
/// twice and shows no parts.
pub(super) fn outline(document: &JsonDocument) -> Outline {
    let (source, budget) = match document {
        JsonDocument::Records(rows) => (rows.input.source(), &rows.budget),
        JsonDocument::Columns(columns) => (&columns.source, &columns.budget),
    };
    let bytes = source.len().unwrap_or(0);
    let root = Node::new("json", 0, bytes);
    match document {
        _ if !source.is_seekable() => root,
        JsonDocument::Records(_) => root.parts(vec![values("row", source, 0, bytes, budget)]),
        JsonDocument::Columns(columns) => {
            let columns = columns.places.columns.iter();
            root.parts(columns.map(|at| values(&at.name, source, at.offset, at.bytes, budget)).collect())
        }
    }
}

fn values(name: &str, source: &Source, offset: u64, bytes: u64, budget: &Budget) -> Node {
    let values = Values { source: source.clone(), offset, bytes, budget: budget.clone() };
    Node::new(name, offset, bytes).expand(values)
}
