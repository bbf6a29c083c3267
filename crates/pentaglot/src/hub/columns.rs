//! [`Columns`]: the chosen columns of a table or a matrix.

use std::ops::Range;
use std::sync::Arc;

use arrow_schema::{DataType, Field, Schema, SchemaRef};

use super::native;
use super::shape::{self, Form};
use crate::error::{Error, Result};

/// A choice of columns, in order: fields of a table, or columns of a matrix. Every index is in range.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Columns(Vec<Range<u64>>);

impl Columns {
    pub(super) fn new(ranges: Vec<Range<u64>>, schema: &Schema) -> Result<Self> {
        let count = Columns::of(schema).count();
        match ranges.iter().find(|range| range.start > range.end || range.end > count) {
            Some(range) => Err(Error::usage(format!(
                "expected columns below {count}, found {}..{}",
                range.start, range.end
            ))),
            None => Ok(Columns(ranges)),
        }
    }

    /// All columns of a schema.
    pub(super) fn of(schema: &Schema) -> Self {
        Columns::first(match Form::of(schema) {
            Form::Dense | Form::Sparse => shape::matrix_cols(schema).unwrap_or(0),
            _ => schema.fields().len() as u64,
        })
    }

    /// The first `count` columns.
    pub(crate) fn first(count: u64) -> Self {
        Columns(std::iter::once(0..count).collect())
    }

    /// The ranges of indices, in order.
    pub fn ranges(&self) -> &[Range<u64>] {
        &self.0
    }

    /// How many columns are chosen.
    pub fn count(&self) -> u64 {
        self.0.iter().map(|range| range.end - range.start).sum()
    }

    /// Each chosen index, in order.
    pub fn indices(&self) -> impl Iterator<Item = u64> + '_ {
        self.0.iter().flat_map(Range::clone)
    }

    /// The chosen fields of `count`, each once and in file order, and the position of each chosen one among
    /// them.
    pub(crate) fn distinct(&self, count: usize) -> (Vec<usize>, Vec<usize>) {
        let chosen = self.indices().filter_map(|index| usize::try_from(index).ok());
        distinct(&chosen.filter(|index| *index < count).collect::<Vec<_>>())
    }

    /// The schema of the chosen columns. The native type is dropped.
    pub(super) fn schema(&self, schema: &SchemaRef) -> Result<SchemaRef> {
        let plain = native::without(schema);
        let cols = self.count();
        let mut metadata = plain.metadata().clone();
        match (Form::of(schema), schema.fields().first().map(|field| field.data_type())) {
            (Form::Dense, Some(DataType::FixedSizeList(item, _))) => {
                metadata.insert(shape::COLS_KEY.to_owned(), cols.to_string());
                let value = item.data_type().clone();
                let dense = shape::dense_schema(value, shape::matrix_rows(schema), cols)?;
                Ok(Arc::new(dense.with_metadata(metadata)))
            }
            (Form::Sparse, _) => {
                metadata.insert(shape::COLS_KEY.to_owned(), cols.to_string());
                Ok(Arc::new(plain.as_ref().clone().with_metadata(metadata)))
            }
            (form, _) => {
                let fields = self.indices().filter_map(|index| schema.fields().get(index as usize));
                let fields: Vec<Arc<Field>> = if form == Form::Columns {
                    metadata.insert(shape::COLS_KEY.to_owned(), cols.to_string());
                    let named = fields.zip(0..).map(|(field, index)| {
                        Arc::new(field.as_ref().clone().with_name(shape::column_name(index)))
                    });
                    named.collect()
                } else {
                    fields.cloned().collect()
                };
                Ok(Arc::new(Schema::new_with_metadata(fields, metadata)))
            }
        }
    }
}

/// The indices without repeats and in order, and the position of each of `wanted` among them.
pub(crate) fn distinct(wanted: &[usize]) -> (Vec<usize>, Vec<usize>) {
    let mut once = wanted.to_vec();
    once.sort_unstable();
    once.dedup();
    let places = wanted.iter().filter_map(|index| once.binary_search(index).ok()).collect();
    (once, places)
}
