//! The operations that a wavelet matrix needs of the bit vectors on its levels.

use std::hint::select_unpredictable;

use crate::bit_vector::{BitVector, FastBits};
use crate::cpu::dispatch;
use crate::queries::{BATCH, BitQueries};
use crate::run_length::RunLengthVector;
use crate::storage::Words;

mod sealed {
    pub trait Sealed {}
    impl<W> Sealed for crate::bit_vector::BitVector<W> {}
    impl<W> Sealed for crate::run_length::RunLengthVector<W> {}
}

/// A bit vector that can be a level of a wavelet matrix: [`BitVector`] and [`RunLengthVector`].
pub trait Level: BitQueries + Sized + sealed::Sealed {
    /// Whether the estimates below are useful.
    #[doc(hidden)]
    const FORESEES: bool;

    /// Bit `index` and the ones before it; (false, all ones) past the end.
    #[doc(hidden)]
    fn bit_and_rank(&self, index: u64) -> (bool, u64);

    /// An estimate of the number of ones before `index`, from cached counts.
    #[doc(hidden)]
    fn rank_roughly(&self, index: u64) -> u64;

    /// Prefetches what `bit_and_rank(index)` will read.
    #[doc(hidden)]
    fn prefetch(&self, index: u64);

    /// An estimate of the position of the bit of a kind and a rank; prefetches what select will read.
    #[doc(hidden)]
    fn select_roughly(&self, bit: bool, rank: u64) -> u64;

    /// Moves `positions` down all levels by their own bits, which are appended to `values`.
    #[doc(hidden)]
    fn descend(levels: &[Self], positions: &mut [u64], values: &mut [u64]);

    /// Moves `positions` down all levels by the bits of `values`.
    #[doc(hidden)]
    fn descend_with(levels: &[Self], positions: &mut [u64], values: &[u64]);
}

impl<W: Words> Level for BitVector<W> {
    const FORESEES: bool = true;

    #[inline(always)]
    fn bit_and_rank(&self, index: u64) -> (bool, u64) {
        self.bit_and_rank_at(index)
    }

    #[inline(always)]
    fn rank_roughly(&self, index: u64) -> u64 {
        self.rank_roughly(index)
    }

    #[inline(always)]
    fn prefetch(&self, index: u64) {
        self.prefetch_index(index);
    }

    #[inline(always)]
    fn select_roughly(&self, bit: bool, rank: u64) -> u64 {
        if bit { self.select_roughly::<true>(rank) } else { self.select_roughly::<false>(rank) }
    }

    fn descend(levels: &[Self], positions: &mut [u64], values: &mut [u64]) {
        let mut fast = levels.first().and_then(Self::fast_bits);
        for (depth, level) in levels.iter().enumerate() {
            let (zeros, next) = (level.count_zeros(), levels.get(depth + 1).and_then(Self::fast_bits));
            match fast {
                Some(bits) => for_each_prefetched(positions, &mut *values, next, |position, value| {
                    let (bit, rank) = bits.bit_and_rank(position);
                    *value = *value << 1 | u64::from(bit);
                    select_unpredictable(bit, zeros.wrapping_add(rank), position.wrapping_sub(rank))
                }),
                None => level.descend_slowly(positions, values),
            }
            fast = next;
        }
    }

    fn descend_with(levels: &[Self], positions: &mut [u64], values: &[u64]) {
        let mut fast = levels.first().and_then(Self::fast_bits);
        for (depth, level) in levels.iter().enumerate() {
            let (zeros, next) = (level.count_zeros(), levels.get(depth + 1).and_then(Self::fast_bits));
            let mask = 1 << (levels.len() - 1 - depth);
            match fast {
                Some(bits) => for_each_prefetched(positions, values, next, |position, value| {
                    let rank = bits.rank(position);
                    select_unpredictable(
                        value & mask != 0,
                        zeros.wrapping_add(rank),
                        position.wrapping_sub(rank),
                    )
                }),
                None => level.descend_with_slowly(positions, values, mask),
            }
            fast = next;
        }
    }
}

impl<W: Words> BitVector<W> {
    /// One level of [`Level::descend`], with a file's own rank support or on other processors.
    fn descend_slowly(&self, positions: &mut [u64], values: &mut [u64]) {
        let (support, last, zeros) = (self.rank_support(), self.len().wrapping_sub(1), self.count_zeros());
        positions.iter().for_each(|&position| self.prefetch_rank(support, position));
        dispatch!(isa => for (position, value) in positions.iter_mut().zip(values) {
            let index = (*position).min(last);
            let (bit, rank) = BitVector::bit_and_rank(self, isa, support, index);
            *value = *value << 1 | u64::from(bit);
            *position = select_unpredictable(bit, zeros.wrapping_add(rank), index.wrapping_sub(rank));
        });
    }

    /// The same for [`Level::descend_with`].
    fn descend_with_slowly(&self, positions: &mut [u64], values: &[u64], mask: u64) {
        let (support, words) = (self.rank_support(), self.bits().words());
        let (len, zeros, ones) = (self.len(), self.count_zeros(), self.count_ones());
        positions.iter().for_each(|&position| self.prefetch_rank(support, position));
        dispatch!(isa => for (position, value) in positions.iter_mut().zip(values) {
            let index = (*position).min(len);
            let rank = if index >= len { ones } else { support.rank(isa, words, index) };
            *position = select_unpredictable(value & mask != 0, zeros.wrapping_add(rank), index.wrapping_sub(rank));
        });
    }
}

/// Moves each position with its item, and prefetches what the query on `next` will read.
#[inline(always)]
fn for_each_prefetched<T>(
    positions: &mut [u64],
    values: impl IntoIterator<Item = T>,
    next: Option<FastBits<'_>>,
    mut down: impl FnMut(u64, T) -> u64,
) {
    let moves = positions.iter_mut().zip(values);
    match next {
        Some(next) => moves.for_each(|(position, value)| {
            *position = down(*position, value);
            next.prefetch(*position);
        }),
        None => moves.for_each(|(position, value)| *position = down(*position, value)),
    }
}

impl<W: Words> Level for RunLengthVector<W> {
    const FORESEES: bool = false;

    #[inline]
    fn bit_and_rank(&self, index: u64) -> (bool, u64) {
        match self.inverse_select(index) {
            Some((rank, true)) => (true, rank),
            Some((rank0, false)) => (false, index.wrapping_sub(rank0)),
            None => (false, self.count_ones()),
        }
    }

    fn rank_roughly(&self, _: u64) -> u64 {
        0
    }

    fn prefetch(&self, _: u64) {}

    fn select_roughly(&self, _: bool, _: u64) -> u64 {
        0
    }

    fn descend(levels: &[Self], positions: &mut [u64], values: &mut [u64]) {
        let mut answers = [None; BATCH];
        for level in levels {
            let zeros = level.count_zeros();
            level.inverse_select_many(positions, &mut answers);
            for ((position, value), answer) in positions.iter_mut().zip(&mut *values).zip(answers) {
                let (rank, bit) = answer.unwrap_or((0, false));
                *value = *value << 1 | u64::from(bit);
                *position = if bit { zeros.wrapping_add(rank) } else { rank };
            }
        }
    }

    fn descend_with(levels: &[Self], positions: &mut [u64], values: &[u64]) {
        let mut ranks = [0; BATCH];
        for (depth, level) in levels.iter().enumerate() {
            let (len, zeros, mask) = (level.len(), level.count_zeros(), 1 << (levels.len() - 1 - depth));
            level.rank_many(positions, &mut ranks);
            for ((position, value), rank) in positions.iter_mut().zip(values).zip(ranks) {
                let if_not = (*position).min(len).wrapping_sub(rank);
                *position = if value & mask != 0 { zeros.wrapping_add(rank) } else { if_not };
            }
        }
    }
}
