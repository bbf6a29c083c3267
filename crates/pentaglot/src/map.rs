//! A file mapped into memory: for `query`, `inspect`, `dump` and people who open succinct structures in place.
//!
//! **Hazard.** A map is the file itself. If another process shortens the file while it is mapped, touching the lost part
//! ends this process (SIGBUS on Unix); if another process writes into it, what is read changes. Everything else in this
//! library reads files by positioned reads into memory of its own.
#![allow(unsafe_code, reason = "the one file that maps files")]

use std::fs::File;
use std::path::Path;

use crate::error::{Error, Result};

/// A file mapped into memory, read-only. See the hazard in the module's documentation.
#[derive(Debug)]
pub struct Map(memmap2::Mmap);

impl Map {
    /// Maps a file. An empty one is an empty map.
    pub fn open(path: &Path) -> Result<Self> {
        let cannot = |error| Error::io("cannot map", error);
        let file = File::open(path).map_err(cannot)?;
        // SAFETY: the map is read-only and private to this process; that others leave the file alone is the documented
        // hazard that the caller accepts.
        let map = unsafe { memmap2::Mmap::map(&file) }.map_err(cannot)?;
        Ok(Map(map))
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}

/// Aligned memory of our own or a map, as words that stay where they are.
pub(crate) enum Words {
    /// A mapped file.
    Map(Map),
    /// Words in memory.
    Memory(arrow_buffer::Buffer),
}

impl Words {
    fn bytes(&self) -> &[u8] {
        match self {
            Words::Map(map) => map.bytes(),
            Words::Memory(buffer) => buffer.as_slice(),
        }
    }

    /// Whether the bytes are whole words in their place.
    pub(crate) fn is_aligned(&self) -> bool {
        let bytes = self.bytes();
        bytes.len().is_multiple_of(8) && bytes.as_ptr().align_offset(8) == 0
    }
}

// SAFETY: neither a map nor the memory of a buffer moves while its owner lives, and neither is written through here.
unsafe impl pentaglot_succinct::StableWords for Words {
    fn stable_words(&self) -> &[u64] {
        // SAFETY: every bit pattern is a u64; `align_to` gives only whole, aligned words.
        let (before, words, after) = unsafe { self.bytes().align_to::<u64>() };
        if before.is_empty() && after.is_empty() { words } else { &[] }
    }
}
