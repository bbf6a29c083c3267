//! Conversions: planned, shown, run.

use std::sync::{Mutex, PoisonError};

use pentaglot::formats::Format;
use pentaglot::hub::{LossKinds, Plan};
use pentaglot::job::{self, ConvertOptions, OpenOptions, Opened, Target};
use pentaglot::{Control, Error, Hint};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::batches;
use crate::document::Document;
use crate::error::{About, Outcome};
use crate::input::{open_options, registry};
use crate::output::Output;
use crate::watch::{Teller, Watch};

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Conversion>()
}

/// A planned conversion, which runs once.
#[pyclass(frozen, module = "pentaglot._native")]
pub(crate) struct Conversion {
    planned: Mutex<Option<(job::Conversion, Output)>>,
    plan: Plan,
    control: Control,
    progress: Option<Py<PyAny>>,
    #[pyo3(get)]
    format: &'static str,
}

/// What a conversion takes beside its input and output.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct Wanted {
    to: Option<String>,
    as_type: Option<String>,
    columns: Option<Vec<String>>,
    start: u64,
    stop: u64,
    filter: Option<String>,
    allow_lossy: String,
    verify: bool,
    exclude: Vec<String>,
    cast: Vec<(String, String)>,
    rename: Vec<(String, String)>,
    progress: Option<Py<PyAny>>,
}

impl Conversion {
    fn plan(
        py: Python<'_>,
        opened: Opened,
        output: &Bound<'_, PyAny>,
        wanted: Wanted,
        open: &OpenOptions,
    ) -> Outcome<Self> {
        let output = Output::new(output)?;
        let mut options = ConvertOptions::default();
        options.open = open.clone();
        options.as_type = wanted.as_type;
        options.columns = wanted.columns;
        options.filter = wanted.filter;
        options.allow_lossy = allowed(&wanted.allow_lossy)?;
        options.verify = wanted.verify;
        options.changes.exclude = wanted.exclude;
        options.changes.cast = wanted.cast;
        options.changes.rename = wanted.rename;
        if wanted.start > 0 || wanted.stop < u64::MAX {
            options.rows = Some(wanted.start..wanted.stop.max(wanted.start));
        }
        let target = target(wanted.to.as_deref(), output.name())?;
        let name = output.name().map(str::to_owned);
        let format = target.format.info().id;
        let planned =
            py.detach(|| job::Conversion::plan_opened(opened, target, name.as_deref(), &options))?;
        let plan = planned.plan.clone();
        let (planned, control) = (Mutex::new(Some((planned, output))), open.control.clone());
        Ok(Conversion { planned, plan, control, progress: wanted.progress, format })
    }
}

#[pymethods]
impl Conversion {
    /// Of an open file.
    #[staticmethod]
    fn of_document(
        py: Python<'_>,
        document: &Bound<'_, Document>,
        output: &Bound<'_, PyAny>,
        wanted: Wanted,
    ) -> Outcome<Self> {
        let document = document.get();
        Conversion::plan(py, document.opened.clone(), output, wanted, &document.options)
    }

    /// Of Arrow data: taken into memory first if `whole`, so that the number of rows is known.
    #[staticmethod]
    fn of_arrow(
        py: Python<'_>,
        data: &Bound<'_, PyAny>,
        whole: bool,
        output: &Bound<'_, PyAny>,
        wanted: Wanted,
        settings: &Bound<'_, PyDict>,
    ) -> Outcome<Self> {
        let given = batches::given(data, whole)?;
        let mut options = open_options(settings)?;
        let mut limits = options.budget.limits().clone();
        limits.max_alloc = limits.max_alloc.saturating_add(given.bytes());
        options.budget = limits.budget();
        let opened = given.open(&registry(), &options)?;
        Conversion::plan(py, opened, output, wanted, &options)
    }

    /// What will happen, field by field.
    fn steps<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        steps(py, &self.plan)
    }

    /// Runs it and reports.
    fn run<'py>(&self, py: Python<'py>, force: bool) -> Outcome<Bound<'py, PyDict>> {
        let planned = self.planned.lock().unwrap_or_else(PoisonError::into_inner).take();
        let (conversion, output) = planned.ok_or_else(|| Error::usage("the conversion has run already"))?;
        let input = conversion.opened().source.name().to_owned();
        let progress = self.progress.as_ref().map(|progress| progress.clone_ref(py));
        let watch = Watch { teller: Teller::new(&self.control, progress), bytes: None };
        let ran = watch.run(py, || {
            // A plan that is refused creates nothing.
            conversion.check().with_plan(&self.plan, self.format)?;
            let sink = output.create(force)?;
            conversion.run_into(sink).with_plan(&self.plan, self.format)
        });
        let report = ran.about(&input)?;
        let lost = PyList::empty(py);
        for loss in &report.lost {
            let entry = PyDict::new(py);
            entry.set_item("kind", loss.kind.name())?;
            entry.set_item("column", &loss.column)?;
            entry.set_item("values", loss.values)?;
            entry.set_item("example", &loss.example)?;
            lost.append(entry)?;
        }
        let result = PyDict::new(py);
        result.set_item("rows", report.rows)?;
        result.set_item("bytes", report.bytes)?;
        result.set_item("notes", [report.input_notes, report.notes].concat())?;
        result.set_item("lost", lost)?;
        let identity = report.verified.map(|verified| verified.written.to_string());
        result.set_item("identity", identity)?;
        Ok(result)
    }
}

/// The steps of a plan as dictionaries.
pub(crate) fn steps<'py>(py: Python<'py>, plan: &Plan) -> PyResult<Bound<'py, PyList>> {
    let list = PyList::empty(py);
    for step in &plan.steps {
        let entry = PyDict::new(py);
        entry.set_item("field", &step.field)?;
        entry.set_item("from", &step.from)?;
        entry.set_item("to", &step.to)?;
        entry.set_item("verdict", step.verdict.name())?;
        entry.set_item("kinds", step.kinds.iter().map(|kind| kind.name()).collect::<Vec<_>>())?;
        entry.set_item("note", &step.note)?;
        list.append(entry)?;
    }
    Ok(list)
}

/// The format that is named, or that the output's extension asks for.
fn target(to: Option<&str>, output: Option<&str>) -> Result<Target, Error> {
    let registry = registry();
    if let Some(to) = to {
        return job::target(&registry, to);
    }
    let by_name: Option<std::sync::Arc<dyn Format>> = output.and_then(|name| registry.by_extension(name));
    let format = by_name.ok_or_else(|| {
        let name = output.map_or("an output without a name".to_owned(), |name| format!("the name {name:?}"));
        Error::usage(format!("cannot tell a format from {name}")).hint(Hint::To)
    })?;
    Ok(Target { format, dialect: None })
}

fn allowed(text: &str) -> Result<LossKinds, Error> {
    match text {
        "" => Ok(LossKinds::NONE),
        "all" => Ok(LossKinds::ALL),
        kinds => kinds.parse(),
    }
}
