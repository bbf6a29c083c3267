//! Row groups being written: each column is a lane of its own, whose values are encoded in order, side by side with the other
//! columns. A row group is appended to the file when all its columns are closed, while the next one is encoded.
//!
//! Where a row group closes depends on the batches and on the sizes of what is encoded, not on threads, so the bytes of
//! a file do not either. Sizes are known only when all columns have encoded the same rows. They are looked at when a row group
//! has twice as many rows as the last time, so that columns seldom wait for each other.

use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::{FieldRef, SchemaRef};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::{
    ArrowColumnChunk, ArrowColumnWriter, ArrowRowGroupWriterFactory, compute_leaves,
};
use parquet::file::metadata::KeyValue;
use parquet::file::writer::SerializedFileWriter;

use super::layout::from_parquet;
use crate::control::{Control, Lanes};
use crate::error::Result;
use crate::sink::Sink;

/// The bytes of values that wait to be encoded at the most, unless row groups are small.
const WAITING_BYTES: usize = 16 << 20;
/// After so many rows of the first row group its size is looked at.
const FIRST_ROWS: usize = 8192;

/// When a row group closes.
#[derive(Debug, Clone, Copy)]
pub(super) struct RowGroupSize {
    /// The encoded bytes, as far as they are known.
    pub(super) bytes: usize,
    pub(super) rows: usize,
}

/// A file whose row groups are written one after the other.
pub(super) struct RowGroups {
    file: SerializedFileWriter<Sink>,
    factory: ArrowRowGroupWriterFactory,
    schema: SchemaRef,
    size: RowGroupSize,
    lanes: Lanes<OpenColumn, Item>,
    open: OpenGroup,
    /// How many row groups have been closed.
    closed: usize,
}

/// The row group that takes the next rows.
#[derive(Debug)]
struct OpenGroup {
    rows: usize,
    /// How many more rows it takes before its size is looked at.
    room: usize,
    /// The bytes of values that it took since its size was looked at.
    unseen_bytes: usize,
}

/// A column of the schema, and what encodes its leaves.
struct OpenColumn {
    field: FieldRef,
    leaves: Vec<ArrowColumnWriter>,
    /// The leaves of a row group that has been closed.
    closed: Vec<ArrowColumnChunk>,
}

/// What a column does next.
enum Item {
    Values(ArrayRef),
    /// The row group ends; these writers encode the next one.
    Close(Vec<ArrowColumnWriter>),
}

impl OpenColumn {
    fn take(&mut self, item: Item) -> Result<()> {
        match item {
            Item::Values(values) => {
                let leaves = compute_leaves(&self.field, &values).map_err(from_parquet)?;
                for (writer, leaf) in self.leaves.iter_mut().zip(&leaves) {
                    writer.write(leaf).map_err(from_parquet)?;
                }
            }
            Item::Close(next) => {
                for leaf in std::mem::replace(&mut self.leaves, next) {
                    self.closed.push(leaf.close().map_err(from_parquet)?);
                }
            }
        }
        Ok(())
    }

    fn encoded_bytes(&self) -> usize {
        self.leaves.iter().map(ArrowColumnWriter::get_estimated_total_bytes).sum()
    }
}

impl RowGroups {
    /// The row groups of a file that has just been started.
    pub(super) fn new(
        file: ArrowWriter<Sink>,
        schema: SchemaRef,
        size: RowGroupSize,
        control: &Control,
    ) -> Result<Self> {
        let (file, factory) = file.into_serialized_writer().map_err(from_parquet)?;
        let writers = column_writers(&file, &factory, &schema, 0)?;
        let column = |(field, leaves): (&FieldRef, _)| OpenColumn {
            field: FieldRef::clone(field),
            leaves,
            closed: Vec::new(),
        };
        let columns = schema.fields().iter().zip(writers).map(column).collect();
        let lanes = Lanes::new(control, columns, WAITING_BYTES.min(size.bytes / 4), OpenColumn::take)?;
        let open = OpenGroup { rows: 0, room: FIRST_ROWS, unseen_bytes: 0 };
        Ok(RowGroups { file, factory, schema, size, lanes, open, closed: 0 })
    }

    pub(super) fn write(&mut self, rows: &RecordBatch) -> Result<()> {
        let mut start = 0;
        while start < rows.num_rows() {
            let complete = self.make_room()?;
            let count = self.open.room.min(rows.num_rows() - start);
            for (lane, values) in rows.columns().iter().enumerate() {
                let values = values.slice(start, count);
                let bytes = values.to_data().get_slice_memory_size();
                let bytes = bytes.unwrap_or_else(|_| values.get_array_memory_size());
                self.open.unseen_bytes = self.open.unseen_bytes.saturating_add(bytes);
                self.lanes.send(lane, Item::Values(values), bytes)?;
            }
            start += count;
            self.open.rows += count;
            self.open.room -= count;
            // Meanwhile the columns have values to encode.
            self.append(complete)?;
        }
        Ok(())
    }

    /// If it is time to, looks at the size of the open row group, and starts the next one if it is full. Returns the columns
    /// of the row group before it, if it has been closed since the last time.
    fn make_room(&mut self) -> Result<Vec<ArrowColumnChunk>> {
        if self.open.room > 0 && self.open.unseen_bytes < self.size.bytes {
            return Ok(Vec::new());
        }
        let (bytes, complete) = self.look()?;
        let rows = self.open.rows;
        let each = (bytes / rows.max(1)).max(1);
        let fitting = self.size.bytes.saturating_sub(bytes) / each;
        self.open.unseen_bytes = 0;
        // A rest that is small compared with the row group is not worth another look.
        if rows >= self.size.rows || fitting <= rows / 16 {
            self.close()?;
            self.open.rows = 0;
            self.open.room = (self.size.bytes / each).min(self.size.rows).div_ceil(8).max(1);
        } else {
            self.open.room = fitting.min(self.size.rows - rows).min(rows.max(1));
        }
        Ok(complete)
    }

    /// Waits until all values are encoded; returns their bytes, and the columns of the row group that was closed before them.
    fn look(&mut self) -> Result<(usize, Vec<ArrowColumnChunk>)> {
        let columns =
            self.lanes.all(|column| (column.encoded_bytes(), std::mem::take(&mut column.closed)))?;
        let bytes = columns.iter().map(|(bytes, _)| bytes).sum();
        Ok((bytes, columns.into_iter().flat_map(|(_, closed)| closed).collect()))
    }

    /// Tells all columns that the row group ends.
    fn close(&mut self) -> Result<()> {
        self.closed += 1;
        let writers = column_writers(&self.file, &self.factory, &self.schema, self.closed)?;
        for (lane, next) in writers.into_iter().enumerate() {
            self.lanes.send(lane, Item::Close(next), 0)?;
        }
        Ok(())
    }

    /// Appends a row group to the file.
    fn append(&mut self, columns: Vec<ArrowColumnChunk>) -> Result<()> {
        if columns.is_empty() {
            return Ok(());
        }
        let mut rows = self.file.next_row_group().map_err(from_parquet)?;
        for column in columns {
            column.append_to_row_group(&mut rows).map_err(from_parquet)?;
        }
        rows.close().map(drop).map_err(from_parquet)
    }

    /// Adds to what the footer says beside the schema.
    pub(super) fn add_metadata(&mut self, pair: KeyValue) {
        self.file.append_key_value_metadata(pair);
    }

    /// Ends the last row group and the file.
    pub(super) fn finish(mut self) -> Result<Sink> {
        let (_, complete) = self.look()?;
        self.append(complete)?;
        if self.open.rows > 0 {
            self.close()?;
            let (_, last) = self.look()?;
            self.append(last)?;
        }
        self.file.into_inner().map_err(from_parquet)
    }
}

/// What encodes the leaves of each column of a row group.
fn column_writers(
    file: &SerializedFileWriter<Sink>,
    factory: &ArrowRowGroupWriterFactory,
    schema: &SchemaRef,
    group: usize,
) -> Result<Vec<Vec<ArrowColumnWriter>>> {
    let mut leaves = factory.create_column_writers(group).map_err(from_parquet)?.into_iter();
    let descriptor = file.schema_descr();
    let mut counts = vec![0; schema.fields().len()];
    for leaf in 0..descriptor.num_columns() {
        if let Some(count) = counts.get_mut(descriptor.get_column_root_idx(leaf)) {
            *count += 1;
        }
    }
    Ok(counts.into_iter().map(|count| leaves.by_ref().take(count).collect()).collect())
}
