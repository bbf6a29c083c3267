//! [`Source`]: the input of a reader: [`ReadAt`] (a file, memory, a spool, or the caller's own) or a stream that is
//! read once.
//!
//! Every byte that a format reads is counted here, so tests can assert that a reader reads only what it needs.

mod cache;
mod lines;
mod packing;
mod read_at;
mod spool;
mod stream;
#[cfg(test)]
mod tests;
mod window;

use std::fs::File;
use std::io::{self, Read, Seek};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use arrow_buffer::Buffer;

use self::cache::Cached;
pub use self::packing::Packing;
pub use self::read_at::ReadAt;
pub(crate) use self::read_at::read_until_full;
pub(crate) use self::read_at::{FileBytes, MemoryBytes};
use self::read_at::{append_at, read_full, sibling_path};
pub(crate) use self::spool::Spool;
use self::stream::{BoxRead, Stream};
pub(crate) use self::window::Window;
use crate::control::Control;
use crate::cursor::{allocate_zeroed, reserve};
use crate::error::{Context, Error, ErrorKind, Result};
use crate::limits::{Budget, Limits};
use crate::redact::redacted;

/// How many bytes of a stream are read in advance, for detection.
pub const HEAD_BYTES: usize = 64 << 10;

/// The input of a reader. Clones share the same file or stream, and the count of bytes read.
///
/// ```
/// use pentaglot::Source;
/// let source = Source::from_bytes("numbers", vec![1u8, 2, 3, 4]);
/// let mut two = [0; 2];
/// source.read_exact_at(1, &mut two)?;
/// assert_eq!((two, source.len(), source.bytes_read()), ([2, 3], Some(4), 2));
/// # Ok::<(), pentaglot::Error>(())
/// ```
#[derive(Clone)]
pub struct Source {
    shared: Arc<Shared>,
}

struct Shared {
    name: String,
    path: Option<PathBuf>,
    bytes: Bytes,
    /// The bytes whose name side files are derived from, if they differ: the compressed file, or the original of a
    /// copy.
    beside: Option<Arc<dyn ReadAt>>,
    bytes_read: AtomicU64,
    /// The job that reads this source.
    control: OnceLock<Control>,
    /// The limits and the memory of that job, for a stream that is spooled.
    budget: OnceLock<Budget>,
}

enum Bytes {
    At(Arc<dyn ReadAt>),
    /// Costly bytes, with a cache.
    Cached(Arc<Cached>),
    Stream(Mutex<Stream>),
}

impl Bytes {
    fn of(bytes: Arc<dyn ReadAt>) -> Self {
        if bytes.is_costly() { Bytes::Cached(Arc::new(Cached::new(bytes))) } else { Bytes::At(bytes) }
    }
}

impl Source {
    /// Opens a file. Anything other than a regular file, such as a named pipe, becomes a stream.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let name = path.display().to_string();
        let cannot = |error| Error::io("cannot open", error);
        let file = File::open(path).map_err(cannot)?;
        let meta = file.metadata().map_err(cannot)?;
        if meta.is_dir() {
            return Err(Error::usage("expected a file, found a directory"));
        }
        let bytes = if meta.is_file() {
            Bytes::At(Arc::new(FileBytes::new(file, Some(path.to_path_buf())).map_err(cannot)?))
        } else {
            Bytes::Stream(Mutex::new(Stream::new(file)))
        };
        Ok(Source::new(name, Some(path.to_path_buf()), bytes, None))
    }

    /// Bytes in memory.
    pub fn from_bytes(name: impl Into<String>, bytes: impl Into<Buffer>) -> Self {
        Source::from_read_at(name, Arc::new(MemoryBytes(bytes.into())))
    }

    /// Bytes that can be read at any offset. Costly ones are read through a cache.
    pub fn from_read_at(name: impl Into<String>, bytes: Arc<dyn ReadAt>) -> Self {
        Source::new(name.into(), None, Bytes::of(bytes), None)
    }

    /// A stream, which can be read once.
    pub fn from_reader(name: impl Into<String>, reader: impl Read + Send + 'static) -> Self {
        Source::new(name.into(), None, Bytes::Stream(Mutex::new(Stream::new(reader))), None)
    }

    fn new(name: String, path: Option<PathBuf>, bytes: Bytes, beside: Option<Arc<dyn ReadAt>>) -> Self {
        let name = redacted(&name).into_owned();
        let (bytes_read, control, budget) = (AtomicU64::new(0), OnceLock::new(), OnceLock::new());
        Source { shared: Arc::new(Shared { name, path, bytes, beside, bytes_read, control, budget }) }
    }

    /// The bytes, if they can be read at any offset.
    fn bytes(&self) -> Result<&dyn ReadAt> {
        match &self.shared.bytes {
            Bytes::At(bytes) => Ok(&**bytes),
            Bytes::Cached(bytes) => Ok(&**bytes),
            Bytes::Stream(_) => Err(Error::usage("a stream cannot be read at an offset")),
        }
    }

    /// The bytes whose name side files are derived from.
    fn beside(&self) -> Option<Arc<dyn ReadAt>> {
        self.shared.beside.clone().or_else(|| match &self.shared.bytes {
            Bytes::At(bytes) => Some(Arc::clone(bytes)),
            Bytes::Cached(bytes) => Some(Arc::clone(bytes) as _),
            Bytes::Stream(_) => None,
        })
    }

    /// Sets the budget for spooling a stream (see [`Limits::max_spool`]), unless one is already set.
    pub fn set_budget(&self, budget: &Budget) {
        let _ = self.shared.budget.set(budget.clone());
    }

    /// The name for messages, in which the secrets of an address are `…` (see [`redacted`](crate::redacted)).
    pub fn name(&self) -> &str {
        &self.shared.name
    }

    /// The path, if this is a file.
    pub fn path(&self) -> Option<&Path> {
        self.shared.path.as_deref()
    }

    /// The length in bytes, unless this is a stream.
    #[expect(clippy::len_without_is_empty, reason = "a stream cannot say whether it is empty")]
    pub fn len(&self) -> Option<u64> {
        self.bytes().ok().map(|bytes| bytes.len())
    }

    /// The bytes themselves, if they are in memory. They are not counted as read.
    pub fn memory(&self) -> Option<&Buffer> {
        self.bytes().ok()?.memory()
    }

    /// Whether reads are costly (see [`ReadAt::is_costly`]), so that few large reads are better than many small ones.
    pub fn is_costly(&self) -> bool {
        self.bytes().is_ok_and(|bytes| bytes.is_costly())
    }

    /// How many bytes have been read so far.
    pub fn bytes_read(&self) -> u64 {
        self.shared.bytes_read.load(Ordering::Relaxed)
    }

    /// Counts bytes that have been read. Returns an error if the job has been cancelled.
    fn count(&self, bytes: u64) -> Result<()> {
        self.shared.bytes_read.fetch_add(bytes, Ordering::Relaxed);
        self.shared.control.get().map_or(Ok(()), |control| control.count_bytes(bytes))
    }

    /// Makes this source an input of a job: its reads count as progress, and fail once the job is cancelled.
    pub(crate) fn attach(&self, control: &Control) {
        // An error means that it is an input of a job already.
        let _ = self.shared.control.set(control.clone());
    }

    /// The first bytes (at most [`HEAD_BYTES`]), without using up a stream.
    pub fn head(&self) -> Result<Vec<u8>> {
        match &self.shared.bytes {
            Bytes::Stream(stream) => stream.lock().unwrap_or_else(PoisonError::into_inner).head(),
            _ => {
                let bytes = self.bytes()?;
                let mut head = vec![0; HEAD_BYTES.min(usize::try_from(bytes.len()).unwrap_or(usize::MAX))];
                let count = self.read_at(0, &mut head)?;
                head.truncate(count);
                Ok(head)
            }
        }
    }

    /// Reads at `offset` until `buffer` is full or the bytes end; returns how many were read.
    pub fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        let count = read_full(self.bytes()?, offset, buffer).at(offset)?;
        self.count(count as u64)?;
        Ok(count)
    }

    /// Fills `buffer` from `offset`; returns a `Truncated` error if there are not enough bytes.
    pub fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        let count = self.read_at(offset, buffer)?;
        self.check_read(offset, count, buffer.len() as u64)
    }

    /// `len` bytes from `offset` in new aligned memory (bytes in memory are shared, not copied). The length
    /// is compared with the file and the budget first.
    pub fn read_range(&self, offset: u64, len: u64, budget: &Budget) -> Result<Buffer> {
        self.check_range(offset, len)?;
        if let Some(memory) = self.memory() {
            self.count(len)?;
            return Ok(memory.slice_with_length(offset as usize, len as usize));
        }
        if let Some(file) = self.bytes()?.file() {
            let mut bytes = reserve::<u8>(len, budget).at(offset)?;
            // Allocators align bytes for any type, though they need not.
            if bytes.as_ptr().cast::<i128>().is_aligned() {
                append_at(file, offset, &mut bytes).at(offset)?;
                bytes.truncate(usize::try_from(len).unwrap_or(usize::MAX));
                self.count(bytes.len() as u64)?;
                self.check_read(offset, bytes.len(), len)?;
                return Ok(bytes.into_memory().into());
            }
        }
        let mut memory = allocate_zeroed(len, budget).at(offset)?;
        self.read_exact_at(offset, memory.as_slice_mut())?;
        Ok(memory.into())
    }

    /// Returns a `Truncated` error if fewer bytes were read than asked for.
    fn check_read(&self, offset: u64, count: usize, len: u64) -> Result<()> {
        if (count as u64) < len {
            self.check_unchanged()?;
            return Err(Error::truncated(format_args!("{len} bytes"), count).at(offset));
        }
        Ok(())
    }

    /// Like [`read_range`](Self::read_range) for several ranges; costly bytes are fetched in as few reads as possible.
    pub fn read_ranges(&self, ranges: &[Range<u64>], budget: &Budget) -> Result<Vec<Buffer>> {
        let mut total = 0u64;
        for range in ranges {
            let len = range.end.checked_sub(range.start);
            let len = len.ok_or_else(|| Error::usage("expected a range that begins before it ends"))?;
            self.check_range(range.start, len)?;
            total = total.saturating_add(len);
        }
        if !self.is_costly() {
            return ranges
                .iter()
                .map(|range| self.read_range(range.start, range.end - range.start, budget))
                .collect();
        }
        budget.check(total)?;
        let parts = self.bytes()?.read_ranges(ranges)?;
        self.count(total)?;
        Ok(parts)
    }

    /// Announces that a range will be read next: if reads are costly, it is fetched in one request, up to 4
    /// MiB.
    pub(crate) fn prefetch(&self, range: Range<u64>) -> Result<()> {
        match &self.shared.bytes {
            Bytes::Cached(bytes) => Ok(bytes.prefetch(range)?),
            _ => Ok(()),
        }
    }

    fn check_range(&self, offset: u64, len: u64) -> Result<()> {
        let total = self.bytes()?.len();
        if offset.checked_add(len).is_none_or(|end| end > total) {
            let left = total.saturating_sub(offset);
            return Err(Error::truncated(format_args!("{len} bytes"), left).at(offset));
        }
        Ok(())
    }

    /// Returns an error if the bytes are no longer those that were opened: the length or modification time of the
    /// file has changed.
    pub fn check_unchanged(&self) -> Result<()> {
        if self.unchanged()? {
            return Ok(());
        }
        Err(Error::new(ErrorKind::Io, "the file changed while it was read"))
    }

    /// Whether the bytes are still those that were opened, as far as that can be determined cheaply.
    pub fn unchanged(&self) -> Result<bool> {
        // The reader of a stream checks its underlying bytes itself.
        Ok(self.bytes().map_or(Ok(true), |bytes| bytes.unchanged())?)
    }

    /// All bytes from the start. A stream returns them only once.
    pub fn reader(&self) -> Result<SourceReader> {
        self.reader_at(0)
    }

    /// All bytes from `offset`; on a stream the bytes before it are read and dropped.
    pub fn reader_at(&self, offset: u64) -> Result<SourceReader> {
        let stream = match &self.shared.bytes {
            Bytes::Stream(stream) => {
                let mut reader = stream.lock().unwrap_or_else(PoisonError::into_inner).reader()?;
                io::copy(&mut reader.by_ref().take(offset), &mut io::sink())?;
                Some(reader)
            }
            _ => None,
        };
        Ok(SourceReader { source: self.clone(), offset, stream })
    }

    /// This source if it can be read at any offset; otherwise its bytes, spooled to memory or a temporary
    /// file.
    pub fn seekable(&self) -> Result<Source> {
        if self.is_seekable() {
            return Ok(self.clone());
        }
        let mut spool = Spool::new(self.shared.budget.get_or_init(Budget::default)).limited();
        io::copy(&mut io::BufReader::with_capacity(HEAD_BYTES, self.reader()?), &mut spool)?;
        let Shared { name, path, beside, .. } = &*self.shared;
        Ok(Source::new(name.clone(), path.clone(), Bytes::At(spool.into_read_at()?), beside.clone()))
    }

    /// Like [`seekable`](Self::seekable), but a stream whose first bytes are not `plausible` is not spooled. The source
    /// then ends after those bytes, so that the format's reader reports what is wrong with them.
    pub fn seekable_if(&self, plausible: impl FnOnce(&[u8]) -> bool) -> Result<Source> {
        if !self.is_seekable() {
            let head = self.head()?;
            if !plausible(&head) {
                return Ok(Source::from_bytes(self.name(), head));
            }
        }
        self.seekable()
    }

    /// Whether the bytes can be read at any offset.
    pub fn is_seekable(&self) -> bool {
        self.bytes().is_ok()
    }

    /// The decompressed bytes of a compressed file, as a stream that can be restarted if the file can.
    pub fn unpack(&self, packing: Packing, limits: &Limits) -> Result<Source> {
        let own = limits.clone();
        let unpacked =
            self.through(Packing::strip(self.name()), move |reader| packing.unpack(reader, own.clone()))?;
        // No effect if the compressed file has a budget already.
        unpacked.set_budget(&limits.budget());
        Ok(unpacked)
    }

    /// As [`unpack`](Self::unpack), for a damaged file: where the packed data is cut, the bytes end.
    pub(crate) fn unpack_damaged(&self, packing: Packing, limits: &Limits) -> Result<Source> {
        let own = limits.clone();
        let unpacked = self.through(Packing::strip(self.name()), move |reader| {
            Ok(Box::new(packing::UntilCut(packing.unpack(reader, own.clone())?)))
        })?;
        unpacked.set_budget(&limits.budget());
        Ok(unpacked)
    }

    /// The bytes that `open` produces from a reader of these bytes: a stream that can be restarted if this source can.
    pub(crate) fn through(
        &self,
        name: &str,
        open: impl Fn(SourceReader) -> Result<BoxRead> + Send + 'static,
    ) -> Result<Source> {
        let stream = Bytes::Stream(Mutex::new(Stream::through(self, open)?));
        let source = Source::new(name.to_owned(), self.shared.path.clone(), stream, self.beside());
        if let Some(budget) = self.shared.budget.get() {
            source.set_budget(budget);
        }
        Ok(source)
    }

    /// Whether this is a stream that can be restarted.
    fn can_restart(&self) -> bool {
        match &self.shared.bytes {
            Bytes::Stream(stream) => stream.lock().unwrap_or_else(PoisonError::into_inner).can_restart(),
            _ => false,
        }
    }

    /// The file in the same folder named like this one with `suffix` appended, if it exists.
    pub fn sibling(&self, suffix: &str) -> Result<Option<Source>> {
        let Some(beside) = self.beside() else { return Ok(None) };
        let Some(bytes) = beside.sibling(suffix)? else { return Ok(None) };
        let path = self.sibling_path(suffix);
        let name = path
            .as_ref()
            .map_or_else(|| format!("{}{suffix}", self.name()), |path| path.display().to_string());
        Ok(Some(Source::new(name, path, Bytes::of(bytes), None)))
    }

    /// The path that [`sibling`](Self::sibling) would open.
    pub fn sibling_path(&self, suffix: &str) -> Option<PathBuf> {
        sibling_path(self.path()?, suffix)
    }
}

impl std::fmt::Debug for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Source").field("name", &self.name()).field("len", &self.len()).finish()
    }
}

/// The bytes of a [`Source`] in order. Seeks if the source is seekable.
pub struct SourceReader {
    source: Source,
    offset: u64,
    stream: Option<BoxRead>,
}

impl SourceReader {
    /// The offset of the next byte.
    pub fn offset(&self) -> u64 {
        self.offset
    }
}

impl Read for SourceReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = match &mut self.stream {
            Some(stream) => {
                let count = stream.read(buffer)?;
                self.source.count(count as u64)?;
                count
            }
            None => self.source.read_at(self.offset, buffer)?,
        };
        // A file that was truncated or rewritten meanwhile may end early.
        if count == 0 && !buffer.is_empty() {
            self.source.check_unchanged()?;
        }
        self.offset += count as u64;
        Ok(count)
    }
}

impl Seek for SourceReader {
    fn seek(&mut self, to: io::SeekFrom) -> io::Result<u64> {
        let len = self.source.len().ok_or_else(|| io::Error::other(Error::usage("a stream cannot seek")))?;
        let target = match to {
            io::SeekFrom::Start(offset) => Some(offset),
            io::SeekFrom::End(delta) => len.checked_add_signed(delta),
            io::SeekFrom::Current(delta) => self.offset.checked_add_signed(delta),
        };
        self.offset = target.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(self.offset)
    }
}
