//! Columns being filled: plain vectors, truncated if a row is incomplete, and converted to Arrow arrays.
//!
//! The decoder of a column is chosen once, when the column is created; `decode.rs` fills it. Room for a batch as
//! large as the previous one is reserved when the next batch begins, not when the previous one ends: by then the
//! previous batch has usually been freed, and the allocator reuses its memory.

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
use crate::cursor::allocate;
use crate::error::{Error, Result};
use crate::hub::type_text::print_type;
use crate::kernels::rows::{self, Values};
use crate::limits::{Budget, Limits};

/// The options of reading, and the memory of the batch so far beyond its bytes in the file.
#[derive(Debug, Clone)]
pub(super) struct Reading {
    /// Integers are accepted in float columns, and base64 without padding.
    pub(super) lenient: bool,
    /// `null` is read as NaN in float columns of JSON.
    pub(super) nan_null: bool,
    /// PNG and JPEG images are decoded.
    pub(super) decode: bool,
    /// PNG and JPEG images that are not decoded are compared with their type.
    pub(super) check_images: bool,
    pub(super) budget: Budget,
    /// Bytes of placeholder values for nulls: a null tensor is one byte in the file.
    pub(super) placeholder_bytes: u64,
}

impl Reading {
    /// The default options.
    pub(super) fn plain(limits: &Limits) -> Self {
        let budget = limits.budget();
        Reading {
            lenient: false,
            nan_null: false,
            decode: false,
            check_images: false,
            budget,
            placeholder_bytes: 0,
        }
    }

    /// Counts bytes of placeholder values for nulls.
    pub(super) fn count_placeholders(&mut self, bytes: u64) -> Result<()> {
        self.placeholder_bytes = self.placeholder_bytes.saturating_add(bytes);
        self.budget.check(self.placeholder_bytes)
    }
}

/// One column, or a part of one.
#[derive(Debug)]
pub(super) enum ColumnBuilder {
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
    Tensor { item: Box<ColumnBuilder>, count: usize, len: usize },
    List { offsets: Vec<i32>, item: Box<ColumnBuilder>, row_count: Option<u64> },
    Struct { names: Vec<String>, fields: Vec<ColumnBuilder>, len: usize },
    Nullable { valid: Vec<bool>, inner: Box<ColumnBuilder> },
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

/// The expected encoding of an image, and whether it is decoded.
#[derive(Debug)]
pub(super) enum Picture {
    /// This many bytes.
    Plain(u64),
    /// A PNG file, not decoded.
    Png,
    /// A JPEG file, not decoded.
    Jpeg,
    /// A file that is not decoded, but compared with its type.
    Checked(Image),
    /// A file, decoded to a plain image.
    Decoded(Image),
}

impl Picture {
    fn new(image: &Image, reading: &Reading) -> Self {
        match image.format {
            // No byte string has a size past 2^64.
            ImageFormat::Plain => Picture::Plain(image.plain_bytes().unwrap_or(u64::MAX)),
            _ if reading.decode => Picture::Decoded(image.clone()),
            _ if reading.check_images => Picture::Checked(image.clone()),
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
            Picture::Checked(image) => images::check_file(bytes, image, budget)?,
            Picture::Decoded(image) => {
                let plain = images::decode(bytes, image, budget)?;
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

/// Returns the bits and clears the vector, keeping its memory.
fn take_bits(values: &mut Vec<bool>) -> BooleanBuffer {
    let bits = BooleanBuffer::collect_bool(values.len(), |index| values.get(index) == Some(&true));
    values.clear();
    bits
}

impl ColumnBuilder {
    /// An empty column for values of this type.
    pub(super) fn new(kind: &Type, reading: &Reading) -> Self {
        match kind {
            Type::Fundamental(kind) => ColumnBuilder::fundamental(*kind),
            Type::Image(image) => ColumnBuilder::Image(Blob::new(), Picture::new(image, reading)),
            Type::Tensor(tensor) => {
                let item = Box::new(ColumnBuilder::fundamental(tensor.component));
                ColumnBuilder::Tensor { item, count: tensor.count(), len: 0 }
            }
            Type::Tabular(table) => ColumnBuilder::List {
                offsets: vec![0],
                item: Box::new(ColumnBuilder::structure(&table.columns, reading)),
                row_count: table.row_count,
            },
            Type::Array(item) => {
                let item = Box::new(ColumnBuilder::new(item, reading));
                ColumnBuilder::List { offsets: vec![0], item, row_count: None }
            }
            Type::Struct(fields) => ColumnBuilder::structure(fields, reading),
            Type::Nullable(inner) => {
                // A null is always one of the outer type, so a nullable inside a nullable is ignored.
                let mut inner = inner.as_ref();
                while let Type::Nullable(deeper) = inner {
                    inner = deeper;
                }
                ColumnBuilder::Nullable {
                    valid: Vec::new(),
                    inner: Box::new(ColumnBuilder::new(inner, reading)),
                }
            }
        }
    }

    fn structure(fields: &[(String, Type)], reading: &Reading) -> Self {
        let names = fields.iter().map(|(name, _)| name.clone()).collect();
        let fields = fields.iter().map(|(_, kind)| ColumnBuilder::new(kind, reading)).collect();
        ColumnBuilder::Struct { names, fields, len: 0 }
    }

    fn fundamental(kind: Fundamental) -> Self {
        match kind {
            Fundamental::UInt8 => ColumnBuilder::UInt8(Vec::new()),
            Fundamental::Int8 => ColumnBuilder::Int8(Vec::new()),
            Fundamental::UInt32 => ColumnBuilder::UInt32(Vec::new()),
            Fundamental::Int32 => ColumnBuilder::Int32(Vec::new()),
            Fundamental::UInt64 => ColumnBuilder::UInt64(Vec::new()),
            Fundamental::Int64 => ColumnBuilder::Int64(Vec::new()),
            Fundamental::Bool => ColumnBuilder::Bool(Vec::new()),
            Fundamental::Float32 => ColumnBuilder::Float32(Vec::new()),
            Fundamental::Float64 => ColumnBuilder::Float64(Vec::new()),
            Fundamental::String => ColumnBuilder::Text(Blob::new()),
            Fundamental::Void => ColumnBuilder::Void(0),
        }
    }

    /// The output of the fast loop; `None` if it cannot read values of this type.
    pub(super) fn plain(&mut self) -> Option<rows::RowColumn<'_>> {
        let values = match self {
            ColumnBuilder::Bool(values) => Values::Bool(values),
            ColumnBuilder::UInt8(values) => Values::UInt8(values),
            ColumnBuilder::Int8(values) => Values::Int8(values),
            ColumnBuilder::UInt32(values) => Values::UInt32(values),
            ColumnBuilder::Int32(values) => Values::Int32(values),
            ColumnBuilder::UInt64(values) => Values::UInt64(values),
            ColumnBuilder::Int64(values) => Values::Int64(values),
            ColumnBuilder::Float32(values) => Values::Float32(values),
            ColumnBuilder::Float64(values) => Values::Float64(values),
            ColumnBuilder::Text(blob) => Values::Text(&mut blob.offsets, &mut blob.bytes),
            ColumnBuilder::Image(blob, Picture::Plain(size)) => {
                let size = usize::try_from(*size).ok()?;
                Values::Fixed(&mut blob.offsets, &mut blob.bytes, size)
            }
            ColumnBuilder::Nullable { valid, inner } => {
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
            ColumnBuilder::Void(len)
            | ColumnBuilder::Tensor { len, .. }
            | ColumnBuilder::Struct { len, .. } => *len,
            ColumnBuilder::Bool(values) => values.len(),
            ColumnBuilder::UInt8(values) => values.len(),
            ColumnBuilder::Int8(values) => values.len(),
            ColumnBuilder::UInt32(values) => values.len(),
            ColumnBuilder::Int32(values) => values.len(),
            ColumnBuilder::UInt64(values) => values.len(),
            ColumnBuilder::Int64(values) => values.len(),
            ColumnBuilder::Float32(values) => values.len(),
            ColumnBuilder::Float64(values) => values.len(),
            ColumnBuilder::Text(blob) | ColumnBuilder::Image(blob, _) => blob.offsets.len() - 1,
            ColumnBuilder::List { offsets, .. } => offsets.len() - 1,
            ColumnBuilder::Nullable { valid, .. } => valid.len(),
        }
    }

    /// Truncates to the first `to` values, including an incomplete next one.
    pub(super) fn truncate(&mut self, to: usize) {
        match self {
            ColumnBuilder::Void(len) => *len = to.min(*len),
            ColumnBuilder::Bool(values) => values.truncate(to),
            ColumnBuilder::UInt8(values) => values.truncate(to),
            ColumnBuilder::Int8(values) => values.truncate(to),
            ColumnBuilder::UInt32(values) => values.truncate(to),
            ColumnBuilder::Int32(values) => values.truncate(to),
            ColumnBuilder::UInt64(values) => values.truncate(to),
            ColumnBuilder::Int64(values) => values.truncate(to),
            ColumnBuilder::Float32(values) => values.truncate(to),
            ColumnBuilder::Float64(values) => values.truncate(to),
            ColumnBuilder::Text(blob) | ColumnBuilder::Image(blob, _) => blob.truncate(to),
            ColumnBuilder::Tensor { item, count, len } => {
                *len = to.min(*len);
                item.truncate(*len * *count);
            }
            ColumnBuilder::List { offsets, item, .. } => {
                offsets.truncate(to + 1);
                item.truncate(offsets.last().and_then(|end| usize::try_from(*end).ok()).unwrap_or(0));
            }
            ColumnBuilder::Struct { fields, len, .. } => {
                *len = to.min(*len);
                fields.iter_mut().for_each(|field| field.truncate(to));
            }
            ColumnBuilder::Nullable { valid, inner } => {
                valid.truncate(to);
                inner.truncate(to);
            }
        }
    }

    /// Appends placeholder values for `count` nulls.
    pub(super) fn push_placeholders(&mut self, count: usize, reading: &mut Reading) -> Result<()> {
        /// Appends default values, of which `cost` counts the bytes of each.
        fn pad<T: Clone + Default>(
            values: &mut Vec<T>,
            to: usize,
            mut cost: impl FnMut(usize) -> Result<()>,
        ) -> Result<()> {
            cost(size_of::<T>())?;
            values.resize(to, T::default());
            Ok(())
        }
        let to = self.len().saturating_add(count);
        let mut cost = |size: usize| reading.count_placeholders((count as u64).saturating_mul(size as u64));
        match self {
            ColumnBuilder::Void(len) => *len = to,
            ColumnBuilder::Bool(values) => pad(values, to, cost)?,
            ColumnBuilder::UInt8(values) => pad(values, to, cost)?,
            ColumnBuilder::Int8(values) => pad(values, to, cost)?,
            ColumnBuilder::UInt32(values) => pad(values, to, cost)?,
            ColumnBuilder::Int32(values) => pad(values, to, cost)?,
            ColumnBuilder::UInt64(values) => pad(values, to, cost)?,
            ColumnBuilder::Int64(values) => pad(values, to, cost)?,
            ColumnBuilder::Float32(values) => pad(values, to, cost)?,
            ColumnBuilder::Float64(values) => pad(values, to, cost)?,
            ColumnBuilder::Text(Blob { offsets, .. })
            | ColumnBuilder::Image(Blob { offsets, .. }, _)
            | ColumnBuilder::List { offsets, .. } => {
                cost(4)?;
                let end = offsets.last().copied().unwrap_or(0);
                offsets.resize(to + 1, end);
            }
            ColumnBuilder::Tensor { item, count: elements, len } => {
                let elements = count.saturating_mul(*elements);
                offset(elements)?;
                item.push_placeholders(elements, reading)?;
                *len = to;
            }
            ColumnBuilder::Struct { fields, len, .. } => {
                for field in fields {
                    field.push_placeholders(count, reading)?;
                }
                *len = to;
            }
            ColumnBuilder::Nullable { valid, inner } => {
                cost(1)?;
                inner.push_placeholders(count, reading)?;
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
            ColumnBuilder::Void(len) => Arc::new(NullArray::new(std::mem::take(len))),
            ColumnBuilder::Bool(values) => Arc::new(BooleanArray::new(take_bits(values), nulls)),
            ColumnBuilder::UInt8(values) => primitive::<UInt8Type>(values, nulls)?,
            ColumnBuilder::Int8(values) => primitive::<Int8Type>(values, nulls)?,
            ColumnBuilder::UInt32(values) => primitive::<UInt32Type>(values, nulls)?,
            ColumnBuilder::Int32(values) => primitive::<Int32Type>(values, nulls)?,
            ColumnBuilder::UInt64(values) => primitive::<UInt64Type>(values, nulls)?,
            ColumnBuilder::Int64(values) => primitive::<Int64Type>(values, nulls)?,
            ColumnBuilder::Float32(values) => primitive::<Float32Type>(values, nulls)?,
            ColumnBuilder::Float64(values) => primitive::<Float64Type>(values, nulls)?,
            ColumnBuilder::Text(blob) => {
                let (offsets, bytes) = blob.take();
                Arc::new(StringArray::try_new(offsets, bytes, nulls)?)
            }
            ColumnBuilder::Image(blob, _) => {
                let (offsets, bytes) = blob.take();
                Arc::new(BinaryArray::try_new(offsets, bytes, nulls)?)
            }
            ColumnBuilder::Tensor { item, len, .. } => {
                let DataType::FixedSizeList(inner, size) = field.data_type() else { return Err(odd()) };
                let values = item.finish(inner, None)?;
                let len = std::mem::take(len);
                let inner = Arc::clone(inner);
                Arc::new(FixedSizeListArray::try_new_with_length(inner, *size, values, nulls, len)?)
            }
            ColumnBuilder::List { offsets, item, .. } => {
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
            ColumnBuilder::Struct { fields, len, .. } => {
                let DataType::Struct(inner) = field.data_type() else { return Err(odd()) };
                let arrays = fields.iter_mut().zip(inner).map(|(column, field)| column.finish(field, None));
                let arrays = arrays.collect::<Result<Vec<ArrayRef>>>()?;
                let len = std::mem::take(len);
                Arc::new(StructArray::try_new_with_length(inner.clone(), arrays, nulls, len)?)
            }
            ColumnBuilder::Nullable { valid, inner } => {
                let nulls = NullBuffer::new(take_bits(valid));
                let nulls = (nulls.null_count() > 0).then_some(nulls);
                return inner.finish(field, nulls);
            }
        })
    }
}

/// An operation on each vector of a column, in order.
trait Visit {
    fn visit<T: Copy>(&mut self, vector: &mut Vec<T>);
}

/// How long the vectors of columns were.
#[derive(Debug, Default)]
pub(super) struct Lengths(Vec<usize>);

impl Lengths {
    /// Records the lengths of the vectors of `columns`.
    pub(super) fn measure<'c>(columns: impl Iterator<Item = &'c mut ColumnBuilder>) -> Self {
        let mut lengths = Lengths::default();
        columns.for_each(|column| column.each_vector(&mut lengths));
        lengths
    }

    /// Reserves the same lengths and some more, since batches differ slightly. Does nothing if the budget does not
    /// allow it.
    pub(super) fn make_room<'c>(self, columns: impl Iterator<Item = &'c mut ColumnBuilder>, budget: &Budget) {
        let mut rooms = Rooms { lengths: self.0.into_iter(), budget };
        columns.for_each(|column| column.each_vector(&mut rooms));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Visit for Lengths {
    fn visit<T: Copy>(&mut self, vector: &mut Vec<T>) {
        self.0.push(vector.len());
    }
}

struct Rooms<'b> {
    lengths: std::vec::IntoIter<usize>,
    budget: &'b Budget,
}

impl Visit for Rooms<'_> {
    fn visit<T: Copy>(&mut self, vector: &mut Vec<T>) {
        let len = self.lengths.next().unwrap_or(0) as u64;
        let wanted = len + len / 8;
        if wanted > vector.capacity() as u64
            && let Ok(mut room) = allocate(wanted, self.budget)
        {
            room.extend_from_slice(vector);
            *vector = room;
        }
    }
}

impl ColumnBuilder {
    fn each_vector(&mut self, visit: &mut impl Visit) {
        match self {
            ColumnBuilder::Void(_) => {}
            ColumnBuilder::Bool(values) => visit.visit(values),
            ColumnBuilder::UInt8(values) => visit.visit(values),
            ColumnBuilder::Int8(values) => visit.visit(values),
            ColumnBuilder::UInt32(values) => visit.visit(values),
            ColumnBuilder::Int32(values) => visit.visit(values),
            ColumnBuilder::UInt64(values) => visit.visit(values),
            ColumnBuilder::Int64(values) => visit.visit(values),
            ColumnBuilder::Float32(values) => visit.visit(values),
            ColumnBuilder::Float64(values) => visit.visit(values),
            ColumnBuilder::Text(blob) | ColumnBuilder::Image(blob, _) => {
                visit.visit(&mut blob.offsets);
                visit.visit(&mut blob.bytes);
            }
            ColumnBuilder::Tensor { item, .. } => item.each_vector(visit),
            ColumnBuilder::List { offsets, item, .. } => {
                visit.visit(offsets);
                item.each_vector(visit);
            }
            ColumnBuilder::Struct { fields, .. } => {
                fields.iter_mut().for_each(|field| field.each_vector(visit))
            }
            ColumnBuilder::Nullable { valid, inner } => {
                visit.visit(valid);
                inner.each_vector(visit);
            }
        }
    }
}
