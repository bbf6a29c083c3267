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
mod pipe;
mod read;
mod schema;
mod slice;
#[cfg(test)]
mod tests;
mod validate;
mod write;

use std::sync::Arc;

use arrow_schema::SchemaRef;

use self::layout::{CONTINUATION, MAGIC};
use super::{
    Confidence, Document, Format, FormatInfo, Head, ReadOptions, TypeLanguage, WriteOptions, WritePlan,
    arrow_flatbuffers,
};
use crate::error::{Context, Result};
use crate::hub::Form;
use crate::limits::Budget;
use crate::source::Source;

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
    has_whole_columns: false,
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
    has_whole_columns: false,
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

    fn keeps_extensions(&self) -> bool {
        true
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
        read::open_file(&source, options).in_format(FILE.id)
    }

    fn plan(&self, schema: &SchemaRef, options: &WriteOptions) -> Result<Box<dyn WritePlan>> {
        Ok(write::plan(FILE.id, true, schema, options))
    }
}

impl Format for ArrowStream {
    fn info(&self) -> &'static FormatInfo {
        &STREAM
    }

    fn keeps_extensions(&self) -> bool {
        true
    }

    fn detect(&self, head: &Head<'_>) -> Confidence {
        detect_stream(head.bytes())
    }

    fn open(&self, source: Source, options: &ReadOptions) -> Result<Arc<dyn Document>> {
        read::open_stream(source, options).in_format(STREAM.id)
    }

    fn plan(&self, schema: &SchemaRef, options: &WriteOptions) -> Result<Box<dyn WritePlan>> {
        Ok(write::plan(STREAM.id, false, schema, options))
    }
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
