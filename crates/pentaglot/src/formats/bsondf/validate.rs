//! Every rule checked for every value, column by column; a fault does not hide those after it.

use arrow_array::ArrayRef;

use super::MONGODB_BYTES;
use super::decode::Decoder;
use super::frames::Piece;
use super::layout::{Array, Block, Data};
use super::read::BsondfDocument;
use super::schema::Type;
use crate::error::{Error, ErrorKind, Result};
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
        let decoder = Decoder { source, budget, first_rows: None };
        let mut check = Check { decoder, errors: Vec::new(), warnings: Vec::new() };
        check.array(&column.array);
        let placed = |error: Error| placed(error.field(column.name.clone()).field("columns"));
        for error in check.errors.into_iter().map(placed) {
            if matches!(error.kind(), ErrorKind::Malformed | ErrorKind::Truncated) {
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

struct Check {
    decoder: Decoder,
    errors: Vec<Error>,
    warnings: Vec<Error>,
}

impl Check {
    /// Checks an array and all its parts; gives it if it is sound.
    fn array(&mut self, array: &Array) -> Option<ArrayRef> {
        let parts: Option<Vec<ArrayRef>> = match &array.data {
            Data::Values(_) | Data::Nothing { .. } | Data::Bytes { .. } => Some(Vec::new()),
            Data::Factor { index, dictionary } => {
                let index = self.part(&["d", "i"], index);
                let dictionary = self.part(&["d", "d"], dictionary);
                index.zip(dictionary).map(|(index, dictionary)| vec![index, dictionary])
            }
            Data::List { items, .. } => self.part(&["d"], items).map(|items| vec![items]),
            Data::Struct { fields, .. } => {
                let parts: Vec<_> =
                    fields.iter().map(|(name, field)| self.part(&["d", "f", name], field)).collect();
                parts.into_iter().collect()
            }
        };
        self.conventions(array);
        let (error, whole) = match parts {
            Some(parts) => match self.decoder.assemble(array, parts) {
                Ok(whole) => return Some(whole),
                Err(error) => (Some(error), None),
            },
            None => (None, None),
        };
        // Something is amiss: every buffer of this array is looked at, whatever the first fault was.
        let blocks = self.blocks(array);
        let told =
            blocks.iter().any(|other| error.as_ref().is_some_and(|error| error.path() == other.path()));
        self.errors.extend(error.filter(|_| !told));
        self.errors.extend(blocks);
        whole
    }

    /// Checks a part; its findings get the path in front.
    fn part(&mut self, path: &[&str], array: &Array) -> Option<ArrayRef> {
        let errors = std::mem::take(&mut self.errors);
        let warnings = std::mem::take(&mut self.warnings);
        let part = self.array(array);
        let placed =
            |error: Error| path.iter().rev().fold(error, |error, step| error.field((*step).to_owned()));
        let inner = std::mem::replace(&mut self.errors, errors);
        self.errors.extend(inner.into_iter().map(placed));
        let inner = std::mem::replace(&mut self.warnings, warnings);
        self.warnings.extend(inner.into_iter().map(placed));
        part
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
            self.look(block?, |_| ()).err().map(|error| error.field(key))
        };
        blocks.into_iter().filter_map(fault).collect()
    }

    /// Unpacks a buffer for a look at it.
    fn look<T>(&self, block: &Block, at: impl FnOnce(&[u8]) -> T) -> Result<T> {
        Ok(at(&self.decoder.block(block)?))
    }

    /// As [`look`](Self::look), where a buffer that does not unpack is reported elsewhere.
    fn peek<T>(&mut self, block: &Block, at: impl FnOnce(&[u8]) -> T) -> Option<T> {
        match self.look(block, at) {
            Err(error) if error.kind() == ErrorKind::Io => {
                self.errors.push(error);
                None
            }
            seen => seen.ok(),
        }
    }

    /// What the last text of the spec forbids, and the programs read. Buffers that cannot be unpacked are reported elsewhere.
    fn conventions(&mut self, array: &Array) {
        let rows = array.rows();
        let spare = (8 - rows % 8) % 8;
        let has_spare_ones =
            |mask: &[u8]| mask.last().is_some_and(|last| u64::from(last.trailing_zeros()) < spare);
        if array.mask.length == rows.div_ceil(8) && self.peek(&array.mask, has_spare_ones) == Some(true) {
            let message = format!("{spare} zero bits after the last row");
            let warning = Error::malformed(message, "ones").at(array.mask.offset);
            self.warnings.push(warning.rule("mask-trailing-bits").field("m"));
        }
        if array.kind == Type::Bool
            && let Data::Values(values) = &array.data
            && let Some(Some((row, byte))) =
                self.peek(values, |bytes| bytes.iter().copied().enumerate().find(|(_, byte)| *byte > 1))
        {
            let warning = Error::malformed("0 or 1", byte).at(values.offset);
            self.warnings.push(warning.rule("bool-byte").index(row as u64).field("d"));
        }
    }
}
