//! The schema: given, or inferred from the first rows.

use super::ID;
use crate::error::Result;
use crate::formats::ReadOptions;
use crate::formats::text::json_layout::Framing;
use crate::formats::text::json_rows::JsonRows;
use crate::source::Source;

/// Opens rows of which each is a line: an object with a key per column, or an array with a value per column.
pub(super) fn open(source: Source, options: &ReadOptions) -> Result<JsonRows> {
    JsonRows::open(ID, source, Framing::Lines, options)
}
