//! A pipe, a device, or anything else that takes bytes in order.

use std::io::{self, Write};

use super::Output;

/// Bytes reach the writer at once and cannot be undone.
pub(super) struct Pipe<W>(pub(super) W);

impl<W: Write + Send> Output for Pipe<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.write_all(bytes)?;
        // A writer with a buffer of its own must not delay what the sink has decided to send.
        self.0.flush()
    }

    fn can_patch(&self) -> bool {
        false
    }

    fn patch(&mut self, _: u64, _: &[u8]) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn sibling(&mut self, _: &str) -> io::Result<Option<Box<dyn Output>>> {
        Ok(None)
    }

    fn commit(mut self: Box<Self>) -> io::Result<()> {
        self.0.flush()
    }
}
