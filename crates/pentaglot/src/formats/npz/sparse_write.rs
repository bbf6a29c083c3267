//! Writes a sparse matrix like SciPy: five members, none of which can be written before the last row.

use std::io::Write;

use arrow_array::RecordBatch;
use arrow_buffer::Buffer;
use arrow_schema::Schema;

use super::blocks::{by_block, by_diagonal};
use super::by_column::{Counts, Numbers, NumbersOut, Waiting, by_column, expand};
use super::schema::{SparseLayout, SparseTarget};
use super::scipy::IS_ARRAY;
use super::zip_write::ZipWriter;
use crate::cursor::allocate;
use crate::error::{Error, ErrorKind, Hint, Result};
use crate::formats::ColumnReader;
use crate::formats::npy::encode::{self, Origin};
use crate::formats::npy::layout::Header;
use crate::formats::npy::types::{Dtype, DtypeKind, Scalar};
use crate::hub::matrix::{ColumnNumbers, SparseRows};
use crate::hub::shape;
use crate::limits::Budget;
use crate::source::Spool;

/// A sparse matrix being written: values, column numbers and row pointers are spooled until their counts are
/// known.
pub(super) struct SparseBody {
    target: SparseTarget,
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
    pub(super) fn new(target: SparseTarget, schema: &Schema, budget: &Budget) -> Result<SparseBody> {
        let mut pointers = Spool::new(budget);
        pointers.write_all(&0u64.to_le_bytes())?;
        Ok(SparseBody {
            target,
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
        self.values.write_all(&self.value_bytes(&list, self.rows, budget)?)?;
        let narrow = self.is_narrow();
        self.indices.write_all(&self.column_bytes(&list, narrow, budget)?)?;
        self.add_rows(&list)
    }

    /// The values of some rows, as they are stored.
    fn value_bytes(&self, list: &SparseRows, first_row: u64, budget: &Budget) -> Result<Buffer> {
        let range = list.entries();
        let values = list.values.slice(range.start, range.len());
        let origin = Origin { first_row, column: shape::ROW_FIELD.to_owned(), per_row: 1 };
        encode::encode(&Dtype::Scalar(self.target.scalar), &[], &values, &origin, budget)
    }

    /// The column numbers of some rows, in 32 or 64 bits.
    fn column_bytes(&self, list: &SparseRows, narrow: bool, budget: &Budget) -> Result<Buffer> {
        let range = list.entries();
        let (largest, bytes) = match (&list.cols, narrow) {
            (ColumnNumbers::Narrow(cols), true) => {
                let cols = cols.slice(range.start, range.len());
                (cols.iter().copied().max().unwrap_or(0).into(), cols.into_inner())
            }
            _ => {
                let width = if narrow { 4 } else { 8 };
                let mut bytes: Vec<u8> = allocate(range.len() as u64 * width as u64, budget)?;
                let mut largest = 0;
                for col in range.map(|entry| list.cols.get(entry)) {
                    largest = largest.max(col);
                    bytes.extend(col.to_le_bytes().get(..width).unwrap_or_default());
                }
                (largest, Buffer::from_vec(bytes))
            }
        };
        if largest >= self.cols && !bytes.is_empty() {
            return Err(Error::usage(format!("column {largest} of a matrix of {} columns", self.cols)));
        }
        Ok(bytes)
    }

    /// Adds the pointers of rows with entries, and counts them.
    fn add_rows(&mut self, list: &SparseRows) -> Result<()> {
        self.fill()?;
        let range = list.entries();
        for index in 0..list.len() {
            let pointer = self.entries + (list.row(index).end - range.start) as u64;
            self.pointers.write_all(&pointer.to_le_bytes())?;
        }
        self.entries += range.len() as u64;
        self.rows += list.len() as u64;
        Ok(())
    }

    /// Writes all members, reading the rows twice: first for the column numbers, then for the values, so that neither is
    /// spooled. `false`, and nothing is written: the layout needs another order, or it is not known how wide the numbers are.
    pub(super) fn write_twice(
        &mut self,
        zip: &mut ZipWriter,
        input: &ColumnReader<'_>,
        budget: &Budget,
    ) -> Result<bool> {
        let Some(most) = input.most_entries else { return Ok(false) };
        if self.target.layout != SparseLayout::Csr || zip.compressed {
            return Ok(false);
        }
        let rows = input.rows.max(self.declared_rows.unwrap_or(0));
        let narrow = self.are_narrow(most, rows);
        if !narrow && self.are_narrow(0, rows) {
            // Fewer entries than there are at the most might be narrow.
            return Ok(false);
        }
        let each = |write: &mut dyn FnMut(SparseRows, u64) -> Result<()>| -> Result<()> {
            let mut first_row = 0;
            for batch in (input.read)(0)? {
                let batch = batch.map_err(Error::from)?;
                write(SparseRows::of(batch.column(0), first_row)?, first_row)?;
                first_row += batch.num_rows() as u64;
            }
            Ok(())
        };
        let index = Scalar::new(DtypeKind::Int, if narrow { 4 } else { 8 });
        zip.counted_member(
            "indices",
            most,
            |count| header(index, vec![count]),
            |out| {
                each(&mut |list, _| {
                    if list.entries().is_empty() {
                        return self.skip(list.len() as u64, budget);
                    }
                    out.write_all(&self.column_bytes(&list, narrow, budget)?)?;
                    self.add_rows(&list)
                })?;
                Ok(self.entries)
            },
        )?;
        self.end_rows(budget)?;
        self.write_pointers(zip, narrow)?;
        self.write_shape(zip)?;
        let found = self.entries;
        zip.counted_member(
            "data",
            found,
            |count| header(self.target.scalar, vec![count]),
            |out| {
                let mut written = 0;
                each(&mut |list, first_row| {
                    written += list.entries().len() as u64;
                    Ok(out.write_all(&self.value_bytes(&list, first_row, budget)?)?)
                })?;
                if written != found {
                    return Err(Error::malformed(format_args!("{found} entries"), written));
                }
                Ok(written)
            },
        )?;
        self.write_mark(zip)?;
        Ok(true)
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
        self.end_rows(budget)?;
        let narrow = self.are_narrow(self.entries, self.rows);
        let layout = self.target.layout;
        let mut data = vec![self.entries];
        match layout {
            SparseLayout::Csc => self.write_columns(zip, narrow, budget).map_err(csr_helps)?,
            SparseLayout::Bsr => data = self.write_blocks(zip, narrow, budget).map_err(csr_helps)?,
            SparseLayout::Dia => data = self.write_diagonals(zip, narrow, budget).map_err(csr_helps)?,
            SparseLayout::Coo => {
                let (rows, mut pointers) = (self.rows, Numbers::new(&mut self.pointers, 8)?);
                member(zip, "row", narrow, self.entries, |out| expand(rows, &mut pointers, out))?;
                self.write_indices("col", zip, narrow)?;
            }
            SparseLayout::Csr => {
                self.write_indices("indices", zip, narrow)?;
                self.write_pointers(zip, narrow)?;
            }
        }
        self.write_shape(zip)?;
        zip.member("data", |out| {
            out.write_all(&header(self.target.scalar, data))?;
            Ok(self.values.copy_to(out)?)
        })?;
        self.write_mark(zip)
    }

    /// Adds the empty rows at the end, which may be missing from the stream.
    fn end_rows(&mut self, budget: &Budget) -> Result<()> {
        let missing = self.declared_rows.unwrap_or(0).saturating_sub(self.rows);
        self.skip(missing, budget)?;
        self.fill()
    }

    /// SciPy wants both index arrays of one type: 32 bits if every number fits.
    fn are_narrow(&self, entries: u64, rows: u64) -> bool {
        let fits = |count: u64| i32::try_from(count).is_ok();
        !self.target.wide && fits(self.cols) && fits(entries) && fits(rows)
    }

    fn write_pointers(&mut self, zip: &mut ZipWriter, narrow: bool) -> Result<()> {
        let mut pointers = Numbers::new(&mut self.pointers, 8)?;
        member(zip, "indptr", narrow, self.rows.saturating_add(1), |out| pointers.copy_to(out))
    }

    fn write_shape(&self, zip: &mut ZipWriter) -> Result<()> {
        zip.member("format", |out| {
            out.write_all(&header(Scalar::new(DtypeKind::Bytes, 3), vec![]))?;
            Ok(out.write_all(self.target.layout.name().as_bytes())?)
        })?;
        zip.member("shape", |out| {
            out.write_all(&header(Scalar::new(DtypeKind::Int, 8), vec![2]))?;
            out.write_all(&self.rows.to_le_bytes())?;
            Ok(out.write_all(&self.cols.to_le_bytes())?)
        })
    }

    /// Writes the member that only sparse arrays have, not sparse matrices.
    fn write_mark(&self, zip: &mut ZipWriter) -> Result<()> {
        if !self.target.is_array {
            return Ok(());
        }
        zip.member(IS_ARRAY, |out| {
            out.write_all(&header(Scalar::new(DtypeKind::Bool, 1), vec![]))?;
            Ok(out.write_all(&[1])?)
        })
    }

    fn write_indices(&mut self, name: &str, zip: &mut ZipWriter, narrow: bool) -> Result<()> {
        let width = if self.is_narrow() { 4 } else { 8 };
        let mut indices = Numbers::new(&mut self.indices, width)?;
        member(zip, name, narrow, self.entries, |out| indices.copy_to(out))
    }

    fn waiting(&mut self) -> Waiting<'_> {
        Waiting {
            counts: Counts { rows: self.rows, cols: self.cols, entries: self.entries },
            cols: (&mut self.indices, if i32::try_from(self.cols).is_ok() { 4 } else { 8 }),
            pointers: &mut self.pointers,
            values: (&mut self.values, usize::try_from(self.target.scalar.bytes).unwrap_or(0)),
        }
    }

    /// Writes row numbers and column pointers. The values wait in the order of columns.
    fn write_columns(&mut self, zip: &mut ZipWriter, narrow: bool, budget: &Budget) -> Result<()> {
        let sorted = by_column(&mut self.waiting(), budget)?;
        member(zip, "indices", narrow, self.entries, |out| {
            sorted.rows.iter().try_for_each(|row| out.put(*row))
        })?;
        member(zip, "indptr", narrow, self.cols.saturating_add(1), |out| {
            out.put(0)?;
            sorted.ends.iter().try_for_each(|end| out.put(*end))
        })?;
        self.values = Spool::new(budget);
        Ok(self.values.write_all(&sorted.values)?)
    }

    /// Writes the numbers of blocks; gives the shape of the values, which wait block by block.
    fn write_blocks(&mut self, zip: &mut ZipWriter, narrow: bool, budget: &Budget) -> Result<Vec<u64>> {
        let (height, width) = self.target.block;
        let found = by_block(&mut self.waiting(), (height, width), budget)?;
        let count = found.cols.len() as u64;
        member(zip, "indices", narrow, count, |out| found.cols.iter().try_for_each(|col| out.put(*col)))?;
        member(zip, "indptr", narrow, found.ends.len() as u64 + 1, |out| {
            out.put(0)?;
            found.ends.iter().try_for_each(|end| out.put(*end))
        })?;
        self.values = Spool::new(budget);
        self.values.write_all(&found.values)?;
        Ok(vec![count, height, width])
    }

    /// Writes the offsets of diagonals; gives the shape of the values, which wait diagonal by diagonal.
    fn write_diagonals(&mut self, zip: &mut ZipWriter, narrow: bool, budget: &Budget) -> Result<Vec<u64>> {
        let found = by_diagonal(&mut self.waiting(), budget)?;
        let count = found.offsets.len() as u64;
        member(zip, "offsets", narrow, count, |out| {
            found.offsets.iter().try_for_each(|offset| out.put(*offset as u64))
        })?;
        self.values = Spool::new(budget);
        self.values.write_all(&found.values)?;
        Ok(vec![count, self.cols])
    }
}

fn csr_helps(error: Error) -> Error {
    match error.kind() {
        ErrorKind::Limit => error.hint(Hint::Option("layout=csr".into())),
        _ => error,
    }
}

fn header(scalar: Scalar, shape: Vec<u64>) -> Vec<u8> {
    Header::canonical(Dtype::Scalar(scalar), false, shape).to_bytes()
}

/// A member of `count` numbers of 32 or 64 bits.
fn member(
    zip: &mut ZipWriter,
    name: &str,
    narrow: bool,
    count: u64,
    fill: impl FnOnce(&mut NumbersOut<'_>) -> Result<()>,
) -> Result<()> {
    zip.member(name, |out| {
        let width = if narrow { 4 } else { 8 };
        out.write_all(&header(Scalar::new(DtypeKind::Int, width), vec![count]))?;
        let mut numbers = NumbersOut::new(out, if narrow { 4 } else { 8 });
        fill(&mut numbers)?;
        numbers.finish()
    })
}
