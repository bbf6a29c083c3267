//! A cache for bytes whose reads are costly: it turns many small reads into few large ones.
//!
//! Bytes are kept in blocks of [`BLOCK_BYTES`]. A read that misses fetches the missing blocks in one request. While
//! reads are sequential, each request fetches twice as much as the one before, up to [`MOST_AHEAD_BYTES`]; a few such
//! sequences may be interleaved (the arrays of a sparse matrix). A large read elsewhere fetches exactly its range and
//! is not kept. A request that reaches the last block starts earlier, since a file's footer is read from its end.

use std::collections::HashMap;
use std::io;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use arrow_buffer::Buffer;

use super::read_at::{ReadAt, read_full};

/// The size of a block: the least that a miss fetches.
const BLOCK_BYTES: u64 = 32 << 10;
/// How many bytes are kept.
const KEPT_BYTES: u64 = 8 << 20;
/// The most that is read ahead in one request.
const MOST_AHEAD_BYTES: u64 = 2 << 20;
/// A miss of this size that does not continue a sequence is not kept.
const LARGE_BYTES: u64 = 128 << 10;
/// How much of the end of a file is fetched at least, if the end is fetched.
const TAIL_BYTES: u64 = 64 << 10;
/// How many sequences of reads are tracked.
const SEQUENCES: usize = 8;
/// Ranges with a gap up to this size between them are fetched in one request.
const GAP_BYTES: u64 = BLOCK_BYTES;

/// Costly bytes with a cache.
pub(super) struct Cached {
    inner: Arc<dyn ReadAt>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    blocks: HashMap<u64, Block>,
    /// The next offset of each recent sequence of reads, and how much its last request fetched; the most recent one
    /// last.
    sequences: Vec<(u64, u64)>,
    clock: u64,
}

struct Block {
    bytes: Buffer,
    used: u64,
}

impl State {
    fn block(&mut self, index: u64) -> Option<Buffer> {
        self.clock += 1;
        let block = self.blocks.get_mut(&index)?;
        block.used = self.clock;
        Some(block.bytes.clone())
    }

    fn insert(&mut self, index: u64, bytes: Buffer) {
        self.clock += 1;
        while self.blocks.len() as u64 >= KEPT_BYTES / BLOCK_BYTES {
            let oldest = self.blocks.iter().min_by_key(|(_, block)| block.used).map(|(index, _)| *index);
            self.blocks.remove(&oldest.expect("the cache is not empty"));
        }
        self.blocks.insert(index, Block { bytes, used: self.clock });
    }

    /// Removes the sequence that continues at `offset`; returns how much its last request fetched.
    fn take_sequence(&mut self, offset: u64) -> Option<u64> {
        let found = self.sequences.iter().position(|(next, _)| *next == offset)?;
        Some(self.sequences.remove(found).1)
    }

    fn add_sequence(&mut self, next: u64, fetched: u64) {
        if self.sequences.len() == SEQUENCES {
            self.sequences.remove(0);
        }
        self.sequences.push((next, fetched));
    }
}

impl Cached {
    pub(super) fn new(inner: Arc<dyn ReadAt>) -> Self {
        Cached { inner, state: Mutex::default() }
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The blocks to fetch if the first block of `wanted` is missing; `None` if exactly `wanted` is read and not kept.
    fn plan(&self, state: &mut State, wanted: Range<u64>) -> Option<Range<u64>> {
        let len = self.inner.len();
        let first = wanted.start / BLOCK_BYTES;
        let last = wanted.end.div_ceil(BLOCK_BYTES);
        // A sequence continues where its last request ended: at the end of a block, or within one after an exact
        // read.
        let before = state.take_sequence(wanted.start).or_else(|| state.take_sequence(first * BLOCK_BYTES));
        let needed = wanted.end - wanted.start;
        if before.is_none() && needed >= LARGE_BYTES || needed >= MOST_AHEAD_BYTES {
            state.add_sequence(wanted.end, needed.min(MOST_AHEAD_BYTES / 2));
            return None;
        }
        let ahead = before.map_or(BLOCK_BYTES, |fetched| (fetched * 2).min(MOST_AHEAD_BYTES));
        let blocks = (last - first).max(ahead / BLOCK_BYTES);
        let missing = (first..first + blocks).take_while(|index| !state.blocks.contains_key(index));
        let count = missing.count() as u64;
        let mut start = first * BLOCK_BYTES;
        let end = ((first + count) * BLOCK_BYTES).min(len);
        if end == len {
            start = start.min(len.saturating_sub(TAIL_BYTES) / BLOCK_BYTES * BLOCK_BYTES);
        }
        state.add_sequence(end, end - start);
        Some(start..end)
    }

    /// Fetches the blocks of `range` that are missing, up to the first that is not, in one request.
    pub(super) fn prefetch(&self, range: Range<u64>) -> io::Result<()> {
        let end = range.end.min(self.inner.len()).min(range.start.saturating_add(KEPT_BYTES / 2));
        let state = self.state();
        let is_missing = |index: &u64| !state.blocks.contains_key(index);
        let wanted = range.start / BLOCK_BYTES..end.div_ceil(BLOCK_BYTES);
        let first = wanted.clone().find(is_missing).unwrap_or(wanted.end);
        let last = (first..wanted.end).take_while(is_missing).last();
        drop(state);
        match last {
            Some(last) => {
                self.fetch(&(first * BLOCK_BYTES..((last + 1) * BLOCK_BYTES).min(self.inner.len())))
            }
            None => Ok(()),
        }
    }

    fn fetch(&self, range: &Range<u64>) -> io::Result<()> {
        let count = usize::try_from(range.end - range.start).map_err(io::Error::other)?;
        let mut bytes = vec![0; count];
        let read = read_full(self.inner.as_ref(), range.start, &mut bytes)?;
        if read < count {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let bytes = Buffer::from_vec(bytes);
        let mut state = self.state();
        for (position, index) in (range.start / BLOCK_BYTES..range.end.div_ceil(BLOCK_BYTES)).enumerate() {
            let start = position * BLOCK_BYTES as usize;
            // Each block has its own memory, so that a block in use does not keep the whole request alive.
            let block = &bytes[start..bytes.len().min(start + BLOCK_BYTES as usize)];
            state.insert(index, Buffer::from(block));
        }
        Ok(())
    }
}

impl ReadAt for Cached {
    fn len(&self) -> u64 {
        self.inner.len()
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let end = offset.saturating_add(buffer.len() as u64).min(self.len());
        let total = usize::try_from(end.saturating_sub(offset)).map_err(io::Error::other)?;
        let mut done = 0;
        while done < total {
            let at = offset + done as u64;
            let mut state = self.state();
            if let Some(block) = state.block(at / BLOCK_BYTES) {
                let rest = &block.as_slice()[(at % BLOCK_BYTES) as usize..];
                let count = rest.len().min(total - done);
                buffer[done..done + count].copy_from_slice(&rest[..count]);
                done += count;
                continue;
            }
            let fetch = self.plan(&mut state, at..end);
            // Other threads can use the cache during the request.
            drop(state);
            match fetch {
                Some(range) => self.fetch(&range)?,
                None => {
                    let read = read_full(self.inner.as_ref(), at, &mut buffer[done..total])?;
                    if read < total - done {
                        return Err(io::ErrorKind::UnexpectedEof.into());
                    }
                    done = total;
                }
            }
        }
        Ok(total)
    }

    fn read_ranges(&self, ranges: &[Range<u64>]) -> io::Result<Vec<Buffer>> {
        let mut sorted: Vec<Range<u64>> = ranges.to_vec();
        sorted.sort_unstable_by_key(|range| range.start);
        let mut merged: Vec<Range<u64>> = Vec::new();
        for range in sorted {
            match merged.last_mut() {
                Some(last) if range.start <= last.end.saturating_add(GAP_BYTES) => {
                    last.end = last.end.max(range.end);
                }
                _ => merged.push(range),
            }
        }
        let parts = self.inner.read_ranges(&merged)?;
        let part = |range: &Range<u64>| {
            let index = merged.partition_point(|whole| whole.start <= range.start).saturating_sub(1);
            let (whole, bytes) = (merged.get(index)?, parts.get(index)?);
            let start = usize::try_from(range.start - whole.start).ok()?;
            let count = usize::try_from(range.end.checked_sub(range.start)?).ok()?;
            (start + count <= bytes.len()).then(|| bytes.slice_with_length(start, count))
        };
        ranges.iter().map(|range| part(range).ok_or_else(|| io::ErrorKind::UnexpectedEof.into())).collect()
    }

    fn is_costly(&self) -> bool {
        true
    }

    fn unchanged(&self) -> io::Result<bool> {
        self.inner.unchanged()
    }

    fn sibling(&self, suffix: &str) -> io::Result<Option<Arc<dyn ReadAt>>> {
        self.inner.sibling(suffix)
    }

    fn memory(&self) -> Option<&Buffer> {
        self.inner.memory()
    }
}
