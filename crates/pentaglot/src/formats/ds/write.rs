//! Writes record batches as a bundle, batch by batch.

use std::io::Write;
use std::ops::Range;

use arrow_array::RecordBatch;
use arrow_schema::Schema;

use super::cells::{Cells, Writing};
use super::images::Transform;
use super::rows::place_cell;
use super::schema::{self, Derived, declared_rows, root_columns, root_shape};
use super::types::{Fundamental, Type};
use super::{ROWS, ROWS_JSON};
use crate::error::{Context, Error, Result};
use crate::formats::row_output::RowOutput;
use crate::formats::side_index;
use crate::formats::{OptionMap, WriteOptions, WritePlan, Writer, Written, planned_as, relaxed};
use crate::hub::relax::Rules;
use crate::hub::{Effect, LossKind, Plan, Shape};
use crate::kernels::rows;
use crate::sink::Sink;
use crate::source::Spool;
use crate::wire::msgpack::Output;

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
    /// The elements of an array are spooled if their number, which comes before them, is not known.
    output: RowOutput,
    encoding: Encoding,
    /// The type, if the file does not contain it.
    bare: Option<String>,
    /// The type of the input rows; images may have another encoding in the file.
    kind: Type,
    writing: Writing,
    rows: u64,
    /// How many rows there must be.
    declared: Option<u64>,
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
        let bare = bare.then(|| target.to_string());
        let mut output = RowOutput::new(sink, &options.control);
        output.spool = spool;
        Ok(BundleWriter { output, encoding, bare, kind, writing, rows: 0, declared })
    }

    fn write_rows(&mut self, batch: &RecordBatch) -> Result<()> {
        let BundleWriter { output, encoding, kind, writing, rows: first, .. } = self;
        let shape = root_shape(kind);
        let columns = root_columns(kind);
        let bound = batch.columns().iter().zip(&columns);
        let cells = bound.map(|(array, (name, kind))| {
            let bound = Cells::bind(array, kind, writing);
            bound.map_err(|error| place_cell(error, shape, *first, name))
        });
        let cells = cells.collect::<Result<Vec<Cells>>>()?;
        let names = columns.iter().map(|(name, _)| *name).collect();
        let rows = BundleRows { cells: &cells, names, shape, first: *first, writing };
        let simple = rows.simple(*encoding);
        let more_bytes = if writing.transform == Transform::Keep { 0 } else { image_bytes(kind) };
        output.write_rows(batch, more_bytes, |range, out| match (&simple, *encoding) {
            (Some(columns), _) => {
                rows::write_rows(columns, range, writing.fixed, out);
                Ok(())
            }
            (None, Encoding::MsgPack { .. }) => rows.write_msgpack(range, out),
            (None, Encoding::Json) => rows.write_json(range, out),
        })?;
        *first += batch.num_rows() as u64;
        Ok(())
    }

    fn end(self) -> Result<Written> {
        if let Some(declared) = self.declared
            && declared != self.rows
        {
            return Err(Error::lossy(format!("{declared} rows are declared, found {}", self.rows)));
        }
        let mut output = self.output;
        if let Some(mut spool) = output.spool.take() {
            let mut count = Output::default();
            count.array(usize::try_from(self.rows).unwrap_or(usize::MAX))?;
            output.write(count.bytes())?;
            spool.copy_to(&mut output.sink)?;
        }
        if self.encoding == Encoding::Json {
            let close = if root_shape(&self.kind) == Shape::Value { "" } else { "]" };
            output.write(close.as_bytes())?;
            output.write(if self.bare.is_some() { b"" } else { b"}" })?;
        }
        let mut written = Written::new(self.rows, 0);
        written.notes.extend(self.bare.map(|kind| format!("the file holds no type; it is {kind}")));
        written.bytes = output.finish()?;
        Ok(written)
    }
}

/// What the images of a row take when they are decoded.
fn image_bytes(kind: &Type) -> usize {
    match kind {
        Type::Fundamental(_) | Type::Tensor(_) => 0,
        Type::Image(image) => {
            image.plain_bytes().and_then(|bytes| usize::try_from(bytes).ok()).unwrap_or(usize::MAX)
        }
        Type::Nullable(inner) | Type::Array(inner) => image_bytes(inner),
        Type::Struct(fields) => sum_of_images(fields),
        Type::Tabular(table) => sum_of_images(&table.columns),
    }
}

fn sum_of_images(fields: &[(String, Type)]) -> usize {
    fields.iter().fold(0, |sum, (_, kind)| sum.saturating_add(image_bytes(kind)))
}

/// The rows of a batch, from which any range can be encoded.
struct BundleRows<'a> {
    cells: &'a [Cells],
    names: Vec<&'a str>,
    shape: Shape,
    /// The number of the first row in the file.
    first: u64,
    writing: &'a Writing,
}

impl BundleRows<'_> {
    /// The columns, if the fast loop can write all of them.
    fn simple(&self, encoding: Encoding) -> Option<Vec<rows::Cells<'_>>> {
        let is_table = encoding != Encoding::Json && self.shape == Shape::Table;
        if is_table { self.cells.iter().map(Cells::plain).collect() } else { None }
    }

    fn write_msgpack(&self, range: Range<usize>, out: &mut Vec<u8>) -> Result<()> {
        let mut output = Output::default();
        for index in range {
            if self.shape == Shape::Table {
                output.array(self.cells.len())?;
            }
            self.each(index, |_, cell| cell.write_msgpack(index, &mut output, self.writing))?;
        }
        out.extend_from_slice(output.bytes());
        Ok(())
    }

    fn write_json(&self, range: Range<usize>, out: &mut Vec<u8>) -> Result<()> {
        for index in range {
            if self.first > 0 || index > 0 {
                out.push(b',');
            }
            if self.shape == Shape::Table {
                out.push(b'[');
            }
            self.each(index, |place, cell| {
                if place > 0 {
                    out.push(b',');
                }
                cell.write_json(index, out, self.writing)
            })?;
            if self.shape == Shape::Table {
                out.push(b']');
            }
        }
        Ok(())
    }

    /// Does `write` for each cell of a row, in order; an error is given its place.
    fn each(&self, index: usize, mut write: impl FnMut(usize, &Cells) -> Result<()>) -> Result<()> {
        for (place, (cell, name)) in self.cells.iter().zip(&self.names).enumerate() {
            let row = self.first + index as u64;
            write(place, cell).map_err(|error| place_cell(error, self.shape, row, name))?;
        }
        Ok(())
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
