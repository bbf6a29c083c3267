//! A file mapped into memory: for queries, dumps and users who open succinct structures in place.
//!
//! **Hazard.** A map is the file itself. If another process truncates the file while it is mapped, an access past its
//! new end terminates this process (SIGBUS on Unix); if another process writes to it, the bytes of the map change. So
//! mapping is `unsafe`: either [`Map::open`], or an [`InPlace`] in the options of a function that opens files.
//! Everything else in this library reads files by positioned reads into memory of its own.
//!
//! ```no_run
//! use pentaglot::{Registry, job, map::InPlace};
//! let mut options = job::OpenOptions::default();
//! // SAFETY: this program made the file, and no other process writes to it.
//! options.in_place = Some(unsafe { InPlace::permit() });
//! let queries = job::Queries::open(&Registry::default(), "starts.sds", &options)?;
//! # Ok::<(), pentaglot::Error>(())
//! ```
#![allow(unsafe_code, reason = "only this file maps files")]

/// Permission to map files into memory: its creator is responsible for the files that are opened with it.
#[derive(Debug, Clone, Copy)]
pub struct InPlace(());

impl InPlace {
    /// Permits mapping.
    ///
    /// # Safety
    ///
    /// As long as anything that was opened with this permission lives, the bytes of its file must not change. A process
    /// that cannot guarantee this, because others may truncate the file, must at least handle the resulting signal by
    /// exiting.
    pub unsafe fn permit() -> Self {
        InPlace(())
    }

    /// For tests, whose files nothing else changes.
    #[cfg(test)]
    pub(crate) fn in_tests() -> Self {
        InPlace(())
    }
}

#[cfg(feature = "sds")]
pub use mapped::Map;
#[cfg(feature = "sds")]
pub(crate) use mapped::Words;

#[cfg(feature = "sds")]
mod mapped {
    use std::fs::File;
    use std::path::Path;

    use super::InPlace;
    use crate::error::{Error, Result};

    /// A file mapped into memory, read-only. See the hazard in the module's documentation.
    #[derive(Debug)]
    pub struct Map(memmap2::Mmap);

    impl Map {
        /// Maps a file. An empty one is an empty map.
        ///
        /// # Safety
        ///
        /// The file's bytes must not change while the map lives; see [`InPlace::permit`].
        pub unsafe fn open(path: &Path) -> Result<Self> {
            let cannot = |error| Error::io("cannot map", error);
            let file = File::open(path).map_err(cannot)?;
            // SAFETY: the map is read-only; the caller guarantees that the file does not change.
            let map = unsafe { memmap2::Mmap::map(&file) }.map_err(cannot)?;
            Ok(Map(map))
        }

        /// Maps a file with a permission that was given before.
        pub(crate) fn with_permit(path: &Path, _: InPlace) -> Result<Self> {
            // SAFETY: the creator of the permission guaranteed that the files opened with it do not change.
            unsafe { Map::open(path) }
        }

        /// The bytes.
        pub fn bytes(&self) -> &[u8] {
            &self.0
        }
    }

    /// Aligned memory or a map, as words that do not move.
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

        /// Whether the bytes are aligned and a whole number of words.
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
}
