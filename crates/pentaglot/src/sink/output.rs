//! [`Output`]: what a [`Sink`](super::Sink) writes to.

use std::io;
use std::sync::Arc;

use crate::ReadAt;

/// A place that takes bytes in order and shows them when it is committed: a file, memory, a pipe, an upload.
///
/// An output that is dropped without [`commit`](Self::commit) leaves nothing behind, except for what a pipe has taken
/// already. The order of calls: `write`, `patch` and `sibling` in any order, then `commit` or a drop.
pub trait Output: Send {
    /// Takes all of `bytes`. Called with large pieces: a sink collects small ones.
    fn write(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// Whether [`patch`](Self::patch) works.
    fn can_patch(&self) -> bool;

    /// Overwrites bytes that were written before; the next `write` still appends.
    fn patch(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()>;

    /// An output whose name is this one's and `suffix`; `None` where there are no names.
    ///
    /// A committed sibling appears when this output is committed, just before it. Without that it never appears.
    fn sibling(&mut self, suffix: &str) -> io::Result<Option<Box<dyn Output>>>;

    /// Removes the sibling of an earlier write when this output is committed, just before it appears.
    /// By default there is none.
    fn remove_sibling(&mut self, suffix: &str) -> io::Result<()> {
        let _ = suffix;
        Ok(())
    }

    /// What has been written, to be read before it is committed; `None` where it cannot be read back, which is the default.
    fn reread(&mut self) -> io::Result<Option<Arc<dyn ReadAt>>> {
        Ok(None)
    }

    /// Makes the bytes durable and shows them under their name, all at once.
    fn commit(self: Box<Self>) -> io::Result<()>;
}
