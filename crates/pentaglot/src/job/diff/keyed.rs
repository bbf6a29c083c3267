//! Rows matched by key: the second document is held in memory while the first is read. Past half of the memory limit,
//! both are partitioned on disk by the digests of their keys, and compared part by part.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::Schema;
use arrow_select::interleave::interleave;

use super::DiffOptions;
use super::position::{compare_batches, object};
use super::report::{Collector, Place};
use super::spill::{self, Parts};
use crate::error::{Error, Result};
use crate::hub::json::Columns;
use crate::hub::{Rows, rows};
use crate::identity::row_digests;
use crate::limits::Reservation;

/// The memory of a row of the second document, besides its values.
const ROW_BYTES: u64 = 96;

pub(super) fn compare(a: Rows, b: Rows, options: &DiffOptions, collector: &mut Collector<'_>) -> Result<()> {
    let key = key_columns(&a.schema(), options)?;
    Keyed { key, options }.compare(a, b, 0, collector)
}

/// The indices of the key columns in the columns that both have.
pub(super) fn key_columns(schema: &Schema, options: &DiffOptions) -> Result<Vec<usize>> {
    let key = options.key.iter().map(|name| {
        let index = schema.fields().iter().position(|field| field.name() == name);
        index.ok_or_else(|| {
            let known = match schema.fields().len() {
                0 => "they have none in common".to_owned(),
                _ => format!(
                    "there is {}",
                    crate::error::list(schema.fields().iter().map(|field| field.name()))
                ),
            };
            Error::usage(format!("the key {name:?} is not a column of both ({known})"))
        })
    });
    key.collect()
}

struct Keyed<'o> {
    /// The indices of the key columns.
    key: Vec<usize>,
    options: &'o DiffOptions,
}

impl Keyed<'_> {
    /// Compares documents, or at a `level` above 0 parts of them in which the first `level` bytes of all digests are
    /// equal.
    fn compare(&self, a: Rows, b: Rows, level: usize, collector: &mut Collector<'_>) -> Result<()> {
        let budget = &self.options.open.budget;
        let enough = budget.limits().max_alloc / 2;
        let schema = b.schema();
        let mut table = Table::new(budget.reservation());
        let mut rest = self.options.open.identity().overlapped(b)?;
        while let Some(batch) = rest.next() {
            table.push(batch.map_err(Error::from)?, &self.key)?;
            if budget.used() > enough && level < spill::MOST_LEVELS {
                let kept = std::mem::take(&mut table.kept);
                drop(table);
                let all = kept.into_iter().map(Ok).chain(rest.map(|batch| batch.map_err(Error::from)));
                let b = rows::from_batches(schema, all);
                return self.compare_parts(a, b, level, collector);
            }
        }
        table.compare(a, self, collector)
    }

    fn compare_parts(&self, a: Rows, b: Rows, level: usize, collector: &mut Collector<'_>) -> Result<()> {
        let cut = |rows: Rows| {
            let mut parts = Parts::new(rows.schema(), &self.options.open.budget)?;
            for batch in self.options.open.identity().overlapped(rows)? {
                let batch = batch.map_err(Error::from)?;
                let digests = row_digests(&columns(&batch, &self.key))?;
                parts.push(&batch, digests.iter().map(|digest| digest[level]))?;
            }
            parts.finish()
        };
        let b = cut(b)?;
        let a = cut(a)?;
        a.into_iter().zip(b).try_for_each(|(a, b)| self.compare(a?, b?, level + 1, collector))
    }
}

/// The position of a row of the second document, and whether the first has it.
struct Known {
    batch: usize,
    row: usize,
    matched: bool,
}

/// The rows of the second document, by the digests of their keys.
struct Table {
    kept: Vec<RecordBatch>,
    known: HashMap<[u8; 32], Known>,
    held: Reservation,
}

impl Table {
    fn new(held: Reservation) -> Self {
        Table { kept: Vec::new(), known: HashMap::new(), held }
    }

    fn push(&mut self, batch: RecordBatch, key: &[usize]) -> Result<()> {
        // The batch itself is charged by its reader.
        self.held.grow(ROW_BYTES * batch.num_rows() as u64)?;
        for (row, digest) in row_digests(&columns(&batch, key))?.into_iter().enumerate() {
            match self.known.entry(digest) {
                Entry::Vacant(entry) => {
                    entry.insert(Known { batch: self.kept.len(), row, matched: false });
                }
                Entry::Occupied(_) => return Err(twice(&batch, key, row, "second")),
            }
        }
        self.kept.push(batch);
        Ok(())
    }

    /// Compares the rows of the first document with these.
    fn compare(mut self, a: Rows, keyed: &Keyed<'_>, collector: &mut Collector<'_>) -> Result<()> {
        let (key, json) = (&keyed.key, super::super::json_options());
        for batch in keyed.options.open.identity().overlapped(a)? {
            let batch = batch.map_err(Error::from)?;
            let keys = batch.project(key)?;
            let keys = Columns::new(&keys, &json)?;
            let texts = Columns::new(&batch, &json)?;
            let (mut own, mut other) = (Vec::new(), Vec::new());
            for (row, digest) in row_digests(&columns(&batch, key))?.into_iter().enumerate() {
                match self.known.get_mut(&digest) {
                    Some(found) if found.matched => return Err(twice(&batch, key, row, "first")),
                    Some(found) => {
                        found.matched = true;
                        own.push(row as u64);
                        other.push((found.batch, found.row));
                    }
                    None => {
                        collector.removed(|| Ok((Place::Key(object(&keys, row)?), object(&texts, row)?)))?;
                    }
                }
            }
            if other.is_empty() {
                continue;
            }
            let own = arrow_array::UInt64Array::from(own);
            let left = arrow_select::take::take_record_batch(&batch, &own)?;
            let right = (0..batch.num_columns()).map(|column| {
                let arrays: Vec<&dyn arrow_array::Array> =
                    self.kept.iter().map(|batch| batch.column(column).as_ref()).collect();
                Ok::<ArrayRef, Error>(interleave(&arrays, &other)?)
            });
            let right = RecordBatch::try_new(batch.schema(), right.collect::<Result<_>>()?)?;
            let place = |row: usize| Ok(Place::Key(object(&keys, own.value(row) as usize)?));
            compare_batches(&left, &right, &keyed.options.tolerance, &place, collector)?;
        }
        let unmatched = self.known.values().filter(|found| !found.matched);
        let mut added: Vec<(usize, usize)> = unmatched.map(|found| (found.batch, found.row)).collect();
        added.sort_unstable();
        for (batch, row) in added {
            let batch = &self.kept[batch];
            collector.added(|| {
                let keys = batch.project(key)?;
                let place = Place::Key(object(&Columns::new(&keys, &json)?, row)?);
                Ok((place, object(&Columns::new(batch, &json)?, row)?))
            })?;
        }
        Ok(())
    }
}

fn columns(batch: &RecordBatch, key: &[usize]) -> Vec<ArrayRef> {
    key.iter().map(|index| batch.column(*index).clone()).collect()
}

/// The error for a key that two rows of one document have.
fn twice(batch: &RecordBatch, key: &[usize], row: usize, which: &str) -> Error {
    let text = batch
        .project(key)
        .map_err(Error::from)
        .and_then(|keys| object(&Columns::new(&keys, &super::super::json_options())?, row));
    match text {
        Ok(text) => Error::usage(format!("two rows of the {which} file have the key {text}")),
        Err(error) => error,
    }
}
