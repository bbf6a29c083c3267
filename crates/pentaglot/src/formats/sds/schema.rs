//! The kinds of structures, their Arrow schemas, and the native type, with which the same bytes can be written
//! again.

use std::fmt;

use arrow_schema::{DataType, Field, Fields, Schema};
use serde_json::{Value, json};

use super::layout::Object;
use super::type_text::SdsType;
use crate::error::{Error, Result};
use crate::hub::{extension, shape};

/// The kind of structure in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SdsKind {
    /// A GBZ pangenome graph.
    Gbz,
    /// A GBWT index.
    Gbwt,
    /// A GBWTGraph.
    Gg,
    /// The metadata of a GBWT.
    GbwtMeta,
    /// A run-length wavelet matrix.
    RunLengthWavelet,
    /// A wavelet matrix.
    Wavelet,
    /// The core of a wavelet matrix.
    WaveletCore,
    /// A run-length bit vector.
    RunLength,
    /// A sparse bit vector.
    Sparse,
    /// A bit vector.
    Bit,
    /// An integer vector.
    Int,
    /// A raw bit vector.
    Raw,
    /// An optional vector of elements.
    Option,
    /// A vector of pairs of elements.
    Pairs,
    /// A string.
    String,
    /// A vector of bytes.
    Bytes,
    /// A vector of elements.
    Vec,
    /// Integer vectors, one after the other, behind their number.
    Chains,
    /// A single element; only a given type names it.
    Element,
    /// A vector of items of several elements; only a given type names it.
    Items,
    /// Structures one after the other, of a given type.
    Composite,
}

impl SdsKind {
    /// All kinds that can be detected, in the order in which they are tried.
    pub const ALL: [SdsKind; 18] = [
        SdsKind::Gbz,
        SdsKind::Gbwt,
        SdsKind::Gg,
        SdsKind::GbwtMeta,
        SdsKind::RunLengthWavelet,
        SdsKind::Wavelet,
        SdsKind::WaveletCore,
        SdsKind::RunLength,
        SdsKind::Sparse,
        SdsKind::Bit,
        SdsKind::Int,
        SdsKind::Raw,
        SdsKind::Option,
        SdsKind::Pairs,
        SdsKind::String,
        SdsKind::Bytes,
        SdsKind::Vec,
        SdsKind::Chains,
    ];

    /// The name after `sds:`.
    pub fn name(self) -> &'static str {
        match self {
            SdsKind::Gbz => "gbz",
            SdsKind::Gbwt => "gbwt",
            SdsKind::Gg => "gg",
            SdsKind::GbwtMeta => "gbwt-meta",
            SdsKind::RunLengthWavelet => "rlwm",
            SdsKind::Wavelet => "wm",
            SdsKind::WaveletCore => "wmcore",
            SdsKind::RunLength => "rl",
            SdsKind::Sparse => "sparse",
            SdsKind::Bit => "bit",
            SdsKind::Int => "int",
            SdsKind::Raw => "raw",
            SdsKind::Option => "option",
            SdsKind::Pairs => "pairs",
            SdsKind::String => "string",
            SdsKind::Bytes => "bytes",
            SdsKind::Vec => "vec",
            SdsKind::Chains => "chains",
            SdsKind::Element => "u64",
            SdsKind::Items => "items",
            SdsKind::Composite => "composite",
        }
    }

    /// The kind with this name, among those of [`ALL`](Self::ALL).
    pub fn parse(name: &str) -> Result<Self> {
        let kind = SdsKind::ALL.into_iter().find(|kind| kind.name() == name);
        kind.ok_or_else(|| Error::usage(format!("sds has no kind {name:?}")))
    }

    fn named(name: &str) -> Option<Self> {
        SdsKind::ALL.into_iter().chain([SdsKind::Element, SdsKind::Items]).find(|kind| kind.name() == name)
    }
}

impl fmt::Display for SdsKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Properties of a structure that are not part of its values, but needed to write the same bytes again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Native {
    pub(super) kind: SdsKind,
    /// Length of the bits (sparse, rl).
    pub(super) universe: Option<u64>,
    /// Bits per item (int), of the low parts (sparse).
    pub(super) width: Option<u32>,
    /// Whether positions repeat.
    pub(super) multiset: bool,
    /// Which optional parts are present: `rank`, `select`, `select0`; `None` for structures without such
    /// parts.
    pub(super) supports: Option<[bool; 3]>,
    /// Whether an option is present.
    pub(super) present: bool,
}

impl Native {
    pub(super) fn new(kind: SdsKind) -> Self {
        Native { kind, universe: None, width: None, multiset: false, supports: None, present: true }
    }

    pub(super) fn of(object: &Object) -> Self {
        let mut native = Native::new(object.kind());
        object.describe(&mut native);
        native
    }

    pub(super) fn to_json(&self) -> Value {
        let supports = self.supports.map(|supports| {
            let words = ["rank", "select", "select0"].iter().zip(supports);
            words.filter(|(_, there)| *there).map(|(word, _)| *word).collect::<Vec<_>>()
        });
        json!({
            "kind": self.kind.name(), "universe": self.universe, "width": self.width, "multiset": self.multiset,
            "supports": supports, "present": self.present,
        })
    }

    pub(super) fn from_json(value: &Value) -> Option<Self> {
        let supports = value.get("supports").and_then(Value::as_array).map(|words| {
            ["rank", "select", "select0"].map(|word| words.iter().any(|given| given.as_str() == Some(word)))
        });
        Some(Native {
            kind: SdsKind::named(value.get("kind")?.as_str()?)?,
            universe: value.get("universe").and_then(Value::as_u64),
            width: value.get("width").and_then(Value::as_u64).and_then(|width| u32::try_from(width).ok()),
            multiset: value.get("multiset").and_then(Value::as_bool).unwrap_or(false),
            supports,
            present: value.get("present").and_then(Value::as_bool).unwrap_or(true),
        })
    }
}

fn number(name: &str) -> Field {
    Field::new(name, DataType::UInt64, false)
}

pub(super) fn pair_fields() -> Fields {
    Fields::from(vec![number("_0"), number("_1")])
}

/// The schema of the rows of a structure of this kind; for a vector, with items of `item_elements` elements.
pub(super) fn kind_schema(kind: SdsKind, item_elements: u64) -> Result<Schema> {
    Ok(match kind {
        SdsKind::RunLength => Schema::new(vec![number("start"), number("length")]),
        SdsKind::Bit | SdsKind::Raw => shape::array_schema(Field::new("item", DataType::Boolean, false)),
        SdsKind::String => shape::value_schema(Field::new("value", DataType::Utf8, false)),
        SdsKind::Bytes => shape::value_schema(Field::new("value", DataType::Binary, false)),
        SdsKind::Element => shape::value_schema(number("value")),
        SdsKind::Pairs => {
            let tuple = Field::new("item", DataType::Struct(pair_fields()), false);
            shape::array_schema(extension::with(tuple, extension::TUPLE, None))
        }
        // Items of several elements are the rows of a matrix.
        SdsKind::Items => shape::dense_schema(DataType::UInt64, None, item_elements)?,
        _ => shape::array_schema(number("item")),
    })
}

impl SdsType {
    /// The kind of a single structure of this type, and for a vector the number of elements per item.
    pub(super) fn structure(&self) -> Option<(SdsKind, u64)> {
        match self {
            SdsType::Struct(_) | SdsType::Option(_) => None,
            SdsType::Items(1) => Some((SdsKind::Vec, 1)),
            SdsType::Items(2) => Some((SdsKind::Pairs, 2)),
            SdsType::Items(elements) => Some((SdsKind::Items, *elements)),
            SdsType::Element => Some((SdsKind::Element, 1)),
            SdsType::Structure(kind) => Some((*kind, 1)),
        }
    }

    /// The Arrow schema of data of this type; several structures have one each.
    pub fn to_schema(&self) -> Result<Schema> {
        match self {
            SdsType::Option(kind) => kind.to_schema(),
            _ => {
                let several = || Error::unsupported("one Arrow type for several structures");
                let (kind, elements) = self.structure().ok_or_else(several)?;
                kind_schema(kind, elements)
            }
        }
    }
}

impl Object {
    /// The schema of its rows, with its native type.
    pub(super) fn schema(&self) -> Result<Schema> {
        let elements = if let Object::Items(elements, _) = self { *elements } else { 1 };
        let schema = kind_schema(self.kind(), elements)?;
        Ok(crate::hub::native::with(schema, super::ID, Native::of(self).to_json()))
    }
}
