//! Compressed sparse rows from chunks of entries, which most files have in row order: those are appended, not sorted. Chunks
//! from the first that is out of order on are kept, and [`build`] sorts all.

use super::build::{Csr, Entries, Index, Value, build, sum_repeats};
use crate::cursor::{Reserved, reserve};
use crate::error::Result;
use crate::limits::{Budget, Reservation};

/// The order of the entries of a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Order {
    /// Some entry is in a row before that of its predecessor.
    None,
    /// By row.
    Rows,
    /// By row, and by column within a row; none is repeated.
    Places,
}

impl<I: Index, T> Entries<I, T> {
    /// How the entries are ordered.
    pub(crate) fn order(&self) -> Order {
        let (mut by_row, mut by_place) = (true, true);
        // Without an early end, so that several entries are compared at a time.
        for ([row, next_row], [col, next_col]) in self.rows.array_windows().zip(self.cols.array_windows()) {
            by_row &= row <= next_row;
            by_place &= (row < next_row) | ((row == next_row) & (col < next_col));
        }
        match (by_row, by_place) {
            (_, true) => Order::Places,
            (true, false) => Order::Rows,
            (false, false) => Order::None,
        }
    }
}

/// Chunks of entries, gathered one after the other.
pub(crate) struct Gathered<I, T> {
    first_row: u64,
    row_count: u64,
    /// How many entries are in each row; the first is 0.
    counts: Reserved<i64>,
    cols: Reserved<I>,
    values: Reserved<T>,
    /// The row and column of the last entry.
    last: Option<(I, I)>,
    order: Order,
    /// All entries, once some are out of order.
    chunks: Vec<Entries<I, T>>,
    reserved: Reservation,
    budget: Budget,
}

impl<I: Index, T: Value> Gathered<I, T> {
    /// For entries in rows `first_row..first_row + row_count`, with room for so many entries.
    pub(crate) fn new(first_row: u64, row_count: u64, room: u64, budget: &Budget) -> Result<Self> {
        let mut counts = reserve(row_count.saturating_add(1), budget)?;
        counts.resize(row_count as usize + 1, 0);
        Ok(Gathered {
            first_row,
            row_count,
            counts,
            cols: reserve(room, budget)?,
            values: reserve(room, budget)?,
            last: None,
            order: Order::Places,
            chunks: Vec::new(),
            reserved: budget.reservation(),
            budget: budget.clone(),
        })
    }

    /// Adds a chunk with entries of this order; may take its memory.
    pub(crate) fn add(&mut self, chunk: &mut Entries<I, T>, order: Order) -> Result<()> {
        let (Some(first), Some(last)) = (chunk.place(0), chunk.place(chunk.rows.len().wrapping_sub(1)))
        else {
            return Ok(());
        };
        let joint = match self.last {
            Some(before) if before.0 > first.0 => Order::None,
            Some(before) if before >= first => Order::Rows,
            _ => Order::Places,
        };
        self.last = Some(last);
        let was_ordered = self.order > Order::None;
        self.order = self.order.min(order).min(joint);
        if self.order == Order::None {
            if was_ordered {
                self.leave_order()?;
            }
            return self.keep(std::mem::take(chunk));
        }
        for row in chunk.rows.chunk_by(|one, two| one == two) {
            let place = row.first().map_or(0, |number| number.to_u64() - self.first_row);
            self.counts[place as usize + 1] += row.len() as i64;
        }
        self.cols.extend_from_slice(&chunk.cols)?;
        self.values.extend_from_slice(&chunk.values)
    }

    fn keep(&mut self, mut chunk: Entries<I, T>) -> Result<()> {
        chunk.shrink();
        self.reserved.grow(chunk.bytes())?;
        self.chunks.push(chunk);
        Ok(())
    }

    /// The entries so far become a chunk.
    fn leave_order(&mut self) -> Result<()> {
        let counts = std::mem::replace(&mut self.counts, Reserved::new(&self.budget));
        let (cols, held_cols) = std::mem::replace(&mut self.cols, Reserved::new(&self.budget)).into_parts();
        let (values, held_values) =
            std::mem::replace(&mut self.values, Reserved::new(&self.budget)).into_parts();
        let (mut rows, held_rows) = reserve(cols.len() as u64, &self.budget)?.into_parts();
        for (row, count) in (self.first_row..).zip(counts.iter().skip(1)) {
            if let Some(row) = I::from_u64(row) {
                rows.resize(rows.len() + *count as usize, row);
            }
        }
        drop((held_cols, held_values, held_rows));
        self.keep(Entries { rows, cols, values })
    }

    /// The rows. Repeated entries are summed.
    pub(crate) fn finish(mut self) -> Result<Csr<I, T>> {
        if self.order == Order::None {
            return build(&self.chunks, self.first_row, self.row_count, &self.budget);
        }
        let mut total = 0;
        for count in self.counts.iter_mut() {
            total += *count;
            *count = total;
        }
        let (offsets, mut reserved) = self.counts.into_parts();
        let (mut cols, held) = self.cols.into_parts();
        reserved.merge(held);
        let (mut values, held) = self.values.into_parts();
        reserved.merge(held);
        // Room is left if the number of entries was not known.
        cols.shrink_to_fit();
        values.shrink_to_fit();
        let mut csr = Csr { offsets, cols, values, reserved };
        if self.order == Order::Rows {
            sum_repeats(&mut csr, self.first_row)?;
        }
        Ok(csr)
    }
}

impl<I: Copy, T> Entries<I, T> {
    /// The row and column of an entry.
    fn place(&self, entry: usize) -> Option<(I, I)> {
        Some((*self.rows.get(entry)?, *self.cols.get(entry)?))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn chunk(list: &[(u32, u32, i64)]) -> Entries<u32, i64> {
        let mut entries = Entries::default();
        list.iter().for_each(|(row, col, value)| entries.push(*row, *col, *value));
        entries
    }

    /// Gathers chunks, and compares with those that are sorted at once.
    fn check(chunks: &[Vec<(u32, u32, i64)>], room: u64) -> Order {
        let budget = Budget::default();
        let all: Vec<Entries<u32, i64>> = chunks.iter().map(|list| chunk(list)).collect();
        let mut gathered = Gathered::new(10, 8, room, &budget).unwrap();
        for part in &all {
            gathered.add(&mut part.clone(), part.order()).unwrap();
        }
        let order = gathered.order;
        let (found, expected) = (gathered.finish().unwrap(), build(&all, 10, 8, &budget).unwrap());
        assert_eq!(found.offsets, expected.offsets);
        assert_eq!(found.cols, expected.cols);
        assert_eq!(found.values, expected.values);
        drop((found, expected));
        assert_eq!(budget.used(), 0);
        order
    }

    #[test]
    fn the_order_is_that_of_all_chunks() {
        for (chunks, expected) in [
            (vec![vec![]], Order::Places),
            (vec![vec![(10, 1, 1), (10, 2, 2)], vec![], vec![(10, 3, 3), (17, 0, 4)]], Order::Places),
            (vec![vec![(10, 1, 1), (10, 2, 2)], vec![(10, 2, 3)]], Order::Rows),
            (vec![vec![(11, 2, 1), (11, 1, 2)], vec![(12, 0, 3)]], Order::Rows),
            (vec![vec![(11, 2, 1)], vec![(11, 1, 2)], vec![(12, 0, 3)]], Order::Rows),
            (vec![vec![(11, 2, 1), (12, 5, 2)], vec![(11, 3, 3)], vec![(12, 0, 3)]], Order::None),
            (vec![vec![(12, 2, 1), (11, 5, 2)], vec![(11, 3, 3)]], Order::None),
        ] {
            for room in [0, 100] {
                assert_eq!(check(&chunks, room), expected, "{chunks:?}");
            }
        }
    }

    proptest! {
        #[test]
        fn gathered_rows_are_those_that_are_sorted(
            mut list in proptest::collection::vec((10u32..18, 0u32..6, -9i64..9), 0..60),
            cuts in 1usize..20,
            sorted in 0usize..70,
        ) {
            let sorted = sorted.min(list.len());
            list[..sorted].sort_unstable_by_key(|(row, ..)| *row);
            let chunks: Vec<Vec<_>> = list.chunks(cuts).map(<[_]>::to_vec).collect();
            check(&chunks, 30);
        }
    }
}
