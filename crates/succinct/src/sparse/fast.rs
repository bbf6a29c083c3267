//! Queries without branches that depend on the data: the common cases, on a fast processor.
//!
//! Each function returns `None` if the plain version has to answer: near the ends, in full buckets, before the index
//! is built.

use super::SparseVector;
use super::buckets::Lanes;
use crate::cpu::{Bmi2, Isa, fast};
use crate::queries::BitQueries;
use crate::storage::Words;

/// Buckets of more values are searched by bisection.
const FEW: u64 = 16;

/// Between two values: the rank of the second, and bits of the high part around the place.
struct Place<'a> {
    isa: Bmi2,
    lanes: &'a Lanes,
    rank: u64,
    // At least 57 bits from `from` on; those of the values before the place are the first `before`.
    window: u64,
    from: u64,
    before: u64,
}

impl<W: Words> SparseVector<W> {
    /// The place before the first value that is not below `value`, or that is above it.
    #[inline(always)]
    fn locate<const ABOVE: bool>(&self, value: u64) -> Option<Place<'_>> {
        let (isa, buckets) = (fast()?, self.index.buckets.get()?);
        let (words, lows, lanes) = (self.high.bits().words(), self.low.bits().words(), &buckets.lanes);
        let (bucket, low) = lanes.split(isa, value);
        let found = buckets.find(isa, words, lows, bucket)?;
        let count = found.end - found.start;
        if count > FEW {
            return None;
        }
        let rank = found.from.wrapping_add(found.start).wrapping_sub(bucket);
        let below = lanes.count_below(isa, lows, rank, count, low + u64::from(ABOVE))?;
        let (rank, before) = (rank.wrapping_add(below), found.start + below);
        Some(Place { isa, lanes, rank, window: found.window, from: found.from, before })
    }

    #[inline(always)]
    pub(super) fn rank_fast(&self, value: u64) -> Option<u64> {
        Some(self.locate::<false>(value)?.rank.min(self.count_ones()))
    }

    #[inline(always)]
    pub(super) fn predecessor_fast(&self, value: u64) -> Option<(u64, u64)> {
        let Place { isa, lanes, rank, window, from, before } = self.locate::<true>(value)?;
        let values = isa.low_bits_to_64(window, before);
        if values == 0 {
            return None;
        }
        let (bit, rank) = (from.wrapping_add(u64::from(values.ilog2())), rank.wrapping_sub(1));
        Some((rank, lanes.value(isa, self.low.bits().words(), bit, rank)?))
    }

    #[inline(always)]
    pub(super) fn successor_fast(&self, value: u64) -> Option<(u64, u64)> {
        let Place { isa, lanes, rank, window, from, before } = self.locate::<false>(value)?;
        let values = isa.shift_right(window, before);
        if values == 0 {
            return None;
        }
        let bit = from.wrapping_add(before + u64::from(values.trailing_zeros()));
        Some((rank, lanes.value(isa, self.low.bits().words(), bit, rank)?))
    }
}
