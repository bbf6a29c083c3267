//! Plain images whose components have one type, as arrays of numbers: big-endian, row by row, the components of a
//! pixel together. The tensor of an image is `[height, width]` or `[height, width, components]`, or a reshaped one.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, BinaryArray, make_array};
use arrow_buffer::{Buffer, OffsetBuffer};
use arrow_data::ArrayData;
use arrow_schema::{DataType, Field};
use serde_json::Value;

use crate::error::{Error, Result};
use crate::hub::extension;

/// The metadata of a `pentaglot.image` field.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Image {
    pub(super) width: u64,
    pub(super) height: u64,
    channels: Vec<String>,
    components: Vec<DataType>,
    plain: bool,
}

impl Image {
    pub(super) fn of(field: &Field) -> Option<Self> {
        if extension::name(field) != Some(extension::IMAGE) {
            return None;
        }
        let metadata: Value = serde_json::from_str(extension::metadata(field)?).ok()?;
        let components = metadata.get("components")?.as_array()?;
        let kind = |pair: &Value| component_type(pair.get(1)?.as_str()?);
        let channel = |pair: &Value| Some(pair.get(0)?.as_str()?.to_owned());
        Some(Image {
            width: metadata.get("width")?.as_u64()?,
            height: metadata.get("height")?.as_u64()?,
            channels: components.iter().map(channel).collect::<Option<_>>()?,
            components: components.iter().map(kind).collect::<Option<_>>()?,
            plain: metadata.get("format").and_then(Value::as_str).unwrap_or("plain") == "plain",
        })
    }

    /// Why its bytes are not an array of numbers; `None` if they are.
    pub(super) fn obstacle(&self) -> Option<&'static str> {
        let Some(first) = self.components.first() else { return Some("the image has no components") };
        if !self.plain {
            return Some(
                "only plain images are arrays of numbers: the option in.images=decode makes them plain",
            );
        }
        let uniform = self.components.iter().all(|kind| kind == first) && first.primitive_width().is_some();
        (!uniform).then_some("the components of the image have several types")
    }

    /// Whether both images have the same channels, or one channel each.
    pub(super) fn has_channels_of(&self, other: &Image) -> bool {
        self.channels == other.channels || (self.channels.len() == 1 && other.channels.len() == 1)
    }

    /// The number of components of all pixels.
    pub(super) fn numbers(&self) -> u64 {
        self.width.saturating_mul(self.height).saturating_mul(self.components.len() as u64)
    }

    /// Why a tensor of this shape is not this image, though it may have as many elements; `None` if it is.
    pub(super) fn mismatch(&self, tensor: &Field, count: i32) -> Option<String> {
        let numbers = self.numbers();
        if numbers != u64::try_from(count).unwrap_or(0) {
            return Some(format!("an image of {numbers} numbers and a tensor of {count} elements"));
        }
        let (height, width, channels) = (self.height, self.width, self.components.len() as u64);
        let shape = extension::tensor_shape(tensor)?;
        let planes = channels > 1 && shape == [channels, height, width] && shape != [height, width, channels];
        planes.then(|| format!("the tensor of an image is [{height}, {width}, {channels}]: components last"))
    }

    /// A field of the components' type.
    pub(super) fn item(&self) -> Field {
        Field::new_list_field(self.components[0].clone(), false)
    }

    /// The numbers of all images, one after the other; a null image gives zeros.
    pub(super) fn unpack(&self, images: &dyn Array) -> Result<ArrayRef> {
        let kind = self.item().data_type().clone();
        let width = kind.primitive_width().ok_or_else(super::unplanned)?;
        let size = usize::try_from(self.numbers()).map_err(|_| super::unplanned())? * width;
        let images = images.as_binary_opt::<i32>().ok_or_else(super::unplanned)?;
        let mut bytes: Vec<u8> = Vec::new();
        for index in 0..images.len() {
            if images.is_null(index) {
                bytes.resize(bytes.len() + size, 0);
                continue;
            }
            let image = images.value(index);
            if image.len() != size {
                return Err(Error::malformed(format_args!("an image of {size} bytes"), image.len())
                    .index(index as u64));
            }
            image.chunks_exact(width).for_each(|number| bytes.extend(number.iter().rev()));
        }
        let count = bytes.len() / width;
        Ok(make_array(ArrayData::try_new(kind, count, None, 0, vec![Buffer::from(bytes)], vec![])?))
    }

    /// Images from their numbers, one after the other, with the nulls of `like`.
    pub(super) fn pack(&self, numbers: &dyn Array, like: &dyn Array) -> Result<ArrayRef> {
        let width = numbers.data_type().primitive_width().ok_or_else(super::unplanned)?;
        let data = numbers.to_data();
        let bytes = &data.buffers()[0].as_slice()[data.offset() * width..][..numbers.len() * width];
        let big_endian: Vec<u8> =
            bytes.chunks_exact(width).flat_map(|number| number.iter().rev().copied()).collect();
        let size = if like.is_empty() { 0 } else { big_endian.len() / like.len() };
        let offsets = OffsetBuffer::from_lengths(std::iter::repeat_n(size, like.len()));
        Ok(Arc::new(BinaryArray::try_new(offsets, Buffer::from(big_endian), like.nulls().cloned())?))
    }
}

fn component_type(name: &str) -> Option<DataType> {
    Some(match name {
        "uint8" => DataType::UInt8,
        "int8" => DataType::Int8,
        "uint32" => DataType::UInt32,
        "int32" => DataType::Int32,
        "uint64" => DataType::UInt64,
        "int64" => DataType::Int64,
        "float32" => DataType::Float32,
        "float64" => DataType::Float64,
        "bool" => DataType::Boolean,
        _ => return None,
    })
}
