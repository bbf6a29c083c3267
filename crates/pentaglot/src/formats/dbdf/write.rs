//! Writes rows to a file: the plan, the header, and the body of each dialect.

use std::io::Write;
use std::sync::{Arc, PoisonError};

use arrow_array::RecordBatch;
use arrow_buffer::Buffer;
use arrow_schema::{DataType as ArrowType, Field, Schema, SchemaRef};

use crate::error::{Context, Error, Result};
use crate::formats::{NULLS, WriteOptions, WritePlan, Writer, Written, planned, relaxed};
use crate::hub::relax::Rules;
use crate::hub::{Effect, Form, LossKind, Plan, relax, shape, type_text};
use crate::sink::Sink;

use super::ID;
use super::arrays::Arrays;
use super::bands::Bands;
use super::cast::{plain_columns, sparse_rows};
use super::encode::BlockOptions;
use super::meta::{self, Meta, Stamp};
use super::replace;
use super::schema::{self, Object, Target};
use super::types::{DataType, Dialect, ValueType};

/// DAPHNE's reader copies a label over a 32-byte object, and past it if the label is longer.
const DAPHNE_LABEL_BYTES: usize = 32;

/// The note on a file in the document's dialect for users of DAPHNE.
const SPEC_NOTE: &str = "written as dbdf:spec, the documented layout; DAPHNE itself reads dbdf:daphne";

/// The parsed options.
struct Wanted {
    dialect: Dialect,
    blocks: BlockOptions,
    /// Whether a `.meta` is written beside the file.
    meta: Option<bool>,
    is_named: bool,
}

impl Wanted {
    fn read(options: &WriteOptions) -> Result<Self> {
        let dialect = match options.dialect.as_deref() {
            None | Some("spec") => Dialect::Spec,
            Some("daphne") => Dialect::Daphne,
            Some("daphne01") => {
                return Err(Error::unsupported("dialect daphne01 is read only (daphne is written)"));
            }
            Some(other) => {
                return Err(Error::usage(format!("expected a dialect (spec, daphne), found {other:?}")));
            }
        };
        let (blocks, meta) = (BlockOptions::read(options)?, options.options.bool("meta")?);
        Ok(Wanted { dialect, blocks, meta, is_named: options.name.is_some() })
    }
}

/// The type that holds the values in a dialect: itself, or the next wider one.
fn in_dialect(value_type: ValueType, dialect: Dialect) -> Option<ValueType> {
    let wider = match value_type {
        ValueType::UInt16 => ValueType::UInt32,
        ValueType::Int16 => ValueType::Int32,
        other => other,
    };
    [value_type, wider].into_iter().find(|found| found.code(dialect).is_some())
}

/// The effect of writing rows of this schema on each field, and the writer.
pub(super) fn plan(schema: &SchemaRef, options: &WriteOptions) -> Result<Box<dyn WritePlan>> {
    let wanted = Wanted::read(options)?;
    options.options.word(NULLS.key, &["nan"])?;
    let (steps, target) = steps(schema, &wanted);
    let (schema, options) = (Arc::clone(schema), options.clone());
    Ok(planned(steps, move |sink| {
        let writer = create(sink, schema, (wanted, target), &options).in_format(ID)?;
        Ok(relaxed(writer, Rules { nan_for_null: true, ..Rules::default() }, &options))
    }))
}

/// The effect of writing on each field, and the object that is written, if dbdf can hold it.
fn steps(schema: &Schema, wanted: &Wanted) -> (Plan, Option<Target>) {
    let mut plan = Plan::default();
    let dialect = wanted.dialect;
    let Some(target) = schema::target(schema, dialect) else {
        let shape = shape::Shape::of(schema);
        plan.step("", shape.name(), ID, Effect::impossible("dbdf holds matrices and frames"));
        return (plan, None);
    };
    match target.data_type {
        DataType::Frame => {
            for ((field, value_type), label) in
                schema.fields().iter().zip(&target.value_types).zip(&target.labels)
            {
                let kind = field.data_type();
                step(&mut plan, field.name(), kind, *value_type, field.is_nullable(), dialect);
                check_label(&mut plan, field, label, dialect);
                check_name(&mut plan, field, wanted);
                check_meta(&mut plan, field.name(), kind, *value_type, wanted);
            }
        }
        _ => {
            let kind = shape::matrix_value_type(schema).unwrap_or(ArrowType::Null);
            let value_type = target.value_types.first().copied().flatten();
            step(&mut plan, shape::ROW_FIELD, &kind, value_type, matrix_is_nullable(schema), dialect);
            check_meta(&mut plan, shape::ROW_FIELD, &kind, value_type, wanted);
            let cols = shape::matrix_cols(schema);
            if cols.is_none() {
                let note = "the schema does not say how many columns";
                plan.step("", "matrix", target.data_type.name(), Effect::impossible(note));
            } else if dialect == Dialect::Daphne && cols.is_some_and(|cols| u32::try_from(cols).is_err()) {
                let note = "DAPHNE's one block holds at most 4294967295 columns (dbdf:spec has more blocks)";
                plan.step("", "matrix", target.data_type.name(), Effect::impossible(note));
            }
        }
    }
    (plan, Some(target))
}

fn matrix_is_nullable(schema: &Schema) -> bool {
    schema.fields().iter().any(|field| {
        field.is_nullable()
            || match field.data_type() {
                ArrowType::FixedSizeList(item, _) => item.is_nullable(),
                ArrowType::LargeList(entry) => {
                    entry.is_nullable()
                        || match entry.data_type() {
                            ArrowType::Struct(fields) => fields.iter().any(|field| field.is_nullable()),
                            _ => false,
                        }
                }
                _ => false,
            }
    })
}

fn step(
    plan: &mut Plan,
    name: &str,
    kind: &ArrowType,
    value_type: Option<ValueType>,
    nullable: bool,
    dialect: Dialect,
) {
    let from = type_text::print_type(kind);
    match value_type.and_then(|value_type| in_dialect(value_type, dialect)) {
        None => {
            let note = match kind {
                ArrowType::Utf8 | ArrowType::LargeUtf8 | ArrowType::Utf8View => "dbdf cannot hold strings",
                kind if kind.is_nested() => "dbdf cannot hold nested values",
                kind if kind.is_temporal() => "dbdf cannot hold dates and times",
                _ => "dbdf holds integers and floats of 8 to 64 bits",
            };
            plan.step(name, from, ID, Effect::impossible(note));
        }
        Some(to) => {
            let mut effect = if to.arrow() == *kind { Effect::exact() } else { Effect::widened() };
            if nullable {
                let nulls = relax::no_nulls(kind, "dbdf cannot hold a null");
                effect = effect.and(nulls);
            }
            if to == ValueType::FixedStr16 {
                let long = Effect::checked(LossKind::Range).because("at most 15 bytes a string");
                effect = effect.and(long);
            }
            plan.step(name, from, to.name(), effect);
        }
    }
}

fn check_label(plan: &mut Plan, field: &Field, label: &[u8], dialect: Dialect) {
    let (most, why) = match dialect {
        Dialect::Daphne => (DAPHNE_LABEL_BYTES, "DAPHNE's reader overruns its memory past 32 bytes of label"),
        _ => (usize::from(u16::MAX), "a label has at most 65535 bytes"),
    };
    if label.len() > most {
        let from = format!("a label of {} bytes", label.len());
        plan.step(field.name(), from, format!("{most} bytes"), Effect::impossible(why));
    }
}

/// DAPHNE writes no readable labels: names are only in the `.meta` file, if there is one.
fn check_name(plan: &mut Plan, field: &Field, wanted: &Wanted) {
    let has_meta = wanted.meta.unwrap_or(true) && wanted.is_named;
    if wanted.dialect == Dialect::Daphne && !has_meta && !field.name().starts_with("col_") {
        // Without a .meta file DAPHNE's frames have no names.
        plan.step(field.name(), "name", "none", Effect::widened().because(shape::NAMES_NOT_KEPT));
    }
}

/// A requested `.meta` can only name types that DAPHNE has; its own dialect has no others.
fn check_meta(plan: &mut Plan, name: &str, kind: &ArrowType, value_type: Option<ValueType>, wanted: &Wanted) {
    if let (Dialect::Spec, Some(true), Some(value_type)) = (wanted.dialect, wanted.meta, value_type)
        && !meta::is_known(value_type)
    {
        let note =
            "DAPHNE has no integers of 16 bits that its .meta could name (leave out the option meta=true)";
        plan.step(name, type_text::print_type(kind), ".meta", Effect::impossible(note));
    }
}

/// Starts the file of the object that was planned.
fn create(
    mut sink: Sink,
    schema: SchemaRef,
    (wanted, target): (Wanted, Option<Target>),
    options: &WriteOptions,
) -> Result<Box<dyn Writer>> {
    let Wanted { dialect, blocks, meta, .. } = wanted;
    let Some(Target { data_type, value_types, labels }) = target else {
        return Err(Error::unsupported("dbdf holds matrices and frames"));
    };
    let value_types: Vec<ValueType> = value_types
        .into_iter()
        .map(|value_type| {
            let fitting = value_type.and_then(|value_type| in_dialect(value_type, dialect));
            fitting.ok_or_else(|| Error::unsupported("a type that dbdf does not have"))
        })
        .collect::<Result<_>>()?;
    let form = Form::of(&schema);
    let cols = if form == Form::Table {
        schema.fields().len() as u64
    } else {
        shape::matrix_cols(&schema).unwrap_or(0)
    };
    // DAPHNE reads a sparse block in a CSRMatrix only.
    let data_type =
        if dialect == Dialect::Daphne && form == Form::Sparse { DataType::CsrMatrix } else { data_type };
    let declared = options.row_count.or_else(|| shape::matrix_rows(&schema));
    let object = Object { dialect, data_type, form, cols, value_types, labels };
    let body = match (dialect, data_type) {
        (Dialect::Daphne, DataType::CsrMatrix) => Body::Arrays(Box::new(Arrays::new(options, declared)?)),
        (Dialect::Daphne, _) => Body::Plain,
        _ => Body::Bands(Box::new(Bands::new(&object, blocks))),
    };
    sink.check_sibling(meta::SUFFIX)?;
    let with_meta = meta.unwrap_or(dialect == Dialect::Daphne);
    if with_meta {
        sink.keep_ends();
    }
    if !matches!(body, Body::Arrays(_)) {
        if declared.is_none() {
            sink.enable_patching()?;
        }
        sink.write_all(&object.header(declared.unwrap_or(0)))?;
        if matches!(body, Body::Plain) {
            sink.write_all(&object.daphne_block(declared.unwrap_or(0)))?;
        }
    }
    Ok(Box::new(DbdfWriter {
        sink,
        schema,
        object,
        body,
        rows: 0,
        declared: declared.unwrap_or(0),
        with_meta,
    }))
}

enum Body {
    /// Blocks of the document.
    Bands(Box<Bands>),
    /// DAPHNE's cells, row by row.
    Plain,
    /// DAPHNE's CSR: three arrays, none of which can be written before the last row.
    Arrays(Box<Arrays>),
}

struct DbdfWriter {
    sink: Sink,
    schema: SchemaRef,
    object: Object,
    body: Body,
    rows: u64,
    /// The number of rows in the header.
    declared: u64,
    with_meta: bool,
}

impl Writer for DbdfWriter {
    fn write(&mut self, rows: &RecordBatch) -> Result<()> {
        self.append(rows).in_format(ID)
    }

    fn finish(self: Box<Self>) -> Result<Written> {
        self.end().in_format(ID)
    }
}

impl DbdfWriter {
    fn append(&mut self, batch: &RecordBatch) -> Result<()> {
        let first = self.rows;
        self.rows += batch.num_rows() as u64;
        if self.object.dialect == Dialect::Daphne
            && self.object.data_type != DataType::Frame
            && self.rows > u64::from(u32::MAX)
        {
            let message = "DAPHNE's one block holds at most 4294967295 rows (dbdf:spec has more blocks)";
            return Err(Error::unsupported(message));
        }
        let object = &self.object;
        match (&mut self.body, object.form) {
            (Body::Bands(bands), Form::Sparse) => {
                let rows = sparse_rows(object, batch, first)?;
                bands.push_entries(&mut self.sink, object, rows)?;
            }
            (Body::Bands(bands), _) => {
                let columns = plain_columns(object, &self.schema, batch, first)?;
                bands.push_cells(&mut self.sink, object, columns, batch.num_rows() as u64)?;
            }
            (Body::Arrays(arrays), _) => arrays.push(object, batch, first)?,
            (Body::Plain, Form::Table) => {
                let columns = plain_columns(object, &self.schema, batch, first)?;
                write_frame_rows(&mut self.sink, object, &columns, batch.num_rows())?;
            }
            (Body::Plain, _) => {
                for cells in plain_columns(object, &self.schema, batch, first)? {
                    self.sink.write_all(&cells)?;
                }
            }
        }
        Ok(())
    }

    fn end(mut self) -> Result<Written> {
        let mut nonzeros = None;
        match &mut self.body {
            Body::Bands(bands) => {
                bands.finish(&mut self.sink, &self.object, self.rows)?;
                nonzeros = (self.object.data_type == DataType::CsrMatrix).then_some(bands.entries);
            }
            Body::Plain => {}
            Body::Arrays(arrays) => {
                nonzeros = Some(arrays.entries());
                self.sink.write_all(&self.object.header(self.rows))?;
                self.sink.write_all(&self.object.daphne_block(self.rows))?;
                arrays.finish(&mut self.sink)?;
                self.declared = self.rows;
            }
        }
        if self.rows != self.declared {
            self.sink.patch(2, &self.rows.to_le_bytes())?;
            if matches!(self.body, Body::Plain) && self.object.data_type != DataType::Frame {
                self.sink.patch(35, &u32::try_from(self.rows).unwrap_or(u32::MAX).to_le_bytes())?;
            }
        }
        let mut notes = Vec::new();
        if self.object.dialect == Dialect::Spec {
            notes.push(SPEC_NOTE.to_owned());
        }
        let meta = self.with_meta.then(|| self.meta(nonzeros));
        let last = replace::replace(&mut self.sink, meta)?;
        let later = self.sink.later();
        let bytes = self.sink.finish()?;
        match (last, later) {
            // The files read correctly without it: nobody needs to know if it fails.
            (Some(last), Some(later)) => {
                let mut later = later.lock().unwrap_or_else(PoisonError::into_inner);
                later.push(Box::new(move || drop(last.run())));
            }
            (Some(last), None) => notes.extend(last.run()),
            (None, _) => {
                notes.push(
                    "no .meta file is written, since the output is not a file; DAPHNE needs one".to_owned(),
                );
            }
        }
        let mut written = Written::new(self.rows, bytes);
        written.notes = notes;
        Ok(written)
    }

    fn meta(&self, nonzeros: Option<u64>) -> Meta {
        let object = &self.object;
        let stamp = self.sink.ends().map(Stamp::of_written);
        let mut meta = Meta { rows: self.rows, cols: object.cols, nonzeros, stamp, ..Meta::default() };
        if object.data_type == DataType::Frame {
            let names = self.schema.fields().iter().map(|field| field.name().clone());
            meta.columns =
                Some(names.zip(object.value_types.iter().map(|kind| meta::type_name(*kind))).collect());
        } else {
            meta.value_type = meta::type_name(object.value_type());
        }
        meta
    }
}

/// DAPHNE's frames: cells of mixed width, row by row.
fn write_frame_rows(sink: &mut Sink, object: &Object, columns: &[Buffer], rows: usize) -> Result<()> {
    let row_bytes: usize = object.value_types.iter().map(|value_type| value_type.size()).sum();
    let step = ((256 << 10) / row_bytes.max(1)).max(1);
    let mut out = Vec::new();
    for first in (0..rows).step_by(step) {
        let count = step.min(rows - first);
        out.clear();
        out.resize(count * row_bytes, 0);
        let mut place = 0;
        for (column, value_type) in columns.iter().zip(&object.value_types) {
            let size = value_type.size();
            let cells = column.get(first * size..).unwrap_or_default().chunks_exact(size);
            for (row, cell) in out.chunks_exact_mut(row_bytes).zip(cells) {
                if let Some(out) = row.get_mut(place..place + size) {
                    out.copy_from_slice(cell);
                }
            }
            place += size;
        }
        sink.write_all(&out)?;
    }
    Ok(())
}
