//! Several frames as one table: the columns of all of them, and which rows each holds.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

use arrow_schema::Schema;

use super::ID;
use super::decode::Decoder;
use super::documents::{Documents, Frame};
use super::layout::BsondfLayout;
use super::schema::{Type, arrow_fields};
use crate::error::{Context, Error, ErrorKind, Result};
use crate::formats::MissingPart;
use crate::hub::native;
use crate::limits::Budget;
use crate::source::Source;

/// The layouts of so many frames are kept; others are read again when their rows are.
const KEPT: usize = 64;

/// A frame of the table.
pub(super) struct Piece {
    pub frame: Frame,
    /// Its rows in the table.
    pub rows: Range<u64>,
    layout: Option<Arc<BsondfLayout>>,
}

/// Rows of a damaged file that are lost with their documents.
pub(super) struct Fault {
    /// The end is `u64::MAX` where it is not known.
    pub rows: Range<u64>,
    pub bytes: Range<u64>,
    reason: String,
}

impl Fault {
    /// The error of whoever reads these rows.
    pub(super) fn error(&self) -> Error {
        Error::new(ErrorKind::Malformed, self.reason.clone())
    }
}

/// Frames, their rows one after the other.
pub(super) struct Frames {
    pub columns: Vec<(String, Type)>,
    pub pieces: Vec<Piece>,
    /// How many rows all have together; an error if the columns of a frame do not agree.
    pub rows: Result<u64>,
    /// Whether the file has several documents, so that messages say which.
    several: bool,
    total: u64,
    damaged: bool,
    /// What a damaged frame lacks, if it is the only one.
    pub missing: Vec<MissingPart>,
    /// The documents of a damaged file that are not sound, in the order of rows.
    pub faults: Vec<Fault>,
    /// Text that is not UTF-8 is read as bytes.
    as_bytes: bool,
}

impl Frames {
    /// Walks over the lengths of all frames and joins their columns by name. Chunks of one table must have the same columns;
    /// what another document lacks is null.
    pub(super) fn read(
        source: &Source,
        found: &mut Documents,
        budget: &Budget,
        damaged: bool,
        as_bytes: bool,
        notes: &mut Vec<String>,
    ) -> Result<Self> {
        let total = source.len().unwrap_or(0);
        let several = found.count > 1;
        let mut frames = Frames {
            columns: Vec::new(),
            pieces: Vec::new(),
            rows: Ok(0),
            several,
            total,
            damaged,
            missing: Vec::new(),
            faults: Vec::new(),
            as_bytes,
        };
        for frame in std::mem::take(&mut found.frames) {
            match frames.add(source, &frame, budget, notes) {
                Err(error) if frames.keeps_whole_frames() && is_damage(&error) => {
                    if !frames.lose(&frame, &error) {
                        // How many rows it had is not known, so those after it have no numbers.
                        return Ok(frames);
                    }
                }
                added => added?,
            }
        }
        if let Some((offset, error)) = found.lost.take() {
            let (rows, bytes) = (frames.end()..u64::MAX, offset..total);
            frames.faults.push(Fault { rows, bytes, reason: error.to_string() });
        }
        Ok(frames)
    }

    /// Adds a frame after the others.
    fn add(
        &mut self,
        source: &Source,
        frame: &Frame,
        budget: &Budget,
        notes: &mut Vec<String>,
    ) -> Result<()> {
        let layout = self.walk(source, frame, budget, notes)?;
        let columns = self.columns.len();
        let joined = self.join(&layout, frame, self.pieces.is_empty()).and_then(|()| {
            let own = layout.rows();
            if self.keeps_whole_frames() { Ok(Ok(own?)) } else { Ok(own) }
        });
        let joined = joined.and_then(|own| check_count(frame, &own).map(|()| own));
        let own = match joined {
            Ok(own) => own.map_err(|error| self.place(frame, error)),
            Err(error) => {
                // What it adds is lost with it.
                self.columns.truncate(columns);
                return Err(self.place(frame, error));
            }
        };
        let count = own.as_ref().map_or(0, |rows| *rows);
        self.missing.extend(layout.missing.clone());
        let start = self.end();
        self.rows = match (std::mem::replace(&mut self.rows, Ok(0)), own) {
            (Ok(rows), Ok(more)) => Ok(rows.saturating_add(more)),
            (Err(error), _) | (_, Err(error)) => Err(error),
        };
        let layout = (self.pieces.len() < KEPT).then(|| Arc::new(layout));
        self.pieces.push(Piece { frame: frame.clone(), rows: start..start.saturating_add(count), layout });
        Ok(())
    }

    /// Records that a frame is lost; gives whether the number of its rows is known.
    fn lose(&mut self, frame: &Frame, error: &Error) -> bool {
        let (start, reason) = (self.end(), error.to_string());
        let count = frame.chunk.as_ref().filter(|chunk| chunk.first == start).map(|chunk| chunk.rows);
        let (rows, bytes) = match count {
            Some(count) => {
                let document = frame.document;
                (start..start.saturating_add(count), document.offset..document.offset + document.bytes)
            }
            None => (start..u64::MAX, frame.document.offset..self.total),
        };
        if let (Some(count), Ok(rows)) = (count, &mut self.rows) {
            *rows = rows.saturating_add(count);
        }
        self.faults.push(Fault { rows, bytes, reason });
        count.is_some()
    }

    /// Whether of a damaged file whole frames are kept: of the only one, whole columns are.
    fn keeps_whole_frames(&self) -> bool {
        self.damaged && self.several
    }

    /// The first row after all frames so far.
    fn end(&self) -> u64 {
        let last = self.pieces.last().map_or(0, |last| last.rows.end);
        self.faults.last().map_or(last, |fault| fault.rows.end.max(last))
    }

    /// How many rows there are, if that is known.
    pub(super) fn row_count(&self) -> Option<u64> {
        let is_open = self.faults.last().is_some_and(|fault| fault.rows.end == u64::MAX);
        self.rows.as_ref().ok().copied().filter(|_| !is_open)
    }

    /// Adds the columns of a frame to those of the frames before it.
    fn join(&mut self, layout: &BsondfLayout, frame: &Frame, is_first: bool) -> Result<()> {
        let known: HashMap<&str, usize> =
            self.columns.iter().enumerate().map(|(index, (name, _))| (name.as_str(), index)).collect();
        let known: Vec<Option<usize>> =
            layout.columns.iter().map(|column| known.get(column.name.as_str()).copied()).collect();
        for (column, known) in layout.columns.iter().zip(known) {
            let fault = |expected: String, found: String| {
                let error = Error::malformed(expected, found).at(column.offset).rule("type-mismatch");
                error.field(column.name.clone()).field("columns")
            };
            match known.and_then(|index| self.columns.get(index)) {
                Some((_, kind)) if *kind != column.array.kind => {
                    let expected = format!("{kind}, as in the documents before it");
                    return Err(fault(expected, column.array.kind.to_string()));
                }
                Some(_) => {}
                None if frame.chunk.is_some() && !is_first => {
                    let expected = "the columns of the chunks before it".to_owned();
                    return Err(fault(expected, "one more".to_owned()));
                }
                None => self.columns.push((column.name.clone(), column.array.kind.clone())),
            }
        }
        if frame.chunk.is_some() && layout.columns.len() < self.columns.len() {
            let there: HashSet<&str> = layout.columns.iter().map(|column| column.name.as_str()).collect();
            if let Some((name, _)) = self.columns.iter().find(|(name, _)| !there.contains(name.as_str())) {
                let error = Error::malformed("the columns of the chunks before it", "one less");
                let error = error.at(frame.document.offset).rule("type-mismatch");
                return Err(error.field(name.clone()).field("columns"));
            }
        }
        Ok(())
    }

    /// The layout of a piece.
    pub(super) fn layout(
        &self,
        source: &Source,
        piece: &Piece,
        budget: &Budget,
    ) -> Result<Arc<BsondfLayout>> {
        match &piece.layout {
            Some(layout) => Ok(Arc::clone(layout)),
            None => self.walk(source, &piece.frame, budget, &mut Vec::new()).map(Arc::new),
        }
    }

    /// The layout of a frame, read anew.
    pub(super) fn walk(
        &self,
        source: &Source,
        frame: &Frame,
        budget: &Budget,
        notes: &mut Vec<String>,
    ) -> Result<BsondfLayout> {
        let is_partial = self.damaged && !self.several;
        let layout = BsondfLayout::read(source, frame.document, self.total, budget.limits(), is_partial);
        let mut layout = layout.map_err(|error| self.place(frame, error))?;
        if self.as_bytes {
            demote_text(&mut layout, source, budget, notes).map_err(|error| self.place(frame, error))?;
        }
        Ok(layout)
    }

    /// An error with the document and the field that it is in.
    pub(super) fn place(&self, frame: &Frame, error: Error) -> Error {
        let error = match &frame.field {
            Some(field) => error.field(field.clone()),
            None => error,
        };
        if self.several { error.index(frame.index).field("documents") } else { error }
    }

    /// The schema of all columns, with the format's own types.
    pub(super) fn schema(&self) -> Schema {
        let native = Type::Struct(self.columns.clone()).to_json();
        native::with(Schema::new(arrow_fields(&self.columns)), ID, native)
    }
}

/// Returns an error if a chunk has not as many rows as it says.
fn check_count(frame: &Frame, found: &Result<u64>) -> Result<()> {
    match (&frame.chunk, found) {
        (Some(chunk), Ok(found)) if chunk.rows != *found => {
            let error = Error::malformed(format_args!("{} rows, as the chunk says", chunk.rows), found);
            Err(error.at(frame.document.offset).rule("chunk"))
        }
        _ => Ok(()),
    }
}

fn is_damage(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Truncated | ErrorKind::Malformed)
}

/// Changes the type of text that is not UTF-8 to bytes; for that it must be read.
fn demote_text(
    layout: &mut BsondfLayout,
    source: &Source,
    budget: &Budget,
    notes: &mut Vec<String>,
) -> Result<()> {
    for column in &mut layout.columns {
        let name = column.name.clone();
        let mut is_text = |array: &super::layout::Array| {
            let decoder = Decoder { source: source.clone(), budget: budget.clone() };
            match decoder.reader(array).and_then(|mut reader| reader.drain()) {
                Err(error) if error.rule_name() == "utf8" => {
                    notes.push(format!("column {name:?}: text that is not UTF-8 is read as bytes"));
                    Ok(false)
                }
                // Another fault is reported when the rows are read.
                Err(error) if error.kind() != ErrorKind::Malformed => Err(error),
                _ => Ok(true),
            }
        };
        column.array.demote_text(&mut is_text).field(column.name.clone()).field("columns")?;
    }
    Ok(())
}
