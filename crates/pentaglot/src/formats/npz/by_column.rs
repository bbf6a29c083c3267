//! The index arrays of SciPy's layouts from rows of entries: row numbers for COO, entries sorted by column for CSC.

use std::io::{BufReader, Read, Seek, SeekFrom, Write};

use crate::cursor::{Reserved, reserve};
use crate::error::{Error, Result};
use crate::limits::Budget;
use crate::source::Spool;

/// Numbers are written so many bytes at a time.
const PIECE_BYTES: usize = 64 << 10;

/// Numbers of 4 or 8 bytes in a spool, from its start.
pub(super) struct Numbers<'a> {
    bytes: BufReader<&'a mut Spool>,
    width: usize,
}

impl<'a> Numbers<'a> {
    pub(super) fn new(spool: &'a mut Spool, width: usize) -> Result<Self> {
        spool.seek(SeekFrom::Start(0))?;
        Ok(Numbers { bytes: BufReader::with_capacity(PIECE_BYTES, spool), width })
    }

    fn next(&mut self) -> Result<u64> {
        let mut number = [0; 8];
        self.bytes.read_exact(number.get_mut(..self.width).unwrap_or_default())?;
        Ok(u64::from_le_bytes(number))
    }

    pub(super) fn copy_to(&mut self, out: &mut NumbersOut<'_>) -> Result<()> {
        let total = self.bytes.get_ref().len() / self.width as u64;
        (0..total).try_for_each(|_| out.put(self.next()?))
    }
}

/// Writes numbers of 4 or 8 bytes.
pub(super) struct NumbersOut<'a> {
    out: &'a mut dyn Write,
    piece: Vec<u8>,
    width: usize,
}

impl<'a> NumbersOut<'a> {
    pub(super) fn new(out: &'a mut dyn Write, width: usize) -> Self {
        NumbersOut { out, piece: Vec::new(), width }
    }

    pub(super) fn put(&mut self, number: u64) -> Result<()> {
        self.piece.extend_from_slice(number.to_le_bytes().get(..self.width).unwrap_or_default());
        if self.piece.len() >= PIECE_BYTES {
            self.out.write_all(&self.piece)?;
            self.piece.clear();
        }
        Ok(())
    }

    pub(super) fn finish(self) -> Result<()> {
        Ok(self.out.write_all(&self.piece)?)
    }
}

/// The row number of each entry, from the `rows + 1` pointers of the rows.
pub(super) fn expand(rows: u64, pointers: &mut Numbers<'_>, out: &mut NumbersOut<'_>) -> Result<()> {
    let mut start = pointers.next()?;
    for row in 0..rows {
        let end = pointers.next()?;
        (start..end).try_for_each(|_| out.put(row))?;
        start = end;
    }
    Ok(())
}

/// The size of a matrix, and its stored entries.
pub(super) struct Counts {
    pub(super) rows: u64,
    pub(super) cols: u64,
    pub(super) entries: u64,
}

/// Entries in the order of their columns, those of a column in the order of their rows.
pub(super) struct ByColumn {
    /// Where the entries of each column end.
    pub(super) ends: Reserved<u64>,
    pub(super) rows: Reserved<u64>,
    pub(super) values: Reserved<u8>,
}

/// The entries of a matrix in the order of rows, as they wait to be written.
pub(super) struct Waiting<'a> {
    pub(super) counts: Counts,
    /// Column numbers of so many bytes.
    pub(super) cols: (&'a mut Spool, usize),
    pub(super) pointers: &'a mut Spool,
    /// Values of so many bytes.
    pub(super) values: (&'a mut Spool, usize),
}

impl Waiting<'_> {
    /// Calls `take` with the row, the column and the value of each entry.
    pub(super) fn each(&mut self, mut take: impl FnMut(u64, u64, &[u8]) -> Result<()>) -> Result<()> {
        let mut cols = Numbers::new(self.cols.0, self.cols.1)?;
        let mut pointers = Numbers::new(self.pointers, 8)?;
        self.values.0.seek(SeekFrom::Start(0))?;
        let mut values = BufReader::with_capacity(PIECE_BYTES, &mut *self.values.0);
        let mut value = vec![0; self.values.1];
        let mut from = pointers.next()?;
        for row in 0..self.counts.rows {
            let to = pointers.next()?;
            for _ in from..to {
                values.read_exact(&mut value)?;
                take(row, cols.next()?, &value)?;
            }
            from = to;
        }
        Ok(())
    }
}

/// Sorts entries by column.
pub(super) fn by_column(waiting: &mut Waiting<'_>, budget: &Budget) -> Result<ByColumn> {
    let outside = || Error::usage("a column number past the number of columns");
    let (entries, size) = (waiting.counts.entries, waiting.values.1);
    let mut ends = zeroed::<u64>(waiting.counts.cols, budget)?;
    let mut rows = zeroed::<u64>(entries, budget)?;
    let mut sorted = zeroed::<u8>(entries.saturating_mul(size as u64), budget)?;
    let mut numbers = Numbers::new(waiting.cols.0, waiting.cols.1)?;
    for _ in 0..entries {
        *ends.get_mut(index(numbers.next()?)).ok_or_else(outside)? += 1;
    }
    // From the count of each column to where its entries start; each entry then moves the start of its column.
    let mut total = 0;
    for start in ends.iter_mut() {
        total += std::mem::replace(start, total);
    }
    waiting.each(|row, col, value| {
        let next = ends.get_mut(index(col)).ok_or_else(outside)?;
        let slot = index(*next);
        *next += 1;
        *rows.get_mut(slot).ok_or_else(outside)? = row;
        let place = sorted.get_mut(slot * size..).and_then(|rest| rest.get_mut(..size));
        place.ok_or_else(outside)?.copy_from_slice(value);
        Ok(())
    })?;
    Ok(ByColumn { ends, rows, values: sorted })
}

pub(super) fn zeroed<T: Clone + Default>(count: u64, budget: &Budget) -> Result<Reserved<T>> {
    let mut items = reserve(count, budget)?;
    items.resize(index(count), T::default());
    Ok(items)
}

pub(super) fn index(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}
