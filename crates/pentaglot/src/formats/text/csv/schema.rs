//! What the first records tell: whether this is CSV, and of what types.

use arrow_schema::{DataType, Field};

use super::layout::Records;
use crate::formats::text::kinds::{Stamps, WholeRange, nullable};
use crate::formats::{Confidence, FormatInfo, Head};
use crate::limits::Budget;
use crate::wire::columns::{parse_bool, parse_special_cell};

/// Text in records of one width is possibly CSV; so is any text that is named so.
pub(super) fn detect(head: &Head<'_>, info: &FormatInfo) -> Confidence {
    let bytes = head.bytes();
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
    let even = [b',', b'\t', b';'].iter().any(|delimiter| {
        let mut records = Records::new(text.as_bytes(), *delimiter, Budget::default());
        let first = if records.next_record().unwrap_or(false) { records.len() } else { 0 };
        let mut count = 1;
        while count < 10 && records.next_record().unwrap_or(false) {
            // The last record may be cut.
            if records.len() != first && (whole || records.offset() < text.len() as u64) {
                return false;
            }
            count += 1;
        }
        first > 1 && count > 1
    });
    if even { Confidence::Possible } else { Confidence::No }
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
