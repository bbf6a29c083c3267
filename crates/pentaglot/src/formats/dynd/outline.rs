//! The named byte ranges of a file: type, count, rows, and the fields of each, created on demand.

use super::layout::Header;
use super::layout::RowCount;
use super::types::{Missing, Type};
use super::value::ValueReader;
use super::walk::{Care, Walker, read_count, read_flag, read_text};
use crate::cursor::Cursor;
use crate::error::{Context, Error, Result};
use crate::formats::{Expand, Node, Outline};
use crate::limits::Budget;
use crate::source::Source;
use crate::wire::varint;

/// Maximum length of a value's text.
const SHOWN_CHARS: usize = 60;

pub(super) fn outline(header: &Header, budget: &Budget) -> Outline {
    let Some(end) = header.end.filter(|_| header.source.is_seekable()) else {
        return Node::new("file", 0, 0).value(format!("a stream of {}", header.ty));
    };
    if let Some(bytes) = header.recoded {
        let place = Place { source: header.source.clone(), budget: budget.clone() };
        let item = Node::new("item", 0, bytes);
        let value = place.text(&header.ty, header.data, end - header.data);
        return Node::new("file", 0, bytes).value(&header.ty).parts(vec![Node { value, ..item }]);
    }
    let mut parts = Vec::new();
    if let Some((offset, bytes)) = header.type_text {
        let text = header.ty.to_string();
        if offset > 0 {
            parts.push(Node::new("type_length", 0, offset).value(bytes));
        }
        parts.push(Node::new("type", offset, bytes).value(text));
        let after = offset + bytes;
        if header.data > after {
            parts.push(Node::new("data_length", after, header.data - after).value(end - header.data));
        }
    } else if header.data > 0 {
        parts.push(Node::new("head", 0, header.data).value(&header.ty));
    }
    let place = Place { source: header.source.clone(), budget: budget.clone() };
    match header.layout.rows {
        RowCount::One => parts.push(place.node("value".to_owned(), header.ty.clone(), header.data, end)),
        _ if header.layout.stored.is_some() => {
            parts.push(place.node("value".to_owned(), header.ty.clone(), header.data, end));
        }
        rows => {
            if rows == RowCount::Var {
                parts
                    .push(Node::new("count", header.data, header.first_row - header.data).value(header.rows));
            }
            let (start, count) = (header.first_row, header.rows);
            let elements = Elements { place, of: header.layout.row.clone(), start, end, count };
            parts.push(Node::new("rows", start, end.saturating_sub(start)).value(count).expand(elements));
        }
    }
    Node::new("file", 0, end).value(&header.ty).parts(parts)
}

/// The source of values for the outline.
#[derive(Clone)]
struct Place {
    source: Source,
    budget: Budget,
}

impl Place {
    /// A value that begins at `offset` and ends at or before `end`.
    fn node(&self, name: String, ty: Type, offset: u64, end: u64) -> Node {
        let bytes = match ty.fixed_size() {
            Some(size) => size.min(end.saturating_sub(offset)),
            None => end.saturating_sub(offset),
        };
        let mut node = Node::new(name, offset, bytes);
        node.value = self.describe(&ty, offset, bytes);
        if has_parts(&ty) {
            node = node.expand(Parts { place: self.clone(), ty, start: offset, end: offset + bytes });
        }
        node
    }

    fn read(&self, offset: u64, len: u64) -> Result<Vec<u8>> {
        Ok(self.source.read_range(offset, len, &self.budget)?.to_vec())
    }

    /// The text of a small value.
    fn describe(&self, ty: &Type, offset: u64, len: u64) -> Option<String> {
        if has_parts(ty) { Some(ty.to_string()) } else { self.text(ty, offset, len) }
    }

    fn text(&self, ty: &Type, offset: u64, len: u64) -> Option<String> {
        let bytes = self.read(offset, len.min(4096)).ok()?;
        let mut cursor = Cursor::at(&bytes, offset);
        match ValueReader::new(&self.budget).value(ty, &mut cursor) {
            Ok(value) => {
                let text = super::json::value_json(ty, &value);
                Some(match text.char_indices().nth(SHOWN_CHARS) {
                    Some((cut, _)) => format!("{}…", text.get(..cut).unwrap_or_default()),
                    None => text,
                })
            }
            Err(_) if len > 4096 => Some(ty.to_string()),
            Err(error) => Some(error.message().to_owned()),
        }
    }

    /// The end of the value at `offset`. Reads as little as possible.
    fn end_of(&self, ty: &Type, offset: u64, end: u64) -> Result<u64> {
        let left = end.saturating_sub(offset);
        if let Some(size) = ty.fixed_size() {
            return match size <= left {
                true => Ok(offset + size),
                false => Err(Error::truncated(format_args!("{size} bytes"), left).at(offset)),
            };
        }
        let mut len = 4096;
        loop {
            let bytes = self.read(offset, left.min(len))?;
            let mut cursor = Cursor::at(&bytes, offset);
            match Walker::new(self.budget.limits(), Care::Extent).value(ty, &mut cursor) {
                Ok(()) => return Ok(cursor.offset()),
                Err(error) if len >= left => return Err(error),
                Err(_) => len *= 16,
            }
        }
    }
}

fn has_parts(ty: &Type) -> bool {
    match ty {
        Type::Fixed(..) | Type::Var(_) | Type::Tuple(_) | Type::Struct(_) => true,
        Type::Array(_) | Type::Merkle(_) => true,
        Type::Option(of) => matches!(of.missing(), Missing::Flag) && has_parts(of),
        Type::Pointer(of) => has_parts(of),
        _ => false,
    }
}

/// The elements of a dimension: by stride if they are of fixed size, else one after the other.
struct Elements {
    place: Place,
    of: Type,
    start: u64,
    end: u64,
    count: u64,
}

impl Expand for Elements {
    fn nodes(&self, from: u64) -> Box<dyn Iterator<Item = Result<Node>> + '_> {
        let make = |index: u64, offset: u64, end: u64| {
            self.place.node(format!("[{index}]"), self.of.clone(), offset, end)
        };
        if let Some(size) = self.of.fixed_size() {
            let node = move |index: u64| {
                let offset = self.start.saturating_add(index.saturating_mul(size));
                match offset.saturating_add(size) <= self.end {
                    true => Ok(make(index, offset, offset + size)),
                    false => {
                        Err(Error::truncated(format_args!("{size} bytes"), self.end.saturating_sub(offset))
                            .at(offset))
                    }
                }
            };
            return Box::new((from..self.count).map(node));
        }
        let mut offset = self.start;
        let walk = (0..self.count).map(move |index| {
            let end = self.place.end_of(&self.of, offset, self.end).index(index)?;
            let start = std::mem::replace(&mut offset, end);
            Ok((index, start, end))
        });
        let mut failed = false;
        let until_error =
            walk.take_while(move |step: &Result<_>| !std::mem::replace(&mut failed, step.is_err()));
        let wanted = until_error.filter(move |step| step.as_ref().map_or(true, |(index, ..)| *index >= from));
        Box::new(wanted.map(move |step| step.map(|(index, start, end)| make(index, start, end))))
    }

    fn count(&self) -> Option<u64> {
        Some(self.count)
    }

    fn index_near(&self, offset: u64) -> u64 {
        match self.of.fixed_size() {
            Some(size) => offset.saturating_sub(self.start) / size.max(1),
            None => 0,
        }
    }
}

/// The parts of one value.
struct Parts {
    place: Place,
    ty: Type,
    start: u64,
    end: u64,
}

impl Parts {
    fn fields(&self, fields: impl Iterator<Item = (String, Type)>) -> Vec<Result<Node>> {
        let (mut nodes, mut offset) = (Vec::new(), self.start);
        for (name, ty) in fields {
            match self.place.end_of(&ty, offset, self.end) {
                Ok(end) => nodes.push(Ok(self.place.node(name, ty, offset, end))),
                Err(error) => {
                    nodes.push(Err(error.field(name)));
                    break;
                }
            }
            offset = match nodes.last() {
                Some(Ok(node)) => node.offset + node.bytes,
                _ => self.end,
            };
        }
        nodes
    }

    fn elements(&self, of: &Type, start: u64, count: u64) -> Elements {
        Elements { place: self.place.clone(), of: of.clone(), start, end: self.end, count }
    }

    fn inner(&self, ty: &Type, start: u64) -> Parts {
        Parts { place: self.place.clone(), ty: ty.clone(), start, end: self.end }
    }

    fn head(&self, len: u64) -> Result<Vec<u8>> {
        self.place.read(self.start, len.min(self.end.saturating_sub(self.start)))
    }

    fn make(&self) -> Result<Vec<Result<Node>>> {
        Ok(match &self.ty {
            Type::Tuple(types) => {
                self.fields(types.iter().enumerate().map(|(index, ty)| (format!("[{index}]"), ty.clone())))
            }
            Type::Struct(fields) => self.fields(fields.iter().cloned()),
            Type::Fixed(count, of) => {
                let bytes = self.end.saturating_sub(self.start);
                let elements = self.elements(of, self.start, *count);
                vec![Ok(Node::new("elements", self.start, bytes).value(count).expand(elements))]
            }
            Type::Var(of) => {
                let bytes = self.head(varint::MAX_BYTES as u64)?;
                let mut cursor = Cursor::at(&bytes, self.start);
                let count = read_count(&mut cursor, &Type::Void)?;
                let start = cursor.offset();
                let elements = self.elements(of, start, count);
                vec![
                    Ok(Node::new("count", self.start, start - self.start).value(count)),
                    Ok(Node::new("elements", start, self.end.saturating_sub(start))
                        .value(count)
                        .expand(elements)),
                ]
            }
            Type::Option(of) => {
                let bytes = self.head(1)?;
                let is_there = read_flag(&mut Cursor::at(&bytes, self.start))?;
                let flag =
                    Node::new("flag", self.start, 1).value(if is_there { "available" } else { "missing" });
                let mut nodes = vec![Ok(flag)];
                if is_there {
                    let start = self.start + 1;
                    nodes.push(Ok(self.place.node("value".to_owned(), of.as_ref().clone(), start, self.end)));
                }
                nodes
            }
            Type::Pointer(of) => self.inner(of, self.start).make()?,
            Type::Array(_) => {
                let end = self.place.end_of(&Type::String, self.start, self.end)?;
                let bytes = self.place.read(self.start, end - self.start)?;
                let text = read_text(&mut Cursor::at(&bytes, self.start))?.to_owned();
                let stored = Type::parse_within(&text, self.place.budget.limits())?;
                vec![
                    Ok(Node::new("type", self.start, end - self.start).value(text)),
                    Ok(self.place.node("value".to_owned(), stored, end, self.end)),
                ]
            }
            Type::Merkle(_) => {
                let parts = [("type", Type::String), ("hash", Type::Bytes { align: 1 })];
                self.fields(parts.into_iter().map(|(name, ty)| (name.to_owned(), ty)))
            }
            _ => Vec::new(),
        })
    }
}

impl Expand for Parts {
    fn nodes(&self, from: u64) -> Box<dyn Iterator<Item = Result<Node>> + '_> {
        let skip = usize::try_from(from).unwrap_or(usize::MAX);
        match self.make() {
            Ok(nodes) => Box::new(nodes.into_iter().skip(skip)),
            Err(error) => Box::new(std::iter::once(Err(error))),
        }
    }
}
