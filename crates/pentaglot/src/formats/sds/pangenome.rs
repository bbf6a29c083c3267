//! GBZ, GBWT and their parts: files of pangenome programs that embed these structures.
//!
//! ```text
//! gbz  = tag version flags | tags | gbwt | graph
//! gbwt = tag version | sequences size offset alphabet flags | tags | bwt.index bwt.data | da_samples? | metadata?
//! ```
//!
//! | | version | what is packed with zstd |
//! |---|---|---|
//! | gbz | 1, 2, 3 | nothing, the graph, the graph and the gbwt |
//! | gbwt | 5, 6 | nothing, `bwt.data` |
//! | graph | 3, 4 | nothing, `sequences` |

use std::sync::Arc;

use pentaglot_succinct::{BitQueries, SharedWords, WordCursor};

use super::containers::{Container, ContainerPart, Content, StringArray, Table, malformed, tag};
use super::layout::{Object, byte_vector};
use super::type_text::{SdsKind, join};
use crate::error::{Error, Result};

impl Container {
    /// Reads a container of a kind that has its own layout.
    pub(super) fn read(kind: SdsKind, cursor: &mut WordCursor<SharedWords>) -> Result<Self> {
        let mut walker = Walker::new(cursor);
        match kind {
            SdsKind::Gbz => walker.gbz()?,
            SdsKind::Gbwt => walker.gbwt("")?,
            SdsKind::Gg => walker.graph("")?,
            SdsKind::GbwtMeta => walker.metadata("")?,
            _ => walker.chains()?,
        }
        let (mut parts, facts) = walker.finish();
        let end = parts.last().map_or(0, |part| part.start + part.len);
        for table in Table::of(kind, &parts) {
            let content = Content::Table(table);
            parts.push(ContainerPart { path: table.name().to_owned(), start: end, len: 0, content });
        }
        Ok(Container::new(kind, parts, facts))
    }
}

/// Walks over a container and names its parts.
struct Walker<'c> {
    cursor: &'c mut WordCursor<SharedWords>,
    parts: Vec<ContainerPart>,
    facts: Vec<(String, String)>,
}

impl<'c> Walker<'c> {
    fn new(cursor: &'c mut WordCursor<SharedWords>) -> Self {
        Walker { cursor, parts: Vec::new(), facts: Vec::new() }
    }

    fn finish(self) -> (Vec<ContainerPart>, Vec<(String, String)>) {
        (self.parts, self.facts)
    }

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
    fn header(
        &mut self,
        parent: &str,
        kind: SdsKind,
        versions: std::ops::RangeInclusive<u64>,
    ) -> Result<u64> {
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

    /// A structure of this kind.
    fn structure(&mut self, kind: SdsKind, path: String) -> Result<Arc<Object>> {
        let start = self.cursor.position();
        let object = Object::read(kind, self.cursor).map_err(|error| error.field(path.clone()))?;
        let object = Arc::new(object);
        self.push(path, start, Content::Object(Arc::clone(&object)));
        Ok(object)
    }

    /// The bytes of a vector, and the elements that hold them.
    fn bytes(&mut self, path: String) -> Result<(u64, SharedWords)> {
        match self.structure(SdsKind::Bytes, path)?.as_ref() {
            Object::Bytes(count, words) => Ok((*count, words.clone())),
            other => Err(Error::malformed("bytes", other.kind())),
        }
    }

    fn strings(&mut self, path: &str) -> Result<Arc<StringArray>> {
        let start = self.cursor.position();
        let starts = self.structure(SdsKind::Sparse, join(path, "index"))?;
        let (count, words) = self.bytes(join(path, "alphabet"))?;
        if count > 256 {
            let expected = "at most 256 bytes";
            return Err(malformed(start, join(path, "alphabet"), expected, count));
        }
        let alphabet = byte_vector(count, &words);
        let packed = self.structure(SdsKind::Int, join(path, "characters"))?;
        let array = Arc::new(StringArray { starts, alphabet, packed });
        let is_tags = path == "tags" || path.ends_with(".tags");
        let content = if is_tags { Content::Tags } else { Content::Strings };
        self.push(path.to_owned(), start, content(Arc::clone(&array)));
        Ok(array)
    }

    fn dictionary(&mut self, path: &str) -> Result<()> {
        let at = self.cursor.position();
        let strings = self.strings(path)?;
        let ids = self.structure(SdsKind::Int, join(path, "sorted_ids"))?;
        let count = if let Object::Int(ids) = ids.as_ref() { ids.len() } else { 0 };
        if count != strings.len() {
            return Err(malformed(at, join(path, "sorted_ids"), format!("{} ids", strings.len()), count));
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
        self.header("", SdsKind::Gbz, 1..=3)?;
        self.flags("flags".to_owned(), 0, 0)?;
        self.tags("tags")?;
        self.gbwt("gbwt")?;
        self.graph("graph")
    }

    fn gbwt(&mut self, parent: &str) -> Result<()> {
        let version = self.header(parent, SdsKind::Gbwt, 5..=6)?;
        for name in ["sequences", "size", "offset", "alphabet_size"] {
            self.fact(join(parent, name))?;
        }
        let flags = self.flags(join(parent, "flags"), 7, 4)?;
        self.tags(&join(parent, "tags"))?;
        let at = self.cursor.position();
        let index = self.structure(SdsKind::Sparse, join(parent, "bwt.index"))?;
        let (data, _) = self.bytes(join(parent, if version >= 6 { "bwt.zstd" } else { "bwt.data" }))?;
        let len = if let Object::Sparse(index) = index.as_ref() { index.len() } else { 0 };
        if version < 6 && len != data {
            return Err(malformed(
                at,
                join(parent, "bwt.index"),
                format!("a length of {data}, as the data"),
                len,
            ));
        }
        self.structure(SdsKind::Vec, join(parent, "da_samples"))?;
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

    fn metadata(&mut self, parent: &str) -> Result<()> {
        self.header(parent, SdsKind::GbwtMeta, 2..=2)?;
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
        let version = self.header(parent, SdsKind::Gg, 3..=4)?;
        self.fact(join(parent, "nodes"))?;
        self.flags(join(parent, "flags"), 3, 2)?;
        if version >= 4 {
            let path = join(parent, "sequences");
            self.structure(SdsKind::Sparse, join(&path, "index"))?;
            self.field(join(&path, "total_length"))?;
            self.bytes(join(&path, "zstd"))?;
        } else {
            self.strings(&join(parent, "sequences"))?;
        }
        self.strings(&join(parent, "segments"))?;
        self.structure(SdsKind::Sparse, join(parent, "mapping"))?;
        Ok(())
    }

    fn chains(&mut self) -> Result<()> {
        let count = self.fact("chains".to_owned())?;
        // Each vector takes at least four elements, so the loop ends soon for a wrong count.
        for index in 0..count {
            self.structure(SdsKind::Int, format!("chain[{index}]"))?;
        }
        Ok(())
    }
}
