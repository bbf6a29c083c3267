//! A document with the rows that match a filter.

use std::sync::Arc;

use arrow_array::RecordBatch;

use super::open::Opened;
use crate::error::Result;
use crate::formats::{Document, Findings, Outline, Summary};
use crate::hub::filter::Filter;
use crate::hub::{Rows, Selection, rows};

struct Filtered {
    inner: Arc<dyn Document>,
    filter: Filter,
    summary: Summary,
}

impl Opened {
    /// The same document with the rows that match; see [`crate::hub::filter`]. Their number is not known.
    pub fn filtered(&self, filter: &str) -> Result<Opened> {
        let inner = Arc::clone(&self.document);
        let mut summary = inner.summary().clone();
        let filter = Filter::parse(filter, &summary.schema)?;
        summary.schema = Filter::schema(&summary.schema);
        summary.rows = None;
        summary.nonzeros = None;
        summary.null_counts.clear();
        Ok(Opened { document: Arc::new(Filtered { inner, filter, summary }), ..self.clone() })
    }

    /// The number of rows, or of those that match a filter. Values are read only if the count is not known.
    pub fn count(&self, filter: Option<&str>) -> Result<u64> {
        self.document.summary().check_member()?;
        if let Some(filter) = filter {
            return self.filtered(filter)?.count(None);
        }
        if let Some(rows) = self.document.summary().rows {
            return Ok(rows);
        }
        // With no columns selected, batches have only a number of rows.
        let selection = self.document.selection().with_column_ranges(Vec::new())?;
        let rows = self.charged_rows(&selection)?;
        rows.map(|batch| Ok(batch?.num_rows() as u64)).sum()
    }
}

impl Filtered {
    /// The rows that may match, as far as the document can tell without reading values.
    fn possible_rows(&self, all: Selection) -> Result<Rows> {
        let Some(ranges) = self.inner.candidates(&self.filter.intervals())? else {
            return self.inner.rows(&all);
        };
        let schema = Arc::clone(all.clone().with_rows(0..0).schema());
        let (inner, out) = (Arc::clone(&self.inner), Arc::clone(&schema));
        let batches = ranges.into_iter().flat_map(move |range| {
            let batches: Box<dyn Iterator<Item = Result<RecordBatch>> + Send> =
                match inner.rows(&all.clone().with_rows(range)) {
                    Ok(rows) => Box::new(rows.map(|batch| Ok(batch?))),
                    Err(error) => Box::new(std::iter::once(Err(error))),
                };
            let schema = Arc::clone(&out);
            batches.map(move |batch| {
                let batch = batch?;
                rows::batch(Arc::clone(&schema), batch.columns().to_vec(), batch.num_rows())
            })
        });
        Ok(rows::from_batches(schema, batches))
    }
}

impl Document for Filtered {
    fn summary(&self) -> &Summary {
        &self.summary
    }

    fn outline(&self) -> Outline {
        self.inner.outline()
    }

    fn validate(&self, findings: &mut Findings) -> Result<()> {
        self.inner.validate(findings)
    }

    /// The filter is applied first: a range of rows counts those that match. Columns that only the filter uses are read
    /// and dropped.
    fn rows(&self, selection: &Selection) -> Result<Rows> {
        let all = self.inner.selection().with_batch_rows(selection.batch_rows());
        let rows = match selection.columns() {
            Some(columns) if !selection.cuts_lists() => {
                let mut fields = selection.fields();
                fields.extend(
                    self.filter.fields().into_iter().filter(|field| !selection.fields().contains(field)),
                );
                let filter = self.filter.clone().for_fields(&fields)?;
                let read = fields.into_iter().map(|field| field as u64..field as u64 + 1).collect();
                let rows = filter.apply(self.possible_rows(all.with_column_ranges(read)?)?);
                let chosen = std::iter::once(0..columns.count()).collect();
                Selection::new(&rows.schema(), None).with_column_ranges(chosen)?.project(rows)?
            }
            _ => selection.project(self.filter.clone().apply(self.possible_rows(all)?))?,
        };
        Ok(if selection.is_sliced() { rows::slice(rows, selection.range(u64::MAX)) } else { rows })
    }
}
