//! LZ4 blocks. They are compressed with the C library: only it produces the same bytes as programs that use it. They are
//! decompressed here, since the library decompresses a block only as a whole.

use arrow_buffer::{Buffer, MutableBuffer};
use lz4::block::{CompressionMode, compress_bound, compress_to_buffer};

use crate::cursor::{Reserved, reserve};
use crate::error::{Error, Result};
use crate::kernels::lz4 as kernel;
use crate::limits::{Budget, Reservation};
use crate::source::{Source, Window};

/// `LZ4_MAX_INPUT_SIZE`: the library neither compresses nor decompresses more.
pub(crate) const MAX_BYTES: u64 = 0x7e00_0000;

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

/// Compresses `plain`, preceded by its length as an int32. Level 0 is `LZ4_compress_default`, higher ones are
/// `LZ4_compress_HC`.
pub(crate) fn compress_with_length(plain: &[u8], level: i32) -> Result<Vec<u8>> {
    // The same block on all levels: a token without literals. The optimal parser (levels 10 to 12) reads before the
    // start of an empty input, so the library is not called.
    if plain.is_empty() {
        return Ok(vec![0; 5]);
    }
    let too_long = || Error::limit("the limit", MAX_BYTES, format!("{} bytes for an LZ4 block", plain.len()));
    let bound = match u32::try_from(plain.len()) {
        Ok(length) if u64::from(length) <= MAX_BYTES => compress_bound(plain.len()),
        _ => return Err(too_long()),
    };
    if level == 0 {
        let mut packed = u32::try_from(plain.len()).map_err(|_| too_long())?.to_le_bytes().to_vec();
        return kernel::compress(plain, &mut packed).map(|()| packed).ok_or_else(too_long);
    }
    let mode = Some(CompressionMode::HIGHCOMPRESSION(level));
    let mut packed = vec![0; 4 + bound.map_err(|_| too_long())?];
    let written = compress_to_buffer(plain, mode, true, &mut packed)
        .map_err(|error| Error::io("LZ4 compression", error))?;
    packed.truncate(written);
    Ok(packed)
}

#[cfg(test)]
mod tests {
    use lz4::block::decompress_to_buffer;
    use proptest::prelude::*;

    use super::*;
    use crate::limits::Limits;

    /// The block in pieces of these sizes, over and over.
    fn pieces(source: &Source, packed: u64, length: u64, sizes: &[u64]) -> Result<Vec<u8>> {
        let budget = Limits::default().budget();
        let mut reader = BlockReader::new(source, 0, packed, length, &budget)?;
        let mut plain = Vec::new();
        for (turn, size) in sizes.iter().chain(&[1000]).cycle().enumerate() {
            match turn % 2 {
                0 => plain.extend_from_slice(&reader.take(*size)?),
                _ => plain.extend_from_slice(&reader.take_mut(*size)?),
            }
            if reader.left() == 0 {
                break;
            }
        }
        drop(reader);
        assert_eq!(budget.used(), 0);
        Ok(plain)
    }

    fn in_memory(block: &[u8], length: usize, sizes: &[u64]) -> Result<Vec<u8>> {
        let source = Source::from_bytes("block", block.to_vec());
        pieces(&source, block.len() as u64, length as u64, sizes)
    }

    #[test]
    fn the_empty_and_the_short_come_back_on_all_levels() {
        for level in 0..=12 {
            assert_eq!(compress_with_length(&[], level).unwrap(), [0; 5], "level {level}");
            for length in 1..40u8 {
                let plain: Vec<u8> = (0..length).map(|byte| byte % 3).collect();
                let packed = compress_with_length(&plain, level).unwrap();
                assert_eq!(packed[..4], u32::from(length).to_le_bytes(), "level {level}");
                assert_eq!(in_memory(&packed[4..], plain.len(), &[1000]).unwrap(), plain, "level {level}");
                assert_eq!(in_memory(&packed[4..], plain.len(), &[1, 3]).unwrap(), plain, "level {level}");
            }
        }
        // The library's own block of an empty input, where it supports one.
        let mut block = [9; 16];
        assert_eq!(compress_to_buffer(&[], None, true, &mut block).unwrap(), 5);
        assert_eq!(block[..5], [0; 5]);
    }

    /// Noise, repeats near and far, and long runs of one byte.
    fn mixed(parts: &[(u8, u16, u16)]) -> Vec<u8> {
        let mut plain: Vec<u8> = Vec::new();
        let mut state = 1u32;
        for (kind, count, distance) in parts {
            for _ in 0..*count {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                let back = plain.len().checked_sub(usize::from(*distance) + 1);
                let byte = match (kind % 3, back) {
                    (0, _) | (_, None) => (state >> 24) as u8,
                    (1, Some(place)) => plain[place],
                    _ => 7,
                };
                plain.push(byte);
            }
        }
        plain
    }

    proptest! {
        #[test]
        fn pieces_are_the_block(
            parts in prop::collection::vec((any::<u8>(), 1u16.., any::<u16>()), 1..12),
            sizes in prop::collection::vec(prop_oneof![Just(0u64), 1u64..200_000], 1..5),
        ) {
            let plain = mixed(&parts);
            let block = &compress_with_length(&plain, 0).unwrap()[4..];
            prop_assert_eq!(&in_memory(block, plain.len(), &sizes).unwrap(), &plain);
            // From a file, the packed bytes too come in pieces.
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("block");
            std::fs::write(&path, block).unwrap();
            let file = Source::open(&path).unwrap();
            prop_assert_eq!(pieces(&file, block.len() as u64, plain.len() as u64, &sizes).unwrap(), plain);
        }

        #[test]
        fn damaged_blocks_are_refused_as_by_the_library(
            plain in prop::collection::vec(0u8..4, 1..400),
            cut in 0usize..20,
            flip in prop::option::of((any::<prop::sample::Index>(), 1u8..)),
            longer in -2i64..3,
            size in 1u64..500,
        ) {
            let mut block = compress_with_length(&plain, 0).unwrap().split_off(4);
            block.truncate(block.len().saturating_sub(if flip.is_some() { 0 } else { cut }));
            if let Some((place, bits)) = flip {
                let place = place.index(block.len());
                block[place] ^= bits;
            }
            let length = usize::try_from(plain.len() as i64 + longer).unwrap_or(0).max(1);
            let mut twin = vec![0; length];
            let written = decompress_to_buffer(&block, Some(length as i32), &mut twin);
            let expected = written.is_ok_and(|written| written == length).then_some(twin);
            let found = in_memory(&block, length, &[size]);
            // The library takes the distance 0, for which the format has no meaning.
            if found.is_ok() || !has_distance_zero(&block) {
                prop_assert_eq!(found.ok(), expected);
            }
        }
    }

    fn has_distance_zero(block: &[u8]) -> bool {
        block.windows(2).any(|pair| pair == [0, 0])
    }
}
