//! The typed interface: a whole matrix in memory.

use crate::hub::Selection;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_buffer::{OffsetBuffer, ScalarBuffer};
use arrow_schema::{Schema, SchemaRef};

use crate::error::{Context, Error, Result};
use crate::formats::{Format, ReadOptions, WriteOptions, Written};
use crate::hub::{Form, matrix, rows, shape};
use crate::sink::Sink;
use crate::source::Source;

use super::types::{DataType, ValueType};
use super::{Dbdf, ID, open, read};

/// A matrix in memory. Cells and entries are Arrow arrays (`pentaglot::arrow`), which share memory.
///
/// ```
/// use std::sync::Arc;
/// use pentaglot::arrow::{array::{Float64Array, UInt32Array}, buffer::OffsetBuffer};
/// use pentaglot::formats::dbdf::Matrix;
/// // 0 7 0
/// // 5 6 0
/// let matrix = Matrix::Sparse {
///     rows: 2,
///     cols: 3,
///     row_offsets: OffsetBuffer::new(vec![0, 1, 3].into()),
///     column_indices: Arc::new(UInt32Array::from(vec![1, 0, 1])),
///     values: Arc::new(Float64Array::from(vec![7.0, 5.0, 6.0])),
/// };
/// assert_eq!(matrix.size(), (2, 3));
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Matrix {
    /// Every cell, row by row.
    Dense {
        /// Number of rows.
        rows: u64,
        /// Number of columns.
        cols: u64,
        /// The cells.
        values: ArrayRef,
    },
    /// Compressed sparse rows.
    Sparse {
        /// Number of rows.
        rows: u64,
        /// Number of columns.
        cols: u64,
        /// The offset of the first entry of each row, and the end of the last row.
        row_offsets: OffsetBuffer<i64>,
        /// The column of each entry, UInt32 (UInt64 past 2^32 columns).
        column_indices: ArrayRef,
        /// The value of each entry.
        values: ArrayRef,
    },
}

impl Matrix {
    /// The type of the values.
    pub fn value_type(&self) -> Option<ValueType> {
        let (Matrix::Dense { values, .. } | Matrix::Sparse { values, .. }) = self;
        ValueType::from_arrow(values.data_type())
    }

    /// The numbers of rows and columns.
    pub fn size(&self) -> (u64, u64) {
        let (Matrix::Dense { rows, cols, .. } | Matrix::Sparse { rows, cols, .. }) = self;
        (*rows, *cols)
    }

    /// The whole matrix as one batch of rows.
    pub(super) fn to_batch(&self) -> Result<RecordBatch> {
        let (rows, cols) = self.size();
        let count = usize::try_from(rows)
            .map_err(|_| Error::limit("the address space", usize::MAX, format!("{rows} rows")))?;
        let (schema, row): (Schema, ArrayRef) = match self {
            Matrix::Dense { values, .. } => {
                let schema = shape::dense_schema(values.data_type().clone(), Some(rows), cols)?;
                let list = matrix::dense_rows(&schema, Arc::clone(values), count)?;
                (schema, list)
            }
            Matrix::Sparse { row_offsets, column_indices, values, .. } => {
                let schema = shape::sparse_schema(values.data_type().clone(), Some(rows), cols);
                if row_offsets.len() != count + 1 {
                    let (expected, found) = (count + 1, row_offsets.len());
                    return Err(Error::usage(format!("expected {expected} row offsets, found {found}")));
                }
                let list = matrix::sparse_rows(
                    &schema,
                    row_offsets.clone(),
                    Arc::clone(column_indices),
                    Arc::clone(values),
                )?;
                (schema, list)
            }
        };
        rows::batch(SchemaRef::new(schema), vec![row], count)
    }
}

/// Writes a matrix as a file, with the dialect and block options given.
///
/// ```
/// use std::sync::Arc;
/// use pentaglot::arrow::array::Float64Array;
/// use pentaglot::formats::dbdf::{Matrix, read_matrix, write_matrix};
/// use pentaglot::formats::{ReadOptions, WriteOptions};
/// use pentaglot::{Sink, Source};
/// let values = Arc::new(Float64Array::from(vec![1.5, 0.0, -2.0, 4.0]));
/// let (sink, memory) = Sink::memory();
/// let matrix = Matrix::Dense { rows: 2, cols: 2, values };
/// write_matrix(sink, &matrix, &WriteOptions::default())?;
/// let back = read_matrix(&Source::from_bytes("back", memory.take()), &ReadOptions::default())?;
/// assert_eq!(back, matrix);
/// # Ok::<(), pentaglot::Error>(())
/// ```
pub fn write_matrix(sink: Sink, matrix: &Matrix, options: &WriteOptions) -> Result<Written> {
    let batch = matrix.to_batch().in_format(ID)?;
    let mut options = options.clone();
    options.row_count = Some(matrix.size().0);
    let plan = Dbdf.plan(&batch.schema(), &options)?;
    plan.plan().check(options.allow_lossy)?;
    let mut writer = plan.create(sink)?;
    writer.write(&batch)?;
    writer.finish()
}

/// Reads the matrix of a file of any dialect and any block types. A frame is an `Unsupported` error.
///
/// ```
/// use pentaglot::formats::dbdf::{Matrix, read_matrix};
/// use pentaglot::formats::ReadOptions;
/// use pentaglot::Source;
/// // 1 x 2 cells of uint8, as the document has it: header, position, block header, cells.
/// let mut file = vec![1u8, 1, 1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 1];
/// file.extend([0; 16]);
/// file.extend([1, 0, 0, 0, 2, 0, 0, 0, 1, 1]);
/// file.extend([40, 2]);
/// let source = Source::from_bytes("cells", file);
/// let Matrix::Dense { rows, cols, values } = read_matrix(&source, &ReadOptions::default())? else { panic!() };
/// assert_eq!((rows, cols, format!("{values:?}").contains("40")), (1, 2, true));
/// # Ok::<(), pentaglot::Error>(())
/// ```
pub fn read_matrix(source: &Source, options: &ReadOptions) -> Result<Matrix> {
    whole(source, options).in_format(ID)
}

fn whole(source: &Source, options: &ReadOptions) -> Result<Matrix> {
    let file = Arc::new(open(source.clone(), options)?);
    let header = &file.layout.header;
    if !matches!(header.data_type, DataType::DenseMatrix | DataType::CsrMatrix) {
        return Err(Error::unsupported(format!("expected a matrix, found a {}", header.data_type)));
    }
    let (rows, cols) = (header.rows, header.cols);
    let form = Form::of(&file.summary.schema);
    // One batch, so that dense cells are read without a further copy.
    let batch_rows = usize::try_from(rows)
        .map_err(|_| Error::limit("the address space", usize::MAX, format!("{rows} rows")))?;
    let request = Selection::new(&file.summary.schema, file.summary.rows).with_batch_rows(batch_rows);
    let mut batches = read::read(&file, &request)?;
    let batch = match batches.next() {
        Some(batch) => batch?,
        None => RecordBatch::new_empty(batches.schema()),
    };
    let row = batch.column(0);
    if form == Form::Dense {
        return Ok(Matrix::Dense { rows, cols, values: Arc::clone(row.as_fixed_size_list().values()) });
    }
    let list = row.as_list::<i64>();
    let entries = list.values().as_struct();
    let row_offsets =
        if list.is_empty() { OffsetBuffer::new(ScalarBuffer::from(vec![0])) } else { list.offsets().clone() };
    Ok(Matrix::Sparse {
        rows,
        cols,
        row_offsets,
        column_indices: Arc::clone(entries.column(0)),
        values: Arc::clone(entries.column(1)),
    })
}
