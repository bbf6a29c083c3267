//! The side index of a stream: the offset of every k-th row, and hashes to detect that the file has changed.
//!
//! ```text
//! "PGDSIDX1"   header_bytes u64   bundle_bytes u64   row_count u64   every u64   hash of the header
//! then per segment of `every` rows:   offset u64   hash of its bytes
//! at the end:  hash of everything above                                   (little-endian; hashes are BLAKE3, 32 bytes)
//! ```
//!
//! Header and segments cover the whole bundle, so the last hash is a hash of the bundle. The index itself, the
//! bundle's length, its header and its last segment are checked when the file is opened; a segment is checked when it
//! is read, before it is decoded. So rows of a stale index are never returned, and a seek reads only the segments it
//! needs.

use std::collections::VecDeque;
use std::io::Read;
use std::ops::Range;

use arrow_array::RecordBatch;

use super::decode::wrong_row_count;
use super::layout::{DsLayout, Encoded, open_given};
use super::rows::{BATCH_BYTES, BatchLimits, RowBuilder, WINDOW_BYTES, place, read_row_header};
use super::types::Type;
use crate::control::Control;
use crate::cursor::Cursor;
use crate::error::{Context, Error, ErrorKind, Result};
use crate::formats::ReadOptions;
use crate::formats::side_index::{self, DS_MAGIC as MAGIC};
use crate::hub::Shape;
use crate::limits::Budget;
use crate::source::{Source, Window};
use crate::wire::msgpack;

const HASH_BYTES: u64 = 32;
const HEADER_BYTES: u64 = 8 + 4 * 8 + HASH_BYTES;
const ENTRY_BYTES: u64 = 8 + HASH_BYTES;
/// About how many bytes a segment has.
const SEGMENT_BYTES: u64 = 256 << 10;

/// The suffix of the side file's name.
pub const INDEX_SUFFIX: &str = side_index::SUFFIX;

type Hash = [u8; 32];

/// Some complete rows and their location in the file.
#[derive(Debug, Clone)]
pub(super) struct Segment {
    pub(super) offset: u64,
    pub(super) bytes: u64,
    /// The numbers of its rows.
    pub(super) rows: Range<u64>,
    pub(super) hash: Option<Hash>,
}

impl Segment {
    /// Its bytes, compared with its hash.
    pub(super) fn read(&self, source: &Source, budget: &Budget) -> Result<arrow_buffer::Buffer> {
        let bytes = source.read_range(self.offset, self.bytes, budget)?;
        match &self.hash {
            Some(hash) if blake3::hash(&bytes).as_bytes() != hash => Err(Error::usage(format!(
                "the index {}{INDEX_SUFFIX} does not fit the file any more; make it again or remove it",
                source.name(),
            ))),
            _ => Ok(bytes),
        }
    }
}

/// A side index that matches its bundle in length and header.
#[derive(Debug)]
pub(super) struct Index {
    pub(super) row_count: u64,
    every: u64,
    end: u64,
    entries: Vec<(u64, Hash)>,
}

impl Index {
    /// The index of a bundle: `None` if there is none, an error if it is not an index or does not match.
    pub(super) fn beside(layout: &DsLayout, budget: &Budget) -> Result<Option<Index>> {
        let Some(len) = layout.source.len() else { return Ok(None) };
        let Some(side) = layout.source.sibling(INDEX_SUFFIX)? else { return Ok(None) };
        let side_bytes = side.len().unwrap_or(0);
        let bytes = side.read_range(0, side_bytes, budget)?;
        let index = Index::parse(&bytes, layout, len, budget)?;
        Ok(Some(index))
    }

    fn parse(bytes: &[u8], layout: &DsLayout, len: u64, budget: &Budget) -> Result<Index> {
        let stale = |what: &str| Err(Error::malformed("an index of this file", what).rule("index"));
        let Some((content, root)) = bytes.split_last_chunk::<32>() else { return stale("too few bytes") };
        let mut cursor = Cursor::new(content);
        if cursor.take(8)? != MAGIC {
            return stale("another signature");
        }
        if blake3::hash(content).as_bytes() != root {
            return stale("bytes that are not its own");
        }
        let (header_bytes, bundle_bytes) = (cursor.u64_le()?, cursor.u64_le()?);
        let (row_count, every) = (cursor.u64_le()?, cursor.u64_le()?);
        let header_hash: Hash = cursor.array()?;
        if (header_bytes, bundle_bytes) != (layout.body, len) {
            return stale("one of a file of another length");
        }
        let header = layout.source.read_range(0, header_bytes, budget)?;
        if *blake3::hash(&header).as_bytes() != header_hash {
            return stale("one of a file with another header");
        }
        let mut entries = Vec::new();
        let mut last = None;
        while !cursor.is_empty() {
            let (offset, hash) = (cursor.u64_le()?, cursor.array()?);
            if last.is_some_and(|last| last >= offset) || offset < header_bytes || offset >= bundle_bytes {
                return stale("offsets that do not rise");
            }
            last = Some(offset);
            entries.push((offset, hash));
        }
        if every == 0 || row_count.div_ceil(every) != entries.len() as u64 {
            return stale("another number of rows");
        }
        let index = Index { row_count, every, end: bundle_bytes, entries };
        // A file that was replaced by one of the same length is another one at its end, too.
        for segment in index.segments(&(row_count.saturating_sub(1)..row_count)) {
            match segment.read(&layout.source, budget) {
                Err(error) if error.kind() == ErrorKind::Usage => return stale("one of other rows"),
                read => drop(read?),
            }
        }
        Ok(index)
    }

    /// The segments that hold the rows `wanted`.
    pub(super) fn segments(&self, wanted: &Range<u64>) -> Vec<Segment> {
        if wanted.is_empty() {
            return Vec::new();
        }
        let ends = self.entries.iter().skip(1).map(|(offset, _)| *offset).chain([self.end]);
        let segments = self.entries.iter().zip(ends).zip(0u64..).map(|(((offset, hash), end), number)| {
            let first = number * self.every;
            let rows = first..first.saturating_add(self.every).min(self.row_count);
            Segment { offset: *offset, bytes: end - offset, rows, hash: Some(*hash) }
        });
        segments
            .filter(|segment| segment.rows.start < wanted.end && segment.rows.end > wanted.start)
            .collect()
    }
}

/// The content of the side index of a bundle, whose name is that of the bundle with [`INDEX_SUFFIX`].
///
/// Reads the file twice: once for the lengths of rows, and once for the hashes. Only a table in a seekable
/// MessagePack stream can have an index.
///
/// ```
/// use pentaglot::formats::ds::{Type, Value, Wire, build_index, write_bundle};
/// let kind = Type::parse(r#"{"columns": {"n": "int32"}}"#)?;
/// let bundle = write_bundle(&kind, &Value::List(vec![Value::List(vec![Value::Int(7)])]), Wire::MsgPack)?;
/// let index = build_index(&pentaglot::Source::from_bytes("x.ds", bundle), &Default::default())?;
/// assert!(index.starts_with(b"PGDSIDX1"));
/// # Ok::<(), pentaglot::Error>(())
/// ```
pub fn build_index(source: &Source, options: &ReadOptions) -> Result<Vec<u8>> {
    build(source, options).in_format(super::ID)
}

fn build(source: &Source, options: &ReadOptions) -> Result<Vec<u8>> {
    let layout = open_given(source.clone(), options)?;
    let Some(len) = source.len() else {
        return Err(Error::usage(
            "a stream or packed file cannot be read at an offset, so an index is of no use",
        ));
    };
    let Type::Tabular(table) = &layout.kind else {
        return Err(Error::unsupported("only a table has rows to index"));
    };
    if layout.wire == Encoded::Json {
        return Err(Error::unsupported("only a MessagePack stream has an index"));
    }
    let budget = options.budget.clone();
    let mut window = Window::over(source, layout.body, None, WINDOW_BYTES, budget)?;
    let mut offsets = Vec::new();
    let (mut row_count, mut every) = (0u64, None);
    loop {
        let mut cursor = window.cursor();
        let mut reached = cursor.offset();
        let failure = loop {
            if cursor.is_empty() {
                break None;
            }
            if every.is_none() && reached - layout.body >= SEGMENT_BYTES {
                every = Some(row_count.max(1));
            }
            if row_count % every.unwrap_or(u64::MAX) == 0 {
                offsets.push(reached);
            }
            let columns = table.columns.len();
            match read_row_header(&mut cursor, columns)
                .and_then(|()| (0..columns).try_for_each(|_| msgpack::skip(&mut cursor)))
            {
                Ok(()) => {}
                Err(error) => {
                    if offsets.last() == Some(&reached) {
                        offsets.pop();
                    }
                    break Some(error);
                }
            }
            reached = cursor.offset();
            row_count += 1;
        };
        window.advance_to(reached);
        match failure {
            Some(error) if error.kind() != ErrorKind::Truncated || window.is_last() => {
                return Err(place(error, Shape::Table, row_count));
            }
            _ => {}
        }
        if !window.grow()? {
            break;
        }
    }
    if let Some(expected) = table.row_count
        && expected != row_count
    {
        return Err(wrong_row_count(expected, row_count, len));
    }
    write(source, &layout, len, row_count, every.unwrap_or(row_count.max(1)), &offsets)
}

fn write(
    source: &Source,
    layout: &DsLayout,
    len: u64,
    row_count: u64,
    every: u64,
    offsets: &[u64],
) -> Result<Vec<u8>> {
    let mut content: Vec<u8> = Vec::new();
    content.extend_from_slice(MAGIC);
    for number in [layout.body, len, row_count, every] {
        content.extend_from_slice(&number.to_le_bytes());
    }
    let hash = |start: u64, end: u64| -> Result<blake3::Hash> {
        let mut hasher = blake3::Hasher::new();
        hasher.update_reader(source.reader_at(start)?.take(end - start))?;
        Ok(hasher.finalize())
    };
    content.extend_from_slice(hash(0, layout.body)?.as_bytes());
    let ends = offsets.iter().skip(1).copied().chain([len]);
    for (start, end) in offsets.iter().zip(ends) {
        content.extend_from_slice(&start.to_le_bytes());
        content.extend_from_slice(hash(*start, end)?.as_bytes());
    }
    debug_assert_eq!(content.len() as u64, HEADER_BYTES + ENTRY_BYTES * offsets.len() as u64);
    let root = blake3::hash(&content);
    content.extend_from_slice(root.as_bytes());
    Ok(content)
}

/// The rows of segments: several are decoded at a time, each on its own thread, and returned in order.
pub(super) struct SegmentRows<F> {
    pub(super) source: Source,
    pub(super) budget: Budget,
    pub(super) make: F,
    pub(super) wanted: Range<u64>,
    pub(super) batch_rows: usize,
    pub(super) control: Control,
    pub(super) segments: VecDeque<Segment>,
    pub(super) ready: VecDeque<Result<RecordBatch>>,
}

impl<F: Fn(u64) -> Result<RowBuilder> + Sync> Iterator for SegmentRows<F> {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Result<RecordBatch>> {
        while self.ready.is_empty() && !self.segments.is_empty() {
            let count = self.control.threads().min(self.segments.len());
            let group: Vec<Segment> = self.segments.drain(..count).collect();
            let done = match self.control.map(group, |segment| self.decode(&segment)) {
                Ok(done) => done,
                Err(error) => vec![Err(error)],
            };
            for batches in done {
                match batches {
                    Ok(batches) => self.ready.extend(batches.into_iter().map(Ok)),
                    Err(error) => self.ready.push_back(Err(error)),
                }
            }
        }
        self.ready.pop_front()
    }
}

impl<F: Fn(u64) -> Result<RowBuilder>> SegmentRows<F> {
    fn decode(&self, segment: &Segment) -> Result<Vec<RecordBatch>> {
        let bytes = segment.read(&self.source, &self.budget)?;
        let mut cursor = Cursor::at(&bytes, segment.offset);
        let mut builder = (self.make)(segment.rows.start)?;
        let mut batches = Vec::new();
        let mut start = segment.offset;
        let end = segment.rows.end.min(self.wanted.end);
        while builder.row < end {
            if builder.row < self.wanted.start {
                builder.skip_msgpack(&mut cursor)?;
                continue;
            }
            let rows = (end - builder.row).min((self.batch_rows - builder.len) as u64);
            let bytes = BATCH_BYTES.saturating_sub(cursor.offset() - start + builder.placeholder_bytes());
            builder.read_some_msgpack(&mut cursor, &BatchLimits { rows, bytes })?;
            let bytes = cursor.offset() - start + builder.placeholder_bytes();
            if builder.len >= self.batch_rows || bytes >= BATCH_BYTES {
                batches.push(builder.finish()?);
                start = cursor.offset();
            }
        }
        if end == segment.rows.end {
            cursor.expect_end()?;
        }
        if builder.len > 0 {
            batches.push(builder.finish()?);
        }
        Ok(batches)
    }
}
