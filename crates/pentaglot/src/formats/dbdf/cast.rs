//! Casts values from one type to another, and the values of Arrow arrays to those of an object; every cast is exact to
//! the bit, or fails.

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_buffer::{Buffer, MutableBuffer, ScalarBuffer};
use arrow_schema::{DataType as ArrowType, Schema};

use super::schema::Object;
use super::types::ValueType;
use crate::error::{Error, Result};
use crate::hub::matrix::{self, ColumnNumbers, widen};
use crate::hub::{Form, relax, shape};

/// Any value of any numeric type.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Number {
    Int(i128),
    /// The bits of a float64. Widening a float32 keeps sign, payload and signalling bit of a NaN.
    Float(u64),
}

impl Number {
    /// The value in `bytes`, which are as many as the type has.
    #[inline]
    pub(super) fn read(value_type: ValueType, bytes: &[u8]) -> Option<Number> {
        macro_rules! integer {
            ($type:ty) => {
                Number::Int(i128::from(<$type>::from_le_bytes(*bytes.first_chunk()?)))
            };
        }
        Some(match value_type {
            ValueType::UInt8 => integer!(u8),
            ValueType::UInt16 => integer!(u16),
            ValueType::UInt32 => integer!(u32),
            ValueType::UInt64 => integer!(u64),
            ValueType::Int8 => integer!(i8),
            ValueType::Int16 => integer!(i16),
            ValueType::Int32 => integer!(i32),
            ValueType::Int64 => integer!(i64),
            ValueType::Float32 => Number::Float(widen(u32::from_le_bytes(*bytes.first_chunk()?))),
            ValueType::Float64 => Number::Float(u64::from_le_bytes(*bytes.first_chunk()?)),
            ValueType::FixedStr16 | ValueType::Str => return None,
        })
    }

    /// Writes the value as another type into `out`, which has that type's length; returns `None` if the cast is not
    /// exact.
    #[inline]
    pub(super) fn write(self, value_type: ValueType, out: &mut [u8]) -> Option<()> {
        macro_rules! integer {
            ($type:ty) => {
                out.copy_from_slice(&<$type>::try_from(self.integer()?).ok()?.to_le_bytes())
            };
        }
        match value_type {
            ValueType::UInt8 => integer!(u8),
            ValueType::UInt16 => integer!(u16),
            ValueType::UInt32 => integer!(u32),
            ValueType::UInt64 => integer!(u64),
            ValueType::Int8 => integer!(i8),
            ValueType::Int16 => integer!(i16),
            ValueType::Int32 => integer!(i32),
            ValueType::Int64 => integer!(i64),
            ValueType::Float32 => out.copy_from_slice(&narrow(self.float()?)?.to_le_bytes()),
            ValueType::Float64 => out.copy_from_slice(&self.float()?.to_le_bytes()),
            ValueType::FixedStr16 | ValueType::Str => return None,
        }
        Some(())
    }

    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "the result of casting back is compared")]
    fn integer(self) -> Option<i128> {
        match self {
            Number::Int(integer) => Some(integer),
            Number::Float(bits) => {
                let integer = f64::from_bits(bits) as i128;
                // Compares bits, not values: -0.0 is not an integer.
                ((integer as f64).to_bits() == bits).then_some(integer)
            }
        }
    }

    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "the result of casting back is compared")]
    fn float(self) -> Option<u64> {
        match self {
            Number::Int(integer) => {
                let float = integer as f64;
                (float as i128 == integer).then_some(float.to_bits())
            }
            Number::Float(bits) => Some(bits),
        }
    }
}

impl std::fmt::Display for Number {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Number::Int(integer) => write!(f, "{integer}"),
            Number::Float(bits) => write!(f, "{:?}", f64::from_bits(*bits)),
        }
    }
}

const NAN32: u32 = 0x7f80_0000;

/// float32 bits to float64 bits; a NaN keeps its payload and signalling bit, which `as` would change.
fn widen(bits: u32) -> u64 {
    if bits & NAN32 != NAN32 {
        return f64::from(f32::from_bits(bits)).to_bits();
    }
    u64::from(bits >> 31) << 63 | 0x7ff << 52 | u64::from(bits & 0x007f_ffff) << 29
}

/// The float32 bits that widen to these float64 bits, if there are any.
#[expect(clippy::cast_possible_truncation, reason = "the result of casting back is compared")]
fn narrow(bits: u64) -> Option<u32> {
    let narrow = if f64::from_bits(bits).is_nan() {
        ((bits >> 63) as u32) << 31 | NAN32 | ((bits >> 29) as u32 & 0x007f_ffff)
    } else {
        (f64::from_bits(bits) as f32).to_bits()
    };
    (widen(narrow) == bits).then_some(narrow)
}

/// Whether every value of `from` is a value of `to`.
pub(super) fn always_fits(from: ValueType, to: ValueType) -> bool {
    from == to
        || !matches!(from, ValueType::FixedStr16 | ValueType::Str) && widen::holds(&to.arrow(), &from.arrow())
}

/// Casts values one by one; `Err` is the index of the first that cannot be cast exactly.
pub(super) fn cast(bytes: &[u8], from: ValueType, to: ValueType, out: &mut [u8]) -> Result<(), u64> {
    // Dispatches on the pair of types once, outside the loops.
    macro_rules! to {
        ($from:expr) => {
            match to {
                ValueType::UInt8 => cast_as(bytes, $from, ValueType::UInt8, out),
                ValueType::UInt16 => cast_as(bytes, $from, ValueType::UInt16, out),
                ValueType::UInt32 => cast_as(bytes, $from, ValueType::UInt32, out),
                ValueType::UInt64 => cast_as(bytes, $from, ValueType::UInt64, out),
                ValueType::Int8 => cast_as(bytes, $from, ValueType::Int8, out),
                ValueType::Int16 => cast_as(bytes, $from, ValueType::Int16, out),
                ValueType::Int32 => cast_as(bytes, $from, ValueType::Int32, out),
                ValueType::Int64 => cast_as(bytes, $from, ValueType::Int64, out),
                ValueType::Float32 => cast_as(bytes, $from, ValueType::Float32, out),
                ValueType::Float64 => cast_as(bytes, $from, ValueType::Float64, out),
                ValueType::FixedStr16 | ValueType::Str => Err(0),
            }
        };
    }
    match from {
        ValueType::UInt8 => to!(ValueType::UInt8),
        ValueType::UInt16 => to!(ValueType::UInt16),
        ValueType::UInt32 => to!(ValueType::UInt32),
        ValueType::UInt64 => to!(ValueType::UInt64),
        ValueType::Int8 => to!(ValueType::Int8),
        ValueType::Int16 => to!(ValueType::Int16),
        ValueType::Int32 => to!(ValueType::Int32),
        ValueType::Int64 => to!(ValueType::Int64),
        ValueType::Float32 => to!(ValueType::Float32),
        ValueType::Float64 => to!(ValueType::Float64),
        ValueType::FixedStr16 | ValueType::Str => Err(0),
    }
}

#[inline(always)]
fn cast_as(bytes: &[u8], from: ValueType, to: ValueType, out: &mut [u8]) -> Result<(), u64> {
    let cells = bytes.chunks_exact(from.size()).zip(out.chunks_exact_mut(to.size()));
    for (index, (cell, out)) in (0u64..).zip(cells) {
        Number::read(from, cell).and_then(|number| number.write(to, out)).ok_or(index)?;
    }
    Ok(())
}

/// The cells of each column of a table, or all cells of a dense matrix, as the object's types.
pub(super) fn plain_columns(
    object: &Object,
    schema: &Schema,
    batch: &RecordBatch,
    first: u64,
) -> Result<Vec<Buffer>> {
    if object.form == Form::Table {
        let columns = batch.columns().iter().zip(schema.fields()).zip(&object.value_types);
        return columns
            .map(|((column, field), value_type)| {
                cells(column, *value_type, &|index| (first + index, field.name().clone()))
            })
            .collect();
    }
    let rows = batch.column(0).as_fixed_size_list();
    let width = object.cols.max(1);
    check_nulls(rows, &|index| (first + index, shape::ROW_FIELD.to_owned()))?;
    let place = |index: u64| (first + index / width, shape::column_name(index % width));
    Ok(vec![cells(rows.values(), object.value_type(), &place)?])
}

/// Returns row and column of a value by its index.
type Place<'a> = &'a dyn Fn(u64) -> (u64, String);

fn check_nulls(array: &dyn Array, place: Place<'_>) -> Result<()> {
    if array.null_count() == 0 {
        return Ok(());
    }
    let index = (0..array.len()).find(|index| array.is_null(*index)).unwrap_or(0);
    let (row, column) = place(index as u64);
    let hint = relax::no_nulls_hint(array.data_type(), &column);
    Err(Error::lossy(format!("row {row}, column {column:?}: dbdf cannot hold a null")).hint(hint))
}

/// The bytes of an array's values as the given type, which holds all values of the array's.
fn cells(array: &ArrayRef, value_type: ValueType, place: Place<'_>) -> Result<Buffer> {
    check_nulls(array, place)?;
    if value_type == ValueType::FixedStr16 {
        return fixed_strings(array, place);
    }
    let size = value_type.size();
    let array = match array.data_type() {
        kind if *kind == value_type.arrow() => array.clone(),
        ArrowType::Boolean | ArrowType::Float16 => arrow_cast::cast(array, &value_type.arrow())?,
        kind => {
            // 16-bit integers, which DAPHNE's dialect does not have.
            let from = ValueType::from_arrow(kind)
                .filter(|from| always_fits(*from, value_type))
                .ok_or_else(|| Error::unsupported(format!("{kind} as {value_type}")))?;
            let narrow = cells(array, from, place)?;
            let mut wide = MutableBuffer::new(0);
            wide.resize(array.len() * size, 0);
            cast(&narrow, from, value_type, wide.as_slice_mut())
                .map_err(|_| Error::unsupported(format!("{kind} as {value_type}")))?;
            return Ok(wide.into());
        }
    };
    let data = array.to_data();
    let bytes = data.buffers().first().cloned().unwrap_or_default();
    Ok(bytes.slice_with_length(data.offset() * size, data.len() * size))
}

fn fixed_strings(array: &ArrayRef, place: Place<'_>) -> Result<Buffer> {
    let texts = array.as_string_opt::<i32>().ok_or_else(|| Error::unsupported("strings of another kind"))?;
    let mut bytes = Vec::new();
    for (index, text) in (0u64..).zip(texts.iter()) {
        let text = text.unwrap_or_default();
        if text.len() > 15 || text.contains('\0') {
            let (row, column) = place(index);
            let found = format!(
                "row {row}, column {column:?}: expected a string of at most 15 bytes without NUL, found {text:?}"
            );
            return Err(Error::lossy(found));
        }
        bytes.extend_from_slice(text.as_bytes());
        bytes.resize(bytes.len().next_multiple_of(16).max((bytes.len() - text.len()) + 16), 0);
    }
    Ok(bytes.into())
}

/// Rows of a sparse matrix, as arrays.
pub(super) struct SparseRows {
    /// Positions in `cols` and `values`; the start of the first row comes first.
    pub(super) ends: ScalarBuffer<i64>,
    pub(super) cols: ColumnNumbers,
    pub(super) values: Buffer,
}

/// The entries of a batch of sparse rows, as the object's type.
pub(super) fn sparse_rows(object: &Object, batch: &RecordBatch, first: u64) -> Result<SparseRows> {
    let rows = matrix::SparseRows::of(batch.column(0), first)?;
    let row_of = |entry: u64| first + rows.row_of(usize::try_from(entry).unwrap_or(usize::MAX)) as u64;
    let values = cells(&rows.values, object.value_type(), &|entry| (row_of(entry), "value".to_owned()))?;
    Ok(SparseRows { ends: rows.offsets.inner().clone(), cols: rows.cols, values })
}
