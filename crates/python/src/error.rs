//! From the library's errors to Python's exceptions.

use std::error::Error as _;
use std::io;

use pentaglot::hub::Plan;
use pentaglot::{Error, ErrorKind, Hint};
use pyo3::exceptions::{PyException, PyOSError};
use pyo3::prelude::*;

/// Why a call failed: an error of the library and what it is about, or an exception of Python.
pub(crate) enum Failure {
    /// Ours.
    Library(Box<Blame>),
    /// Python's own.
    Python(PyErr),
}

/// An error, the file that it is about, and the plan that it refuses.
pub(crate) struct Blame {
    error: Error,
    file: Option<String>,
    plan: Option<Plan>,
    /// The format that the plan is for.
    format: Option<&'static str>,
}

/// The result of every function of the module.
pub(crate) type Outcome<T> = Result<T, Failure>;

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let file = error.output().or(error.input()).map(str::to_owned);
        Failure::Library(Box::new(Blame { error, file, plan: None, format: None }))
    }
}

impl From<arrow_schema::ArrowError> for Failure {
    fn from(error: arrow_schema::ArrowError) -> Self {
        Error::from(error).into()
    }
}

impl From<pyo3_arrow::error::PyArrowError> for Failure {
    fn from(error: pyo3_arrow::error::PyArrowError) -> Self {
        match error {
            pyo3_arrow::error::PyArrowError::ArrowError(error) => error.into(),
            other => Failure::Python(other.into()),
        }
    }
}

impl From<PyErr> for Failure {
    fn from(error: PyErr) -> Self {
        Failure::Python(error)
    }
}

/// Says what a failure is about.
pub(crate) trait About<T> {
    /// Names the file, unless one is named already.
    fn about(self, file: &str) -> Outcome<T>;
    /// Attaches the plan that is refused, and the format that it is for.
    fn with_plan(self, plan: &Plan, format: &'static str) -> Outcome<T>;
}

impl<T, E: Into<Failure>> About<T> for Result<T, E> {
    fn about(self, file: &str) -> Outcome<T> {
        self.map_err(|error| {
            let mut failure = error.into();
            if let Failure::Library(blame) = &mut failure {
                blame.file.get_or_insert_with(|| file.to_owned());
            }
            failure
        })
    }

    fn with_plan(self, plan: &Plan, format: &'static str) -> Outcome<T> {
        self.map_err(|error| {
            let mut failure = error.into();
            if let Failure::Library(blame) = &mut failure
                && matches!(blame.error.kind(), ErrorKind::Lossy | ErrorKind::Unsupported)
            {
                blame.plan = Some(plan.clone());
                blame.format = Some(format);
            }
            failure
        })
    }
}

impl From<Failure> for PyErr {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Python(error) => error,
            Failure::Library(blame) => Python::attach(|py| blame.exception(py).unwrap_or_else(|error| error)),
        }
    }
}

impl Blame {
    fn exception(&self, py: Python<'_>) -> PyResult<PyErr> {
        let error = &self.error;
        if let Some(own) = python_error(error) {
            return Ok(own.clone_ref(py));
        }
        if error.kind() == ErrorKind::Io {
            return Ok(self.os_error());
        }
        let name = match error.kind() {
            ErrorKind::Truncated => "Truncated",
            ErrorKind::Malformed => "Malformed",
            ErrorKind::Unsupported => "Unsupported",
            ErrorKind::Limit => "LimitReached",
            ErrorKind::Lossy => "Lossy",
            ErrorKind::Usage => "Usage",
            _ => "Error",
        };
        let hint = error.advice().map(advice);
        let mut text = match &self.file {
            Some(file) => format!("{file}: {error}"),
            None => error.to_string(),
        };
        if let Some(hint) = &hint {
            text.push_str(&format!(" ({hint})"));
        }
        let class = py.import("pentaglot._errors")?.getattr(name)?;
        let value = class.call1((text,))?;
        value.setattr("kind", kind_name(error.kind()))?;
        value.setattr("rule", error.rule_name())?;
        value.setattr("format", error.format().or(self.format))?;
        value.setattr("offset", error.offset())?;
        value.setattr("path", Some(error.path()).filter(|path| !path.is_empty()))?;
        value.setattr("hint", hint)?;
        value.setattr("file", &self.file)?;
        if let Some(plan) = &self.plan {
            let steps = crate::conversion::steps(py, plan)?;
            value.setattr("plan", py.import("pentaglot._convert")?.getattr("Plan")?.call1((steps,))?)?;
        }
        Ok(PyErr::from_value(value))
    }

    /// An `OSError`, which Python makes a `FileNotFoundError` and the like by its number.
    fn os_error(&self) -> PyErr {
        let source = self.error.source().and_then(|source| source.downcast_ref::<io::Error>());
        match source.and_then(io::Error::raw_os_error) {
            Some(number) => {
                let text = io::Error::from_raw_os_error(number).to_string();
                let text = text.split(" (os error").next().unwrap_or_default().to_owned();
                PyOSError::new_err((number, text, self.file.clone()))
            }
            None => PyOSError::new_err(self.error.to_string()),
        }
    }
}

/// The word for a kind of error.
fn kind_name(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::Truncated => "truncated",
        ErrorKind::Malformed => "malformed",
        ErrorKind::Unsupported => "unsupported",
        ErrorKind::Limit => "limit",
        ErrorKind::Lossy => "lossy",
        ErrorKind::Usage => "usage",
        ErrorKind::Cancelled => "cancelled",
        _ => "io",
    }
}

/// An exception that a file object, a callback or a signal handler raised, on its way through the library.
fn python_error(error: &Error) -> Option<&PyErr> {
    error.source()?.downcast_ref::<io::Error>()?.get_ref()?.downcast_ref::<PyErr>()
}

/// A hint of the library in the words of Python.
fn advice(hint: &Hint) -> String {
    match hint {
        Hint::From => "format=... names one".to_owned(),
        Hint::FromOne(format) => format!("try format={:?}", format.as_ref()),
        Hint::To => "format=... names one".to_owned(),
        Hint::Type => "type=... gives the type".to_owned(),
        Hint::Force => "force=True replaces it".to_owned(),
        Hint::AllowLossy(_) => "allow_lossy=True permits it".to_owned(),
        Hint::Limit(name) => format!("limits={{\"{}\": ...}} raises the limit", name.replace('-', "_")),
        Hint::Option(option) => match option.split_once('=') {
            Some((key, value)) => format!("try options={{{key:?}: {value:?}}}"),
            None => format!("try the option {option:?}"),
        },
        Hint::Argument("to", format) => format!("format={format:?} names a format"),
        Hint::Argument("as", value) => format!("try as_type={value:?}"),
        Hint::Argument(name @ ("columns" | "exclude"), names) => {
            // A comma in a name is escaped.
            let names = names.replace("\\,", "\0");
            let names: Vec<String> = names.split(',').map(|name| name.replace('\0', ",")).collect();
            format!("try {name}={names:?}")
        }
        Hint::Argument(name, value) => format!("try {name}={value:?}"),
        Hint::MakeFolder(folder) => format!("os.makedirs({folder:?}) makes it"),
        Hint::Advice(text) => text.clone().into_owned(),
        _ => "help(pentaglot) says more".to_owned(),
    }
}

/// What went wrong in a thread or a lock: a fault of this module.
pub(crate) fn internal(message: &str) -> PyErr {
    PyException::new_err(format!("internal error: {message}"))
}
