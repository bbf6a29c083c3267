//! Rows from the chunks of a version, as they come.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};
use mongodb::bson::raw::RawDocumentBuf;
use pentaglot::formats::ReadOptions;
use pentaglot::formats::bsondf::{BsonColumn, Type, read_document};
use pentaglot::hub::rows;
use pentaglot::{Budget, Control, Error, Result};

use crate::fetch::{Fetch, at};
use crate::store::{ChunkId, Store};

/// How many rows a chunk has, whose first must be `start`.
pub(crate) fn check_place(field: impl Fn(&str) -> Option<i64>, start: u64) -> Result<u64> {
    let number = |name| field(name).and_then(|number| u64::try_from(number).ok());
    let (Some(first), Some(count)) = (number("first"), number("rows")) else {
        return Err(Error::malformed("numbers first and rows", "other values"));
    };
    if first != start {
        return Err(Error::malformed(format_args!("to begin with row {start}"), first));
    }
    match start.checked_add(count) {
        Some(_) => Ok(count),
        None => Err(Error::malformed("fewer than 2^64 rows in all chunks", "more")),
    }
}

pub(crate) fn wrong_sum(expected: u64, found: u64) -> Error {
    Error::malformed(format_args!("{expected} rows in all chunks"), found).rule("mongodb-store")
}

/// The options of a frame in a chunk.
pub(crate) fn frame_options(budget: &Budget, control: &Control) -> ReadOptions {
    let mut options = ReadOptions::default();
    options.dialect = Some("bson".to_owned());
    options.budget = budget.clone();
    options.control = control.clone();
    options
}

/// Rows from chunks, as they come.
pub(crate) struct ChunkReader {
    pub(crate) store: Store,
    pub(crate) budget: Budget,
    pub(crate) control: Control,
    pub(crate) wanted: Vec<(String, Type)>,
    /// `None` where no column is wanted.
    pub(crate) fetch: Option<Fetch>,
    pub(crate) chunks: std::vec::IntoIter<ChunkId>,
    /// Where the next chunk begins.
    pub(crate) next_row: u64,
    /// How many rows all chunks have, where all of them are read.
    pub(crate) all_rows: Option<u64>,
    pub(crate) schema: arrow_schema::SchemaRef,
    pub(crate) range: Range<u64>,
    pub(crate) batch_rows: u64,
    /// The columns of a chunk, and the rows of it that are left.
    pub(crate) open: Option<(Vec<ArrayRef>, Range<u64>)>,
    pub(crate) failed: bool,
}

impl ChunkReader {
    /// The columns of the next chunk, and which of its rows are wanted.
    fn advance(&mut self) -> Result<bool> {
        self.control.check()?;
        let (Some(id), Some(fetch)) = (self.chunks.next(), &mut self.fetch) else {
            return self.check_rows().map(|()| false);
        };
        let document = fetch
            .next(&self.store)?
            .ok_or_else(|| at(id, Error::malformed("the chunk", "the end of the answers")))?;
        let start = self.next_row;
        let (count, columns) = self.decode(document).map_err(|error| at(id, error))?;
        let end = start + count;
        let inside = |row: u64| row.clamp(start, end) - start;
        self.open = Some((columns, inside(self.range.start)..inside(self.range.end)));
        self.next_row = end;
        Ok(true)
    }

    /// After the last chunk: all rows were there.
    fn check_rows(&self) -> Result<()> {
        match self.all_rows {
            Some(rows) if rows != self.next_row => Err(wrong_sum(rows, self.next_row)),
            _ => Ok(()),
        }
    }

    /// How many rows a chunk has, and its columns.
    fn decode(&self, document: RawDocumentBuf) -> Result<(u64, Vec<ArrayRef>)> {
        let field = |name: &str| {
            let value = document.get(name).ok()??;
            value.as_i64().or_else(|| value.as_i32().map(i64::from))
        };
        let count = check_place(field, self.next_row)?;
        let bytes = document.into_bytes();
        let _held = self.budget.reserve(bytes.len() as u64)?;
        let mut options = frame_options(&self.budget, &self.control);
        options.member = Some("df".to_owned());
        let columns: Vec<BsonColumn> = read_document(bytes, &options)?;
        let column = |(name, kind): &(String, Type)| {
            let found = columns.iter().find(|column| column.name == *name);
            let found = found.ok_or_else(|| Error::malformed("the column", "none").field(name.clone()))?;
            if found.kind != *kind {
                let error = Error::malformed(format_args!("{kind}, as the version says"), &found.kind);
                return Err(error.field(name.clone()));
            }
            if found.values.len() as u64 != count {
                let error =
                    Error::malformed(format_args!("{count} rows, as the chunk says"), found.values.len());
                return Err(error.field(name.clone()));
            }
            Ok(Arc::clone(&found.values))
        };
        Ok((count, self.wanted.iter().map(column).collect::<Result<_>>()?))
    }

    fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            if let Some((columns, range)) = &mut self.open {
                let is_first = range.is_empty() && self.range.is_empty() && !columns.is_empty();
                if !range.is_empty() || is_first {
                    let count = self.batch_rows.max(1).min(range.end - range.start);
                    let (start, length) = (range.start as usize, count as usize);
                    range.start += count;
                    let slices = columns.iter().map(|column| column.slice(start, length)).collect();
                    if is_first {
                        self.open = None;
                    }
                    return rows::batch(Arc::clone(&self.schema), slices, length).map(Some);
                }
                self.open = None;
            }
            if !self.advance()? {
                return Ok(None);
            }
        }
    }
}

impl Iterator for ChunkReader {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let batch = self.next_batch().transpose();
        self.failed = matches!(batch, Some(Err(_)));
        batch
    }
}
