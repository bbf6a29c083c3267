//! Builds and reads the dense and sparse rows of matrices, and determines common types of values ([`widen`]). No other
//! module does either.
//!
//! ```
//! use std::sync::Arc;
//! use pentaglot::arrow::array::{Array, ArrayRef, Float64Array, UInt32Array};
//! use pentaglot::arrow::buffer::OffsetBuffer;
//! use pentaglot::arrow::schema::DataType;
//! use pentaglot::hub::{matrix, shape};
//! // Row 0 has an entry in column 3, row 1 has none.
//! let schema = shape::sparse_schema(DataType::Float64, Some(2), 4);
//! let cols: ArrayRef = Arc::new(UInt32Array::from(vec![3]));
//! let values: ArrayRef = Arc::new(Float64Array::from(vec![0.5]));
//! let rows = matrix::sparse_rows(&schema, OffsetBuffer::new(vec![0, 1, 1].into()), cols, values)?;
//! let back = matrix::SparseRows::of(&rows, 0)?;
//! assert_eq!((back.len(), back.cols.get(0)), (2, 3));
//! # Ok::<(), pentaglot::Error>(())
//! ```

#[cfg(any(feature = "npy", feature = "matrix_market"))]
pub(crate) mod build;
#[cfg(feature = "matrix_market")]
pub(crate) mod gather;
pub mod widen;

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{UInt32Type, UInt64Type};
use arrow_array::{
    Array, ArrayRef, FixedSizeListArray, LargeListArray, StructArray, UInt32Array, UInt64Array,
};
use arrow_buffer::{OffsetBuffer, ScalarBuffer};
use arrow_schema::{DataType, Field, FieldRef, Fields, Schema};

use crate::error::{Error, Result};
use crate::hub::type_text::print_type;

/// The field of a dense matrix's values, and how many a row has.
pub fn dense_item(schema: &Schema) -> Result<(&FieldRef, i32)> {
    match schema.fields().first().map(|field| field.data_type()) {
        Some(DataType::FixedSizeList(item, cols)) => Ok((item, *cols)),
        Some(other) => Err(Error::unsupported(format!("a dense matrix with rows of {}", print_type(other)))),
        None => Err(Error::unsupported("a dense matrix without rows of values")),
    }
}

/// The list item of a sparse matrix's rows, and its fields `col` and `value`.
pub fn sparse_entry(schema: &Schema) -> Result<(&FieldRef, &Fields)> {
    if let Some(DataType::LargeList(entry)) = schema.fields().first().map(|field| field.data_type())
        && let DataType::Struct(fields) = entry.data_type()
        && fields.len() == 2
    {
        return Ok((entry, fields));
    }
    Err(Error::unsupported("a sparse matrix whose rows are not lists of (col, value)"))
}

/// The field of a matrix's values, in dense or sparse rows.
pub fn value_field(schema: &Schema) -> Option<&Field> {
    match dense_item(schema) {
        Ok((item, _)) => Some(item),
        Err(_) => sparse_entry(schema).ok().and_then(|(_, fields)| fields.get(1)).map(AsRef::as_ref),
    }
}

/// Dense rows of a schema from their values, row by row.
pub fn dense_rows(schema: &Schema, values: ArrayRef, rows: usize) -> Result<ArrayRef> {
    let (item, cols) = dense_item(schema)?;
    Ok(Arc::new(FixedSizeListArray::try_new_with_length(Arc::clone(item), cols, values, None, rows)?))
}

/// Sparse rows of a schema from their parts: the offsets of the rows, the columns of the entries (UInt32 or UInt64),
/// and their values.
pub fn sparse_rows(
    schema: &Schema,
    offsets: OffsetBuffer<i64>,
    cols: ArrayRef,
    values: ArrayRef,
) -> Result<ArrayRef> {
    let (entry, fields) = sparse_entry(schema)?;
    let wanted = fields.first().map_or(&DataType::UInt32, |field| field.data_type());
    let cols = if cols.data_type() == wanted { cols } else { as_numbers(&cols, wanted)? };
    let entries = StructArray::try_new(fields.clone(), vec![cols, values], None)?;
    Ok(Arc::new(LargeListArray::try_new(Arc::clone(entry), offsets, Arc::new(entries), None)?))
}

/// Like [`sparse_rows`], from columns as plain numbers.
pub fn sparse_rows_of(
    schema: &Schema,
    offsets: Vec<i64>,
    cols: Vec<u64>,
    values: ArrayRef,
) -> Result<ArrayRef> {
    let (_, fields) = sparse_entry(schema)?;
    let cols: ArrayRef = match fields.first().map(|field| field.data_type()) {
        Some(DataType::UInt64) => Arc::new(UInt64Array::from(cols)),
        _ => {
            let narrow = cols.iter().map(|col| u32::try_from(*col));
            let narrow = narrow.collect::<Result<Vec<u32>, _>>();
            let narrow = narrow.map_err(|_| Error::limit("the limit", u32::MAX, "a larger column number"))?;
            Arc::new(UInt32Array::from(narrow))
        }
    };
    sparse_rows(schema, OffsetBuffer::new(offsets.into()), cols, values)
}

fn as_numbers(array: &ArrayRef, wanted: &DataType) -> Result<ArrayRef> {
    let options = arrow_cast::CastOptions { safe: false, ..Default::default() };
    arrow_cast::cast_with_options(array, wanted, &options)
        .map_err(|error| Error::lossy(format!("a column number: {error}")))
}

/// The parts of an array of sparse rows.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct SparseRows {
    /// Positions in `cols` and `values`: the start of each row, and the end of the last. The first need not be
    /// 0.
    pub offsets: OffsetBuffer<i64>,
    /// The column of each entry.
    pub cols: ColumnNumbers,
    /// The value of each entry.
    pub values: ArrayRef,
}

/// The columns of entries.
#[derive(Debug, Clone)]
pub enum ColumnNumbers {
    /// Below 2^32.
    Narrow(ScalarBuffer<u32>),
    /// Of 64 bits.
    Wide(ScalarBuffer<u64>),
}

impl ColumnNumbers {
    /// The column of an entry.
    #[inline]
    pub fn get(&self, entry: usize) -> u64 {
        match self {
            ColumnNumbers::Narrow(cols) => u64::from(cols[entry]),
            ColumnNumbers::Wide(cols) => cols[entry],
        }
    }
}

impl SparseRows {
    /// The parts of sparse rows; `first` is the number of the first row, for messages. A null row, entry or column
    /// is an error.
    pub fn of(rows: &dyn Array, first: u64) -> Result<Self> {
        let not_sparse = || Error::unsupported("a sparse matrix whose rows are not lists of (col, value)");
        let list = rows.as_list_opt::<i64>().ok_or_else(not_sparse)?;
        let entries = list
            .values()
            .as_struct_opt()
            .filter(|entries| entries.num_columns() == 2)
            .ok_or_else(not_sparse)?;
        let offsets = list.offsets().clone();
        let null = |row: usize, what: &str| {
            Err(Error::lossy(format!("row {}: {what} of a matrix is null", first + row as u64)))
        };
        if list.null_count() > 0 {
            return null((0..list.len()).find(|row| list.is_null(*row)).unwrap_or(0), "a row");
        }
        let row_of = |entry: usize| offsets.partition_point(|end| *end <= entry as i64).saturating_sub(1);
        for (array, what) in [(entries as &dyn Array, "an entry"), (entries.column(0), "a column number")] {
            if array.null_count() > 0 {
                return null(row_of((0..array.len()).find(|at| array.is_null(*at)).unwrap_or(0)), what);
            }
        }
        let cols = match entries.column(0).data_type() {
            DataType::UInt32 => {
                ColumnNumbers::Narrow(entries.column(0).as_primitive::<UInt32Type>().values().clone())
            }
            DataType::UInt64 => {
                ColumnNumbers::Wide(entries.column(0).as_primitive::<UInt64Type>().values().clone())
            }
            _ => {
                let wide = as_numbers(entries.column(0), &DataType::UInt64)?;
                ColumnNumbers::Wide(wide.as_primitive::<UInt64Type>().values().clone())
            }
        };
        Ok(SparseRows { offsets, cols, values: Arc::clone(entries.column(1)) })
    }

    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The entries of a row.
    pub fn row(&self, row: usize) -> std::ops::Range<usize> {
        self.offsets[row] as usize..self.offsets[row + 1] as usize
    }

    /// The entries of all rows.
    pub fn entries(&self) -> std::ops::Range<usize> {
        self.offsets[0] as usize..self.offsets[self.offsets.len() - 1] as usize
    }

    /// The row of an entry.
    pub fn row_of(&self, entry: usize) -> usize {
        self.offsets.partition_point(|end| *end <= entry as i64).saturating_sub(1)
    }
}
