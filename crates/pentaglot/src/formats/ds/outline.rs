//! The named byte ranges of a bundle: header and rows, or type and value; rows and cells are created on demand.

use super::layout::{DsLayout, Encoded, Stride};
use super::rows::{WINDOW_BYTES, read_root_count};
use super::schema::{root_columns, root_shape};
use super::tree::Tree;
use super::types::Type;
use crate::cursor::Cursor;
use crate::error::{Error, ErrorKind, Result};
use crate::formats::{Expand, Node, Outline, Summary};
use crate::hub::Shape;
use crate::limits::{Budget, Limits};
use crate::source::{Source, Window};
use crate::wire::json::{JsonKind as Kind, Scanner};
use crate::wire::msgpack;

/// A value longer than this is described, not shown.
const SHOWN_BYTES: u64 = 1024;
const SHOWN_CHARS: usize = 60;

pub(super) fn outline(
    layout: &DsLayout,
    summary: &Summary,
    stride: Option<&Stride>,
    budget: &Budget,
) -> Outline {
    let len = layout.source.len();
    let end = len.unwrap_or(layout.body);
    let name = summary.dialect.unwrap_or("ds");
    let mut parts = Vec::new();
    let elements = |name: &str, elements: Elements| {
        let node = Node::new(name, layout.body, end.saturating_sub(layout.body));
        if len.is_none() { node.value("a stream, which is read once") } else { node.expand(elements) }
    };
    let elements_of = |start: u64| Elements {
        source: layout.source.clone(),
        start,
        end,
        kind: layout.kind.clone(),
        wire: layout.wire,
        budget: budget.clone(),
        stride: stride.map(|stride| stride.bytes),
        count: summary.rows,
    };
    match layout.wire {
        Encoded::MsgPack => {
            if layout.body > 0 {
                parts.push(Node::new("header", 0, layout.body).value(&layout.kind));
            }
            let part = if root_shape(&layout.kind) == Shape::Table { "rows" } else { "value" };
            parts.push(elements(part, elements_of(layout.body)));
        }
        Encoded::Json => {
            if let Some((offset, bytes)) = layout.type_place {
                parts.push(Node::new("type", offset, bytes).value(&layout.kind));
            }
            parts.push(elements("value", elements_of(layout.body)));
            parts.sort_by_key(|part| part.offset);
        }
    }
    Node::new(name, 0, end).parts(parts)
}

/// The elements at the root.
#[derive(Clone)]
struct Elements {
    source: Source,
    start: u64,
    end: u64,
    kind: Type,
    wire: Encoded,
    budget: Budget,
    stride: Option<u64>,
    count: Option<u64>,
}

impl Expand for Elements {
    fn nodes(&self, from: u64) -> Box<dyn Iterator<Item = Result<Node>> + '_> {
        match self.wire {
            Encoded::MsgPack => match self.msgpack(from) {
                Ok(nodes) => Box::new(nodes),
                Err(error) => Box::new(std::iter::once(Err(error))),
            },
            Encoded::Json => match self.json() {
                Ok(nodes) => Box::new(nodes.skip(usize::try_from(from).unwrap_or(usize::MAX))),
                Err(error) => Box::new(std::iter::once(Err(error))),
            },
        }
    }

    fn count(&self) -> Option<u64> {
        self.count
    }

    fn index_near(&self, offset: u64) -> u64 {
        self.stride.map_or(0, |stride| offset.saturating_sub(self.start) / stride)
    }
}

impl Elements {
    fn msgpack(&self, from: u64) -> Result<impl Iterator<Item = Result<Node>> + use<>> {
        let skipped = self.stride.map_or(0, |stride| from.min((self.end - self.start) / stride) * stride);
        let mut window = Window::over(
            &self.source,
            self.start + skipped,
            Some(self.end),
            WINDOW_BYTES,
            self.budget.clone(),
        )?;
        let mut row = if self.stride.is_some() { from } else { 0 };
        let shape = root_shape(&self.kind);
        if shape == Shape::Array {
            read_root_count(&mut window)?;
        }
        let this = self.clone();
        let mut done = false;
        let nodes = std::iter::from_fn(move || {
            while !done {
                let mut cursor = window.cursor();
                let offset = cursor.offset();
                if !cursor.is_empty() {
                    match msgpack::skip(&mut cursor) {
                        Ok(()) => {
                            let bytes = cursor.offset() - offset;
                            window.advance_to(offset + bytes);
                            row += 1;
                            return Some(Ok((row - 1, this.node(row - 1, offset, bytes))));
                        }
                        Err(error) if error.kind() != ErrorKind::Truncated || window.is_last() => {
                            done = true;
                            return Some(Err(error.index(row).field("rows")));
                        }
                        Err(_) => {}
                    }
                }
                match window.grow() {
                    Ok(true) => {}
                    Ok(false) => done = true,
                    Err(error) => {
                        done = true;
                        return Some(Err(error));
                    }
                }
            }
            None
        });
        Ok(nodes.filter_map(move |node| match node {
            Ok((row, _)) if row < from => None,
            Ok((_, node)) => Some(Ok(node)),
            Err(error) => Some(Err(error)),
        }))
    }

    fn json(&self) -> Result<impl Iterator<Item = Result<Node>> + use<>> {
        let mut scanner = Scanner::over(&self.source, self.start, self.budget.clone())?;
        let single = root_shape(&self.kind) == Shape::Value;
        if !single {
            if scanner.peek()? != Kind::Array {
                return Err(scanner.unexpected("an array"));
            }
            scanner.begin_array()?;
        }
        let (mut row, mut done) = (0, false);
        let this = self.clone();
        let mut next = move || -> Result<Option<Node>> {
            if (single && row == 1) || (!single && !scanner.next_element()?) {
                return Ok(None);
            }
            scanner.peek()?;
            let offset = scanner.offset();
            scanner.skip_value()?;
            row += 1;
            Ok(Some(this.node(row - 1, offset, scanner.offset() - offset)))
        };
        Ok(std::iter::from_fn(move || {
            if done {
                return None;
            }
            let node = next().transpose();
            done = !matches!(node, Some(Ok(_)));
            node
        }))
    }

    /// The node of one element; a row of a table has its cells as parts.
    fn node(&self, row: u64, offset: u64, bytes: u64) -> Node {
        let node = Node::new(format!("[{row}]"), offset, bytes);
        if root_shape(&self.kind) == Shape::Table {
            return node.expand(Row { elements: self.clone(), offset, bytes });
        }
        match self.text(offset, bytes) {
            Some(text) => node.value(text),
            None => node,
        }
    }

    fn text(&self, offset: u64, bytes: u64) -> Option<String> {
        if bytes > SHOWN_BYTES {
            return None;
        }
        let content = self.source.read_range(offset, bytes, &self.budget).ok()?;
        match self.wire {
            Encoded::MsgPack => shown(&content, offset, self.budget.limits()),
            Encoded::Json => Some(cut(&String::from_utf8_lossy(&content))),
        }
    }
}

/// A MessagePack value as text.
fn shown(bytes: &[u8], offset: u64, limits: &Limits) -> Option<String> {
    let mut cursor = Cursor::at(bytes, offset);
    if let Some(0xc4..=0xc6) = cursor.peek() {
        let content = msgpack::read_bytes(&mut cursor, "bytes").ok()?;
        return Some(format!("{} bytes", content.len()));
    }
    let tree = Tree::read_msgpack(&mut cursor, limits, 0).ok()?;
    let mut text = Vec::new();
    tree.write_json(&mut text);
    Some(cut(&String::from_utf8_lossy(&text)))
}

fn cut(text: &str) -> String {
    if text.chars().count() <= SHOWN_CHARS {
        return text.to_owned();
    }
    text.chars().take(SHOWN_CHARS).chain(['…']).collect()
}

/// The cells of a row.
struct Row {
    elements: Elements,
    offset: u64,
    bytes: u64,
}

impl Expand for Row {
    fn nodes(&self, from: u64) -> Box<dyn Iterator<Item = Result<Node>> + '_> {
        let cells = match self.cells() {
            Ok(cells) => cells.into_iter().map(Ok).collect(),
            Err(error) => vec![Err(error)],
        };
        Box::new(cells.into_iter().skip(usize::try_from(from).unwrap_or(usize::MAX)))
    }
}

impl Row {
    fn cells(&self) -> Result<Vec<Node>> {
        let Elements { source, kind, wire, budget, .. } = &self.elements;
        let bytes = source.read_range(self.offset, self.bytes, budget)?;
        let places = match wire {
            Encoded::MsgPack => msgpack_places(&bytes, self.offset)?,
            Encoded::Json => json_places(&bytes, self.offset, budget)?,
        };
        let columns = root_columns(kind);
        let names =
            columns.iter().map(|(name, _)| (*name).to_owned()).map(Some).chain(std::iter::repeat(None));
        let cells = places.into_iter().zip(names).enumerate();
        Ok(cells
            .map(|(index, ((offset, bytes), name))| {
                let node = Node::new(name.unwrap_or_else(|| format!("[{index}]")), offset, bytes);
                match self.elements.text(offset, bytes) {
                    Some(text) => node.value(text),
                    None => node.value(format!("{bytes} bytes")),
                }
            })
            .collect())
    }
}

fn msgpack_places(bytes: &[u8], offset: u64) -> Result<Vec<(u64, u64)>> {
    let mut cursor = Cursor::at(bytes, offset);
    let count = msgpack::read_array(&mut cursor)?;
    let place = |_| {
        let start = cursor.offset();
        msgpack::skip(&mut cursor)?;
        Ok::<_, Error>((start, cursor.offset() - start))
    };
    (0..count).map(place).collect()
}

fn json_places(bytes: &[u8], offset: u64, budget: &Budget) -> Result<Vec<(u64, u64)>> {
    let mut scanner = Scanner::at(bytes, offset, budget.clone());
    scanner.begin_array()?;
    let mut places = Vec::new();
    while scanner.next_element()? {
        scanner.peek()?;
        let start = scanner.offset();
        scanner.skip_value()?;
        places.push((start, scanner.offset() - start));
    }
    Ok(places)
}
