//! The queries of a plain bit vector.

use super::fast_rank::{FastBits, PART, RankIsa, rank_between};
use super::rank::{BLOCK, RankSupport, rank_in_pairs};
use super::scan::{last_one, next_one};
use super::{BitVector, Inventory, Positions, Runs};
use crate::bits::{scan_backward, scan_forward};
use crate::cpu::{Isa, Wide, dispatch, fast, prefetch, wide};
use crate::queries::{BATCH, BitQueries};
use crate::storage::Words;

/// Vectors of fewer bits are assumed to be in a cache.
const CACHED: u64 = 1 << 24;
/// Predecessor and successor examine this many words before they use rank and select.
const NEARBY: usize = 8;

impl<W: Words> BitVector<W> {
    #[inline(always)]
    pub(super) fn select_kind<const ONE: bool>(&self, rank: u64) -> Option<u64> {
        if let Some(inventory) = self.ready_inventory::<ONE>() {
            let (words, support) = (self.bits.words(), || self.rank_support());
            if let Some(isa) = inventory.wide(rank) {
                // SAFETY: `wide` has compared the rank with the count.
                return unsafe { inventory.select_unchecked::<ONE, _>(isa, words, support, rank) };
            }
            if let Some(isa) = inventory.fast(rank) {
                // SAFETY: `fast` has compared the rank with the count.
                return unsafe { inventory.select_unchecked::<ONE, _>(isa, words, support, rank) };
            }
        }
        self.select_slowly::<ONE>(rank)
    }

    #[inline(never)]
    fn select_slowly<const ONE: bool>(&self, rank: u64) -> Option<u64> {
        match self.ready_inventory::<ONE>() {
            Some(inventory) => {
                let words = self.bits.words();
                dispatch!(isa => inventory.select::<ONE, _>(isa, words, || self.rank_support(), rank))
            }
            None if rank < if ONE { self.ones } else { self.count_zeros() } => {
                self.select_unprepared::<ONE>(rank)
            }
            None => None,
        }
    }

    /// Whether set bits are so few that the inventory lists them all: then rank and select are faster than a search
    /// word by word.
    #[inline(always)]
    fn is_listed(&self) -> bool {
        self.ones <= self.bits.len() / 64
            && (self.pairs.is_some() || self.index.fast_rank.is_set())
            && self.ready_inventory::<true>().is_some()
    }

    /// The processor, if it examines eight words at once, these nearly always have a set bit, and the words are not
    /// cached: then a search has one cache miss, rank and select have two or three.
    #[inline(always)]
    fn nearby(&self) -> Option<Wide> {
        let len = self.bits.len();
        if len > CACHED && self.ones >= len / 128 { wide() } else { None }
    }

    /// The slow path of rank: past the end, in a file's own rank support, on the first query, and on other
    /// processors.
    #[inline(never)]
    fn rank_slowly(&self, index: u64) -> u64 {
        if index >= self.bits.len() {
            return self.ones;
        }
        let words = self.bits.words();
        if let (Some(isa), Some(pairs)) = (fast(), &self.pairs) {
            // SAFETY: `index` is below the length; only as many pairs as there are blocks are taken for the rank support.
            return unsafe { rank_in_pairs(isa, pairs.as_ref().as_ptr(), words.as_ptr(), index) };
        }
        let support = self.rank_support();
        self.remember_counts();
        dispatch!(isa => support.rank(isa, words, index))
    }

    /// [`BitQueries::get`] for an index that is known to be in range.
    ///
    /// # Safety
    ///
    /// `index` must be below the number of bits.
    #[inline]
    pub unsafe fn get_unchecked(&self, index: u64) -> bool {
        // SAFETY: as the caller promises.
        unsafe { self.bits.get_unchecked(index) }
    }

    /// Bit `index` and the ones before it; (false, all ones) past the end.
    #[inline]
    pub(crate) fn bit_and_rank_at(&self, index: u64) -> (bool, u64) {
        (self.bits.get(index).unwrap_or(false), self.rank(index))
    }

    /// Bit `index` and the ones before it; `index` must be below the length.
    #[inline(always)]
    pub(crate) fn bit_and_rank<I: Isa>(&self, isa: I, support: RankSupport<'_>, index: u64) -> (bool, u64) {
        let words = self.bits.words();
        let bit = words.get((index / 64) as usize).map_or(0, |word| word >> (index % 64)) & 1 == 1;
        (bit, support.rank(isa, words, index))
    }

    /// Prefetches the lines that `rank(index)` will read.
    #[inline(always)]
    pub(crate) fn prefetch_rank(&self, support: RankSupport<'_>, index: u64) {
        support.prefetch((index / 64) as usize);
        prefetch(self.bits.words(), (index / 64) as usize);
    }

    /// An estimate of the number of ones before `index`, from counts that are few enough to stay cached; 0 if nothing
    /// is known.
    #[inline(always)]
    pub(crate) fn rank_roughly(&self, index: u64) -> u64 {
        if let Some(rank) = self.index.fast_rank.rank_roughly(index, self.ones) {
            return rank;
        }
        let Some(pairs) = &self.pairs else { return 0 };
        if index >= self.bits.len() {
            return self.ones;
        }
        let before = |part: u64| pairs.as_ref().get((2 * part * (PART / BLOCK)) as usize).copied();
        rank_between(index, self.bits.len(), self.ones, |part| before(part).unwrap_or(0))
    }

    /// Prefetches the lines that `rank(index)` will read.
    #[inline(always)]
    pub(crate) fn prefetch_index(&self, index: u64) {
        prefetch(self.bits.words(), (index / 64) as usize);
        match &self.pairs {
            None => self.index.fast_rank.prefetch_counts(index),
            Some(pairs) => prefetch(pairs.as_ref(), (index / BLOCK * 2) as usize),
        }
    }

    /// An estimate of the position of the bit of rank `rank`, 0 if nothing is known; prefetches the lines that
    /// select will read.
    #[inline(always)]
    pub(crate) fn select_roughly<const ONE: bool>(&self, rank: u64) -> u64 {
        let words = self.bits.words();
        self.ready_inventory::<ONE>().map_or(0, |inventory| inventory.select_roughly(words, rank))
    }

    fn rank_batches(&self, isa: impl RankIsa, bits: FastBits<'_>, indexes: &[u64], answers: &mut [u64]) {
        let len = self.bits.len();
        for (indexes, answers) in indexes.chunks(BATCH).zip(answers.chunks_mut(BATCH)) {
            if len > CACHED {
                indexes.iter().for_each(|&index| bits.prefetch(index.min(len)));
            }
            for (answer, &index) in answers.iter_mut().zip(indexes) {
                *answer = bits.rank_below(isa, index).unwrap_or(self.ones);
            }
        }
    }

    fn select_kind_many<const ONE: bool>(&self, ranks: &[u64], answers: &mut [Option<u64>]) {
        let answers = &mut answers[..ranks.len()];
        let inventory = match self.ready_inventory::<ONE>() {
            Some(inventory) => inventory,
            None if ranks.len() < BATCH => {
                for (answer, &rank) in answers.iter_mut().zip(ranks) {
                    *answer = self.select_kind::<ONE>(rank);
                }
                return;
            }
            None => self.inventory::<ONE>(),
        };
        match wide() {
            Some(isa) => self.select_batches::<ONE, _>(isa, inventory, ranks, answers),
            None => dispatch!(isa => self.select_batches::<ONE, _>(isa, inventory, ranks, answers)),
        }
    }

    fn select_batches<const ONE: bool, I: Isa>(
        &self,
        isa: I,
        inventory: &Inventory,
        ranks: &[u64],
        answers: &mut [Option<u64>],
    ) {
        let words = self.bits.words();
        for (ranks, answers) in ranks.chunks(BATCH).zip(answers.chunks_mut(BATCH)) {
            ranks.iter().for_each(|&rank| inventory.prefetch_sample(rank));
            ranks.iter().for_each(|&rank| inventory.prefetch_words(words, rank, I::CHUNK));
            for (answer, &rank) in answers.iter_mut().zip(ranks) {
                *answer = inventory.select::<ONE, _>(isa, words, || self.rank_support(), rank);
            }
        }
    }

    fn prefetched<T>(&self, indexes: &[u64], answers: &mut [T], answer: impl Fn(u64) -> T) {
        let (answers, words) = (&mut answers[..indexes.len()], self.bits.words());
        for (indexes, answers) in indexes.chunks(BATCH).zip(answers.chunks_mut(BATCH)) {
            indexes.iter().for_each(|&index| prefetch(words, (index / 64) as usize));
            for (place, &index) in answers.iter_mut().zip(indexes) {
                *place = answer(index);
            }
        }
    }

    /// Positions of set bits, in order.
    pub fn ones(&self) -> Positions<'_> {
        self.ones_from(0)
    }

    /// Positions of set bits at or after `from`, in order.
    pub fn ones_from(&self, from: u64) -> Positions<'_> {
        Positions::new(self.bits.words(), self.bits.len(), true, from)
    }

    /// Positions of unset bits, in order.
    pub fn zeros(&self) -> Positions<'_> {
        self.zeros_from(0)
    }

    /// Positions of unset bits at or after `from`, in order.
    pub fn zeros_from(&self, from: u64) -> Positions<'_> {
        Positions::new(self.bits.words(), self.bits.len(), false, from)
    }

    /// Maximal runs of set bits as (start, length), in order, from `from` on; a run that holds `from` starts there.
    pub fn runs_from(&self, from: u64) -> Runs<'_> {
        Runs::new(self.bits.words(), self.bits.len(), from)
    }
}

impl<W: Words> BitQueries for BitVector<W> {
    #[inline]
    fn len(&self) -> u64 {
        self.bits.len()
    }

    #[inline]
    fn count_ones(&self) -> u64 {
        self.ones
    }

    #[inline]
    fn get(&self, index: u64) -> Option<bool> {
        self.bits.get(index)
    }

    #[inline]
    fn rank(&self, index: u64) -> u64 {
        // SAFETY: the counts are of as many bits as there are words for.
        match unsafe { self.index.fast_rank.rank(self.bits.words().as_ptr(), index) } {
            Some(rank) => rank,
            None => self.rank_slowly(index),
        }
    }

    #[inline]
    fn select(&self, rank: u64) -> Option<u64> {
        self.select_kind::<true>(rank)
    }

    #[inline]
    fn select0(&self, rank: u64) -> Option<u64> {
        self.select_kind::<false>(rank)
    }

    #[inline]
    fn inverse_select(&self, index: u64) -> Option<(u64, bool)> {
        if index >= self.bits.len() {
            return None;
        }
        let (bit, rank) = self.bit_and_rank_at(index);
        Some((if bit { rank } else { index.wrapping_sub(rank) }, bit))
    }

    #[inline]
    fn predecessor(&self, index: u64) -> Option<u64> {
        let index = index.min(self.bits.len().checked_sub(1)?);
        if self.is_listed() {
            let nearby = self.nearby().and_then(|isa| last_one(isa, self.bits.words(), index));
            return nearby.or_else(|| self.select(self.rank(index + 1).checked_sub(1)?));
        }
        let nearby = scan_backward(self.bits.words(), index, true, NEARBY);
        nearby.or_else(|| self.select(self.rank(index + 1).checked_sub(1)?))
    }

    #[inline]
    fn successor(&self, index: u64) -> Option<u64> {
        if index >= self.bits.len() {
            return None;
        }
        if self.is_listed() {
            let nearby = self.nearby().and_then(|isa| next_one(isa, self.bits.words(), index));
            return nearby
                .filter(|&position| position < self.bits.len())
                .or_else(|| self.select(self.rank(index)));
        }
        match scan_forward(self.bits.words(), index, true, NEARBY) {
            // A damaged file may have set bits past the end.
            Some(position) => (position < self.bits.len()).then_some(position),
            None => self.select(self.rank(index)),
        }
    }

    fn get_many(&self, indexes: &[u64], answers: &mut [Option<bool>]) {
        self.prefetched(indexes, answers, |index| self.get(index));
    }

    fn rank_many(&self, indexes: &[u64], answers: &mut [u64]) {
        let answers = &mut answers[..indexes.len()];
        if let Some(bits) = self.fast_bits() {
            return match wide() {
                Some(isa) => self.rank_batches(isa, bits, indexes, answers),
                None => self.rank_batches(bits.isa(), bits, indexes, answers),
            };
        }
        let (support, words, len) = (self.rank_support(), self.bits.words(), self.bits.len());
        dispatch!(isa => for (indexes, answers) in indexes.chunks(BATCH).zip(answers.chunks_mut(BATCH)) {
            indexes.iter().for_each(|&index| self.prefetch_rank(support, index));
            for (answer, &index) in answers.iter_mut().zip(indexes) {
                *answer = if index >= len { self.ones } else { support.rank(isa, words, index) };
            }
        });
    }

    fn rank0_many(&self, indexes: &[u64], answers: &mut [Option<u64>]) {
        let mut ranks = [0; BATCH];
        let answers = &mut answers[..indexes.len()];
        for (indexes, answers) in indexes.chunks(BATCH).zip(answers.chunks_mut(BATCH)) {
            self.rank_many(indexes, &mut ranks);
            for ((answer, &index), rank) in answers.iter_mut().zip(indexes).zip(ranks) {
                *answer = Some(index.min(self.bits.len()).wrapping_sub(rank));
            }
        }
    }

    fn select_many(&self, ranks: &[u64], answers: &mut [Option<u64>]) {
        self.select_kind_many::<true>(ranks, answers);
    }

    fn select0_many(&self, ranks: &[u64], answers: &mut [Option<u64>]) {
        self.select_kind_many::<false>(ranks, answers);
    }

    fn inverse_select_many(&self, indexes: &[u64], answers: &mut [Option<(u64, bool)>]) {
        let (answers, support) = (&mut answers[..indexes.len()], self.rank_support());
        for (indexes, answers) in indexes.chunks(BATCH).zip(answers.chunks_mut(BATCH)) {
            indexes.iter().for_each(|&index| self.prefetch_rank(support, index));
            for (answer, &index) in answers.iter_mut().zip(indexes) {
                *answer = self.inverse_select(index);
            }
        }
    }

    fn predecessor_many(&self, indexes: &[u64], answers: &mut [Option<u64>]) {
        self.prefetched(indexes, answers, |index| self.predecessor(index));
    }

    fn successor_many(&self, indexes: &[u64], answers: &mut [Option<u64>]) {
        self.prefetched(indexes, answers, |index| self.successor(index));
    }
}
