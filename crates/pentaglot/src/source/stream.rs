//! Bytes that come in order and once, and gzip around bytes.

use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::{HEAD_BYTES, Source, SourceReader};
use crate::error::{Error, Result};
use crate::limits::Limits;

pub(super) type BoxRead = Box<dyn Read + Send>;

/// Starts a stream again.
type Reopen = Box<dyn Fn() -> Result<BoxRead> + Send>;

/// Bytes in order, of which the first may have been looked at.
pub(super) struct Stream {
    /// Bytes read ahead for detection, not yet given to a reader.
    head: Vec<u8>,
    rest: Option<BoxRead>,
    /// Starts the stream again, where that is possible (gzip around a file).
    reopen: Option<Reopen>,
}

impl Stream {
    pub(super) fn new(input: impl Read + Send + 'static) -> Self {
        Stream { head: Vec::new(), rest: Some(Box::new(input)), reopen: None }
    }

    /// The first bytes, without using them up.
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

    /// The unpacked bytes of a gzip file; they can be read again if the file can.
    pub(super) fn gunzip(packed: &Source, limits: &Limits) -> Result<Self> {
        let first = unpack(packed.reader()?, limits.clone());
        let (again, limits) = (packed.clone(), limits.clone());
        let reopen: Reopen = Box::new(move || Ok(unpack(again.reader()?, limits.clone())));
        Ok(Stream { head: Vec::new(), rest: Some(first), reopen: packed.is_seekable().then_some(reopen) })
    }
}

fn used_up() -> Error {
    Error::usage("a stream can be read once only; give a file to read it again")
}

fn unpack(packed: SourceReader, limits: Limits) -> BoxRead {
    let packed = Counting { inner: packed, count: Arc::default() };
    let input = Arc::clone(&packed.count);
    let inner = flate2::read::MultiGzDecoder::new(packed);
    Box::new(Unpacked { inner, input, output: 0, limits })
}

struct Counting<R> {
    inner: R,
    count: Arc<AtomicU64>,
}

impl<R: Read> Read for Counting<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.count.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }
}

/// A gzip decoder that compares its output with `max_ratio` and gives our errors.
struct Unpacked<R> {
    inner: R,
    input: Arc<AtomicU64>,
    output: u64,
    limits: Limits,
}

impl<R: Read> Read for Unpacked<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let input = || self.input.load(Ordering::Relaxed);
        let count = self.inner.read(buffer).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => {
                Error::truncated("more gzip data", "the end of the file").at(input()).into()
            }
            io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData => {
                io::Error::from(Error::malformed("sound gzip data", error).at(input()))
            }
            _ => error,
        })?;
        self.output += count as u64;
        self.limits.check_ratio(input(), self.output)?;
        Ok(count)
    }
}
