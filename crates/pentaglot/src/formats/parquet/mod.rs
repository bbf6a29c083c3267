//! Parquet: columns in row groups, in pages, packed, with a footer that says where everything is.
//!
//! ```text
//! file      := "PAR1"  row group*  column and offset indexes  footer (thrift)  u32 footer length  "PAR1"
//! row group := column chunk*                    one per leaf of the schema
//! chunk     := dictionary page?  data page*
//! page      := header (thrift)  levels  values  packed with the chunk's codec
//! ```
//!
//! | | read | written |
//! |---|---|---|
//! | data pages version 1 and 2, all encodings of the `parquet` crate | yes | version 1 |
//! | none, snappy, gzip, brotli, lz4, zstd | yes | yes (`-O compression=zstd:3`) |
//! | pages that end where the content says | yes | yes (`-O cdc=true`) |
//! | nested types, dictionaries, decimals | yes | yes |
//! | types that Parquet lacks | | stored as a similar type, see `schema.rs` |
//! | pandas' and other key-value metadata, Arrow's schema | yes | yes |
//! | rows of a table without columns | yes | yes, in the footer's `pentaglot.row_count` |
//! | row groups and pages that a row range does not touch | not read | |
//! | encryption, chunks in other files | no | no |
//!
//! Row groups close at 64 MiB. Page headers are looked at before the `parquet` crate unpacks a page.

mod batch_size;
mod batches;
mod delta_lengths;
mod dictionary;
mod footer;
mod group_rows;
mod layout;
mod levels;
mod outline;
mod page_checks;
mod page_header;
mod read;
mod row_groups;
mod row_values;
mod schema;
mod shapes;
mod statistics;
mod storage;
mod summary;
#[cfg(test)]
mod tests;
mod thrift;
mod validate;
mod write;

use std::sync::Arc;

use arrow_schema::SchemaRef;

use self::footer::MAGIC;
use self::read::ParquetDocument;
use super::{
    Confidence, Document, Format, FormatInfo, Head, OptionInfo, ReadOptions, TypeLanguage, WriteOptions,
    WritePlan,
};
use crate::error::{Context, Result};
use crate::hub::Form;
use crate::source::Source;

const ID: &str = "parquet";

static INFO: FormatInfo = FormatInfo {
    id: ID,
    title: "Apache Parquet",
    dialects: &[],
    extensions: &["parquet", "pq"],
    media_types: &["application/vnd.apache.parquet"],
    forms: &[Form::Table, Form::Columns, Form::Coo, Form::Array, Form::Value, Form::Dense, Form::Sparse],
    options: &[
        OptionInfo {
            key: "compression",
            side: super::Side::Write,
            values: "none|snappy|gzip[:0..9]|brotli[:0..11]|lz4|zstd[:1..22]",
            default: "zstd",
            help: "how pages are packed",
        },
        OptionInfo {
            key: "cdc",
            side: super::Side::Write,
            values: "true|false",
            default: "false",
            help: "pages end where the content says, so that versions of a file share most bytes",
        },
    ],
    type_language: TypeLanguage::None,
    has_members: false,
    has_whole_columns: false,
    index: None,
    gzip_by_magic: true,
    spec: "https://parquet.apache.org/docs/file-format/",
};

/// The Parquet format.
#[derive(Debug, Clone, Copy, Default)]
pub struct Parquet;

impl Format for Parquet {
    fn info(&self) -> &'static FormatInfo {
        &INFO
    }

    fn keeps_extensions(&self) -> bool {
        true
    }

    fn detect(&self, head: &Head<'_>) -> Confidence {
        let bytes = head.bytes();
        match bytes.starts_with(MAGIC) || bytes.starts_with(b"PARE") {
            true => Confidence::Certain,
            false => Confidence::No,
        }
    }

    fn open(&self, source: Source, options: &ReadOptions) -> Result<Arc<dyn Document>> {
        Ok(Arc::new(ParquetDocument::open(&source, options).in_format(ID)?))
    }

    fn plan(&self, schema: &SchemaRef, options: &WriteOptions) -> Result<Box<dyn WritePlan>> {
        write::plan(schema, options)
    }
}
