//! Mantik DS: typed tables, images and tensors, as a MessagePack stream or a JSON bundle.
//!
//! ```text
//! MessagePack   81 a6 "format" <type>   92 01 a1 78   92 02 a1 79 …        a header, then rows: arrays of cells
//! JSON          {"type": <type>, "value": [[1, "x"], [2, "y"], …]}
//! type          {"type": "tabular", "columns": {"n": "int32", "s": "string"}}   (JSON, YAML or MessagePack)
//! ```
//!
//! At the root a table is rows; every other type is one element. The number of rows is not stored, unless the type has
//! `rowCount`. There are two integer profiles: the fewest bytes, as Scala and Python write, and the full width of the
//! type, as Go writes; every valid width is read.
//!
//! | | read | written |
//! |---|---|---|
//! | the eleven fundamental types, table (embedded too), image, tensor | yes | yes |
//! | `nullable`, `array`, `struct` (later additions) | yes | yes |
//! | `rowCount` | enforced | kept and enforced |
//! | MessagePack with header | any integer width | `msgpack` (fewest bytes), `msgpack-fixed` |
//! | without a header, or a plain JSON value | with a given type | `rows`, `rows-json` |
//! | JSON bundle | keys in either order | `json` |
//! | PNG images | as files, or decoded (palettes, alpha dropped, 1 to 16 bits) | as files, or encoded |
//! | JPEG images | as files, or decoded | as files |
//! | random access | by constant stride or side index ([`build_index`]) | |

mod cells;
mod columns;
mod decode;
mod images;
mod index;
mod layout;
mod outline;
mod read;
mod rows;
mod schema;
#[cfg(test)]
mod tests;
mod tree;
mod types;
mod validate;
mod value;
mod write;

use arrow_schema::SchemaRef;
use std::sync::Arc;

pub(crate) use images::{image_from_file, image_to_file, image_type_of_file};
pub use index::{INDEX_SUFFIX, build_index};
pub use types::{Channel, Fundamental, Image, ImageFormat, Tabular, Tensor, Type};
pub use value::{Value, Wire, read_bundle, read_value, write_bundle, write_value};

use crate::error::{Context, Result};
use crate::formats::{
    Confidence, DialectInfo, Document, Format, FormatInfo, Head, OptionInfo, ReadOptions, TypeLanguage,
    WriteOptions, WritePlan,
};
use crate::hub::Form;
use crate::source::Source;

const ID: &str = "ds";

/// The dialect of elements without a header.
const ROWS: &str = "rows";
/// The dialect of a JSON value alone.
const ROWS_JSON: &str = "rows-json";

/// The media type of each dialect, as Mantik's services use them, and other spellings that they accept. The Scala and
/// Go programs write the type of a JSON bundle without a slash.
static MEDIA_TYPES: &[(&str, &str)] = &[
    ("msgpack", "application/x-mantik-bundle"),
    ("msgpack-fixed", "application/x-mantik-bundle"),
    ("json", "application/x-mantik-bundle-json"),
    ("json", "application-x-mantik-bundle-json"),
    (ROWS, "application/x-msgpack"),
    (ROWS_JSON, "application/json"),
];

/// Key of the native type of rows whose images a reader has decoded.
const DECODED_KEY: &str = "decoded";

static INFO: FormatInfo = FormatInfo {
    id: ID,
    title: "Mantik DS",
    dialects: &[
        DialectInfo {
            name: "msgpack",
            title: "MessagePack, integers in the fewest bytes (Scala, Python)",
            read: true,
            write: true,
            takes_any_bytes: false,
        },
        DialectInfo {
            name: "msgpack-fixed",
            title: "MessagePack, integers in the full width of their type (Go)",
            read: true,
            write: true,
            takes_any_bytes: false,
        },
        DialectInfo {
            name: "json",
            title: "JSON bundle {\"type\", \"value\"}",
            read: true,
            write: true,
            takes_any_bytes: false,
        },
        DialectInfo {
            name: ROWS,
            title: "MessagePack rows without a header; their type is given",
            read: true,
            write: true,
            takes_any_bytes: false,
        },
        DialectInfo {
            name: ROWS_JSON,
            title: "a JSON value without its type, which is given",
            read: true,
            write: true,
            takes_any_bytes: false,
        },
    ],
    extensions: &["ds", "ds.json", "mantik"],
    media_types: &[
        "application/x-mantik-bundle",
        "application/x-mantik-bundle-json",
        "application-x-mantik-bundle-json",
        "application/x-msgpack",
    ],
    forms: &[Form::Table, Form::Value, Form::Array],
    options: &[
        OptionInfo {
            key: "nan",
            side: super::Side::Both,
            values: "null",
            default: "refused",
            help: "JSON: write NaN and infinities as null, read null as NaN",
        },
        OptionInfo {
            key: "images",
            side: super::Side::Both,
            values: "decode|encode",
            default: "as they are",
            help: "decode: PNG and JPEG images become plain, and plain ones that come from elsewhere PNG; encode: only the latter",
        },
        OptionInfo {
            key: "lenient",
            side: super::Side::Read,
            values: "true|false",
            default: "false",
            help: "read integers in float columns, as Python sends them, and base64 without padding",
        },
    ],
    type_language: TypeLanguage::Own,
    has_members: false,
    has_whole_columns: false,
    index: Some(index::build_index),
    gzip_by_magic: true,
    spec: "https://github.com/mantik-ai/core",
};

/// The Mantik DS format.
#[derive(Debug, Clone, Copy, Default)]
pub struct Ds;

impl Format for Ds {
    fn info(&self) -> &'static FormatInfo {
        &INFO
    }

    fn dialect_media_types(&self) -> &'static [(&'static str, &'static str)] {
        MEDIA_TYPES
    }

    fn detect(&self, head: &Head<'_>) -> Confidence {
        layout::detect(head)
    }

    fn open(&self, source: Source, options: &ReadOptions) -> Result<Arc<dyn Document>> {
        read::open(source, options).in_format(ID)
    }

    fn plan(&self, schema: &SchemaRef, options: &WriteOptions) -> Result<Box<dyn WritePlan>> {
        write::plan(schema, options)
    }
}
