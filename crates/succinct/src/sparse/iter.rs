//! Values of a sparse vector in order: the high part a word at a time, the low parts in parallel.

use std::marker::PhantomData;

use super::SparseVector;
use crate::bits::{low_mask, read_int, read_window};
use crate::queries::BitQueries;
use crate::storage::Words;

/// Values of a sparse vector, in order.
///
/// Nothing in `next` takes the address of the state, so that a loop keeps it in registers.
#[derive(Debug, Clone)]
pub struct SparseValues<'a, W> {
    // Words of the high part after the current one, and the rest of that one.
    rest: std::slice::Iter<'a, u64>,
    word: u64,
    // The position of the current word's first bit, less the rank of the next value.
    base: u64,
    // The low parts: the bit of the next one, their end, and the end of the part where one load of eight
    // bytes is enough.
    low: &'a [u64],
    width: u32,
    mask: u64,
    bit: u64,
    end: u64,
    window_end: u64,
    storage: PhantomData<&'a W>,
}

impl<'a, W: Words> SparseValues<'a, W> {
    pub(super) fn new(vector: &'a SparseVector<W>, rank: u64) -> Self {
        let (low, width, count) = (vector.low().bits().words(), vector.low().width(), vector.count_ones());
        let position = if rank == 0 { Some(0) } else { vector.high.select(rank) };
        let rank = if position.is_some() { rank.min(count) } else { count };
        let (mut rest, mut word, mut base) = ([].iter(), 0, 0_u64);
        if let Some(position) = position {
            base = position / 64 * 64;
            rest = vector.high().bits().words().get((position / 64) as usize..).unwrap_or_default().iter();
            word = rest.next().map_or(0, |word| word & (u64::MAX << (position % 64)));
        }
        // Opening has checked that all low parts together have fewer than 2^64 bits.
        let (bit, end) = (rank * u64::from(width), count * u64::from(width));
        let window_end = if width <= 57 { (low.len() as u64).saturating_sub(1) * 64 } else { 0 };
        let (mask, window_end) = (low_mask(width), window_end.min(end));
        let (base, storage) = (base.wrapping_sub(rank), PhantomData);
        SparseValues { rest, word, base, low, width, mask, bit, end, window_end, storage }
    }
}

#[cold]
#[inline(never)]
fn last_low_part(low: &[u64], bit: u64, width: u32) -> u64 {
    read_int(low, bit, width)
}

impl<W: Words> Iterator for SparseValues<'_, W> {
    type Item = u64;

    #[inline]
    fn next(&mut self) -> Option<u64> {
        while self.word == 0 {
            self.word = *self.rest.next()?;
            self.base = self.base.wrapping_add(64);
        }
        let low = if self.bit < self.window_end {
            // SAFETY: before `window_end` there is another word after the one with the bit.
            (unsafe { read_window(self.low, self.bit) }) & self.mask
        } else if self.bit < self.end {
            last_low_part(self.low, self.bit, self.width)
        } else {
            // A damaged file may have more bits than values.
            return None;
        };
        let high = self.base.wrapping_add(u64::from(self.word.trailing_zeros()));
        self.word &= self.word - 1;
        self.base = self.base.wrapping_sub(1);
        self.bit += u64::from(self.width);
        // With a width of 64 there is no high part.
        Some(high.wrapping_shl(self.width) | low)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        // Fewer if a damaged file counts more than it has.
        (0, Some(((self.end - self.bit) / u64::from(self.width)) as usize))
    }
}

impl<W: Words> std::iter::FusedIterator for SparseValues<'_, W> {}

/// Maximal runs of consecutive values as (start, length), in order; equal values count once.
#[derive(Debug, Clone)]
pub struct SparseRuns<'a, W> {
    values: SparseValues<'a, W>,
    next: Option<u64>,
}

impl<'a, W: Words> SparseRuns<'a, W> {
    pub(super) fn new(mut values: SparseValues<'a, W>) -> Self {
        let next = values.next();
        SparseRuns { values, next }
    }
}

impl<W: Words> Iterator for SparseRuns<'_, W> {
    type Item = (u64, u64);

    #[inline]
    fn next(&mut self) -> Option<(u64, u64)> {
        let (start, mut len) = (self.next?, 1);
        loop {
            self.next = self.values.next();
            match self.next.map(|value| value.wrapping_sub(start)) {
                Some(distance) if distance < len => {}
                Some(distance) if distance == len => len += 1,
                _ => return Some((start, len)),
            }
        }
    }
}

impl<W: Words> std::iter::FusedIterator for SparseRuns<'_, W> {}
