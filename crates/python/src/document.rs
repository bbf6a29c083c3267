//! An open file.

use pentaglot::formats::{Finding, Findings};
use pentaglot::hub::shape::{Form, Shape};
use pentaglot::job::{self, OpenOptions, Opened, View};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::batches::{Batches, Schema, Stream, form};
use crate::error::{About, Failure, Outcome};
use crate::info;
use crate::input::{Input, open_options};
use crate::outline::Node;
use crate::watch::{Teller, Watch};

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Document>()?;
    module.add_function(wrap_pyfunction!(validate, module)?)
}

/// An open file, shared between threads.
#[pyclass(frozen, module = "pentaglot._native")]
pub(crate) struct Document {
    pub(crate) opened: Opened,
    pub(crate) options: OpenOptions,
    name: String,
}

/// What is wanted of the rows of a document.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct Wanted {
    columns: Option<Vec<String>>,
    start: u64,
    stop: u64,
    filter: Option<String>,
    batch_rows: usize,
    form: Option<String>,
    progress: Option<Py<PyAny>>,
}

impl Document {
    pub(crate) fn open(
        py: Python<'_>,
        source: &Bound<'_, PyAny>,
        member: Option<&str>,
        settings: &Bound<'_, PyDict>,
        only_read: bool,
    ) -> Outcome<Self> {
        let (input, options) = (Input::new(source)?, open_options(settings)?);
        let name = input.name();
        let opened = py.detach(|| {
            let opened = input.open(member, &options)?;
            // A conversion compares the options with its target too.
            if only_read {
                opened.check_options(&options.options)?;
            }
            Ok::<_, Failure>(opened)
        });
        Ok(Document { opened: opened.about(&name)?, options, name })
    }

    /// What is opened already.
    pub(crate) fn of_opened(opened: Opened, options: OpenOptions, name: &str) -> Self {
        Document { opened, options, name: name.to_owned() }
    }

    fn view(wanted: Wanted) -> Outcome<(View, Option<Py<PyAny>>)> {
        let mut view = View::default();
        view.columns = wanted.columns;
        view.filter = wanted.filter;
        view.batch_rows = wanted.batch_rows;
        if wanted.start > 0 || wanted.stop < u64::MAX {
            view.rows = Some(wanted.start..wanted.stop.max(wanted.start));
        }
        if let Some(wanted) = wanted.form {
            view.forms = vec![form(&wanted)?];
        }
        Ok((view, wanted.progress))
    }

    pub(crate) fn watch(&self, progress: Option<Py<PyAny>>) -> Watch {
        Watch { teller: Teller::new(&self.options.control, progress), bytes: self.opened.source.len() }
    }
}

#[pymethods]
impl Document {
    #[new]
    #[pyo3(signature = (source, member, settings, only_read))]
    fn new(
        py: Python<'_>,
        source: &Bound<'_, PyAny>,
        member: Option<&str>,
        settings: &Bound<'_, PyDict>,
        only_read: bool,
    ) -> Outcome<Self> {
        Document::open(py, source, member, settings, only_read)
    }

    /// The name that messages use.
    #[getter]
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    #[getter]
    fn format(&self) -> &'static str {
        self.opened.format.info().id
    }

    #[getter]
    fn dialect(&self) -> Option<&'static str> {
        self.opened.document.summary().dialect
    }

    #[getter]
    fn schema(&self) -> Schema {
        Schema(self.opened.document.summary().schema.clone())
    }

    /// How many rows, if that is known without a full read.
    #[getter]
    fn num_rows(&self) -> Option<u64> {
        self.opened.document.summary().rows
    }

    /// The members of a container.
    #[getter]
    fn members(&self) -> Vec<String> {
        self.opened.document.summary().members.clone()
    }

    /// What the file says of itself.
    fn summary<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        info::summary(py, &self.name, self.opened.document.summary())
    }

    /// The rows as a stream.
    fn rows(&self, py: Python<'_>, wanted: Wanted) -> Outcome<Stream> {
        let (view, progress) = Document::view(wanted)?;
        let rows = py.detach(|| self.opened.rows(&view)).about(&self.name)?;
        Ok(Stream::new(rows, Teller::new(&self.options.control, progress)))
    }

    /// The rows in memory. Those of a matrix, an array or a table of whole columns come in one piece, where nothing else is asked
    /// for.
    fn read(&self, py: Python<'_>, mut wanted: Wanted) -> Outcome<Batches> {
        let summary = self.opened.document.summary();
        let in_one_piece = wanted.batch_rows == 0
            && wanted.filter.is_none()
            && (self.opened.format.info().has_whole_columns
                || Shape::of(&summary.schema) != Shape::Table && Form::of(&summary.schema) != Form::Coo);
        if let (Some(rows), true) = (summary.rows, in_one_piece) {
            wanted.batch_rows = usize::try_from(rows).unwrap_or(usize::MAX).max(1);
        }
        let (view, progress) = Document::view(wanted)?;
        self.watch(progress).run(py, || Ok(Batches::collect(self.opened.rows(&view)?)?)).about(&self.name)
    }

    /// How many rows there are, or how many match a filter.
    #[pyo3(signature = (filter, progress))]
    fn count(&self, py: Python<'_>, filter: Option<&str>, progress: Option<Py<PyAny>>) -> Outcome<u64> {
        self.watch(progress).run(py, || Ok(self.opened.count(filter)?)).about(&self.name)
    }

    /// The part at a path or with a byte, and its path.
    fn part(&self, at: &str) -> Outcome<(String, Node)> {
        Ok(Node::at(&self.opened, at)?)
    }

    /// The root of the named byte ranges.
    fn outline(&self) -> Node {
        Node::root(&self.opened)
    }
}

/// A finding as Python sees it: severity, rule, offset, line, path, message.
type FindingParts = (&'static str, String, Option<u64>, Option<u64>, String, String);

/// Compares a file with every rule of its format: its format if it could be told, whether it is valid, the findings, and
/// how many more there are.
#[pyfunction]
#[pyo3(signature = (source, member, strict, settings, progress))]
fn validate(
    py: Python<'_>,
    source: &Bound<'_, PyAny>,
    member: Option<&str>,
    strict: bool,
    settings: &Bound<'_, PyDict>,
    progress: Option<Py<PyAny>>,
) -> Outcome<(Option<&'static str>, bool, Vec<FindingParts>, u64)> {
    let (input, options) = (Input::new(source)?, open_options(settings)?);
    let name = input.name();
    let mut findings = Findings::new(strict);
    let watch = Watch { teller: Teller::new(&options.control, progress), bytes: None };
    let format = watch.run(py, || {
        let opened = input.open(member, &options);
        Ok(job::validate_opened(opened, &options, &mut findings)?)
    });
    let format = format.about(&name)?;
    let parts = |finding: &Finding| {
        let Finding { rule, offset, line, path, message, .. } = finding.clone();
        (finding.severity.name(), rule, offset, line, path, message)
    };
    let list = findings.list().iter().map(parts).collect();
    Ok((format, findings.is_valid(), list, findings.more()))
}
