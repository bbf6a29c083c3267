//! Builds a sparse vector from sorted positions.

use std::sync::OnceLock;

use super::{SparseVector, bucket_count};
use crate::bits::low_mask;
use crate::error::Error;
use crate::int_vector::IntVector;
use crate::raw_vector::RawVector;

/// How to build a sparse vector.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SparseOptions {
    /// Whether positions may repeat.
    pub multiset: bool,
    /// Bits of the low parts; as simple-sds chooses if `None`.
    pub width: Option<u32>,
}

impl SparseOptions {
    /// Positions may repeat if `multiset`.
    #[must_use]
    pub fn multiset(mut self, multiset: bool) -> Self {
        self.multiset = multiset;
        self
    }

    /// Low parts of `width` bits.
    #[must_use]
    pub fn width(mut self, width: u32) -> Self {
        self.width = Some(width);
        self
    }
}

/// The high part of a vector without positions has a bit for every bucket; more than this is an error.
const HIGH_BITS_LIMIT: u64 = 1 << 36;

/// Takes positions in order.
///
/// ```
/// use pentaglot_succinct::{BitQueries, SparseBuilder, SparseOptions};
/// let mut builder = SparseBuilder::new(100, 3, SparseOptions::default().multiset(true)).unwrap();
/// for position in [7, 7, 99] {
///     builder.push(position).unwrap();
/// }
/// assert!(builder.push(99).is_err(), "three were announced");
/// let vector = builder.finish().unwrap();
/// assert!(vector.is_multiset());
/// assert_eq!(vector.rank(8), 2);
/// assert_eq!(vector.rank0(8), None);
/// ```
#[derive(Debug)]
pub struct SparseBuilder {
    universe: u64,
    ones: u64,
    count: u64,
    // The smallest position that may come next.
    next: u64,
    repeated: bool,
    options: SparseOptions,
    high: RawVector,
    low: IntVector,
}

/// The width of the low parts for `ones` positions below `universe`, in simple-sds's floating-point steps.
pub(crate) fn low_width(universe: u64, ones: u64) -> u32 {
    if ones == 0 || ones > universe {
        return 1;
    }
    ((universe as f64 * std::f64::consts::LN_2) / ones as f64).log2().max(1.0).round() as u32
}

impl SparseBuilder {
    /// For `ones` positions below `universe`.
    pub fn new(universe: u64, ones: u64, options: SparseOptions) -> Result<Self, Error> {
        if ones > universe && !options.multiset {
            return Err(Error::malformed(0, "ones", format!("at most {universe} distinct positions"), ones));
        }
        let width = options.width.unwrap_or_else(|| low_width(universe, ones));
        let mut low = IntVector::new(width)?;
        let high_bits = ones.saturating_add(bucket_count(universe, width));
        if high_bits > HIGH_BITS_LIMIT {
            let name = "bits of the high part of a sparse vector";
            return Err(Error::Limit { name, limit: HIGH_BITS_LIMIT, found: high_bits });
        }
        low.reserve(ones.min(1 << 24));
        let high = RawVector::with_len(high_bits, false);
        Ok(SparseBuilder { universe, ones, count: 0, next: 0, repeated: false, options, high, low })
    }

    /// Appends a position: not below the last one, distinct unless for a multiset, below the universe.
    #[inline]
    pub fn push(&mut self, position: u64) -> Result<(), Error> {
        if position < self.next || position >= self.universe || self.count >= self.ones {
            return Err(self.refusal(position));
        }
        let bit = position.checked_shr(self.low.width()).unwrap_or(0) + self.count;
        self.high.words_mut()[(bit / 64) as usize] |= 1 << (bit % 64);
        self.low.push(position & low_mask(self.low.width()));
        if self.options.multiset {
            self.repeated |= self.count > 0 && position == self.next;
            self.next = position;
        } else {
            // Not past the universe, which is at most `u64::MAX`.
            self.next = position + 1;
        }
        self.count += 1;
        Ok(())
    }

    #[cold]
    fn refusal(&self, position: u64) -> Error {
        let path = format!("positions[{}]", self.count);
        if self.count >= self.ones {
            return Error::malformed(0, path, format!("{} positions", self.ones), "one more");
        }
        Error::malformed(0, path, format!("{} to {}", self.next, self.universe.saturating_sub(1)), position)
    }

    /// The vector, if as many positions were appended as announced.
    pub fn finish(self) -> Result<SparseVector, Error> {
        if self.count != self.ones {
            return Err(Error::malformed(0, "positions", format!("{} positions", self.ones), self.count));
        }
        let multiset = OnceLock::from(self.repeated);
        let (universe, high, low) = (self.universe, self.high.into(), self.low);
        Ok(SparseVector { universe, high, low, multiset, index: super::Index::default() })
    }
}

impl SparseVector {
    /// The set of `positions`, which must increase and lie below `universe`.
    pub fn from_sorted(universe: u64, positions: &[u64]) -> Result<Self, Error> {
        Self::from_sorted_with(universe, positions.iter().copied(), SparseOptions::default())
    }

    /// The vector of `positions`, with `options`.
    pub fn from_sorted_with<I>(universe: u64, positions: I, options: SparseOptions) -> Result<Self, Error>
    where
        I: IntoIterator<Item = u64, IntoIter: ExactSizeIterator>,
    {
        let positions = positions.into_iter();
        let mut builder = SparseBuilder::new(universe, positions.len() as u64, options)?;
        positions.into_iter().try_for_each(|position| builder.push(position))?;
        builder.finish()
    }

    /// The multiset of `values`, which must not decrease; the universe ends after the last one.
    pub fn multiset_of(values: &[u64]) -> Result<Self, Error> {
        let last = values.last().copied();
        let universe = last.map_or(Some(0), |last| last.checked_add(1));
        let limit = Error::Limit { name: "universe", limit: u64::MAX, found: u64::MAX };
        let options = SparseOptions::default().multiset(true);
        Self::from_sorted_with(universe.ok_or(limit)?, values.iter().copied(), options)
    }
}
