//! The statistics of a matrix, updated batch by batch.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{UInt32Type, UInt64Type};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, Schema};

use super::figures::between;
use super::frequent::hash_word;
use super::moments::Moments;
use super::quantiles::Quantiles;
use super::words::Lane;
use super::{MatrixDescription, QUANTILES, State, number_text};
use crate::control::Control;
use crate::error::{Error, Result};
use crate::hub::json::Columns;
use crate::hub::shape;
use crate::job::json_options;
use crate::limits::{Budget, Reservation};

/// Cells processed in one step.
const STEP: usize = 8192;

pub(super) struct MatrixState {
    value_type: DataType,
    lane: Lane,
    /// The number of rows, if the schema declares it.
    declared_rows: Option<u64>,
    cols: u64,
    rows: u64,
    nonzeros: u64,
    stored: Moments,
    nans: u64,
    range: Option<(u64, u64)>,
    bandwidth: Option<u64>,
    /// Sums of hashes of (row, col, value), less those of (col, row, value): both are zero if the matrix equals its
    /// transpose, and otherwise with a probability of 2^-128.
    balance: [u64; 2],
    row_counts: Quantiles,
    col_counts: Option<Vec<u64>>,
    control: Control,
    _held: Option<Reservation>,
}

impl MatrixState {
    pub(super) fn new(schema: &Schema, budget: &Budget, control: &Control) -> Result<Self> {
        let cols = shape::matrix_cols(schema)
            .ok_or_else(|| Error::unsupported("the figures of a matrix of unknown width"))?;
        let value_type = shape::matrix_value_type(schema)
            .ok_or_else(|| Error::unsupported("the figures of a matrix whose columns differ in type"))?;
        // Other types than numbers of at most eight bytes are processed as float64.
        let (value_type, lane) = match Lane::of(&value_type) {
            Some(lane) => (value_type, lane),
            None => (DataType::Float64, Lane::Float(8)),
        };
        // Counts per column may take a quarter of the budget that is left.
        let bytes = cols.saturating_mul(8);
        let held = if bytes <= budget.left() / 4 { budget.reserve(bytes).ok() } else { None };
        Ok(MatrixState {
            value_type,
            lane,
            declared_rows: shape::matrix_rows(schema),
            cols,
            rows: 0,
            nonzeros: 0,
            stored: Moments::default(),
            nans: 0,
            range: None,
            bandwidth: None,
            balance: [0; 2],
            row_counts: Quantiles::default(),
            col_counts: held.is_some().then(|| vec![0; cols as usize]),
            control: control.clone(),
            _held: held,
        })
    }

    /// Counts stored values in `STEP`s; returns all of them as keys, NaN as `None`.
    fn values(&mut self, values: &ArrayRef) -> Result<Vec<Option<u64>>> {
        let values = match values.data_type() == &self.value_type {
            true => Arc::clone(values),
            false => arrow_cast::cast(values, &self.value_type)?,
        };
        if values.null_count() > 0 {
            return Err(Error::unsupported("the figures of a matrix with missing values"));
        }
        let mut all = Vec::new();
        let (mut keys, mut numbers) = (Vec::new(), Vec::new());
        for start in (0..values.len()).step_by(STEP) {
            let step = values.slice(start, STEP.min(values.len() - start));
            keys.clear();
            numbers.clear();
            let nans = self.lane.read(step.as_ref(), &mut keys, &mut numbers);
            self.nans += nans;
            self.stored.merge(Moments::of(&numbers));
            if let (Some(low), Some(high)) = (keys.iter().min(), keys.iter().max()) {
                let (old_low, old_high) = self.range.unwrap_or((*low, *high));
                self.range = Some((old_low.min(*low), old_high.max(*high)));
            }
            if nans == 0 {
                all.extend(keys.iter().map(|key| Some(*key)));
                continue;
            }
            for index in 0..step.len() {
                keys.clear();
                self.lane.read(step.slice(index, 1).as_ref(), &mut keys, &mut numbers);
                all.push(keys.first().copied());
            }
        }
        Ok(all)
    }

    /// Counts an entry that is not zero.
    fn place(&mut self, row: u64, col: u64, key: Option<u64>) {
        let distance = row.abs_diff(col);
        self.bandwidth = Some(self.bandwidth.map_or(distance, |width| width.max(distance)));
        if distance > 0 {
            let value = hash_word(key.unwrap_or(u64::MAX));
            for (lane, balance) in self.balance.iter_mut().enumerate() {
                let hash = |first: u64, second: u64| {
                    hash_word(
                        hash_word(first.wrapping_add(lane as u64 * 0x5851_f42d) ^ value).wrapping_add(second),
                    )
                };
                *balance = balance.wrapping_add(hash(row, col)).wrapping_sub(hash(col, row));
            }
        }
    }

    pub(super) fn finish(self) -> Result<MatrixDescription> {
        let rows = self.declared_rows.map_or(self.rows, |rows| rows.max(self.rows));
        let mut row_counts = self.row_counts;
        // Rows past the last stored one are empty.
        let mut left = rows - self.rows;
        while left > 0 {
            let some = left.min(1 << 16);
            row_counts.extend(&vec![0; some as usize]);
            left -= some;
            self.control.check()?;
        }
        let places = rows as f64 * self.cols as f64;
        let quantiles = |counts: &Quantiles| {
            let sorted = counts.sorted();
            let at = |quantile: &f64| {
                let (low, high, part) = sorted.at(*quantile)?;
                Some(between(low as f64, high as f64, part))
            };
            let all: Option<Vec<f64>> = QUANTILES.iter().map(at).collect();
            all.and_then(|all| all.try_into().ok())
        };
        let col_counts = self.col_counts.as_ref().and_then(|counts| {
            let mut all = Quantiles::default();
            all.extend(counts);
            quantiles(&all)
        });
        let text = |key: u64| -> Result<String> {
            let array = self.lane.array(&self.value_type, &[key])?;
            let field = Field::new("value", self.value_type.clone(), false);
            let batch = RecordBatch::try_new(Arc::new(Schema::new(vec![field])), vec![array])?;
            let mut out = Vec::new();
            Columns::new(&batch, &json_options())?.write_cell(0, 0, &mut out)?;
            Ok(String::from_utf8_lossy(&out).into_owned())
        };
        Ok(MatrixDescription {
            rows,
            cols: self.cols,
            nonzeros: self.nonzeros,
            nans: self.nans,
            density: (places > 0.0).then(|| self.nonzeros as f64 / places),
            min: self.range.map(|(low, _)| text(low)).transpose()?,
            max: self.range.map(|(_, high)| text(high)).transpose()?,
            mean: (self.stored.count > 0).then(|| number_text(self.stored.mean)),
            symmetric: rows == self.cols && self.balance == [0; 2],
            bandwidth: self.bandwidth,
            row_counts: quantiles(&row_counts),
            col_counts,
        })
    }
}

impl State for MatrixState {
    const TAKES_MATRICES: bool = true;

    fn is_divisible(_: &Schema) -> bool {
        true
    }

    fn push(&mut self, first: u64, batch: &RecordBatch) -> Result<()> {
        let other = || Error::unsupported("the figures of a matrix whose rows are neither dense nor sparse");
        let array = batch.column(0);
        if array.null_count() > 0 {
            return Err(Error::unsupported("the figures of a matrix with missing values"));
        }
        self.rows += batch.num_rows() as u64;
        // Statistics treat -0.0 as zero.
        let zero = match self.lane {
            Lane::Unsigned(_) => 0,
            _ => 1 << 63,
        };
        let mut row_counts: Vec<u64> = Vec::new();
        match array.data_type() {
            DataType::FixedSizeList(_, cols) => {
                let cols = *cols as usize;
                let values = self.values(array.as_fixed_size_list().values())?;
                let mut places = values.chunks(cols.max(1));
                for row in 0..batch.num_rows() {
                    let mut count = 0;
                    for (col, key) in places.next().unwrap_or_default().iter().enumerate() {
                        if *key != Some(zero) {
                            count += 1;
                            self.place(first + row as u64, col as u64, *key);
                            if let Some(counts) = &mut self.col_counts {
                                counts[col] += 1;
                            }
                        }
                    }
                    row_counts.push(count);
                }
            }
            DataType::LargeList(_) => {
                let list = array.as_list::<i64>();
                let offsets = list.value_offsets();
                let (start, end) = (offsets[0] as usize, offsets[list.len()] as usize);
                let entries = list.values().slice(start, end - start);
                let entries = entries.as_struct_opt().ok_or_else(other)?;
                let [cols, values] = entries.columns() else { return Err(other()) };
                let keys = self.values(values)?;
                let col: Box<dyn Fn(usize) -> u64> = match cols.data_type() {
                    DataType::UInt32 => {
                        let cols = cols.as_primitive::<UInt32Type>().values().clone();
                        Box::new(move |entry| u64::from(cols[entry]))
                    }
                    DataType::UInt64 => {
                        let cols = cols.as_primitive::<UInt64Type>().values().clone();
                        Box::new(move |entry| cols[entry])
                    }
                    _ => return Err(other()),
                };
                for row in 0..list.len() {
                    let (from, to) = (offsets[row] as usize - start, offsets[row + 1] as usize - start);
                    for (entry, key) in (from..to).zip(&keys[from..to]) {
                        let col = col(entry);
                        if let Some(count) =
                            self.col_counts.as_mut().and_then(|counts| counts.get_mut(col as usize))
                        {
                            *count += 1;
                        }
                        if *key != Some(zero) {
                            self.place(first + row as u64, col, *key);
                        }
                    }
                    row_counts.push((to - from) as u64);
                }
            }
            _ => return Err(other()),
        }
        self.nonzeros += row_counts.iter().sum::<u64>();
        self.row_counts.extend(&row_counts);
        Ok(())
    }

    fn merge(&mut self, other: Self) -> Result<()> {
        self.rows += other.rows;
        self.nonzeros += other.nonzeros;
        self.stored.merge(other.stored);
        self.nans += other.nans;
        self.range = match (self.range, other.range) {
            (Some((low, high)), Some((other_low, other_high))) => {
                Some((low.min(other_low), high.max(other_high)))
            }
            (own, other) => own.or(other),
        };
        self.bandwidth = self.bandwidth.max(other.bandwidth);
        for (own, other) in self.balance.iter_mut().zip(other.balance) {
            *own = own.wrapping_add(other);
        }
        self.row_counts.merge(other.row_counts);
        self.col_counts = match (self.col_counts.take(), other.col_counts) {
            (Some(mut own), Some(other)) => {
                own.iter_mut().zip(other).for_each(|(own, other)| *own += other);
                Some(own)
            }
            _ => None,
        };
        Ok(())
    }
}
