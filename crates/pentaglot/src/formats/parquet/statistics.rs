//! What the footer says of row groups: where they are, and the smallest and largest values of their columns.

use arrow_array::cast::AsArray;
use arrow_array::types::Float64Type;
use arrow_array::{Array, ArrayRef};
use arrow_cast::cast;
use arrow_ord::ord::make_comparator;
use arrow_schema::{DataType, SortOptions};
use parquet::arrow::arrow_reader::statistics::StatisticsConverter;
use parquet::basic::{ColumnOrder, SortOrder};
use parquet::file::metadata::RowGroupMetaData;

use super::layout::from_parquet;
use super::read::Store;
use super::storage;
use crate::error::Result;
use crate::formats::guard::guarded;
use crate::formats::{ColumnStatistics, Split};

impl Store {
    /// The row groups, joined.
    pub(super) fn splits(&self, wanted: usize) -> Vec<Split> {
        let mut row = 0u64;
        let groups = self.footer.metadata.row_groups().iter().filter(|group| group.num_rows() > 0);
        let pieces = groups.map(|group| {
            let ranges = group.columns().iter().map(|column| column.byte_range());
            let start = ranges.clone().map(|(start, _)| start).min().unwrap_or(0);
            let end = ranges.map(|(start, len)| start.saturating_add(len)).max().unwrap_or(start);
            let first = row;
            row = row.saturating_add(group.num_rows().unsigned_abs());
            Split { rows: first..row, bytes: start..end }
        });
        Split::joined(pieces, wanted)
    }

    /// Adds the bounds of each column where every row group tells them.
    pub(super) fn add_bounds(&self, columns: &mut [ColumnStatistics]) {
        for ((root, leaf), column) in self.flat_columns().enumerate().zip(columns) {
            let Some(leaf) = leaf else { continue };
            // Statistics that cannot be decoded are no fault of the rows: nothing is known then.
            if let Ok(Some((min, max))) = guarded(|| self.bounds(root, leaf)) {
                (column.min, column.max) = (Some(min), Some(max));
            }
        }
    }

    /// The smallest and the largest value of a column that is one leaf.
    fn bounds(&self, root: usize, leaf: usize) -> Result<Option<(ArrayRef, ArrayRef)>> {
        let file = self.footer.metadata.file_metadata();
        let (stored, target) = (self.stored_schema().field(root), self.schema.field(root).data_type());
        let ordered = matches!(
            file.column_order(leaf),
            ColumnOrder::TYPE_DEFINED_ORDER(SortOrder::SIGNED | SortOrder::UNSIGNED)
        );
        let groups = self.footer.metadata.row_groups().iter().filter(|group| !is_null(group, leaf));
        // Old writers compared bytes and unsigned numbers as if they had signs.
        let deprecated = |group: &RowGroupMetaData| {
            group.column(leaf).statistics().is_none_or(|statistics| statistics.is_min_max_deprecated())
        };
        if !ordered || groups.clone().any(deprecated) {
            return Ok(None);
        }
        let converter = StatisticsConverter::from_column_index(leaf, stored, file.schema_descr());
        let converter = converter.map_err(from_parquet)?;
        let mins = converter.row_group_mins(groups.clone()).map_err(from_parquet)?;
        let maxes = converter.row_group_maxes(groups).map_err(from_parquet)?;
        let (Some(min), Some(max)) = (extreme(&mins, false)?, extreme(&maxes, true)?) else {
            return Ok(None);
        };
        let restore = |value: ArrayRef| storage::convert(&cast(&value, stored.data_type())?, target);
        let (min, max) = (restore(min)?, restore(max)?);
        Ok((min.data_type() == target && max.data_type() == target).then_some((min, max)))
    }
}

/// Whether a row group has no values in a column: then it has no bounds either.
fn is_null(group: &RowGroupMetaData, leaf: usize) -> bool {
    let nulls = group.column(leaf).statistics().and_then(|statistics| statistics.null_count_opt());
    group.num_rows() == 0 || nulls == Some(group.num_rows().unsigned_abs())
}

/// The smallest or the largest of the bounds of all row groups; `None` if there are none, one is unknown or NaN.
fn extreme(bounds: &ArrayRef, largest: bool) -> Result<Option<ArrayRef>> {
    if bounds.is_empty() || bounds.null_count() > 0 {
        return Ok(None);
    }
    if matches!(bounds.data_type(), DataType::Float16 | DataType::Float32 | DataType::Float64) {
        let wide = cast(bounds, &DataType::Float64)?;
        if wide.as_primitive::<Float64Type>().values().iter().any(|value| value.is_nan()) {
            return Ok(None);
        }
    }
    let compare = make_comparator(bounds, bounds, SortOptions { descending: largest, nulls_first: false })?;
    let index = (0..bounds.len()).min_by(|one, other| compare(*one, *other));
    Ok(index.map(|index| bounds.slice(index, 1)))
}

#[cfg(test)]
mod tests;
