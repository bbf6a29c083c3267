//! Comma-separated values (RFC 4180), and tab-separated ones.
//!
//! ```text
//! name,size,note\n
//! a,1,"says ""hi"", twice"\n
//! b,,""\n                            null (an empty field), then the empty string
//! ```
//!
//! | | read | write |
//! |---|---|---|
//! | fields | bare or in quotes, which may hold delimiters, line ends and doubled quotes | quoted where needed |
//! | null | an empty field (`""` is the empty string) | an empty field |
//! | nested values, complex, tensors, tuples | JSON text of `hub::json` | JSON text |
//! | other values | as in `hub::json`, without its quotes; also `True`, `nan`, `inf` and a space for the `T` | as in `hub::json`, without its quotes |
//! | lines | `\n` or `\r\n`; a byte order mark is skipped | `\n` |
//! | encoding | UTF-8; UTF-16 with a byte order mark; others by `encoding` | UTF-8 |
//! | `header` | `true` (default): the first record names the columns; `false`: they are `col_0`, `col_1`, … | the same |
//! | `delimiter` | one character, or `tab`; by default a tab in files named `.tsv`, else the one of `,`, tab, `;` and `\|` that gives the first records the same number of fields, which a note says | the same; by default `,`, and a tab in `.tsv` |
//! | `quote` | the character that encloses fields; `none` | the same |
//! | `null` | texts that are null in quotes or not, beside the empty field | the first is what null is written as |
//! | `comment`, `skip`, `trim` | lines that begin with a character; lines before the header; spaces around fields | |
//! | `--type` | Arrow text `struct{…}` with all columns in their order | |
//!
//! With one column, an empty line is a null; with more, empty lines are skipped. An empty field in a column of text
//! that is not nullable is the empty string; `""` in a column that is not text is a null.
//!
//! **How types are guessed** from the first 10,000 records within the first MiB: all fields are nullable. A column
//! whose fields that are not empty are all of one of these kinds has its type, else it is `utf8`: `true`/`false` (also
//! `True`, `TRUE`): `bool`; whole numbers: `int64`, past it `uint64`, `decimal128[38, 0]`; numbers with a fraction or exponent, `NaN`,
//! `inf`, `Infinity`: `float64` (also with whole numbers up to 2^53 among them); `YYYY-MM-DD`: `date32`; `HH:MM:SS[.f]`: `time[us]`;
//! `YYYY-MM-DDTHH:MM:SS[.f]`: `timestamp[us]`, with `Z`: `timestamp[us, 'UTC']` (`ns` where the fraction has more than six digits). A number
//! with leading zeros or a `+` is text: it would not come back. A later record that does not fit is an error that names
//! its line, row, column and byte; `-O sample=all`, which infers types from all records, or `--type` helps then.

mod cells;
mod dialect;
mod encoding;
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

use crate::error::{Context, Result};
use crate::formats::{
    Confidence, Document, Format, FormatInfo, Head, ReadOptions, TypeLanguage, WriteOptions, WritePlan,
};
use crate::hub::Form;
use crate::source::Source;

/// Comma- and tab-separated values.
///
/// ```
/// use pentaglot::formats::text::csv::Csv;
/// use pentaglot::formats::{Format, ReadOptions};
/// use pentaglot::hub::type_text::print_schema;
/// let source = pentaglot::Source::from_bytes("a.csv", b"x,day\n1,2024-02-29\n,2024-03-01\n".to_vec());
/// let document = Csv.open(source, &ReadOptions::default())?;
/// assert_eq!(print_schema(&document.summary().schema), "struct{x: ?int64, day: ?date32}");
/// # Ok::<(), pentaglot::Error>(())
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct Csv;

const ID: &str = "csv";

static INFO: FormatInfo = FormatInfo {
    id: ID,
    title: "Comma-separated values",
    dialects: &[],
    extensions: &["csv", "tsv"],
    media_types: &["text/csv", "text/tab-separated-values"],
    forms: &[Form::Table, Form::Columns, Form::Coo],
    options: dialect::OPTIONS,
    type_language: TypeLanguage::Arrow,
    has_members: false,
    has_whole_columns: false,
    index: None,
    gzip_by_magic: true,
    spec: "https://www.rfc-editor.org/rfc/rfc4180",
};

impl Format for Csv {
    fn info(&self) -> &'static FormatInfo {
        &INFO
    }

    fn detect(&self, head: &Head<'_>) -> Confidence {
        schema::detect(head, &INFO)
    }

    fn open(&self, source: Source, options: &ReadOptions) -> Result<Arc<dyn Document>> {
        let document = read::CsvDocument::open(source, options).in_format(ID)?;
        Ok(Arc::new(document))
    }

    fn plan(&self, schema: &SchemaRef, options: &WriteOptions) -> Result<Box<dyn WritePlan>> {
        write::plan(schema, options)
    }
}
