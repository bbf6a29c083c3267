//! Lines, and the values of a line, with their places.

use std::io::{BufRead, BufReader, Read};

use super::read::JsonLinesDocument;
use crate::error::{Error, Result};
use crate::formats::{Expand, Node, Outline};
use crate::limits::Budget;
use crate::source::Source;
use crate::wire::json::Scanner;

/// How much of a text is shown.
const SHOWN_BYTES: usize = 60;

/// The rows as `row[i]`, their values as `row[i].key`. A stream cannot be read twice and shows no parts.
pub(super) fn outline(document: &JsonLinesDocument) -> Outline {
    let source = document.input.source();
    let bytes = source.len().unwrap_or(document.input.sample().len() as u64);
    let root = Node::new("jsonl", 0, bytes);
    if !source.is_seekable() {
        return root;
    }
    let rows = Rows { source: source.clone(), budget: document.budget.clone() };
    root.parts(vec![Node::new("row", 0, bytes).expand(rows)])
}

/// The beginning of a text, for people.
fn shown(bytes: &[u8], whole: bool) -> String {
    let text = String::from_utf8_lossy(bytes);
    if whole { text.into_owned() } else { format!("{text}…") }
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

/// The beginning of the next line and the bytes it takes with its end.
fn next_line(reader: &mut impl BufRead) -> Result<Option<(Vec<u8>, u64)>> {
    let mut head = Vec::new();
    let mut bytes = 0;
    loop {
        let window = reader.fill_buf()?;
        if window.is_empty() {
            return Ok((bytes > 0).then_some((head, bytes)));
        }
        let end = window.iter().position(|byte| *byte == b'\n').map(|end| end + 1);
        let taken = end.unwrap_or(window.len());
        let wanted = SHOWN_BYTES.saturating_sub(head.len()).min(taken);
        head.extend_from_slice(window.get(..wanted).unwrap_or_default());
        reader.consume(taken);
        bytes += taken as u64;
        if end.is_some() {
            return Ok(Some((head, bytes)));
        }
    }
}

struct Values {
    source: Source,
    offset: u64,
    bytes: u64,
    budget: Budget,
}

impl Values {
    fn list(&self) -> Result<Vec<Result<Node>>> {
        let reader = self.source.reader_at(self.offset)?.take(self.bytes);
        let mut scanner = Scanner::at(reader, self.offset, self.budget.clone());
        if self.offset == 0 {
            scanner.skip_byte_order_mark()?;
        }
        let mut nodes = Vec::new();
        scanner.begin_object()?;
        loop {
            match self.value(&mut scanner) {
                Ok(Some(node)) => nodes.push(Ok(node)),
                Ok(None) => return Ok(nodes),
                // What stands before the break is shown.
                Err(error) => {
                    nodes.push(Err(error));
                    return Ok(nodes);
                }
            }
        }
    }

    fn value<R: Read>(&self, scanner: &mut Scanner<R>) -> Result<Option<Node>> {
        let Some(name) = scanner.next_key()?.map(str::to_owned) else { return Ok(None) };
        let place = |error: Error| error.field(name.clone());
        scanner.peek().map_err(place)?;
        let start = scanner.offset();
        scanner.skip_value().map_err(place)?;
        let bytes = scanner.offset() - start;
        let mut head = vec![0; SHOWN_BYTES.min(usize::try_from(bytes).unwrap_or(usize::MAX))];
        self.source.read_exact_at(start, &mut head)?;
        Ok(Some(Node::new(name, start, bytes).value(shown(&head, head.len() as u64 == bytes))))
    }
}

impl Expand for Values {
    fn nodes(&self, from: u64) -> Box<dyn Iterator<Item = Result<Node>> + '_> {
        let nodes = self.list().unwrap_or_else(|error| vec![Err(error)]);
        Box::new(nodes.into_iter().skip(usize::try_from(from).unwrap_or(usize::MAX)))
    }
}
