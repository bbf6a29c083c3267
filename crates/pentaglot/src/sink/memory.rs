//! Bytes that stay in memory.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::Output;
use crate::source::{MemoryBytes, ReadAt};

/// The bytes written by a [`Sink::memory`](super::Sink::memory). Clones share the bytes.
#[derive(Debug, Clone, Default)]
pub struct Memory(Arc<Mutex<Vec<u8>>>);

impl Memory {
    /// Empty memory that reuses the capacity of `room`.
    pub(super) fn with_room(mut room: Vec<u8>) -> Self {
        room.clear();
        Memory(Arc::new(Mutex::new(room)))
    }

    /// Takes the bytes out.
    pub fn take(&self) -> Vec<u8> {
        std::mem::take(&mut *self.lock())
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Vec<u8>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Output for Memory {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.lock().extend_from_slice(bytes);
        Ok(())
    }

    fn can_patch(&self) -> bool {
        true
    }

    fn patch(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let start = usize::try_from(offset).unwrap_or(usize::MAX);
        let mut content = self.lock();
        let part = content.get_mut(start..).and_then(|rest| rest.get_mut(..bytes.len()));
        part.ok_or(io::ErrorKind::InvalidInput)?.copy_from_slice(bytes);
        Ok(())
    }

    fn sibling(&mut self, _: &str) -> io::Result<Option<Box<dyn Output>>> {
        Ok(None)
    }

    fn reread(&mut self) -> io::Result<Option<Arc<dyn ReadAt>>> {
        Ok(Some(Arc::new(MemoryBytes(self.lock().clone().into()))))
    }

    fn commit(self: Box<Self>) -> io::Result<()> {
        Ok(())
    }
}
