//! [`Structure`]: opening from elements, writing as elements, description and validation.

use std::io;

use crate::cursor::WordCursor;
use crate::error::{Error, join};
use crate::storage::Section;

/// Which optional rank and select supports to write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Supports {
    /// Exactly those that were present when the structure was opened; none for one built in memory.
    #[default]
    AsIs,
    /// Those that simple-sds writes, with its exact content: rank, select and select0 for bit vectors and
    /// wavelet levels, both selects for the high part of a sparse vector.
    Full,
    /// None, as the C++ programs write.
    Lean,
}

/// Takes elements in order.
pub trait WordSink {
    /// Appends `words`.
    fn put(&mut self, words: &[u64]) -> io::Result<()>;
}

impl WordSink for Vec<u64> {
    fn put(&mut self, words: &[u64]) -> io::Result<()> {
        self.extend_from_slice(words);
        Ok(())
    }
}

/// Writes elements as little-endian bytes: how a structure becomes a file.
///
/// ```
/// use pentaglot_succinct::{BitVector, ByteSink, Structure, Supports};
/// let bits: BitVector = (0..1000).map(|position| position % 3 == 0).collect();
/// let mut file = Vec::new(); // or a `std::fs::File`, or a `pentaglot::Sink`
/// bits.write_words(Supports::Full, &mut ByteSink(&mut file))?;
/// assert_eq!(file.len() % 8, 0);
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct ByteSink<O>(pub O);

impl<O: io::Write> WordSink for ByteSink<O> {
    fn put(&mut self, words: &[u64]) -> io::Result<()> {
        let mut buffer = [0_u8; 8192];
        for chunk in words.chunks(buffer.len() / 8) {
            for (bytes, word) in buffer.chunks_exact_mut(8).zip(chunk) {
                bytes.copy_from_slice(&word.to_le_bytes());
            }
            self.0.write_all(&buffer[..8 * chunk.len()])?;
        }
        Ok(())
    }
}

/// One part of an opened structure and the elements it occupies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// Its name, such as `high.bits.words`.
    pub path: String,
    /// Its first element, from the start of the structure.
    pub start: u64,
    /// How many elements it has.
    pub len: u64,
}

/// The severity of a [`Finding`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Valid, but other readers may reject it.
    Warning,
    /// The format forbids it.
    Error,
}

/// A finding of [`Structure::validate`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Its severity.
    pub severity: Severity,
    /// The rule that is broken, in a few fixed words: `unused bits`, `count`, `rank support`, …
    pub rule: &'static str,
    /// Element offset from the start of the structure.
    pub offset: u64,
    /// The field, such as `high.bits.words[3]`.
    pub path: String,
    /// What was expected.
    pub expected: String,
    /// What was found.
    pub found: String,
}

/// A structure with an exact layout in elements.
pub trait Structure<W>: Sized {
    /// Opens the structure in place; the time depends on the number of its fields, not on its size.
    ///
    /// Lengths, widths and the consistency of fields are checked; the bits themselves are not read, see
    /// [`validate`](Structure::validate).
    fn from_words(cursor: &mut WordCursor<W>) -> Result<Self, Error>
    where
        W: Section;

    /// Writes the structure's elements.
    fn write_words(&self, supports: Supports, sink: &mut impl WordSink) -> io::Result<()>;

    /// Lists parts and findings in the order of the elements; used by the provided methods.
    ///
    /// The walk describes the structure as it was opened, which is what [`Supports::AsIs`] writes.
    fn walk(&self, walk: &mut Walk);

    /// How many elements [`write_words`](Structure::write_words) writes.
    fn size_in_elements(&self, supports: Supports) -> u64 {
        let mut count = Counter(0);
        self.write_words(supports, &mut count).expect("counting does not fail");
        count.0
    }

    /// The elements of each part.
    fn parts(&self) -> Vec<Part> {
        let mut walk = Walk::new(false);
        self.walk(&mut walk);
        walk.parts
    }

    /// Reads everything and reports broken rules, at most [`Walk::FINDING_LIMIT`] findings.
    fn validate(&self) -> Vec<Finding> {
        let mut walk = Walk::new(true);
        self.walk(&mut walk);
        walk.findings
    }

    /// The elements as a vector.
    fn to_words(&self, supports: Supports) -> Vec<u64> {
        let mut words = Vec::new();
        self.write_words(supports, &mut words).expect("memory does not fail");
        words
    }
}

struct Counter(u64);

impl WordSink for Counter {
    fn put(&mut self, words: &[u64]) -> io::Result<()> {
        self.0 += words.len() as u64;
        Ok(())
    }
}

/// Collects the parts of a structure, and optionally findings about them.
#[derive(Debug)]
pub struct Walk {
    prefix: String,
    offset: u64,
    checking: bool,
    parts: Vec<Part>,
    findings: Vec<Finding>,
}

impl Walk {
    /// No more than this many findings are reported.
    pub const FINDING_LIMIT: usize = 100;

    pub(crate) fn new(checking: bool) -> Self {
        Walk { prefix: String::new(), offset: 0, checking, parts: Vec::new(), findings: Vec::new() }
    }

    /// Whether content is read and checked.
    pub(crate) fn checking(&self) -> bool {
        self.checking && self.findings.len() < Self::FINDING_LIMIT
    }

    /// The next `len` elements are `name`.
    pub(crate) fn part(&mut self, name: &str, len: u64) {
        let path = join(&self.prefix, name);
        self.parts.push(Part { path, start: self.offset, len });
        self.offset += len;
    }

    /// The structure in field `name` comes next.
    pub(crate) fn nest<W>(&mut self, name: &str, structure: &impl Structure<W>) {
        self.within(name, |walk| structure.walk(walk));
    }

    /// Runs `inner` for the parts of field `name`.
    pub(crate) fn within(&mut self, name: &str, inner: impl FnOnce(&mut Walk)) {
        let outer = self.prefix.clone();
        self.prefix = join(&outer, name);
        inner(self);
        self.prefix = outer;
    }

    /// Element offset of the next part.
    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }

    /// Reports an error at element `offset` in field `name`.
    pub(crate) fn error(
        &mut self,
        rule: &'static str,
        offset: u64,
        name: &str,
        expected: impl ToString,
        found: impl ToString,
    ) {
        self.finding(Severity::Error, rule, offset, name, expected.to_string(), found.to_string());
    }

    /// Reports a finding.
    pub(crate) fn finding(
        &mut self,
        severity: Severity,
        rule: &'static str,
        offset: u64,
        name: &str,
        expected: String,
        found: String,
    ) {
        if self.checking() {
            let path = join(&self.prefix, name);
            self.findings.push(Finding { severity, rule, offset, path, expected, found });
        }
    }
}
