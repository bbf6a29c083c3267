//! Rows matched by key: the second document waits in memory, within the limit; the first is read past it.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_select::interleave::interleave;

use super::DiffOptions;
use super::position::{compare_batches, object};
use super::report::{Collector, Place};
use crate::error::{Error, Result};
use crate::hub::Rows;
use crate::hub::json::Columns;
use crate::identity::{ReadAhead, row_digests};

/// What a row of the second document takes beside its values.
const ROW_BYTES: u64 = 96;

/// Where a row of the second document is, and whether the first has it.
struct Known {
    batch: usize,
    row: usize,
    matched: bool,
}

pub(super) fn compare(a: Rows, b: Rows, options: &DiffOptions, collector: &mut Collector<'_>) -> Result<()> {
    let schema = a.schema();
    let key = options.key.iter().map(|name| {
        let index = schema.fields().iter().position(|field| field.name() == name);
        index.ok_or_else(|| {
            let known = crate::error::list(schema.fields().iter().map(|field| field.name()));
            Error::usage(format!("the key {name:?} is not a column of both (there is {known})"))
        })
    });
    let key: Vec<usize> = key.collect::<Result<_>>()?;
    let mut held = options.open.budget.reservation();
    let mut kept: Vec<RecordBatch> = Vec::new();
    let mut known: HashMap<[u8; 32], Known> = HashMap::new();
    for batch in ReadAhead::new(b, &options.open.budget)? {
        let batch = batch.map_err(Error::from)?;
        // The batch itself is paid for by its reader.
        held.grow(ROW_BYTES * batch.num_rows() as u64)?;
        for (row, digest) in row_digests(&columns(&batch, &key))?.into_iter().enumerate() {
            match known.entry(digest) {
                Entry::Vacant(entry) => {
                    entry.insert(Known { batch: kept.len(), row, matched: false });
                }
                Entry::Occupied(_) => return Err(twice(&batch, &key, row, "second")),
            }
        }
        kept.push(batch);
    }
    for batch in ReadAhead::new(a, &options.open.budget)? {
        let batch = batch.map_err(Error::from)?;
        let keys = batch.project(&key)?;
        let keys = Columns::new(&keys, &super::super::json_options())?;
        let texts = Columns::new(&batch, &super::super::json_options())?;
        let (mut own, mut other) = (Vec::new(), Vec::new());
        for (row, digest) in row_digests(&columns(&batch, &key))?.into_iter().enumerate() {
            match known.get_mut(&digest) {
                Some(found) if found.matched => return Err(twice(&batch, &key, row, "first")),
                Some(found) => {
                    found.matched = true;
                    own.push(row as u64);
                    other.push((found.batch, found.row));
                }
                None => collector.removed(|| Ok((Place::Key(object(&keys, row)?), object(&texts, row)?)))?,
            }
        }
        let own = arrow_array::UInt64Array::from(own);
        let left = arrow_select::take::take_record_batch(&batch, &own)?;
        let right = (0..batch.num_columns()).map(|column| {
            let arrays: Vec<&dyn arrow_array::Array> =
                kept.iter().map(|batch| batch.column(column).as_ref()).collect();
            Ok::<ArrayRef, Error>(interleave(&arrays, &other)?)
        });
        if other.is_empty() {
            continue;
        }
        let right = RecordBatch::try_new(batch.schema(), right.collect::<Result<_>>()?)?;
        let place = |row: usize| Ok(Place::Key(object(&keys, own.value(row) as usize)?));
        compare_batches(&left, &right, &options.tolerance, &place, collector)?;
    }
    let mut added: Vec<(usize, usize)> =
        known.values().filter(|found| !found.matched).map(|found| (found.batch, found.row)).collect();
    added.sort_unstable();
    for (batch, row) in added {
        let batch = &kept[batch];
        collector.added(|| {
            let keys = batch.project(&key)?;
            let options = super::super::json_options();
            let place = Place::Key(object(&Columns::new(&keys, &options)?, row)?);
            Ok((place, object(&Columns::new(batch, &options)?, row)?))
        })?;
    }
    Ok(())
}

fn columns(batch: &RecordBatch, key: &[usize]) -> Vec<ArrayRef> {
    key.iter().map(|index| batch.column(*index).clone()).collect()
}

/// A key that two rows of one document have.
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
