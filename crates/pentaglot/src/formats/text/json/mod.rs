//! JSON: one value, which is an array of records.
//!
//! ```text
//! [{"name":"a","size":1},
//! {"name":"b","size":null}]
//! ```
//!
//! | | read | write |
//! |---|---|---|
//! | array of objects | a table; keys in any order, missing keys are null | tables; every key present, a record a line |
//! | array of arrays of numbers, all of one length | a matrix | matrices |
//! | array of other arrays of one length | a table with the columns `col_0`, `col_1`, … | |
//! | any other array | an array | arrays |
//! | object of columns: `{"a":[1,2],"b":["x","y"]}`, as pandas writes it also `{"a":{"0":1,"1":2},…}` | a table, where the format is named (`--from json`) | |
//! | sparse matrix | | an array of records `row`, `col`, `value` |
//! | `--type` | Arrow text `struct{…}`, `array[…]` or `matrix[…]` | |
//!
//! Types are inferred as in [`json_lines`](super::json_lines). Arrays are streamed both ways. An object of columns is read
//! once when it is opened, to find where its columns begin, and its columns are then read side by side in constant memory;
//! row labels that are not `0`, `1`, … become the column `index`.

mod columns;
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

/// JSON: an array of records.
///
/// ```
/// use pentaglot::formats::text::json::Json;
/// use pentaglot::formats::{Format, ReadOptions};
/// use pentaglot::hub::type_text::print_schema;
/// let source = pentaglot::Source::from_bytes("a.json", b"[{\"x\":1},{\"x\":2.5}]".to_vec());
/// let document = Json.open(source, &ReadOptions::default())?;
/// assert_eq!(print_schema(&document.summary().schema), "struct{x: ?float64}");
/// assert_eq!(document.all_rows()?.next().unwrap()?.num_rows(), 2);
/// # Ok::<(), pentaglot::Error>(())
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct Json;

const ID: &str = "json";

static INFO: FormatInfo = FormatInfo {
    id: ID,
    title: "JSON",
    dialects: &[],
    extensions: &["json"],
    media_types: &["application/json"],
    forms: &[Form::Table, Form::Dense, Form::Array, Form::Coo],
    options: &[SAMPLE_OPTION],
    type_language: TypeLanguage::Arrow,
    has_members: false,
    has_whole_columns: false,
    index: None,
    gzip_by_magic: true,
    spec: "https://www.rfc-editor.org/rfc/rfc8259",
};

impl Format for Json {
    fn info(&self) -> &'static FormatInfo {
        &INFO
    }

    fn detect(&self, head: &Head<'_>) -> Confidence {
        layout::detect(head, &INFO)
    }

    fn open(&self, source: Source, options: &ReadOptions) -> Result<Arc<dyn Document>> {
        read::open(source, options).in_format(ID)
    }

    fn plan(&self, schema: &SchemaRef, options: &WriteOptions) -> Result<Box<dyn WritePlan>> {
        write::plan(schema, options)
    }
}
