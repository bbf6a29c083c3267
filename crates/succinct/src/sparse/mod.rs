//! Sorted integers, a few bits each.

mod buckets;
mod build;
mod fast;
mod iter;
mod layout;
mod query;
#[cfg(test)]
mod tests;

use std::io;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use self::buckets::Buckets;
pub(crate) use self::build::low_width;
pub use self::build::{SparseBuilder, SparseOptions};
pub use self::iter::{SparseRuns, SparseValues};
use crate::bit_vector::{BitVector, Inventory};
use crate::cpu::dispatch;
use crate::cursor::WordCursor;
use crate::error::Error;
use crate::index::Indexed;
use crate::int_vector::IntVector;
use crate::layout::WordSink;
use crate::queries::BitQueries;
use crate::storage::{SharedWords, Words};

/// A sparse bit vector: the Elias-Fano code of the positions of its set bits, or of any sorted integers.
///
/// Each of the m positions below n is split: its low `w ≈ log2(n ln 2 / m)` bits are stored directly, the rest as
/// a unary count per value (Elias, *Efficient storage and retrieval by content and address of static files*, JACM
/// 1974; Fano 1971; the width after Ma, Puglisi, Raman and Zhukova, DCC 2021).
///
/// Space: about `w + 2.4` bits per position; about a quarter of a bit for the index of `select`, 1 to 2 bits for that
/// of the other queries, each built when first needed. Cache misses: 3 per query (index, high part, low parts; for
/// `select` the last two do not depend on each other), iteration sequential. If values are clustered, buckets are found
/// by the high part's own select.
///
/// With equal values it is a *multiset*, see [`BitQueries`]; a file does not record it, so the first query
/// that needs to know reads all values once.
///
/// ```
/// use pentaglot_succinct::{BitQueries, SparseVector};
/// let primes = SparseVector::from_sorted(1 << 40, &[2, 3, 5, 7, 1_000_003]).unwrap();
/// assert_eq!(primes.rank(6), 3);
/// assert_eq!(primes.select(4), Some(1_000_003));
/// assert_eq!(primes.successor(8), Some(1_000_003));
/// assert_eq!(primes.predecessor(u64::MAX), Some(1_000_003));
/// assert_eq!(primes.select0(2), Some(4));
/// assert_eq!(primes.iter_from(3).collect::<Vec<_>>(), [7, 1_000_003]);
/// ```
#[derive(Debug, Clone)]
pub struct SparseVector<W = Vec<u64>> {
    universe: u64,
    high: BitVector<W>,
    low: IntVector<W>,
    multiset: OnceLock<bool>,
    index: Index,
}

/// The index of buckets in the high part, which is not in the file. The high part has its own index of values.
#[derive(Debug, Default)]
struct Index {
    buckets: OnceLock<Buckets>,
    // Queries answered by the file's own supports so far.
    patience: AtomicU32,
}

/// This many queries are answered by the file's own select supports before an index is built.
const PATIENCE: u32 = 64;

impl Clone for Index {
    fn clone(&self) -> Self {
        let patience = AtomicU32::new(self.patience.load(Ordering::Relaxed));
        Index { buckets: self.buckets.clone(), patience }
    }
}

/// The number of values that `high` counts for: positions below `universe` in units of 2^`width`.
pub(crate) fn bucket_count(universe: u64, width: u32) -> u64 {
    let whole = universe.checked_shr(width).unwrap_or(0);
    whole + u64::from(universe & crate::bits::low_mask(width) != 0)
}

impl<W: Words> SparseVector<W> {
    /// A vector from its parts; lengths must be consistent as the format requires.
    pub fn try_from_parts(universe: u64, high: BitVector<W>, low: IntVector<W>) -> Result<Self, Error> {
        Self::check_parts(universe, high, low, 0, 0)
    }

    /// `at` and `low_at` are where the vector and its low part start, for errors.
    fn check_parts(
        universe: u64,
        high: BitVector<W>,
        low: IntVector<W>,
        at: u64,
        low_at: u64,
    ) -> Result<Self, Error> {
        let ones = high.count_ones();
        if low.len() != ones {
            let expected = format!("{ones} items, one for each set bit of high");
            return Err(Error::malformed(low_at, "low.len", expected, low.len()));
        }
        let buckets = bucket_count(universe, low.width());
        if ones.checked_add(buckets) != Some(high.len()) {
            let expected = format!("{ones} set bits and {buckets} buckets");
            return Err(Error::malformed(at + 2, "high.bits.len", expected, high.len()));
        }
        Ok(SparseVector { universe, high, low, multiset: OnceLock::new(), index: Index::default() })
    }

    /// The high parts: for each bucket its values as ones, then a zero.
    pub fn high(&self) -> &BitVector<W> {
        &self.high
    }

    /// The low parts.
    pub fn low(&self) -> &IntVector<W> {
        &self.low
    }

    /// Whether some value occurs more than once; the first call may read all values.
    #[inline]
    pub fn is_multiset(&self) -> bool {
        *self.multiset.get_or_init(|| {
            self.count_ones() > self.universe || {
                let mut values = self.iter();
                let mut last = values.next();
                values.any(|value| last.replace(value) == Some(value))
            }
        })
    }
}

impl<W: Words> SparseVector<W> {
    fn build_buckets(&self) -> &Buckets {
        let (words, len, count) = (self.high.bits().words(), self.high.len(), self.high.count_zeros());
        let build = || dispatch!(isa => Buckets::build(isa, words, len, count, self.low.width()));
        self.index.buckets.get_or_init(build)
    }
}

impl<W: Words> Indexed for SparseVector<W> {
    fn build_index(&self) {
        self.high.inventory::<true>();
        self.build_buckets();
        self.is_multiset();
    }

    fn write_index(&self, sink: &mut impl WordSink) -> io::Result<()> {
        sink.put(&[u64::from(self.is_multiset()), self.high.len(), self.count_ones()])?;
        self.high.inventory::<true>().write(sink)?;
        self.build_buckets().write(sink)
    }

    fn attach_index(&self, cursor: &mut WordCursor<SharedWords>) -> Result<(), Error> {
        let at = cursor.position();
        let multiset = cursor.element("multiset")?;
        if multiset > 1 {
            return Err(Error::malformed(at, "multiset", "0 or 1", multiset));
        }
        for (offset, name, value) in [(1, "high.len", self.high.len()), (2, "ones", self.count_ones())] {
            let found = cursor.element(name)?;
            if found != value {
                return Err(Error::malformed(at + offset, name, value, found));
            }
        }
        let ones = Inventory::read(cursor, self.high.count_ones()).map_err(|error| error.within("ones"))?;
        let buckets = Buckets::read(cursor, self.high.count_zeros(), self.low.width())?;
        self.high.attach_ones(ones);
        let _ = self.index.buckets.set(buckets);
        let _ = self.multiset.set(multiset == 1);
        Ok(())
    }
}
