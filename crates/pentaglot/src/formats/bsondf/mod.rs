//! BSON DataFrame: a table as one BSON document with an element per column, whose buffers are compressed with LZ4.
//!
//! ```text
//! document      length:i32  column*  00
//! column        03 name 00  array document
//! array         { d: data, m: mask, t: type, p: its parameter, o: lengths }
//! buffer        05 key 00  bytes:i32 00  length:i32  LZ4 block          (d of most types, m, o)
//! mask          a bit for each row, 1 is present, the most significant bit first
//! lengths       i32: 0, then the length of each element; their running sums are Arrow's offsets
//! ```
//!
//! | `t` | `d` | `p` | Arrow |
//! |---|---|---|---|
//! | `bool` | a byte each | | Boolean |
//! | `int8` … `uint64`, `float16` … `float64` | values | | the same |
//! | `date[d]`, `date[ms]` | differences of i32, i64 | | Date32, Date64 |
//! | `timestamp[s\|ms\|us\|ns]` | differences of i64 | zone, or none | Timestamp |
//! | `time[s\|ms]`, `time[us\|ns]` | i32, i64 | | Time32, Time64 |
//! | `null` | the number of rows | | Null |
//! | `bytes`, `utf8` | bytes, with lengths `o` | | Binary, Utf8 |
//! | `opaque` | values of `p` bytes | width | FixedSizeBinary |
//! | `factor`, `ordered` | `{i: indices, d: dictionary}` | `{i, d}` types | Dictionary |
//! | `list` | items, with lengths `o` | type | List |
//! | `struct` | `{l: rows, f: {name: array}}` | `[{n, t, p}]` | Struct |
//!
//! Around this table, as databases have it:
//!
//! * Fields that are not columns (`_id`, a symbol) are kept as metadata; `-O fields=strict` refuses them.
//! * A frame may be a field of a document: `FILE::df`.
//! * A file may hold several documents (as `mongodump` writes): they are read as one table, or one by one as `FILE::0`.
//! * `-O max-bytes=15M` writes chunks: `{_id: {v, n}, k, first, rows, min, max, df: {frame}}`. `v` is the same in all, `n`
//!   counts them; they are joined by `n`, whatever their order in the file.
//! * The dialect `json` is MongoDB's Extended JSON of these documents.
//!
//! Where the spec, its later texts and the two original programs differ:
//!
//! * Times are stored as they are. The first text calls them difference encoded, which no program ever did.
//! * The first text's example of differences, and its loop that restores lists, are slips; sums are sums.
//! * Its example of an `ordered` array calls random bytes text. It is refused with the element's place;
//!   `-O utf8=bytes` reads such arrays as bytes.
//! * An empty buffer has 5 bytes (Python, and what both read) or 4 (C++): both are read, `-O empty=4` writes the latter.
//! * Fields may come in any order, and `p` of a factor may be missing (int32 and utf8).
//! * A value of a factor is missing if either of its two masks says so.
//! * The bytes of a missing value are undefined. We write zeros, or with `-O nulls=repeat` the value before it.
//! * What the last text forbids and the programs read (bits after the last row, unknown fields, int32 for int64, a bool
//!   other than 0 and 1) is a warning, and an error in the strict profile.

mod buffers;
mod checked;
mod chunk;
mod column;
mod decimal;
mod decode;
mod documents;
mod encode;
mod factors;
mod frames;
mod json_read;
mod json_write;
mod layout;
mod outline;
mod read;
mod rows;
mod schema;
mod type_text;
mod validate;
mod values;
mod write;

#[cfg(test)]
mod tests;

use crate::formats::{TypeLanguage, WritePlan};
use arrow_schema::SchemaRef;
use std::sync::Arc;

pub use column::{BsonColumn, read_document, write_document};
pub use schema::Type;

use super::{
    Confidence, DialectInfo, Document, Format, FormatInfo, Head, OptionInfo, ReadOptions, WriteOptions,
};
use crate::error::{Context, Result};
use crate::hub::Form;
use crate::source::Source;
use crate::wire::bson::{self, BsonKind, Reader};

const ID: &str = "bsondf";

/// The dialect that is text.
const JSON: &str = "json";

/// MongoDB takes documents up to this size.
const MONGODB_BYTES: u64 = 16 << 20;

/// How many columns detection looks at.
const DETECT_COLUMNS: usize = 8;

/// The BSON DataFrame format.
///
/// ```
/// use pentaglot::Source;
/// use pentaglot::formats::{Format, ReadOptions, bsondf::Bsondf};
/// let empty = Source::from_bytes("empty.bson", b"\x05\0\0\0\0".to_vec());
/// assert_eq!(Bsondf.open(empty, &ReadOptions::default())?.summary().rows, Some(0));
/// # Ok::<(), pentaglot::Error>(())
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct Bsondf;

static INFO: FormatInfo = FormatInfo {
    id: ID,
    title: "BSON DataFrame",
    dialects: &[
        DialectInfo {
            name: "bson",
            title: "BSON documents",
            read: true,
            write: true,
            takes_any_bytes: false,
        },
        DialectInfo {
            name: JSON,
            title: "Extended JSON of the same documents, canonical or relaxed",
            read: true,
            write: true,
            takes_any_bytes: false,
        },
    ],
    extensions: &["bson", "bsondf", "bson.json"],
    media_types: &["application/bson"],
    forms: &[Form::Table, Form::Columns, Form::Coo, Form::Array, Form::Value],
    options: &[
        OptionInfo {
            key: "level",
            side: super::Side::Write,
            values: "0..12",
            default: "0",
            help: "how hard to compress: 0 as the original programs do, 1 to 12 with LZ4 HC",
        },
        OptionInfo {
            key: "empty",
            side: super::Side::Write,
            values: "5|4",
            default: "5",
            help: "bytes of an empty buffer: 5 as Python writes, 4 as C++ writes and Python cannot read",
        },
        OptionInfo {
            key: "utf8",
            side: super::Side::Read,
            values: "text|bytes",
            default: "text",
            help: "bytes: text that is not UTF-8 is read as bytes, not refused",
        },
        OptionInfo {
            key: "nulls",
            side: super::Side::Write,
            values: "zero|repeat",
            default: "zero",
            help: "placeholder of missing values: zero, or the value before, which packs better in dates and times",
        },
        OptionInfo {
            key: "fields",
            side: super::Side::Read,
            values: "keep|strict",
            default: "keep",
            help: "fields that are not columns: kept as metadata, or refused",
        },
        OptionInfo {
            key: "max-bytes",
            side: super::Side::Write,
            values: "N[K|M|G]",
            default: "one document",
            help: "write chunks: documents of at most so many bytes (15M suits MongoDB), which are read as one table",
        },
        OptionInfo {
            key: "target-bytes",
            side: super::Side::Write,
            values: "N[K|M|G]",
            default: "max-bytes",
            help: "chunks are at most so long, unless a single row is longer",
        },
        OptionInfo {
            key: "key",
            side: super::Side::Write,
            values: "TEXT",
            default: "none",
            help: "what chunks have as k: the name of the table that they are parts of",
        },
        OptionInfo {
            key: "order",
            side: super::Side::Write,
            values: "COLUMN",
            default: "none",
            help: "the column whose least and greatest value each chunk has as min and max",
        },
        OptionInfo {
            key: "json",
            side: super::Side::Write,
            values: "canonical|relaxed",
            default: "canonical",
            help: "how bsondf:json writes numbers and dates: with their types, or as plain JSON",
        },
    ],
    type_language: TypeLanguage::None,
    has_members: true,
    has_whole_columns: true,
    index: None,
    gzip_by_magic: true,
    spec: "https://github.com/fairtide/DataFrame (docs/source/bson_format.rst)",
};

impl Format for Bsondf {
    fn info(&self) -> &'static FormatInfo {
        &INFO
    }

    /// Documents as long as the file, of which the first holds a column with the fields `d` and `t`; or such text.
    fn detect(&self, head: &Head<'_>) -> Confidence {
        let text = json_read::detect(head.bytes());
        if text != Confidence::No {
            return text;
        }
        let Some(length) = head.bytes().first_chunk().map(|bytes| i32::from_le_bytes(*bytes)) else {
            return Confidence::No;
        };
        if head.bytes() == [5, 0, 0, 0, 0] {
            return Confidence::Likely;
        }
        let is_whole = head.len().is_none_or(|total| match u64::try_from(length) {
            // Another document may follow.
            Ok(length) if length < total => {
                let next = head.read_at(length, 5);
                let bytes = next.first_chunk().map(|bytes| i64::from(i32::from_le_bytes(*bytes)));
                bytes.is_some_and(|bytes| {
                    bytes >= 5 && u64::try_from(bytes).is_ok_and(|next| next <= total - length)
                })
            }
            length => length == Ok(total),
        });
        match detect_columns(head.bytes(), length) {
            Confidence::Certain if !is_whole => Confidence::Likely,
            Confidence::Likely if !is_whole => Confidence::Possible,
            confidence => confidence,
        }
    }

    fn open(&self, source: Source, options: &ReadOptions) -> Result<Arc<dyn Document>> {
        Ok(Arc::new(read::BsondfDocument::open(&source, options).in_format(ID)?))
    }

    fn plan(&self, schema: &SchemaRef, options: &WriteOptions) -> Result<Box<dyn WritePlan>> {
        write::plan(schema, options)
    }
}

/// How much the first columns of a document look like ours, as far as its first bytes show them: certainly, if there
/// is one with `d` and `t`; likely, if all that is seen of the first are fields of ours.
fn detect_columns(head: &[u8], length: i32) -> Confidence {
    let Ok(bytes @ 5..) = u64::try_from(length) else { return Confidence::No };
    let beginning = Source::from_bytes("", head.to_vec());
    let mut reader = Reader::new(&beginning);
    let mut elements = reader.elements(bson::Document { offset: 0, bytes });
    let mut confidence = Confidence::No;
    for _ in 0..DETECT_COLUMNS {
        let Ok(Some(field)) = reader.next(&mut elements) else { break };
        if field.kind != BsonKind::DOCUMENT {
            // Fields that are not columns: `_id`, a symbol.
            continue;
        }
        match detect_column(&mut reader, &field) {
            Confidence::No => {}
            Confidence::Certain => confidence = Confidence::Certain,
            // Here ends what can be seen.
            seen => return confidence.max(seen),
        }
        // A frame under a field.
        let mut inner = reader.elements(field.document());
        while confidence == Confidence::No
            && let Ok(Some(column)) = reader.next(&mut inner)
        {
            if column.kind != BsonKind::DOCUMENT {
                break;
            }
            match detect_column(&mut reader, &column) {
                Confidence::No => break,
                seen => confidence = seen,
            }
        }
    }
    confidence
}

/// How much a field looks like a column.
fn detect_column(reader: &mut Reader, column: &bson::Element) -> Confidence {
    let mut fields = reader.elements(column.document());
    let (mut has_data, mut has_type) = (false, false);
    loop {
        match reader.next(&mut fields) {
            Ok(Some(field)) => {
                has_data |= field.key == "d";
                has_type |= field.key == "t" && field.kind == BsonKind::STRING;
            }
            Ok(None) if has_data && has_type => return Confidence::Certain,
            Ok(None) => return Confidence::No,
            // Here ends what can be seen.
            Err(_) if has_data => return Confidence::Likely,
            Err(_) => return Confidence::No,
        }
    }
}
