//! The named files, each opened on the first request.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use pentaglot::formats::{Node, Summary};
use pentaglot::hub::filter::Filter;
use pentaglot::hub::{Form, Shape, extension, shape, type_text};
use pentaglot::job::{self, Broken, OpenOptions, Opened, Queries};
use pentaglot::{Error, ErrorKind, Result, Source};
use serde_json::{Value, json};

use crate::State;
use crate::table::RowView;
use crate::work::Work;

/// Maximum number of columns in the list of files; a table requests more by range.
const NAMED_COLUMNS: usize = 5000;

/// All files.
pub(crate) struct Files(Vec<File>);

/// One file.
pub(crate) struct File {
    pub(crate) name: String,
    opened: OnceLock<Result<Opened, Fault>>,
    /// What is there of a file that does not open.
    broken: OnceLock<Result<Broken, Fault>>,
    queries: Mutex<Option<Arc<Queries>>>,
    /// The rows of the table, as last sorted and filtered.
    pub(crate) views: Mutex<Vec<Arc<RowView>>>,
    pub(crate) work: Work,
}

/// Why a file cannot be opened, as text, since errors cannot be cloned.
#[derive(Debug, Clone)]
pub(crate) struct Fault {
    pub(crate) message: String,
    pub(crate) offset: Option<u64>,
    pub(crate) kind: ErrorKind,
}

impl From<&Error> for Fault {
    fn from(error: &Error) -> Self {
        Fault { message: error.to_string(), offset: error.offset(), kind: error.kind() }
    }
}

impl Files {
    pub(crate) fn new(names: &[String]) -> Self {
        let file = |name: &String| File {
            name: name.clone(),
            opened: OnceLock::new(),
            broken: OnceLock::new(),
            queries: Mutex::new(None),
            views: Mutex::new(Vec::new()),
            work: Work::default(),
        };
        Files(names.iter().map(file).collect())
    }

    pub(crate) fn get(&self, index: &str) -> Result<&File> {
        let file = index.parse::<usize>().ok().and_then(|index| self.0.get(index));
        file.ok_or_else(|| Error::usage("there is no such file"))
    }

    pub(crate) fn all(&self) -> &[File] {
        &self.0
    }
}

impl File {
    /// Options for opening the file: its own control, to distinguish work on it, and the common memory budget.
    pub(crate) fn open_options(&self, state: &State) -> OpenOptions {
        let mut options = state.options.open.clone();
        options.control = pentaglot::Control::new(state.options.open.control.threads());
        options.spool = true;
        options
    }

    pub(crate) fn open(&self, state: &State) -> std::result::Result<&Opened, Fault> {
        let open = || {
            let options = self.open_options(state);
            let opened = job::open(&state.registry, &self.name, &options);
            let opened = opened.and_then(|opened| {
                opened.check_options(&options.options)?;
                opened.check_type(&options)?;
                Ok(opened)
            });
            opened.map_err(|error| Fault::from(&error))
        };
        self.opened.get_or_init(open).as_ref().map_err(Clone::clone)
    }

    /// The open file, or the fault as an error.
    pub(crate) fn opened(&self, state: &State) -> Result<&Opened> {
        self.open(state).map_err(|fault| Error::usage(fault.message))
    }

    /// What is there of a file that does not open.
    fn broken(&self, state: &State) -> Result<&Broken> {
        let open = || {
            let broken = job::open_broken(&state.registry, &self.name, &self.open_options(state));
            broken.map_err(|error| Fault::from(&error))
        };
        let broken = self.broken.get_or_init(open).as_ref();
        broken.map_err(|fault| Error::usage(fault.message.clone()))
    }

    /// The bytes that are shown: those inside a gzip file, or those of a file that cannot be opened.
    pub(crate) fn source(&self, state: &State) -> Result<Source> {
        match self.open(state) {
            Ok(opened) => Ok(opened.content.clone()),
            Err(_) => Ok(self.broken(state)?.content.clone()),
        }
    }

    /// The parts of the file; of one that cannot be opened, as far as they are sound.
    pub(crate) fn outline(&self, state: &State) -> Result<Node> {
        match self.open(state) {
            Ok(opened) => Ok(opened.document.outline()),
            Err(_) => Ok(self.broken(state)?.outline.clone()),
        }
    }

    /// Returns an error if there is no such file, or the condition does not fit its columns. A file that is there but
    /// broken can be looked at.
    pub(crate) fn check(&self, state: &State) -> Result<()> {
        let is_there = |kind: ErrorKind| !matches!(kind, ErrorKind::Io | ErrorKind::Usage);
        let told = |kind, message: String| Error::new(kind, message).in_input(self.name.clone());
        let opened = match self.open(state) {
            Ok(opened) => opened,
            Err(fault) if is_there(fault.kind) => return Ok(()),
            Err(fault) => return Err(told(fault.kind, fault.message)),
        };
        match &state.options.filter {
            Some(filter) => Filter::parse(filter, &opened.document.summary().schema).map(drop),
            None => Ok(()),
        }
    }

    pub(crate) fn queries(&self, state: &State) -> Result<Arc<Queries>> {
        let mut queries = self.queries.lock().unwrap_or_else(PoisonError::into_inner);
        if queries.is_none() {
            *queries = Some(Arc::new(Queries::open(&state.registry, &self.name, &self.open_options(state))?));
        }
        queries.clone().ok_or_else(|| Error::usage("there are no queries on this file"))
    }

    /// The information that the page needs first.
    pub(crate) fn about(&self, state: &State) -> Value {
        let name = self.name.rsplit('/').next().unwrap_or(&self.name);
        let opened = match self.open(state) {
            Ok(opened) => opened,
            Err(fault) => {
                return json!({ "name": name, "path": self.name, "error": fault.message, "offset": fault.offset });
            }
        };
        let summary = opened.document.summary();
        let schema = &summary.schema;
        let form = Form::of(schema);
        let columns: Vec<Value> = schema
            .fields()
            .iter()
            .take(NAMED_COLUMNS)
            .map(|field| {
                let data_type = type_text::print_type(field.data_type());
                let is_picture = extension::name(field) == Some(extension::IMAGE)
                    || extension::tensor_shape(field).is_some_and(|shape| shape.len() > 1);
                json!({
                    "name": field.name(), "type": data_type, "nullable": field.is_nullable(),
                    "nested": field.data_type().is_nested(), "picture": is_picture,
                })
            })
            .collect();
        json!({
            "name": name, "path": self.name, "format": summary.format, "dialect": summary.dialect,
            "shape": Shape::of(schema).name(), "form": form_name(form), "rows": rows(summary),
            "cols": shape::matrix_cols(schema), "nonzeros": summary.nonzeros, "bytes": summary.bytes,
            "columns": columns, "column_count": schema.fields().len(), "members": summary.members,
            "container": summary.is_container(), "notes": summary.notes,
            "metadata": summary.metadata.iter().take(50).map(|(key, value)| json!([key, value])).collect::<Vec<_>>(),
            "kind": (summary.format == "sds").then_some(summary.dialect),
        })
    }
}

fn rows(summary: &Summary) -> Option<u64> {
    shape::matrix_rows(&summary.schema).or(summary.rows)
}

fn form_name(form: Form) -> &'static str {
    match form {
        Form::Dense => "dense",
        Form::Sparse => "sparse",
        Form::Columns | Form::Coo | Form::Table => "table",
        Form::Array => "array",
        Form::Value => "value",
    }
}
