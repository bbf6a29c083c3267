//! The queries of a run-length encoded vector.

use std::sync::atomic::Ordering;

use super::{Key, PATIENCE, RunLengthVector};
use crate::cpu::{Isa, dispatch, prefetch};
use crate::queries::{BATCH, BitQueries};
use crate::storage::Words;

/// An entry of a directory mostly leaves this many blocks plus one to choose from.
const FEW: u64 = 4;

impl<W: Words> RunLengthVector<W> {
    /// The last block sampled with at most `value`; block 0 if there is none, which may not exist.
    #[inline(always)]
    fn find(&self, key: Key, value: u64) -> u64 {
        let (first, last) = match self.directories.get() {
            Some(directories) => self.directory_of(directories, key).range(value),
            None => self.range_without_directories(key, value),
        };
        // The block is one of a few: prefetch their data while the samples are compared.
        let words = self.data.bits().words();
        for line in 0..4 {
            prefetch(words, (first.wrapping_mul(4) as usize).wrapping_add(8 * line));
        }
        self.search(key, value, first, last)
    }

    #[inline(always)]
    fn directory_of<'d>(&self, directories: &'d super::Directories, key: Key) -> &'d super::Directory {
        match key {
            Key::Bits => &directories.bits,
            Key::Ones => &directories.ones,
            Key::Zeros => &directories.zeros,
        }
    }

    /// The last of the blocks from `first` to `last` sampled with at most `value`, or `first`.
    #[inline(always)]
    fn search(&self, key: Key, value: u64, first: u64, last: u64) -> u64 {
        // Samples are sorted, so those of few blocks are counted, which has no unpredictable branches.
        let few = last.wrapping_sub(first);
        if few <= FEW && last < self.blocks() {
            let fits =
                |step: u64| u64::from(step <= few) & u64::from(self.sample(first + step, key) <= value);
            return first + fits(1) + fits(2) + fits(3) + fits(4);
        }
        self.search_by_halves(key, value, first, last)
    }

    #[inline(never)]
    fn search_by_halves(&self, key: Key, value: u64, first: u64, last: u64) -> u64 {
        let mut low = first.min(self.blocks().saturating_sub(1));
        let mut high = last.saturating_add(1).min(self.blocks());
        while low + 1 < high {
            let middle = low + (high - low) / 2;
            if self.sample(middle, key) <= value { low = middle } else { high = middle }
        }
        low
    }

    #[cold]
    #[inline(never)]
    fn range_without_directories(&self, key: Key, value: u64) -> (u64, u64) {
        if self.patience.fetch_add(1, Ordering::Relaxed) < PATIENCE {
            return (0, u64::MAX);
        }
        self.directory_of(self.build_directories(), key).range(value)
    }

    #[inline(always)]
    fn rank_in<I: Isa>(&self, isa: I, block: u64, index: u64) -> (u64, bool) {
        let mut block = self.block(block);
        let mut before = block.ones;
        while let Some(run) = block.next_run(isa) {
            if index < block.tail {
                let inside = index >= run.start;
                return (if inside { before.wrapping_add(index - run.start) } else { before }, inside);
            }
            before = block.ones;
        }
        (before, false)
    }

    /// Bit `index`, the ones before it, and how many bits equal to it follow, including itself.
    pub(crate) fn run_at(&self, index: u64) -> (bool, u64, u64) {
        if index >= self.len {
            return (false, self.ones, 0);
        }
        let mut block = self.block(self.find(Key::Bits, index));
        let mut before = block.ones;
        dispatch!(isa => while let Some(run) = block.next_run(isa) {
            if index < run.start {
                return (false, before, run.start - index);
            }
            if index < block.tail {
                return (true, before.wrapping_add(index - run.start), block.tail - index);
            }
            before = block.ones;
        });
        (false, before, self.len - index)
    }

    #[inline(always)]
    fn select_in<I: Isa>(&self, isa: I, block: u64, rank: u64) -> Option<u64> {
        let mut block = self.block(block);
        let mut before = block.ones;
        while let Some(run) = block.next_run(isa) {
            if rank < block.ones {
                return Some(run.start.wrapping_add(rank.wrapping_sub(before)));
            }
            before = block.ones;
        }
        None
    }

    #[inline(always)]
    fn select0_in<I: Isa>(&self, isa: I, block: u64, rank: u64) -> Option<u64> {
        let mut block = self.block(block);
        let (mut tail, mut ones) = (block.tail, block.ones);
        while let Some(run) = block.next_run(isa) {
            if rank < run.start.wrapping_sub(ones) {
                break;
            }
            (tail, ones) = (block.tail, block.ones);
        }
        let within = rank.wrapping_sub(tail.wrapping_sub(ones));
        Some(tail.wrapping_add(within)).filter(|&position| position < self.len)
    }

    #[inline(always)]
    fn predecessor_in<I: Isa>(&self, isa: I, block: u64, index: u64) -> Option<u64> {
        let mut block = self.block(block);
        // The bit before a tail is set, that of the block before this one too.
        let mut last = if block.ones == 0 { None } else { block.tail.checked_sub(1) };
        while let Some(run) = block.next_run(isa) {
            if index < run.start {
                break;
            }
            if index < block.tail {
                return Some(index);
            }
            last = block.tail.checked_sub(1);
        }
        last
    }

    #[inline(always)]
    fn successor_in<I: Isa>(&self, isa: I, block: u64, index: u64) -> Option<u64> {
        let mut block = self.block(block);
        while let Some(run) = block.next_run(isa) {
            if index < block.tail {
                return Some(index.max(run.start));
            }
        }
        None
    }

    /// Finds the blocks of up to [`BATCH`] queries with prefetching, then answers each.
    fn by_block<T>(
        &self,
        key: Key,
        values: &[u64],
        answers: &mut [T],
        past_end: impl Fn() -> T,
        answer: impl Fn(u64, u64) -> T,
    ) {
        let answers = &mut answers[..values.len()];
        let limit = self.sample(u64::MAX, key);
        if values.len() >= BATCH {
            self.build_directories();
        }
        let mut blocks = [0; BATCH];
        let words = self.data.bits().words();
        for (values, answers) in values.chunks(BATCH).zip(answers.chunks_mut(BATCH)) {
            if let Some(directories) = self.directories.get() {
                let directory = self.directory_of(directories, key);
                values.iter().for_each(|&value| directory.prefetch(value));
                for &value in values {
                    self.samples.prefetch(directory.range(value).0.wrapping_mul(2));
                }
            }
            for (block, &value) in blocks.iter_mut().zip(values) {
                *block = self.find(key, value);
                prefetch(words, (*block * 4) as usize);
            }
            for ((place, &value), &block) in answers.iter_mut().zip(values).zip(&blocks) {
                *place = if value >= limit { past_end() } else { answer(block, value) };
            }
        }
    }

    fn last(&self) -> Option<u64> {
        self.select(self.ones.checked_sub(1)?)
    }
}

impl<W: Words> BitQueries for RunLengthVector<W> {
    #[inline]
    fn len(&self) -> u64 {
        self.len
    }

    #[inline]
    fn count_ones(&self) -> u64 {
        self.ones
    }

    fn get(&self, index: u64) -> Option<bool> {
        if index >= self.len {
            return None;
        }
        let block = self.find(Key::Bits, index);
        Some(dispatch!(isa => self.rank_in(isa, block, index)).1)
    }

    fn rank(&self, index: u64) -> u64 {
        if index >= self.len {
            return self.ones;
        }
        let block = self.find(Key::Bits, index);
        dispatch!(isa => self.rank_in(isa, block, index)).0
    }

    fn select(&self, rank: u64) -> Option<u64> {
        if rank >= self.ones {
            return None;
        }
        let block = self.find(Key::Ones, rank);
        dispatch!(isa => self.select_in(isa, block, rank))
    }

    fn select0(&self, rank: u64) -> Option<u64> {
        if rank >= self.count_zeros() {
            return None;
        }
        let block = self.find(Key::Zeros, rank);
        dispatch!(isa => self.select0_in(isa, block, rank))
    }

    fn inverse_select(&self, index: u64) -> Option<(u64, bool)> {
        if index >= self.len {
            return None;
        }
        let block = self.find(Key::Bits, index);
        let (rank, bit) = dispatch!(isa => self.rank_in(isa, block, index));
        Some((if bit { rank } else { index.wrapping_sub(rank) }, bit))
    }

    fn predecessor(&self, index: u64) -> Option<u64> {
        if index >= self.len {
            return self.last();
        }
        let block = self.find(Key::Bits, index);
        dispatch!(isa => self.predecessor_in(isa, block, index))
    }

    fn successor(&self, index: u64) -> Option<u64> {
        if index >= self.len {
            return None;
        }
        let block = self.find(Key::Bits, index);
        dispatch!(isa => self.successor_in(isa, block, index))
    }

    fn get_many(&self, indexes: &[u64], answers: &mut [Option<bool>]) {
        dispatch!(isa => self.by_block(Key::Bits, indexes, answers, || None, |block, index| {
            Some(self.rank_in(isa, block, index).1)
        }));
    }

    fn rank_many(&self, indexes: &[u64], answers: &mut [u64]) {
        dispatch!(isa => self.by_block(Key::Bits, indexes, answers, || self.ones, |block, index| {
            self.rank_in(isa, block, index).0
        }));
    }

    fn rank0_many(&self, indexes: &[u64], answers: &mut [Option<u64>]) {
        let all = Some(self.count_zeros());
        dispatch!(isa => self.by_block(Key::Bits, indexes, answers, || all, |block, index| {
            Some(index.wrapping_sub(self.rank_in(isa, block, index).0))
        }));
    }

    fn select_many(&self, ranks: &[u64], answers: &mut [Option<u64>]) {
        dispatch!(isa => self.by_block(Key::Ones, ranks, answers, || None, |block, rank| {
            self.select_in(isa, block, rank)
        }));
    }

    fn select0_many(&self, ranks: &[u64], answers: &mut [Option<u64>]) {
        dispatch!(isa => self.by_block(Key::Zeros, ranks, answers, || None, |block, rank| {
            self.select0_in(isa, block, rank)
        }));
    }

    fn inverse_select_many(&self, indexes: &[u64], answers: &mut [Option<(u64, bool)>]) {
        dispatch!(isa => self.by_block(Key::Bits, indexes, answers, || None, |block, index| {
            let (rank, bit) = self.rank_in(isa, block, index);
            Some((if bit { rank } else { index.wrapping_sub(rank) }, bit))
        }));
    }

    fn predecessor_many(&self, indexes: &[u64], answers: &mut [Option<u64>]) {
        dispatch!(isa => self.by_block(Key::Bits, indexes, answers, || self.last(), |block, index| {
            self.predecessor_in(isa, block, index)
        }));
    }

    fn successor_many(&self, indexes: &[u64], answers: &mut [Option<u64>]) {
        dispatch!(isa => self.by_block(Key::Bits, indexes, answers, || None, |block, index| {
            self.successor_in(isa, block, index)
        }));
    }
}
