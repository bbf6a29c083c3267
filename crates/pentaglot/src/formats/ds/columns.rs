//! Columns being filled: plain vectors, cut back when a row turns out to be incomplete, and made into Arrow arrays.
//!
//! How a column is decoded is chosen once, when it is made; `from_msgpack.rs` and `from_json.rs` fill it.

use std::sync::Arc;

use arrow_array::types::{
    Float32Type, Float64Type, Int8Type, Int32Type, Int64Type, UInt8Type, UInt32Type, UInt64Type,
};
use arrow_array::{
    ArrayRef, ArrowPrimitiveType, BinaryArray, BooleanArray, FixedSizeListArray, ListArray, NullArray,
    PrimitiveArray, StringArray, StructArray,
};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer, OffsetBuffer};
use arrow_schema::{DataType, Field};

use super::images;
use super::types::{Fundamental, Image, ImageFormat, Type};
use crate::error::{Error, Result};
use crate::hub::type_text::print_type;
use crate::kernels::rows::{self, Values};
use crate::limits::Budget;

/// What a user allows, and what a batch has cost so far beyond its bytes in the file.
#[derive(Debug, Clone)]
pub(super) struct Reading {
    /// Integers are taken in float columns, and base64 without padding.
    pub(super) lenient: bool,
    /// `null` is read as NaN in float columns of JSON.
    pub(super) nan_null: bool,
    /// PNG images are decoded.
    pub(super) decode: bool,
    /// PNG images that are not decoded are compared with their type.
    pub(super) check_images: bool,
    pub(super) budget: Budget,
    /// Bytes of values that stand in for nulls: a null tensor is one byte in the file.
    pub(super) stand_ins: u64,
}

impl Reading {
    /// Counts bytes that stand in for nulls.
    pub(super) fn stood_in(&mut self, bytes: u64) -> Result<()> {
        self.stand_ins = self.stand_ins.saturating_add(bytes);
        self.budget.check(self.stand_ins)
    }
}

/// One column, or a part of one.
#[derive(Debug)]
pub(super) enum Column {
    Void(usize),
    Bool(Vec<bool>),
    UInt8(Vec<u8>),
    Int8(Vec<i8>),
    UInt32(Vec<u32>),
    Int32(Vec<i32>),
    UInt64(Vec<u64>),
    Int64(Vec<i64>),
    Float32(Vec<f32>),
    Float64(Vec<f64>),
    Text(Blob),
    Image(Blob, Picture),
    Tensor { item: Box<Column>, count: usize, len: usize },
    List { offsets: Vec<i32>, item: Box<Column>, row_count: Option<u64> },
    Struct { names: Vec<String>, fields: Vec<Column>, len: usize },
    Nullable { valid: Vec<bool>, inner: Box<Column> },
}

/// Byte strings one after another.
#[derive(Debug)]
pub(super) struct Blob {
    pub(super) offsets: Vec<i32>,
    pub(super) bytes: Vec<u8>,
}

impl Blob {
    fn new() -> Self {
        Blob { offsets: vec![0], bytes: Vec::new() }
    }

    /// Ends the byte string that was just appended.
    #[inline]
    pub(super) fn end(&mut self) -> Result<()> {
        self.offsets.push(offset(self.bytes.len())?);
        Ok(())
    }

    fn truncate(&mut self, len: usize) {
        self.offsets.truncate(len + 1);
        let end = self.offsets.last().and_then(|end| usize::try_from(*end).ok()).unwrap_or(0);
        self.bytes.truncate(end);
    }

    fn take(&mut self) -> (OffsetBuffer<i32>, Buffer) {
        let offsets = std::mem::replace(&mut self.offsets, vec![0]);
        (OffsetBuffer::new(offsets.into()), Buffer::from_vec(std::mem::take(&mut self.bytes)))
    }
}

/// What an image must be, and whether it is decoded on the way.
#[derive(Debug)]
pub(super) enum Picture {
    /// So many bytes.
    Plain(u64),
    /// A PNG file, carried.
    Png,
    /// A PNG file, carried, whose content is that of its type.
    CheckedPng(Image),
    /// A JPEG file, carried.
    Jpeg,
    /// A PNG file, decoded to this plain image.
    Decoded(Image),
}

impl Picture {
    fn new(image: &Image, reading: &Reading) -> Self {
        match image.format {
            // A size past 2^64 is met by no byte string.
            ImageFormat::Plain => Picture::Plain(image.plain_bytes().unwrap_or(u64::MAX)),
            ImageFormat::Png if reading.decode => Picture::Decoded(image.clone()),
            ImageFormat::Png if reading.check_images => Picture::CheckedPng(image.clone()),
            ImageFormat::Png => Picture::Png,
            ImageFormat::Jpeg => Picture::Jpeg,
        }
    }
}

impl Blob {
    /// Ends an image whose bytes were just appended.
    #[inline]
    pub(super) fn end_image(&mut self, picture: &Picture, budget: &Budget) -> Result<()> {
        let start = self.offsets.last().and_then(|start| usize::try_from(*start).ok()).unwrap_or(0);
        let bytes = self.bytes.get(start..).unwrap_or_default();
        let wrong =
            |expected: String, found: String| Err(Error::malformed(expected, found).rule("image_size"));
        match picture {
            Picture::Plain(size) if bytes.len() as u64 != *size => {
                return wrong(format!("an image of {size} bytes"), bytes.len().to_string());
            }
            Picture::Png if !bytes.starts_with(images::PNG_SIGNATURE) => {
                return wrong("a PNG file".to_owned(), "another signature".to_owned());
            }
            Picture::Jpeg if !bytes.starts_with(images::JPEG_SIGNATURE) => {
                return wrong("a JPEG file".to_owned(), "another signature".to_owned());
            }
            Picture::CheckedPng(image) => images::check_png(bytes, image, budget)?,
            Picture::Decoded(image) => {
                let plain = images::decode_png(bytes, image, budget)?;
                self.bytes.truncate(start);
                self.bytes.extend_from_slice(&plain);
            }
            _ => {}
        }
        self.end()
    }
}

#[inline]
pub(super) fn offset(len: usize) -> Result<i32> {
    i32::try_from(len).map_err(|_| {
        Error::limit("the limit", i32::MAX, format!("{len} bytes or elements in a column of a batch"))
    })
}

/// Takes the bits out; the memory stays.
fn take_bits(values: &mut Vec<bool>) -> BooleanBuffer {
    let bits = BooleanBuffer::collect_bool(values.len(), |index| values.get(index) == Some(&true));
    values.clear();
    bits
}

impl Column {
    /// An empty column for values of this type.
    pub(super) fn new(kind: &Type, reading: &Reading) -> Self {
        match kind {
            Type::Fundamental(kind) => Column::fundamental(*kind),
            Type::Image(image) => Column::Image(Blob::new(), Picture::new(image, reading)),
            Type::Tensor(tensor) => {
                let item = Box::new(Column::fundamental(tensor.component));
                Column::Tensor { item, count: tensor.count(), len: 0 }
            }
            Type::Tabular(table) => Column::List {
                offsets: vec![0],
                item: Box::new(Column::structure(&table.columns, reading)),
                row_count: table.row_count,
            },
            Type::Array(item) => {
                let item = Box::new(Column::new(item, reading));
                Column::List { offsets: vec![0], item, row_count: None }
            }
            Type::Struct(fields) => Column::structure(fields, reading),
            Type::Nullable(inner) => {
                // Null is always the outer one: a nullable inside a nullable adds nothing.
                let mut inner = inner.as_ref();
                while let Type::Nullable(deeper) = inner {
                    inner = deeper;
                }
                Column::Nullable { valid: Vec::new(), inner: Box::new(Column::new(inner, reading)) }
            }
        }
    }

    fn structure(fields: &[(String, Type)], reading: &Reading) -> Self {
        let names = fields.iter().map(|(name, _)| name.clone()).collect();
        let fields = fields.iter().map(|(_, kind)| Column::new(kind, reading)).collect();
        Column::Struct { names, fields, len: 0 }
    }

    fn fundamental(kind: Fundamental) -> Self {
        match kind {
            Fundamental::UInt8 => Column::UInt8(Vec::new()),
            Fundamental::Int8 => Column::Int8(Vec::new()),
            Fundamental::UInt32 => Column::UInt32(Vec::new()),
            Fundamental::Int32 => Column::Int32(Vec::new()),
            Fundamental::UInt64 => Column::UInt64(Vec::new()),
            Fundamental::Int64 => Column::Int64(Vec::new()),
            Fundamental::Bool => Column::Bool(Vec::new()),
            Fundamental::Float32 => Column::Float32(Vec::new()),
            Fundamental::Float64 => Column::Float64(Vec::new()),
            Fundamental::String => Column::Text(Blob::new()),
            Fundamental::Void => Column::Void(0),
        }
    }

    /// Where the quick loop puts values; `None` if it cannot read values of this type.
    pub(super) fn plain(&mut self) -> Option<rows::RowColumn<'_>> {
        let values = match self {
            Column::Bool(values) => Values::Bool(values),
            Column::UInt8(values) => Values::UInt8(values),
            Column::Int8(values) => Values::Int8(values),
            Column::UInt32(values) => Values::UInt32(values),
            Column::Int32(values) => Values::Int32(values),
            Column::UInt64(values) => Values::UInt64(values),
            Column::Int64(values) => Values::Int64(values),
            Column::Float32(values) => Values::Float32(values),
            Column::Float64(values) => Values::Float64(values),
            Column::Text(blob) => Values::Text(&mut blob.offsets, &mut blob.bytes),
            Column::Image(blob, Picture::Plain(size)) => {
                let size = usize::try_from(*size).ok()?;
                Values::Fixed(&mut blob.offsets, &mut blob.bytes, size)
            }
            Column::Nullable { valid, inner } => {
                let inner = inner.plain()?;
                return Some(rows::RowColumn { valid: Some(valid), ..inner });
            }
            _ => return None,
        };
        Some(rows::RowColumn { values, valid: None })
    }

    /// How many values are complete.
    pub(super) fn len(&self) -> usize {
        match self {
            Column::Void(len) | Column::Tensor { len, .. } | Column::Struct { len, .. } => *len,
            Column::Bool(values) => values.len(),
            Column::UInt8(values) => values.len(),
            Column::Int8(values) => values.len(),
            Column::UInt32(values) => values.len(),
            Column::Int32(values) => values.len(),
            Column::UInt64(values) => values.len(),
            Column::Int64(values) => values.len(),
            Column::Float32(values) => values.len(),
            Column::Float64(values) => values.len(),
            Column::Text(blob) | Column::Image(blob, _) => blob.offsets.len() - 1,
            Column::List { offsets, .. } => offsets.len() - 1,
            Column::Nullable { valid, .. } => valid.len(),
        }
    }

    /// Forgets all but the first `to` values, also what was begun of the next.
    pub(super) fn truncate(&mut self, to: usize) {
        match self {
            Column::Void(len) => *len = to.min(*len),
            Column::Bool(values) => values.truncate(to),
            Column::UInt8(values) => values.truncate(to),
            Column::Int8(values) => values.truncate(to),
            Column::UInt32(values) => values.truncate(to),
            Column::Int32(values) => values.truncate(to),
            Column::UInt64(values) => values.truncate(to),
            Column::Int64(values) => values.truncate(to),
            Column::Float32(values) => values.truncate(to),
            Column::Float64(values) => values.truncate(to),
            Column::Text(blob) | Column::Image(blob, _) => blob.truncate(to),
            Column::Tensor { item, count, len } => {
                *len = to.min(*len);
                item.truncate(*len * *count);
            }
            Column::List { offsets, item, .. } => {
                offsets.truncate(to + 1);
                item.truncate(offsets.last().and_then(|end| usize::try_from(*end).ok()).unwrap_or(0));
            }
            Column::Struct { fields, len, .. } => {
                *len = to.min(*len);
                fields.iter_mut().for_each(|field| field.truncate(to));
            }
            Column::Nullable { valid, inner } => {
                valid.truncate(to);
                inner.truncate(to);
            }
        }
    }

    /// Appends what stands in for `count` nulls.
    pub(super) fn push_stand_ins(&mut self, count: usize, reading: &mut Reading) -> Result<()> {
        let to = self.len().saturating_add(count);
        let mut cost = |size: usize| reading.stood_in((count as u64).saturating_mul(size as u64));
        match self {
            Column::Void(len) => *len = to,
            Column::Bool(values) => {
                cost(1)?;
                values.resize(to, false);
            }
            Column::UInt8(values) => {
                cost(1)?;
                values.resize(to, 0);
            }
            Column::Int8(values) => {
                cost(1)?;
                values.resize(to, 0);
            }
            Column::UInt32(values) => {
                cost(4)?;
                values.resize(to, 0);
            }
            Column::Int32(values) => {
                cost(4)?;
                values.resize(to, 0);
            }
            Column::UInt64(values) => {
                cost(8)?;
                values.resize(to, 0);
            }
            Column::Int64(values) => {
                cost(8)?;
                values.resize(to, 0);
            }
            Column::Float32(values) => {
                cost(4)?;
                values.resize(to, 0.0);
            }
            Column::Float64(values) => {
                cost(8)?;
                values.resize(to, 0.0);
            }
            Column::Text(Blob { offsets, .. })
            | Column::Image(Blob { offsets, .. }, _)
            | Column::List { offsets, .. } => {
                cost(4)?;
                let end = offsets.last().copied().unwrap_or(0);
                offsets.resize(to + 1, end);
            }
            Column::Tensor { item, count: elements, len } => {
                let elements = count.saturating_mul(*elements);
                offset(elements)?;
                item.push_stand_ins(elements, reading)?;
                *len = to;
            }
            Column::Struct { fields, len, .. } => {
                for field in fields {
                    field.push_stand_ins(count, reading)?;
                }
                *len = to;
            }
            Column::Nullable { valid, inner } => {
                cost(1)?;
                inner.push_stand_ins(count, reading)?;
                valid.resize(to, false);
            }
        }
        Ok(())
    }

    /// The values as an array of `field`'s type; the column is empty again.
    pub(super) fn finish(&mut self, field: &Field, nulls: Option<NullBuffer>) -> Result<ArrayRef> {
        fn primitive<T: ArrowPrimitiveType>(
            values: &mut Vec<T::Native>,
            nulls: Option<NullBuffer>,
        ) -> Result<ArrayRef> {
            Ok(Arc::new(PrimitiveArray::<T>::try_new(std::mem::take(values).into(), nulls)?))
        }
        let odd = || Error::unsupported(format!("a column of type {}", print_type(field.data_type())));
        Ok(match self {
            Column::Void(len) => Arc::new(NullArray::new(std::mem::take(len))),
            Column::Bool(values) => Arc::new(BooleanArray::new(take_bits(values), nulls)),
            Column::UInt8(values) => primitive::<UInt8Type>(values, nulls)?,
            Column::Int8(values) => primitive::<Int8Type>(values, nulls)?,
            Column::UInt32(values) => primitive::<UInt32Type>(values, nulls)?,
            Column::Int32(values) => primitive::<Int32Type>(values, nulls)?,
            Column::UInt64(values) => primitive::<UInt64Type>(values, nulls)?,
            Column::Int64(values) => primitive::<Int64Type>(values, nulls)?,
            Column::Float32(values) => primitive::<Float32Type>(values, nulls)?,
            Column::Float64(values) => primitive::<Float64Type>(values, nulls)?,
            Column::Text(blob) => {
                let (offsets, bytes) = blob.take();
                Arc::new(StringArray::try_new(offsets, bytes, nulls)?)
            }
            Column::Image(blob, _) => {
                let (offsets, bytes) = blob.take();
                Arc::new(BinaryArray::try_new(offsets, bytes, nulls)?)
            }
            Column::Tensor { item, len, .. } => {
                let DataType::FixedSizeList(inner, size) = field.data_type() else { return Err(odd()) };
                let values = item.finish(inner, None)?;
                let len = std::mem::take(len);
                let inner = Arc::clone(inner);
                Arc::new(FixedSizeListArray::try_new_with_length(inner, *size, values, nulls, len)?)
            }
            Column::List { offsets, item, .. } => {
                let DataType::List(inner) = field.data_type() else { return Err(odd()) };
                let values = item.finish(inner, None)?;
                let ends = std::mem::replace(offsets, vec![0]);
                Arc::new(ListArray::try_new(
                    Arc::clone(inner),
                    OffsetBuffer::new(ends.into()),
                    values,
                    nulls,
                )?)
            }
            Column::Struct { fields, len, .. } => {
                let DataType::Struct(inner) = field.data_type() else { return Err(odd()) };
                let arrays = fields.iter_mut().zip(inner).map(|(column, field)| column.finish(field, None));
                let arrays = arrays.collect::<Result<Vec<ArrayRef>>>()?;
                let len = std::mem::take(len);
                Arc::new(StructArray::try_new_with_length(inner.clone(), arrays, nulls, len)?)
            }
            Column::Nullable { valid, inner } => {
                let nulls = NullBuffer::new(take_bits(valid));
                let nulls = (nulls.null_count() > 0).then_some(nulls);
                return inner.finish(field, nulls);
            }
        })
    }
}
