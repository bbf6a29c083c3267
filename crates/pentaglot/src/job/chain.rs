//! The rows of several inputs, one input after the other.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;

use super::open::Opened;
use crate::convert::adapt;
use crate::convert::reshape::{self, Reshape};
use crate::error::{Context, Error, Result};
use crate::formats::{FormatInfo, Summary};
use crate::hub::{Form, LossKinds, LossRecord, Rows, Selection, rows, shape};
use crate::limits::Budget;
use crate::source::Source;

/// One of several inputs.
pub(super) struct Input {
    pub(super) name: String,
    pub(super) open: Box<dyn Fn() -> Result<Opened> + Send + Sync>,
    pub(super) summary: Summary,
    /// How its rows are reshaped to the common form.
    pub(super) reshape: Reshape,
    pub(super) info: &'static FormatInfo,
}

impl Input {
    pub(super) fn new(
        name: &str,
        opened: &Opened,
        open: impl Fn() -> Result<Opened> + Send + Sync + 'static,
    ) -> Result<Self> {
        let summary = opened.document.summary().clone();
        let reshape = reshape::plan(&summary.schema, Form::of(&summary.schema))?;
        let info = opened.format.info();
        Ok(Input { name: name.to_owned(), open: Box::new(open), summary, reshape, info })
    }

    /// The number of its rows in the common form, if known.
    pub(super) fn rows(&self) -> Option<u64> {
        match Form::of(&self.summary.schema) {
            Form::Coo => shape::matrix_rows(&self.summary.schema),
            _ => self.summary.rows,
        }
    }
}

/// Reads inputs one after the other and returns batches of one schema.
pub(super) struct Chain {
    inputs: Arc<[Input]>,
    /// The schema of all inputs with all columns.
    whole: SchemaRef,
    /// The schema of the result.
    schema: SchemaRef,
    /// The chosen columns of `whole`, if not all.
    columns: Option<Vec<Range<u64>>>,
    /// The selected rows, counted over all inputs.
    range: Range<u64>,
    batch_rows: usize,
    budget: Budget,
    /// The input that is read, or the next one.
    index: usize,
    /// Rows before that input.
    start: u64,
    current: Option<Current>,
}

struct Current {
    rows: Rows,
    /// The bytes, if they are read to their end.
    source: Option<Source>,
    format: &'static str,
    /// Rows that were read of this input.
    position: u64,
    /// Rows to drop at its start, if the reader cannot skip them.
    skip: u64,
}

impl Chain {
    pub(super) fn new(inputs: Arc<[Input]>, whole: SchemaRef, selection: &Selection, budget: Budget) -> Self {
        Chain {
            inputs,
            whole,
            schema: Arc::clone(selection.schema()),
            columns: selection.columns().map(|columns| columns.ranges().to_vec()),
            range: selection.range(u64::MAX),
            batch_rows: selection.batch_rows(),
            budget,
            index: 0,
            start: 0,
            current: None,
        }
    }

    /// The next batch, perhaps one without rows; `None` at the end.
    fn step(&mut self) -> Result<Option<RecordBatch>> {
        let Some(input) = self.inputs.get(self.index).filter(|_| self.start < self.range.end) else {
            return Ok(None);
        };
        let Some(current) = &mut self.current else {
            match input.rows() {
                Some(rows) if self.start.saturating_add(rows) <= self.range.start => {
                    self.start += rows;
                    self.index += 1;
                }
                _ => self.current = Some(self.read(input)?),
            }
            return Ok(Some(RecordBatch::new_empty(Arc::clone(&self.schema))));
        };
        let Some(batch) = current.rows.next() else {
            let source = current.source.take();
            source.map_or(Ok(()), |source| source.check_unchanged()).in_format(current.format)?;
            self.start = self.start.saturating_add(input.rows().unwrap_or(current.position));
            self.index += 1;
            self.current = None;
            return Ok(Some(RecordBatch::new_empty(Arc::clone(&self.schema))));
        };
        let batch = batch.map_err(Error::from).in_format(current.format)?;
        let count = batch.num_rows() as u64;
        let dropped = current.skip.saturating_sub(current.position).min(count);
        current.position += count;
        let batch = batch.slice(dropped as usize, (count - dropped) as usize);
        rows::batch(Arc::clone(&self.schema), batch.columns().to_vec(), batch.num_rows()).map(Some)
    }

    /// Starts an input: its columns, form and types are converted to the common ones.
    fn read(&self, input: &Input) -> Result<Current> {
        let opened = (input.open)()?;
        let format = opened.format.info().id;
        let own = &input.summary.schema;
        // Where its rows are is computed with their number.
        let now = opened.document.summary();
        if now.schema != *own || now.rows != input.summary.rows {
            return Err(Error::usage("the file has changed since it was opened first"));
        }
        let mut wanted = self.range.start.saturating_sub(self.start)..self.range.end - self.start;
        let is_to_the_end = wanted.end >= input.rows().unwrap_or(u64::MAX - self.start);
        let source = is_to_the_end.then(|| opened.source.clone());
        let skip = if input.rows().is_some() { 0 } else { std::mem::take(&mut wanted.start) };
        let mut selection = opened.document.selection().with_batch_rows(self.batch_rows);
        let rows = if own == &input.reshape.schema {
            selection = selection.with_rows(wanted);
            if let Some(columns) = self.own_columns(own) {
                selection = selection.with_column_ranges(columns)?;
            }
            opened.document.rows(&selection).in_format(format)?
        } else {
            let rows = opened.document.rows(&selection).in_format(format)?;
            let rows = reshape::reshape(
                rows,
                &input.reshape,
                &self.budget,
                LossKinds::NONE,
                &LossRecord::default(),
            )?;
            let rows = match &self.columns {
                Some(columns) => {
                    Selection::new(&rows.schema(), None).with_column_ranges(columns.clone())?.project(rows)?
                }
                None => rows,
            };
            rows::slice(rows, wanted)
        };
        let rows = if rows.schema().fields() == self.schema.fields() {
            rows
        } else {
            adapt::adapter(&rows.schema(), &self.schema).adapt(rows, LossKinds::NONE, LossRecord::default())
        };
        Ok(Current { rows, source, format, position: 0, skip })
    }

    /// The chosen columns as columns of one input: by name if inputs differ, and only those that it has.
    fn own_columns(&self, own: &SchemaRef) -> Option<Vec<Range<u64>>> {
        let columns = self.columns.as_ref()?;
        let (own, whole) = (own.fields(), self.whole.fields());
        if own.len() == whole.len() && own.iter().zip(whole).all(|(own, whole)| own.name() == whole.name()) {
            return Some(columns.clone());
        }
        let indices = columns.iter().cloned().flatten().filter_map(|index| {
            let name = whole.get(index as usize)?.name();
            own.iter().position(|field| field.name() == name)
        });
        Some(indices.map(|index| index as u64..index as u64 + 1).collect())
    }
}

impl Iterator for Chain {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            match self.step() {
                Ok(Some(batch)) if batch.num_rows() == 0 => {}
                Ok(batch) => return batch.map(Ok),
                Err(error) => {
                    let name = self.inputs.get(self.index).map(|input| input.name.clone());
                    return Some(Err(error.in_input(name.unwrap_or_default())));
                }
            }
        }
    }
}
