//! Plans ([`plan`]) and writes a file: rows are written directly, or through a spool if the bytes before them are known
//! only at the end (the count of a `var` dimension, the length of a CBOR byte string).

use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::{Schema, SchemaRef};

use super::ID;
use super::cbor;
use super::encode::{Encoder, plain_type};
use super::layout::{Dialect, RowCount, RowLayout};
use super::pack::{Pack, join_packs, pack};
use super::schema::{Derived, checks_of, with_flags, with_ticks};
use super::types::Type;
use super::unpack::to_storage_order;
use crate::cursor::Reserved;
use crate::error::{Context, Error, Result};
use crate::formats::row_output::RowOutput;
use crate::formats::{WriteOptions, WritePlan, Writer, Written, planned_as, relaxed};
use crate::hub::relax::Rules;
use crate::hub::type_text::print_field;
use crate::hub::{Effect, Form, Plan, native, same_fields, shape};
use crate::limits::{Budget, Limits};
use crate::sink::Sink;
use crate::source::Spool;
use crate::wire::varint;

/// Plans a file of rows of this schema.
pub(super) fn plan(schema: &SchemaRef, options: &WriteOptions) -> Result<Box<dyn WritePlan>> {
    let found = plan_type(schema, options.type_text.as_deref(), options.row_count, wants_flags(options)?);
    let by_name = || options.name.as_deref().and_then(Dialect::by_name).unwrap_or(Dialect::Array);
    let dialect = Dialect::named(options.dialect.as_deref()).in_format(ID)?.unwrap_or_else(by_name);
    let (schema, options, ty) = (Arc::clone(schema), options.clone(), found.ty);
    let by_name = (dialect == Dialect::Cbor).then_some("cbor");
    Ok(planned_as(by_name, found.plan, move |sink| {
        let writer = DyndWriter::create(sink, schema, (dialect, ty), &options).in_format(ID)?;
        let rules = Rules { time_step: Some(100), whole_days: true, ..Rules::default() };
        Ok(relaxed(Box::new(writer), rules, &options))
    }))
}

/// A type for a schema, and the effect on each field.
pub(super) struct Planned {
    pub(super) ty: Option<Type>,
    pub(super) plan: Plan,
}

/// The type for rows of `schema`: the one `given`, else the native one if it matches, else a derived one.
pub(super) fn plan_type(schema: &Schema, given: Option<&str>, row_count: Option<u64>, flag: bool) -> Planned {
    let mut plan = Plan::default();
    let fits = |ty: &Type| {
        let count_fits = match (RowLayout::of(ty).rows, row_count) {
            (RowCount::Fixed(count), Some(rows)) => count == rows,
            (RowCount::One, Some(rows)) => rows == 1,
            _ => true,
        };
        count_fits
            && ty.is_concrete()
            && ty.to_schema().is_ok_and(|own| {
                let same = |own: &Schema| same_fields(own.fields(), schema.fields(), |_, _| true);
                same(&own) || same(&with_ticks(&own))
            })
    };
    // The given type describes the input; it is also used for the output if it matches these rows.
    let given = given.and_then(|text| text.parse::<Type>().ok()).filter(fits);
    let native = || native::of_sliced(schema, ID).and_then(|native| native.as_str()?.parse().ok());
    let known = given.or_else(|| {
        let native = native().map(|ty: Type| match native::is_sliced(schema) {
            true => with_row_count(ty, row_count),
            false => ty,
        });
        native.filter(fits)
    });
    if let Some(ty) = known {
        let ty = if flag { with_flags(&ty) } else { ty };
        for (field, column) in schema.fields().iter().zip(RowLayout::of(&ty).columns()) {
            plan.step(field.name(), print_field(field), column.to_string(), checks_of(&column));
        }
        return Planned { ty: Some(ty), plan };
    }
    shape::plan_plain_table(schema, &mut plan);
    let mut columns: Vec<(String, Type)> = Vec::new();
    let mut names = HashSet::new();
    for field in schema.fields() {
        let mut derived = Derived { flag, effect: Effect::exact() };
        let ty = derived.field(field).and_then(|ty| {
            if names.insert(field.name()) {
                Ok(ty)
            } else {
                Err("a struct holds each field name once".to_owned())
            }
        });
        match ty {
            Ok(ty) => {
                plan.step(field.name(), print_field(field), ty.to_string(), derived.effect);
                columns.push((field.name().clone(), ty));
            }
            Err(why) => {
                let from = print_field(field);
                plan.step(field.name(), from, "a datashape", Effect::impossible(why));
            }
        }
    }
    if columns.len() < schema.fields().len() {
        return Planned { ty: None, plan };
    }
    let ty = match (Form::of(schema), columns.len()) {
        (Form::Array, 1) => columns.pop().map(|(_, ty)| match row_count.filter(is_dimension) {
            Some(count) => Type::Fixed(count, Box::new(ty)),
            None => Type::Var(Box::new(ty)),
        }),
        (Form::Value, 1) => columns.pop().map(|(name, ty)| {
            if matches!(ty, Type::Fixed(..) | Type::Var(_)) {
                let effect = Effect::widened().because("comes back as an array of its outermost dimension");
                plan.step(&name, "a single value", "an array", effect);
            }
            ty
        }),
        (Form::Dense, 1) => columns.pop().map(|(_, ty)| match shape::matrix_rows(schema).or(row_count) {
            Some(rows) if row_count.is_none_or(|count| count == rows) && is_dimension(&rows) => {
                let matrix = Type::Fixed(rows, Box::new(ty));
                match shape::is_column_major(schema) {
                    true => Type::Storage { of: Box::new(matrix), axis: vec![1, 0] },
                    false => matrix,
                }
            }
            _ => Type::Var(Box::new(ty)),
        }),
        _ => Some(Type::Var(Box::new(Type::Struct(columns)))),
    };
    Planned { ty, plan }
}

/// Whether a dimension may have this size.
fn is_dimension(size: &u64) -> bool {
    i64::try_from(*size).is_ok()
}

/// The type of a selection of the rows of `ty`.
fn with_row_count(ty: Type, rows: Option<u64>) -> Type {
    match (ty, rows) {
        (Type::Fixed(_, of), Some(rows)) => Type::Fixed(rows, of),
        (Type::Fixed(_, of), None) => Type::Var(of),
        (Type::Storage { of, axis }, Some(_)) => {
            Type::Storage { of: Box::new(with_row_count(*of, rows)), axis }
        }
        (Type::Storage { of, .. }, None) => with_row_count(*of, None),
        (Type::Pointer(of), _) => Type::Pointer(Box::new(with_row_count(*of, rows))),
        (other, _) => other,
    }
}

/// A file being written.
struct DyndWriter {
    /// Rows are spooled as long as they cannot be written.
    output: RowOutput,
    /// All rows, if they must be reordered.
    stored: Option<Reserved<u8>>,
    dialect: Dialect,
    ty: Type,
    layout: RowLayout,
    schema: SchemaRef,
    rows: u64,
    /// How many rows there must be.
    expected: Option<u64>,
    limits: Limits,
    budget: Budget,
}

impl DyndWriter {
    /// Starts a file of the type that was planned.
    fn create(
        sink: Sink,
        schema: SchemaRef,
        (dialect, ty): (Dialect, Option<Type>),
        options: &WriteOptions,
    ) -> Result<Self> {
        let ty = ty.ok_or_else(|| Error::unsupported("these rows have no datashape"))?;
        let layout = match Form::of(&schema) {
            Form::Value => RowLayout::whole(&ty),
            _ => RowLayout::of(&ty),
        };
        let expected = match layout.rows {
            RowCount::Fixed(rows) => Some(rows),
            RowCount::One => Some(1),
            RowCount::Var => options.row_count,
        };
        let budget = options.budget.clone();
        let stored = layout.stored.as_ref().map(|_| Reserved::new(&budget));
        let limits = options.budget.limits().clone();
        let mut writer = DyndWriter {
            output: RowOutput::new(sink, &options.control),
            stored,
            dialect,
            ty,
            layout,
            schema,
            rows: 0,
            expected,
            limits,
            budget,
        };
        match writer.head(expected) {
            Some(head) => writer.output.write(&head)?,
            None => writer.output.spool = Some(Spool::new(&writer.budget)),
        }
        Ok(writer)
    }

    /// The bytes before the rows, if the number of rows determines them.
    fn head(&self, rows: Option<u64>) -> Option<Vec<u8>> {
        let mut head = Vec::new();
        let rows = match (rows, self.layout.rows) {
            (None, RowCount::Var) => return None,
            (rows, _) => rows.unwrap_or(1),
        };
        match self.dialect {
            Dialect::Raw => {}
            Dialect::Array => {
                let text = self.ty.to_string();
                varint::write(text.len() as u64, &mut head);
                head.extend_from_slice(text.as_bytes());
            }
            Dialect::Cbor if cbor::holds_data(&self.ty) => {
                let bytes = self.layout.row.fixed_size()?.checked_mul(rows)?;
                let count = if self.layout.rows == RowCount::Var { varint::size(rows) } else { 0 };
                cbor::write_data_head(&self.ty, bytes.checked_add(count)?, &mut head);
            }
            Dialect::Cbor => return None,
        }
        if self.layout.rows == RowCount::Var {
            varint::write(rows, &mut head);
        }
        Some(head)
    }

    fn write_batch(&mut self, rows: &RecordBatch) -> Result<()> {
        let total = self.rows + rows.num_rows() as u64;
        if self.expected.is_some_and(|expected| total > expected) {
            return Err(self.wrong_count(total));
        }
        let plain = |column: &ArrayRef| -> Result<ArrayRef> {
            let data_type = plain_type(column.data_type());
            match data_type == *column.data_type() {
                true => Ok(column.clone()),
                false => Ok(arrow_cast::cast(column, &data_type)?),
            }
        };
        let columns: Vec<ArrayRef> = rows.columns().iter().map(plain).collect::<Result<_>>()?;
        let types = self.layout.columns();
        let batch = Batch { types: &types, columns: &columns, schema: &self.schema, first: self.rows };
        let is_fixed = self.layout.row.fixed_size().is_some();
        let encoders = if is_fixed { Vec::new() } else { batch.encoders(&self.limits)? };
        let encode = |range: Range<usize>, out: &mut Vec<u8>| match is_fixed {
            true => batch.write_fixed(range, out),
            false => batch.write(&encoders, range, out),
        };
        let all = 0..rows.num_rows();
        match &mut self.stored {
            // The bytes of a single column are those of the rows.
            None if is_fixed && columns.len() == 1 => {
                batch.packs(&all)?.iter().try_for_each(|pack| self.output.write(&pack.bytes))?;
            }
            None => self.output.write_rows(rows, 0, encode)?,
            Some(stored) => {
                let mut bytes = Vec::new();
                encode(all, &mut bytes)?;
                stored.extend_from_slice(&bytes)?;
            }
        }
        self.rows = total;
        Ok(())
    }

    #[cold]
    fn wrong_count(&self, rows: u64) -> Error {
        let expected = self.expected.unwrap_or(0);
        Error::lossy(format!("`{}` holds {expected} rows, found {rows}", self.ty))
    }

    fn finish_all(mut self) -> Result<Written> {
        if self.expected.is_some_and(|expected| expected != self.rows) {
            return Err(self.wrong_count(self.rows));
        }
        if let (Some(stored), Some((of, axis))) = (self.stored.take(), &self.layout.stored) {
            self.output.write(&to_storage_order(of, axis, &stored, 1))?;
        }
        if let Some(spool) = self.output.spool.take() {
            self.finish_spool(spool)?;
        }
        let mut written = Written::new(self.rows, 0);
        if self.dialect == Dialect::Raw {
            written.notes.push(format!("the file holds no type; it is `{}`", self.ty));
        }
        written.bytes = self.output.finish()?;
        Ok(written)
    }

    fn finish_spool(&mut self, mut spool: Spool) -> Result<()> {
        if self.dialect == Dialect::Cbor && !cbor::holds_data(&self.ty) {
            let mut data = Vec::new();
            self.budget.check(spool.len())?;
            spool.copy_to(&mut data)?;
            let mut out = Vec::new();
            cbor::write_native_data(&self.ty, &data, &self.limits, &mut out)?;
            return self.output.write(&out);
        }
        let mut head = Vec::new();
        if self.dialect == Dialect::Cbor {
            let count = if self.layout.rows == RowCount::Var { varint::size(self.rows) } else { 0 };
            cbor::write_data_head(&self.ty, spool.len() + count, &mut head);
            if self.layout.rows == RowCount::Var {
                varint::write(self.rows, &mut head);
            }
        } else {
            head = self.head(Some(self.rows)).unwrap_or_default();
        }
        self.output.write(&head)?;
        Ok(spool.copy_to(&mut self.output.sink)?)
    }
}

/// The rows of a batch, from which any range can be encoded.
struct Batch<'a> {
    types: &'a [Type],
    columns: &'a [ArrayRef],
    schema: &'a Schema,
    /// The number of the first row in the file.
    first: u64,
}

impl Batch<'_> {
    fn encoders(&self, limits: &Limits) -> Result<Vec<Encoder>> {
        let columns = self.types.iter().zip(self.columns);
        columns.map(|(ty, column)| Encoder::new(ty, column, limits)).collect()
    }

    /// Appends rows of any size, value by value.
    fn write(&self, encoders: &[Encoder], range: Range<usize>, out: &mut Vec<u8>) -> Result<()> {
        for row in range {
            for (column, encoder) in encoders.iter().enumerate() {
                encoder.write(row, out).map_err(|error| match error.kind() {
                    crate::ErrorKind::Lossy => self.misfit(row, column, error.message()),
                    _ => error,
                })?;
            }
        }
        Ok(())
    }

    /// The bytes of the columns of rows of a fixed size.
    fn packs(&self, range: &Range<usize>) -> Result<Vec<Pack>> {
        let slice = |(ty, column): (&Type, &ArrayRef)| pack(ty, &column.slice(range.start, range.len()));
        let packs = self.types.iter().zip(self.columns).map(slice).collect::<Result<Vec<Pack>>>()?;
        let firsts = packs.iter().enumerate();
        let first = firsts.filter_map(|(column, pack)| Some((pack.misfits.first_key_value()?, column))).min();
        match first {
            Some(((row, why), column)) => Err(self.misfit(range.start + row, column, why)),
            None => Ok(packs),
        }
    }

    /// Appends rows of a fixed size: the bytes of their columns, joined row by row.
    fn write_fixed(&self, range: Range<usize>, out: &mut Vec<u8>) -> Result<()> {
        join_packs(&self.types.iter().collect::<Vec<_>>(), &self.packs(&range)?, range.len(), out)
    }

    fn misfit(&self, row: usize, column: usize, why: &str) -> Error {
        let name = self.schema.fields().get(column).map_or("", |field| field.name());
        Error::lossy(format!("row {}, column {name:?}: {why}", self.first + row as u64))
    }
}

impl Writer for DyndWriter {
    fn write(&mut self, rows: &RecordBatch) -> Result<()> {
        self.write_batch(rows).in_format(ID)
    }

    fn finish(self: Box<Self>) -> Result<Written> {
        self.finish_all().in_format(ID)
    }
}

/// Whether every option gets a flag byte.
fn wants_flags(options: &WriteOptions) -> Result<bool> {
    Ok(options.options.word("options", &["sentinel", "flag"])? == Some("flag"))
}
