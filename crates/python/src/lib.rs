//! `pentaglot._native`: what the Python package calls. It holds no policy of its own: arguments are checked, defaults are
//! chosen and results are wrapped in `python/pentaglot`. One file per part of the package.

mod answers;
mod arrays;
mod batches;
mod command;
mod conversion;
mod document;
mod dynd;
mod dynd_value;
mod error;
mod given;
mod info;
mod input;
mod look;
mod masked;
mod outline;
mod output;
mod store;
mod succinct;
mod trust;
mod watch;

use pyo3::prelude::*;

/// A decoder that panics on a broken file is reported as that file's error, and not on standard error too.
fn quiet_guarded_panics() {
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if !pentaglot::panic_is_guarded() {
            hook(panic);
        }
    }));
}

/// The native part of the package `pentaglot`.
#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    quiet_guarded_panics();
    batches::register(module)?;
    command::register(module)?;
    document::register(module)?;
    conversion::register(module)?;
    outline::register(module)?;
    info::register(module)?;
    dynd::register(module)?;
    succinct::register(module)?;
    trust::register(module)?;
    store::register(module)?;
    look::register(module)
}
