//! Runs of set bits, a few units of four bits each.

mod build;
mod decode;
mod directory;
pub(crate) mod encode;
mod iter;
mod layout;
mod query;

use std::io;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

pub use self::build::RunLengthBuilder;
use self::decode::{BLOCK_UNITS, Block};
use self::directory::Directory;
pub use self::iter::{RunLengthOnes, RunLengthRuns};
use crate::cursor::WordCursor;
use crate::error::Error;
use crate::index::Indexed;
use crate::int_vector::IntVector;
use crate::layout::WordSink;
use crate::storage::{SharedWords, Words};

/// A run-length encoded bit vector: for each maximal run of set bits the zeros before it and its length.
///
/// Both are written in units of 4 bits, 3 of them data, in blocks of 64 units that contain whole runs; for each
/// block the bits and ones before it are sampled (as in the RLE vectors of Sirén, *Compressed Full-Text Indexes
/// for Highly Repetitive Collections*, 2012).
///
/// Space: 8 to 30 bits per run if gaps and runs are below a thousand, including samples; our directory over the
/// blocks adds a fifth. Cache misses: 3 per query (directory, sample, block), then half a block is decoded, the two
/// numbers of a run at a time.
///
/// ```
/// use pentaglot_succinct::{BitQueries, RunLengthVector};
/// let bits = RunLengthVector::from_runs(1_000_000, [(10, 5), (500_000, 1_000)]).unwrap();
/// assert_eq!(bits.count_ones(), 1005);
/// assert_eq!(bits.rank(500_001), 6);
/// assert_eq!(bits.select(5), Some(500_000));
/// assert_eq!(bits.predecessor(499_999), Some(14));
/// assert_eq!(bits.runs_from(12).collect::<Vec<_>>(), [(12, 3), (500_000, 1_000)]);
/// ```
#[derive(Debug)]
pub struct RunLengthVector<W = Vec<u64>> {
    len: u64,
    ones: u64,
    samples: IntVector<W>,
    data: IntVector<W>,
    directories: OnceLock<Directories>,
    // Queries answered without directories so far.
    patience: AtomicU32,
}

/// Which block holds a position, a set bit, an unset bit.
#[derive(Debug, Clone)]
struct Directories {
    bits: Directory,
    ones: Directory,
    zeros: Directory,
}

/// This many queries are answered by binary search over the samples before directories are built.
const PATIENCE: u32 = 64;

/// Which number of a sample is searched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Key {
    Bits,
    Ones,
    Zeros,
}

impl<W: Clone> Clone for RunLengthVector<W> {
    fn clone(&self) -> Self {
        RunLengthVector {
            len: self.len,
            ones: self.ones,
            samples: self.samples.clone(),
            data: self.data.clone(),
            directories: self.directories.clone(),
            patience: AtomicU32::new(self.patience.load(Ordering::Relaxed)),
        }
    }
}

impl<W: Words> RunLengthVector<W> {
    /// A vector from its parts; widths and lengths must be consistent as the format requires.
    pub fn try_from_parts(
        len: u64,
        ones: u64,
        samples: IntVector<W>,
        data: IntVector<W>,
    ) -> Result<Self, Error> {
        Self::check_parts(len, ones, samples, data, [0; 3])
    }

    /// The offsets of the vector, its samples and its data are for errors.
    fn check_parts(
        len: u64,
        ones: u64,
        samples: IntVector<W>,
        data: IntVector<W>,
        [at, samples_at, data_at]: [u64; 3],
    ) -> Result<Self, Error> {
        if ones > len {
            return Err(Error::malformed(at + 1, "ones", format!("at most {len} set bits"), ones));
        }
        if data.width() != 4 {
            return Err(Error::malformed(data_at + 1, "data.width", 4, data.width()));
        }
        let blocks = data.len().div_ceil(BLOCK_UNITS);
        if samples.len() != 2 * blocks {
            let expected = format!("{} items, two for each block of data", 2 * blocks);
            return Err(Error::malformed(samples_at, "samples.len", expected, samples.len()));
        }
        let (directories, patience) = (OnceLock::new(), AtomicU32::new(0));
        Ok(RunLengthVector { len, ones, samples, data, directories, patience })
    }

    /// Ones and bits before each block, interleaved.
    pub fn samples(&self) -> &IntVector<W> {
        &self.samples
    }

    /// The blocks, in units of 4 bits.
    pub fn data(&self) -> &IntVector<W> {
        &self.data
    }

    /// The number of blocks.
    #[inline]
    fn blocks(&self) -> u64 {
        self.samples.len() / 2
    }

    /// The sample of block `block`; the totals for the block after the last.
    #[inline(always)]
    fn sample(&self, block: u64, key: Key) -> u64 {
        if block >= self.blocks() {
            return match key {
                Key::Bits => self.len,
                Key::Ones => self.ones,
                Key::Zeros => self.len - self.ones,
            };
        }
        match key {
            Key::Bits => self.samples.read(2 * block + 1),
            Key::Ones => self.samples.read(2 * block),
            Key::Zeros => self.samples.read(2 * block + 1).wrapping_sub(self.samples.read(2 * block)),
        }
    }

    /// A decoder at the start of block `block`.
    #[inline(always)]
    fn block(&self, block: u64) -> Block<'_> {
        let (ones, bits) = (self.samples.read(2 * block), self.samples.read(2 * block + 1));
        let limit = (block + 1).saturating_mul(BLOCK_UNITS).min(self.data.len());
        let end_ones = self.sample(block + 1, Key::Ones);
        Block::new(self.data.bits().words(), block * BLOCK_UNITS, limit, ones, bits, end_ones)
    }

    fn build_directories(&self) -> &Directories {
        self.directories.get_or_init(|| {
            let build = |key, total| Directory::build(self.blocks(), total, |block| self.sample(block, key));
            Directories {
                bits: build(Key::Bits, self.len),
                ones: build(Key::Ones, self.ones),
                zeros: build(Key::Zeros, self.len - self.ones),
            }
        })
    }
}

impl<W: Words> Indexed for RunLengthVector<W> {
    fn build_index(&self) {
        self.build_directories();
    }

    fn write_index(&self, sink: &mut impl WordSink) -> io::Result<()> {
        let directories = self.build_directories();
        sink.put(&[self.len, self.blocks()])?;
        directories.bits.write(sink)?;
        directories.ones.write(sink)?;
        directories.zeros.write(sink)
    }

    fn attach_index(&self, cursor: &mut WordCursor<SharedWords>) -> Result<(), Error> {
        let at = cursor.position();
        for (offset, name, value) in [(0, "len", self.len), (1, "blocks", self.blocks())] {
            let found = cursor.element(name)?;
            if found != value {
                return Err(Error::malformed(at + offset, name, value, found));
            }
        }
        let directories = Directories {
            bits: Directory::read(cursor)?,
            ones: Directory::read(cursor)?,
            zeros: Directory::read(cursor)?,
        };
        let _ = self.directories.set(directories);
        Ok(())
    }
}
