//! The last line of defence around a dependency that decodes: its panic becomes an error about the file.
//!
//! Headers and lengths are walked before a dependency sees them, so this is not how bad input is normally reported. But the decoders
//! of Arrow IPC and Parquet bodies are large, use `assert!` and slicing, and change with every release: what our walk
//! does not foresee must still not end the process that called us.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::error::{Error, Result};

thread_local! {
    /// How many guards this thread is inside of.
    static GUARDS: Cell<u32> = const { Cell::new(0) };
}

/// Whether this thread is inside a decoder whose panic becomes an [`Error`]: a panic hook should then stay silent.
pub fn panic_is_guarded() -> bool {
    GUARDS.get() > 0
}

/// What `decode` gives; its panic is the file's fault.
///
/// Nothing that `decode` touched is used after a panic: callers drop their decoder and end the stream.
pub(crate) fn guarded<T>(decode: impl FnOnce() -> Result<T>) -> Result<T> {
    GUARDS.set(GUARDS.get() + 1);
    let result = catch_unwind(AssertUnwindSafe(decode));
    GUARDS.set(GUARDS.get() - 1);
    result.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a panic");
        Err(Error::malformed("content that its decoder accepts", text).rule("decoder"))
    })
}
