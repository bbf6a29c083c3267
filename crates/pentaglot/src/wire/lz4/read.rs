//! LZ4 blocks, decompressed piece by piece.

use arrow_buffer::{Buffer, MutableBuffer};

use super::MAX_BYTES;
use crate::cursor::{Reserved, reserve};
use crate::error::{Error, Result};
use crate::kernels::lz4 as kernel;
use crate::limits::{Budget, Reservation};
use crate::source::{Source, Window};

/// The maximum number of bytes that one byte of a block can produce: each further byte of a match length adds
/// up to 255.
const MAX_RATIO: u64 = 255;

/// The maximum distance of a match, and one more.
const HISTORY: usize = 64 << 10;

/// How many packed bytes are read first, and how many at most at a time: more where each read is costly.
const FIRST_STEP: usize = 32 << 10;
const MOST_STEP: usize = 256 << 10;
const MOST_COSTLY_STEP: usize = 2 << 20;

/// The packed bytes that the fast loop needs at least.
const SPARE_BYTES: usize = 64;

/// The minimum number of literals at the end of a block.
const LAST_LITERALS: u64 = 5;

/// The minimum distance of the last match from the end.
const LAST_MATCH: u64 = 12;

/// The minimum number of packed bytes after the literals before a match: its distance, a token and the last literals.
const AFTER_LITERALS: u64 = 2 + 1 + LAST_LITERALS;

/// A block that is decompressed piece by piece. Of what has been decompressed, only the last piece is kept.
pub(crate) struct BlockReader {
    packed: Window,
    packed_end: u64,
    /// How many packed bytes are read at a time, at most `most_step`, and the reservation for them.
    step: usize,
    most_step: usize,
    held: Reservation,
    /// The length of the decompressed block, and how much of it is done.
    length: u64,
    done: u64,
    run: Run,
    /// The last piece, after the bytes before it that a match may reach.
    memory: Buffer,
    budget: Budget,
}

/// What comes next in a block.
#[derive(Clone, Copy)]
enum Run {
    Token,
    /// Literals, and then a match whose length begins with four bits of the token.
    Literals {
        left: u64,
        matched: u8,
    },
    Match {
        left: u64,
        distance: usize,
    },
}

impl BlockReader {
    /// A block of `packed_bytes` bytes from `offset`, which becomes `length` bytes. No block of this size can have another
    /// length than those that pass here.
    pub(crate) fn new(
        source: &Source,
        offset: u64,
        packed_bytes: u64,
        length: u64,
        budget: &Budget,
    ) -> Result<Self> {
        if length == 0 {
            // C++ writes nothing after the length 0, Python an empty block.
            let packed = source.read_range(offset, packed_bytes.min(2), budget)?;
            if !matches!(packed.as_slice(), [] | [0]) {
                let found = format_args!("{packed_bytes} bytes");
                return Err(Error::malformed("nothing after the length 0", found).rule("lz4-length"));
            }
        }
        if length > MAX_RATIO.saturating_mul(packed_bytes) {
            let found = format!("{length}, which {packed_bytes} bytes of LZ4 cannot become");
            return Err(Error::malformed("the length of what the LZ4 block holds", found).rule("lz4-length"));
        }
        if length > MAX_BYTES {
            return Err(Error::malformed(format_args!("at most {MAX_BYTES} bytes in an LZ4 block"), length)
                .rule("lz4-length"));
        }
        budget.limits().check_ratio(packed_bytes, length)?;
        let packed_end = offset.saturating_add(packed_bytes);
        let is_in_memory = source.memory().is_some();
        Ok(BlockReader {
            held: budget.reserve(if is_in_memory { 0 } else { packed_bytes.min(FIRST_STEP as u64) })?,
            packed: Window::over(source, offset, Some(packed_end), FIRST_STEP, budget.clone())?,
            packed_end,
            step: FIRST_STEP,
            most_step: if source.is_costly() { MOST_COSTLY_STEP } else { MOST_STEP },
            length,
            done: 0,
            run: Run::Token,
            memory: Buffer::default(),
            budget: budget.clone(),
        })
    }

    /// How many bytes have not been taken.
    pub(crate) fn left(&self) -> u64 {
        self.length - self.done
    }

    /// The next `count` bytes. They are aligned for values of fixed width if all pieces are whole values.
    pub(crate) fn take(&mut self, count: u64) -> Result<Buffer> {
        if count == 0 || self.left() == 0 {
            return Ok(Buffer::default());
        }
        let (memory, kept) = self.next(count)?;
        let memory = Buffer::from(memory);
        let piece = memory.slice_with_length(kept, memory.len() - kept);
        // A short piece would keep more memory than its own.
        let piece = if piece.len() <= kept { self.copied(&piece)?.into() } else { piece };
        self.keep(memory);
        Ok(piece)
    }

    /// As [`take`](Self::take), in memory that nobody else uses.
    pub(crate) fn take_mut(&mut self, count: u64) -> Result<MutableBuffer> {
        if count == 0 || self.left() == 0 {
            return self.room(0);
        }
        let (memory, kept) = self.next(count)?;
        if kept == 0 && self.left() == 0 {
            return Ok(memory);
        }
        let piece = self.copied(memory.as_slice().get(kept..).unwrap_or_default())?;
        self.keep(memory.into());
        Ok(piece)
    }

    /// Decompresses the next `count` bytes, after some bytes before them; returns how many these are.
    fn next(&mut self, count: u64) -> Result<(MutableBuffer, usize)> {
        let count = count.min(self.left());
        let before = std::mem::take(&mut self.memory);
        let kept = before.len().min(HISTORY);
        let words: Reserved<i128> = reserve((kept as u64 + count).div_ceil(16), &self.budget)?;
        // The reservation is attached when the memory is filled: `resize` would release what is not.
        let (words, reservation) = words.into_parts();
        let mut memory = MutableBuffer::from(words);
        memory.extend_from_slice(before.as_slice().get(before.len() - kept..).unwrap_or_default());
        drop(before);
        // It has been reserved, so it is a `usize`.
        let end = kept + usize::try_from(count).unwrap_or(usize::MAX);
        self.decompress(&mut memory, end)?;
        self.done += count;
        let is_whole = matches!(self.run, Run::Literals { left: 0, .. }) && self.packed_left() == 0;
        if self.done == self.length && !is_whole {
            return Err(self.damaged());
        }
        reservation.attach(&memory);
        Ok((memory, kept))
    }

    /// Keeps what the next matches may reach.
    fn keep(&mut self, memory: Buffer) {
        if self.left() > 0 {
            self.memory = memory;
        }
    }

    fn copied(&self, bytes: &[u8]) -> Result<MutableBuffer> {
        let mut copy = self.room(bytes.len() as u64)?;
        copy.extend_from_slice(bytes);
        Ok(copy)
    }

    /// Empty memory with room for `bytes` bytes of any type.
    fn room(&self, bytes: u64) -> Result<MutableBuffer> {
        let words: Reserved<i128> = reserve(bytes.div_ceil(16), &self.budget)?;
        Ok(words.into_memory())
    }

    /// Fills `memory` to `end` bytes.
    fn decompress(&mut self, memory: &mut MutableBuffer, end: usize) -> Result<()> {
        let before = self.done.wrapping_sub(memory.len() as u64);
        while memory.len() < end {
            let place = before.wrapping_add(memory.len() as u64);
            let room = end - memory.len();
            let within = |left: u64| usize::try_from(left).unwrap_or(usize::MAX).min(room);
            self.run = match self.run {
                Run::Token => {
                    self.fill(SPARE_BYTES)?;
                    let used = kernel::sequences(self.packed.rest(), memory, end);
                    self.packed.advance(used);
                    let token = self.byte()?;
                    Run::Literals { left: self.long(token >> 4)?, matched: token & 15 }
                }
                Run::Literals { left: 0, .. } if self.packed_left() == 0 => {
                    return Err(Error::malformed(
                        format_args!("{} bytes in the LZ4 block", self.length),
                        place,
                    )
                    .rule("lz4-length"));
                }
                Run::Literals { left: 0, matched } => {
                    if self.packed_left() < AFTER_LITERALS || place + LAST_MATCH > self.length {
                        return Err(self.damaged());
                    }
                    let distance = usize::from(u16::from_le_bytes([self.byte()?, self.byte()?]));
                    let left = self.long(matched)? + 4;
                    if distance == 0 || distance > memory.len() || place + left + LAST_LITERALS > self.length
                    {
                        return Err(self.damaged());
                    }
                    Run::Match { left, distance }
                }
                Run::Literals { left, matched } => {
                    self.fill(1)?;
                    let rest = self.packed.rest();
                    let count = within(left).min(rest.len());
                    if count == 0 {
                        return Err(self.damaged());
                    }
                    memory.extend_from_slice(rest.get(..count).unwrap_or_default());
                    self.packed.advance(count);
                    Run::Literals { left: left - count as u64, matched }
                }
                Run::Match { left: 0, .. } => Run::Token,
                Run::Match { left, distance } => {
                    let (start, count) = (memory.len(), within(left));
                    memory.resize(start + count, 0);
                    repeat(memory.as_slice_mut(), start, distance);
                    Run::Match { left: left - count as u64, distance }
                }
            };
        }
        Ok(())
    }

    /// Reads packed bytes until there are `least`, or all.
    fn fill(&mut self, least: usize) -> Result<()> {
        if self.packed.rest().len() < least && !self.packed.is_last() {
            self.packed.fill(least)?;
            let larger = self.step.saturating_mul(4).min(self.most_step);
            // Many columns have many windows: these grow only where packed bytes follow and most of the budget is left.
            let follow = self.packed_left().saturating_sub(self.packed.rest().len() as u64);
            let is_free = self.budget.used() < self.budget.limits().max_alloc / 4;
            if follow > self.step as u64
                && larger > self.step
                && is_free
                && self.held.grow_to(larger as u64).is_ok()
            {
                self.step = larger;
                self.packed.set_step(larger);
            }
        }
        Ok(())
    }

    fn byte(&mut self) -> Result<u8> {
        self.fill(1)?;
        let byte = self.packed.first().ok_or_else(|| self.damaged())?;
        self.packed.advance(1);
        Ok(byte)
    }

    /// A length of four bits, which continues in further bytes while they have their maximum value.
    fn long(&mut self, nibble: u8) -> Result<u64> {
        let mut length = u64::from(nibble);
        let mut more = nibble == 15;
        while more {
            let byte = self.byte()?;
            length += u64::from(byte);
            more = byte == 255;
        }
        Ok(length)
    }

    fn packed_left(&self) -> u64 {
        self.packed_end.saturating_sub(self.packed.offset())
    }

    #[cold]
    fn damaged(&self) -> Error {
        let expected = format!("an LZ4 block of {} bytes", self.length);
        Error::malformed(expected, "one that is damaged or longer").rule("lz4-block")
    }
}

/// Fills `memory` from `start` by repeating the `distance` bytes before it.
fn repeat(memory: &mut [u8], mut start: usize, mut distance: usize) {
    while start < memory.len() {
        let count = distance.min(memory.len() - start);
        memory.copy_within(start - distance..start - distance + count, start);
        // What has been written repeats too.
        (start, distance) = (start + count, distance + count);
    }
}
