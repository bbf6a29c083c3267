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

use super::batch_size::{Sizes, padding_in_lists};
use super::layout::{Chunks, from_parquet};
use super::read::Store;
use crate::control::{Ahead, Chain};
use crate::error::{Error, Result};
use crate::hub::rows;

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
        let mut chunks = checked.into_iter().collect::<Result<Vec<_>>>()?.concat();
        for chunk in &mut chunks {
            let root = self.footer.metadata.file_metadata().schema_descr().get_column_root_idx(chunk.leaf);
            let field = self.stored_schema().fields().get(root);
            chunk.padding = field.map_or(0, |field| padding_in_lists(field.data_type()));
        }
        let lengths = chunks.iter_mut().filter(|chunk| chunk.has_lengths).collect();
        let check = |size| self.check_lengths(metadata.metadata(), index, &range, size);
        self.control.map(lengths, check)?.into_iter().collect::<Result<()>>()?;
        let fields = columns.iter().filter_map(|column| self.stored_schema().fields().get(*column));
        let types = fields.map(|field| field.data_type());
        let mut sizes = Sizes::new(chunks, types, self.chunks.budget.limits());
        let count = |size| self.count_row_values(metadata.metadata(), index, &range, size);
        self.control.map(sizes.unknown_rows(), count)?.into_iter().collect::<Result<()>>()?;
        let rows = sizes.batch_rows(batch_rows)?;
        let rows = rows.min(range.end - range.start).max(1);
        let most_bytes = sizes.most_bytes(rows);
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
}
