//! Values of a sparse vector in order: the high part a word at a time, the low parts in step.

use std::marker::PhantomData;

use super::SparseVector;
use crate::bits::{low_mask, read_int, read_window};
use crate::queries::BitQueries;
use crate::storage::Words;

/// Values of a sparse vector, in order.
#[derive(Debug, Clone)]
pub struct SparseValues<'a, W> {
    // Words of the high part after the current one, what is left of that one, and the position of its first bit.
    rest: std::slice::Iter<'a, u64>,
    word: u64,
    base: u64,
    rank: u64,
    end: u64,
    // The low parts: where the next one is, and up to where it can be read as eight bytes.
    low: &'a [u64],
    width: u32,
    mask: u64,
    bit: u64,
    window_limit: u64,
    storage: PhantomData<&'a W>,
}

impl<'a, W: Words> SparseValues<'a, W> {
    pub(super) fn new(vector: &'a SparseVector<W>, rank: u64) -> Self {
        let (low, width, end) = (vector.low().bits().words(), vector.low().width(), vector.count_ones());
        let position = if rank == 0 { Some(0) } else { vector.high().select(rank) };
        let (mut rest, mut word, mut base) = ([].iter(), 0, 0);
        if let Some(position) = position {
            base = position / 64 * 64;
            rest = vector.high().bits().words().get((position / 64) as usize..).unwrap_or_default().iter();
            word = rest.next().map_or(0, |word| word & (u64::MAX << (position % 64)));
        }
        let rank = if position.is_some() { rank.min(end) } else { end };
        let window_limit = if width <= 57 { (low.len() as u64).saturating_sub(1) * 64 } else { 0 };
        let bit = rank.wrapping_mul(u64::from(width));
        let (mask, storage) = (low_mask(width), PhantomData);
        SparseValues { rest, word, base, rank, end, low, width, mask, bit, window_limit, storage }
    }

    /// The low part at `bit`.
    #[inline(always)]
    fn low_part(&self) -> u64 {
        if self.bit < self.window_limit {
            // SAFETY: below the limit there is another word after the one with the bit.
            return unsafe { read_window(self.low, self.bit) } & self.mask;
        }
        read_int(self.low, self.bit, self.width)
    }
}

impl<W: Words> Iterator for SparseValues<'_, W> {
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
        let high = (self.base + u64::from(self.word.trailing_zeros())).wrapping_sub(self.rank);
        // With a width of 64 there is no high part.
        let value = high.wrapping_shl(self.width) | self.low_part();
        self.word &= self.word - 1;
        self.rank += 1;
        self.bit = self.bit.wrapping_add(u64::from(self.width));
        Some(value)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        // Fewer if a damaged file counts more than it has.
        (0, Some((self.end - self.rank) as usize))
    }
}

impl<W: Words> std::iter::FusedIterator for SparseValues<'_, W> {}
