//! `describe`: statistics of a document's values, in one pass and bounded memory.
//!
//! A table has statistics of each column; matrices and succinct structures have their own statistics. Parts of a
//! document ([`Document::splits`](crate::formats::Document::splits)) are read in parallel, with a state per thread; a
//! document without parts is processed with the columns of each batch in parallel. States are merged at the end.

mod column;
mod distinct;
mod figures;
mod frequent;
mod json;
mod matrix;
mod moments;
mod quantiles;
mod succinct;
#[cfg(test)]
mod tests;
mod wide;
mod words;

use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::RecordBatch;
use arrow_schema::Schema;
use rayon::prelude::*;

use self::column::ColumnState;
use self::matrix::MatrixState;
use super::open::Opened;
use super::read::View;
use crate::control::Control;
use crate::convert::reshape;
use crate::error::{Error, Result};
use crate::hub::json::{Float, special_float};
use crate::hub::{Form, LossKinds, LossRecord, Rows};
use crate::limits::{Budget, Reservation};

/// The quantiles that are reported.
pub const QUANTILES: [f64; 5] = [0.05, 0.25, 0.5, 0.75, 0.95];

/// With more columns than this, the columns of each batch are processed in parallel, so that there is one state per
/// column.
const MANY_COLUMNS: usize = 256;
/// Parts per thread: a thread that finishes early takes another one.
const SPLITS_PER_THREAD: usize = 4;

/// Statistics of the values of a document.
///
/// ```
/// use pentaglot::{Registry, Source, job};
/// let source = Source::from_bytes("x.csv", b"a,b\n1,x\n2,\n4,x\n".to_vec());
/// let opened = job::open_source(&Registry::default(), source, None, &job::OpenOptions::default())?;
/// let job::Description::Table(table) = opened.describe(&job::View::default())? else { panic!("a table") };
/// assert_eq!((table.rows, table.columns[1].nulls, table.columns[1].distinct), (3, 1, 1));
/// assert_eq!(table.columns[0].max.as_deref(), Some("4"));
/// # Ok::<(), pentaglot::Error>(())
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Description {
    /// Statistics of a table, an array or a single value: column by column.
    Table(TableDescription),
    /// Statistics of a matrix.
    Matrix(MatrixDescription),
    /// Statistics of a succinct structure.
    Succinct(SuccinctDescription),
}

/// Statistics of the columns of a table.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct TableDescription {
    /// Rows.
    pub rows: u64,
    /// The columns.
    pub columns: Vec<ColumnDescription>,
}

/// Statistics of the values of a column. Values are JSON texts as in [`hub::json`](crate::hub::json).
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct ColumnDescription {
    /// Its name.
    pub name: String,
    /// Its type as Arrow text.
    pub data_type: String,
    /// Values that are neither missing nor NaN; all other statistics are of these.
    pub count: u64,
    /// Missing values.
    pub nulls: u64,
    /// Values that are NaN.
    pub nans: u64,
    /// Values that are infinite.
    pub infinities: u64,
    /// Distinct values; -0.0 and 0.0 are the same value.
    pub distinct: u64,
    /// Whether that is exact: it is up to 10,000, then it is an estimate within 3 %.
    pub distinct_exact: bool,
    /// The least value, for types that have an order.
    pub min: Option<String>,
    /// The greatest value.
    pub max: Option<String>,
    /// The mean of numbers, and of dates and times, rounded to their unit.
    pub mean: Option<String>,
    /// The standard deviation of numbers, over `n - 1`.
    pub std: Option<String>,
    /// The [`QUANTILES`], linear between values: exact up to 100,000 values, then with a rank error of at most 1 %.
    pub quantiles: Option<[String; 5]>,
    /// The ten most frequent values, with the minimum number of their occurrences.
    pub top: Vec<(String, u64)>,
    /// Whether these are the most frequent ones and their counts are exact.
    pub top_exact: bool,
    /// Lengths of strings in characters, of bytes in bytes.
    pub lengths: Option<Lengths>,
    /// How many values of a Boolean column are true and false.
    pub truths: Option<(u64, u64)>,
    /// The distribution of numbers and times; past 100,000 values an estimate.
    pub histogram: Option<Histogram>,
}

/// Lengths of values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Lengths {
    /// The least.
    pub min: u64,
    /// The greatest.
    pub max: u64,
    /// The sum of all lengths.
    pub sum: u128,
    /// The number of values.
    pub count: u64,
}

impl Lengths {
    fn merged(self, other: Self) -> Self {
        Lengths {
            min: self.min.min(other.min),
            max: self.max.max(other.max),
            sum: self.sum + other.sum,
            count: self.count + other.count,
        }
    }

    /// The mean.
    pub fn mean(&self) -> f64 {
        self.sum as f64 / self.count.max(1) as f64
    }
}

/// Counts of values in bars of equal width. Times are numbers in their unit.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Histogram {
    /// The least finite value, where the first bar begins.
    pub min: f64,
    /// The greatest finite value.
    pub max: f64,
    /// The width of a bar; 1 if there is one per integer.
    pub width: f64,
    /// Values in each bar.
    pub counts: Vec<u64>,
}

/// Statistics of a matrix. Dense and sparse matrices with equal values differ only in `stored`, `min`, `max` and
/// `mean`, which are of the stored values: for a dense matrix, all of them.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct MatrixDescription {
    /// Rows.
    pub rows: u64,
    /// Columns.
    pub cols: u64,
    /// Stored entries of a sparse matrix, including explicit zeros; non-zero values of a dense one.
    pub nonzeros: u64,
    /// Stored values that are NaN.
    pub nans: u64,
    /// `nonzeros` divided by the number of cells; `None` if there are no cells.
    pub density: Option<f64>,
    /// The least stored value.
    pub min: Option<String>,
    /// The greatest stored value.
    pub max: Option<String>,
    /// The mean of the stored values.
    pub mean: Option<String>,
    /// Whether it equals its transpose.
    pub symmetric: bool,
    /// The greatest distance of a non-zero value from the diagonal; `None` if all are zero.
    pub bandwidth: Option<u64>,
    /// [`QUANTILES`] of the entries per row.
    pub row_counts: Option<[f64; 5]>,
    /// [`QUANTILES`] of the entries per column; `None` if there are too many columns to count them within the budget.
    pub col_counts: Option<[f64; 5]>,
}

/// Statistics of a succinct structure.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct SuccinctDescription {
    /// Its kind: `bit`, `sparse`, `rl`, `int`, …
    pub kind: String,
    /// Bits of a bit vector, items of other vectors, bytes of a string.
    pub len: u64,
    /// Ones of a bit vector, repeated positions included.
    pub ones: Option<u64>,
    /// Bits per item; of a `sparse` vector, of the low parts of positions.
    pub width: Option<u64>,
    /// Runs of ones in a bit vector, runs of equal items in other vectors.
    pub runs: Option<u64>,
    /// Bits of the file.
    pub bits: u64,
    /// The minimum number of bits of any code for single bits or items: the length times the empirical entropy. `None`
    /// for multisets, and if there are more than 20,000 distinct items.
    pub entropy_bits: Option<f64>,
}

impl Opened {
    /// Statistics of the values of this view. With a filter, a succinct structure is described as a table, and a matrix as
    /// that of the rows that match.
    pub fn describe(&self, view: &View) -> Result<Description> {
        if let Some(filter) = &view.filter {
            let view = View { filter: None, ..view.clone() };
            return self.filtered(filter)?.describe_rows(&view);
        }
        if let Some(kind) = succinct::kind_of(self, view) {
            let state = self.gather(view, || Ok(succinct::SuccinctState::new(&kind)))?;
            return state.finish(self).map(Description::Succinct);
        }
        self.describe_rows(view)
    }

    /// Statistics of a table or a matrix.
    fn describe_rows(&self, view: &View) -> Result<Description> {
        let selection = view.selection(self)?;
        let schema = match Form::of(selection.schema()) {
            Form::Dense | Form::Sparse => Arc::clone(selection.schema()),
            Form::Columns => reshape::plan(selection.schema(), Form::Dense)?.schema,
            Form::Coo => reshape::plan(selection.schema(), Form::Sparse)?.schema,
            _ => return self.describe_table(view),
        };
        let state = self.gather(view, || MatrixState::new(&schema, &self.budget, &self.control))?;
        state.finish().map(Description::Matrix)
    }

    fn describe_table(&self, view: &View) -> Result<Description> {
        let selection = view.selection(self)?;
        let new = || Ok(TableState::new(selection.schema(), &self.budget, &self.control));
        self.gather(view, new)?.finish().map(Description::Table)
    }

    /// Reads all rows of the view into states, in parallel if the document has parts, and merges them.
    fn gather<S: State>(&self, view: &View, new: impl Fn() -> Result<S> + Send + Sync) -> Result<S> {
        let threads = self.control.threads();
        let splits =
            match view.rows.is_none() && S::is_divisible(&self.document.summary().schema) && threads > 1 {
                true => self.document.splits(threads * SPLITS_PER_THREAD),
                false => Vec::new(),
            };
        if splits.len() < 2 {
            let mut state = new()?;
            state.set_alone();
            self.read_into(self.overlapped(self.rows(view)?)?, 0, &mut state)?;
            return Ok(state);
        }
        // As many states as threads: each split uses one that is free.
        let free: Mutex<Vec<S>> = Mutex::new(Vec::new());
        let free_states = || free.lock().unwrap_or_else(PoisonError::into_inner);
        let results = self.control.map(splits, |split| {
            let taken = free_states().pop();
            let mut state = match taken {
                Some(state) => state,
                None => new()?,
            };
            let first = split.rows.start;
            self.read_into(self.rows(&View { rows: Some(split.rows), ..view.clone() })?, first, &mut state)?;
            free_states().push(state);
            Ok(())
        })?;
        results.into_iter().collect::<Result<()>>()?;
        let mut states = free.into_inner().unwrap_or_else(PoisonError::into_inner).into_iter();
        let mut all = match states.next() {
            Some(state) => state,
            None => new()?,
        };
        states.try_for_each(|state| all.merge(state))?;
        Ok(all)
    }

    fn read_into<S: State>(&self, rows: Rows, first: u64, state: &mut S) -> Result<()> {
        let rows = if S::TAKES_MATRICES { self.as_matrix(rows)? } else { rows };
        let mut at = first;
        for batch in rows {
            let batch = batch.map_err(Error::from)?;
            state.push(at, &batch)?;
            at += batch.num_rows() as u64;
        }
        Ok(())
    }

    /// Converts rows of a matrix in a table form to a matrix; other rows are unchanged.
    fn as_matrix(&self, rows: Rows) -> Result<Rows> {
        let form = match Form::of(&rows.schema()) {
            Form::Columns => Form::Dense,
            Form::Coo => Form::Sparse,
            _ => return Ok(rows),
        };
        let plan = reshape::plan(&rows.schema(), form)?;
        plan.plan.check(LossKinds::NONE)?;
        reshape::reshape(rows, &plan, &self.budget, LossKinds::NONE, &LossRecord::default())
    }
}

/// Statistics that are updated batch by batch.
trait State: Send + Sized {
    /// Whether a matrix in columns or as `row, col, value` is converted to a matrix first.
    const TAKES_MATRICES: bool;

    /// Whether parts of a document with this schema can be processed in parallel.
    fn is_divisible(schema: &Schema) -> bool;

    /// Declares that there is no other state, so that this one may use all threads.
    fn set_alone(&mut self) {}

    /// Takes the rows from number `first` on.
    fn push(&mut self, first: u64, batch: &RecordBatch) -> Result<()>;

    fn merge(&mut self, other: Self) -> Result<()>;
}

struct TableState {
    rows: u64,
    columns: Vec<ColumnState>,
    /// Whether the columns of a batch are processed in parallel.
    is_wide: bool,
    control: Control,
    held: Reservation,
}

impl TableState {
    fn new(schema: &Schema, budget: &Budget, control: &Control) -> Self {
        TableState {
            rows: 0,
            columns: schema.fields().iter().map(ColumnState::new).collect(),
            is_wide: false,
            control: control.clone(),
            held: budget.reservation(),
        }
    }

    fn finish(self) -> Result<TableDescription> {
        let columns = self.columns.into_iter().map(ColumnState::finish).collect::<Result<_>>()?;
        Ok(TableDescription { rows: self.rows, columns })
    }
}

impl State for TableState {
    const TAKES_MATRICES: bool = false;

    fn is_divisible(schema: &Schema) -> bool {
        schema.fields().len() <= MANY_COLUMNS
    }

    fn set_alone(&mut self) {
        self.is_wide = self.control.threads() > 1 && self.columns.len() > 1;
    }

    fn push(&mut self, _: u64, batch: &RecordBatch) -> Result<()> {
        self.rows += batch.num_rows() as u64;
        let columns = &mut self.columns;
        match self.is_wide {
            true => self.control.install(|| {
                let pairs = columns.par_iter_mut().zip(batch.columns().par_iter());
                pairs.try_for_each(|(column, array)| column.push(array))
            })??,
            false => {
                columns.iter_mut().zip(batch.columns()).try_for_each(|(column, array)| column.push(array))?
            }
        }
        self.held.grow_to(self.columns.iter().map(ColumnState::bytes).sum())
    }

    fn merge(&mut self, other: Self) -> Result<()> {
        self.rows += other.rows;
        self.held.merge(other.held);
        self.columns.iter_mut().zip(other.columns).for_each(|(own, other)| own.merge(other));
        Ok(())
    }
}

/// The JSON text of a number.
fn number_text(number: f64) -> String {
    match special_float(number) {
        Some(word) => format!("\"{word}\""),
        None => {
            let mut out = Vec::new();
            number.write_finite(&mut out);
            String::from_utf8_lossy(&out).into_owned()
        }
    }
}
