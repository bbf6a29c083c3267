//! Numbers as text: the entries of sparse rows, in pieces that are printed side by side, and single values.

use std::io::Write;
use std::ops::Range;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Float64Type, Int64Type, UInt64Type};
use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;

use super::layout::MarketField;
use crate::error::{Error, Result};
use crate::hub::json::Float as _;
use crate::hub::matrix::SparseRows;

/// Entries that are printed together: some hundred kilobytes of text.
const PIECE_ENTRIES: usize = 16 << 10;

pub(super) fn mismatch() -> Error {
    Error::usage("the rows do not have the schema that the file was created with")
}

pub(super) fn lossy(row: u64, why: impl std::fmt::Display) -> Error {
    Error::lossy(format!("row {row}, column \"row\": {why}"))
}

/// Entries that are printed together.
pub(super) struct Piece {
    /// The row of the first.
    row: usize,
    entries: Range<usize>,
}

/// All entries of some rows, in order, in pieces. A row may be in several.
pub(super) struct Pieces<'l> {
    list: &'l SparseRows,
    row: usize,
    /// The next entry, counted from the first row's.
    entry: usize,
}

impl<'l> Pieces<'l> {
    pub(super) fn new(list: &'l SparseRows) -> Self {
        Pieces { list, row: 0, entry: 0 }
    }
}

impl Iterator for Pieces<'_> {
    type Item = Piece;

    fn next(&mut self) -> Option<Piece> {
        let all = self.list.entries();
        let start = all.start + self.entry;
        if start >= all.end {
            return None;
        }
        while self.list.row(self.row).end <= start {
            self.row += 1;
        }
        let entries = start..all.end.min(start + PIECE_ENTRIES);
        self.entry += entries.len();
        Some(Piece { row: self.row, entries })
    }
}

/// What entries are printed from.
pub(super) struct EntryPrinter<'l> {
    pub(super) values: Numbers,
    pub(super) list: &'l SparseRows,
    /// The number of the first row.
    pub(super) first: u64,
    pub(super) cols: u64,
    pub(super) kind: MarketField,
}

impl EntryPrinter<'_> {
    /// `row column value`, a line for each entry.
    pub(super) fn print(&self, piece: &Piece) -> Result<Vec<u8>> {
        let (mut text, mut number) = (Vec::new(), itoa::Buffer::new());
        let mut index = piece.row;
        for entry in piece.entries.clone() {
            while self.list.row(index).end <= entry {
                index += 1;
            }
            let row = self.first + index as u64;
            let col = self.list.cols.get(entry);
            if col >= self.cols {
                return Err(mismatch());
            }
            text.extend_from_slice(number.format(row + 1).as_bytes());
            text.push(b' ');
            text.extend_from_slice(number.format(col + 1).as_bytes());
            if self.kind == MarketField::Pattern {
                if !self.values.is_one(entry) {
                    return Err(lossy(row, "an entry of a pattern is 1"));
                }
            } else {
                text.push(b' ');
                self.values.put(entry, &mut text).map_err(|why| lossy(row, why))?;
            }
            text.push(b'\n');
        }
        Ok(text)
    }
}

/// The shortest text that parses back to the same float.
pub(super) fn put_float(value: f64, text: &mut Vec<u8>) {
    // Where no exponent is written, this has the layout of the standard library, and is faster.
    if (1e-4..1e15).contains(&value.abs()) {
        value.write_finite(text);
    } else {
        // Writing to memory cannot fail.
        let _ = if value.is_nan() { write!(text, "nan") } else { write!(text, "{value:?}") };
    }
    if text.ends_with(b".0") {
        text.truncate(text.len() - 2);
    }
}

/// Values to be written, as the widest type of their kind.
pub(super) struct Numbers {
    array: ArrayRef,
    wide: Wide,
}

enum Wide {
    Float(arrow_buffer::ScalarBuffer<f64>),
    Int(arrow_buffer::ScalarBuffer<i64>),
    Unsigned(arrow_buffer::ScalarBuffer<u64>),
    Complex(Vec<[f64; 2]>),
}

impl Numbers {
    pub(super) fn of(array: &ArrayRef, kind: MarketField) -> Result<Numbers> {
        let cast = |to: DataType| arrow_cast::cast(array, &to).map_err(Error::from);
        let wide = match kind {
            MarketField::Real => Wide::Float(
                cast(DataType::Float64)?
                    .as_primitive_opt::<Float64Type>()
                    .ok_or_else(mismatch)?
                    .values()
                    .clone(),
            ),
            MarketField::Integer | MarketField::Pattern => Wide::Int(
                cast(DataType::Int64)?.as_primitive_opt::<Int64Type>().ok_or_else(mismatch)?.values().clone(),
            ),
            MarketField::Unsigned => {
                Wide::Unsigned(array.as_primitive_opt::<UInt64Type>().ok_or_else(mismatch)?.values().clone())
            }
            MarketField::Complex => {
                let list = array.as_fixed_size_list_opt().ok_or_else(mismatch)?;
                let start = usize::try_from(list.value_offset(0)).unwrap_or(0);
                let parts = list.values().slice(start, list.len() * 2);
                let pairs = if let Some(parts) = parts.as_primitive_opt::<Float32Type>() {
                    let wide: Vec<f64> = parts.values().iter().map(|part| f64::from(*part)).collect();
                    wide.as_chunks::<2>().0.to_vec()
                } else {
                    parts
                        .as_primitive_opt::<Float64Type>()
                        .ok_or_else(mismatch)?
                        .values()
                        .as_chunks::<2>()
                        .0
                        .to_vec()
                };
                Wide::Complex(pairs)
            }
        };
        Ok(Numbers { array: array.clone(), wide })
    }

    fn check(&self, index: usize) -> Result<(), &'static str> {
        if self.array.is_null(index) { Err("Matrix Market has no null") } else { Ok(()) }
    }

    fn is_one(&self, index: usize) -> bool {
        self.check(index).is_ok() && matches!(&self.wide, Wide::Int(values) if values.get(index) == Some(&1))
    }

    fn put(&self, index: usize, text: &mut Vec<u8>) -> Result<(), &'static str> {
        self.check(index)?;
        match &self.wide {
            Wide::Float(values) => put_float(values.get(index).copied().unwrap_or_default(), text),
            Wide::Int(values) => {
                let value = values.get(index).copied().unwrap_or_default();
                text.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
            }
            Wide::Unsigned(values) => {
                let value = values.get(index).copied().unwrap_or_default();
                text.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
            }
            Wide::Complex(values) => {
                let [real, imaginary] = values.get(index).copied().unwrap_or_default();
                put_float(real, text);
                text.push(b' ');
                put_float(imaginary, text);
            }
        }
        Ok(())
    }

    pub(super) fn store(&self, index: usize, bytes: &mut Vec<u8>) -> Result<(), &'static str> {
        self.check(index)?;
        match &self.wide {
            Wide::Float(values) => bytes.extend(values.get(index).copied().unwrap_or_default().to_le_bytes()),
            Wide::Int(values) => bytes.extend(values.get(index).copied().unwrap_or_default().to_le_bytes()),
            Wide::Unsigned(values) => {
                bytes.extend(values.get(index).copied().unwrap_or_default().to_le_bytes())
            }
            Wide::Complex(values) => {
                let pair = values.get(index).copied().unwrap_or_default();
                pair.into_iter().for_each(|part| bytes.extend(part.to_le_bytes()));
            }
        }
        Ok(())
    }
}
