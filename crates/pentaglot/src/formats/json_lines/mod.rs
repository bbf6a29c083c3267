//! JSON lines: one object a line.
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
//! | rows | streamed; keys in any order, missing keys are null | streamed |
//!
//! **How types are guessed** from the first 10,000 rows within the first MiB (a first row that is longer is read whole):
//! all fields are nullable and stand in the order in which their keys are first met. Whole numbers are `int64`, past it
//! `uint64`, `int128`, `uint128`; with a fraction or exponent among them, or `"NaN"`, `"Infinity"`, `"-Infinity"`, `float64`;
//! whole numbers past 2^53 among fractions, and any other mixture of kinds, are `utf8` that keeps the text of each value.
//! Arrays are lists, objects structs, both guessed from all their elements. Only null: `null`. A later row that does not
//! fit is an error that names its row, column and byte; `--type` gives the types then.

mod guess;
mod outline;
mod read;
#[cfg(test)]
mod tests;
mod validate;
mod write;

use crate::formats::{TypeLanguage, WritePlan, planned};
use crate::hub::Selection;
use arrow_schema::SchemaRef;
use std::sync::Arc;

use super::{
    Confidence, Document, Findings, Format, FormatInfo, Head, Outline, ReadOptions, Summary, WriteOptions,
};
use crate::error::{Context, Result};
use crate::hub::{Form, Rows};
use crate::source::Source;

/// JSON lines.
///
/// ```
/// use pentaglot::formats::json_lines::JsonLines;
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
    options: &[],
    type_language: TypeLanguage::Arrow,
    has_members: false,
    index: None,
    gzip_by_magic: true,
    spec: "https://jsonlines.org",
};

impl Format for JsonLines {
    fn info(&self) -> &'static FormatInfo {
        &INFO
    }

    fn detect(&self, head: &Head<'_>) -> Confidence {
        guess::detect(head)
    }

    fn open(&self, source: Source, options: &ReadOptions) -> Result<Arc<dyn Document>> {
        let document = read::JsonLinesDocument::open(source, options).in_format(ID)?;
        Ok(Arc::new(document))
    }

    fn plan(&self, schema: &SchemaRef, options: &WriteOptions) -> Result<Box<dyn WritePlan>> {
        let steps = write::plan(schema, &options.json);
        let json = options.json;
        Ok(planned(steps, move |sink| Ok(Box::new(write::JsonLinesWriter::new(sink, json)))))
    }
}

impl Document for read::JsonLinesDocument {
    fn summary(&self) -> &Summary {
        &self.summary
    }

    fn outline(&self) -> Outline {
        outline::outline(self)
    }

    fn validate(&self, findings: &mut Findings) -> Result<()> {
        validate::validate(self, findings).in_format(ID)
    }

    fn rows(&self, request: &Selection) -> Result<Rows> {
        read::rows(self, request).in_format(ID)
    }
}
