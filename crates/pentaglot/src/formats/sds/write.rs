//! From rows to a structure. Values are held in memory until the end: most structures need all of them.

use std::io::Write;

use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::{DataType, Schema, SchemaRef};
use pentaglot_succinct::{
    BitQueries, BitVector, ByteSink, IntVector, RawVector, RunLengthVector, RunLengthWaveletMatrix,
    SparseOptions, SparseVector, Structure, Supports, WaveletCore, WaveletMatrix, WordCursor, WordSink,
};

use super::ID;
use super::types::{Kind, Native};
use crate::cursor::Reserved;
use crate::error::{self, Error, ErrorKind, Result};
use crate::formats::side_index;
use crate::formats::{WriteOptions, Writer, Written};
use crate::hub::type_text::print_field;
use crate::hub::{Effect, Form, LossKind, Plan, extension, native, shape};
use crate::limits::{Budget, Reservation};
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
pub(super) struct Target {
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
            DataType::Utf8 | DataType::LargeUtf8 => Some(Input::Text),
            DataType::Binary | DataType::LargeBinary => Some(Input::Bytes),
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
        let columns = error::list(schema.fields().iter().map(|field| print_field(field)));
        Error::unsupported(format!("a structure of {columns}"))
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
        Kind::String | Kind::Bytes => {
            let one = options.row_count.is_none_or(|rows| rows == 1);
            input == Input::Numbers || matches!(input, Input::Bytes | Input::Text) && one
        }
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

/// What writing does to each field, and the structure that is written, if there is one.
pub(super) fn plan(schema: &Schema, options: &WriteOptions) -> (Plan, Option<Target>) {
    let mut plan = Plan::default();
    let target = match target(schema, options) {
        Ok(target) => target,
        Err(error) => {
            let columns = error::list(schema.fields().iter().map(|field| print_field(field)));
            plan.step("", columns, "sds", Effect::impossible(error.to_string()));
            return (plan, None);
        }
    };
    let kind = target.native.kind;
    for field in schema.fields() {
        let positions = target.input == Input::Numbers
            && matches!(kind, Kind::Bit | Kind::Raw | Kind::Sparse | Kind::RunLength);
        let bytes = matches!(kind, Kind::String | Kind::Bytes);
        let mut effect = match field.data_type() {
            DataType::UInt8 if kind == Kind::Bytes => Effect::widened().because("one value of all bytes"),
            _ if bytes && target.input == Input::Numbers => {
                Effect::checked(LossKind::Range).because("numbers up to 255; of a string, UTF-8")
            }
            _ if kind == Kind::String && target.input == Input::Bytes => {
                Effect::checked(LossKind::Range).because("bytes that are not UTF-8 end the run")
            }
            _ if bytes && Form::of(schema) != Form::Value => {
                Effect::checked(LossKind::Dropped).because("a second row ends the run")
            }
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
        if matches!(field.data_type(), DataType::LargeUtf8 | DataType::LargeBinary) {
            effect = effect.and(Effect::widened());
        }
        if matches!(field.data_type(), DataType::Utf8 | DataType::LargeUtf8) && kind == Kind::Bytes {
            effect = effect.and(Effect::widened().because("comes back as bytes"));
        }
        if target.input == Input::Bits && matches!(kind, Kind::Sparse | Kind::RunLength) {
            effect = effect.and(Effect::widened().because("comes back as the positions or runs of its ones"));
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
            effect = effect.and(Effect::checked(LossKind::Nulls).because("a null ends the run"));
        }
        plan.step(field.name(), print_field(field), kind.name(), effect);
    }
    (plan, Some(target))
}

/// The values so far.
struct Values {
    bits: RawVector,
    /// Pays for the bits.
    bits_held: Reservation,
    first: Reserved<u64>,
    second: Reserved<u64>,
    bytes: Option<Vec<u8>>,
}

impl Values {
    /// Adds numbers as runs: each number in `first`, its number of repeats in `second`.
    fn extend_runs(&mut self, numbers: &[u64]) -> Result<()> {
        for run in numbers.chunk_by(|a, b| a == b) {
            let Some(value) = run.first() else { continue };
            let length = run.len() as u64;
            match (self.first.last(), self.second.last_mut()) {
                (Some(last), Some(count)) if last == value => *count += length,
                _ => {
                    self.first.extend_from_slice(&[*value])?;
                    self.second.extend_from_slice(&[length])?;
                }
            }
        }
        Ok(())
    }

    fn new(budget: &Budget) -> Self {
        let (first, second) = (Reserved::new(budget), Reserved::new(budget));
        Values { bits: RawVector::default(), bits_held: budget.reservation(), first, second, bytes: None }
    }
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
    /// Starts the structure that was planned.
    pub(super) fn create(
        mut sink: Sink,
        schema: SchemaRef,
        target: Option<Target>,
        options: &WriteOptions,
    ) -> Result<Self> {
        let target = target.ok_or_else(|| Error::unsupported("these rows are no structure"))?;
        side_index::prepare(&mut sink)?;
        let budget = options.budget.clone();
        let values = Values::new(&budget);
        Ok(SdsWriter { sink, schema, target, budget, rows: 0, values })
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
                // Growing copies: the old and the new memory exist together for a moment.
                self.values.bits_held.grow_to((self.values.bits.len() + bits.len() as u64) / 8 * 3)?;
                self.values.bits.extend(bits.values().iter());
            }
            Input::Numbers => {
                let numbers = self.numbers(column(0)?, name(0))?;
                if matches!(self.target.native.kind, Kind::Bytes | Kind::String) {
                    self.values.bits_held.grow(2 * numbers.len() as u64)?;
                    let bytes = self.values.bytes.get_or_insert_default();
                    for (number, row) in numbers.into_iter().zip(self.rows..) {
                        let byte = u8::try_from(number);
                        let wide = |_| Error::lossy(format!("row {row}: {number} does not fit a byte"));
                        bytes.push(byte.map_err(wide)?);
                    }
                } else if self.target.native.kind == Kind::RunLengthWavelet {
                    self.values.extend_runs(&numbers)?;
                } else {
                    self.values.first.extend_from_slice(&numbers)?;
                }
            }
            Input::Runs | Input::Pairs => {
                let (first, second) = match column(0)?.as_struct_opt() {
                    Some(pair) => {
                        (self.numbers(pair.column(0), name(0))?, self.numbers(pair.column(1), name(0))?)
                    }
                    None => (self.numbers(column(0)?, name(0))?, self.numbers(column(1)?, name(1))?),
                };
                self.values.first.extend_from_slice(&first)?;
                self.values.second.extend_from_slice(&second)?;
            }
            Input::Text | Input::Bytes => {
                let values = arrow_cast::cast(column(0)?, &DataType::LargeBinary)?;
                for value in values.as_binary::<i64>() {
                    let kind = self.target.native.kind;
                    let (Some(value), None) = (value, &self.values.bytes) else {
                        let what = if value.is_none() { "a null" } else { "more than one row" };
                        return Err(Error::lossy(format!(
                            "column {:?}: {what} does not fit a {kind}",
                            name(0)
                        )));
                    };
                    self.values.bits_held.grow(value.len() as u64)?;
                    self.values.bytes = Some(value.to_vec());
                }
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
    match Error::from(error) {
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
            let _reserved = budget.reserve(values.first.len() as u64 * 16)?;
            let items: Vec<u64> =
                values.first.iter().zip(values.second.iter()).flat_map(|(a, b)| [*a, *b]).collect();
            put_vector(&items, values.first.len() as u64, out)?;
        }
        Kind::String | Kind::Bytes => {
            let bytes = match (values.bytes, target.input) {
                (Some(bytes), _) => bytes,
                (None, Input::Numbers) => Vec::new(),
                (None, _) => return Err(Error::lossy(format!("no row does not fit a {}", native.kind))),
            };
            if native.kind == Kind::String
                && let Err(error) = simdutf8::compat::from_utf8(&bytes)
            {
                let at = error.valid_up_to();
                return Err(Error::lossy(format!(
                    "byte {at} of the value is not UTF-8, as a string must be"
                )));
            }
            let word =
                |chunk: &[u8]| chunk.iter().rev().fold(0u64, |word, byte| word << 8 | u64::from(*byte));
            let words: Vec<u64> = bytes.chunks(8).map(word).collect();
            put_vector(&words, bytes.len() as u64, out)?;
        }
        Kind::Int => {
            let width = native.width.unwrap_or_else(|| bits_of(&values.first));
            let _reserved = budget.reserve(values.first.len() as u64 / 8 * u64::from(width))?;
            int_vector(native, &values.first)?.write_words(full, out)?;
        }
        Kind::Wavelet => {
            let _reserved = budget.reserve(wavelet_bytes(&values.first))?;
            let matrix = WaveletMatrix::from_values(&values.first).map_err(unfit)?;
            out.put(&[matrix.len()])?;
            put_core(matrix.core(), target, out)?;
            matrix.first().write_words(Supports::Lean, out)?;
        }
        Kind::WaveletCore => {
            let _reserved = budget.reserve(core_bytes(&values.first))?;
            put_core(&WaveletCore::from_values(&values.first), target, out)?;
        }
        Kind::RunLengthWavelet => {
            // Runs of 16 bytes: all of them, their two kinds on a level, and both together again.
            let _reserved = budget.reserve((values.first.len() as u64).saturating_mul(4 * 16))?;
            let runs: Vec<(u64, u64)> = runs(&values).collect();
            RunLengthWaveletMatrix::from_runs(&runs).map_err(unfit)?.write_words(full, out)?;
        }
        Kind::RunLength => run_length(target, values)?.write_words(full, out)?,
        Kind::Sparse => {
            let (vector, _reserved) = sparse(target, values, budget)?;
            put_sparse(&vector, target, out)?;
        }
        Kind::Bit => {
            let (bits, _reserved) = bit_vector(target, values, budget)?;
            put_bits(&bits, wanted(target, [true; 3]), out)?;
        }
        Kind::Raw => bit_vector(target, values, budget)?.0.bits().write_words(full, out)?,
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

/// The width of the largest value, in bits.
fn bits_of(values: &[u64]) -> u32 {
    64 - values.iter().copied().max().unwrap_or(0).leading_zeros()
}

/// What building the levels of a wavelet matrix and writing them takes beside the values: two copies of the values in the
/// narrowest type, the levels, and one level with its supports.
fn core_bytes(values: &[u64]) -> u64 {
    let (len, width) = (values.len() as u64, u64::from(bits_of(values).max(1)));
    let narrow = width.div_ceil(8).next_power_of_two();
    len.saturating_mul(2 * narrow).saturating_add(len / 8 * (width + 4))
}

/// The same for a whole wavelet matrix, which also has the start of each value of the alphabet.
fn wavelet_bytes(values: &[u64]) -> u64 {
    let alphabet = values.iter().copied().max().unwrap_or(0).saturating_add(1);
    let occurring = alphabet.min(values.len() as u64);
    let starts = occurring.saturating_mul(2 * 16).saturating_add(alphabet.saturating_mul(8));
    core_bytes(values).saturating_add(starts)
}

/// The bits, and what pays for them and for a copy with supports while they are written.
fn bit_vector(target: &Target, values: Values, budget: &Budget) -> Result<(BitVector, Reservation)> {
    let len = match target.input {
        Input::Bits => values.bits.len(),
        Input::Runs => target.native.universe.unwrap_or_else(|| run_end(&values)),
        _ => universe(&target.native, &values.first),
    };
    let reserved = budget.reserve((len / 8).saturating_mul(3))?;
    let bits = match target.input {
        Input::Bits => BitVector::from(values.bits),
        Input::Runs => BitVector::from_runs(len, runs(&values)).map_err(unfit)?,
        _ => BitVector::from_positions(len, values.first.iter().copied()).map_err(unfit)?,
    };
    Ok((bits, reserved))
}

fn run_length(target: &Target, values: Values) -> Result<RunLengthVector> {
    match target.input {
        Input::Bits => Ok(values.bits.iter().collect()),
        Input::Runs => {
            let len = target.native.universe.unwrap_or_else(|| run_end(&values));
            RunLengthVector::from_runs(len, runs(&values)).map_err(unfit)
        }
        _ => {
            let len = universe(&target.native, &values.first);
            RunLengthVector::from_sorted(len, values.first.iter().copied()).map_err(unfit)
        }
    }
}

fn sparse(target: &Target, values: Values, budget: &Budget) -> Result<(SparseVector, Reservation)> {
    let native = &target.native;
    // Positions of 8 bytes, and the vector with its supports, which takes less.
    let reserve = |ones: u64| budget.reserve(ones.saturating_mul(2 * 8));
    let (len, (positions, reserved)): (u64, (Vec<u64>, Reservation)) = match target.input {
        Input::Bits => {
            let bits = BitVector::from(values.bits);
            let reserved = reserve(bits.count_ones())?;
            (native.universe.unwrap_or(bits.len()), (bits.ones().collect(), reserved))
        }
        Input::Runs => {
            let len = native.universe.unwrap_or_else(|| run_end(&values));
            let ones: u64 =
                values.second.iter().try_fold(0u64, |sum, run| sum.checked_add(*run)).unwrap_or(u64::MAX);
            if ones > len {
                return Err(Error::lossy(format!("runs of {ones} bits do not fit {len}")));
            }
            let reserved = reserve(ones)?;
            let ones = runs(&values).flat_map(|(start, run)| start..start.saturating_add(run)).collect();
            (len, (ones, reserved))
        }
        _ => {
            let len = universe(native, &values.first);
            let mut parts = values.first.into_parts();
            parts.1.grow(parts.0.len() as u64 * 8)?;
            (len, parts)
        }
    };
    let mut options = SparseOptions::default().multiset(native.multiset);
    if let Some(width) = native.width {
        options = options.width(width);
    }
    Ok((SparseVector::from_sorted_with(len, positions, options).map_err(unfit)?, reserved))
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
    let full = BitVector::from_words(&mut WordCursor::new(words.as_slice()))?;
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

/// The width and the levels of a wavelet matrix.
fn put_core(core: &WaveletCore<BitVector>, target: &Target, out: &mut impl WordSink) -> Result<()> {
    out.put(&[u64::from(core.width())])?;
    core.levels().iter().try_for_each(|level| put_bits(level, wanted(target, [true; 3]), out))
}
