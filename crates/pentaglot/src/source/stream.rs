//! Bytes that can be read once, in order.

use std::io::{self, Read};

use super::{HEAD_BYTES, Source, SourceReader};
use crate::error::{Error, Result};

pub(super) type BoxRead = Box<dyn Read + Send>;

/// Restarts a stream.
type Reopen = Box<dyn Fn() -> Result<BoxRead> + Send>;

/// A stream whose first bytes may have been read for detection.
pub(super) struct Stream {
    /// Bytes read ahead for detection, not yet given to a reader.
    head: Vec<u8>,
    rest: Option<BoxRead>,
    /// Restarts the stream, where that is possible (compression around a file).
    reopen: Option<Reopen>,
}

impl Stream {
    pub(super) fn new(input: impl Read + Send + 'static) -> Self {
        Stream { head: Vec::new(), rest: Some(Box::new(input)), reopen: None }
    }

    /// The first bytes, which stay available to readers.
    pub(super) fn head(&mut self) -> Result<Vec<u8>> {
        let Stream { head, rest: Some(rest), .. } = self else {
            return Err(used_up());
        };
        let missing = (HEAD_BYTES - head.len().min(HEAD_BYTES)) as u64;
        rest.take(missing).read_to_end(head)?;
        Ok(head.clone())
    }

    /// All bytes from the start.
    pub(super) fn reader(&mut self) -> Result<BoxRead> {
        let head = std::mem::take(&mut self.head);
        let rest = match (self.rest.take(), &self.reopen) {
            (Some(rest), _) => rest,
            (None, Some(reopen)) => reopen()?,
            (None, None) => return Err(used_up()),
        };
        Ok(Box::new(io::Cursor::new(head).chain(rest)))
    }

    /// The bytes that `open` produces from a source; they can be read again if the source can.
    pub(super) fn through(
        source: &Source,
        open: impl Fn(SourceReader) -> Result<BoxRead> + Send + 'static,
    ) -> Result<Self> {
        let first = open(source.reader()?)?;
        let again = source.clone();
        let can_reopen = source.is_seekable() || source.can_restart();
        let reopen: Reopen = Box::new(move || open(again.reader()?));
        Ok(Stream { head: Vec::new(), rest: Some(first), reopen: can_reopen.then_some(reopen) })
    }

    /// Whether the stream can be restarted.
    pub(super) fn can_restart(&self) -> bool {
        self.reopen.is_some()
    }
}

fn used_up() -> Error {
    Error::usage("a stream can be read once only; give a file to read it again")
}
