//! A document of which only the rows are seen that a filter keeps.

use std::ops::Range;
use std::sync::Arc;

use super::open::Opened;
use crate::error::Result;
use crate::formats::{Document, Findings, Outline, Request, Summary};
use crate::hub::filter::Filter;
use crate::hub::rows::{self, Columns};
use crate::hub::{Form, Rows};

struct Filtered {
    inner: Arc<dyn Document>,
    filter: Filter,
    summary: Summary,
}

impl Opened {
    /// The same document with the rows that match; see [`crate::hub::filter`]. How many they are is not known.
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

    /// How many rows there are, or how many a filter keeps. Values are read only where the count is not known.
    pub fn count(&self, filter: Option<&str>) -> Result<u64> {
        if let Some(filter) = filter {
            return self.filtered(filter)?.count(None);
        }
        if let Some(rows) = self.document.summary().rows {
            return Ok(rows);
        }
        let mut request = Request::default();
        // Without columns a reader gives batches that have rows and nothing else.
        request.columns = Some(Columns(Vec::new()));
        let rows = self.document.rows(&request)?;
        rows.map(|batch| Ok(batch?.num_rows() as u64)).sum()
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

    /// The filter comes first: a range of rows counts those that match. Columns that only the filter looks at are read, and
    /// dropped.
    fn rows(&self, request: &Request) -> Result<Rows> {
        let schema = &self.inner.summary().schema;
        let mut read = Request::default();
        read.batch_rows = request.batch_rows;
        let rows = match &request.columns {
            None => self.filter.clone().apply(self.inner.rows(&read)?),
            Some(columns) if matches!(Form::of(schema), Form::Dense | Form::Sparse) => {
                columns.clone().select(self.filter.clone().apply(self.inner.rows(&read)?))?
            }
            Some(columns) => {
                let mut fields: Vec<usize> = columns.indices().map(|index| index as usize).collect();
                let chosen = fields.len();
                let only_filter = self.filter.fields().into_iter().filter(|field| !fields.contains(field));
                fields.extend(only_filter.collect::<Vec<_>>());
                let filter = self.filter.clone().for_fields(&fields)?;
                read.columns = Some(Columns(fields.into_iter().map(|field| single(field as u64)).collect()));
                let rows = filter.apply(self.inner.rows(&read)?);
                Columns(vec![0..chosen as u64]).select(rows)?
            }
        };
        Ok(match &request.rows {
            Some(range) => rows::slice(rows, range.clone()),
            None => rows,
        })
    }
}

fn single(index: u64) -> Range<u64> {
    index..index + 1
}
