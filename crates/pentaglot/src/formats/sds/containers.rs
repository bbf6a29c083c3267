//! Files of several structures: those of a given type, and those of pangenome programs.

use std::sync::Arc;

use pentaglot_succinct::{IntVector, SharedWords, SparseVector, WordCursor};

use super::layout::Object;
use super::type_text::{SdsKind, SdsType, join};
use crate::error::{Error, Result};
use crate::formats::MissingPart;

/// A container, walked to its last element.
pub struct Container {
    kind: SdsKind,
    parts: Vec<ContainerPart>,
    facts: Vec<(String, String)>,
}

/// A named part of a container.
pub(super) struct ContainerPart {
    pub(super) path: String,
    /// The first element.
    pub(super) start: u64,
    /// How many elements.
    pub(super) len: u64,
    pub(super) content: Content,
}

/// The content of a part.
#[derive(Clone)]
pub(super) enum Content {
    /// A field of a header, with its value.
    Field(u64),
    /// A structure.
    Object(Arc<Object>),
    /// A structure of this type, in an option that is absent.
    Absent(SdsType),
    /// Pairs of 32-bit numbers: sample, contig, phase, fragment.
    Paths(SharedWords),
    /// Strings over three parts that precede it: starts, alphabet, packed characters.
    Strings(Arc<StringArray>),
    /// Strings that are keys and values in turn.
    Tags(Arc<StringArray>),
    /// A table over several parts.
    Table(Table),
}

/// A table of a pangenome file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Table {
    Samples,
    Contigs,
    Paths,
    /// `has_sequences`: a GBZ graph has them.
    Nodes {
        has_sequences: bool,
    },
    Edges,
    Gfa,
}

impl Table {
    /// The tables of a container with these parts.
    pub(super) fn of(kind: SdsKind, parts: &[ContainerPart]) -> Vec<Self> {
        let has_names = parts.iter().any(|part| part.path.ends_with("path_names"));
        let mut tables = Vec::new();
        if has_names {
            tables.extend([Table::Samples, Table::Contigs, Table::Paths]);
        }
        match kind {
            SdsKind::Gbz => tables.extend([Table::Nodes { has_sequences: true }, Table::Edges, Table::Gfa]),
            SdsKind::Gbwt => tables.extend([Table::Nodes { has_sequences: false }, Table::Edges]),
            _ => {}
        }
        tables
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            // The header of the metadata has numbers of these names.
            Table::Samples => "samples",
            Table::Contigs => "contigs",
            Table::Paths => "paths",
            Table::Nodes { .. } => "nodes",
            Table::Edges => "edges",
            Table::Gfa => "gfa",
        }
    }
}

/// Strings: their starts, the alphabet of bytes, and the text in the fewest bits for that alphabet.
pub(super) struct StringArray {
    pub(super) starts: Arc<Object>,
    pub(super) alphabet: Vec<u8>,
    pub(super) packed: Arc<Object>,
}

impl StringArray {
    fn parts(&self) -> Option<(&SparseVector<SharedWords>, &IntVector<SharedWords>)> {
        match (self.starts.as_ref(), self.packed.as_ref()) {
            (Object::Sparse(starts), Object::Int(packed)) => Some((starts, packed)),
            _ => None,
        }
    }

    pub(super) fn len(&self) -> u64 {
        self.parts().map_or(0, |(starts, _)| starts.low().len())
    }

    /// String `index`: `None` past the end, or if the array is inconsistent.
    pub(super) fn get(&self, index: u64) -> Option<Vec<u8>> {
        let (starts, packed) = self.parts()?;
        let mut starts = starts.iter_from(index);
        let start = starts.next()?;
        let end = if index + 1 < self.len() { starts.next()? } else { packed.len() };
        let byte = |code: u64| self.alphabet.get(usize::try_from(code).ok()?).copied();
        (start..end).map(|at| byte(packed.get(at)?)).collect()
    }
}

/// The tag that a container begins with.
pub(super) fn tag(kind: SdsKind) -> Option<u32> {
    match kind {
        SdsKind::Gbz => Some(0x205A_4247),
        SdsKind::Gbwt => Some(0x6B37_6B37),
        SdsKind::Gg => Some(0x6B37_64AF),
        SdsKind::GbwtMeta => Some(0x6B37_5E7A),
        _ => None,
    }
}

impl Container {
    pub(super) fn new(kind: SdsKind, parts: Vec<ContainerPart>, facts: Vec<(String, String)>) -> Self {
        Container { kind, parts, facts }
    }

    pub(super) fn kind(&self) -> SdsKind {
        self.kind
    }

    pub(super) fn parts(&self) -> &[ContainerPart] {
        &self.parts
    }

    /// Numbers of the headers, for `inspect`.
    pub(super) fn facts(&self) -> &[(String, String)] {
        &self.facts
    }

    /// The parts that can be read by name, tables first.
    pub(super) fn members(&self) -> impl Iterator<Item = (&str, &Content)> {
        let is_table = |part: &&ContainerPart| matches!(part.content, Content::Table(_));
        let readable = |part: &&ContainerPart| !matches!(part.content, Content::Field(_) | Content::Table(_));
        let all = self.parts.iter().filter(is_table).chain(self.parts.iter().filter(readable));
        all.map(|part| (part.path.as_str(), &part.content))
    }

    /// The member of this name; without a name, the only one of a type that is not a struct.
    pub(super) fn member(&self, name: Option<&str>) -> Option<&Content> {
        let wanted = name.unwrap_or_default();
        self.members().find(|(path, _)| *path == wanted).map(|(_, content)| content)
    }

    /// Reads all elements as structures of a type, one after the other.
    pub(super) fn read_typed(kind: &SdsType, words: &SharedWords) -> Result<Self> {
        let mut cursor = WordCursor::new(words.clone());
        let mut parts = Vec::new();
        walk_type(kind, String::new(), &mut cursor, &mut parts)?;
        if cursor.left() > 0 {
            let found = format!("{} more elements", cursor.left());
            let error = Error::malformed("the end of the last structure", found);
            return Err(error.at(cursor.position() * 8).rule("trailing"));
        }
        let facts = vec![("type".to_owned(), kind.to_string())];
        Ok(Container { kind: SdsKind::Composite, parts, facts })
    }
}

impl Container {
    /// As [`read_typed`](Self::read_typed): the structures before the first fault, and what is missing.
    pub(super) fn read_damaged(kind: &SdsType, words: &SharedWords) -> Result<(Self, Vec<MissingPart>)> {
        let mut cursor = WordCursor::new(words.clone());
        let mut parts = Vec::new();
        let fault = match walk_type(kind, String::new(), &mut cursor, &mut parts) {
            Ok(()) if cursor.left() == 0 => return Ok((Container::read_typed(kind, words)?, Vec::new())),
            Ok(()) => Container::read_typed(kind, words).err(),
            Err(error) => Some(error),
        };
        let is_structure = |part: &ContainerPart| !matches!(part.content, Content::Field(_));
        if let (Some(fault), false) = (&fault, parts.iter().any(is_structure)) {
            return Err(Error::malformed("a structure before the fault", fault));
        }
        let end = parts.last().map_or(0, |part| (part.start + part.len) * 8);
        let bytes = end..words.as_ref().len() as u64 * 8;
        let reason = fault.map(|fault| fault.to_string()).unwrap_or_default();
        let is_there = |name: &str| parts.iter().any(|part| part.path == name && is_structure(part));
        let lost = kind.leaves().into_iter().filter(|(name, _)| !is_there(name));
        let mut missing: Vec<MissingPart> = lost
            .map(|(name, _)| MissingPart { name, bytes: bytes.clone(), reason: reason.clone() })
            .collect();
        if missing.is_empty() {
            missing.push(MissingPart { name: String::new(), bytes, reason });
        }
        let facts = vec![("type".to_owned(), kind.to_string())];
        Ok((Container { kind: SdsKind::Composite, parts, facts }, missing))
    }
}

fn walk_type(
    kind: &SdsType,
    path: String,
    cursor: &mut WordCursor<SharedWords>,
    parts: &mut Vec<ContainerPart>,
) -> Result<()> {
    let start = cursor.position();
    match kind {
        SdsType::Struct(fields) => {
            fields.iter().try_for_each(|(name, kind)| walk_type(kind, join(&path, name), cursor, parts))
        }
        SdsType::Option(inner) => {
            let place = join(&path, "size");
            let size = cursor.element(&place)?;
            parts.push(ContainerPart { path: place.clone(), start, len: 1, content: Content::Field(size) });
            if size == 0 {
                let start = cursor.position();
                for (name, leaf) in inner.leaves() {
                    let path = if name.is_empty() { path.clone() } else { join(&path, &name) };
                    parts.push(ContainerPart { path, start, len: 0, content: Content::Absent(leaf.clone()) });
                }
                return Ok(());
            }
            let content = cursor.position();
            walk_type(inner, path, cursor, parts)?;
            match cursor.position() - content {
                read if read == size => Ok(()),
                read => Err(malformed(start, place, format!("{read} elements, as its content has"), size)),
            }
        }
        _ => {
            let read = Object::read_typed(kind, cursor);
            let object = match path.is_empty() {
                true => read?,
                false => read.map_err(|error| error.field(path.clone()))?,
            };
            let len = cursor.position() - start;
            parts.push(ContainerPart { path, start, len, content: Content::Object(Arc::new(object)) });
            Ok(())
        }
    }
}

/// The error for the element `at`.
pub(super) fn malformed(
    at: u64,
    path: impl Into<String>,
    expected: impl std::fmt::Display,
    found: impl std::fmt::Display,
) -> Error {
    Error::malformed(expected, found).at(at.saturating_mul(8)).field(path.into())
}
