//! What there is to know about formats and files, as dictionaries. The keys of a summary are those that the command
//! prints with `inspect --json`.

use pentaglot::Registry;
use pentaglot::formats::{FormatInfo, Summary};
use pentaglot::hub::shape::{self, Form, Shape};
use pentaglot::hub::type_text::print_type;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(formats, module)?)
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

/// What a file says of itself.
pub(crate) fn summary<'py>(py: Python<'py>, file: &str, summary: &Summary) -> PyResult<Bound<'py, PyDict>> {
    let schema = &summary.schema;
    let columns = PyList::empty(py);
    for (index, field) in schema.fields().iter().enumerate() {
        let entry = PyDict::new(py);
        entry.set_item("name", field.name())?;
        entry.set_item("type", print_type(field.data_type()))?;
        entry.set_item("nullable", field.is_nullable())?;
        entry.set_item("null_count", summary.null_counts.get(index).copied().flatten())?;
        columns.append(entry)?;
    }
    let parts = PyList::empty(py);
    for part in &summary.parts {
        let entry = PyDict::new(py);
        entry.set_item("path", &part.path)?;
        entry.set_item("offset", part.offset)?;
        entry.set_item("bytes", part.bytes)?;
        parts.append(entry)?;
    }
    let metadata = PyDict::new(py);
    for (key, value) in &summary.metadata {
        metadata.set_item(key, value)?;
    }
    let is_coo = Form::of(schema) == Form::Coo;
    let matrix_rows = shape::matrix_rows(schema);
    let rows = if is_coo { matrix_rows } else { summary.rows.or(matrix_rows) };
    let dict = PyDict::new(py);
    dict.set_item("file", file)?;
    dict.set_item("format", summary.format)?;
    dict.set_item("dialect", summary.dialect)?;
    dict.set_item("dialect_reason", &summary.dialect_reason)?;
    dict.set_item("also_fits", &summary.also_fits)?;
    dict.set_item("shape", Shape::of(schema).name())?;
    dict.set_item("rows", rows)?;
    dict.set_item("columns", columns)?;
    dict.set_item("bytes", summary.bytes)?;
    dict.set_item("parts", parts)?;
    dict.set_item("members", &summary.members)?;
    dict.set_item("metadata", metadata)?;
    dict.set_item("notes", &summary.notes)?;
    if Shape::of(schema) == Shape::Matrix {
        let nonzeros = if is_coo { summary.nonzeros.or(summary.rows) } else { summary.nonzeros };
        dict.set_item("cols", shape::matrix_cols(schema))?;
        dict.set_item("value_type", shape::matrix_value_type(schema).map(|kind| print_type(&kind)))?;
        dict.set_item("nonzeros", nonzeros)?;
    }
    Ok(dict)
}
