//! The result of a comparison: totals, and the first differences of each column.

use super::OnDifference;
use super::schema::SchemaDifference;
use crate::error::Result;

/// The differences of two documents.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Diff {
    /// Differences of the schemas.
    pub schema: Vec<SchemaDifference>,
    /// How many rows differ.
    pub rows: RowDifferences,
    /// The columns that were compared.
    pub columns: Vec<ColumnDifferences>,
    /// The first rows that only the second document has: where they are, and JSON text of their values.
    pub first_added: Vec<(Place, String)>,
    /// The first rows that only the first document has.
    pub first_removed: Vec<(Place, String)>,
}

impl Diff {
    /// Whether nothing differs.
    pub fn is_equal(&self) -> bool {
        self.schema.is_empty() && self.rows == RowDifferences::default()
    }
}

/// How many rows differ.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RowDifferences {
    /// Rows that only the second document has.
    pub added: u64,
    /// Rows that only the first document has.
    pub removed: u64,
    /// Rows that both have, with different values.
    pub changed: u64,
}

/// The differences of a column.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ColumnDifferences {
    /// Its name; empty unless it is the column of a table.
    pub name: String,
    /// How many of its cells differ.
    pub changed: u64,
    /// The first of them.
    pub first: Vec<Cell>,
}

/// A cell that differs: JSON text of both values.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Cell {
    /// Its place.
    pub place: Place,
    /// Its value in the first document.
    pub a: String,
    /// Its value in the second document.
    pub b: String,
}

/// The place of a difference.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Place {
    /// A row, from 0.
    Row(u64),
    /// An entry of a matrix, from 0.
    Entry {
        /// Its row.
        row: u64,
        /// Its column.
        col: u64,
    },
    /// A key: a JSON object of the key columns.
    Key(String),
}

/// One difference, as it is passed to a listener.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Difference {
    /// `schema`, `changed`, `added` or `removed`.
    pub kind: &'static str,
    /// Its place; `None` for a schema.
    pub place: Option<Place>,
    /// The column, if it is about one.
    pub column: Option<String>,
    /// JSON text of the cell or row in the first document, or the column's type.
    pub a: Option<String>,
    /// The same of the second document.
    pub b: Option<String>,
}

/// Counts differences, keeps the first ones and passes all to the listener.
pub(super) struct Collector<'l> {
    first: usize,
    listener: Option<OnDifference<'l>>,
    diff: Diff,
}

impl<'l> Collector<'l> {
    pub(super) fn new(first: usize, listener: Option<OnDifference<'l>>) -> Self {
        Collector { first, listener, diff: Diff::default() }
    }

    pub(super) fn finish(self) -> Diff {
        self.diff
    }

    pub(super) fn schema(&mut self, differences: Vec<SchemaDifference>) -> Result<()> {
        if let Some(listener) = &mut self.listener {
            for found in &differences {
                let (column, a, b) = (found.column.clone(), found.a.clone(), found.b.clone());
                listener(&Difference { kind: "schema", place: None, column, a, b })?;
            }
        }
        self.diff.schema = differences;
        Ok(())
    }

    pub(super) fn columns(&mut self, names: impl IntoIterator<Item = String>) {
        let column = |name| ColumnDifferences { name, changed: 0, first: Vec::new() };
        self.diff.columns = names.into_iter().map(column).collect();
    }

    /// Adds a cell that differs. `texts` creates place and values if they are needed.
    pub(super) fn cell(
        &mut self,
        column: usize,
        texts: impl FnOnce() -> Result<(Place, String, String)>,
    ) -> Result<()> {
        let found = &mut self.diff.columns[column];
        found.changed += 1;
        let kept = found.first.len() < self.first;
        if !kept && self.listener.is_none() {
            return Ok(());
        }
        let (place, a, b) = texts()?;
        if let Some(listener) = &mut self.listener {
            listener(&Difference {
                kind: "changed",
                place: Some(place.clone()),
                column: Some(found.name.clone()),
                a: Some(a.clone()),
                b: Some(b.clone()),
            })?;
        }
        if kept {
            found.first.push(Cell { place, a, b });
        }
        Ok(())
    }

    pub(super) fn changed_rows(&mut self, count: u64) {
        self.diff.rows.changed += count;
    }

    /// A row that only the second document has.
    pub(super) fn added(&mut self, texts: impl FnOnce() -> Result<(Place, String)>) -> Result<()> {
        self.diff.rows.added += 1;
        let kept = self.diff.first_added.len() < self.first;
        let Some((place, row)) = self.one_sided(kept, texts)? else { return Ok(()) };
        if kept {
            self.diff.first_added.push((place.clone(), row.clone()));
        }
        self.tell(&Difference { kind: "added", place: Some(place), column: None, a: None, b: Some(row) })
    }

    /// A row that only the first document has.
    pub(super) fn removed(&mut self, texts: impl FnOnce() -> Result<(Place, String)>) -> Result<()> {
        self.diff.rows.removed += 1;
        let kept = self.diff.first_removed.len() < self.first;
        let Some((place, row)) = self.one_sided(kept, texts)? else { return Ok(()) };
        if kept {
            self.diff.first_removed.push((place.clone(), row.clone()));
        }
        self.tell(&Difference { kind: "removed", place: Some(place), column: None, a: Some(row), b: None })
    }

    /// Place and values of a row that one document has, if they are needed.
    fn one_sided(
        &self,
        kept: bool,
        texts: impl FnOnce() -> Result<(Place, String)>,
    ) -> Result<Option<(Place, String)>> {
        (kept || self.listener.is_some()).then(texts).transpose()
    }

    fn tell(&mut self, difference: &Difference) -> Result<()> {
        self.listener.as_mut().map_or(Ok(()), |listener| listener(difference))
    }
}
