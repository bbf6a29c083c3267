//! Identities, comparisons and salvage.

use pentaglot::job::{self, ConvertOptions, DiffOptions, RawDigest};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::document::Document;
use crate::error::{About, Outcome};
use crate::input::{open_options, path_text, registry};
use crate::watch::{Teller, Watch};

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(identity, module)?)?;
    module.add_function(wrap_pyfunction!(raw_digest, module)?)?;
    module.add_function(wrap_pyfunction!(diff, module)?)?;
    module.add_function(wrap_pyfunction!(salvage, module)?)
}

/// The content identity of a document, as JSON.
#[pyfunction]
#[pyo3(signature = (document, progress))]
fn identity(py: Python<'_>, document: &Bound<'_, Document>, progress: Option<Py<PyAny>>) -> Outcome<String> {
    let document = document.get();
    let watch = document.watch(progress);
    let json = watch.run(py, || Ok(document.opened.identity(&document.options)?.to_json(document.name())?));
    json.about(document.name())
}

/// The digest of the `dynd:raw` bytes of a dynd value.
#[pyfunction]
#[pyo3(signature = (document, sha256))]
fn raw_digest(py: Python<'_>, document: &Bound<'_, Document>, sha256: bool) -> Outcome<String> {
    let document = document.get();
    let algorithm = if sha256 { RawDigest::Sha256 } else { RawDigest::Blake3 };
    py.detach(|| document.opened.raw_digest(algorithm, &document.options)).about(document.name())
}

/// How two documents are compared.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct Comparison {
    key: Vec<String>,
    abs: f64,
    rel: f64,
    ulp: u64,
    first: usize,
    progress: Option<Py<PyAny>>,
}

/// What differs between two documents, as JSON.
#[pyfunction]
#[pyo3(signature = (a, b, comparison))]
fn diff(
    py: Python<'_>,
    a: &Bound<'_, Document>,
    b: &Bound<'_, Document>,
    comparison: Comparison,
) -> Outcome<String> {
    let (a, b) = (a.get(), b.get());
    let mut options = DiffOptions::default();
    options.open = a.options.clone();
    options.key = comparison.key;
    options.tolerance.abs = comparison.abs;
    options.tolerance.rel = comparison.rel;
    options.tolerance.ulp = comparison.ulp;
    options.first = comparison.first;
    let progress = comparison.progress;
    let watch = a.watch(progress);
    let found = watch.run(py, || Ok(job::diff(&a.opened, &b.opened, &options, None)?.to_json()));
    found.about(&format!("{} and {}", a.name(), b.name()))
}

/// Writes what is sound in a damaged file; what was lost, as JSON.
#[pyfunction]
#[pyo3(signature = (source, target, to, force, settings, progress))]
fn salvage(
    py: Python<'_>,
    source: &Bound<'_, PyAny>,
    target: &Bound<'_, PyAny>,
    to: Option<String>,
    force: bool,
    settings: &Bound<'_, PyDict>,
    progress: Option<Py<PyAny>>,
) -> Outcome<String> {
    let (source, target) = (path_text(source)?, path_text(target)?);
    let mut options = ConvertOptions::default();
    options.open = open_options(settings)?;
    options.to = to;
    options.force = force;
    let watch = Watch { teller: Teller::new(&options.open.control, progress), bytes: None };
    let saved = watch.run(py, || Ok(job::salvage(&registry(), &source, &target, &options)?.to_json()));
    saved.about(&source)
}
