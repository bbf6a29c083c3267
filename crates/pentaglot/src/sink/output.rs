//! [`Output`]: the destination of a [`Sink`](super::Sink).

use std::io;
use std::sync::Arc;

use crate::ReadAt;

/// A destination that takes bytes in order and makes them visible when it is committed: a file, memory, a
/// pipe, an upload.
///
/// An output that is dropped without [`commit`](Self::commit) leaves nothing behind, except for bytes that a pipe has
/// already taken. The order of calls: `write`, `patch` and `sibling` in any order, then `commit` or a drop.
pub trait Output: Send {
    /// Takes all of `bytes`. Called with large pieces: a sink collects small ones.
    fn write(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// Whether [`patch`](Self::patch) works.
    fn can_patch(&self) -> bool;

    /// Overwrites bytes that were written before; the next `write` still appends.
    fn patch(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()>;

    /// An output named like this one with `suffix` appended; `None` if outputs have no names.
    ///
    /// A committed sibling appears when this output is committed, just before it. Without that it never appears.
    fn sibling(&mut self, suffix: &str) -> io::Result<Option<Box<dyn Output>>>;

    /// Removes the sibling of an earlier write when this output is committed, just before it appears.
    /// By default there is none.
    fn remove_sibling(&mut self, suffix: &str) -> io::Result<()> {
        let _ = suffix;
        Ok(())
    }

    /// The bytes written so far, to be read before the commit; `None`, the default, if they cannot be read back.
    fn reread(&mut self) -> io::Result<Option<Arc<dyn ReadAt>>> {
        Ok(None)
    }

    /// Makes the bytes durable and visible under their name, in one step.
    fn commit(self: Box<Self>) -> io::Result<()>;
}
