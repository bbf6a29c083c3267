//! A column to chunks: values are encoded as the identity encodes them, then cut.
//!
//! ```text
//! chunk = 00, enc of each value                                           if no row is missing
//!       | 01, one validity bit a row, enc of each value that is present
//! ```
//!
//! So a chunk is what the identity hashes, of rows whose borders the content decides. The rows of a matrix are its entries as
//! they are stored: explicit zeros come back.

use arrow_array::ArrayRef;
use arrow_schema::DataType;

use super::cut::{self, Ends, Width};
use crate::error::Result;
use crate::identity::{Encoder, HashedColumn, MatrixRows};

/// The bytes of a chunk, before they are compressed.
pub(super) struct Plain {
    pub(super) rows: u32,
    pub(super) bytes: Vec<u8>,
}

/// How many bytes the values of a column take.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Size {
    /// None.
    Zero,
    /// All the same number.
    Fixed(usize),
    Variable,
}

/// A column that is being cut.
///
/// What is cut is the encoded values, and for a missing one zeros: as many as a value has, or one. They are not part of a
/// chunk.
pub(super) struct ColumnCutter {
    is_matrix: bool,
    size: Size,
    bytes: Vec<u8>,
    /// Where rows end in `bytes`, if they have no fixed size.
    ends: Vec<usize>,
    /// The rows that are missing.
    missing: Vec<usize>,
}

impl ColumnCutter {
    pub(super) fn new(data_type: &DataType, is_matrix: bool) -> Self {
        let size = if is_matrix { Size::Variable } else { size_of(data_type) };
        ColumnCutter { is_matrix, size, bytes: Vec::new(), ends: Vec::new(), missing: Vec::new() }
    }

    /// Adds rows; gives the chunks that are complete.
    pub(super) fn push(&mut self, array: &ArrayRef, out: &mut Vec<Plain>) -> Result<()> {
        match self.is_matrix {
            true => self.push_matrix(&MatrixRows::new(array)?)?,
            false => self.push_values(&HashedColumn::new(array)?)?,
        }
        self.cut(false, out);
        Ok(())
    }

    /// The chunks of what is left.
    pub(super) fn finish(mut self, out: &mut Vec<Plain>) {
        self.cut(true, out);
    }

    fn rows(&self) -> usize {
        match self.size {
            Size::Fixed(width) => self.bytes.len() / width,
            _ => self.ends.len(),
        }
    }

    fn push_matrix(&mut self, rows: &MatrixRows) -> Result<()> {
        let (bytes, ends) = (&mut self.bytes, &mut self.ends);
        let start = bytes.len();
        let mut take = |more: &[u8]| {
            bytes.extend_from_slice(more);
            Ok(())
        };
        let mut out = Encoder::new(&mut take);
        let mut entries = Vec::new();
        for row in 0..rows.len() {
            rows.encode_row(row, true, &mut entries, &mut out)?;
            ends.push(start + out.position());
        }
        out.flush()
    }

    fn push_values(&mut self, values: &HashedColumn) -> Result<()> {
        let first = self.rows();
        let is_missing = |index: &usize| values.is_missing(*index);
        let known = self.missing.len();
        if values.has_missing() {
            self.missing.extend((0..values.len()).filter(is_missing).map(|index| first + index));
        }
        if let (Size::Fixed(width), Some((bytes, _))) = (self.size, values.fixed()) {
            self.bytes.extend_from_slice(bytes);
            // What is in the place of a missing value is not data.
            for row in &self.missing[known..] {
                self.bytes[row * width..(row + 1) * width].fill(0);
            }
            return Ok(());
        }
        let mut missing = self.missing[known..].iter().map(|row| row - first).peekable();
        let placeholder = vec![0; if let Size::Fixed(width) = self.size { width } else { 1 }];
        let (bytes, ends) = (&mut self.bytes, &mut self.ends);
        let start = bytes.len();
        let mut take = |more: &[u8]| {
            bytes.extend_from_slice(more);
            Ok(())
        };
        let mut out = Encoder::new(&mut take);
        for index in 0..values.len() {
            if missing.next_if_eq(&index).is_some() || self.size == Size::Zero {
                out.put(&placeholder)?;
            } else {
                values.encode(index, &mut out)?;
            }
            if !matches!(self.size, Size::Fixed(_)) {
                ends.push(start + out.position());
            }
        }
        out.flush()
    }

    fn cut(&mut self, is_all: bool, out: &mut Vec<Plain>) {
        let (mut start, mut row) = (0, 0);
        let next = |start| match self.size {
            Size::Fixed(width) => cut::end(&self.bytes, start, &Width(width), is_all),
            _ => cut::end(&self.bytes, start, &Ends(&self.ends), is_all),
        };
        while let Some(end) = next(start) {
            let end_row = match self.size {
                Size::Fixed(width) => end / width,
                _ => self.ends.partition_point(|place| *place <= end),
            };
            out.push(self.plain(start..end, row..end_row));
            (start, row) = (end, end_row);
        }
        self.bytes.drain(..start);
        self.ends.drain(..row.min(self.ends.len()));
        self.ends.iter_mut().for_each(|end| *end -= start);
        self.missing.drain(..self.missing.partition_point(|missing| *missing < row));
        self.missing.iter_mut().for_each(|missing| *missing -= row);
    }

    fn plain(&self, bytes: std::ops::Range<usize>, rows: std::ops::Range<usize>) -> Plain {
        let from = self.missing.partition_point(|row| *row < rows.start);
        let to = self.missing.partition_point(|row| *row < rows.end);
        let missing = &self.missing[from..to];
        let count = rows.len();
        let mut plain = vec![u8::from(!missing.is_empty())];
        if !missing.is_empty() {
            let mut validity = vec![0xff; count.div_ceil(8)];
            if let (Some(last), 1..) = (validity.last_mut(), count % 8) {
                *last = (1 << (count % 8)) - 1;
            }
            for row in missing {
                let row = row - rows.start;
                validity[row / 8] &= !(1 << (row % 8));
            }
            plain.append(&mut validity);
        }
        if self.size != Size::Zero {
            let mut from = bytes.start;
            for row in missing {
                let (start, end) = match self.size {
                    Size::Fixed(width) => (row * width, (row + 1) * width),
                    _ => (self.ends[*row] - 1, self.ends[*row]),
                };
                plain.extend_from_slice(&self.bytes[from..start]);
                from = end;
            }
            plain.extend_from_slice(&self.bytes[from..bytes.end]);
        }
        // A row takes a byte at least of what is cut.
        Plain { rows: count as u32, bytes: plain }
    }
}

/// How many bytes encoded values of a type take.
fn size_of(data_type: &DataType) -> Size {
    match data_type {
        DataType::Null => Size::Zero,
        DataType::Boolean => Size::Fixed(1),
        DataType::FixedSizeBinary(0) | DataType::FixedSizeList(_, 0) => Size::Zero,
        DataType::FixedSizeBinary(width) => Size::Fixed(*width as usize),
        DataType::Struct(fields) if fields.is_empty() => Size::Zero,
        DataType::Dictionary(_, value) => size_of(value),
        DataType::RunEndEncoded(_, values) => size_of(values.data_type()),
        other => other.primitive_width().map_or(Size::Variable, Size::Fixed),
    }
}
