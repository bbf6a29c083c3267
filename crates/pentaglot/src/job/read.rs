//! The rows of an open document, chosen and in a wanted form.

use std::ops::Range;
use std::sync::Arc;

use super::open::Opened;
use super::selection;
use crate::convert::{leaving, reshape};
use crate::error::{Context, Error, Result};
use crate::formats::Request;
use crate::hub::rows::{from_batches, sliced_schema};
use crate::hub::{Form, Rows};

/// Which rows and columns are wanted, in which form.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct View {
    /// Names of columns; of a matrix also `3`, `7..9`.
    pub columns: Option<Vec<String>>,
    /// Rows, half-open.
    pub rows: Option<Range<u64>>,
    /// Rows per batch; 0: what suits the format.
    pub batch_rows: usize,
    /// The forms that the caller takes, the preferred one first; empty: any.
    pub forms: Vec<Form>,
}

impl View {
    /// The view as a request, and the schema of what it gives.
    pub(super) fn request(&self, opened: &Opened) -> Result<(Request, arrow_schema::SchemaRef)> {
        let mut request = Request::default();
        request.batch_rows = self.batch_rows;
        request.rows = self.rows.clone();
        let mut schema = Arc::clone(&opened.document.summary().schema);
        if let Some(names) = &self.columns {
            let columns = selection::resolve_columns(names, &schema)?;
            schema = columns.schema(&schema)?;
            request.columns = Some(columns);
        }
        if let Some(rows) = &self.rows {
            schema = sliced_schema(&schema, rows);
        }
        Ok((request, schema))
    }
}

impl Opened {
    /// The rows of this view.
    pub fn rows(&self, view: &View) -> Result<Rows> {
        let (request, schema) = view.request(self)?;
        let rows = self.charged_rows(&request)?;
        if view.forms.is_empty() {
            return Ok(rows);
        }
        let form = leaving::choose(&schema, &view.forms, "auto")?;
        let step = reshape::plan(&schema, form)?;
        step.plan.check(false)?;
        reshape::reshape(rows, &step, &self.budget)
    }

    /// The rows of the document. Each batch is paid for until it is freed; a job that is to end ends before the next.
    pub(super) fn charged_rows(&self, request: &Request) -> Result<Rows> {
        let id = self.format.info().id;
        self.control.check()?;
        let rows = self.document.rows(request).in_format(id)?;
        let schema = rows.schema();
        let (budget, control) = (self.budget.clone(), self.control.clone());
        let charged = rows.map(move |batch| {
            let batch = batch.map_err(Error::from)?;
            control.count_rows(batch.num_rows() as u64)?;
            budget.charge(&batch).in_format(id)?;
            Ok(batch)
        });
        Ok(from_batches(schema, charged))
    }
}
