//! Plain bits with rank and select.

mod build;
mod fast_rank;
mod inventory;
mod iter;
mod layout;
mod query;
pub(crate) mod rank;
mod sampler;
mod scan;
mod select_support;

use std::io;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use self::build::{ONES, RANK, ZEROS, build};
pub(crate) use self::fast_rank::FastBits;
use self::fast_rank::FastRank;
pub(crate) use self::inventory::Inventory;
pub use self::iter::{Positions, Runs};
use self::rank::{Counts, RankSupport};
use self::select_support::SelectSupport;
use crate::cpu::fast;
use crate::cursor::WordCursor;
use crate::error::Error;
use crate::index::Indexed;
use crate::layout::WordSink;
use crate::raw_vector::RawVector;
use crate::storage::{SharedWords, Words};

/// A plain bit vector with rank, select and related queries.
///
/// | | space (bits per bit) | cache misses per query |
/// |---|---|---|
/// | the bits | 1 | 1 for `get`, predecessor, successor nearby |
/// | rank: rank9 (Vigna, *Broadword implementation of rank/select queries*, WEA 2008), if the file has it; else a 16-bit count for every word, in memory only | 0.25 | 2 at once |
/// | select, select0: an inventory with adaptive strides (in the manner of Vigna's `SelectAdapt`), in memory only | 0.07 to 0.18 each; up to 0.31 for a kind that is one bit in 64 | 1 in the bits, after 1 in the inventory; only that one for a kind that is at most one bit in 64; up to 13 more steps in the rank support where bits are clustered |
///
/// The rank support of a file is used in place. The rest is built when first needed, in one pass; the first
/// few selects are answered by a file's own select support.
///
/// ```
/// use pentaglot_succinct::{BitQueries, BitVector, Structure, Supports, WordCursor};
/// let bits: BitVector = (0..2000).map(|i| i % 7 == 3).collect();
/// let file = bits.to_words(Supports::Full);
/// let opened = BitVector::from_words(&mut WordCursor::new(&file[..])).unwrap();
/// assert_eq!(opened.rank(1000), 143);
/// assert_eq!(opened.select(142), Some(997));
/// assert_eq!(opened.ones_from(1990).next(), Some(1991));
/// assert!(opened.validate().is_empty());
/// ```
#[derive(Debug)]
pub struct BitVector<W = Vec<u64>> {
    ones: u64,
    bits: RawVector<W>,
    // The content of the three optional slots: rank, select, select0.
    slots: [Option<W>; 3],
    // The pairs of slot 0, if their number is right.
    pairs: Option<W>,
    index: Index,
}

/// Supports that are not in the file, or faster than those in the file.
#[derive(Debug, Default)]
struct Index {
    // Our own rank support, if the file has none.
    counts: OnceLock<SharedWords>,
    // The same once it is built, if the processor is fast: it points into `counts`, which never change.
    fast_rank: FastRank,
    ones: OnceLock<Inventory>,
    zeros: OnceLock<Inventory>,
    // Selects answered from the file's own support so far.
    patience: AtomicU32,
}

/// This many selects are answered by the file's own support before an inventory is built.
const PATIENCE: u32 = 64;

impl Clone for Index {
    fn clone(&self) -> Self {
        let patience = AtomicU32::new(self.patience.load(Ordering::Relaxed));
        let (counts, ones, zeros) = (self.counts.clone(), self.ones.clone(), self.zeros.clone());
        // Pointers are set when they are first needed.
        Index { counts, fast_rank: FastRank::default(), ones, zeros, patience }
    }
}

impl<W: Clone> Clone for BitVector<W> {
    fn clone(&self) -> Self {
        BitVector {
            ones: self.ones,
            bits: self.bits.clone(),
            slots: self.slots.clone(),
            pairs: self.pairs.clone(),
            index: self.index.clone(),
        }
    }
}

impl<W: Words> From<RawVector<W>> for BitVector<W> {
    /// Counts the bits; supports are built later.
    fn from(bits: RawVector<W>) -> Self {
        let ones = bits.count_ones();
        BitVector { ones, bits, slots: [const { None }; 3], pairs: None, index: Index::default() }
    }
}

impl FromIterator<bool> for BitVector {
    fn from_iter<I: IntoIterator<Item = bool>>(bits: I) -> Self {
        bits.into_iter().collect::<RawVector>().into()
    }
}

impl BitVector {
    /// `len` bits of which those at `positions` are set; positions past the end are an error.
    pub fn from_positions(len: u64, positions: impl IntoIterator<Item = u64>) -> Result<Self, Error> {
        let mut bits = RawVector::with_len(len, false);
        for position in positions {
            if !bits.set(position, true) {
                return Err(Error::malformed(0, "positions", format!("positions below {len}"), position));
            }
        }
        Ok(bits.into())
    }

    /// `len` bits of which those in `runs` (start, length) are set; runs that end past the end are an error.
    pub fn from_runs(len: u64, runs: impl IntoIterator<Item = (u64, u64)>) -> Result<Self, Error> {
        let mut bits = RawVector::with_len(len, false);
        for (start, run) in runs {
            let end = start.checked_add(run).filter(|&end| end <= len);
            let end = end.ok_or_else(|| {
                Error::malformed(0, "runs", format!("runs that end by {len}"), format!("{start} + {run}"))
            })?;
            let mut at = start;
            while at < end {
                let width = (64 - at % 64).min(end - at) as u32;
                bits.set_int(at, width, u64::MAX);
                at += u64::from(width);
            }
        }
        Ok(bits.into())
    }
}

impl<W: Words> BitVector<W> {
    /// The bits.
    #[inline]
    pub fn bits(&self) -> &RawVector<W> {
        &self.bits
    }

    /// The content of the file's optional slots: rank, select, select0 support.
    pub fn stored_supports(&self) -> [Option<&[u64]>; 3] {
        self.slots.each_ref().map(|slot| slot.as_ref().map(AsRef::as_ref))
    }

    /// The rank support: the file's, or our own.
    #[inline]
    pub(crate) fn rank_support(&self) -> RankSupport<'_> {
        match (&self.pairs, self.ready_counts()) {
            (Some(pairs), _) => RankSupport::Pairs(pairs.as_ref()),
            (None, Some(counts)) => RankSupport::Counts(counts),
            (None, None) => RankSupport::Counts(self.build_counts()),
        }
    }

    #[inline(always)]
    fn ready_counts(&self) -> Option<Counts<'_>> {
        Counts::new(self.index.counts.get()?.as_ref(), self.bits.words().len())
    }

    /// The data for batches of queries, if the processor is fast and the counts are our own.
    #[inline]
    pub(crate) fn fast_bits(&self) -> Option<FastBits<'_>> {
        if !self.index.fast_rank.is_set() {
            self.rank_support();
            self.remember_counts();
        }
        // SAFETY: the counts are of as many bits as there are words for.
        unsafe { self.index.fast_rank.bits(self.bits.words()) }
    }

    /// Sets [`Index::fast_rank`] if the processor is fast and the counts exist.
    fn remember_counts(&self) {
        let len = self.bits.len();
        if let (Some(isa), Some(counts)) = (fast(), self.ready_counts())
            && self.bits.words().len() as u64 == len.div_ceil(64)
        {
            self.index.fast_rank.set(isa, len, counts);
        }
    }

    #[cold]
    #[inline(never)]
    fn build_counts(&self) -> Counts<'_> {
        let words = self.bits.words();
        let make = || SharedWords::new(build::<RANK>(words, self.bits.len(), self.ones).counts);
        let counts = self.index.counts.get_or_init(make);
        Counts::new(counts.as_ref(), words.len()).expect("a pass counts every word")
    }

    /// The inventory of the ones or the zeros, built if necessary.
    #[inline]
    pub(crate) fn inventory<const ONE: bool>(&self) -> &Inventory {
        let slot = if ONE { &self.index.ones } else { &self.index.zeros };
        match slot.get() {
            Some(inventory) => inventory,
            None => self.build_inventory::<ONE>(),
        }
    }

    #[cold]
    #[inline(never)]
    fn build_inventory<const ONE: bool>(&self) -> &Inventory {
        let (words, len) = (self.bits.words(), self.bits.len());
        let missing = "a pass builds the requested parts";
        if ONE {
            let make = || build::<ONES>(words, len, self.ones).ones.expect(missing);
            self.index.ones.get_or_init(make)
        } else {
            let make = || build::<ZEROS>(words, len, self.ones).zeros.expect(missing);
            self.index.zeros.get_or_init(make)
        }
    }

    /// Sets the inventory of the ones, if there is none yet.
    pub(crate) fn attach_ones(&self, inventory: Inventory) {
        // Another thread may have set the same inventory.
        let _ = self.index.ones.set(inventory);
    }

    /// The inventory, if it exists.
    #[inline(always)]
    fn ready_inventory<const ONE: bool>(&self) -> Option<&Inventory> {
        let slot = if ONE { &self.index.ones } else { &self.index.zeros };
        slot.get()
    }

    /// Select without an inventory: uses the file's support, or builds an inventory.
    #[cold]
    #[inline(never)]
    fn select_unprepared<const ONE: bool>(&self, rank: u64) -> Option<u64> {
        if let Some(slot) = &self.slots[if ONE { 1 } else { 2 }]
            && self.index.patience.load(Ordering::Relaxed) < PATIENCE
            && self.index.patience.fetch_add(1, Ordering::Relaxed) < PATIENCE
            && let Some(support) = SelectSupport::open(slot.as_ref())
            && let Some(position) = support.select::<ONE>(self.bits.words(), self.bits.len(), rank)
        {
            return Some(position);
        }
        self.inventory::<ONE>();
        self.select_kind::<ONE>(rank)
    }
}

impl<W: Words> BitVector<W> {
    fn build_parts(&self) {
        let missing = [self.index.ones.get().is_none(), self.index.zeros.get().is_none()];
        if missing != [true, true] {
            self.inventory::<true>();
            self.inventory::<false>();
            self.rank_support();
            return;
        }
        let (words, len) = (self.bits.words(), self.bits.len());
        let built = if self.pairs.is_some() || self.index.counts.get().is_some() {
            build::<{ ONES | ZEROS }>(words, len, self.ones)
        } else {
            build::<{ RANK | ONES | ZEROS }>(words, len, self.ones)
        };
        if self.pairs.is_none() {
            // Another thread may have set the same parts.
            let _ = self.index.counts.set(SharedWords::new(built.counts));
        }
        for (slot, inventory) in [(&self.index.ones, built.ones), (&self.index.zeros, built.zeros)] {
            if let Some(inventory) = inventory {
                let _ = slot.set(inventory);
            }
        }
    }
}

impl<W: Words> Indexed for BitVector<W> {
    fn build_index(&self) {
        self.build_parts();
        self.remember_counts();
    }

    fn write_index(&self, sink: &mut impl WordSink) -> io::Result<()> {
        self.build_index();
        // If the file has its own rank support, ours is not needed.
        let counts = if self.pairs.is_some() { None } else { self.index.counts.get() };
        let counts = counts.map_or(&[][..], AsRef::as_ref);
        sink.put(&[self.bits.len(), self.ones, counts.len() as u64])?;
        sink.put(counts)?;
        self.inventory::<true>().write(sink)?;
        self.inventory::<false>().write(sink)
    }

    fn attach_index(&self, cursor: &mut WordCursor<SharedWords>) -> Result<(), Error> {
        let at = cursor.position();
        for (offset, name, value) in [(0, "len", self.bits.len()), (1, "ones", self.ones)] {
            let found = cursor.element(name)?;
            if found != value {
                return Err(Error::malformed(at + offset, name, value, found));
            }
        }
        let counts = cursor.vector(1, "counts")?;
        let (found, needed) = (counts.as_ref().len(), rank::count_elements(self.bits.words().len()));
        if found != needed && (found != 0 || self.pairs.is_none()) {
            return Err(Error::malformed(at + 2, "counts", needed, found));
        }
        let ones = Inventory::read(cursor, self.ones).map_err(|error| error.within("ones"))?;
        let zeros = Inventory::read(cursor, self.bits.len().saturating_sub(self.ones))
            .map_err(|error| error.within("zeros"))?;
        if found == needed {
            let _ = self.index.counts.set(counts);
        }
        let _ = self.index.ones.set(ones);
        let _ = self.index.zeros.set(zeros);
        Ok(())
    }
}
