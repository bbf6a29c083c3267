//! The batches of a file: one row group after the other, of the columns and pages that are wanted.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{Schema, SchemaRef};
use parquet::arrow::ProjectionMask;

use super::ID;
use super::group_rows::{GroupRows, Part};
use super::layout::Chunks;
use super::read::Store;
use crate::control::Ahead;
use crate::error::{Context, Error, ErrorKind, Result};
use crate::hub::{Columns, rows};
use crate::limits::OVERLAP_BUDGET;

/// How many batches are decoded at a time, the one that is asked for among them.
const MOST_BEGUN: usize = 3;

/// The columns to read, each once, and where each wanted one is among them.
pub(super) struct Projection {
    /// `None`: all, in order.
    chosen: Option<(Vec<usize>, Vec<usize>)>,
}

impl Projection {
    pub(super) fn new(columns: Option<&Columns>, schema: &Schema) -> Self {
        Projection { chosen: columns.map(|columns| columns.distinct(schema.fields().len())) }
    }

    /// Which of the file's columns the one at `place` is.
    fn column(&self, place: usize) -> Option<usize> {
        match &self.chosen {
            None => Some(place),
            Some((read, order)) => read.get(*order.get(place)?).copied(),
        }
    }

    /// The columns that are read, in order.
    fn read_columns(&self, store: &Store) -> Vec<usize> {
        match &self.chosen {
            None => (0..store.schema.fields().len()).collect(),
            Some((read, _)) => read.clone(),
        }
    }
}

/// Batches that are decoded ahead, on the job's threads: at the end of a row group those of the next one too.
pub(super) struct Batches {
    store: Arc<Store>,
    schema: SchemaRef,
    projection: Projection,
    batch_rows: usize,
    /// Whether a batch without rows is to come: it holds the levels.
    bare: bool,
    /// Whether all rows are wanted: then row groups without rows are checked too.
    is_whole: bool,
    /// The row group to be opened next, and its first row.
    group: usize,
    position: u64,
    /// The rows that have not been given out.
    range: Range<u64>,
    /// The row groups that are being decoded. After an error none is opened.
    open: VecDeque<Result<OpenGroup>>,
    /// How many reads have been begun whose results have not been taken.
    begun: usize,
    /// Whether a batch has been given out.
    has_given: bool,
    ahead: Ahead<Part>,
}

struct OpenGroup {
    index: u64,
    rows: GroupRows,
    /// How many of its rows have not been given out.
    left: u64,
    /// How many reads have not been begun: one of each batch, and one that must find the end.
    to_begin: u64,
}

impl Batches {
    pub(super) fn new(
        store: Arc<Store>,
        schema: SchemaRef,
        projection: Projection,
        batch_rows: usize,
        range: Range<u64>,
    ) -> Self {
        Batches {
            schema,
            projection,
            batch_rows,
            bare: range.is_empty() && !store.levels.is_empty(),
            is_whole: range == (0..store.total_rows),
            group: 0,
            position: 0,
            range,
            open: VecDeque::new(),
            begun: 0,
            has_given: false,
            ahead: Ahead::new(&store.control),
            store,
        }
    }

    fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        if std::mem::take(&mut self.bare) {
            return self.with_levels(RecordBatch::new_empty(Arc::clone(&self.schema))).map(Some);
        }
        loop {
            self.begin_batches()?;
            let Some(open) = self.open.front_mut() else { return Ok(None) };
            let open = match open {
                Ok(open) => open,
                Err(_) => return self.open.pop_front().transpose().map(|_| None),
            };
            let batch = open.rows.next_batch(&mut self.ahead).index(open.index).field("row_group")?;
            self.begun -= 1;
            let count = batch.as_ref().map_or(0, |batch| batch.num_rows() as u64);
            // Pages may hold fewer rows than the footer says, or more, which the crate ignores.
            let expected = open.left.min(open.rows.batch_rows as u64);
            if count != expected {
                let error = Error::malformed(format_args!("{expected} more rows"), count);
                return Err(error.rule("row-count").index(open.index).field("row_group"));
            }
            open.left -= count;
            self.range.start += count;
            let Some(batch) = batch.filter(|_| count > 0) else {
                drop(self.open.pop_front());
                continue;
            };
            self.has_given = true;
            return self.finish(batch).map(Some);
        }
    }

    /// Begins to decode the batch that is to be given out, and others after it if there is room for them.
    fn begin_batches(&mut self) -> Result<()> {
        if !self.open.is_empty() && !self.ahead.is_here() {
            // A child process has none of the threads that decode, nor what they have read.
            self.ahead = Ahead::new(&self.store.control);
            self.open.clear();
            (self.begun, self.group, self.position) = (0, 0, 0);
        }
        while self.begun < self.most_begun() {
            match self.open.back_mut() {
                Some(Err(_)) => break,
                Some(Ok(open)) if open.to_begin > 0 => {
                    open.rows.begin_batch(&mut self.ahead)?;
                    open.to_begin -= 1;
                    self.begun += 1;
                }
                _ => {
                    let place = (self.group, self.position);
                    match self.open_next().transpose() {
                        // There is room for it when the rows before it have been given out.
                        Some(Err(error)) if error.kind() == ErrorKind::Limit && !self.open.is_empty() => {
                            (self.group, self.position) = place;
                            break;
                        }
                        Some(open) => self.open.push_back(open),
                        None => break,
                    }
                }
            }
        }
        Ok(())
    }

    /// How many batches are decoded at a time. Whoever asks for one batch may want no more, and costly reads may call the code of
    /// others, which must not happen after a batch has been given out.
    fn most_begun(&self) -> usize {
        let Chunks { budget, source, .. } = &self.store.chunks;
        if !self.has_given || self.store.control.threads() == 1 || source.is_costly() {
            return 1;
        }
        let open = self.open.iter().filter_map(|open| open.as_ref().ok());
        let largest = open.map(|open| open.rows.most_bytes).max().unwrap_or(0);
        let (most_bytes, most) = (budget.limits().max_alloc, largest.saturating_mul(MOST_BEGUN as u64));
        let has_room = most_bytes >= OVERLAP_BUDGET && budget.used().saturating_add(most) <= most_bytes / 2;
        if has_room { MOST_BEGUN } else { 1 }
    }

    /// Opens the next row group that has rows which are wanted.
    fn open_next(&mut self) -> Result<Option<OpenGroup>> {
        loop {
            let metadata = &self.store.footer.metadata;
            let Some(group) = metadata.row_groups().get(self.group) else { return Ok(None) };
            let start = self.position;
            // A row group without rows holds nothing that is asked for, but a reader of all rows checks it.
            let is_checked = group.num_rows() == 0 && self.is_whole;
            if start >= self.range.end && !is_checked {
                return Ok(None);
            }
            let index = self.group;
            self.group += 1;
            self.position = start + u64::try_from(group.num_rows()).unwrap_or(0);
            let from = self.range.start.clamp(start, self.position) - start;
            let to = self.range.end.clamp(start, self.position) - start;
            if is_checked {
                let columns = self.projection.read_columns(&self.store);
                let mask =
                    ProjectionMask::roots(metadata.file_metadata().schema_descr(), columns.iter().copied());
                self.store.check_pages(metadata, index, &mask, &(0..0))?;
            }
            if from < to {
                let columns = self.projection.read_columns(&self.store);
                let rows =
                    self.store.read_group(index, &columns, from..to, self.batch_rows, &mut self.ahead)?;
                let to_begin = (to - from).div_ceil(rows.batch_rows.max(1) as u64) + 1;
                return Ok(Some(OpenGroup { index: index as u64, rows, left: to - from, to_begin }));
            }
        }
    }

    fn finish(&self, batch: RecordBatch) -> Result<RecordBatch> {
        let batch = match &self.projection.chosen {
            Some((_, order)) => batch.project(order)?,
            None => batch,
        };
        self.with_levels(self.store.restore(batch, &self.schema)?)
    }

    fn with_levels(&self, batch: RecordBatch) -> Result<RecordBatch> {
        if self.store.levels.is_empty() {
            return Ok(batch);
        }
        let columns = batch.columns().iter().enumerate();
        let columns = columns.map(|(place, column)| {
            let index = self.projection.column(place);
            index.map_or_else(|| Ok(Arc::clone(column)), |index| self.store.levels.restore(index, column))
        });
        let columns = columns.collect::<Result<Vec<_>>>()?;
        rows::batch(Arc::clone(&self.schema), columns, batch.num_rows())
    }
}

impl Iterator for Batches {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_batch().in_format(ID).transpose()
    }
}

#[cfg(test)]
mod tests;
