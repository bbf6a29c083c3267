//! The typed interface: [`Value`]s of any type, `write_value` and `read_value`, without Arrow.

use super::merkle::check_multihash;
use super::types::{FloatWidth, Missing, Type};
use super::walk::{
    char_fits, check_array_type, decode_fixed_string, encode_fixed_string, free_elements, read_bool,
    read_bytes, read_char, read_count, read_flag, read_multihash, read_optional_bool, read_text, read_type,
    symbolic,
};
use crate::cursor::{Cursor, allocate};
use crate::error::{Context, Error, Result};
use crate::limits::{Budget, Limits, Reservation};
use crate::wire::varint;

/// A value of a datashape type. Floats are stored as bits, so that NaNs are preserved.
///
/// ```
/// use pentaglot::Limits;
/// use pentaglot::formats::dynd::{Type, Value, read_value, write_value};
/// let ty: Type = "var * ?int16".parse()?;
/// let value = Value::List(vec![Value::some(Value::Int(1)), Value::Missing]);
/// let bytes = write_value(&ty, &value)?;
/// assert_eq!(bytes, [2, 1, 0, 0, 0x80]);
/// assert_eq!(read_value(&bytes, &ty, &Limits::default())?, value);
/// # Ok::<(), pentaglot::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Value {
    /// `bool`
    Bool(bool),
    /// `intN`, `date`, `time`, `datetime`
    Int(i128),
    /// `uintN`
    Uint(u128),
    /// `floatN`: its bits
    Float(u128),
    /// `complex[floatN]`: the bits of both parts
    Complex(Box<[u128; 2]>),
    /// `char`
    Char(char),
    /// `string`, `json`, `fixed_string`
    String(String),
    /// `bytes`, `bytes[N]`
    Bytes(Vec<u8>),
    /// `void`
    Void,
    /// `type`
    Type(Box<Type>),
    /// Dimensions, tuples, structs (in field order), and `storage` in its logical order
    List(Vec<Value>),
    /// `?T`, missing
    Missing,
    /// `?T`, available
    Some(Box<Value>),
    /// `array[T]`: a type and a value of it
    Array(Box<(Type, Value)>),
    /// `merkle[T]`: the type of what is linked, and the multihash of its serialization
    Merkle(Box<(Type, Vec<u8>)>),
}

impl Value {
    /// An available value of `?T`.
    pub fn some(value: Value) -> Self {
        Value::Some(Box::new(value))
    }

    /// A typed value, for `array[T]`.
    pub fn array(ty: Type, value: Value) -> Self {
        Value::Array(Box::new((ty, value)))
    }

    /// A link to data of a type, for `merkle[T]`.
    pub fn merkle(ty: Type, multihash: Vec<u8>) -> Self {
        Value::Merkle(Box::new((ty, multihash)))
    }
}

/// The unique serialization of a value. Values that the type does not hold, and available values that equal the
/// sentinel of their type, are errors; their rule says which (`range`, `length`, `value`, `char`,
/// `sentinel-collision`, `symbolic`, `pattern`).
pub fn write_value(ty: &Type, value: &Value) -> Result<Vec<u8>> {
    if !ty.is_concrete() {
        return Err(symbolic(ty));
    }
    let mut out = Vec::new();
    append_value(ty, value, &mut out)?;
    Ok(out)
}

/// The value of its unique serialization; any other bytes are an error with offset, path and rule.
pub fn read_value(bytes: &[u8], ty: &Type, limits: &Limits) -> Result<Value> {
    if !ty.is_concrete() {
        return Err(symbolic(ty));
    }
    let mut cursor = Cursor::new(bytes);
    let value = ValueReader::new(&limits.budget()).value(ty, &mut cursor)?;
    cursor.expect_end()?;
    Ok(value)
}

fn wrong(ty: &Type, value: &Value) -> Error {
    Error::usage(format!("expected a value of {ty}, found {value:?}")).rule("value")
}

fn check_len(expected: u64, found: usize) -> Result<()> {
    if expected == found as u64 {
        return Ok(());
    }
    Err(Error::usage(format!("expected {expected} elements, found {found}")).rule("length"))
}

fn append_value(ty: &Type, value: &Value, out: &mut Vec<u8>) -> Result<()> {
    let range = |fits: bool| {
        if fits {
            Ok(())
        } else {
            Err(Error::lossy(format!("{value:?} is out of the range of {ty}")).rule("range"))
        }
    };
    match (ty, value) {
        (Type::Bool, Value::Bool(value)) => out.push((*value).into()),
        (Type::Int(width), Value::Int(value)) => write_int(*value, width.bytes(), out, range)?,
        (Type::Date, Value::Int(value)) => write_int(*value, 4, out, range)?,
        (Type::Time(_) | Type::Datetime(_), Value::Int(value)) => write_int(*value, 8, out, range)?,
        (Type::Uint(width), Value::Uint(value)) => write_bits(*value, width.bytes(), out, range)?,
        (Type::Float(width), Value::Float(bits)) => write_bits(*bits, width.bytes(), out, range)?,
        (Type::Complex(width), Value::Complex(parts)) => {
            for bits in parts.iter() {
                write_bits(*bits, width.bytes(), out, range)?;
            }
        }
        (Type::Char(encoding), Value::Char(c)) => {
            if !char_fits(*c, *encoding) {
                return Err(Error::lossy(format!("{c:?} is not a char of {}", encoding.name())).rule("char"));
            }
            out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
        }
        (Type::String | Type::Json, Value::String(text)) => write_bytes(text.as_bytes(), out),
        (Type::Bytes { .. }, Value::Bytes(bytes)) => write_bytes(bytes, out),
        (Type::FixedBytes { size, .. }, Value::Bytes(bytes)) => {
            check_len(*size, bytes.len())?;
            out.extend_from_slice(bytes);
        }
        (Type::FixedString { units, encoding }, Value::String(text)) => {
            encode_fixed_string(text, *units, *encoding, out)?;
        }
        (Type::Void, Value::Void) => {}
        (Type::Type, Value::Type(ty)) => write_bytes(ty.to_string().as_bytes(), out),
        (Type::Fixed(count, of), Value::List(items)) => {
            check_len(*count, items.len())?;
            write_items(of, items, out)?;
        }
        (Type::Var(of), Value::List(items)) => {
            varint::write(items.len() as u64, out);
            write_items(of, items, out)?;
        }
        (Type::Tuple(fields), Value::List(items)) => {
            check_len(fields.len() as u64, items.len())?;
            for (index, (ty, item)) in fields.iter().zip(items).enumerate() {
                append_value(ty, item, out).index(index as u64)?;
            }
        }
        (Type::Struct(fields), Value::List(items)) => {
            check_len(fields.len() as u64, items.len())?;
            for ((name, ty), item) in fields.iter().zip(items) {
                append_value(ty, item, out).field(name.clone())?;
            }
        }
        (Type::Option(of), Value::Missing) => match of.missing() {
            Missing::Always => {}
            Missing::Sentinel(sentinel) => out.extend_from_slice(sentinel.bytes()),
            Missing::Flag => out.push(0),
        },
        (Type::Option(of), Value::Some(value)) => {
            let start = out.len();
            let collides = match of.missing() {
                Missing::Always => true,
                Missing::Sentinel(sentinel) => {
                    append_value(of, value, out)?;
                    out.get(start..) == Some(sentinel.bytes())
                }
                Missing::Flag => {
                    out.push(1);
                    append_value(of, value, out)?;
                    false
                }
            };
            if collides {
                let message = format!("the available value {value:?} equals the sentinel of {ty}");
                return Err(Error::lossy(message).rule("sentinel-collision"));
            }
        }
        (Type::Pointer(of), value) => append_value(of, value, out)?,
        (Type::Storage { of, axis }, value) => write_stored(of, axis, value, out)?,
        (Type::Array(pattern), Value::Array(array)) => {
            let (stored, value) = array.as_ref();
            check_array_type(stored, pattern).field("type")?;
            write_bytes(stored.to_string().as_bytes(), out);
            append_value(stored, value, out).field("value")?;
        }
        (Type::Merkle(pattern), Value::Merkle(link)) => {
            let (linked, hash) = link.as_ref();
            check_array_type(linked, pattern).field("type")?;
            check_multihash(hash).field("hash")?;
            write_bytes(linked.to_string().as_bytes(), out);
            write_bytes(hash, out);
        }
        _ => return Err(wrong(ty, value)),
    }
    Ok(())
}

fn write_items(of: &Type, items: &[Value], out: &mut Vec<u8>) -> Result<()> {
    items.iter().enumerate().try_for_each(|(index, item)| append_value(of, item, out).index(index as u64))
}

fn write_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    varint::write(bytes.len() as u64, out);
    out.extend_from_slice(bytes);
}

fn write_bits(bits: u128, width: u8, out: &mut Vec<u8>, range: impl Fn(bool) -> Result<()>) -> Result<()> {
    range(width == 16 || bits >> (8 * u32::from(width)) == 0)?;
    out.extend(bits.to_le_bytes().iter().take(width.into()));
    Ok(())
}

fn write_int(value: i128, width: u8, out: &mut Vec<u8>, range: impl Fn(bool) -> Result<()>) -> Result<()> {
    let spare = 128 - 8 * u32::from(width);
    range(value << spare >> spare == value)?;
    out.extend(value.to_le_bytes().iter().take(width.into()));
    Ok(())
}

/// The nested lists of `of`, element by element in the order of `axis`.
fn write_stored(of: &Type, axis: &[usize], value: &Value, out: &mut Vec<u8>) -> Result<()> {
    let (dims, element) = of.fixed_dims();
    let mut logical = Vec::new();
    flatten(&dims, value, &mut logical)?;
    for index in StorageOrder::new(&dims, axis) {
        let item = logical.get(index).copied().ok_or_else(|| wrong(of, value))?;
        append_value(element, item, out).index(index as u64)?;
    }
    Ok(())
}

fn flatten<'a>(dims: &[u64], value: &'a Value, out: &mut Vec<&'a Value>) -> Result<()> {
    match (dims, value) {
        ([], value) => out.push(value),
        ([count, inner @ ..], Value::List(items)) => {
            check_len(*count, items.len())?;
            for (index, item) in items.iter().enumerate() {
                flatten(inner, item, out).index(index as u64)?;
            }
        }
        _ => return Err(Error::usage(format!("expected a list, found {value:?}")).rule("value")),
    }
    Ok(())
}

/// For each element in storage order, its index in logical (row-major) order.
pub(super) struct StorageOrder {
    /// Per storage axis, slowest first: size and step in logical order.
    axes: Vec<(u64, u64)>,
    position: Vec<u64>,
    left: u64,
}

impl StorageOrder {
    pub(super) fn new(dims: &[u64], axis: &[usize]) -> Self {
        let step = |axis: usize| dims.get(axis + 1..).unwrap_or_default().iter().product::<u64>();
        let axes: Vec<_> =
            axis.iter().map(|axis| (dims.get(*axis).copied().unwrap_or(0), step(*axis))).collect();
        StorageOrder { position: vec![0; axes.len()], left: dims.iter().product(), axes }
    }
}

impl Iterator for StorageOrder {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        self.left = self.left.checked_sub(1)?;
        let index: u64 = self.axes.iter().zip(&self.position).map(|((_, step), at)| step * at).sum();
        for ((size, _), at) in self.axes.iter().zip(&mut self.position).rev() {
            *at += 1;
            if *at < *size {
                break;
            }
            *at = 0;
        }
        usize::try_from(index).ok()
    }
}

/// Reads values; their memory is taken from one budget.
pub(super) struct ValueReader<'a> {
    limits: &'a Limits,
    held: Reservation,
    free: u64,
}

impl<'a> ValueReader<'a> {
    pub(super) fn new(budget: &'a Budget) -> Self {
        ValueReader { limits: budget.limits(), held: budget.reservation(), free: 0 }
    }

    pub(super) fn value(&mut self, ty: &Type, cursor: &mut Cursor<'_>) -> Result<Value> {
        self.read(ty, cursor, 0)
    }

    fn read(&mut self, ty: &Type, cursor: &mut Cursor<'_>, depth: u32) -> Result<Value> {
        self.limits.check_depth(depth).map_err(|error| error.at(cursor.offset()).rule("depth"))?;
        Ok(match ty {
            Type::Bool => Value::Bool(read_bool(cursor)?),
            Type::Int(width) => Value::Int(read_int(cursor, width.bytes())?),
            Type::Date => Value::Int(read_int(cursor, 4)?),
            Type::Time(_) | Type::Datetime(_) => Value::Int(read_int(cursor, 8)?),
            Type::Uint(width) => Value::Uint(read_bits(cursor, width.bytes())?),
            Type::Float(width) => Value::Float(read_bits(cursor, width.bytes())?),
            Type::Complex(width) => {
                let mut part = || read_bits(cursor, width.bytes());
                Value::Complex(Box::new([part()?, part()?]))
            }
            Type::Void => Value::Void,
            Type::Char(encoding) => Value::Char(read_char(cursor, *encoding)?),
            Type::String | Type::Json => Value::String(self.keep(read_text(cursor)?)?.to_owned()),
            Type::Bytes { .. } => {
                let bytes = read_bytes(cursor)?;
                self.held.grow(bytes.len() as u64)?;
                Value::Bytes(bytes.to_vec())
            }
            Type::FixedBytes { size, .. } => {
                let bytes = cursor.take(*size)?;
                self.held.grow(*size)?;
                Value::Bytes(bytes.to_vec())
            }
            Type::FixedString { encoding, .. } => {
                let offset = cursor.offset();
                let bytes = cursor.take(ty.fixed_size().unwrap_or(u64::MAX))?;
                self.held.grow(bytes.len() as u64)?;
                Value::String(decode_fixed_string(bytes, *encoding).at(offset)?.into_owned())
            }
            Type::Type => Value::Type(Box::new(read_type(cursor, self.limits)?)),
            Type::Fixed(count, of) => Value::List(self.items(*count, of, cursor, depth + 1)?),
            Type::Var(of) => {
                let count = read_count(cursor, of)?;
                Value::List(self.items(count, of, cursor, depth + 1)?)
            }
            Type::Tuple(fields) => {
                let fields = fields.iter().enumerate();
                let read = |(index, ty)| self.read(ty, cursor, depth + 1).index(index as u64);
                Value::List(fields.map(read).collect::<Result<_>>()?)
            }
            Type::Struct(fields) => {
                let read = |(name, ty): &(String, Type)| self.read(ty, cursor, depth + 1).field(name.clone());
                Value::List(fields.iter().map(read).collect::<Result<_>>()?)
            }
            Type::Option(of) => match of.missing() {
                Missing::Always => Value::Missing,
                Missing::Sentinel(_) if **of == Type::Bool => match read_optional_bool(cursor)? {
                    Some(value) => Value::some(Value::Bool(value)),
                    None => Value::Missing,
                },
                Missing::Sentinel(sentinel) if cursor.rest().starts_with(sentinel.bytes()) => {
                    cursor.skip(sentinel.bytes().len() as u64)?;
                    Value::Missing
                }
                Missing::Sentinel(_) => Value::some(self.read(of, cursor, depth + 1)?),
                Missing::Flag if read_flag(cursor)? => Value::some(self.read(of, cursor, depth + 1)?),
                Missing::Flag => Value::Missing,
            },
            Type::Pointer(of) => self.read(of, cursor, depth + 1)?,
            Type::Storage { of, axis } => self.stored(of, axis, cursor, depth + 1)?,
            Type::Array(pattern) => {
                let offset = cursor.offset();
                let stored = read_type(cursor, self.limits).field("type")?;
                check_array_type(&stored, pattern).at(offset).field("type")?;
                let value = self.read(&stored, cursor, depth + 1).field("value")?;
                Value::array(stored, value)
            }
            Type::Merkle(pattern) => {
                let offset = cursor.offset();
                let linked = read_type(cursor, self.limits).field("type")?;
                check_array_type(&linked, pattern).at(offset).field("type")?;
                let hash = read_multihash(cursor)?;
                self.held.grow(hash.len() as u64)?;
                Value::merkle(linked, hash.to_vec())
            }
            Type::Pattern(_) => return Err(symbolic(ty)),
        })
    }

    fn keep<'t>(&mut self, text: &'t str) -> Result<&'t str> {
        self.held.grow(text.len() as u64)?;
        Ok(text)
    }

    fn room(&mut self, count: u64, of: &Type, cursor: &Cursor<'_>) -> Result<Vec<Value>> {
        if of.least_size() == 0 {
            self.free = self.free.saturating_add(count.saturating_mul(free_elements(of)));
            self.limits.check_free_rows(self.free).at(cursor.offset())?;
        } else {
            cursor.check_count(count, of.least_size())?;
        }
        // The reservation is made here and not again by `allocate`.
        self.held.grow(count.saturating_mul(size_of::<Value>() as u64)).at(cursor.offset())?;
        allocate(count, &Budget::default())
    }

    fn items(&mut self, count: u64, of: &Type, cursor: &mut Cursor<'_>, depth: u32) -> Result<Vec<Value>> {
        let mut items = self.room(count, of, cursor)?;
        for index in 0..count {
            items.push(self.read(of, cursor, depth).index(index)?);
        }
        Ok(items)
    }

    fn stored(&mut self, of: &Type, axis: &[usize], cursor: &mut Cursor<'_>, depth: u32) -> Result<Value> {
        let (dims, element) = of.fixed_dims();
        let count = dims.iter().try_fold(1u64, |product, dim| product.checked_mul(*dim));
        let items = self.items(count.unwrap_or(u64::MAX), element, cursor, depth)?;
        let mut logical = vec![Value::Void; items.len()];
        for (index, item) in StorageOrder::new(&dims, axis).zip(items) {
            if let Some(slot) = logical.get_mut(index) {
                *slot = item;
            }
        }
        Ok(nest(&dims, &mut logical.into_iter()))
    }
}

fn nest(dims: &[u64], values: &mut impl Iterator<Item = Value>) -> Value {
    match dims {
        [] => values.next().unwrap_or(Value::Void),
        [count, inner @ ..] => Value::List((0..*count).map(|_| nest(inner, values)).collect()),
    }
}

fn read_bits(cursor: &mut Cursor<'_>, width: u8) -> Result<u128> {
    let mut bytes = [0; 16];
    let read = cursor.take(width.into())?;
    bytes.iter_mut().zip(read).for_each(|(to, from)| *to = *from);
    Ok(u128::from_le_bytes(bytes))
}

fn read_int(cursor: &mut Cursor<'_>, width: u8) -> Result<i128> {
    let spare = 128 - 8 * u32::from(width);
    Ok(read_bits(cursor, width)?.cast_signed() << spare >> spare)
}

/// Whether bits are a NaN. In R any NaN is a missing value; the serialization does not follow that rule, but
/// callers may.
///
/// ```
/// use pentaglot::formats::dynd::{FloatWidth, is_nan_bits};
/// assert!(is_nan_bits(FloatWidth::W32, 0x7fc0_0000));
/// assert!(!is_nan_bits(FloatWidth::W32, 0x7f80_0000));
/// ```
pub fn is_nan_bits(width: FloatWidth, bits: u128) -> bool {
    let (exponent, mantissa) = match width {
        FloatWidth::W16 => (5, 10),
        FloatWidth::W32 => (8, 23),
        FloatWidth::W64 => (11, 52),
        FloatWidth::W128 => (15, 112),
    };
    let all: u128 = (1 << exponent) - 1;
    bits >> mantissa & all == all && bits & ((1 << mantissa) - 1) != 0
}

const _: () = assert!(size_of::<Value>() <= 32);
