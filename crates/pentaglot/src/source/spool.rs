//! [`Spool`]: bytes that are kept until they can be read again: in memory at first, then in a temporary file.

use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};
use std::sync::Arc;

use arrow_buffer::MutableBuffer;
use tempfile::{SpooledData, SpooledTempFile};

use super::Source;
use super::read_at::{FileBytes, MemoryBytes, ReadAt};
use crate::error::{Error, ErrorKind, Result};
use crate::limits::{Budget, Reservation};

/// A longer spool moves to a temporary file.
const MEMORY_BYTES: u64 = 8 << 20;

/// Small writes are collected up to this size.
const BUFFER_BYTES: usize = 64 << 10;

/// Bytes copied at a time: a multiple of the size of every number.
const COPY_BYTES: u64 = 1 << 20;

/// How much of the temporary folder's free space is left for others.
const MARGIN_BYTES: u64 = 256 << 20;

/// Bytes that are kept until they can be read again. The temporary file has no name and is freed with the spool.
pub(crate) struct Spool {
    file: BufWriter<SpooledTempFile>,
    bytes: u64,
    /// The maximum number of bytes, and how many of them may be in memory.
    most: u64,
    memory: u64,
    /// The reservation for the bytes in memory.
    held: Reservation,
    /// The free space of the disk, once it has been determined.
    room: Option<u64>,
}

impl Spool {
    /// A spool that is limited only by the free space: for output.
    pub(crate) fn new(budget: &Budget) -> Self {
        Spool::with_memory(MEMORY_BYTES, budget)
    }

    /// A spool that keeps up to `memory` bytes in memory, or fewer if the budget is used up.
    pub(crate) fn with_memory(memory: u64, budget: &Budget) -> Self {
        // `SpooledTempFile` never moves to the disk by itself: `fits_memory` decides that.
        let buffer = usize::try_from(memory).unwrap_or(usize::MAX).clamp(4 << 10, BUFFER_BYTES);
        let file = BufWriter::with_capacity(buffer, SpooledTempFile::new(usize::MAX));
        Spool { file, bytes: 0, most: u64::MAX, memory, held: budget.reservation(), room: None }
    }

    /// A spool that is a temporary file from the first byte on.
    pub(crate) fn on_disk() -> Self {
        Spool { memory: 0, ..Spool::new(&Budget::default()) }
    }

    /// Limits the spool to `max_spool`: for input.
    pub(crate) fn limited(self) -> Self {
        let most = self.held.budget().limits().max_spool;
        Spool { most, ..self }
    }

    /// How many bytes have been written.
    pub(crate) fn len(&self) -> u64 {
        self.bytes
    }

    /// Overwrites bytes that were written before.
    pub(crate) fn patch(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        debug_assert!(offset.checked_add(bytes.len() as u64).is_some_and(|end| end <= self.bytes));
        self.file.seek(SeekFrom::Start(offset)).map_err(cannot)?;
        self.file.write_all(bytes).map_err(cannot)?;
        self.file.seek(SeekFrom::Start(self.bytes)).map_err(cannot)?;
        Ok(())
    }

    /// Copies all bytes from the start, in pieces that do not split numbers.
    pub(crate) fn copy_to(&mut self, out: &mut dyn Write) -> io::Result<()> {
        self.file.seek(SeekFrom::Start(0)).map_err(cannot)?;
        let mut piece = Vec::new();
        let file = self.file.get_mut();
        while Read::by_ref(file).take(COPY_BYTES).read_to_end(&mut piece).map_err(cannot)? > 0 {
            out.write_all(&piece)?;
            piece.clear();
        }
        Ok(())
    }

    /// The bytes as a source.
    pub(crate) fn into_source(self, name: &str) -> Result<Source> {
        Ok(Source::from_read_at(name, self.into_read_at()?))
    }

    /// The bytes from the start, to be read once.
    pub(crate) fn into_reader(mut self) -> Result<impl Read + Send> {
        self.file.seek(SeekFrom::Start(0)).map_err(cannot)?;
        Ok(self)
    }

    pub(super) fn into_read_at(self) -> Result<Arc<dyn ReadAt>> {
        let file = self.file.into_inner().map_err(|error| cannot(error.into_error()))?;
        Ok(match file.into_inner() {
            SpooledData::InMemory(memory) => {
                let memory = MutableBuffer::from(memory.into_inner());
                self.held.attach(&memory);
                Arc::new(MemoryBytes(memory.into()))
            }
            SpooledData::OnDisk(file) => Arc::new(FileBytes::new(file, None).map_err(cannot)?),
        })
    }

    /// Whether a total of `bytes` stays in memory. A growing vector takes twice its size for a moment.
    fn fits_memory(&mut self, bytes: u64) -> bool {
        let grown = bytes.saturating_mul(2).next_multiple_of(4 << 10);
        let budget = self.held.budget();
        let used = budget.used().saturating_add(grown.saturating_sub(self.held.bytes()));
        // The rest of the budget is for structures that cannot be spooled.
        bytes <= self.memory && used <= budget.limits().max_alloc / 4 && self.held.grow_to(grown).is_ok()
    }

    /// Returns an error if a total of `bytes` is too many. The free space is determined once, before the first byte
    /// is written to disk.
    fn check_most(&mut self, bytes: u64) -> Result<()> {
        if self.room.is_none() && bytes > self.memory {
            let free = free_bytes().unwrap_or(u64::MAX);
            self.room = Some(free.saturating_sub(MARGIN_BYTES));
        }
        if bytes > self.most {
            return Err(Error::limit("max-spool", self.most, format!("at least {bytes} bytes")));
        }
        match self.room {
            Some(room) if bytes > room => {
                let name = "the free space for temporary files";
                Err(Error::limit(name, room, format!("at least {bytes} bytes")))
            }
            _ => Ok(()),
        }
    }
}

/// The free space in the folder of temporary files, if the system reports it.
fn free_bytes() -> Option<u64> {
    #[cfg(unix)]
    {
        let folder = rustix::fs::statvfs(std::env::temp_dir()).ok()?;
        folder.f_bavail.checked_mul(folder.f_frsize)
    }
    #[cfg(not(unix))]
    None
}

/// An error of the temporary file; our own errors are unchanged.
fn cannot(error: io::Error) -> Error {
    match Error::from(error) {
        error if error.kind() == ErrorKind::Io => {
            Error::new(ErrorKind::Io, format!("cannot spool to a temporary file: {error}"))
        }
        ours => ours,
    }
}

impl Write for Spool {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let end = self.bytes.saturating_add(bytes.len() as u64);
        if !self.fits_memory(end) && !self.file.get_ref().is_rolled() {
            self.file.get_mut().roll().map_err(cannot)?;
            self.held.clear();
            self.memory = 0;
        }
        self.check_most(end)?;
        self.file.write_all(bytes).map_err(cannot)?;
        self.bytes += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Read for Spool {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.file.flush()?;
        self.file.get_mut().read(buffer)
    }
}

impl Seek for Spool {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.file.seek(to)
    }
}
