//! Selected rows of an open document, in a requested form.

use std::ops::Range;

use super::columns::ColumnChanges;
use super::open::Opened;
use crate::control::Control;
use crate::convert::{reshape, target_form};
use crate::error::{Context, Error, Result};
use crate::hub::rows::{check_columns, from_batches};
use crate::hub::{Early, Form, LossKinds, LossRecord, Rows, Selection, overlapped};

/// The selected rows and columns, and their form.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct View {
    /// Names of columns, or their positions: `3`, `7..9`.
    pub columns: Option<Vec<String>>,
    /// Other changes of columns. A lossy cast is an error.
    pub changes: ColumnChanges,
    /// Rows, half-open; of those that match, if there is a filter.
    pub rows: Option<Range<u64>>,
    /// Only rows that match; see [`crate::hub::filter`].
    pub filter: Option<String>,
    /// Rows per batch; 0 for the format's default.
    pub batch_rows: usize,
    /// The forms that the caller accepts, the preferred one first; any if empty.
    pub forms: Vec<Form>,
}

impl View {
    setters! {
        texts [
            with_filter(filter),
        ]
        values [
            with_changes(changes: ColumnChanges),
            with_rows(rows: Range<u64>),
            with_batch_rows(batch_rows: usize),
            with_forms(forms: Vec<Form>),
        ]
    }

    /// Sets [`columns`](Self::columns).
    #[must_use]
    pub fn with_columns(mut self, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.columns = Some(names.into_iter().map(Into::into).collect());
        self
    }

    /// The selection of a document for this view.
    pub(super) fn selection(&self, opened: &Opened) -> Result<Selection> {
        opened.document.summary().check_member()?;
        let mut selection = opened.document.selection().with_batch_rows(self.batch_rows);
        if let Some(rows) = &self.rows {
            selection = selection.with_rows(rows.clone());
        }
        if let Some(names) = &self.columns {
            selection = selection.with_columns(names)?;
        }
        selection.without_columns(&self.changes.exclude)
    }
}

impl Opened {
    /// The rows of this view.
    pub fn rows(&self, view: &View) -> Result<Rows> {
        if let Some(filter) = &view.filter {
            let view = View { filter: None, ..view.clone() };
            return self.filtered(filter)?.rows(&view);
        }
        if view.changes.changes_schema() {
            let changed = self.changed(view.columns.as_deref(), &view.changes)?;
            let view = View { columns: None, changes: ColumnChanges::default(), ..view.clone() };
            return changed.rows(&view);
        }
        let selection = view.selection(self)?;
        let rows = self.charged_rows(&selection)?;
        if view.forms.is_empty() {
            return Ok(rows);
        }
        let form = target_form::choose(selection.schema(), &view.forms, "auto")?;
        check_columns(selection.schema(), form, &self.budget)?;
        let step = reshape::plan(selection.schema(), form)?;
        step.plan.check(LossKinds::NONE)?;
        reshape::reshape(rows, &step, &self.budget, LossKinds::NONE, &LossRecord::default())
    }

    /// The rows of the document. Each batch is charged to the budget until it is freed; a cancelled job ends before
    /// the next batch.
    pub(super) fn charged_rows(&self, selection: &Selection) -> Result<Rows> {
        let id = self.format.info().id;
        self.control.check()?;
        let rows = self.document.rows(selection).in_format(id)?;
        self.control.expect_rows(self.document.summary().rows.map(|rows| {
            let range = selection.range(rows);
            range.end - range.start
        }));
        Ok(self.charged(rows, selection, Control::count_rows))
    }

    /// The rows of one of the selected columns, or of all columns of a matrix. They are charged like all rows, but not counted: those of every column are the
    /// same rows.
    pub(super) fn charged_column(&self, selection: &Selection, place: usize) -> Result<Rows> {
        let column = match selection.fields().get(place).map(|field| *field as u64) {
            Some(field) if Form::of(selection.schema()) == Form::Table => {
                selection.clone().with_column_ranges(std::iter::once(field..field + 1).collect())?
            }
            _ => selection.clone(),
        };
        let rows = self.document.rows(&column).in_format(self.format.info().id)?;
        let rows = self.charged(rows, &column, |control, _| control.check());
        // Several columns of a table are read side by side.
        if Form::of(selection.schema()) == Form::Table { Ok(rows) } else { self.overlapped(rows) }
    }

    /// After the last row of the file the bytes must still be those that were opened, so that rows of two versions are never taken
    /// for one table. Whoever wants only the first rows gets them from a file that grows, too.
    fn charged(&self, rows: Rows, selection: &Selection, count: fn(&Control, u64) -> Result<()>) -> Rows {
        let (id, schema) = (self.format.info().id, rows.schema());
        let (budget, control) = (self.budget.clone(), self.control.clone());
        let charged = rows.map(move |batch| {
            let batch = batch.map_err(Error::from).in_format(id)?;
            count(&control, batch.num_rows() as u64)?;
            budget.charge(&batch).in_format(id)?;
            Ok(batch)
        });
        let read = selection.is_to_the_end().then(|| self.source.clone());
        let changed = std::iter::once_with(move || read.and_then(|source| source.check_unchanged().err()));
        from_batches(schema, charged.chain(changed.flatten().map(Err)))
    }

    /// Rows that come from this document, made on a thread of their own while earlier ones are used. A job that has one thread, or
    /// little memory, gets them as they are.
    pub fn overlapped(&self, rows: Rows) -> Result<Rows> {
        // The next bytes of a stream may never come.
        let early = if self.source.is_seekable() { Early::Join } else { Early::Detach };
        overlapped(rows, early, &self.control, &self.budget)
    }
}
