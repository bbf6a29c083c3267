//! What values look like, and the type that holds all of them.

use arrow_schema::{DataType, Field, TimeUnit};

use crate::hub::json::{parse_date, parse_time, parse_timestamp};

/// The most digits of an integer that a decimal holds.
const DECIMAL_DIGITS: u8 = 38;

/// The range of whole numbers that were seen.
#[derive(Debug, Clone, Copy)]
pub(super) struct WholeRange {
    least: i128,
    most: u128,
}

impl WholeRange {
    /// The range of one number, given as its text; `None` past 128 bits.
    pub(super) fn parse(text: &str) -> Option<Self> {
        match text.parse::<i128>() {
            Ok(value) => Some(WholeRange { least: value, most: u128::try_from(value).unwrap_or(0) }),
            Err(_) => text.parse::<u128>().ok().map(|most| WholeRange { least: i128::MAX, most }),
        }
    }

    /// The range that holds both.
    pub(super) fn and(self, other: Option<Self>) -> Self {
        match other {
            Some(other) => WholeRange { least: self.least.min(other.least), most: self.most.max(other.most) },
            None => self,
        }
    }

    /// The type of the numbers; `None` where no type holds them.
    pub(super) fn data_type(self) -> Option<DataType> {
        let most_decimal = 10u128.pow(DECIMAL_DIGITS.into());
        match self {
            WholeRange { least, most } if i64::try_from(least).is_ok() && i64::try_from(most).is_ok() => {
                Some(DataType::Int64)
            }
            WholeRange { least, most } if least >= 0 && u64::try_from(most).is_ok() => Some(DataType::UInt64),
            WholeRange { least, most } if least.unsigned_abs() < most_decimal && most < most_decimal => {
                Some(DataType::Decimal128(DECIMAL_DIGITS, 0))
            }
            // Of positive numbers past 127 bits only, the least is not known.
            _ => None,
        }
    }

    /// Whether a float64 holds each of the numbers exactly.
    pub(super) fn fits_float(self) -> bool {
        let exact = 1i128 << 53;
        self.least >= -exact && self.most <= exact.unsigned_abs()
    }
}

/// The dates and times among texts.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Stamps {
    date: bool,
    time: bool,
    timestamp: bool,
    zoned: bool,
    /// A fraction of a second with more than six digits.
    nanoseconds: bool,
    other: bool,
}

impl Stamps {
    /// Looks at a text; `false` if it is no date or time.
    pub(super) fn include(&mut self, text: &[u8]) -> bool {
        // Once there is another text, the rest is not looked at.
        if self.other {
            return false;
        }
        if parse_date(text).is_some() {
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
            self.other = true;
        }
        !self.other
    }

    /// Also what another look saw.
    pub(super) fn merge(&mut self, other: Stamps) {
        self.date |= other.date;
        self.time |= other.time;
        self.timestamp |= other.timestamp;
        self.zoned |= other.zoned;
        self.nanoseconds |= other.nanoseconds;
        self.other |= other.other;
    }

    /// Whether any text was a date or time.
    pub(super) fn any(self) -> bool {
        self.date || self.time || self.timestamp || self.zoned
    }

    /// The type of all texts, if they are dates or times of one kind.
    pub(super) fn data_type(self) -> Option<DataType> {
        let unit = if self.nanoseconds { TimeUnit::Nanosecond } else { TimeUnit::Microsecond };
        match (self.date, self.time, self.timestamp, self.zoned, self.other) {
            (true, false, false, false, false) => Some(DataType::Date32),
            (false, true, false, false, false) => Some(DataType::Time64(unit)),
            (false, false, true, false, false) => Some(DataType::Timestamp(unit, None)),
            (false, false, false, true, false) => Some(DataType::Timestamp(unit, Some("UTC".into()))),
            _ => None,
        }
    }
}

fn is_timestamp(text: &[u8], zoned: bool) -> bool {
    parse_timestamp(text, TimeUnit::Microsecond, zoned).is_some()
        || parse_timestamp(text, TimeUnit::Nanosecond, zoned).is_some()
}

/// A column that may have nulls.
pub(super) fn nullable(name: &str, data_type: DataType) -> Field {
    Field::new(name, data_type, true)
}
