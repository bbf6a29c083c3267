//! `salvage`: what is sound in a damaged file.
//!
//! The parts that a format can read alone (row groups, blocks, batches; see [`Document::splits`]) are read one by one. Of a
//! part that breaks off, the whole rows before the fault are kept. Where no row is whole, columns that can be read alone are.

use std::ops::Range;
use std::sync::Arc;

use arrow_schema::Schema;
use serde_json::json;

use super::conversion::Conversion;
use super::convert_options::ConvertOptions;
use super::open::{self, OpenOptions, Opened};
use super::report::Report;
use crate::error::{Error, ErrorKind, Result};
use crate::formats::{Document, Findings, Outline, Summary};
use crate::hub::{Form, Rows, Selection, Shape, rows, shape};
use crate::registry::Registry;

/// How many parts of a file are read alone at the most.
const MOST_PARTS: usize = 1 << 16;
/// Rows that are read at a time; after a fault, rows are read one by one from the last whole batch on.
const BATCH_ROWS: usize = 1024;

/// What was lost of a damaged file.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Salvaged {
    /// What was written; `None` if nothing could be saved.
    pub report: Option<Report>,
    /// Rows that are sound.
    pub rows: u64,
    /// Rows that are lost.
    pub lost_rows: Vec<LostRows>,
    /// Columns that are lost.
    pub lost_columns: Vec<LostColumn>,
}

/// Rows that are lost.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct LostRows {
    /// The rows; the end is `u64::MAX` where it is not known.
    pub rows: Range<u64>,
    /// The bytes of the file from the fault, or from the part that holds the rows, to the part's end; empty where they are
    /// not known.
    pub bytes: Range<u64>,
    /// Why.
    pub reason: String,
}

/// A column that is lost.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct LostColumn {
    /// Its name.
    pub name: String,
    /// Why.
    pub reason: String,
}

impl Salvaged {
    /// Whether anything is lost.
    pub fn is_lossy(&self) -> bool {
        !self.lost_rows.is_empty() || !self.lost_columns.is_empty()
    }

    /// One object: `{saved: {rows, bytes}, lost_rows: [{rows, bytes, reason}], lost_columns: [{name, reason}]}`.
    pub fn to_json(&self) -> String {
        let rows = self.lost_rows.iter().map(|lost| {
            let end = (lost.rows.end != u64::MAX).then_some(lost.rows.end);
            json!({
                "rows": [lost.rows.start, end], "bytes": [lost.bytes.start, lost.bytes.end], "reason": lost.reason,
            })
        });
        let columns =
            self.lost_columns.iter().map(|lost| json!({ "name": lost.name, "reason": lost.reason }));
        json!({
            "saved": self.report.as_ref().map(|report| json!({ "rows": report.rows, "bytes": report.bytes })),
            "lost_rows": rows.collect::<Vec<_>>(),
            "lost_columns": columns.collect::<Vec<_>>(),
        })
        .to_string()
    }
}

/// Writes what is sound in `input` to `output`. A file that cannot be opened at all is an error.
pub fn salvage(registry: &Registry, input: &str, output: &str, options: &ConvertOptions) -> Result<Salvaged> {
    let mut options = options.clone();
    // It is read several times.
    options.open.spool = true;
    let (opened, fault) = open_damaged(registry, input, &options.open)?;
    let mut sound = Sound::find(opened.document.as_ref())?;
    if let (Some(fault), true) = (fault, sound.lost_rows.is_empty() && sound.lost_columns.is_empty()) {
        sound.lost_rows.push(unknown_rows(&sound, &fault, &opened));
    }
    let mut salvaged = Salvaged {
        rows: sound.row_count(),
        lost_rows: sound.lost_rows.clone(),
        lost_columns: sound.lost_columns.clone(),
        report: None,
    };
    if salvaged.is_lossy() && salvaged.rows == 0 {
        return Ok(salvaged);
    }
    let opened = sound.opened(&opened)?;
    let target = super::conversion::target_of(registry, options.to.as_deref(), output)?;
    let conversion = Conversion::plan_opened(opened, target, Some(output), &options)?;
    salvaged.report = Some(conversion.run_to(registry, output, options.force)?);
    Ok(salvaged)
}

/// Opens a file, as one that is known to be damaged if need be; gives the fault that it has then.
fn open_damaged(registry: &Registry, input: &str, options: &OpenOptions) -> Result<(Opened, Option<Error>)> {
    match open::open(registry, input, options) {
        Ok(opened) => Ok((opened, None)),
        Err(fault) if is_damage(&fault) => {
            let mut options = options.clone();
            (options.damaged, options.again) = (true, true);
            match open::open(registry, input, &options) {
                Ok(opened) => Ok((opened, Some(fault))),
                Err(_) => Err(fault),
            }
        }
        Err(other) => Err(other),
    }
}

/// What is missing of a file that can be read to its end, but did not open: rows or columns that nobody can tell.
fn unknown_rows(sound: &Sound, fault: &Error, opened: &Opened) -> LostRows {
    let len = opened.content.len().unwrap_or(0);
    let start = fault.offset().unwrap_or(len).min(len);
    LostRows { rows: sound.row_count()..u64::MAX, bytes: start..len, reason: fault.to_string() }
}

fn is_damage(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Truncated | ErrorKind::Malformed)
}

/// What is sound in a document.
struct Sound {
    rows: Vec<Range<u64>>,
    /// The columns, if not all.
    columns: Option<Vec<usize>>,
    lost_rows: Vec<LostRows>,
    lost_columns: Vec<LostColumn>,
    /// The first limit that was reached: a damaged length asks for too much, and so may a sound one.
    limit: Option<Error>,
}

impl Sound {
    fn find(document: &dyn Document) -> Result<Self> {
        let all = document.selection();
        let found = sound_rows(document, &all)?;
        let fields = document.summary().schema.fields();
        let is_table = Form::of(&document.summary().schema) == Form::Table;
        if found.row_count() > 0 || found.lost_rows.is_empty() || !is_table || fields.len() < 2 {
            return found.within_limits();
        }
        let (mut kept, mut lost) = (Vec::new(), Vec::new());
        for (index, field) in fields.iter().enumerate() {
            let alone =
                all.clone().with_column_ranges(std::iter::once(index as u64..index as u64 + 1).collect())?;
            match sound_rows(document, &alone)?.lost_rows.first() {
                None => kept.push(index),
                Some(fault) => {
                    lost.push(LostColumn { name: field.name().clone(), reason: fault.reason.clone() });
                }
            }
        }
        if kept.is_empty() {
            return found.within_limits();
        }
        let ranges = kept.iter().map(|index| *index as u64..*index as u64 + 1).collect();
        let found = sound_rows(document, &all.with_column_ranges(ranges)?)?;
        Ok(Sound { columns: Some(kept), lost_columns: lost, ..found })
    }

    /// An error if nothing could be read because of a limit: whether the file is damaged is not known then.
    fn within_limits(mut self) -> Result<Self> {
        match self.limit.take_if(|_| self.rows.is_empty()) {
            Some(limit) => Err(limit),
            None => Ok(self),
        }
    }

    fn row_count(&self) -> u64 {
        self.rows.iter().map(|range| range.end - range.start).sum()
    }

    /// The document of what is sound.
    fn opened(self, opened: &Opened) -> Result<Opened> {
        if self.lost_rows.is_empty() && self.lost_columns.is_empty() {
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

/// Reads each part of a document as far as it goes.
fn sound_rows(document: &dyn Document, selection: &Selection) -> Result<Sound> {
    let mut found = Sound {
        rows: Vec::new(),
        columns: None,
        lost_rows: Vec::new(),
        lost_columns: Vec::new(),
        limit: None,
    };
    for part in document.splits(MOST_PARTS) {
        let (mut end, mut fault) = read(document, selection, part.rows.clone(), BATCH_ROWS)?;
        if fault.is_some() {
            // The whole rows of the batch in which it broke off.
            (end, fault) = read(document, selection, end..part.rows.end, 1)?;
        }
        if end > part.rows.start {
            match found.rows.last_mut() {
                Some(last) if last.end == part.rows.start => last.end = end,
                _ => found.rows.push(part.rows.start..end),
            }
        }
        if let Some(fault) = fault {
            let bytes = fault.offset().unwrap_or(part.bytes.start)..part.bytes.end;
            let lost = LostRows { rows: end..part.rows.end, bytes, reason: fault.to_string() };
            found.lost_rows.push(lost);
            if fault.kind() == ErrorKind::Limit {
                found.limit.get_or_insert(fault);
            }
        }
    }
    // A value is one row: a part of it is not one.
    if Shape::of(&document.summary().schema) == Shape::Value && !found.lost_rows.is_empty() {
        found.rows.clear();
    }
    Ok(found)
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
    let fault = |error: Error| match error.kind() {
        ErrorKind::Truncated | ErrorKind::Malformed | ErrorKind::Limit => Ok(Some(error)),
        _ => Err(error),
    };
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
        let parts = self.ranges.clone().into_iter().map(move |range| {
            // Batches as small as those that were found to be sound: a larger one might reach the fault.
            let sound = own.clone().with_rows(range.clone()).with_batch_rows(BATCH_ROWS);
            inner.rows(&sound)
        });
        let batches = parts.flat_map(move |part| -> Box<dyn Iterator<Item = Result<_>> + Send> {
            let out = Arc::clone(&out);
            match part {
                Ok(part) => Box::new(part.map(move |batch| {
                    let batch = batch?;
                    rows::batch(Arc::clone(&out), batch.columns().to_vec(), batch.num_rows())
                })),
                Err(error) => Box::new(std::iter::once(Err(error))),
            }
        });
        let stream = selection.project(rows::from_batches(schema, batches))?;
        Ok(if selection.is_sliced() { rows::slice(stream, selection.range(u64::MAX)) } else { stream })
    }
}
