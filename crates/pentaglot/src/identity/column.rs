//! The values of an array in the encoding `enc`. The type is matched once, outside the loops.

use arrow_array::cast::AsArray;
use arrow_array::types::{Int16Type, Int32Type, Int64Type};
use arrow_array::{Array, ArrayRef, BinaryViewArray, OffsetSizeTrait, StringViewArray};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer, bit_iterator::BitSliceIterator};
use arrow_schema::DataType;

use super::encoder::Encoder;
use crate::error::{Error, Result};

/// An array that is ready to be encoded.
pub(crate) struct HashedColumn {
    len: usize,
    /// The array's own nulls.
    nulls: Option<NullBuffer>,
    values: Values,
}

enum Values {
    /// No value is present.
    Null,
    Bool(BooleanBuffer),
    /// `width` bytes each.
    Fixed {
        bytes: Buffer,
        width: usize,
    },
    /// Value `i` is `bytes[ends[i]..ends[i + 1]]`.
    Bytes {
        ends: Vec<usize>,
        bytes: Buffer,
    },
    TextView(StringViewArray),
    BytesView(BinaryViewArray),
    /// Value `i` is the slots `starts[i]..starts[i] + counts(i)` of the items.
    List {
        ranges: Vec<(usize, usize)>,
        items: Box<HashedColumn>,
    },
    FixedList {
        size: usize,
        items: Box<HashedColumn>,
    },
    Struct(Vec<HashedColumn>),
    /// Value `i` is the value `indices[i]` of another array: dictionaries and run-end encoding.
    Indirect {
        indices: Vec<usize>,
        values: Box<HashedColumn>,
    },
}

impl HashedColumn {
    /// Matches the type of an array.
    pub(crate) fn new(array: &dyn Array) -> Result<Self> {
        let len = array.len();
        let values = match array.data_type() {
            DataType::Null => Values::Null,
            DataType::Boolean => Values::Bool(array.as_boolean().values().clone()),
            DataType::Utf8 => {
                let array = array.as_string::<i32>();
                bytes(array.value_offsets(), array.values())
            }
            DataType::LargeUtf8 => {
                let array = array.as_string::<i64>();
                bytes(array.value_offsets(), array.values())
            }
            DataType::Binary => {
                let array = array.as_binary::<i32>();
                bytes(array.value_offsets(), array.values())
            }
            DataType::LargeBinary => {
                let array = array.as_binary::<i64>();
                bytes(array.value_offsets(), array.values())
            }
            DataType::Utf8View => Values::TextView(array.as_string_view().clone()),
            DataType::BinaryView => Values::BytesView(array.as_binary_view().clone()),
            DataType::FixedSizeBinary(width) => {
                let width = *width as usize;
                let bytes = array.as_fixed_size_binary().values().slice_with_length(0, len * width);
                Values::Fixed { bytes, width }
            }
            DataType::List(_) => {
                let array = array.as_list::<i32>();
                list(array.value_offsets(), array.values())?
            }
            DataType::LargeList(_) => {
                let array = array.as_list::<i64>();
                list(array.value_offsets(), array.values())?
            }
            DataType::Map(_, _) => {
                let array = array.as_map();
                let entries: ArrayRef = std::sync::Arc::new(array.entries().clone());
                list(array.value_offsets(), &entries)?
            }
            DataType::ListView(_) => {
                let array = array.as_list_view::<i32>();
                list_view(array.value_offsets(), array.value_sizes(), array.values())?
            }
            DataType::LargeListView(_) => {
                let array = array.as_list_view::<i64>();
                list_view(array.value_offsets(), array.value_sizes(), array.values())?
            }
            DataType::FixedSizeList(_, size) => {
                let array = array.as_fixed_size_list();
                Values::FixedList {
                    size: *size as usize,
                    items: Box::new(HashedColumn::new(array.values())?),
                }
            }
            DataType::Struct(_) => {
                let columns = array.as_struct().columns().iter();
                Values::Struct(columns.map(|column| HashedColumn::new(column)).collect::<Result<_>>()?)
            }
            DataType::Dictionary(_, _) => dictionary(array)?,
            DataType::RunEndEncoded(ends, _) => {
                let (indices, values) = match ends.data_type() {
                    DataType::Int16 => runs::<Int16Type>(array),
                    DataType::Int32 => runs::<Int32Type>(array),
                    _ => runs::<Int64Type>(array),
                }?;
                Values::Indirect { indices, values: Box::new(HashedColumn::new(&values)?) }
            }
            other => match other.primitive_width() {
                Some(width) => {
                    let data = array.to_data();
                    let bytes = data.buffers()[0].slice_with_length(data.offset() * width, len * width);
                    Values::Fixed { bytes, width }
                }
                None => return Err(Error::unsupported(format!("the identity of values of type {other}"))),
            },
        };
        Ok(HashedColumn { len, nulls: array.nulls().filter(|nulls| nulls.null_count() > 0).cloned(), values })
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Whether value `index` is missing, also if it is a null of a dictionary.
    pub(crate) fn is_missing(&self, index: usize) -> bool {
        if self.nulls.as_ref().is_some_and(|nulls| nulls.is_null(index)) {
            return true;
        }
        match &self.values {
            Values::Null => true,
            Values::Indirect { indices, values } => values.is_missing(indices[index]),
            _ => false,
        }
    }

    /// Whether any value is missing.
    pub(crate) fn has_missing(&self) -> bool {
        match &self.values {
            Values::Null => self.len > 0,
            Values::Indirect { values, .. } if values.has_missing() => {
                (0..self.len).any(|index| self.is_missing(index))
            }
            _ => self.nulls.is_some(),
        }
    }

    /// The values as they are in memory, and the bytes of each, where they all have the same number.
    pub(crate) fn fixed(&self) -> Option<(&[u8], usize)> {
        match &self.values {
            Values::Fixed { bytes, width } => Some((bytes, *width)),
            _ => None,
        }
    }

    /// Whether all bits of a value that is present are zero.
    pub(super) fn is_zero(&self, index: usize) -> bool {
        match &self.values {
            Values::Null => true,
            Values::Bool(bits) => !bits.value(index),
            Values::Fixed { bytes, width } => {
                bytes[index * width..(index + 1) * width].iter().all(|byte| *byte == 0)
            }
            Values::Bytes { ends, .. } => ends[index] == ends[index + 1],
            Values::TextView(array) => array.value(index).is_empty(),
            Values::BytesView(array) => array.value(index).is_empty(),
            Values::List { ranges, .. } => ranges[index].0 == ranges[index].1,
            Values::FixedList { size, items } => {
                (index * size..(index + 1) * size).all(|item| !items.is_missing(item) && items.is_zero(item))
            }
            Values::Struct(columns) => {
                columns.iter().all(|column| !column.is_missing(index) && column.is_zero(index))
            }
            Values::Indirect { indices, values } => values.is_zero(indices[index]),
        }
    }

    /// Encodes all values that are present, one after the other.
    pub(super) fn encode_present(&self, out: &mut Encoder<'_>) -> Result<()> {
        if let Values::Fixed { bytes, width } = &self.values {
            return match &self.nulls {
                None => out.put(bytes),
                Some(nulls) => BitSliceIterator::new(nulls.validity(), nulls.offset(), nulls.len())
                    .try_for_each(|(start, end)| out.put(&bytes[start * width..end * width])),
            };
        }
        let plain = !self.has_missing();
        for index in 0..self.len {
            if plain || !self.is_missing(index) {
                self.encode(index, out)?;
            }
        }
        Ok(())
    }

    /// Encodes a value that is present.
    pub(crate) fn encode(&self, index: usize, out: &mut Encoder<'_>) -> Result<()> {
        match &self.values {
            Values::Null => Ok(()),
            Values::Bool(bits) => out.byte(bits.value(index).into()),
            Values::Fixed { bytes, width } => out.put(&bytes[index * width..(index + 1) * width]),
            Values::Bytes { ends, bytes } => put_bytes(&bytes[ends[index]..ends[index + 1]], out),
            Values::TextView(array) => put_bytes(array.value(index).as_bytes(), out),
            Values::BytesView(array) => put_bytes(array.value(index), out),
            Values::List { ranges, items } => {
                let (start, end) = ranges[index];
                out.varint((end - start) as u64)?;
                (start..end).try_for_each(|item| items.slot(item, out))
            }
            Values::FixedList { size, items } => {
                (index * size..(index + 1) * size).try_for_each(|item| items.slot(item, out))
            }
            Values::Struct(columns) => columns.iter().try_for_each(|column| column.slot(index, out)),
            Values::Indirect { indices, values } => values.encode(indices[index], out),
        }
    }

    /// `01` and the value, or `00` if it is missing.
    pub(crate) fn slot(&self, index: usize, out: &mut Encoder<'_>) -> Result<()> {
        if self.is_missing(index) {
            return out.byte(0);
        }
        out.byte(1)?;
        self.encode(index, out)
    }
}

fn put_bytes(bytes: &[u8], out: &mut Encoder<'_>) -> Result<()> {
    out.varint(bytes.len() as u64)?;
    out.put(bytes)
}

fn bytes<O: OffsetSizeTrait>(offsets: &[O], bytes: &Buffer) -> Values {
    Values::Bytes { ends: offsets.iter().map(|offset| offset.as_usize()).collect(), bytes: bytes.clone() }
}

/// Lists by their offsets; items that no list refers to are ignored.
fn list<O: OffsetSizeTrait>(offsets: &[O], items: &ArrayRef) -> Result<Values> {
    let first = offsets.first().map_or(0, |first| first.as_usize());
    let last = offsets.last().map_or(0, |last| last.as_usize());
    let range = |pair: &[O]| (pair[0].as_usize() - first, pair[1].as_usize() - first);
    let ranges = offsets.windows(2).map(range).collect();
    Ok(Values::List { ranges, items: Box::new(HashedColumn::new(&items.slice(first, last - first))?) })
}

fn list_view<O: OffsetSizeTrait>(offsets: &[O], sizes: &[O], items: &ArrayRef) -> Result<Values> {
    let range = |(offset, size): (&O, &O)| (offset.as_usize(), offset.as_usize() + size.as_usize());
    let ranges = offsets.iter().zip(sizes).map(range).collect();
    Ok(Values::List { ranges, items: Box::new(HashedColumn::new(items)?) })
}

fn dictionary(array: &dyn Array) -> Result<Values> {
    let dictionary = array.as_any_dictionary();
    if dictionary.values().is_empty() {
        return Ok(Values::Null);
    }
    let values = Box::new(HashedColumn::new(dictionary.values())?);
    Ok(Values::Indirect { indices: dictionary.normalized_keys(), values })
}

fn runs<R: arrow_array::types::RunEndIndexType>(array: &dyn Array) -> Result<(Vec<usize>, ArrayRef)> {
    let array = array.as_run::<R>();
    let indices = (0..array.len()).map(|index| array.get_physical_index(index)).collect();
    Ok((indices, array.values().clone()))
}
