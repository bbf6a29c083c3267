//! The same bits in the form of the rows that were written: a bit vector is written from bits, positions or runs of
//! ones, and each kind of structure is read back as one of them. Bytes may be written from numbers.

use std::collections::VecDeque;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use arrow_array::{ArrayRef, BooleanArray, RecordBatch, UInt8Array, UInt64Array};
use arrow_buffer::BooleanBufferBuilder;
use arrow_schema::{DataType, Field, Fields, Schema, SchemaRef};

use crate::error::{Error, Result};
use crate::hub::{Rows, native, rows};

/// Rows of a batch.
const BATCH_ROWS: usize = 65_536;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ones {
    Bits,
    Positions,
    Runs,
}

impl Ones {
    fn of(schema: &Schema) -> Option<Self> {
        match schema.fields().as_ref() {
            [only] if *only.data_type() == DataType::Boolean => Some(Ones::Bits),
            [only] if only.data_type().is_integer() => Some(Ones::Positions),
            [start, length] if (start.name().as_str(), length.name().as_str()) == ("start", "length") => {
                Some(Ones::Runs)
            }
            _ => None,
        }
    }
}

/// The rows read back, of which `row_count` were written with the schema `written`.
pub(super) fn as_written(stream: Rows, written: &SchemaRef, row_count: u64) -> Rows {
    let found = stream.schema();
    let is_value = |schema: &Schema| {
        matches!(schema.fields().as_ref(),
            [only] if matches!(only.data_type(), DataType::Binary | DataType::Utf8))
    };
    let (from, to) = match (Ones::of(&found), Ones::of(written)) {
        (None, Some(Ones::Positions)) if is_value(&found) => return numbers(stream, written),
        (Some(from), Some(to)) if from != to => (from, to),
        _ => return stream,
    };
    let runs = RunReader { stream, form: from, row: 0, waiting: VecDeque::new(), last: None };
    let schema = like(written, to);
    let mut out = Output { runs, form: to, schema: Arc::clone(&schema), at: 0, row_count, current: None };
    rows::from_batches(schema, std::iter::from_fn(move || out.next().transpose()))
}

/// The schema of the rows written, with numbers of 64 bits.
fn like(written: &SchemaRef, form: Ones) -> SchemaRef {
    let kind = if form == Ones::Bits { DataType::Boolean } else { DataType::UInt64 };
    let plain = native::without(written);
    let fields = written.fields().iter().map(|field| Field::new(field.name(), kind.clone(), false));
    Arc::new(Schema::new_with_metadata(fields.collect::<Fields>(), plain.metadata().clone()))
}

/// The bytes of one value as numbers.
fn numbers(stream: Rows, written: &SchemaRef) -> Rows {
    let fields = written.fields().iter().map(|field| Field::new(field.name(), DataType::UInt8, false));
    let plain = native::without(written);
    let schema: SchemaRef =
        Arc::new(Schema::new_with_metadata(fields.collect::<Fields>(), plain.metadata().clone()));
    let own = Arc::clone(&schema);
    let batches = stream.map(move |batch| {
        let batch = batch?;
        let values = arrow_cast::cast(batch.column(0), &DataType::Binary)?;
        let bytes: Vec<u8> = values.as_binary::<i32>().iter().flatten().flatten().copied().collect();
        let count = bytes.len();
        rows::batch(Arc::clone(&own), vec![Arc::new(UInt8Array::from(bytes))], count)
    });
    rows::from_batches(schema, batches)
}

/// The runs of ones of a stream: where each starts and how long it is.
struct RunReader {
    stream: Rows,
    form: Ones,
    /// The bits before the next batch.
    row: u64,
    waiting: VecDeque<(u64, u64)>,
    /// A run that the next one may continue.
    last: Option<(u64, u64)>,
}

impl RunReader {
    fn next(&mut self) -> Result<Option<(u64, u64)>> {
        loop {
            while let Some((start, length)) = self.waiting.pop_front() {
                match self.last {
                    Some((first, before)) if first.checked_add(before) == Some(start) => {
                        self.last = Some((first, before.saturating_add(length)));
                    }
                    last => {
                        self.last = Some((start, length));
                        if last.is_some() {
                            return Ok(last);
                        }
                    }
                }
            }
            match self.stream.next() {
                Some(batch) => self.push(&batch?)?,
                None => return Ok(self.last.take()),
            }
        }
    }

    fn push(&mut self, batch: &RecordBatch) -> Result<()> {
        let column = |index: usize| arrow_cast::cast(batch.column(index), &DataType::UInt64);
        match self.form {
            Ones::Bits => {
                let slices = batch.column(0).as_boolean().values().set_slices();
                let runs = slices.map(|(start, end)| (self.row + start as u64, (end - start) as u64));
                self.waiting.extend(runs);
                self.row += batch.num_rows() as u64;
            }
            Ones::Positions => {
                let positions = column(0)?;
                let positions = positions.as_primitive::<UInt64Type>().values();
                self.waiting.extend(positions.iter().map(|position| (*position, 1)));
            }
            Ones::Runs => {
                let (starts, lengths) = (column(0)?, column(1)?);
                let starts = starts.as_primitive::<UInt64Type>().values();
                let lengths = lengths.as_primitive::<UInt64Type>().values();
                self.waiting.extend(starts.iter().copied().zip(lengths.iter().copied()));
            }
        }
        Ok(())
    }
}

/// Makes rows of runs.
struct Output {
    runs: RunReader,
    form: Ones,
    schema: SchemaRef,
    /// The bits that are out.
    at: u64,
    row_count: u64,
    /// What is left of a run.
    current: Option<(u64, u64)>,
}

impl Output {
    fn next(&mut self) -> Result<Option<RecordBatch>> {
        let (columns, count) = match self.form {
            Ones::Bits => self.bits()?,
            Ones::Positions => self.positions()?,
            Ones::Runs => self.run_rows()?,
        };
        match count {
            0 => Ok(None),
            _ => rows::batch(Arc::clone(&self.schema), columns, count).map(Some),
        }
    }

    /// What is left of the current run, or the next one.
    fn run(&mut self) -> Result<Option<(u64, u64)>> {
        match self.current.take() {
            Some(run) => Ok(Some(run)),
            None => self.runs.next(),
        }
    }

    fn bits(&mut self) -> Result<(Vec<ArrayRef>, usize)> {
        let end = self.row_count.min(self.at + BATCH_ROWS as u64);
        let count = usize::try_from(end - self.at).unwrap_or(0);
        let mut bits = BooleanBufferBuilder::new(count);
        while let Some((start, length)) = self.run()? {
            if start >= end {
                self.current = Some((start, length));
                break;
            }
            if start < self.at {
                return Err(Error::lossy(format!("expected a one at {} or later, found {start}", self.at)));
            }
            let run_end = start.saturating_add(length);
            let last = run_end.min(end);
            bits.append_n(usize::try_from(start - self.at).unwrap_or(0), false);
            bits.append_n(usize::try_from(last - start).unwrap_or(0), true);
            self.at = last;
            if last < run_end {
                self.current = Some((last, run_end - last));
                break;
            }
        }
        if let (Some((start, _)), true) = (self.current, end == self.row_count) {
            return Err(Error::lossy(format!("expected {end} bits, found a one at {start}")));
        }
        bits.append_n(count - bits.len(), false);
        self.at = end;
        Ok((vec![Arc::new(BooleanArray::new(bits.finish(), None))], count))
    }

    fn positions(&mut self) -> Result<(Vec<ArrayRef>, usize)> {
        let mut out = Vec::new();
        while out.len() < BATCH_ROWS
            && let Some((start, length)) = self.run()?
        {
            let taken = length.min((BATCH_ROWS - out.len()) as u64);
            let next = start.saturating_add(taken);
            out.extend(start..next);
            self.current = (taken < length).then_some((next, length - taken));
        }
        let count = out.len();
        Ok((vec![Arc::new(UInt64Array::from(out))], count))
    }

    fn run_rows(&mut self) -> Result<(Vec<ArrayRef>, usize)> {
        let (mut starts, mut lengths) = (Vec::new(), Vec::new());
        while starts.len() < BATCH_ROWS
            && let Some((start, length)) = self.run()?
        {
            starts.push(start);
            lengths.push(length);
        }
        let count = starts.len();
        let columns: Vec<ArrayRef> =
            vec![Arc::new(UInt64Array::from(starts)), Arc::new(UInt64Array::from(lengths))];
        Ok((columns, count))
    }
}
