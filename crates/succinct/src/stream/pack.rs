//! Packs integers into words for an output.

use std::io;

use crate::bits::low_mask;
use crate::layout::WordSink;

/// The four elements before the words of an integer vector.
pub(super) fn put_int_header(sink: &mut impl WordSink, len: u64, width: u32) -> io::Result<()> {
    let bits = len * u64::from(width);
    sink.put(&[len, u64::from(width), bits, bits.div_ceil(64)])
}

/// Packs integers into words, in order.
#[derive(Default)]
pub(super) struct Packer {
    word: u64,
    used: u32,
}

impl Packer {
    pub(super) fn push(&mut self, value: u64, width: u32, sink: &mut impl WordSink) -> io::Result<()> {
        let value = value & low_mask(width);
        self.word |= value << self.used;
        self.used += width;
        if self.used >= 64 {
            sink.put(&[self.word])?;
            self.used -= 64;
            self.word = if self.used == 0 { 0 } else { value >> (width - self.used) };
        }
        Ok(())
    }

    pub(super) fn finish(self, sink: &mut impl WordSink) -> io::Result<()> {
        if self.used > 0 { sink.put(&[self.word]) } else { Ok(()) }
    }
}
