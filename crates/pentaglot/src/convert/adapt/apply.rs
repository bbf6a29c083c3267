//! Runs a planned cast over an array.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{
    Array, ArrayRef, FixedSizeListArray, GenericListArray, OffsetSizeTrait, StructArray, new_null_array,
};
use arrow_buffer::{NullBuffer, OffsetBuffer};
use arrow_schema::{DataType, Field};

use super::{Cast, scalar, unplanned};
use crate::error::{Error, Result};
use crate::hub::type_text::print_type;
use crate::hub::{LossKind, LossKinds, LossRecord, relax};

/// The place of values, for messages, and the losses that are allowed: a column, the row of an element, and
/// whether the element is visible (an element under a null list or struct is a placeholder, not a value).
pub(super) struct Place<'a> {
    pub(super) column: &'a str,
    pub(super) row: &'a dyn Fn(usize) -> u64,
    pub(super) is_live: &'a dyn Fn(usize) -> bool,
    pub(super) allowed: LossKinds,
    pub(super) lost: &'a LossRecord,
}

impl Place<'_> {
    pub(super) fn refuse(&self, index: usize, why: String) -> Error {
        Error::lossy(format!("row {}, column {:?}: {why}", (self.row)(index), self.column))
    }
}

/// A null in a target that is not nullable is an error, or becomes NaN if that is allowed.
pub(super) fn resolve_nulls(array: ArrayRef, field: &Field, place: &Place<'_>) -> Result<ArrayRef> {
    if field.is_nullable() || field.data_type() == &DataType::Null || array.null_count() == 0 {
        return Ok(array);
    }
    let count = (0..array.len()).filter(|index| array.is_null(*index) && (place.is_live)(*index));
    let (count, first) = count.fold((0, None), |(count, first), index| (count + 1, first.or(Some(index))));
    let Some(first) = first else { return Ok(array) };
    let refuse = || place.refuse(first, format!("a null does not become {}", print_type(field.data_type())));
    match relax::nan_for_nulls(&array) {
        Some(filled) if place.allowed.contains(LossKind::Nulls) => {
            place.lost.add(LossKind::Nulls, place.column, count, || Some("null".to_owned()));
            Ok(filled)
        }
        Some(_) => Err(refuse().hint(LossKind::Nulls.hint())),
        None => Err(refuse()),
    }
}

pub(super) fn cast(array: &ArrayRef, cast: &Cast, to: &Field, place: &Place<'_>) -> Result<ArrayRef> {
    match cast {
        Cast::Same => Ok(Arc::clone(array)),
        Cast::Scalar(how) => scalar::cast(array, *how, to, place),
        Cast::Items(inner) => items(array, inner, to, place),
        Cast::Fields(casts) => fields(array, casts, to, place),
        Cast::Wrap(inner) => wrap(array, inner, to, place),
        Cast::Unwrap(inner) => unwrap(array, inner, to, place),
        Cast::FromImage(image, inner) => {
            let numbers = image.unpack(array)?;
            let item = match to.data_type() {
                DataType::FixedSizeList(item, _) => item.as_ref().clone(),
                _ => return Err(unplanned()),
            };
            let numbers = self::cast(&numbers, inner, &item, place)?;
            rebuild_fixed(numbers, to, array.nulls().cloned(), array.len())
        }
        Cast::ToImage(inner, image) => {
            let item = image.item();
            let numbers = match (inner.as_ref(), array.data_type()) {
                (Cast::FromImage(from, inner), _) => self::cast(&from.unpack(array)?, inner, &item, place)?,
                (Cast::Items(inner), DataType::FixedSizeList(..)) => {
                    self::cast(array.as_fixed_size_list().values(), inner, &item, place)?
                }
                _ => return Err(unplanned()),
            };
            image.pack(numbers.as_ref(), array.as_ref())
        }
        Cast::Drop => {
            let values = array.len() - array.logical_null_count();
            let first = (0..array.len()).find(|index| array.is_valid(*index));
            let example = || first.map(|index| scalar::shown(array, index));
            place.lost.add(LossKind::Dropped, place.column, values as u64, example);
            Ok(new_null_array(&DataType::Null, array.len()))
        }
    }
}

fn items(array: &ArrayRef, inner: &Cast, to: &Field, place: &Place<'_>) -> Result<ArrayRef> {
    let item = match to.data_type() {
        DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => item,
        _ => return Err(unplanned()),
    };
    let element = |values: &ArrayRef, row: &dyn Fn(usize) -> usize| -> Result<ArrayRef> {
        let place = Place {
            row: &|index| (place.row)(row(index)),
            is_live: &|index| array.is_valid(row(index)) && (place.is_live)(row(index)),
            ..*place
        };
        resolve_nulls(cast(values, inner, item, &place)?, item, &place)
    };
    let (values, offsets): (ArrayRef, Option<Vec<usize>>) = match array.data_type() {
        DataType::FixedSizeList(_, size) => {
            let size = usize::try_from(*size).unwrap_or(0);
            let list = array.as_fixed_size_list();
            let values = element(list.values(), &|index| index / size.max(1))?;
            match to.data_type() {
                DataType::FixedSizeList(..) => {
                    return rebuild_fixed(values, to, array.nulls().cloned(), array.len());
                }
                _ => (values, Some((0..=array.len()).map(|index| index * size).collect())),
            }
        }
        DataType::List(_) => list_parts(array.as_list::<i32>(), &element)?,
        DataType::LargeList(_) => list_parts(array.as_list::<i64>(), &element)?,
        _ => return Err(unplanned()),
    };
    let offsets = offsets.ok_or_else(unplanned)?;
    let nulls = array.nulls().cloned();
    let item = Arc::clone(item);
    Ok(match to.data_type() {
        DataType::LargeList(_) => Arc::new(list::<i64>(item, &offsets, values, nulls)?),
        _ => Arc::new(list::<i32>(item, &offsets, values, nulls)?),
    })
}

type Element<'a> = dyn Fn(&ArrayRef, &dyn Fn(usize) -> usize) -> Result<ArrayRef> + 'a;

fn list_parts<O: OffsetSizeTrait>(
    list: &GenericListArray<O>,
    element: &Element<'_>,
) -> Result<(ArrayRef, Option<Vec<usize>>)> {
    let offsets: Vec<usize> = list.value_offsets().iter().map(|offset| offset.as_usize()).collect();
    let first = offsets.first().copied().unwrap_or(0);
    let last = offsets.last().copied().unwrap_or(0);
    let offsets: Vec<usize> = offsets.iter().map(|offset| offset - first).collect();
    let values = list.values().slice(first, last - first);
    let values =
        element(&values, &|index| offsets.partition_point(|offset| *offset <= index).saturating_sub(1))?;
    Ok((values, Some(offsets)))
}

fn list<O: OffsetSizeTrait>(
    item: Arc<Field>,
    offsets: &[usize],
    values: ArrayRef,
    nulls: Option<NullBuffer>,
) -> Result<GenericListArray<O>> {
    let too_long = || Error::unsupported("a list of more than 2147483647 elements (large_list holds it)");
    let offsets: Vec<O> =
        offsets.iter().map(|offset| O::from_usize(*offset).ok_or_else(too_long)).collect::<Result<_>>()?;
    Ok(GenericListArray::try_new(item, OffsetBuffer::new(offsets.into()), values, nulls)?)
}

fn rebuild_fixed(values: ArrayRef, to: &Field, nulls: Option<NullBuffer>, len: usize) -> Result<ArrayRef> {
    let DataType::FixedSizeList(item, size) = to.data_type() else { return Err(unplanned()) };
    Ok(Arc::new(FixedSizeListArray::try_new_with_length(Arc::clone(item), *size, values, nulls, len)?))
}

fn fields(array: &ArrayRef, casts: &[(usize, Cast)], to: &Field, place: &Place<'_>) -> Result<ArrayRef> {
    let DataType::Struct(wanted) = to.data_type() else { return Err(unplanned()) };
    let source = array.as_struct();
    let place = &Place { is_live: &|index| array.is_valid(index) && (place.is_live)(index), ..*place };
    let columns = casts
        .iter()
        .zip(wanted)
        .map(|((index, inner), field)| {
            resolve_nulls(cast(source.column(*index), inner, field, place)?, field, place)
        })
        .collect::<Result<Vec<_>>>()?;
    Ok(Arc::new(StructArray::try_new_with_length(
        wanted.clone(),
        columns,
        array.nulls().cloned(),
        array.len(),
    )?))
}

fn wrap(array: &ArrayRef, inner: &Cast, to: &Field, place: &Place<'_>) -> Result<ArrayRef> {
    let one = match to.data_type() {
        DataType::FixedSizeList(item, _) => item,
        DataType::Struct(fields) => fields.first().ok_or_else(unplanned)?,
        _ => return Err(unplanned()),
    };
    let values = cast(array, inner, one, place)?;
    let nulls = if one.is_nullable() { None } else { values.nulls().cloned() };
    match to.data_type() {
        DataType::Struct(fields) => Ok(Arc::new(StructArray::try_new(fields.clone(), vec![values], nulls)?)),
        _ => {
            let len = values.len();
            rebuild_fixed(values, to, nulls, len)
        }
    }
}

fn unwrap(array: &ArrayRef, inner: &Cast, to: &Field, place: &Place<'_>) -> Result<ArrayRef> {
    let values = match array.data_type() {
        DataType::Struct(_) => Arc::clone(array.as_struct().column(0)),
        _ => Arc::clone(array.as_fixed_size_list().values()),
    };
    // A null outer value makes the inner value null.
    let nulls = NullBuffer::union(array.nulls(), values.nulls());
    let values = arrow_array::make_array(values.to_data().into_builder().nulls(nulls).build()?);
    cast(&values, inner, to, place)
}
