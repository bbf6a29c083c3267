//! Row groups being written: the columns of each are encoded side by side, and appended in order when it closes.
//!
//! Where a row group closes depends on the batches and on the sizes of what is encoded, not on threads, so the bytes of
//! a file do not either.

use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::{FieldRef, SchemaRef};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::{
    ArrowColumnChunk, ArrowColumnWriter, ArrowRowGroupWriterFactory, compute_leaves,
};
use parquet::file::metadata::KeyValue;
use parquet::file::writer::SerializedFileWriter;

use super::layout::from_parquet;
use crate::control::Control;
use crate::error::Result;
use crate::sink::Sink;

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
    control: Control,
    open: Option<OpenGroup>,
}

/// The row group that takes the next rows.
struct OpenGroup {
    columns: Vec<OpenColumn>,
    rows: usize,
}

/// A column of the schema, and what encodes its leaves.
struct OpenColumn {
    field: FieldRef,
    leaves: Vec<ArrowColumnWriter>,
}

impl OpenColumn {
    fn write(mut self, values: &ArrayRef) -> Result<OpenColumn> {
        let leaves = compute_leaves(&self.field, values).map_err(from_parquet)?;
        for (writer, leaf) in self.leaves.iter_mut().zip(&leaves) {
            writer.write(leaf).map_err(from_parquet)?;
        }
        Ok(self)
    }

    fn close(self) -> Result<Vec<ArrowColumnChunk>> {
        self.leaves.into_iter().map(|leaf| leaf.close().map_err(from_parquet)).collect()
    }
}

impl OpenGroup {
    fn encoded_bytes(&self) -> usize {
        let leaves = self.columns.iter().flat_map(|column| &column.leaves);
        leaves.map(ArrowColumnWriter::get_estimated_total_bytes).sum()
    }

    /// How many rows the group takes before it has `size`, judged by the rows that it has.
    fn room(&self, size: RowGroupSize) -> usize {
        let rows = size.rows.saturating_sub(self.rows);
        let bytes = self.encoded_bytes();
        match bytes.checked_div(self.rows) {
            None | Some(0) => rows,
            Some(each) => rows.min(size.bytes.saturating_sub(bytes) / each),
        }
    }
}

impl RowGroups {
    /// The row groups of a file that has just been started.
    pub(super) fn new(
        file: ArrowWriter<Sink>,
        schema: SchemaRef,
        size: RowGroupSize,
        control: Control,
    ) -> Result<Self> {
        let (file, factory) = file.into_serialized_writer().map_err(from_parquet)?;
        Ok(RowGroups { file, factory, schema, size, control, open: None })
    }

    pub(super) fn write(&mut self, rows: &RecordBatch) -> Result<()> {
        let mut start = 0;
        while start < rows.num_rows() {
            let group = match self.open.take() {
                Some(group) => group,
                None => self.start_group()?,
            };
            // A group takes a row at least: one may be larger than a group should be.
            let least = usize::from(group.rows == 0);
            let count = group.room(self.size).max(least).min(rows.num_rows() - start);
            let group = self.encode(group, &rows.slice(start, count))?;
            start += count;
            let is_full = group.rows >= self.size.rows || group.encoded_bytes() >= self.size.bytes;
            match is_full || count == 0 {
                true => self.close(group)?,
                false => self.open = Some(group),
            }
        }
        Ok(())
    }

    fn start_group(&self) -> Result<OpenGroup> {
        let index = self.file.flushed_row_groups().len();
        let mut leaves = self.factory.create_column_writers(index).map_err(from_parquet)?.into_iter();
        let descriptor = self.file.schema_descr();
        let mut counts = vec![0; self.schema.fields().len()];
        for leaf in 0..descriptor.num_columns() {
            if let Some(count) = counts.get_mut(descriptor.get_column_root_idx(leaf)) {
                *count += 1;
            }
        }
        let column = |(field, count): (&FieldRef, usize)| OpenColumn {
            field: FieldRef::clone(field),
            leaves: leaves.by_ref().take(count).collect(),
        };
        Ok(OpenGroup { columns: self.schema.fields().iter().zip(counts).map(column).collect(), rows: 0 })
    }

    fn encode(&self, group: OpenGroup, rows: &RecordBatch) -> Result<OpenGroup> {
        if rows.num_rows() == 0 {
            return Ok(group);
        }
        let columns = group.columns.into_iter().zip(rows.columns()).collect();
        let bytes = |(_, values): &(OpenColumn, &ArrayRef)| values.get_array_memory_size();
        let write = |(column, values): (OpenColumn, &ArrayRef)| column.write(values);
        let encoded = self.control.map_largest_first(columns, bytes, write)?;
        let columns = encoded.into_iter().collect::<Result<_>>()?;
        Ok(OpenGroup { columns, rows: group.rows + rows.num_rows() })
    }

    fn close(&mut self, group: OpenGroup) -> Result<()> {
        let bytes = |column: &OpenColumn| {
            column.leaves.iter().map(ArrowColumnWriter::get_estimated_total_bytes).sum()
        };
        let chunks = self.control.map_largest_first(group.columns, bytes, OpenColumn::close)?;
        let mut rows = self.file.next_row_group().map_err(from_parquet)?;
        for chunk in chunks.into_iter().collect::<Result<Vec<_>>>()?.into_iter().flatten() {
            chunk.append_to_row_group(&mut rows).map_err(from_parquet)?;
        }
        rows.close().map(drop).map_err(from_parquet)
    }

    /// Adds to what the footer says beside the schema.
    pub(super) fn add_metadata(&mut self, pair: KeyValue) {
        self.file.append_key_value_metadata(pair);
    }

    /// Ends the last row group and the file.
    pub(super) fn finish(mut self) -> Result<Sink> {
        if let Some(group) = self.open.take() {
            self.close(group)?;
        }
        self.file.into_inner().map_err(from_parquet)
    }
}
