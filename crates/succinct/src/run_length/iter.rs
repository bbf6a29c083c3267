//! Iterates over runs, set bits and unset bits.

use super::decode::Block;
use super::{Key, RunLengthVector};
use crate::cpu::{Isa, dispatch};
use crate::queries::{BitQueries, Zeros};
use crate::storage::Words;

impl<W: Words> RunLengthVector<W> {
    /// Maximal runs of set bits as (start, length), in order.
    pub fn runs(&self) -> RunLengthRuns<'_, W> {
        self.runs_in(0, 0)
    }

    /// Maximal runs of set bits from `from` on; a run that holds `from` starts there.
    pub fn runs_from(&self, from: u64) -> RunLengthRuns<'_, W> {
        let block = if from >= self.len { self.blocks() } else { self.find_bits(from) };
        self.runs_in(block, from)
    }

    fn find_bits(&self, from: u64) -> u64 {
        // Uses only the samples, so that iteration does not build the directories.
        let (mut low, mut high) = (0, self.blocks());
        while low + 1 < high {
            let middle = low + (high - low) / 2;
            if self.sample(middle, Key::Bits) <= from { low = middle } else { high = middle }
        }
        low
    }

    fn runs_in(&self, block: u64, from: u64) -> RunLengthRuns<'_, W> {
        let current = if block < self.blocks() { Some(self.block(block)) } else { None };
        RunLengthRuns { vector: self, block, current, from }
    }

    /// Positions of set bits, in order.
    pub fn ones(&self) -> RunLengthOnes<'_, W> {
        self.ones_from(0)
    }

    /// Positions of set bits at or after `from`, in order.
    pub fn ones_from(&self, from: u64) -> RunLengthOnes<'_, W> {
        RunLengthOnes { runs: self.runs_from(from), next: 0, end: 0 }
    }

    /// Positions of unset bits, in order.
    pub fn zeros(&self) -> Zeros<RunLengthRuns<'_, W>> {
        self.zeros_from(0)
    }

    /// Positions of unset bits at or after `from`, in order.
    pub fn zeros_from(&self, from: u64) -> Zeros<RunLengthRuns<'_, W>> {
        Zeros::new(self.runs_from(from), from, self.len)
    }
}

/// Runs of set bits as (start, length), in order.
#[derive(Debug, Clone)]
pub struct RunLengthRuns<'a, W> {
    vector: &'a RunLengthVector<W>,
    block: u64,
    current: Option<Block<'a>>,
    from: u64,
}

impl<W: Words> RunLengthRuns<'_, W> {
    #[inline(always)]
    fn step<I: Isa>(&mut self, isa: I) -> Option<(u64, u64)> {
        loop {
            let current = self.current.as_mut()?;
            let Some(run) = current.next_run(isa) else {
                self.block += 1;
                let more = self.block < self.vector.blocks();
                self.current = more.then(|| self.vector.block(self.block));
                continue;
            };
            if current.tail > self.from {
                let start = run.start.max(self.from);
                return Some((start, current.tail.wrapping_sub(start)));
            }
        }
    }
}

impl<W: Words> Iterator for RunLengthRuns<'_, W> {
    type Item = (u64, u64);

    #[inline]
    fn next(&mut self) -> Option<(u64, u64)> {
        dispatch!(isa => self.step(isa))
    }

    fn fold<B, F: FnMut(B, (u64, u64)) -> B>(mut self, init: B, mut f: F) -> B {
        let mut state = init;
        dispatch!(isa => while let Some(run) = self.step(isa) {
            state = f(state, run);
        });
        state
    }
}

impl<W: Words> std::iter::FusedIterator for RunLengthRuns<'_, W> {}

/// Positions of set bits, in order.
#[derive(Debug, Clone)]
pub struct RunLengthOnes<'a, W> {
    runs: RunLengthRuns<'a, W>,
    next: u64,
    end: u64,
}

impl<W: Words> Iterator for RunLengthOnes<'_, W> {
    type Item = u64;

    #[inline]
    fn next(&mut self) -> Option<u64> {
        while self.next >= self.end {
            let (start, len) = self.runs.next()?;
            (self.next, self.end) = (start, start.wrapping_add(len));
        }
        self.next += 1;
        Some(self.next - 1)
    }
}

impl<W: Words> RunLengthVector<W> {
    /// All bits, from `from` on.
    pub fn bools_from(&self, from: u64) -> impl Iterator<Item = bool> + '_ {
        let mut runs = self.runs_from(from);
        let mut run = runs.next();
        (from.min(self.len())..self.len()).map(move |index| {
            while let Some((start, len)) = run {
                if index.wrapping_sub(start) < len {
                    return true;
                }
                if index < start {
                    return false;
                }
                run = runs.next();
            }
            false
        })
    }
}
