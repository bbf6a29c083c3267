//! An open file: its summary, and rows from the columns that are asked for, document by document.

use std::ops::Range;
use std::sync::Arc;

use super::decode::Decoder;
use super::documents::{self, Documents};
use super::frames::{Fault, Frames, Piece};
use super::rows::{Table, TableRows};
use super::{ID, JSON, MONGODB_BYTES, json_read, outline, validate};
use crate::control::Control;
use crate::error::{self, Context, Error, Result};
use crate::formats::{Document, Findings, Outline, ReadOptions, Split, Summary};
use crate::hub::{Rows, Selection, rows};
use crate::limits::Budget;
use crate::source::Source;

/// So many documents are listed as members and parts.
const LISTED: u64 = 64 << 10;

/// An open file of BSON DataFrame documents.
pub(super) struct BsondfDocument {
    pub(super) source: Source,
    pub(super) frames: Arc<Frames>,
    pub(super) budget: Budget,
    pub(super) control: Control,
    /// Whether the file is text: places in its translation mean nothing to a user.
    pub(super) is_text: bool,
    /// The length of the longest document.
    pub(super) longest: u64,
    summary: Summary,
}

impl BsondfDocument {
    /// Walks over the lengths of the documents; no buffer is read, unless text is to be told from bytes.
    pub(super) fn open(source: &Source, options: &ReadOptions) -> Result<Self> {
        let is_text = match options.dialect.as_deref() {
            Some(dialect) => dialect == JSON,
            None => json_read::is_text(source)?,
        };
        let bytes = source.len();
        if is_text {
            let translated = json_read::translate(source, &options.budget)?;
            let mut document = Self::open_bson(&translated, options, true).map_err(Error::without_offset)?;
            document.summary.dialect = Some(JSON);
            document.summary.bytes = bytes;
            document.summary.parts.clear();
            return Ok(document);
        }
        // A length of at least 5, then an element or the end.
        let plausible = |head: &[u8]| {
            matches!(head, [5, 0, 0, 0, 0, ..] | [_, _, _, 0..=0x7f, 1..=0x13 | 0x7f | 0xff, ..])
        };
        Self::open_bson(&source.seekable_if(plausible)?, options, false)
    }

    fn open_bson(source: &Source, options: &ReadOptions, is_text: bool) -> Result<Self> {
        let as_bytes = options.options.word("utf8", &["text", "bytes"])? == Some("bytes");
        let strict = options.options.word("fields", &["keep", "strict"])? == Some("strict");
        let source = source.clone();
        let bytes = source.len().unwrap_or(0);
        let (budget, control) = (options.budget.clone(), options.control.clone());
        let member = options.member.as_deref();
        let mut found = documents::find(&source, bytes, member, budget.limits(), options.damaged)?;
        let mut notes = Vec::new();
        let longest = found.frames.iter().map(|frame| frame.document.bytes).max().unwrap_or(0);
        let frames = Frames::read(&source, &mut found, &budget, options.damaged, as_bytes, &mut notes)?;
        others(&source, &frames, &mut found, &budget)?;
        if strict && let Some((name, _)) = found.metadata.first() {
            return Err(Error::malformed("columns only", "another field")
                .rule("extra-field")
                .field(name.clone()));
        }
        let mut schema = frames.schema();
        schema
            .metadata
            .extend(found.metadata.iter().filter(|(key, _)| !key.starts_with("pentaglot")).cloned());
        let mut summary = Summary::new(ID, Arc::new(schema));
        summary.bytes = Some(bytes);
        summary.missing_columns.clone_from(&frames.missing);
        match &frames.rows {
            // A choice of several frames has no rows of its own.
            Ok(_) if frames.pieces.is_empty() => {}
            Ok(_) => summary.rows = frames.row_count(),
            Err(error) => notes.push(error.to_string()),
        }
        if !found.metadata.is_empty() {
            let names = error::list(found.metadata.iter().map(|(name, _)| format!("{name:?}")));
            notes.push(format!("fields that are not columns are read as metadata: {names}"));
        }
        if !found.choices.is_empty() && !frames.pieces.is_empty() {
            let names = error::list(found.choices.iter().map(|name| format!("{name:?}")));
            notes.push(format!("data frames under fields are read as members: {names}"));
        }
        if longest > MONGODB_BYTES {
            notes.push(format!(
                "{longest} bytes are more than MongoDB takes in one document ({MONGODB_BYTES})"
            ));
        }
        let key = frames.pieces.first().and_then(|piece| piece.frame.chunk.as_ref()?.key.clone());
        summary.metadata = key.map(|key| ("k".to_owned(), key)).into_iter().collect();
        summary.metadata.append(&mut found.metadata);
        summary.notes = notes;
        if found.count > 1 && member.is_none() {
            summary.members = (0..found.count.min(LISTED)).map(|index| index.to_string()).collect();
            for piece in frames.pieces.iter().take(usize::try_from(LISTED).unwrap_or(usize::MAX)) {
                let Piece { frame, .. } = piece;
                summary.part(
                    format!("documents[{}]", frame.index),
                    frame.document.offset,
                    frame.document.bytes,
                );
            }
        } else if let [piece] = &frames.pieces[..] {
            for column in &frames.layout(&source, piece, &budget)?.columns {
                summary.part(format!("columns.{}", column.name), column.offset, column.bytes);
            }
        }
        summary.members.extend(std::mem::take(&mut found.choices));
        Ok(BsondfDocument { source, frames: Arc::new(frames), budget, control, is_text, longest, summary })
    }

    /// An error as a user can use it.
    pub(super) fn told(&self, error: Error) -> Error {
        if self.is_text { error.without_offset() } else { error }
    }
}

/// Adds the fields between the columns of the first frame to the metadata, where the frame is a field.
fn others(source: &Source, frames: &Frames, found: &mut Documents, budget: &Budget) -> Result<()> {
    let Some(piece) = frames.pieces.first().filter(|piece| piece.frame.field.is_some()) else {
        return Ok(());
    };
    for element in &frames.layout(source, piece, budget)?.others {
        let reader = crate::wire::bson::Reader::new(source);
        let text = super::json_write::element_text(reader, element, budget.limits())?;
        found.metadata.push((element.key.clone(), text));
    }
    Ok(())
}

impl Document for BsondfDocument {
    fn summary(&self) -> &Summary {
        &self.summary
    }

    fn splits(&self, wanted: usize) -> Vec<Split> {
        if !self.frames.faults.is_empty() {
            return self.damaged_splits();
        }
        if self.is_text || self.frames.pieces.len() < 2 || self.frames.rows.is_err() {
            return Split::whole(&self.summary);
        }
        let pieces = self.frames.pieces.iter().filter(|piece| !piece.rows.is_empty()).map(|piece| {
            let document = piece.frame.document;
            Split { rows: piece.rows.clone(), bytes: document.offset..document.offset + document.bytes }
        });
        Split::joined(pieces, wanted)
    }

    fn outline(&self) -> Outline {
        outline::outline(self)
    }

    fn validate(&self, findings: &mut Findings) -> Result<()> {
        validate::validate(self, findings).in_format(ID)
    }

    fn rows(&self, request: &Selection) -> Result<Rows> {
        self.summary.check_member()?;
        let total = match &self.frames.rows {
            Ok(_) => self.frames.row_count().unwrap_or(u64::MAX),
            Err(_) => self.check_rows()?,
        };
        let range = request.range(total);
        let schema = Arc::clone(request.schema());
        let table = Table {
            decoder: Decoder { source: self.source.clone(), budget: self.budget.clone() },
            frames: Arc::clone(&self.frames),
            wanted: request.fields(),
            schema: Arc::clone(&schema),
            batch_rows: Some(request.batch_rows() as u64).filter(|rows| *rows > 0),
            control: self.control.clone(),
            is_text: self.is_text,
        };
        let local = |(index, piece): (usize, &Piece)| {
            let (start, end) = (range.start.max(piece.rows.start), range.end.min(piece.rows.end));
            (start < end).then(|| (index, start - piece.rows.start..end - piece.rows.start))
        };
        let mut parts: Vec<(usize, Range<u64>)> =
            self.frames.pieces.iter().enumerate().filter_map(local).collect();
        let touched = |fault: &&Fault| fault.rows.start < range.end && range.start < fault.rows.end;
        if let Some(fault) = self.frames.faults.iter().find(touched) {
            // Nothing comes after rows that are lost.
            let start = fault.rows.start;
            parts.retain(|(index, _)| {
                self.frames.pieces.get(*index).is_some_and(|piece| piece.rows.end <= start)
            });
            let lost = std::iter::once(Err(self.told(fault.error()).in_format(ID)));
            let sound = TableRows { table, parts: parts.into_iter(), current: None };
            return Ok(rows::from_batches(schema, sound.chain(lost)));
        }
        if parts.is_empty() && !self.frames.pieces.is_empty() {
            // A batch without rows has the dictionaries of the first frame.
            parts.push((0, 0..0));
        }
        Ok(rows::from_batches(schema, TableRows { table, parts: parts.into_iter(), current: None }))
    }
}

impl BsondfDocument {
    /// The documents of a damaged file, each alone.
    fn damaged_splits(&self) -> Vec<Split> {
        let pieces = self.frames.pieces.iter().map(|piece| {
            let document = piece.frame.document;
            Split { rows: piece.rows.clone(), bytes: document.offset..document.offset + document.bytes }
        });
        let faults = self.frames.faults.iter();
        let faults = faults.map(|fault| Split { rows: fault.rows.clone(), bytes: fault.bytes.clone() });
        let mut splits: Vec<Split> = pieces.chain(faults).filter(|split| !split.rows.is_empty()).collect();
        splits.sort_by_key(|split| split.rows.start);
        if self.is_text {
            // Places in the translation of text mean nothing.
            splits.iter_mut().for_each(|split| split.bytes = 0..0);
        }
        splits
    }

    /// The error of the frame whose columns do not agree in length.
    fn check_rows(&self) -> Result<u64> {
        for piece in &self.frames.pieces {
            let layout = self.frames.layout(&self.source, piece, &self.budget)?;
            let fault = |error| self.told(self.frames.place(&piece.frame, error)).in_format(ID);
            layout.rows().map_err(fault)?;
        }
        Ok(0)
    }
}
