//! What is known about formats and files, as dictionaries.

use pentaglot::Registry;
use pentaglot::formats::{FormatInfo, Summary};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(formats, module)?)?;
    module.add_function(wrap_pyfunction!(format_of, module)?)
}

/// The id of the format that a name asks for by its extension; that of a compression is ignored.
#[pyfunction]
fn format_of(name: &str) -> Option<&'static str> {
    Registry::default().by_extension(name).map(|format| format.info().id)
}

/// Every format of this build.
#[pyfunction]
fn formats(py: Python<'_>) -> PyResult<Bound<'_, PyList>> {
    let list = PyList::empty(py);
    for format in Registry::default().formats() {
        list.append(format_info(py, format.info())?)?;
    }
    Ok(list)
}

fn format_info<'py>(py: Python<'py>, info: &FormatInfo) -> PyResult<Bound<'py, PyDict>> {
    let dialects = PyList::empty(py);
    for dialect in info.dialects {
        let entry = PyDict::new(py);
        entry.set_item("name", dialect.name)?;
        entry.set_item("title", dialect.title)?;
        entry.set_item("read", dialect.read)?;
        entry.set_item("write", dialect.write)?;
        dialects.append(entry)?;
    }
    let options = PyList::empty(py);
    for option in info.options {
        let entry = PyDict::new(py);
        entry.set_item("key", option.key)?;
        entry.set_item("side", option.side.name())?;
        entry.set_item("values", option.values)?;
        entry.set_item("default", option.default)?;
        entry.set_item("help", option.help)?;
        options.append(entry)?;
    }
    let dict = PyDict::new(py);
    dict.set_item("id", info.id)?;
    dict.set_item("title", info.title)?;
    dict.set_item("extensions", info.extensions.to_vec())?;
    dict.set_item("dialects", dialects)?;
    dict.set_item("options", options)?;
    dict.set_item("has_members", info.has_members)?;
    dict.set_item("spec", info.spec)?;
    Ok(dict)
}

/// What a file says of itself: what the command prints with `inspect --json`, and the notes.
pub(crate) fn summary<'py>(py: Python<'py>, file: &str, summary: &Summary) -> PyResult<Bound<'py, PyAny>> {
    let dict = py.import("json")?.call_method1("loads", (summary.to_json(file),))?;
    dict.set_item("notes", &summary.notes)?;
    Ok(dict)
}
