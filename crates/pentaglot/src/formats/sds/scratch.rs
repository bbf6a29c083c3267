//! Elements that are kept until all of them are known: in memory while they are few, then in a temporary file.

use std::io::{self, Write};

use pentaglot_succinct::Replay;

use crate::error::{Error, Result};
use crate::limits::Budget;
use crate::source::Spool;

/// Up to this many bytes are kept in memory.
const MEMORY: u64 = 256 << 10;

pub(super) struct Scratch {
    spool: Spool,
    len: u64,
}

impl Scratch {
    pub(super) fn new(budget: &Budget) -> Self {
        Scratch { spool: Spool::with_memory(MEMORY, budget).limited(), len: 0 }
    }

    /// How many elements there are.
    pub(super) fn len(&self) -> u64 {
        self.len
    }

    /// Appends elements.
    pub(super) fn push(&mut self, elements: &[u64]) -> Result<()> {
        self.len += elements.len() as u64;
        for element in elements {
            self.spool.write_all(&element.to_le_bytes())?;
        }
        Ok(())
    }
}

/// Returns an error if `elements` exceed the maximum size of a temporary file, or of a file written from one.
pub(super) fn check_room(elements: u64, limit: u64) -> Result<()> {
    let bytes = elements.saturating_mul(8);
    if bytes > limit {
        return Err(Error::limit("max-spool", limit, format!("{bytes} bytes")));
    }
    Ok(())
}

impl Replay for Scratch {
    fn replay(&mut self, take: &mut dyn FnMut(u64) -> io::Result<()>) -> io::Result<()> {
        self.spool.copy_to(&mut Elements(take))
    }
}

/// Reads elements from bytes, which are passed in pieces of whole elements.
struct Elements<'t>(&'t mut dyn FnMut(u64) -> io::Result<()>);

impl Write for Elements<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        bytes.as_chunks::<8>().0.iter().try_for_each(|element| (self.0)(u64::from_le_bytes(*element)))?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
