//! `array[T]` as CBOR: plain CBOR if a type has exactly one such form, otherwise a tag with type text and data.
//!
//! Native, decided by the type alone: `bool`, `int64`, `float64`, `string`, `bytes`, `void` (undefined), `?void` (null);
//! `N * E` of numbers as RFC 8746 typed arrays, `N1 * … * Nk * E` under tag 40, or under tag 1040 if it is stored in column
//! order (`storage[…, axis=[k-1, …, 0]]`); `N * E` of `bool`, `string`, `bytes` under tag 41; tuples of native fields as arrays; structs of native fields in deterministic key order as maps.

use super::parse::parse_canonical;
use super::types::{FloatWidth, Type, Width};
use super::value::{Value, ValueReader, read_value, write_value};
use super::walk::{not_utf8, symbolic};
use crate::cursor::Cursor;
use crate::error::{Context, Error, ErrorKind, Result};
use crate::limits::{Budget, Limits, Reservation};
use crate::source::{HEAD_BYTES, Source};
use crate::wire::cbor::{Head, major, malformed, read_head, widen_float, write_float, write_head};

/// The tag of values without a native form: "dynd".
const TAG: u64 = 0x6479_6e64;
/// The first bytes of a file with that tag.
pub(super) const TAG_HEAD: [u8; 5] = [0xda, 0x64, 0x79, 0x6e, 0x64];
const MULTI_DIM: u64 = 40;
/// Like [`MULTI_DIM`], with the first index varying fastest.
const COLUMN_MAJOR: u64 = 1040;
const HOMOGENEOUS: u64 = 41;

/// The typed-array tag of a number type.
fn typed_tag(ty: &Type) -> Option<u64> {
    Some(match ty {
        Type::Uint(Width::W8) => 64,
        Type::Uint(Width::W16) => 69,
        Type::Uint(Width::W32) => 70,
        Type::Uint(Width::W64) => 71,
        Type::Int(Width::W8) => 72,
        Type::Int(Width::W16) => 77,
        Type::Int(Width::W32) => 78,
        Type::Int(Width::W64) => 79,
        Type::Float(FloatWidth::W16) => 84,
        Type::Float(FloatWidth::W32) => 85,
        Type::Float(FloatWidth::W64) => 86,
        Type::Float(FloatWidth::W128) => 87,
        _ => return None,
    })
}

fn typed_element(tag: u64) -> Option<Type> {
    let types = [Width::W8, Width::W16, Width::W32, Width::W64];
    let ints = types.iter().flat_map(|width| [Type::Int(*width), Type::Uint(*width)]);
    let floats = FloatWidth::ALL.iter().map(|width| Type::Float(*width));
    ints.chain(floats).find(|ty| typed_tag(ty) == Some(tag))
}

fn is_item(ty: &Type) -> bool {
    matches!(ty, Type::Bool | Type::String | Type::Bytes { align: 1 })
}

/// Whether values of the type have a native form.
pub(super) fn is_native(ty: &Type) -> bool {
    match ty {
        Type::Bool | Type::Int(Width::W64) | Type::Float(FloatWidth::W64) => true,
        Type::String | Type::Bytes { align: 1 } | Type::Void => true,
        Type::Option(of) => **of == Type::Void,
        Type::Fixed(..) => match ty.fixed_dims() {
            (dims, element) if typed_tag(element).is_some() => dims.len() == 1 || !dims.contains(&0),
            (dims, element) => dims.len() == 1 && dims != [0] && is_item(element),
        },
        Type::Storage { of, .. } => {
            let (dims, element) = of.fixed_dims();
            is_column_major(ty) && typed_tag(element).is_some() && !dims.contains(&0)
        }
        Type::Tuple(fields) => fields.iter().all(is_native),
        Type::Struct(fields) => {
            let ordered = fields.windows(2).all(|pair| match pair {
                [(a, _), (b, _)] => key_order(a) < key_order(b),
                _ => true,
            });
            ordered && fields.iter().all(|(_, ty)| is_native(ty))
        }
        _ => false,
    }
}

/// Whether the data is stored with the first index varying fastest, as in Fortran.
fn is_column_major(ty: &Type) -> bool {
    matches!(ty, Type::Storage { axis, .. } if axis.iter().copied().eq((0..axis.len()).rev()))
}

/// The dimensions of an array in either order, and its element.
fn array_dims(ty: &Type) -> (Vec<u64>, &Type) {
    match ty {
        Type::Storage { of, .. } => of.fixed_dims(),
        other => other.fixed_dims(),
    }
}

/// The order of a map's keys: bytewise by their encoding, so the shorter first.
fn key_order(name: &str) -> (usize, &[u8]) {
    (name.len(), name.as_bytes())
}

/// The unique CBOR form of a typed value.
///
/// ```
/// use pentaglot::formats::dynd::{Type, Value, write_cbor};
/// assert_eq!(write_cbor(&"int64".parse()?, &Value::Int(-5))?, [0x24]);
/// # Ok::<(), pentaglot::Error>(())
/// ```
pub fn write_cbor(ty: &Type, value: &Value) -> Result<Vec<u8>> {
    let data = write_value(ty, value)?;
    let mut out = Vec::new();
    match is_native(ty) {
        true => write_native(ty, value, &mut out)?,
        false => {
            write_data_head(ty, data.len() as u64, &mut out);
            out.extend_from_slice(&data);
        }
    }
    Ok(out)
}

/// The type and value of one deterministic CBOR item; every other form of it is an error.
pub fn read_cbor(bytes: &[u8], limits: &Limits) -> Result<(Type, Value)> {
    read_cbor_within(bytes, &limits.budget())
}

fn read_cbor_within(bytes: &[u8], budget: &Budget) -> Result<(Type, Value)> {
    let mut reader =
        Reader { cursor: Cursor::new(bytes), limits: budget.limits(), held: budget.reservation() };
    let item = reader.item(0)?;
    reader.cursor.expect_end()?;
    Ok(item)
}

/// Writes the heads before the data of a typed array or of the general form.
pub(super) fn write_data_head(ty: &Type, data_bytes: u64, out: &mut Vec<u8>) {
    let (dims, element) = array_dims(ty);
    match typed_tag(element) {
        Some(tag) if is_native(ty) && !dims.is_empty() => {
            if dims.len() > 1 {
                let tag = if is_column_major(ty) { COLUMN_MAJOR } else { MULTI_DIM };
                write_head(major::TAG, tag, out);
                write_head(major::ARRAY, 2, out);
                write_head(major::ARRAY, dims.len() as u64, out);
                dims.iter().for_each(|dim| write_head(major::UNSIGNED, *dim, out));
            }
            write_head(major::TAG, tag, out);
        }
        _ => {
            write_head(major::TAG, TAG, out);
            write_head(major::ARRAY, 2, out);
            let text = ty.to_string();
            write_head(major::TEXT, text.len() as u64, out);
            out.extend_from_slice(text.as_bytes());
        }
    }
    write_head(major::BYTES, data_bytes, out);
}

/// Whether the CBOR form contains the data of the type unchanged.
pub(super) fn holds_data(ty: &Type) -> bool {
    let (dims, element) = array_dims(ty);
    !is_native(ty) || (!dims.is_empty() && typed_tag(element).is_some())
}

/// Writes a value whose serialization is `data` and whose type has a native form that is not that data.
pub(super) fn write_native_data(ty: &Type, data: &[u8], limits: &Limits, out: &mut Vec<u8>) -> Result<()> {
    write_native(ty, &read_value(data, ty, limits)?, out)
}

fn write_native(ty: &Type, value: &Value, out: &mut Vec<u8>) -> Result<()> {
    match (ty, value) {
        (_, Value::Bool(value)) => out.push(0xf4 | u8::from(*value)),
        (_, Value::Int(value)) => {
            let (major, magnitude) =
                if *value < 0 { (major::NEGATIVE, !*value) } else { (major::UNSIGNED, *value) };
            write_head(major, u64::try_from(magnitude).unwrap_or(u64::MAX), out);
        }
        (_, Value::Float(bits)) => write_float(u64::try_from(*bits).unwrap_or(u64::MAX), out),
        (_, Value::String(text)) => {
            write_head(major::TEXT, text.len() as u64, out);
            out.extend_from_slice(text.as_bytes());
        }
        (_, Value::Bytes(bytes)) => {
            write_head(major::BYTES, bytes.len() as u64, out);
            out.extend_from_slice(bytes);
        }
        (_, Value::Void) => out.push(0xf7),
        (_, Value::Missing) => out.push(0xf6),
        (Type::Fixed(count, of), Value::List(items)) => {
            if holds_data(ty) {
                let data = write_value(ty, value)?;
                write_data_head(ty, data.len() as u64, out);
                out.extend_from_slice(&data);
            } else {
                write_head(major::TAG, HOMOGENEOUS, out);
                write_head(major::ARRAY, *count, out);
                items.iter().try_for_each(|item| write_native(of, item, out))?;
            }
        }
        (Type::Storage { .. }, Value::List(_)) => {
            let data = write_value(ty, value)?;
            write_data_head(ty, data.len() as u64, out);
            out.extend_from_slice(&data);
        }
        (Type::Tuple(fields), Value::List(items)) => {
            write_head(major::ARRAY, fields.len() as u64, out);
            fields.iter().zip(items).try_for_each(|(ty, item)| write_native(ty, item, out))?;
        }
        (Type::Struct(fields), Value::List(items)) => {
            write_head(major::MAP, fields.len() as u64, out);
            for ((name, ty), item) in fields.iter().zip(items) {
                write_head(major::TEXT, name.len() as u64, out);
                out.extend_from_slice(name.as_bytes());
                write_native(ty, item, out)?;
            }
        }
        _ => return Err(Error::usage(format!("{ty} has no native CBOR form"))),
    }
    Ok(())
}

/// Whether a file of `len` bytes with this head is exactly a typed array or the general form. Other CBOR has no
/// signature (a single byte may be a number), so it must be named.
pub(super) fn is_marked(head: &[u8], len: Option<u64>) -> bool {
    let mut cursor = Cursor::new(head);
    let located = locate(&mut cursor, &Limits::default()).ok().flatten();
    located
        .is_some_and(|located| len.is_none_or(|len| cursor.offset().checked_add(located.bytes) == Some(len)))
}

/// Whether the bytes of a file, or its head, are a valid item or the start of one.
pub(super) fn is_item_so_far(head: &[u8], len: Option<u64>) -> bool {
    match read_cbor_within(head, &Limits::default().budget()) {
        Ok(_) => true,
        Err(error) => error.kind() == ErrorKind::Truncated && len != Some(head.len() as u64),
    }
}

/// An item that contains its data unchanged.
struct Located {
    ty: Type,
    type_text: Option<(u64, u64)>,
    bytes: u64,
}

/// Reads the heads before data that is stored unchanged; `None` for other items. Ends at the start of the
/// data.
fn locate(cursor: &mut Cursor<'_>, limits: &Limits) -> Result<Option<Located>> {
    let start = cursor.offset();
    let head = read_head(cursor)?;
    if head.major != major::TAG {
        return Ok(None);
    }
    if head.argument == TAG {
        return locate_tagged(cursor, limits).map(Some);
    }
    let (dims, tag) = match head.argument {
        MULTI_DIM | COLUMN_MAJOR => {
            (Some(read_dims(cursor)?), expect(cursor, major::TAG, "a typed array")?.argument)
        }
        other => (None, other),
    };
    let Some(element) = typed_element(tag) else {
        return match dims {
            Some(_) => {
                Err(malformed("a typed array in an array of several dimensions", format_args!("tag {tag}"))
                    .at(cursor.offset()))
            }
            None => Ok(None),
        };
    };
    let bytes = expect(cursor, major::BYTES, "the bytes of a typed array")?.argument;
    let size = element.fixed_size().unwrap_or(1);
    if !bytes.is_multiple_of(size) {
        return Err(malformed(format_args!("a multiple of {size} bytes"), bytes).at(start));
    }
    let count = bytes / size;
    let dims = dims.unwrap_or_else(|| vec![count]);
    let product = dims.iter().try_fold(1u64, |product, dim| product.checked_mul(*dim));
    if product != Some(count) {
        return Err(malformed(format_args!("elements for the dimensions {dims:?}"), count).at(start));
    }
    let ty = dims.iter().rev().fold(element, |ty, dim| Type::Fixed(*dim, Box::new(ty)));
    let ty = match head.argument {
        COLUMN_MAJOR => Type::Storage { of: Box::new(ty), axis: (0..dims.len()).rev().collect() },
        _ => ty,
    };
    Ok(Some(Located { ty, type_text: None, bytes }))
}

fn locate_tagged(cursor: &mut Cursor<'_>, limits: &Limits) -> Result<Located> {
    expect_argument(cursor, major::ARRAY, 2, "an array of type and data")?;
    let len = expect(cursor, major::TEXT, "a type's text")?.argument;
    let start = cursor.offset();
    let bytes = cursor.take(len)?;
    let text = std::str::from_utf8(bytes).map_err(|error| not_utf8(bytes, error.valid_up_to()).at(start))?;
    let ty = parse_canonical(text, start, limits).field("type")?;
    if !ty.is_concrete() {
        return Err(symbolic(&ty).at(start).field("type"));
    }
    if is_native(&ty) {
        return Err(malformed("the native form of this type", format_args!("`{ty}` in a tag"))
            .at(start)
            .field("type"));
    }
    let data = expect(cursor, major::BYTES, "the data's bytes")?.argument;
    Ok(Located { ty, type_text: Some((start, len)), bytes: data })
}

fn read_dims(cursor: &mut Cursor<'_>) -> Result<Vec<u64>> {
    expect_argument(cursor, major::ARRAY, 2, "an array of dimensions and elements")?;
    let offset = cursor.offset();
    let count = expect(cursor, major::ARRAY, "an array of dimensions")?.argument;
    if count < 2 {
        return Err(malformed("two or more dimensions", count).at(offset));
    }
    // The canonical type would be nested as deep.
    if count > 512 {
        return Err(Error::limit("the limit", 512, format!("{count} dimensions")).at(offset).rule("depth"));
    }
    let mut dims = Vec::new();
    for _ in 0..count {
        let offset = cursor.offset();
        match expect(cursor, major::UNSIGNED, "a dimension")?.argument {
            0 => return Err(malformed("a dimension of 1 or more", 0).at(offset)),
            dim => dims.push(dim),
        }
    }
    Ok(dims)
}

fn expect(cursor: &mut Cursor<'_>, major: u8, what: &str) -> Result<Head> {
    let offset = cursor.offset();
    let head = read_head(cursor)?;
    if head.major != major {
        return Err(malformed(what, format_args!("major type {}", head.major)).at(offset));
    }
    Ok(head)
}

fn expect_argument(cursor: &mut Cursor<'_>, major: u8, argument: u64, what: &str) -> Result<()> {
    let offset = cursor.offset();
    match expect(cursor, major, what)?.argument {
        found if found == argument => Ok(()),
        found => Err(malformed(what, format_args!("{found} items")).at(offset)),
    }
}

/// A CBOR file as DyND data: a range of the file, or bytes in memory.
pub(super) struct Item {
    pub(super) ty: Type,
    pub(super) source: Source,
    pub(super) type_text: Option<(u64, u64)>,
    pub(super) data: u64,
    pub(super) bytes: u64,
    /// Whether `source` is not the file itself.
    pub(super) is_recoded: bool,
}

/// Reads a CBOR file: data that is stored unchanged is read from the file; other items are small and are
/// converted to DyND data in memory.
pub(super) fn read(source: &Source, budget: &Budget) -> Result<Item> {
    let len = source.len().unwrap_or(0);
    let limits = budget.limits();
    let head = source.read_range(0, len.min(HEAD_BYTES as u64), budget)?;
    let mut cursor = Cursor::new(&head);
    let mut located = locate(&mut cursor, limits);
    let all;
    // A type's text may go past the head.
    if located.as_ref().is_err_and(|error| error.kind() == ErrorKind::Truncated) && len > head.len() as u64 {
        all = source.read_range(0, len, budget)?;
        cursor = Cursor::new(&all);
        located = locate(&mut cursor, limits);
    }
    if let Some(Located { ty, type_text, bytes }) = located? {
        let data = cursor.offset();
        let left = len.saturating_sub(data);
        if bytes > left {
            return Err(Error::truncated(format_args!("{bytes} bytes of data"), left).at(data));
        }
        if bytes < left {
            return Err(super::layout::trailing(left - bytes).at(data + bytes));
        }
        return Ok(Item { ty, source: source.clone(), type_text, data, bytes, is_recoded: false });
    }
    let all = source.read_range(0, len, budget)?;
    let (ty, value) = read_cbor_within(&all, budget)?;
    let data = write_value(&ty, &value)?;
    let bytes = data.len() as u64;
    let source = Source::from_bytes(source.name(), data);
    Ok(Item { ty, source, type_text: None, data: 0, bytes, is_recoded: true })
}

struct Reader<'a> {
    cursor: Cursor<'a>,
    limits: &'a Limits,
    held: Reservation,
}

impl Reader<'_> {
    fn item(&mut self, depth: u32) -> Result<(Type, Value)> {
        let start = self.cursor.offset();
        self.limits.check_depth(depth).map_err(|error| error.at(start).rule("depth"))?;
        self.held.grow(size_of::<(Type, Value)>() as u64).at(start)?;
        let mut ahead = self.cursor.clone();
        let head = read_head(&mut ahead)?;
        if head.major == major::TAG {
            return self.tagged(head.argument, depth);
        }
        self.cursor = ahead;
        let range = || Error::malformed("an integer of 64 bits", "a larger one").at(start).rule("cbor-range");
        Ok(match head.major {
            major::UNSIGNED | major::NEGATIVE => {
                let magnitude = i64::try_from(head.argument).map_err(|_| range())?;
                let value = if head.major == major::NEGATIVE { !magnitude } else { magnitude };
                (Type::Int(Width::W64), Value::Int(value.into()))
            }
            major::BYTES => {
                let bytes = self.cursor.take(head.argument)?;
                self.held.grow(head.argument)?;
                (Type::Bytes { align: 1 }, Value::Bytes(bytes.to_vec()))
            }
            major::TEXT => (Type::String, Value::String(self.text(head.argument)?)),
            major::ARRAY => {
                self.cursor.check_count(head.argument, 1)?;
                let (mut types, mut values) = (Vec::new(), Vec::new());
                for index in 0..head.argument {
                    let (ty, value) = self.item(depth + 1).index(index)?;
                    types.push(ty);
                    values.push(value);
                }
                (Type::Tuple(types), Value::List(values))
            }
            major::MAP => {
                self.cursor.check_count(head.argument, 2)?;
                let (mut fields, mut values): (Vec<(String, Type)>, _) = (Vec::new(), Vec::new());
                for _ in 0..head.argument {
                    let offset = self.cursor.offset();
                    let len = expect(&mut self.cursor, major::TEXT, "a text key")?.argument;
                    let name = self.text(len)?;
                    if fields.last().is_some_and(|(last, _)| key_order(last) >= key_order(&name)) {
                        return Err(
                            malformed("keys in order, each once", format_args!("{name:?}")).at(offset)
                        );
                    }
                    let (ty, value) = self.item(depth + 1).field(name.clone())?;
                    fields.push((name, ty));
                    values.push(value);
                }
                (Type::Struct(fields), Value::List(values))
            }
            _ => match head.info {
                20 => (Type::Bool, Value::Bool(false)),
                21 => (Type::Bool, Value::Bool(true)),
                22 => (Type::Option(Box::new(Type::Void)), Value::Missing),
                23 => (Type::Void, Value::Void),
                25..=27 => (Type::Float(FloatWidth::W64), Value::Float(widen_float(head).at(start)?.into())),
                _ => {
                    return Err(malformed(
                        "a value of a datashape",
                        format_args!("simple value {}", head.argument),
                    )
                    .at(start));
                }
            },
        })
    }

    fn text(&mut self, len: u64) -> Result<String> {
        let start = self.cursor.offset();
        let bytes = self.cursor.take(len)?;
        self.held.grow(len)?;
        let text = std::str::from_utf8(bytes)
            .map_err(|error| not_utf8(bytes, error.valid_up_to()).at(start + error.valid_up_to() as u64))?;
        Ok(text.to_owned())
    }

    fn tagged(&mut self, tag: u64, depth: u32) -> Result<(Type, Value)> {
        let start = self.cursor.offset();
        if tag == TAG && depth > 0 {
            return Err(malformed("a native item inside a native item", "the tag of dynd").at(start));
        }
        if let Some(Located { ty, bytes, .. }) = locate(&mut self.cursor, self.limits)? {
            let mut data = self.cursor.sub(bytes)?;
            let value = ValueReader::new(self.held.budget()).value(&ty, &mut data)?;
            data.expect_end()?;
            return Ok((ty, value));
        }
        if tag != HOMOGENEOUS {
            let expected = "a tag of a typed array, 40, 41, 1040 or that of dynd";
            return Err(Error::malformed(expected, format_args!("tag {tag}")).at(start).rule("cbor-tag"));
        }
        let offset = self.cursor.offset();
        let count = expect(&mut self.cursor, major::ARRAY, "an array in tag 41")?.argument;
        self.cursor.check_count(count, 1)?;
        if count == 0 {
            return Err(malformed("one or more elements in tag 41", 0).at(offset));
        }
        let (mut first, mut values): (Option<Type>, _) = (None, Vec::new());
        for index in 0..count {
            let offset = self.cursor.offset();
            let (ty, value) = self.item(depth + 1).index(index)?;
            if !is_item(&ty) || first.as_ref().is_some_and(|first| *first != ty) {
                let expected = "elements of one type: bool, string or bytes";
                return Err(malformed(expected, format_args!("`{ty}`")).at(offset).index(index));
            }
            first.get_or_insert(ty);
            values.push(value);
        }
        Ok((Type::Fixed(count, Box::new(first.unwrap_or(Type::Void))), Value::List(values)))
    }
}
