//! The bytes of a file as the `parquet` crate reads them, and the pages of a column chunk, each checked before the crate sees it.

use std::io::{self, Read};
use std::sync::{Arc, Mutex, PoisonError};

use arrow_buffer::Buffer;
use bytes::Bytes;
use parquet::basic::Compression;
use parquet::errors::ParquetError;
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::reader::{ChunkReader, Length};

use super::dictionary::value_width;
use super::page_header::PageHeader;
use crate::error::{self, Context, Error, ErrorKind, Result};
use crate::formats::guard::guarded;
use crate::limits::Budget;
use crate::source::{Source, SourceReader};

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

    /// The same file with a place of its own for the last error.
    pub(super) fn apart(&self) -> Self {
        Chunks::new(self.source.clone(), self.budget.clone())
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

    /// The chunk that they are of.
    pub(super) fn column(&self) -> &'a ColumnChunkMetaData {
        self.column
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
        } else if self.column.column_descr().max_rep_level() > 0 || header.has_lengths() {
            // One row may take all the values of a page, and two lengths of each may be read at once.
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
