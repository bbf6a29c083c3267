//! What a schema becomes, and documents being written: columns are compressed side by side as their batches come, or batches are
//! held until they fill a chunk.

use std::collections::HashSet;
use std::io::Write as _;
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{Field, Schema, SchemaRef};

use super::chunk::{SplitOptions, Splitter};
use super::encode::{ArrayWriter, Encoder, Output};
use super::json_write::JsonPrinter;
use super::schema::{Type, arrow_fields, check_name, is_same_field};
use super::{ID, JSON, MONGODB_BYTES};
use crate::control::Control;
use crate::cursor::allocate;
use crate::error::{Context, Error, Result};
use crate::formats::{ColumnReader, WriteOptions, WritePlan, Writer, Written, planned_as};
use crate::hub::type_text::print_field;
use crate::hub::{Effect, LossKind, Plan, Rows, extension, native, shape};
use crate::limits::{Budget, Reservation};
use crate::sink::Sink;
use crate::source::Source;
use crate::wire::bson;

/// What writing this schema will do, and the writer that does it.
pub(super) fn plan(schema: &SchemaRef, options: &WriteOptions) -> Result<Box<dyn WritePlan>> {
    let encoder = Encoder::new(&options.options, options.budget.clone()).in_format(ID)?;
    let (columns, control) = (column_types(schema).in_format(ID), options.control.clone());
    let split = match &columns {
        Ok(columns) => SplitOptions::new(&options.options, columns).in_format(ID)?,
        Err(_) => None,
    };
    let relaxed = options.options.word("json", &["canonical", "relaxed"])? == Some("relaxed");
    let is_text = match options.dialect.as_deref() {
        Some(dialect) => dialect == JSON,
        None => options
            .name
            .as_deref()
            .is_some_and(|name| crate::source::Packing::strip(&name.to_lowercase()).ends_with(".bson.json")),
    };
    if !is_text && options.options.get("json").is_some() {
        return Err(Error::usage("option json is for bsondf:json").in_format(ID));
    }
    let text = is_text.then_some(relaxed);
    Ok(planned_as(is_text.then_some(JSON), steps(schema), move |sink| {
        Ok(Box::new(BsondfWriter::new(
            DocumentSink { sink, text, budget: encoder.budget.clone(), longest: 0 },
            columns?,
            split,
            encoder,
            control,
        )))
    }))
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

/// Documents being written.
struct BsondfWriter {
    sink: DocumentSink,
    columns: Vec<(String, Type)>,
    /// What has come of each column.
    arrays: Vec<ArrayWriter>,
    rows: u64,
    /// Whether the document has been written column by column.
    has_columns: bool,
    /// Whether rows came that were an error: columns may have parts of them.
    has_failed: bool,
    /// A batch without rows: should no other come, its dictionaries are the document's.
    empty: Option<RecordBatch>,
    splitter: Option<Splitter>,
    encoder: Encoder,
    control: Control,
}

impl BsondfWriter {
    fn new(
        sink: DocumentSink,
        columns: Vec<(String, Type)>,
        split: Option<SplitOptions>,
        encoder: Encoder,
        control: Control,
    ) -> Self {
        let arrays = columns.iter().map(|(_, kind)| encoder.array(kind)).collect();
        let splitter = split.map(Splitter::new);
        BsondfWriter {
            sink,
            columns,
            arrays,
            rows: 0,
            has_columns: false,
            has_failed: false,
            empty: None,
            splitter,
            encoder,
            control,
        }
    }

    fn push(&mut self, rows: &RecordBatch) -> Result<()> {
        if let Some(splitter) = &mut self.splitter {
            splitter.push(rows.clone());
            return Ok(());
        }
        let columns = self.arrays.iter_mut().zip(&self.columns).zip(rows.columns());
        let push = |((array, (name, _)), column): ((&mut ArrayWriter, &(String, Type)), &ArrayRef)| {
            array.append(column).map_err(|error| error.field(name.clone()).field("columns"))
        };
        self.control.map(columns.collect(), push)?.into_iter().collect()
    }

    fn check(&self) -> Result<()> {
        if self.has_failed { Err(Error::cancelled().in_format(ID)) } else { Ok(()) }
    }

    /// Writes the chunks that are complete, or with `last` all that is left.
    fn write_chunks(&mut self, last: bool) -> Result<()> {
        let Some(splitter) = &mut self.splitter else { return Ok(()) };
        while let Some((document, _held)) =
            splitter.next(&self.columns, &self.encoder, &self.control, last)?
        {
            self.sink.document(document)?;
        }
        Ok(())
    }
}

impl Writer for BsondfWriter {
    fn write(&mut self, rows: &RecordBatch) -> Result<()> {
        if rows.num_rows() == 0 {
            if self.rows == 0 && self.empty.is_none() {
                self.encoder.budget.charge(rows).in_format(ID)?;
                self.empty = Some(rows.clone());
            }
            return Ok(());
        }
        if self.columns.is_empty() {
            return Err(Error::lossy("row 0: a document without columns has no rows").in_format(ID));
        }
        self.check()?;
        self.encoder.budget.charge(rows).in_format(ID)?;
        let pushed = self.push(rows);
        self.has_failed = pushed.is_err();
        pushed.in_format(ID)?;
        self.rows += rows.num_rows() as u64;
        self.write_chunks(false).in_format(ID)
    }

    fn write_columns(&mut self, input: &ColumnReader<'_>) -> Result<bool> {
        // What is split into chunks is made of rows, and a table without rows has dictionaries.
        if input.rows == 0 || self.columns.is_empty() || self.splitter.is_some() || !self.sink.takes_columns()
        {
            return Ok(false);
        }
        let (encoder, count) = (&self.encoder, usize::try_from(input.rows).unwrap_or(usize::MAX));
        let columns: Vec<_> = self.columns.iter().enumerate().collect();
        let encode = |(place, column): (usize, &(String, Type))| {
            let (name, kind) = column;
            let array = read_array(encoder, kind, (input.read)(place)?, count);
            encode_column(encoder, column, array.map_err(|error| in_column(error, name))?)
        };
        // As many at a time as fit in memory if all have a fixed width, whatever the number of threads.
        let room = self.encoder.budget.limits().max_alloc / 4 * 3;
        let together = room / input.rows.saturating_mul(self.encoder.value_bytes());
        let together = usize::try_from(together).unwrap_or(usize::MAX).max(1);
        self.sink.columns(columns, together, &self.control, encode).in_format(ID)?;
        (self.rows, self.has_columns) = (input.rows, true);
        Ok(true)
    }

    fn finish(mut self: Box<Self>) -> Result<Written> {
        self.check()?;
        if self.has_columns {
            return self.end();
        }
        if self.rows == 0 {
            // A table without rows is a document, too.
            let fields = arrow_fields(&self.columns);
            let empty = self.empty.take();
            self.push(&empty.unwrap_or_else(|| RecordBatch::new_empty(Arc::new(Schema::new(fields)))))?;
        }
        if self.splitter.is_some() {
            self.write_chunks(true).in_format(ID)?;
        } else {
            let arrays = std::mem::take(&mut self.arrays);
            let (encoded, _held) =
                encode(&self.encoder, &self.columns, arrays, &self.control, |array, _| Ok(array))
                    .in_format(ID)?;
            self.sink.document(encoded).in_format(ID)?;
        }
        self.end()
    }
}

impl BsondfWriter {
    fn end(self: Box<Self>) -> Result<Written> {
        let (bytes, longest) = self.sink.finish()?;
        let mut written = Written::new(self.rows, bytes);
        if longest > MONGODB_BYTES {
            written.notes.push(format!(
                "{longest} bytes are more than MongoDB takes in one document ({MONGODB_BYTES})"
            ));
        }
        written.notes.extend(self.columns.iter().filter_map(|(name, _)| name_note(name)));
        Ok(written)
    }
}

/// What the name of a column means in a database, where it means more than a name.
fn name_note(name: &str) -> Option<String> {
    let reason = match name {
        "_id" => "MongoDB has a field of this name in every document of its own",
        _ if name.starts_with('$') => "MongoDB takes a name that begins with $ for an operator",
        _ if name.contains('.') => "MongoDB takes . in a name for a path, so the column cannot be projected",
        _ => return None,
    };
    Some(format!("column {name:?}: {reason}"))
}

/// Where documents go: as they are, or as lines of text.
struct DocumentSink {
    sink: Sink,
    /// Extended JSON; whether it is relaxed.
    text: Option<bool>,
    budget: Budget,
    longest: u64,
}

impl DocumentSink {
    fn document(&mut self, pieces: Vec<Vec<u8>>) -> Result<()> {
        let bytes: usize = pieces.iter().map(Vec::len).sum();
        self.longest = self.longest.max(bytes as u64);
        match self.text {
            None => {
                self.sink.expect(bytes);
                for piece in pieces {
                    self.sink.write_all(&piece)?;
                }
            }
            Some(relaxed) => {
                let mut document = allocate(bytes as u64, &self.budget)?;
                pieces.iter().for_each(|piece| document.extend_from_slice(piece));
                let source = Source::from_bytes("", document);
                let mut reader = bson::Reader::new(&source);
                let root = reader.document_at(0, bytes as u64)?;
                let mut out = std::io::BufWriter::with_capacity(64 << 10, &mut self.sink);
                JsonPrinter { reader, relaxed, limits: self.budget.limits(), out: &mut out }
                    .document(root)?;
                out.write_all(b"\n")?;
                out.flush()?;
            }
        }
        Ok(())
    }

    /// Whether a document may be written before its length is known.
    fn takes_columns(&self) -> bool {
        self.text.is_none() && self.sink.path().is_some() && !self.sink.is_packed()
    }

    /// Writes a document column by column, while later ones are still being encoded, at most so many `together`. Its length, which
    /// comes first, is patched at the end.
    fn columns<C: Send>(
        &mut self,
        mut columns: Vec<C>,
        together: usize,
        control: &Control,
        encode: impl Fn(C) -> Result<Output> + Send + Sync,
    ) -> Result<()> {
        self.sink.enable_patching()?;
        let start = self.sink.position();
        self.sink.write_all(&[0; 4])?;
        let sink = &mut self.sink;
        while !columns.is_empty() {
            let later = columns.split_off(together.min(columns.len()));
            let some = std::mem::replace(&mut columns, later);
            control.each_in_order(some, &encode, |out: Output| {
                out.bson.into_pieces().into_iter().try_for_each(|piece| Ok(sink.write_all(&piece)?))
            })?;
        }
        control.check()?;
        sink.write_all(&[0])?;
        let bytes = sink.position() - start;
        self.longest = self.longest.max(bytes);
        sink.patch(start, &bson::document_length(bytes)?.to_le_bytes())
    }

    /// How many bytes were written, and how many the longest document has.
    fn finish(self) -> Result<(u64, u64)> {
        let bytes = self.sink.position();
        self.sink.finish()?;
        Ok((bytes, self.longest))
    }
}

/// What comes of a column that is read alone.
fn read_array(encoder: &Encoder, kind: &Type, rows: Rows, count: usize) -> Result<ArrayWriter> {
    let mut array = encoder.array(kind);
    for batch in rows {
        let batch = batch.map_err(Error::from)?;
        let column = batch.columns().first();
        array.append(column.ok_or_else(|| Error::usage("a batch without columns"))?)?;
    }
    if array.rows() != count {
        return Err(Error::malformed(format_args!("{count} rows"), array.rows()));
    }
    Ok(array)
}

/// The document of some columns, in pieces, and what pays for them.
pub(super) fn encode<T: Send>(
    encoder: &Encoder,
    columns: &[(String, Type)],
    contents: Vec<T>,
    control: &Control,
    array: impl Fn(T, &Type) -> Result<ArrayWriter> + Send + Sync,
) -> Result<(Vec<Vec<u8>>, Reservation)> {
    let mut out = Output::new(&encoder.budget);
    let document = out.bson.begin(None);
    let encoded = encode_columns(encoder, columns, contents, control, array)?;
    encoded.into_iter().for_each(|column| out.append(column));
    out.bson.end(document)?;
    Ok((out.bson.into_pieces(), out.held))
}

/// The elements of some columns, encoded side by side; `array` makes what is written of their contents.
pub(super) fn encode_columns<T: Send>(
    encoder: &Encoder,
    columns: &[(String, Type)],
    contents: Vec<T>,
    control: &Control,
    array: impl Fn(T, &Type) -> Result<ArrayWriter> + Send + Sync,
) -> Result<Vec<Output>> {
    let encode = |(column, content): (&(String, Type), T)| {
        let array = array(content, &column.1).map_err(|error| in_column(error, &column.0))?;
        encode_column(encoder, column, array)
    };
    control.map(columns.iter().zip(contents).collect(), encode)?.into_iter().collect()
}

/// The element of a column.
fn encode_column(encoder: &Encoder, (name, kind): &(String, Type), array: ArrayWriter) -> Result<Output> {
    let mut out = Output::new(&encoder.budget);
    let encoded = encoder.finish(&mut out, name, kind, array);
    encoded.map_err(|error| in_column(error, name))?;
    Ok(out)
}

fn in_column(error: Error, name: &str) -> Error {
    match error.format() {
        // A fault of the input, which says where it is.
        Some(_) => error,
        None => error.field(name.to_owned()).field("columns"),
    }
}
