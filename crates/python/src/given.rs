//! Arrow data that Python gives, as a document: what `write` converts from.

use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use pentaglot::formats::{Document, Findings, Node, Outline, Summary};
use pentaglot::hub::rows::{from_batches, slice};
use pentaglot::hub::{Rows, Selection};
use pentaglot::job::{OpenOptions, Opened};
use pentaglot::{Error, Registry, Result, Source};

/// Rows in memory, or a stream of them that is read once.
pub(crate) enum Given {
    /// All of them.
    Batches(SchemaRef, Vec<RecordBatch>),
    /// A stream.
    Stream(SchemaRef, Mutex<Option<Rows>>),
}

impl Given {
    /// A stream.
    pub(crate) fn stream(rows: Rows) -> Self {
        Given::Stream(rows.schema(), Mutex::new(Some(rows)))
    }

    /// Opens it: the format that it is said to be in is Arrow's own.
    pub(crate) fn open(self, registry: &Registry, options: &OpenOptions) -> Result<Opened> {
        let format = registry.get("arrow-stream")?;
        let (schema, rows) = match &self {
            Given::Batches(schema, batches) => {
                (schema, Some(batches.iter().map(|batch| batch.num_rows() as u64).sum()))
            }
            Given::Stream(schema, _) => (schema, None),
        };
        let mut summary = Summary::new(format.info().id, Arc::clone(schema));
        summary.rows = rows;
        let source = Source::from_bytes("data", Vec::<u8>::new());
        Ok(Opened::new(format, Arc::new(GivenDocument { given: self, summary }), source, options))
    }

    /// Bytes that are in memory already, whatever is done with them.
    pub(crate) fn bytes(&self) -> u64 {
        match self {
            Given::Batches(_, batches) => {
                batches.iter().map(|batch| batch.get_array_memory_size() as u64).sum()
            }
            Given::Stream(..) => 0,
        }
    }

    fn take(&self) -> Result<Rows> {
        match self {
            Given::Batches(schema, batches) => {
                Ok(from_batches(Arc::clone(schema), batches.clone().into_iter().map(Ok)))
            }
            Given::Stream(_, rows) => rows
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .take()
                .ok_or_else(|| Error::usage("the stream has been read already")),
        }
    }
}

struct GivenDocument {
    given: Given,
    summary: Summary,
}

impl Document for GivenDocument {
    fn summary(&self) -> &Summary {
        &self.summary
    }

    fn outline(&self) -> Outline {
        Node::new("data", 0, 0)
    }

    fn validate(&self, _: &mut Findings) -> Result<()> {
        Ok(())
    }

    fn rows(&self, selection: &Selection) -> Result<Rows> {
        let rows = self.given.take()?;
        let rows = if selection.is_sliced() { slice(rows, selection.range(u64::MAX)) } else { rows };
        selection.project(rows)
    }
}
