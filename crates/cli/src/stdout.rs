//! Standard output that reports errors.
//!
//! The standard library treats writes to a closed standard output as successful.

use std::io::{self, Write};

use pentaglot::{Error, ErrorKind};

use crate::process;

/// Its name in errors.
pub(crate) const NAME: &str = "standard output";

/// Standard output without a buffer. Its errors carry its name.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stdout;

impl Write for Stdout {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written =
            if process::stdout_was_closed() { Err(io::Error::other("it is closed")) } else { write(bytes) };
        written.map_err(|error| match error.kind() {
            io::ErrorKind::Interrupted => error,
            // Only pipes have a reader that can close them; otherwise this is an ordinary error.
            io::ErrorKind::BrokenPipe if !is_pipe() => {
                Error::new(ErrorKind::Io, format!("cannot write: {error}")).in_output(NAME).into()
            }
            _ => Error::io("cannot write", error).in_output(NAME).into(),
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        flush()
    }
}

#[cfg(unix)]
fn write(bytes: &[u8]) -> io::Result<usize> {
    Ok(rustix::io::write(io::stdout(), bytes)?)
}

#[cfg(unix)]
fn flush() -> io::Result<()> {
    Ok(())
}

#[cfg(unix)]
fn is_pipe() -> bool {
    use rustix::fs::FileType;
    rustix::fs::fstat(io::stdout()).is_ok_and(|status| {
        matches!(FileType::from_raw_mode(status.st_mode), FileType::Fifo | FileType::Socket)
    })
}

#[cfg(not(unix))]
fn write(bytes: &[u8]) -> io::Result<usize> {
    io::stdout().write(bytes)
}

#[cfg(not(unix))]
fn flush() -> io::Result<()> {
    io::stdout().flush()
}

#[cfg(not(unix))]
fn is_pipe() -> bool {
    true
}
