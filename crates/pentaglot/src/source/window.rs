//! [`Window`]: the part of a sequence of bytes that is in memory. It moves forward and grows as needed.

use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;

use arrow_buffer::Buffer;

use super::lines::Lines;
use super::{Source, SourceReader};
use crate::cursor::Cursor;
use crate::error::{Error, Result};
use crate::limits::Budget;

/// A part of a sequence of bytes.
///
/// Bytes that are in memory already are not copied: the window is then all of them.
pub(crate) struct Window<R = SourceReader> {
    input: R,
    /// Bytes `position..end` have been read but not used.
    memory: Buffer,
    position: usize,
    end: usize,
    /// The offset in the file of the first byte of `memory`.
    base: u64,
    /// The largest offset in the file at which the input may end.
    limit: u64,
    /// Where the file or the input ends, if that is known: no more memory is needed at a time.
    len: Option<u64>,
    /// Whether nothing follows what is in memory.
    ended: bool,
    /// Why nothing can be read after what is in memory.
    failed: Option<Error>,
    /// How much is read at a time.
    step: usize,
    /// Line ends before the memory, if they are counted.
    lines: Option<Lines>,
    budget: Budget,
}

impl<R> Window<R> {
    /// A window over `input`, whose first byte has this offset in the file. It reads `step` bytes at a time.
    pub(crate) fn new(input: R, offset: u64, step: usize, budget: Budget) -> Self {
        Window {
            input,
            memory: Buffer::default(),
            position: 0,
            end: 0,
            base: offset,
            limit: u64::MAX,
            len: None,
            ended: false,
            failed: None,
            step,
            lines: None,
            budget,
        }
    }

    /// A window over bytes `start..end` of `memory`, which is a whole file; `input` is not read.
    pub(crate) fn shared(input: R, memory: &Buffer, start: u64, end: u64, budget: Budget) -> Self {
        let within = |offset: u64| usize::try_from(offset).unwrap_or(usize::MAX).min(memory.len());
        let mut window = Window::new(input, 0, 0, budget);
        (window.position, window.end) = (within(start), within(end));
        (window.memory, window.ended) = (memory.clone(), true);
        window
    }

    /// Starts again with other input, keeping the memory.
    pub(crate) fn reset(&mut self, input: R, offset: u64) {
        self.input = input;
        (self.position, self.end, self.base, self.ended) = (0, 0, offset, false);
        (self.len, self.lines, self.failed) = (None, self.lines.take().map(|_| Lines::default()), None);
    }

    /// Changes how much is read at a time.
    pub(crate) fn set_step(&mut self, step: usize) {
        self.step = step;
    }

    /// Counts line ends from here on, for [`with_line`](Self::with_line).
    pub(crate) fn count_lines(mut self) -> Self {
        self.lines = Some(Lines::default());
        self
    }

    /// A record begins here, whose lines have numbers until the next one begins.
    #[inline]
    pub(crate) fn begin_record(&mut self) {
        let offset = self.offset();
        if let Some(lines) = &mut self.lines {
            lines.begin_record(offset);
        }
    }

    /// The error with the number of its line, if lines are counted and its offset is in memory or in the current record.
    #[cold]
    pub(crate) fn with_line(&self, error: Error) -> Error {
        let (Some(lines), Some(offset)) = (&self.lines, error.offset()) else { return error };
        let Some(before) = offset.checked_sub(self.base) else {
            return match lines.before(offset) {
                Some(line) => error.line(line),
                None => error,
            };
        };
        let before = usize::try_from(before).unwrap_or(usize::MAX).min(self.end);
        error.line(lines.after(self.memory.as_slice().get(..before).unwrap_or_default()))
    }

    /// The offset in the file of the next byte.
    #[inline]
    pub(crate) fn offset(&self) -> u64 {
        self.base + self.position as u64
    }

    /// The unused bytes in memory.
    #[inline]
    pub(crate) fn rest(&self) -> &[u8] {
        self.memory.as_slice().get(self.position..self.end).unwrap_or_default()
    }

    /// The next byte, if it is in memory.
    #[inline]
    pub(crate) fn first(&self) -> Option<u8> {
        if self.position < self.end { self.memory.as_slice().get(self.position).copied() } else { None }
    }

    /// The `count` bytes before the next one, if they are still in memory.
    #[inline]
    pub(crate) fn before(&self, count: usize) -> &[u8] {
        let start = self.position.saturating_sub(count);
        self.memory.as_slice().get(start..self.position).unwrap_or_default()
    }

    /// Advances past `count` bytes that are in memory.
    #[inline]
    pub(crate) fn advance(&mut self, count: usize) {
        self.position = self.end.min(self.position.saturating_add(count));
    }

    /// Advances to `offset`, which a cursor has reached.
    pub(crate) fn advance_to(&mut self, offset: u64) {
        self.advance(usize::try_from(offset.saturating_sub(self.offset())).unwrap_or(usize::MAX));
    }

    /// A cursor over what is in memory and not used.
    pub(crate) fn cursor(&self) -> Cursor<'_> {
        Cursor::at(self.rest(), self.offset())
    }

    /// A part of what is in memory and not used, as a window of its own, whose offsets are not those in the file.
    pub(crate) fn piece(&self, range: Range<usize>) -> Window<io::Empty> {
        let at = |place: usize| self.position.saturating_add(place).min(self.end) as u64;
        Window::shared(io::empty(), &self.memory, at(range.start), at(range.end), self.budget.clone())
    }

    /// Whether nothing follows what is in memory.
    pub(crate) fn is_last(&self) -> bool {
        self.ended
    }

    /// Keeps an error of the input for whoever needs more than is in memory.
    pub(crate) fn fail(&mut self, error: Error) {
        self.failed = Some(error);
    }

    /// Goes back by pieces that were given out one after the other, up to the next byte.
    pub(crate) fn go_back(&mut self, pieces: &[Window<io::Empty>]) -> Result<()> {
        let count: usize = pieces.iter().map(|piece| piece.rest().len()).sum();
        if let Some(position) = self.position.checked_sub(count) {
            self.position = position;
            return Ok(());
        }
        let rest = self.rest();
        self.budget.check((count + rest.len()) as u64).map_err(|error| error.at(self.offset()))?;
        let memory = pieces.iter().map(Window::rest).chain([rest]).collect::<Vec<_>>().concat();
        if let Some(lines) = &mut self.lines {
            lines.leave(&self.memory[..self.position], self.base);
            lines.come_back(&memory[..count]);
        }
        self.base = self.offset().saturating_sub(count as u64);
        (self.position, self.end) = (0, memory.len());
        self.memory = Buffer::from_vec(memory);
        Ok(())
    }
}

impl<R: Read> Window<R> {
    /// Reads once past the bytes in memory; `false` if nothing follows. The room of used bytes is reused.
    #[cold]
    pub(crate) fn more(&mut self) -> Result<bool> {
        self.read_some(0)
    }

    /// Reads until at least `least` unused bytes are in memory; `false` if the input ends before.
    pub(crate) fn fill(&mut self, least: usize) -> Result<bool> {
        while self.end - self.position < least {
            if !self.read_some(least)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Doubles the window for a reader that needs more than is in memory. `false` if there is no more input and the
    /// reader could know it: [`is_last`](Self::is_last) was true before, or nothing is left.
    pub(crate) fn grow(&mut self) -> Result<bool> {
        let (held, was_last) = (self.rest().len(), self.ended);
        self.fill(held.saturating_mul(2).max(self.step))?;
        Ok(self.rest().len() > held || (self.ended && !was_last && held > 0))
    }

    /// Reads to the end; returns how many bytes were left.
    pub(crate) fn drain(&mut self) -> Result<u64> {
        let mut count = self.rest().len() as u64;
        self.position = self.end;
        self.check_input()?;
        if !self.ended {
            let left = self.limit - self.offset();
            count += io::copy(&mut self.input.by_ref().take(left), &mut io::sink())?;
            self.ended = true;
        }
        Ok(count)
    }

    fn check_input(&mut self) -> Result<()> {
        self.failed.take().map_or(Ok(()), Err)
    }

    /// Reads once into memory of at least `least` bytes.
    fn read_some(&mut self, least: usize) -> Result<bool> {
        self.check_input()?;
        if self.ended {
            return Ok(false);
        }
        let held = self.end - self.position;
        // Memory that pieces use is left to them.
        let own = if self.memory.strong_count() == 1 { self.memory.len() } else { held };
        let size = if held == own { held.saturating_mul(2) } else { own };
        // One byte more than there is shows the end; where it is there, the file grows, and nobody knows by how much.
        let is_within = |len: &u64| self.offset().saturating_add(held as u64) <= *len;
        let left = self.len.filter(is_within).map_or(u64::MAX, |len| (len - self.offset()).saturating_add(1));
        let most = usize::try_from(left).unwrap_or(usize::MAX).max(held + 1);
        let size = size.max(self.step).max(least).min(most).max(own);
        self.budget.check(size as u64).map_err(|error| error.at(self.offset()))?;
        let memory = std::mem::take(&mut self.memory);
        if let Some(lines) = &mut self.lines {
            lines.leave(&memory[..self.position], self.base);
        }
        let used = self.position..self.end;
        (self.base, self.position, self.end) = (self.offset(), 0, held);
        let moved = |memory: &[u8]| {
            let mut larger = vec![0; size];
            larger[..held].copy_from_slice(&memory[used.clone()]);
            larger
        };
        let mut memory = match memory.into_vec::<u8>() {
            Ok(mut memory) if memory.len() >= size => {
                if used.start > 0 {
                    memory.copy_within(used, 0);
                }
                memory
            }
            Ok(memory) => moved(&memory),
            Err(shared) => moved(&shared),
        };
        let left = usize::try_from(self.limit - self.base).unwrap_or(usize::MAX);
        let room = memory.len().min(left);
        let read = read_once(&mut self.input, &mut memory[held..room]);
        self.memory = Buffer::from_vec(memory);
        let count = read.map_err(|error| Error::from(error).at(self.base + held as u64))?;
        self.end += count;
        self.ended = count == 0;
        Ok(count > 0)
    }
}

fn read_once(input: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    loop {
        match input.read(buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}

impl<R> Window<R> {
    /// A window over `input`, which is a source's bytes from `start`; over the bytes themselves, if they are in memory.
    pub(crate) fn with_input(
        source: &Source,
        input: R,
        start: u64,
        end: Option<u64>,
        step: usize,
        budget: Budget,
    ) -> Self {
        let limit = end.unwrap_or(u64::MAX);
        match source.memory() {
            Some(memory) => Window::shared(input, memory, start, limit, budget),
            None => {
                let len = source.len().map(|len| len.min(limit));
                Window { limit, len, ..Window::new(input, start, step, budget) }
            }
        }
    }
}

impl Window {
    /// A window over the bytes of a source from `start` to `end`, or to the end of the source.
    pub(crate) fn over(
        source: &Source,
        start: u64,
        end: Option<u64>,
        step: usize,
        budget: Budget,
    ) -> Result<Self> {
        let input = source.reader_at(start)?;
        Ok(Window::with_input(source, input, start, end, step, budget))
    }

    /// A window over the bytes of a source that can be read at any offset, from 0 to `end`.
    pub(crate) fn anywhere(source: &Source, end: u64, step: usize, budget: Budget) -> Self {
        let input = SourceReader { source: source.clone(), offset: 0, stream: None };
        Window::with_input(source, input, 0, Some(end), step, budget)
    }

    /// Moves to `offset`, which is before the end of the input.
    pub(crate) fn seek(&mut self, offset: u64) -> Result<()> {
        let held = offset.checked_sub(self.base).and_then(|count| usize::try_from(count).ok());
        match held {
            Some(position) if position <= self.end || self.is_whole() => {
                self.position = position.min(self.end)
            }
            _ => {
                self.input.seek(SeekFrom::Start(offset))?;
                (self.position, self.end, self.base, self.ended) = (0, 0, offset, false);
            }
        }
        Ok(())
    }

    /// At least `least` bytes from `offset`, and as many more as are in memory.
    pub(crate) fn at(&mut self, offset: u64, least: usize) -> Result<&[u8]> {
        self.seek(offset)?;
        if !self.fill(least)? {
            let found = self.rest().len();
            return Err(Error::truncated(format_args!("{least} bytes"), found).at(offset));
        }
        Ok(self.rest())
    }

    /// Whether the window is over bytes that are all in memory.
    fn is_whole(&self) -> bool {
        self.base == 0 && self.ended
    }
}
