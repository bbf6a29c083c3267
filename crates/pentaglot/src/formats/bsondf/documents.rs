//! The documents of a file: where in them the frames are, and in which order they make one table.
//!
//! A frame is a document whose fields are columns. In a database there are other fields beside them (`_id`, a symbol), or the
//! frame is a field itself. A chunk is what splitting writes: a frame under `df`, and beside it its number and its rows.

use std::collections::BTreeSet;

use super::json_write::{element_text, hex};
use crate::error::{self, Error, ErrorKind, Result};
use crate::limits::Limits;
use crate::source::Source;
use crate::wire::bson::{BsonKind, Document, Element, Reader};

/// The field that holds the frame of a chunk, and those beside it.
pub(super) const CHUNK_FRAME: &str = "df";
const CHUNK_FIELDS: [&str; 6] = ["_id", "k", "first", "rows", "min", "max"];

const OBJECT_ID: BsonKind = BsonKind(0x07);

/// A frame, and where it is.
#[derive(Debug, Clone)]
pub(super) struct Frame {
    /// Which document of the file it is in.
    pub index: u64,
    /// The field that holds it, unless the document is the frame.
    pub field: Option<String>,
    pub document: Document,
    pub chunk: Option<ChunkHead>,
}

/// What a chunk says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ChunkHead {
    pub version: [u8; 12],
    pub number: u64,
    pub key: Option<String>,
    pub first: u64,
    pub rows: u64,
}

/// The top level of one document.
struct TopLevel {
    has_columns: bool,
    /// The fields that hold frames.
    frames: Vec<(String, Document)>,
    /// Fields that are neither columns nor frames.
    others: Vec<Element>,
    chunk: Option<ChunkHead>,
}

/// What a file, or the part of it that a member names, holds.
#[derive(Debug, Default)]
pub(super) struct Documents {
    /// How many documents the file has.
    pub count: u64,
    /// In the order of their rows.
    pub frames: Vec<Frame>,
    /// Fields that are neither columns nor those of a chunk: their names and values.
    pub metadata: Vec<(String, String)>,
    /// The fields that hold frames, where the document is not one of them.
    pub choices: Vec<String>,
    /// Of a damaged file: where the documents end that can be told from each other, and why.
    pub lost: Option<(u64, Error)>,
}

/// Finds the frames of a source of `total` bytes, or those that `member` names.
pub(super) fn find(
    source: &Source,
    total: u64,
    member: Option<&str>,
    limits: &Limits,
    damaged: bool,
) -> Result<Documents> {
    let (all, lost) = scan(source, total, damaged)?;
    let mut found = Documents { count: all.len() as u64, lost, ..Documents::default() };
    let (number, field) = match member.map(|member| member.split_once('.').unwrap_or((member, ""))) {
        Some((number, field)) if number.parse::<u64>().is_ok() => {
            (number.parse::<usize>().ok(), Some(field).filter(|field| !field.is_empty()))
        }
        _ => (None, None),
    };
    if let Some(number) = number {
        // A field may have a number for a name.
        if let ([only], Some(name)) = (&all[..], member)
            && let Ok(one) = one_frame(source, limits, 0, *only, Some(name), &mut Documents::default())
        {
            found.frames.extend(one);
            return Ok(found);
        }
        let document = all.get(number).ok_or_else(|| {
            let documents = error::count(found.count, "document");
            Error::usage(format!("there is no document {number} (the file has {documents}, from 0 on)"))
        })?;
        let frame = one_frame(source, limits, number as u64, *document, field, &mut found)?;
        found.frames.extend(frame);
        return Ok(found);
    }
    let mut frames = Vec::new();
    for (index, document) in all.iter().enumerate() {
        let index = index as u64;
        let several = all.len() > 1;
        let place = |error: Error| if several { error.index(index).field("documents") } else { error };
        let mut reader = Reader::new(source);
        let mut own = Documents::default();
        // A name means a field, or the chunks of a version or a key.
        let top = match top_level(&mut reader, *document, damaged).map_err(place) {
            Err(error) if damaged => {
                found.lost = Some((document.offset, error));
                break;
            }
            top => top?,
        };
        let is_named = |chunk: &ChunkHead| {
            member.is_none_or(|member| hex(&chunk.version) == member || chunk.key.as_deref() == Some(member))
        };
        let is_field = member == Some(CHUNK_FRAME);
        if top.chunk.as_ref().is_some_and(|chunk| !is_field && !is_named(chunk)) {
            continue;
        }
        let field = member.filter(|_| is_field || top.chunk.is_none());
        let frame = match frame_of(source, limits, (index, *document, top), field, several, &mut own) {
            Err(error) if damaged && several && error.kind() != ErrorKind::Usage => {
                found.lost = Some((document.offset, place(error)));
                break;
            }
            frame => frame.map_err(place)?,
        };
        if index == 0 || found.metadata.is_empty() {
            found.metadata = own.metadata;
        }
        found.choices = own.choices;
        frames.extend(frame);
    }
    if let (Some(member), true) = (member, frames.is_empty()) {
        return Err(Error::usage(format!("there is no field, document, version or key {member:?}")));
    }
    let key = |frame: &Frame| frame.chunk.as_ref().map(|chunk| chunk.key.clone().unwrap_or_default());
    let keys: BTreeSet<String> = frames.iter().filter_map(key).collect();
    if member.is_none() && keys.len() > 1 {
        // A dump of a collection: each key is a table.
        found.choices = keys.into_iter().collect();
        return Ok(found);
    }
    while let Err((sound, error)) = in_order(&mut frames) {
        if !damaged || error.kind() == ErrorKind::Usage {
            return Err(error);
        }
        // The chunks before the first that is missing are one table.
        let offset = frames.get(sound).map_or(total, |frame| frame.document.offset);
        frames.truncate(sound);
        found.lost = Some((offset, error));
    }
    found.frames = frames;
    Ok(found)
}

/// Where the documents of a file are; of a damaged one also where they end early, and why.
type Scanned = (Vec<Document>, Option<(u64, Error)>);

fn scan(source: &Source, total: u64, damaged: bool) -> Result<Scanned> {
    let mut reader = Reader::new(source);
    let end = if damaged { u64::MAX } else { total };
    let mut documents = vec![reader.document_at(0, end)?];
    let mut offset = documents.first().map_or(0, |first| first.bytes);
    while offset < total {
        let left = total - offset;
        let next = match reader.document_at(offset, total) {
            Ok(next) => next,
            Err(error) if damaged => {
                let error = error.index(documents.len() as u64).field("documents");
                return Ok((documents, Some((offset, error))));
            }
            Err(error) if left < 5 || error.rule_name() == "bson-length" => {
                let more = format!("{left} more bytes");
                return Err(Error::malformed("the end of the file or another document", more)
                    .at(offset)
                    .rule("trailing"));
            }
            Err(error) => return Err(error.index(documents.len() as u64).field("documents")),
        };
        offset += next.bytes;
        documents.push(next);
    }
    Ok((documents, None))
}

fn one_frame(
    source: &Source,
    limits: &Limits,
    index: u64,
    document: Document,
    field: Option<&str>,
    found: &mut Documents,
) -> Result<Option<Frame>> {
    let top = top_level(&mut Reader::new(source), document, false)?;
    frame_of(source, limits, (index, document, top), field, false, found)
}

/// The frame of a document: a named field, the document itself, or its only field that is a frame. `None` if there are
/// several such fields: they become choices.
fn frame_of(
    source: &Source,
    limits: &Limits,
    (index, document, top): (u64, Document, TopLevel),
    field: Option<&str>,
    several: bool,
    found: &mut Documents,
) -> Result<Option<Frame>> {
    let is_chunk = top.chunk.is_some();
    for element in &top.others {
        if !is_chunk || !CHUNK_FIELDS.contains(&element.key.as_str()) {
            let text = element_text(Reader::new(source), element, limits)?;
            found.metadata.push((element.key.clone(), text));
        }
    }
    let frame = |field: Option<String>, document: Document| {
        Ok(Some(Frame { index, field, document, chunk: top.chunk.clone() }))
    };
    if let Some(name) = field {
        let named = top.frames.iter().find(|(field, _)| field == name);
        let names = error::list(top.frames.iter().map(|(name, _)| name));
        return match named {
            Some((name, document)) => frame(Some(name.clone()), *document),
            None if top.frames.is_empty() => {
                Err(Error::usage(format!("no field holds a data frame, so none is named {name:?}")))
            }
            None => Err(Error::usage(format!("no data frame is under {name:?} (there is {names})"))),
        };
    }
    if top.has_columns {
        found.choices = top.frames.iter().map(|(name, _)| name.clone()).collect();
        return frame(None, document);
    }
    match &top.frames[..] {
        [(name, only)] => frame(Some(name.clone()), *only),
        [] if top.others.is_empty() => frame(None, document),
        [] => Err(Error::malformed(
            "a column (a document with the fields d, m and t) or a field with columns",
            format_args!("other fields only ({})", error::list(top.others.iter().map(|other| &other.key))),
        )
        .at(document.offset)
        .rule("not-a-frame")),
        several_frames if several => {
            let names = error::list(several_frames.iter().map(|(name, _)| name));
            Err(Error::malformed("one data frame", names).at(document.offset).rule("several-frames"))
        }
        several_frames => {
            found.choices = several_frames.iter().map(|(name, _)| name.clone()).collect();
            Ok(None)
        }
    }
}

/// Tells columns, frames and other fields apart; reads keys and lengths, and of chunks what they say of themselves.
fn top_level(reader: &mut Reader, document: Document, damaged: bool) -> Result<TopLevel> {
    let mut top = TopLevel { has_columns: false, frames: Vec::new(), others: Vec::new(), chunk: None };
    let mut elements = reader.elements(document);
    while let Some(element) = match reader.next(&mut elements) {
        // The fields before the fault are kept.
        Err(_) if damaged => None,
        element => element.map_err(|error| error.field("columns"))?,
    } {
        if element.kind != BsonKind::DOCUMENT {
            top.others.push(element);
        } else if is_column(reader, &element) {
            top.has_columns = true;
        } else if element.key == CHUNK_FRAME || holds_columns(reader, &element) {
            top.frames.push((element.key.clone(), element.document()));
        } else {
            top.others.push(element);
        }
    }
    if top.frames.iter().any(|(name, _)| name == CHUNK_FRAME) {
        top.chunk = chunk_head(reader, &top.others)?;
    }
    Ok(top)
}

/// Whether an element is a column: two of the fields `d`, `m` (binary) and `t` (text) show it, so that one that lacks the
/// third is reported as a broken column.
pub(super) fn is_column(reader: &mut Reader, element: &Element) -> bool {
    if element.kind != BsonKind::DOCUMENT {
        return false;
    }
    let mut fields = reader.elements(element.document());
    let mut shown = 0;
    loop {
        match reader.next(&mut fields) {
            Ok(Some(field)) => {
                shown += match (field.key.as_str(), field.kind) {
                    ("d", _) | ("m", BsonKind::BINARY) | ("t", BsonKind::STRING) => 1,
                    _ => 0,
                }
            }
            Ok(None) => return shown >= 2,
            // The reader of columns says what is wrong.
            Err(_) => return true,
        }
    }
}

/// Whether the first fields of an element show that it is a frame.
fn holds_columns(reader: &mut Reader, element: &Element) -> bool {
    let mut fields = reader.elements(element.document());
    for _ in 0..super::DETECT_COLUMNS {
        match reader.next(&mut fields) {
            Ok(Some(field)) if is_column(reader, &field) => return true,
            Ok(Some(_)) => {}
            _ => return false,
        }
    }
    false
}

/// What the fields beside `df` say, if they are those of a chunk.
fn chunk_head(reader: &mut Reader, others: &[Element]) -> Result<Option<ChunkHead>> {
    let named = |name: &str| others.iter().find(|element| element.key == name);
    let (Some(id), Some(first), Some(rows)) = (named("_id"), named("first"), named("rows")) else {
        return Ok(None);
    };
    if id.kind != BsonKind::DOCUMENT {
        return Ok(None);
    }
    let (mut version, mut number) = (None, None);
    let mut parts = reader.elements(id.document());
    while let Some(part) = reader.next(&mut parts)? {
        match (part.key.as_str(), part.kind) {
            ("v", OBJECT_ID) => version = Some(reader.array(part.value_offset)?),
            ("n", BsonKind::INT32 | BsonKind::INT64) => number = Some(reader.integer(&part)?),
            _ => {}
        }
    }
    let (Some(version), Some(number)) = (version, number) else { return Ok(None) };
    let mut count = |element: &Element| {
        u64::try_from(reader.integer(element)?).map_err(|_| {
            Error::malformed("a number of 0 or more", "a negative one")
                .at(element.offset)
                .rule("chunk")
                .field(element.key.clone())
        })
    };
    let (first, rows) = (count(first)?, count(rows)?);
    let number = u64::try_from(number)
        .map_err(|_| Error::malformed("a chunk number of 0 or more", number).at(id.offset).rule("chunk"))?;
    let key = match named("k") {
        Some(key) if key.kind == BsonKind::STRING => Some(reader.string(key)?),
        _ => None,
    };
    Ok(Some(ChunkHead { version, number, key, first, rows }))
}

/// Puts chunks into the order of their numbers. An error if one is missing or there twice, with the number of chunks
/// before it.
fn in_order(frames: &mut [Frame]) -> std::result::Result<(), (usize, Error)> {
    if frames.len() < 2 || frames.iter().all(|frame| frame.chunk.is_none()) {
        return Ok(());
    }
    let fault = |frame: &Frame, expected: String, found: String| {
        let error = Error::malformed(expected, found).at(frame.document.offset).rule("chunk");
        error.index(frame.index).field("documents")
    };
    if let Some((index, other)) = frames.iter().enumerate().find(|(_, frame)| frame.chunk.is_none()) {
        let (expected, found) = ("a chunk, as other documents are", "another document");
        return Err((index, fault(other, expected.to_owned(), found.to_owned())));
    }
    let number = |frame: &Frame| frame.chunk.as_ref().map_or(0, |chunk| chunk.number);
    frames.sort_by_key(number);
    let mut rows = 0u64;
    for (index, frame) in frames.iter().enumerate() {
        let (expected, found) = (index as u64, number(frame));
        if found < expected {
            let version = |frame: &Frame| frame.chunk.as_ref().map(|chunk| hex(&chunk.version));
            let versions: BTreeSet<String> = frames.iter().filter_map(version).collect();
            if versions.len() > 1 {
                let versions = error::list(&versions);
                let message = format!(
                    "chunks of several versions and none named: FILE::VERSION with one of {versions}"
                );
                return Err((0, Error::usage(message)));
            }
            let second = "it a second time".to_owned();
            return Err((index, fault(frame, format!("chunk {found} once"), second)));
        }
        if found > expected {
            let next = format!("none, and chunk {found} next");
            return Err((index, fault(frame, format!("chunk {expected}"), next)));
        }
        if let Some(chunk) = &frame.chunk {
            if chunk.first != rows {
                let expected = format!("chunk {found} to begin with row {rows}");
                return Err((index, fault(frame, expected, chunk.first.to_string())));
            }
            rows = rows.saturating_add(chunk.rows);
        }
    }
    Ok(())
}
