//! Lines, and the values of a line, with their places.

use std::io::BufReader;

use super::layout::next_line;
use crate::error::Result;
use crate::formats::text::json_outline::{Values, shown};
use crate::formats::text::json_rows::JsonRows;
use crate::formats::{Expand, Node, Outline};
use crate::limits::Budget;
use crate::source::Source;

/// The rows as `row[i]`, their values as `row[i].key`. A stream cannot be read twice and shows no parts.
pub(super) fn outline(document: &JsonRows) -> Outline {
    let source = document.input.source();
    let bytes = source.len().unwrap_or(document.input.sample().len() as u64);
    let root = Node::new("jsonl", 0, bytes);
    if !source.is_seekable() {
        return root;
    }
    let rows = Rows { source: source.clone(), budget: document.budget.clone() };
    root.parts(vec![Node::new("row", 0, bytes).expand(rows)])
}

struct Rows {
    source: Source,
    budget: Budget,
}

impl Expand for Rows {
    fn nodes(&self, from: u64) -> Box<dyn Iterator<Item = Result<Node>> + '_> {
        let mut reader = match self.source.reader() {
            Ok(reader) => BufReader::new(reader),
            Err(error) => return Box::new(std::iter::once(Err(error))),
        };
        let mut offset = 0;
        let mut index = 0u64;
        let lines = std::iter::from_fn(move || {
            loop {
                let (head, bytes) = match next_line(&mut reader) {
                    Ok(Some(line)) => line,
                    Ok(None) => return None,
                    Err(error) => return Some(Err(error)),
                };
                let start = offset;
                offset += bytes;
                if head.trim_ascii().is_empty() {
                    continue;
                }
                let node = Node::new(format!("[{index}]"), start, bytes)
                    .value(shown(head.trim_ascii_end(), head.len() as u64 == bytes))
                    .expand(Values {
                        source: self.source.clone(),
                        offset: start,
                        bytes,
                        budget: self.budget.clone(),
                    });
                index += 1;
                if index > from {
                    return Some(Ok(node));
                }
            }
        });
        Box::new(lines)
    }
}
