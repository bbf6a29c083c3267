//! What a wavelet matrix asks of the bit vectors on its levels.

use std::hint::select_unpredictable;

use crate::bit_vector::BitVector;
use crate::cpu::dispatch;
use crate::queries::BitQueries;
use crate::run_length::RunLengthVector;
use crate::storage::Words;

mod sealed {
    pub trait Sealed {}
    impl<W> Sealed for crate::bit_vector::BitVector<W> {}
    impl<W> Sealed for crate::run_length::RunLengthVector<W> {}
}

/// A bit vector that can be a level of a wavelet matrix: [`BitVector`] and [`RunLengthVector`].
pub trait Level: BitQueries + sealed::Sealed {
    /// Bit `index` and the ones before it; (false, all ones) past the end.
    #[doc(hidden)]
    fn bit_and_rank(&self, index: u64) -> (bool, u64);

    /// Moves `positions` down by their own bits, which are appended to `values`; prefetches in `next`.
    #[doc(hidden)]
    fn descend(&self, positions: &mut [u64], values: &mut [u64], next: Option<&Self>);

    /// Moves `positions` down by bit `bit` of `values`; prefetches in `next`.
    #[doc(hidden)]
    fn descend_with(&self, positions: &mut [u64], values: &[u64], bit: u32, next: Option<&Self>);
}

impl<W: Words> Level for BitVector<W> {
    #[inline(always)]
    fn bit_and_rank(&self, index: u64) -> (bool, u64) {
        self.bit_and_rank_at(index)
    }

    fn descend(&self, positions: &mut [u64], values: &mut [u64], next: Option<&Self>) {
        let (len, zeros) = (self.len(), self.count_zeros());
        if let Some(bits) = self.fast_bits() {
            let next = next.and_then(Self::fast_bits);
            for (position, value) in positions.iter_mut().zip(values) {
                let (bit, rank) = bits.bit_and_rank(*position);
                *value = *value << 1 | u64::from(bit);
                *position = select_unpredictable(bit, zeros.wrapping_add(rank), position.wrapping_sub(rank));
                if let Some(next) = next {
                    next.prefetch(*position);
                }
            }
            return;
        }
        let support = self.rank_support();
        let next = next.map(|next| (next, next.rank_support()));
        dispatch!(isa => for (position, value) in positions.iter_mut().zip(values) {
            let index = (*position).min(len.wrapping_sub(1));
            let (bit, rank) = BitVector::bit_and_rank(self, isa, support, index);
            *value = *value << 1 | u64::from(bit);
            *position = select_unpredictable(bit, zeros.wrapping_add(rank), index.wrapping_sub(rank));
            if let Some((next, support)) = next {
                next.prefetch_rank(support, *position);
            }
        });
    }

    fn descend_with(&self, positions: &mut [u64], values: &[u64], bit: u32, next: Option<&Self>) {
        let (len, zeros, ones) = (self.len(), self.count_zeros(), self.count_ones());
        if let Some(bits) = self.fast_bits() {
            let next = next.and_then(Self::fast_bits);
            for (position, value) in positions.iter_mut().zip(values) {
                let index = (*position).min(len);
                let rank = if index == len { ones } else { bits.bit_and_rank(index).1 };
                let set = value >> bit & 1 == 1;
                *position = select_unpredictable(set, zeros.wrapping_add(rank), index.wrapping_sub(rank));
                if let Some(next) = next {
                    next.prefetch(*position);
                }
            }
            return;
        }
        let (support, words) = (self.rank_support(), self.bits().words());
        let next = next.map(|next| (next, next.rank_support()));
        dispatch!(isa => for (position, value) in positions.iter_mut().zip(values) {
            let index = (*position).min(len);
            let rank = if index >= len { ones } else { support.rank(isa, words, index) };
            let set = value >> bit & 1 == 1;
            *position = select_unpredictable(set, zeros.wrapping_add(rank), index.wrapping_sub(rank));
            if let Some((next, support)) = next {
                next.prefetch_rank(support, *position);
            }
        });
    }
}

impl<W: Words> Level for RunLengthVector<W> {
    #[inline]
    fn bit_and_rank(&self, index: u64) -> (bool, u64) {
        match self.inverse_select(index) {
            Some((rank, true)) => (true, rank),
            Some((rank0, false)) => (false, index.wrapping_sub(rank0)),
            None => (false, self.count_ones()),
        }
    }

    fn descend(&self, positions: &mut [u64], values: &mut [u64], _: Option<&Self>) {
        let mut answers = [None; crate::queries::BATCH];
        let zeros = self.count_zeros();
        self.inverse_select_many(positions, &mut answers);
        for ((position, value), answer) in positions.iter_mut().zip(values).zip(answers) {
            let (rank, bit) = answer.unwrap_or((0, false));
            *value = *value << 1 | u64::from(bit);
            *position = if bit { zeros.wrapping_add(rank) } else { rank };
        }
    }

    fn descend_with(&self, positions: &mut [u64], values: &[u64], bit: u32, _: Option<&Self>) {
        let mut ranks = [0; crate::queries::BATCH];
        let (len, zeros) = (self.len(), self.count_zeros());
        self.rank_many(positions, &mut ranks);
        for ((position, value), rank) in positions.iter_mut().zip(values).zip(ranks) {
            let set = value >> bit & 1 == 1;
            *position = if set { zeros.wrapping_add(rank) } else { (*position).min(len).wrapping_sub(rank) };
        }
    }
}
