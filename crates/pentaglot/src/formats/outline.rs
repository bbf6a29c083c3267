//! [`Outline`]: the named byte ranges of a file, expanded lazily. What `dump` shows.

use std::sync::Arc;

use crate::error::Result;

/// The root of a file's named byte ranges.
pub type Outline = Node;

/// A named byte range, perhaps with a value and parts.
#[derive(Clone)]
#[non_exhaustive]
pub struct Node {
    /// `header`, or `[3]` for an element. A path is names joined by dots, without a dot before `[`.
    pub name: String,
    /// The first byte.
    pub offset: u64,
    /// How many bytes.
    pub bytes: u64,
    /// The decoded value or a short description.
    pub value: Option<String>,
    /// The parts, if there are any.
    pub parts: Option<Arc<dyn Expand>>,
}

/// The parts of a node, made when they are asked for.
pub trait Expand: Send + Sync {
    /// The parts from index `from` on, in file order. Work is proportional to what is taken from it
    /// (formats with a constant stride jump; others may have to walk from the start).
    fn nodes(&self, from: u64) -> Box<dyn Iterator<Item = Result<Node>> + '_>;

    /// How many parts there are, if that is known without walking them.
    fn count(&self) -> Option<u64> {
        None
    }

    /// An index at or before the part that holds `offset`, so that a search need not start at 0.
    fn index_near(&self, offset: u64) -> u64 {
        let _ = offset;
        0
    }
}

impl Node {
    /// A range with a name.
    pub fn new(name: impl Into<String>, offset: u64, bytes: u64) -> Self {
        Node { name: name.into(), offset, bytes, value: None, parts: None }
    }

    /// With a value.
    #[must_use]
    pub fn value(mut self, value: impl ToString) -> Self {
        self.value = Some(value.to_string());
        self
    }

    /// With parts that are known now.
    #[must_use]
    pub fn parts(self, parts: Vec<Node>) -> Self {
        self.expand(parts)
    }

    /// With parts that are made when they are asked for.
    #[must_use]
    pub fn expand(mut self, parts: impl Expand + 'static) -> Self {
        self.parts = Some(Arc::new(parts));
        self
    }
}

impl Expand for Vec<Node> {
    fn nodes(&self, from: u64) -> Box<dyn Iterator<Item = Result<Node>> + '_> {
        Box::new(self.iter().skip(usize::try_from(from).unwrap_or(usize::MAX)).cloned().map(Ok))
    }

    fn count(&self) -> Option<u64> {
        Some(self.len() as u64)
    }
}

/// Elements of constant size: element `i` at `offset + i * stride`, made by a function.
pub struct Strided<F> {
    /// Where element 0 begins.
    pub offset: u64,
    /// Bytes per element; not 0.
    pub stride: u64,
    /// How many elements.
    pub count: u64,
    /// Makes element `(index, offset)`.
    pub make: F,
}

impl<F: Fn(u64, u64) -> Result<Node> + Send + Sync> Expand for Strided<F> {
    fn nodes(&self, from: u64) -> Box<dyn Iterator<Item = Result<Node>> + '_> {
        Box::new((from..self.count).map(|index| (self.make)(index, self.offset + index * self.stride)))
    }

    fn count(&self) -> Option<u64> {
        Some(self.count)
    }

    fn index_near(&self, offset: u64) -> u64 {
        offset.saturating_sub(self.offset) / self.stride.max(1)
    }
}

impl std::fmt::Debug for Node {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let end = self.offset + self.bytes;
        write!(f, "{} {}..{end}", self.name, self.offset)?;
        self.value.iter().try_for_each(|value| write!(f, " = {value}"))
    }
}
