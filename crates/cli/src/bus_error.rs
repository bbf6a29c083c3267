//! Handles SIGBUS: a file that is truncated while it is mapped gives one line and status 2.
#![allow(unsafe_code, reason = "only this file of the command handles a signal")]

use pentaglot::map::InPlace;

/// Permission to map `file`, after the signal handler is installed; `None` on systems without that signal.
#[cfg(unix)]
pub(crate) fn permit_map(file: &str) -> Option<InPlace> {
    use std::sync::OnceLock;

    /// The line that the handler prints. Complete before the handler is installed, never changed after.
    static LINE: OnceLock<Vec<u8>> = OnceLock::new();

    extern "C" fn on_bus_error(_: libc::c_int) {
        let line = LINE.get().map_or(&[][..], Vec::as_slice);
        // SAFETY: `write` and `_exit` are async-signal-safe, and the line outlives the process.
        unsafe {
            libc::write(libc::STDERR_FILENO, line.as_ptr().cast(), line.len());
            libc::_exit(2);
        }
    }

    LINE.get_or_init(|| {
        let text = format!("{file}: the file became shorter, or could not be read, while it was in use");
        format!("{}\n", crate::screen::escape(&text)).into_bytes()
    });
    // SAFETY: the action is a plain C structure, completely initialised, with a handler that only makes
    // async-signal-safe calls. The command maps one file per run and only reads it; if the file is truncated, the
    // handler ends the process before the missing bytes are used. Structures over words that change give wrong answers
    // at worst.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = on_bus_error as extern "C" fn(libc::c_int) as usize;
        // Rust's own threads have an alternate stack for signals.
        action.sa_flags = libc::SA_ONSTACK;
        libc::sigemptyset(&mut action.sa_mask);
        (libc::sigaction(libc::SIGBUS, &action, std::ptr::null_mut()) == 0).then(|| InPlace::permit())
    }
}

/// Without that signal nothing is mapped: files are read into memory.
#[cfg(not(unix))]
pub(crate) fn permit_map(_: &str) -> Option<InPlace> {
    None
}
