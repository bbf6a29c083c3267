//! The fields of records that are printed: strings from their arrays, everything else as its JSON value without quotes.

use arrow_array::cast::AsArray;
use arrow_array::{AnyDictionaryArray, Array, LargeStringArray, RecordBatch, StringArray, StringViewArray};
use arrow_schema::DataType;

use super::dialect::CsvDialect;
use crate::error::{Error, Result, excerpt};
use crate::hub::json::{Columns, JsonOptions};

/// When a field is quoted: if it is empty or holds a delimiter, a quote or a line end.
pub(super) struct Quoting {
    quote: Option<u8>,
    /// For each byte, whether a field that holds it is quoted.
    special: [bool; 256],
}

impl Quoting {
    pub(super) fn new(dialect: &CsvDialect) -> Self {
        let mut special = [false; 256];
        let bytes = [Some(dialect.delimiter), dialect.quote, Some(b'\n'), Some(b'\r')];
        for byte in bytes.into_iter().flatten() {
            if let Some(place) = special.get_mut(usize::from(byte)) {
                *place = true;
            }
        }
        Quoting { quote: dialect.quote, special }
    }

    /// For names of columns: what a reader could take for a delimiter is quoted, since the first line shows which it is.
    pub(super) fn of_header(dialect: &CsvDialect) -> Self {
        let mut quoting = Quoting::new(dialect);
        for byte in b",;|\t".iter().filter(|_| dialect.quote.is_some()) {
            if let Some(place) = quoting.special.get_mut(usize::from(*byte)) {
                *place = true;
            }
        }
        quoting
    }

    #[inline]
    fn is_special(&self, byte: u8) -> bool {
        self.special.get(usize::from(byte)).copied().unwrap_or(false)
    }

    /// Appends a field that is not null.
    #[inline]
    pub(super) fn write(&self, out: &mut Vec<u8>, text: &[u8]) -> Result<()> {
        // A byte order mark at the start of a file would be skipped.
        let is_plain = match text {
            [] | [0xef, 0xbb, 0xbf, ..] => false,
            text => !text.iter().any(|byte| self.is_special(*byte)),
        };
        if is_plain {
            out.extend_from_slice(text);
            return Ok(());
        }
        self.write_quoted(out, text)
    }

    fn write_quoted(&self, out: &mut Vec<u8>, text: &[u8]) -> Result<()> {
        let Some(quote) = self.quote else {
            let text = excerpt(format_args!("{:?}", String::from_utf8_lossy(text)));
            return Err(Error::lossy(format!("expected a text that needs no quotes, found {text}")));
        };
        out.push(quote);
        let mut rest = text;
        while let Some(found) = memchr::memchr(quote, rest) {
            let (before, after) = rest.split_at(found + 1);
            out.extend_from_slice(before);
            out.push(quote);
            rest = after;
        }
        out.extend_from_slice(rest);
        out.push(quote);
        Ok(())
    }
}

/// Memory for one field at a time.
#[derive(Default)]
pub(super) struct Scratch {
    value: Vec<u8>,
    text: Vec<u8>,
}

/// The columns of a batch as fields.
pub(super) struct Cells<'a> {
    columns: Vec<CellColumn<'a>>,
    json: Columns<'a>,
    quoting: Quoting,
    dialect: &'a CsvDialect,
}

/// Where the fields of a column come from.
enum CellColumn<'a> {
    Strings(&'a StringArray),
    LargeStrings(&'a LargeStringArray),
    StringViews(&'a StringViewArray),
    /// The keys as places among the values.
    Dictionary(&'a dyn AnyDictionaryArray, Vec<usize>, &'a StringArray),
    /// JSON values whose text has only letters, digits, spaces and `+-.:`, so that most dialects never quote them.
    Words,
    /// Any JSON value.
    Json,
}

impl<'a> CellColumn<'a> {
    fn new(array: &'a dyn Array) -> Self {
        use DataType::*;
        match array.data_type() {
            Utf8 => CellColumn::Strings(array.as_string()),
            LargeUtf8 => CellColumn::LargeStrings(array.as_string()),
            Utf8View => CellColumn::StringViews(array.as_string_view()),
            Dictionary(_, values) if **values == Utf8 => {
                let array = array.as_any_dictionary();
                match array.values().is_empty() {
                    true => CellColumn::Json,
                    false => {
                        CellColumn::Dictionary(array, array.normalized_keys(), array.values().as_string())
                    }
                }
            }
            Boolean | Date32 | Date64 | Time32(_) | Time64(_) | Timestamp(..) => CellColumn::Words,
            other if other.is_integer() || other.is_floating() => CellColumn::Words,
            _ => CellColumn::Json,
        }
    }

    /// The text of a row of strings; `None`: null.
    #[inline]
    fn text(&self, row: usize) -> Option<&'a [u8]> {
        match self {
            CellColumn::Strings(array) => array.is_valid(row).then(|| array.value(row).as_bytes()),
            CellColumn::LargeStrings(array) => array.is_valid(row).then(|| array.value(row).as_bytes()),
            CellColumn::StringViews(array) => array.is_valid(row).then(|| array.value(row).as_bytes()),
            CellColumn::Dictionary(array, keys, values) => {
                let key = keys.get(row).copied().filter(|_| array.keys().is_valid(row))?;
                values.is_valid(key).then(|| values.value(key).as_bytes())
            }
            CellColumn::Words | CellColumn::Json => None,
        }
    }
}

impl<'a> Cells<'a> {
    pub(super) fn new(rows: &'a RecordBatch, dialect: &'a CsvDialect) -> Result<Self> {
        let json = Columns::new(rows, &JsonOptions::default())?;
        let quoting = Quoting::new(dialect);
        let is_word =
            |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b' ' | b'+' | b'-' | b'.' | b':');
        let words_are_plain =
            dialect.nulls.is_empty() && !(0..=u8::MAX).any(|byte| is_word(byte) && quoting.is_special(byte));
        let column = |array: &'a dyn Array| match CellColumn::new(array) {
            CellColumn::Words if !words_are_plain => CellColumn::Json,
            column => column,
        };
        let columns = rows.columns().iter().map(|array| column(array.as_ref())).collect();
        Ok(Cells { columns, json, quoting, dialect })
    }

    pub(super) fn len(&self) -> usize {
        self.columns.len()
    }

    /// Appends a field. `null_text` is asked before a text is written that would be read as null.
    #[inline]
    pub(super) fn write(
        &self,
        column: usize,
        row: usize,
        out: &mut Vec<u8>,
        scratch: &mut Scratch,
        null_text: impl Fn(&[u8]) -> Result<()>,
    ) -> Result<()> {
        let text = match self.columns.get(column) {
            Some(CellColumn::Words) => return self.write_word(column, row, out, scratch),
            Some(CellColumn::Json) | None => self.json_text(column, row, scratch)?,
            Some(strings) => strings.text(row),
        };
        let Some(text) = text else {
            out.extend_from_slice(self.dialect.null().as_bytes());
            return Ok(());
        };
        if !self.dialect.nulls.is_empty() && self.dialect.nulls.iter().any(|null| null.as_bytes() == text) {
            null_text(text)?;
        }
        self.quoting.write(out, text)
    }

    /// Appends a JSON value that needs no quotes.
    #[inline]
    fn write_word(&self, column: usize, row: usize, out: &mut Vec<u8>, scratch: &mut Scratch) -> Result<()> {
        scratch.value.clear();
        self.json.write_cell(column, row, &mut scratch.value)?;
        match scratch.value.as_slice() {
            b"null" => {}
            [b'"', word @ .., b'"'] => out.extend_from_slice(word),
            word => out.extend_from_slice(word),
        }
        Ok(())
    }

    /// The text of a JSON value: strings without quotes; `None`: null.
    fn json_text<'s>(&self, column: usize, row: usize, scratch: &'s mut Scratch) -> Result<Option<&'s [u8]>> {
        scratch.value.clear();
        self.json.write_cell(column, row, &mut scratch.value)?;
        Ok(match scratch.value.as_slice() {
            b"null" => None,
            [b'"', string @ .., b'"'] if string.contains(&b'\\') => {
                unescape(string, &mut scratch.text);
                Some(scratch.text.as_slice())
            }
            [b'"', string @ .., b'"'] => Some(string),
            value => Some(value),
        })
    }
}

/// The text inside a JSON string that we wrote.
fn unescape(string: &[u8], out: &mut Vec<u8>) {
    out.clear();
    let mut rest = string;
    while let Some((byte, tail)) = rest.split_first() {
        rest = tail;
        if *byte != b'\\' {
            out.push(*byte);
            continue;
        }
        let Some((escape, tail)) = rest.split_first() else { return };
        rest = tail;
        match escape {
            b'n' => out.push(b'\n'),
            b'r' => out.push(b'\r'),
            b't' => out.push(b'\t'),
            b'b' => out.push(8),
            b'f' => out.push(12),
            b'u' => {
                // Only control characters are written as four digits.
                let code = rest.get(..4).and_then(|digits| std::str::from_utf8(digits).ok());
                let code = code.and_then(|digits| u8::from_str_radix(digits, 16).ok());
                out.extend(code);
                rest = rest.get(4..).unwrap_or_default();
            }
            other => out.push(*other),
        }
    }
}
