//! The rows of one row group: its columns are decoded side by side, each as far ahead as the reader begins batches.

use std::cmp::Reverse;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{FieldRef, Schema};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder, RowSelection,
};
use parquet::basic::Encoding;
use parquet::file::metadata::{ColumnChunkMetaData, RowGroupMetaData};

use super::dictionary::value_width;
use super::layout::{Chunks, from_parquet};
use super::read::Store;
use crate::control::{Ahead, Chain};
use crate::error::{Error, Result};
use crate::hub::rows;

/// The approximate bytes of a batch, as the footer counts them.
const BATCH_BYTES: u64 = 16 << 20;
pub(super) const MOST_BATCH_ROWS: u64 = 64 << 10;

/// How many lanes there are at the most. With any number of threads there are as many, so that an error has the same text.
const MOST_LANES: usize = 64;

/// A part of a batch: the columns of one lane. `None` at the end.
pub(super) type Part = Option<RecordBatch>;

/// The rows of a row group that are asked for.
pub(super) struct GroupRows {
    /// Those that take longest first, so that no thread is left with one of them at the end.
    lanes: Vec<Lane>,
    /// The rows of each batch but the last.
    pub batch_rows: usize,
    /// No batch takes more bytes.
    pub most_bytes: u64,
}

/// Some of the columns, which are decoded by one thread at a time.
struct Lane {
    /// Where its columns are among those of all lanes.
    place: usize,
    chain: Chain,
    /// Bytes of its chunks.
    bytes: usize,
    decoder: Arc<Mutex<Decoder>>,
}

struct Decoder {
    /// With a place of its own for the error of a read.
    chunks: Chunks,
    /// `None` after an error or the end.
    reader: Option<ParquetRecordBatchReader>,
}

impl Decoder {
    fn next_part(&mut self) -> Result<Part> {
        let Some(mut reader) = self.reader.take() else { return Ok(None) };
        let part = self.chunks.guarded(|| Ok(reader.next().transpose()?))?;
        // It may wait until it is asked for.
        part.iter().try_for_each(|part| self.chunks.budget.charge(part))?;
        self.reader = part.is_some().then_some(reader);
        Ok(part)
    }
}

impl GroupRows {
    /// Begins to decode the next batch, which [`next_batch`](Self::next_batch) takes after all that were begun before.
    pub(super) fn begin_batch(&self, ahead: &mut Ahead<Part>) -> Result<()> {
        self.lanes.iter().try_for_each(|lane| {
            let decoder = Arc::clone(&lane.decoder);
            let decode = move || decoder.lock().unwrap_or_else(PoisonError::into_inner).next_part();
            ahead.begin_in(lane.chain, decode)
        })
    }

    /// The batch that was begun first; `None` at the end.
    pub(super) fn next_batch(&self, ahead: &mut Ahead<Part>) -> Result<Option<RecordBatch>> {
        let mut next = || ahead.next().unwrap_or_else(|| Err(Error::usage("no batch has been begun")));
        let mut parts: Vec<(usize, Result<Part>)> =
            self.lanes.iter().map(|lane| (lane.place, next())).collect();
        parts.sort_unstable_by_key(|(place, _)| *place);
        let mut parts = parts.into_iter().map(|(_, part)| part).collect::<Result<Vec<Part>>>()?;
        if let [only] = parts.as_mut_slice() {
            return Ok(only.take());
        }
        let count = |part: &Part| part.as_ref().map_or(0, RecordBatch::num_rows);
        let rows = parts.first().map_or(0, count);
        if let Some(other) = parts.iter().map(count).find(|other| *other != rows) {
            let expected = format_args!("{rows} rows, as in the first column");
            return Err(Error::malformed(expected, other).rule("row-count"));
        }
        let parts: Vec<RecordBatch> = parts.into_iter().flatten().collect();
        if parts.is_empty() {
            return Ok(None);
        }
        let fields: Vec<FieldRef> =
            parts.iter().flat_map(|part| part.schema_ref().fields().iter().cloned()).collect();
        let columns: Vec<ArrayRef> = parts.iter().flat_map(|part| part.columns().iter().cloned()).collect();
        rows::batch(Arc::new(Schema::new(fields)), columns, rows).map(Some)
    }
}

impl Store {
    /// Reads the rows `range` of a row group, after a look at every page header that they need. `columns` are those of the
    /// schema that are read, in order.
    pub(super) fn read_group(
        &self,
        index: usize,
        columns: &[usize],
        range: Range<u64>,
        batch_rows: usize,
        ahead: &mut Ahead<Part>,
    ) -> Result<GroupRows> {
        let group = self.footer.metadata.row_groups().get(index);
        let group = group.ok_or_else(|| Error::usage(format!("there is no row group {index}")))?;
        let total = u64::try_from(group.num_rows()).unwrap_or(0);
        let whole = range == (0..total);
        let metadata = if whole { self.metadata() } else { self.indexed().unwrap_or(self.metadata()) };
        let masks = self.lanes(columns);
        let pages = |mask: &ProjectionMask| self.check_pages(metadata.metadata(), index, mask, &range);
        let checked = self.control.map(masks.iter().collect(), pages)?;
        let longest = checked.into_iter().collect::<Result<Vec<Vec<_>>>>()?.concat();
        let rows = match batch_rows {
            0 => self.own_batch_rows(group, longest.iter().map(|(_, longest)| *longest).max().unwrap_or(0)),
            most => most as u64,
        };
        let rows = rows.min(range.end - range.start).max(1);
        let most_bytes = |(leaf, longest): &(usize, u64)| {
            group.columns().get(*leaf).map_or(0, |column| most_bytes(column, *longest, rows))
        };
        let most_bytes = longest.iter().map(most_bytes).fold(0, u64::saturating_add);
        let size = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
        let rows = size(rows);
        let selected = || std::iter::once(size(range.start)..size(range.end));
        let selection = (!whole).then(|| RowSelection::from_consecutive_ranges(selected(), size(total)));
        let lane = |(place, mask): (usize, ProjectionMask)| {
            let chunks = group.columns().iter().enumerate().filter(|(leaf, _)| mask.leaf_included(*leaf));
            let bytes = chunks.map(|(_, chunk)| usize::try_from(chunk.uncompressed_size()).unwrap_or(0));
            let bytes = bytes.fold(0, usize::saturating_add);
            let decoder = self.decoder(metadata, index, mask, selection.clone(), rows)?;
            Ok(Lane { place, chain: ahead.chain(), bytes, decoder: Arc::new(Mutex::new(decoder)) })
        };
        let mut lanes = masks.into_iter().enumerate().map(lane).collect::<Result<Vec<_>>>()?;
        lanes.sort_by_key(|lane| Reverse(lane.bytes));
        Ok(GroupRows { lanes, batch_rows: rows, most_bytes })
    }

    /// The columns of each lane.
    fn lanes(&self, columns: &[usize]) -> Vec<ProjectionMask> {
        let descriptor = self.footer.metadata.file_metadata().schema_descr();
        let mask = |columns: &[usize]| ProjectionMask::roots(descriptor, columns.iter().copied());
        if columns.is_empty() {
            return vec![mask(columns)];
        }
        columns.chunks(columns.len().div_ceil(MOST_LANES)).map(mask).collect()
    }

    fn decoder(
        &self,
        metadata: &ArrowReaderMetadata,
        index: usize,
        mask: ProjectionMask,
        selection: Option<RowSelection>,
        rows: usize,
    ) -> Result<Decoder> {
        let chunks = self.chunks.apart();
        let reader = chunks.guarded(|| {
            let mut builder =
                ParquetRecordBatchReaderBuilder::new_with_metadata(chunks.clone(), metadata.clone())
                    .with_row_groups(vec![index])
                    .with_projection(mask)
                    .with_batch_size(rows);
            if let Some(selection) = selection {
                builder = builder.with_row_selection(selection);
            }
            builder.build().map_err(from_parquet)
        })?;
        Ok(Decoder { chunks, reader: Some(reader) })
    }

    /// How many rows make a batch of a sensible size, also if every value is the longest of its dictionary.
    fn own_batch_rows(&self, group: &RowGroupMetaData, longest: u64) -> u64 {
        let rows = u64::try_from(group.num_rows()).unwrap_or(0).max(1);
        let bytes = u64::try_from(group.total_byte_size()).unwrap_or(0) / rows;
        let by_size = (self.chunks.budget.batch_bytes(BATCH_BYTES) / bytes.max(1)).clamp(1, MOST_BATCH_ROWS);
        let safe = self.chunks.budget.limits().max_alloc / 4 / longest.max(1);
        by_size.min(safe.max(64))
    }
}

/// The most bytes that so many values of a column take in memory.
fn most_bytes(column: &ColumnChunkMetaData, longest: u64, rows: u64) -> u64 {
    // Each value may repeat the beginning of the one before it.
    if column.encodings().any(|encoding| encoding == Encoding::DELTA_BYTE_ARRAY) {
        return u64::MAX;
    }
    let number = |count: i64| u64::try_from(count).unwrap_or(0);
    let is_flat = column.column_descr().max_rep_level() == 0;
    let values = if is_flat { rows } else { number(column.num_values()) };
    // Offsets, the bits of nulls, and types of Arrow that are wider than those of the file.
    let value = longest.max(value_width(column).unwrap_or(0)).saturating_add(16);
    values.saturating_mul(value).saturating_add(number(column.uncompressed_size()))
}
