//! Rows of a matrix by their non-zero entries: dense and sparse rows with equal values have the same encoding.

use arrow_array::cast::AsArray;
use arrow_array::types::{UInt32Type, UInt64Type};
use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;

use super::column::HashedColumn;
use super::encoder::Encoder;
use crate::error::{Error, Result};

/// Rows of a matrix that are ready to be encoded.
pub(crate) struct MatrixRows {
    rows: usize,
    values: HashedColumn,
    places: Places,
}

/// The positions of the values.
enum Places {
    /// Row `i` is the values `i * cols..(i + 1) * cols`.
    Dense { cols: usize },
    /// Row `i` is the entries `offsets[i]..offsets[i + 1]`.
    Sparse { offsets: Vec<usize>, cols: Vec<u64> },
}

impl MatrixRows {
    pub(crate) fn new(array: &ArrayRef) -> Result<Self> {
        let other = || Error::unsupported("the identity of a matrix whose rows are neither dense nor sparse");
        let missing = || Error::unsupported("the identity of a matrix with missing values");
        if array.null_count() > 0 {
            return Err(missing());
        }
        let (values, places) = match array.data_type() {
            DataType::FixedSizeList(_, cols) => {
                let values = HashedColumn::new(array.as_fixed_size_list().values())?;
                (values, Places::Dense { cols: *cols as usize })
            }
            DataType::LargeList(_) => {
                let list = array.as_list::<i64>();
                let first = list.value_offsets()[0] as usize;
                let last = list.value_offsets()[list.len()] as usize;
                let entries = list.values().slice(first, last - first);
                let entries = entries.as_struct_opt().ok_or_else(other)?;
                let [col, value] = entries.columns() else { return Err(other()) };
                if entries.null_count() > 0 || col.null_count() > 0 {
                    return Err(missing());
                }
                let cols = match col.data_type() {
                    DataType::UInt32 => {
                        col.as_primitive::<UInt32Type>().values().iter().map(|col| (*col).into()).collect()
                    }
                    DataType::UInt64 => col.as_primitive::<UInt64Type>().values().to_vec(),
                    _ => return Err(other()),
                };
                let offsets = list.value_offsets().iter().map(|offset| *offset as usize - first).collect();
                (HashedColumn::new(value)?, Places::Sparse { offsets, cols })
            }
            _ => return Err(other()),
        };
        if values.has_missing() {
            return Err(missing());
        }
        Ok(MatrixRows { rows: array.len(), values, places })
    }

    pub(crate) fn len(&self) -> usize {
        self.rows
    }

    pub(super) fn encode(&self, out: &mut Encoder<'_>) -> Result<()> {
        let mut entries = Vec::new();
        (0..self.rows).try_for_each(|row| self.encode_row(row, false, &mut entries, out))
    }

    /// Encodes a row. With `as_stored`, the entries of a sparse row are all that are stored, in their order; else those that
    /// are not zero, by ascending column. For most matrices that is the same. `entries` is memory that is used again.
    pub(crate) fn encode_row(
        &self,
        row: usize,
        as_stored: bool,
        entries: &mut Vec<(u64, usize)>,
        out: &mut Encoder<'_>,
    ) -> Result<()> {
        entries.clear();
        match &self.places {
            Places::Dense { cols } => {
                let at = row * cols;
                let kept = (0..*cols).filter(|col| !self.values.is_zero(at + col));
                entries.extend(kept.map(|col| (col as u64, at + col)));
            }
            Places::Sparse { offsets, cols } => {
                let stored = offsets[row]..offsets[row + 1];
                let kept = stored.filter(|entry| as_stored || !self.values.is_zero(*entry));
                entries.extend(kept.map(|entry| (cols[entry], entry)));
                if !as_stored {
                    sort_distinct(entries)?;
                }
            }
        }
        out.varint(entries.len() as u64)?;
        entries.iter().try_for_each(|(col, entry)| {
            out.varint(*col)?;
            self.values.encode(*entry, out)
        })
    }
}

/// Sorts entries by column; errs if a column comes twice.
fn sort_distinct(entries: &mut [(u64, usize)]) -> Result<()> {
    if !entries.is_sorted() {
        entries.sort_unstable();
    }
    match entries.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        Some(pair) => {
            let message = format!("the identity of a matrix with column {} twice in a row", pair[0].0);
            Err(Error::unsupported(message))
        }
        None => Ok(()),
    }
}
