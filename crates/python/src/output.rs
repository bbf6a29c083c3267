//! Where bytes go in Python: a path, or a file object.

use std::io::{self, Write};

use pentaglot::{Sink, job};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};

use crate::error::Outcome;
use crate::input::{path_text, registry};

/// An output that is named but not created.
pub(crate) enum Output {
    /// A file, which appears when it is whole.
    Path(String),
    /// A file object, which takes bytes in order.
    File(Py<PyAny>),
}

impl Output {
    /// From a path or an object with `write`.
    pub(crate) fn new(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        if object.is_instance_of::<PyString>() || object.hasattr("__fspath__")? {
            return Ok(Output::Path(path_text(object)?));
        }
        if object.hasattr("write")? {
            return Ok(Output::File(object.clone().unbind()));
        }
        Err(PyTypeError::new_err("expected a path or a file object that is open for writing"))
    }

    /// Its name, if it has one.
    pub(crate) fn name(&self) -> Option<&str> {
        match self {
            Output::Path(path) => Some(path),
            Output::File(_) => None,
        }
    }

    /// Creates it.
    pub(crate) fn create(self, force: bool) -> Outcome<Sink> {
        Ok(match self {
            Output::Path(path) => job::create(&registry(), &path, force)?,
            Output::File(file) => Sink::pipe(PyWriter(file)),
        })
    }
}

struct PyWriter(Py<PyAny>);

impl Write for PyWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Python::attach(|py| {
            let written = self.0.call_method1(py, "write", (PyBytes::new(py, bytes),))?;
            // Some objects with `write` give no count: they have taken everything.
            let count: Option<usize> = written.extract(py)?;
            Ok(count.unwrap_or(bytes.len()).min(bytes.len()))
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        Python::attach(|py| match self.0.getattr(py, "flush") {
            Ok(flush) => Ok(flush.call0(py).map(drop)?),
            Err(_) => Ok(()),
        })
    }
}
