//! Walks data by its type without storing it: finds the end of a value, and checks that it is the unique
//! serialization.

use std::borrow::Cow;

use super::merkle::check_multihash;
use super::parse::{parse, parse_canonical};
use super::tokens::excerpt;
use super::types::{Encoding, Missing, Type};
use crate::cursor::Cursor;
use crate::error::{Context, Error, Result};
use crate::formats::Findings;
use crate::limits::Limits;
use crate::wire::varint;

/// What a walk checks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Care {
    /// Only the ends of values; the bytes of values are not checked.
    Extent,
    /// Every rule.
    Strict,
}

/// Skips values of a type; errors have offset and path.
pub(super) struct Walker<'a> {
    limits: &'a Limits,
    care: Care,
    free: u64,
    /// Broken rules found so far, if the walk continues after one.
    found: Option<Vec<Error>>,
    /// The last type text of an `array[T]`, since adjacent values usually have the same.
    last: Option<(String, Type)>,
}

impl<'a> Walker<'a> {
    pub(super) fn new(limits: &'a Limits, care: Care) -> Self {
        Walker { limits, care, free: 0, found: None, last: None }
    }

    /// A strict walk that continues after a broken rule, if the type allows it.
    pub(super) fn collecting(limits: &'a Limits) -> Self {
        Walker { found: Some(Vec::new()), ..Walker::new(limits, Care::Strict) }
    }

    /// The broken rules that were found since the last call.
    pub(super) fn found(&mut self) -> Vec<Error> {
        self.found.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Skips a part; `place` adds its step to the path of errors.
    fn part(
        &mut self,
        ty: &Type,
        cursor: &mut Cursor<'_>,
        depth: u32,
        place: impl Fn(Error) -> Error,
    ) -> Result<()> {
        let Some(found) = &self.found else { return self.walk(ty, cursor, depth).map_err(place) };
        let (before, start) = (found.len(), cursor.clone());
        let mut result = self.walk(ty, cursor, depth);
        if let Err(error) = result {
            let mut after = start;
            let extent = Walker::new(self.limits, Care::Extent).walk(ty, &mut after, depth);
            result = match (&mut self.found, extent) {
                (Some(found), Ok(())) if found.len() < Findings::KEPT => {
                    found.push(error);
                    *cursor = after;
                    Ok(())
                }
                _ => Err(error),
            };
        }
        if let Some(found) = &mut self.found {
            let new = found.split_off(before.min(found.len()));
            found.extend(new.into_iter().map(&place));
        }
        result.map_err(place)
    }

    /// Skips row `index`.
    pub(super) fn row(&mut self, index: u64, ty: &Type, cursor: &mut Cursor<'_>) -> Result<()> {
        self.part(ty, cursor, 0, |error| error.index(index))
    }

    /// Skips one value.
    pub(super) fn value(&mut self, ty: &Type, cursor: &mut Cursor<'_>) -> Result<()> {
        self.walk(ty, cursor, 0)
    }

    fn walk(&mut self, ty: &Type, cursor: &mut Cursor<'_>, depth: u32) -> Result<()> {
        self.limits.check_depth(depth).map_err(|error| error.at(cursor.offset()).rule("depth"))?;
        if let Some(size) = ty.fixed_size()
            && (self.care == Care::Extent || is_free_of_rules(ty))
        {
            self.spend(ty, 1, cursor)?;
            return cursor.skip(size);
        }
        match ty {
            Type::Bool => read_bool(cursor).map(drop),
            Type::Char(encoding) => read_char(cursor, *encoding).map(drop),
            Type::String | Type::Json if self.care == Care::Strict => read_text(cursor).map(drop),
            Type::String | Type::Json | Type::Bytes { .. } => read_bytes(cursor).map(drop),
            Type::FixedString { encoding, .. } => {
                let offset = cursor.offset();
                let bytes = cursor.take(ty.fixed_size().unwrap_or(u64::MAX))?;
                decode_fixed_string(bytes, *encoding).at(offset).map(drop)
            }
            Type::Type if self.care == Care::Extent => read_bytes(cursor).map(drop),
            Type::Type => read_type(cursor, self.limits).map(drop),
            Type::Fixed(count, of) => self.elements(*count, of, cursor, depth + 1),
            Type::Var(of) => {
                let count = read_count(cursor, of)?;
                self.elements(count, of, cursor, depth + 1)
            }
            Type::Tuple(fields) => fields.iter().enumerate().try_for_each(|(index, field)| {
                self.part(field, cursor, depth + 1, |error| error.index(index as u64))
            }),
            Type::Struct(fields) => fields.iter().try_for_each(|(name, field)| {
                self.part(field, cursor, depth + 1, |error| error.field(name.clone()))
            }),
            Type::Option(of) => match of.missing() {
                Missing::Always => Ok(()),
                Missing::Sentinel(_) if **of == Type::Bool => read_optional_bool(cursor).map(drop),
                Missing::Sentinel(_) => self.walk(of, cursor, depth + 1),
                Missing::Flag if read_flag(cursor)? => self.walk(of, cursor, depth + 1),
                Missing::Flag => Ok(()),
            },
            Type::Pointer(of) => self.walk(of, cursor, depth + 1),
            // A value in storage order; its rules are those of its elements.
            Type::Storage { of, .. } => {
                let (dims, element) = of.fixed_dims();
                let count = dims.iter().try_fold(1u64, |product, dim| product.checked_mul(*dim));
                self.elements(count.unwrap_or(u64::MAX), element, cursor, depth + 1)
            }
            Type::Array(pattern) => {
                let (text, stored) = self.array_type(pattern, cursor)?;
                let walked = self.part(&stored, cursor, depth + 1, |error| error.field("value"));
                self.last = Some((text, stored));
                walked
            }
            Type::Merkle(_) if self.care == Care::Extent => {
                read_bytes(cursor)?;
                read_bytes(cursor).map(drop)
            }
            Type::Merkle(pattern) => {
                self.last = Some(self.array_type(pattern, cursor)?);
                read_multihash(cursor).map(drop)
            }
            _ => cursor.skip(ty.fixed_size().unwrap_or(u64::MAX)),
        }
    }

    fn elements(&mut self, count: u64, of: &Type, cursor: &mut Cursor<'_>, depth: u32) -> Result<()> {
        let least = of.least_size();
        if least == 0 {
            return self.spend(of, count, cursor);
        }
        cursor.check_count(count, least)?;
        if let Some(size) = of.fixed_size()
            && (self.care == Care::Extent || is_free_of_rules(of))
        {
            // The product is within the bytes left, as checked above.
            return cursor.skip(count.saturating_mul(size));
        }
        for index in 0..count {
            self.part(of, cursor, depth, |error| error.index(index))?;
        }
        Ok(())
    }

    /// Counts elements that take no bytes against the limit.
    fn spend(&mut self, ty: &Type, count: u64, cursor: &Cursor<'_>) -> Result<()> {
        if ty.least_size() > 0 {
            return Ok(());
        }
        self.free = self.free.saturating_add(count.saturating_mul(free_elements(ty)));
        self.limits.check_free_rows(self.free).at(cursor.offset())
    }

    fn array_type(&mut self, pattern: &Type, cursor: &mut Cursor<'_>) -> Result<(String, Type)> {
        let (offset, mut ahead) = (cursor.offset(), cursor.clone());
        let bytes = read_bytes(&mut ahead).field("type")?;
        let stored = match self.last.take() {
            Some((text, ty)) if text.as_bytes() == bytes => {
                *cursor = ahead;
                (text, ty)
            }
            _ => {
                let ty = match self.care {
                    Care::Strict => read_type(cursor, self.limits),
                    Care::Extent => read_text(cursor)
                        .and_then(|text| parse(text, cursor.offset() - text.len() as u64, self.limits)),
                };
                let ty = ty.field("type")?;
                (String::from_utf8_lossy(bytes).into_owned(), ty)
            }
        };
        if self.care == Care::Strict {
            check_array_type(&stored.1, pattern).at(offset).field("type")?;
        } else if !stored.1.is_concrete() {
            return Err(symbolic(&stored.1).at(offset).field("type"));
        }
        Ok(stored)
    }
}

/// A precompiled way to skip one value: adjacent parts of fixed size are one step.
pub(super) struct Passage(Vec<Pass>);

enum Pass {
    Skip(u64),
    /// A varint and that many bytes.
    Slice,
    Walk(Type),
}

impl Passage {
    pub(super) fn new(ty: &Type) -> Self {
        let mut passage = Passage(Vec::new());
        passage.add(ty);
        passage
    }

    fn add(&mut self, ty: &Type) {
        match (ty, ty.fixed_size(), self.0.last_mut()) {
            (_, Some(size), Some(Pass::Skip(before))) if before.checked_add(size).is_some() => {
                *before += size
            }
            (_, Some(size), _) => self.0.push(Pass::Skip(size)),
            (Type::Struct(fields), ..) => fields.iter().for_each(|(_, ty)| self.add(ty)),
            (Type::Tuple(types), ..) => types.iter().for_each(|ty| self.add(ty)),
            (Type::Pointer(of), ..) => self.add(of),
            (Type::String | Type::Json | Type::Bytes { .. }, ..) => self.0.push(Pass::Slice),
            (other, ..) => self.0.push(Pass::Walk(other.clone())),
        }
    }

    /// Skips one value. Errors have no path: [`Walker::row`] finds it.
    #[inline]
    pub(super) fn pass(&self, walker: &mut Walker<'_>, cursor: &mut Cursor<'_>) -> Result<()> {
        self.0.iter().try_for_each(|step| match step {
            Pass::Skip(size) => cursor.skip(*size),
            Pass::Slice => read_bytes(cursor).map(drop),
            Pass::Walk(ty) => walker.walk(ty, cursor, 0),
        })
    }
}

/// How many elements there are in a value that takes no bytes.
pub(super) fn free_elements(ty: &Type) -> u64 {
    match ty {
        Type::Fixed(count, of) => count.saturating_mul(free_elements(of)).max(1),
        Type::Pointer(of) | Type::Storage { of, .. } => free_elements(of),
        Type::Tuple(fields) => fields.iter().fold(1, |sum, ty| free_elements(ty).saturating_add(sum)),
        Type::Struct(fields) => fields.iter().fold(1, |sum, (_, ty)| free_elements(ty).saturating_add(sum)),
        _ => 1,
    }
}

/// Whether any bytes of the right length are a value.
pub(super) fn is_free_of_rules(ty: &Type) -> bool {
    match ty {
        Type::Bool | Type::FixedString { .. } => false,
        Type::Option(of) => of.missing() != Missing::Flag && is_free_of_rules(of),
        Type::Fixed(_, of) | Type::Pointer(of) | Type::Storage { of, .. } => is_free_of_rules(of),
        Type::Tuple(fields) => fields.iter().all(is_free_of_rules),
        Type::Struct(fields) => fields.iter().all(|(_, ty)| is_free_of_rules(ty)),
        other => other.fixed_size().is_some(),
    }
}

/// Returns an error unless `stored` is a type that data can have and that matches `array[pattern]`.
pub(super) fn check_array_type(stored: &Type, pattern: &Type) -> Result<()> {
    if !stored.is_concrete() {
        return Err(symbolic(stored));
    }
    if !pattern.try_matches(stored)? {
        let expected = format_args!("a type that matches {}", excerpt(&pattern.to_string()));
        return Err(Error::malformed(expected, excerpt(&stored.to_string())).rule("pattern"));
    }
    Ok(())
}

/// The error for data whose type is a pattern.
pub(super) fn symbolic(ty: &Type) -> Error {
    Error::malformed("a type that data can have", excerpt(&ty.to_string())).rule("symbolic")
}

pub(super) fn read_bool(cursor: &mut Cursor<'_>) -> Result<bool> {
    let offset = cursor.offset();
    match cursor.u8()? {
        0 => Ok(false),
        1 => Ok(true),
        other => {
            Err(Error::malformed("a bool 00 or 01", format_args!("{other:02x}")).at(offset).rule("bool"))
        }
    }
}

pub(super) fn read_optional_bool(cursor: &mut Cursor<'_>) -> Result<Option<bool>> {
    let offset = cursor.offset();
    match cursor.u8()? {
        0 => Ok(Some(false)),
        1 => Ok(Some(true)),
        2 => Ok(None),
        other => {
            let found = format_args!("{other:02x}");
            Err(Error::malformed("an optional bool 00, 01 or 02", found).at(offset).rule("bool"))
        }
    }
}

/// Reads a flag byte: whether the value is present.
#[inline]
pub(super) fn read_flag(cursor: &mut Cursor<'_>) -> Result<bool> {
    let offset = cursor.offset();
    match cursor.u8()? {
        0 => Ok(false),
        1 => Ok(true),
        other => {
            let found = format_args!("{other:02x}");
            Err(Error::malformed("a flag 00 (missing) or 01", found).at(offset).rule("flag"))
        }
    }
}

/// The count of a `var` dimension, checked with the bytes left.
#[inline]
pub(super) fn read_count(cursor: &mut Cursor<'_>, of: &Type) -> Result<u64> {
    let offset = cursor.offset();
    let count = varint::read(cursor)?;
    cursor.check_count(count, of.least_size()).or_else(|error| {
        // Elements without bytes have a separate limit.
        if of.least_size() == 0 { Ok(0) } else { Err(error.at(offset)) }
    })?;
    Ok(count)
}

#[inline]
pub(super) fn read_bytes<'a>(cursor: &mut Cursor<'a>) -> Result<&'a [u8]> {
    let len = varint::read(cursor)?;
    cursor.take(len)
}

pub(super) fn read_text<'a>(cursor: &mut Cursor<'a>) -> Result<&'a str> {
    let bytes = read_bytes(cursor)?;
    let start = cursor.offset() - bytes.len() as u64;
    std::str::from_utf8(bytes)
        .map_err(|error| not_utf8(bytes, error.valid_up_to()).at(start + error.valid_up_to() as u64))
}

#[cold]
pub(super) fn not_utf8(bytes: &[u8], at: usize) -> Error {
    let byte = bytes.get(at).copied().unwrap_or_default();
    Error::malformed("UTF-8", format_args!("byte {byte:02x}")).rule("utf8")
}

/// One Unicode scalar value as UTF-8, with its bytes.
pub(super) fn read_char(cursor: &mut Cursor<'_>, encoding: Encoding) -> Result<char> {
    let offset = cursor.offset();
    let refuse = |found: String| Err(Error::malformed("a char in UTF-8", found).at(offset).rule("char"));
    let lead = match cursor.peek() {
        Some(lead) => lead,
        None => return cursor.u8().map(char::from),
    };
    let len = match lead {
        0x00..=0x7f => 1,
        0xc2..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xf4 => 4,
        _ => return refuse(format!("byte {lead:02x}")),
    };
    let bytes = cursor.take(len)?;
    let Some(c) = std::str::from_utf8(bytes).ok().and_then(|text| text.chars().next()) else {
        return refuse(format!("bytes {}", hex(bytes)));
    };
    if !char_fits(c, encoding) {
        let expected = format_args!("a char of {}", encoding.name());
        return Err(Error::malformed(expected, format_args!("U+{:04X}", u32::from(c)))
            .at(offset)
            .rule("char"));
    }
    Ok(c)
}

pub(super) fn char_fits(c: char, encoding: Encoding) -> bool {
    match encoding {
        Encoding::Ascii => c.is_ascii(),
        Encoding::Ucs2 => u32::from(c) < 0x1_0000,
        _ => true,
    }
}

pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(" ")
}

/// The multihash of a link.
pub(super) fn read_multihash<'a>(cursor: &mut Cursor<'a>) -> Result<&'a [u8]> {
    let bytes = read_bytes(cursor).field("hash")?;
    check_multihash(bytes).at(cursor.offset() - bytes.len() as u64).field("hash")?;
    Ok(bytes)
}

/// A type as a value: its canonical text.
pub(super) fn read_type(cursor: &mut Cursor<'_>, limits: &Limits) -> Result<Type> {
    let text = read_text(cursor)?;
    parse_canonical(text, cursor.offset() - text.len() as u64, limits)
}

/// The text of a `fixed_string`: code units up to the first zero, after which all are zero. Errors have no offset.
pub(super) fn decode_fixed_string(bytes: &[u8], encoding: Encoding) -> Result<Cow<'_, str>> {
    let unit = usize::from(encoding.unit_bytes());
    let is_zero = |unit: &[u8]| unit.iter().all(|byte| *byte == 0);
    let text_units = bytes.chunks_exact(unit).position(is_zero).unwrap_or(bytes.len() / unit);
    let (text, padding) = bytes.split_at_checked(text_units * unit).unwrap_or((bytes, &[]));
    if !is_zero(padding) {
        return Err(Error::malformed(
            "zeros after the text",
            hex(padding.get(..padding.len().min(8)).unwrap_or(padding)),
        )
        .rule("padding"));
    }
    let refuse = || Error::malformed(format_args!("{} text", encoding.name()), hex(text)).rule("utf8");
    let units16 = || {
        text.chunks_exact(2).map(|unit| {
            u16::from_le_bytes([unit.first().copied().unwrap_or(0), unit.get(1).copied().unwrap_or(0)])
        })
    };
    match encoding {
        Encoding::Ascii if !text.is_ascii() => Err(refuse()),
        Encoding::Ascii | Encoding::Utf8 => {
            std::str::from_utf8(text).map(Cow::Borrowed).map_err(|_| refuse())
        }
        Encoding::Ucs2 => units16()
            .map(|unit| char::from_u32(unit.into()).ok_or_else(refuse))
            .collect::<Result<String>>()
            .map(Cow::Owned),
        Encoding::Utf16 => char::decode_utf16(units16())
            .map(|c| c.map_err(|_| refuse()))
            .collect::<Result<String>>()
            .map(Cow::Owned),
        Encoding::Utf32 => text
            .as_chunks::<4>()
            .0
            .iter()
            .map(|unit| char::from_u32(u32::from_le_bytes(*unit)).ok_or_else(refuse))
            .collect::<Result<String>>()
            .map(Cow::Owned),
    }
}

/// The bytes of a `fixed_string`, zero-padded.
pub(super) fn encode_fixed_string(
    text: &str,
    units: u64,
    encoding: Encoding,
    out: &mut Vec<u8>,
) -> Result<()> {
    if text.contains('\0') {
        return Err(Error::lossy("a fixed_string cannot hold U+0000").rule("value"));
    }
    let start = out.len();
    match encoding {
        Encoding::Ascii if !text.is_ascii() => {
            return Err(Error::lossy("the text is not ASCII").rule("value"));
        }
        Encoding::Ucs2 if text.chars().any(|c| u32::from(c) > 0xffff) => {
            return Err(Error::lossy("the text has characters past U+FFFF").rule("value"));
        }
        Encoding::Ascii | Encoding::Utf8 => out.extend_from_slice(text.as_bytes()),
        Encoding::Ucs2 | Encoding::Utf16 => {
            text.encode_utf16().for_each(|unit| out.extend(unit.to_le_bytes()))
        }
        Encoding::Utf32 => text.chars().for_each(|c| out.extend(u32::from(c).to_le_bytes())),
    }
    let used = (out.len() - start) as u64;
    let size = units.saturating_mul(encoding.unit_bytes().into());
    if used > size {
        out.truncate(start);
        let message = format!("a text of {used} bytes does not fit fixed_string of {size}");
        return Err(Error::lossy(message).rule("length"));
    }
    let end = usize::try_from(start as u64 + size)
        .map_err(|_| Error::limit("the address space", usize::MAX, format!("{size} bytes")))?;
    out.resize(end, 0);
    Ok(())
}
