//! Converts bytes of fixed-size values to Arrow arrays, column by column: the bytes of numbers become the
//! array's buffer.

use std::sync::Arc;

use arrow_array::types::{
    Date32Type, Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type,
    UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{
    Array, ArrayRef, ArrowPrimitiveType, BooleanArray, FixedSizeBinaryArray, FixedSizeListArray,
    GenericListArray, NullArray, OffsetSizeTrait, PrimitiveArray, StringArray, StructArray,
    Time64NanosecondArray, TimestampNanosecondArray, make_array,
};
use arrow_buffer::{BooleanBuffer, Buffer, MutableBuffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::{DataType, Field, Fields};

use super::schema::{needs_some, tensor};
use super::types::{FloatWidth, Missing, Sentinel, Type, Width};
use super::value::StorageOrder;
use super::walk::decode_fixed_string;
use crate::error::{Error, Hint, Result};
use crate::hub::type_text::print_type;
use crate::kernels::records;

/// The array of `count` values of a type of fixed size, from their serialization. `nulls` says which are missing.
pub(super) fn unpack(
    ty: &Type,
    field: &Field,
    bytes: Buffer,
    count: usize,
    nulls: Option<NullBuffer>,
) -> Result<ArrayRef> {
    Ok(match ty {
        Type::Bool => Arc::new(BooleanArray::new(unpack_bools(&bytes)?, nulls)),
        Type::Int(Width::W8) => numbers::<Int8Type>(bytes, nulls),
        Type::Int(Width::W16) => numbers::<Int16Type>(bytes, nulls),
        Type::Int(Width::W32) => numbers::<Int32Type>(bytes, nulls),
        Type::Int(Width::W64) => numbers::<Int64Type>(bytes, nulls),
        Type::Uint(Width::W8) => numbers::<UInt8Type>(bytes, nulls),
        Type::Uint(Width::W16) => numbers::<UInt16Type>(bytes, nulls),
        Type::Uint(Width::W32) => numbers::<UInt32Type>(bytes, nulls),
        Type::Uint(Width::W64) => numbers::<UInt64Type>(bytes, nulls),
        Type::Float(FloatWidth::W16) => numbers::<Float16Type>(bytes, nulls),
        Type::Float(FloatWidth::W32) => numbers::<Float32Type>(bytes, nulls),
        Type::Float(FloatWidth::W64) => numbers::<Float64Type>(bytes, nulls),
        Type::Int(Width::W128) | Type::Uint(Width::W128) | Type::Float(FloatWidth::W128) => {
            fixed_binary(16, bytes, nulls)?
        }
        Type::FixedBytes { size, .. } => fixed_binary(*size, bytes, nulls)?,
        Type::Date => numbers::<Date32Type>(bytes, nulls),
        Type::Time(_) | Type::Datetime(_) if *field.data_type() == DataType::Int64 => {
            numbers::<Int64Type>(bytes, nulls)
        }
        Type::Time(_) => Arc::new(Time64NanosecondArray::new(nanoseconds(bytes, nulls.as_ref())?, nulls)),
        Type::Datetime(_) => {
            let values = nanoseconds(bytes, nulls.as_ref())?;
            Arc::new(TimestampNanosecondArray::new(values, nulls).with_data_type(field.data_type().clone()))
        }
        Type::FixedString { encoding, .. } => {
            let size = usize::try_from(ty.fixed_size().unwrap_or(0)).unwrap_or(0).max(1);
            check_text(bytes.len())?;
            let texts = bytes.chunks_exact(size).map(|bytes| decode_fixed_string(bytes, *encoding));
            let texts: Vec<_> = texts.collect::<Result<_>>()?;
            let plain = StringArray::from_iter_values(texts.iter());
            let (offsets, values, _) = plain.into_parts();
            Arc::new(StringArray::try_new(offsets, values, nulls)?)
        }
        Type::Void => Arc::new(NullArray::new(count)),
        Type::Complex(width) => {
            let part = Type::Float(*width);
            list(field, count, nulls, |item, _| unpack(&part, item, bytes, times(count, 2)?, None))?
        }
        Type::Fixed(size, of) => {
            let (size, element) = match tensor(ty) {
                Some((dims, element)) => (dims.iter().product(), element),
                None => (*size, of.as_ref()),
            };
            list(field, count, nulls, |item, _| unpack(element, item, bytes, times(count, size)?, None))?
        }
        Type::Tuple(types) => unpack_fields(types.iter(), field, bytes, count, nulls)?,
        Type::Struct(fields) => unpack_fields(fields.iter().map(|(_, ty)| ty), field, bytes, count, nulls)?,
        Type::Pointer(of) => unpack(of, field, bytes, count, nulls)?,
        Type::Storage { of, axis } => {
            let bytes = to_logical_order(of, axis, &bytes, count);
            unpack(of, field, bytes.into(), count, nulls)?
        }
        Type::Option(of) => unpack_option(of, field, bytes, count)?,
        _ => return Err(Error::unsupported(format!("{ty} has no fixed size"))),
    })
}

fn unpack_option(of: &Type, field: &Field, bytes: Buffer, count: usize) -> Result<ArrayRef> {
    match of.missing() {
        Missing::Always => Ok(Arc::new(NullArray::new(count))),
        Missing::Sentinel(_) if *of == Type::Bool => {
            if bytes.iter().any(|byte| *byte > 2) {
                return Err(Error::malformed("an optional bool 00, 01 or 02", "another byte").rule("bool"));
            }
            let nulls = NullBuffer::new(bits(&bytes, |byte| byte != 2));
            Ok(Arc::new(BooleanArray::new(bits(&bytes, |byte| byte == 1), Some(nulls))))
        }
        Missing::Sentinel(sentinel) => {
            let nulls = available(&bytes, &sentinel);
            unpack(of, field, bytes, count, nulls)
        }
        // The size is fixed only if the value itself takes no bytes.
        Missing::Flag => {
            let nulls = Some(NullBuffer::new(unpack_bools(&bytes)?));
            if needs_some(of) {
                let DataType::Struct(fields) = field.data_type() else { return Err(mapping(field)) };
                let some = fields.first().ok_or_else(|| mapping(field))?;
                let child = unpack(of.pointee(), some, Buffer::default(), count, None)?;
                return structure(fields, vec![child], count, nulls);
            }
            unpack(of, field, Buffer::default(), count, nulls)
        }
    }
}

fn unpack_fields<'t>(
    types: impl ExactSizeIterator<Item = &'t Type> + Clone,
    field: &Field,
    bytes: Buffer,
    count: usize,
    nulls: Option<NullBuffer>,
) -> Result<ArrayRef> {
    let DataType::Struct(fields) = field.data_type() else { return Err(mapping(field)) };
    let wanted: Vec<usize> = (0..types.len()).collect();
    let types: Vec<&Type> = types.collect();
    let columns = unpack_columns(&types, fields, &wanted, bytes, count)?;
    structure(fields, columns, count, nulls)
}

/// The arrays of some fields of packed records. `fields` are those of `wanted`, in order.
pub(super) fn unpack_columns(
    types: &[&Type],
    fields: &Fields,
    wanted: &[usize],
    bytes: Buffer,
    count: usize,
) -> Result<Vec<ArrayRef>> {
    let (mut places, mut offset) = (Vec::new(), 0usize);
    for ty in types {
        let width = ty.fixed_size().and_then(|size| usize::try_from(size).ok());
        let width = width.ok_or_else(|| Error::unsupported(format!("{ty} has no fixed size")))?;
        places.push((offset, width));
        offset += width;
    }
    let places: Vec<_> = wanted.iter().filter_map(|index| places.get(*index).copied()).collect();
    let buffers: Vec<Buffer> = if offset == 0 || bytes.len() != count * offset {
        places.iter().map(|_| Buffer::default()).collect()
    } else if let [(0, width)] = places.as_slice()
        && *width == offset
    {
        vec![bytes]
    } else {
        records::split(&bytes, offset, &places).into_iter().map(Buffer::from).collect()
    };
    let types = wanted.iter().filter_map(|index| types.get(*index));
    let columns = types.zip(fields).zip(buffers);
    columns.map(|((ty, field), bytes)| unpack(ty, field, bytes, count, None)).collect()
}

#[cold]
fn mapping(field: &Field) -> Error {
    Error::unsupported(format!("no data of this type can be read as {}", print_type(field.data_type())))
}

fn times(count: usize, size: u64) -> Result<usize> {
    let product = usize::try_from(size).ok().and_then(|size| count.checked_mul(size));
    product.ok_or_else(|| {
        Error::limit("the address space", usize::MAX, format!("{count} times {size} elements"))
    })
}

/// Numbers share their bytes; memory that is not aligned is copied.
fn numbers<T: ArrowPrimitiveType>(bytes: Buffer, nulls: Option<NullBuffer>) -> ArrayRef {
    Arc::new(PrimitiveArray::<T>::new(scalars(bytes), nulls))
}

fn scalars<T: arrow_buffer::ArrowNativeType>(bytes: Buffer) -> ScalarBuffer<T> {
    ScalarBuffer::from(align_up::<T>(bytes))
}

/// A copy of bytes in Arrow's own aligned memory, unless they are aligned.
fn align_up<T>(bytes: Buffer) -> Buffer {
    if bytes.as_ptr().align_offset(align_of::<T>()) == 0 {
        return bytes;
    }
    let mut aligned = MutableBuffer::new(bytes.len());
    aligned.extend_from_slice(bytes.as_slice());
    aligned.into()
}

fn fixed_binary(size: u64, bytes: Buffer, nulls: Option<NullBuffer>) -> Result<ArrayRef> {
    let size = i32::try_from(size)
        .map_err(|_| Error::limit("the limit", i32::MAX, format!("{size} bytes per value")))?;
    Ok(Arc::new(FixedSizeBinaryArray::try_new(size, bytes, nulls)?))
}

fn check_text(len: usize) -> Result<()> {
    match i32::try_from(len) {
        Ok(_) => Ok(()),
        Err(_) => Err(Error::limit("the limit", i32::MAX, format!("{len} bytes of text in a batch"))),
    }
}

/// Bits of bytes that must be 00 or 01.
fn unpack_bools(bytes: &[u8]) -> Result<BooleanBuffer> {
    if bytes.iter().fold(0, |all, byte| all | byte) > 1 {
        return Err(Error::malformed("a bool 00 or 01", "another byte").rule("bool"));
    }
    Ok(bits(bytes, |byte| byte == 1))
}

fn bits(bytes: &[u8], is_set: impl Fn(u8) -> bool) -> BooleanBuffer {
    let (whole, rest) = bytes.as_chunks::<8>();
    let byte = |chunk: &[u8]| {
        chunk.iter().enumerate().fold(0u8, |bits, (at, byte)| bits | u8::from(is_set(*byte)) << at)
    };
    let mut packed: Vec<u8> = whole.iter().map(|chunk| byte(chunk)).collect();
    if !rest.is_empty() {
        packed.push(byte(rest));
    }
    BooleanBuffer::new(packed.into(), 0, bytes.len())
}

/// Which values differ from the sentinel; `None` if all do.
fn available(bytes: &[u8], sentinel: &Sentinel) -> Option<NullBuffer> {
    fn of<const N: usize>(bytes: &[u8], sentinel: &Sentinel) -> Option<NullBuffer> {
        let sentinel: [u8; N] = sentinel.bytes().try_into().ok()?;
        let (values, _) = bytes.as_chunks::<N>();
        let missing = values.iter().filter(|value| **value == sentinel).count();
        if missing == 0 {
            return None;
        }
        let mut values = values.iter();
        let bits = BooleanBuffer::collect_bool(values.len(), |_| {
            values.next().is_some_and(|value| *value != sentinel)
        });
        Some(NullBuffer::new(bits))
    }
    match sentinel.bytes().len() {
        1 => of::<1>(bytes, sentinel),
        2 => of::<2>(bytes, sentinel),
        4 => of::<4>(bytes, sentinel),
        8 => of::<8>(bytes, sentinel),
        _ => of::<16>(bytes, sentinel),
    }
}

/// Ticks of 100 ns as nanoseconds; missing values become 0.
fn nanoseconds(bytes: Buffer, nulls: Option<&NullBuffer>) -> Result<ScalarBuffer<i64>> {
    let ticks: ScalarBuffer<i64> = scalars(bytes);
    let largest = i64::MAX / 100;
    let fits = |tick: i64| (-largest..=largest).contains(&tick);
    let out: Vec<i64> = ticks.iter().map(|tick| tick.wrapping_mul(100)).collect();
    if ticks.iter().fold(true, |all, tick| all & fits(*tick)) {
        return Ok(out.into());
    }
    let is_null = |index: usize| nulls.is_some_and(|nulls| nulls.is_null(index));
    let checked = ticks.iter().enumerate().map(|(index, tick)| match fits(*tick) {
        true => Ok(tick * 100),
        false if is_null(index) => Ok(0),
        false => Err(Error::lossy(format!("{tick} ticks of 100 ns do not fit 64 bits of nanoseconds"))
            .hint(Hint::Option("times=ticks".into()))),
    });
    checked.collect::<Result<Vec<i64>>>().map(ScalarBuffer::from)
}

/// Values whose elements are in the order of `axis`, in row-major order.
pub(super) fn to_logical_order(of: &Type, axis: &[usize], bytes: &[u8], count: usize) -> Vec<u8> {
    let (dims, element) = of.fixed_dims();
    let size = element.fixed_size().and_then(|size| usize::try_from(size).ok()).unwrap_or(0);
    let value = usize::try_from(of.fixed_size().unwrap_or(0)).unwrap_or(0);
    let mut out = vec![0; bytes.len()];
    if value == 0 || size == 0 {
        return out;
    }
    for (to, from) in out.chunks_exact_mut(value).zip(bytes.chunks_exact(value)).take(count) {
        for (index, element) in StorageOrder::new(&dims, axis).zip(from.chunks_exact(size)) {
            if let Some(slot) = index.checked_mul(size).and_then(|start| to.get_mut(start..)?.get_mut(..size))
            {
                slot.copy_from_slice(element);
            }
        }
    }
    out
}

/// The inverse of [`to_logical_order`].
pub(super) fn to_storage_order(of: &Type, axis: &[usize], bytes: &[u8], count: usize) -> Vec<u8> {
    let (dims, element) = of.fixed_dims();
    let size = element.fixed_size().and_then(|size| usize::try_from(size).ok()).unwrap_or(0);
    let value = usize::try_from(of.fixed_size().unwrap_or(0)).unwrap_or(0);
    let mut out = vec![0; bytes.len()];
    if value == 0 || size == 0 {
        return out;
    }
    for (to, from) in out.chunks_exact_mut(value).zip(bytes.chunks_exact(value)).take(count) {
        for (index, slot) in StorageOrder::new(&dims, axis).zip(to.chunks_exact_mut(size)) {
            if let Some(element) = index.checked_mul(size).and_then(|start| from.get(start..)?.get(..size)) {
                slot.copy_from_slice(element);
            }
        }
    }
    out
}

/// Whether the type contains a void, which is a Null that is not nullable: Arrow's constructors reject it.
fn holds_void(field: &Field) -> bool {
    match field.data_type() {
        DataType::Null => true,
        DataType::Struct(fields) => fields.iter().any(|field| holds_void(field)),
        DataType::List(item) | DataType::FixedSizeList(item, _) => holds_void(item),
        _ => false,
    }
}

/// A list array of fixed size; `items` creates the elements.
pub(super) fn list(
    field: &Field,
    count: usize,
    nulls: Option<NullBuffer>,
    items: impl FnOnce(&Field, usize) -> Result<ArrayRef>,
) -> Result<ArrayRef> {
    let DataType::FixedSizeList(item, size) = field.data_type() else { return Err(mapping(field)) };
    let values = items(item, usize::try_from(*size).unwrap_or(0))?;
    if holds_void(item) {
        let data = arrow_data::ArrayData::builder(field.data_type().clone()).len(count).nulls(nulls);
        return Ok(make_array(data.add_child_data(values.to_data()).build()?));
    }
    Ok(Arc::new(FixedSizeListArray::try_new_with_length(Arc::clone(item), *size, values, nulls, count)?))
}

/// A list array.
pub(super) fn var_list<O: OffsetSizeTrait>(
    field: &Field,
    offsets: OffsetBuffer<O>,
    nulls: Option<NullBuffer>,
    values: ArrayRef,
) -> Result<ArrayRef> {
    let (DataType::List(item) | DataType::LargeList(item)) = field.data_type() else {
        return Err(mapping(field));
    };
    if holds_void(item) {
        let data =
            arrow_data::ArrayData::builder(field.data_type().clone()).len(offsets.len() - 1).nulls(nulls);
        let data = data.add_buffer(offsets.into_inner().into_inner()).add_child_data(values.to_data());
        return Ok(make_array(data.build()?));
    }
    Ok(Arc::new(GenericListArray::<O>::try_new(Arc::clone(item), offsets, values, nulls)?))
}

/// A struct array, which keeps its length even with no fields.
pub(super) fn structure(
    fields: &Fields,
    columns: Vec<ArrayRef>,
    count: usize,
    nulls: Option<NullBuffer>,
) -> Result<ArrayRef> {
    if fields.iter().any(|field| holds_void(field)) {
        let data = arrow_data::ArrayData::builder(DataType::Struct(fields.clone())).len(count).nulls(nulls);
        let data = data.child_data(columns.iter().map(|column| column.to_data()).collect());
        return Ok(make_array(data.build()?));
    }
    Ok(Arc::new(StructArray::try_new_with_length(fields.clone(), columns, nulls, count)?))
}
