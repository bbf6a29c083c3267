//! Statistics as they are reported: texts of values, quantiles, histograms.

use std::sync::Arc;

use arrow_array::{ArrayRef, BinaryArray, RecordBatch, StringArray};
use arrow_buffer::i256;
use arrow_schema::{DataType, Field, Schema};

use super::frequent::{Frequent, Key, Top};
use super::quantiles::Sorted;
use super::words::{Lane, raw_array};
use super::{ColumnDescription, Histogram, QUANTILES, number_text};
use crate::error::Result;
use crate::hub::json::Columns;
use crate::job::json_options;

/// Bars of a histogram.
const BARS: usize = 40;

pub(super) fn one_column(field: Field, array: ArrayRef) -> Result<RecordBatch> {
    Ok(RecordBatch::try_new(Arc::new(Schema::new(vec![field.with_nullable(true)])), vec![array])?)
}

/// How values of a column are written.
pub(super) struct Texts<'a> {
    pub(super) field: &'a Field,
    pub(super) data_type: &'a DataType,
}

impl Texts<'_> {
    /// The JSON texts of the values of an array of the column's type.
    fn of(&self, array: ArrayRef) -> Result<Vec<String>> {
        let field = self.field.clone().with_data_type(array.data_type().clone());
        let batch = one_column(field, array)?;
        let columns = Columns::new(&batch, &json_options())?;
        let text = |row| {
            let mut out = Vec::new();
            columns.write_cell(0, row, &mut out)?;
            Ok(String::from_utf8_lossy(&out).into_owned())
        };
        (0..batch.num_rows()).map(text).collect()
    }

    pub(super) fn of_words(&self, lane: Lane, keys: &[u64]) -> Result<Vec<String>> {
        self.of(lane.array(self.data_type, keys)?)
    }

    pub(super) fn of_bytes(&self, keys: &[Box<[u8]>]) -> Result<Vec<String>> {
        let values = keys.iter().map(|key| key.as_ref());
        self.of(match self.data_type {
            DataType::FixedSizeBinary(_) => {
                raw_array(self.data_type, keys.len(), values.flatten().copied().collect())?
            }
            DataType::Binary | DataType::LargeBinary | DataType::BinaryView => {
                Arc::new(BinaryArray::from_iter_values(values))
            }
            _ => Arc::new(StringArray::from_iter_values(values.map(String::from_utf8_lossy))),
        })
    }

    /// The texts of decimals and long integers, from the low bytes of their keys.
    pub(super) fn of_wide(&self, keys: &[i256]) -> Result<Vec<String>> {
        let width = match self.data_type {
            DataType::Decimal32(_, _) => 4,
            DataType::Decimal64(_, _) => 8,
            DataType::Decimal256(_, _) => 32,
            _ => 16,
        };
        let bytes = keys.iter().flat_map(|key| key.to_le_bytes().into_iter().take(width)).collect();
        self.of(raw_array(self.data_type, keys.len(), bytes)?)
    }
}

pub(super) fn set_frequent<K: Key>(
    frequent: &Frequent<K>,
    column: &mut ColumnDescription,
    texts: impl FnOnce(&[K]) -> Result<Vec<String>>,
) -> Result<()> {
    (column.distinct, column.distinct_exact) = frequent.distinct();
    let Top { values, is_exact } = frequent.top();
    let (keys, counts): (Vec<K>, Vec<u64>) = values.into_iter().unzip();
    column.top = texts(&keys)?.into_iter().zip(counts).collect();
    column.top_exact = is_exact;
    Ok(())
}

pub(super) fn numeric_quantiles(sorted: &Sorted, number: impl Fn(u64) -> f64) -> Option<[String; 5]> {
    let at = |quantile: f64| {
        let (low, high, part) = sorted.at(quantile)?;
        Some(between(number(low), number(high), part))
    };
    let all: Option<Vec<String>> = QUANTILES.iter().map(|quantile| at(*quantile).map(number_text)).collect();
    all?.try_into().ok()
}

/// The value that is `part` of the way from `low` to `high`.
pub(super) fn between(low: f64, high: f64, part: f64) -> f64 {
    let difference = high - low;
    match difference.is_finite() {
        _ if part == 0.0 || low == high => low,
        true => low + difference * part,
        // The difference of two finite numbers may not be finite.
        false => low * (1.0 - part) + high * part,
    }
}

/// Bars of equal width from the least to the greatest finite value; one per integer if there are few.
pub(super) fn histogram(sorted: &Sorted, is_whole: bool, number: impl Fn(u64) -> f64) -> Option<Histogram> {
    let finite =
        || sorted.items.iter().map(|(key, weight)| (number(*key), *weight)).filter(|(x, _)| x.is_finite());
    let (min, max) = (finite().next()?.0, finite().next_back()?.0);
    let bars = match max - min {
        0.0 => 1,
        width if is_whole && width < BARS as f64 => width as usize + 1,
        _ => BARS,
    };
    let is_wide = !(max - min).is_finite();
    let width = match bars as f64 {
        _ if is_whole && bars < BARS => 1.0,
        // Each is finite, even if their difference is not.
        bars if is_wide => max / bars - min / bars,
        bars => (max - min) / bars,
    };
    let mut counts = vec![0; bars];
    for (value, weight) in finite() {
        let bar = match is_wide {
            true => (value / width - min / width) as usize,
            false if width > 0.0 => ((value - min) / width) as usize,
            false => 0,
        };
        counts[bar.min(bars - 1)] += weight;
    }
    Some(Histogram { min, max, width, counts })
}
