//! Records and their fields, from a window of a stream.

use std::io::Read;

use crate::error::{Error, Result};
use crate::limits::Budget;

/// How much is read ahead.
const WINDOW_BYTES: usize = 64 << 10;

/// Where a field stands in the window, without its quotes.
#[derive(Debug, Clone, Copy)]
struct Span {
    start: usize,
    end: usize,
    quoted: bool,
    /// Whether quotes in it are doubled.
    doubled: bool,
}

/// A field of a record.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cell<'a> {
    /// The text, in which quotes may be doubled.
    raw: &'a [u8],
    /// Whether it stood in quotes.
    pub(super) quoted: bool,
    doubled: bool,
    /// The offset of its first byte (a quote, if quoted).
    pub(super) offset: u64,
    /// How many bytes it takes with its quotes.
    pub(super) bytes: u64,
}

impl<'a> Cell<'a> {
    /// The text; `memory` holds it where quotes are doubled.
    #[inline]
    pub(super) fn text<'m>(&self, memory: &'m mut Vec<u8>) -> &'m [u8]
    where
        'a: 'm,
    {
        if !self.doubled {
            return self.raw;
        }
        memory.clear();
        let mut after_quote = false;
        for byte in self.raw {
            after_quote = *byte == b'"' && !after_quote;
            if !after_quote {
                memory.push(*byte);
            }
        }
        memory
    }

    /// Whether it has no text, in quotes or not.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.raw.is_empty()
    }

    /// Whether it is an empty field: a null.
    #[inline]
    pub(super) fn is_null(&self) -> bool {
        self.raw.is_empty() && !self.quoted
    }
}

/// Gives the records of a stream one after the other. A record must fit the budget.
pub(super) struct Records<R> {
    input: R,
    window: Vec<u8>,
    /// Bytes `position..end` are read but not used.
    position: usize,
    end: usize,
    base: u64,
    /// Line ends before the window.
    lines: u64,
    ended: bool,
    delimiter: u8,
    /// The record given last: where it stands, and its fields.
    start: usize,
    spans: Vec<Span>,
    budget: Budget,
}

/// How a scan of the window went.
enum Scan {
    /// A record that ends at this position, after its line end.
    Record(usize),
    /// The window ends before the record does.
    Short,
}

impl<R: Read> Records<R> {
    pub(super) fn new(input: R, delimiter: u8, budget: Budget) -> Self {
        Records::at(input, 0, delimiter, budget)
    }

    /// The records of input that stands at `offset` in the file.
    pub(super) fn at(input: R, offset: u64, delimiter: u8, budget: Budget) -> Self {
        Records {
            input,
            window: Vec::new(),
            position: 0,
            end: 0,
            base: offset,
            lines: 0,
            ended: false,
            delimiter,
            start: 0,
            spans: Vec::new(),
            budget,
        }
    }

    /// The offset of the next record.
    pub(super) fn offset(&self) -> u64 {
        self.base + self.position as u64
    }

    /// The offset of the record given last.
    pub(super) fn record_offset(&self) -> u64 {
        self.base + self.start as u64
    }

    /// Passes over a byte order mark at the start; says whether there was one.
    pub(super) fn skip_byte_order_mark(&mut self) -> Result<bool> {
        while self.end - self.position < 3 && self.more()? {}
        let rest = self.window.get(self.position..self.end).unwrap_or_default();
        let marked = rest.starts_with(b"\xef\xbb\xbf");
        self.position += if marked { 3 } else { 0 };
        Ok(marked)
    }

    /// The error with the line of its offset, if that is still in the window.
    #[cold]
    pub(super) fn with_line(&self, error: Error) -> Error {
        let Some(before) = error.offset().and_then(|offset| offset.checked_sub(self.base)) else {
            return error;
        };
        let before = usize::try_from(before).unwrap_or(usize::MAX).min(self.end);
        let before = self.window.get(..before).unwrap_or_default();
        error.line(self.lines + memchr::memchr_iter(b'\n', before).count() as u64 + 1)
    }

    #[cold]
    fn more(&mut self) -> Result<bool> {
        if self.ended {
            return Ok(false);
        }
        if self.position > 0 {
            let used = self.window.get(..self.position).unwrap_or_default();
            self.lines += memchr::memchr_iter(b'\n', used).count() as u64;
            self.window.copy_within(self.position..self.end, 0);
            self.base += self.position as u64;
            self.end -= self.position;
            self.position = 0;
        }
        if self.end == self.window.len() {
            let size = (self.window.len() * 2).max(WINDOW_BYTES);
            self.budget.check(size as u64)?;
            let mut larger = vec![0; size];
            if let Some(start) = larger.get_mut(..self.end) {
                start.copy_from_slice(&self.window);
            }
            self.window = larger;
        }
        loop {
            match self.input.read(self.window.get_mut(self.end..).unwrap_or_default()) {
                Ok(0) => {
                    self.ended = true;
                    return Ok(false);
                }
                Ok(count) => {
                    self.end += count;
                    return Ok(true);
                }
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(Error::from(error).at(self.offset())),
            }
        }
    }

    /// Reads the next record; `false` at the end of the input. After an error the record is passed over.
    pub(super) fn next_record(&mut self) -> Result<bool> {
        loop {
            if self.position >= self.end && !self.more()? {
                return Ok(false);
            }
            match self.scan() {
                Ok(Scan::Record(end)) => {
                    self.start = self.position;
                    self.position = end;
                    return Ok(true);
                }
                Ok(Scan::Short) => {
                    // Held against the input: the same record is scanned again with at least one byte more.
                    self.more()?;
                }
                Err((error, end)) => {
                    self.start = self.position;
                    self.position = end;
                    return Err(error);
                }
            }
        }
    }

    /// Splits the record at the position; the error comes with the position after the record's line.
    fn scan(&mut self) -> Result<Scan, (Error, usize)> {
        self.spans.clear();
        let window = self.window.get(..self.end).unwrap_or_default();
        let mut start = self.position;
        loop {
            let span;
            let stop;
            if window.get(start) == Some(&b'"') {
                let (end, doubled) = match closing_quote(window, start + 1) {
                    Some(found) => found,
                    None if self.ended => {
                        let offset = self.base + start as u64;
                        let error = Error::truncated("a closing quote", "the end of the input").at(offset);
                        return Err((error, self.end));
                    }
                    None => return Ok(Scan::Short),
                };
                span = Span { start: start + 1, end, quoted: true, doubled };
                stop = end + 1;
                let after = window.get(stop..).unwrap_or_default();
                match after {
                    [] if !self.ended => return Ok(Scan::Short),
                    [b'\r'] if !self.ended => return Ok(Scan::Short),
                    [] | [b'\n', ..] | [b'\r', b'\n', ..] | [b'\r'] => {}
                    [byte, ..] if *byte == self.delimiter => {}
                    [byte, ..] => {
                        let line = after.iter().position(|byte| *byte == b'\n');
                        if line.is_none() && !self.ended {
                            return Ok(Scan::Short);
                        }
                        let found = format!("{:?}", char::from(*byte));
                        let error = Error::malformed(
                            "a delimiter or the end of the line after a closing quote",
                            found,
                        )
                        .at(self.base + stop as u64)
                        .rule("quote");
                        return Err((error, line.map_or(self.end, |line| stop + line + 1)));
                    }
                }
            } else {
                let rest = window.get(start..).unwrap_or_default();
                let len = rest.iter().position(|byte| *byte == self.delimiter || *byte == b'\n');
                let end = match len {
                    Some(len) => start + len,
                    None if self.ended => self.end,
                    None => return Ok(Scan::Short),
                };
                stop = end;
                // `\r\n` ends a line; a `\r` elsewhere belongs to the text.
                let ends_line = window.get(end).is_none_or(|byte| *byte == b'\n');
                let return_before = end > start && window.get(end - 1) == Some(&b'\r');
                let end = if ends_line && return_before { end - 1 } else { end };
                span = Span { start, end, quoted: false, doubled: false };
            }
            self.spans.push(span);
            match window.get(stop) {
                Some(byte) if *byte == self.delimiter => start = stop + 1,
                Some(b'\r') => return Ok(Scan::Record((stop + 2).min(self.end))),
                Some(_) => return Ok(Scan::Record(stop + 1)),
                None => return Ok(Scan::Record(self.end)),
            }
        }
    }

    /// How many fields the record has.
    pub(super) fn len(&self) -> usize {
        self.spans.len()
    }

    /// Whether the record is an empty line.
    pub(super) fn is_blank(&self) -> bool {
        matches!(self.spans.as_slice(), [only] if only.start == only.end && !only.quoted)
    }

    /// The fields of the record.
    #[inline]
    pub(super) fn cells(&self) -> impl Iterator<Item = Cell<'_>> {
        self.spans.iter().map(|span| {
            let quotes = usize::from(span.quoted);
            Cell {
                raw: self.window.get(span.start..span.end).unwrap_or_default(),
                quoted: span.quoted,
                doubled: span.doubled,
                offset: self.base + (span.start - quotes) as u64,
                bytes: (span.end - span.start + 2 * quotes) as u64,
            }
        })
    }
}

/// The position of the quote that ends a field, and whether quotes inside are doubled. A quote at the very end of the
/// window may be the first of two: then only the end of the input tells.
fn closing_quote(window: &[u8], start: usize) -> Option<(usize, bool)> {
    let mut doubled = false;
    let mut position = start;
    loop {
        let rest = window.get(position..)?;
        let quote = position + rest.iter().position(|byte| *byte == b'"')?;
        if window.get(quote + 1) != Some(&b'"') {
            return Some((quote, doubled));
        }
        doubled = true;
        position = quote + 2;
    }
}
