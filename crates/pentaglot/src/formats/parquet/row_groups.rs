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
use crate::hub::value_bytes;
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
    /// How many row groups have been started.
    started: usize,
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
    /// The row group ends, if there is one; these writers encode the next one.
    Next(Vec<ArrowColumnWriter>),
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
            Item::Next(next) => {
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
        let column = |field: &FieldRef| OpenColumn {
            field: FieldRef::clone(field),
            leaves: Vec::new(),
            closed: Vec::new(),
        };
        let columns = schema.fields().iter().map(column).collect();
        let lanes = Lanes::new(control, columns, WAITING_BYTES.min(size.bytes / 4), OpenColumn::take);
        let open = OpenGroup { rows: 0, room: FIRST_ROWS, unseen_bytes: 0 };
        Ok(RowGroups { file, factory, schema, size, lanes, open, started: 0 })
    }

    pub(super) fn write(&mut self, rows: &RecordBatch) -> Result<()> {
        let mut start = 0;
        while start < rows.num_rows() {
            let complete = self.make_room()?;
            let count = self.open.room.min(rows.num_rows() - start);
            for (lane, values) in rows.columns().iter().enumerate() {
                let values = values.slice(start, count);
                let bytes = value_bytes(&values);
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
        if self.started == 0 {
            self.start()?;
        }
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
            self.start()?;
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

    /// Tells all columns to end their row group, if there is one, and to start the next one.
    fn start(&mut self) -> Result<()> {
        let mut leaves = self.factory.create_column_writers(self.started).map_err(from_parquet)?.into_iter();
        self.started += 1;
        let descriptor = self.file.schema_descr();
        let mut counts = vec![0; self.schema.fields().len()];
        for leaf in 0..descriptor.num_columns() {
            if let Some(count) = counts.get_mut(descriptor.get_column_root_idx(leaf)) {
                *count += 1;
            }
        }
        for (lane, count) in counts.into_iter().enumerate() {
            self.lanes.send(lane, Item::Next(leaves.by_ref().take(count).collect()), 0)?;
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
            for lane in 0..self.schema.fields().len() {
                self.lanes.send(lane, Item::Next(Vec::new()), 0)?;
            }
            let (_, last) = self.look()?;
            self.append(last)?;
        }
        self.file.into_inner().map_err(from_parquet)
    }
}
