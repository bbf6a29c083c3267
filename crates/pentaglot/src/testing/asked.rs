//! [`Asked`]: the rows and columns that a test requests of a document.

use std::ops::Range;

use crate::error::Result;
use crate::formats::Document;
use crate::hub::{Rows, Selection};

/// Rows and columns by index, to be resolved against a document.
#[derive(Debug, Clone, Default)]
pub(crate) struct Asked {
    pub(crate) columns: Option<Vec<Range<u64>>>,
    pub(crate) rows: Option<Range<u64>>,
    pub(crate) batch_rows: usize,
}

impl Asked {
    pub(crate) fn of(&self, document: &dyn Document) -> Result<Selection> {
        let mut selection = document.selection().with_batch_rows(self.batch_rows);
        if let Some(rows) = &self.rows {
            selection = selection.with_rows(rows.clone());
        }
        match &self.columns {
            Some(columns) => selection.with_column_ranges(columns.clone()),
            None => Ok(selection),
        }
    }

    /// The requested rows of `total`.
    pub(crate) fn range(&self, total: u64) -> Range<u64> {
        let range = self.rows.clone().unwrap_or(0..total);
        let end = range.end.min(total);
        range.start.min(end)..end
    }
}

impl dyn Document + '_ {
    /// The rows that a test requests.
    pub(crate) fn ask(&self, asked: &Asked) -> Result<Rows> {
        self.rows(&asked.of(self)?)
    }
}
