//! Decodes rows to Arrow columns. Values of fixed size are collected as bytes and converted to arrays at once
//! ([`unpack`](super::unpack::unpack)); the others are read value by value into one [`ColumnDecoder`] per field.

use std::sync::Arc;

use arrow_array::{ArrayRef, BinaryArray, StringArray};
use arrow_buffer::{BooleanBufferBuilder, Buffer, MutableBuffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::{DataType, Field};

use super::merkle::check_multihash;
use super::schema::needs_some;
use super::types::{Encoding, Type};
use super::unpack::{list, structure, unpack, var_list};
use super::walk::{
    Care, Walker, check_array_type, free_elements, read_bytes, read_char, read_count, read_flag, read_type,
};
use crate::cursor::Cursor;
use crate::error::{Context, Error, Result};
use crate::hub::type_text::print_type;
use crate::kernels::arrays;
use crate::limits::{Budget, Reservation};

/// The values of one field, while rows are read.
pub(super) struct ColumnDecoder {
    kind: DecoderKind,
    len: usize,
    /// The reservation for placeholders, which take memory but no bytes in the file.
    held: Reservation,
}

enum DecoderKind {
    /// Values of fixed size, as their bytes.
    Packed {
        ty: Type,
        size: u64,
        bytes: MutableBuffer,
    },
    /// `string`, `json`
    Text(Slices),
    /// `bytes`
    Bytes(Slices),
    /// `char`
    Char(Encoding, Slices),
    /// `type`
    Type(Slices, Budget),
    Var {
        of: Type,
        offsets: Vec<i32>,
        items: Box<ColumnDecoder>,
    },
    Fixed {
        size: u64,
        items: Box<ColumnDecoder>,
    },
    Struct(Vec<ColumnDecoder>),
    /// `?T` with a flag byte; with `some` the value is wrapped in a struct.
    Option {
        validity: BooleanBufferBuilder,
        value: Box<ColumnDecoder>,
        some: bool,
    },
    Array {
        pattern: Type,
        types: Slices,
        data: Slices,
        budget: Budget,
        last: Option<(Vec<u8>, Type)>,
    },
    /// Links: the types and the multihashes.
    Merkle {
        ty: Type,
        types: Slices,
        hashes: Slices,
        budget: Budget,
        /// The text of the last type, which is checked.
        last: Option<Vec<u8>>,
    },
    /// A field that is not selected.
    Skipped(Type, Budget),
}

/// Byte slices one after the other.
struct Slices {
    offsets: Vec<i32>,
    bytes: Vec<u8>,
}

impl Slices {
    fn new() -> Self {
        Slices { offsets: vec![0], bytes: Vec::new() }
    }

    #[inline]
    fn push(&mut self, bytes: &[u8]) -> Result<()> {
        self.bytes.extend_from_slice(bytes);
        self.offsets.push(offset(self.bytes.len())?);
        Ok(())
    }

    fn repeat(&mut self, count: usize) {
        let last = self.offsets.last().copied().unwrap_or(0);
        self.offsets.extend(std::iter::repeat_n(last, count));
    }

    fn parts(self) -> (OffsetBuffer<i32>, Buffer) {
        (offsets(self.offsets), self.bytes.into())
    }

    fn text(self, nulls: Option<NullBuffer>) -> Result<StringArray> {
        let (offsets, bytes) = self.parts();
        arrays::strings(offsets, bytes, nulls)
            .map_err(|_| Error::malformed("UTF-8", "other bytes").rule("utf8"))
    }

    fn binary(self, nulls: Option<NullBuffer>) -> Result<BinaryArray> {
        let (offsets, bytes) = self.parts();
        Ok(BinaryArray::try_new(offsets, bytes, nulls)?)
    }
}

/// The array of slices of a type, from their offsets and bytes.
pub(super) fn slice_array(ty: &Type, offsets: Vec<i32>, bytes: Vec<u8>) -> Result<ArrayRef> {
    let slices = Slices { offsets, bytes };
    Ok(match ty {
        Type::Bytes { .. } => Arc::new(slices.binary(None)?),
        _ => Arc::new(slices.text(None)?),
    })
}

#[inline]
fn offset(len: usize) -> Result<i32> {
    i32::try_from(len)
        .map_err(|_| Error::limit("the limit", i32::MAX, format!("{len} bytes or elements in a batch")))
}

fn offsets(offsets: Vec<i32>) -> OffsetBuffer<i32> {
    OffsetBuffer::new(ScalarBuffer::from(offsets))
}

impl ColumnDecoder {
    /// A column for data of a concrete type.
    pub(super) fn new(ty: &Type, budget: &Budget) -> Self {
        let kind = match ty {
            _ if ty.fixed_size().is_some() => DecoderKind::Packed {
                ty: ty.clone(),
                size: ty.fixed_size().unwrap_or(0),
                bytes: MutableBuffer::new(0),
            },
            Type::Bytes { .. } => DecoderKind::Bytes(Slices::new()),
            Type::Char(encoding) => DecoderKind::Char(*encoding, Slices::new()),
            Type::Type => DecoderKind::Type(Slices::new(), budget.clone()),
            Type::Var(of) => DecoderKind::Var {
                of: of.as_ref().clone(),
                offsets: vec![0],
                items: Box::new(ColumnDecoder::new(of, budget)),
            },
            Type::Fixed(size, of) => {
                DecoderKind::Fixed { size: *size, items: Box::new(ColumnDecoder::new(of, budget)) }
            }
            Type::Tuple(types) => {
                DecoderKind::Struct(types.iter().map(|ty| ColumnDecoder::new(ty, budget)).collect())
            }
            Type::Struct(fields) => {
                DecoderKind::Struct(fields.iter().map(|(_, ty)| ColumnDecoder::new(ty, budget)).collect())
            }
            Type::Option(of) => DecoderKind::Option {
                validity: BooleanBufferBuilder::new(0),
                value: Box::new(ColumnDecoder::new(of.pointee(), budget)),
                some: needs_some(of),
            },
            Type::Pointer(of) => return ColumnDecoder::new(of, budget),
            Type::Array(pattern) => DecoderKind::Array {
                pattern: pattern.as_ref().clone(),
                types: Slices::new(),
                data: Slices::new(),
                budget: budget.clone(),
                last: None,
            },
            Type::Merkle(_) => DecoderKind::Merkle {
                ty: ty.clone(),
                types: Slices::new(),
                hashes: Slices::new(),
                budget: budget.clone(),
                last: None,
            },
            // `string` and `json`; types of fixed size and patterns do not come here.
            _ => DecoderKind::Text(Slices::new()),
        };
        ColumnDecoder { kind, len: 0, held: budget.reservation() }
    }

    /// A column that is read and dropped.
    pub(super) fn skipped(ty: &Type, budget: &Budget) -> Self {
        ColumnDecoder {
            kind: DecoderKind::Skipped(ty.clone(), budget.clone()),
            len: 0,
            held: budget.reservation(),
        }
    }

    /// Reads one value.
    #[inline]
    pub(super) fn read(&mut self, cursor: &mut Cursor<'_>) -> Result<()> {
        self.len += 1;
        match &mut self.kind {
            DecoderKind::Packed { size, bytes, .. } => bytes.extend_from_slice(cursor.take(*size)?),
            DecoderKind::Text(slices) | DecoderKind::Bytes(slices) => slices.push(read_bytes(cursor)?)?,
            DecoderKind::Char(encoding, slices) => {
                let c = read_char(cursor, *encoding)?;
                slices.push(c.encode_utf8(&mut [0; 4]).as_bytes())?;
            }
            DecoderKind::Type(slices, budget) => {
                let mut text = cursor.clone();
                read_type(cursor, budget.limits())?;
                slices.push(read_bytes(&mut text)?)?;
            }
            DecoderKind::Var { of, offsets, items } => {
                let count = read_count(cursor, of)?;
                items.read_many(count, cursor)?;
                offsets.push(offset(items.len)?);
            }
            DecoderKind::Fixed { size, items } => items.read_many(*size, cursor)?,
            DecoderKind::Struct(columns) => columns.iter_mut().try_for_each(|column| column.read(cursor))?,
            DecoderKind::Option { validity, value, .. } => {
                let is_there = read_flag(cursor)?;
                validity.append(is_there);
                if is_there { value.read(cursor)? } else { value.push_defaults(1)? }
            }
            DecoderKind::Array { pattern, types, data, budget, last } => {
                let mut after = cursor.clone();
                let text = read_bytes(&mut after)?;
                let (text, stored) = match last.take() {
                    Some((known, ty)) if known == text => {
                        *cursor = after;
                        (known, ty)
                    }
                    _ => {
                        let ty = read_type(cursor, budget.limits())?;
                        check_array_type(&ty, pattern)?;
                        (text.to_vec(), ty)
                    }
                };
                types.push(&text)?;
                let start = cursor.rest();
                let left = cursor.remaining();
                Walker::new(budget.limits(), Care::Strict).value(&stored, cursor)?;
                data.push(start.get(..left - cursor.remaining()).unwrap_or_default())?;
                *last = Some((text, stored));
            }
            DecoderKind::Merkle { ty, types, hashes, budget, last } => {
                let mut link = cursor.clone();
                let text = read_bytes(&mut link)?;
                let start = link.offset();
                let hash = read_bytes(&mut link)?;
                if last.as_deref() == Some(text) {
                    check_multihash(hash).at(start).field("hash")?;
                    *cursor = link;
                } else {
                    Walker::new(budget.limits(), Care::Strict).value(ty, cursor)?;
                    *last = Some(text.to_vec());
                }
                types.push(text)?;
                hashes.push(hash)?;
            }
            DecoderKind::Skipped(ty, budget) => {
                Walker::new(budget.limits(), Care::Extent).value(ty, cursor)?
            }
        }
        Ok(())
    }

    /// Reads `count` values.
    fn read_many(&mut self, count: u64, cursor: &mut Cursor<'_>) -> Result<()> {
        let len = usize::try_from(count).ok().and_then(|count| self.len.checked_add(count));
        let len =
            len.ok_or_else(|| Error::limit("the address space", usize::MAX, format!("{count} elements")))?;
        match &mut self.kind {
            DecoderKind::Packed { ty, size, bytes } => {
                if *size == 0 {
                    self.held.budget().limits().check_free_rows(count.saturating_mul(free_elements(ty)))?;
                } else {
                    bytes.extend_from_slice(cursor.take(count.saturating_mul(*size))?);
                }
                self.len = len;
            }
            DecoderKind::Fixed { size: 0, .. } => {
                self.held.budget().limits().check_free_rows(count)?;
                self.len = len;
            }
            _ => (0..count).try_for_each(|_| self.read(cursor))?,
        }
        Ok(())
    }

    /// Adds placeholders for missing values: their bytes are never used, but they take memory, so they are reserved.
    fn push_defaults(&mut self, count: usize) -> Result<()> {
        self.len = self.len.saturating_add(count);
        let held = &mut self.held;
        let mut pay = |bytes: usize| held.grow(count.saturating_mul(bytes) as u64);
        match &mut self.kind {
            DecoderKind::Packed { size, bytes, .. } => {
                let size = usize::try_from(*size).unwrap_or(usize::MAX);
                pay(size)?;
                bytes.extend_zeros(size * count);
            }
            DecoderKind::Text(slices)
            | DecoderKind::Bytes(slices)
            | DecoderKind::Char(_, slices)
            | DecoderKind::Type(slices, _) => {
                pay(4)?;
                slices.repeat(count);
            }
            DecoderKind::Var { offsets, .. } => {
                pay(4)?;
                let last = offsets.last().copied().unwrap_or(0);
                offsets.extend(std::iter::repeat_n(last, count));
            }
            DecoderKind::Fixed { size, items } => {
                let size = usize::try_from(*size).unwrap_or(usize::MAX);
                items.push_defaults(size.saturating_mul(count))?;
            }
            DecoderKind::Struct(columns) => {
                columns.iter_mut().try_for_each(|column| column.push_defaults(count))?
            }
            DecoderKind::Option { validity, value, .. } => {
                pay(1)?;
                validity.append_n(count, false);
                value.push_defaults(count)?;
            }
            DecoderKind::Array { types, data, .. } | DecoderKind::Merkle { types, hashes: data, .. } => {
                pay(8)?;
                types.repeat(count);
                data.repeat(count);
            }
            DecoderKind::Skipped(..) => {}
        }
        Ok(())
    }

    /// The array of all values; `nulls` are those of an enclosing option.
    pub(super) fn finish(self, field: &Field, nulls: Option<NullBuffer>) -> Result<ArrayRef> {
        let len = self.len;
        let fields = || match field.data_type() {
            DataType::Struct(fields) => Ok(fields),
            other => {
                Err(Error::unsupported(format!("no data of this type can be read as {}", print_type(other))))
            }
        };
        Ok(match self.kind {
            DecoderKind::Packed { ty, bytes, .. } => unpack(&ty, field, bytes.into(), len, nulls)?,
            DecoderKind::Text(slices) | DecoderKind::Char(_, slices) | DecoderKind::Type(slices, _) => {
                Arc::new(slices.text(nulls)?)
            }
            DecoderKind::Bytes(slices) => Arc::new(slices.binary(nulls)?),
            DecoderKind::Var { offsets, items, .. } => {
                let DataType::List(item) = field.data_type() else {
                    return Err(Error::unsupported("a dimension that is not a list"));
                };
                let values = items.finish(item, None)?;
                var_list(field, self::offsets(offsets), nulls, values)?
            }
            DecoderKind::Fixed { items, .. } => list(field, len, nulls, |item, _| items.finish(item, None))?,
            DecoderKind::Struct(columns) => {
                let fields = fields()?;
                let columns = columns.into_iter().zip(fields);
                let columns =
                    columns.map(|(column, field)| column.finish(field, None)).collect::<Result<_>>()?;
                structure(fields, columns, len, nulls)?
            }
            DecoderKind::Option { mut validity, value, some } => {
                let nulls = NullBuffer::new(validity.finish());
                if some {
                    let fields = fields()?;
                    let inner =
                        fields.first().ok_or_else(|| Error::unsupported("an option with no field"))?;
                    structure(fields, vec![value.finish(inner, None)?], len, Some(nulls))?
                } else {
                    value.finish(field, Some(nulls))?
                }
            }
            DecoderKind::Array { types, data, .. } | DecoderKind::Merkle { types, hashes: data, .. } => {
                let columns: Vec<ArrayRef> = vec![Arc::new(types.text(None)?), Arc::new(data.binary(None)?)];
                structure(fields()?, columns, len, nulls)?
            }
            DecoderKind::Skipped(..) => return Err(Error::unsupported("a column that was not read")),
        })
    }
}
