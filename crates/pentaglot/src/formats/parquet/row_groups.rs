//! Row groups being written: each column is a lane of its own, whose values are encoded in order, side by side with the other
//! columns. A row group is appended to the file when all its columns are closed, while the next one is encoded.
//!
//! Where a row group closes depends on the batches and on the sizes of what is encoded, not on threads, so the bytes of
//! a file do not either. Sizes are known only when all columns have encoded the same rows. They are looked at when a row group
//! has twice as many rows as the last time, so that columns seldom wait for each other.
//!
//! A dictionary that was full in the first half of a row group is not tried again in the row groups after it.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::{FieldRef, Schema, SchemaRef};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::{
    ArrowColumnChunk, ArrowColumnWriter, ArrowRowGroupWriterFactory, compute_leaves,
};
use parquet::basic::Encoding;
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{WriterProperties, WriterPropertiesPtr};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{Type, TypePtr};

use super::layout::from_parquet;
use crate::control::{Control, Lanes};
use crate::error::Result;
use crate::hub::value_bytes;
use crate::sink::Sink;

/// The bytes of values that wait to be encoded at the most, unless row groups are small.
const WAITING_BYTES: usize = 16 << 20;
/// So many rows are encoded at a time, so that no column is late when sizes are looked at.
const ITEM_ROWS: usize = 16 << 10;
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
    /// How many columns the schema has.
    columns: usize,
    size: RowGroupSize,
    lanes: Lanes<OpenColumn, Item>,
    open: OpenGroup,
}

/// The row group that takes the next rows.
#[derive(Debug)]
struct OpenGroup {
    rows: usize,
    /// How many more rows it takes before its size is looked at.
    room: usize,
    /// The bytes of values that it took since its size was looked at.
    unseen_bytes: usize,
    /// Whether the row group before it has been closed and is not in the file yet.
    follows_closed: bool,
}

/// A column of the schema, and what encodes its leaves.
struct OpenColumn {
    field: FieldRef,
    /// A schema with this column alone.
    root: TypePtr,
    properties: Properties,
    /// Which leaves have no dictionary any more.
    without_dictionary: Vec<bool>,
    /// None before the first value of a row group.
    leaves: Vec<ArrowColumnWriter>,
    /// The leaves of a row group that has been closed.
    closed: Vec<ArrowColumnChunk>,
}

/// How leaves are encoded, the same for all columns.
#[derive(Clone)]
struct Properties {
    dictionary: WriterPropertiesPtr,
    without_dictionary: WriterPropertiesPtr,
}

/// What a column does next.
enum Item {
    Values(ArrayRef),
    /// The row group ends.
    Close,
}

impl OpenColumn {
    fn take(&mut self, item: Item) -> Result<()> {
        match item {
            Item::Values(values) => {
                if self.leaves.is_empty() {
                    self.start().map_err(from_parquet)?;
                }
                let leaves = compute_leaves(&self.field, &values).map_err(from_parquet)?;
                for (writer, leaf) in self.leaves.iter_mut().zip(&leaves) {
                    writer.write(leaf).map_err(from_parquet)?;
                }
            }
            Item::Close => {
                for (leaf, is_without) in self.leaves.drain(..).zip(&mut self.without_dictionary) {
                    let chunk = leaf.close().map_err(from_parquet)?;
                    *is_without = *is_without || left_dictionary_early(&chunk);
                    self.closed.push(chunk);
                }
            }
        }
        Ok(())
    }

    /// Starts a row group.
    fn start(&mut self) -> Result<(), ParquetError> {
        self.leaves = self.writers(&self.properties.dictionary)?;
        self.without_dictionary.resize(self.leaves.len(), false);
        if self.without_dictionary.contains(&true) {
            let others = self.writers(&self.properties.without_dictionary)?;
            for ((leaf, other), is_without) in
                self.leaves.iter_mut().zip(others).zip(&self.without_dictionary)
            {
                if *is_without {
                    *leaf = other;
                }
            }
        }
        Ok(())
    }

    fn writers(&self, properties: &WriterPropertiesPtr) -> Result<Vec<ArrowColumnWriter>, ParquetError> {
        let (root, properties) = (Arc::clone(&self.root), Arc::clone(properties));
        let unwritten = SerializedFileWriter::new(std::io::sink(), root, properties)?;
        let schema = Schema::new(vec![FieldRef::clone(&self.field)]);
        ArrowRowGroupWriterFactory::new(&unwritten, Arc::new(schema)).create_column_writers(0)
    }

    fn encoded_bytes(&self) -> usize {
        self.leaves.iter().map(ArrowColumnWriter::get_estimated_total_bytes).sum()
    }
}

/// Whether most rows of a leaf came after its dictionary was full.
fn left_dictionary_early(chunk: &ArrowColumnChunk) -> bool {
    let close = chunk.close();
    if close.metadata.dictionary_page_offset().is_none() {
        return false;
    }
    let counts = close.metadata.page_encoding_stats().into_iter().flatten();
    let pages = counts.filter(|pages| pages.encoding == Encoding::RLE_DICTIONARY);
    let before: usize = pages.map(|pages| usize::try_from(pages.count).unwrap_or(0)).sum();
    let after = close.offset_index.as_ref().and_then(|index| index.page_locations.get(before));
    after.is_some_and(|page| page.first_row_index.unsigned_abs() < close.rows_written / 2)
}

impl RowGroups {
    /// The row groups of a file that has just been started.
    pub(super) fn new(
        file: ArrowWriter<Sink>,
        schema: &SchemaRef,
        size: RowGroupSize,
        control: &Control,
    ) -> Result<Self> {
        let (file, _) = file.into_serialized_writer().map_err(from_parquet)?;
        let root = file.schema_descr().root_schema();
        let without = WriterProperties::clone(file.properties()).into_builder();
        let properties = Properties {
            dictionary: Arc::clone(file.properties()),
            without_dictionary: Arc::new(without.set_dictionary_enabled(false).build()),
        };
        let column = |(field, stored): (&FieldRef, &TypePtr)| -> Result<OpenColumn> {
            let alone = Type::group_type_builder(root.name()).with_fields(vec![TypePtr::clone(stored)]);
            Ok(OpenColumn {
                field: FieldRef::clone(field),
                root: Arc::new(alone.build().map_err(from_parquet)?),
                properties: properties.clone(),
                without_dictionary: Vec::new(),
                leaves: Vec::new(),
                closed: Vec::new(),
            })
        };
        let columns: Vec<OpenColumn> =
            schema.fields().iter().zip(root.get_fields()).map(column).collect::<Result<_>>()?;
        let count = columns.len();
        let lanes = Lanes::new(control, columns, WAITING_BYTES.min(size.bytes / 4), OpenColumn::take);
        let open = OpenGroup { rows: 0, room: FIRST_ROWS, unseen_bytes: 0, follows_closed: false };
        Ok(RowGroups { file, columns: count, size, lanes, open })
    }

    pub(super) fn write(&mut self, rows: &RecordBatch) -> Result<()> {
        let mut start = 0;
        while start < rows.num_rows() {
            let complete = self.make_room()?;
            let count = self.open.room.min(rows.num_rows() - start).min(ITEM_ROWS);
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

    /// If it is time to, looks at the size of the open row group, and closes it if it is full. Returns the columns
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
            self.open.follows_closed = true;
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
        self.open.follows_closed = false;
        Ok((bytes, columns.into_iter().flat_map(|(_, closed)| closed).collect()))
    }

    /// Tells all columns to end their row group.
    fn close(&mut self) -> Result<()> {
        (0..self.columns).try_for_each(|lane| self.lanes.send(lane, Item::Close, 0))
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

    /// Ends the last row group and appends it, column by column, while later columns are encoded.
    fn append_last(&mut self) -> Result<()> {
        self.close()?;
        let mut rows = self.file.next_row_group().map_err(from_parquet)?;
        for lane in 0..self.columns {
            let closed = self.lanes.one(lane, |column| std::mem::take(&mut column.closed))?;
            for column in closed.into_iter().flatten() {
                column.append_to_row_group(&mut rows).map_err(from_parquet)?;
            }
        }
        rows.close().map(drop).map_err(from_parquet)
    }

    /// Adds to what the footer says beside the schema.
    pub(super) fn add_metadata(&mut self, pair: KeyValue) {
        self.file.append_key_value_metadata(pair);
    }

    /// Ends the last row group and the file.
    pub(super) fn finish(mut self) -> Result<Sink> {
        if self.open.follows_closed {
            let (_, complete) = self.look()?;
            self.append(complete)?;
        }
        if self.open.rows > 0 {
            self.append_last()?;
        }
        self.file.into_inner().map_err(from_parquet)
    }
}
