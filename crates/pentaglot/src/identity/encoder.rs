//! A buffer for encoded bytes.

use crate::error::Result;
use crate::wire::varint;

/// Bytes are buffered up to this size, since hashing is fastest on long inputs.
pub(super) const BUFFER_BYTES: usize = 64 << 10;

/// Takes encoded bytes, and passes them to the target in large pieces.
pub(super) struct Encoder<'t> {
    buffer: Vec<u8>,
    target: &'t mut dyn FnMut(&[u8]) -> Result<()>,
}

impl<'t> Encoder<'t> {
    pub(super) fn new(target: &'t mut dyn FnMut(&[u8]) -> Result<()>) -> Self {
        Encoder { buffer: Vec::new(), target }
    }

    #[inline]
    pub(super) fn byte(&mut self, byte: u8) -> Result<()> {
        self.buffer.push(byte);
        self.flush_full()
    }

    #[inline]
    pub(super) fn varint(&mut self, value: u64) -> Result<()> {
        varint::write(value, &mut self.buffer);
        self.flush_full()
    }

    #[inline]
    pub(super) fn put(&mut self, bytes: &[u8]) -> Result<()> {
        if bytes.len() >= BUFFER_BYTES {
            self.flush()?;
            return (self.target)(bytes);
        }
        self.buffer.extend_from_slice(bytes);
        self.flush_full()
    }

    #[inline]
    fn flush_full(&mut self) -> Result<()> {
        if self.buffer.len() >= BUFFER_BYTES { self.flush() } else { Ok(()) }
    }

    pub(super) fn flush(&mut self) -> Result<()> {
        (self.target)(&self.buffer)?;
        self.buffer.clear();
        Ok(())
    }
}
