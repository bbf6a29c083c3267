//! GBZ, GBWT and their parts: files of pangenome programs that embed these structures.
//!
//! ```text
//! gbz  = tag version flags | tags | gbwt | graph
//! gbwt = tag version | sequences size offset alphabet flags | tags | bwt.index bwt.data | da_samples? | metadata?
//! ```

use std::sync::Arc;

use pentaglot_succinct::{IntVector, SharedWords, SparseVector, Structure, WordCursor};

use super::layout::byte_vector;
use super::types::Kind;
use crate::error::{Error, Result};

/// A container, walked to its last element.
pub struct Container {
    kind: Kind,
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

/// What a part is.
#[derive(Clone)]
pub(super) enum Content {
    /// A field of a header, with its value.
    Field(u64),
    Sparse(Arc<SparseVector<SharedWords>>),
    Int(Arc<IntVector<SharedWords>>),
    Bytes(u64, SharedWords),
    Elements(SharedWords),
    /// Pairs of 32-bit numbers: sample, contig, phase, fragment.
    Paths(SharedWords),
    /// Strings over three parts that precede it: starts, alphabet, packed characters.
    Strings(Arc<StringArray>),
}

/// Strings: where each starts, the bytes that occur, and the text in as few bits as they need.
pub(super) struct StringArray {
    starts: Arc<SparseVector<SharedWords>>,
    alphabet: Vec<u8>,
    packed: Arc<IntVector<SharedWords>>,
}

impl StringArray {
    pub(super) fn len(&self) -> u64 {
        self.starts.low().len()
    }

    /// String `index`: `None` past the end, or where the array contradicts itself.
    pub(super) fn get(&self, index: u64) -> Option<Vec<u8>> {
        let mut starts = self.starts.iter_from(index);
        let start = starts.next()?;
        let end = if index + 1 < self.len() { starts.next()? } else { self.packed.len() };
        let byte = |code: u64| self.alphabet.get(usize::try_from(code).ok()?).copied();
        (start..end).map(|at| byte(self.packed.get(at)?)).collect()
    }
}

/// The tag that a container begins with.
pub(super) fn tag(kind: Kind) -> Option<u32> {
    match kind {
        Kind::Gbz => Some(0x205A_4247),
        Kind::Gbwt => Some(0x6B37_6B37),
        Kind::Gg => Some(0x6B37_64AF),
        Kind::GbwtMeta => Some(0x6B37_5E7A),
        _ => None,
    }
}

impl Container {
    pub(super) fn kind(&self) -> Kind {
        self.kind
    }

    pub(super) fn parts(&self) -> &[ContainerPart] {
        &self.parts
    }

    /// Numbers of the headers, for `inspect`.
    pub(super) fn facts(&self) -> &[(String, String)] {
        &self.facts
    }

    /// The parts that can be read by name.
    pub(super) fn members(&self) -> impl Iterator<Item = (&str, &Content)> {
        let readable = |part: &&ContainerPart| !matches!(part.content, Content::Field(_));
        self.parts.iter().filter(readable).map(|part| (part.path.as_str(), &part.content))
    }

    pub(super) fn read(kind: Kind, cursor: &mut WordCursor<SharedWords>) -> Result<Self> {
        let mut walker = Walker { cursor, parts: Vec::new(), facts: Vec::new() };
        match kind {
            Kind::Gbz => walker.gbz()?,
            Kind::Gbwt => walker.gbwt("")?,
            Kind::Gg => walker.graph("")?,
            Kind::GbwtMeta => walker.metadata("")?,
            _ => walker.chains()?,
        }
        let Walker { parts, facts, .. } = walker;
        Ok(Container { kind, parts, facts })
    }
}

struct Walker<'c> {
    cursor: &'c mut WordCursor<SharedWords>,
    parts: Vec<ContainerPart>,
    facts: Vec<(String, String)>,
}

/// What is wrong with the element `at`.
fn malformed(
    at: u64,
    path: impl Into<String>,
    expected: impl std::fmt::Display,
    found: impl std::fmt::Display,
) -> Error {
    Error::malformed(expected, found).at(at.saturating_mul(8)).field(path.into())
}

fn join(parent: &str, name: &str) -> String {
    if parent.is_empty() { name.to_owned() } else { format!("{parent}.{name}") }
}

impl Walker<'_> {
    fn push(&mut self, path: String, start: u64, content: Content) {
        let len = self.cursor.position() - start;
        self.parts.push(ContainerPart { path, start, len, content });
    }

    fn field(&mut self, path: String) -> Result<u64> {
        let start = self.cursor.position();
        let value = self.cursor.element(&path)?;
        self.push(path, start, Content::Field(value));
        Ok(value)
    }

    fn fact(&mut self, path: String) -> Result<u64> {
        let value = self.field(path.clone())?;
        self.facts.push((path, value.to_string()));
        Ok(value)
    }

    /// Tag and version in one element.
    fn header(&mut self, parent: &str, kind: Kind, versions: std::ops::RangeInclusive<u64>) -> Result<u64> {
        let at = self.cursor.position();
        let path = join(parent, "header");
        let element = self.field(path.clone())?;
        let (found, version) = (element & 0xffff_ffff, element >> 32);
        let expected = u64::from(tag(kind).unwrap_or(0));
        if found != expected {
            return Err(malformed(
                at,
                path,
                format!("the tag {expected:#x} of a {kind}"),
                format!("{found:#x}"),
            ));
        }
        if !versions.contains(&version) {
            let (first, last) = (versions.start(), versions.end());
            let known = if first == last { format!("{first} is") } else { format!("{first} to {last} are") };
            let error = Error::unsupported(format!("version {version} of a {kind} ({known} read)"));
            return Err(error.at(at * 8).field(path));
        }
        self.facts.push((join(parent, "version"), version.to_string()));
        Ok(version)
    }

    fn flags(&mut self, path: String, known: u64, required: u64) -> Result<u64> {
        let at = self.cursor.position();
        let flags = self.field(path.clone())?;
        if flags & !known != 0 || flags & required != required {
            let expected = format!("flags within {known:#x} with {required:#x} set");
            return Err(malformed(at, path, expected, format!("{flags:#x}")));
        }
        Ok(flags)
    }

    fn sparse(&mut self, path: String) -> Result<Arc<SparseVector<SharedWords>>> {
        let start = self.cursor.position();
        let vector = Arc::new(SparseVector::from_words(self.cursor).map_err(|error| error.within(&path))?);
        self.push(path, start, Content::Sparse(Arc::clone(&vector)));
        Ok(vector)
    }

    fn int(&mut self, path: String) -> Result<Arc<IntVector<SharedWords>>> {
        let start = self.cursor.position();
        let vector = Arc::new(IntVector::from_words(self.cursor).map_err(|error| error.within(&path))?);
        self.push(path, start, Content::Int(Arc::clone(&vector)));
        Ok(vector)
    }

    fn bytes(&mut self, path: String) -> Result<(u64, SharedWords)> {
        let start = self.cursor.position();
        let (count, words) = self.cursor.bytes(&path)?;
        self.push(path, start, Content::Bytes(count, words.clone()));
        Ok((count, words))
    }

    fn strings(&mut self, path: &str) -> Result<Arc<StringArray>> {
        let start = self.cursor.position();
        let starts = self.sparse(join(path, "index"))?;
        let (count, words) = self.bytes(join(path, "alphabet"))?;
        if count > 256 {
            let expected = "at most 256 bytes";
            return Err(malformed(start, join(path, "alphabet"), expected, count));
        }
        let alphabet = byte_vector(count, &words);
        let packed = self.int(join(path, "characters"))?;
        let array = Arc::new(StringArray { starts, alphabet, packed });
        self.push(path.to_owned(), start, Content::Strings(Arc::clone(&array)));
        Ok(array)
    }

    fn dictionary(&mut self, path: &str) -> Result<()> {
        let at = self.cursor.position();
        let strings = self.strings(path)?;
        let ids = self.int(join(path, "sorted_ids"))?;
        if ids.len() != strings.len() {
            return Err(malformed(at, join(path, "sorted_ids"), format!("{} ids", strings.len()), ids.len()));
        }
        Ok(())
    }

    fn tags(&mut self, path: &str) -> Result<()> {
        let at = self.cursor.position();
        let strings = self.strings(path)?;
        if !strings.len().is_multiple_of(2) {
            return Err(malformed(at, path, "a value for each key", format!("{} strings", strings.len())));
        }
        Ok(())
    }

    fn gbz(&mut self) -> Result<()> {
        self.header("", Kind::Gbz, 1..=2)?;
        self.flags("flags".to_owned(), 0, 0)?;
        self.tags("tags")?;
        self.gbwt("gbwt")?;
        self.graph("graph")
    }

    fn gbwt(&mut self, parent: &str) -> Result<()> {
        self.header(parent, Kind::Gbwt, 5..=5)?;
        for name in ["sequences", "size", "offset", "alphabet_size"] {
            self.fact(join(parent, name))?;
        }
        let flags = self.flags(join(parent, "flags"), 7, 4)?;
        self.tags(&join(parent, "tags"))?;
        let at = self.cursor.position();
        let index = self.sparse(join(parent, "bwt.index"))?;
        let (data, _) = self.bytes(join(parent, "bwt.data"))?;
        let len = pentaglot_succinct::BitQueries::len(index.as_ref());
        if len != data {
            return Err(malformed(
                at,
                join(parent, "bwt.index"),
                format!("a length of {data}, as the data"),
                len,
            ));
        }
        self.elements(join(parent, "da_samples"))?;
        let path = join(parent, "metadata");
        let at = self.cursor.position();
        let size = self.field(join(&path, "size"))?;
        if (size > 0) != (flags & 2 != 0) {
            return Err(malformed(
                at,
                path,
                "metadata exactly if the flags say so",
                format!("{size} elements"),
            ));
        }
        if size > 0 {
            let start = self.cursor.position();
            self.metadata(&path)?;
            let read = self.cursor.position() - start;
            if read != size {
                return Err(malformed(at, join(&path, "size"), format!("{read} elements"), size));
            }
        }
        Ok(())
    }

    /// An optional structure that is passed through as elements.
    fn elements(&mut self, path: String) -> Result<()> {
        let start = self.cursor.position();
        let words = self.cursor.vector(1, &path)?;
        self.push(path, start, Content::Elements(words));
        Ok(())
    }

    fn metadata(&mut self, parent: &str) -> Result<()> {
        self.header(parent, Kind::GbwtMeta, 2..=2)?;
        for name in ["samples", "haplotypes", "contigs"] {
            self.fact(join(parent, name))?;
        }
        self.flags(join(parent, "flags"), 7, 0)?;
        let start = self.cursor.position();
        let path = join(parent, "path_names");
        let words = self.cursor.vector(2, &path)?;
        self.push(path, start, Content::Paths(words));
        self.dictionary(&join(parent, "sample_names"))?;
        self.dictionary(&join(parent, "contig_names"))
    }

    fn graph(&mut self, parent: &str) -> Result<()> {
        let version = self.header(parent, Kind::Gg, 3..=4)?;
        self.fact(join(parent, "nodes"))?;
        self.flags(join(parent, "flags"), 3, 2)?;
        if version >= 4 {
            let path = join(parent, "sequences");
            self.sparse(join(&path, "index"))?;
            self.field(join(&path, "total_length"))?;
            self.bytes(join(&path, "zstd"))?;
        } else {
            self.strings(&join(parent, "sequences"))?;
        }
        self.strings(&join(parent, "segments"))?;
        self.sparse(join(parent, "mapping"))?;
        Ok(())
    }

    fn chains(&mut self) -> Result<()> {
        let count = self.fact("chains".to_owned())?;
        // Each vector takes four elements at least, so a wrong count ends soon.
        for index in 0..count {
            self.int(format!("chain[{index}]"))?;
        }
        Ok(())
    }
}
