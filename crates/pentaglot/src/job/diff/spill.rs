//! Rows partitioned by a byte of their digests, each part an Arrow stream in a spool.

use arrow_array::{RecordBatch, UInt64Array};
use arrow_ipc::reader::StreamReader;
use arrow_ipc::writer::StreamWriter;
use arrow_schema::SchemaRef;
use arrow_select::take::take_record_batch;

use crate::error::{Error, Result};
use crate::hub::{Rows, rows};
use crate::limits::Budget;
use crate::source::Spool;

/// How many parts there are.
const PARTS: usize = 32;

/// How often a part may be partitioned again: once for each of the first bytes of a digest.
pub(super) const MOST_LEVELS: usize = 4;

/// The bytes that a part keeps in memory before it moves to a file.
const MEMORY_BYTES: u64 = 64 << 10;

pub(super) struct Parts {
    schema: SchemaRef,
    writers: Vec<StreamWriter<Spool>>,
    budget: Budget,
}

impl Parts {
    pub(super) fn new(schema: SchemaRef, budget: &Budget) -> Result<Self> {
        let writer = |_| {
            let spool = Spool::with_memory(MEMORY_BYTES, budget).limited();
            Ok::<_, Error>(StreamWriter::try_new(spool, &schema)?)
        };
        let writers = (0..PARTS).map(writer).collect::<Result<_>>()?;
        Ok(Parts { schema, writers, budget: budget.clone() })
    }

    /// Adds rows, each to the part of its byte.
    pub(super) fn push(&mut self, batch: &RecordBatch, bytes: impl Iterator<Item = u8>) -> Result<()> {
        let mut chosen = vec![Vec::new(); PARTS];
        for (row, byte) in bytes.enumerate() {
            chosen[usize::from(byte) % PARTS].push(row as u64);
        }
        for (writer, chosen) in self.writers.iter_mut().zip(chosen) {
            if !chosen.is_empty() {
                writer.write(&take_record_batch(batch, &UInt64Array::from(chosen))?)?;
            }
        }
        Ok(())
    }

    /// The parts, to be read one after the other.
    pub(super) fn finish(self) -> Result<Vec<Result<Rows>>> {
        let read = |mut writer: StreamWriter<Spool>| {
            writer.finish()?;
            let reader = StreamReader::try_new(writer.into_inner()?.into_reader()?, None)?;
            let budget = self.budget.clone();
            let batches = reader.map(move |batch| {
                let batch = batch?;
                budget.charge(&batch)?;
                Ok(batch)
            });
            Ok(rows::from_batches(self.schema.clone(), batches))
        };
        Ok(self.writers.into_iter().map(read).collect())
    }
}
