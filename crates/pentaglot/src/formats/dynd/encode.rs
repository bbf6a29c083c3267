//! Encodes Arrow columns as rows. Columns of fixed size are packed first; others are written value by value.

use std::sync::{Mutex, PoisonError};

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, BinaryArray, StringArray};
use arrow_buffer::{Buffer, NullBuffer, OffsetBuffer};
use arrow_schema::{DataType, Field};

use super::merkle::check_multihash;
use super::pack::{Pack, flat_tensor, pack, text};
use super::parse::parse_canonical;
use super::schema::needs_some;
use super::types::{Encoding, Type};
use super::walk::{Care, Walker, char_fits, check_array_type};
use crate::cursor::Cursor;
use crate::error::{Error, Result};
use crate::hub::type_text::print_type;
use crate::limits::Limits;
use crate::wire::varint;

/// One column of a batch, ready to be written row by row.
pub(super) enum Encoder {
    Packed {
        size: usize,
        pack: Pack,
    },
    /// `string`, `json`, `bytes`
    Slices {
        offsets: Offsets,
        bytes: Buffer,
    },
    Char(Encoding, ArrayRef),
    Type(ArrayRef, Limits),
    Var {
        offsets: Offsets,
        items: Box<Encoder>,
    },
    Fixed {
        size: usize,
        items: Box<Encoder>,
    },
    Struct(Vec<Encoder>),
    Option {
        nulls: Option<NullBuffer>,
        value: Box<Encoder>,
    },
    Array {
        pattern: Type,
        types: StringArray,
        data: BinaryArray,
        limits: Limits,
        last: Mutex<Option<(String, Type)>>,
    },
    Merkle {
        pattern: Type,
        types: StringArray,
        hashes: BinaryArray,
        limits: Limits,
        /// The last type, which is checked.
        last: Mutex<Option<String>>,
    },
}

/// Offsets of either width.
pub(super) enum Offsets {
    Small(OffsetBuffer<i32>),
    Large(OffsetBuffer<i64>),
}

impl Offsets {
    #[inline]
    fn range(&self, index: usize) -> (usize, usize) {
        match self {
            Offsets::Small(offsets) => {
                let at = |index| offsets.get(index).and_then(|at| usize::try_from(*at).ok()).unwrap_or(0);
                (at(index), at(index + 1))
            }
            Offsets::Large(offsets) => {
                let at = |index| offsets.get(index).and_then(|at| usize::try_from(*at).ok()).unwrap_or(0);
                (at(index), at(index + 1))
            }
        }
    }
}

/// The Arrow type that the encoders accept for a type: without dictionaries, runs and views.
pub(super) fn plain_type(data_type: &DataType) -> DataType {
    let field =
        |field: &Field| std::sync::Arc::new(field.clone().with_data_type(plain_type(field.data_type())));
    match data_type {
        DataType::Dictionary(_, value) => plain_type(value),
        DataType::RunEndEncoded(_, value) => plain_type(value.data_type()),
        DataType::Utf8View => DataType::Utf8,
        DataType::BinaryView => DataType::Binary,
        DataType::ListView(item) => DataType::List(field(item)),
        DataType::LargeListView(item) => DataType::LargeList(field(item)),
        DataType::List(item) => DataType::List(field(item)),
        DataType::LargeList(item) => DataType::LargeList(field(item)),
        DataType::FixedSizeList(item, size) => DataType::FixedSizeList(field(item), *size),
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(|member| field(member)).collect()),
        other => other.clone(),
    }
}

impl Encoder {
    pub(super) fn new(ty: &Type, array: &ArrayRef, limits: &Limits) -> Result<Self> {
        let mismatch =
            || Error::unsupported(format!("{} cannot be written as {ty}", print_type(array.data_type())));
        if let Some(size) = ty.fixed_size() {
            let size = usize::try_from(size).map_err(|_| mismatch())?;
            return Ok(Encoder::Packed { size, pack: pack(ty, array)? });
        }
        Ok(match ty {
            Type::String | Type::Json | Type::Bytes { .. } => {
                let (offsets, bytes) = match array.data_type() {
                    DataType::Utf8 => {
                        let array = array.as_string::<i32>();
                        (Offsets::Small(array.offsets().clone()), array.values().clone())
                    }
                    DataType::LargeUtf8 => {
                        let array = array.as_string::<i64>();
                        (Offsets::Large(array.offsets().clone()), array.values().clone())
                    }
                    DataType::Binary => {
                        let array = array.as_binary::<i32>();
                        (Offsets::Small(array.offsets().clone()), array.values().clone())
                    }
                    DataType::LargeBinary => {
                        let array = array.as_binary::<i64>();
                        (Offsets::Large(array.offsets().clone()), array.values().clone())
                    }
                    _ => return Err(mismatch()),
                };
                Encoder::Slices { offsets, bytes }
            }
            Type::Char(encoding) => Encoder::Char(*encoding, array.clone()),
            Type::Type => Encoder::Type(array.clone(), limits.clone()),
            Type::Var(of) => {
                let (offsets, values) = match array.data_type() {
                    DataType::List(_) => {
                        let list = array.as_list::<i32>();
                        (Offsets::Small(list.offsets().clone()), list.values())
                    }
                    DataType::LargeList(_) => {
                        let list = array.as_list::<i64>();
                        (Offsets::Large(list.offsets().clone()), list.values())
                    }
                    _ => return Err(mismatch()),
                };
                Encoder::Var { offsets, items: Box::new(Encoder::new(of, values, limits)?) }
            }
            Type::Fixed(size, of) => {
                let list = array.as_fixed_size_list_opt().ok_or_else(mismatch)?;
                let (size, of) = flat_tensor(ty, array.data_type()).unwrap_or((*size, of.as_ref()));
                let size = usize::try_from(size).map_err(|_| mismatch())?;
                Encoder::Fixed { size, items: Box::new(Encoder::new(of, list.values(), limits)?) }
            }
            Type::Tuple(types) => Encoder::fields(types.iter(), array, limits)?,
            Type::Struct(fields) => Encoder::fields(fields.iter().map(|(_, ty)| ty), array, limits)?,
            Type::Option(of) => {
                let nulls = array.nulls().cloned();
                let value = if needs_some(of) {
                    let some =
                        array.as_struct_opt().and_then(|some| some.columns().first()).ok_or_else(mismatch)?;
                    Encoder::new(of.pointee(), some, limits)?
                } else {
                    Encoder::new(of, array, limits)?
                };
                Encoder::Option { nulls, value: Box::new(value) }
            }
            Type::Pointer(of) => Encoder::new(of, array, limits)?,
            Type::Array(pattern) => {
                let (types, data) = text_and_bytes(array).ok_or_else(mismatch)?;
                let (pattern, limits) = (pattern.as_ref().clone(), limits.clone());
                Encoder::Array { pattern, types, data, limits, last: Mutex::new(None) }
            }
            Type::Merkle(pattern) => {
                let (types, hashes) = text_and_bytes(array).ok_or_else(mismatch)?;
                let (pattern, limits) = (pattern.as_ref().clone(), limits.clone());
                Encoder::Merkle { pattern, types, hashes, limits, last: Mutex::new(None) }
            }
            _ => return Err(mismatch()),
        })
    }

    fn fields<'t>(types: impl Iterator<Item = &'t Type>, array: &ArrayRef, limits: &Limits) -> Result<Self> {
        let columns = array.as_struct_opt().ok_or_else(|| Error::unsupported("a struct is expected"))?;
        let columns = types.zip(columns.columns()).map(|(ty, column)| Encoder::new(ty, column, limits));
        Ok(Encoder::Struct(columns.collect::<Result<_>>()?))
    }

    /// Writes value `index`; the error says why it does not fit.
    pub(super) fn write(&self, index: usize, out: &mut Vec<u8>) -> Result<()> {
        match self {
            Encoder::Packed { size, pack } => return write_packed(*size, pack, index, index + 1, out),
            Encoder::Slices { offsets, bytes } => {
                let (start, end) = offsets.range(index);
                let slice = bytes.get(start..end).unwrap_or_default();
                varint::write(slice.len() as u64, out);
                out.extend_from_slice(slice);
            }
            Encoder::Char(encoding, array) => {
                let text = text(array, index)?;
                let mut chars = text.chars();
                match (chars.next(), chars.next()) {
                    (Some(c), None) if char_fits(c, *encoding) => out.extend_from_slice(text.as_bytes()),
                    _ => {
                        return Err(Error::lossy(format!(
                            "{text:?} is not a single char of {}",
                            encoding.name()
                        )));
                    }
                }
            }
            Encoder::Type(array, limits) => {
                let text = text(array, index)?;
                parse_canonical(text, 0, limits).map_err(|error| Error::lossy(error.message()))?;
                varint::write(text.len() as u64, out);
                out.extend_from_slice(text.as_bytes());
            }
            Encoder::Var { offsets, items } => {
                let (start, end) = offsets.range(index);
                varint::write((end - start) as u64, out);
                items.write_range(start, end, out)?;
            }
            Encoder::Fixed { size, items } => items.write_range(index * size, (index + 1) * size, out)?,
            Encoder::Struct(columns) => columns.iter().try_for_each(|column| column.write(index, out))?,
            Encoder::Option { nulls, value } => {
                match nulls.as_ref().is_some_and(|nulls| nulls.is_null(index)) {
                    true => out.push(0),
                    false => {
                        out.push(1);
                        value.write(index, out)?;
                    }
                }
            }
            Encoder::Array { pattern, types, data, limits, last } => {
                let (text, bytes) = (types.value(index), data.value(index));
                let mut last = last.lock().unwrap_or_else(PoisonError::into_inner);
                if last.as_ref().is_none_or(|(known, _)| known != text) {
                    let ty = parse_canonical(text, 0, limits)
                        .and_then(|ty| check_array_type(&ty, pattern).map(|()| ty));
                    *last = Some((text.to_owned(), ty.map_err(|error| Error::lossy(error.message()))?));
                }
                if let Some((_, ty)) = last.as_ref() {
                    let mut cursor = Cursor::new(bytes);
                    let walked = Walker::new(limits, Care::Strict).value(ty, &mut cursor);
                    walked
                        .and_then(|()| cursor.expect_end())
                        .map_err(|error| Error::lossy(error.to_string()))?;
                }
                varint::write(text.len() as u64, out);
                out.extend_from_slice(text.as_bytes());
                out.extend_from_slice(bytes);
            }
            Encoder::Merkle { pattern, types, hashes, limits, last } => {
                let (text, hash) = (types.value(index), hashes.value(index));
                let mut last = last.lock().unwrap_or_else(PoisonError::into_inner);
                if last.as_deref() != Some(text) {
                    let checked =
                        parse_canonical(text, 0, limits).and_then(|ty| check_array_type(&ty, pattern));
                    checked.map_err(|error| Error::lossy(error.message()))?;
                    *last = Some(text.to_owned());
                }
                check_multihash(hash).map_err(|error| Error::lossy(error.message()))?;
                for bytes in [text.as_bytes(), hash] {
                    varint::write(bytes.len() as u64, out);
                    out.extend_from_slice(bytes);
                }
            }
        }
        Ok(())
    }

    fn write_range(&self, start: usize, end: usize, out: &mut Vec<u8>) -> Result<()> {
        match self {
            Encoder::Packed { size, pack } => write_packed(*size, pack, start, end, out),
            _ => (start..end).try_for_each(|index| self.write(index, out)),
        }
    }
}

/// The columns of a struct of text and bytes.
fn text_and_bytes(array: &ArrayRef) -> Option<(StringArray, BinaryArray)> {
    let [text, bytes] = array.as_struct_opt()?.columns() else { return None };
    Some((text.as_string_opt::<i32>()?.clone(), bytes.as_binary_opt::<i32>()?.clone()))
}

#[inline]
fn write_packed(size: usize, pack: &Pack, start: usize, end: usize, out: &mut Vec<u8>) -> Result<()> {
    if !pack.misfits.is_empty()
        && let Some((_, why)) = pack.misfits.range(start..end).next()
    {
        return Err(Error::lossy(why.clone()));
    }
    out.extend_from_slice(pack.bytes.get(start * size..end * size).unwrap_or_default());
    Ok(())
}
