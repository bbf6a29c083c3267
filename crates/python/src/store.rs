//! A content-addressed store.

use pentaglot::job::{OpenOptions, Opened};
use pentaglot::{Registry, redacted, store};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::batches;
use crate::document::Document;
use crate::error::{About, Outcome};
use crate::input::{open_options, path_text, registry};
use crate::watch::{Teller, Watch};

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Store>()
}

/// A store in a folder or a bucket.
#[pyclass(frozen, module = "pentaglot._native")]
pub(crate) struct Store {
    inner: store::Store,
    name: String,
}

impl Store {
    fn put_opened(
        &self,
        py: Python<'_>,
        opened: &Opened,
        name: Option<&str>,
        options: &OpenOptions,
        progress: Option<Py<PyAny>>,
    ) -> Outcome<String> {
        let watch = Watch { teller: Teller::new(&options.control, progress), bytes: opened.source.len() };
        watch.run(py, || {
            let stored = opened.put(&self.inner, name, options)?;
            Ok(stored.to_json(opened.source.name())?)
        })
    }
}

#[pymethods]
impl Store {
    /// The store of a name, which is made if it is not there and `create` says so.
    #[new]
    fn new(py: Python<'_>, folder: &Bound<'_, PyAny>, create: bool) -> Outcome<Self> {
        let name = path_text(folder)?;
        let inner = py.detach(|| store::Store::named(&registry(), &name, create));
        Ok(Store { inner: inner.about(&name)?, name: redacted(&name).into_owned() })
    }

    /// Stores an open file; what was stored, as JSON.
    #[pyo3(signature = (document, name, progress))]
    fn put(
        &self,
        py: Python<'_>,
        document: &Bound<'_, Document>,
        name: Option<&str>,
        progress: Option<Py<PyAny>>,
    ) -> Outcome<String> {
        let document = document.get();
        self.put_opened(py, &document.opened, name, &document.options, progress).about(document.name())
    }

    /// Stores Arrow data.
    #[pyo3(signature = (data, name, settings, progress))]
    fn put_arrow(
        &self,
        py: Python<'_>,
        data: &Bound<'_, PyAny>,
        name: Option<&str>,
        settings: &Bound<'_, PyDict>,
        progress: Option<Py<PyAny>>,
    ) -> Outcome<String> {
        let options = open_options(settings)?;
        let opened = batches::given(data, false)?.open(&Registry::default(), &options)?;
        self.put_opened(py, &opened, name, &options, progress)
    }

    /// Stored data as an open file, with the types of a format if it was put in from that.
    #[pyo3(signature = (id, format, settings))]
    fn document(
        &self,
        py: Python<'_>,
        id: &str,
        format: Option<&str>,
        settings: &Bound<'_, PyDict>,
    ) -> Outcome<Document> {
        let options = open_options(settings)?;
        let opened = py.detach(|| Opened::from_store(&self.inner, id, format, &options));
        let opened = opened.about(id)?;
        Ok(Document::of_opened(opened, options, id))
    }

    /// What the store has, each as JSON.
    fn list(&self, py: Python<'_>) -> Outcome<Vec<String>> {
        let options = OpenOptions::default();
        let listed = py.detach(|| self.inner.list(&options.budget, &options.control));
        let listed = listed.about(&self.name)?;
        Ok(listed.iter().map(store::Listed::to_json).collect())
    }

    /// Removes data; gives its identity.
    fn remove(&self, py: Python<'_>, id: &str) -> Outcome<String> {
        let options = OpenOptions::default();
        let watch = Watch { teller: Teller::new(&options.control, None), bytes: None };
        let removed = watch.run(py, || Ok(self.inner.remove(id, &options.budget, &options.control)?));
        removed.about(&self.name)
    }

    /// Checks every byte; what was found, as JSON.
    #[pyo3(signature = (progress))]
    fn verify(&self, py: Python<'_>, progress: Option<Py<PyAny>>) -> Outcome<String> {
        let options = OpenOptions::default();
        let watch = Watch { teller: Teller::new(&options.control, progress), bytes: None };
        let found = watch.run(py, || Ok(self.inner.verify(&options.budget, &options.control)?.to_json()));
        found.about(&self.name)
    }

    /// Frees the space of what was removed; what was done, as JSON.
    fn collect(&self, py: Python<'_>) -> Outcome<String> {
        let options = OpenOptions::default();
        let watch = Watch { teller: Teller::new(&options.control, None), bytes: None };
        let done = watch.run(py, || Ok(self.inner.collect(&options.budget, &options.control)?.to_json()));
        done.about(&self.name)
    }
}
