//! The footer: it is walked before the `parquet` crate decodes it, and held against the file after that.

use std::collections::BTreeSet;
use std::sync::Arc;

use parquet::file::metadata::{
    ColumnChunkMetaData, PageIndexPolicy, ParquetMetaData, ParquetMetaDataReader, RowGroupMetaData,
};

use super::layout::{Chunks, Pages, from_parquet};
use super::shapes::{
    CRYPTO_METADATA, ENCRYPTION_ALGORITHM, FILE_METADATA, OFFSET_INDEX, ROW_GROUP_COLUMNS, ROW_GROUPS,
    SCHEMA, SCHEMA_NUM_CHILDREN,
};
use super::thrift;
use crate::cursor::Cursor;
use crate::error::{self, Context, Error, Result};
use crate::formats::guard::guarded;
use crate::limits::{Budget, Limits};
use crate::source::Source;

/// The magic at both ends.
pub(super) const MAGIC: &[u8; 4] = b"PAR1";
/// The magic of a file whose footer is encrypted.
const ENCRYPTED_MAGIC: &[u8; 4] = b"PARE";
/// The footer's length and the magic.
pub(super) const TAIL_BYTES: u64 = 8;

/// The footer, read and checked against the file.
pub(super) struct Footer {
    pub offset: u64,
    pub bytes: u64,
    pub metadata: Arc<ParquetMetaData>,
    /// The encrypted columns, by row group.
    encrypted: BTreeSet<(u64, u64)>,
    pub total_rows: u64,
}

/// Where the footer begins and how long it is.
pub(super) fn find_footer(source: &Source) -> Result<(u64, u64)> {
    let total = source.len().unwrap_or(0);
    let mut magic = [0; 4];
    let count = source.read_at(0, &mut magic)?;
    if magic == *ENCRYPTED_MAGIC {
        return Err(Error::unsupported("an encrypted Parquet footer"));
    }
    if magic != *MAGIC {
        let found = error::hex(magic.get(..count).unwrap_or_default());
        let error = match count < 4 && MAGIC.starts_with(magic.get(..count).unwrap_or_default()) {
            true => Error::truncated("the magic PAR1", found),
            false => Error::malformed("the magic PAR1", found),
        };
        return Err(error.at(0).rule("magic"));
    }
    let tail_offset = total.saturating_sub(TAIL_BYTES);
    if tail_offset < 4 {
        return Err(Error::truncated("a footer", format_args!("{total} bytes in all")).at(total));
    }
    let mut tail = [0; 8];
    source.read_exact_at(tail_offset, &mut tail)?;
    let [a, b, c, d, end @ ..] = tail;
    if end == *ENCRYPTED_MAGIC {
        return Err(Error::unsupported("an encrypted Parquet footer"));
    }
    if end != *MAGIC {
        return Err(Error::truncated("the magic PAR1 at the end", error::hex(&end))
            .at(tail_offset + 4)
            .rule("magic"));
    }
    let bytes = u64::from(u32::from_le_bytes([a, b, c, d]));
    let room = tail_offset - 4;
    if bytes == 0 || bytes > room {
        return Err(Error::malformed(format_args!("a footer length 1..={room}"), bytes)
            .at(tail_offset)
            .field("footer_length")
            .rule("footer-length"));
    }
    Ok((tail_offset - bytes, bytes))
}

impl Footer {
    pub(super) fn read(source: &Source, budget: &Budget) -> Result<Footer> {
        let (offset, bytes) = find_footer(source)?;
        let thrift = source.read_range(offset, bytes, budget).field("footer")?;
        thrift::check_struct(FILE_METADATA, &thrift, offset, budget).field("footer")?;
        let is_encrypted = check_tree(&thrift, offset, budget.limits()).field("footer")?;
        let metadata = guarded(|| ParquetMetaDataReader::decode_metadata(&thrift).map_err(from_parquet));
        let metadata = metadata.at(offset).field("footer")?;
        let total_rows = check_metadata(&metadata, offset, budget.limits()).at(offset).field("footer")?;
        let encrypted = if is_encrypted { encrypted_columns(&thrift, offset)? } else { BTreeSet::new() };
        Ok(Footer { offset, bytes, metadata: Arc::new(metadata), encrypted, total_rows })
    }

    /// The pages of a column chunk, unless they are encrypted.
    pub(super) fn pages<'a>(&'a self, chunks: &'a Chunks, group: usize, leaf: usize) -> Result<Pages<'a>> {
        if self.encrypted.contains(&(group as u64, leaf as u64)) {
            return Err(Error::unsupported("an encrypted column"));
        }
        let column = self.metadata.row_groups().get(group).and_then(|group| group.columns().get(leaf));
        let column = column.ok_or_else(|| Error::usage(format!("there is no column {leaf}")))?;
        Ok(Pages::new(chunks, column))
    }

    /// The metadata with the offset index, if the file has a sound one: where each page begins, and with which row.
    pub(super) fn with_page_index(&self, chunks: &Chunks) -> Result<Option<Arc<ParquetMetaData>>> {
        for group in self.metadata.row_groups() {
            for column in group.columns() {
                let Some((start, len)) = offset_index_range(column, self.offset) else { return Ok(None) };
                let bytes = chunks.source.read_range(start, len, &chunks.budget)?;
                if thrift::check_struct(OFFSET_INDEX, &bytes, start, &chunks.budget).is_err() {
                    return Ok(None);
                }
            }
        }
        let reader = ParquetMetaDataReader::new()
            .with_column_index_policy(PageIndexPolicy::Skip)
            .with_offset_index_policy(PageIndexPolicy::Optional);
        let metadata = guarded(|| reader.parse_and_finish(chunks).map_err(from_parquet));
        let Ok(metadata) = metadata else { return Ok(None) };
        Ok(index_is_sound(&metadata).then(|| Arc::new(metadata)))
    }
}

/// Checks how deep the schema is, and that elements have no more children than there are elements: the crate calls itself for
/// every level, and makes room for as many children as there are said to be. Returns whether parts of the file are encrypted.
fn check_tree(footer: &[u8], base: u64, limits: &Limits) -> Result<bool> {
    let mut is_encrypted = false;
    thrift::fields(&mut Cursor::at(footer, base), |id, code, cursor| {
        is_encrypted |= id == ENCRYPTION_ALGORITHM;
        match id {
            SCHEMA => check_elements(cursor, limits).field("schema"),
            _ => thrift::skip(code, cursor),
        }
    })?;
    Ok(is_encrypted)
}

fn check_elements(cursor: &mut Cursor<'_>, limits: &Limits) -> Result<()> {
    let (_, count) = thrift::list_header(cursor)?;
    // How many children are still to come, of each element that has some.
    let mut open: Vec<u64> = Vec::new();
    for index in 0..count {
        let (at, mut found) = (cursor.offset(), 0);
        thrift::fields(cursor, |id, code, cursor| match id {
            SCHEMA_NUM_CHILDREN => thrift::i32(cursor).map(|number| found = number),
            _ => thrift::skip(code, cursor),
        })?;
        if let Some(left) = open.last_mut() {
            *left -= 1;
        }
        // The elements that come after this one and are not children of others.
        let most = (count - index - 1).saturating_sub(open.iter().sum());
        let children = u64::try_from(found).ok().filter(|children| *children <= most);
        let children = children.ok_or_else(|| {
            let error = Error::malformed(format_args!("at most {most} children"), found);
            error.at(at).field("num_children").index(index).rule("schema")
        })?;
        open.push(children);
        while open.pop_if(|left| *left == 0).is_some() {}
        // A list is two levels here and one in Arrow.
        limits.check_depth(u32::try_from(open.len() / 2).unwrap_or(u32::MAX)).at(at)?;
    }
    if let Some(missing) = open.last() {
        let error = Error::malformed(format_args!("{missing} more children"), "the end of the schema");
        return Err(error.at(cursor.offset()).rule("schema"));
    }
    Ok(())
}

/// The row group and the place in it of each encrypted column.
fn encrypted_columns(footer: &[u8], base: u64) -> Result<BTreeSet<(u64, u64)>> {
    let mut encrypted = BTreeSet::new();
    thrift::fields(&mut Cursor::at(footer, base), |id, code, cursor| match id {
        ROW_GROUPS => thrift::structs(cursor, |group, id, code, cursor| match id {
            ROW_GROUP_COLUMNS => thrift::structs(cursor, |leaf, id, code, cursor| {
                if id == CRYPTO_METADATA {
                    encrypted.insert((group, leaf));
                }
                thrift::skip(code, cursor)
            }),
            _ => thrift::skip(code, cursor),
        }),
        _ => thrift::skip(code, cursor),
    })?;
    Ok(encrypted)
}

fn offset_index_range(column: &ColumnChunkMetaData, end: u64) -> Option<(u64, u64)> {
    let start = u64::try_from(column.offset_index_offset()?).ok()?;
    let len = u64::try_from(column.offset_index_length()?).ok()?;
    (start >= 4 && start.checked_add(len)? <= end && len > 0).then_some((start, len))
}

/// Whether the pages of every chunk follow each other, in bytes and in rows.
fn index_is_sound(metadata: &ParquetMetaData) -> bool {
    let Some(index) = metadata.offset_index() else { return false };
    index.len() == metadata.num_row_groups()
        && index.iter().zip(metadata.row_groups()).all(|(columns, group)| {
            columns.len() == group.num_columns()
                && columns.iter().zip(group.columns()).all(|(index, column)| {
                    let (start, len) = column.byte_range();
                    let (mut byte, mut row) = (start, -1);
                    let ordered = index.page_locations().iter().all(|page| {
                        let offset = u64::try_from(page.offset).unwrap_or(u64::MAX);
                        let bytes = u64::try_from(page.compressed_page_size).unwrap_or(u64::MAX);
                        let sound = offset >= byte && page.first_row_index > row;
                        byte = offset.saturating_add(bytes);
                        row = page.first_row_index;
                        sound
                    });
                    let first = index.page_locations().first().map(|page| page.first_row_index);
                    ordered
                        && byte <= start + len
                        && row < group.num_rows()
                        && first.is_none_or(|row| row == 0)
                })
        })
}

/// Holds what the footer says against itself and the file; gives the rows.
fn check_metadata(metadata: &ParquetMetaData, end: u64, limits: &Limits) -> Result<u64> {
    let (mut total, mut free) = (0u64, 0u64);
    for (index, group) in metadata.row_groups().iter().enumerate() {
        let most = metadata.file_metadata().schema_descr().num_columns();
        let rows = check_row_group(group, most, end).index(index as u64).field("row_groups")?;
        free = free.saturating_add(free_rows(group, rows, limits));
        limits.check_free_rows(free).index(index as u64).field("row_groups")?;
        total = total
            .checked_add(rows)
            .filter(|total| i64::try_from(*total).is_ok())
            .ok_or_else(|| Error::malformed("a row count that fits", "more"))?;
    }
    let declared = metadata.file_metadata().num_rows();
    // A table without columns keeps its count elsewhere.
    if u64::try_from(declared).ok() != Some(total)
        && metadata.file_metadata().schema_descr().num_columns() > 0
    {
        return Err(Error::malformed(format_args!("{total} rows as in the row groups"), declared)
            .field("num_rows")
            .rule("row-count"));
    }
    Ok(total)
}

/// Rows of runs take hardly any bytes: so many are beyond what the pages may unpack to.
fn free_rows(group: &RowGroupMetaData, rows: u64, limits: &Limits) -> u64 {
    let packed = group.columns().iter().map(|column| u64::try_from(column.compressed_size()).unwrap_or(0));
    let bits = packed.fold(0, u64::saturating_add).saturating_mul(8).saturating_mul(limits.max_ratio);
    if group.num_columns() > 0 { rows.saturating_sub(bits) } else { 0 }
}

fn check_row_group(group: &RowGroupMetaData, columns: usize, end: u64) -> Result<u64> {
    let rows = u64::try_from(group.num_rows());
    let rows = rows.map_err(|_| Error::malformed("0 rows or more", group.num_rows()).field("num_rows"))?;
    if group.num_columns() != columns {
        let error = Error::malformed(format_args!("{columns} columns"), group.num_columns());
        return Err(error.field("columns").rule("column-count"));
    }
    for (index, column) in group.columns().iter().enumerate() {
        check_chunk(column, rows, end).index(index as u64).field("columns")?;
    }
    Ok(rows)
}

fn check_chunk(column: &ColumnChunkMetaData, rows: u64, end: u64) -> Result<()> {
    let bad = |expected: String, found: i64, name: &'static str| {
        Err(Error::malformed(expected, found).field(name).rule("column-chunk"))
    };
    if column.file_path().is_some_and(|path| !path.is_empty()) {
        return Err(Error::unsupported("a column chunk in another file"));
    }
    let len = column.compressed_size();
    let inside = |offset: i64| {
        let offset = u64::try_from(offset).ok();
        let last = offset.zip(u64::try_from(len).ok()).and_then(|(offset, len)| offset.checked_add(len));
        offset.is_some_and(|offset| offset >= 4) && last.is_some_and(|last| last <= end)
    };
    let first = column.dictionary_page_offset().unwrap_or_else(|| column.data_page_offset());
    // An empty chunk has no place; pyarrow says 0.
    let nowhere = len == 0 && column.num_values() == 0 && first >= 0;
    if len < 0 || column.data_page_offset() < 0 || !(inside(first) || nowhere) {
        return bad(format!("{len} bytes within 4..{end}"), first, "offset");
    }
    if column.uncompressed_size() < 0 {
        return bad("0 bytes or more".to_owned(), column.uncompressed_size(), "total_uncompressed_size");
    }
    let values = u64::try_from(column.num_values()).unwrap_or(u64::MAX);
    let flat = column.column_descr().max_rep_level() == 0;
    if column.num_values() < 0 || (flat && values != rows) || (!flat && values < rows) {
        let least = if flat { "" } else { " or more" };
        return bad(format!("{rows} values{least}"), column.num_values(), "num_values");
    }
    Ok(())
}

#[cfg(test)]
mod tests;
