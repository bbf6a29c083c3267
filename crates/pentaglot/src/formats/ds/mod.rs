//! Mantik DS: typed tables, images and tensors, as a MessagePack stream or a JSON bundle.
//!
//! ```text
//! MessagePack   81 a6 "format" <type>   92 01 a1 78   92 02 a1 79 …        a header, then rows: arrays of cells
//! JSON          {"type": <type>, "value": [[1, "x"], [2, "y"], …]}
//! type          {"type": "tabular", "columns": {"n": "int32", "s": "string"}}   (JSON, YAML or MessagePack)
//! ```
//!
//! At the root a table is rows; every other type is one element. Nothing says how many rows there are, unless the type
//! has `rowCount`. There are two integer profiles: the fewest bytes, as Scala and Python write, and the full width of
//! the type, as Go writes; every legal width is read.
//!
//! | | read | written |
//! |---|---|---|
//! | the eleven fundamental types, table (embedded too), image, tensor | yes | yes |
//! | `nullable`, `array`, `struct` (later additions) | yes | yes |
//! | `rowCount` | enforced | kept and enforced |
//! | MessagePack with header | any integer width | `msgpack` (fewest bytes), `msgpack-fixed` |
//! | without a header, or a plain JSON value | with a given type | no |
//! | JSON bundle | keys in either order | `json` |
//! | PNG images | carried, or decoded | carried, or encoded |
//! | JPEG images | carried, signature checked | carried |
//! | rows at random | by constant stride or side index ([`build_index`]) | |

mod cells;
mod columns;
mod from_json;
mod from_msgpack;
mod images;
mod index;
mod layout;
mod outline;
mod read;
mod read_json;
mod room;
mod rows;
mod schema;
#[cfg(test)]
mod tests;
mod tree;
mod types;
mod validate;
mod write;

use arrow_schema::SchemaRef;
use std::sync::Arc;

pub use index::{INDEX_SUFFIX, build_index};
pub use types::{Channel, Fundamental, Image, ImageFormat, Tabular, Tensor, Type};

use self::columns::Reading;
use self::layout::{Layout, Wire};
use crate::error::{Context, Result};
use crate::formats::{
    Confidence, DialectInfo, Document, Format, FormatInfo, Head, OptionInfo, ReadOptions, TypeLanguage,
    WriteOptions, WritePlan, planned, relaxed,
};
use crate::hub::Form;
use crate::hub::relax::Rules;
use crate::source::Source;

const ID: &str = "ds";

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
    ],
    extensions: &["ds", "ds.json", "json", "mantik"],
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
            default: "",
            help: "JSON: write NaN and infinities as null, read null as NaN",
        },
        OptionInfo {
            key: "images",
            side: super::Side::Both,
            values: "decode|encode",
            default: "",
            help: "decode: PNG images become plain, and plain ones that come from elsewhere PNG; encode: only the latter",
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

    fn detect(&self, head: &Head<'_>) -> Confidence {
        layout::detect(head)
    }

    fn open(&self, source: Source, options: &ReadOptions) -> Result<Arc<dyn Document>> {
        open(source, options).in_format(ID)
    }

    fn plan(&self, schema: &SchemaRef, options: &WriteOptions) -> Result<Box<dyn WritePlan>> {
        let (steps, target) = write::plan(schema, options)?;
        let options = options.clone();
        Ok(planned(steps, move |sink| {
            let null_for_nan = target.as_ref().is_some_and(write::Target::is_json);
            let writer = Box::new(write::BundleWriter::new(sink, target, &options).in_format(ID)?);
            Ok(relaxed(writer, Rules { null_for_nan, ..Rules::default() }, &options))
        }))
    }
}

fn open(source: Source, options: &ReadOptions) -> Result<Arc<dyn Document>> {
    let reading = Reading {
        lenient: options.options.bool("lenient")?.unwrap_or(false),
        nan_null: options.options.word("nan", &["null"])?.is_some(),
        decode: options.options.word("images", &["decode", "encode"])? == Some("decode"),
        check_images: false,
        budget: options.budget.clone(),
        stand_ins: 0,
    };
    let layout = open_layout(source, options)?;
    Ok(Arc::new(read::Bundle::new(layout, reading, options.control.clone())?))
}

/// Finds the type and the body of a bundle.
fn open_layout(source: Source, options: &ReadOptions) -> Result<Layout> {
    let given = options.type_text.as_deref();
    let given =
        given.map(|text| Type::parse_within(text, options.budget.limits()).field("type")).transpose()?;
    let wire = match options.dialect.as_deref() {
        Some("json") => Wire::Json,
        Some(_) => Wire::MsgPack,
        None => layout::sniff(&source.head()?, source.name(), given.as_ref()),
    };
    layout::open(source, wire, given, &options.budget)
}
