//! Writes record batches as a bundle, batch by batch.

use std::io::Write;

use arrow_array::RecordBatch;
use arrow_schema::Schema;

use super::cells::{Cells, Writing};
use super::images::Transform;
use super::rows::place_cell;
use super::schema::{self, Derived, declared_rows, root_columns, root_shape};
use super::types::{Fundamental, Type};
use super::{ROWS, ROWS_JSON};
use crate::error::{Context, Error, Result};
use crate::formats::side_index;
use crate::formats::{OptionMap, WriteOptions, WritePlan, Writer, Written, planned_as, relaxed};
use crate::hub::relax::Rules;
use crate::hub::{Effect, LossKind, Plan, Shape};
use crate::kernels::rows;
use crate::sink::Sink;
use crate::source::Spool;
use crate::wire::msgpack::Output;

/// The size of the output buffer.
const FLUSH_BYTES: usize = 256 << 10;
/// Simple rows are written this many at a time.
const PLAIN_ROWS: usize = 4096;

/// How elements are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Encoding {
    MsgPack { fixed: bool },
    Json,
}

/// Whether elements are written without their type.
fn is_bare(options: &WriteOptions) -> bool {
    matches!(options.dialect.as_deref(), Some(ROWS | ROWS_JSON))
}

/// The dialect to write: the one requested, otherwise by the name's extension.
fn encoding(options: &WriteOptions) -> Encoding {
    match options.dialect.as_deref() {
        Some("json" | ROWS_JSON) => Encoding::Json,
        Some("msgpack-fixed") => Encoding::MsgPack { fixed: true },
        Some(_) => Encoding::MsgPack { fixed: false },
        None => {
            let name = options.name.as_deref().unwrap_or_default().to_lowercase();
            let json = crate::source::Packing::strip(&name).ends_with(".json");
            if json { Encoding::Json } else { Encoding::MsgPack { fixed: false } }
        }
    }
}

/// The writer's transformation for the option `images`. Images that a reader has decoded are not encoded
/// again.
fn transform(options: &OptionMap, decoded: bool) -> Result<Transform> {
    Ok(match options.word("images", &["decode", "encode"])? {
        Some("encode") => Transform::Encode,
        Some(_) if decoded => Transform::Keep,
        Some(_) => Transform::Swap,
        None => Transform::Keep,
    })
}

/// How a bundle is written.
struct Target {
    /// The type of the input rows.
    kind: Type,
    /// The type in the file, in which images may have another format.
    written: Type,
    transform: Transform,
    encoding: Encoding,
    nan_null: bool,
}

impl Target {
    /// Whether the bundle is written as JSON.
    fn is_json(&self) -> bool {
        self.encoding == Encoding::Json
    }
}

/// Plans a bundle of rows of this schema.
pub(super) fn plan(schema: &Schema, options: &WriteOptions) -> Result<Box<dyn WritePlan>> {
    let (steps, target) = steps(schema, options)?;
    let dialect = match encoding(options) {
        Encoding::Json if options.dialect.is_none() => Some("json"),
        _ => None,
    };
    let options = options.clone();
    Ok(planned_as(dialect, steps, move |sink| {
        let null_for_nan = target.as_ref().is_some_and(Target::is_json);
        let writer = Box::new(BundleWriter::new(sink, target, &options).in_format(super::ID)?);
        Ok(relaxed(writer, Rules { null_for_nan, ..Rules::default() }, &options))
    }))
}

/// The effect of writing rows of this schema on each field, and the target, if they can be written.
fn steps(schema: &Schema, options: &WriteOptions) -> Result<(Plan, Option<Target>)> {
    let Derived { kind, mut plan, decoded } = schema::derive(schema, options.row_count);
    let Some(kind) = kind else { return Ok((plan, None)) };
    let transform = transform(&options.options, decoded)?;
    let target = match transform.apply(&kind) {
        Ok(target) => target,
        Err(error) => {
            plan.step("", "images", "", Effect::impossible(error.message()));
            return Ok((plan, None));
        }
    };
    let encoding = encoding(options);
    let nan_null = options.options.word("nan", &["null"])?.is_some();
    let before = root_columns(&kind);
    for (step, ((_, after), (_, before))) in plan
        .steps
        .iter_mut()
        .filter(|step| !step.field.is_empty())
        .zip(root_columns(&target).into_iter().zip(before))
    {
        if before != after {
            step.worsen(Effect::checked(LossKind::Range).because("images are converted"));
            step.to = after.to_string();
        }
        if encoding == Encoding::Json && has_floats(after) {
            if nan_null {
                let note = "NaN and infinities are written as null";
                step.worsen(Effect::widened().because(note));
            } else {
                let note = "NaN and infinities have no JSON encoding";
                step.worsen(Effect::checked(LossKind::Range).because(note));
            }
        }
    }
    Ok((plan, Some(Target { kind, written: target, transform, encoding, nan_null })))
}

fn has_floats(kind: &Type) -> bool {
    let float = |kind: Fundamental| matches!(kind, Fundamental::Float32 | Fundamental::Float64);
    match kind {
        Type::Fundamental(kind) => float(*kind),
        Type::Tensor(tensor) => float(tensor.component),
        Type::Image(_) => false,
        Type::Nullable(inner) | Type::Array(inner) => has_floats(inner),
        Type::Struct(fields) => fields.iter().any(|(_, kind)| has_floats(kind)),
        Type::Tabular(table) => table.columns.iter().any(|(_, kind)| has_floats(kind)),
    }
}

/// A bundle being written.
struct BundleWriter {
    sink: Sink,
    /// Elements of an array, whose number must be written before them.
    spool: Option<Spool>,
    encoding: Encoding,
    /// The type, if the file does not contain it.
    bare: Option<String>,
    /// The type of the input rows; images may have another encoding in the file.
    kind: Type,
    writing: Writing,
    rows: u64,
    /// How many rows there must be.
    declared: Option<u64>,
    output: Output,
    /// Output that is not written through `output`.
    text: Vec<u8>,
}

impl BundleWriter {
    fn new(mut sink: Sink, target: Option<Target>, options: &WriteOptions) -> Result<Self> {
        let target = target.ok_or_else(|| Error::unsupported("the schema has no DS type"))?;
        let Target { kind, written: target, transform, encoding, nan_null } = target;
        let bare = is_bare(options);
        side_index::prepare(&mut sink)?;
        let writing = Writing {
            fixed: encoding == Encoding::MsgPack { fixed: true },
            nan_null,
            transform,
            budget: options.budget.clone(),
        };
        let shape = root_shape(&kind);
        let mut declared = declared_rows(&kind);
        let mut spool = None;
        match encoding {
            Encoding::Json => {
                if !bare {
                    sink.write_all(format!("{{\"type\":{target},\"value\":").as_bytes())?;
                }
                sink.write_all(if shape == Shape::Value { b"" } else { b"[" })?;
            }
            Encoding::MsgPack { .. } => {
                if !bare {
                    sink.write_all(&target.header()?)?;
                }
                match (shape, options.row_count) {
                    (Shape::Array, Some(count)) => {
                        let mut output = Output::default();
                        output.array(usize::try_from(count).unwrap_or(usize::MAX))?;
                        sink.write_all(output.bytes())?;
                        declared = Some(count);
                    }
                    (Shape::Array, None) => spool = Some(Spool::new(&options.budget)),
                    _ => {}
                }
            }
        }
        let (output, text) = (Output::default(), Vec::new());
        let bare = bare.then(|| target.to_string());
        Ok(BundleWriter { sink, spool, encoding, bare, kind, writing, rows: 0, declared, output, text })
    }

    fn flush(&mut self) -> Result<()> {
        for bytes in [self.output.bytes(), self.text.as_slice()] {
            match &mut self.spool {
                Some(spool) => spool.write_all(bytes)?,
                None => self.sink.write_all(bytes)?,
            }
        }
        self.text.clear();
        self.output.clear();
        Ok(())
    }

    /// Writes all rows of a table of MessagePack, many at a time.
    fn write_plain(&mut self, columns: &[rows::Cells<'_>], count: usize) -> Result<()> {
        let mut start = 0;
        while start < count {
            let mut end = count.min(start + PLAIN_ROWS);
            while end - start > 1 && rows::most_bytes(columns, &(start..end)) > FLUSH_BYTES {
                end = start + (end - start) / 2;
            }
            rows::write_rows(columns, start..end, self.writing.fixed, &mut self.text);
            self.flush()?;
            self.rows += (end - start) as u64;
            start = end;
        }
        Ok(())
    }

    fn write_rows(&mut self, rows: &RecordBatch) -> Result<()> {
        let shape = root_shape(&self.kind);
        let columns = root_columns(&self.kind);
        let names: Vec<String> = columns.iter().map(|(name, _)| (*name).to_owned()).collect();
        let bound = rows.columns().iter().zip(&columns);
        let cells = bound.map(|(array, (name, kind))| {
            let bound = Cells::bind(array, kind, &self.writing);
            bound.map_err(|error| place_cell(error, shape, self.rows, name))
        });
        let cells = cells.collect::<Result<Vec<Cells>>>()?;
        if self.encoding != Encoding::Json
            && shape == Shape::Table
            && let Some(columns) = cells.iter().map(Cells::plain).collect::<Option<Vec<_>>>()
        {
            return self.write_plain(&columns, rows.num_rows());
        }
        for index in 0..rows.num_rows() {
            let row = self.rows;
            match self.encoding {
                Encoding::MsgPack { .. } => {
                    if shape == Shape::Table {
                        self.output.array(cells.len())?;
                    }
                    for (cell, name) in cells.iter().zip(&names) {
                        if let Err(error) = cell.write_msgpack(index, &mut self.output, &self.writing) {
                            return Err(place_cell(error, shape, row, name));
                        }
                    }
                }
                Encoding::Json => {
                    if row > 0 {
                        self.text.push(b',');
                    }
                    if shape == Shape::Table {
                        self.text.push(b'[');
                    }
                    for (place, (cell, name)) in cells.iter().zip(&names).enumerate() {
                        if place > 0 {
                            self.text.push(b',');
                        }
                        if let Err(error) = cell.write_json(index, &mut self.text, &self.writing) {
                            return Err(place_cell(error, shape, row, name));
                        }
                    }
                    if shape == Shape::Table {
                        self.text.push(b']');
                    }
                }
            }
            self.rows += 1;
            if self.output.len().max(self.text.len()) >= FLUSH_BYTES {
                self.flush()?;
            }
        }
        self.flush()
    }

    fn end(mut self) -> Result<Written> {
        if let Some(declared) = self.declared
            && declared != self.rows
        {
            return Err(Error::lossy(format!("{declared} rows are declared, found {}", self.rows)));
        }
        if let Some(mut spool) = self.spool.take() {
            self.output.array(usize::try_from(self.rows).unwrap_or(usize::MAX))?;
            self.flush()?;
            spool.copy_to(&mut self.sink)?;
        }
        if self.encoding == Encoding::Json {
            let close = if root_shape(&self.kind) == Shape::Value { "" } else { "]" };
            self.sink.write_all(close.as_bytes())?;
            self.sink.write_all(if self.bare.is_some() { b"" } else { b"}" })?;
        }
        let mut written = Written::new(self.rows, 0);
        written.notes.extend(self.bare.map(|kind| format!("the file holds no type; it is {kind}")));
        written.bytes = self.sink.finish()?;
        Ok(written)
    }
}

impl Writer for BundleWriter {
    fn write(&mut self, rows: &RecordBatch) -> Result<()> {
        self.write_rows(rows).map_err(|error| error.in_format(super::ID))
    }

    fn finish(self: Box<Self>) -> Result<Written> {
        self.end().map_err(|error| error.in_format(super::ID))
    }
}
