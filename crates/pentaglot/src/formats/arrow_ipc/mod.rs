//! Arrow IPC: Arrow's own record batches, as a stream of messages or as a file with a footer.
//!
//! ```text
//! stream  := schema (dictionary | batch)* end
//! message := 0xffffffff  i32 metadata length  flatbuffer + padding to 8  body
//! body    := buffer*                          each at a multiple of 8, packed one by one if the header says so
//! end     := 0xffffffff 0x00000000            (or the bytes just end)
//!
//! file    := "ARROW1" 0 0  stream  footer flatbuffer  i32 footer length  "ARROW1"
//! footer  := schema, offset and lengths of every dictionary and batch
//! ```
//!
//! | | read | written |
//! |---|---|---|
//! | file, stream | both; streams also from a pipe, in constant memory | both |
//! | metadata V5, V4; messages without `0xffffffff` (before 0.15) | yes | V5 |
//! | LZ4 and Zstd bodies | yes | no |
//! | dictionaries: replaced, delta | yes | stream: as they come; file: joined into one, which grows by deltas |
//! | big-endian data, tensors, Feather version 1 | no | no |
//!
//! A file's batches and columns that are not asked for are not read.

mod body;
mod dictionary;
mod layout;
mod outline;
mod read;
mod slice;
#[cfg(test)]
mod tests;
mod validate;
mod write;

use crate::formats::{TypeLanguage, WritePlan, planned};
use crate::hub::Selection;
use std::sync::Arc;

use arrow_schema::SchemaRef;

use self::layout::{CONTINUATION, MAGIC};
use self::read::{Pipe, Store};
use self::write::IpcWriter;
use super::{
    Confidence, Document, Findings, Format, FormatInfo, Head, Node, Outline, ReadOptions, Split, Summary,
    WriteOptions,
};
use crate::error::{Context, Error, Result};
use crate::hub::{Form, Rows};
use crate::limits::Budget;
use crate::source::Source;
use crate::wire::arrow_flatbuffers;

const FORMS: &[Form] =
    &[Form::Table, Form::Columns, Form::Coo, Form::Array, Form::Value, Form::Dense, Form::Sparse];

static FILE: FormatInfo = FormatInfo {
    id: "arrow",
    title: "Arrow IPC file (Feather version 2)",
    dialects: &[],
    extensions: &["arrow", "feather", "ipc"],
    media_types: &["application/vnd.apache.arrow.file"],
    forms: FORMS,
    options: &[],
    type_language: TypeLanguage::None,
    has_members: false,
    index: None,
    gzip_by_magic: true,
    spec: "https://arrow.apache.org/docs/format/Columnar.html#ipc-file-format",
};

static STREAM: FormatInfo = FormatInfo {
    id: "arrow-stream",
    title: "Arrow IPC stream",
    dialects: &[],
    extensions: &["arrows"],
    media_types: &["application/vnd.apache.arrow.stream"],
    forms: FORMS,
    options: &[],
    type_language: TypeLanguage::None,
    has_members: false,
    index: None,
    gzip_by_magic: true,
    spec: "https://arrow.apache.org/docs/format/Columnar.html#ipc-streaming-format",
};

/// The Arrow IPC file format.
#[derive(Debug, Clone, Copy, Default)]
pub struct ArrowFile;

/// The Arrow IPC stream format.
#[derive(Debug, Clone, Copy, Default)]
pub struct ArrowStream;

impl Format for ArrowFile {
    fn info(&self) -> &'static FormatInfo {
        &FILE
    }

    fn detect(&self, head: &Head<'_>) -> Confidence {
        let bytes = head.bytes();
        match bytes.starts_with(MAGIC) || (bytes.starts_with(b"FEA1") && head.has_extension(FILE.extensions))
        {
            true => Confidence::Certain,
            false => Confidence::No,
        }
    }

    fn open(&self, source: Source, options: &ReadOptions) -> Result<Arc<dyn Document>> {
        open_file(&source, &options.budget).in_format(FILE.id)
    }

    fn plan(&self, schema: &SchemaRef, options: &WriteOptions) -> Result<Box<dyn WritePlan>> {
        let steps = write::plan(schema, true);
        let (schema, budget) = (Arc::clone(schema), options.budget.clone());
        Ok(planned(steps, move |sink| {
            Ok(Box::new(IpcWriter::create(FILE.id, true, sink, schema, budget).in_format(FILE.id)?))
        }))
    }
}

impl Format for ArrowStream {
    fn info(&self) -> &'static FormatInfo {
        &STREAM
    }

    fn detect(&self, head: &Head<'_>) -> Confidence {
        detect_stream(head.bytes())
    }

    fn open(&self, source: Source, options: &ReadOptions) -> Result<Arc<dyn Document>> {
        open_stream(source, &options.budget).in_format(STREAM.id)
    }

    fn plan(&self, schema: &SchemaRef, options: &WriteOptions) -> Result<Box<dyn WritePlan>> {
        let steps = write::plan(schema, false);
        let (schema, budget) = (Arc::clone(schema), options.budget.clone());
        Ok(planned(steps, move |sink| {
            Ok(Box::new(IpcWriter::create(STREAM.id, false, sink, schema, budget).in_format(STREAM.id)?))
        }))
    }
}

fn open_file(source: &Source, budget: &Budget) -> Result<Arc<dyn Document>> {
    let source = source.seekable_if(|head| head.starts_with(MAGIC))?;
    let mut magic = [0; 6];
    let count = source.read_at(0, &mut magic)?;
    if magic.starts_with(b"FEA1") {
        return Err(Error::unsupported("Feather version 1 (write it again as version 2)"));
    }
    if magic != *MAGIC {
        let found = format!("{:02x?}", magic.get(..count).unwrap_or_default());
        let expected = "the magic ARROW1";
        let error = match count < MAGIC.len() && MAGIC.starts_with(magic.get(..count).unwrap_or_default()) {
            true => Error::truncated(expected, found),
            false => Error::malformed(expected, found),
        };
        return Err(error.at(0).rule("magic"));
    }
    let store = Store::file(FILE.id, source, budget.clone())?;
    Ok(Arc::new(StoreDocument { summary: store.summary(), store: Arc::new(store) }))
}

fn open_stream(source: Source, budget: &Budget) -> Result<Arc<dyn Document>> {
    if source.is_seekable() {
        let store = Store::stream(STREAM.id, source, budget.clone())?;
        return Ok(Arc::new(StoreDocument { summary: store.summary(), store: Arc::new(store) }));
    }
    let pipe = Pipe::open(STREAM.id, source, budget.clone())?;
    Ok(Arc::new(PipeDocument { summary: Summary::new(STREAM.id, Arc::clone(&pipe.schema)), pipe }))
}

/// A schema message at the start says so; where it is longer than the head, its prefix must do.
fn detect_stream(bytes: &[u8]) -> Confidence {
    let number =
        |at: usize| bytes.get(at..).and_then(|rest| rest.first_chunk()).map(|four| u32::from_le_bytes(*four));
    let marked = bytes.starts_with(&CONTINUATION);
    let (at, len) = if marked { (8, number(4)) } else { (4, number(0)) };
    let Some(len) = len.and_then(|len| usize::try_from(len).ok()).filter(|len| (16..1 << 31).contains(len))
    else {
        return Confidence::No;
    };
    match bytes.get(at..).and_then(|rest| rest.get(..len)) {
        Some(metadata) => match arrow_flatbuffers::message(metadata, Budget::default().limits()) {
            Ok(message) if message.header_type() == arrow_ipc::MessageHeader::Schema => Confidence::Certain,
            _ => Confidence::No,
        },
        None if marked && len.is_multiple_of(8) => Confidence::Likely,
        None => Confidence::No,
    }
}

struct StoreDocument {
    store: Arc<Store>,
    summary: Summary,
}

impl Document for StoreDocument {
    fn summary(&self) -> &Summary {
        &self.summary
    }

    fn splits(&self, wanted: usize) -> Vec<Split> {
        self.store.splits(wanted)
    }

    fn outline(&self) -> Outline {
        outline::store(&self.store)
    }

    fn validate(&self, findings: &mut Findings) -> Result<()> {
        validate::store(&self.store, findings).in_format(self.store.id)
    }

    fn rows(&self, request: &Selection) -> Result<Rows> {
        self.store.rows(request).in_format(self.store.id)
    }
}

struct PipeDocument {
    pipe: Pipe,
    summary: Summary,
}

impl Document for PipeDocument {
    fn summary(&self) -> &Summary {
        &self.summary
    }

    /// A pipe has no offsets to go back to.
    fn outline(&self) -> Outline {
        Node::new(self.pipe.id, 0, 0)
    }

    fn validate(&self, findings: &mut Findings) -> Result<()> {
        validate::pipe(&self.pipe, findings).in_format(self.pipe.id)
    }

    fn rows(&self, request: &Selection) -> Result<Rows> {
        self.pipe.rows(request).in_format(self.pipe.id)
    }
}
