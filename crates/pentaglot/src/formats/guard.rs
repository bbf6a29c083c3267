//! Converts panics of decoders in dependencies to errors about the file.
//!
//! Headers and lengths are checked before they are passed to a dependency, so this is not how invalid input is normally
//! reported. But the decoders of Arrow IPC and Parquet bodies are large, use `assert!` and slicing, and change with
//! every release: input that our checks do not cover must still not terminate the process.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::error::{Error, Result};

thread_local! {
    /// The nesting depth of guards on this thread.
    static GUARDS: Cell<u32> = const { Cell::new(0) };
}

/// Whether this thread is inside a decoder whose panic becomes an [`Error`]: a panic hook should then print
/// nothing.
pub fn panic_is_guarded() -> bool {
    GUARDS.get() > 0
}

/// The result of `decode`; a panic becomes a `Malformed` error.
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
