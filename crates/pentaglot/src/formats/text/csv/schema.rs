//! What the first records tell: whether this is CSV, and of what types.

use arrow_schema::{DataType, Field};

use super::dialect::CsvDialect;
use super::encoding;
use super::layout::Records;
use crate::formats::text::kinds::{Stamps, WholeRange, nullable};
use crate::formats::{Confidence, FormatInfo, Head};
use crate::hub::json::decode::{parse_bool, parse_special_cell};
use crate::limits::Budget;

/// Text in records of one width is possibly CSV; so is any text that is named so.
pub(super) fn detect(head: &Head<'_>, info: &FormatInfo) -> Confidence {
    let bytes = head.bytes();
    if let Some(encoding) = encoding::marked(bytes) {
        let (text, _) = encoding.decode_with_bom_removal(bytes);
        let fits = head.has_extension(info.extensions) || is_even(&text, false);
        return if fits && !text.contains('\0') { Confidence::Possible } else { Confidence::No };
    }
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        // A character may be cut at the end of the head.
        Err(error) if bytes.len() - error.valid_up_to() < 4 && head.len() != Some(bytes.len() as u64) => {
            std::str::from_utf8(bytes.get(..error.valid_up_to()).unwrap_or_default()).unwrap_or_default()
        }
        Err(_) => return Confidence::No,
    };
    if text.is_empty() {
        return Confidence::No;
    }
    if head.has_extension(info.extensions) {
        return Confidence::Possible;
    }
    if text.contains(|char: char| char.is_control() && !matches!(char, '\t' | '\n' | '\r')) {
        return Confidence::No;
    }
    let whole = head.len() == Some(bytes.len() as u64);
    if is_even(text, whole) { Confidence::Possible } else { Confidence::No }
}

/// Delimiters that are tried if none is given: the usual one first.
const DELIMITERS: [u8; 4] = *b",\t;|";

/// How many records are looked at to find the delimiter.
const LOOKED_AT: u64 = 100;

/// How the records of a text look with a delimiter: the fields of the first, how many there are, how many have as many fields.
fn widths(text: &[u8], whole: bool, dialect: &CsvDialect, most: u64) -> (usize, u64, u64) {
    let mut records = Records::new(text, dialect, Budget::default());
    let (mut first, mut count, mut even) = (0, 0, 0);
    if records.begin().is_err() {
        return (0, 0, 0);
    }
    while count < most && records.next_record().unwrap_or(false) {
        // The last record may be cut.
        if count > 0 && !whole && records.offset() == text.len() as u64 {
            break;
        }
        if records.is_blank() {
            continue;
        }
        first = if count == 0 { records.len() } else { first };
        count += 1;
        even += u64::from(records.len() == first);
    }
    (first, count, even)
}

/// Whether the first records have the same number of fields, more than one.
fn is_even(text: &str, whole: bool) -> bool {
    DELIMITERS.iter().any(|delimiter| {
        let dialect = CsvDialect { delimiter: *delimiter, ..CsvDialect::default() };
        let (first, count, even) = widths(text.as_bytes(), whole, &dialect, 10);
        first > 1 && count > 1 && even == count
    })
}

/// The delimiter that gives the first records the same number of fields, and the most of them.
pub(super) fn find_delimiter(sample: &[u8], whole: bool, dialect: &CsvDialect) -> u8 {
    let score = |delimiter: u8| {
        let dialect = CsvDialect { delimiter, ..dialect.clone() };
        let (first, count, even) = widths(sample, whole, &dialect, LOOKED_AT);
        // Most records have as many fields as the first; a few may be broken.
        let fits = first > 1 && 2 * even > count;
        if fits { (even * 100 / count.max(1), first) } else { (0, 0) }
    };
    let free = |delimiter: &u8| Some(*delimiter) != dialect.quote && Some(*delimiter) != dialect.comment;
    let mut best = (b',', (0, 0));
    for delimiter in DELIMITERS.into_iter().filter(free) {
        let score = score(delimiter);
        if score > best.1 {
            best = (delimiter, score);
        }
    }
    best.0
}

/// What was seen of the fields of one column.
#[derive(Default)]
pub(super) struct SeenCells {
    bool: bool,
    whole: Option<WholeRange>,
    /// Whole numbers past 128 bits.
    huge: bool,
    fraction: bool,
    stamps: Stamps,
    text: bool,
}

impl SeenCells {
    /// Looks at a field that is not null.
    pub(super) fn include(&mut self, text: &[u8]) {
        // Most fields of a column are of one kind, and once text always text.
        if self.text {
            return;
        }
        if parse_bool(text).is_some() {
            self.bool = true;
        } else if let Some(digits) = whole(text) {
            match WholeRange::parse(digits) {
                Some(range) => self.whole = Some(range.and(self.whole)),
                None => self.huge = true,
            }
        } else if is_fraction(text) || parse_special_cell(text).is_some() {
            self.fraction = true;
        } else if !self.stamps.include(text) {
            self.text = true;
        }
    }

    pub(super) fn field(&self, name: &str) -> Field {
        let numbers = self.whole.is_some() || self.fraction;
        let kinds = [self.bool, numbers, self.stamps.any(), self.text || self.huge];
        let data_type = match (kinds.iter().filter(|kind| **kind).count(), self.whole) {
            (1, None) if self.fraction => Some(DataType::Float64),
            (1, None) if self.bool => Some(DataType::Boolean),
            (1, None) => self.stamps.data_type(),
            (1, Some(range)) if self.fraction => range.fits_float().then_some(DataType::Float64),
            (1, Some(range)) => range.data_type(),
            _ => None,
        };
        nullable(name, data_type.unwrap_or(DataType::Utf8))
    }
}

/// The text of a whole number that is written the same way when it is written again.
fn whole(text: &[u8]) -> Option<&str> {
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    let canonical = matches!(digits, [b'0'] | [b'1'..=b'9', ..]) && digits.iter().all(u8::is_ascii_digit);
    std::str::from_utf8(text).ok().filter(|text| canonical && *text != "-0")
}

/// A number with a point or an exponent, or minus zero.
fn is_fraction(text: &[u8]) -> bool {
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    let plain = digits.iter().all(|byte| matches!(byte, b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-'));
    let begins = matches!(
        digits,
        [b'0'] | [b'0', b'.' | b'e' | b'E', ..] | [b'1'..=b'9', ..] | [b'.', b'0'..=b'9', ..]
    );
    let marked = digits.iter().any(|byte| matches!(byte, b'.' | b'e' | b'E')) || text == b"-0";
    let value = || std::str::from_utf8(text).ok().and_then(|text| text.parse::<f64>().ok());
    plain && begins && marked && value().is_some_and(f64::is_finite)
}
