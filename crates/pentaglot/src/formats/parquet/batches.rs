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
use crate::error::{Context, Error, Result};
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
    /// The bytes of the largest batch that has been given out.
    largest: Option<u64>,
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
            largest: None,
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
            let bytes = batch.get_array_memory_size() as u64;
            self.largest = self.largest.max(Some(bytes));
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
                _ => match self.open_next().transpose() {
                    Some(open) => self.open.push_back(open),
                    None => break,
                },
            }
        }
        Ok(())
    }

    /// How many batches are decoded at a time. Whoever asks for one batch may want no more, and costly reads may call the code of
    /// others, which must not happen after a batch has been given out.
    fn most_begun(&self) -> usize {
        let Chunks { budget, source, .. } = &self.store.chunks;
        let Some(largest) = self.largest.filter(|_| self.store.control.threads() > 1 && !source.is_costly())
        else {
            return 1;
        };
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
            let columns = self.projection.read_columns(&self.store);
            if is_checked {
                let mask =
                    ProjectionMask::roots(metadata.file_metadata().schema_descr(), columns.iter().copied());
                self.store.check_pages(metadata, index, &mask, &(0..0))?;
            }
            if from < to {
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
mod tests {
    use arrow_array::{ArrayRef, Int64Array, StringArray};
    use arrow_select::concat::concat_batches;
    use bytes::Bytes;
    use parquet::arrow::ArrowWriter;
    use parquet::basic::{Compression, ZstdLevel};
    use parquet::column::writer::ColumnCloseResult;
    use parquet::file::properties::WriterProperties;
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::file::serialized_reader::ReadOptionsBuilder;
    use parquet::file::writer::SerializedFileWriter;

    use super::super::Parquet;
    use super::*;
    use crate::control::Control;
    use crate::error::ErrorKind;
    use crate::formats::{Document, Format, ReadOptions};
    use crate::source::Source;
    use crate::testing::asked::Asked;

    const ROWS: usize = 10_000;
    const GROUP_ROWS: usize = 1000;

    /// A file of ten row groups, and its rows.
    fn groups() -> (Vec<u8>, RecordBatch) {
        let number = |row: usize| (row * 7919) as i64;
        let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values((0..ROWS).map(number)));
        let texts = (0..ROWS).map(|row| format!("text {}", row * row));
        let texts: ArrayRef = Arc::new(StringArray::from_iter_values(texts));
        let halves: ArrayRef =
            Arc::new((0..ROWS).map(|row| (row % 3 > 0).then_some(row as i64)).collect::<Int64Array>());
        let rows = RecordBatch::try_from_iter([("n", numbers), ("t", texts), ("h", halves)]).unwrap();
        let properties = WriterProperties::builder()
            .set_max_row_group_row_count(Some(GROUP_ROWS))
            .set_compression(Compression::ZSTD(ZstdLevel::default()))
            .build();
        let mut writer = ArrowWriter::try_new(Vec::new(), rows.schema(), Some(properties)).unwrap();
        writer.write(&rows).unwrap();
        (writer.into_inner().unwrap(), rows)
    }

    fn open(bytes: &[u8], threads: usize) -> Arc<dyn Document> {
        let options = ReadOptions::default().with_control(Control::new(threads));
        Parquet.open(Source::from_bytes("x", bytes.to_vec()), &options).unwrap()
    }

    #[test]
    fn batches_are_the_same_with_any_number_of_threads() {
        let (bytes, rows) = groups();
        let whole = 0..ROWS as u64;
        for range in [whole, 0..1, 999..1001, 1500..7300, 9999..10_000, 4000..4000] {
            for (batch_rows, columns) in [(0, None), (300, None), (1000, Some(1..2)), (7, Some(1..3))] {
                let read = |threads| {
                    let columns = columns.clone().map(|columns| std::iter::once(columns).collect());
                    let request = Asked { columns, rows: Some(range.clone()), batch_rows };
                    open(&bytes, threads).ask(&request).unwrap().collect::<Result<Vec<_>, _>>().unwrap()
                };
                let one = read(1);
                assert_eq!(one, read(2));
                assert_eq!(one, read(7));
                let (start, count) = (range.start as usize, (range.end - range.start) as usize);
                let expected = match &columns {
                    Some(columns) => rows
                        .project(&columns.clone().map(|column| column as usize).collect::<Vec<_>>())
                        .unwrap(),
                    None => rows.clone(),
                };
                let found = concat_batches(&expected.schema(), &one).unwrap();
                assert_eq!(found, expected.slice(start, count));
            }
        }
    }

    /// The header of a data page in plain encoding without values.
    const EMPTY_PAGE: &[u8] = b"\x15\0\x15\0\x15\0\x2c\x15\0\x15\0\x15\x06\x15\x06\0\0";

    /// A file of two row groups with pages of 200 rows; before the page `at` of each are `count` pages without values.
    fn with_empty_pages(rows: &RecordBatch, at: usize, count: usize) -> Vec<u8> {
        let properties = WriterProperties::builder()
            .set_dictionary_enabled(false)
            .set_data_page_row_count_limit(200)
            .set_write_batch_size(200)
            .build();
        let properties = Arc::new(properties);
        let mut writer =
            ArrowWriter::try_new(Vec::new(), rows.schema(), Some((*properties).clone())).unwrap();
        writer.write(rows).unwrap();
        let bytes = Bytes::from(writer.into_inner().unwrap());
        let options = ReadOptionsBuilder::new().with_page_index().build();
        let reader = SerializedFileReader::new_with_options(bytes.clone(), options).unwrap();
        let metadata = reader.metadata();
        let column = metadata.row_group(0).column(0);
        let (start, length) = column.byte_range();
        let mut chunk = bytes[start as usize..(start + length) as usize].to_vec();
        let page = metadata.offset_index().unwrap()[0][0].page_locations().get(at);
        let place = page.map_or(chunk.len(), |page| page.offset as usize - start as usize);
        chunk.splice(place..place, EMPTY_PAGE.repeat(count));
        let added = (EMPTY_PAGE.len() * count) as i64;
        let column = column.clone().into_builder().set_data_page_offset(0);
        let column = column.set_total_compressed_size(length as i64 + added);
        let column = column.set_total_uncompressed_size(length as i64 + added).build().unwrap();
        let schema = metadata.file_metadata().schema_descr().root_schema_ptr();
        let mut writer = SerializedFileWriter::new(Vec::new(), schema, properties).unwrap();
        for _ in 0..2 {
            let mut group = writer.next_row_group().unwrap();
            let closed = ColumnCloseResult {
                bytes_written: chunk.len() as u64,
                rows_written: rows.num_rows() as u64,
                bloom_filter: None,
                metadata: column.clone(),
                column_index: None,
                offset_index: None,
            };
            group.append_column(&Bytes::from(chunk.clone()), closed).unwrap();
            group.close().unwrap();
        }
        writer.into_inner().unwrap()
    }

    #[test]
    fn a_page_without_values_changes_no_rows() {
        let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(0..1000));
        let rows = RecordBatch::try_from_iter([("n", numbers)]).unwrap();
        let twice = concat_batches(&rows.schema(), [&rows, &rows]).unwrap();
        // At the end, several of them are nothing but the end.
        for (at, count) in [(0, 1), (1, 1), (4, 1), (5, 1), (5, 2), (5, 5)] {
            let bytes = with_empty_pages(&rows, at, count);
            for (threads, batch_rows) in [(1, 0), (2, 0), (2, 100), (2, 300), (7, 500), (2, 1000), (2, 5000)]
            {
                for range in [0..2000, 150..950, 200..1900, 801..1001] {
                    let (start, length) = (range.start as usize, (range.end - range.start) as usize);
                    let request = Asked { columns: None, rows: Some(range), batch_rows };
                    let found = open(&bytes, threads).ask(&request).unwrap();
                    let found = found.collect::<Result<Vec<_>, _>>().unwrap();
                    let most = if batch_rows == 0 { 1000 } else { batch_rows };
                    assert!(found.iter().all(|batch| batch.num_rows() <= most));
                    let found = concat_batches(&rows.schema(), &found).unwrap();
                    assert_eq!(found, twice.slice(start, length));
                }
            }
        }
    }

    #[test]
    fn several_pages_without_values_are_refused() {
        let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(0..1000));
        let rows = RecordBatch::try_from_iter([("n", numbers)]).unwrap();
        for (at, count) in [(0, 2), (1, 2), (2, 3), (4, 5)] {
            let bytes = with_empty_pages(&rows, at, count);
            for (threads, batch_rows) in [(1, 0), (2, 300), (7, 200)] {
                let request = Asked { columns: None, rows: None, batch_rows };
                let found = open(&bytes, threads).ask(&request).unwrap().collect::<Result<Vec<_>, _>>();
                let error = Error::from(found.unwrap_err());
                assert_eq!(error.kind(), ErrorKind::Unsupported);
                assert!(error.to_string().contains("pages without values"), "{error}");
                assert!(error.offset().is_some());
            }
        }
    }

    #[test]
    fn rows_before_a_fault_come_first() {
        let (bytes, rows) = groups();
        let reader = SerializedFileReader::new(Bytes::from(bytes.clone())).unwrap();
        for (group, column) in [(0, 1), (1, 0), (3, 2), (9, 1)] {
            let (start, length) = reader.metadata().row_group(group).column(column).byte_range();
            let (start, end) = (start as usize, (start + length) as usize);
            let frame = memchr::memmem::rfind(&bytes[start..end], b"\x28\xb5\x2f\xfd").unwrap();
            // A header, which is looked at when the row group is opened, or a compressed page, which is decoded later.
            for place in [start, start + frame] {
                let mut damaged = bytes.clone();
                damaged[place] ^= 0xff;
                let read = |threads| {
                    let mut found = open(&damaged, threads).all_rows().unwrap();
                    let good: Vec<RecordBatch> = found.by_ref().map_while(Result::ok).collect();
                    assert!(found.next().is_none(), "nothing follows an error");
                    let error = open(&damaged, threads).all_rows().unwrap().find_map(Result::err).unwrap();
                    (concat_batches(&rows.schema(), &good).unwrap(), error.to_string())
                };
                let (good, error) = read(1);
                assert_eq!(good, rows.slice(0, group * GROUP_ROWS), "{error}");
                assert!(error.contains(&format!("row_group[{group}]")), "{error}");
                assert_eq!((good.clone(), error.clone()), read(2));
                assert_eq!((good, error), read(7));
            }
        }
    }
}
