//! Plans ([`plan`]) and writes a file: rows are written directly, or through a spool if the bytes before them are known
//! only at the end (the count of a `var` dimension, the length of a CBOR byte string).

use std::collections::HashSet;
use std::io::Write;
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
use crate::formats::{WriteOptions, WritePlan, Writer, Written, planned_as, relaxed};
use crate::hub::relax::Rules;
use crate::hub::type_text::print_field;
use crate::hub::{Effect, Form, Plan, native, same_fields, shape};
use crate::limits::{Budget, Limits};
use crate::sink::Sink;
use crate::source::Spool;
use crate::wire::varint;

/// The size of the output buffer.
const FLUSH_BYTES: usize = 256 << 10;

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
    sink: Sink,
    /// Rows that cannot be written yet.
    spool: Option<Spool>,
    /// All rows, if they must be reordered.
    stored: Option<Reserved<u8>>,
    dialect: Dialect,
    ty: Type,
    layout: RowLayout,
    schema: SchemaRef,
    rows: u64,
    /// How many rows there must be.
    expected: Option<u64>,
    /// Reused from batch to batch.
    buffer: Vec<u8>,
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
            sink,
            spool: None,
            stored,
            dialect,
            ty,
            layout,
            schema,
            rows: 0,
            expected,
            buffer: Vec::new(),
            limits,
            budget,
        };
        match writer.head(expected) {
            Some(head) => writer.sink.write_all(&head)?,
            None => writer.spool = Some(Spool::new(&writer.budget)),
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

    fn put(&mut self, bytes: &[u8]) -> Result<()> {
        match (&mut self.stored, &mut self.spool) {
            (Some(stored), _) => {
                stored.extend_from_slice(bytes)?;
            }
            (None, Some(spool)) => spool.write_all(bytes)?,
            (None, None) => self.sink.write_all(bytes)?,
        }
        Ok(())
    }

    fn misfit(&self, row: usize, column: usize, why: &str) -> Error {
        let name = self.schema.fields().get(column).map_or("", |field| field.name());
        Error::lossy(format!("row {}, column {name:?}: {why}", self.rows + row as u64))
    }

    fn check_misfits(&self, packs: &[Pack]) -> Result<()> {
        let firsts = packs.iter().enumerate();
        let first = firsts.filter_map(|(column, pack)| Some((pack.misfits.first_key_value()?, column))).min();
        match first {
            Some(((row, why), column)) => Err(self.misfit(*row, column, why)),
            None => Ok(()),
        }
    }

    fn write_fixed(&mut self, columns: &[ArrayRef], count: usize) -> Result<()> {
        let types = self.layout.columns();
        let packs =
            types.iter().zip(columns).map(|(ty, column)| pack(ty, column)).collect::<Result<Vec<_>>>()?;
        self.check_misfits(&packs)?;
        if let [pack] = packs.as_slice() {
            return self.put(&pack.bytes);
        }
        let types: Vec<&Type> = types.iter().collect();
        if self.stored.is_none() && self.spool.is_none() {
            let mut joined = Ok(());
            self.sink.append(|out| joined = join_packs(&types, &packs, count, out))?;
            return joined;
        }
        let mut buffer = std::mem::take(&mut self.buffer);
        buffer.clear();
        join_packs(&types, &packs, count, &mut buffer)?;
        let put = self.put(&buffer);
        self.buffer = buffer;
        put
    }

    fn write_rows(&mut self, columns: &[ArrayRef], count: usize) -> Result<()> {
        let types = self.layout.columns();
        let encoders: Vec<Encoder> = types
            .iter()
            .zip(columns)
            .map(|(ty, column)| Encoder::new(ty, column, &self.limits))
            .collect::<Result<_>>()?;
        let mut buffer = std::mem::take(&mut self.buffer);
        buffer.clear();
        for row in 0..count {
            for (column, encoder) in encoders.iter().enumerate() {
                encoder.write(row, &mut buffer).map_err(|error| match error.kind() {
                    crate::ErrorKind::Lossy => self.misfit(row, column, error.message()),
                    _ => error,
                })?;
            }
            if buffer.len() >= FLUSH_BYTES {
                self.put(&buffer)?;
                buffer.clear();
            }
        }
        self.put(&buffer)?;
        self.buffer = buffer;
        Ok(())
    }

    fn write_batch(&mut self, rows: &RecordBatch) -> Result<()> {
        let count = rows.num_rows();
        let total = self.rows + count as u64;
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
        match self.layout.row.fixed_size() {
            Some(_) => self.write_fixed(&columns, count)?,
            None => self.write_rows(&columns, count)?,
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
            let ordered = to_storage_order(of, axis, &stored, 1);
            match &mut self.spool {
                Some(spool) => spool.write_all(&ordered)?,
                None => self.sink.write_all(&ordered)?,
            }
        }
        if let Some(spool) = self.spool.take() {
            self.finish_spool(spool)?;
        }
        let mut written = Written::new(self.rows, 0);
        if self.dialect == Dialect::Raw {
            written.notes.push(format!("the file holds no type; it is `{}`", self.ty));
        }
        written.bytes = self.sink.finish()?;
        Ok(written)
    }

    fn finish_spool(&mut self, mut spool: Spool) -> Result<()> {
        if self.dialect == Dialect::Cbor && !cbor::holds_data(&self.ty) {
            let mut data = Vec::new();
            self.budget.check(spool.len())?;
            spool.copy_to(&mut data)?;
            let mut out = Vec::new();
            cbor::write_native_data(&self.ty, &data, &self.limits, &mut out)?;
            return Ok(self.sink.write_all(&out)?);
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
        self.sink.write_all(&head)?;
        Ok(spool.copy_to(&mut self.sink)?)
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
