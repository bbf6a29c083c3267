//! Decodes a whole wavelet matrix, or from a position on.

use super::partition::Lane;
use super::{Level, RunLengthWaveletMatrix, Wavelet, WaveletMatrix};
use crate::queries::{BATCH, BitQueries};
use crate::storage::Words;

/// All values of a wavelet matrix, decoded; in as few bytes each as the width needs.
#[derive(Debug, Clone)]
pub struct Values(Lanes);

#[derive(Debug, Clone)]
enum Lanes {
    One(std::vec::IntoIter<u8>),
    Two(std::vec::IntoIter<u16>),
    Four(std::vec::IntoIter<u32>),
    Eight(std::vec::IntoIter<u64>),
}

macro_rules! each_lane {
    ($lanes:expr, $iter:ident => $body:expr) => {
        match $lanes {
            Lanes::One($iter) => $body,
            Lanes::Two($iter) => $body,
            Lanes::Four($iter) => $body,
            Lanes::Eight($iter) => $body,
        }
    };
}

impl Iterator for Values {
    type Item = u64;

    #[inline]
    fn next(&mut self) -> Option<u64> {
        each_lane!(&mut self.0, iter => iter.next().map(Lane::to_u64))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        each_lane!(&self.0, iter => iter.size_hint())
    }

    fn fold<B, F: FnMut(B, u64) -> B>(self, init: B, mut f: F) -> B {
        each_lane!(self.0, iter => iter.fold(init, |state, value| f(state, value.to_u64())))
    }
}

impl ExactSizeIterator for Values {}

impl<W: Words> WaveletMatrix<W> {
    /// All values in order, decoded at once: the levels are merged from the last to the first, each in one
    /// sequential pass. Takes up to twice 1, 2, 4 or 8 bytes per value during decoding.
    ///
    /// ```
    /// use pentaglot_succinct::WaveletMatrix;
    /// let text = WaveletMatrix::from_values(&[3, 1, 4, 1, 5]).unwrap();
    /// assert_eq!(text.values().collect::<Vec<_>>(), [3, 1, 4, 1, 5]);
    /// assert_eq!(text.iter_from(2).collect::<Vec<_>>(), [4, 1, 5]);
    /// ```
    pub fn values(&self) -> Values {
        Values(match self.width() {
            0..=8 => Lanes::One(self.decode().into_iter()),
            9..=16 => Lanes::Two(self.decode().into_iter()),
            17..=32 => Lanes::Four(self.decode().into_iter()),
            _ => Lanes::Eight(self.decode().into_iter()),
        })
    }

    fn decode<T: Lane>(&self) -> Vec<T> {
        let len = self.len() as usize;
        let (mut from, mut to) = (vec![T::default(); len], vec![T::default(); len]);
        for (level, bit) in self.core.levels.iter().rev().zip(0..) {
            T::merge(level.bits().words(), (level.count_zeros() as usize).min(len), &from, &mut to, bit);
            std::mem::swap(&mut from, &mut to);
        }
        from
    }
}

impl<W: Words> RunLengthWaveletMatrix<W> {
    /// Maximal runs of equal values as (value, length), in order, from `index` on; the first starts there.
    ///
    /// ```
    /// use pentaglot_succinct::RunLengthWaveletMatrix;
    /// let text = RunLengthWaveletMatrix::from_runs(&[(7, 1000), (0, 5), (7, 20)]).unwrap();
    /// assert_eq!(text.runs_from(990).collect::<Vec<_>>(), [(7, 10), (0, 5), (7, 20)]);
    /// ```
    pub fn runs_from(&self, index: u64) -> impl Iterator<Item = (u64, u64)> + '_ {
        let mut next = index;
        std::iter::from_fn(move || {
            let (value, run) = self.run_at(next)?;
            next = next.saturating_add(run);
            Some((value, run))
        })
    }

    /// The value at `index`, and the length of the run of equal values that begins with it.
    pub fn run_at(&self, index: u64) -> Option<(u64, u64)> {
        let (mut position, mut value) = (index, 0);
        let mut run = self.len().checked_sub(index).filter(|&left| left > 0)?;
        for level in &self.core.levels {
            let (bit, rank, left) = level.run_at(position);
            run = run.min(left);
            value = value << 1 | u64::from(bit);
            position = if bit { level.count_zeros().wrapping_add(rank) } else { position.wrapping_sub(rank) };
        }
        Some((value, run.max(1)))
    }
}

impl<L: Level, W: Words> Wavelet<L, W> {
    /// The values from `index` on, decoded 32 at a time.
    pub fn iter_from(&self, index: u64) -> impl Iterator<Item = u64> + '_ {
        let mut next = index.min(self.len());
        let (mut buffer, mut used, mut count) = ([None; BATCH], 0, 0);
        std::iter::from_fn(move || {
            if used == count {
                count = (self.len() - next).min(BATCH as u64) as usize;
                let indexes: [u64; BATCH] = std::array::from_fn(|place| next.wrapping_add(place as u64));
                self.access_many(&indexes[..count], &mut buffer);
                (next, used) = (next + count as u64, 0);
            }
            let value = if used < count { buffer[used] } else { None };
            used += usize::from(used < count);
            value
        })
    }

    /// All values in order, decoded 32 at a time; see also [`WaveletMatrix::values`] and [`RunLengthWaveletMatrix::runs_from`].
    pub fn iter(&self) -> impl Iterator<Item = u64> + '_ {
        self.iter_from(0)
    }
}
