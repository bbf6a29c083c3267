//! The kinds of structures, and what the hub needs to know to write one again byte for byte.

use std::fmt;

use serde_json::{Value, json};

use super::layout::Object;
use crate::error::{Error, Result};

/// What a file holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Kind {
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
}

impl Kind {
    /// All kinds, in the order in which they are tried.
    pub const ALL: [Kind; 18] = [
        Kind::Gbz,
        Kind::Gbwt,
        Kind::Gg,
        Kind::GbwtMeta,
        Kind::RunLengthWavelet,
        Kind::Wavelet,
        Kind::WaveletCore,
        Kind::RunLength,
        Kind::Sparse,
        Kind::Bit,
        Kind::Int,
        Kind::Raw,
        Kind::Option,
        Kind::Pairs,
        Kind::String,
        Kind::Bytes,
        Kind::Vec,
        Kind::Chains,
    ];

    /// The word after `sds:`.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Gbz => "gbz",
            Kind::Gbwt => "gbwt",
            Kind::Gg => "gg",
            Kind::GbwtMeta => "gbwt-meta",
            Kind::RunLengthWavelet => "rlwm",
            Kind::Wavelet => "wm",
            Kind::WaveletCore => "wmcore",
            Kind::RunLength => "rl",
            Kind::Sparse => "sparse",
            Kind::Bit => "bit",
            Kind::Int => "int",
            Kind::Raw => "raw",
            Kind::Option => "option",
            Kind::Pairs => "pairs",
            Kind::String => "string",
            Kind::Bytes => "bytes",
            Kind::Vec => "vec",
            Kind::Chains => "chains",
        }
    }

    /// The kind with this name.
    pub fn parse(name: &str) -> Result<Self> {
        let kind = Kind::ALL.into_iter().find(|kind| kind.name() == name);
        kind.ok_or_else(|| Error::usage(format!("sds has no kind {name:?}")))
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What the values of a structure do not say: enough to write the same bytes again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Native {
    pub(super) kind: Kind,
    /// Length of the bits (sparse, rl).
    pub(super) universe: Option<u64>,
    /// Bits per item (int), of the low parts (sparse).
    pub(super) width: Option<u32>,
    /// Whether positions repeat.
    pub(super) multiset: bool,
    /// Which optional parts are there: `rank`, `select`, `select0`; `None` where no structure has any.
    pub(super) supports: Option<[bool; 3]>,
    /// Whether an option is present.
    pub(super) present: bool,
}

impl Native {
    pub(super) fn new(kind: Kind) -> Self {
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
            kind: Kind::parse(value.get("kind")?.as_str()?).ok()?,
            universe: value.get("universe").and_then(Value::as_u64),
            width: value.get("width").and_then(Value::as_u64).and_then(|width| u32::try_from(width).ok()),
            multiset: value.get("multiset").and_then(Value::as_bool).unwrap_or(false),
            supports,
            present: value.get("present").and_then(Value::as_bool).unwrap_or(true),
        })
    }
}
