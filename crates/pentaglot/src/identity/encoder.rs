//! A buffer for encoded bytes.

use crate::error::Result;
use crate::wire::varint;

/// Bytes are buffered up to this size, since hashing is fastest on long inputs.
pub(super) const BUFFER_BYTES: usize = 64 << 10;

/// Takes encoded bytes, and passes them to the target in large pieces.
pub(crate) struct Encoder<'t> {
    buffer: Vec<u8>,
    /// Bytes that were passed on.
    passed: usize,
    target: &'t mut dyn FnMut(&[u8]) -> Result<()>,
}

impl<'t> Encoder<'t> {
    pub(crate) fn new(target: &'t mut dyn FnMut(&[u8]) -> Result<()>) -> Self {
        Encoder { buffer: Vec::new(), passed: 0, target }
    }

    /// How many bytes there are so far.
    pub(crate) fn position(&self) -> usize {
        self.passed + self.buffer.len()
    }

    #[inline]
    pub(crate) fn byte(&mut self, byte: u8) -> Result<()> {
        self.buffer.push(byte);
        self.flush_full()
    }

    #[inline]
    pub(crate) fn varint(&mut self, value: u64) -> Result<()> {
        varint::write(value, &mut self.buffer);
        self.flush_full()
    }

    #[inline]
    pub(crate) fn put(&mut self, bytes: &[u8]) -> Result<()> {
        if bytes.len() >= BUFFER_BYTES {
            self.flush()?;
            self.passed += bytes.len();
            return (self.target)(bytes);
        }
        self.buffer.extend_from_slice(bytes);
        self.flush_full()
    }

    #[inline]
    fn flush_full(&mut self) -> Result<()> {
        if self.buffer.len() >= BUFFER_BYTES { self.flush() } else { Ok(()) }
    }

    pub(crate) fn flush(&mut self) -> Result<()> {
        (self.target)(&self.buffer)?;
        self.passed += self.buffer.len();
        self.buffer.clear();
        Ok(())
    }
}
