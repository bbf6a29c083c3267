//! The command `pentaglot`, from the wheel: the same code as that of the program.

use std::ffi::OsString;

use pyo3::prelude::*;

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(command, module)?)
}

/// Runs the command with these words, of which the first is its name, and gives its exit status.
#[pyfunction]
fn command(py: Python<'_>, words: Vec<OsString>) -> u8 {
    py.detach(|| pentaglot_cli::run_command(&words))
}
