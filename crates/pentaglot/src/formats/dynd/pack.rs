//! Converts Arrow arrays to the bytes of fixed-size values, column by column: the inverse of
//! [`unpack`](super::unpack::unpack).

use std::collections::BTreeMap;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Date32Type, Date64Type, Float16Type, Float32Type, Float64Type, Int8Type, Int16Type,
    Int32Type, Int64Type, Time32MillisecondType, Time32SecondType, Time64MicrosecondType,
    Time64NanosecondType, TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType,
    TimestampSecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef};
use arrow_buffer::{BooleanBuffer, Buffer};
use arrow_schema::{DataType, TimeUnit};

use super::schema::{field_of, needs_some, tensor};
use super::types::{FloatWidth, Missing, Sentinel, Type, Width};
use super::unpack::to_storage_order;
use super::walk::encode_fixed_string;
use crate::error::{Error, Result};
use crate::hub::type_text::print_type;
use crate::kernels::records;

/// The bytes of a column, and which of its values do not fit, with the reason. A value that does not fit is an error
/// only if it is written: it may be a placeholder inside a missing value.
#[derive(Default)]
pub(super) struct Pack {
    pub(super) bytes: Buffer,
    pub(super) misfits: BTreeMap<usize, String>,
}

impl From<Buffer> for Pack {
    fn from(bytes: Buffer) -> Self {
        Pack { bytes, misfits: BTreeMap::new() }
    }
}

impl From<Vec<u8>> for Pack {
    fn from(bytes: Vec<u8>) -> Self {
        Buffer::from(bytes).into()
    }
}

/// The serialization of all values of an array, one after the other. The type has a fixed size.
pub(super) fn pack(ty: &Type, array: &ArrayRef) -> Result<Pack> {
    let mut pack = match ty {
        Type::Option(of) => return pack_option(of, array),
        Type::Pointer(of) => return self::pack(of, array),
        other => pack_plain(other, array)?,
    };
    if *ty != Type::Void
        && let Some(nulls) = array.nulls()
    {
        for index in (0..array.len()).filter(|index| nulls.is_null(*index)) {
            pack.misfits.insert(index, format!("a null, which {ty} does not hold"));
        }
    }
    Ok(pack)
}

fn pack_plain(ty: &Type, array: &ArrayRef) -> Result<Pack> {
    Ok(match ty {
        Type::Bool => pack_bools(array.as_boolean_opt().ok_or_else(|| mismatch(ty, array))?.values()).into(),
        Type::Int(Width::W8) => numbers::<Int8Type>(ty, array)?,
        Type::Int(Width::W16) => numbers::<Int16Type>(ty, array)?,
        Type::Int(Width::W32) => numbers::<Int32Type>(ty, array)?,
        Type::Int(Width::W64) => numbers::<Int64Type>(ty, array)?,
        Type::Uint(Width::W8) => numbers::<UInt8Type>(ty, array)?,
        Type::Uint(Width::W16) => numbers::<UInt16Type>(ty, array)?,
        Type::Uint(Width::W32) => numbers::<UInt32Type>(ty, array)?,
        Type::Uint(Width::W64) => numbers::<UInt64Type>(ty, array)?,
        Type::Float(FloatWidth::W16) => numbers::<Float16Type>(ty, array)?,
        Type::Float(FloatWidth::W32) => numbers::<Float32Type>(ty, array)?,
        Type::Float(FloatWidth::W64) => numbers::<Float64Type>(ty, array)?,
        Type::Int(Width::W128)
        | Type::Uint(Width::W128)
        | Type::Float(FloatWidth::W128)
        | Type::FixedBytes { .. } => {
            let array = array.as_fixed_size_binary_opt().ok_or_else(|| mismatch(ty, array))?;
            Buffer::from(array.values().as_slice()).into()
        }
        Type::Date => match array.data_type() {
            DataType::Date64 => days(array.as_primitive::<Date64Type>().values()),
            _ => numbers::<Date32Type>(ty, array)?,
        },
        Type::Time(_) | Type::Datetime(_) => ticks(ty, array)?,
        Type::FixedString { units, encoding } => {
            let mut pack = Pack::default();
            let mut out = Vec::new();
            let size = usize::try_from(ty.fixed_size().unwrap_or(0)).unwrap_or(0);
            for index in 0..array.len() {
                if let Err(error) = encode_fixed_string(text(array, index)?, *units, *encoding, &mut out) {
                    pack.misfits.insert(index, error.message().to_owned());
                    out.resize((index + 1) * size, 0);
                }
            }
            pack.bytes = out.into();
            pack
        }
        Type::Void => Pack::default(),
        Type::Complex(width) => elements(&Type::Float(*width), 2, array)?,
        Type::Fixed(size, of) => match tensor(ty) {
            Some((dims, element)) => elements(element, dims.iter().product(), array)?,
            None => match flat_tensor(ty, array.data_type()) {
                Some((count, element)) => elements(element, count, array)?,
                None => elements(of, *size, array)?,
            },
        },
        Type::Tuple(types) => fields(types.iter(), array)?,
        Type::Struct(members) => fields(members.iter().map(|(_, ty)| ty), array)?,
        Type::Storage { of, axis } => {
            let mut pack = self::pack(of, array)?;
            pack.bytes = to_storage_order(of, axis, &pack.bytes, array.len()).into();
            pack
        }
        _ => return Err(mismatch(ty, array)),
    })
}

/// The number of elements and their type if an array has several dimensions of `ty` as one list, like a tensor of
/// another program.
pub(super) fn flat_tensor<'t>(ty: &'t Type, data_type: &DataType) -> Option<(u64, &'t Type)> {
    fn depth(data_type: &DataType) -> usize {
        match data_type {
            DataType::FixedSizeList(item, _) => 1 + depth(item.data_type()),
            _ => 0,
        }
    }
    let (dims, element) = ty.fixed_dims();
    let own = field_of("", element).ok()?;
    let count = dims.iter().try_fold(1u64, |count, dim| count.checked_mul(*dim))?;
    let DataType::FixedSizeList(_, size) = data_type else { return None };
    let flat = dims.len() > 1
        && depth(data_type) == 1 + depth(own.data_type())
        && u64::try_from(*size).is_ok_and(|size| size == count);
    flat.then_some((count, element))
}

#[cold]
fn mismatch(ty: &Type, array: &ArrayRef) -> Error {
    Error::unsupported(format!("{} cannot be written as {ty}", print_type(array.data_type())))
}

fn pack_bools(bits: &BooleanBuffer) -> Vec<u8> {
    bits.iter().map(u8::from).collect()
}

/// The text of a string array.
pub(super) fn text(array: &ArrayRef, index: usize) -> Result<&str> {
    match array.data_type() {
        DataType::Utf8 => Ok(array.as_string::<i32>().value(index)),
        DataType::LargeUtf8 => Ok(array.as_string::<i64>().value(index)),
        other => Err(Error::unsupported(format!("{} is not text", print_type(other)))),
    }
}

fn numbers<T: ArrowPrimitiveType>(ty: &Type, array: &ArrayRef) -> Result<Pack> {
    let array = array.as_primitive_opt::<T>().ok_or_else(|| mismatch(ty, array))?;
    Ok(array.values().inner().clone().into())
}

/// Elements of lists of one size: a value that does not fit makes its list invalid.
fn elements(of: &Type, size: u64, array: &ArrayRef) -> Result<Pack> {
    let list = array.as_fixed_size_list_opt().ok_or_else(|| mismatch(of, array))?;
    let mut pack = self::pack(of, list.values())?;
    let size = usize::try_from(size).unwrap_or(0).max(1);
    pack.misfits = pack.misfits.into_iter().map(|(index, why)| (index / size, why)).collect();
    Ok(pack)
}

fn fields<'t>(types: impl ExactSizeIterator<Item = &'t Type>, array: &ArrayRef) -> Result<Pack> {
    let columns = array.as_struct_opt().ok_or_else(|| Error::unsupported("a struct is expected"))?;
    if columns.num_columns() != types.len() {
        return Err(Error::unsupported("a struct of other fields"));
    }
    let types: Vec<&Type> = types.collect();
    pack_columns(&types, columns.columns(), array.len())
}

/// Columns as packed records.
pub(super) fn pack_columns(types: &[&Type], columns: &[ArrayRef], count: usize) -> Result<Pack> {
    let packs: Vec<Pack> =
        types.iter().zip(columns).map(|(ty, column)| pack(ty, column)).collect::<Result<_>>()?;
    let mut bytes = Vec::new();
    join_packs(types, &packs, count, &mut bytes)?;
    let misfits = packs.into_iter().flat_map(|pack| pack.misfits).collect();
    Ok(Pack { bytes: bytes.into(), misfits })
}

/// Packed columns as packed records, after what `out` holds.
pub(super) fn join_packs(types: &[&Type], packs: &[Pack], count: usize, out: &mut Vec<u8>) -> Result<()> {
    let width = |ty: &&Type| ty.fixed_size().and_then(|size| usize::try_from(size).ok());
    let widths: Vec<usize> = types
        .iter()
        .map(|ty| width(ty).ok_or_else(|| Error::unsupported(format!("{ty} has no fixed size"))))
        .collect::<Result<_>>()?;
    let slices: Vec<&[u8]> = packs.iter().map(|pack| pack.bytes.as_slice()).collect();
    let is_whole =
        slices.iter().zip(&widths).all(|(slice, width)| width.checked_mul(count) == Some(slice.len()));
    if !is_whole {
        return Err(Error::unsupported("columns of other sizes than their types say"));
    }
    records::join(&slices, &widths, count, out);
    Ok(())
}

fn pack_option(of: &Type, array: &ArrayRef) -> Result<Pack> {
    let is_null = |index: usize| array.is_null(index);
    match of.missing() {
        Missing::Always => Ok(Pack::default()),
        Missing::Sentinel(_) if *of == Type::Bool => {
            let bools = array.as_boolean_opt().ok_or_else(|| mismatch(of, array))?;
            let byte = |index| if is_null(index) { 2 } else { u8::from(bools.value(index)) };
            Ok((0..array.len()).map(byte).collect::<Vec<u8>>().into())
        }
        Missing::Sentinel(sentinel) => {
            let mut pack = pack_plain(of, array)?;
            pack.misfits.retain(|index, _| !is_null(*index));
            put_sentinels(of, &sentinel, array, &mut pack);
            Ok(pack)
        }
        // The size is fixed only if the value itself takes no bytes.
        Missing::Flag => {
            debug_assert!(of.fixed_size() == Some(0) || needs_some(of));
            Ok((0..array.len()).map(|index| u8::from(!is_null(index))).collect::<Vec<u8>>().into())
        }
    }
}

/// Writes the sentinel for missing values, and records values that equal it.
fn put_sentinels(of: &Type, sentinel: &Sentinel, array: &ArrayRef, pack: &mut Pack) {
    fn find<const N: usize>(bytes: &[u8], sentinel: &[u8]) -> Vec<usize> {
        let Ok(sentinel) = <[u8; N]>::try_from(sentinel) else { return Vec::new() };
        let (values, _) = bytes.as_chunks::<N>();
        // Most columns have none, so they are counted first in a loop that the compiler vectorises.
        match values.iter().filter(|value| **value == sentinel).count() {
            0 => Vec::new(),
            _ => (0..values.len()).filter(|index| values.get(*index) == Some(&sentinel)).collect(),
        }
    }
    let missing = sentinel.bytes();
    let equal = match missing.len() {
        1 => find::<1>(&pack.bytes, missing),
        2 => find::<2>(&pack.bytes, missing),
        4 => find::<4>(&pack.bytes, missing),
        8 => find::<8>(&pack.bytes, missing),
        _ => find::<16>(&pack.bytes, missing),
    };
    for index in equal {
        if !array.is_null(index) {
            pack.misfits.insert(
                index,
                format!("the value equals the sentinel of ?{of} (the option options=flag has no sentinel)"),
            );
        }
    }
    if array.null_count() > 0 {
        let mut bytes = pack.bytes.to_vec();
        for (index, slot) in bytes.chunks_exact_mut(missing.len()).enumerate() {
            if array.is_null(index) {
                slot.copy_from_slice(missing);
            }
        }
        pack.bytes = bytes.into();
    }
}

const MILLISECONDS_PER_DAY: i64 = 86_400_000;

fn days(milliseconds: &[i64]) -> Pack {
    let mut pack = Pack::default();
    let mut out = Vec::new();
    for (index, value) in milliseconds.iter().enumerate() {
        let days = i32::try_from(value.div_euclid(MILLISECONDS_PER_DAY));
        match days {
            Ok(_) if value % MILLISECONDS_PER_DAY == 0 => {}
            _ => drop(pack.misfits.insert(index, format!("{value} ms is not a whole number of days"))),
        }
        out.extend(days.unwrap_or(0).to_le_bytes());
    }
    pack.bytes = out.into();
    pack
}

/// Times of any unit in ticks of 100 ns.
fn ticks(ty: &Type, array: &ArrayRef) -> Result<Pack> {
    macro_rules! of {
        ($type:ty) => {
            array.as_primitive::<$type>().values().iter().map(|value| i64::from(*value)).collect()
        };
    }
    let (values, times, divisor): (Vec<i64>, i64, i64) = match array.data_type() {
        DataType::Int64 => (of!(Int64Type), 1, 1),
        DataType::Time32(TimeUnit::Second) => (of!(Time32SecondType), 10_000_000, 1),
        DataType::Time32(_) => (of!(Time32MillisecondType), 10_000, 1),
        DataType::Time64(TimeUnit::Microsecond) => (of!(Time64MicrosecondType), 10, 1),
        DataType::Time64(_) => (of!(Time64NanosecondType), 1, 100),
        DataType::Timestamp(TimeUnit::Second, _) => (of!(TimestampSecondType), 10_000_000, 1),
        DataType::Timestamp(TimeUnit::Millisecond, _) => (of!(TimestampMillisecondType), 10_000, 1),
        DataType::Timestamp(TimeUnit::Microsecond, _) => (of!(TimestampMicrosecondType), 10, 1),
        DataType::Timestamp(TimeUnit::Nanosecond, _) => (of!(TimestampNanosecondType), 1, 100),
        _ => return Err(mismatch(ty, array)),
    };
    let mut misfits = BTreeMap::new();
    let mut out = Vec::new();
    for (index, value) in values.iter().enumerate() {
        let ticks =
            value.checked_mul(times).filter(|value| value % divisor == 0).map(|value| value / divisor);
        if ticks.is_none() {
            misfits.insert(index, format!("{value} is not a whole number of 100 ns in 64 bits"));
        }
        out.extend(ticks.unwrap_or(0).to_le_bytes());
    }
    Ok(Pack { bytes: out.into(), misfits })
}
