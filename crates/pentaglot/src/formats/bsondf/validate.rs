//! Every rule checked for every value, column by column; a fault does not hide those after it.

use super::MONGODB_BYTES;
use super::decode::Decoder;
use super::frames::Piece;
use super::layout::{Array, Block, Data};
use super::read::BsondfDocument;
use super::schema::Type;
use crate::error::{Context, Error, ErrorKind, Result};
use crate::formats::Findings;

/// Checks all rules for all documents.
pub(super) fn validate(document: &BsondfDocument, findings: &mut Findings) -> Result<()> {
    for piece in &document.frames.pieces {
        validate_piece(document, piece, findings)?;
    }
    if document.longest > MONGODB_BYTES {
        let expected = format_args!("at most {MONGODB_BYTES} bytes, which MongoDB takes");
        findings.note(&Error::malformed(expected, document.longest).rule("mongodb-size"));
    }
    Ok(())
}

fn validate_piece(document: &BsondfDocument, piece: &Piece, findings: &mut Findings) -> Result<()> {
    let frames = &document.frames;
    let layout = frames.walk(&document.source, &piece.frame, &document.budget, &mut Vec::new())?;
    let rows = layout.rows().err();
    let placed = |error: Error| document.told(frames.place(&piece.frame, error));
    // In text a number does not show its width.
    let is_fault = |warning: &Error| !(document.is_text && warning.rule_name() == "integer-type");
    for warning in layout.warnings.into_iter().filter(is_fault) {
        findings.warning(&placed(warning));
    }
    if let Some(error) = rows {
        findings.error(&placed(error));
    }
    for column in &layout.columns {
        document.control.check()?;
        let (source, budget) = (document.source.clone(), document.budget.clone());
        let decoder = Decoder { source, budget };
        let mut check = Check { decoder, errors: Vec::new(), warnings: Vec::new() };
        match check.read(&column.array) {
            Ok(()) => {}
            Err(error) if is_fault_of_data(&error) => drop(check.array(&column.array)),
            Err(error) => check.errors.push(error),
        }
        check.conventions(&column.array);
        let placed = |error: Error| placed(error.field(column.name.clone()).field("columns"));
        for error in check.errors.into_iter().map(placed) {
            if is_fault_of_data(&error) {
                findings.error(&error);
            } else {
                return Err(error);
            }
        }
        for warning in check.warnings.into_iter().map(placed) {
            findings.warning(&warning);
        }
    }
    Ok(())
}

fn is_fault_of_data(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Malformed | ErrorKind::Truncated)
}

/// How many bytes of a buffer are decompressed at a time.
const CHECKED_BYTES: u64 = 512 << 10;

struct Check {
    decoder: Decoder,
    errors: Vec<Error>,
    warnings: Vec<Error>,
}

impl Check {
    /// Decodes all rows of an array.
    fn read(&self, array: &Array) -> Result<()> {
        self.decoder.reader(array)?.drain()
    }

    /// Looks for the faults of an array and of all its parts; returns whether there is none.
    fn array(&mut self, array: &Array) -> bool {
        let are_sound = match &array.data {
            Data::Values(_) | Data::Nothing { .. } | Data::Bytes { .. } => true,
            Data::Factor { index, dictionary } => {
                let is_sound = self.part(&["d", "i"], index);
                self.part(&["d", "d"], dictionary) && is_sound
            }
            Data::List { items, .. } => self.part(&["d"], items),
            Data::Struct { fields, .. } => fields
                .iter()
                .fold(true, |are_sound, (name, field)| self.part(&["d", "f", name], field) && are_sound),
        };
        let error = if are_sound { self.read(array).err() } else { None };
        if are_sound && error.is_none() {
            return true;
        }
        // Every buffer of this array is looked at, whatever the first fault was.
        let blocks = self.blocks(array);
        let told =
            blocks.iter().any(|other| error.as_ref().is_some_and(|error| error.path() == other.path()));
        self.errors.extend(error.filter(|_| !told));
        self.errors.extend(blocks);
        false
    }

    /// Checks a part; its faults get the path in front.
    fn part(&mut self, path: &[&str], array: &Array) -> bool {
        let errors = std::mem::take(&mut self.errors);
        let is_sound = self.array(array);
        let inner = std::mem::replace(&mut self.errors, errors);
        self.errors.extend(inner.into_iter().map(|error| with_path(error, path)));
        is_sound
    }

    /// The faults of the buffers that do not unpack.
    fn blocks(&self, array: &Array) -> Vec<Error> {
        let (values, counts) = match &array.data {
            Data::Values(values) => (Some(values), None),
            Data::Bytes { values, counts } => (Some(values), Some(counts)),
            Data::List { counts, .. } => (None, Some(counts)),
            Data::Nothing { .. } | Data::Factor { .. } | Data::Struct { .. } => (None, None),
        };
        let blocks = [("d", values), ("m", Some(&array.mask)), ("o", counts)];
        let fault = |(key, block): (&'static str, Option<&Block>)| {
            self.each(block?, |_, _| ()).err().map(|error| error.field(key))
        };
        blocks.into_iter().filter_map(fault).collect()
    }

    /// Decompresses a buffer, and gives each piece with its place to `look`.
    fn each(&self, block: &Block, mut look: impl FnMut(u64, &[u8])) -> Result<()> {
        let mut reader = self.decoder.block(block)?;
        while reader.left() > 0 {
            let place = block.length - reader.left();
            look(place, &reader.take(CHECKED_BYTES).at(block.offset)?);
        }
        Ok(())
    }

    /// What the last text of the spec forbids, and the programs read. Buffers that cannot be decompressed are reported
    /// elsewhere.
    fn conventions(&mut self, array: &Array) {
        let rows = array.rows();
        let spare = (8 - rows % 8) % 8;
        let mut last = 0xff;
        let looked = self.each(&array.mask, |_, bytes| last = bytes.last().copied().unwrap_or(last));
        let has_mask = array.mask.length == rows.div_ceil(8) && self.is_seen(looked);
        if has_mask && u64::from(last.trailing_zeros()) < spare {
            let message = format!("{spare} zero bits after the last row");
            let warning = Error::malformed(message, "ones").at(array.mask.offset);
            self.warnings.push(warning.rule("mask-trailing-bits").field("m"));
        }
        if array.kind == Type::Bool
            && let Data::Values(values) = &array.data
        {
            let mut found = None;
            let looked = self.each(values, |place, bytes| {
                let mut bytes = bytes.iter().copied().zip(place..);
                found = found.or_else(|| bytes.find(|(byte, _)| *byte > 1));
            });
            if self.is_seen(looked)
                && let Some((byte, row)) = found
            {
                let warning = Error::malformed("0 or 1", byte).at(values.offset);
                self.warnings.push(warning.rule("bool-byte").index(row).field("d"));
            }
        }
        let mut part = |path: &[&str], array: &Array| {
            let warnings = std::mem::take(&mut self.warnings);
            self.conventions(array);
            let inner = std::mem::replace(&mut self.warnings, warnings);
            self.warnings.extend(inner.into_iter().map(|error| with_path(error, path)));
        };
        match &array.data {
            Data::Values(_) | Data::Nothing { .. } | Data::Bytes { .. } => {}
            Data::Factor { index, dictionary } => {
                part(&["d", "i"], index);
                part(&["d", "d"], dictionary);
            }
            Data::List { items, .. } => part(&["d"], items),
            Data::Struct { fields, .. } => {
                fields.iter().for_each(|(name, field)| part(&["d", "f", name], field));
            }
        }
    }

    /// Whether a buffer could be decompressed; a fault of the file system is kept.
    fn is_seen(&mut self, looked: Result<()>) -> bool {
        match looked {
            Err(error) if error.kind() == ErrorKind::Io => {
                self.errors.push(error);
                false
            }
            looked => looked.is_ok(),
        }
    }
}

fn with_path(error: Error, path: &[&str]) -> Error {
    path.iter().rev().fold(error, |error, step| error.field((*step).to_owned()))
}
