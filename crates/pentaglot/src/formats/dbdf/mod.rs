//! The DAPHNE binary data format: dense matrices, CSR matrices and frames, cut into blocks.
//!
//! ```text
//! byte  0        1          2      10     18
//!      +--------+----------+------+------+-----------------------------------+
//!      | 1      | data     | rows | cols | matrix: value type                | header
//!      |        | type     | u64  | u64  | frame: a value type a column,     |
//!      |        |          |      |      | then (u16 length, label) a column |
//!      +--------+----------+------+------+-----------------------------------+
//!      +---------+---------+------+------+------------+------------+---------+
//!      | row u64 | col u64 | rows | cols | block type | value type | values  | each block
//!      |         |         | u32  | u32  | u8         | u8         |         |
//!      +---------+---------+------+------+------------+------------+---------+
//! ```
//!
//! | | `spec` (the document) | `daphne` (0.2 to today) | `daphne01` (0.1) |
//! |---|---|---|---|
//! | read, write | both | both, byte for byte | read |
//! | value types | ten, codes 1 to 10 | eight and 16-byte strings, codes 0 to 7 and 9 | eight |
//! | blocks | empty, dense, sparse, ultra-sparse; any tiling | one | one |
//! | sparse rows | u32 count, (u32 column, value) pairs | u64 offsets, u64 columns, values | as `spec`, in u64 |
//! | frame | blocks | cells row by row, no block header | as `daphne` |
//! | structs | packed | packed | padded to 24 and 12 bytes |
//! | a single value (data type 4) | – | read | – |
//! | labels | text | memory that is not text; the `.meta` file has them | as `daphne` |
//!
//! Four interfaces, each usable alone: the bytes ([`DbdfLayout`], [`Header`], [`Block`], [`ValueType`]), parts of an
//! object as messages ([`write_block`], [`read_block`], [`Joiner`], [`write_scalar`], [`read_scalar`]), matrices
//! ([`read_matrix`], [`write_matrix`]), and rows ([`Dbdf`], as every format).

mod arrays;
mod assemble;
mod bands;
mod beside;
mod cast;
mod dialect;
mod encode;
mod layout;
mod locate;
mod matrix;
mod merge;
mod message;
mod meta;
mod open;
mod outline;
mod read;
mod replace;
mod schema;
mod sparse;
mod splits;
#[cfg(test)]
mod tests;
mod tiling;
mod types;
mod validate;
mod write;

use std::sync::Arc;

use arrow_schema::SchemaRef;

use crate::error::{Context, Result};
use crate::hub::Form;
use crate::limits::Limits;
use crate::source::Source;

use super::{
    Confidence, DialectInfo, Document, Format, FormatInfo, Head, NULLS, OptionInfo, ReadOptions,
    TypeLanguage, WriteOptions, WritePlan, null_for_nan,
};

pub use layout::{Block, DbdfLayout, Header};
pub use matrix::{Matrix, read_matrix, write_matrix};
pub use message::{
    Joiner, PlacedBlock, Scalar, join_chunks, read_block, read_scalar, write_block, write_scalar,
};
pub use meta::meta_text;
pub use types::{BlockType, DataType, Dialect, ValueType};

use open::open;
use read::Open;

const ID: &str = "dbdf";

/// The format.
#[derive(Debug, Clone, Copy, Default)]
pub struct Dbdf;

static INFO: FormatInfo = FormatInfo {
    id: ID,
    title: "DAPHNE binary data format",
    dialects: &[
        DialectInfo {
            name: "spec",
            title: "the document: blocks of any type and tiling",
            read: true,
            write: true,
            takes_any_bytes: false,
        },
        DialectInfo {
            name: "daphne",
            title: "as DAPHNE 0.2 to today writes, with its .meta",
            read: true,
            write: true,
            takes_any_bytes: false,
        },
        DialectInfo {
            name: "daphne01",
            title: "as DAPHNE 0.1 wrote",
            read: true,
            write: false,
            takes_any_bytes: false,
        },
    ],
    extensions: &["dbdf"],
    media_types: &[],
    forms: &[Form::Table, Form::Dense, Form::Sparse],
    options: &[
        OptionInfo {
            key: "blocks",
            side: super::Side::Write,
            values: "auto|dense|sparse|ultra-sparse",
            default: "auto",
            help: "how blocks store their cells; auto takes the smallest for each (spec)",
        },
        OptionInfo {
            key: "block-rows",
            side: super::Side::Write,
            values: "N",
            default: "about 16 MiB",
            help: "rows of a block (spec)",
        },
        OptionInfo {
            key: "block-cols",
            side: super::Side::Write,
            values: "N",
            default: "all; 1 in a frame",
            help: "columns of a block (spec)",
        },
        OptionInfo {
            key: "narrow",
            side: super::Side::Write,
            values: "true|false",
            default: "false",
            help: "store each block with the smallest value type that holds its values (spec)",
        },
        OptionInfo {
            key: "meta",
            side: super::Side::Both,
            values: "true|false",
            default: "true for daphne",
            help: "write the .meta file beside the data; reading: false ignores it",
        },
        NULLS,
    ],
    type_language: TypeLanguage::None,
    has_members: false,
    has_whole_columns: false,
    index: None,
    gzip_by_magic: true,
    spec: "https://github.com/daphne-eu/daphne/blob/main/doc/BinaryFormat.md",
};

impl Format for Dbdf {
    fn info(&self) -> &'static FormatInfo {
        &INFO
    }

    fn detect(&self, head: &Head<'_>) -> Confidence {
        let bytes = head.bytes();
        let (Some(1), Some(data_type)) =
            (bytes.first(), bytes.get(1).and_then(|code| DataType::from_code(*code)))
        else {
            return Confidence::No;
        };
        let known = if head.source().is_seekable() {
            Some(head.source().clone())
        } else {
            // A stream that ends within its head.
            head.len().map(|_| Source::from_bytes(head.name(), bytes.to_vec()))
        };
        let Some(source) = known else {
            return if header_is_plausible(bytes) { Confidence::Likely } else { Confidence::No };
        };
        // A walk over millions of blocks reads only their headers, with memory up to this limit; if each header may
        // be a request, only a few are read.
        let max_alloc = if source.is_costly() { 8 << 10 } else { 16 << 20 };
        let limits = Limits { max_alloc, ..Limits::default() };
        let fits = |dialect: &Dialect| match DbdfLayout::read(&source, *dialect, &limits.budget()) {
            Ok(_) => true,
            Err(error) => error.kind() == crate::ErrorKind::Limit,
        };
        match Dialect::ALL.iter().any(fits) {
            true if data_type == DataType::Scalar => Confidence::Likely,
            true => Confidence::Certain,
            false if header_is_plausible(bytes) => Confidence::Possible,
            false => Confidence::No,
        }
    }

    fn open(&self, source: Source, options: &ReadOptions) -> Result<Arc<dyn Document>> {
        let file = open(source, options).in_format(ID)?;
        null_for_nan(Arc::new(Open(Arc::new(file))), options)
    }

    fn plan(&self, schema: &SchemaRef, options: &WriteOptions) -> Result<Box<dyn WritePlan>> {
        write::plan(schema, options).in_format(ID)
    }
}

/// Whether the first block of a matrix, or the header of a frame, is plausible, so that a broken file is still detected
/// as dbdf.
fn header_is_plausible(bytes: &[u8]) -> bool {
    let zeros = |range: std::ops::Range<usize>| {
        bytes.get(range).is_some_and(|part| part.iter().all(|byte| *byte == 0))
    };
    let block_type = |at: usize| bytes.get(at).is_some_and(|code| *code <= 3);
    match bytes.get(1) {
        // Row and column index of the first block, then its type.
        Some(1 | 2) => (zeros(19..35) && block_type(43)) || (zeros(25..41) && block_type(49)),
        // Fewer than 2^32 columns.
        Some(3) => zeros(14..18),
        _ => false,
    }
}

/// Whether the first bytes can be the version and data type of a file.
fn header_may_be(bytes: &[u8]) -> bool {
    matches!(bytes, [1, code, ..] if DataType::from_code(*code).is_some())
}
