//! What the header of a page says.

use super::shapes::PAGE_HEADER;
use super::thrift::{self, fields, i32, skip};
use crate::cursor::Cursor;
use crate::error::{Error, Result};

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

/// The part of a header that belongs to one kind of page.
#[derive(Clone, Copy)]
struct Details {
    value_count: u64,
    encoding: i32,
    level_bytes: u64,
}

impl PageHeader {
    pub(super) const DATA: i32 = 0;
    const INDEX: i32 = 1;
    pub(super) const DICTIONARY: i32 = 2;
    pub(super) const DATA_V2: i32 = 3;

    /// The word for the kind.
    pub(super) fn kind_name(&self) -> &'static str {
        match self.kind {
            PageHeader::DATA => "data page",
            PageHeader::INDEX => "index page",
            PageHeader::DICTIONARY => "dictionary page",
            PageHeader::DATA_V2 => "data page v2",
            _ => "unknown page",
        }
    }

    /// Whether the page begins with as many lengths as it says, for which the decoder makes room at once.
    pub(super) fn has_lengths(&self) -> bool {
        // DELTA_LENGTH_BYTE_ARRAY and DELTA_BYTE_ARRAY
        self.is_data() && matches!(self.encoding, 6 | 7)
    }

    pub(super) fn is_data(&self) -> bool {
        matches!(self.kind, PageHeader::DATA | PageHeader::DATA_V2)
    }

    /// Reads the header at the start of `bytes`.
    pub(super) fn read(bytes: &[u8], base: u64) -> Result<PageHeader> {
        let mut cursor = Cursor::at(bytes, base);
        // Below, a field is of its type.
        thrift::check(PAGE_HEADER, &mut Cursor::at(bytes, base))?;
        let (mut kind, mut unpacked, mut packed, mut crc) = (None, None, None, None);
        let (mut data, mut dictionary, mut data_v2) = (None, None, None);
        fields(&mut cursor, |id, code, cursor| {
            match id {
                1 => kind = Some(i32(cursor)?),
                2 => unpacked = Some(size(cursor, "uncompressed_page_size")?),
                3 => packed = Some(size(cursor, "compressed_page_size")?),
                4 => crc = Some(i32(cursor)?.cast_unsigned()),
                5 => data = Some(Details::read(cursor)?),
                7 => dictionary = Some(Details::read(cursor)?),
                8 => data_v2 = Some(Details::read_v2(cursor)?),
                _ => skip(code, cursor)?,
            }
            Ok(())
        })?;
        let kind = kind.ok_or_else(|| missing("type", base))?;
        let details = match kind {
            PageHeader::DATA => data,
            PageHeader::INDEX => Some(Details { value_count: 0, encoding: 0, level_bytes: 0 }),
            PageHeader::DICTIONARY => dictionary,
            PageHeader::DATA_V2 => data_v2,
            other => return Err(Error::malformed("a page type 0..=3", other).at(base).rule("page-header")),
        };
        let details = details.ok_or_else(|| missing("the header of its page type", base))?;
        Ok(PageHeader {
            kind,
            unpacked_bytes: unpacked.ok_or_else(|| missing("uncompressed_page_size", base))?,
            packed_bytes: packed.ok_or_else(|| missing("compressed_page_size", base))?,
            crc,
            value_count: details.value_count,
            encoding: details.encoding,
            level_bytes: details.level_bytes,
            header_bytes: cursor.offset() - base,
        })
    }
}

impl Details {
    /// Of a dictionary page or a data page of version 1.
    fn read(cursor: &mut Cursor<'_>) -> Result<Details> {
        let at = cursor.offset();
        let (mut values, mut encoding) = (None, None);
        fields(cursor, |id, code, cursor| {
            match id {
                1 => values = Some(size(cursor, "num_values")?),
                2 => encoding = Some(i32(cursor)?),
                _ => skip(code, cursor)?,
            }
            Ok(())
        })?;
        Details::new(values, encoding, 0, at)
    }

    fn read_v2(cursor: &mut Cursor<'_>) -> Result<Details> {
        let at = cursor.offset();
        let (mut values, mut encoding, mut definitions, mut repetitions) = (None, None, 0, 0);
        fields(cursor, |id, code, cursor| {
            match id {
                1 => values = Some(size(cursor, "num_values")?),
                2 => drop(size(cursor, "num_nulls")?),
                3 => drop(size(cursor, "num_rows")?),
                4 => encoding = Some(i32(cursor)?),
                5 => definitions = size(cursor, "definition_levels_byte_length")?,
                6 => repetitions = size(cursor, "repetition_levels_byte_length")?,
                _ => skip(code, cursor)?,
            }
            Ok(())
        })?;
        Details::new(values, encoding, definitions + repetitions, at)
    }

    fn new(values: Option<u64>, encoding: Option<i32>, level_bytes: u64, at: u64) -> Result<Details> {
        let value_count = values.ok_or_else(|| missing("num_values", at))?;
        let encoding = encoding.ok_or_else(|| missing("encoding", at))?;
        Ok(Details { value_count, encoding, level_bytes })
    }
}

fn missing(what: &'static str, at: u64) -> Error {
    Error::malformed(what, "none").at(at).rule("page-header")
}

fn size(cursor: &mut Cursor<'_>, name: &'static str) -> Result<u64> {
    let at = cursor.offset();
    let value = i32(cursor)?;
    u64::try_from(value)
        .map_err(|_| Error::malformed("0 or more", value).at(at).field(name).rule("page-header"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A header of a dictionary page of 8 bytes; what belongs to its kind is in `details`.
    fn dictionary(details: &[u8]) -> Result<PageHeader> {
        PageHeader::read(&[b"\x15\x04\x15\x10\x15\x10", details, b"\0"].concat(), 0)
    }

    #[test]
    fn what_counts_is_what_belongs_to_the_kind() {
        // Some writers have numbers of 64 bits.
        for details in [b"\x4c\x15\x06\x15\x04\0", b"\x4c\x16\x06\x16\x04\0"] {
            let header = dictionary(details).unwrap();
            assert_eq!((header.value_count, header.encoding), (3, 2));
        }
        // What belongs to a data page is here too, before it or after it.
        let data = b"\x15\x02\x15\0\x15\x06\x15\x06\0";
        let before = [b"\x2c", data.as_slice(), b"\x2c\x15\x06\x15\x04\0"].concat();
        assert_eq!(dictionary(&before).unwrap().value_count, 3);
        let after = [b"\x4c\x15\x06\x15\x04\0\x0c\x0a".as_slice(), data].concat();
        assert_eq!(dictionary(&after).unwrap().value_count, 3);
        let error = dictionary(&[b"\x2c", data.as_slice()].concat()).unwrap_err();
        assert!(error.to_string().contains("the header of its page type"), "{error}");
    }

    #[test]
    fn a_number_of_another_type_is_malformed() {
        for (details, expected) in [
            // The `parquet` crate takes it for the 2^31 - 1 values that it makes room for.
            (b"\x4c\x18\xfe\xff\xff\xff\x0f\x15\x04\0".as_slice(), "an i32"),
            (b"\x4c\x17\xfe\xff\xff\xff\x0f\x15\x04\0", "an i32"),
            (b"\x4c\x15\x06\x15\x04\x15\x02\0", "a bool"),
            (b"\x45\x06", "a struct"),
            (b"\x4c\x15\xfe\xff\xff\xff\x1f\x15\x04\0", "an i32"),
            (b"\x4c\x15\x06\x15\x04\x05\x02\x08\0", "twice"),
            // The crate passes over a list of bools as if it had no bytes, and takes these for numbers of values.
            (b"\x4c\x15\x06\x15\x04\x79\x61\x15\xfe\xff\xff\xff\x0f\0", "bools"),
            (b"\x4c\x15\x06\x15\x04\x7b\x01\x11\x01\x01\0", "bools"),
            (b"\x4c\x15\x05\x15\x04\0", "0 or more"),
            (b"\x4c\x25\x04\0", "num_values"),
        ] {
            let error = dictionary(details).unwrap_err();
            assert!(error.to_string().contains(expected), "{error}");
        }
    }
}
