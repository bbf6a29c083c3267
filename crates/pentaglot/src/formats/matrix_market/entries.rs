//! Numbers as text: the entries of sparse rows, in pieces that are printed side by side.

use std::ops::Range;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Float64Type, Int64Type, UInt64Type};
use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;

use super::layout::MarketField;
use super::line::{Line, Lines};
use crate::error::{Error, Result};
use crate::hub::matrix::SparseRows;

/// Entries that are printed together: about a hundred kilobytes of text.
const PIECE_ENTRIES: usize = 4 << 10;

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
    pub(super) fn print(&self, piece: &Piece, lines: &mut Lines) -> Result<()> {
        let values = &self.values;
        match &values.wide {
            Wide::Int(_) if self.kind == MarketField::Pattern => {
                self.print_lines(piece, lines, |entry, _| {
                    if values.is_one(entry) { Ok(()) } else { Err("an entry of a pattern is 1") }
                })
            }
            Wide::Float(all) => self.print_values(piece, lines, all, |value, line| line.float(*value)),
            Wide::Int(all) => self.print_values(piece, lines, all, |value, line| line.signed(*value)),
            Wide::Unsigned(all) => self.print_values(piece, lines, all, |value, line| line.unsigned(*value)),
            Wide::Complex(all) => self.print_values(piece, lines, all, |[real, imaginary], line| {
                line.float(*real);
                line.byte(b' ');
                line.float(*imaginary);
            }),
        }
    }

    fn print_values<T: Default>(
        &self,
        piece: &Piece,
        lines: &mut Lines,
        values: &[T],
        put: impl Fn(&T, &mut Line<'_>),
    ) -> Result<()> {
        let (zero, has_nulls) = (T::default(), self.values.array.null_count() > 0);
        self.print_lines(piece, lines, |entry, line| {
            if has_nulls {
                self.values.check(entry)?;
            }
            line.byte(b' ');
            put(values.get(entry).unwrap_or(&zero), line);
            Ok(())
        })
    }

    fn print_lines(
        &self,
        piece: &Piece,
        lines: &mut Lines,
        put: impl Fn(usize, &mut Line<'_>) -> Result<(), &'static str>,
    ) -> Result<()> {
        let (mut entry, mut index) = (piece.entries.start, piece.row);
        while entry < piece.entries.end {
            let row = self.first + index as u64;
            let mut number = itoa::Buffer::new();
            let number = number.format(row + 1).as_bytes();
            // A blank follows the number.
            let mut start = [b' '; 24];
            start.iter_mut().zip(number).for_each(|(byte, digit)| *byte = *digit);
            let end = self.list.row(index).end.min(piece.entries.end);
            while entry < end {
                let col = self.list.cols.get(entry);
                if col >= self.cols {
                    return Err(mismatch());
                }
                let printed = lines.add(|line| {
                    line.first(start, number.len() + 1);
                    line.unsigned(col + 1);
                    put(entry, line)?;
                    line.byte(b'\n');
                    Ok(())
                });
                printed.map_err(|why: &str| lossy(row, why))?;
                entry += 1;
            }
            index += 1;
        }
        Ok(())
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
