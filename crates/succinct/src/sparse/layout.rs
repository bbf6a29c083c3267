//! A sparse vector as elements: universe, high parts, low parts.

use std::io;

use super::SparseVector;
use crate::bit_vector::BitVector;
use crate::bits::{count_ones, scan_backward};
use crate::cursor::WordCursor;
use crate::error::Error;
use crate::int_vector::IntVector;
use crate::layout::{Structure, Supports, Walk, WordSink};
use crate::queries::BitQueries;
use crate::storage::{Section, Words};

impl<W: Words> Structure<W> for SparseVector<W> {
    fn from_words(cursor: &mut WordCursor<W>) -> Result<Self, Error>
    where
        W: Section,
    {
        let at = cursor.position();
        let universe = cursor.element("universe")?;
        let high = BitVector::from_words(cursor).map_err(|error| error.within("high"))?;
        let low_at = cursor.position();
        let low = IntVector::from_words(cursor).map_err(|error| error.within("low"))?;
        Self::check_parts(universe, high, low, at, low_at)
    }

    fn write_words(&self, supports: Supports, sink: &mut impl WordSink) -> io::Result<()> {
        sink.put(&[self.universe])?;
        self.high.write_with(supports, [false, true, true], sink)?;
        self.low.write_words(supports, sink)
    }

    fn walk(&self, walk: &mut Walk) {
        walk.part("universe", 1);
        let high_start = walk.offset();
        walk.nest("high", &self.high);
        let low_start = walk.offset();
        walk.nest("low", &self.low);
        if !walk.checking() || count_ones(self.high.bits().words()) != self.count_ones() {
            return;
        }
        // Spec, "Sparse bitvector": each bucket ends with a zero, so the last bit is never set.
        let words = self.high.bits().words();
        if let Some(last) = self.high.len().checked_sub(1)
            && scan_backward(words, last, true, 1) == Some(last)
        {
            let place = high_start + 3 + last / 64;
            walk.error("buckets", place, &format!("high.bits.words[{}]", last / 64), "a last bit of 0", 1);
            return;
        }
        let mut last = 0;
        for (rank, value) in self.iter().enumerate() {
            let place = low_start + 4 + rank as u64 * u64::from(self.low.width()) / 64;
            if value < last {
                walk.error("order", place, &format!("low[{rank}]"), format!("at least {last}"), value);
            }
            if value >= self.universe {
                walk.error(
                    "universe",
                    place,
                    &format!("low[{rank}]"),
                    format!("below {}", self.universe),
                    value,
                );
            }
            if !walk.checking() {
                return;
            }
            last = value;
        }
    }
}
