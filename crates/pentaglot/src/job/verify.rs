//! Verification of a conversion: the output is read back before it gets its name, and must contain the same
//! data.

mod bits;
mod forms;
mod kept;
mod read_back;
#[cfg(test)]
mod tests;

use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;

use self::read_back::ReadBack;
use super::open::{OpenOptions, Target};
use crate::error::{Error, ErrorKind, Result};
use crate::hub::{Form, Plan, Rows, rows};
use crate::identity::{Cid, Identity, RowHasher};
use crate::sink::Sink;

/// The identities of a verified conversion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Verified {
    /// The identity of the input; `None` for a matrix that its file holds as a table.
    pub source: Option<Cid>,
    /// The identity of the rows passed to the writer, without what the plan says is not kept.
    pub written: Cid,
    /// The identity of the rows read back; always the same as `written`.
    pub read: Cid,
}

/// What is written, and how.
pub(super) struct Written<'a> {
    /// The format, and the dialect, even if only the name of the output decides it.
    pub(super) target: &'a Target,
    /// The schema of the rows passed to the writer.
    pub(super) schema: &'a SchemaRef,
    /// The number of rows, if known in advance.
    pub(super) row_count: Option<u64>,
    /// The effect on each column.
    pub(super) plan: &'a Plan,
}

/// A conversion that is being verified.
pub(super) struct Verification {
    source: Option<Arc<Mutex<RowHasher>>>,
    written: RowHasher,
    found: Arc<Mutex<Found>>,
}

/// What is known so far.
#[derive(Default)]
struct Found {
    /// The identity of the rows written, once complete.
    rows: Option<Identity>,
    /// The identities of the rows written and read back, once compared.
    compared: Option<(Cid, Cid)>,
}

impl Verification {
    /// Starts hashing rows, and sets the check of the sink.
    pub(super) fn start(
        options: &OpenOptions,
        source: &SchemaRef,
        written: &Written<'_>,
        sink: Sink,
    ) -> Result<(Self, Sink)> {
        let own = options.identity();
        let source = match Form::of(source) {
            Form::Columns | Form::Coo => None,
            _ => Some(Arc::new(Mutex::new(RowHasher::new(source, &own)?))),
        };
        let verification =
            Verification { source, written: RowHasher::new(written.schema, &own)?, found: Arc::default() };
        let name = sink.path().map_or_else(String::new, |path| path.display().to_string());
        let read_back = ReadBack::new(options, written, name);
        let found = Arc::clone(&verification.found);
        let sink = sink.before_commit(Box::new(move |bytes| {
            let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
            let rows = found.rows.take();
            let rows =
                rows.ok_or_else(|| Error::unsupported("the output was complete before its rows were"))?;
            let (written, read) = read_back.compare(&bytes, rows).map_err(|error| {
                Error::unsupported(format!("what was written cannot be read back: {error}"))
            })?;
            found.compared = Some((written, read));
            match written == read {
                true => Ok(()),
                false => Err(Error::new(
                    ErrorKind::Lossy,
                    format!("what was written reads back as other data: wrote {written}, read {read}"),
                )),
            }
        }));
        Ok((verification, sink))
    }

    /// The rows of the input, hashed while they are read.
    pub(super) fn source(&self, stream: Rows) -> Rows {
        let Some(hasher) = self.source.clone() else { return stream };
        let schema = stream.schema();
        let batches = stream.map(move |batch| {
            let batch = batch?;
            hasher.lock().unwrap_or_else(PoisonError::into_inner).push(&batch)?;
            Ok(batch)
        });
        rows::from_batches(schema, batches)
    }

    /// Hashes rows that were passed to the writer, as its rules changed them.
    pub(super) fn push(&mut self, batch: &RecordBatch) -> Result<()> {
        self.written.push(batch)
    }

    /// Called when all rows are written, before the output is finished.
    pub(super) fn complete(self) -> Result<Complete> {
        let source = match self.source {
            Some(hasher) => match Arc::try_unwrap(hasher) {
                Ok(hasher) => {
                    let hasher = hasher.into_inner().unwrap_or_else(PoisonError::into_inner);
                    Some(hasher.finish()?.cid()?)
                }
                Err(_) => None,
            },
            None => None,
        };
        let written = self.written.finish()?;
        self.found.lock().unwrap_or_else(PoisonError::into_inner).rows = Some(written);
        Ok(Complete { source, found: self.found })
    }
}

/// A conversion whose rows are all written.
pub(super) struct Complete {
    source: Option<Cid>,
    found: Arc<Mutex<Found>>,
}

impl Complete {
    /// The identities, after the output was finished.
    pub(super) fn verified(self) -> Result<Verified> {
        let compared = self.found.lock().unwrap_or_else(PoisonError::into_inner).compared;
        let (written, read) = compared.ok_or_else(|| Error::unsupported("the output was not read back"))?;
        Ok(Verified { source: self.source, written, read })
    }
}
