//! [`Source`]: where bytes come from. A file (by positioned reads), bytes in memory, or a stream (read once).
//!
//! Every byte that a format reads passes through here and is counted, so tests can say "touched only what it needs".

use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use arrow_buffer::Buffer;

use crate::control::Control;
use crate::cursor::allocate_zeroed;
use crate::error::{Context, Error, Result};
use crate::limits::{Budget, Limits};

/// How many bytes of a stream are looked at before it is read, for detection.
pub const HEAD_BYTES: usize = 64 << 10;

/// A stream up to this size is spooled to memory, a longer one to a temporary file.
const SPOOL_MEMORY_BYTES: usize = 8 << 20;

/// Where bytes come from. Clones share the same file or stream, and the count of bytes read.
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
    kind: Kind,
    bytes_read: AtomicU64,
    /// The job that reads this source.
    control: OnceLock<Control>,
}

impl Shared {
    /// Counts bytes that have been read; errs if the job that reads them is to end.
    fn count(&self, bytes: u64) -> Result<()> {
        self.bytes_read.fetch_add(bytes, Ordering::Relaxed);
        self.control.get().map_or(Ok(()), |control| control.count_bytes(bytes))
    }
}

enum Kind {
    File { file: File, len: u64 },
    Bytes(Buffer),
    Stream(Mutex<Stream>),
}

type BoxRead = Box<dyn Read + Send>;

struct Stream {
    /// Bytes read ahead for detection, not yet handed out.
    head: Vec<u8>,
    rest: Option<BoxRead>,
    /// Starts the stream again, where that is possible (gzip round a file).
    reopen: Option<Box<dyn Fn() -> Result<BoxRead> + Send>>,
}

impl Source {
    /// Opens a file. What is not a regular file (a named pipe) becomes a stream.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let name = path.display().to_string();
        let file = File::open(path).map_err(|error| Error::io("cannot open", error))?;
        let meta = file.metadata().map_err(|error| Error::io("cannot open", error))?;
        if meta.is_dir() {
            return Err(Error::usage("expected a file, found a directory"));
        }
        let kind = if meta.is_file() {
            Kind::File { file, len: meta.len() }
        } else {
            Kind::Stream(Mutex::new(Stream { head: Vec::new(), rest: Some(Box::new(file)), reopen: None }))
        };
        Ok(Source::new(name, Some(path.to_path_buf()), kind))
    }

    /// Bytes in memory.
    pub fn from_bytes(name: impl Into<String>, bytes: impl Into<Buffer>) -> Self {
        Source::new(name.into(), None, Kind::Bytes(bytes.into()))
    }

    /// A stream, which can be read once.
    pub fn from_reader(name: impl Into<String>, reader: impl Read + Send + 'static) -> Self {
        let stream = Stream { head: Vec::new(), rest: Some(Box::new(reader)), reopen: None };
        Source::new(name.into(), None, Kind::Stream(Mutex::new(stream)))
    }

    fn new(name: String, path: Option<PathBuf>, kind: Kind) -> Self {
        let (bytes_read, control) = (AtomicU64::new(0), OnceLock::new());
        Source { shared: Arc::new(Shared { name, path, kind, bytes_read, control }) }
    }

    /// Makes this source an input of a job: its reads count as the job's progress, and end with the job.
    pub(crate) fn attach(&self, control: &Control) {
        if self.shared.control.set(control.clone()).is_ok() {
            control.expect_bytes(self.len());
        }
    }

    /// The name that messages use.
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
        match &self.shared.kind {
            Kind::File { len, .. } => Some(*len),
            Kind::Bytes(bytes) => Some(bytes.len() as u64),
            Kind::Stream(_) => None,
        }
    }

    /// The bytes themselves, if they are in memory. They are not counted as read.
    pub fn memory(&self) -> Option<&Buffer> {
        match &self.shared.kind {
            Kind::Bytes(bytes) => Some(bytes),
            _ => None,
        }
    }

    /// How many bytes have been read so far.
    pub fn bytes_read(&self) -> u64 {
        self.shared.bytes_read.load(Ordering::Relaxed)
    }

    /// The first bytes (at most [`HEAD_BYTES`]), without using up a stream.
    pub fn head(&self) -> Result<Vec<u8>> {
        if let Kind::Stream(stream) = &self.shared.kind {
            let mut stream = stream.lock().unwrap_or_else(PoisonError::into_inner);
            let Stream { head, rest: Some(rest), .. } = &mut *stream else {
                return Err(used_up());
            };
            let missing = (HEAD_BYTES - head.len().min(HEAD_BYTES)) as u64;
            rest.take(missing).read_to_end(head)?;
            return Ok(head.clone());
        }
        let mut head = Vec::new();
        self.reader()?.take(HEAD_BYTES as u64).read_to_end(&mut head)?;
        Ok(head)
    }

    /// Reads at `offset` until `buffer` is full or the bytes end; gives how many were read.
    pub fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        let count = match &self.shared.kind {
            Kind::File { file, .. } => read_file_at(file, offset, buffer).at(offset)?,
            Kind::Bytes(bytes) => {
                let start = usize::try_from(offset).unwrap_or(usize::MAX).min(bytes.len());
                let rest = &bytes.as_slice()[start..];
                let count = rest.len().min(buffer.len());
                buffer[..count].copy_from_slice(&rest[..count]);
                count
            }
            Kind::Stream(_) => return Err(Error::usage("a stream cannot be read at an offset")),
        };
        self.shared.count(count as u64)?;
        Ok(count)
    }

    /// Fills `buffer` from `offset`, or errs with `Truncated`.
    pub fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        let count = self.read_at(offset, buffer)?;
        if count < buffer.len() {
            return Err(Error::truncated(format_args!("{} bytes", buffer.len()), count).at(offset));
        }
        Ok(())
    }

    /// `len` bytes from `offset` in aligned memory of their own (bytes in memory are shared, not copied).
    /// The length is held against the file and the budget first.
    pub fn read_range(&self, offset: u64, len: u64, budget: &Budget) -> Result<Buffer> {
        let total = self.len().ok_or_else(|| Error::usage("a stream cannot be read at an offset"))?;
        if offset.checked_add(len).is_none_or(|end| end > total) {
            let left = total.saturating_sub(offset);
            return Err(Error::truncated(format_args!("{len} bytes"), left).at(offset));
        }
        if let Kind::Bytes(bytes) = &self.shared.kind {
            self.shared.count(len)?;
            return Ok(bytes.slice_with_length(offset as usize, len as usize));
        }
        let mut memory = allocate_zeroed(len, budget).at(offset)?;
        self.read_exact_at(offset, memory.as_slice_mut())?;
        Ok(memory.into())
    }

    /// All bytes from the start. A stream gives them once.
    pub fn reader(&self) -> Result<SourceReader> {
        self.reader_at(0)
    }

    /// All bytes from `offset`; on a stream the bytes before it are read and dropped.
    pub fn reader_at(&self, offset: u64) -> Result<SourceReader> {
        let stream = match &self.shared.kind {
            Kind::Stream(stream) => {
                let mut stream = stream.lock().unwrap_or_else(PoisonError::into_inner);
                let head = std::mem::take(&mut stream.head);
                let rest = match (stream.rest.take(), &stream.reopen) {
                    (Some(rest), _) => rest,
                    (None, Some(reopen)) => reopen()?,
                    (None, None) => return Err(used_up()),
                };
                let mut reader: BoxRead = Box::new(io::Cursor::new(head).chain(rest));
                io::copy(&mut reader.by_ref().take(offset), &mut io::sink())?;
                Some(reader)
            }
            _ => None,
        };
        Ok(SourceReader { source: self.clone(), offset, stream })
    }

    /// This source if it can be read at any offset; else its bytes, spooled to memory or a temporary file.
    pub fn seekable(&self) -> Result<Source> {
        let Kind::Stream(_) = &self.shared.kind else { return Ok(self.clone()) };
        let mut reader = self.reader()?;
        let mut memory = Vec::new();
        reader.by_ref().take(SPOOL_MEMORY_BYTES as u64).read_to_end(&mut memory)?;
        let kind = if memory.len() < SPOOL_MEMORY_BYTES {
            Kind::Bytes(memory.into())
        } else {
            let spool = |error| Error::io("cannot spool to a temporary file", error);
            let mut file = tempfile::tempfile().map_err(spool)?;
            file.write_all(&memory).map_err(spool)?;
            drop(memory);
            // An error of the reader is not the spool's: it may be one of ours.
            let len = SPOOL_MEMORY_BYTES as u64 + io::copy(&mut reader, &mut file)?;
            Kind::File { file, len }
        };
        Ok(Source::new(self.shared.name.clone(), self.shared.path.clone(), kind))
    }

    /// Whether the bytes can be read at any offset.
    pub fn is_seekable(&self) -> bool {
        !matches!(self.shared.kind, Kind::Stream(_))
    }

    /// The unpacked bytes of a gzip file, as a stream that can be started again if the file can.
    pub fn gunzip(&self, limits: &Limits) -> Result<Source> {
        let unpack = |packed: SourceReader, limits: Limits| -> BoxRead {
            let packed = Counting { inner: packed, count: Arc::default() };
            let input = Arc::clone(&packed.count);
            let inner = flate2::read::MultiGzDecoder::new(packed);
            Box::new(Unpacked { inner, input, output: 0, limits })
        };
        let first = unpack(self.reader()?, limits.clone());
        let reopen: Option<Box<dyn Fn() -> Result<BoxRead> + Send>> = if self.is_seekable() {
            let (packed, limits) = (self.clone(), limits.clone());
            Some(Box::new(move || Ok(unpack(packed.reader()?, limits.clone()))))
        } else {
            None
        };
        let name = self.name().strip_suffix(".gz").unwrap_or(self.name()).to_owned();
        let stream = Stream { head: Vec::new(), rest: Some(first), reopen };
        Ok(Source::new(name, self.shared.path.clone(), Kind::Stream(Mutex::new(stream))))
    }

    /// The file beside this one whose name is this name and `suffix`, if there is one.
    pub fn sibling(&self, suffix: &str) -> Result<Option<Source>> {
        let Some(path) = self.sibling_path(suffix) else { return Ok(None) };
        match Source::open(&path) {
            Ok(source) => Ok(Some(source)),
            Err(_) if !path.exists() => Ok(None),
            Err(error) => Err(error.field(path.display().to_string())),
        }
    }

    /// The path that [`sibling`](Self::sibling) would open.
    pub fn sibling_path(&self, suffix: &str) -> Option<PathBuf> {
        let mut name = self.path()?.file_name()?.to_owned();
        name.push(suffix);
        Some(self.path()?.with_file_name(name))
    }
}

impl std::fmt::Debug for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Source").field("name", &self.name()).field("len", &self.len()).finish()
    }
}

fn used_up() -> Error {
    Error::usage("a stream can be read once only; give a file to read it again")
}

#[cfg(unix)]
fn read_some_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    std::os::unix::fs::FileExt::read_at(file, buffer, offset)
}

#[cfg(windows)]
fn read_some_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    std::os::windows::fs::FileExt::seek_read(file, buffer, offset)
}

fn read_file_at(file: &File, mut offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
    let mut done = 0;
    while done < buffer.len() {
        match read_some_at(file, &mut buffer[done..], offset) {
            Ok(0) => break,
            Ok(count) => {
                done += count;
                offset += count as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(done)
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
                self.source.shared.count(count as u64)?;
                count
            }
            None => self.source.read_at(self.offset, buffer)?,
        };
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

/// A gzip decoder that holds its output against `max_ratio` and speaks our errors.
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
