//! JSON lines: one object a line; also one array a line.
//!
//! ```text
//! {"name":"a","size":1,"tags":["x"]}\n
//! {"name":"b","size":null,"tags":[]}\n
//! ```
//!
//! | | read | write |
//! |---|---|---|
//! | values | any JSON; typed by `--type`, else guessed | the forms of `hub::json`, every key present |
//! | `--type` | Arrow text `struct{…}` (a prefix `arrow:` may stand before it) | |
//! | rows | streamed; objects with keys in any order, missing keys are null; arrays, whose columns are `col_0`, `col_1`, … | streamed, as objects |
//!
//! **How types are guessed** from the first 10,000 rows within the first MiB (a first row that is longer is read whole):
//! all fields are nullable and are in the order in which their keys first occur. Whole numbers are `int64`, past it
//! `uint64`, `decimal128[38, 0]`, past that text; with a fraction or exponent among them, or `"NaN"`, `"Infinity"`, `"-Infinity"`, `float64`;
//! whole numbers past 2^53 among fractions, and any other mixture of kinds, are `utf8` that keeps the text of each value.
//! Arrays are lists, objects structs, both guessed from all their elements. Texts that are all
//! dates or times of one kind are that, as in CSV. Only null: `null`. A later row that does not
//! fit is an error that names its line, row, column and byte; `-O sample=all` or `--type` helps then.

mod layout;
mod outline;
mod read;
mod schema;
#[cfg(test)]
mod tests;
mod validate;
mod write;

use std::sync::Arc;

use arrow_schema::SchemaRef;

use super::sample::SAMPLE_OPTION;
use crate::error::{Context, Result};
use crate::formats::{
    Confidence, Document, Format, FormatInfo, Head, ReadOptions, TypeLanguage, WriteOptions, WritePlan,
};
use crate::hub::Form;
use crate::source::Source;

/// JSON lines.
///
/// ```
/// use pentaglot::formats::text::json_lines::JsonLines;
/// use pentaglot::formats::{Format, ReadOptions};
/// use pentaglot::hub::type_text::print_schema;
/// let source = pentaglot::Source::from_bytes("a.jsonl", b"{\"x\":1}\n{\"x\":2.5}\n".to_vec());
/// let document = JsonLines.open(source, &ReadOptions::default())?;
/// assert_eq!(print_schema(&document.summary().schema), "struct{x: ?float64}");
/// assert_eq!(document.all_rows()?.next().unwrap()?.num_rows(), 2);
/// # Ok::<(), pentaglot::Error>(())
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct JsonLines;

const ID: &str = "jsonl";

static INFO: FormatInfo = FormatInfo {
    id: ID,
    title: "JSON lines",
    dialects: &[],
    extensions: &["jsonl", "ndjson"],
    media_types: &["application/x-ndjson", "application/jsonl"],
    forms: &[Form::Table, Form::Columns, Form::Coo],
    options: &[SAMPLE_OPTION],
    type_language: TypeLanguage::Arrow,
    has_members: false,
    has_whole_columns: false,
    index: None,
    gzip_by_magic: true,
    spec: "https://jsonlines.org",
};

impl Format for JsonLines {
    fn info(&self) -> &'static FormatInfo {
        &INFO
    }

    fn detect(&self, head: &Head<'_>) -> Confidence {
        layout::detect(head, &INFO)
    }

    fn open(&self, source: Source, options: &ReadOptions) -> Result<Arc<dyn Document>> {
        let document = read::JsonLinesDocument::open(source, options).in_format(ID)?;
        Ok(Arc::new(document))
    }

    fn plan(&self, schema: &SchemaRef, options: &WriteOptions) -> Result<Box<dyn WritePlan>> {
        write::plan(schema, options)
    }
}
