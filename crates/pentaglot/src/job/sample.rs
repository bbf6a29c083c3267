//! Some of the rows: the last ones, or a random choice.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::{RecordBatch, UInt64Array};
use arrow_select::take::take_record_batch;

use super::open::Opened;
use crate::error::Result;
use crate::formats::{Document, Findings, Outline, Summary};
use crate::hub::filter::Filter;
use crate::hub::rows::{self, from_batches};
use crate::hub::{Rows, Selection};
use crate::limits::Reservation;

/// The memory of one chosen row, during and after the choice.
const ROW_BYTES: u64 = 48;

impl Opened {
    /// The numbers of the last `count` rows. If the document does not know its number of rows, it is read to
    /// count them.
    pub fn last_rows(&self, count: u64) -> Result<Range<u64>> {
        let rows = self.count(None)?;
        Ok(rows.saturating_sub(count)..rows)
    }

    /// The same document with `count` of its rows (all, if there are fewer): every choice is equally likely, no row is
    /// chosen twice, rows keep their order. The same seed and count give the same choice.
    pub fn sampled(&self, count: u64, seed: u64) -> Result<Opened> {
        let total = self.count(None)?;
        let count = count.min(total);
        let mut held = self.budget.reservation();
        held.grow(count.saturating_mul(ROW_BYTES))?;
        let chosen = choose(total, count, seed);
        let mut summary = self.document.summary().clone();
        summary.schema = Filter::schema(&summary.schema);
        summary.rows = Some(count);
        summary.nonzeros = None;
        summary.null_counts.clear();
        let inner = Arc::clone(&self.document);
        let document = Picked { inner, chosen: chosen.into(), summary, _held: held };
        Ok(Opened { document: Arc::new(document), ..self.clone() })
    }
}

/// `count` of the numbers below `total`, in order (Floyd's algorithm: one random number for each).
fn choose(total: u64, count: u64, seed: u64) -> Vec<u64> {
    let mut random = SplitMix(seed);
    let mut chosen = HashSet::new();
    for last in total - count..total {
        let number = random.up_to(last);
        let number = if chosen.contains(&number) { last } else { number };
        chosen.insert(number);
    }
    let mut chosen: Vec<u64> = chosen.into_iter().collect();
    chosen.sort_unstable();
    chosen
}

/// The generator SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", 2014).
struct SplitMix(u64);

impl SplitMix {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number from 0 to `most`, all equally likely: numbers past the last complete range are rejected.
    fn up_to(&mut self, most: u64) -> u64 {
        let Some(range) = most.checked_add(1) else { return self.next() };
        let end = u64::MAX - (u64::MAX % range + 1) % range;
        loop {
            let number = self.next();
            if number <= end {
                return number % range;
            }
        }
    }
}

/// A document with chosen rows only.
struct Picked {
    inner: Arc<dyn Document>,
    /// The numbers of the rows, ascending.
    chosen: Arc<[u64]>,
    summary: Summary,
    _held: Reservation,
}

impl Document for Picked {
    fn summary(&self) -> &Summary {
        &self.summary
    }

    fn outline(&self) -> Outline {
        self.inner.outline()
    }

    fn validate(&self, findings: &mut Findings) -> Result<()> {
        self.inner.validate(findings)
    }

    fn rows(&self, selection: &Selection) -> Result<Rows> {
        // A range of rows counts the chosen ones; nothing is read before the first of them or after the last.
        let range = selection.range(self.chosen.len() as u64);
        let chosen: Vec<u64> = self.chosen[range.start as usize..range.end as usize].to_vec();
        let wanted = match (chosen.first(), chosen.last()) {
            (Some(first), Some(last)) => *first..*last + 1,
            _ => 0..0,
        };
        let start = wanted.start;
        let mut inner = self.inner.selection().with_batch_rows(selection.batch_rows()).with_rows(wanted);
        if let Some(columns) = selection.columns() {
            inner = inner.with_column_ranges(columns.ranges().to_vec())?;
        }
        let rows = self.inner.rows(&inner)?;
        let schema = Arc::clone(selection.schema());
        let out = Arc::clone(&schema);
        let (mut next, mut row) = (0, start);
        let batches = rows.map(move |batch| -> Result<RecordBatch> {
            let batch = batch?;
            let end = row + batch.num_rows() as u64;
            let count = chosen[next..].iter().take_while(|number| **number < end).count();
            let taken: UInt64Array = chosen[next..next + count].iter().map(|number| number - row).collect();
            (next, row) = (next + count, end);
            let taken = if batch.num_columns() == 0 {
                batch.slice(0, count)
            } else {
                take_record_batch(&batch, &taken)?
            };
            rows::batch(Arc::clone(&out), taken.columns().to_vec(), count)
        });
        let batches = batches.filter(|batch| batch.as_ref().map_or(true, |batch| batch.num_rows() > 0));
        Ok(from_batches(schema, batches))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_choice_is_of_different_rows_in_order_and_depends_on_the_seed() {
        for (total, count) in [(0, 0), (1, 1), (10, 10), (10, 3), (1_000_000, 100)] {
            let chosen = choose(total, count, 7);
            assert_eq!(chosen.len() as u64, count);
            assert!(chosen.is_sorted_by(|a, b| a < b) && chosen.last().is_none_or(|last| *last < total));
            assert_eq!(chosen, choose(total, count, 7));
        }
        assert_ne!(choose(1_000_000, 100, 7), choose(1_000_000, 100, 8));
    }

    /// Each of the 10 pairs of 5 rows is chosen about equally often.
    #[test]
    fn every_choice_is_equally_likely() {
        let mut counts = std::collections::HashMap::new();
        for seed in 0..10_000 {
            *counts.entry(choose(5, 2, seed)).or_insert(0) += 1;
        }
        assert_eq!(counts.len(), 10);
        assert!(counts.values().all(|count| (850..1150).contains(count)), "{counts:?}");
    }
}
