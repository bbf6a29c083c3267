//! [`ReadAt`]: bytes that can be read at any offset, and its implementations for files and memory.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use arrow_buffer::Buffer;

use crate::cursor::allocate_zeroed;
use crate::error::Error;
use crate::limits::Limits;

/// Bytes that can be read at any offset by several threads: a file, memory, an object in a store.
///
/// ```
/// use std::io;
/// use std::sync::Arc;
/// use pentaglot::{ReadAt, Source};
///
/// /// A million zeros, generated on demand.
/// struct Zeros;
/// impl ReadAt for Zeros {
///     fn len(&self) -> u64 {
///         1_000_000
///     }
///     fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
///         let count = buffer.len().min(self.len().saturating_sub(offset) as usize);
///         buffer[..count].fill(0);
///         Ok(count)
///     }
///     fn is_costly(&self) -> bool {
///         false
///     }
/// }
/// let source = Source::from_read_at("zeros", Arc::new(Zeros));
/// assert_eq!(source.len(), Some(1_000_000));
/// ```
#[expect(clippy::len_without_is_empty, reason = "callers need the length only")]
pub trait ReadAt: Send + Sync {
    /// The length in bytes. It does not change.
    fn len(&self) -> u64;

    /// Reads at `offset` until `buffer` is full or the bytes end; returns how many were read.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize>;

    /// The bytes of several ranges. A range past the last byte is an error.
    ///
    /// The default reads one after the other; a store that can fetch several at a time should do so.
    fn read_ranges(&self, ranges: &[Range<u64>]) -> io::Result<Vec<Buffer>> {
        ranges.iter().map(|range| read_whole(self, range)).collect()
    }

    /// Whether each read is costly, such as a round trip to a server: a [`Source`](crate::Source) then adds a cache,
    /// which turns many small reads into few large ones.
    fn is_costly(&self) -> bool;

    /// Whether the bytes are still those that were opened, as far as that can be determined cheaply.
    fn unchanged(&self) -> io::Result<bool> {
        Ok(true)
    }

    /// The bytes named like these with `suffix` appended, if they exist.
    fn sibling(&self, suffix: &str) -> io::Result<Option<Arc<dyn ReadAt>>> {
        let _ = suffix;
        Ok(None)
    }

    /// The bytes themselves, if they are in memory, so that they are shared and not copied.
    fn memory(&self) -> Option<&Buffer> {
        None
    }

    /// The file, if the bytes are all of a file of this library.
    #[doc(hidden)]
    fn file(&self) -> Option<&File> {
        None
    }
}

/// Reads at `offset` until `buffer` is full or the bytes end, also if single reads are interrupted or return less.
pub(crate) fn read_full<R: ReadAt + ?Sized>(bytes: &R, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
    let mut done = 0;
    while done < buffer.len() {
        match bytes.read_at(offset.saturating_add(done as u64), &mut buffer[done..]) {
            Ok(0) => break,
            Ok(count) => done += count.min(buffer.len() - done),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        // No read past the end, since a request may be costly.
        if offset.saturating_add(done as u64) >= bytes.len() {
            break;
        }
    }
    Ok(done)
}

/// Reads until `buffer` is full or the input ends, also if single reads are interrupted or return less.
pub(crate) fn read_until_full(input: &mut impl io::Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut done = 0;
    while let Some(rest) = buffer.get_mut(done..).filter(|rest| !rest.is_empty()) {
        match input.read(rest) {
            Ok(0) => break,
            Ok(count) => done += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(done)
}

/// The bytes of one range, all of them.
fn read_whole<R: ReadAt + ?Sized>(bytes: &R, range: &Range<u64>) -> io::Result<Buffer> {
    let count = usize::try_from(range.end.saturating_sub(range.start)).map_err(io::Error::other)?;
    // The caller has compared the range with the length and its own budget.
    let unlimited = Limits { max_alloc: u64::MAX, ..Limits::default() };
    let mut memory = allocate_zeroed(count as u64, &unlimited.budget())?;
    let read = read_full(bytes, range.start, memory.as_slice_mut())?;
    if read < count {
        return Err(Error::truncated(format_args!("{count} bytes"), read).at(range.start).into());
    }
    Ok(memory.into())
}

/// A file, read by positioned reads.
pub(crate) struct FileBytes {
    file: File,
    len: u64,
    modified: Option<SystemTime>,
    /// Its path, unless it has no name.
    path: Option<PathBuf>,
}

impl FileBytes {
    /// An open regular file and its path.
    pub(crate) fn new(file: File, path: Option<PathBuf>) -> io::Result<Self> {
        let meta = file.metadata()?;
        Ok(FileBytes { file, len: meta.len(), modified: meta.modified().ok(), path })
    }
}

impl ReadAt for FileBytes {
    fn len(&self) -> u64 {
        self.len
    }

    fn read_at(&self, mut offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let mut done = 0;
        // Nothing is there, and systems refuse offsets of 64 bits.
        if offset >= self.len.max(1 << 62) {
            return Ok(0);
        }
        while done < buffer.len() {
            match read_some_at(&self.file, &mut buffer[done..], offset) {
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

    fn file(&self) -> Option<&File> {
        Some(&self.file)
    }

    fn is_costly(&self) -> bool {
        false
    }

    fn unchanged(&self) -> io::Result<bool> {
        // A file without a name cannot be opened by others.
        if self.path.is_none() {
            return Ok(true);
        }
        let meta = self.file.metadata()?;
        Ok(meta.len() == self.len && meta.modified().ok() == self.modified)
    }

    fn sibling(&self, suffix: &str) -> io::Result<Option<Arc<dyn ReadAt>>> {
        let Some(path) = self.path.as_deref().and_then(|path| sibling_path(path, suffix)) else {
            return Ok(None);
        };
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(_) if !path.exists() => return Ok(None),
            Err(error) => {
                return Err(Error::io("cannot open", error).field(path.display().to_string()).into());
            }
        };
        if !file.metadata()?.is_file() {
            let error = Error::usage("expected a regular file, found something else");
            return Err(error.field(path.display().to_string()).into());
        }
        Ok(Some(Arc::new(FileBytes::new(file, Some(path))?)))
    }
}

/// Reads at `offset` until the capacity of `memory` is full or the file ends. New memory need not be zeroed for it.
#[cfg(unix)]
pub(super) fn append_at(file: &File, offset: u64, memory: &mut Vec<u8>) -> io::Result<()> {
    let start = memory.len();
    while memory.len() < memory.capacity() {
        let place = offset.saturating_add((memory.len() - start) as u64);
        match rustix::io::pread(file, rustix::buffer::spare_capacity(memory), place) {
            Ok(0) => break,
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

#[cfg(not(unix))]
pub(super) fn append_at(file: &File, offset: u64, memory: &mut Vec<u8>) -> io::Result<()> {
    let start = memory.len();
    memory.resize(memory.capacity(), 0);
    let mut done = start;
    while let Some(rest) = memory.get_mut(done..).filter(|rest| !rest.is_empty()) {
        match read_some_at(file, rest, offset.saturating_add((done - start) as u64)) {
            Ok(0) => break,
            Ok(count) => done += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    memory.truncate(done);
    Ok(())
}

/// The path with `suffix` appended to its name.
pub(super) fn sibling_path(path: &Path, suffix: &str) -> Option<PathBuf> {
    let mut name = path.file_name()?.to_owned();
    name.push(suffix);
    Some(path.with_file_name(name))
}

#[cfg(unix)]
fn read_some_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    std::os::unix::fs::FileExt::read_at(file, buffer, offset)
}

#[cfg(windows)]
fn read_some_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    std::os::windows::fs::FileExt::seek_read(file, buffer, offset)
}

/// Bytes in memory.
pub(crate) struct MemoryBytes(pub(crate) Buffer);

impl ReadAt for MemoryBytes {
    fn len(&self) -> u64 {
        self.0.len() as u64
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let start = usize::try_from(offset).unwrap_or(usize::MAX).min(self.0.len());
        let rest = &self.0.as_slice()[start..];
        let count = rest.len().min(buffer.len());
        buffer[..count].copy_from_slice(&rest[..count]);
        Ok(count)
    }

    fn is_costly(&self) -> bool {
        false
    }

    fn memory(&self) -> Option<&Buffer> {
        Some(&self.0)
    }
}
