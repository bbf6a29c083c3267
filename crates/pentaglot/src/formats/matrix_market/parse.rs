//! The entries, parsed in parallel: the file is divided into pieces, and each piece has the lines that begin
//! in it.

use std::ops::Range;

use super::cell::Cell;
use super::layout::{Header, LINE_BYTES, Symmetry};
use super::number_text::Scanner;
use super::quick::{self, Previous};
use crate::control::{Control, Spare};
use crate::cursor::allocate;
use crate::error::{Error, Result};
use crate::hub::matrix::build::{Entries, Index};
use crate::limits::Budget;
use crate::source::Source;

/// Bytes that are read at a time past the end of a piece, for the rest of its last line.
const LINE_ROOM: usize = 512;
/// Bytes of a piece.
const PIECE_BYTES: u64 = 2 << 20;

/// The entries of a file as text.
#[derive(Clone)]
pub(super) struct Body {
    pub(super) source: Source,
    pub(super) header: Header,
    pub(super) budget: Budget,
    pub(super) control: Control,
    /// Where the entries end.
    pub(super) end: u64,
}

/// What is wrong with a line, and its place.
pub(super) type Fault = Error;

impl Body {
    /// The pieces of the body.
    pub(super) fn pieces(&self) -> Vec<Range<u64>> {
        let (start, end) = (self.header.body_offset, self.end);
        let count = end.saturating_sub(start).div_ceil(PIECE_BYTES);
        (0..count)
            .map(|piece| {
                let from = start + piece * PIECE_BYTES;
                from..end.min(from + PIECE_BYTES)
            })
            .collect()
    }

    /// No more entries than this are stored: the number in the size line, if the file is long enough for it.
    pub(super) fn most_entries(&self) -> u64 {
        // Two digits, a blank and a newline, which the last line need not have.
        let bytes = self.end.saturating_sub(self.header.body_offset);
        self.header.entries.min((bytes + 1) / 4)
    }

    /// How many pieces are parsed at a time: a few per thread, fewer if memory is short.
    pub(super) fn group(&self) -> usize {
        let room = self.budget.limits().max_alloc / (8 * PIECE_BYTES);
        usize::try_from(room).unwrap_or(usize::MAX).clamp(1, (4 * self.control.threads()).max(16))
    }

    /// Applies `work` to each piece, in parallel; results are in the order of the pieces.
    pub(super) fn each<T: Send>(
        &self,
        pieces: &[Range<u64>],
        work: impl Fn(&[u8], u64) -> Result<T> + Sync + Send,
    ) -> Result<Vec<T>> {
        let texts = Spare::default();
        let one = |piece: &Range<u64>| {
            let mut text = texts.take();
            let result = self.lines(piece, &mut text).and_then(|(text, offset)| work(text, offset));
            texts.keep(text);
            result
        };
        // Waits for all results, since the error of the first piece is reported.
        self.control.map(pieces.iter().collect(), one)?.into_iter().collect()
    }

    /// The lines that begin in a piece, and the offset of the first. They are in `text`, whose content before does not
    /// matter.
    pub(super) fn lines<'t>(&self, piece: &Range<u64>, text: &'t mut Vec<u8>) -> Result<(&'t [u8], u64)> {
        // The byte before the piece says whether a line begins with it.
        let from = if piece.start == self.header.body_offset { piece.start } else { piece.start - 1 };
        let bytes = usize::try_from(piece.end - from).unwrap_or(0);
        if text.capacity() < bytes {
            self.budget.check(piece.end - from)?;
            // With room for the rest of the last line, so that the text does not move when it is added.
            *text = allocate(piece.end - from + LINE_ROOM as u64, &self.budget)?;
        }
        // Zeros are written only to memory that has not been used before.
        text.resize(bytes, 0);
        self.source.read_exact_at(from, text)?;
        let mut skip = 0;
        if from != piece.start {
            match memchr::memchr(b'\n', text) {
                Some(newline) => skip = newline + 1,
                None => return Ok((&[], piece.end)),
            }
        }
        let mut block = [0; LINE_ROOM];
        let mut next = piece.end;
        while text.last() != Some(&b'\n') && next < self.end {
            let count = self.source.read_at(next, &mut block)?;
            let read = block.get(..count).unwrap_or_default();
            match memchr::memchr(b'\n', read) {
                Some(newline) => text.extend(read.iter().take(newline + 1)),
                None => text.extend(read),
            }
            next += count as u64;
            if count == 0 || next - piece.end > LINE_BYTES as u64 {
                let expected = format_args!("a line below {LINE_BYTES} bytes");
                return Err(Error::malformed(expected, "a longer one").at(piece.end).rule("line"));
            }
        }
        // The whole piece may be part of one line.
        match text.get(skip..) {
            Some(lines) if !lines.is_empty() => Ok((lines, from + skip as u64)),
            _ => Ok((&[], piece.end)),
        }
    }

    /// The coordinate entries in `rows`, mirrored ones too, are added to `entries`; returns the number of lines. With
    /// `faults`, errors are added there and reading continues.
    pub(super) fn entries<I: Index, T: Cell>(
        &self,
        text: &[u8],
        offset: u64,
        rows: &Range<u64>,
        entries: &mut Entries<I, T>,
        mut faults: Option<&mut Vec<Fault>>,
    ) -> Result<u64> {
        let header = &self.header;
        let (size, symmetry) = ((header.rows, header.cols), header.symmetry);
        let mut previous = Previous::default();
        let mut count = 0u64;
        let mut scanner = Scanner::new(text);
        loop {
            let (entry, start) = match quick_entry::<T>(text, scanner.at(), &mut previous, size) {
                Some((entry, next)) => {
                    let start = scanner.at();
                    scanner.go_to(next);
                    (Ok(entry), start)
                }
                None if !scanner.next_line() => return Ok(count),
                None => {
                    let start = scanner.at();
                    (entry::<T>(&mut scanner, size), start)
                }
            };
            count += 1;
            let pushed = entry.and_then(|(row, col, value)| {
                let (Some(small_row), Some(small_col)) = (I::from_u64(row), I::from_u64(col)) else {
                    return Err("row");
                };
                if rows.contains(&row) {
                    entries.push(small_row, small_col, value);
                }
                if symmetry != Symmetry::General {
                    if row != col {
                        if rows.contains(&col) {
                            entries.push(small_col, small_row, value.mirror(symmetry).ok_or("mirror")?);
                        }
                    } else if symmetry == Symmetry::Skew {
                        return Err("diagonal");
                    }
                }
                Ok(())
            });
            if let Err(part) = pushed {
                let error = self.fault::<T>(part, &scanner, offset, start);
                match &mut faults {
                    None => return Err(error),
                    Some(faults) => faults.push(error),
                }
                // `diagonal` and `mirror` are found after the newline was read.
                if !matches!(part, "diagonal" | "mirror") {
                    scanner.skip_line();
                }
            }
        }
    }

    /// The values of an array, one per line.
    pub(super) fn values<T: Cell>(
        &self,
        text: &[u8],
        offset: u64,
        mut faults: Option<&mut Vec<Fault>>,
    ) -> Result<(Vec<T>, u64)> {
        let mut values = Vec::new();
        let mut count = 0;
        let mut scanner = Scanner::new(text);
        loop {
            if let Some((value, next)) = quick_value(text, scanner.at()) {
                scanner.go_to(next);
                values.push(value);
                count += 1;
                continue;
            }
            if !scanner.next_line() {
                return Ok((values, count));
            }
            count += 1;
            let start = scanner.at();
            let value = T::scan(&mut scanner);
            let part = match value {
                Some(value) if scanner.line_end() => {
                    values.push(value);
                    continue;
                }
                Some(_) => "end",
                None => "value",
            };
            let error = self.fault::<T>(part, &scanner, offset, start);
            match &mut faults {
                None => return Err(error),
                Some(faults) => faults.push(error),
            }
            scanner.skip_line();
        }
    }

    #[cold]
    fn fault<T: Cell>(&self, part: &'static str, scanner: &Scanner<'_>, offset: u64, start: usize) -> Error {
        let mut at = scanner.clone();
        at.blanks();
        let token = String::from_utf8_lossy(at.token()).into_owned();
        let found = if token.is_empty() { "the end of the line".to_owned() } else { format!("{token:?}") };
        let found = if found.len() > 60 { format!("{} bytes", token.len()) } else { found };
        let place = offset + at.at() as u64;
        let error = match part {
            "row" => Error::malformed(format_args!("a row in 1..={}", self.header.rows), found)
                .at(place)
                .rule("row"),
            "column" => Error::malformed(format_args!("a column in 1..={}", self.header.cols), found)
                .at(place)
                .rule("column"),
            "value" => Error::malformed(T::EXPECTED, found).at(place).rule("value"),
            "mirror" => {
                let expected = "a value whose negative fits its type";
                Error::malformed(expected, "the lowest one").at(offset + start as u64).rule("value")
            }
            "diagonal" => {
                let expected = "no entry on the diagonal of a skew-symmetric matrix";
                Error::malformed(expected, "one").at(offset + start as u64).rule("diagonal")
            }
            _ => Error::malformed("the end of the line", found).at(place).rule("line-end"),
        };
        error.field(if matches!(part, "end" | "diagonal" | "mirror") { "entry" } else { part })
    }

    /// Compares the number of lines with the size line.
    pub(super) fn check_count(&self, found: u64) -> Result<()> {
        // The file may have been rewritten between two pieces.
        self.source.check_unchanged()?;
        let expected = self.header.entries;
        if found < expected {
            let error = Error::truncated(format_args!("{expected} entries"), found);
            return Err(error.at(self.end).field("entries").rule("entries"));
        }
        if found > expected {
            let error = Error::malformed(format_args!("{expected} entries"), found);
            return Err(error.at(self.header.size_offset).field("entries").rule("entries"));
        }
        Ok(())
    }
}

/// A row or column number, counted from 0.
#[inline]
fn index(scanner: &mut Scanner<'_>, count: u64) -> Option<u64> {
    let mut ahead = scanner.clone();
    let number = ahead.unsigned()?.checked_sub(1).filter(|number| *number < count)?;
    *scanner = ahead;
    Some(number)
}

/// The row, the column and the value of a line.
type Entry<T> = (u64, u64, T);

/// The entry that the scanner is at, and the end of its line; otherwise the part that is wrong.
#[inline]
fn entry<T: Cell>(scanner: &mut Scanner<'_>, (rows, cols): (u64, u64)) -> Result<Entry<T>, &'static str> {
    let row = index(scanner, rows).ok_or("row")?;
    let col = index(scanner, cols).ok_or("column")?;
    let value = T::scan(scanner).ok_or("value")?;
    if scanner.line_end() { Ok((row, col, value)) } else { Err("end") }
}

/// The entry of a line as it is usually written, and where the next line begins. `None` if [`entry`] must read it.
#[inline(always)]
fn quick_entry<T: Cell>(
    text: &[u8],
    at: usize,
    previous: &mut Previous,
    (rows, cols): (u64, u64),
) -> Option<(Entry<T>, usize)> {
    let (row, at) = previous.unsigned(text, at)?;
    let (col, at) = quick::unsigned(text, at)?;
    let (row, col) = (row.wrapping_sub(1), col.wrapping_sub(1));
    if row >= rows || col >= cols {
        return None;
    }
    let at = if T::IS_STORED { quick::blank(text, at)? } else { at };
    let (value, at) = T::quick(text, at)?;
    Some(((row, col, value), quick::line_end(text, at)?))
}

/// As [`quick_entry`], for the value of an array.
#[inline(always)]
fn quick_value<T: Cell>(text: &[u8], at: usize) -> Option<(T, usize)> {
    // A line without a value is not one of an array.
    let (value, at) = if T::IS_STORED { T::quick(text, at)? } else { return None };
    Some((value, quick::line_end(text, at)?))
}
