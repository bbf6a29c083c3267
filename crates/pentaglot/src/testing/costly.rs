//! Bytes that count their reads.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::source::ReadAt;

/// Bytes in memory that claim to be costly, and count requests and bytes.
pub(crate) struct Costly {
    content: Vec<u8>,
    sibling: Option<(&'static str, Arc<Costly>)>,
    pub(crate) requests: AtomicU64,
    pub(crate) bytes: AtomicU64,
}

impl Costly {
    pub(crate) fn new(content: Vec<u8>) -> Arc<Self> {
        Arc::new(Costly { content, sibling: None, requests: AtomicU64::new(0), bytes: AtomicU64::new(0) })
    }

    pub(crate) fn with_sibling(content: Vec<u8>, suffix: &'static str, side: Vec<u8>) -> Arc<Self> {
        let sibling = Some((suffix, Costly::new(side)));
        Arc::new(Costly { content, sibling, requests: AtomicU64::new(0), bytes: AtomicU64::new(0) })
    }

    /// Sets the counts to zero.
    pub(crate) fn reset(&self) {
        self.requests.store(0, Ordering::Relaxed);
        self.bytes.store(0, Ordering::Relaxed);
    }

    /// Requests and bytes so far.
    pub(crate) fn counts(&self) -> (u64, u64) {
        (self.requests.load(Ordering::Relaxed), self.bytes.load(Ordering::Relaxed))
    }
}

impl ReadAt for Costly {
    fn len(&self) -> u64 {
        self.content.len() as u64
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let rest = self.content.get(offset as usize..).unwrap_or_default();
        let count = rest.len().min(buffer.len());
        buffer[..count].copy_from_slice(&rest[..count]);
        self.requests.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }

    fn is_costly(&self) -> bool {
        true
    }

    fn sibling(&self, suffix: &str) -> io::Result<Option<Arc<dyn ReadAt>>> {
        let found = self.sibling.as_ref().filter(|(name, _)| *name == suffix);
        Ok(found.map(|(_, side)| Arc::clone(side) as _))
    }
}
