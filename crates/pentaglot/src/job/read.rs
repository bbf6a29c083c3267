//! The rows of an open document, chosen and in a wanted form.

use std::ops::Range;

use super::open::Opened;
use crate::convert::{leaving, reshape};
use crate::error::{Context, Result};
use crate::hub::{Form, Rows, Selection};
use crate::limits::Limits;

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
    /// The selection of a document that this view asks for.
    pub(super) fn selection(&self, opened: &Opened) -> Result<Selection> {
        opened.document.summary().check_member()?;
        let mut selection = opened.document.selection().with_batch_rows(self.batch_rows);
        if let Some(rows) = &self.rows {
            selection = selection.with_rows(rows.clone());
        }
        match &self.columns {
            Some(names) => selection.with_columns(names),
            None => Ok(selection),
        }
    }
}

impl Opened {
    /// The rows of this view.
    pub fn rows(&self, view: &View, limits: &Limits) -> Result<Rows> {
        let selection = view.selection(self)?;
        let rows = self.document.rows(&selection).in_format(self.format.info().id)?;
        if view.forms.is_empty() {
            return Ok(rows);
        }
        let form = leaving::choose(selection.schema(), &view.forms, "auto")?;
        let step = reshape::plan(selection.schema(), form)?;
        step.plan.check(false)?;
        reshape::reshape(rows, &step, &limits.budget())
    }
}
