//! Writes an array from rows. In C order values are written directly; Fortran order, and texts of unknown width, are
//! kept until the last row.

use std::io::Write;
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, StructArray};
use arrow_buffer::Buffer;
use arrow_schema::{Field, Schema, SchemaRef};
use serde_json::Value;

use super::INFO;
use super::encode::{self, Origin};
use super::layout::{self, Header};
use super::literal::Literal;
use super::schema::{Derived, arrow_schema, derive, derive_rows};
use super::types::Dtype;
use crate::error::{Context, Error, Result};
use crate::formats::column_major::ColumnMajor;
use crate::formats::{NULLS, WriteOptions, WritePlan, Writer, Written, planned, relaxed};
use crate::hub::relax::Rules;
use crate::hub::type_text::print_field;
use crate::hub::{Effect, Form, Plan, Shape, native, same_fields, shape};
use crate::limits::{Budget, Limits};
use crate::sink::Sink;
use crate::source::Spool;

/// How an array will be written.
#[derive(Debug, Clone)]
pub(in crate::formats) struct Target {
    pub(in crate::formats) dtype: Dtype,
    /// All dimensions but the first, which counts the rows; for a single value all of them.
    pub(in crate::formats) inner: Vec<u64>,
    pub(in crate::formats) is_value: bool,
    fortran_order: bool,
    /// The header of the native type, if it differs from what NumPy writes.
    verbatim: Option<Header>,
    /// Whether the width of texts and bytes is determined by the values.
    open: bool,
}

impl Target {
    /// The target for rows of `schema`: the native type if it is of `format` and still fits, otherwise derived
    /// from the Arrow types.
    pub(in crate::formats) fn of(schema: &Schema, format: &str) -> Result<Target> {
        if let Some(target) = native::of(schema, format).and_then(|native| Target::native(schema, &native)) {
            return Ok(target);
        }
        let Derived { dtype, shape: inner, .. } = derive_rows(schema).map_err(Error::unsupported)?;
        let open = encode::is_open(&dtype);
        let is_array = Form::of(schema) == Form::Array && !inner.is_empty();
        let fortran_order = shape::is_column_major(schema) || is_array && shape::has_fortran_order(schema);
        Ok(Target { dtype, inner, is_value: is_value(schema), fortran_order, verbatim: None, open })
    }

    fn native(schema: &Schema, native: &Value) -> Option<Target> {
        let limits = Limits::default();
        let descr = native.get("descr")?.as_str()?;
        let dtype = Dtype::parse(&Literal::parse(descr.as_bytes(), 0, &limits).ok()?).ok()?;
        let fortran_order = native.get("fortran_order")?.as_bool()?;
        let dimensions: Vec<u64> =
            native.get("shape")?.as_array()?.iter().map(Value::as_u64).collect::<Option<_>>()?;
        let canonical = Header::canonical(dtype.little_endian(), fortran_order, dimensions);
        let own = arrow_schema(&canonical).ok()?;
        let same_fields = same_fields(own.fields(), schema.fields(), |_, _| true);
        if Shape::of(&own) != Shape::of(schema) || !same_fields {
            return None;
        }
        let version = native.get("version")?.as_str()?.split('.').next()?.parse().ok()?;
        // Values are written little-endian, so the header of a big-endian file cannot be kept.
        let verbatim = match native.get("header").and_then(Value::as_str) {
            Some(text) if !dtype.is_big_endian() => {
                let (again, order, shape) = layout::parse_text(text, 0, &limits.budget()).ok()?;
                let same = (&again, order, &shape) == (&dtype, fortran_order, &canonical.shape);
                let len = if version == 3 { text.len() } else { text.chars().count() };
                let bytes = if version == 1 { 10 } else { 12 } + len as u64;
                let fits = version > 1 || u16::try_from(len).is_ok();
                let latin = version == 3 || text.chars().all(|character| (character as u32) < 256);
                (same && fits && latin && (1..=3).contains(&version)).then(|| Header {
                    version,
                    bytes,
                    text: text.to_owned(),
                    ..canonical.clone()
                })
            }
            _ => None,
        };
        let is_value = canonical.shape.is_empty();
        let inner = canonical.shape.get(1..).unwrap_or_default().to_vec();
        Some(Target { dtype: canonical.dtype, inner, is_value, fortran_order, verbatim, open: false })
    }

    /// The header for this many rows.
    fn header(&self, rows: u64) -> Header {
        let shape: Vec<u64> = if self.is_value {
            self.inner.clone()
        } else {
            std::iter::once(rows).chain(self.inner.iter().copied()).collect()
        };
        match &self.verbatim {
            Some(header) if header.shape == shape => header.clone(),
            _ => Header::canonical(self.dtype.clone(), self.fortran_order, shape),
        }
    }

    /// The bytes of a batch's rows in C order.
    fn encode(&self, schema: &Schema, rows: &RecordBatch, first_row: u64, budget: &Budget) -> Result<Buffer> {
        match (&self.dtype, rows.columns()) {
            (Dtype::Struct(members), columns) if Shape::of(schema) == Shape::Table => {
                let origin = Origin { first_row, column: String::new(), per_row: 1 };
                encode::encode_members(members, columns, rows.num_rows(), &origin, budget)
            }
            (dtype, [column]) => {
                let column_name = schema.field(0).name().clone();
                let origin = Origin { first_row, column: column_name, per_row: 1 };
                encode::encode(dtype, &self.inner, column, &origin, budget)
            }
            _ => Err(Error::usage("expected rows of one column")),
        }
    }

    fn widen(&mut self, schema: &Schema, rows: &RecordBatch) -> Result<()> {
        if Shape::of(schema) == Shape::Table {
            let records: ArrayRef = Arc::new(StructArray::from(rows.clone()));
            return encode::widen(&mut self.dtype, &[], &records);
        }
        rows.columns().iter().try_for_each(|column| encode::widen(&mut self.dtype, &self.inner, column))
    }
}

fn is_value(schema: &Schema) -> bool {
    Shape::of(schema) == Shape::Value
}

/// The effect of writing rows of this schema on each field, and the writer.
pub(super) fn plan(schema: &SchemaRef, options: &WriteOptions) -> Result<Box<dyn WritePlan>> {
    options.options.word(NULLS.key, &["nan"])?;
    let (steps, target) = (steps(schema, INFO.id), Target::of(schema, INFO.id));
    let (schema, options) = (Arc::clone(schema), options.clone());
    Ok(planned(steps, move |sink| {
        let budget = options.budget.clone();
        let writer =
            NpyWriter::create(sink, schema, target?, budget, options.row_count).in_format(INFO.id)?;
        let rules = Rules { nan_for_null: true, ..Rules::default() };
        Ok(relaxed(Box::new(writer), rules, &options))
    }))
}

/// The effect of writing rows of `schema` on each field.
pub(in crate::formats) fn steps(schema: &Schema, format: &str) -> Plan {
    let mut plan = Plan::default();
    let native = native::of(schema, format).and_then(|native| Target::native(schema, &native));
    let table = Form::of(schema) == Form::Table;
    if table && schema.fields().is_empty() {
        plan.step("", "table", "npy", Effect::impossible("a table without columns has no dtype"));
    }
    for field in schema.fields() {
        let derived = if table { derive_column(schema, field) } else { derive_rows(schema) };
        let from = print_field(field);
        match derived {
            Ok(derived) => {
                let to = native.as_ref().filter(|_| !table).map_or_else(
                    || dtype_text(&derived),
                    |native| dtype_text(&Derived { dtype: native.dtype.clone(), ..derived.clone() }),
                );
                plan.step(field.name(), from, to, derived.effect);
            }
            Err(why) => plan.step(field.name(), from, "npy", Effect::impossible(why)),
        }
    }
    plan
}

fn derive_column(schema: &Schema, field: &Field) -> Result<Derived, String> {
    if field.name().is_empty() {
        return Err("a field needs a name".to_owned());
    }
    if schema.fields().iter().filter(|other| other.name() == field.name()).count() > 1 {
        return Err("two columns of this name".to_owned());
    }
    derive(field, false)
}

/// A dtype for messages: `<f8`, `<U?` if the width is not known yet.
fn dtype_text(derived: &Derived) -> String {
    match &derived.dtype {
        Dtype::Scalar(scalar) if encode::is_open(&derived.dtype) && scalar.bytes == 0 => {
            scalar.text().replace('0', "?")
        }
        dtype => dtype.descr().to_string().trim_matches('\'').to_owned(),
    }
}

/// Collects the rows of one array; its bytes are written at the end.
pub(in crate::formats) struct Collector {
    target: Target,
    schema: SchemaRef,
    budget: Budget,
    rows: u64,
    body: Body,
}

enum Body {
    /// Values in C order.
    Spool(Spool),
    /// Batches whose texts have no width yet.
    Batches(Vec<RecordBatch>),
}

impl Collector {
    pub(in crate::formats) fn new(target: Target, schema: SchemaRef, budget: Budget) -> Collector {
        let body = if target.open { Body::Batches(Vec::new()) } else { Body::Spool(Spool::new(&budget)) };
        Collector { target, schema, budget, rows: 0, body }
    }

    pub(in crate::formats) fn write(&mut self, rows: &RecordBatch) -> Result<()> {
        match &mut self.body {
            Body::Batches(batches) => {
                self.budget.charge(rows)?;
                self.target.widen(&self.schema, rows)?;
                batches.push(rows.clone());
            }
            Body::Spool(spool) => {
                spool.write_all(&self.target.encode(&self.schema, rows, self.rows, &self.budget)?)?;
            }
        }
        self.rows += rows.num_rows() as u64;
        Ok(())
    }

    /// Writes header and values. Returns the number of rows.
    pub(in crate::formats) fn finish(mut self, out: &mut dyn Write) -> Result<u64> {
        check_value(&self.target, self.rows)?;
        match self.body {
            Body::Batches(batches) => {
                encode::close(&mut self.target.dtype);
                out.write_all(&self.target.header(self.rows).to_bytes())?;
                let mut first_row = 0;
                for batch in &batches {
                    out.write_all(&self.target.encode(&self.schema, batch, first_row, &self.budget)?)?;
                    first_row += batch.num_rows() as u64;
                }
            }
            Body::Spool(mut spool) => {
                let header = self.target.header(self.rows);
                out.write_all(&header.to_bytes())?;
                if header.is_column_major() && header.data_bytes() != Some(0) {
                    transpose(&header, spool, out, &self.budget)?;
                } else {
                    spool.copy_to(out)?;
                }
            }
        }
        Ok(self.rows)
    }
}

/// Writes spooled C-order values in Fortran order. This is the same as reading the rows of a column-major
/// matrix with reversed dimensions.
fn transpose(header: &Header, spool: Spool, out: &mut dyn Write, budget: &Budget) -> Result<()> {
    let source = spool.into_source("spool")?;
    let last = header.shape.last().copied().unwrap_or(1);
    let outer = header.shape.get(..header.shape.len().saturating_sub(1)).unwrap_or_default();
    let matrix = ColumnMajor {
        source,
        offset: 0,
        rows: last,
        cols: outer.iter().product(),
        item_bytes: header.dtype.bytes().unwrap_or(0),
        order: super::read::reversed_order(outer, budget)?,
    };
    let band = matrix.band_rows(budget);
    let mut next = 0;
    while next < last {
        let end = last.min(next.saturating_add(band));
        out.write_all(&matrix.read(next..end, budget)?)?;
        next = end;
    }
    Ok(())
}

fn check_value(target: &Target, rows: u64) -> Result<()> {
    if target.is_value && rows != 1 {
        return Err(Error::usage(format!("a single value has one row, found {rows}")));
    }
    Ok(())
}

/// Writes a `.npy` file.
pub(in crate::formats) struct NpyWriter {
    sink: Sink,
    /// The header as written, until the number of rows is known.
    header: Header,
    body: NpyBody,
    rows: u64,
}

enum NpyBody {
    Direct { target: Box<Target>, schema: SchemaRef, budget: Budget },
    Collected(Box<Collector>),
}

impl NpyWriter {
    pub(in crate::formats) fn create(
        mut sink: Sink,
        schema: SchemaRef,
        target: Target,
        budget: Budget,
        row_count: Option<u64>,
    ) -> Result<NpyWriter> {
        let expected = row_count.or_else(|| shape::matrix_rows(&schema));
        // If the number of rows is not known, that of the native type is the best guess: it is patched if it
        // is wrong.
        let native_rows = target.verbatim.as_ref().and_then(|header| header.shape.first().copied());
        let header = target.header(expected.or(native_rows).unwrap_or(0));
        let direct = !target.open && (!target.fortran_order || target.inner.is_empty());
        let body = if direct {
            if expected.is_none() && !target.is_value {
                sink.enable_patching()?;
            }
            sink.write_all(&header.to_bytes())?;
            NpyBody::Direct { target: Box::new(target), schema, budget }
        } else {
            NpyBody::Collected(Box::new(Collector::new(target, schema, budget)))
        };
        Ok(NpyWriter { sink, header, body, rows: 0 })
    }
}

impl Writer for NpyWriter {
    fn write(&mut self, rows: &RecordBatch) -> Result<()> {
        match &mut self.body {
            NpyBody::Direct { target, schema, budget } => {
                let bytes = target.encode(schema, rows, self.rows, budget)?;
                self.sink.write_all(&bytes)?;
            }
            NpyBody::Collected(collector) => collector.write(rows)?,
        }
        self.rows += rows.num_rows() as u64;
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> Result<Written> {
        match self.body {
            NpyBody::Direct { target, .. } => {
                check_value(&target, self.rows)?;
                let header = target.header(self.rows);
                if header != self.header {
                    if header.bytes != self.header.bytes {
                        return Err(Error::usage(format!(
                            "expected as many rows as were announced, found {}",
                            self.rows
                        )));
                    }
                    self.sink.patch(0, &header.to_bytes())?;
                }
            }
            NpyBody::Collected(collector) => {
                collector.finish(&mut self.sink)?;
            }
        }
        Ok(Written::new(self.rows, self.sink.finish()?))
    }
}
