//! The statistics of a succinct structure, updated batch by batch.

use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use arrow_array::{Array, RecordBatch};
use arrow_schema::{DataType, Schema};

use super::frequent::{Frequent, hash_word};
use super::{State, SuccinctDescription};
use crate::error::{Error, Result};
use crate::job::{Opened, View};

/// The kind of a whole succinct structure; `None` for other documents, and for a choice of its items.
pub(super) fn kind_of(opened: &Opened, view: &View) -> Option<String> {
    let summary = opened.document.summary();
    let is_whole = view.filter.is_none() && view.columns.is_none() && view.rows.is_none();
    let is_plain = summary.format == "sds" && summary.members.is_empty();
    summary.dialect.filter(|_| is_whole && is_plain).map(str::to_owned)
}

pub(super) struct SuccinctState {
    kind: String,
    items: u64,
    ones: u64,
    runs: u64,
    /// The end of the last run of ones, or the last item.
    last: Option<u64>,
    /// Positions that repeat.
    repeats: bool,
    frequent: Frequent<u64>,
}

impl SuccinctState {
    pub(super) fn new(kind: &str) -> Self {
        SuccinctState {
            kind: kind.to_owned(),
            items: 0,
            ones: 0,
            runs: 0,
            last: None,
            repeats: false,
            frequent: Frequent::new(),
        }
    }

    fn is_bits(&self) -> bool {
        matches!(self.kind.as_str(), "bit" | "raw" | "sparse" | "rl")
    }

    /// Counts `length` ones from `start` on.
    fn run(&mut self, start: u64, length: u64) {
        if length == 0 {
            return;
        }
        self.repeats |= self.last.is_some_and(|end| start < end);
        if self.last.is_none_or(|end| start > end) {
            self.runs += 1;
        }
        self.ones += length;
        self.last = Some(start.saturating_add(length).max(self.last.unwrap_or(0)));
    }

    fn item(&mut self, item: u64) {
        if self.last != Some(item) {
            self.runs += 1;
            self.last = Some(item);
        }
        self.frequent.push(hash_word(item), |other| *other == item, 0, || item);
    }

    pub(super) fn finish(self, opened: &Opened) -> Result<SuccinctDescription> {
        let summary = opened.document.summary();
        let fact = |name: &str| {
            let found = summary.metadata.iter().find(|(key, _)| key == name);
            found.and_then(|(_, value)| value.parse::<u64>().ok())
        };
        let is_bits = self.is_bits();
        let len = match self.kind.as_str() {
            "sparse" | "rl" => fact("length").unwrap_or(0),
            _ => self.items,
        };
        let has_runs = is_bits || self.last.is_some() || self.items == 0;
        let width = match self.kind.as_str() {
            "bit" | "raw" => Some(1),
            "bytes" | "string" => Some(8),
            "vec" | "option" | "pairs" => Some(64),
            _ => fact("width"),
        };
        let counts = match is_bits {
            true => (!self.repeats).then(|| vec![self.ones, len.saturating_sub(self.ones)]),
            false => self.frequent.all_counts().map(Iterator::collect).filter(|_| has_runs),
        };
        Ok(SuccinctDescription {
            len,
            ones: is_bits.then_some(self.ones),
            width,
            runs: has_runs.then_some(self.runs),
            bits: summary.bytes.unwrap_or(0).saturating_mul(8),
            entropy_bits: counts.map(|counts| entropy_bits(&counts)),
            kind: self.kind,
        })
    }
}

/// The number of bits of an ideal code for items of these frequencies.
fn entropy_bits(counts: &[u64]) -> f64 {
    let total: u64 = counts.iter().sum();
    let bits = |count: &u64| *count as f64 * (total as f64 / *count as f64).log2();
    counts.iter().filter(|count| **count > 0).map(bits).sum()
}

impl State for SuccinctState {
    const TAKES_MATRICES: bool = false;

    /// Runs may cross the boundaries of parts.
    fn is_divisible(_: &Schema) -> bool {
        false
    }

    fn push(&mut self, first: u64, batch: &RecordBatch) -> Result<()> {
        let Some(array) = batch.columns().first() else { return Ok(()) };
        match (self.kind.as_str(), array.data_type()) {
            (_, DataType::Boolean) => {
                for (start, end) in array.as_boolean().values().set_slices() {
                    self.run(first + start as u64, (end - start) as u64);
                }
            }
            ("rl", _) => {
                let lengths = batch.column(1).as_primitive::<UInt64Type>().values();
                for (start, length) in array.as_primitive::<UInt64Type>().values().iter().zip(lengths) {
                    self.run(*start, *length);
                }
            }
            ("sparse", _) => {
                for position in array.as_primitive::<UInt64Type>().values() {
                    self.run(*position, 1);
                }
            }
            (_, DataType::UInt64) => {
                array.as_primitive::<UInt64Type>().values().iter().for_each(|item| self.item(*item));
            }
            (_, DataType::Binary | DataType::Utf8) => {
                let bytes = arrow_cast::cast(array, &DataType::Binary)?;
                for value in bytes.as_binary::<i32>().iter().flatten() {
                    value.iter().for_each(|byte| self.item(u64::from(*byte)));
                    self.items += value.len() as u64;
                }
                return Ok(());
            }
            _ => {}
        }
        self.items += batch.num_rows() as u64;
        Ok(())
    }

    fn merge(&mut self, _: Self) -> Result<()> {
        Err(Error::unsupported("the figures of a structure in parts"))
    }
}
