//! What is sound in a damaged file: the lines before the first fault.
//!
//! Entries of a coordinate file come in any order, so that no row of the matrix is known to be whole before the last of
//! them. They are rows of a table instead: `row`, `col` (counted from 0) and `value`, as stored, none mirrored. Values of an
//! array come column by column: the whole columns are a matrix.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{DataType, Field, Schema, SchemaRef};

use super::cell::Cell;
use super::layout::{MarketField, MarketLayout, Symmetry};
use super::number_text::Scanner;
use super::parse::Body;
use super::{INFO, schema};
use crate::error::{Context, Error, Result};
use crate::formats::{MissingPart, Summary};
use crate::hub::matrix::build::{Entries, Index};
use crate::hub::shape::column_name;
use crate::hub::{Rows, Selection, rows};

/// What can be done with a file.
pub(super) enum Found {
    /// It is sound, or its whole columns are, without which it is opened.
    Matrix(Body, Option<MissingPart>),
    /// Entries before a fault.
    Entries(Box<EntriesDocument>),
}

/// Looks at every line of a file.
pub(super) fn look(body: Body, summary: &Summary) -> Result<Found> {
    match body.header.kind {
        MarketField::Real => typed::<f64>(body, summary),
        MarketField::Integer => typed::<i64>(body, summary),
        MarketField::Unsigned => typed::<u64>(body, summary),
        MarketField::Complex => typed::<[f64; 2]>(body, summary),
        MarketField::Pattern => typed::<i8>(body, summary),
    }
}

fn typed<T: Cell>(mut body: Body, summary: &Summary) -> Result<Found> {
    let (lines, expected) = (Lines::before_fault::<T>(&body, u64::MAX)?, body.header.entries);
    if lines.fault.is_none() && lines.count >= expected {
        // Whole, or with more lines than it should have, of which its reader tells.
        return Ok(Found::Matrix(body, None));
    }
    let end = body.end;
    let missing = || Error::truncated(format_args!("{expected} entries"), lines.count);
    let fault = lines.fault.clone().unwrap_or_else(|| missing().at(end).field("entries").to_string());
    if body.header.layout == MarketLayout::Coordinate {
        body.end = lines.end;
        let summary = entries_summary(&body, summary, lines.count.min(expected))?;
        return Ok(Found::Entries(Box::new(EntriesDocument { body, summary, fault, end })));
    }
    let (rows, all) = (body.header.rows, body.header.cols);
    let kept = lines.count.checked_div(rows).unwrap_or(0).min(all);
    if kept == 0 || body.header.symmetry != Symmetry::General {
        return Err(missing().at(end).field("entries").rule("entries"));
    }
    (body.header.cols, body.header.entries) = (kept, kept * rows);
    body.end = Lines::before_fault::<T>(&body, kept * rows)?.end;
    let name = match all - kept {
        0 => return Err(missing().at(end).field("entries").rule("entries")),
        1 => column_name(kept),
        _ => format!("{} to {}", column_name(kept), column_name(all - 1)),
    };
    let missing = MissingPart { name, bytes: body.end..end, reason: fault };
    Ok(Found::Matrix(body, Some(missing)))
}

/// The lines before the first fault.
struct Lines {
    count: u64,
    /// Where the last of them ends.
    end: u64,
    fault: Option<String>,
}

impl Lines {
    /// The lines before the first fault, up to `most`. A last line without a line end may be cut.
    fn before_fault<T: Cell>(body: &Body, most: u64) -> Result<Lines> {
        let mut found = Lines { count: 0, end: body.header.body_offset, fault: None };
        let mut memory = Vec::new();
        for piece in body.pieces() {
            let (text, offset) = body.lines(&piece, &mut memory)?;
            let whole = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
            let (text, rest) = text.split_at(whole);
            if !rest.iter().all(u8::is_ascii_whitespace) {
                let error = Error::truncated("a line end after the last entry", "the end of the file");
                found.fault = Some(error.at(offset + whole as u64).to_string());
            }
            let mut sound = text;
            let count = match lines_of::<T>(body, sound, offset) {
                Ok(count) => count,
                Err(error) if error.offset().is_some() => {
                    let at = error.offset().unwrap_or(offset).saturating_sub(offset);
                    let at = usize::try_from(at).unwrap_or(usize::MAX).min(sound.len());
                    let start = sound.iter().take(at).rposition(|byte| *byte == b'\n');
                    sound = sound.get(..start.map_or(0, |end| end + 1)).unwrap_or_default();
                    found.fault = Some(error.to_string());
                    lines_of::<T>(body, sound, offset)?
                }
                Err(error) => return Err(error),
            };
            if found.count.saturating_add(count) >= most {
                let mut scanner = Scanner::new(sound);
                for _ in 0..most - found.count {
                    scanner.next_line();
                    scanner.skip_line();
                }
                return Ok(Lines { count: most, end: offset + scanner.at() as u64, fault: None });
            }
            found.count += count;
            if !sound.is_empty() {
                found.end = offset + sound.len() as u64;
            }
            if found.fault.is_some() {
                break;
            }
        }
        Ok(found)
    }
}

fn lines_of<T: Cell>(body: &Body, text: &[u8], offset: u64) -> Result<u64> {
    Ok(match body.header.layout {
        MarketLayout::Coordinate => {
            body.entries(text, offset, &(0..u64::MAX), &mut Entries::<u64, T>::default(), None)?
        }
        MarketLayout::Array => body.values::<T>(text, offset, None)?.1,
    })
}

fn entries_summary(body: &Body, whole: &Summary, count: u64) -> Result<Summary> {
    let number = |name: &str| Field::new(name, DataType::UInt64, false);
    let value = schema::value_field(body.header.kind);
    let fields = vec![number("row"), number("col"), value];
    let mut summary = Summary::new(INFO.id, Arc::new(Schema::new(fields)));
    summary.rows = Some(body.header.entries.max(count));
    (summary.bytes, summary.parts) = (whole.bytes, whole.parts.clone());
    summary.metadata.clone_from(&whole.metadata);
    let note = "no row is known to be whole: the entries are a table of row, col and value";
    summary.notes.push(note.to_owned());
    Ok(summary)
}

/// The entries of a coordinate file as rows of a table.
pub(super) struct EntriesDocument {
    /// Its end is that of the last sound line.
    pub(super) body: Body,
    pub(super) summary: Summary,
    fault: String,
    /// Where the file ends.
    pub(super) end: u64,
}

impl EntriesDocument {
    /// Every sound entry, in the order of the file, then the fault.
    pub(super) fn entries(&self, request: &Selection) -> Rows {
        match self.body.header.kind {
            MarketField::Real => self.typed::<f64>(request),
            MarketField::Integer => self.typed::<i64>(request),
            MarketField::Unsigned => self.typed::<u64>(request),
            MarketField::Complex => self.typed::<[f64; 2]>(request),
            MarketField::Pattern => self.typed::<i8>(request),
        }
    }

    fn typed<T: Cell>(&self, request: &Selection) -> Rows {
        let range = request.range(u64::MAX);
        let schema = Arc::clone(request.row_schema());
        let mut body = self.body.clone();
        // As stored: entries are not mirrored.
        body.header.symmetry = Symmetry::General;
        let fault = Error::truncated("more entries", self.fault.clone()).at(body.end).field("entries");
        let (mut pieces, mut first, mut fault) = (body.pieces().into_iter(), 0, Some(fault));
        let inner = Arc::clone(&schema);
        let batches = std::iter::from_fn(move || {
            if first >= range.end {
                return None;
            }
            let Some(piece) = pieces.next() else {
                return fault.take().map(|fault| Err(fault.in_format(INFO.id)));
            };
            let batch = piece_batch::<T>(&body, &piece, &inner).map(|batch| {
                let count = batch.num_rows() as u64;
                let from = range.start.saturating_sub(first).min(count);
                let to = range.end.saturating_sub(first).min(count);
                first += count;
                batch.slice(index(from), index(to.saturating_sub(from)))
            });
            Some(batch.in_format(INFO.id))
        });
        let batch_rows = request.batch_rows();
        let batches = batches.flat_map(move |batch| cut(batch, batch_rows));
        rows::from_batches(schema, batches)
    }
}

/// A batch as batches of so many rows; of any number if that is 0.
fn cut(batch: Result<RecordBatch>, rows: usize) -> Vec<Result<RecordBatch>> {
    match batch {
        Ok(batch) if rows > 0 && batch.num_rows() > rows => (0..batch.num_rows())
            .step_by(rows)
            .map(|from| Ok(batch.slice(from, rows.min(batch.num_rows() - from))))
            .collect(),
        other => vec![other],
    }
}

fn index(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

fn piece_batch<T: Cell>(body: &Body, piece: &Range<u64>, schema: &SchemaRef) -> Result<RecordBatch> {
    let mut memory = Vec::new();
    let (text, offset) = body.lines(piece, &mut memory)?;
    let mut entries = Entries::<u64, T>::default();
    body.entries(text, offset, &(0..u64::MAX), &mut entries, None)?;
    let count = entries.values.len();
    let columns = vec![u64::array(entries.rows), u64::array(entries.cols), T::array(entries.values)];
    rows::batch(Arc::clone(schema), columns, count)
}
