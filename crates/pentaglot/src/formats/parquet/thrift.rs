//! Thrift's compact protocol, as far as it is walked before the `parquet` crate sees it: that footers and indexes are
//! whole, and what page headers say.

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
    pub(super) const STRUCT: Code = Code(12);
}

fn varint(cursor: &mut Cursor<'_>) -> Result<u64> {
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

fn zigzag(cursor: &mut Cursor<'_>) -> Result<i64> {
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
    walk(code, cursor, 0, &mut 0)
}

fn walk(code: Code, cursor: &mut Cursor<'_>, depth: u32, elements: &mut u64) -> Result<()> {
    let at = cursor.offset();
    if depth > MAX_DEPTH {
        return Err(Error::malformed(format_args!("at most {MAX_DEPTH} levels"), "more")
            .at(at)
            .rule("thrift"));
    }
    match code.0 {
        1 | 2 => Ok(()),
        3 => cursor.skip(1),
        4..=6 => varint(cursor).map(drop),
        7 => cursor.skip(8),
        8 => {
            let len = varint(cursor)?;
            cursor.skip(len)
        }
        9 | 10 => {
            let byte = cursor.u8()?;
            let count = match byte >> 4 {
                15 => varint(cursor)?,
                short => short.into(),
            };
            // Every element takes a byte at the least.
            cursor.check_count(count, 1)?;
            *elements = elements.saturating_add(count);
            let item = Code(byte & 0x0f);
            match item {
                Code::TRUE | Code::FALSE => cursor.skip(count),
                _ => (0..count).try_for_each(|_| walk(item, cursor, depth + 1, elements)),
            }
        }
        12 => fields(cursor, |_, code, cursor| walk(code, cursor, depth + 1, elements)),
        other => Err(Error::malformed("a type code of thrift", other).at(at).rule("thrift")),
    }
}

/// Walks a whole structure; errs if it is broken or if its lists would cost more than the budget.
pub(super) fn check_struct(bytes: &[u8], base: u64, budget: &Budget) -> Result<()> {
    let mut elements = 0;
    walk(Code::STRUCT, &mut Cursor::at(bytes, base), 0, &mut elements)?;
    budget.check(elements.saturating_mul(ELEMENT_BYTES))
}

/// What a page header says.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct PageHeader {
    /// 0: data, 1: index, 2: dictionary, 3: data, version 2.
    pub kind: i32,
    pub unpacked_bytes: u64,
    pub packed_bytes: u64,
    pub crc: Option<u32>,
    pub value_count: u64,
    pub encoding: i32,
    /// The bytes of repetition and definition levels before the values (version 2 only).
    pub level_bytes: u64,
    /// How long the header itself is.
    pub header_bytes: u64,
}

impl PageHeader {
    pub(super) const DATA: i32 = 0;
    pub(super) const DICTIONARY: i32 = 2;
    pub(super) const DATA_V2: i32 = 3;

    /// The word for the kind.
    pub(super) fn kind_name(&self) -> &'static str {
        match self.kind {
            PageHeader::DATA => "data page",
            1 => "index page",
            PageHeader::DICTIONARY => "dictionary page",
            PageHeader::DATA_V2 => "data page v2",
            _ => "unknown page",
        }
    }

    pub(super) fn is_data(&self) -> bool {
        matches!(self.kind, PageHeader::DATA | PageHeader::DATA_V2)
    }

    /// Reads the header at the start of `bytes`.
    pub(super) fn read(bytes: &[u8], base: u64) -> Result<PageHeader> {
        let mut cursor = Cursor::at(bytes, base);
        let mut header = PageHeader { kind: -1, ..PageHeader::default() };
        let (mut unpacked, mut packed) = (None, None);
        let mut details = false;
        fields(&mut cursor, |id, code, cursor| {
            match (id, code) {
                (1, Code(5)) => header.kind = i32(cursor)?,
                (2, Code(5)) => unpacked = Some(size(cursor, "uncompressed_page_size")?),
                (3, Code(5)) => packed = Some(size(cursor, "compressed_page_size")?),
                (4, Code(5)) => header.crc = Some(i32(cursor)?.cast_unsigned()),
                (5 | 7, Code::STRUCT) => {
                    details = true;
                    fields(cursor, |id, code, cursor| {
                        match (id, code) {
                            (1, Code(5)) => header.value_count = size(cursor, "num_values")?,
                            (2, Code(5)) => header.encoding = i32(cursor)?,
                            _ => skip(code, cursor)?,
                        }
                        Ok(())
                    })?;
                }
                (8, Code::STRUCT) => {
                    details = true;
                    fields(cursor, |id, code, cursor| {
                        match (id, code) {
                            (1, Code(5)) => header.value_count = size(cursor, "num_values")?,
                            (4, Code(5)) => header.encoding = i32(cursor)?,
                            (5 | 6, Code(5)) => header.level_bytes += size(cursor, "level_byte_length")?,
                            _ => skip(code, cursor)?,
                        }
                        Ok(())
                    })?;
                }
                _ => skip(code, cursor)?,
            }
            Ok(())
        })?;
        let missing = |what| move || Error::malformed(what, "none").at(base).rule("page-header");
        header.unpacked_bytes = unpacked.ok_or_else(missing("uncompressed_page_size"))?;
        header.packed_bytes = packed.ok_or_else(missing("compressed_page_size"))?;
        if !(0..=3).contains(&header.kind) {
            return Err(Error::malformed("a page type 0..=3", header.kind).at(base).rule("page-header"));
        }
        if !details && header.kind != 1 {
            return Err(missing("the header of its page type")());
        }
        header.header_bytes = cursor.offset() - base;
        Ok(header)
    }
}

fn size(cursor: &mut Cursor<'_>, name: &'static str) -> Result<u64> {
    let at = cursor.offset();
    let value = i32(cursor)?;
    u64::try_from(value)
        .map_err(|_| Error::malformed("0 or more", value).at(at).field(name).rule("page-header"))
}
