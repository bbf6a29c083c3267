//! [`Filter`]: the rows that a condition on columns keeps.
//!
//! ```text
//! filter     := comparison ("and" comparison)*
//! comparison := column operator literal | column "is" ["not"] "null"
//! operator   := "=" | "!=" | "<" | "<=" | ">" | ">="      ("==" is "=", and "<>" is "!=")
//! column     := word | '"' name '"'            ("" is a double quote in a name)
//! literal    := number | "true" | "false" | "nan" | "inf" | "'" text "'"      ('' is a single quote in a text)
//! ```
//!
//! Numbers are compared exactly, also if the column's type cannot hold the literal: `x < 1.5` keeps the ones of an
//! integer column, `x < 300` keeps all of a `uint8` column. Floats are the exception: a literal is rounded to the
//! column's width, so that `x = 0.1` keeps values that are printed as `0.1`.
//!
//! - A null matches `is null` and nothing else, not even `!=`.
//! - A NaN, on either side, matches `!=` only. `-0.0` equals `0.0`.
//! - Text compares byte by byte; `false` is less than `true`.
//! - Dates and times are texts: `'2024-02-29'`, `'2024-02-29T12:30:00.5+01:00'`, `'12:30:00'`; the time, or the
//!   seconds, may be missing. In a column with a time zone a text without an offset is local time of that zone; in one
//!   without a zone an offset is an error. A duration is a number in the column's unit.
//! - Nested columns, bytes and intervals support only `is [not] null`.
//! - The columns of a matrix, dense or sparse, are `col_0`, `col_1`, …; a missing entry of a sparse row is 0.

mod evaluate;
mod interval;
mod literal;
mod parse;
mod resolve;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use arrow_array::{BooleanArray, RecordBatch};
use arrow_schema::{Schema, SchemaRef};
use arrow_select::filter::FilterBuilder;

pub use self::interval::{Interval, Limit};
use self::resolve::Predicate;
use super::native;
use super::rows::{self, Rows};
use super::shape::{self, Form};
use crate::error::{Error, Result};

/// A condition on the rows of one schema.
///
/// ```
/// use pentaglot::hub::{filter::Filter, type_text::parse_schema};
/// let schema = parse_schema("struct{city: utf8, people: ?int32}", &Default::default())?;
/// assert!(Filter::parse("people >= 1e5 and city != 'Bern'", &schema).is_ok());
/// assert!(Filter::parse("people = 'many'", &schema).is_err());
/// # Ok::<(), pentaglot::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Filter {
    comparisons: Vec<Comparison>,
}

#[derive(Debug, Clone)]
struct Comparison {
    column: FilterColumn,
    predicate: Predicate,
}

/// The location of a column's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FilterColumn {
    /// A field of the batch.
    Field(usize),
    /// A column of a dense matrix.
    Dense(usize),
    /// A column of a sparse matrix.
    Sparse(u64),
}

impl Filter {
    /// Parses a filter and resolves its columns and literals. Errors name the column and its type.
    pub fn parse(text: &str, schema: &Schema) -> Result<Self> {
        let comparisons =
            parse::parse(text)?.into_iter().map(|comparison| resolve::resolve(comparison, schema));
        Ok(Filter { comparisons: comparisons.collect::<Result<_>>()? })
    }

    /// The fields that the filter uses, each once, in ascending order.
    pub fn fields(&self) -> Vec<usize> {
        let mut fields: Vec<usize> = self
            .comparisons
            .iter()
            .map(|comparison| match comparison.column {
                FilterColumn::Field(index) => index,
                FilterColumn::Dense(_) | FilterColumn::Sparse(_) => 0,
            })
            .collect();
        fields.sort_unstable();
        fields.dedup();
        fields
    }

    /// The same filter for batches that hold only some fields: `read` has the index of each of them in the schema that
    /// the filter was parsed for.
    pub fn for_fields(mut self, read: &[usize]) -> Result<Self> {
        for comparison in &mut self.comparisons {
            if let FilterColumn::Field(index) = &mut comparison.column {
                *index = read
                    .iter()
                    .position(|own| own == index)
                    .ok_or_else(|| Error::usage("a column of the filter is not read"))?;
            }
        }
        Ok(self)
    }

    /// The schema of filtered rows: their number is not known, and the native type is marked as that of a selection.
    pub fn schema(schema: &SchemaRef) -> SchemaRef {
        let schema = native::sliced(schema);
        if Form::of(&schema) == Form::Coo || !schema.metadata().contains_key(shape::ROWS_KEY) {
            // Entries are filtered, not the matrix's rows.
            return schema;
        }
        let mut metadata = schema.metadata().clone();
        metadata.remove(shape::ROWS_KEY);
        Arc::new(schema.as_ref().clone().with_metadata(metadata))
    }

    /// The rows that match.
    pub fn apply(self, rows: Rows) -> Rows {
        let schema = Filter::schema(&rows.schema());
        let out = Arc::clone(&schema);
        let batches = rows.filter_map(move |batch| {
            let kept = batch.map_err(Error::from).and_then(|batch| self.keep(&batch, &out));
            match kept {
                Ok(batch) if batch.num_rows() == 0 => None,
                kept => Some(kept),
            }
        });
        rows::from_batches(schema, batches)
    }

    fn keep(&self, batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch> {
        let mask = self.mask(batch)?;
        let count = mask.true_count();
        if count == batch.num_rows() {
            return rows::batch(Arc::clone(schema), batch.columns().to_vec(), count);
        }
        let filter = FilterBuilder::new(&mask).optimize().build();
        let columns = batch.columns().iter().map(|column| evaluate::keep(column, &filter, &mask));
        rows::batch(Arc::clone(schema), columns.collect::<Result<_>>()?, count)
    }

    /// Which rows match; without nulls.
    pub fn mask(&self, batch: &RecordBatch) -> Result<BooleanArray> {
        let mut comparisons = self.comparisons.iter().map(|comparison| comparison.mask(batch));
        let first =
            comparisons.next().unwrap_or_else(|| Err(Error::usage("a filter without a comparison")))?;
        comparisons.try_fold(first, |all, mask| Ok(BooleanArray::new(all.values() & mask?.values(), None)))
    }
}
