//! The rows of frames, some at a time. The wanted columns of a frame are decoded side by side.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, new_null_array};
use arrow_schema::{DataType, SchemaRef};

use super::ID;
use super::decode::{ArrayReader, Decoder};
use super::frames::{Frames, Piece};
use super::layout::{BsondfLayout, ColumnLayout};
use crate::control::Control;
use crate::error::{Context, Error, Result};
use crate::hub::{distinct, rows};

/// Rows of a batch, unless a user asks for another number.
const BATCH_ROWS: u64 = 64 << 10;

/// The minimum number of rows that are decoded at a time, in one or more batches: the last 64 KiB of each buffer are copied
/// then.
const LEAST_CHUNK_ROWS: u64 = if cfg!(test) { 20 } else { 16 << 10 };

/// No more bytes are decoded at a time, unless a user asks for batches that have more.
const CHUNK_BYTES: u64 = 32 << 20;

/// Columns of fewer bytes together are decoded on one thread: to use others takes longer.
const FEW_BYTES: u64 = 64 << 10;

/// The table that rows are read from, and what is wanted of it.
pub(super) struct Table {
    pub decoder: Decoder,
    pub frames: Arc<Frames>,
    /// The wanted columns.
    pub wanted: Vec<usize>,
    pub schema: SchemaRef,
    /// The rows of a batch that a user asks for.
    pub batch_rows: Option<u64>,
    pub control: Control,
    pub is_text: bool,
}

/// The rows of parts of frames. Nothing is decoded before its batch is asked for.
pub(super) struct TableRows {
    pub table: Table,
    /// Frames, and rows of each.
    pub parts: std::vec::IntoIter<(usize, Range<u64>)>,
    pub current: Option<Part>,
}

/// Rows of one frame.
pub(super) struct Part {
    frame: usize,
    /// Each column once, however often it is wanted, and which of them the wanted ones are.
    columns: Vec<FrameColumn>,
    places: Vec<usize>,
    /// The rows that have not been decoded, how many are decoded at a time, and how many of these are a batch.
    rows: Range<u64>,
    chunk_rows: u64,
    batch_rows: usize,
    row_bytes: u64,
    /// Rows that are decoded and have not been taken; `None` until the first chunk is decoded.
    decoded: Option<RecordBatch>,
}

impl Iterator for TableRows {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let part = match &mut self.current {
                Some(part) => part,
                None => {
                    let (frame, rows) = self.parts.next()?;
                    match self.table.start(frame, rows) {
                        Ok(part) => self.current.insert(part),
                        Err(error) => return Some(Err(self.table.placed(frame, error))),
                    }
                }
            };
            match self.table.next(part) {
                Ok(Some(batch)) => return Some(Ok(batch)),
                Ok(None) => self.current = None,
                Err(error) => return Some(Err(self.table.placed(part.frame, error))),
            }
        }
    }
}

impl Table {
    /// Begins with rows of a frame.
    fn start(&self, frame: usize, rows: Range<u64>) -> Result<Part> {
        self.control.check()?;
        let (once, places) = distinct(&self.wanted);
        let mut part = Part {
            frame,
            columns: Vec::new(),
            places,
            rows,
            chunk_rows: 0,
            batch_rows: 0,
            row_bytes: 0,
            decoded: None,
        };
        if let Some(piece) = self.frames.pieces.get(frame) {
            let layout = self.frames.layout(&self.decoder.source, piece, &self.decoder.budget)?;
            part.columns = once.iter().filter_map(|index| self.column(&layout, *index)).collect();
            let bytes: u64 = part.columns.iter().map(|column| column.bytes).sum();
            part.row_bytes = bytes.div_ceil((piece.rows.end - piece.rows.start).max(1));
        }
        let most_bytes = self.decoder.budget.batch_bytes(CHUNK_BYTES);
        let fitting = (most_bytes / part.row_bytes.max(1)).max(1);
        let batch_rows = self.batch_rows.unwrap_or(BATCH_ROWS.min(fitting));
        part.chunk_rows = batch_rows.saturating_mul((LEAST_CHUNK_ROWS.min(fitting) / batch_rows).max(1));
        part.batch_rows = usize::try_from(batch_rows).unwrap_or(usize::MAX);
        Ok(part)
    }

    /// A column of the table in a frame.
    fn column(&self, layout: &Arc<BsondfLayout>, index: usize) -> Option<FrameColumn> {
        let (name, kind) = self.frames.columns.get(index)?;
        let has_name = |place: &usize| layout.columns.get(*place).is_some_and(|column| column.name == *name);
        let place = Some(index).filter(has_name).or_else(|| (0..layout.columns.len()).find(has_name));
        Some(match place {
            Some(place) => {
                let bytes = layout.columns.get(place).map_or(0, |column| column.array.decoded_bytes());
                FrameColumn { bytes, values: Values::Closed(Arc::clone(layout), place) }
            }
            None => FrameColumn { bytes: 0, values: Values::Missing(kind.to_arrow()) },
        })
    }

    /// The next batch of a part.
    fn next(&self, part: &mut Part) -> Result<Option<RecordBatch>> {
        let is_first = part.decoded.is_none();
        let mut ready = part.decoded.take().filter(|decoded| decoded.num_rows() > 0);
        if ready.is_none() && (!part.rows.is_empty() || is_first && !part.columns.is_empty()) {
            // The first batch comes even without rows: it holds the dictionaries.
            ready = Some(self.decode(part)?);
        }
        let Some(decoded) = ready else { return Ok(None) };
        let count = part.batch_rows.min(decoded.num_rows());
        part.decoded = Some(decoded.slice(count, decoded.num_rows() - count));
        Ok(Some(if count < decoded.num_rows() { decoded.slice(0, count) } else { decoded }))
    }

    /// Decodes some rows of a part.
    fn decode(&self, part: &mut Part) -> Result<RecordBatch> {
        let start = part.rows.start;
        let count = part.chunk_rows.min(part.rows.end.saturating_sub(start));
        // The rows before the first ones are decoded, too.
        let is_closed = part.columns.iter().any(|column| matches!(column.values, Values::Closed(..)));
        let decoded_rows = if is_closed { start.saturating_add(count) } else { count };
        let column = |column: &mut FrameColumn| column.take(&self.decoder, start, count);
        let columns: Vec<&mut FrameColumn> = part.columns.iter_mut().collect();
        let arrays = if part.row_bytes.saturating_mul(decoded_rows) < FEW_BYTES {
            columns.into_iter().map(column).collect::<Result<Vec<_>>>()?
        } else {
            let size = |column: &&mut FrameColumn| usize::try_from(column.bytes).unwrap_or(usize::MAX);
            let decoded = self.control.map_largest_first(columns, size, column)?;
            decoded.into_iter().collect::<Result<_>>()?
        };
        part.rows.start += count;
        let arrays = part.places.iter().filter_map(|place| arrays.get(*place)).map(Arc::clone).collect();
        rows::batch(Arc::clone(&self.schema), arrays, usize::try_from(count).unwrap_or(usize::MAX))
    }

    /// The error with its place in the file, as a user can use it.
    fn placed(&self, frame: usize, error: Error) -> Error {
        let error = match self.frames.pieces.get(frame) {
            Some(Piece { frame, .. }) => self.frames.place(frame, error),
            None => error,
        };
        let error = if self.is_text { error.without_offset() } else { error };
        error.in_format(ID)
    }
}

/// A column of a frame.
struct FrameColumn {
    /// How many bytes its buffers become.
    bytes: u64,
    values: Values,
}

enum Values {
    /// The frame lacks the column: its values are null.
    Missing(DataType),
    /// A column of the frame, not read yet.
    Closed(Arc<BsondfLayout>, usize),
    Open(String, Box<ArrayReader>),
}

impl FrameColumn {
    /// Rows from `start`, which comes after those that were taken before.
    fn take(&mut self, decoder: &Decoder, start: u64, count: u64) -> Result<ArrayRef> {
        if let Values::Closed(layout, place) = &self.values
            && let Some(column) = layout.columns.get(*place)
        {
            let reader = decoder.reader(&column.array).field(column.name.clone()).field("columns")?;
            self.values = Values::Open(column.name.clone(), Box::new(reader));
        }
        match &mut self.values {
            Values::Open(name, reader) => {
                reader.skip_to(start).and_then(|()| reader.take(count)).field(name.clone()).field("columns")
            }
            Values::Missing(kind) => Ok(new_null_array(kind, usize::try_from(count).unwrap_or(usize::MAX))),
            Values::Closed(..) => Err(Error::malformed("a column", "none")),
        }
    }
}

/// Whole columns, decoded side by side.
pub(super) fn columns(
    decoder: &Decoder,
    columns: &[ColumnLayout],
    control: &Control,
) -> Result<Vec<ArrayRef>> {
    let column =
        |column: &ColumnLayout| decoder.array(&column.array).field(column.name.clone()).field("columns");
    if columns.iter().map(|column| column.bytes).sum::<u64>() < FEW_BYTES {
        return columns.iter().map(column).collect();
    }
    control.map(columns.iter().collect(), column)?.into_iter().collect()
}
