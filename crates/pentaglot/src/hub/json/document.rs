//! A whole stream of rows as one JSON document.

use std::io::Write;

use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use arrow_array::{Array, RecordBatch};
use arrow_schema::{DataType, SchemaRef};

use super::JsonOptions;
use super::encode::{Columns, encoder};
use crate::error::{Error, Result};
use crate::hub::shape::{self, Form};

/// The size of the text buffer.
const BUFFER_BYTES: usize = 64 << 10;

/// Writes a stream of rows of any shape as one JSON document, in constant memory.
///
/// A table is an array of objects, a matrix an array of its rows, a sparse matrix
/// `{"rows":r,"cols":c,"entries":[[i,j,v],…]}` (a count that is not known in advance follows the entries), an array
/// an array, a value itself.
///
/// ```
/// use std::sync::Arc;
/// use pentaglot::arrow::array::{Int32Array, RecordBatch};
/// use pentaglot::hub::json::{JsonDocument, JsonOptions};
/// let batch = RecordBatch::try_from_iter([("x", Arc::new(Int32Array::from(vec![1, 2])) as _)])?;
/// let mut document = JsonDocument::begin(Vec::new(), batch.schema(), JsonOptions::default())?;
/// document.write(&batch)?;
/// assert_eq!(document.end()?, b"[{\"x\":1},\n{\"x\":2}]\n");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct JsonDocument<W> {
    writer: W,
    options: JsonOptions,
    form: Form,
    /// The declared shape of the matrix, as far as known.
    rows: Option<u64>,
    cols: Option<u64>,
    /// The largest row and column numbers of the entries plus one.
    seen_rows: u64,
    seen_cols: u64,
    /// Elements written.
    count: u64,
    buffer: Vec<u8>,
}

impl<W: Write> JsonDocument<W> {
    /// Starts a document.
    pub fn begin(writer: W, schema: SchemaRef, options: JsonOptions) -> Result<Self> {
        let form = Form::of(&schema);
        let (rows, cols) = (shape::matrix_rows(&schema), shape::matrix_cols(&schema));
        let mut buffer = Vec::new();
        match form {
            Form::Value => {}
            Form::Sparse | Form::Coo => {
                buffer.push(b'{');
                for (key, count) in [("rows", rows), ("cols", cols)] {
                    if let Some(count) = count {
                        buffer.extend_from_slice(format!("\"{key}\":{count},").as_bytes());
                    }
                }
                buffer.extend_from_slice(b"\"entries\":[");
            }
            _ => {
                Columns::check_names(&schema)?;
                buffer.push(b'[');
            }
        }
        Ok(JsonDocument { writer, options, form, rows, cols, seen_rows: 0, seen_cols: 0, count: 0, buffer })
    }

    /// Writes some rows.
    pub fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        if self.form == Form::Sparse {
            return self.write_sparse(batch);
        }
        let columns = Columns::new(batch, &self.options)?;
        let coordinates = match self.form {
            Form::Coo => Some((indices(batch.column(0))?, indices(batch.column(1))?)),
            _ => None,
        };
        for row in 0..batch.num_rows() {
            self.separate();
            if self.form == Form::Value && self.count > 1 {
                return Err(Error::malformed("exactly one row for a value", "more"));
            }
            columns.write_row(self.form, row, &mut self.buffer)?;
            if let Some((rows, cols)) = &coordinates {
                self.seen_rows = self.seen_rows.max(rows[row].saturating_add(1));
                self.seen_cols = self.seen_cols.max(cols[row].saturating_add(1));
            }
            self.flush(BUFFER_BYTES)?;
        }
        Ok(())
    }

    fn write_sparse(&mut self, batch: &RecordBatch) -> Result<()> {
        let list = batch.column(0).as_list::<i64>();
        if list.value_offsets().first() == list.value_offsets().last() {
            self.seen_rows += batch.num_rows() as u64;
            return Ok(());
        }
        let entries = list.values().as_struct();
        let cols = indices(entries.column(0))?;
        let values = encoder(&entries.fields()[1], entries.column(1).as_ref(), &self.options)?;
        let mut number = itoa::Buffer::new();
        for bounds in list.value_offsets().windows(2) {
            let entries = bounds[0] as usize..bounds[1] as usize;
            for (entry, col) in entries.clone().zip(&cols[entries]) {
                self.separate();
                self.buffer.push(b'[');
                self.buffer.extend_from_slice(number.format(self.seen_rows).as_bytes());
                self.buffer.push(b',');
                self.buffer.extend_from_slice(number.format(*col).as_bytes());
                self.buffer.push(b',');
                values.write(entry, &mut self.buffer)?;
                self.buffer.push(b']');
                self.seen_cols = self.seen_cols.max(col.saturating_add(1));
                self.flush(BUFFER_BYTES)?;
            }
            self.seen_rows += 1;
        }
        Ok(())
    }

    fn separate(&mut self) {
        if self.count > 0 {
            self.buffer.extend_from_slice(Columns::SEPARATOR);
        }
        self.count += 1;
    }

    fn flush(&mut self, least: usize) -> Result<()> {
        if self.buffer.len() >= least {
            self.writer.write_all(&self.buffer)?;
            self.buffer.clear();
        }
        Ok(())
    }

    /// Ends the document and returns the writer.
    pub fn end(mut self) -> Result<W> {
        match self.form {
            Form::Value if self.count == 0 => {
                return Err(Error::malformed("exactly one row for a value", "none"));
            }
            Form::Value => {}
            Form::Sparse | Form::Coo => {
                self.buffer.push(b']');
                for (key, declared, seen) in
                    [("rows", self.rows, self.seen_rows), ("cols", self.cols, self.seen_cols)]
                {
                    if declared.is_none() {
                        self.buffer.extend_from_slice(format!(",\"{key}\":{seen}").as_bytes());
                    }
                }
                self.buffer.push(b'}');
            }
            _ => self.buffer.push(b']'),
        }
        self.buffer.push(b'\n');
        self.flush(0)?;
        Ok(self.writer)
    }
}

/// The row or column indices of entries.
fn indices(array: &dyn Array) -> Result<Vec<u64>> {
    let cast = arrow_cast::cast(array, &DataType::UInt64)?;
    Ok(cast.as_primitive::<UInt64Type>().values().to_vec())
}
