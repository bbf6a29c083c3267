//! The rows of several inputs, one input after the other.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;

use super::inputs::Input;
use crate::convert::{adapt, reshape};
use crate::error::{Context, Error, Result};
use crate::formats::Request;
use crate::hub::Rows;
use crate::hub::rows::{self, Columns};
use crate::limits::Budget;

/// Reads inputs in turn and gives batches of one schema.
pub(super) struct Chain {
    inputs: Arc<[Input]>,
    /// The schema of all inputs with all columns.
    whole: SchemaRef,
    /// What comes out.
    schema: SchemaRef,
    columns: Option<Columns>,
    /// Rows wanted, counted over all inputs.
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
    format: &'static str,
    /// Rows that were read of this input.
    position: u64,
    /// Rows to drop at its beginning, where a reader could not skip them.
    skip: u64,
}

impl Chain {
    pub(super) fn new(
        inputs: Arc<[Input]>,
        whole: SchemaRef,
        schema: SchemaRef,
        request: &Request,
        budget: Budget,
    ) -> Self {
        Chain {
            inputs,
            whole,
            schema,
            columns: request.columns.clone(),
            range: request.rows.clone().unwrap_or(0..u64::MAX),
            batch_rows: request.batch_rows,
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

    /// Starts an input: its columns, form and types become those of all.
    fn read(&self, input: &Input) -> Result<Current> {
        let opened = (input.open)()?;
        let format = opened.format.info().id;
        let own = &input.summary.schema;
        if opened.document.summary().schema != *own {
            return Err(Error::usage("the file has changed since it was opened first"));
        }
        let mut wanted = self.range.start.saturating_sub(self.start)..self.range.end - self.start;
        let skip = if input.rows().is_some() { 0 } else { std::mem::take(&mut wanted.start) };
        let mut request = Request::default();
        request.batch_rows = self.batch_rows;
        let rows = if own == &input.reshape.schema {
            request.rows = (wanted != (0..u64::MAX)).then_some(wanted);
            request.columns = self.own_columns(&input.reshape.schema);
            opened.document.rows(&request).in_format(format)?
        } else {
            let rows = reshape::reshape(opened.document.rows(&request)?, &input.reshape, &self.budget)?;
            let rows = match &self.columns {
                Some(columns) => columns.clone().select(rows)?,
                None => rows,
            };
            rows::slice(rows, wanted)
        };
        let rows = if rows.schema().fields() == self.schema.fields() {
            rows
        } else {
            adapt::adapter(&rows.schema(), &self.schema).adapt(rows)
        };
        Ok(Current { rows, format, position: 0, skip })
    }

    /// The chosen columns as columns of one input: by name where inputs differ, and only those that it has.
    fn own_columns(&self, own: &SchemaRef) -> Option<Columns> {
        let columns = self.columns.as_ref()?;
        if own.fields().len() == self.whole.fields().len()
            && own.fields().iter().zip(self.whole.fields()).all(|(own, whole)| own.name() == whole.name())
        {
            return Some(columns.clone());
        }
        let indices = columns.indices().filter_map(|index| {
            let name = self.whole.fields().get(index as usize)?.name();
            own.fields().iter().position(|field| field.name() == name)
        });
        Some(Columns(indices.map(|index| index as u64..index as u64 + 1).collect()))
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
                    return Some(Err(error.in_file(name.unwrap_or_default())));
                }
            }
        }
    }
}
