//! Checks every block and value against the rules that opening does not check.
//!
//! | rule | what it says |
//! |---|---|
//! | `block-outside`, `block-overlap`, `block-gap` | each cell of the object is in exactly one block |
//! | `entry-count` | rows have as many entries as the block declares, and at most one for each column |
//! | `row-offsets` | begin at 0, never decrease, end at the number of entries |
//! | `column-range`, `row-range` | an entry is inside its block |
//! | `repeated-entry` | a cell has at most one entry |
//! | `value-range` | a block's value can be cast exactly to the object's type |
//! | `fixed-string` | a 16-byte string is UTF-8 text, padded with NUL |
//! | `unsorted` (note) | the columns of a row are increasing |
//! | `label-text`, `label-repeated`, `label-length` (warnings) | labels are text, distinct, and DAPHNE can read them |
//! | `meta-ignored` (warning) | a `.meta` file belongs to the data and is consistent with it |
//!
//! Errors that prevent opening have the rules `version`, `data-type`, `value-type`, `block-type`,
//! `block-position`, `block-shape`, `block-value-type`, `truncated`, `trailing`, `meta`, `meta-disagrees`.

use std::collections::HashSet;

use crate::cursor::allocate;
use crate::error::{Error, ErrorKind, Result};
use crate::formats::Findings;

use super::assemble::{does_not_survive, fixed_text, not_fixed_text};
use super::cast::{self, Number};
use super::layout::{Block, Encoding};
use super::meta;
use super::open::File;
use super::sparse::{BlockWindow, for_each_coordinate, repeated};
use super::tiling;
use super::types::{DataType, Dialect, ValueType};

/// Reports everything that is wrong.
pub(super) fn run(file: &File, findings: &mut Findings) -> Result<()> {
    tiling::check(&file.layout, |error| {
        findings.error(&error);
        !findings.is_full()
    });
    labels(file, findings);
    if let Some(why) = &file.ignored_meta {
        findings
            .warning(&Error::new(ErrorKind::Malformed, why.clone()).field(meta::SUFFIX).rule("meta-ignored"));
    }
    for (index, block) in file.layout.blocks.iter().enumerate() {
        if findings.is_full() {
            return Ok(());
        }
        let mut check = Check { file, block, index: index as u64, findings: &mut *findings };
        match check.block() {
            Ok(()) => {}
            // A fault after which the rest of the block cannot be parsed.
            Err(error) if matches!(error.kind(), ErrorKind::Malformed | ErrorKind::Truncated) => {
                findings.error(&error.index(index as u64).field("block"));
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn labels(file: &File, findings: &mut Findings) {
    let header = &file.layout.header;
    let mut seen = HashSet::new();
    let mut offset = 18 + u64::from(header.dialect == Dialect::Daphne01) * 6 + header.labels.len() as u64;
    for (index, label) in (0u64..).zip(&header.labels) {
        offset += 2;
        let mut warn = |expected: &str, found: String, rule| {
            let error =
                Error::malformed(expected, found).at(offset).index(index).field("labels").field("header");
            findings.warning(&error.rule(rule));
        };
        if header.dialect == Dialect::Spec {
            if std::str::from_utf8(label).is_err() {
                warn("UTF-8 text", "other bytes".to_owned(), "label-text");
            }
            if !seen.insert(label) {
                warn("labels that differ", String::from_utf8_lossy(label).into_owned(), "label-repeated");
            }
        } else if label.len() > 32 {
            warn("at most 32 bytes, which DAPHNE can read", label.len().to_string(), "label-length");
        }
        offset += label.len() as u64;
    }
}

struct Check<'a> {
    file: &'a File,
    block: &'a Block,
    index: u64,
    findings: &'a mut Findings,
}

impl Check<'_> {
    fn block(&mut self) -> Result<()> {
        match self.file.layout.encoding(self.block) {
            Encoding::Empty => Ok(()),
            Encoding::Dense | Encoding::FrameRows => self.cells(),
            Encoding::Sparse => self.rows::<4>(),
            Encoding::WideSparse => self.rows::<8>(),
            Encoding::CsrArrays => self.arrays(),
            Encoding::UltraSparse => self.coordinates(),
        }
    }

    fn report(&mut self, error: Error) {
        self.findings.error(&error.index(self.index).field("block"));
    }

    /// The types from and to which values of a column must be cast, if that may fail.
    fn target(&self, col: u64) -> Option<(ValueType, ValueType)> {
        let to = self.file.layout.header.value_type(self.block.col.checked_add(col)?)?;
        let from = self.block.value_type.unwrap_or(to);
        (!cast::always_fits(from, to) || to == ValueType::FixedStr16).then_some((from, to))
    }

    fn value(&mut self, bytes: &[u8], row: u64, col: u64, offset: u64) {
        let Some((from, to)) = self.target(col) else { return };
        let mut room = [0; 8];
        let fault = if to == ValueType::FixedStr16 {
            let text = fixed_text(bytes).err();
            text.map(not_fixed_text)
        } else {
            let out = room.get_mut(..to.size()).unwrap_or_default();
            let cast = Number::read(from, bytes).and_then(|number| number.write(to, out));
            cast.is_none().then(|| does_not_survive(bytes, from, to))
        };
        if let Some(error) = fault {
            self.report(error.at(offset).index(col).field("col").index(row).field("row"));
        }
    }

    fn cells(&mut self) -> Result<()> {
        let block = self.block;
        let header = &self.file.layout.header;
        // The columns of a matrix have the same types.
        let asked = match header.data_type {
            DataType::Frame => block.cols,
            _ => block.cols.min(1),
        };
        if block.is_void() || (0..asked).all(|col| self.target(col).is_none()) {
            return Ok(());
        }
        let mut window = BlockWindow::new(&self.file.source, block, &self.file.budget);
        let mut offset = block.data_offset;
        for row in 0..block.rows {
            for col in 0..block.cols {
                let value_type = block.value_type.or_else(|| header.value_type(block.col.checked_add(col)?));
                let size = value_type.map_or(0, ValueType::size);
                if self.target(col).is_some() {
                    let bytes = window.at(offset, size as u64)?;
                    let mut cell = [0; 16];
                    let cell = cell.get_mut(..size).unwrap_or_default();
                    cell.copy_from_slice(bytes.get(..size).unwrap_or_default());
                    self.value(cell, row, col, offset);
                }
                offset += size as u64;
            }
            if self.findings.is_full() {
                break;
            }
        }
        Ok(())
    }

    /// Rows of a count and pairs; counts and columns have `WORD` bytes.
    fn rows<const WORD: usize>(&mut self) -> Result<()> {
        let block = self.block;
        let size = block.value_type.map_or(0, ValueType::size);
        let pair = WORD + size;
        let mut window = BlockWindow::new(&self.file.source, block, &self.file.budget);
        let mut offset = block.data_offset;
        let mut entries = 0;
        let mut columns: Vec<u32> = Vec::new();
        let mut unsorted = None;
        for row in 0..block.rows {
            let count = window.at(offset, WORD as u64)?;
            let count = word::<WORD>(count);
            let left = block.entries - entries;
            if count > left {
                // The next row cannot be found.
                let error =
                    Error::malformed(format_args!("at most {left} entries, as the block says"), count);
                return Err(error.at(offset).field("count").index(row).field("row").rule("entry-count"));
            }
            if count > block.cols {
                let error = Error::malformed(format_args!("at most {} entries", block.cols), count);
                self.report(error.at(offset).field("count").index(row).field("row").rule("entry-count"));
            }
            let bytes = window.at(offset + WORD as u64, count * pair as u64)?;
            columns.clear();
            let pairs = bytes.chunks_exact(pair).take(usize::try_from(count).unwrap_or(usize::MAX));
            for (entry, cell) in (0u64..).zip(pairs) {
                let (col, value) = cell.split_at(WORD);
                let col = word::<WORD>(col);
                let at = offset + WORD as u64 + entry * pair as u64;
                columns.push(u32::try_from(col).unwrap_or(u32::MAX));
                if col >= block.cols {
                    let error = Error::malformed(format_args!("a column below {}", block.cols), col).at(at);
                    self.report(entry_at(error, row, entry).rule("column-range"));
                } else {
                    self.value(value, row, col, at + WORD as u64);
                }
            }
            let start = offset + WORD as u64;
            self.columns(&columns, row, |entry| start + entry * pair as u64, &mut unsorted);
            offset += WORD as u64 + count * pair as u64;
            entries += count;
            if self.findings.is_full() {
                return Ok(());
            }
        }
        self.note_unsorted(unsorted);
        if entries != block.entries {
            let error =
                Error::malformed(format_args!("{} entries, as the block says", block.entries), entries);
            self.report(error.at(block.data_offset - 8).field("entries").rule("entry-count"));
        }
        Ok(())
    }

    /// Repeats are errors; columns that are not increasing give a note.
    fn columns(
        &mut self,
        columns: &[u32],
        row: u64,
        place: impl Fn(u64) -> u64,
        unsorted: &mut Option<(u64, u64)>,
    ) {
        if columns.is_sorted_by(|one, next| one < next) {
            return;
        }
        if let Some(entry) = repeated(columns) {
            let col = columns.get(entry).copied().unwrap_or(0);
            let error = Error::malformed("columns that do not repeat in a row", col).at(place(entry as u64));
            self.report(entry_at(error, row, entry as u64).rule("repeated-entry"));
        } else {
            unsorted.get_or_insert((row, place(0)));
        }
    }

    fn note_unsorted(&mut self, unsorted: Option<(u64, u64)>) {
        if let Some((row, offset)) = unsorted {
            let error = Error::malformed("columns that rise", "another order, which is kept").at(offset);
            let error = error.index(row).field("row").index(self.index).field("block");
            self.findings.note(&error.rule("unsorted"));
        }
    }

    /// DAPHNE's three arrays.
    fn arrays(&mut self) -> Result<()> {
        let block = self.block;
        let size = block.value_type.map_or(0, ValueType::size) as u64;
        let cols_at = block.data_offset + (block.rows + 1) * 8;
        let values_at = cols_at + block.entries * 8;
        let mut offsets = BlockWindow::new(&self.file.source, block, &self.file.budget);
        let mut cols = BlockWindow::new(&self.file.source, block, &self.file.budget);
        let mut values = BlockWindow::new(&self.file.source, block, &self.file.budget);
        let mut before = 0;
        let mut sound = true;
        let mut columns: Vec<u32> = Vec::new();
        let mut unsorted = None;
        for index in 0..=block.rows {
            let at = block.data_offset + index * 8;
            let offset = word::<8>(offsets.at(at, 8)?);
            let fault = match index {
                0 if offset != 0 => Some("0".to_owned()),
                _ if offset < before => Some(format!("at least {before}")),
                _ if offset > block.entries => Some(format!("at most {} entries", block.entries)),
                _ if index == block.rows && offset != block.entries => {
                    Some(format!("{} entries", block.entries))
                }
                _ => None,
            };
            if let Some(expected) = fault {
                sound = false;
                let error = Error::malformed(expected, offset).at(at).index(index).field("row_offsets");
                self.report(error.rule("row-offsets"));
                if offset > block.entries {
                    continue;
                }
            }
            // If the offsets are wrong, rows are not known; columns can still be checked against their range.
            if sound && index > 0 {
                columns.clear();
                for entry in before..offset {
                    columns
                        .push(u32::try_from(word::<8>(cols.at(cols_at + entry * 8, 8)?)).unwrap_or(u32::MAX));
                }
                let first = cols_at + before * 8;
                self.columns(&columns, index - 1, |entry| first + entry * 8, &mut unsorted);
            }
            before = offset;
            if self.findings.is_full() {
                return Ok(());
            }
        }
        self.note_unsorted(unsorted);
        for entry in 0..block.entries {
            let at = cols_at + entry * 8;
            let col = word::<8>(cols.at(at, 8)?);
            if col >= block.cols {
                let error = Error::malformed(format_args!("a column below {}", block.cols), col).at(at);
                self.report(error.index(entry).field("column_indices").rule("column-range"));
            }
            if self.target(0).is_some() {
                let at = values_at + entry * size;
                let mut cell = [0; 16];
                let cell = cell.get_mut(..usize::try_from(size).unwrap_or(0)).unwrap_or_default();
                cell.copy_from_slice(values.at(at, size)?.get(..cell.len()).unwrap_or_default());
                self.value(cell, 0, col, at);
            }
            if self.findings.is_full() {
                return Ok(());
            }
        }
        Ok(())
    }

    fn coordinates(&mut self) -> Result<()> {
        let block = self.block;
        let file = self.file;
        let mut seen: Vec<(u32, u32, u64, u64)> = allocate(block.entries, &file.budget)?;
        for_each_coordinate(&file.source, block, &file.budget, |index, offset, row, col, value| {
            let mut outside = |found: u32, limit: u64, what: &'static str, rule: &'static str, at: u64| {
                let wrong = u64::from(found) >= limit;
                if wrong {
                    let error = Error::malformed(format_args!("a {what} below {limit}"), found).at(at);
                    self.report(error.field(what).index(index).field("entry").rule(rule));
                }
                wrong
            };
            let row_outside = outside(row, block.rows, "row", "row-range", offset);
            let col_outside = outside(col, block.cols, "col", "column-range", offset + 4);
            if !row_outside && !col_outside {
                let at = offset + if block.cols == 1 { 4 } else { 8 };
                self.value(value, u64::from(row), u64::from(col), at);
            }
            seen.push((row, col, index, offset));
            Ok(())
        })?;
        seen.sort_unstable();
        for pair in seen.windows(2) {
            if let &[(row, col, ..), (again, column, index, offset)] = pair
                && (row, col) == (again, column)
            {
                let found = format!("row {row}, column {col} again");
                let error = Error::malformed("entries that do not repeat", found).at(offset);
                self.report(error.index(index).field("entry").rule("repeated-entry"));
            }
        }
        Ok(())
    }
}

fn entry_at(error: Error, row: u64, entry: u64) -> Error {
    error.field("col").index(entry).field("entry").index(row).field("row")
}

fn word<const WORD: usize>(bytes: &[u8]) -> u64 {
    let mut word = [0; 8];
    for (to, from) in word.iter_mut().zip(bytes.iter().take(WORD)) {
        *to = *from;
    }
    u64::from_le_bytes(word)
}
