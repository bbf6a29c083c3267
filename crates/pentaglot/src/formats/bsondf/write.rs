//! What a schema becomes, and a document being written: batches are held until the last has come, then the columns
//! are compressed side by side.

use std::collections::HashSet;
use std::io::Write as _;
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{Field, Schema, SchemaRef};

use super::encode::Encoder;
use super::schema::{Type, arrow_fields, check_name, is_same_field};
use super::{ID, MONGODB_BYTES};
use crate::control::Control;
use crate::error::{Context, Error, Result};
use crate::formats::{WriteOptions, WritePlan, Writer, Written, planned};
use crate::hub::type_text::print_field;
use crate::hub::{Effect, LossKind, Plan, extension, native, shape};
use crate::limits::Reservation;
use crate::sink::Sink;
use crate::wire::bson;

/// What writing this schema will do, and the writer that does it.
pub(super) fn plan(schema: &SchemaRef, options: &WriteOptions) -> Result<Box<dyn WritePlan>> {
    let encoder = Encoder::new(&options.options, options.budget.clone()).in_format(ID)?;
    let (columns, control) = (column_types(schema).in_format(ID), options.control.clone());
    Ok(planned(steps(schema), move |sink| Ok(Box::new(BsondfWriter::new(sink, columns?, encoder, control)))))
}

/// What each field becomes.
fn steps(schema: &Schema) -> Plan {
    let mut plan = Plan::default();
    let mut names = HashSet::new();
    if schema.fields().is_empty() {
        let note = "without columns there is no place for a number of rows";
        let effect = Effect::checked(LossKind::Dropped).because(note);
        plan.step("", "a table without columns", "an empty document", effect);
    }
    shape::plan_plain_table(schema, &mut plan);
    if let found @ (shape::Shape::Array | shape::Shape::Value) = shape::Shape::of(schema) {
        let effect = Effect::widened().because("comes back as a table");
        plan.step("", found.name(), "table", effect);
    }
    for field in schema.fields() {
        let (name, from) = (field.name(), print_field(field));
        let kind = check_name(name).and_then(|()| Type::of(field));
        match kind {
            Err(reason) => plan.step(name, from, "nothing", Effect::impossible(reason)),
            Ok(kind) if !names.insert(name) => {
                plan.step(name, from, kind.to_string(), Effect::impossible("two columns have this name"));
            }
            Ok(kind) => {
                let to = kind.to_string();
                let is_same = is_same_field(&kind.to_field(name), field);
                let own = if is_same { Effect::exact() } else { Effect::widened() };
                let effect = own.and(dictionary_condition(&kind)).and(extension::all_dropped(field));
                plan.step(name, from, to, effect);
            }
        }
    }
    plan
}

/// What must hold for batches with dictionaries of their own to become one column.
fn dictionary_condition(kind: &Type) -> Effect {
    match kind {
        Type::Factor { ordered: true, .. } => {
            Effect::checked(LossKind::Order).because("all batches must have one order of values")
        }
        Type::Factor { index, dictionary, .. } => match index.width() {
            Some(1 | 2) => {
                Effect::checked(LossKind::Range).because("the indices must count the values of all batches")
            }
            _ => dictionary_condition(dictionary),
        },
        Type::List(item) => dictionary_condition(item),
        Type::Struct(fields) => {
            let effects = fields.iter().map(|(_, kind)| dictionary_condition(kind));
            effects.fold(Effect::exact(), Effect::and)
        }
        _ => Effect::exact(),
    }
}

/// The type of each column: the one that the rows were read with if it fits, else the one that Arrow's asks for.
fn column_types(schema: &Schema) -> Result<Vec<(String, Type)>> {
    if let Some(Type::Struct(columns)) = native::of_sliced(schema, ID).as_ref().and_then(Type::from_json) {
        let fields = arrow_fields(&columns);
        let fits = |(kept, field): (&Arc<Field>, &Arc<Field>)| {
            kept.name() == field.name() && is_same_field(kept, field)
        };
        if fields.len() == schema.fields().len() && fields.iter().zip(schema.fields()).all(fits) {
            return Ok(columns);
        }
    }
    match Type::from_schema(schema)? {
        Type::Struct(columns) => Ok(columns),
        other => Err(Error::usage(format!("expected columns, found {other}"))),
    }
}

/// A document being written.
struct BsondfWriter {
    sink: Sink,
    columns: Vec<(String, Type)>,
    /// The chunks of each column.
    chunks: Vec<Vec<ArrayRef>>,
    rows: u64,
    /// The columns of a batch without rows: should no other come, its dictionaries are the document's.
    empty: Option<Vec<ArrayRef>>,
    encoder: Encoder,
    control: Control,
}

impl BsondfWriter {
    fn new(sink: Sink, columns: Vec<(String, Type)>, encoder: Encoder, control: Control) -> Self {
        let chunks = columns.iter().map(|_| Vec::new()).collect();
        BsondfWriter { sink, columns, chunks, rows: 0, empty: None, encoder, control }
    }
}

impl Writer for BsondfWriter {
    fn write(&mut self, rows: &RecordBatch) -> Result<()> {
        if rows.num_rows() == 0 {
            if self.rows == 0 && self.empty.is_none() {
                self.encoder.budget.charge(rows).in_format(ID)?;
                self.empty = Some(rows.columns().to_vec());
            }
            return Ok(());
        }
        if self.columns.is_empty() {
            return Err(Error::lossy("row 0: a document without columns has no rows").in_format(ID));
        }
        self.encoder.budget.charge(rows).in_format(ID)?;
        for (chunks, column) in self.chunks.iter_mut().zip(rows.columns()) {
            chunks.push(Arc::clone(column));
        }
        self.rows += rows.num_rows() as u64;
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> Result<Written> {
        if let (0, Some(empty)) = (self.rows, self.empty.take()) {
            self.chunks.iter_mut().zip(empty).for_each(|(chunks, column)| chunks.push(column));
        }
        let columns: Vec<_> = self.columns.iter().zip(std::mem::take(&mut self.chunks)).collect();
        let (encoded, _held) = encode(&self.encoder, columns, &self.control).in_format(ID)?;
        let bytes: usize = encoded.iter().map(Vec::len).sum();
        self.sink.expect(bytes);
        for piece in encoded {
            self.sink.write_all(&piece)?;
        }
        let bytes = bytes as u64;
        self.sink.finish()?;
        let mut written = Written::new(self.rows, bytes);
        if bytes > MONGODB_BYTES {
            written
                .notes
                .push(format!("{bytes} bytes are more than MongoDB takes in one document ({MONGODB_BYTES})"));
        }
        Ok(written)
    }
}

/// A name and type, and the chunks of that column.
type Chunked<'c> = (&'c (String, Type), Vec<ArrayRef>);

/// The document of some columns, in pieces, and what pays for them. The chunks of a column are dropped as soon as it is encoded.
pub(super) fn encode(
    encoder: &Encoder,
    columns: Vec<Chunked<'_>>,
    control: &Control,
) -> Result<(Vec<Vec<u8>>, Reservation)> {
    let column = |((name, kind), chunks): Chunked<'_>| {
        let mut out = bson::Writer::default();
        encoder.array(&mut out, name, kind, &chunks).field(name.clone()).field("columns")?;
        drop(chunks);
        let held = encoder.budget.reserve(out.bytes()).field(name.clone()).field("columns")?;
        Ok((out, held))
    };
    let encoded: Vec<(bson::Writer, Reservation)> =
        control.map(columns, column)?.into_iter().collect::<Result<_>>()?;
    let mut out = bson::Writer::default();
    let document = out.begin(None);
    let mut held = encoder.budget.reservation();
    for (column, more) in encoded {
        out.append(column);
        held.merge(more);
    }
    out.end(document)?;
    Ok((out.into_pieces(), held))
}
