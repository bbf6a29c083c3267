//! The named byte ranges of a file, expanded when they are asked for.

use pentaglot::formats::Node as Inner;
use pentaglot::job::Opened;
use pentaglot::{Context, Error, Source};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::error::Outcome;

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Node>()
}

/// A named byte range.
#[pyclass(frozen, module = "pentaglot._native")]
pub(crate) struct Node {
    inner: Inner,
    source: Source,
    format: &'static str,
}

impl Node {
    /// The whole file.
    pub(crate) fn root(opened: &Opened) -> Self {
        let inner = opened.document.outline();
        Node { inner, source: opened.content.clone(), format: opened.format.info().id }
    }

    /// The part at a path or with a byte, and its path.
    pub(crate) fn at(opened: &Opened, at: &str) -> Result<(String, Self), Error> {
        let (path, inner) = opened.part(at)?;
        Ok((path, Node { inner, source: opened.content.clone(), format: opened.format.info().id }))
    }

    fn part(&self, inner: Inner) -> Self {
        Node { inner, source: self.source.clone(), format: self.format }
    }
}

#[pymethods]
impl Node {
    #[getter]
    fn name(&self) -> &str {
        &self.inner.name
    }

    #[getter]
    fn offset(&self) -> u64 {
        self.inner.offset
    }

    #[getter]
    fn bytes(&self) -> u64 {
        self.inner.bytes
    }

    #[getter]
    fn value(&self) -> Option<&str> {
        self.inner.value.as_deref()
    }

    /// Whether it has parts.
    #[getter]
    fn has_parts(&self) -> bool {
        self.inner.parts.is_some()
    }

    /// How many parts there are, if that is known without walking them.
    #[getter]
    fn count(&self) -> Option<u64> {
        self.inner.parts.as_ref().and_then(|parts| parts.count())
    }

    /// At most `limit` parts from index `start` on.
    fn parts(&self, py: Python<'_>, start: u64, limit: usize) -> Outcome<Vec<Node>> {
        let Some(parts) = &self.inner.parts else { return Ok(Vec::new()) };
        let nodes = py.detach(|| parts.nodes(start).take(limit).collect::<Result<Vec<_>, Error>>());
        Ok(nodes.in_format(self.format)?.into_iter().map(|node| self.part(node)).collect())
    }

    /// The path and the node of the smallest part that holds a byte; `path` is that of this node.
    fn holding(&self, py: Python<'_>, path: &str, offset: u64) -> Outcome<Option<(String, Node)>> {
        let found = py.detach(|| self.inner.holding(path, offset)).in_format(self.format)?;
        Ok(found.map(|(path, node)| (path, self.part(node))))
    }

    /// The part at the path `at`; `path` is that of this node.
    fn find(&self, py: Python<'_>, path: &str, at: &str) -> Outcome<Option<Node>> {
        let found = py.detach(|| self.inner.find(path, at)).in_format(self.format)?;
        Ok(found.map(|node| self.part(node)))
    }

    /// Its first bytes, at most `limit`.
    fn head<'py>(&self, py: Python<'py>, limit: usize) -> Outcome<Bound<'py, PyBytes>> {
        let wanted = limit.min(usize::try_from(self.inner.bytes).unwrap_or(limit)).min(1 << 20);
        let mut bytes = vec![0; wanted];
        let found = self.source.read_at(self.inner.offset, &mut bytes)?;
        Ok(PyBytes::new(py, &bytes[..found]))
    }
}
