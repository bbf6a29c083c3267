//! Values of a sparse vector in order: the high part a word at a time, the low parts in step.

use super::SparseVector;
use crate::int_vector::IntVector;
use crate::queries::BitQueries;

/// Values of a sparse vector, in order.
#[derive(Debug, Clone)]
pub struct SparseValues<'a, W> {
    low: &'a IntVector<W>,
    // Words of the high part after the current one, what is left of that one, and the position of its first bit.
    rest: std::slice::Iter<'a, u64>,
    word: u64,
    base: u64,
    rank: u64,
    end: u64,
}

impl<'a, W: AsRef<[u64]>> SparseValues<'a, W> {
    pub(super) fn new(vector: &'a SparseVector<W>, rank: u64) -> Self {
        let (low, end) = (vector.low(), vector.count_ones());
        let position = if rank == 0 { Some(0) } else { vector.high().select(rank) };
        let Some(position) = position else {
            return SparseValues { low, rest: [].iter(), word: 0, base: 0, rank: end, end };
        };
        let mut rest =
            vector.high().bits().words().get((position / 64) as usize..).unwrap_or_default().iter();
        let word = rest.next().map_or(0, |word| word & (u64::MAX << (position % 64)));
        SparseValues { low, rest, word, base: position / 64 * 64, rank, end }
    }

    #[inline(always)]
    fn value(&self, bit: u64) -> u64 {
        let high = bit.wrapping_sub(self.rank);
        high.checked_shl(self.low.width()).unwrap_or(0) | self.low.read(self.rank)
    }
}

impl<W: AsRef<[u64]>> Iterator for SparseValues<'_, W> {
    type Item = u64;

    #[inline]
    fn next(&mut self) -> Option<u64> {
        if self.rank >= self.end {
            return None;
        }
        while self.word == 0 {
            self.word = *self.rest.next()?;
            self.base += 64;
        }
        let value = self.value(self.base + u64::from(self.word.trailing_zeros()));
        self.word &= self.word - 1;
        self.rank += 1;
        Some(value)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        // Fewer if a damaged file counts more than it has.
        (0, Some((self.end - self.rank) as usize))
    }
}

impl<W: AsRef<[u64]>> std::iter::FusedIterator for SparseValues<'_, W> {}
