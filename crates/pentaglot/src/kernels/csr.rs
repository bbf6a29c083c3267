//! From entries in any order to compressed sparse rows: a counting sort over the row numbers, repeats summed.

use crate::cursor::allocate;
use crate::error::{Error, Result};
use crate::limits::Budget;

/// A row or column number.
pub(crate) trait Index: Copy + Ord + Send + Sync + 'static {
    /// The number, if it fits.
    fn from_u64(value: u64) -> Option<Self>;
    /// The number.
    fn to_u64(self) -> u64;
}

impl Index for u32 {
    fn from_u64(value: u64) -> Option<Self> {
        u32::try_from(value).ok()
    }

    fn to_u64(self) -> u64 {
        u64::from(self)
    }
}

impl Index for u64 {
    fn from_u64(value: u64) -> Option<Self> {
        Some(value)
    }

    fn to_u64(self) -> u64 {
        self
    }
}

/// A value that can be summed.
pub(crate) trait Value: Copy + Default + Send + Sync + 'static {
    /// The sum; `None` if it does not fit.
    fn sum(self, other: Self) -> Option<Self>;
}

macro_rules! values {
    ($($whole:ty)*; $($float:ty)*) => {
        $(impl Value for $whole {
            fn sum(self, other: Self) -> Option<Self> {
                self.checked_add(other)
            }
        })*
        $(impl Value for $float {
            fn sum(self, other: Self) -> Option<Self> {
                Some(self + other)
            }
        }

        impl Value for [$float; 2] {
            fn sum(self, other: Self) -> Option<Self> {
                Some([self[0] + other[0], self[1] + other[1]])
            }
        })*
    };
}

values! { i8 i16 i32 i64 u8 u16 u32 u64; f32 f64 }

impl Value for half::f16 {
    fn sum(self, other: Self) -> Option<Self> {
        Some(self + other)
    }
}

/// As NumPy adds booleans: or.
impl Value for bool {
    fn sum(self, other: Self) -> Option<Self> {
        Some(self | other)
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
    pub(crate) fn push(&mut self, row: I, col: I, value: T) {
        self.rows.push(row);
        self.cols.push(col);
        self.values.push(value);
    }
}

/// Compressed sparse rows; entries of a row stand in the order in which they came.
#[derive(Debug, Clone)]
pub(crate) struct Csr<I, T> {
    pub(crate) offsets: Vec<i64>,
    pub(crate) cols: Vec<I>,
    pub(crate) values: Vec<T>,
}

/// Sorts entries, all of which lie in rows `first_row..first_row + row_count`, by row, and sums repeats.
pub(crate) fn build<I: Index, T: Value>(
    chunks: &[Entries<I, T>],
    first_row: u64,
    row_count: u64,
    budget: &Budget,
) -> Result<Csr<I, T>> {
    let mut offsets: Vec<i64> = allocate(row_count.saturating_add(1), budget)?;
    offsets.resize(row_count as usize + 1, 0);
    for row in chunks.iter().flat_map(|chunk| &chunk.rows) {
        offsets[(row.to_u64() - first_row) as usize + 1] += 1;
    }
    let mut total = 0;
    for offset in &mut offsets {
        total += *offset;
        *offset = total;
    }
    let mut next: Vec<i64> = allocate(row_count, budget)?;
    next.extend_from_slice(&offsets[..row_count as usize]);
    let mut cols: Vec<I> = allocate(total as u64, budget)?;
    let mut values: Vec<T> = allocate(total as u64, budget)?;
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
    let mut csr = Csr { offsets, cols, values };
    sum_repeats(&mut csr, first_row)?;
    Ok(csr)
}

/// Sums entries of a row that have the same column into the first of them. Gives how many went.
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
            // Equal columns stand together, the first of them in front.
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
                        format_args!("entries at row {}, column {} whose sum fits their type", place.0, place.1),
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
