//! simple-sds: succinct structures that open in place from a file.
//!
//! A file is an array of elements: unsigned 64-bit little-endian integers. The file does not contain its kind, which is
//! given (`sds:KIND`) or found by trying the kinds in the order of the table: the first that fits to the last byte is
//! used.
//!
//! ```text
//! bit    ones | len | words | word…            | size rank… | size select… | size select0…    (each size may be 0)
//! int    len | width | bits | words | word…
//! sparse universe | bit (high parts) | int (low parts)
//! rl     len | ones | int (samples) | int (units of 4 bits)
//! wm     len | width | bit for each level | int (first)
//! ```
//!
//! | kind | what | hub |
//! |---|---|---|
//! | `gbz`, `gbwt` | pangenome containers of such structures (also `gg`, `gbwt-meta`, `chains`) | members; `FILE::paths`, `FILE::nodes` and others are tables |
//! | `rlwm`, `wm`, `wmcore` | wavelet matrices | array of uint64 |
//! | `rl` | runs of set bits | table `start`, `length` |
//! | `sparse` | Elias-Fano | array of uint64: the positions |
//! | `bit`, `raw` | bits | array of bool |
//! | `int`, `vec` | integers | array of uint64 |
//! | `option` | an optional vector of elements | array of uint64 |
//! | `pairs` | pairs of elements | array of tuples |
//! | `string`, `bytes` | text, bytes | value |
//!
//! A file of several structures has a type ([`SdsType`]): each structure is a member, and one in an option may be absent.

mod build;
mod columns;
mod containers;
mod detect;
mod gbwt;
mod gfa;
mod graph;
mod index;
mod layout;
mod outline;
mod pangenome;
mod partial;
mod query;
mod read;
mod schema;
mod scratch;
mod skeleton;
mod tables;
#[cfg(test)]
mod tests;
mod type_text;
mod validate;
mod write;

use std::sync::Arc;

use arrow_schema::SchemaRef;

use super::{
    Confidence, DialectInfo, Document, Format, FormatInfo, Head, OptionInfo, ReadOptions, TypeLanguage,
    WriteOptions, WritePlan,
};
use crate::error::{Error, Result};
use crate::hub::Form;
use crate::source::Source;

pub use containers::Container;
pub use index::{Mapped, build_index};
pub use layout::Object;
pub use query::{Answer, Queried, Query, answer};
pub use type_text::{PREFIX, SdsKind, SdsType};
pub use write::is_gfa;

/// The format's id.
pub(crate) const ID: &str = "sds";

/// The format simple-sds.
#[derive(Debug, Clone, Copy)]
pub struct Sds;

macro_rules! dialect {
    ($name:literal, $title:literal, $write:literal) => {
        DialectInfo { name: $name, title: $title, read: true, write: $write, takes_any_bytes: false }
    };
}

static INFO: FormatInfo = FormatInfo {
    id: ID,
    title: "simple-sds succinct structures",
    dialects: &[
        dialect!("gbz", "GBZ pangenome graph", false),
        dialect!("gbwt", "GBWT index", false),
        dialect!("gg", "GBWTGraph", false),
        dialect!("gbwt-meta", "GBWT metadata", false),
        dialect!("rlwm", "run-length wavelet matrix", true),
        dialect!("wm", "wavelet matrix", true),
        dialect!("wmcore", "wavelet matrix core", true),
        dialect!("rl", "run-length bit vector", true),
        dialect!("sparse", "sparse bit vector (Elias-Fano)", true),
        dialect!("bit", "bit vector", true),
        dialect!("int", "integer vector", true),
        dialect!("raw", "raw bit vector", true),
        dialect!("option", "optional vector of elements", true),
        dialect!("pairs", "vector of pairs of elements", true),
        dialect!("string", "string", true),
        dialect!("bytes", "vector of bytes", true),
        dialect!("vec", "vector of elements", true),
        dialect!("chains", "integer vectors, one after the other", false),
        DialectInfo {
            name: "gfa",
            title: "GFA 1.1 text of a GBZ graph",
            read: false,
            write: true,
            takes_any_bytes: false,
        },
    ],
    extensions: &["sds", "gbz", "gbwt", "gg", "gfa"],
    media_types: &[],
    forms: &[Form::Array, Form::Value, Form::Table],
    options: &[
        OptionInfo {
            key: "supports",
            side: super::Side::Write,
            values: "full|lean",
            default: "full",
            help: "write rank and select supports as simple-sds does, or none as the C++ programs do",
        },
        OptionInfo {
            key: "universe",
            side: super::Side::Write,
            values: "N",
            default: "largest + 1",
            help: "length of the bits of sparse, rl, bit, raw",
        },
        OptionInfo {
            key: "width",
            side: super::Side::Write,
            values: "1..64",
            default: "smallest",
            help: "bits per item of int, of the low parts of sparse",
        },
        OptionInfo {
            key: "multiset",
            side: super::Side::Write,
            values: "true|false",
            default: "false",
            help: "positions of sparse may repeat",
        },
        OptionInfo {
            key: "names",
            side: super::Side::Read,
            values: "segments|nodes",
            default: "segments",
            help: "what GFA lines call the parts of a GBZ graph: names of segments, or ids of nodes",
        },
        OptionInfo {
            key: "absent",
            side: super::Side::Write,
            values: "NAME,…",
            default: "none",
            help: "options of the type that are left absent",
        },
    ],
    type_language: TypeLanguage::Own,
    has_members: true,
    has_whole_columns: false,
    index: Some(index::side_index),
    gzip_by_magic: false,
    spec: "https://github.com/jltsiren/simple-sds/blob/main/SERIALIZATION.md",
};

impl Format for Sds {
    fn info(&self) -> &'static FormatInfo {
        &INFO
    }

    fn detect(&self, head: &Head<'_>) -> Confidence {
        detect::detect(head)
    }

    fn open(&self, source: Source, options: &ReadOptions) -> Result<Arc<dyn Document>> {
        if is_gfa(options.dialect.as_deref(), Some(source.name())) && options.type_text.is_none() {
            return Err(Error::unsupported("GFA is written from GBZ graphs, but not read"));
        }
        if let Some(document) = partial::PartialDocument::open(&source, options)? {
            return Ok(Arc::new(document));
        }
        let opened = read::SdsDocument::open(source.clone(), options);
        if opened.is_err()
            && options.damaged
            && let Some(document) = partial::PartialDocument::of_damaged(&source, options)?
        {
            return Ok(Arc::new(document));
        }
        Ok(Arc::new(opened?))
    }

    fn plan(&self, schema: &SchemaRef, options: &WriteOptions) -> Result<Box<dyn WritePlan>> {
        write::plan(schema, options)
    }
}
