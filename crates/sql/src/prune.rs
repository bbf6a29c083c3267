//! Files that cannot have a row that a filter keeps, by the bounds that they tell of their columns.

use std::collections::HashSet;
use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, UInt64Array};
use arrow_schema::{DataType, Schema, SchemaRef};
use datafusion::catalog::Session;
use datafusion::common::pruning::PruningStatistics;
use datafusion::common::{Column, DFSchema, Result, ScalarValue};
use datafusion::logical_expr::Expr;
use datafusion::physical_optimizer::pruning::PruningPredicateBuilder;
use pentaglot::formats::Statistics;

use crate::table::TableFile;

/// Of these files those that may have rows that match all filters.
pub(crate) fn by_values(
    state: &dyn Session,
    files: &[TableFile],
    chosen: Vec<usize>,
    schema: &SchemaRef,
    filters: &[Expr],
) -> Result<Vec<usize>> {
    if chosen.is_empty() || filters.is_empty() {
        return Ok(chosen);
    }
    let bounds = Bounds { files: chosen.iter().map(|index| bounds(&files[*index])).collect(), schema };
    if bounds.files.iter().all(|file| file.is_none()) {
        return Ok(chosen);
    }
    let named = DFSchema::try_from(Arc::clone(schema))?;
    let mut kept = vec![true; chosen.len()];
    for filter in filters.iter().filter(|filter| !filter.is_volatile()) {
        let filter = state.create_physical_expr(filter.clone(), &named)?;
        // What cannot be decided by bounds keeps every file.
        let predicate = PruningPredicateBuilder::new().with_file_schema(Arc::clone(schema)).try_build(filter);
        let Ok(predicate) = predicate else { continue };
        kept.iter_mut().zip(predicate.prune(&bounds)?).for_each(|(kept, may)| *kept &= may);
    }
    Ok(chosen.into_iter().zip(kept).filter_map(|(index, kept)| kept.then_some(index)).collect())
}

/// What a file tells of its columns, if its columns are those of the table.
fn bounds(file: &TableFile) -> Option<(Statistics, SchemaRef)> {
    let own = &file.opened.document.summary().schema;
    if own.fields() != file.reshape.schema.fields() || !file.keeps_rows() {
        return None;
    }
    let statistics = file.opened.document.statistics();
    let is_known = statistics.columns.iter().any(|column| column.min.is_some() || column.max.is_some());
    is_known.then(|| (statistics, Arc::clone(own)))
}

struct Bounds<'t> {
    files: Vec<Option<(Statistics, SchemaRef)>>,
    schema: &'t Schema,
}

impl Bounds<'_> {
    /// One value per file, null where it is not known, in the type of the table.
    fn values(
        &self,
        column: &Column,
        value: impl Fn(&pentaglot::formats::ColumnStatistics) -> Option<&ArrayRef>,
    ) -> Option<ArrayRef> {
        let kind = self.schema.field_with_name(&column.name).ok()?.data_type();
        // Bounds leave NaN out, which is greater than every number.
        if kind.is_floating() || kind.is_nested() || matches!(kind, DataType::Dictionary(..)) {
            return None;
        }
        let values = self.files.iter().map(|file| {
            let unknown = || ScalarValue::try_from(kind).ok();
            let Some((statistics, own)) = file else { return unknown() };
            let found = own.index_of(&column.name).ok().and_then(|index| statistics.columns.get(index));
            match found.and_then(&value) {
                Some(array) => {
                    ScalarValue::try_from_array(array, 0).ok()?.cast_to(kind).ok().or_else(unknown)
                }
                None => unknown(),
            }
        });
        ScalarValue::iter_to_array(values.collect::<Option<Vec<_>>>()?).ok()
    }
}

impl PruningStatistics for Bounds<'_> {
    fn min_values(&self, column: &Column) -> Option<ArrayRef> {
        self.values(column, |column| column.min.as_ref())
    }

    fn max_values(&self, column: &Column) -> Option<ArrayRef> {
        self.values(column, |column| column.max.as_ref())
    }

    fn num_containers(&self) -> usize {
        self.files.len()
    }

    fn null_counts(&self, column: &Column) -> Option<ArrayRef> {
        let nulls = self.files.iter().map(|file| {
            let (statistics, own) = file.as_ref()?;
            statistics.columns.get(own.index_of(&column.name).ok()?)?.nulls
        });
        Some(Arc::new(nulls.collect::<UInt64Array>()))
    }

    fn row_counts(&self) -> Option<ArrayRef> {
        let rows = self.files.iter().map(|file| file.as_ref().and_then(|(statistics, _)| statistics.rows));
        Some(Arc::new(rows.collect::<UInt64Array>()))
    }

    fn contained(&self, _: &Column, _: &HashSet<ScalarValue>) -> Option<BooleanArray> {
        None
    }
}
