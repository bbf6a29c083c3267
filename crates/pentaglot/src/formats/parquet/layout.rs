//! Where everything is: the footer, row groups, column chunks and pages, each checked against the file before the `parquet`
//! crate reads it.

use std::io::{self, Read};
use std::sync::{Arc, Mutex, PoisonError};

use arrow_buffer::Buffer;
use bytes::Bytes;
use parquet::basic::Compression;
use parquet::errors::ParquetError;
use parquet::file::metadata::{
    ColumnChunkMetaData, PageIndexPolicy, ParquetMetaData, ParquetMetaDataReader, RowGroupMetaData,
};
use parquet::file::reader::{ChunkReader, Length};

use super::dictionary::value_width;
use super::thrift::{self, PageHeader};
use crate::error::{self, Context, Error, ErrorKind, Result};
use crate::formats::guard::guarded;
use crate::limits::Budget;
use crate::source::{Source, SourceReader};

/// The magic at both ends.
pub(super) const MAGIC: &[u8; 4] = b"PAR1";
/// The magic of a file whose footer is encrypted.
const ENCRYPTED_MAGIC: &[u8; 4] = b"PARE";
/// The footer's length and the magic.
pub(super) const TAIL_BYTES: u64 = 8;

/// A source as the `parquet` crate reads it: every range is checked against the file and the budget.
#[derive(Clone)]
pub(super) struct Chunks {
    pub source: Source,
    pub budget: Budget,
    /// The last error of a read: the crate turns errors into text on their way through Arrow.
    failed: Failed,
}

type Failed = Arc<Mutex<Option<Error>>>;

impl Chunks {
    pub(super) fn new(source: Source, budget: Budget) -> Self {
        Chunks { source, budget, failed: Failed::default() }
    }

    /// Runs code of the crate. An error of a read that made it fail comes out as it was.
    pub(super) fn guarded<T>(&self, run: impl FnOnce() -> Result<T>) -> Result<T> {
        let take = || self.failed.lock().unwrap_or_else(PoisonError::into_inner).take();
        take();
        guarded(run).map_err(|error| take().unwrap_or(error))
    }
}

/// Keeps an error of a read; what goes through the crate is its text.
fn keep(failed: &Failed, error: Error) -> ParquetError {
    let text = error.to_string();
    *failed.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
    ParquetError::General(text)
}

/// Reads page headers.
pub(super) struct HeaderReader {
    reader: SourceReader,
    failed: Failed,
}

impl Read for HeaderReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.reader.read(buffer).map_err(|error| match error.kind() {
            io::ErrorKind::Interrupted => error,
            _ => io::Error::other(keep(&self.failed, Error::from(error))),
        })
    }
}

impl Length for Chunks {
    fn len(&self) -> u64 {
        self.source.len().unwrap_or(0)
    }
}

impl ChunkReader for Chunks {
    type T = io::BufReader<HeaderReader>;

    fn get_read(&self, start: u64) -> Result<Self::T, ParquetError> {
        // Page headers are read through this: a small buffer reads little more than the header.
        let reader = self.source.reader_at(start).map_err(|error| keep(&self.failed, error))?;
        Ok(io::BufReader::with_capacity(512, HeaderReader { reader, failed: Arc::clone(&self.failed) }))
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes, ParquetError> {
        let buffer = self.source.read_range(start, length as u64, &self.budget);
        let buffer = buffer.map_err(|error| keep(&self.failed, error))?;
        Ok(Bytes::from_owner(Shared(buffer)))
    }
}

struct Shared(Buffer);

impl AsRef<[u8]> for Shared {
    fn as_ref(&self) -> &[u8] {
        self.0.as_slice()
    }
}

/// An error of the `parquet` crate as ours.
pub(super) fn from_parquet(error: ParquetError) -> Error {
    match error {
        ParquetError::External(inner) => match inner.downcast::<Error>() {
            Ok(ours) => *ours,
            Err(other) => match other.downcast::<std::io::Error>() {
                Ok(io) => Error::from(*io),
                Err(other) => error::undecodable(&other.to_string()),
            },
        },
        ParquetError::NYI(message) => Error::unsupported(message),
        ParquetError::EOF(_) => Error::truncated("more bytes", "the end of its part of the file"),
        other => error::undecodable(&other.to_string()),
    }
}

/// The footer, read and checked against the file.
pub(super) struct Footer {
    pub offset: u64,
    pub bytes: u64,
    pub metadata: Arc<ParquetMetaData>,
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
        thrift::check_struct(&thrift, offset, budget).field("footer")?;
        let metadata = guarded(|| ParquetMetaDataReader::decode_metadata(&thrift).map_err(from_parquet));
        let metadata = metadata.at(offset).field("footer")?;
        let total_rows = check_metadata(&metadata, offset).at(offset).field("footer")?;
        Ok(Footer { offset, bytes, metadata: Arc::new(metadata), total_rows })
    }

    /// The metadata with the offset index, if the file has a sound one: where each page begins, and with which row.
    pub(super) fn with_page_index(&self, chunks: &Chunks) -> Result<Option<Arc<ParquetMetaData>>> {
        for group in self.metadata.row_groups() {
            for column in group.columns() {
                let Some((start, len)) = offset_index_range(column, self.offset) else { return Ok(None) };
                let bytes = chunks.source.read_range(start, len, &chunks.budget)?;
                if thrift::check_struct(&bytes, start, &chunks.budget).is_err() {
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
fn check_metadata(metadata: &ParquetMetaData, end: u64) -> Result<u64> {
    let mut total = 0u64;
    for (index, group) in metadata.row_groups().iter().enumerate() {
        let rows = check_row_group(group, end).index(index as u64).field("row_groups")?;
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

fn check_row_group(group: &RowGroupMetaData, end: u64) -> Result<u64> {
    let rows = u64::try_from(group.num_rows());
    let rows = rows.map_err(|_| Error::malformed("0 rows or more", group.num_rows()).field("num_rows"))?;
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

/// Compares the values that the pages of a chunk hold with those that its metadata promises.
pub(super) fn check_value_count(column: &ColumnChunkMetaData, values: u64) -> Result<()> {
    let declared = u64::try_from(column.num_values()).unwrap_or(0);
    if values == declared {
        return Ok(());
    }
    let (start, _) = column.byte_range();
    Err(Error::malformed(format_args!("{declared} values in its pages"), values)
        .at(start)
        .rule("value-count"))
}

/// A page of a column chunk.
#[derive(Debug, Clone, Copy)]
pub(super) struct Page {
    pub offset: u64,
    pub header: PageHeader,
}

impl Page {
    pub(super) fn body_offset(&self) -> u64 {
        self.offset + self.header.header_bytes
    }

    pub(super) fn end(&self) -> u64 {
        self.body_offset() + self.header.packed_bytes
    }
}

/// The pages of a chunk, one after the other; ends after an error.
pub(super) struct Pages<'a> {
    source: &'a Source,
    budget: &'a Budget,
    column: &'a ColumnChunkMetaData,
    next: u64,
    end: u64,
    has_dictionary: bool,
}

impl<'a> Pages<'a> {
    pub(super) fn new(chunks: &'a Chunks, column: &'a ColumnChunkMetaData) -> Self {
        let (start, len) = column.byte_range();
        Pages {
            source: &chunks.source,
            budget: &chunks.budget,
            column,
            next: start,
            end: start + len,
            has_dictionary: false,
        }
    }

    /// The page at `offset`, checked against its chunk and the limits.
    pub(super) fn page(&self, offset: u64) -> Result<Page> {
        let header = self.header(offset)?;
        let page = Page { offset, header };
        if page.end() > self.end {
            let room = self.end.saturating_sub(page.body_offset());
            return Err(Error::malformed(
                format_args!("a page of at most {room} bytes"),
                format_args!("{}", header.packed_bytes),
            )
            .at(offset)
            .rule("page-size"));
        }
        self.check(&header).at(offset)?;
        Ok(page)
    }

    /// Reads as many bytes as the header has; most are short.
    fn header(&self, offset: u64) -> Result<PageHeader> {
        let left = self.end.saturating_sub(offset);
        let mut window = 256u64;
        loop {
            let len = window.min(left);
            let bytes = self.source.read_range(offset, len, self.budget)?;
            match PageHeader::read(&bytes, offset) {
                Err(error) if error.kind() == ErrorKind::Truncated && len < left => window *= 8,
                other => return other,
            }
        }
    }

    fn check(&self, header: &PageHeader) -> Result<()> {
        let limits = self.budget.limits();
        self.budget.check(header.unpacked_bytes)?;
        limits.check_ratio(header.packed_bytes, header.unpacked_bytes)?;
        let plain = self.column.compression() == Compression::UNCOMPRESSED;
        if plain && header.unpacked_bytes != header.packed_bytes {
            return Err(Error::malformed(
                format_args!("{} bytes in an uncompressed page", header.packed_bytes),
                header.unpacked_bytes,
            )
            .rule("page-size"));
        }
        if header.level_bytes > header.packed_bytes.min(header.unpacked_bytes) {
            return Err(Error::malformed(
                format_args!("levels of at most {} bytes", header.packed_bytes.min(header.unpacked_bytes)),
                header.level_bytes,
            )
            .rule("page-size"));
        }
        if header.kind == PageHeader::DICTIONARY {
            // The decoder makes room for all values at once.
            let width = value_width(self.column).unwrap_or(4);
            let most = header.unpacked_bytes / width;
            if header.value_count > most {
                return Err(Error::malformed(format_args!("at most {most} values"), header.value_count)
                    .rule("page-values"));
            }
        } else if self.column.column_descr().max_rep_level() > 0 {
            // One row may take all the values of a page.
            self.budget.check(header.value_count.saturating_mul(8))?;
        }
        Ok(())
    }
}

impl Iterator for Pages<'_> {
    type Item = Result<Page>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.next >= self.end {
            return None;
        }
        let page = self.page(self.next).and_then(|page| {
            self.has_dictionary |= page.header.kind == PageHeader::DICTIONARY;
            // PLAIN_DICTIONARY and RLE_DICTIONARY.
            if page.header.is_data() && matches!(page.header.encoding, 2 | 8) && !self.has_dictionary {
                let error = Error::malformed("a dictionary page before its indices", "none");
                return Err(error.at(page.offset).rule("page-order"));
            }
            Ok(page)
        });
        self.next = page.as_ref().map_or(self.end, Page::end);
        Some(page)
    }
}
