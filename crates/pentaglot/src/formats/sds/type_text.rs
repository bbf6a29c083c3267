//! The kinds of structures, and the type of a file that is made of several, one after the other.
//!
//! ```text
//! type := '{' name ':' type, … '}' | '?' type | '[' item ']' | kind
//! item := u64 | pair | u64*N
//! kind := u64 bytes string raw int bit sparse rl wmcore wm rlwm
//! ```

use std::fmt;

use crate::error::{Error, Result};
use crate::limits::Limits;

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

    /// The kind with this name, also among those that only a type or a native type names.
    pub(super) fn named(name: &str) -> Option<Self> {
        SdsKind::ALL.into_iter().chain([SdsKind::Element, SdsKind::Items]).find(|kind| kind.name() == name)
    }
}

impl fmt::Display for SdsKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The type of a file, or of a part of one.
///
/// ```
/// use pentaglot::formats::sds::SdsType;
/// let kind = SdsType::parse("{n:u64, index: ?int, names: string, rest: [ pair ]}")?;
/// assert_eq!(kind.to_string(), "{n: u64, index: ?int, names: string, rest: [pair]}");
/// # Ok::<(), pentaglot::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum SdsType {
    /// Named parts, one after the other.
    Struct(Vec<(String, SdsType)>),
    /// A part that may be absent.
    Option(Box<SdsType>),
    /// A vector of items of this many elements each.
    Items(u64),
    /// A single element.
    Element,
    /// A structure of this kind.
    Structure(SdsKind),
}

/// The kinds that a type can name.
const KINDS: [SdsKind; 10] = [
    SdsKind::Bytes,
    SdsKind::String,
    SdsKind::Raw,
    SdsKind::Int,
    SdsKind::Bit,
    SdsKind::Sparse,
    SdsKind::RunLength,
    SdsKind::WaveletCore,
    SdsKind::Wavelet,
    SdsKind::RunLengthWavelet,
];

/// The prefix of type texts in this language.
pub const PREFIX: &str = "sds:";

impl SdsType {
    /// The type that a text without its prefix `sds:` describes, under the default limits.
    pub fn parse(text: &str) -> Result<Self> {
        SdsType::parse_within(text, &Limits::default())
    }

    /// The type that a text without its prefix `sds:` describes, under these limits.
    pub fn parse_within(text: &str, limits: &Limits) -> Result<Self> {
        let mut parser = Parser { text, at: 0, limits };
        let kind = parser.kind(0)?;
        match parser.peek() {
            None => Ok(kind),
            Some(_) => Err(parser.unexpected("the end of the type")),
        }
    }

    /// The single structures of the type with their paths, in the order of the file, and whether they are in an option.
    pub fn leaves(&self) -> Vec<(String, &SdsType)> {
        let mut leaves = Vec::new();
        self.collect(String::new(), &mut leaves);
        leaves
    }

    fn collect<'t>(&'t self, path: String, leaves: &mut Vec<(String, &'t SdsType)>) {
        match self {
            SdsType::Struct(fields) => {
                fields.iter().for_each(|(name, kind)| kind.collect(join(&path, name), leaves));
            }
            SdsType::Option(kind) => kind.collect(path, leaves),
            _ => leaves.push((path, self)),
        }
    }
}

/// The path of a part within another.
pub(super) fn join(parent: &str, name: &str) -> String {
    if parent.is_empty() { name.to_owned() } else { format!("{parent}.{name}") }
}

impl fmt::Display for SdsType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SdsType::Struct(fields) => {
                f.write_str("{")?;
                for (index, (name, kind)) in fields.iter().enumerate() {
                    write!(f, "{}{name}: {kind}", if index == 0 { "" } else { ", " })?;
                }
                f.write_str("}")
            }
            SdsType::Option(kind) => write!(f, "?{kind}"),
            SdsType::Items(1) => f.write_str("[u64]"),
            SdsType::Items(2) => f.write_str("[pair]"),
            SdsType::Items(elements) => write!(f, "[u64*{elements}]"),
            SdsType::Element => f.write_str("u64"),
            SdsType::Structure(kind) => kind.fmt(f),
        }
    }
}

struct Parser<'t> {
    text: &'t str,
    at: usize,
    limits: &'t Limits,
}

impl<'t> Parser<'t> {
    fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn peek(&mut self) -> Option<char> {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start().len();
        self.rest().chars().next()
    }

    fn unexpected(&mut self, expected: &str) -> Error {
        let found = match self.peek() {
            None => "the end of the type".to_owned(),
            Some(_) if !self.word().is_empty() => format!("{:?}", self.word()),
            Some(other) => format!("{other:?}"),
        };
        Error::malformed(expected, found).at(self.at as u64)
    }

    /// The letters, digits, `_` and `-` that come next.
    fn word(&self) -> &'t str {
        let rest = self.rest();
        let is_part = |letter: char| letter.is_alphanumeric() || letter == '_' || letter == '-';
        rest.split_at(rest.find(|letter| !is_part(letter)).unwrap_or(rest.len())).0
    }

    fn take(&mut self, wanted: char) -> bool {
        let found = self.peek() == Some(wanted);
        self.at += if found { wanted.len_utf8() } else { 0 };
        found
    }

    fn expect(&mut self, wanted: char) -> Result<()> {
        if self.take(wanted) { Ok(()) } else { Err(self.unexpected(&format!("{wanted:?}"))) }
    }

    fn kind(&mut self, depth: u32) -> Result<SdsType> {
        self.limits.check_depth(depth)?;
        if self.take('?') {
            if self.peek() == Some('?') {
                return Err(self.unexpected("a type that is not an option itself"));
            }
            return Ok(SdsType::Option(Box::new(self.kind(depth + 1)?)));
        }
        if self.take('{') {
            return self.fields(depth);
        }
        if self.take('[') {
            let items = self.item()?;
            self.expect(']')?;
            return Ok(SdsType::Items(items));
        }
        self.peek();
        let word = self.word();
        let kind = match word {
            "u64" => Some(SdsType::Element),
            _ => KINDS.into_iter().find(|kind| kind.name() == word).map(SdsType::Structure),
        };
        let Some(kind) = kind else {
            let names: Vec<_> = KINDS.iter().map(|kind| kind.name()).collect();
            return Err(self.unexpected(&format!("'{{', '?', '[' or one of u64, {}", names.join(", "))));
        };
        self.at += word.len();
        Ok(kind)
    }

    fn fields(&mut self, depth: u32) -> Result<SdsType> {
        let mut fields: Vec<(String, SdsType)> = Vec::new();
        loop {
            if !fields.is_empty() && self.take('}') {
                return Ok(SdsType::Struct(fields));
            }
            self.peek();
            let word = self.word();
            if word.is_empty() {
                return Err(self.unexpected("a name"));
            }
            if fields.iter().any(|(name, _)| name == word) {
                return Err(self.unexpected("a name that is not there yet"));
            }
            self.at += word.len();
            self.expect(':')?;
            fields.push((word.to_owned(), self.kind(depth + 1)?));
            if !self.take(',') {
                self.expect('}')?;
                return Ok(SdsType::Struct(fields));
            }
        }
    }

    /// The elements of an item.
    fn item(&mut self) -> Result<u64> {
        self.peek();
        let word = self.word();
        match word {
            "pair" => {
                self.at += word.len();
                Ok(2)
            }
            "u64" => {
                self.at += word.len();
                if !self.take('*') {
                    return Ok(1);
                }
                self.peek();
                let digits = self.word();
                let count =
                    digits.parse::<u64>().ok().filter(|count| *count > 0 && *count <= i32::MAX as u64);
                let count = count.ok_or_else(|| self.unexpected("a number of elements from 1 on"))?;
                self.at += digits.len();
                Ok(count)
            }
            _ => Err(self.unexpected("u64, pair or u64*N")),
        }
    }
}
