//! Several frames as one table: the columns of all of them, and which rows each holds.

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
    /// What damaged frames lack.
    pub missing: Vec<MissingPart>,
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
            as_bytes,
        };
        for (place, frame) in std::mem::take(&mut found.frames).into_iter().enumerate() {
            let layout = frames.walk(source, &frame, budget, notes)?;
            frames.missing.extend(layout.missing.clone());
            frames.join(&layout, &frame, place == 0).map_err(|error| frames.place(&frame, error))?;
            let own = layout.rows().map_err(|error| frames.place(&frame, error));
            let start = frames.pieces.last().map_or(0, |last| last.rows.end);
            let count = own.as_ref().map_or(0, |rows| *rows);
            if let (Some(chunk), true) = (&frame.chunk, own.is_ok())
                && chunk.rows != count
            {
                let error = Error::malformed(format_args!("{} rows, as the chunk says", chunk.rows), count);
                return Err(frames.place(&frame, error.at(frame.document.offset).rule("chunk")));
            }
            frames.rows = match (std::mem::replace(&mut frames.rows, Ok(0)), own) {
                (Ok(rows), Ok(more)) => Ok(rows.saturating_add(more)),
                (Err(error), _) | (_, Err(error)) => Err(error),
            };
            let layout = (place < KEPT).then(|| Arc::new(layout));
            frames.pieces.push(Piece { frame, rows: start..start.saturating_add(count), layout });
        }
        Ok(frames)
    }

    /// Adds the columns of a frame to those of the frames before it.
    fn join(&mut self, layout: &BsondfLayout, frame: &Frame, is_first: bool) -> Result<()> {
        for column in &layout.columns {
            let fault = |expected: String, found: String| {
                let error = Error::malformed(expected, found).at(column.offset).rule("type-mismatch");
                error.field(column.name.clone()).field("columns")
            };
            match self.columns.iter().find(|(name, _)| *name == column.name) {
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
            let is_there = |name: &str| layout.columns.iter().any(|column| column.name == name);
            if let Some((name, _)) = self.columns.iter().find(|(name, _)| !is_there(name)) {
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
        let layout = BsondfLayout::read(source, frame.document, self.total, budget.limits(), self.damaged);
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
            let decoder = Decoder { source: source.clone(), budget: budget.clone(), first_rows: None };
            match decoder.array(array) {
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
