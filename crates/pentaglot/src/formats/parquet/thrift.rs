//! Thrift's compact protocol, as far as it is walked before the `parquet` crate sees it: that footers, indexes and page
//! headers are whole, and that their fields have the types that the crate takes them for.

use crate::cursor::Cursor;
use crate::error::{Error, Result};
use crate::limits::Budget;

/// How deep Parquet's own structures nest, with room to spare.
const MAX_DEPTH: u32 = 32;

/// What the `parquet` crate may allocate for one element of a list, at the most.
const ELEMENT_BYTES: u64 = 640;

/// The type code of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Code(u8);

impl Code {
    const TRUE: Code = Code(1);
    const FALSE: Code = Code(2);
    const STRUCT: Code = Code(12);
}

/// What a field is. The `parquet` crate goes by the number of a field alone and takes the bytes of any type for those of the
/// one it expects: it would go on in the middle of a value and believe the lengths that it finds there.
#[derive(Debug, Clone, Copy)]
pub(super) enum Shape {
    /// Passed over by its type.
    Any,
    Bool,
    I8,
    I16,
    I32,
    I64,
    Double,
    Binary,
    List(&'static Shape),
    /// The numbers of its fields and what they are; others are passed over.
    Struct(&'static [(i64, Shape)]),
}

impl Shape {
    fn name(self) -> &'static str {
        match self {
            Shape::Any => "a value",
            Shape::Bool => "a bool",
            Shape::I8 => "an i8",
            Shape::I16 => "an i16",
            Shape::I32 => "an i32",
            Shape::I64 => "an i64",
            Shape::Double => "a double",
            Shape::Binary => "a binary",
            Shape::List(_) => "a list",
            Shape::Struct(_) => "a struct",
        }
    }

    fn fits(self, code: Code) -> bool {
        match self {
            Shape::Any => true,
            Shape::Bool => matches!(code, Code::TRUE | Code::FALSE),
            Shape::I8 => code.0 == 3,
            // Numbers of any width are stored alike; some writers take another one.
            Shape::I16 | Shape::I32 | Shape::I64 => matches!(code.0, 4..=6),
            Shape::Double => code.0 == 7,
            Shape::Binary => code.0 == 8,
            Shape::List(_) => code.0 == 9,
            Shape::Struct(_) => code.0 == 12,
        }
    }

    fn holds(self, number: i64) -> bool {
        match self {
            Shape::I16 => i16::try_from(number).is_ok(),
            Shape::I32 => i32::try_from(number).is_ok(),
            _ => true,
        }
    }

    /// What the field of this number is, if the structure has it.
    fn field(self, number: i64) -> Option<Shape> {
        let Shape::Struct(fields) = self else { return None };
        fields.iter().find(|(id, _)| *id == number).map(|(_, shape)| *shape)
    }

    fn item(self) -> Shape {
        if let Shape::List(item) = self { *item } else { Shape::Any }
    }
}

pub(super) fn varint(cursor: &mut Cursor<'_>) -> Result<u64> {
    let start = cursor.offset();
    let mut value = 0u64;
    for shift in (0..70).step_by(7) {
        let byte = cursor.u8()?;
        if shift == 63 && byte > 1 {
            break;
        }
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Ok(value);
        }
    }
    Err(Error::malformed("a varint of at most 64 bits", "more").at(start).rule("thrift"))
}

/// A varint of which the last bit is the sign.
pub(super) fn zigzag(cursor: &mut Cursor<'_>) -> Result<i64> {
    let raw = varint(cursor)?;
    Ok((raw >> 1).cast_signed() ^ -(raw & 1).cast_signed())
}

/// An i32 field.
pub(super) fn i32(cursor: &mut Cursor<'_>) -> Result<i32> {
    let at = cursor.offset();
    let wide = zigzag(cursor)?;
    i32::try_from(wide).map_err(|_| Error::malformed("a 32-bit number", wide).at(at).rule("thrift"))
}

/// Calls `visit` with the id and type of each field of a struct; it must read or [`skip`] the field.
pub(super) fn fields(
    cursor: &mut Cursor<'_>,
    mut visit: impl FnMut(i64, Code, &mut Cursor<'_>) -> Result<()>,
) -> Result<()> {
    let mut id = 0i64;
    loop {
        let at = cursor.offset();
        let byte = cursor.u8()?;
        if byte == 0 {
            return Ok(());
        }
        id = match byte >> 4 {
            0 => zigzag(cursor)?,
            delta => id + i64::from(delta),
        };
        if !(1..=i64::from(i16::MAX)).contains(&id) {
            return Err(Error::malformed("a field id 1..=32767", id).at(at).rule("thrift"));
        }
        visit(id, Code(byte & 0x0f), cursor)?;
    }
}

/// Passes over a value, holding every length against the bytes left.
pub(super) fn skip(code: Code, cursor: &mut Cursor<'_>) -> Result<()> {
    walk(Shape::Any, code, cursor, 0, &mut 0)
}

/// The type and the number of the elements of a list.
pub(super) fn list_header(cursor: &mut Cursor<'_>) -> Result<(Code, u64)> {
    let byte = cursor.u8()?;
    let count = match byte >> 4 {
        15 => varint(cursor)?,
        short => short.into(),
    };
    // Every element takes a byte at the least.
    cursor.check_count(count, 1)?;
    Ok((Code(byte & 0x0f), count))
}

/// Calls `visit` with the place of each struct of a list, and the id and type of each of its fields.
pub(super) fn structs(
    cursor: &mut Cursor<'_>,
    mut visit: impl FnMut(u64, i64, Code, &mut Cursor<'_>) -> Result<()>,
) -> Result<()> {
    let (_, count) = list_header(cursor)?;
    (0..count).try_for_each(|place| fields(cursor, |id, code, cursor| visit(place, id, code, cursor)))
}

fn walk(shape: Shape, code: Code, cursor: &mut Cursor<'_>, depth: u32, elements: &mut u64) -> Result<()> {
    let at = cursor.offset();
    if depth > MAX_DEPTH {
        return Err(Error::malformed(format_args!("at most {MAX_DEPTH} levels"), "more")
            .at(at)
            .rule("thrift"));
    }
    if !shape.fits(code) {
        let found = format_args!("type code {}", code.0);
        return Err(Error::malformed(shape.name(), found).at(at).rule("thrift"));
    }
    match code.0 {
        1 | 2 => Ok(()),
        3 => cursor.skip(1),
        4..=6 => {
            let number = zigzag(cursor)?;
            match shape.holds(number) {
                true => Ok(()),
                false => Err(Error::malformed(shape.name(), number).at(at).rule("thrift")),
            }
        }
        7 => cursor.skip(8),
        8 => {
            let len = varint(cursor)?;
            cursor.skip(len)
        }
        9 | 10 => {
            let (item, count) = list_header(cursor)?;
            *elements = elements.saturating_add(count);
            match (count, item) {
                (0, _) => Ok(()),
                (_, Code::TRUE | Code::FALSE) if matches!(shape.item(), Shape::Bool) => cursor.skip(count),
                _ => (0..count).try_for_each(|_| walk_item(shape.item(), item, cursor, depth, elements)),
            }
        }
        11 => {
            let count = varint(cursor)?;
            cursor.check_count(count, 1)?;
            *elements = elements.saturating_add(count);
            if count == 0 {
                return Ok(());
            }
            let codes = cursor.u8()?;
            (0..count).try_for_each(|_| {
                walk_item(Shape::Any, Code(codes >> 4), cursor, depth, elements)?;
                walk_item(Shape::Any, Code(codes & 0x0f), cursor, depth, elements)
            })
        }
        12 => {
            let mut seen = 0u32;
            fields(cursor, |id, code, cursor| {
                let Some(shape) = shape.field(id) else {
                    return walk(Shape::Any, code, cursor, depth + 1, elements);
                };
                // Known numbers are below 32.
                let bit = 1 << (id & 31);
                if seen & bit > 0 {
                    let error = Error::malformed(format_args!("field {id} once"), "it twice");
                    return Err(error.at(cursor.offset()).rule("thrift"));
                }
                seen |= bit;
                walk(shape, code, cursor, depth + 1, elements)
            })
        }
        13 => cursor.skip(16),
        other => Err(Error::malformed("a type code of thrift", other).at(at).rule("thrift")),
    }
}

/// An element of a list, or a key or value of a map. The `parquet` crate takes no byte for a bool that it passes over, where each has
/// one.
fn walk_item(
    shape: Shape,
    code: Code,
    cursor: &mut Cursor<'_>,
    depth: u32,
    elements: &mut u64,
) -> Result<()> {
    if matches!(code, Code::TRUE | Code::FALSE) && shape.fits(code) {
        let what = "a list or map of bools in a field that Parquet does not define";
        return Err(Error::unsupported(what).at(cursor.offset()));
    }
    walk(shape, code, cursor, depth + 1, elements)
}

/// Walks a whole structure at the cursor; errs if it is broken.
pub(super) fn check(shape: Shape, cursor: &mut Cursor<'_>) -> Result<()> {
    walk(shape, Code::STRUCT, cursor, 0, &mut 0)
}

/// The same of bytes that begin with it; errs too if its lists would cost more than the budget.
pub(super) fn check_struct(shape: Shape, bytes: &[u8], base: u64, budget: &Budget) -> Result<()> {
    let mut elements = 0;
    walk(shape, Code::STRUCT, &mut Cursor::at(bytes, base), 0, &mut elements)?;
    budget.check(elements.saturating_mul(ELEMENT_BYTES))
}
