//! Encoders of nested values: lists, structs, maps, dictionaries, unions.

use arrow_array::cast::AsArray;
use arrow_array::types::*;
use arrow_array::{Array, ArrayRef, GenericListArray, OffsetSizeTrait, StructArray, UnionArray};
use arrow_buffer::ArrowNativeType;
use arrow_schema::{DataType, Field, Fields, UnionMode};

use super::JsonOptions;
use super::encode::{Encode, Encoder, encoder, write_base64};
use crate::error::{Error, Result};
use crate::limits::Limits;
use crate::wire::json::write_string;

/// Writes `[`, the elements `from..to`, `]`.
#[inline]
fn write_elements(items: &Encoder<'_>, from: usize, to: usize, out: &mut Vec<u8>) -> Result<()> {
    out.push(b'[');
    for index in from..to {
        if index > from {
            out.push(b',');
        }
        items.write(index, out)?;
    }
    out.push(b']');
    Ok(())
}

pub(super) struct Lists<'a, O> {
    pub(super) offsets: &'a [O],
    pub(super) items: Encoder<'a>,
}

pub(super) fn lists<'a, O: OffsetSizeTrait>(
    item: &Field,
    array: &'a dyn Array,
    options: &JsonOptions,
) -> Result<Encoder<'a>> {
    let array: &GenericListArray<O> = array.as_list();
    let items = encoder(item, array.values(), options)?;
    Ok(Box::new(Lists { offsets: array.value_offsets(), items }))
}

impl<O: OffsetSizeTrait> Encode for Lists<'_, O> {
    fn write(&self, row: usize, out: &mut Vec<u8>) -> Result<()> {
        let (from, to) = (self.offsets[row].as_usize(), self.offsets[row + 1].as_usize());
        write_elements(&self.items, from, to, out)
    }
}

pub(super) struct ListViews<'a, O> {
    pub(super) offsets: &'a [O],
    pub(super) sizes: &'a [O],
    pub(super) items: Encoder<'a>,
}

impl<O: OffsetSizeTrait> Encode for ListViews<'_, O> {
    fn write(&self, row: usize, out: &mut Vec<u8>) -> Result<()> {
        let from = self.offsets[row].as_usize();
        write_elements(&self.items, from, from + self.sizes[row].as_usize(), out)
    }
}

/// Lists of one size, or tensors: as many levels of arrays as the shape has dimensions.
pub(super) struct FixedLists<'a> {
    pub(super) shape: Vec<usize>,
    pub(super) items: Encoder<'a>,
}

impl FixedLists<'_> {
    /// Nested empty arrays take no storage, but they take text, so their number is limited.
    pub(super) fn check(&self) -> Result<()> {
        let limits = Limits::default();
        limits.check_depth(u32::try_from(self.shape.len()).unwrap_or(u32::MAX))?;
        let outer = self.shape.iter().take_while(|dim| **dim > 0);
        let arrays = outer.fold(1u64, |product, dim| product.saturating_mul(*dim as u64));
        if self.shape.contains(&0) && arrays > 1 << 20 {
            return Err(Error::limit("the limit", 1 << 20, format!("{arrays} empty arrays in a tensor")));
        }
        Ok(())
    }

    fn write_level(&self, shape: &[usize], start: usize, out: &mut Vec<u8>) -> Result<()> {
        match shape {
            [] => self.items.write(start, out),
            [count] => write_elements(&self.items, start, start + count, out),
            [count, inner @ ..] => {
                let stride: usize = inner.iter().product();
                out.push(b'[');
                for index in 0..*count {
                    if index > 0 {
                        out.push(b',');
                    }
                    self.write_level(inner, start + index * stride, out)?;
                }
                out.push(b']');
                Ok(())
            }
        }
    }
}

impl Encode for FixedLists<'_> {
    fn write(&self, row: usize, out: &mut Vec<u8>) -> Result<()> {
        let size: usize = self.shape.iter().product();
        self.write_level(&self.shape, row * size, out)
    }
}

/// The fields of a struct or a table.
pub(super) struct Record<'a> {
    /// `{"a":`, `,"b":`, …
    pub(super) keys: Vec<Vec<u8>>,
    pub(super) columns: Vec<Encoder<'a>>,
}

impl<'a> Record<'a> {
    pub(super) fn new(fields: &Fields, columns: &'a [ArrayRef], options: &JsonOptions) -> Result<Self> {
        let keys = fields.iter().enumerate().map(|(index, field)| {
            let mut key = vec![if index == 0 { b'{' } else { b',' }];
            write_string(&mut key, field.name());
            key.push(b':');
            key
        });
        let encoders =
            fields.iter().zip(columns).map(|(field, column)| encoder(field, column.as_ref(), options));
        Ok(Record { keys: keys.collect(), columns: encoders.collect::<Result<_>>()? })
    }
}

impl Encode for Record<'_> {
    fn write(&self, row: usize, out: &mut Vec<u8>) -> Result<()> {
        if self.columns.is_empty() {
            out.push(b'{');
        }
        for (key, column) in self.keys.iter().zip(&self.columns) {
            out.extend_from_slice(key);
            column.write(row, out)?;
        }
        out.push(b'}');
        Ok(())
    }
}

pub(super) fn write_tuple(columns: &[Encoder<'_>], row: usize, out: &mut Vec<u8>) -> Result<()> {
    out.push(b'[');
    for (index, column) in columns.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        column.write(row, out)?;
    }
    out.push(b']');
    Ok(())
}

pub(super) struct Tuple<'a>(pub(super) Vec<Encoder<'a>>);

impl Encode for Tuple<'_> {
    fn write(&self, row: usize, out: &mut Vec<u8>) -> Result<()> {
        write_tuple(&self.0, row, out)
    }
}

/// A map with keys that are strings is an object, else an array of `[key, value]`.
pub(super) struct Maps<'a> {
    pub(super) offsets: &'a [i32],
    pub(super) object: bool,
    pub(super) keys: Encoder<'a>,
    pub(super) values: Encoder<'a>,
}

pub(super) fn map<'a>(array: &'a dyn Array, options: &JsonOptions) -> Result<Encoder<'a>> {
    let array = array.as_map();
    let entries: &StructArray = array.entries();
    let (key, value) = (&entries.fields()[0], &entries.fields()[1]);
    let object = is_text(key.data_type());
    Ok(Box::new(Maps {
        offsets: array.value_offsets(),
        object,
        keys: encoder(key, array.keys().as_ref(), options)?,
        values: encoder(value, array.values().as_ref(), options)?,
    }))
}

/// Whether values of a type are strings.
pub(crate) fn is_text(data_type: &DataType) -> bool {
    match data_type {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => true,
        DataType::Dictionary(_, value) => is_text(value),
        _ => false,
    }
}

impl Encode for Maps<'_> {
    fn write(&self, row: usize, out: &mut Vec<u8>) -> Result<()> {
        let (from, to) = (self.offsets[row].as_usize(), self.offsets[row + 1].as_usize());
        out.push(if self.object { b'{' } else { b'[' });
        for index in from..to {
            if index > from {
                out.push(b',');
            }
            if !self.object {
                out.push(b'[');
            }
            self.keys.write(index, out)?;
            out.push(if self.object { b':' } else { b',' });
            self.values.write(index, out)?;
            if !self.object {
                out.push(b']');
            }
        }
        out.push(if self.object { b'}' } else { b']' });
        Ok(())
    }
}

/// Values by reference: of a dictionary, or of runs.
pub(super) struct Indirect<'a> {
    pub(super) keys: Vec<usize>,
    pub(super) values: Encoder<'a>,
}

impl Encode for Indirect<'_> {
    fn write(&self, row: usize, out: &mut Vec<u8>) -> Result<()> {
        self.values.write(self.keys[row], out)
    }
}

pub(super) fn run_ends<'a, T: RunEndIndexType>(
    array: &'a dyn Array,
    value: &Field,
    options: &JsonOptions,
) -> Result<Encoder<'a>> {
    let array = array.as_run::<T>();
    let keys = (0..array.len()).map(|row| array.get_physical_index(row)).collect();
    Ok(Box::new(Indirect { keys, values: encoder(value, array.values().as_ref(), options)? }))
}

pub(super) struct Unions<'a> {
    pub(super) array: &'a UnionArray,
    pub(super) dense: bool,
    /// By type id: `{"name":` and the values.
    pub(super) members: Vec<Option<(Vec<u8>, Encoder<'a>)>>,
}

pub(super) fn union<'a>(
    array: &'a UnionArray,
    mode: UnionMode,
    options: &JsonOptions,
) -> Result<Encoder<'a>> {
    let mut members: Vec<Option<(Vec<u8>, Encoder<'a>)>> = (0..128).map(|_| None).collect();
    if let DataType::Union(fields, _) = array.data_type() {
        for (id, field) in fields.iter() {
            let mut key = vec![b'{'];
            write_string(&mut key, field.name());
            key.push(b':');
            let values = encoder(field, array.child(id).as_ref(), options)?;
            members[id.unsigned_abs() as usize & 127] = Some((key, values));
        }
    }
    Ok(Box::new(Unions { array, dense: mode == UnionMode::Dense, members }))
}

impl Encode for Unions<'_> {
    fn write(&self, row: usize, out: &mut Vec<u8>) -> Result<()> {
        let id = self.array.type_id(row).unsigned_abs();
        let Some(Some((key, values))) = self.members.get(usize::from(id)) else {
            return Err(Error::malformed("a type id of the union", id));
        };
        out.extend_from_slice(key);
        values.write(if self.dense { self.array.value_offset(row) } else { row }, out)?;
        out.push(b'}');
        Ok(())
    }
}

pub(super) struct DyndArrays<'a> {
    pub(super) types: &'a arrow_array::StringArray,
    pub(super) data: &'a arrow_array::BinaryArray,
    pub(super) value: Option<super::DyndValue>,
}

impl Encode for DyndArrays<'_> {
    fn write(&self, row: usize, out: &mut Vec<u8>) -> Result<()> {
        out.extend_from_slice(b"{\"type\":");
        write_string(out, self.types.value(row));
        out.extend_from_slice(b",\"value\":");
        match self.value {
            Some(value) => value(self.types.value(row), self.data.value(row), out)?,
            None => write_base64(out, self.data.value(row)),
        }
        out.push(b'}');
        Ok(())
    }
}

/// The keys of a dictionary as indices of its values.
pub(super) trait NormalizedKeys {
    fn normalized_keys_checked(&self) -> Vec<usize>;
}

impl NormalizedKeys for dyn arrow_array::array::AnyDictionaryArray + '_ {
    /// All keys of an empty dictionary are null.
    fn normalized_keys_checked(&self) -> Vec<usize> {
        if self.values().is_empty() { vec![0; self.keys().len()] } else { self.normalized_keys() }
    }
}
