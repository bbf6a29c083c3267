//! `pentaglot._native`: what the Python package calls. It holds no policy of its own: arguments are checked, defaults are
//! chosen and results are wrapped in `python/pentaglot`. One file per part of the package.

mod arrays;
mod batches;
mod conversion;
mod document;
mod dynd;
mod error;
mod given;
mod info;
mod input;
mod outline;
mod output;
mod succinct;
mod watch;

use pyo3::prelude::*;

/// The native part of the package `pentaglot`.
#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    batches::register(module)?;
    document::register(module)?;
    conversion::register(module)?;
    outline::register(module)?;
    info::register(module)?;
    dynd::register(module)?;
    succinct::register(module)
}
