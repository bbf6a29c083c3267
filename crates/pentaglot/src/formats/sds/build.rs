//! Builds structures from values in a scratch file. Bits, integers, positions and runs are written from there with
//! constant memory; wavelet matrices are built in memory.

use std::io::{self, Write};

use arrow_buffer::BooleanBuffer;
use pentaglot_succinct::{
    BitVector, ByteSink, IntVector, Replay, RunLengthVectorWriter, RunLengthWaveletMatrix, SparseOptions,
    Structure, Supports, WaveletCore, WaveletMatrix, WordCursor, WordSink, write_bits, write_ints, write_raw,
    write_sparse,
};

use super::schema::{Input, Native, Target};
use super::scratch::{Scratch, check_room};
use super::type_text::SdsKind;
use crate::cursor::Reserved;
use crate::error::{Error, ErrorKind, Result};
use crate::limits::Budget;
use crate::source::Spool;

/// The values so far, and the numbers that headers need.
pub(super) struct Values {
    scratch: Scratch,
    order: Order,
    /// Bits per item, if set by the user.
    width: Option<u32>,
    rows: u64,
    /// Bits that do not fill a word yet.
    word: u64,
    largest: u64,
    /// The end of the last position or run.
    end: u64,
    /// Set bits, in rows of bits or in runs.
    ones: u64,
}

/// The required order of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Order {
    Any,
    Ascending,
    NotDescending,
    /// Runs that do not overlap.
    Runs,
}

impl Values {
    pub(super) fn new(target: &Target, budget: &Budget) -> Result<Self> {
        let is_bits =
            matches!(target.native.kind, SdsKind::Bit | SdsKind::Raw | SdsKind::Sparse | SdsKind::RunLength);
        let repeats = target.native.kind == SdsKind::Sparse && target.native.multiset;
        let order = match target.input {
            Input::Numbers if is_bits && repeats => Order::NotDescending,
            Input::Numbers if is_bits => Order::Ascending,
            Input::Runs if is_bits => Order::Runs,
            _ => Order::Any,
        };
        let width = target.native.width.filter(|_| target.native.kind == SdsKind::Int);
        let scratch = Scratch::new(budget);
        Ok(Values { scratch, order, width, rows: 0, word: 0, largest: 0, end: 0, ones: 0 })
    }

    pub(super) fn push_bits(&mut self, bits: &BooleanBuffer) -> Result<()> {
        for bit in bits {
            self.word |= u64::from(bit) << (self.rows % 64);
            self.rows += 1;
            if self.rows.is_multiple_of(64) {
                self.push_word()?;
            }
        }
        Ok(())
    }

    fn push_word(&mut self) -> Result<()> {
        let word = std::mem::take(&mut self.word);
        self.ones += u64::from(word.count_ones());
        self.scratch.push(&[word])
    }

    /// Appends rows of one number or several.
    pub(super) fn push_rows(&mut self, columns: &[Vec<u64>]) -> Result<()> {
        let rows = columns.first().map_or(0, Vec::len);
        if let [numbers] = columns {
            numbers.iter().try_for_each(|number| self.check(*number, 1))?;
            return self.scratch.push(numbers);
        }
        let mut row = Vec::new();
        for index in 0..rows {
            row.clear();
            row.extend(columns.iter().filter_map(|column| column.get(index)));
            match row[..] {
                [start, length] => self.check(start, length)?,
                _ => self.rows += 1,
            }
            self.scratch.push(&row)?;
        }
        Ok(())
    }

    /// Counts a row. Returns an error if the structure cannot hold it.
    fn check(&mut self, number: u64, length: u64) -> Result<()> {
        let row = self.rows;
        if let Some(width) = self.width
            && width < 64
            && number >> width != 0
        {
            return Err(Error::lossy(format!("row {row}: {number} does not fit {width} bits")));
        }
        let end = number.saturating_add(length);
        let least = match self.order {
            Order::Any => 0,
            Order::NotDescending => self.end.saturating_sub(1),
            Order::Ascending | Order::Runs => self.end,
        };
        if number < least && row > 0 {
            let what = if self.order == Order::Runs { "a run" } else { "a position" };
            return Err(Error::lossy(format!(
                "row {row}: {what} at {number} does not follow in ascending order, {least} is the least possible"
            )));
        }
        if self.order != Order::Any && (number == u64::MAX || number.checked_add(length).is_none()) {
            return Err(Error::lossy(format!("row {row}: {number} is past the last position")));
        }
        if self.order != Order::Any {
            self.end = end;
            self.ones = self.ones.saturating_add(length);
        }
        self.largest = self.largest.max(number);
        self.rows += 1;
        Ok(())
    }

    /// Passes positions of set bits to `take`.
    fn positions(&mut self, input: Input, take: &mut dyn FnMut(u64) -> io::Result<()>) -> io::Result<()> {
        if input == Input::Numbers {
            return self.scratch.replay(take);
        }
        self.runs(input, &mut |start, length| (start..start + length).try_for_each(&mut *take))
    }

    /// Passes runs of set bits to `take`; they may be adjacent.
    fn runs(&mut self, input: Input, take: &mut dyn FnMut(u64, u64) -> io::Result<()>) -> io::Result<()> {
        let (mut start, mut at) = (None, 0_u64);
        self.scratch.replay(&mut |element| match input {
            Input::Bits => {
                let mut word = element;
                while word != 0 {
                    let skip = word.trailing_zeros();
                    let length = (word >> skip).trailing_ones();
                    take(at + u64::from(skip), u64::from(length))?;
                    word &= u64::MAX.checked_shl(skip + length).unwrap_or(0);
                }
                at += 64;
                Ok(())
            }
            Input::Runs => match start.take() {
                None => {
                    start = Some(element);
                    Ok(())
                }
                Some(start) => take(start, element),
            },
            _ => take(element, 1),
        })
    }

    /// Passes the words of `len` bits to `take`.
    fn words(
        &mut self,
        input: Input,
        len: u64,
        take: &mut dyn FnMut(u64) -> io::Result<()>,
    ) -> io::Result<()> {
        if input == Input::Bits {
            return self.scratch.replay(take);
        }
        let (mut word, mut at) = (0_u64, 0_u64);
        self.runs(input, &mut |start, length| {
            let (mut from, end) = (start, start + length);
            while from < end {
                while from / 64 > at {
                    take(std::mem::take(&mut word))?;
                    at += 1;
                }
                let until = end.min((from / 64 + 1).saturating_mul(64));
                word |= (u64::MAX >> (64 - (until - from))) << (from % 64);
                from = until;
            }
            Ok(())
        })?;
        while at < len.div_ceil(64) {
            take(std::mem::take(&mut word))?;
            at += 1;
        }
        Ok(())
    }
}

/// A buffer of elements for an output.
struct Out<'s, O: Write> {
    sink: ByteSink<&'s mut O>,
    words: Vec<u64>,
}

/// The size of the buffer, in elements.
const GATHERED: usize = 4096;

impl<O: Write> WordSink for Out<'_, O> {
    fn put(&mut self, words: &[u64]) -> io::Result<()> {
        if self.words.len() + words.len() > GATHERED {
            self.flush()?;
        }
        if words.len() >= GATHERED {
            return self.sink.put(words);
        }
        self.words.extend_from_slice(words);
        Ok(())
    }
}

impl<O: Write> Out<'_, O> {
    fn flush(&mut self) -> io::Result<()> {
        self.sink.put(&self.words)?;
        self.words.clear();
        Ok(())
    }
}

/// An error for values that a structure cannot hold: of the data, not of a file.
fn unfit(error: pentaglot_succinct::Error) -> Error {
    match Error::from(error) {
        error if error.kind() == ErrorKind::Malformed => {
            let path = error.path();
            Error::lossy(format!("{path}: {}", error.message()))
        }
        other => other,
    }
}

/// The same for an error that came through an output.
fn refused(error: io::Error) -> Error {
    match error.downcast::<pentaglot_succinct::Error>() {
        Ok(error) => unfit(error),
        Err(error) => Error::from(error),
    }
}

/// Writes the one value of bytes or text.
pub(super) fn write_bytes(target: &Target, bytes: Option<Vec<u8>>, out: &mut impl Write) -> Result<()> {
    let kind = target.native.kind;
    let bytes = match (bytes, target.input) {
        (Some(bytes), _) => bytes,
        (None, Input::Numbers) => Vec::new(),
        (None, _) => return Err(Error::lossy(format!("no row does not fit a {kind}"))),
    };
    if kind == SdsKind::String
        && let Err(error) = simdutf8::compat::from_utf8(&bytes)
    {
        let at = error.valid_up_to();
        return Err(Error::lossy(format!("byte {at} of the value is not UTF-8, as a string must be")));
    }
    out.write_all(&(bytes.len() as u64).to_le_bytes())?;
    out.write_all(&bytes)?;
    let padding = bytes.len().next_multiple_of(8) - bytes.len();
    Ok(out.write_all([0; 8].get(..padding).unwrap_or_default())?)
}

/// Writes the structure.
pub(super) fn write(
    target: &Target,
    mut values: Values,
    budget: &Budget,
    sink: &mut impl Write,
) -> Result<()> {
    if target.input == Input::Bits && !values.rows.is_multiple_of(64) {
        values.push_word()?;
    }
    let native = &target.native;
    if native.kind == SdsKind::RunLength {
        return run_length(target, values, budget, sink);
    }
    let mut out = Out { sink: ByteSink(sink), words: Vec::new() };
    match native.kind {
        SdsKind::Bit | SdsKind::Raw => bits(target, values, budget, &mut out)?,
        SdsKind::Sparse => sparse(target, values, budget, &mut out)?,
        SdsKind::Int => {
            let empty = || IntVector::from_values_packed(&[]).width();
            let smallest = if values.rows == 0 { empty() } else { bits_of(values.largest).max(1) };
            let width = native.width.unwrap_or(smallest);
            write_ints(values.rows, width, values.scratch, &mut out).map_err(refused)?;
        }
        SdsKind::Element => match values.rows {
            1 => copy(values, &mut out)?,
            rows => return Err(Error::lossy(format!("{rows} rows do not fit a single element"))),
        },
        SdsKind::Vec | SdsKind::Pairs | SdsKind::Items | SdsKind::Option => {
            out.put(&[values.rows])?;
            copy(values, &mut out)?;
        }
        SdsKind::RunLengthWavelet => run_length_wavelet(values, budget, &mut out)?,
        SdsKind::Wavelet | SdsKind::WaveletCore => wavelet(target, values, budget, &mut out)?,
        kind => return Err(Error::unsupported(format!("writing a {kind}"))),
    }
    Ok(out.flush()?)
}

fn copy(mut values: Values, out: &mut impl WordSink) -> Result<()> {
    values.scratch.replay(&mut |element| out.put(&[element])).map_err(refused)
}

/// The number of bits: set by the user, otherwise up to the last one that is set.
fn length(target: &Target, values: &Values) -> Result<u64> {
    let len = match (target.input, target.native.kind) {
        (Input::Bits, SdsKind::Sparse) => target.native.universe.unwrap_or(values.rows),
        (Input::Bits, _) => values.rows,
        _ => target.native.universe.unwrap_or(values.end),
    };
    let end = if target.input == Input::Bits { 0 } else { values.end };
    if end > len {
        return Err(Error::lossy(format!("position {} does not fit a length of {len}", end - 1)));
    }
    Ok(len)
}

fn bits(target: &Target, mut values: Values, budget: &Budget, out: &mut impl WordSink) -> Result<()> {
    let (len, ones, input) = (length(target, &values)?, values.ones, target.input);
    check_room(len.div_ceil(64), budget.limits().max_spool)?;
    let words = |take: &mut dyn FnMut(u64) -> io::Result<()>| values.words(input, len, take);
    match target.native.kind {
        SdsKind::Raw => write_raw(len, words, out),
        _ => write_bits(len, ones, wanted(target, [true; 3]), words, out),
    }
    .map_err(refused)
}

fn sparse(target: &Target, mut values: Values, budget: &Budget, out: &mut impl WordSink) -> Result<()> {
    let (len, ones, input) = (length(target, &values)?, values.ones, target.input);
    let native = &target.native;
    let mut options = SparseOptions::default().multiset(native.multiset);
    if let Some(width) = native.width {
        options = options.width(width);
    }
    // The low parts, and a high part of as many bits as there are positions and buckets. Without a width, there are fewer
    // than twice as many buckets as positions, unless there are no positions.
    let buckets = match native.width {
        Some(width) => len.checked_shr(width).unwrap_or(0),
        None if ones == 0 => len / 2,
        None => ones.saturating_mul(2),
    };
    let low = ones.saturating_mul(u64::from(native.width.unwrap_or(1)));
    let elements = low.saturating_add(ones).saturating_add(buckets).div_ceil(64);
    check_room(elements, budget.limits().max_spool)?;
    let positions = |take: &mut dyn FnMut(u64) -> io::Result<()>| values.positions(input, take);
    let supports = wanted(target, [false, true, true]);
    write_sparse(len, ones, options, supports, positions, out).map_err(refused)
}

fn run_length(target: &Target, mut values: Values, budget: &Budget, sink: &mut impl Write) -> Result<()> {
    let (len, input) = (length(target, &values)?, target.input);
    let writer = RunLengthVectorWriter::new(sink, Spool::with_memory(1 << 20, budget));
    let mut writer = writer.map_err(refused)?;
    values.runs(input, &mut |start, run| writer.push_run(start, run)).map_err(refused)?;
    writer.finish(len).map(drop).map_err(refused)
}

/// The values in memory, within the budget.
fn collect(mut values: Values, budget: &Budget) -> Result<Reserved<u64>> {
    let mut all = crate::cursor::reserve(values.scratch.len(), budget)?;
    values.scratch.replay(&mut |value| {
        all.push(value);
        Ok(())
    })?;
    Ok(all)
}

fn wavelet(target: &Target, values: Values, budget: &Budget, out: &mut impl WordSink) -> Result<()> {
    let values = collect(values, budget)?;
    if target.native.kind == SdsKind::WaveletCore {
        let _reserved = budget.reserve(core_bytes(&values))?;
        return put_core(&WaveletCore::from_values(&values), target, out);
    }
    let _reserved = budget.reserve(wavelet_bytes(&values))?;
    let matrix = WaveletMatrix::from_values(&values).map_err(unfit)?;
    drop(values);
    out.put(&[matrix.len()])?;
    put_core(matrix.core(), target, out)?;
    Ok(matrix.first().write_words(Supports::Lean, out)?)
}

fn run_length_wavelet(mut values: Values, budget: &Budget, out: &mut impl WordSink) -> Result<()> {
    let mut runs: Reserved<(u64, u64)> = Reserved::new(budget);
    let mut fault = None;
    let replayed = values.scratch.replay(&mut |value| {
        match runs.last_mut() {
            Some((last, length)) if *last == value => *length += 1,
            _ => {
                if let Err(error) = runs.extend_from_slice(&[(value, 1)]) {
                    fault = Some(error);
                    return Err(io::Error::other("no room"));
                }
            }
        }
        Ok(())
    });
    if let Some(fault) = fault {
        return Err(fault);
    }
    replayed.map_err(refused)?;
    // Runs of 16 bytes: their two kinds on a level, and both together again.
    let _reserved = budget.reserve((runs.len() as u64).saturating_mul(3 * 16))?;
    Ok(RunLengthWaveletMatrix::from_runs(&runs).map_err(unfit)?.write_words(Supports::Full, out)?)
}

/// The width of a value, in bits.
fn bits_of(value: u64) -> u32 {
    64 - value.leading_zeros()
}

/// The memory for building the levels of a wavelet matrix and writing them, besides the values: two copies of the
/// values in the narrowest type, the levels, and one level with its supports.
fn core_bytes(values: &[u64]) -> u64 {
    let largest = values.iter().copied().max().unwrap_or(0);
    let (len, width) = (values.len() as u64, u64::from(bits_of(largest).max(1)));
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

/// Which supports to write: as requested, otherwise as they were read, otherwise `usual`.
fn wanted(target: &Target, usual: [bool; 3]) -> [bool; 3] {
    let Target { native: Native { supports, .. }, .. } = target;
    match target.supports {
        Some(Supports::Lean) => [false; 3],
        Some(_) => usual,
        None => supports.unwrap_or(usual),
    }
}

/// A level with some of the supports that simple-sds writes.
fn put_level(bits: &BitVector, supports: [bool; 3], out: &mut impl WordSink) -> Result<()> {
    use pentaglot_succinct::BitQueries;
    out.put(&[bits.count_ones()])?;
    bits.bits().write_words(Supports::Lean, out)?;
    if supports == [false; 3] {
        return Ok(out.put(&[0; 3])?);
    }
    let words = bits.to_words(Supports::Full);
    let full = BitVector::from_words(&mut WordCursor::new(words.as_slice()))?;
    for (support, wanted) in full.stored_supports().into_iter().zip(supports) {
        match support {
            Some(words) if wanted => {
                out.put(&[words.len() as u64])?;
                out.put(words)?;
            }
            _ => out.put(&[0])?,
        }
    }
    Ok(())
}

/// The width and the levels of a wavelet matrix.
fn put_core(core: &WaveletCore<BitVector>, target: &Target, out: &mut impl WordSink) -> Result<()> {
    out.put(&[u64::from(core.width())])?;
    core.levels().iter().try_for_each(|level| put_level(level, wanted(target, [true; 3]), out))
}
