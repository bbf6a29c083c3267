//! A stream that is read once, from a pipe.

use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;

use super::body::{self, Dictionaries};
use super::layout::{MessageKind, Next, Tape, wrong_kind};
use super::schema::schema_message;
use super::slice::split;
use crate::error::{Context, Result};
use crate::hub::{Rows, Selection, rows};
use crate::limits::Budget;
use crate::source::{Source, SourceReader};

/// A stream that is read once, from a pipe.
pub(super) struct Pipe {
    pub id: &'static str,
    pub schema: SchemaRef,
    pub budget: Budget,
    source: Source,
    /// The messages after the schema, until someone reads them.
    tape: Mutex<Option<Tape<SourceReader>>>,
}

impl Pipe {
    pub(super) fn open(id: &'static str, source: Source, budget: Budget) -> Result<Pipe> {
        let mut tape = Tape::new(source.reader()?, 0, budget.clone());
        let (schema, first) = schema_message(tape.next()?, &budget)?;
        tape.body(&first)?;
        Ok(Pipe { id, schema, budget, source, tape: Mutex::new(Some(tape)) })
    }

    /// The messages after the schema. The second time the source must be one that starts again.
    pub(super) fn tape(&self) -> Result<Tape<SourceReader>> {
        let first = self.tape.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(tape) = first {
            return Ok(tape);
        }
        let mut tape = Tape::new(self.source.reader()?, 0, self.budget.clone());
        let (_, first) = schema_message(tape.next()?, &self.budget)?;
        tape.body(&first)?;
        Ok(tape)
    }

    pub(super) fn rows(&self, request: &Selection) -> Result<Rows> {
        let (id, schema, budget) = (self.id, Arc::clone(&self.schema), self.budget.clone());
        let mut tape = self.tape()?;
        let mut dictionaries = Dictionaries::new();
        let inner = Arc::clone(&schema);
        let batches = std::iter::from_fn(move || {
            next_of_pipe(&mut tape, &inner, &mut dictionaries, &budget).in_format(id).transpose()
        });
        let mut rows = rows::from_batches(schema, batches);
        if request.is_sliced() {
            rows = rows::slice(rows, request.range(u64::MAX));
        }
        Ok(split(request.project(rows)?, request.batch_rows()))
    }
}

/// The next batch of a pipe.
pub(super) fn next_of_pipe(
    tape: &mut Tape<SourceReader>,
    schema: &SchemaRef,
    dictionaries: &mut Dictionaries,
    budget: &Budget,
) -> Result<Option<RecordBatch>> {
    loop {
        let message = match tape.next()? {
            Next::End(_) => return Ok(None),
            Next::Message(message) => message,
        };
        let bytes = tape.body(&message)?;
        match message.kind {
            MessageKind::Dictionary { .. } => {
                body::decode_dictionary(&message, &bytes, schema, dictionaries, budget)
                    .field("dictionary")?;
            }
            MessageKind::Batch { .. } => {
                return body::decode(&message, &bytes, schema, dictionaries, budget).field("batch").map(Some);
            }
            MessageKind::Schema | MessageKind::Other(_) => {
                return Err(wrong_kind("a record or dictionary batch", &message));
            }
        }
    }
}
