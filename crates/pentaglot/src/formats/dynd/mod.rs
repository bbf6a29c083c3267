//! DyND serialization: any datashape-typed array, one unique byte string per value.
//!
//! ```text
//! dynd        varint(len) type text, then the data           "array[Any]": 09 "3 * int32" 0a000000 14000000 1e000000
//! dynd:raw    the data alone; --type says of what
//! dynd:cbor   one deterministic CBOR item                     d84e 4c 0a000000140000001e000000
//!
//! bool 00 01 · ints and floats little-endian, packed · complex[T] T T · bytes[N] as is · void nothing
//! bytes, string, type   varint(len) bytes            char          UTF-8
//! N * T                 T T … T                      var * T       varint(count) T T … T
//! (T, U), {a: T, b: U}  T U, no padding              pointer[T]    T
//! ?T                    T with a sentinel, or 00 | 01 T             array[T]      type T
//! merkle[T]             type, varint(len) multihash: a link to data of that type
//! ```
//!
//! | | |
//! |---|---|
//! | types | all of the profile in `docs/dynd-profile.md`: the spec's, the extension types, patterns, `storage[…]` |
//! | dialects | `array` (default), `raw`, `cbor`; all read and written |
//! | rows | read and written as streams; those of fixed size are read at any offset |
//! | uniqueness | enforced on reading and writing: one byte string per value, others are errors |

mod cbor;
mod decode;
mod encode;
mod json;
mod layout;
mod merkle;
mod outline;
mod pack;
mod parse;
mod pattern;
mod read;
mod schema;
mod tokens;
mod types;
mod unpack;
mod validate;
mod value;
mod walk;
mod write;

#[cfg(test)]
mod tests;

#[cfg(target_endian = "big")]
compile_error!("numbers are moved as bytes between files and Arrow: dynd needs a little-endian machine");

use arrow_schema::SchemaRef;
use std::sync::Arc;

pub use cbor::{read_cbor, write_cbor};
pub use json::{array_json, write_value_json};
pub use merkle::{BLAKE3_CODE, blake3_digest, blake3_multihash};
pub use types::{Base, Callable, Encoding, FloatWidth, Pattern, Type, TypeKind, Width, Zone};
pub use value::{Value, is_nan_bits, read_value, write_value};

use crate::cursor::Cursor;
use crate::error::{Context, Result};
use crate::formats::{
    Confidence, DialectInfo, Document, Format, FormatInfo, Head, OptionInfo, ReadOptions, TypeLanguage,
    WriteOptions, WritePlan,
};
use crate::hub::Form;
use crate::limits::Limits;
use crate::source::Source;

const ID: &str = "dynd";

/// The format.
#[derive(Debug, Clone, Copy, Default)]
pub struct Dynd;

static INFO: FormatInfo = FormatInfo {
    id: ID,
    title: "DyND serialization",
    dialects: &[
        DialectInfo {
            name: "array",
            title: "self-describing array[Any]",
            read: true,
            write: true,
            takes_any_bytes: false,
        },
        DialectInfo {
            name: "raw",
            title: "data without its type, which is given",
            read: true,
            write: true,
            takes_any_bytes: true,
        },
        DialectInfo {
            name: "cbor",
            title: "deterministic CBOR",
            read: true,
            write: true,
            takes_any_bytes: false,
        },
    ],
    extensions: &["dynd", "cbor"],
    media_types: &["application/vnd.dynd", "application/cbor"],
    forms: &[Form::Table, Form::Dense, Form::Array, Form::Value, Form::Columns, Form::Coo],
    options: &[
        OptionInfo {
            key: "options",
            side: super::Side::Write,
            values: "sentinel|flag",
            default: "sentinel",
            help: "how a missing value of a type with a sentinel is written: flag writes ?pointer[T], which has none",
        },
        OptionInfo {
            key: "times",
            side: super::Side::Read,
            values: "auto|timestamps|ticks",
            default: "auto",
            help: "how time and datetime are read: as nanoseconds, as numbers of 100 ns, or (auto) the latter where one \
                   of the first 10000 rows holds one that 64 bits of nanoseconds do not",
        },
    ],
    type_language: TypeLanguage::Own,
    has_members: false,
    has_whole_columns: false,
    index: None,
    gzip_by_magic: true,
    spec: "https://github.com/libdynd/libdynd/blob/master/devdocs/serialization-design.md",
};

impl Format for Dynd {
    fn info(&self) -> &'static FormatInfo {
        &INFO
    }

    fn dialect_media_types(&self) -> &'static [(&'static str, &'static str)] {
        &[("array", "application/vnd.dynd"), ("cbor", "application/cbor")]
    }

    fn detect(&self, head: &Head<'_>) -> Confidence {
        let bytes = head.bytes();
        if bytes.starts_with(&cbor::TAG_HEAD) {
            return Confidence::Certain;
        }
        let mut cursor = Cursor::new(bytes);
        let Ok(ty) = walk::read_type(&mut cursor, &Limits::default()) else {
            let named = head.has_extension(&["cbor"]);
            return match cbor::is_marked(bytes, head.len()) {
                true => Confidence::Likely,
                // Other CBOR has no signature.
                false if named && cbor::is_item_so_far(bytes, head.len()) => Confidence::Likely,
                false if named => Confidence::Possible,
                false => Confidence::No,
            };
        };
        if !ty.is_concrete() {
            return Confidence::No;
        }
        match (ty.fixed_size(), head.len()) {
            (Some(size), Some(len)) if cursor.offset().checked_add(size) == Some(len) => Confidence::Certain,
            (None, _) if ty.to_string().len() > 4 => Confidence::Certain,
            _ => Confidence::Likely,
        }
    }

    fn open(&self, source: Source, options: &ReadOptions) -> Result<Arc<dyn Document>> {
        Ok(Arc::new(read::DyndDocument::open(source, options).in_format(ID)?))
    }

    fn plan(&self, schema: &SchemaRef, options: &WriteOptions) -> Result<Box<dyn WritePlan>> {
        write::plan(schema, options)
    }
}
