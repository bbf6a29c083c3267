//! The named byte ranges of a file: BSON elements in file order, each expanded when it is asked for.

use super::read::BsondfDocument;
use crate::error::{Error, Result};
use crate::formats::{Document as _, Expand, Node, Outline};
use crate::source::Source;
use crate::wire::bson::{BsonKind, Document, Element, Elements, Reader};

/// The outline of a file: one document, or several. Text has no parts.
pub(super) fn outline(document: &BsondfDocument) -> Outline {
    let source = &document.source;
    let bytes = source.len().unwrap_or(0);
    if document.is_text {
        return Node::new("text", 0, document.summary().bytes.unwrap_or(0));
    }
    match Reader::new(source).document_at(0, bytes) {
        Ok(first) if first.bytes < bytes => {
            Node::new("documents", 0, bytes).expand(Listed { source: source.clone(), total: bytes })
        }
        _ => one("document".to_owned(), source, Document { offset: 0, bytes }),
    }
}

/// A document and its parts.
fn one(name: String, source: &Source, document: Document) -> Node {
    let Document { offset, bytes } = document;
    let root = Node::new(name, offset, bytes);
    if bytes < 5 {
        return root;
    }
    root.parts(vec![
        Node::new("length", offset, 4).value(bytes),
        Node::new("columns", offset + 4, bytes - 5).expand(Parts {
            source: source.clone(),
            document,
            is_array: false,
            is_whole: false,
        }),
        Node::new("end", offset + bytes - 1, 1).value(0),
    ])
}

/// The documents of a file.
struct Listed {
    source: Source,
    total: u64,
}

impl Expand for Listed {
    fn nodes(&self, from: u64) -> Box<dyn Iterator<Item = Result<Node>> + '_> {
        let mut reader = Reader::new(&self.source);
        let (mut offset, mut index) = (0, 0u64);
        let nodes = std::iter::from_fn(move || {
            if offset >= self.total {
                return None;
            }
            let node = reader.document_at(offset, self.total).map(|document| {
                offset += document.bytes;
                index += 1;
                one(format!("[{}]", index - 1), &self.source, document)
            });
            if node.is_err() {
                offset = self.total;
            }
            Some(node)
        });
        Box::new(nodes.skip(usize::try_from(from).unwrap_or(usize::MAX)))
    }
}

/// The elements of a document, framed by its length and end if it is shown whole.
struct Parts {
    source: Source,
    document: Document,
    is_array: bool,
    is_whole: bool,
}

impl Expand for Parts {
    fn nodes(&self, from: u64) -> Box<dyn Iterator<Item = Result<Node>> + '_> {
        let reader = Reader::new(&self.source);
        let Document { offset, bytes } = self.document;
        let elements = Some(reader.elements(self.document));
        let walk = Walk { parts: self, reader, elements };
        let from = usize::try_from(from).unwrap_or(usize::MAX);
        if !self.is_whole {
            return Box::new(walk.skip(from));
        }
        let length = Node::new("length", offset, 4).value(bytes);
        let end = Node::new("end", (offset + bytes).saturating_sub(1), 1).value(0);
        Box::new(std::iter::once(Ok(length)).chain(walk).chain(std::iter::once(Ok(end))).skip(from))
    }
}

struct Walk<'p> {
    parts: &'p Parts,
    reader: Reader,
    /// `None` after the end or a fault.
    elements: Option<Elements>,
}

impl Iterator for Walk<'_> {
    type Item = Result<Node>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut elements = self.elements.take()?;
        let element = self.reader.next(&mut elements).transpose()?;
        let node = element.and_then(|element| self.node(&element));
        if node.is_ok() {
            self.elements = Some(elements);
        }
        Some(node)
    }
}

impl Walk<'_> {
    fn node(&mut self, element: &Element) -> Result<Node> {
        let name = if self.parts.is_array { format!("[{}]", element.key) } else { element.key.clone() };
        let bytes = element.value_offset + element.value_bytes - element.offset;
        let node = Node::new(name, element.offset, bytes);
        Ok(match element.kind {
            BsonKind::STRING => node.value(format!("{:?}", self.reader.string(element)?)),
            BsonKind::INT32 | BsonKind::INT64 => node.value(self.reader.integer(element)?),
            BsonKind::DOCUMENT | BsonKind::ARRAY => node.expand(Parts {
                source: self.parts.source.clone(),
                document: element.document(),
                is_array: element.kind == BsonKind::ARRAY,
                is_whole: true,
            }),
            BsonKind::BINARY => self.buffer(node, element)?,
            other => node.value(other.name()),
        })
    }

    /// A compressed buffer and its parts.
    fn buffer(&mut self, node: Node, element: &Element) -> Result<Node> {
        let (offset, bytes) = match self.reader.binary(element) {
            Ok((offset, bytes @ 4..)) => (offset, bytes),
            Ok(_) => return Ok(node.value("shorter than a length")),
            Err(error) => return Ok(node.value(Error::message(&error))),
        };
        let length = i32::from_le_bytes(self.reader.array(offset)?);
        let block = bytes - 4;
        Ok(node.value(format!("{length} bytes in {block} of LZ4")).parts(vec![
            Node::new("bytes", element.value_offset, 4).value(bytes),
            Node::new("sub_type", element.value_offset + 4, 1).value(0),
            Node::new("length", offset, 4).value(length),
            Node::new("block", offset + 4, block).value("LZ4"),
        ]))
    }
}
