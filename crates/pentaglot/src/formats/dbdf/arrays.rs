//! Writes DAPHNE's CSR: three arrays, none of which can be written before the last row.

use std::io::Write;

use arrow_array::RecordBatch;

use crate::error::{Error, Result};
use crate::formats::WriteOptions;
use crate::hub::matrix::ColumnNumbers;
use crate::limits::Budget;
use crate::sink::Sink;
use crate::source::Spool;

use super::cast::sparse_rows;
use super::schema::Object;

/// The arrays so far: the offsets of rows, and the columns and values of entries.
pub(super) struct Arrays {
    budget: Budget,
    offsets: Vec<u64>,
    cols: Spool,
    values: Spool,
}

impl Arrays {
    pub(super) fn new(options: &WriteOptions, rows: Option<u64>) -> Result<Self> {
        let budget = options.budget.clone();
        // The row offsets are kept in memory until the end.
        budget.check(rows.unwrap_or(0).saturating_mul(8))?;
        let spool = || Spool::with_memory(budget.limits().max_alloc / 4, &budget);
        let (cols, values) = (spool(), spool());
        Ok(Arrays { budget, offsets: vec![0], cols, values })
    }

    /// Entries so far.
    pub(super) fn entries(&self) -> u64 {
        self.offsets.last().copied().unwrap_or(0)
    }

    pub(super) fn push(&mut self, object: &Object, batch: &RecordBatch, first: u64) -> Result<()> {
        let rows = sparse_rows(object, batch, first)?;
        let count = (self.offsets.len() + batch.num_rows()) as u64;
        self.budget.check(count.saturating_mul(8))?;
        if rows.ends.first() == rows.ends.last() {
            self.offsets.resize(self.offsets.len() + batch.num_rows(), self.entries());
            return Ok(());
        }
        let index = |end: i64| usize::try_from(end).unwrap_or(0);
        let mut bytes = Vec::new();
        let mut seen: Vec<u64> = Vec::new();
        for (row, pair) in (first..).zip(rows.ends.windows(2)) {
            let &[start, end] = pair else { continue };
            seen.clear();
            match &rows.cols {
                ColumnNumbers::Narrow(cols) => {
                    seen.extend(
                        cols.get(index(start)..index(end))
                            .unwrap_or_default()
                            .iter()
                            .map(|col| u64::from(*col)),
                    );
                }
                ColumnNumbers::Wide(cols) => {
                    seen.extend_from_slice(cols.get(index(start)..index(end)).unwrap_or_default());
                }
            }
            bytes.extend(seen.iter().flat_map(|col| col.to_le_bytes()));
            if !seen.is_sorted_by(|one, next| one < next) {
                seen.sort_unstable();
                if let Some(pair) = seen.windows(2).find(|pair| pair.first() == pair.last()) {
                    let col = pair.first().copied().unwrap_or(0);
                    let found = format!("row {row}, column \"col_{col}\": a second entry for the cell");
                    return Err(Error::lossy(found));
                }
            }
            if let Some(col) = seen.last().filter(|col| **col >= object.cols) {
                return Err(Error::lossy(format!("row {row}: column {col} is not below {}", object.cols)));
            }
            let total = self.entries() + (end - start).cast_unsigned();
            self.offsets.push(total);
            if bytes.len() >= 64 << 10 {
                self.cols.write_all(&bytes)?;
                bytes.clear();
            }
        }
        self.cols.write_all(&bytes)?;
        let size = object.value_type().size();
        let (start, end) = (rows.ends.first().copied().unwrap_or(0), rows.ends.last().copied().unwrap_or(0));
        let values = rows.values.get(index(start) * size..index(end) * size).unwrap_or_default();
        Ok(self.values.write_all(values)?)
    }

    pub(super) fn finish(&mut self, sink: &mut Sink) -> Result<()> {
        sink.write_all(&self.entries().to_le_bytes())?;
        for piece in self.offsets.chunks(8 << 10) {
            let bytes: Vec<u8> = piece.iter().flat_map(|offset| offset.to_le_bytes()).collect();
            sink.write_all(&bytes)?;
        }
        self.cols.copy_to(sink)?;
        Ok(self.values.copy_to(sink)?)
    }
}
