//! JSON values: the text form of every value, for any Arrow array of any shape.
//!
//! | Arrow | JSON |
//! |---|---|
//! | null, missing | `null` |
//! | bool | `true`, `false` |
//! | integers, int128, uint128 | number with all digits |
//! | float16, float32, float64 | shortest number that reads back at its own width; `"NaN"`, `"Infinity"`, `"-Infinity"` |
//! | float128 | `"0x` + 32 hex digits of its bits`"` |
//! | decimals | string |
//! | complex | `[re, im]` |
//! | utf8, char, dynd type, json | string |
//! | binary, fixed binary, image | base64 string |
//! | date, time, timestamp | string; the raw integer where it has no such text |
//! | duration | number in its unit |
//! | list, tensor | nested arrays |
//! | struct | object in field order; a tuple is an array |
//! | map | object if its keys are strings, else an array of `[key, value]` |
//! | dictionary, run-end | its value |
//! | dynd array | `{"type","value"}` |
//! | union | `{"name": value}` |
//! | interval | months as a number; `{"days","milliseconds"}`; `{"months","days","nanoseconds"}` |
//!
//! [`Columns`] prepares one encoder per column of a batch, then writes row by row; [`JsonDocument`] writes a whole stream
//! of any shape as one document.

#[cfg(any(feature = "csv", feature = "json", feature = "json_lines"))]
pub(crate) mod decode;
mod document;
mod encode;
mod nested;
#[cfg(test)]
mod tests;
mod text;
mod time;

pub use document::JsonDocument;
pub use encode::Columns;
pub(crate) use nested::is_text;
pub(crate) use text::{Float, parse_decimal, special_float};
pub(crate) use time::{
    Zone, parse_clock, parse_date, parse_moment, parse_time, parse_timestamp, write_timestamp,
};

use crate::error::Result;

/// Appends the JSON value of a dynd array: from its type text and its serialized bytes.
pub type DyndValue = fn(type_text: &str, data: &[u8], out: &mut Vec<u8>) -> Result<()>;

/// How values are written.
#[derive(Debug, Clone, Copy, Default)]
#[non_exhaustive]
pub struct JsonOptions {
    /// Decodes the data of a `pentaglot.dynd_array`, which only the dynd format can read. Without it the data is
    /// written as base64.
    pub dynd_value: Option<DyndValue>,
}

impl JsonOptions {
    setters! {
        texts []
        values [
            with_dynd_value(dynd_value: DyndValue),
        ]
    }
}
