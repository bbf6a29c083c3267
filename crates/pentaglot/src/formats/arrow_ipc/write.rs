//! Writing: the body buffers of a batch go to the sink as they are in memory.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_ipc::MetadataVersion;
use arrow_ipc::writer::{DictionaryHandling, FileWriter, IpcWriteOptions, StreamWriter};
use arrow_schema::{Schema, SchemaRef};

use super::dictionary::{Unifier, has_dictionary};
use super::schema::effect;
use crate::error::{Context, Result};
use crate::formats::{WriteOptions, WritePlan, Writer, Written, planned};
use crate::hub::Plan;
use crate::hub::type_text::print_field;
use crate::limits::Budget;
use crate::sink::Sink;

/// Buffers start at multiples of this. With more, `arrow-ipc` would also put more than the two bytes of padding that the
/// format asks for behind the magic.
const ALIGNMENT: usize = 8;

/// What writing this schema will do, and the writer that does it.
pub(super) fn plan(
    id: &'static str,
    file: bool,
    schema: &SchemaRef,
    options: &WriteOptions,
) -> Box<dyn WritePlan> {
    let (inner, budget) = (Arc::clone(schema), options.budget.clone());
    planned(steps(schema, file), move |sink| {
        Ok(Box::new(IpcWriter::create(id, file, sink, inner, budget).in_format(id)?))
    })
}

/// What each field becomes.
fn steps(schema: &Schema, file: bool) -> Plan {
    let mut plan = Plan::default();
    for field in schema.fields() {
        let text = print_field(field);
        plan.step(field.name(), text.clone(), text, effect(field, file));
    }
    plan
}

enum Inner {
    File(Box<FileWriter<Sink>>, Option<Unifier>),
    Stream(Box<StreamWriter<Sink>>),
}

struct IpcWriter {
    id: &'static str,
    schema: SchemaRef,
    inner: Inner,
    rows: u64,
    /// Whether a batch has been written.
    is_started: bool,
}

impl IpcWriter {
    fn create(id: &'static str, file: bool, sink: Sink, schema: SchemaRef, budget: Budget) -> Result<Self> {
        let write = IpcWriteOptions::try_new(ALIGNMENT, false, MetadataVersion::V5)?;
        let write = write.with_dictionary_handling(DictionaryHandling::Delta);
        let inner = if file {
            let unify = schema.fields().iter().any(|field| has_dictionary(field.data_type()));
            let unifier = unify.then(|| Unifier::new(budget));
            Inner::File(Box::new(FileWriter::try_new_with_options(sink, &schema, write)?), unifier)
        } else {
            Inner::Stream(Box::new(StreamWriter::try_new_with_options(sink, &schema, write)?))
        };
        Ok(IpcWriter { id, schema, inner, rows: 0, is_started: false })
    }

    fn write_rows(&mut self, rows: &RecordBatch) -> Result<()> {
        match &mut self.inner {
            Inner::File(writer, None) => writer.write(rows)?,
            Inner::File(writer, Some(unifier)) => writer.write(&unifier.unify(&self.schema, rows)?)?,
            Inner::Stream(writer) => writer.write(rows)?,
        }
        Ok(())
    }
}

impl Writer for IpcWriter {
    fn write(&mut self, rows: &RecordBatch) -> Result<()> {
        // A batch without rows says nothing, but for the values of its dictionaries.
        let has_values = self.schema.fields().iter().any(|field| has_dictionary(field.data_type()));
        if rows.num_rows() == 0 && (self.is_started || !has_values) {
            return Ok(());
        }
        self.is_started = true;
        self.rows += rows.num_rows() as u64;
        self.write_rows(rows).in_format(self.id)
    }

    fn finish(self: Box<Self>) -> Result<Written> {
        let sink = match self.inner {
            Inner::File(writer, _) => writer.into_inner(),
            Inner::Stream(writer) => writer.into_inner(),
        };
        let bytes = sink.in_format(self.id)?.finish()?;
        Ok(Written::new(self.rows, bytes))
    }
}
