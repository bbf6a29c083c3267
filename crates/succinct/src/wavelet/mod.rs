//! Sequences of integers that answer rank and select for every value.

mod build;
mod core;
mod layout;
mod level;
mod partition;
mod query;
mod values;

use std::io;

pub use self::build::DEFAULT_ALPHABET_LIMIT;
pub use self::level::Level;
pub use self::values::Values;
use crate::bit_vector::BitVector;
use crate::cursor::WordCursor;
use crate::error::Error;
use crate::index::Indexed;
use crate::int_vector::IntVector;
use crate::layout::WordSink;
use crate::queries::BitQueries;
use crate::run_length::RunLengthVector;
use crate::storage::{SharedWords, Words};

/// A wavelet matrix over plain bit vectors; see [`Wavelet`].
///
/// ```
/// use pentaglot_succinct::WaveletMatrix;
/// let text = WaveletMatrix::from_values(&[3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5]).unwrap();
/// assert_eq!(text.access(4), Some(5));
/// assert_eq!(text.rank(10, 5), 2);
/// assert_eq!(text.select(2, 5), Some(10));
/// assert_eq!(text.range_count(0..11, 2..6), 7);
/// assert_eq!(text.quantile(0..11, 5), Some(4));
/// ```
pub type WaveletMatrix<W = Vec<u64>> = Wavelet<BitVector<W>, W>;

/// A wavelet matrix over run-length encoded bit vectors; see [`Wavelet`].
///
/// ```
/// use pentaglot_succinct::RunLengthWaveletMatrix;
/// let text = RunLengthWaveletMatrix::from_runs(&[(7, 1000), (0, 5), (7, 20)]).unwrap();
/// assert_eq!(text.rank(1005, 7), 1000);
/// assert_eq!(text.select(1000, 7), Some(1005));
/// ```
pub type RunLengthWaveletMatrix<W = Vec<u64>> = Wavelet<RunLengthVector<W>, W>;

/// The levels of a wavelet matrix, which reorder a sequence by the reversed bits of its values.
///
/// Level 0 holds the highest bit of each value; the values are then partitioned by it, those with 0 first, and
/// level 1 holds the next bit of each in the new order, and so on (Claude, Navarro and Ordóñez, *The wavelet
/// matrix*, Information Systems 2015).
#[derive(Debug, Clone)]
pub struct WaveletCore<L> {
    levels: Vec<L>,
}

/// A wavelet matrix: an immutable sequence that answers access, rank, select and range queries.
///
/// Space: `width` bits per value, plus the supports of each level (0.25 for rank; up to 0.18 for each of select and
/// select0 once they are used), plus one position per value of the alphabet, which is therefore limited when building.
/// Cache misses: 2 per level for access and rank, 3 for select. Large matrices of plain bit vectors prefetch them:
/// counts 65,536 bits apart, which stay cached, give an estimate of the next position, so that its lines are
/// prefetched before it is known, for rank on all levels at once. For random values this is mostly the right line;
/// otherwise only the prefetch is wasted. Batched queries go through the levels together, 32 at a time.
#[derive(Debug, Clone)]
pub struct Wavelet<L, W> {
    core: WaveletCore<L>,
    // The start of each value in the reordered sequence; the length for values that do not occur.
    first: IntVector<W>,
}

impl<L: BitQueries> WaveletCore<L> {
    /// A matrix of these `levels`, which must be 1 to 64 vectors of equal length.
    pub fn try_from_levels(levels: Vec<L>) -> Result<Self, Error> {
        if !(1..=64).contains(&levels.len()) {
            return Err(Error::malformed(0, "width", "1 to 64", levels.len()));
        }
        let len = levels[0].len();
        match levels.iter().position(|level| level.len() != len) {
            Some(level) => {
                let path = format!("levels[{level}]");
                Err(Error::malformed(0, path, format!("{len} bits"), levels[level].len()))
            }
            None => Ok(WaveletCore { levels }),
        }
    }

    /// The number of values.
    pub fn len(&self) -> u64 {
        self.levels[0].len()
    }

    /// Whether there are no values.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bits per value.
    pub fn width(&self) -> u32 {
        self.levels.len() as u32
    }

    /// The levels, that of the highest bit first.
    pub fn levels(&self) -> &[L] {
        &self.levels
    }
}

impl<L: BitQueries, W: Words> Wavelet<L, W> {
    /// A matrix from its parts; lengths must be consistent as the format requires.
    pub fn try_from_parts(core: WaveletCore<L>, first: IntVector<W>) -> Result<Self, Error> {
        Self::check_parts(core.len(), core, first, 0, 0)
    }

    fn check_parts(
        len: u64,
        core: WaveletCore<L>,
        first: IntVector<W>,
        at: u64,
        first_at: u64,
    ) -> Result<Self, Error> {
        if core.len() != len {
            return Err(Error::malformed(at, "len", format!("{} values, as in the levels", core.len()), len));
        }
        let alphabet = 1_u128 << core.width();
        if first.is_empty() || u128::from(first.len()) > alphabet {
            let expected = format!("1 to {alphabet} items");
            return Err(Error::malformed(first_at, "first.len", expected, first.len()));
        }
        Ok(Wavelet { core, first })
    }

    /// The number of values.
    #[inline]
    pub fn len(&self) -> u64 {
        self.core.len()
    }

    /// Whether there are no values.
    pub fn is_empty(&self) -> bool {
        self.core.is_empty()
    }

    /// Bits per value.
    pub fn width(&self) -> u32 {
        self.core.width()
    }

    /// The levels.
    pub fn core(&self) -> &WaveletCore<L> {
        &self.core
    }

    /// The start of each value of the alphabet in the reordered sequence.
    pub fn first(&self) -> &IntVector<W> {
        &self.first
    }
}

impl<L: Indexed> Indexed for WaveletCore<L> {
    fn build_index(&self) {
        self.levels.iter().for_each(Indexed::build_index);
    }

    fn write_index(&self, sink: &mut impl WordSink) -> io::Result<()> {
        sink.put(&[self.levels.len() as u64])?;
        self.levels.iter().try_for_each(|level| level.write_index(sink))
    }

    fn attach_index(&self, cursor: &mut WordCursor<SharedWords>) -> Result<(), Error> {
        let at = cursor.position();
        let count = cursor.element("width")?;
        if count != self.levels.len() as u64 {
            return Err(Error::malformed(at, "width", self.levels.len(), count));
        }
        for (index, level) in self.levels.iter().enumerate() {
            level.attach_index(cursor).map_err(|error| error.within(&format!("levels[{index}]")))?;
        }
        Ok(())
    }
}

impl<L: Indexed, W> Indexed for Wavelet<L, W> {
    fn build_index(&self) {
        self.core.build_index();
    }

    fn write_index(&self, sink: &mut impl WordSink) -> io::Result<()> {
        self.core.write_index(sink)
    }

    fn attach_index(&self, cursor: &mut WordCursor<SharedWords>) -> Result<(), Error> {
        self.core.attach_index(cursor)
    }
}
