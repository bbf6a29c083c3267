//! Sparse rows as coordinate entries, dense rows as an array.
//!
//! The numbers of rows and entries in the size line are known only at the end. The comment line before it is
//! padded, so that the size line can be patched without moving the entries.

use std::convert::Infallible;
use std::io::Write;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, Schema, SchemaRef};

use super::INFO;
use super::entries::{EntryPrinter, Numbers, Pieces, lossy, mismatch};
use super::layout::MarketField;
use super::line::Lines;
use crate::control::{Control, Spare};
use crate::error::{Context, Hint, Result};
use crate::formats::column_major::ColumnMajor;
use crate::formats::{NULLS, WriteOptions, WritePlan, Writer, Written, planned, relaxed};
use crate::hub::matrix::{SparseRows, value_field};
use crate::hub::relax::Rules;
use crate::hub::type_text::print_field;
use crate::hub::{Effect, Form, LossKind, Plan, native, relax, shape};
use crate::limits::Budget;
use crate::sink::Sink;
use crate::source::Spool;

/// Bytes of the comment line and the size line together: a `%`, two newlines and three numbers fit.
const SIZE_BYTES: usize = 2 + 3 * 20 + 3;
/// Text is written in pieces of this size.
const TEXT_BYTES: usize = 256 << 10;

/// The field of the banner for the values, and the effect on them.
fn field_of(schema: &Schema) -> Result<(MarketField, Effect), String> {
    use DataType::*;
    let value = match Form::of(schema) {
        Form::Dense | Form::Sparse => shape::matrix_value_type(schema).unwrap_or(Null),
        _ => return Err("Matrix Market holds matrices only".to_owned()),
    };
    let pattern = native::of(schema, INFO.id).is_some_and(|native| {
        native.get("field").and_then(|field| field.as_str()) == Some(MarketField::Pattern.word())
    });
    let (kind, effect) = match &value {
        Int8 if pattern && Form::of(schema) == Form::Sparse => {
            (MarketField::Pattern, Effect::checked(LossKind::Range).because("every entry must be 1"))
        }
        Float64 => (MarketField::Real, Effect::exact()),
        Float16 | Float32 => (MarketField::Real, Effect::widened()),
        Int64 => (MarketField::Integer, Effect::exact()),
        UInt64 => {
            (MarketField::Unsigned, Effect::exact().because("a field that SciPy has added to the format"))
        }
        Int8 | Int16 | Int32 | UInt8 | UInt16 | UInt32 | Boolean => (MarketField::Integer, Effect::widened()),
        FixedSizeList(item, 2) if *item.data_type() == Float64 => (MarketField::Complex, Effect::exact()),
        FixedSizeList(item, 2) if *item.data_type() == Float32 => (MarketField::Complex, Effect::widened()),
        _ => return Err("Matrix Market holds numbers only".to_owned()),
    };
    if value_field(schema).is_some_and(Field::is_nullable) {
        let nulls = relax::no_nulls(&value, "Matrix Market has no nulls");
        return Ok((kind, effect.and(nulls)));
    }
    Ok((kind, effect))
}

/// The effect of writing rows of this schema on each field, and the writer.
pub(super) fn plan(schema: &SchemaRef, options: &WriteOptions) -> Result<Box<dyn WritePlan>> {
    options.options.word(NULLS.key, &["nan"])?;
    let (steps, kind) = steps(schema);
    let (schema, options) = (Arc::clone(schema), options.clone());
    Ok(planned(steps, move |sink| {
        let writer = MarketWriter::create(sink, &schema, kind, &options).in_format(INFO.id)?;
        let rules = Rules { nan_for_null: true, ..Rules::default() };
        Ok(relaxed(Box::new(writer), rules, &options))
    }))
}

/// The effect of writing on the matrix, and the field of the banner, if there is one.
fn steps(schema: &Schema) -> (Plan, Option<MarketField>) {
    let mut plan = Plan::default();
    let name = schema.fields().first().map(|field| field.name().clone()).unwrap_or_default();
    let from = schema.fields().first().map(|field| print_field(field)).unwrap_or_default();
    match field_of(schema) {
        Ok((kind, effect)) => {
            let layout = if Form::of(schema) == Form::Sparse { "coordinate" } else { "array" };
            plan.step(name, from, format!("{layout} {}", kind.word()), effect);
            (plan, Some(kind))
        }
        Err(why) => {
            plan.step(name, from, "mtx", Effect::impossible(why));
            (plan, None)
        }
    }
}

/// Writes a file.
struct MarketWriter {
    sink: Sink,
    /// Memory of printed entries.
    texts: Spare<Lines>,
    kind: MarketField,
    body: Body,
    size_offset: u64,
    declared_rows: Option<u64>,
    cols: u64,
    rows: u64,
    entries: u64,
    budget: Budget,
    control: Control,
}

enum Body {
    Coordinate,
    /// Values row by row, spooled until all rows are written.
    Array(Spool),
}

impl MarketWriter {
    fn create(
        mut sink: Sink,
        schema: &SchemaRef,
        kind: Option<MarketField>,
        options: &WriteOptions,
    ) -> Result<MarketWriter> {
        let kind = kind.ok_or_else(mismatch)?;
        let sparse = Form::of(schema) == Form::Sparse;
        let layout = if sparse { "coordinate" } else { "array" };
        if sparse {
            sink.enable_patching()?;
        }
        let banner = format!("{} matrix {layout} {} general\n", super::layout::BANNER, kind.word());
        sink.write_all(banner.as_bytes())?;
        let size_offset = sink.position();
        if sparse {
            sink.write_all(&[b' '; SIZE_BYTES])?;
        }
        Ok(MarketWriter {
            sink,
            texts: Spare::default(),
            kind,
            body: if sparse { Body::Coordinate } else { Body::Array(Spool::new(&options.budget)) },
            size_offset,
            declared_rows: shape::matrix_rows(schema),
            cols: shape::matrix_cols(schema).unwrap_or(0),
            rows: 0,
            entries: 0,
            budget: options.budget.clone(),
            control: options.control.clone(),
        })
    }

    /// Entries are printed in pieces, side by side, and written in order.
    fn write_coordinate(&mut self, row: &ArrayRef) -> Result<()> {
        let list = SparseRows::of(row, self.rows)?;
        if list.entries().is_empty() {
            return Ok(());
        }
        let printer = EntryPrinter {
            values: Numbers::of(&list.values, self.kind)?,
            list: &list,
            first: self.rows,
            cols: self.cols,
            kind: self.kind,
        };
        let (texts, sink) = (&self.texts, &mut self.sink);
        let mut pieces = Pieces::new(&list).peekable();
        while pieces.peek().is_some() {
            let print = |piece| {
                let mut lines = texts.take();
                printer.print(&piece, &mut lines)?;
                Ok(lines)
            };
            let write = |mut lines: Lines| {
                sink.write_all(lines.text())?;
                lines.clear();
                texts.keep(lines);
                Ok(())
            };
            let some = pieces.by_ref().take(self.control.pieces()).collect();
            self.control.each_in_order(some, print, write)?;
        }
        self.entries += list.entries().len() as u64;
        Ok(())
    }

    /// Keeps dense values as 8 or 16 bytes each.
    fn write_array(&mut self, row: &ArrayRef) -> Result<()> {
        let list = row.as_fixed_size_list_opt().ok_or_else(mismatch)?;
        let width = usize::try_from(list.value_length()).unwrap_or(0);
        if let Some(null) = (0..list.len()).find(|index| list.is_null(*index)) {
            return Err(lossy(self.rows + null as u64, "Matrix Market has no null rows"));
        }
        let start = usize::try_from(list.value_offset(0)).unwrap_or(0);
        let values = Numbers::of(&list.values().slice(start, list.len() * width), self.kind)?;
        let Body::Array(spool) = &mut self.body else { return Err(mismatch()) };
        let mut bytes = Vec::new();
        for index in 0..list.len() * width {
            let row = self.rows + (index / width.max(1)) as u64;
            values.store(index, &mut bytes).map_err(|why| {
                let error = lossy(row, why);
                if self.kind == MarketField::Real {
                    error.hint(Hint::Option("nulls=nan".into()))
                } else {
                    error
                }
            })?;
        }
        Ok(spool.write_all(&bytes)?)
    }

    fn finish_array(&mut self) -> Result<()> {
        let Body::Array(spool) = std::mem::replace(&mut self.body, Body::Coordinate) else { return Ok(()) };
        let source = spool.into_source("spool")?;
        self.sink.write_all(format!("{} {}\n", self.rows, self.cols).as_bytes())?;
        let item_bytes = if self.kind == MarketField::Complex { 16 } else { 8 };
        // Adjacent rows are the columns of the transposed matrix.
        let matrix =
            ColumnMajor { source, offset: 0, rows: self.cols, cols: self.rows, item_bytes, order: None };
        let band = matrix.band_rows(&self.budget);
        let (mut next, mut lines) = (0, Lines::default());
        while next < self.cols && self.rows > 0 {
            let end = self.cols.min(next.saturating_add(band));
            let bytes = matrix.read(next..end, &self.budget)?;
            for item in bytes.chunks_exact(usize::try_from(item_bytes).unwrap_or(8)) {
                let part = |at: usize| {
                    item.get(at..).and_then(|bytes| bytes.first_chunk()).copied().unwrap_or_default()
                };
                let Ok(()) = lines.add::<Infallible>(|line| {
                    match self.kind {
                        MarketField::Integer => line.signed(i64::from_le_bytes(part(0))),
                        MarketField::Unsigned => line.unsigned(u64::from_le_bytes(part(0))),
                        MarketField::Complex => {
                            line.float(f64::from_le_bytes(part(0)));
                            line.byte(b' ');
                            line.float(f64::from_le_bytes(part(8)));
                        }
                        MarketField::Real | MarketField::Pattern => line.float(f64::from_le_bytes(part(0))),
                    }
                    line.byte(b'\n');
                    Ok(())
                });
                if lines.text().len() >= TEXT_BYTES {
                    self.sink.write_all(lines.text())?;
                    lines.clear();
                }
            }
            next = end;
        }
        Ok(self.sink.write_all(lines.text())?)
    }
}

impl Writer for MarketWriter {
    fn write(&mut self, rows: &RecordBatch) -> Result<()> {
        let [column] = rows.columns() else { return Err(mismatch()) };
        match self.body {
            Body::Coordinate => self.write_coordinate(column)?,
            Body::Array(_) => self.write_array(column)?,
        }
        self.rows += rows.num_rows() as u64;
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> Result<Written> {
        let written = self.rows;
        if let Body::Coordinate = self.body {
            // Empty trailing rows may be missing from the stream.
            let rows = self.rows.max(self.declared_rows.unwrap_or(0));
            let size = format!("{rows} {} {}\n", self.cols, self.entries);
            let slack = SIZE_BYTES.saturating_sub(2 + size.len());
            let lines = format!("%{}\n{size}", " ".repeat(slack));
            self.sink.patch(self.size_offset, lines.as_bytes())?;
        } else {
            self.finish_array()?;
        }
        Ok(Written::new(written, self.sink.finish()?))
    }
}
