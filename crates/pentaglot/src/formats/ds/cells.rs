//! Arrow arrays bound to DS types, from which cells are written one by one.
//!
//! Types are matched once per batch; types that DS does not have are cast first, as planned.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Float32Type, Float64Type, Int8Type, Int32Type, Int64Type, UInt8Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef, BinaryArray, BooleanArray, StringArray};
use arrow_buffer::{NullBuffer, ScalarBuffer};
use arrow_schema::DataType;

use super::images::{self, Transform};
use super::layout::fixed_form;
use super::types::{Fundamental, Image, ImageFormat, Type};
use crate::error::{Error, Result};
use crate::hub::json::{Float, special_float};
use crate::hub::type_text::print_type;
use crate::kernels::rows::{self, Given};
use crate::limits::Budget;
use crate::wire::json::write_string;
use crate::wire::msgpack::Output;

/// The values of one column, or a part of one.
pub(super) enum Cells {
    Void,
    Bool(BooleanArray),
    UInt8(ScalarBuffer<u8>),
    Int8(ScalarBuffer<i8>),
    UInt32(ScalarBuffer<u32>),
    Int32(ScalarBuffer<i32>),
    UInt64(ScalarBuffer<u64>),
    Int64(ScalarBuffer<i64>),
    Float32(ScalarBuffer<f32>),
    Float64(ScalarBuffer<f64>),
    Text(StringArray),
    Image(Box<Picture>),
    Tensor {
        items: Box<Cells>,
        count: usize,
    },
    List {
        ends: Vec<usize>,
        items: Box<Cells>,
        row_count: Option<u64>,
    },
    Struct {
        names: Vec<String>,
        fields: Vec<Cells>,
    },
    /// Values with nulls, and whether nulls are allowed.
    Masked {
        nulls: NullBuffer,
        inner: Box<Cells>,
        allowed: bool,
    },
}

/// An image column and its transformation.
pub(super) struct Picture {
    bytes: BinaryArray,
    image: Image,
    transform: Transform,
    budget: Budget,
}

/// How cells are written.
#[derive(Debug, Clone)]
pub(super) struct Writing {
    /// Integers take the full width of their type.
    pub(super) fixed: bool,
    /// NaN and infinities are written as null in JSON.
    pub(super) nan_null: bool,
    pub(super) transform: Transform,
    pub(super) budget: Budget,
}

impl Cells {
    /// Binds an array to the type that it was planned to be.
    pub(super) fn bind(array: &ArrayRef, kind: &Type, writing: &Writing) -> Result<Cells> {
        let (kind, allowed) = match kind {
            Type::Nullable(_) => {
                let mut inner = kind;
                while let Type::Nullable(deeper) = inner {
                    inner = deeper;
                }
                (inner, true)
            }
            other => (other, false),
        };
        if *kind == Type::Fundamental(Fundamental::Void) {
            return Ok(Cells::Void);
        }
        let (inner, nulls) = Cells::bind_values(array, kind, writing)?;
        Ok(match nulls.filter(|nulls| nulls.null_count() > 0) {
            Some(nulls) => Cells::Masked { nulls, inner: Box::new(inner), allowed },
            None => inner,
        })
    }

    fn bind_values(array: &ArrayRef, kind: &Type, writing: &Writing) -> Result<(Cells, Option<NullBuffer>)> {
        let odd = || Error::unsupported(format!("writing {} as {kind}", print_type(array.data_type())));
        let cells = match kind {
            Type::Fundamental(fundamental) => {
                let array = cast(array, &fundamental.data_type())?;
                let nulls = array.nulls().cloned();
                return Ok((Cells::fundamental(&array, *fundamental), nulls));
            }
            Type::Image(image) => {
                let array = cast(array, &DataType::Binary)?;
                let picture = Picture {
                    bytes: array.as_binary::<i32>().clone(),
                    image: image.clone(),
                    transform: writing.transform,
                    budget: writing.budget.clone(),
                };
                return Ok((Cells::Image(Box::new(picture)), array.nulls().cloned()));
            }
            Type::Tensor(tensor) => {
                let list = array.as_fixed_size_list_opt().ok_or_else(odd)?;
                let component = Type::Fundamental(tensor.component);
                let items = Box::new(Cells::bind(list.values(), &component, writing)?);
                Cells::Tensor { items, count: tensor.count() }
            }
            Type::Tabular(table) => {
                let row = Type::Struct(table.columns.clone());
                Cells::list(array, &row, table.row_count, writing)?.ok_or_else(odd)?
            }
            Type::Array(item) => Cells::list(array, item, None, writing)?.ok_or_else(odd)?,
            Type::Struct(fields) => {
                let columns = array.as_struct_opt().ok_or_else(odd)?;
                if columns.num_columns() != fields.len() {
                    return Err(odd());
                }
                let bound = columns.columns().iter().zip(fields);
                let bound = bound.map(|(array, (_, kind))| Cells::bind(array, kind, writing));
                let names = fields.iter().map(|(name, _)| name.clone()).collect();
                Cells::Struct { names, fields: bound.collect::<Result<_>>()? }
            }
            Type::Nullable(_) => return Err(odd()),
        };
        Ok((cells, array.nulls().cloned()))
    }

    fn list(
        array: &ArrayRef,
        item: &Type,
        row_count: Option<u64>,
        writing: &Writing,
    ) -> Result<Option<Cells>> {
        let at = |offset: i64| usize::try_from(offset).unwrap_or(0);
        let (ends, values): (Vec<usize>, &ArrayRef) = match array.data_type() {
            DataType::List(_) => {
                let list = array.as_list::<i32>();
                (list.value_offsets().iter().map(|end| at(i64::from(*end))).collect(), list.values())
            }
            DataType::LargeList(_) => {
                let list = array.as_list::<i64>();
                (list.value_offsets().iter().map(|end| at(*end)).collect(), list.values())
            }
            DataType::FixedSizeList(_, size) => {
                let list = array.as_fixed_size_list();
                let size = usize::try_from(*size).unwrap_or(0);
                ((0..=list.len()).map(|index| index * size).collect(), list.values())
            }
            DataType::Map(_, _) => {
                let map = array.as_map();
                let entries: ArrayRef = std::sync::Arc::new(map.entries().clone());
                let ends = map.value_offsets().iter().map(|end| at(i64::from(*end))).collect();
                let items = Box::new(Cells::bind(&entries, item, writing)?);
                return Ok(Some(Cells::List { ends, items, row_count }));
            }
            _ => return Ok(None),
        };
        let items = Box::new(Cells::bind(values, item, writing)?);
        Ok(Some(Cells::List { ends, items, row_count }))
    }

    fn fundamental(array: &ArrayRef, kind: Fundamental) -> Cells {
        match kind {
            Fundamental::UInt8 => Cells::UInt8(array.as_primitive::<UInt8Type>().values().clone()),
            Fundamental::Int8 => Cells::Int8(array.as_primitive::<Int8Type>().values().clone()),
            Fundamental::UInt32 => Cells::UInt32(array.as_primitive::<UInt32Type>().values().clone()),
            Fundamental::Int32 => Cells::Int32(array.as_primitive::<Int32Type>().values().clone()),
            Fundamental::UInt64 => Cells::UInt64(array.as_primitive::<UInt64Type>().values().clone()),
            Fundamental::Int64 => Cells::Int64(array.as_primitive::<Int64Type>().values().clone()),
            Fundamental::Bool => Cells::Bool(array.as_boolean().clone()),
            Fundamental::Float32 => Cells::Float32(array.as_primitive::<Float32Type>().values().clone()),
            Fundamental::Float64 => Cells::Float64(array.as_primitive::<Float64Type>().values().clone()),
            Fundamental::String => Cells::Text(array.as_string::<i32>().clone()),
            Fundamental::Void => Cells::Void,
        }
    }

    /// The input of the fast loop; `None` if it cannot write all of these values.
    pub(super) fn plain(&self) -> Option<rows::Cells<'_>> {
        let values = match self {
            Cells::Bool(array) => Given::Bool(array.values()),
            Cells::UInt8(values) => Given::UInt8(values),
            Cells::Int8(values) => Given::Int8(values),
            Cells::UInt32(values) => Given::UInt32(values),
            Cells::Int32(values) => Given::Int32(values),
            Cells::UInt64(values) => Given::UInt64(values),
            Cells::Int64(values) => Given::Int64(values),
            Cells::Float32(values) => Given::Float32(values),
            Cells::Float64(values) => Given::Float64(values),
            Cells::Text(array) => Given::Text(array.offsets(), array.value_data()),
            Cells::Image(picture) if picture.is_plain() => {
                Given::Bytes(picture.bytes.offsets(), picture.bytes.value_data())
            }
            Cells::Masked { nulls, inner, allowed: true } => {
                let inner = inner.plain()?;
                return Some(rows::Cells { nulls: Some(nulls), ..inner });
            }
            _ => return None,
        };
        Some(rows::Cells { values, nulls: None })
    }

    /// Writes value `index` as MessagePack.
    pub(super) fn write_msgpack(&self, index: usize, output: &mut Output, writing: &Writing) -> Result<()> {
        match self {
            Cells::Void => output.nil(),
            Cells::Bool(array) => output.bool(array.value(index)),
            Cells::UInt8(values) => {
                unsigned(output, u64::from(at(values, index)?), Fundamental::UInt8, writing)
            }
            Cells::UInt32(values) => {
                unsigned(output, u64::from(at(values, index)?), Fundamental::UInt32, writing)
            }
            Cells::UInt64(values) => unsigned(output, at(values, index)?, Fundamental::UInt64, writing),
            Cells::Int8(values) => signed(output, i64::from(at(values, index)?), Fundamental::Int8, writing),
            Cells::Int32(values) => {
                signed(output, i64::from(at(values, index)?), Fundamental::Int32, writing)
            }
            Cells::Int64(values) => signed(output, at(values, index)?, Fundamental::Int64, writing),
            Cells::Float32(values) => output.single(at(values, index)?),
            Cells::Float64(values) => output.double(at(values, index)?),
            Cells::Text(array) => output.str(array.value(index).as_bytes())?,
            Cells::Image(picture) => picture.with(index, |bytes| output.bin(bytes))?,
            Cells::Tensor { items, count } => {
                output.array(*count)?;
                for (element, item) in (index * count..(index + 1) * count).enumerate() {
                    items
                        .write_msgpack(item, output, writing)
                        .map_err(|error| error.index(element as u64))?;
                }
            }
            Cells::List { ends, items, row_count } => {
                let range = list_range(ends, index, *row_count)?;
                output.array(range.len())?;
                for (element, item) in range.enumerate() {
                    items
                        .write_msgpack(item, output, writing)
                        .map_err(|error| error.index(element as u64))?;
                }
            }
            Cells::Struct { names, fields } => {
                output.array(fields.len())?;
                for (field, name) in fields.iter().zip(names) {
                    field.write_msgpack(index, output, writing).map_err(|error| error.field(name.clone()))?;
                }
            }
            Cells::Masked { nulls, inner, allowed } => {
                if nulls.is_valid(index) {
                    return inner.write_msgpack(index, output, writing);
                }
                check_null(*allowed)?;
                output.nil();
            }
        }
        Ok(())
    }

    /// Writes value `index` as JSON.
    pub(super) fn write_json(&self, index: usize, text: &mut Vec<u8>, writing: &Writing) -> Result<()> {
        match self {
            Cells::Void => text.extend_from_slice(b"null"),
            Cells::Bool(array) => text.extend_from_slice(if array.value(index) { b"true" } else { b"false" }),
            Cells::UInt8(values) => number(text, at(values, index)?),
            Cells::UInt32(values) => number(text, at(values, index)?),
            Cells::UInt64(values) => number(text, at(values, index)?),
            Cells::Int8(values) => number(text, at(values, index)?),
            Cells::Int32(values) => number(text, at(values, index)?),
            Cells::Int64(values) => number(text, at(values, index)?),
            Cells::Float32(values) => float(text, at(values, index)?, writing)?,
            Cells::Float64(values) => float(text, at(values, index)?, writing)?,
            Cells::Text(array) => write_string(text, array.value(index)),
            Cells::Image(picture) => picture.with(index, |bytes| {
                text.push(b'"');
                base64_simd::STANDARD.encode_append(bytes, text);
                text.push(b'"');
                Ok(())
            })?,
            Cells::Tensor { items, count } => {
                json_items(items, index * count..(index + 1) * count, text, writing)?
            }
            Cells::List { ends, items, row_count } => {
                json_items(items, list_range(ends, index, *row_count)?, text, writing)?;
            }
            Cells::Struct { names, fields } => {
                text.push(b'[');
                for (place, (field, name)) in fields.iter().zip(names).enumerate() {
                    if place > 0 {
                        text.push(b',');
                    }
                    field.write_json(index, text, writing).map_err(|error| error.field(name.clone()))?;
                }
                text.push(b']');
            }
            Cells::Masked { nulls, inner, allowed } => {
                if nulls.is_valid(index) {
                    return inner.write_json(index, text, writing);
                }
                check_null(*allowed)?;
                text.extend_from_slice(b"null");
            }
        }
        Ok(())
    }
}

fn json_items(
    items: &Cells,
    range: std::ops::Range<usize>,
    text: &mut Vec<u8>,
    writing: &Writing,
) -> Result<()> {
    text.push(b'[');
    for (element, item) in range.enumerate() {
        if element > 0 {
            text.push(b',');
        }
        items.write_json(item, text, writing).map_err(|error| error.index(element as u64))?;
    }
    text.push(b']');
    Ok(())
}

fn cast(array: &ArrayRef, to: &DataType) -> Result<ArrayRef> {
    if array.data_type() == to {
        return Ok(std::sync::Arc::clone(array));
    }
    // A safe cast would turn values that do not fit into nulls.
    let options = arrow_cast::CastOptions { safe: false, ..Default::default() };
    arrow_cast::cast_with_options(array, to, &options).map_err(|error| Error::lossy(error.to_string()))
}

#[inline]
fn at<T: Copy>(values: &[T], index: usize) -> Result<T> {
    values.get(index).copied().ok_or_else(|| Error::usage("a row past the end of its batch"))
}

#[inline]
fn unsigned(output: &mut Output, value: u64, kind: Fundamental, writing: &Writing) {
    match fixed_form(kind) {
        Some((code, size)) if writing.fixed => output.fixed(code, value, size),
        _ => output.unsigned(value),
    }
}

#[inline]
fn signed(output: &mut Output, value: i64, kind: Fundamental, writing: &Writing) {
    match fixed_form(kind) {
        Some((code, size)) if writing.fixed => output.fixed(code, value.cast_unsigned(), size),
        _ => output.signed(value),
    }
}

fn number(text: &mut Vec<u8>, value: impl itoa::Integer) {
    text.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

fn float(text: &mut Vec<u8>, value: impl Float, writing: &Writing) -> Result<()> {
    match special_float(value.widen()) {
        None => value.write_finite(text),
        Some(_) if writing.nan_null => text.extend_from_slice(b"null"),
        Some(name) => {
            return Err(Error::lossy(format!("{name} has no JSON form (the option nan=null writes null)")));
        }
    }
    Ok(())
}

fn check_null(allowed: bool) -> Result<()> {
    if allowed { Ok(()) } else { Err(Error::lossy("null in a column that is not nullable")) }
}

fn list_range(ends: &[usize], index: usize, row_count: Option<u64>) -> Result<std::ops::Range<usize>> {
    let range = at(ends, index)?..at(ends, index + 1)?;
    match row_count {
        Some(count) if count != range.len() as u64 => {
            Err(Error::lossy(format!("rowCount = {count} rows are declared, found {}", range.len())))
        }
        _ => Ok(range),
    }
}

impl Picture {
    /// Whether all images are plain ones, of the right size, and stay so.
    fn is_plain(&self) -> bool {
        let Some(size) = self.image.plain_bytes().filter(|_| self.image.format == ImageFormat::Plain) else {
            return false;
        };
        let target = self.transform.image(&self.image);
        target.is_ok_and(|target| target.format == ImageFormat::Plain)
            && self.bytes.offsets().lengths().all(|len| len as u64 == size)
    }

    /// Calls `write` with the bytes of an image, checked and transformed.
    fn with(&self, index: usize, write: impl FnOnce(&[u8]) -> Result<()>) -> Result<()> {
        let bytes = self.bytes.value(index);
        let sound = match self.image.format {
            ImageFormat::Plain => Some(bytes.len() as u64) == self.image.plain_bytes(),
            ImageFormat::Png => bytes.starts_with(images::PNG_SIGNATURE),
            ImageFormat::Jpeg => bytes.starts_with(images::JPEG_SIGNATURE),
        };
        if !sound {
            let size = self.image.plain_bytes().unwrap_or(u64::MAX);
            return Err(Error::lossy(match self.image.format {
                ImageFormat::Plain => format!("an image of {size} bytes is declared, found {}", bytes.len()),
                other => format!("a {} file is declared, found another signature", other.name()),
            }));
        }
        let target = self.transform.image(&self.image)?.format;
        match (self.image.format, target) {
            (ImageFormat::Png | ImageFormat::Jpeg, ImageFormat::Plain) => {
                write(&images::decode(bytes, &self.image, &self.budget)?)
            }
            (ImageFormat::Plain, ImageFormat::Png) => write(&images::encode_png(bytes, &self.image)?),
            _ => write(bytes),
        }
    }
}
