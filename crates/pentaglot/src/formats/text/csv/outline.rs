//! Records and their fields, with their places.

use std::io::Read;

use super::dialect::CsvDialect;
use super::layout::{Cell, Records};
use super::read::{CsvDocument, skipped};
use crate::error::Result;
use crate::formats::{Expand, Node, Outline};
use crate::limits::Budget;
use crate::source::Source;

/// How much of a text is shown.
const SHOWN_BYTES: usize = 60;

/// The header, then records as `row[i]` and their fields as `row[i].name`. A stream cannot be read twice and shows no parts.
pub(super) fn outline(document: &CsvDocument) -> Outline {
    let source = document.input.source();
    let bytes = source.len().unwrap_or(document.input.sample().len() as u64);
    let root = Node::new("csv", 0, bytes);
    if !source.is_seekable() {
        return root;
    }
    let names: Vec<String> =
        document.summary.schema.fields().iter().map(|field| field.name().clone()).collect();
    let header = document.summary.parts.iter().find(|part| part.path == "header");
    let mut nodes = Vec::new();
    let mut start = 0;
    if let Some(header) = header {
        start = header.offset + header.bytes;
        let mut records = Records::new(document.input.sample(), &document.dialect, document.budget.clone());
        let mut node = Node::new("header", header.offset, header.bytes);
        if records.begin().is_ok() && records.next_record().unwrap_or(false) {
            let names = (0..).map(|index| format!("[{index}]"));
            node =
                node.parts(records.cells().zip(names).map(|(cell, name)| cell_node(&cell, name)).collect());
        }
        nodes.push(node);
    }
    let rows = RowNodes {
        source: source.clone(),
        start,
        dialect: document.dialect.clone(),
        names,
        budget: document.budget.clone(),
    };
    nodes.push(Node::new("row", start, bytes.saturating_sub(start)).expand(rows));
    root.parts(nodes)
}

fn shown(bytes: &[u8]) -> String {
    match bytes.get(..SHOWN_BYTES) {
        Some(head) if bytes.len() > SHOWN_BYTES => format!("{}…", String::from_utf8_lossy(head)),
        _ => String::from_utf8_lossy(bytes).into_owned(),
    }
}

fn cell_node(cell: &Cell<'_>, name: String) -> Node {
    let value = if cell.is_null() { "null".to_owned() } else { shown(cell.text(&mut Vec::new())) };
    Node::new(name, cell.offset, cell.bytes).value(value)
}

struct RowNodes {
    source: Source,
    start: u64,
    dialect: CsvDialect,
    names: Vec<String>,
    budget: Budget,
}

impl Expand for RowNodes {
    fn nodes(&self, from: u64) -> Box<dyn Iterator<Item = Result<Node>> + '_> {
        let reader = match self.source.reader_at(self.start) {
            Ok(reader) => reader,
            Err(error) => return Box::new(std::iter::once(Err(error))),
        };
        let mut records = Records::at(reader, self.start, &self.dialect, self.budget.clone());
        if self.start == 0
            && let Err(error) = records.begin()
        {
            return Box::new(std::iter::once(Err(error)));
        }
        let mut index = 0;
        Box::new(std::iter::from_fn(move || {
            loop {
                match records.next_record() {
                    Ok(false) => return None,
                    Ok(true) if skipped(&records, self.names.len()) => continue,
                    Ok(true) => {}
                    Err(error) => return Some(Err(error.index(index).field("row"))),
                }
                index += 1;
                if index > from {
                    return Some(Ok(self.row(&records, index - 1)));
                }
            }
        }))
    }
}

impl RowNodes {
    fn row<R: Read>(&self, records: &Records<R>, index: u64) -> Node {
        let offset = records.record_offset();
        let cells = records.cells().enumerate().map(|(column, cell)| {
            let name = self.names.get(column).cloned();
            cell_node(&cell, name.unwrap_or_else(|| format!("[{column}]")))
        });
        Node::new(format!("[{index}]"), offset, records.offset() - offset).parts(cells.collect())
    }
}
