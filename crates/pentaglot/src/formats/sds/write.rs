//! Writes rows as a structure. Values are kept in a scratch file until all are known, since headers come
//! first.

use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::{DataType, Schema, SchemaRef};
use pentaglot_succinct::Supports;

use super::ID;
use super::build::{self, Values};
use super::detect::Wanted;
use super::schema::{Input, Native, Target, input_of};
use super::tables::NATIVE as GFA;
use super::type_text::SdsKind;
use crate::error::{self, Error, ErrorKind, Result};
use crate::formats::{WriteOptions, WritePlan, Writer, Written, planned, planned_as, side_index};
use crate::hub::type_text::print_field;
use crate::hub::{Effect, Form, LossKind, Plan, extension, native, shape};
use crate::limits::{Budget, Reservation};
use crate::sink::Sink;
use crate::source::Packing;

/// What a structure is built from, in messages.
fn content_of(kind: SdsKind) -> &'static str {
    match kind {
        SdsKind::Bit | SdsKind::Raw | SdsKind::Sparse | SdsKind::RunLength => {
            "truth values, positions or runs (start, length)"
        }
        SdsKind::Pairs => "two columns of integers",
        SdsKind::Items => "as many columns of integers as its items have elements",
        SdsKind::Element => "one integer",
        SdsKind::String | SdsKind::Bytes => "one column of integers, or one row of text or bytes",
        _ => "one column of integers",
    }
}

/// The kind that is written: the requested one, otherwise the one it was read as, otherwise by the type of
/// the rows.
fn target(schema: &Schema, options: &WriteOptions) -> Result<Target> {
    let input = input_of(schema).ok_or_else(|| {
        let columns = error::list(schema.fields().iter().map(|field| print_field(field)));
        let held = "one column of truth values, integers, bytes or text, or several of integers";
        Error::unsupported(format!("a structure holds {held}, not {columns}"))
    })?;
    let own = native::of(schema, ID).and_then(|value| Native::from_json(&value));
    let wanted = Wanted { dialect: options.dialect.as_deref(), type_text: options.type_text.as_deref() };
    let given = wanted.given_type(options.budget.limits())?;
    let structure = match &given {
        None => None,
        Some(given) => Some(given.structure().ok_or_else(|| {
            Error::unsupported(format!("one structure of the type {given}, which is several"))
        })?),
    };
    let kind = match (&structure, &options.dialect, &own) {
        (Some((kind, _)), ..) => *kind,
        (None, Some(name), _) => SdsKind::parse(name)?,
        (None, None, Some(own)) => own.kind,
        (None, None, None) => match input {
            Input::Items => {
                let columns = schema.fields().len();
                return Err(Error::unsupported(format!(
                    "items of {columns} elements without a type (sds:[u64*{columns}])"
                )));
            }
            Input::Bits => SdsKind::Bit,
            Input::Numbers => SdsKind::Int,
            Input::Runs => SdsKind::RunLength,
            Input::Pairs => SdsKind::Pairs,
            Input::Text => SdsKind::String,
            Input::Bytes => SdsKind::Bytes,
        },
    };
    let fits = match kind {
        SdsKind::Bit | SdsKind::Raw | SdsKind::Sparse | SdsKind::RunLength => {
            matches!(input, Input::Bits | Input::Numbers | Input::Runs)
        }
        SdsKind::Int
        | SdsKind::Wavelet
        | SdsKind::WaveletCore
        | SdsKind::RunLengthWavelet
        | SdsKind::Vec
        | SdsKind::Option => input == Input::Numbers,
        SdsKind::Pairs => matches!(input, Input::Pairs | Input::Runs),
        SdsKind::Items => {
            let columns = structure.map_or(0, |(_, elements)| elements);
            input == Input::Items && schema.fields().len() as u64 == columns
        }
        SdsKind::Element => input == Input::Numbers && options.row_count.is_none_or(|rows| rows == 1),
        SdsKind::String | SdsKind::Bytes => {
            let one = options.row_count.is_none_or(|rows| rows == 1);
            input == Input::Numbers || matches!(input, Input::Bytes | Input::Text) && one
        }
        SdsKind::Gbz
        | SdsKind::Gbwt
        | SdsKind::Gg
        | SdsKind::GbwtMeta
        | SdsKind::Chains
        | SdsKind::Composite => false,
    };
    if !fits {
        let what = given.map_or_else(|| kind.to_string(), |given| given.to_string());
        return Err(Error::unsupported(format!("sds:{what} holds {}", content_of(kind))));
    }
    let same = own.as_ref().is_some_and(|own| own.kind == kind);
    let mut native = match own {
        Some(own) if same => own,
        // Another structure of the same bits keeps their length.
        Some(own) => Native { universe: own.universe, multiset: own.multiset, ..Native::new(kind) },
        None => Native::new(kind),
    };
    if options.options.get("absent").is_some() {
        return Err(Error::usage("option absent: a single structure has no options"));
    }
    native.universe = options.options.number("universe")?.or(native.universe);
    if let Some(width) = options.options.number("width")? {
        let bad = || Error::usage(format!("option width: expected 1 to 64, found {width}"));
        let width = u32::try_from(width).ok().filter(|width| (1..=64).contains(width));
        native.width = Some(width.ok_or_else(bad)?);
    }
    native.multiset = options.options.bool("multiset")?.unwrap_or(native.multiset);
    let supports = match options.options.word("supports", &["full", "lean"])? {
        Some("lean") => Some(Supports::Lean),
        Some(_) => Some(Supports::Full),
        None => None,
    };
    Ok(Target { native, input, supports })
}

/// Plans a structure, or the lines of a GFA file.
pub(super) fn plan(schema: &SchemaRef, options: &WriteOptions) -> Result<Box<dyn WritePlan>> {
    if is_gfa(options.dialect.as_deref(), options.name.as_deref()) {
        return Ok(plan_gfa(schema));
    }
    let (steps, target) = steps(schema, options)?;
    let (schema, options) = (SchemaRef::clone(schema), options.clone());
    // The bytes of a short text are also those of other kinds: who reads them back must know.
    let kind = target.as_ref().map(|target| target.native.kind);
    let kind = kind.filter(|kind| matches!(kind, SdsKind::String | SdsKind::Bytes)).map(SdsKind::name);
    Ok(planned_as(kind, steps, move |sink| Ok(Box::new(SdsWriter::create(sink, schema, target, &options)?))))
}

/// The effect of writing on each field, and the structure that is written, if there is one.
fn steps(schema: &Schema, options: &WriteOptions) -> Result<(Plan, Option<Target>)> {
    let mut plan = Plan::default();
    let target = match target(schema, options) {
        Ok(target) => target,
        Err(error) if error.kind() == ErrorKind::Unsupported => {
            let columns = error::list(schema.fields().iter().map(|field| print_field(field)));
            plan.step("", columns, "sds", Effect::impossible(error.message()));
            return Ok((plan, None));
        }
        Err(error) => return Err(error),
    };
    let kind = target.native.kind;
    for field in schema.fields() {
        let positions = target.input == Input::Numbers
            && matches!(kind, SdsKind::Bit | SdsKind::Raw | SdsKind::Sparse | SdsKind::RunLength);
        let bytes = matches!(kind, SdsKind::String | SdsKind::Bytes);
        let one = kind == SdsKind::Element && Form::of(schema) != Form::Value;
        let mut effect = match field.data_type() {
            DataType::UInt8 if kind == SdsKind::Bytes => Effect::widened().because("one value of all bytes"),
            _ if bytes && target.input == Input::Numbers => {
                Effect::checked(LossKind::Range).because("numbers up to 255; of a string, UTF-8")
            }
            _ if kind == SdsKind::String && target.input == Input::Bytes => {
                Effect::checked(LossKind::Range).because("bytes that are not UTF-8 are an error")
            }
            _ if bytes && Form::of(schema) != Form::Value => {
                Effect::checked(LossKind::Dropped).because("a second row is an error")
            }
            DataType::UInt8 | DataType::UInt16 | DataType::UInt32 => Effect::widened(),
            kind if kind.is_signed_integer() => {
                Effect::checked(LossKind::Range).because("a negative number is an error")
            }
            _ => Effect::exact(),
        };
        if positions {
            effect = effect.and(Effect::checked(LossKind::Order).because("positions in ascending order"));
        }
        // Pairs come back as tuples.
        if extension::name(field) != Some(extension::TUPLE) {
            effect = effect.and(extension::dropped(field));
        }
        if matches!(field.data_type(), DataType::LargeUtf8 | DataType::LargeBinary) {
            effect = effect.and(Effect::widened());
        }
        if matches!(field.data_type(), DataType::Utf8 | DataType::LargeUtf8) && kind == SdsKind::Bytes {
            effect = effect.and(Effect::widened().because("comes back as bytes"));
        }
        if target.input == Input::Bits && matches!(kind, SdsKind::Sparse | SdsKind::RunLength) {
            effect = effect.and(Effect::widened().because("comes back as the positions or runs of its ones"));
        }
        if one {
            effect = effect.and(Effect::checked(LossKind::Dropped).because("a second row is an error"));
        }
        let has_name = schema.fields().len() == 1 && Form::of(schema) == Form::Table;
        if has_name && field.name() != shape::ITEM_FIELD {
            plan.step(
                "",
                "a table of 1 column",
                kind.name(),
                Effect::widened().because(shape::NAMES_NOT_KEPT),
            );
        } else if has_name
            || Form::of(schema) == Form::Value && matches!(target.input, Input::Bits | Input::Numbers)
        {
            effect = effect.and(Effect::widened().because("comes back as an array"));
        }
        let holds_nulls = match field.data_type() {
            DataType::Struct(fields) => fields.iter().any(|field| field.is_nullable()),
            _ => false,
        };
        if field.is_nullable() || holds_nulls {
            effect = effect.and(Effect::strict().because("a null is an error"));
        }
        plan.step(field.name(), print_field(field), kind.name(), effect);
    }
    Ok((plan, Some(target)))
}

pub(super) struct SdsWriter {
    sink: Sink,
    schema: SchemaRef,
    target: Target,
    budget: Budget,
    rows: u64,
    values: Values,
    /// The single value of bytes or text.
    bytes: Option<Vec<u8>>,
    bytes_held: Reservation,
}

impl SdsWriter {
    /// Starts the structure that was planned.
    fn create(
        mut sink: Sink,
        schema: SchemaRef,
        target: Option<Target>,
        options: &WriteOptions,
    ) -> Result<Self> {
        let target = target.ok_or_else(|| Error::unsupported("these rows are not a structure"))?;
        side_index::prepare(&mut sink)?;
        let budget = options.budget.clone();
        let (values, bytes_held) = (Values::new(&target, &budget)?, budget.reservation());
        Ok(SdsWriter { sink, schema, target, budget, rows: 0, values, bytes: None, bytes_held })
    }

    /// Integers of any width as elements; nulls and negative numbers are errors that name row and column.
    fn numbers(&self, column: &ArrayRef, name: &str) -> Result<Vec<u64>> {
        let refuse = |index: usize, what: &str| {
            let row = self.rows + index as u64;
            Error::lossy(format!("row {row}, column {name:?}: {what} does not fit an unsigned number"))
        };
        if let Some(index) = (0..column.len()).find(|index| column.is_null(*index)) {
            return Err(refuse(index, "a null"));
        }
        let wide = arrow_cast::cast(column, &DataType::UInt64)?;
        if let Some(index) = (0..wide.len()).find(|index| wide.is_null(*index)) {
            return Err(refuse(index, "a number below 0"));
        }
        Ok(wide.as_primitive::<UInt64Type>().values().to_vec())
    }

    fn bits(&mut self, column: &ArrayRef, name: &str) -> Result<()> {
        let bits = column.as_boolean();
        if let Some(index) = (0..bits.len()).find(|index| bits.is_null(*index)) {
            let row = self.rows + index as u64;
            return Err(Error::lossy(format!("row {row}, column {name:?}: a null is not a bit")));
        }
        self.values.push_bits(bits.values())
    }

    /// Numbers that are the bytes of one value.
    fn push_bytes(&mut self, numbers: Vec<u64>) -> Result<()> {
        self.bytes_held.grow(2 * numbers.len() as u64)?;
        let bytes = self.bytes.get_or_insert_default();
        for (number, row) in numbers.into_iter().zip(self.rows..) {
            let byte = u8::try_from(number);
            bytes.push(byte.map_err(|_| Error::lossy(format!("row {row}: {number} does not fit a byte")))?);
        }
        Ok(())
    }

    fn push_value(&mut self, column: &ArrayRef, name: &str) -> Result<()> {
        let values = arrow_cast::cast(column, &DataType::LargeBinary)?;
        for value in values.as_binary::<i64>() {
            let kind = self.target.native.kind;
            let (Some(value), None) = (value, &self.bytes) else {
                let what = if value.is_none() { "a null" } else { "more than one row" };
                return Err(Error::lossy(format!("column {name:?}: {what} does not fit a {kind}")));
            };
            self.bytes_held.grow(value.len() as u64)?;
            self.bytes = Some(value.to_vec());
        }
        Ok(())
    }
}

impl Writer for SdsWriter {
    fn write(&mut self, rows: &RecordBatch) -> Result<()> {
        let column = |index: usize| {
            rows.columns().get(index).ok_or_else(|| Error::unsupported("rows without columns"))
        };
        let schema = SchemaRef::clone(&self.schema);
        let name = |index: usize| schema.fields().get(index).map_or("", |field| field.name().as_str());
        match self.target.input {
            Input::Bits => self.bits(column(0)?, name(0))?,
            Input::Numbers => {
                let numbers = self.numbers(column(0)?, name(0))?;
                match self.target.native.kind {
                    SdsKind::Bytes | SdsKind::String => self.push_bytes(numbers)?,
                    _ => self.values.push_rows(&[numbers])?,
                }
            }
            Input::Runs | Input::Pairs | Input::Items => {
                let columns: Vec<Vec<u64>> = match column(0)?.as_struct_opt() {
                    Some(pair) => {
                        let columns = pair.columns().iter().map(|column| self.numbers(column, name(0)));
                        columns.collect::<Result<_>>()?
                    }
                    None => {
                        let columns = rows.columns().iter().enumerate();
                        columns
                            .map(|(index, column)| self.numbers(column, name(index)))
                            .collect::<Result<_>>()?
                    }
                };
                self.values.push_rows(&columns)?;
            }
            Input::Text | Input::Bytes => self.push_value(column(0)?, name(0))?,
        }
        self.rows += rows.num_rows() as u64;
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<Written> {
        let SdsWriter { mut sink, target, rows, values, budget, bytes, bytes_held, .. } = *self;
        if matches!(target.native.kind, SdsKind::String | SdsKind::Bytes) {
            build::write_bytes(&target, bytes, &mut sink)?;
        } else {
            build::write(&target, values, &budget, &mut sink)?;
        }
        drop(bytes_held);
        let bytes = sink.position();
        sink.finish()?;
        Ok(Written::new(rows, bytes))
    }
}

/// Whether a file of this dialect, or without one of this name, is a GFA file.
pub fn is_gfa(dialect: Option<&str>, name: Option<&str>) -> bool {
    let has_extension = || Packing::strip(name.unwrap_or_default()).to_lowercase().ends_with(".gfa");
    dialect.map_or_else(has_extension, |dialect| dialect == GFA)
}

/// Plans a GFA file, which is written from the lines of a GBZ graph.
fn plan_gfa(schema: &SchemaRef) -> Box<dyn WritePlan> {
    let mut plan = Plan::default();
    let is_graph = native::of(schema, ID).is_some_and(|own| own.as_str() == Some(GFA));
    let effect = match is_graph {
        true => Effect::exact(),
        false => Effect::impossible("GFA is written from a GBZ graph, whole and as it is"),
    };
    let columns = error::list(schema.fields().iter().map(|field| print_field(field)));
    plan.step("", columns, GFA, effect);
    planned(plan, |sink| Ok(Box::new(GfaWriter { sink, rows: 0 })))
}

struct GfaWriter {
    sink: Sink,
    rows: u64,
}

impl Writer for GfaWriter {
    fn write(&mut self, rows: &RecordBatch) -> Result<()> {
        use std::io::Write as _;
        let lines = rows.columns().first().and_then(|column| column.as_string_opt::<i64>());
        for line in lines.into_iter().flatten().flatten() {
            self.sink.write_all(line.as_bytes())?;
            self.sink.write_all(b"\n")?;
        }
        self.rows += rows.num_rows() as u64;
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<Written> {
        let rows = self.rows;
        Ok(Written::new(rows, self.sink.finish()?))
    }
}
