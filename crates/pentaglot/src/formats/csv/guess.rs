//! What the first records tell: whether this is CSV, and of what types.

use arrow_schema::{DataType, Field, TimeUnit};

use super::layout::Records;
use crate::formats::{Confidence, FormatInfo, Head};
use crate::hub::extension;
use crate::hub::json::decode::{parse_bool, parse_special_cell};
use crate::hub::json::{parse_date, parse_time, parse_timestamp};
use crate::limits::Budget;

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
pub(super) struct Seen {
    bool: bool,
    /// Whole numbers: the least and the most.
    whole: Option<(i128, u128)>,
    fraction: bool,
    date: bool,
    time: bool,
    timestamp: bool,
    zoned: bool,
    /// A fraction of a second with more than six digits.
    nanoseconds: bool,
    text: bool,
}

impl Seen {
    /// Looks at a field that is not null.
    pub(super) fn include(&mut self, text: &[u8]) {
        // Most fields of a column are of one kind, and once text always text.
        if self.text {
            return;
        }
        if parse_bool(text).is_some() {
            self.bool = true;
        } else if let Some(number) = whole(text) {
            let (least, most) = self.whole.unwrap_or(number);
            self.whole = Some((least.min(number.0), most.max(number.1)));
        } else if is_fraction(text) || parse_special_cell(text).is_some() {
            self.fraction = true;
        } else if parse_date(text).is_some() {
            self.date = true;
        } else if parse_time(text, TimeUnit::Nanosecond).is_some() {
            self.time = true;
            self.nanoseconds |= parse_time(text, TimeUnit::Microsecond).is_none();
        } else if text.ends_with(b"Z") && is_timestamp(text, true) {
            self.zoned = true;
            self.nanoseconds |= parse_timestamp(text, TimeUnit::Microsecond, true).is_none();
        } else if is_timestamp(text, false) {
            self.timestamp = true;
            self.nanoseconds |= parse_timestamp(text, TimeUnit::Microsecond, false).is_none();
        } else {
            self.text = true;
        }
    }

    pub(super) fn field(&self, name: &str) -> Field {
        let plain = |data_type| Field::new(name, data_type, true);
        let wide = |extension| extension::with(plain(DataType::FixedSizeBinary(16)), extension, None);
        let unit = if self.nanoseconds { TimeUnit::Nanosecond } else { TimeUnit::Microsecond };
        let numbers = self.whole.is_some() || self.fraction;
        let kinds = [self.bool, numbers, self.date, self.time, self.timestamp, self.zoned, self.text];
        if kinds.iter().filter(|kind| **kind).count() != 1 {
            return plain(DataType::Utf8);
        }
        match self.whole {
            None if self.fraction => plain(DataType::Float64),
            None if self.bool => plain(DataType::Boolean),
            None if self.date => plain(DataType::Date32),
            None if self.time => plain(DataType::Time64(unit)),
            None if self.timestamp => plain(DataType::Timestamp(unit, None)),
            None if self.zoned => plain(DataType::Timestamp(unit, Some("UTC".into()))),
            None => plain(DataType::Utf8),
            Some((least, most)) if self.fraction => {
                let exact = 1i128 << 53;
                let fits = least >= -exact && most <= exact.unsigned_abs();
                plain(if fits { DataType::Float64 } else { DataType::Utf8 })
            }
            Some((least, most)) if i64::try_from(least).is_ok() && i64::try_from(most).is_ok() => {
                plain(DataType::Int64)
            }
            Some((0.., most)) if u64::try_from(most).is_ok() => plain(DataType::UInt64),
            Some((_, most)) if i128::try_from(most).is_ok() => wide(extension::INT128),
            Some((0.., _)) => wide(extension::UINT128),
            Some(_) => plain(DataType::Utf8),
        }
    }
}

/// A whole number that comes back as it stands: its value for the least and for the most.
fn whole(text: &[u8]) -> Option<(i128, u128)> {
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    let canonical = matches!(digits, [b'0'] | [b'1'..=b'9', ..]) && digits.iter().all(u8::is_ascii_digit);
    let text = std::str::from_utf8(text).ok().filter(|text| canonical && *text != "-0")?;
    match text.parse::<i128>() {
        Ok(value) => Some((value, u128::try_from(value).unwrap_or(0))),
        Err(_) => text.parse::<u128>().ok().map(|value| (i128::MAX, value)),
    }
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

fn is_timestamp(text: &[u8], zoned: bool) -> bool {
    parse_timestamp(text, TimeUnit::Microsecond, zoned).is_some()
        || parse_timestamp(text, TimeUnit::Nanosecond, zoned).is_some()
}
