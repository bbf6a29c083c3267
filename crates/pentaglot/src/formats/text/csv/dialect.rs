//! The options of CSV: how fields are separated and quoted, and which lines are comments or skipped.

use std::sync::Arc;

use super::layout::Cell;
use crate::error::{Error, Result};
use crate::formats::text::sample::SAMPLE_OPTION;
use crate::formats::{OptionInfo, OptionMap, Side};
use crate::source::Packing;

const fn option(
    key: &'static str,
    side: Side,
    values: &'static str,
    default: &'static str,
    help: &'static str,
) -> OptionInfo {
    OptionInfo { key, side, values, default, help }
}

pub(super) const OPTIONS: &[OptionInfo] = &[
    option("header", Side::Both, "true|false", "true", "whether the first record names the columns"),
    option(
        "delimiter",
        Side::Both,
        "CHARACTER|tab",
        "a tab in .tsv; else , or, when read, what the first lines show of , ; | and tab",
        "what separates fields",
    ),
    option("quote", Side::Both, "CHARACTER|none", "\"", "what encloses fields that hold delimiters"),
    option(
        "null",
        Side::Both,
        "TEXT[,TEXT…]",
        "none",
        "texts that are null, beside the empty field; the first is written",
    ),
    option("comment", Side::Read, "CHARACTER", "none", "lines that begin with it are skipped"),
    option("skip", Side::Read, "N", "0", "how many lines before the header are skipped"),
    option("trim", Side::Read, "true|false", "false", "whether spaces around fields are dropped"),
    option(
        "encoding",
        Side::Read,
        "NAME",
        "utf-8, or what a byte order mark says",
        "the encoding of the text: utf-16le, latin1, windows-1250, shift_jis, …",
    ),
    SAMPLE_OPTION,
];

/// What `-O` says, with what the file's name says.
#[derive(Debug, Clone)]
pub(super) struct CsvDialect {
    pub(super) header: bool,
    pub(super) delimiter: u8,
    /// Whether the delimiter is given by an option or the name.
    pub(super) is_given: bool,
    pub(super) quote: Option<u8>,
    pub(super) comment: Option<u8>,
    /// Lines before the header.
    pub(super) skip: u64,
    pub(super) trim: bool,
    /// Texts that are null, beside the empty field.
    pub(super) nulls: Arc<[String]>,
    /// Whether a last record without a line end is an error: it may be incomplete.
    pub(super) needs_line_ends: bool,
}

impl Default for CsvDialect {
    fn default() -> Self {
        CsvDialect {
            header: true,
            delimiter: b',',
            is_given: false,
            quote: Some(b'"'),
            comment: None,
            skip: 0,
            trim: false,
            nulls: Arc::default(),
            needs_line_ends: false,
        }
    }
}

impl CsvDialect {
    pub(super) fn new(options: &OptionMap, name: &str) -> Result<Self> {
        let is_tsv = Packing::strip(&name.to_lowercase()).ends_with(".tsv");
        let delimiter = match options.get("delimiter") {
            None => is_tsv.then_some(b'\t'),
            Some("tab") => Some(b'\t'),
            Some(text) => Some(character("delimiter", text, "an ASCII character or tab")?),
        };
        let quote = match options.get("quote") {
            None => Some(b'"'),
            Some("none" | "") => None,
            Some(text) => Some(character("quote", text, "an ASCII character or none")?),
        };
        let comment = options.get("comment").filter(|text| !text.is_empty());
        let comment = comment.map(|text| character("comment", text, "an ASCII character")).transpose()?;
        let nulls = options.get("null").map(|text| text.split(',').map(str::to_owned).collect());
        let dialect = CsvDialect {
            header: options.bool("header")?.unwrap_or(true),
            delimiter: delimiter.unwrap_or(b','),
            is_given: delimiter.is_some(),
            quote,
            comment,
            skip: options.number("skip")?.unwrap_or(0),
            trim: options.bool("trim")?.unwrap_or(false),
            nulls: nulls.unwrap_or_default(),
            needs_line_ends: false,
        };
        if dialect.quote == Some(dialect.delimiter) {
            let text = char::from(dialect.delimiter);
            return Err(Error::usage(format!(
                "option delimiter: expected another character than the quote {text}"
            )));
        }
        Ok(dialect)
    }

    /// Whether white space that is dropped around fields.
    pub(super) fn is_space(&self, byte: u8) -> bool {
        self.trim && matches!(byte, b' ' | b'\t') && byte != self.delimiter
    }

    /// Whether a field has one of the texts that are null.
    pub(super) fn is_null_text(&self, cell: &Cell<'_>, memory: &mut Vec<u8>) -> bool {
        !self.nulls.is_empty() && {
            let text = cell.text(memory);
            self.nulls.iter().any(|null| null.as_bytes() == text)
        }
    }

    /// What a null is written as.
    pub(super) fn null(&self) -> &str {
        self.nulls.first().map_or("", String::as_str)
    }
}

fn character(key: &str, text: &str, expected: &str) -> Result<u8> {
    match text.as_bytes() {
        [byte @ (b'\t' | b' '..=b'~')] if key != "delimiter" || *byte != b'"' => Ok(*byte),
        _ => Err(Error::usage(format!("option {key}: expected {expected}, found {text:?}"))),
    }
}
