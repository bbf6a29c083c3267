//! What is sound in a document, found by reading it.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::Schema;

use super::LostRows;
use crate::error::{Error, ErrorKind, Hint, Result};
use crate::formats::{Document, Findings, MissingPart, Outline, Split, Summary};
use crate::hub::{Form, Rows, Selection, Shape, rows, shape};
use crate::job::Opened;

/// How many parts of a file are read alone at the most.
const MOST_PARTS: usize = 1 << 16;
/// Up to this many parts are each looked at.
const FEW_PARTS: usize = 1 << 10;
/// Rows that are read at a time; after a fault, rows are read one by one from the last whole batch on.
const BATCH_ROWS: usize = 1024;

/// What is sound in a document.
pub(super) struct Sound {
    pub(super) rows: Vec<Range<u64>>,
    /// The columns, if not all.
    columns: Option<Vec<usize>>,
    pub(super) lost_rows: Vec<LostRows>,
    pub(super) lost_columns: Vec<MissingPart>,
    /// The first limit that was reached: a damaged length asks for too much, and so may a sound one.
    limit: Option<Error>,
    /// Whether something else than the limit on memory was met.
    is_damaged: bool,
}

impl Sound {
    /// Whole rows; or whole columns, if more values are saved so.
    pub(super) fn find(document: &dyn Document) -> Result<Self> {
        let all = document.selection();
        let found = sound_rows(document, &all)?;
        let columns = document.summary().schema.fields().len() as u64;
        let is_table = Form::of(&document.summary().schema) == Form::Table;
        if is_table && columns > 1 && found.lost_count() > found.row_count() {
            let by_columns = sound_columns(document, &all)?;
            if let Some(other) = by_columns
                && other.row_count().saturating_mul(other.column_count(columns))
                    > found.row_count().saturating_mul(columns)
            {
                return other.within_limits();
            }
        }
        found.within_limits()
    }

    /// An error if only the limit on memory was met, or nothing could be read because of a limit: whether the file is
    /// damaged is not known then.
    fn within_limits(mut self) -> Result<Self> {
        match self.limit.take_if(|_| !self.is_damaged || self.rows.is_empty()) {
            Some(limit) => Err(limit),
            None => Ok(self),
        }
    }

    pub(super) fn row_count(&self) -> u64 {
        self.rows.iter().map(|range| range.end - range.start).sum()
    }

    /// How many rows are lost; where that is not known, whether any row was found decides.
    fn lost_count(&self) -> u64 {
        let lost = self.lost_rows.iter().map(|lost| match lost.rows.end {
            u64::MAX if !self.rows.is_empty() => 0,
            end => end - lost.rows.start,
        });
        lost.fold(0, u64::saturating_add)
    }

    fn column_count(&self, all: u64) -> u64 {
        self.columns.as_ref().map_or(all, |columns| columns.len() as u64)
    }

    /// The document of what is sound.
    pub(super) fn opened(self, opened: &Opened) -> Result<Opened> {
        if self.lost_rows.is_empty() && self.columns.is_none() {
            return Ok(opened.clone());
        }
        let inner = Arc::clone(&opened.document);
        let mut summary = inner.summary().clone();
        let mut selection = inner.selection();
        if let Some(columns) = &self.columns {
            let ranges = columns.iter().map(|index| *index as u64..*index as u64 + 1).collect();
            selection = selection.with_column_ranges(ranges)?;
        }
        let count = self.row_count();
        // The native type may name a number of rows.
        let schema = crate::hub::native::sliced(selection.schema());
        let mut metadata = schema.metadata().clone();
        if metadata.contains_key(shape::ROWS_KEY) {
            metadata.insert(shape::ROWS_KEY.to_owned(), count.to_string());
        }
        summary.schema = Arc::new(Schema::new_with_metadata(schema.fields().clone(), metadata));
        summary.rows = Some(count);
        summary.nonzeros = None;
        summary.null_counts.clear();
        let document = Salvage { inner, summary, selection, ranges: self.rows };
        Ok(Opened { document: Arc::new(document), ..opened.clone() })
    }
}

/// The columns that can be read alone, to their last rows; `None` if there are none.
fn sound_columns(document: &dyn Document, all: &Selection) -> Result<Option<Sound>> {
    let (mut kept, mut lost) = (Vec::new(), Vec::new());
    let (mut limit, mut is_damaged) = (None, false);
    for (index, field) in document.summary().schema.fields().iter().enumerate() {
        let alone =
            all.clone().with_column_ranges(std::iter::once(index as u64..index as u64 + 1).collect())?;
        let mut found = sound_rows(document, &alone)?;
        limit = limit.or(found.limit.take());
        is_damaged |= found.is_damaged;
        match found.lost_rows.first() {
            None => kept.push(index),
            Some(fault) => {
                let (bytes, reason) = (fault.bytes.clone(), fault.reason.clone());
                lost.push(MissingPart { name: field.name().clone(), bytes, reason });
            }
        }
    }
    if kept.is_empty() {
        return Ok(None);
    }
    let ranges = kept.iter().map(|index| *index as u64..*index as u64 + 1).collect();
    let found = sound_rows(document, &all.clone().with_column_ranges(ranges)?)?;
    Ok(Some(Sound { columns: Some(kept), lost_columns: lost, limit, is_damaged, ..found }))
}

/// Reads each part of a document as far as it goes.
fn sound_rows(document: &dyn Document, selection: &Selection) -> Result<Sound> {
    let mut found = Sound {
        rows: Vec::new(),
        columns: None,
        lost_rows: Vec::new(),
        lost_columns: Vec::new(),
        limit: None,
        is_damaged: false,
    };
    let parts = document.splits(MOST_PARTS);
    // Whether the last part was lost because the file ends.
    let mut has_ended = false;
    let mut next = 0;
    while let Some(part) = parts.get(next) {
        next += 1;
        let (mut end, mut fault) = read(document, selection, part.rows.clone(), BATCH_ROWS)?;
        if fault.is_some() {
            // The whole rows of the batch in which it broke off. Rows that only pass alone are not sound.
            let (alone, found) = read(document, selection, end..part.rows.end, 1)?;
            if found.is_some() {
                (end, fault) = (alone, found);
            }
        }
        if end > part.rows.start {
            match found.rows.last_mut() {
                Some(last) if last.end == part.rows.start => last.end = end,
                _ => found.rows.push(part.rows.start..end),
            }
        }
        let Some(fault) = fault else {
            has_ended = false;
            continue;
        };
        let is_end = fault.kind() == ErrorKind::Truncated;
        match found.lost_rows.last_mut() {
            Some(last) if has_ended && is_end && end == part.rows.start => last.extend(part),
            _ => {
                // The file may break elsewhere than in the bytes of these rows.
                let start = fault.offset().filter(|offset| part.bytes.contains(offset));
                let bytes = start.unwrap_or(part.bytes.start)..part.bytes.end;
                let (rows, reason) = (end..part.rows.end, fault.to_string());
                found.lost_rows.push(LostRows { member: None, rows, bytes, reason });
            }
        }
        has_ended = is_end;
        // Sound data may be too large for the budget; other limits are reached by counts that bytes do not justify.
        found.is_damaged |= fault.advice() != Some(&Hint::Limit("max-alloc"));
        if fault.kind() == ErrorKind::Limit {
            found.limit.get_or_insert(fault);
        }
        if is_end && parts.len() > FEW_PARTS {
            // Of many parts past the end of the file, those between two that are lost are lost, too.
            let mut step = 1;
            while let Some(far) = parts.get(next + step)
                && is_past_end(document, selection, far)?
            {
                found.lost_rows.last_mut().into_iter().for_each(|last| last.extend(far));
                next += step + 1;
                step *= 2;
            }
        }
    }
    if parts.is_empty()
        && let Some(fault) = fault_without_rows(document, selection)?
    {
        let bytes = fault.offset().unwrap_or(0)..document.summary().bytes.unwrap_or(0);
        found.lost_rows.push(LostRows { member: None, rows: 0..0, bytes, reason: fault.to_string() });
    }
    // A value is one row: a part of it is not one.
    if Shape::of(&document.summary().schema) == Shape::Value && !found.lost_rows.is_empty() {
        found.rows.clear();
    }
    Ok(found)
}

/// The fault of a document that has no rows.
fn fault_without_rows(document: &dyn Document, selection: &Selection) -> Result<Option<Error>> {
    let read = document
        .rows(selection)
        .and_then(|rows| rows.into_iter().try_for_each(|batch| batch.map(drop).map_err(Error::from)));
    match read {
        Ok(()) => Ok(None),
        Err(error) if is_fault(&error) => Ok(Some(error)),
        Err(error) => Err(error),
    }
}

/// Whether an error is one of the file, or of a limit that a damaged length asks for.
fn is_fault(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Truncated | ErrorKind::Malformed | ErrorKind::Limit)
}

/// Whether the first row of a part lies past the end of the file.
fn is_past_end(document: &dyn Document, selection: &Selection, part: &Split) -> Result<bool> {
    let first = part.rows.start..part.rows.end.min(part.rows.start.saturating_add(1));
    let fault = read(document, selection, first, 1)?.1;
    Ok(fault.is_some_and(|fault| fault.kind() == ErrorKind::Truncated))
}

impl LostRows {
    /// The rows of this part are lost, too, with all before them.
    fn extend(&mut self, part: &Split) {
        self.rows.end = part.rows.end;
        self.bytes.end = self.bytes.end.max(part.bytes.end);
    }
}

/// Reads rows until their end or a fault of the file; gives the first row that was not read, and the fault.
fn read(
    document: &dyn Document,
    selection: &Selection,
    range: Range<u64>,
    batch_rows: usize,
) -> Result<(u64, Option<Error>)> {
    let mut end = range.start;
    let selection = selection.clone().with_rows(range.clone()).with_batch_rows(batch_rows);
    let fault = |error: Error| if is_fault(&error) { Ok(Some(error)) } else { Err(error) };
    let stream = match document.rows(&selection) {
        Ok(stream) => stream,
        Err(error) => return Ok((end, fault(error)?)),
    };
    for batch in stream {
        match batch.map_err(Error::from) {
            Ok(batch) => end += batch.num_rows() as u64,
            Err(error) => return Ok((end, fault(error)?)),
        }
    }
    // A file that ends without its last rows, and whose reader does not say so.
    let short = range.end != u64::MAX && end < range.end;
    let missing = || Error::truncated(format_args!("{} rows", range.end - range.start), end - range.start);
    Ok((end, short.then(missing)))
}

/// The sound rows and columns of a document.
struct Salvage {
    inner: Arc<dyn Document>,
    summary: Summary,
    /// The sound columns of the document.
    selection: Selection,
    ranges: Vec<Range<u64>>,
}

impl Document for Salvage {
    fn summary(&self) -> &Summary {
        &self.summary
    }

    fn outline(&self) -> Outline {
        self.inner.outline()
    }

    fn validate(&self, findings: &mut Findings) -> Result<()> {
        self.inner.validate(findings)
    }

    fn rows(&self, selection: &Selection) -> Result<Rows> {
        let schema = Arc::clone(&self.summary.schema);
        let out = Arc::clone(&schema);
        let (inner, own) = (Arc::clone(&self.inner), self.selection.clone());
        let parts = self.ranges.clone().into_iter();
        let batches = parts.flat_map(move |range| {
            let mut part = SoundRows {
                document: Arc::clone(&inner),
                selection: own.clone(),
                range,
                batch_rows: BATCH_ROWS,
                rows: None,
            };
            let out = Arc::clone(&out);
            std::iter::from_fn(move || {
                let batch = part.next().transpose()?;
                Some(batch.and_then(|batch| {
                    rows::batch(Arc::clone(&out), batch.columns().to_vec(), batch.num_rows())
                }))
            })
        });
        let stream = selection.project(rows::from_batches(schema, batches))?;
        Ok(if selection.is_sliced() { rows::slice(stream, selection.range(u64::MAX)) } else { stream })
    }
}

/// Rows that were found to be sound, read again.
struct SoundRows {
    document: Arc<dyn Document>,
    selection: Selection,
    /// The rows that are left.
    range: Range<u64>,
    batch_rows: usize,
    rows: Option<Rows>,
}

impl SoundRows {
    fn next(&mut self) -> Result<Option<RecordBatch>> {
        // What follows the last sound row may be the fault.
        while !self.range.is_empty() {
            let rows = match &mut self.rows {
                Some(rows) => Ok(rows),
                None => {
                    let selection = self.selection.clone().with_rows(self.range.clone());
                    let rows = self.document.rows(&selection.with_batch_rows(self.batch_rows));
                    rows.map(|rows| self.rows.insert(rows))
                }
            };
            match rows.and_then(|rows| rows.next().transpose().map_err(Error::from)) {
                // The batch reached the fault.
                Err(_) if self.batch_rows > 1 => (self.batch_rows, self.rows) = (1, None),
                Ok(Some(batch)) => {
                    self.range.start += batch.num_rows() as u64;
                    return Ok(Some(batch));
                }
                other => return other,
            }
        }
        Ok(None)
    }
}
