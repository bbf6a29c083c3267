//! Decodes the bytes of an array to Arrow arrays. Values with the same representation in Arrow are not
//! copied.

use std::sync::Arc;

use arrow_array::builder::{BinaryBuilder, StringBuilder};
use arrow_array::types::{Date32Type, Int64Type};
use arrow_array::{
    Array, ArrayRef, BooleanArray, FixedSizeListArray, PrimitiveArray, StructArray, make_array,
};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer, ScalarBuffer};
use arrow_data::ArrayData;
use arrow_schema::{DataType, Field};

use super::types::{Dtype, DtypeKind, Member, Scalar, Unit};
use crate::cursor::{allocate, allocate_zeroed};
use crate::error::{Error, Result};
use crate::limits::Budget;

/// The file offset of element `index`. Used only for errors.
pub(in crate::formats) type Place<'a> = &'a dyn Fn(u64) -> u64;

/// `count` adjacent elements in `bytes`.
pub(in crate::formats) fn decode(
    dtype: &Dtype,
    bytes: &Buffer,
    count: usize,
    place: Place<'_>,
    budget: &Budget,
) -> Result<ArrayRef> {
    match dtype {
        Dtype::Scalar(scalar) => decode_scalar(*scalar, bytes, count, place, budget),
        Dtype::Struct(members) => {
            let (fields, columns) = decode_members(members, bytes, count, place, budget)?;
            let fields: Vec<Field> = fields;
            Ok(Arc::new(StructArray::try_new_with_length(fields.into(), columns, None, count)?))
        }
    }
}

/// The columns of `count` records.
pub(in crate::formats) fn decode_members(
    members: &[Member],
    bytes: &Buffer,
    count: usize,
    place: Place<'_>,
    budget: &Budget,
) -> Result<(Vec<Field>, Vec<ArrayRef>)> {
    let overflow = || Error::limit("the address space", usize::MAX, "more bytes per record");
    let sizes: Vec<usize> = members
        .iter()
        .map(|member| member.bytes().and_then(|bytes| usize::try_from(bytes).ok()).ok_or_else(overflow))
        .collect::<Result<_>>()?;
    let stride: usize = sizes.iter().sum();
    let mut fields = Vec::new();
    let mut columns = Vec::new();
    let mut start = 0;
    for (member, size) in members.iter().zip(sizes) {
        let from = start;
        start += size;
        if member.is_padding() {
            continue;
        }
        let own = if size == stride { bytes.clone() } else { gather(bytes, stride, from, size, budget)? };
        let elements =
            member.elements().and_then(|elements| usize::try_from(elements).ok()).ok_or_else(overflow)?;
        let (elements64, item) = (elements.max(1) as u64, member.dtype.bytes().unwrap_or(0));
        let inner = |index: u64| place(index / elements64) + from as u64 + index % elements64 * item;
        let total = elements.checked_mul(count).ok_or_else(overflow)?;
        let values = decode(&member.dtype, &own, total, &inner, budget)
            .map_err(|error| error.field(member.name.clone()))?;
        let field = Dtype::Struct(vec![member.clone()]).field("")?;
        let DataType::Struct(one) = field.data_type() else { return Err(overflow()) };
        let Some(field) = one.first() else { return Err(overflow()) };
        columns.push(if member.shape.is_empty() { values } else { fold(field, values, count)? });
        fields.push(field.as_ref().clone());
    }
    Ok((fields, columns))
}

/// Wraps flat elements in the fixed lists of `field`, `count` of the outermost.
pub(in crate::formats) fn fold(field: &Field, values: ArrayRef, count: usize) -> Result<ArrayRef> {
    let DataType::FixedSizeList(item, size) = field.data_type() else { return Ok(values) };
    if values.data_type() == field.data_type() && values.len() == count {
        return Ok(values);
    }
    let width = usize::try_from(*size).unwrap_or(0);
    let inner = count
        .checked_mul(width)
        .ok_or_else(|| Error::limit("the address space", usize::MAX, "more bytes"))?;
    let values = if values.data_type() == item.data_type() { values } else { fold(item, values, inner)? };
    Ok(Arc::new(FixedSizeListArray::try_new_with_length(Arc::clone(item), *size, values, None, count)?))
}

/// The bytes `from..from + size` of every record.
fn gather(bytes: &Buffer, stride: usize, from: usize, size: usize, budget: &Budget) -> Result<Buffer> {
    let count = bytes.len().checked_div(stride).unwrap_or(0);
    let mut out = allocate_zeroed((count * size) as u64, budget)?;
    if size > 0 {
        let targets = out.as_slice_mut().chunks_exact_mut(size);
        for (target, record) in targets.zip(bytes.chunks_exact(stride)) {
            target.copy_from_slice(record.get(from..from + size).unwrap_or_default());
        }
    }
    Ok(out.into())
}

fn decode_scalar(
    scalar: Scalar,
    bytes: &Buffer,
    count: usize,
    place: Place<'_>,
    budget: &Budget,
) -> Result<ArrayRef> {
    let size = usize::try_from(scalar.bytes).unwrap_or(usize::MAX);
    let bytes = if scalar.big_endian { &swap(bytes, scalar.unit_bytes(), budget)? } else { bytes };
    let first_fault = || -> Error {
        let faults = bytes.chunks_exact(size.max(1)).enumerate();
        let found = faults.filter_map(|(index, element)| Some((index, fault(scalar, element)?))).next();
        match found {
            Some((index, error)) => error.at(place(index as u64)),
            None => Error::unsupported(format!("values of dtype {} that fit no Arrow array", scalar.text())),
        }
    };
    let kind = scalar.arrow();
    Ok(match scalar.kind {
        DtypeKind::Bool => {
            let slice = bytes.as_slice();
            if slice.iter().any(|byte| *byte > 1) {
                return Err(first_fault());
            }
            let bits = BooleanBuffer::collect_bool(count, |index| slice.get(index) == Some(&1));
            Arc::new(BooleanArray::new(bits, None))
        }
        DtypeKind::Int | DtypeKind::Uint | DtypeKind::Float => primitive(kind, bytes, count)?,
        DtypeKind::Complex => {
            let DataType::FixedSizeList(item, _) = &kind else { return Err(first_fault()) };
            let parts = primitive(item.data_type().clone(), bytes, count * 2)?;
            Arc::new(FixedSizeListArray::try_new_with_length(Arc::clone(item), 2, parts, None, count)?)
        }
        DtypeKind::Void => {
            let data = ArrayData::builder(kind).len(count).add_buffer(bytes.clone()).build()?;
            make_array(data)
        }
        DtypeKind::Bytes => {
            let mut builder = BinaryBuilder::new();
            for element in elements(bytes, size, count) {
                builder.append_value(trim_nuls(element));
            }
            Arc::new(builder.finish())
        }
        DtypeKind::Text => {
            let mut builder = StringBuilder::new();
            let mut text = String::new();
            for element in elements(bytes, size, count) {
                text.clear();
                for character in code_points(element) {
                    text.push(char::from_u32(character).ok_or_else(first_fault)?);
                }
                builder.append_value(text.trim_end_matches('\0'));
            }
            Arc::new(builder.finish())
        }
        DtypeKind::Datetime(unit) | DtypeKind::Timedelta(unit) => {
            let stored = primitive(DataType::Int64, bytes, count)?;
            let stored =
                stored.as_any().downcast_ref::<PrimitiveArray<Int64Type>>().ok_or_else(first_fault)?.values();
            let nulls = if stored.contains(&i64::MIN) {
                let valid = BooleanBuffer::collect_bool(count, |index| stored.get(index) != Some(&i64::MIN));
                Some(NullBuffer::new(valid))
            } else {
                None
            };
            let date = kind == DataType::Date32;
            if date {
                let mut days: Vec<i32> = allocate(count as u64, budget)?;
                for value in stored.iter() {
                    let null = *value == i64::MIN;
                    days.push(if null { 0 } else { to_days(*value, unit).ok_or_else(first_fault)? });
                }
                Arc::new(PrimitiveArray::<Date32Type>::try_new(ScalarBuffer::from(days), nulls)?)
            } else {
                let factor = unit.factor(false);
                let values = if factor == 1 {
                    stored.inner().clone()
                } else {
                    let mut values: Vec<i64> = allocate(count as u64, budget)?;
                    for value in stored.iter() {
                        let null = *value == i64::MIN;
                        values.push(if null {
                            0
                        } else {
                            value.checked_mul(factor).ok_or_else(first_fault)?
                        });
                    }
                    Buffer::from_vec(values)
                };
                let data = ArrayData::builder(kind).len(count).add_buffer(values).nulls(nulls).build()?;
                make_array(data)
            }
        }
    })
}

/// The error of one element (given in little-endian bytes), if there is one.
pub(in crate::formats) fn fault(scalar: Scalar, element: &[u8]) -> Option<Error> {
    let whole =
        || element.first_chunk().map(|bytes| i64::from_le_bytes(*bytes)).filter(|value| *value != i64::MIN);
    match scalar.kind {
        DtypeKind::Bool => {
            let byte = element.first()?;
            (*byte > 1).then(|| Error::malformed("a bool, 0 or 1", byte).rule("bool"))
        }
        DtypeKind::Text => {
            let bad = code_points(element).find(|code| char::from_u32(*code).is_none())?;
            Some(Error::malformed("Unicode code points", format_args!("{bad:#x}")).rule("text"))
        }
        DtypeKind::Datetime(unit) if unit.is_days() => {
            let value = whole()?;
            let bad = to_days(value, unit).is_none();
            bad.then(|| {
                Error::unsupported(format!("{value} {} do not fit a 32-bit date", unit.base))
                    .rule("date-range")
            })
        }
        DtypeKind::Datetime(unit) | DtypeKind::Timedelta(unit) => {
            let value = whole()?;
            let bad = value.checked_mul(unit.factor(false)).is_none();
            bad.then(|| {
                Error::unsupported(format!("{value} {} do not fit 64-bit seconds", unit.base))
                    .rule("time-range")
            })
        }
        _ => None,
    }
}

/// Whether elements of this kind can be invalid at all.
pub(in crate::formats) fn has_rules(scalar: Scalar) -> bool {
    match scalar.kind {
        DtypeKind::Bool | DtypeKind::Text => true,
        DtypeKind::Datetime(unit) => unit.is_days() || unit.factor(false) != 1,
        DtypeKind::Timedelta(unit) => unit.factor(false) != 1,
        _ => false,
    }
}

/// Days since 1970-01-01 of a date in some unit.
fn to_days(value: i64, unit: Unit) -> Option<i32> {
    let scaled = value.checked_mul(unit.factor(true))?;
    let days = if unit.is_calendar() { days_of_month(scaled)? } else { scaled };
    i32::try_from(days).ok()
}

/// Days since 1970-01-01 of the first of a month, months counted from January 1970 (proleptic Gregorian).
pub(in crate::formats) fn days_of_month(months: i64) -> Option<i64> {
    // The year starts in March here, so that the leap day is its last.
    let march = months.checked_add(1970 * 12 - 2)?;
    let (year, month) = (march.div_euclid(12), march.rem_euclid(12));
    let (era, year_of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let day_of_year = (153 * month + 2) / 5;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era.checked_mul(146_097)?.checked_add(day_of_era - 719_468)
}

/// `count` elements of `size` bytes, also where `size` is 0.
fn elements(bytes: &[u8], size: usize, count: usize) -> impl Iterator<Item = &[u8]> {
    (0..count).map(move |index| bytes.get(index * size..(index + 1) * size).unwrap_or_default())
}

pub(in crate::formats) fn trim_nuls(element: &[u8]) -> &[u8] {
    let end = element.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    element.get(..end).unwrap_or_default()
}

fn code_points(element: &[u8]) -> impl Iterator<Item = u32> {
    element.chunks_exact(4).map(|chunk| chunk.iter().rev().fold(0, |code, byte| code << 8 | u32::from(*byte)))
}

/// Little-endian numbers, copied only if their memory is not aligned.
fn primitive(kind: DataType, bytes: &Buffer, count: usize) -> Result<ArrayRef> {
    Ok(make_array(ArrayData::builder(kind).len(count).add_buffer(bytes.clone()).align_buffers(true).build()?))
}

/// The bytes with each group of `unit` bytes reversed.
pub(in crate::formats) fn swap(bytes: &Buffer, unit: u64, budget: &Budget) -> Result<Buffer> {
    let mut out = allocate_zeroed(bytes.len() as u64, budget)?;
    let target = out.as_slice_mut();
    match unit {
        2 => swap_units::<2>(bytes, target),
        4 => swap_units::<4>(bytes, target),
        8 => swap_units::<8>(bytes, target),
        _ => target.copy_from_slice(bytes),
    }
    Ok(out.into())
}

fn swap_units<const N: usize>(from: &[u8], to: &mut [u8]) {
    for (to, from) in to.as_chunks_mut::<N>().0.iter_mut().zip(from.as_chunks::<N>().0) {
        *to = *from;
        to.reverse();
    }
}
