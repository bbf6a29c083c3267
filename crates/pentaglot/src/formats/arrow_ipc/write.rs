//! Writing: the body buffers of a batch go to the sink as they stand in memory.

use arrow_array::RecordBatch;
use arrow_ipc::MetadataVersion;
use arrow_ipc::writer::{DictionaryHandling, FileWriter, IpcWriteOptions, StreamWriter};
use arrow_schema::{DataType, Field, Schema, SchemaRef};

use super::dictionary::{Unifier, has_dictionary};
use crate::error::{Context, Result};
use crate::formats::{Writer, Written};
use crate::hub::type_text::print_field;
use crate::hub::{Effect, LossKind, Plan};
use crate::limits::Budget;
use crate::sink::Sink;

/// Buffers start at multiples of this. With more, `arrow-ipc` would also put more than the two bytes of padding that the
/// format asks for behind the magic.
const ALIGNMENT: usize = 8;

/// What writing this schema would do.
pub(super) fn plan(schema: &Schema, file: bool) -> Plan {
    let mut plan = Plan::default();
    for field in schema.fields() {
        let text = print_field(field);
        plan.step(field.name(), text.clone(), text, effect(field, file));
    }
    plan
}

/// The worst that happens to a field or to one inside it.
fn effect(field: &Field, file: bool) -> Effect {
    match field.data_type() {
        DataType::Dictionary(_, values) if has_dictionary(values) => {
            Effect::impossible("Arrow IPC has no dictionary of dictionaries that programs agree on")
        }
        DataType::Dictionary(key, _) if file => {
            let narrow = key.primitive_width().unwrap_or(8) < 4;
            match (field.dict_is_ordered().unwrap_or(false), narrow) {
                (true, _) => Effect::checked(LossKind::Order)
                    .because("an Arrow file has one dictionary per field: the batches' must agree in order"),
                (false, true) => Effect::checked(LossKind::Range)
                    .because("an Arrow file has one dictionary per field: its size must fit the index type"),
                (false, false) => Effect::exact(),
            }
        }
        DataType::Struct(fields) => {
            fields.iter().map(|field| effect(field, file)).fold(Effect::exact(), Effect::and)
        }
        DataType::Union(fields, _) => {
            fields.iter().map(|(_, field)| effect(field, file)).fold(Effect::exact(), Effect::and)
        }
        DataType::RunEndEncoded(_, field)
        | DataType::List(field)
        | DataType::LargeList(field)
        | DataType::ListView(field)
        | DataType::LargeListView(field)
        | DataType::FixedSizeList(field, _)
        | DataType::Map(field, _) => effect(field, file),
        _ => Effect::exact(),
    }
}

enum Inner {
    File(Box<FileWriter<Sink>>, Option<Unifier>),
    Stream(Box<StreamWriter<Sink>>),
}

pub(super) struct IpcWriter {
    id: &'static str,
    schema: SchemaRef,
    inner: Inner,
    rows: u64,
    /// Whether a batch has been written.
    is_started: bool,
}

impl IpcWriter {
    pub(super) fn create(
        id: &'static str,
        file: bool,
        sink: Sink,
        schema: SchemaRef,
        budget: Budget,
    ) -> Result<Self> {
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
