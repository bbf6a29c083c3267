//! The values of a row, with their places.

use std::io::Read;

use crate::error::{Error, Result};
use crate::formats::{Expand, Node};
use crate::limits::Budget;
use crate::source::Source;
use crate::wire::json::{JsonKind, Scanner};

/// How much of a text is shown.
const SHOWN_BYTES: usize = 60;

/// The beginning of a text, for people.
pub(super) fn shown(bytes: &[u8], whole: bool) -> String {
    let text = String::from_utf8_lossy(bytes);
    if whole { text.into_owned() } else { format!("{text}…") }
}

/// The value that comes next in a scanner of a seekable source, as a node that can be expanded if it has parts.
pub(super) fn value_node<R: Read>(
    name: String,
    scanner: &mut Scanner<R>,
    source: &Source,
    budget: &Budget,
) -> Result<Node> {
    let kind = scanner.peek()?;
    let start = scanner.offset();
    scanner.skip_value()?;
    let bytes = scanner.offset() - start;
    let mut head = vec![0; SHOWN_BYTES.min(usize::try_from(bytes).unwrap_or(usize::MAX))];
    source.read_exact_at(start, &mut head)?;
    let node = Node::new(name, start, bytes).value(shown(&head, head.len() as u64 == bytes));
    let values = || Values { source: source.clone(), offset: start, bytes, budget: budget.clone() };
    Ok(if matches!(kind, JsonKind::Object | JsonKind::Array) { node.expand(values()) } else { node })
}

/// The values of an object or an array.
pub(super) struct Values {
    pub(super) source: Source,
    pub(super) offset: u64,
    pub(super) bytes: u64,
    pub(super) budget: Budget,
}

impl Values {
    fn walk(&self) -> Result<impl Iterator<Item = Result<Node>> + '_> {
        let reader = self.source.reader_at(self.offset)?.take(self.bytes);
        let mut scanner = Scanner::at(reader, self.offset, self.budget.clone());
        if self.offset == 0 {
            scanner.skip_byte_order_mark()?;
        }
        let is_object = scanner.peek()? == JsonKind::Object;
        if is_object {
            scanner.begin_object()?
        } else {
            scanner.begin_array()?
        }
        let (mut index, mut done) = (0u64, false);
        Ok(std::iter::from_fn(move || {
            if done {
                return None;
            }
            // What comes before a fault is shown.
            let node = self.next(&mut scanner, is_object, index).transpose();
            done = node.as_ref().is_none_or(|node| node.is_err());
            index += 1;
            node
        }))
    }

    fn next<R: Read>(&self, scanner: &mut Scanner<R>, is_object: bool, index: u64) -> Result<Option<Node>> {
        let name = if is_object {
            let Some(name) = scanner.next_key()?.map(str::to_owned) else { return Ok(None) };
            name
        } else if scanner.next_element()? {
            format!("[{index}]")
        } else {
            return Ok(None);
        };
        let place = |error: Error| error.field(name.clone());
        value_node(name.clone(), scanner, &self.source, &self.budget).map(Some).map_err(place)
    }
}

impl Expand for Values {
    fn nodes(&self, from: u64) -> Box<dyn Iterator<Item = Result<Node>> + '_> {
        match self.walk() {
            Ok(nodes) => Box::new(nodes.skip(usize::try_from(from).unwrap_or(usize::MAX))),
            Err(error) => Box::new(std::iter::once(Err(error))),
        }
    }
}
