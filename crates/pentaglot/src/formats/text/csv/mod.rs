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
//! | lines | `\n` or `\r\n`; a byte order mark is passed over | `\n` |
//! | `header` | `true` (default): the first record names the columns; `false`: they are `col_0`, `col_1`, … | the same |
//! | `delimiter` | one character, or `tab`; by default `,`, and a tab in files named `.tsv` | the same |
//! | `--type` | Arrow text `struct{…}` with all columns in their order | |
//!
//! With one column, an empty line is a null; with more, empty lines are passed over. An empty field in a column of text
//! that is not nullable is the empty string; `""` in a column that is not text is a null.
//!
//! **How types are guessed** from the first 10,000 records within the first MiB: all fields are nullable. A column
//! whose fields that are not empty are all of one of these kinds has its type, else it is `utf8`: `true`/`false` (also
//! `True`, `TRUE`): `bool`; whole numbers: `int64`, past it `uint64`, `int128`, `uint128`; numbers with a fraction or exponent, `NaN`,
//! `inf`, `Infinity`: `float64` (also with whole numbers up to 2^53 among them); `YYYY-MM-DD`: `date32`; `HH:MM:SS[.f]`: `time[us]`;
//! `YYYY-MM-DDTHH:MM:SS[.f]`: `timestamp[us]`, with `Z`: `timestamp[us, 'UTC']` (`ns` where the fraction has more than six digits). A number
//! with leading zeros or a `+` is text: it would not come back. A later record that does not fit is an error that names
//! its row, column and byte; `--type` gives the types then.

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

use crate::error::{Context, Error, Result};
use crate::formats::{
    Confidence, Document, Format, FormatInfo, Head, OptionInfo, OptionMap, ReadOptions, Side, TypeLanguage,
    WriteOptions, WritePlan,
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
    options: &[
        OptionInfo {
            key: "header",
            side: Side::Both,
            values: "true|false",
            default: "true",
            help: "whether the first record names the columns",
        },
        OptionInfo {
            key: "delimiter",
            side: Side::Both,
            values: "CHARACTER|tab",
            default: ", (a tab in .tsv)",
            help: "what stands between fields",
        },
    ],
    type_language: TypeLanguage::Arrow,
    has_members: false,
    index: None,
    gzip_by_magic: true,
    spec: "https://www.rfc-editor.org/rfc/rfc4180",
};

/// What `-O` says, with what the file's name says.
#[derive(Debug, Clone, Copy)]
struct CsvDialect {
    header: bool,
    delimiter: u8,
}

impl CsvDialect {
    fn new(options: &OptionMap, name: &str) -> Result<Self> {
        let header = options.bool("header")?.unwrap_or(true);
        let delimiter = match options.get("delimiter") {
            None if is_tsv(name) => b'\t',
            None => b',',
            Some("tab") => b'\t',
            Some(text) => match text.as_bytes() {
                [byte @ (b'\t' | b' '..=b'~')] if *byte != b'"' => *byte,
                _ => {
                    let message =
                        format!("option delimiter: expected an ASCII character or tab, found {text:?}");
                    return Err(Error::usage(message));
                }
            },
        };
        Ok(CsvDialect { header, delimiter })
    }
}

fn is_tsv(name: &str) -> bool {
    let name = name.to_lowercase();
    name.strip_suffix(".gz").unwrap_or(&name).ends_with(".tsv")
}

impl Format for Csv {
    fn info(&self) -> &'static FormatInfo {
        &INFO
    }

    fn detect(&self, head: &Head<'_>) -> Confidence {
        schema::detect(head, &INFO)
    }

    fn open(&self, source: Source, options: &ReadOptions) -> Result<Arc<dyn Document>> {
        let layout = CsvDialect::new(&options.options, source.name())?;
        let document = read::CsvDocument::open(source, layout, options).in_format(ID)?;
        Ok(Arc::new(document))
    }

    fn plan(&self, schema: &SchemaRef, options: &WriteOptions) -> Result<Box<dyn WritePlan>> {
        write::plan(schema, options)
    }
}
