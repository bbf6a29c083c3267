//! How long the values of a dictionary are: so many rows make a batch that they fit in memory, also if every value is the longest.

use std::sync::Arc;

use parquet::basic::{Encoding, Type as PhysicalType};
use parquet::column::page::{Page as DecodedPage, PageReader};
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::serialized_reader::SerializedPageReader;

use super::layout::{Chunks, Page, from_parquet};
use crate::cursor::Cursor;
use crate::error::Result;

/// The bytes of a value of a column; `None` if each has a length of its own.
pub(super) fn value_width(column: &ColumnChunkMetaData) -> Option<u64> {
    match column.column_type() {
        PhysicalType::INT32 | PhysicalType::FLOAT => Some(4),
        PhysicalType::INT64 | PhysicalType::DOUBLE => Some(8),
        PhysicalType::INT96 => Some(12),
        PhysicalType::BOOLEAN => Some(1),
        PhysicalType::FIXED_LEN_BYTE_ARRAY => {
            Some(u64::try_from(column.column_descr().type_length()).unwrap_or(1).max(1))
        }
        PhysicalType::BYTE_ARRAY => None,
    }
}

/// The most bytes of a value in the dictionary page of a column. A page whose size alone is at most `enough` is not read.
pub(super) fn longest_value(
    chunks: &Chunks,
    column: &ColumnChunkMetaData,
    page: &Page,
    enough: u64,
) -> Result<u64> {
    if let Some(width) = value_width(column) {
        return Ok(width);
    }
    let unpacked = page.header.unpacked_bytes;
    if unpacked <= enough || page.offset != column.byte_range().0 {
        return Ok(unpacked);
    }
    chunks.guarded(|| {
        let mut pages =
            SerializedPageReader::new(Arc::new(chunks.clone()), column, 0, None).map_err(from_parquet)?;
        match pages.get_next_page() {
            Ok(Some(DecodedPage::DictionaryPage {
                buf,
                encoding: Encoding::PLAIN | Encoding::PLAIN_DICTIONARY,
                ..
            })) => Ok(longest_plain(&buf).unwrap_or(unpacked)),
            // Reading the rows says what is wrong with it.
            _ => Ok(unpacked),
        }
    })
}

/// The longest of byte strings, each behind its length.
fn longest_plain(bytes: &[u8]) -> Result<u64> {
    let mut cursor = Cursor::new(bytes);
    let mut longest = 0;
    while !cursor.is_empty() {
        let length = cursor.u32_le()?;
        cursor.skip(length.into())?;
        longest = longest.max(length.into());
    }
    Ok(longest)
}
