//! Encodes Arrow arrays as the bytes of NumPy arrays.

use arrow_array::cast::AsArray;
use arrow_array::types::Date32Type;
use arrow_array::{Array, ArrayRef};
use arrow_buffer::Buffer;
use arrow_schema::DataType;

use super::decode::days_of_month;
use super::types::{Dtype, DtypeKind, Member, Scalar};
use crate::cursor::{allocate, allocate_zeroed};
use crate::error::{Error, Result};
use crate::hub::relax;
use crate::limits::Budget;

/// Which rows are being encoded, for messages.
#[derive(Debug, Clone)]
pub(in crate::formats) struct Origin {
    pub(in crate::formats) first_row: u64,
    pub(in crate::formats) column: String,
    /// Elements per row.
    pub(in crate::formats) per_row: u64,
}

impl Origin {
    fn lossy(&self, index: usize, why: impl std::fmt::Display) -> Error {
        let row = self.first_row + index as u64 / self.per_row.max(1);
        Error::lossy(format!("row {row}, column {:?}: {why}", self.column))
    }

    fn inner(&self, elements: u64) -> Origin {
        Origin { per_row: self.per_row.saturating_mul(elements), ..self.clone() }
    }
}

/// The bytes of an array's elements, each of `dtype` and `shape`, one after another.
pub(in crate::formats) fn encode(
    dtype: &Dtype,
    shape: &[u64],
    array: &ArrayRef,
    origin: &Origin,
    budget: &Budget,
) -> Result<Buffer> {
    let keeps_nulls = is_leaf(dtype, array) && matches!(dtype, Dtype::Scalar(scalar) if scalar.is_nullable());
    if !keeps_nulls
        && array.null_count() > 0
        && let Some(index) = (0..array.len()).find(|index| array.is_null(*index))
    {
        let hint = relax::no_nulls_hint(array.data_type(), &origin.column);
        return Err(origin.lossy(index, "NumPy has no null").hint(hint));
    }
    if !shape.is_empty() && !is_leaf(dtype, array) {
        let Some(list) = array.as_fixed_size_list_opt() else { return Err(mismatch(array)) };
        let width = usize::try_from(list.value_length()).unwrap_or(0);
        let start = usize::try_from(list.value_offset(0)).unwrap_or(0);
        let values = list.values().slice(start, list.len() * width);
        return encode(dtype, shape, &values, &origin.inner(width as u64), budget);
    }
    match dtype {
        Dtype::Scalar(scalar) => encode_scalar(*scalar, array, origin, budget),
        Dtype::Struct(members) => {
            let Some(records) = array.as_struct_opt() else { return Err(mismatch(array)) };
            encode_members(members, records.columns(), array.len(), origin, budget)
        }
    }
}

/// Whether an array holds the elements themselves, not lists of them.
fn is_leaf(dtype: &Dtype, array: &ArrayRef) -> bool {
    let DataType::FixedSizeList(item, _) = array.data_type() else { return true };
    let complex = matches!(dtype, Dtype::Scalar(Scalar { kind: DtypeKind::Complex, .. }));
    complex && matches!(item.data_type(), DataType::Float32 | DataType::Float64)
}

/// Columns as records one after another.
pub(in crate::formats) fn encode_members(
    members: &[Member],
    columns: &[ArrayRef],
    count: usize,
    origin: &Origin,
    budget: &Budget,
) -> Result<Buffer> {
    let sizes: Vec<usize> = members
        .iter()
        .map(|member| member.bytes().and_then(|size| usize::try_from(size).ok()).unwrap_or(0))
        .collect();
    let stride: usize = sizes.iter().sum();
    let total = (stride as u64).saturating_mul(count as u64);
    let mut out = allocate_zeroed(total, budget)?;
    let mut columns = columns.iter();
    let mut start = 0;
    for (member, size) in members.iter().zip(sizes) {
        if !member.is_padding() {
            let Some(column) = columns.next() else {
                return Err(Error::usage("fewer columns than the schema has"));
            };
            let column_name = if origin.column.is_empty() {
                member.name.clone()
            } else {
                format!("{}.{}", origin.column, member.name)
            };
            let own = Origin { column: column_name, ..origin.clone() };
            let bytes = encode(&member.dtype, &member.shape, column, &own, budget)?;
            if size > 0 {
                let records = out.as_slice_mut().chunks_exact_mut(stride);
                for (record, value) in records.zip(bytes.chunks_exact(size)) {
                    if let Some(target) = record.get_mut(start..start + size) {
                        target.copy_from_slice(value);
                    }
                }
            }
        }
        start += size;
    }
    Ok(out.into())
}

fn mismatch(array: &ArrayRef) -> Error {
    Error::usage(format!(
        "rows of type {} do not have the schema that the file was created with",
        array.data_type()
    ))
}

/// The buffer of a primitive array's values.
fn plain_bytes(array: &ArrayRef, size: usize) -> Result<Buffer> {
    let data = array.to_data();
    let Some(buffer) = data.buffers().first() else { return Err(mismatch(array)) };
    let (start, len) = (data.offset() * size, data.len() * size);
    if start + len > buffer.len() {
        return Err(mismatch(array));
    }
    Ok(buffer.slice_with_length(start, len))
}

fn encode_scalar(scalar: Scalar, array: &ArrayRef, origin: &Origin, budget: &Budget) -> Result<Buffer> {
    let size = usize::try_from(scalar.bytes).unwrap_or(0);
    match scalar.kind {
        DtypeKind::Int | DtypeKind::Uint | DtypeKind::Float | DtypeKind::Void => plain_bytes(array, size),
        DtypeKind::Bool => {
            let Some(bits) = array.as_boolean_opt() else { return Err(mismatch(array)) };
            let mut bytes: Vec<u8> = allocate(array.len() as u64, budget)?;
            bytes.extend(bits.values().iter().map(u8::from));
            Ok(Buffer::from_vec(bytes))
        }
        DtypeKind::Complex => {
            let Some(list) = array.as_fixed_size_list_opt() else { return Err(mismatch(array)) };
            let start = usize::try_from(list.value_offset(0)).unwrap_or(0);
            let parts = list.values().slice(start, list.len() * 2);
            if parts.null_count() > 0 {
                let index = (0..parts.len()).find(|index| parts.is_null(*index)).unwrap_or(0);
                return Err(origin.lossy(index / 2, "NumPy has no null"));
            }
            plain_bytes(&parts, size / 2)
        }
        DtypeKind::Bytes => {
            let mut out = Padded::new(array.len(), size, budget)?;
            for (index, value) in binary_values(array)?.enumerate() {
                if value.last() == Some(&0) {
                    return Err(
                        origin.lossy(index, "a value that ends in a zero byte cannot be told from padding")
                    );
                }
                out.put(value.iter().copied()).map_err(|()| {
                    origin.lossy(index, format_args!("{} bytes do not fit {}", value.len(), scalar.text()))
                })?;
            }
            Ok(out.finish())
        }
        DtypeKind::Text => {
            let mut out = Padded::new(array.len(), size, budget)?;
            for (index, value) in text_values(array)?.enumerate() {
                if value.ends_with('\0') {
                    return Err(origin.lossy(index, "a text that ends in NUL cannot be told from padding"));
                }
                out.put(value.chars().flat_map(|character| (character as u32).to_le_bytes())).map_err(
                    |()| {
                        origin.lossy(
                            index,
                            format_args!("{} characters do not fit {}", value.chars().count(), scalar.text()),
                        )
                    },
                )?;
            }
            Ok(out.finish())
        }
        DtypeKind::Datetime(unit) | DtypeKind::Timedelta(unit) => {
            let date = *array.data_type() == DataType::Date32;
            let factor = unit.factor(date);
            let nulls = array.nulls();
            let mut out: Vec<i64> = allocate(array.len() as u64, budget)?;
            for (index, value) in whole_values(array)?.enumerate() {
                if nulls.is_some_and(|nulls| nulls.is_null(index)) {
                    out.push(i64::MIN);
                    continue;
                }
                let scaled = if unit.is_calendar() {
                    months_of(value).filter(|months| months % factor == 0).map(|months| months / factor)
                } else {
                    (value % factor == 0 && value != i64::MIN).then(|| value / factor)
                };
                out.push(scaled.ok_or_else(|| {
                    origin.lossy(index, format_args!("{value} does not fit {}", scalar.text()))
                })?);
            }
            Ok(Buffer::from_vec(out))
        }
    }
}

/// The month that begins on a day.
fn months_of(days: i64) -> Option<i64> {
    let guess = days.checked_mul(4800)?.div_euclid(146_097);
    (guess - 2..=guess + 2).find(|months| days_of_month(*months) == Some(days))
}

/// Values of constant size, padded with zeros.
struct Padded {
    bytes: Vec<u8>,
    size: usize,
}

impl Padded {
    fn new(count: usize, size: usize, budget: &Budget) -> Result<Padded> {
        Ok(Padded { bytes: allocate((count as u64).saturating_mul(size as u64), budget)?, size })
    }

    fn put(&mut self, value: impl Iterator<Item = u8>) -> Result<(), ()> {
        let end = self.bytes.len() + self.size;
        self.bytes.extend(value);
        if self.bytes.len() > end {
            return Err(());
        }
        self.bytes.resize(end, 0);
        Ok(())
    }

    fn finish(self) -> Buffer {
        Buffer::from_vec(self.bytes)
    }
}

fn binary_values(array: &ArrayRef) -> Result<Box<dyn Iterator<Item = &[u8]> + '_>> {
    if let Some(values) = array.as_binary_opt::<i32>() {
        return Ok(Box::new(values.iter().map(Option::unwrap_or_default)));
    }
    let values = array.as_binary_opt::<i64>().ok_or_else(|| mismatch(array))?;
    Ok(Box::new(values.iter().map(Option::unwrap_or_default)))
}

fn text_values(array: &ArrayRef) -> Result<Box<dyn Iterator<Item = &str> + '_>> {
    if let Some(values) = array.as_string_opt::<i32>() {
        return Ok(Box::new(values.iter().map(Option::unwrap_or_default)));
    }
    let values = array.as_string_opt::<i64>().ok_or_else(|| mismatch(array))?;
    Ok(Box::new(values.iter().map(Option::unwrap_or_default)))
}

fn whole_values(array: &ArrayRef) -> Result<Box<dyn Iterator<Item = i64> + '_>> {
    if let Some(days) = array.as_primitive_opt::<Date32Type>() {
        return Ok(Box::new(days.values().iter().map(|day| i64::from(*day))));
    }
    if let DataType::Time32(_) = array.data_type() {
        let bytes = plain_bytes(array, 4)?;
        let values = arrow_buffer::ScalarBuffer::<i32>::from(bytes);
        return Ok(Box::new(values.into_iter().copied().map(i64::from).collect::<Vec<_>>().into_iter()));
    }
    let values = arrow_buffer::ScalarBuffer::<i64>::from(plain_bytes(array, 8)?);
    Ok(Box::new(values.into_iter().copied().collect::<Vec<_>>().into_iter()))
}

/// The width of the longest value of a text or bytes column, in bytes.
pub(in crate::formats) fn width(kind: DtypeKind, array: &ArrayRef) -> Result<u64> {
    Ok(match kind {
        DtypeKind::Bytes => binary_values(array)?.map(|value| value.len() as u64).max().unwrap_or(0),
        DtypeKind::Text => {
            text_values(array)?.map(|value| value.chars().count() as u64 * 4).max().unwrap_or(0)
        }
        _ => 0,
    })
}

/// Widens the texts and bytes of `dtype` whose width is undetermined (0) so that the values of `array` fit.
pub(in crate::formats) fn widen(dtype: &mut Dtype, shape: &[u64], array: &ArrayRef) -> Result<()> {
    if !is_open(dtype) {
        return Ok(());
    }
    if !shape.is_empty()
        && !is_leaf(dtype, array)
        && let Some(list) = array.as_fixed_size_list_opt()
    {
        return widen(dtype, shape, list.values());
    }
    match dtype {
        Dtype::Scalar(scalar) => scalar.bytes = scalar.bytes.max(width(scalar.kind, array)?),
        Dtype::Struct(members) => {
            let Some(records) = array.as_struct_opt() else { return Err(mismatch(array)) };
            let named = members.iter_mut().filter(|member| !member.is_padding());
            for (member, column) in named.zip(records.columns()) {
                widen(&mut member.dtype, &member.shape, column)?;
            }
        }
    }
    Ok(())
}

/// Whether a dtype has texts or bytes, whose width may be undetermined.
pub(in crate::formats) fn is_open(dtype: &Dtype) -> bool {
    match dtype {
        Dtype::Scalar(scalar) => matches!(scalar.kind, DtypeKind::Bytes | DtypeKind::Text),
        Dtype::Struct(members) => members.iter().any(|member| is_open(&member.dtype)),
    }
}

/// NumPy has no texts or bytes of width 0: the minimum is 1.
pub(in crate::formats) fn close(dtype: &mut Dtype) {
    match dtype {
        Dtype::Scalar(scalar) => match scalar.kind {
            DtypeKind::Bytes => scalar.bytes = scalar.bytes.max(1),
            DtypeKind::Text => scalar.bytes = scalar.bytes.max(4),
            _ => {}
        },
        Dtype::Struct(members) => members.iter_mut().for_each(|member| close(&mut member.dtype)),
    }
}
