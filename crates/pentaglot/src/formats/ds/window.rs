//! [`Window`]: the part of a MessagePack stream that is in memory, moved on row by row.
//!
//! A row is decoded where it stands. If the window ends inside it, the window moves so that the row stands at its
//! start (twice as wide if it did so before) and the row is decoded again.

use std::io::Read;

use arrow_buffer::Buffer;

use super::read::BATCH_BYTES;
use crate::cursor::{Cursor, allocate};
use crate::error::{Error, Result};
use crate::limits::Budget;
use crate::source::{Source, SourceReader};

const WINDOW_BYTES: u64 = 1 << 20;

pub(super) struct Window {
    feed: Feed,
    bytes: Buffer,
    position: usize,
    /// The offset in the file of the first byte of `bytes`.
    base: u64,
    /// Whether nothing follows what is in memory.
    last: bool,
    budget: Budget,
}

enum Feed {
    /// Read at any offset, up to this end.
    Seekable(Source, u64),
    Stream(SourceReader),
}

impl Window {
    /// The bytes from `start` up to `end`, or to the end of the source.
    pub(super) fn new(source: &Source, start: u64, end: Option<u64>, budget: Budget) -> Result<Self> {
        let feed = match source.len() {
            Some(len) => Feed::Seekable(source.clone(), end.unwrap_or(len).min(len)),
            None => Feed::Stream(source.reader_at(start)?),
        };
        Ok(Window { feed, bytes: Buffer::default(), position: 0, base: start, last: false, budget })
    }

    /// A cursor over what is in memory and not used.
    pub(super) fn cursor(&self) -> Cursor<'_> {
        Cursor::at(self.bytes.as_slice().get(self.position..).unwrap_or_default(), self.offset())
    }

    /// The offset in the file of the next byte.
    pub(super) fn offset(&self) -> u64 {
        self.base + self.position as u64
    }

    /// Passes over everything before `offset`, which a cursor has reached.
    pub(super) fn advance_to(&mut self, offset: u64) {
        let count = usize::try_from(offset.saturating_sub(self.base)).unwrap_or(usize::MAX);
        self.position = count.min(self.bytes.len());
    }

    /// Whether nothing follows what is in memory.
    pub(super) fn is_last(&self) -> bool {
        self.last
    }

    /// Brings more into memory, behind what is not used; `false` if nothing follows.
    pub(super) fn more(&mut self) -> Result<bool> {
        if self.last {
            return Ok(false);
        }
        let offset = self.offset();
        let left = self.bytes.len() - self.position;
        let size = (left as u64 * 2).max(WINDOW_BYTES);
        match &mut self.feed {
            Feed::Seekable(source, end) => {
                // What is in memory already is not copied: a window is as large as a batch.
                let size = if source.memory().is_some() { size.max(BATCH_BYTES) } else { size };
                let size = size.min(end.saturating_sub(offset));
                self.bytes = source.read_range(offset, size, &self.budget)?;
                self.last = offset + size >= *end;
            }
            Feed::Stream(reader) => {
                let mut bytes: Vec<u8> = allocate(size, &self.budget)?;
                bytes.extend_from_slice(self.bytes.as_slice().get(self.position..).unwrap_or_default());
                let wanted = size - left as u64;
                let read = reader.by_ref().take(wanted).read_to_end(&mut bytes);
                let read = read.map_err(|error| Error::from(error).at(offset + left as u64))?;
                self.last = (read as u64) < wanted;
                self.bytes = Buffer::from_vec(bytes);
            }
        }
        (self.base, self.position) = (offset, 0);
        Ok(true)
    }
}
