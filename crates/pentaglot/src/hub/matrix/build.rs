//! Converts entries in any order to compressed sparse rows: a counting sort by row number; repeated entries
//! are summed.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type,
    UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef, BooleanArray, FixedSizeListArray, PrimitiveArray, RecordBatch};
use arrow_buffer::{OffsetBuffer, ScalarBuffer};
use arrow_schema::{Field, SchemaRef};

use crate::cursor::reserve;
use crate::error::{Error, Result};
use crate::limits::{Budget, Reservation};

/// A row or column number.
pub(crate) trait Index: Copy + Ord + Send + Sync + 'static {
    /// The number, if it fits.
    fn from_u64(value: u64) -> Option<Self>;
    /// The number.
    fn to_u64(self) -> u64;
    /// Numbers as an Arrow array.
    fn array(values: Vec<Self>) -> ArrayRef;
}

impl Index for u32 {
    #[inline]
    fn from_u64(value: u64) -> Option<Self> {
        u32::try_from(value).ok()
    }

    #[inline]
    fn to_u64(self) -> u64 {
        u64::from(self)
    }

    fn array(values: Vec<Self>) -> ArrayRef {
        Arc::new(PrimitiveArray::<UInt32Type>::from(values))
    }
}

impl Index for u64 {
    #[inline]
    fn from_u64(value: u64) -> Option<Self> {
        Some(value)
    }

    #[inline]
    fn to_u64(self) -> u64 {
        self
    }

    fn array(values: Vec<Self>) -> ArrayRef {
        Arc::new(PrimitiveArray::<UInt64Type>::from(values))
    }
}

/// A value that can be summed.
pub(crate) trait Value: Copy + Default + PartialEq + Send + Sync + 'static {
    /// The sum; `None` if it does not fit.
    fn sum(self, other: Self) -> Option<Self>;
    /// Values as an Arrow array.
    fn array(values: Vec<Self>) -> ArrayRef;
    /// The values of an Arrow array of that type.
    fn values(array: &ArrayRef) -> Option<Vec<Self>>;
}

macro_rules! values {
    ($($native:ty, $arrow:ty, $sum:expr;)*) => {
        $(impl Value for $native {
            fn sum(self, other: Self) -> Option<Self> {
                let sum: fn($native, $native) -> Option<$native> = $sum;
                sum(self, other)
            }

            fn array(values: Vec<Self>) -> ArrayRef {
                Arc::new(PrimitiveArray::<$arrow>::from(values))
            }

            fn values(array: &ArrayRef) -> Option<Vec<Self>> {
                Some(array.as_primitive_opt::<$arrow>()?.values().to_vec())
            }
        })*
    };
}

values! {
    i8, Int8Type, i8::checked_add;
    i16, Int16Type, i16::checked_add;
    i32, Int32Type, i32::checked_add;
    i64, Int64Type, i64::checked_add;
    u8, UInt8Type, u8::checked_add;
    u16, UInt16Type, u16::checked_add;
    u32, UInt32Type, u32::checked_add;
    u64, UInt64Type, u64::checked_add;
    half::f16, Float16Type, |one, two| Some(one + two);
    f32, Float32Type, |one, two| Some(one + two);
    f64, Float64Type, |one, two| Some(one + two);
}

macro_rules! complex_values {
    ($($float:ty, $arrow:ty;)*) => {
        $(impl Value for [$float; 2] {
            fn sum(self, other: Self) -> Option<Self> {
                Some([self[0] + other[0], self[1] + other[1]])
            }

            fn array(values: Vec<Self>) -> ArrayRef {
                let count = values.len();
                let parts: PrimitiveArray<$arrow> = values.into_flattened().into();
                let item = Arc::new(Field::new_list_field(parts.data_type().clone(), false));
                let list = FixedSizeListArray::try_new_with_length(item, 2, Arc::new(parts), None, count);
                Arc::new(list.expect("two parts a number"))
            }

            fn values(array: &ArrayRef) -> Option<Vec<Self>> {
                let list = array.as_fixed_size_list_opt().filter(|list| list.value_length() == 2)?;
                let parts = list.values().slice(list.value_offset(0) as usize, list.len() * 2);
                Some(parts.as_primitive_opt::<$arrow>()?.values().as_chunks::<2>().0.to_vec())
            }
        })*
    };
}

complex_values! {
    f32, Float32Type;
    f64, Float64Type;
}

/// Like NumPy, adds booleans by `or`.
impl Value for bool {
    fn sum(self, other: Self) -> Option<Self> {
        Some(self | other)
    }

    fn array(values: Vec<Self>) -> ArrayRef {
        Arc::new(BooleanArray::from(values))
    }

    fn values(array: &ArrayRef) -> Option<Vec<Self>> {
        Some(array.as_boolean_opt()?.values().iter().collect())
    }
}

/// Some entries, as three columns of one length.
#[derive(Debug, Clone)]
pub(crate) struct Entries<I, T> {
    pub(crate) rows: Vec<I>,
    pub(crate) cols: Vec<I>,
    pub(crate) values: Vec<T>,
}

impl<I, T> Default for Entries<I, T> {
    fn default() -> Self {
        Entries { rows: Vec::new(), cols: Vec::new(), values: Vec::new() }
    }
}

impl<I, T> Entries<I, T> {
    /// Room for `count` entries, and the reservation for it.
    pub(crate) fn with_room(count: u64, budget: &Budget) -> Result<(Self, Reservation)> {
        let (rows, mut reserved) = reserve(count, budget)?.into_parts();
        let (cols, more) = reserve(count, budget)?.into_parts();
        reserved.merge(more);
        let (values, more) = reserve(count, budget)?.into_parts();
        reserved.merge(more);
        Ok((Entries { rows, cols, values }, reserved))
    }

    /// The memory that the entries take.
    pub(crate) fn bytes(&self) -> u64 {
        let indices = (self.rows.capacity() + self.cols.capacity()) * size_of::<I>();
        (indices + self.values.capacity() * size_of::<T>()) as u64
    }

    /// Releases the unused capacity.
    pub(crate) fn shrink(&mut self) {
        self.rows.shrink_to_fit();
        self.cols.shrink_to_fit();
        self.values.shrink_to_fit();
    }

    /// Removes the entries, and keeps their memory.
    pub(crate) fn clear(&mut self) {
        self.rows.clear();
        self.cols.clear();
        self.values.clear();
    }

    #[inline]
    pub(crate) fn push(&mut self, row: I, col: I, value: T) {
        self.rows.push(row);
        self.cols.push(col);
        self.values.push(value);
    }
}

/// Compressed sparse rows; the entries of a row keep the order in which they came.
#[derive(Debug)]
pub(crate) struct Csr<I, T> {
    pub(crate) offsets: Vec<i64>,
    pub(crate) cols: Vec<I>,
    pub(crate) values: Vec<T>,
    /// The reservation for all three.
    pub(crate) reserved: Reservation,
}

/// Sorts entries by row and sums repeated ones. All are in rows `first_row..first_row + row_count`.
pub(crate) fn build<I: Index, T: Value>(
    chunks: &[Entries<I, T>],
    first_row: u64,
    row_count: u64,
    budget: &Budget,
) -> Result<Csr<I, T>> {
    let (mut offsets, mut reserved) = reserve::<i64>(row_count.saturating_add(1), budget)?.into_parts();
    offsets.resize(row_count as usize + 1, 0);
    for row in chunks.iter().flat_map(|chunk| &chunk.rows) {
        offsets[(row.to_u64() - first_row) as usize + 1] += 1;
    }
    let mut total = 0;
    for offset in &mut offsets {
        total += *offset;
        *offset = total;
    }
    let mut next = reserve::<i64>(row_count, budget)?;
    next.extend_from_slice(&offsets[..row_count as usize])?;
    let (mut cols, more) = reserve::<I>(total as u64, budget)?.into_parts();
    reserved.merge(more);
    let (mut values, more) = reserve::<T>(total as u64, budget)?.into_parts();
    reserved.merge(more);
    if let Some(any) = I::from_u64(0) {
        cols.resize(total as usize, any);
    }
    values.resize(total as usize, T::default());
    for chunk in chunks {
        for ((row, col), value) in chunk.rows.iter().zip(&chunk.cols).zip(&chunk.values) {
            let slot = &mut next[(row.to_u64() - first_row) as usize];
            cols[*slot as usize] = *col;
            values[*slot as usize] = *value;
            *slot += 1;
        }
    }
    drop(next);
    let mut csr = Csr { offsets, cols, values, reserved };
    sum_repeats(&mut csr, first_row)?;
    Ok(csr)
}

/// Sums entries of a row that have the same column into the first of them. Returns how many were removed.
pub(crate) fn sum_repeats<I: Index, T: Value>(csr: &mut Csr<I, T>, first_row: u64) -> Result<u64> {
    let mut scratch: Vec<(I, usize)> = Vec::new();
    let mut kept = 0usize;
    let mut start = 0usize;
    let mut removed = 0u64;
    for row in 0..csr.offsets.len().saturating_sub(1) {
        let end = csr.offsets[row + 1] as usize;
        let mut repeats = false;
        if !csr.cols[start..end].is_sorted_by(|one, two| one < two) {
            scratch.clear();
            scratch.extend(csr.cols[start..end].iter().copied().zip(start..));
            scratch.sort_unstable();
            repeats = scratch.windows(2).any(|pair| pair[0].0 == pair[1].0);
        }
        if repeats {
            // Equal columns are adjacent, in their original order.
            let mut first = 0;
            for index in 1..scratch.len() {
                let (col, at) = scratch[index];
                if scratch[first].0 != col {
                    first = index;
                    continue;
                }
                let into = scratch[first].1;
                let sum = csr.values[into].sum(csr.values[at]);
                csr.values[into] = sum.ok_or_else(|| {
                    let place = (first_row + row as u64, col.to_u64());
                    Error::malformed(
                        format_args!(
                            "entries at row {}, column {} whose sum fits their type",
                            place.0, place.1
                        ),
                        "a larger sum",
                    )
                    .rule("repeat-sum")
                })?;
                scratch[index].1 = usize::MAX;
                removed += 1;
            }
            scratch.retain(|(_, at)| *at != usize::MAX);
            scratch.sort_unstable_by_key(|(_, at)| *at);
            for (_, at) in &scratch {
                csr.cols[kept] = csr.cols[*at];
                csr.values[kept] = csr.values[*at];
                kept += 1;
            }
        } else if kept == start {
            kept = end;
        } else {
            csr.cols.copy_within(start..end, kept);
            csr.values.copy_within(start..end, kept);
            kept += end - start;
        }
        csr.offsets[row + 1] = kept as i64;
        start = end;
    }
    csr.cols.truncate(kept);
    csr.values.truncate(kept);
    Ok(removed)
}

/// A batch holds about this many entries at most.
pub(crate) const BATCH_ENTRIES: i64 = 1 << 20;
/// A batch holds this many rows at most.
pub(crate) const BATCH_ROWS: usize = 1 << 16;

impl<I: Index, T: Value> Csr<I, T> {
    /// The sparse rows of `schema`, a slice of one array at a time.
    pub(crate) fn batches(
        self,
        schema: SchemaRef,
        batch_rows: usize,
    ) -> Result<impl Iterator<Item = Result<RecordBatch>> + Send> {
        let offsets = ScalarBuffer::from(self.offsets);
        let rows = super::sparse_rows(
            &schema,
            OffsetBuffer::new(offsets.clone()),
            I::array(self.cols),
            T::array(self.values),
        )?;
        // From here on the arrays carry their own reservations.
        let budget = self.reserved.budget().clone();
        drop(self.reserved);
        budget.charge(&RecordBatch::try_new(SchemaRef::clone(&schema), vec![Arc::clone(&rows)])?)?;
        let mut next = 0;
        Ok(std::iter::from_fn(move || {
            if next >= rows.len() {
                return None;
            }
            let fitting = offsets[next + 1..].partition_point(|end| end - offsets[next] <= BATCH_ENTRIES);
            let count = fitting.clamp(1, batch_rows).min(rows.len() - next);
            let slice = rows.slice(next, count);
            next += count;
            Some(RecordBatch::try_new(SchemaRef::clone(&schema), vec![slice]).map_err(Error::from))
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_keep_their_order_and_repeats_are_summed_into_the_first() {
        let mut one = Entries::<u32, i64>::default();
        let mut two = Entries::<u32, i64>::default();
        for (row, col, value) in [(12, 3, 1), (10, 1, 2), (12, 0, 3), (12, 3, 4)] {
            one.push(row, col, value);
        }
        for (row, col, value) in [(12, 2, 5), (12, 3, 6), (10, 0, 0)] {
            two.push(row, col, value);
        }
        let csr = build(&[one, two], 10, 4, &Budget::default()).unwrap();
        assert_eq!(csr.offsets, [0, 2, 2, 5, 5]);
        assert_eq!(csr.cols, [1, 0, 3, 0, 2]);
        assert_eq!(csr.values, [2, 0, 11, 3, 5]);
    }

    #[test]
    fn a_sum_that_does_not_fit_is_refused() {
        let mut entries = Entries::<u64, i8>::default();
        entries.push(0, 0, 100);
        entries.push(0, 0, 100);
        assert!(build(&[entries], 0, 1, &Budget::default()).is_err());
    }

    #[test]
    fn a_row_count_on_trust_is_a_limit() {
        let error = build::<u32, f64>(&[], 0, 1 << 60, &Budget::default()).unwrap_err();
        assert_eq!(error.kind(), crate::ErrorKind::Limit);
    }
}
