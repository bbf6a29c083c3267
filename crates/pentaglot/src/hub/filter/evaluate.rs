//! Comparisons on batches. A mask has no nulls: an unknown result does not match.

use arrow_array::cast::AsArray;
use arrow_array::types::{ArrowPrimitiveType, Float16Type, Float32Type, Float64Type, UInt32Type, UInt64Type};
use arrow_array::{
    Array, ArrayRef, BooleanArray, Int8Array, PrimitiveArray, RecordBatch, Scalar, UInt64Array, make_array,
};
use arrow_buffer::BooleanBuffer;
use arrow_data::transform::MutableArrayData;
use arrow_ord::cmp;
use arrow_schema::DataType;
use arrow_select::filter::{FilterPredicate, SlicesIterator, prep_null_mask_filter};
use arrow_select::take::take;

use super::parse::Operator;
use super::resolve::Predicate;
use super::{Comparison, FilterColumn};
use crate::error::{Error, Result};
use crate::hub::inner_fields;

/// The values that match. Arrow's filter loses the length of arrays whose values take no bytes, so these are copied by
/// ranges.
pub(super) fn keep(array: &ArrayRef, filter: &FilterPredicate, mask: &BooleanArray) -> Result<ArrayRef> {
    if !has_empty_values(array.data_type()) {
        return Ok(filter.filter(array)?);
    }
    let data = array.to_data();
    let mut kept = MutableArrayData::new(vec![&data], false, filter.count());
    for (start, end) in SlicesIterator::new(mask) {
        kept.try_extend(0, start, end)?;
    }
    Ok(make_array(kept.freeze()))
}

fn has_empty_values(kind: &DataType) -> bool {
    match kind {
        DataType::FixedSizeBinary(0) | DataType::FixedSizeList(_, 0) => true,
        DataType::Dictionary(_, value) => has_empty_values(value),
        _ => inner_fields(kind).into_iter().any(|field| has_empty_values(field.data_type())),
    }
}

impl Comparison {
    pub(super) fn mask(&self, batch: &RecordBatch) -> Result<BooleanArray> {
        match self.column {
            FilterColumn::Field(index) => self.predicate.mask(batch.column(index)),
            FilterColumn::Dense(col) => {
                let rows = batch.column(0).as_fixed_size_list();
                let places = (0..rows.len()).map(|row| rows.value_offset(row) as u64 + col as u64);
                let values = take(rows.values(), &places.collect::<UInt64Array>(), None)?;
                self.predicate.mask(&values)
            }
            FilterColumn::Sparse(col) => self.sparse_mask(batch.column(0), col),
        }
    }

    /// A missing entry is zero, so it matches if zero does.
    fn sparse_mask(&self, rows: &ArrayRef, col: u64) -> Result<BooleanArray> {
        let rows = rows.as_list::<i64>();
        let entries = rows.values().as_struct();
        let cols = entries.column(0);
        let is_col = |entry: usize| match cols.data_type() {
            DataType::UInt32 => u64::from(cols.as_primitive::<UInt32Type>().value(entry)) == col,
            _ => cols.as_primitive::<UInt64Type>().value(entry) == col,
        };
        let offsets = rows.value_offsets().windows(2);
        let places: UInt64Array = offsets
            .map(|ends| (ends[0]..ends[1]).find(|entry| is_col(*entry as usize)).map(|entry| entry as u64))
            .collect();
        let stored = self.predicate.mask(&take(entries.column(1), &places, None)?)?;
        let zero = arrow_cast::cast(&Int8Array::from(vec![0]), entries.column(1).data_type())?;
        let zero_matches = self.predicate.mask(&zero)?.value(0);
        let matches = |row: usize| if places.is_null(row) { zero_matches } else { stored.value(row) };
        Ok(BooleanArray::new(BooleanBuffer::collect_bool(rows.len(), matches), None))
    }
}

impl Predicate {
    fn mask(&self, array: &ArrayRef) -> Result<BooleanArray> {
        let nulls = || match array.logical_nulls() {
            Some(nulls) => nulls.into_inner(),
            None => BooleanBuffer::new_set(array.len()),
        };
        let mask = match self {
            Predicate::IsNull => BooleanArray::new(!&nulls(), None),
            Predicate::IsNotNull | Predicate::Always => BooleanArray::new(nulls(), None),
            Predicate::Never => BooleanArray::new(BooleanBuffer::new_unset(array.len()), None),
            Predicate::Compare(..) | Predicate::Float(..) => self.compare(array)?,
        };
        Ok(if mask.null_count() > 0 { prep_null_mask_filter(&mask) } else { mask })
    }

    fn compare(&self, array: &ArrayRef) -> Result<BooleanArray> {
        if let DataType::Dictionary(_, value) = array.data_type() {
            let dictionary = array.as_any_dictionary();
            if dictionary.values().len() > array.len() {
                return self.compare(&arrow_cast::cast(array, value)?);
            }
            let matches = self.compare(dictionary.values())?;
            return Ok(take(&matches, dictionary.keys(), None)?.as_boolean().clone());
        }
        match self {
            Predicate::Compare(operator, value) => {
                let value = Scalar::new(value);
                Ok(match operator {
                    Operator::Equal => cmp::eq(array, &value),
                    Operator::NotEqual => cmp::neq(array, &value),
                    Operator::Less => cmp::lt(array, &value),
                    Operator::LessOrEqual => cmp::lt_eq(array, &value),
                    Operator::Greater => cmp::gt(array, &value),
                    Operator::GreaterOrEqual => cmp::gt_eq(array, &value),
                }?)
            }
            // Arrow compares by total order, in which NaN equals NaN and -0.0 is less than 0.0.
            Predicate::Float(operator, value) => match array.data_type() {
                DataType::Float16 => {
                    Ok(floats::<Float16Type>(array.as_primitive(), *operator, *value, f64::from))
                }
                DataType::Float32 => {
                    Ok(floats::<Float32Type>(array.as_primitive(), *operator, *value, f64::from))
                }
                _ => Ok(floats::<Float64Type>(array.as_primitive(), *operator, *value, |own| own)),
            },
            _ => Err(Error::usage("a comparison without a value")),
        }
    }
}

fn floats<T: ArrowPrimitiveType>(
    array: &PrimitiveArray<T>,
    operator: Operator,
    value: f64,
    wide: impl Fn(T::Native) -> f64,
) -> BooleanArray {
    match operator {
        Operator::Equal => BooleanArray::from_unary(array, |own| wide(own) == value),
        Operator::NotEqual => BooleanArray::from_unary(array, |own| wide(own) != value),
        Operator::Less => BooleanArray::from_unary(array, |own| wide(own) < value),
        Operator::LessOrEqual => BooleanArray::from_unary(array, |own| wide(own) <= value),
        Operator::Greater => BooleanArray::from_unary(array, |own| wide(own) > value),
        Operator::GreaterOrEqual => BooleanArray::from_unary(array, |own| wide(own) >= value),
    }
}
