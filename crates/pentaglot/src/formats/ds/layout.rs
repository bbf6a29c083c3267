//! Offsets in a bundle: the header of a MessagePack stream, `type` and `value` of a JSON bundle, rows of constant size.

use std::io::Read;

use super::schema::root_columns;
use super::tree::Tree;
use super::types::{Fundamental, ImageFormat, Type};
use super::{ROWS, ROWS_JSON};
use crate::cursor::Cursor;
use crate::error::{Context, Error, ErrorKind, Hint, Result};
use crate::formats::{Confidence, Head, ReadOptions};
use crate::limits::{Budget, Limits};
use crate::source::{HEAD_BYTES, Source};
use crate::wire::json::{JsonKind as Kind, Scanner};
use crate::wire::msgpack::{self, Integer, Output};

/// How the bytes are encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Encoded {
    MsgPack,
    Json,
}

/// A bundle whose type is known.
#[derive(Debug, Clone)]
pub(super) struct DsLayout {
    pub(super) source: Source,
    pub(super) wire: Encoded,
    pub(super) kind: Type,
    /// The offset of the elements (MessagePack) or the value (JSON).
    pub(super) body: u64,
    /// Whether the file contains its type.
    pub(super) described: bool,
    /// In JSON: offset and length of the type.
    pub(super) type_place: Option<(u64, u64)>,
}

impl DsLayout {
    /// Elements, or a JSON value, of a type that was given.
    fn without_header(source: Source, wire: Encoded, kind: Type) -> Self {
        DsLayout { source, wire, kind, body: 0, described: false, type_place: None }
    }

    /// The dialect of a file without a type.
    pub(super) fn bare_dialect(&self) -> Option<&'static str> {
        match self.wire {
            _ if self.described => None,
            Encoded::MsgPack => Some(ROWS),
            Encoded::Json => Some(ROWS_JSON),
        }
    }
}

/// Whether the bytes are MessagePack or JSON. No element of DS is a MessagePack map: a map is a header.
fn sniff(head: &[u8], name: &str, given: Option<&Type>) -> Encoded {
    let text = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head);
    let Some(first) = text.iter().find(|byte| !byte.is_ascii_whitespace()) else { return Encoded::MsgPack };
    let name = name.to_lowercase();
    let named = crate::source::Packing::strip(&name).ends_with(".json");
    match (first, given) {
        (b'{', _) => Encoded::Json,
        (b'[' | b'"', None) => Encoded::Json,
        // A number may be valid in both; the name decides.
        (0x00..=0x7f, Some(Type::Fundamental(kind))) if !matches!(kind, Fundamental::String) && !named => {
            let word = matches!(kind, Fundamental::Bool | Fundamental::Void) && first.is_ascii_alphabetic();
            if word { Encoded::Json } else { Encoded::MsgPack }
        }
        (b'[' | b'"' | b'-' | b'0'..=b'9' | b't' | b'f' | b'n', Some(_)) => Encoded::Json,
        _ => Encoded::MsgPack,
    }
}

/// Finds the type and the body of a bundle.
pub(super) fn open_given(source: Source, options: &ReadOptions) -> Result<DsLayout> {
    let given = options.type_text.as_deref();
    let given =
        given.map(|text| Type::parse_within(text, options.budget.limits()).field("type")).transpose()?;
    let wire = match options.dialect.as_deref() {
        Some(dialect @ (ROWS | ROWS_JSON)) => {
            let wire = if dialect == ROWS { Encoded::MsgPack } else { Encoded::Json };
            let missing = || Error::usage(format!("ds:{dialect} holds no type")).hint(Hint::Type);
            return Ok(DsLayout::without_header(source, wire, given.ok_or_else(missing)?));
        }
        Some("json") => Encoded::Json,
        Some(_) => Encoded::MsgPack,
        None => sniff(&source.head()?, source.name(), given.as_ref()),
    };
    open(source, wire, given, &options.budget)
}

fn open(source: Source, wire: Encoded, given: Option<Type>, budget: &Budget) -> Result<DsLayout> {
    match wire {
        Encoded::MsgPack => open_msgpack(source, given, budget),
        Encoded::Json => open_json(source, given, budget).map_err(json_rule),
    }
}

/// Errors of JSON syntax have the rule `json`, unless they have another.
pub(super) fn json_rule(error: Error) -> Error {
    match error.kind() {
        ErrorKind::Malformed | ErrorKind::Truncated => error.rule("json"),
        _ => error,
    }
}

fn differs(found: &Type, given: &Type) -> Error {
    Error::malformed(format_args!("the given type {given}"), found).rule("header").field("header")
}

fn open_msgpack(mut source: Source, given: Option<Type>, budget: &Budget) -> Result<DsLayout> {
    let mut head = source.head()?;
    match (head.first(), given) {
        (Some(code), given) if msgpack::is_map(*code) => {
            let mut size = HEAD_BYTES as u64;
            let (kind, body) = loop {
                let whole = (head.len() as u64) < size || source.len() == Some(head.len() as u64);
                match read_header(&head, budget.limits()) {
                    // The header is longer than the bytes examined.
                    Err(error) if error.kind() == ErrorKind::Truncated && !whole => {
                        source = source.seekable()?;
                        size *= 2;
                        let len = source.len().unwrap_or(0).min(size);
                        head = source.read_range(0, len, budget)?.to_vec();
                    }
                    other => break other.field("header")?,
                }
            };
            match given {
                Some(given) if given != kind => Err(differs(&kind, &given)),
                _ => {
                    let (wire, type_place) = (Encoded::MsgPack, None);
                    Ok(DsLayout { source, wire, kind, body, described: true, type_place })
                }
            }
        }
        (_, Some(given)) => Ok(DsLayout::without_header(source, Encoded::MsgPack, given)),
        (None, None) => {
            Err(Error::truncated("a header", "an empty file").at(0).rule("header").field("header"))
        }
        (Some(code), None) => {
            let expected = "a map with \"format\"";
            Err(Error::malformed(expected, msgpack::family(*code))
                .at(0)
                .rule("header")
                .field("header")
                .hint(Hint::Type))
        }
    }
}

/// The type in a header, and the end of the header.
fn read_header(head: &[u8], limits: &Limits) -> Result<(Type, u64)> {
    let mut cursor = Cursor::new(head);
    let Tree::Map(pairs) = Tree::read_msgpack(&mut cursor, limits, 0)? else {
        return Err(Error::malformed("a map", "something else").at(0).rule("header"));
    };
    let mut formats = pairs.iter().filter(|(key, _)| key == "format");
    let missing = || Error::malformed("a map with \"format\"", "none").at(0).rule("header");
    let (_, tree) = formats.next().ok_or_else(missing)?;
    if formats.next().is_some() {
        return Err(Error::malformed("every name once", "\"format\" twice").at(0).rule("duplicate"));
    }
    Ok((Type::from_tree(tree, limits).field("format").at(0)?, cursor.offset()))
}

fn open_json(mut source: Source, given: Option<Type>, budget: &Budget) -> Result<DsLayout> {
    let head = source.head()?;
    let found = match find_json(head.as_slice(), given.as_ref(), budget) {
        Err(error) if error.kind() == ErrorKind::Truncated && head.len() >= HEAD_BYTES => {
            // The type is beyond the bytes examined, possibly after the value.
            source = source.seekable()?;
            find_json(source.reader()?, given.as_ref(), budget)?
        }
        other => other?,
    };
    Ok(match (found, given) {
        (Some(Found { kind, .. }), Some(given)) if kind != given => return Err(differs(&kind, &given)),
        (Some(Found { kind, type_place, body }), _) => DsLayout {
            source,
            wire: Encoded::Json,
            kind,
            body,
            described: true,
            type_place: Some(type_place),
        },
        (None, Some(kind)) => DsLayout::without_header(source, Encoded::Json, kind),
        (None, None) => {
            let expected = "a bundle {\"type\": …, \"value\": …}";
            return Err(Error::malformed(expected, "another value").at(0).hint(Hint::Type));
        }
    })
}

struct Found {
    kind: Type,
    type_place: (u64, u64),
    body: u64,
}

/// Searches for type and value; `None` if this is a value, not a bundle.
fn find_json<R: Read>(input: R, given: Option<&Type>, budget: &Budget) -> Result<Option<Found>> {
    let mut scanner = Scanner::new(input, budget.clone());
    scanner.skip_byte_order_mark()?;
    if scanner.peek()? != Kind::Object {
        return Ok(None);
    }
    scanner.begin_object()?;
    // Scala writes void as {}, which is not a bundle.
    let void = matches!(given, Some(Type::Fundamental(Fundamental::Void)));
    if void && scanner.skip_space()? == Some(b'}') {
        return Ok(None);
    }
    let mut kind: Option<(Type, (u64, u64))> = None;
    let mut body = None;
    let twice = |key: &str, offset: u64| {
        Err(Error::malformed("every key once", format_args!("{key:?} twice")).at(offset).rule("duplicate"))
    };
    while let Some(key) = scanner.next_key()? {
        let key = key.to_owned();
        scanner.peek()?;
        let offset = scanner.offset();
        match key.as_str() {
            "type" if kind.is_some() => return twice("type", offset),
            "value" if body.is_some() => return twice("value", offset),
            "type" => {
                let tree = Tree::read_json(&mut scanner)?;
                let place = (offset, scanner.offset() - offset);
                kind = Some((Type::from_tree(&tree, budget.limits()).field("type").at(offset)?, place));
            }
            "value" => {
                body = Some(offset);
                if kind.is_none() {
                    scanner.skip_value()?;
                }
            }
            _ => scanner.skip_value()?,
        }
        if let (Some((kind, type_place)), Some(body)) = (&kind, body) {
            return Ok(Some(Found { kind: kind.clone(), type_place: *type_place, body }));
        }
    }
    let missing = if kind.is_none() { "no \"type\"" } else { "no \"value\"" };
    Err(Error::malformed("a bundle {\"type\": …, \"value\": …}", missing).at(scanner.offset()))
}

/// Rows of constant size in the fixed profile: their size, and the codes at fixed places in each.
#[derive(Debug, Clone)]
pub(super) struct Stride {
    pub(super) bytes: u64,
    /// The first few codes that every row has at fixed offsets.
    codes: Vec<(u64, Code)>,
}

#[derive(Debug, Clone, Copy)]
enum Code {
    Exactly(u8),
    Bool,
}

const CODES: usize = 256;

impl Stride {
    /// The stride of a table's rows, if its columns have one.
    pub(super) fn of(kind: &Type) -> Option<Stride> {
        let Type::Tabular(table) = kind else { return None };
        let mut stride = Stride { bytes: 0, codes: Vec::new() };
        stride.array(table.columns.len() as u64)?;
        table.columns.iter().try_for_each(|(_, kind)| stride.add(kind))?;
        Some(stride)
    }

    fn code(&mut self, code: Code, bytes: u64) -> Option<()> {
        if self.codes.len() < CODES {
            self.codes.push((self.bytes, code));
        }
        self.bytes = self.bytes.checked_add(bytes)?;
        Some(())
    }

    fn array(&mut self, count: u64) -> Option<()> {
        match count {
            0..16 => self.code(Code::Exactly(0x90 | count.to_le_bytes().first()?), 1),
            16..=0xffff => self.code(Code::Exactly(0xdc), 3),
            0x1_0000..=0xffff_ffff => self.code(Code::Exactly(0xdd), 5),
            _ => None,
        }
    }

    fn repeat(&mut self, count: u64, mut add: impl FnMut(&mut Self) -> Option<()>) -> Option<()> {
        let start = self.bytes;
        let listed = count.min(CODES as u64);
        for _ in 0..listed {
            add(self)?;
        }
        if count > listed {
            let each = (self.bytes - start) / listed;
            self.bytes = self.bytes.checked_add(each.checked_mul(count - listed)?)?;
        }
        Some(())
    }

    fn add(&mut self, kind: &Type) -> Option<()> {
        match kind {
            Type::Fundamental(kind) => self.add_fundamental(*kind),
            Type::Image(image) if image.format == ImageFormat::Plain => {
                let size = image.plain_bytes()?;
                let (code, header) = match size {
                    0..=0xff => (0xc4, 2),
                    0x100..=0xffff => (0xc5, 3),
                    0x1_0000..=0xffff_ffff => (0xc6, 5),
                    _ => return None,
                };
                self.code(Code::Exactly(code), size.checked_add(header)?)
            }
            Type::Tensor(tensor) => {
                let count = tensor.count() as u64;
                self.array(count)?;
                self.repeat(count, |stride| stride.add_fundamental(tensor.component))
            }
            Type::Struct(fields) => {
                self.array(fields.len() as u64)?;
                fields.iter().try_for_each(|(_, kind)| self.add(kind))
            }
            Type::Tabular(table) => {
                let rows = table.row_count?;
                self.array(rows)?;
                self.repeat(rows, |stride| {
                    stride.array(table.columns.len() as u64)?;
                    table.columns.iter().try_for_each(|(_, kind)| stride.add(kind))
                })
            }
            Type::Image(_) | Type::Nullable(_) | Type::Array(_) => None,
        }
    }

    fn add_fundamental(&mut self, kind: Fundamental) -> Option<()> {
        match kind {
            Fundamental::Bool => self.code(Code::Bool, 1),
            Fundamental::Void => self.code(Code::Exactly(0xc0), 1),
            Fundamental::Float32 => self.code(Code::Exactly(0xca), 5),
            Fundamental::Float64 => self.code(Code::Exactly(0xcb), 9),
            Fundamental::String => None,
            integer => {
                let (code, size) = fixed_form(integer)?;
                self.code(Code::Exactly(code), 1 + u64::from(size))
            }
        }
    }

    /// Whether a row of this stride may begin here.
    pub(super) fn fits(&self, row: &[u8]) -> bool {
        self.codes.iter().all(|(place, code)| {
            let found = usize::try_from(*place).ok().and_then(|place| row.get(place));
            match code {
                Code::Exactly(code) => found == Some(code),
                Code::Bool => matches!(found, Some(0xc2 | 0xc3)),
            }
        })
    }

    /// How many bytes of a row are examined.
    fn examined_bytes(&self) -> u64 {
        self.codes.last().map_or(0, |(place, _)| place + 1)
    }

    /// The number of rows between `body` and `end`, if a sample of them has this stride.
    pub(super) fn count(&self, source: &Source, body: u64, end: u64, also: &[u64]) -> Option<u64> {
        let bytes = end.checked_sub(body)?;
        if bytes == 0 || bytes % self.bytes != 0 {
            return None;
        }
        let count = bytes / self.bytes;
        // Each sample is a request if reads are costly.
        let samples = if source.is_costly() { 3 } else { 8 };
        let samples = (0..samples).map(|index| index * (count - 1) / (samples - 1));
        let mut head = vec![0; usize::try_from(self.examined_bytes()).ok()?];
        let fits = |row: u64| {
            let start = body + row * self.bytes;
            source.read_exact_at(start, &mut head).is_ok() && self.fits(&head)
        };
        samples.chain(also.iter().copied().filter(|row| *row < count)).all(fits).then_some(count)
    }
}

/// The code and size of an integer in the fixed profile.
pub(super) fn fixed_form(kind: Fundamental) -> Option<(u8, u32)> {
    Some(match kind {
        Fundamental::UInt8 => (0xcc, 1),
        Fundamental::Int8 => (0xd0, 1),
        Fundamental::UInt32 => (0xce, 4),
        Fundamental::Int32 => (0xd2, 4),
        Fundamental::UInt64 => (0xcf, 8),
        Fundamental::Int64 => (0xd3, 8),
        _ => return None,
    })
}

/// Which integer profile a stream has.
#[derive(Debug, Default)]
pub(super) struct Profile {
    /// Integers in the full width of their type that would fit in fewer bytes.
    fixed: u64,
    /// Integers in the fewest bytes that are fewer than their type's full width.
    minimal: u64,
    /// Integers in neither form.
    other: u64,
}

impl Profile {
    /// Examines the elements that are complete in the first bytes.
    pub(super) fn of(kind: &Type, head: &[u8]) -> Profile {
        const ELEMENTS: usize = 64;
        let mut profile = Profile::default();
        let mut cursor = Cursor::new(head);
        let columns = root_columns(kind);
        if matches!(kind, Type::Array(_)) && msgpack::read_array_count(&mut cursor).is_err() {
            return profile;
        }
        for _ in 0..ELEMENTS {
            let row = matches!(kind, Type::Tabular(_)).then(|| msgpack::read_array_count(&mut cursor));
            if row.is_some_and(|row| row.is_err()) || cursor.is_empty() {
                break;
            }
            if columns.iter().try_for_each(|(_, kind)| profile.look(kind, &mut cursor)).is_err() {
                break;
            }
        }
        profile
    }

    fn look(&mut self, kind: &Type, cursor: &mut Cursor<'_>) -> Result<()> {
        match kind {
            Type::Fundamental(kind) => self.look_fundamental(*kind, cursor),
            Type::Tensor(tensor) => {
                for _ in 0..msgpack::read_array(cursor)? {
                    self.look_fundamental(tensor.component, cursor)?;
                }
                Ok(())
            }
            Type::Nullable(inner) if cursor.peek() != Some(0xc0) => self.look(inner, cursor),
            Type::Struct(fields) => {
                msgpack::read_array(cursor)?;
                fields.iter().try_for_each(|(_, kind)| self.look(kind, cursor))
            }
            Type::Array(item) => {
                for _ in 0..msgpack::read_array(cursor)? {
                    self.look(item, cursor)?;
                }
                Ok(())
            }
            Type::Tabular(table) => {
                for _ in 0..msgpack::read_array(cursor)? {
                    msgpack::read_array(cursor)?;
                    table.columns.iter().try_for_each(|(_, kind)| self.look(kind, cursor))?;
                }
                Ok(())
            }
            Type::Nullable(_) | Type::Image(_) => msgpack::skip(cursor),
        }
    }

    fn look_fundamental(&mut self, kind: Fundamental, cursor: &mut Cursor<'_>) -> Result<()> {
        let (Some((code, _)), Some(found)) = (fixed_form(kind), cursor.peek()) else {
            return msgpack::skip(cursor);
        };
        let before = cursor.remaining();
        let value = msgpack::read_integer(cursor)?;
        let mut output = Output::default();
        match value {
            Integer::Unsigned(value) => output.unsigned(value),
            Integer::Negative(value) => output.signed(value),
        }
        let minimal =
            output.bytes().len() == before - cursor.remaining() && output.bytes().first() == Some(&found);
        match (found == code, minimal) {
            (true, true) => {}
            (true, false) => self.fixed += 1,
            (false, true) => self.minimal += 1,
            (false, false) => self.other += 1,
        }
        Ok(())
    }

    /// The dialect and why.
    pub(super) fn dialect(&self) -> (&'static str, &'static str) {
        match (self.fixed, self.minimal, self.other) {
            (1.., 0, 0) => ("msgpack-fixed", "integers take the full width of their type, as Go writes them"),
            (0, 1.., 0) => ("msgpack", "integers take the fewest bytes, as Scala and Python write them"),
            (0, 0, 0) => ("msgpack", "no integer at its start tells the profiles apart"),
            _ => ("msgpack", "integers take several widths"),
        }
    }
}

/// Whether a file looks like a bundle: a map with `format` that is a type, or an object with `type` and `value`.
pub(super) fn detect(head: &Head<'_>) -> Confidence {
    let bytes = head.bytes();
    // Only the head is read.
    let budget = Budget::default();
    let Some(first) = bytes.first() else { return Confidence::No };
    if msgpack::is_map(*first) {
        return match read_header(bytes, budget.limits()) {
            Ok(_) => Confidence::Certain,
            // A header that is longer than the first bytes, or invalid.
            Err(_) if bytes.get(1..8) == Some(b"\xa6format") => Confidence::Likely,
            Err(_) => Confidence::No,
        };
    }
    let text = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    if text.iter().find(|byte| !byte.is_ascii_whitespace()) != Some(&b'{') {
        return Confidence::No;
    }
    match find_json(bytes, None, &budget) {
        Ok(Some(_)) => Confidence::Certain,
        Ok(None) => Confidence::No,
        // A bundle that is invalid, or whose type is beyond the bytes examined.
        Err(_) => {
            let keys = first_keys(bytes, &budget);
            let has = |name: &str| keys.iter().any(|key| key == name);
            let first = keys.first().map(String::as_str);
            match first {
                _ if has("type") && has("value") => Confidence::Likely,
                Some("value") if bytes.len() >= HEAD_BYTES => Confidence::Likely,
                // Only one key of a bundle, and our extension: more likely an incomplete bundle than a JSON line.
                Some("type" | "value")
                    if keys.len() == 1 && head.has_extension(&["ds.json"]) && is_alone(bytes, &budget) =>
                {
                    Confidence::Likely
                }
                Some("type" | "value") => Confidence::Possible,
                _ => Confidence::No,
            }
        }
    }
}

/// Whether a whole text is one JSON value.
fn is_alone(text: &[u8], budget: &Budget) -> bool {
    let mut scanner = Scanner::new(text, budget.clone());
    let value = scanner.skip_byte_order_mark().and_then(|_| scanner.skip_value());
    value.and_then(|()| scanner.end()).is_ok()
}

/// The keys of the object at the start of a text, up to the first error.
fn first_keys(text: &[u8], budget: &Budget) -> Vec<String> {
    let mut scanner = Scanner::new(text, budget.clone());
    let mut keys = Vec::new();
    if scanner.skip_byte_order_mark().and_then(|_| scanner.begin_object()).is_err() {
        return keys;
    }
    while let Ok(Some(key)) = scanner.next_key() {
        keys.push(key.to_owned());
        if scanner.skip_value().is_err() {
            break;
        }
    }
    keys
}
