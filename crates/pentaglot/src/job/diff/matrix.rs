//! Compares matrices by their entries: explicit and implicit zeros are equal.

use std::cmp::Ordering;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use arrow_array::{Array, ArrayRef, Int8Array, RecordBatch};
use arrow_schema::{DataType, Field, Schema};

use super::DiffOptions;
use super::cells::{Tolerance, same};
use super::position::Side;
use super::report::{Collector, Place};
use crate::convert::{reshape, union};
use crate::error::{Error, Result};
use crate::hub::json::Columns;
use crate::hub::{Form, LossKinds, LossRecord, Rows, shape};

pub(super) fn compare(a: Rows, b: Rows, options: &DiffOptions, collector: &mut Collector<'_>) -> Result<()> {
    let types = (shape::matrix_value_type(&a.schema()), shape::matrix_value_type(&b.schema()));
    let both = match types {
        (Some(a), Some(b)) if a == b => Some(a),
        (Some(a), Some(b)) => union::data_type(&a, &b),
        _ => None,
    };
    // Values without a common type are not compared; the schemas differ already.
    let Some(value_type) = both else { return Ok(()) };
    let zero: ArrayRef = Arc::new(Int8Array::from(vec![0]));
    let zero = arrow_cast::cast(&zero, &value_type)
        .map_err(|_| Error::unsupported(format!("comparing matrices of {value_type}")))?;
    let (mut a, mut b) = Side::both(sparse(a, options)?, sparse(b, options)?, options)?;
    let mut start = 0u64;
    loop {
        let (left, right) = (a.fill()?, b.fill()?);
        let count = match (left, right) {
            (0, 0) => return Ok(()),
            (0, right) => right,
            (left, 0) => left,
            (left, right) => left.min(right),
        };
        let row = |row: usize| Place::Row(start + row as u64);
        match (left, right) {
            (_, 0) => {
                drop(a.take(count));
                (0..count).try_for_each(|at| collector.removed(|| Ok((row(at), String::new()))))?;
            }
            (0, _) => {
                drop(b.take(count));
                (0..count).try_for_each(|at| collector.added(|| Ok((row(at), String::new()))))?;
            }
            _ => {
                if let (Some(a), Some(b)) = (a.take(count), b.take(count))
                    && a.column(0).to_data() != b.column(0).to_data()
                {
                    let (a, b) = (Entries::new(&a, &value_type)?, Entries::new(&b, &value_type)?);
                    compare_rows(&a, &b, &zero, start, &options.tolerance, collector)?;
                }
            }
        }
        start += count as u64;
    }
}

fn sparse(rows: Rows, options: &DiffOptions) -> Result<Rows> {
    let plan = reshape::plan(&rows.schema(), Form::Sparse)?;
    plan.plan.check(LossKinds::NONE)?;
    reshape::reshape(rows, &plan, &options.open.budget, LossKinds::NONE, &LossRecord::default())
}

/// Sparse rows: entry `e` is `values[e]` in column `cols[e]`.
struct Entries {
    offsets: Vec<usize>,
    cols: ArrayRef,
    values: ArrayRef,
    /// The values as a table, for printing them.
    table: RecordBatch,
}

impl Entries {
    fn new(batch: &RecordBatch, value_type: &DataType) -> Result<Self> {
        let list = batch.column(0).as_list::<i64>();
        let entries = list.values().as_struct();
        let cols = arrow_cast::cast(entries.column(0), &DataType::UInt64)?;
        let values = arrow_cast::cast(entries.column(1), value_type)?;
        let schema = Schema::new(vec![Field::new("value", value_type.clone(), true)]);
        let table = RecordBatch::try_new(Arc::new(schema), vec![Arc::clone(&values)])?;
        let offsets = list.value_offsets().iter().map(|offset| *offset as usize).collect();
        Ok(Entries { offsets, cols, values, table })
    }

    /// The entries of a row by ascending column.
    fn row(&self, row: usize, out: &mut Vec<(u64, usize)>) {
        out.clear();
        let cols = self.cols.as_primitive::<UInt64Type>();
        out.extend((self.offsets[row]..self.offsets[row + 1]).map(|entry| (cols.value(entry), entry)));
        if !out.is_sorted() {
            out.sort_unstable();
        }
    }

    fn text(&self, entry: Option<usize>) -> Result<String> {
        let Some(entry) = entry else { return Ok("0".to_owned()) };
        let mut out = Vec::new();
        Columns::new(&self.table, &super::super::json_options())?.write_cell(0, entry, &mut out)?;
        Ok(String::from_utf8_lossy(&out).into_owned())
    }
}

fn compare_rows(
    a: &Entries,
    b: &Entries,
    zero: &ArrayRef,
    start: u64,
    tolerance: &Tolerance,
    collector: &mut Collector<'_>,
) -> Result<()> {
    let (mut left, mut right) = (Vec::new(), Vec::new());
    let mut changed_rows = 0;
    for row in 0..a.offsets.len().saturating_sub(1) {
        a.row(row, &mut left);
        b.row(row, &mut right);
        let (mut i, mut j) = (0, 0);
        let mut changed = false;
        while i < left.len() || j < right.len() {
            let order = match (left.get(i), right.get(j)) {
                (Some(a), Some(b)) => a.0.cmp(&b.0),
                (Some(_), None) => Ordering::Less,
                _ => Ordering::Greater,
            };
            let first = (order != Ordering::Greater).then(|| left[i]);
            let second = (order != Ordering::Less).then(|| right[j]);
            i += usize::from(first.is_some());
            j += usize::from(second.is_some());
            let (x, at_x): (&dyn Array, usize) = first.map_or((zero, 0), |entry| (&a.values, entry.1));
            let (y, at_y): (&dyn Array, usize) = second.map_or((zero, 0), |entry| (&b.values, entry.1));
            if same(x, at_x, y, at_y, tolerance) {
                continue;
            }
            changed = true;
            let col = first.or(second).map_or(0, |entry| entry.0);
            collector.cell(0, || {
                let place = Place::Entry { row: start + row as u64, col };
                Ok((place, a.text(first.map(|entry| entry.1))?, b.text(second.map(|entry| entry.1))?))
            })?;
        }
        changed_rows += u64::from(changed);
    }
    collector.changed_rows(changed_rows);
    Ok(())
}
