//! Rows matched by their position.

use arrow_array::RecordBatch;

use super::DiffOptions;
use super::cells::{self, Tolerance};
use super::report::{Collector, Place};
use crate::error::{Error, Result};
use crate::hub::Rows;
use crate::hub::json::Columns;

/// The rows of one side, which can be taken in pieces of any size.
pub(super) struct Side {
    rows: Rows,
    current: Option<RecordBatch>,
}

impl Side {
    /// Both sides. The calling thread, which compares them, reads the first one, another thread the second one.
    pub(super) fn both(a: Rows, b: Rows, options: &DiffOptions) -> Result<(Self, Self)> {
        let b = options.open.identity().overlapped(b)?;
        Ok((Side { rows: a, current: None }, Side { rows: b, current: None }))
    }

    /// The number of rows in memory; 0 at the end.
    pub(super) fn fill(&mut self) -> Result<usize> {
        loop {
            match &self.current {
                Some(batch) if batch.num_rows() > 0 => return Ok(batch.num_rows()),
                _ => match self.rows.next() {
                    Some(batch) => self.current = Some(batch.map_err(Error::from)?),
                    None => return Ok(0),
                },
            }
        }
    }

    /// Takes some of the rows in memory.
    pub(super) fn take(&mut self, count: usize) -> Option<RecordBatch> {
        let batch = self.current.take()?;
        self.current = Some(batch.slice(count, batch.num_rows() - count));
        Some(batch.slice(0, count))
    }
}

pub(super) fn compare(a: Rows, b: Rows, options: &DiffOptions, collector: &mut Collector<'_>) -> Result<()> {
    let (mut a, mut b) = Side::both(a, b, options)?;
    let mut start = 0u64;
    loop {
        let (left, right) = (a.fill()?, b.fill()?);
        match (left, right) {
            (0, 0) => return Ok(()),
            (left, 0) => {
                each_row(a.take(left).as_ref(), start, |texts| collector.removed(texts))?;
                start += left as u64;
            }
            (0, right) => {
                each_row(b.take(right).as_ref(), start, |texts| collector.added(texts))?;
                start += right as u64;
            }
            (left, right) => {
                let count = left.min(right);
                if let (Some(a), Some(b)) = (a.take(count), b.take(count)) {
                    let place = |row: usize| Ok(Place::Row(start + row as u64));
                    compare_batches(&a, &b, &options.tolerance, &place, collector)?;
                }
                start += count as u64;
            }
        }
    }
}

/// Creates the text of a row that only one side has.
pub(super) type RowText<'r> = Box<dyn FnOnce() -> Result<(Place, String)> + 'r>;

fn each_row(
    batch: Option<&RecordBatch>,
    start: u64,
    mut take: impl FnMut(RowText<'_>) -> Result<()>,
) -> Result<()> {
    let Some(batch) = batch else { return Ok(()) };
    let columns = Columns::new(batch, &super::super::json_options())?;
    (0..batch.num_rows())
        .try_for_each(|row| take(Box::new(|| Ok((Place::Row(start + row as u64), object(&columns, row)?)))))
}

/// A row as JSON text.
pub(super) fn object(columns: &Columns<'_>, row: usize) -> Result<String> {
    let mut out = Vec::new();
    columns.write_object(row, &mut out)?;
    Ok(String::from_utf8_lossy(&out).into_owned())
}

/// Compares matching rows, cell by cell.
pub(super) fn compare_batches(
    a: &RecordBatch,
    b: &RecordBatch,
    tolerance: &Tolerance,
    place: &dyn Fn(usize) -> Result<Place>,
    collector: &mut Collector<'_>,
) -> Result<()> {
    let mut changed: Vec<bool> = Vec::new();
    let mut texts = None;
    for (column, (left, right)) in a.columns().iter().zip(b.columns()).enumerate() {
        for row in cells::differing(left, right, tolerance) {
            if texts.is_none() {
                let options = super::super::json_options();
                texts = Some((Columns::new(a, &options)?, Columns::new(b, &options)?));
                changed = vec![false; a.num_rows()];
            }
            changed[row] = true;
            collector.cell(column, || {
                let text = |columns: Option<&Columns<'_>>| {
                    let mut out = Vec::new();
                    columns.map_or(Ok(()), |columns| columns.write_cell(column, row, &mut out))?;
                    Ok::<_, Error>(String::from_utf8_lossy(&out).into_owned())
                };
                let sides = texts.as_ref();
                Ok((place(row)?, text(sides.map(|sides| &sides.0))?, text(sides.map(|sides| &sides.1))?))
            })?;
        }
    }
    collector.changed_rows(changed.iter().filter(|changed| **changed).count() as u64);
    Ok(())
}
