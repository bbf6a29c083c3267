//! Queries without branches that depend on the data: what is asked nearly always, on a fast processor.
//!
//! Each function answers or says that the plain way has to: near the ends, in full buckets, before the index is built.

use super::SparseVector;
use super::buckets::{Lanes, WINDOW};
use crate::bits::read_window;
use crate::cpu::{Bmi2, Isa, fast};
use crate::queries::BitQueries;
use crate::storage::Words;

/// Buckets of more values are searched by halves.
const FEW: u64 = 16;

/// Between two values: the rank of the second, and a bit of the high part after the first one's and not after the
/// second one's.
struct Place<'a> {
    isa: Bmi2,
    lanes: &'a Lanes,
    rank: u64,
    at: u64,
}

impl<W: Words> SparseVector<W> {
    #[inline(always)]
    pub(super) fn select_fast(&self, rank: u64) -> Option<u64> {
        let (isa, hints) = (fast()?, self.index.ones.get()?);
        let (low, width) = (self.low.bits().words(), u64::from(self.low.width()));
        let low_bit = rank.wrapping_mul(width);
        if width > u64::from(WINDOW) || (low_bit / 64) as usize + 1 >= low.len() {
            return None;
        }
        let bit = hints.select(isa, self.high.bits().words(), rank)?;
        // SAFETY: another word follows the one with the bit.
        let low = isa.low_bits(unsafe { read_window(low, low_bit) }, width);
        Some(bit.wrapping_sub(rank).wrapping_shl(width as u32) | low)
    }

    /// The place before the first value that is not below `value`, or that is above it.
    #[inline(always)]
    fn locate<const ABOVE: bool>(&self, value: u64) -> Option<Place<'_>> {
        let (isa, buckets) = (fast()?, self.index.buckets.get()?);
        let (words, lows, lanes) = (self.high.bits().words(), self.low.bits().words(), &buckets.lanes);
        let (bucket, low) = lanes.split(isa, value);
        let start = buckets.start(isa, words, lows, bucket)?;
        // SAFETY: `start` left another word after the one with the bit.
        let count = u64::from((!unsafe { read_window(words, start) }).trailing_zeros());
        if count > FEW {
            return None;
        }
        let (rank, limit) = (start.wrapping_sub(bucket), low + u64::from(ABOVE));
        let below = lanes.count_below(isa, lows, rank, count, limit)?;
        Some(Place { isa, lanes, rank: rank.wrapping_add(below), at: start + below })
    }

    #[inline(always)]
    pub(super) fn rank_fast(&self, value: u64) -> Option<u64> {
        Some(self.locate::<false>(value)?.rank.min(self.count_ones()))
    }

    #[inline(always)]
    pub(super) fn predecessor_fast(&self, value: u64) -> Option<(u64, u64)> {
        let Place { isa, lanes, rank, at } = self.locate::<true>(value)?;
        let words = self.high.bits().words();
        let rank = rank.wrapping_sub(1);
        // The 57 bits before the place, and up to seven after it that are shifted out.
        let from = (at.div_ceil(8) * 8).wrapping_sub(64);
        if (from / 64) as usize + 1 >= words.len() {
            return None;
        }
        // SAFETY: another word follows the one with the bit.
        let window = unsafe { read_window(words, from) } << (at.wrapping_neg() % 8);
        if window == 0 {
            return None;
        }
        let bit = at.wrapping_sub(1 + u64::from(window.leading_zeros()));
        Some((rank, lanes.value(isa, self.low.bits().words(), bit, rank)?))
    }

    #[inline(always)]
    pub(super) fn successor_fast(&self, value: u64) -> Option<(u64, u64)> {
        let Place { isa, lanes, rank, at } = self.locate::<false>(value)?;
        let words = self.high.bits().words();
        if (at / 64) as usize + 1 >= words.len() {
            return None;
        }
        // SAFETY: another word follows the one with the bit.
        let window = unsafe { read_window(words, at) };
        if window == 0 {
            return None;
        }
        let bit = at + u64::from(window.trailing_zeros());
        Some((rank, lanes.value(isa, self.low.bits().words(), bit, rank)?))
    }
}
