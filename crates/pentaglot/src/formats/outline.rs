//! [`Outline`]: the named byte ranges of a file, expanded lazily, as `dump` shows them.

use std::sync::Arc;

use crate::error::Result;

/// Maximum depth of a search.
const MAX_LEVELS: usize = 256;

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

/// The parts of a node, created on demand.
pub trait Expand: Send + Sync {
    /// The parts from index `from` on, in file order. The work is proportional to the number of parts taken
    /// (formats with a constant stride start at `from`; others may have to walk from the start).
    fn nodes(&self, from: u64) -> Box<dyn Iterator<Item = Result<Node>> + '_>;

    /// The number of parts, if known without walking them.
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

    /// Adds parts that are known now.
    #[must_use]
    pub fn parts(self, parts: Vec<Node>) -> Self {
        self.expand(parts)
    }

    /// Adds parts that are created on demand.
    #[must_use]
    pub fn expand(mut self, parts: impl Expand + 'static) -> Self {
        self.parts = Some(Arc::new(parts));
        self
    }
}

impl Node {
    /// The path of the part `name` of the part at `path`.
    pub fn join(path: &str, name: &str) -> String {
        match (path.is_empty(), name.starts_with('[')) {
            (true, _) => name.to_owned(),
            (false, true) => format!("{path}{name}"),
            (false, false) => format!("{path}.{name}"),
        }
    }

    /// The part at the path `at`, if there is one. The path of this node itself is `path`; the root's is empty.
    ///
    /// ```
    /// use pentaglot::formats::Node;
    /// let header = Node::new("header", 0, 8).parts(vec![Node::new("version", 0, 1)]);
    /// let root = Node::new("file", 0, 99).parts(vec![header]);
    /// assert_eq!(root.find("", "header.version")?.unwrap().bytes, 1);
    /// # Ok::<(), pentaglot::Error>(())
    /// ```
    pub fn find(&self, path: &str, at: &str) -> Result<Option<Node>> {
        self.find_within(path, at, MAX_LEVELS)
    }

    /// A name may contain dots, so the first part whose name matches need not be the right one: the search continues
    /// after it.
    fn find_within(&self, path: &str, at: &str, levels: usize) -> Result<Option<Node>> {
        let (Some(parts), true) = (&self.parts, levels > 0) else { return Ok(None) };
        let rest = at.get(path.len()..).unwrap_or_default().trim_start_matches('.');
        // Elements are named by their index.
        let index = rest.strip_prefix('[').and_then(|rest| rest.split_once(']'));
        let index = index.and_then(|(index, _)| index.parse().ok());
        for part in parts.nodes(index.unwrap_or(0)) {
            let part = part?;
            let here = Node::join(path, &part.name);
            if here == at {
                return Ok(Some(part));
            }
            if at.strip_prefix(&here).is_some_and(|rest| rest.starts_with(['.', '[']))
                && let Some(found) = part.find_within(&here, at, levels - 1)?
            {
                return Ok(Some(found));
            }
            if index.is_some() {
                break;
            }
        }
        Ok(None)
    }

    /// The path and the node of the smallest part that contains a byte; `None` if this node does not contain it. The
    /// path of this node itself is `path`.
    pub fn holding(&self, path: &str, offset: u64) -> Result<Option<(String, Node)>> {
        let holds = |node: &Node| offset >= node.offset && offset - node.offset < node.bytes;
        if !holds(self) {
            return Ok(None);
        }
        let (mut path, mut node) = (path.to_owned(), self.clone());
        for _ in 0..MAX_LEVELS {
            let Some(parts) = node.parts.clone() else { break };
            let mut found = None;
            for part in parts.nodes(parts.index_near(offset)) {
                let part = part?;
                if holds(&part) || part.offset > offset {
                    found = Some(part).filter(holds);
                    break;
                }
            }
            let Some(part) = found else { break };
            path = Node::join(&path, &part.name);
            node = part;
        }
        Ok(Some((path, node)))
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

/// Elements of constant size: element `i` is at `offset + i * stride`, and created by a function.
pub struct Strided<F> {
    /// The offset of element 0.
    pub offset: u64,
    /// Bytes per element; not 0.
    pub stride: u64,
    /// How many elements.
    pub count: u64,
    /// Creates element `(index, offset)`.
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
