//! Records and their fields, from a window of a stream.

use std::io::{Empty, Read};

use crate::error::{Error, Result};
use crate::formats::text::pieces::Pieces;
use crate::limits::Budget;
use crate::source::Window;

use super::dialect::CsvDialect;

/// How much is read at a time.
pub(super) const WINDOW_BYTES: usize = 64 << 10;

/// Where a field is in its record, without its quotes.
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
    /// Whether it is in quotes.
    pub(super) quoted: bool,
    doubled: bool,
    quote: u8,
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
            after_quote = *byte == self.quote && !after_quote;
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
    window: Window<R>,
    dialect: CsvDialect,
    /// The record given last, which ends at the window's position: its bytes with its line end, and its fields.
    record: usize,
    spans: Vec<Span>,
}

/// How a scan of the window went.
enum Scan {
    /// A record of so many bytes, its line end included.
    Record(usize),
    /// The window ends before the record does.
    Short,
}

impl<R: Read> Records<R> {
    pub(super) fn new(input: R, dialect: &CsvDialect, budget: Budget) -> Self {
        Records::at(input, 0, dialect, budget)
    }

    /// The records of input that begins at `offset` in the file.
    pub(super) fn at(input: R, offset: u64, dialect: &CsvDialect, budget: Budget) -> Self {
        Records::of(Window::new(input, offset, WINDOW_BYTES, budget), dialect)
    }

    /// The error with the line of its offset, if that is still in memory.
    #[cold]
    pub(super) fn with_line(&self, error: Error) -> Error {
        self.window.with_line(error)
    }

    /// The records from the window's position.
    pub(super) fn of(window: Window<R>, dialect: &CsvDialect) -> Self {
        Records { window: window.count_lines(), dialect: dialect.clone(), record: 0, spans: Vec::new() }
    }

    /// The offset of the next record.
    pub(super) fn offset(&self) -> u64 {
        self.window.offset()
    }

    /// The offset of the record given last.
    pub(super) fn record_offset(&self) -> u64 {
        self.window.offset() - self.record as u64
    }

    /// What the next piece of records was read into; `None` if they are to be read here.
    pub(super) fn next_piece<T: Send + 'static, W: FnOnce() -> Result<T> + Send + 'static>(
        &mut self,
        pieces: &mut Pieces<T>,
        reader: impl Fn(Records<Empty>) -> W,
    ) -> Result<Option<T>> {
        self.record = 0;
        pieces.next(&mut self.window, |piece| reader(Records::of(piece, &self.dialect)))
    }

    /// Goes past what comes before the first record: a byte order mark, and the lines that are to be skipped.
    pub(super) fn begin(&mut self) -> Result<()> {
        self.window.fill(3)?;
        let marked = self.window.rest().starts_with(b"\xef\xbb\xbf");
        self.window.advance(if marked { 3 } else { 0 });
        for _ in 0..self.dialect.skip {
            if !self.skip_line()? {
                break;
            }
        }
        self.record = 0;
        Ok(())
    }

    /// Goes past the rest of a line; `false` at the end of the input.
    fn skip_line(&mut self) -> Result<bool> {
        loop {
            let rest = self.window.rest();
            match memchr::memchr(b'\n', rest) {
                Some(end) => {
                    self.window.advance(end + 1);
                    return Ok(true);
                }
                None => {
                    self.window.advance(rest.len());
                    if !self.window.more()? {
                        return Ok(false);
                    }
                }
            }
        }
    }

    /// Reads the next record; `false` at the end of the input. After an error the record is skipped.
    pub(super) fn next_record(&mut self) -> Result<bool> {
        loop {
            if self.window.rest().is_empty() && !self.window.more()? {
                return Ok(false);
            }
            if self.dialect.comment.is_some() && self.window.first() == self.dialect.comment {
                self.skip_line()?;
                continue;
            }
            let (scanned, bytes) = match self.scan() {
                Ok(Scan::Record(bytes)) => (Ok(true), bytes),
                Ok(Scan::Short) => {
                    // The same record is scanned again with at least one byte more, or at the end of the input.
                    self.window.more()?;
                    continue;
                }
                Err((error, bytes)) => (Err(error), bytes),
            };
            self.record = bytes;
            self.window.advance(bytes);
            return scanned;
        }
    }

    /// Splits the next record; the error comes with how many bytes there are to the end of the record's line.
    fn scan(&mut self) -> Result<Scan, (Error, usize)> {
        self.spans.clear();
        let (window, offset, ended) = (self.window.rest(), self.window.offset(), self.window.is_last());
        let (delimiter, quote) = (self.dialect.delimiter, self.dialect.quote);
        let mut start = 0;
        loop {
            let span;
            let mut stop;
            start += self.spaces(start);
            if start == window.len() && !ended {
                return Ok(Scan::Short);
            }
            if quote.is_some() && window.get(start).copied() == quote {
                let (end, doubled) = match closing_quote(window, start + 1, quote.unwrap_or_default()) {
                    Some(found) => found,
                    None if ended => {
                        let offset = offset + start as u64;
                        let error = Error::truncated("a closing quote", "the end of the input").at(offset);
                        return Err((error, window.len()));
                    }
                    None => return Ok(Scan::Short),
                };
                span = Span { start: start + 1, end, quoted: true, doubled };
                stop = end + 1;
                stop += self.spaces(stop);
                let after = window.get(stop..).unwrap_or_default();
                match after {
                    [] if !ended => return Ok(Scan::Short),
                    [b'\r'] if !ended => return Ok(Scan::Short),
                    [] | [b'\n', ..] | [b'\r', b'\n', ..] | [b'\r'] => {}
                    [byte, ..] if *byte == delimiter => {}
                    [byte, ..] => {
                        let line = after.iter().position(|byte| *byte == b'\n');
                        if line.is_none() && !ended {
                            return Ok(Scan::Short);
                        }
                        let found = format!("{:?}", char::from(*byte));
                        let error = Error::malformed(
                            "a delimiter or the end of the line after a closing quote",
                            found,
                        )
                        .at(offset + stop as u64)
                        .rule("quote");
                        return Err((error, line.map_or(window.len(), |line| stop + line + 1)));
                    }
                }
            } else {
                let rest = window.get(start..).unwrap_or_default();
                let len = rest.iter().position(|byte| *byte == delimiter || *byte == b'\n');
                let end = match len {
                    Some(len) => start + len,
                    None if ended => window.len(),
                    None => return Ok(Scan::Short),
                };
                stop = end;
                // `\r\n` ends a line; a `\r` elsewhere belongs to the text.
                let ends_line = window.get(end).is_none_or(|byte| *byte == b'\n');
                let return_before = end > start && window.get(end - 1) == Some(&b'\r');
                let end = if ends_line && return_before { end - 1 } else { end };
                let text = window.get(start..end).unwrap_or_default();
                let spaces = text.iter().rev().take_while(|byte| self.dialect.is_space(**byte)).count();
                let end = end - spaces;
                span = Span { start, end, quoted: false, doubled: false };
            }
            self.spans.push(span);
            match window.get(stop) {
                Some(byte) if *byte == delimiter => start = stop + 1,
                Some(b'\r') => return Ok(Scan::Record((stop + 2).min(window.len()))),
                Some(_) => return Ok(Scan::Record(stop + 1)),
                None if self.dialect.needs_line_ends => {
                    let end = offset + window.len() as u64;
                    let error = Error::truncated("a line end after the last record", "the end of the input");
                    return Err((error.at(end), window.len()));
                }
                None => return Ok(Scan::Record(window.len())),
            }
        }
    }

    /// How many bytes of white space at this place of the window are dropped.
    fn spaces(&self, at: usize) -> usize {
        if !self.dialect.trim {
            return 0;
        }
        let rest = self.window.rest().get(at..).unwrap_or_default();
        rest.iter().take_while(|byte| self.dialect.is_space(**byte)).count()
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
        let (record, offset) = (self.window.before(self.record), self.record_offset());
        self.spans.iter().map(move |span| {
            let quotes = usize::from(span.quoted);
            Cell {
                raw: record.get(span.start..span.end).unwrap_or_default(),
                quoted: span.quoted,
                doubled: span.doubled,
                quote: self.dialect.quote.unwrap_or_default(),
                offset: offset + (span.start - quotes) as u64,
                bytes: (span.end - span.start + 2 * quotes) as u64,
            }
        })
    }
}

/// The position of the quote that ends a field, and whether quotes inside are doubled. A quote at the very end of the
/// window may be the first of two: then only the end of the input tells.
fn closing_quote(window: &[u8], start: usize, quote: u8) -> Option<(usize, bool)> {
    let mut doubled = false;
    let mut position = start;
    loop {
        let rest = window.get(position..)?;
        let found = position + memchr::memchr(quote, rest)?;
        if window.get(found + 1) != Some(&quote) {
            return Some((found, doubled));
        }
        doubled = true;
        position = found + 2;
    }
}
