//! From rows to a structure. Values are held in memory until the end: most structures need all of them.

use std::io::Write;

use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::{DataType, Schema, SchemaRef};
use pentaglot_succinct::{
    BitQueries, BitVector, ByteSink, IntVector, RawVector, RunLengthVector, RunLengthWaveletMatrix,
    SparseOptions, SparseVector, Structure, Supports, WaveletMatrix, WordCursor, WordSink,
};

use super::ID;
use super::layout::from_succinct;
use super::types::{Kind, Native};
use crate::error::{Error, ErrorKind, Result};
use crate::formats::{WriteOptions, Writer, Written};
use crate::hub::type_text::print_field;
use crate::hub::{Effect, Form, LossKind, Plan, extension, native, shape};
use crate::limits::Budget;
use crate::sink::Sink;

/// What the rows are, for a structure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Input {
    Bits,
    Numbers,
    /// `start`, `length`.
    Runs,
    Pairs,
    Text,
    Bytes,
}

/// What will be written.
#[derive(Debug, Clone)]
struct Target {
    native: Native,
    input: Input,
    supports: Option<Supports>,
}

fn input_of(schema: &Schema) -> Option<Input> {
    let fields = schema.fields();
    match fields.as_ref() {
        [only] => match only.data_type() {
            DataType::Boolean => Some(Input::Bits),
            kind if kind.is_integer() => Some(Input::Numbers),
            DataType::Struct(pair)
                if pair.len() == 2 && pair.iter().all(|field| field.data_type().is_integer()) =>
            {
                let runs = pair.iter().map(|field| field.name().as_str()).eq(["start", "length"]);
                Some(if runs { Input::Runs } else { Input::Pairs })
            }
            DataType::Utf8 if Form::of(schema) == Form::Value => Some(Input::Text),
            DataType::Binary if Form::of(schema) == Form::Value => Some(Input::Bytes),
            _ => None,
        },
        [first, second] if first.data_type().is_integer() && second.data_type().is_integer() => {
            let runs = (first.name().as_str(), second.name().as_str()) == ("start", "length");
            Some(if runs { Input::Runs } else { Input::Pairs })
        }
        _ => None,
    }
}

/// The kind that is written: named, else the one it was read as, else by the type of the rows.
fn target(schema: &Schema, options: &WriteOptions) -> Result<Target> {
    let input = input_of(schema).ok_or_else(|| {
        let columns: Vec<String> = schema.fields().iter().map(|field| print_field(field)).collect();
        Error::unsupported(format!("a structure of {}", columns.join(", ")))
    })?;
    let own = native::of(schema, ID).and_then(|value| Native::from_json(&value));
    let kind = match (&options.dialect, &own) {
        (Some(name), _) => Kind::parse(name)?,
        (None, Some(own)) => own.kind,
        (None, None) => match input {
            Input::Bits => Kind::Bit,
            Input::Numbers => Kind::Int,
            Input::Runs => Kind::RunLength,
            Input::Pairs => Kind::Pairs,
            Input::Text => Kind::String,
            Input::Bytes => Kind::Bytes,
        },
    };
    let fits = match kind {
        Kind::Bit | Kind::Raw | Kind::Sparse | Kind::RunLength => {
            matches!(input, Input::Bits | Input::Numbers | Input::Runs)
        }
        Kind::Int | Kind::Wavelet | Kind::WaveletCore | Kind::RunLengthWavelet | Kind::Vec | Kind::Option => {
            input == Input::Numbers
        }
        Kind::Pairs => matches!(input, Input::Pairs | Input::Runs),
        Kind::String => input == Input::Text,
        Kind::Bytes => matches!(input, Input::Bytes | Input::Text),
        Kind::Gbz | Kind::Gbwt | Kind::Gg | Kind::GbwtMeta | Kind::Chains => false,
    };
    if !fits {
        return Err(Error::unsupported(format!("a {kind} of these rows")));
    }
    let same = own.as_ref().is_some_and(|own| own.kind == kind);
    let mut native = match own {
        Some(own) if same => own,
        // Another structure of the same bits keeps their length.
        Some(own) => Native { universe: own.universe, multiset: own.multiset, ..Native::new(kind) },
        None => Native::new(kind),
    };
    native.universe = options.options.number("universe")?.or(native.universe);
    if let Some(width) = options.options.number("width")? {
        let width = u32::try_from(width).ok().filter(|width| (1..=64).contains(width));
        native.width = Some(width.ok_or_else(|| Error::usage("option width: expected 1 to 64"))?);
    }
    native.multiset = options.options.bool("multiset")?.unwrap_or(native.multiset);
    let supports = match options.options.word("supports", &["full", "lean"])? {
        Some("lean") => Some(Supports::Lean),
        Some(_) => Some(Supports::Full),
        None => None,
    };
    Ok(Target { native, input, supports })
}

pub(super) fn plan(schema: &Schema, options: &WriteOptions) -> Plan {
    let mut plan = Plan::default();
    let target = match target(schema, options) {
        Ok(target) => target,
        Err(error) => {
            let columns: Vec<String> = schema.fields().iter().map(|field| print_field(field)).collect();
            plan.step("", columns.join(", "), "sds", Effect::impossible(error.to_string()));
            return plan;
        }
    };
    let kind = target.native.kind;
    for field in schema.fields() {
        let positions = target.input == Input::Numbers
            && matches!(kind, Kind::Bit | Kind::Raw | Kind::Sparse | Kind::RunLength);
        let mut effect = match field.data_type() {
            DataType::UInt8 | DataType::UInt16 | DataType::UInt32 => Effect::widened(),
            kind if kind.is_signed_integer() => {
                Effect::checked(LossKind::Range).because("a number below 0 ends the run")
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
        if field.data_type() == &DataType::Utf8 && kind == Kind::Bytes {
            effect = effect.and(Effect::widened().because("comes back as bytes"));
        }
        if target.input == Input::Bits && matches!(kind, Kind::Sparse | Kind::RunLength) {
            effect = effect.and(Effect::widened().because("comes back as the positions or runs of its ones"));
        }
        let has_name = schema.fields().len() == 1 && Form::of(schema) == Form::Table;
        if has_name && field.name() != shape::ITEM_FIELD {
            let note = "a structure has no names";
            effect = effect.and(Effect::lossy(LossKind::Names).because(note));
        } else if has_name
            || Form::of(schema) == Form::Value && matches!(target.input, Input::Bits | Input::Numbers)
        {
            effect = effect.and(Effect::widened().because("comes back as an array"));
        }
        if field.is_nullable() {
            effect = effect.and(Effect::checked(LossKind::Nulls).because("a null ends the run"));
        }
        plan.step(field.name(), print_field(field), kind.name(), effect);
    }
    plan
}

/// The values so far.
#[derive(Default)]
struct Values {
    bits: RawVector,
    first: Vec<u64>,
    second: Vec<u64>,
    bytes: Option<Vec<u8>>,
}

pub(super) struct SdsWriter {
    sink: Sink,
    schema: SchemaRef,
    target: Target,
    budget: Budget,
    rows: u64,
    values: Values,
}

impl SdsWriter {
    pub(super) fn create(sink: Sink, schema: SchemaRef, options: &WriteOptions) -> Result<Self> {
        let target = target(&schema, options)?;
        let budget = options.limits.budget();
        Ok(SdsWriter { sink, schema, target, budget, rows: 0, values: Values::default() })
    }

    /// Integers of any width as elements; nulls and negative numbers are refused by row and column.
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
}

impl Writer for SdsWriter {
    fn write(&mut self, rows: &RecordBatch) -> Result<()> {
        let column = |index: usize| {
            rows.columns().get(index).ok_or_else(|| Error::unsupported("rows without columns"))
        };
        let name = |index: usize| self.schema.fields().get(index).map_or("", |field| field.name());
        match self.target.input {
            Input::Bits => {
                let bits = column(0)?.as_boolean();
                if let Some(index) = (0..bits.len()).find(|index| bits.is_null(*index)) {
                    let row = self.rows + index as u64;
                    return Err(Error::lossy(format!("row {row}, column {:?}: a null is no bit", name(0))));
                }
                self.budget.take(bits.len() as u64 / 8)?;
                self.values.bits.extend(bits.values().iter());
            }
            Input::Numbers => {
                let numbers = self.numbers(column(0)?, name(0))?;
                self.budget.take(numbers.len() as u64 * 8)?;
                self.values.first.extend(numbers);
            }
            Input::Runs | Input::Pairs => {
                let (first, second) = match column(0)?.as_struct_opt() {
                    Some(pair) => {
                        (self.numbers(pair.column(0), name(0))?, self.numbers(pair.column(1), name(0))?)
                    }
                    None => (self.numbers(column(0)?, name(0))?, self.numbers(column(1)?, name(1))?),
                };
                self.budget.take(first.len() as u64 * 16)?;
                self.values.first.extend(first);
                self.values.second.extend(second);
            }
            Input::Text | Input::Bytes => {
                let column = column(0)?;
                let mut values: Vec<Vec<u8>> = match column.as_string_opt::<i32>() {
                    Some(texts) => texts.iter().flatten().map(|text| text.as_bytes().to_vec()).collect(),
                    None => column.as_binary::<i32>().iter().flatten().map(<[u8]>::to_vec).collect(),
                };
                self.values.bytes = values.pop().or(self.values.bytes.take());
            }
        }
        self.rows += rows.num_rows() as u64;
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<Written> {
        let SdsWriter { sink, target, rows, values, budget, .. } = *self;
        let mut out = ByteSink(sink);
        write_structure(&target, values, &budget, &mut out)?;
        let bytes = out.0.position();
        out.0.flush()?;
        out.0.finish()?;
        Ok(Written::new(rows, bytes))
    }
}

/// A builder refuses values that do not fit: the data's fault, not the file's.
fn unfit(error: pentaglot_succinct::Error) -> Error {
    match from_succinct(error) {
        error if error.kind() == ErrorKind::Malformed => {
            let path = error.path();
            Error::lossy(format!("{path}: {}", error.message()))
        }
        other => other,
    }
}

fn write_structure(target: &Target, values: Values, budget: &Budget, out: &mut impl WordSink) -> Result<()> {
    let native = &target.native;
    let full = target.supports.unwrap_or(Supports::Full);
    match native.kind {
        Kind::Vec => put_vector(&values.first, values.first.len() as u64, out)?,
        Kind::Option if values.first.is_empty() => out.put(&[0])?,
        Kind::Option => put_vector(&values.first, values.first.len() as u64, out)?,
        Kind::Pairs => {
            let items: Vec<u64> =
                values.first.iter().zip(&values.second).flat_map(|(a, b)| [*a, *b]).collect();
            put_vector(&items, values.first.len() as u64, out)?;
        }
        Kind::String | Kind::Bytes => {
            let bytes = values.bytes.unwrap_or_default();
            let word =
                |chunk: &[u8]| chunk.iter().rev().fold(0u64, |word, byte| word << 8 | u64::from(*byte));
            let words: Vec<u64> = bytes.chunks(8).map(word).collect();
            put_vector(&words, bytes.len() as u64, out)?;
        }
        Kind::Int => int_vector(native, &values.first)?.write_words(full, out)?,
        Kind::Wavelet => {
            let matrix = WaveletMatrix::from_values(&values.first).map_err(unfit)?;
            put_wavelet(&matrix, target, true, out)?;
        }
        Kind::WaveletCore => {
            let matrix = WaveletMatrix::from_values(&values.first).map_err(unfit)?;
            put_wavelet(&matrix, target, false, out)?;
        }
        Kind::RunLengthWavelet => {
            RunLengthWaveletMatrix::from_values(&values.first).map_err(unfit)?.write_words(full, out)?;
        }
        Kind::RunLength => run_length(target, values)?.write_words(full, out)?,
        Kind::Sparse => put_sparse(&sparse(target, values, budget)?, target, out)?,
        Kind::Bit => put_bits(&bit_vector(target, values, budget)?, wanted(target, [true; 3]), out)?,
        Kind::Raw => bit_vector(target, values, budget)?.bits().write_words(full, out)?,
        Kind::Gbz | Kind::Gbwt | Kind::Gg | Kind::GbwtMeta | Kind::Chains => {
            return Err(Error::unsupported(format!("writing a {}", native.kind)));
        }
    }
    Ok(())
}

fn put_vector(words: &[u64], len: u64, out: &mut impl WordSink) -> Result<()> {
    out.put(&[len])?;
    Ok(out.put(words)?)
}

fn int_vector(native: &Native, values: &[u64]) -> Result<IntVector> {
    let Some(width) = native.width else { return Ok(IntVector::from_values_packed(values)) };
    if let Some(row) = values.iter().position(|value| width < 64 && value >> width != 0) {
        let value = values.get(row).copied().unwrap_or(0);
        return Err(Error::lossy(format!("row {row}: {value} does not fit {width} bits")));
    }
    IntVector::from_values(width, values.iter().copied()).map_err(unfit)
}

fn universe(native: &Native, positions: &[u64]) -> u64 {
    native.universe.unwrap_or_else(|| positions.last().map_or(0, |last| last.saturating_add(1)))
}

fn run_end(values: &Values) -> u64 {
    let last = values.first.last().zip(values.second.last());
    last.map_or(0, |(start, length)| start.saturating_add(*length))
}

fn runs(values: &Values) -> impl Iterator<Item = (u64, u64)> + '_ {
    values.first.iter().copied().zip(values.second.iter().copied())
}

/// Holds the words of `len` bits against the budget before they are allocated.
fn check_bits(len: u64, budget: &Budget) -> Result<()> {
    budget.check(len / 8)
}

fn bit_vector(target: &Target, values: Values, budget: &Budget) -> Result<BitVector> {
    match target.input {
        Input::Bits => Ok(BitVector::from(values.bits)),
        Input::Runs => {
            let len = target.native.universe.unwrap_or_else(|| run_end(&values));
            check_bits(len, budget)?;
            BitVector::from_runs(len, runs(&values)).map_err(unfit)
        }
        _ => {
            let len = universe(&target.native, &values.first);
            check_bits(len, budget)?;
            BitVector::from_positions(len, values.first).map_err(unfit)
        }
    }
}

fn run_length(target: &Target, values: Values) -> Result<RunLengthVector> {
    match target.input {
        Input::Bits => Ok(values.bits.iter().collect()),
        Input::Runs => {
            let len = target.native.universe.unwrap_or_else(|| run_end(&values));
            RunLengthVector::from_runs(len, runs(&values)).map_err(unfit)
        }
        _ => {
            RunLengthVector::from_sorted(universe(&target.native, &values.first), values.first).map_err(unfit)
        }
    }
}

fn sparse(target: &Target, values: Values, budget: &Budget) -> Result<SparseVector> {
    let native = &target.native;
    let (len, positions): (u64, Vec<u64>) = match target.input {
        Input::Bits => {
            let bits = BitVector::from(values.bits);
            (native.universe.unwrap_or(bits.len()), bits.ones().collect())
        }
        Input::Runs => {
            let len = native.universe.unwrap_or_else(|| run_end(&values));
            let ones: u64 =
                values.second.iter().try_fold(0u64, |sum, run| sum.checked_add(*run)).unwrap_or(u64::MAX);
            if ones > len {
                return Err(Error::lossy(format!("runs of {ones} bits do not fit {len}")));
            }
            budget.check(ones.saturating_mul(8))?;
            (len, runs(&values).flat_map(|(start, run)| start..start.saturating_add(run)).collect())
        }
        _ => (universe(native, &values.first), values.first),
    };
    let mut options = SparseOptions::default().multiset(native.multiset);
    if let Some(width) = native.width {
        options = options.width(width);
    }
    SparseVector::from_sorted_with(len, positions, options).map_err(unfit)
}

/// Which supports to write: as asked, else as they were read, else `usual`.
fn wanted(target: &Target, usual: [bool; 3]) -> [bool; 3] {
    match target.supports {
        Some(Supports::Lean) => [false; 3],
        Some(_) => usual,
        None => target.native.supports.unwrap_or(usual),
    }
}

/// A bit vector with some of the supports that simple-sds writes.
fn put_bits(bits: &BitVector, supports: [bool; 3], out: &mut impl WordSink) -> Result<()> {
    out.put(&[bits.count_ones()])?;
    bits.bits().write_words(Supports::Lean, out)?;
    if supports == [false; 3] {
        return Ok(out.put(&[0; 3])?);
    }
    let words = bits.to_words(Supports::Full);
    let full = BitVector::from_words(&mut WordCursor::new(words.as_slice())).map_err(from_succinct)?;
    for (support, wanted) in full.stored_supports().into_iter().zip(supports) {
        match support {
            Some(words) if wanted => put_vector(words, words.len() as u64, out)?,
            _ => out.put(&[0])?,
        }
    }
    Ok(())
}

fn put_sparse(vector: &SparseVector, target: &Target, out: &mut impl WordSink) -> Result<()> {
    out.put(&[vector.len()])?;
    put_bits(vector.high(), wanted(target, [false, true, true]), out)?;
    Ok(vector.low().write_words(Supports::Lean, out)?)
}

/// A wavelet matrix, or its core alone.
fn put_wavelet(matrix: &WaveletMatrix, target: &Target, whole: bool, out: &mut impl WordSink) -> Result<()> {
    if whole {
        out.put(&[matrix.len()])?;
    }
    out.put(&[u64::from(matrix.width())])?;
    for level in matrix.core().levels() {
        put_bits(level, wanted(target, [true; 3]), out)?;
    }
    if whole {
        matrix.first().write_words(Supports::Lean, out)?;
    }
    Ok(())
}
