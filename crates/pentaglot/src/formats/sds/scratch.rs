//! Elements that wait until all of them are there: in memory while they are few, in a temporary file when they are many.

use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};

use pentaglot_succinct::Replay;
use tempfile::{SpooledTempFile, spooled_tempfile};

use crate::error::{Error, Result};
use crate::limits::{Budget, Reservation};

/// Up to so many bytes stay in memory.
const MEMORY: u64 = 256 << 10;
/// Elements that are read at a time.
const CHUNK: usize = 4096;

pub(super) struct Scratch {
    file: BufWriter<SpooledTempFile>,
    len: u64,
    limit: u64,
    _held: Reservation,
}

impl Scratch {
    pub(super) fn new(budget: &Budget) -> Result<Self> {
        // What is kept in memory, and the buffers for writing and reading.
        let _held = budget.reserve(MEMORY.min(budget.limits().max_alloc / 4))?;
        let file = spooled_tempfile(usize::try_from(MEMORY).unwrap_or(0));
        let limit = budget.limits().max_spool;
        Ok(Scratch { file: BufWriter::with_capacity(8 * CHUNK, file), len: 0, limit, _held })
    }

    /// How many elements there are.
    pub(super) fn len(&self) -> u64 {
        self.len
    }

    /// Appends elements.
    pub(super) fn push(&mut self, elements: &[u64]) -> Result<()> {
        self.len += elements.len() as u64;
        check_room(self.len, self.limit)?;
        for element in elements {
            self.file.write_all(&element.to_le_bytes()).map_err(|error| cannot(&error))?;
        }
        Ok(())
    }
}

/// Errs if `elements` take more room than a temporary file, or a file written from one, may have.
pub(super) fn check_room(elements: u64, limit: u64) -> Result<()> {
    let bytes = elements.saturating_mul(8);
    if bytes > limit {
        return Err(Error::limit("max-spool", limit, format!("{bytes} bytes are")));
    }
    Ok(())
}

fn cannot(error: &io::Error) -> Error {
    Error::io("cannot spool to a temporary file", io::Error::new(error.kind(), error.to_string()))
}

impl Replay for Scratch {
    fn replay(&mut self, take: &mut dyn FnMut(u64) -> io::Result<()>) -> io::Result<()> {
        self.file.flush()?;
        let file = self.file.get_mut();
        file.seek(SeekFrom::Start(0))?;
        let mut buffer = [0; 8 * CHUNK];
        let mut left = self.len;
        while left > 0 {
            let count = usize::try_from(left).unwrap_or(CHUNK).min(CHUNK);
            let Some(bytes) = buffer.get_mut(..8 * count) else { break };
            file.read_exact(bytes)?;
            for element in bytes.as_chunks::<8>().0 {
                take(u64::from_le_bytes(*element))?;
            }
            left -= count as u64;
        }
        Ok(())
    }
}
