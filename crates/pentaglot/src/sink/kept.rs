//! An output of which a copy is kept until it is committed, so that it can be read back: one that is elsewhere cannot.

use std::fs::File;
use std::io::{self, Write};
use std::sync::Arc;

use super::Output;
use super::file::patch_file;
use super::reread::Reread;
use crate::source::ReadAt;

/// An output and a temporary file with the same bytes.
pub(crate) struct Kept {
    inner: Box<dyn Output>,
    copy: File,
    siblings: Vec<(String, File)>,
}

impl Kept {
    pub(crate) fn new(inner: Box<dyn Output>) -> io::Result<Self> {
        Ok(Kept { inner, copy: tempfile::tempfile()?, siblings: Vec::new() })
    }
}

impl Output for Kept {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.copy.write_all(bytes)?;
        self.inner.write(bytes)
    }

    fn can_patch(&self) -> bool {
        self.inner.can_patch()
    }

    fn patch(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        patch_file(&mut self.copy, offset, bytes)?;
        self.inner.patch(offset, bytes)
    }

    fn sibling(&mut self, suffix: &str) -> io::Result<Option<Box<dyn Output>>> {
        let Some(inner) = self.inner.sibling(suffix)? else { return Ok(None) };
        let sibling = Kept::new(inner)?;
        let copy = sibling.copy.try_clone()?;
        self.siblings.push((suffix.to_owned(), copy));
        Ok(Some(Box::new(sibling)))
    }

    fn remove_sibling(&mut self, suffix: &str) -> io::Result<()> {
        self.inner.remove_sibling(suffix)
    }

    fn reread(&mut self) -> io::Result<Option<Arc<dyn ReadAt>>> {
        let siblings = self.siblings.iter().map(|(suffix, file)| (suffix.as_str(), file));
        Ok(Some(Arc::new(Reread::new(&self.copy, siblings)?)))
    }

    fn commit(self: Box<Self>) -> io::Result<()> {
        self.inner.commit()
    }
}
