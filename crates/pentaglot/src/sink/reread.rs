//! What was written to an output, before it is committed.

use std::fs::File;
use std::io;
use std::sync::Arc;

use crate::source::{FileBytes, ReadAt};

/// The bytes of an output and, by suffix, those of its siblings.
pub(super) struct Reread {
    bytes: FileBytes,
    siblings: Vec<(String, File)>,
}

impl Reread {
    pub(super) fn new<'f>(
        file: &File,
        siblings: impl Iterator<Item = (&'f str, &'f File)>,
    ) -> io::Result<Self> {
        let siblings = siblings.map(|(suffix, file)| Ok((suffix.to_owned(), file.try_clone()?)));
        let siblings = siblings.collect::<io::Result<_>>()?;
        Ok(Reread { bytes: FileBytes::new(file.try_clone()?, None)?, siblings })
    }
}

impl ReadAt for Reread {
    fn len(&self) -> u64 {
        self.bytes.len()
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        self.bytes.read_at(offset, buffer)
    }

    fn is_costly(&self) -> bool {
        false
    }

    fn sibling(&self, suffix: &str) -> io::Result<Option<Arc<dyn ReadAt>>> {
        let Some((_, file)) = self.siblings.iter().find(|(own, _)| own == suffix) else { return Ok(None) };
        Ok(Some(Arc::new(FileBytes::new(file.try_clone()?, None)?)))
    }
}
