//! Writes a sparse matrix like SciPy: five members, none of which can be written before the last row.

use std::io::Write;

use arrow_array::RecordBatch;
use arrow_schema::Schema;

use super::zip_write::ZipWriter;
use crate::cursor::allocate;
use crate::error::{Error, Result};
use crate::formats::npy::encode::{self, Origin};
use crate::formats::npy::layout::Header;
use crate::formats::npy::types::{Dtype, DtypeKind, Scalar};
use crate::hub::matrix::SparseRows;
use crate::hub::shape;
use crate::limits::Budget;
use crate::source::Spool;

/// A sparse matrix being written: values, column numbers and row pointers are spooled until their counts are
/// known.
pub(super) struct SparseBody {
    scalar: Scalar,
    declared_rows: Option<u64>,
    cols: u64,
    values: Spool,
    indices: Spool,
    pointers: Spool,
    /// Rows without entries whose pointers are still to be written.
    empty: u64,
    entries: u64,
    rows: u64,
}

impl SparseBody {
    pub(super) fn new(scalar: Scalar, schema: &Schema, budget: &Budget) -> Result<SparseBody> {
        let mut pointers = Spool::new(budget);
        pointers.write_all(&0u64.to_le_bytes())?;
        Ok(SparseBody {
            scalar,
            declared_rows: shape::matrix_rows(schema),
            cols: shape::matrix_cols(schema).unwrap_or(0),
            values: Spool::new(budget),
            indices: Spool::new(budget),
            pointers,
            empty: 0,
            entries: 0,
            rows: 0,
        })
    }

    pub(super) fn write(&mut self, rows: &RecordBatch, budget: &Budget) -> Result<()> {
        let list = SparseRows::of(rows.column(0), self.rows)?;
        let range = list.entries();
        if range.is_empty() {
            return self.skip(rows.num_rows() as u64, budget);
        }
        self.fill()?;
        let values = list.values.slice(range.start, range.len());
        let origin = Origin { first_row: self.rows, column: shape::ROW_FIELD.to_owned(), per_row: 1 };
        self.values.write_all(&encode::encode(
            &Dtype::Scalar(self.scalar),
            &[],
            &values,
            &origin,
            budget,
        )?)?;
        let narrow = self.is_narrow();
        let mut bytes: Vec<u8> = allocate(range.len() as u64 * if narrow { 4 } else { 8 }, budget)?;
        for entry in range.clone() {
            let col = list.cols.get(entry);
            if col >= self.cols {
                return Err(Error::usage(format!("column {col} of a matrix of {} columns", self.cols)));
            }
            let wide = col.to_le_bytes();
            bytes.extend(wide.get(..if narrow { 4 } else { 8 }).unwrap_or_default());
        }
        self.indices.write_all(&bytes)?;
        for index in 0..list.len() {
            let pointer = self.entries + (list.row(index).end - range.start) as u64;
            self.pointers.write_all(&pointer.to_le_bytes())?;
        }
        self.entries += range.len() as u64;
        self.rows += rows.num_rows() as u64;
        Ok(())
    }

    /// Adds rows without entries. They take no input, so the limits restrict how many bytes they may become.
    fn skip(&mut self, rows: u64, budget: &Budget) -> Result<()> {
        self.empty += rows;
        self.rows += rows;
        budget.check(self.empty.saturating_mul(8))
    }

    /// Writes the pointers of the rows that were skipped.
    fn fill(&mut self) -> Result<()> {
        const PIECE: u64 = 8192;
        let count = usize::try_from(self.empty.min(PIECE)).unwrap_or(0);
        let piece = self.entries.to_le_bytes().repeat(count);
        while self.empty > 0 {
            let count = self.empty.min(PIECE);
            let bytes = usize::try_from(count * 8).unwrap_or(0);
            self.pointers.write_all(piece.get(..bytes).unwrap_or_default())?;
            self.empty -= count;
        }
        Ok(())
    }

    /// Whether column numbers fit 32 bits.
    fn is_narrow(&self) -> bool {
        i32::try_from(self.cols).is_ok()
    }

    pub(super) fn finish(mut self, zip: &mut ZipWriter, budget: &Budget) -> Result<()> {
        // Empty trailing rows may be missing from the stream.
        let missing = self.declared_rows.unwrap_or(0).saturating_sub(self.rows);
        self.skip(missing, budget)?;
        self.fill()?;
        let narrow_indices = self.is_narrow();
        // SciPy requires both index arrays to have the same type: 32 bits if every number fits.
        let narrow_both = narrow_indices && i32::try_from(self.entries.max(self.rows)).is_ok();
        let dtype = Dtype::Scalar(Scalar::new(DtypeKind::Int, if narrow_both { 4 } else { 8 }));
        let header =
            |dtype: &Dtype, shape: Vec<u64>| Header::canonical(dtype.clone(), false, shape).to_bytes();
        let mut indices = self.indices;
        zip.member("indices", |out| {
            out.write_all(&header(&dtype, vec![self.entries]))?;
            let copied = match (narrow_indices, narrow_both) {
                (true, false) => indices.copy_to(&mut Widening(out)),
                _ => indices.copy_to(out),
            };
            Ok(copied?)
        })?;
        let mut pointers = self.pointers;
        zip.member("indptr", |out| {
            out.write_all(&header(&dtype, vec![self.rows.saturating_add(1)]))?;
            let copied =
                if narrow_both { pointers.copy_to(&mut Narrowing(out)) } else { pointers.copy_to(out) };
            Ok(copied?)
        })?;
        zip.member("format", |out| {
            out.write_all(&header(&Dtype::Scalar(Scalar::new(DtypeKind::Bytes, 3)), vec![]))?;
            Ok(out.write_all(b"csr")?)
        })?;
        zip.member("shape", |out| {
            out.write_all(&header(&Dtype::Scalar(Scalar::new(DtypeKind::Int, 8)), vec![2]))?;
            out.write_all(&self.rows.to_le_bytes())?;
            Ok(out.write_all(&self.cols.to_le_bytes())?)
        })?;
        let (scalar, entries, mut values) = (self.scalar, self.entries, self.values);
        zip.member("data", |out| {
            out.write_all(&header(&Dtype::Scalar(scalar), vec![entries]))?;
            Ok(values.copy_to(out)?)
        })
    }
}

/// The low halves of 64-bit numbers.
fn narrow(bytes: &[u8]) -> Vec<u8> {
    bytes.as_chunks::<8>().0.iter().flat_map(|[a, b, c, d, ..]| [*a, *b, *c, *d]).collect()
}

/// Writes the low halves of 64-bit numbers; each write has complete numbers.
struct Narrowing<'a>(&'a mut dyn Write);

impl Write for Narrowing<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.write_all(&narrow(bytes))?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.0.flush()
    }
}

/// Writes 32-bit numbers as 64-bit ones; each write has complete numbers.
struct Widening<'a>(&'a mut dyn Write);

impl Write for Widening<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let wide: Vec<u8> =
            bytes.as_chunks::<4>().0.iter().flat_map(|[a, b, c, d]| [*a, *b, *c, *d, 0, 0, 0, 0]).collect();
        self.0.write_all(&wide)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.0.flush()
    }
}
