//! Builds a run-length encoded vector from runs.

use super::RunLengthVector;
use super::encode::{CodedBlock, Encoder, Joiner, sample_width};
use crate::error::Error;
use crate::int_vector::IntVector;
use crate::raw_vector::RawVector;

/// Takes runs in order; adjacent runs are merged.
///
/// ```
/// use pentaglot_succinct::{BitQueries, RunLengthBuilder};
/// let mut builder = RunLengthBuilder::new();
/// builder.push_run(0, 5).unwrap();
/// builder.extend_to(10).unwrap();
/// builder.push_run(10, 3).unwrap();
/// assert!(builder.push_run(12, 1).is_err(), "overlaps");
/// let bits = builder.finish(20).unwrap();
/// assert_eq!(bits.runs().collect::<Vec<_>>(), [(0, 5), (10, 3)]);
/// assert_eq!(bits.len(), 20);
/// ```
#[derive(Debug, Default)]
pub struct RunLengthBuilder {
    joiner: Joiner,
    encoder: Encoder,
    samples: Vec<u64>,
    words: Vec<u64>,
}

impl RunLengthBuilder {
    /// No bits.
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends a run of set bits that starts at `start`, at or after the current end; a run of length 0 only
    /// extends the vector to `start`.
    pub fn push_run(&mut self, start: u64, run: u64) -> Result<(), Error> {
        if let Some((start, run)) = self.joiner.push(start, run)?
            && let Some(block) = self.encoder.put(start, run)
        {
            self.put_block(&block);
        }
        Ok(())
    }

    fn put_block(&mut self, block: &CodedBlock) {
        self.samples.extend(block.sample);
        self.words.extend(block.words);
    }

    /// Appends unset bits until there are `len` bits.
    pub fn extend_to(&mut self, len: u64) -> Result<(), Error> {
        self.push_run(len, 0)
    }

    /// Appends a bit.
    pub fn push(&mut self, bit: bool) -> Result<(), Error> {
        let len = self.joiner.len;
        if bit { self.push_run(len, 1) } else { self.extend_to(len.saturating_add(1)) }
    }

    /// The vector of `len` bits, at least as many as were appended.
    pub fn finish(mut self, len: u64) -> Result<RunLengthVector, Error> {
        self.extend_to(len)?;
        if let Some((start, run)) = self.joiner.last()
            && let Some(block) = self.encoder.put(start, run)
        {
            self.put_block(&block);
        }
        let last = self.encoder.last();
        let mut units = self.words.len() as u64 * 16;
        if let Some(block) = last {
            units += block.units;
            self.put_block(&block);
        }
        self.words.truncate(units.div_ceil(16) as usize);
        let width = sample_width(last.map(|block| block.sample));
        let samples = IntVector::from_values(width, self.samples)?;
        let data = IntVector::try_from_parts(units, 4, RawVector::from_trimmed(units * 4, self.words))?;
        RunLengthVector::try_from_parts(len, self.encoder.ones, samples, data)
    }
}

impl RunLengthVector {
    /// `len` bits of which those in `runs` (start, length) are set; runs must be in order and not overlap.
    pub fn from_runs(len: u64, runs: impl IntoIterator<Item = (u64, u64)>) -> Result<Self, Error> {
        let mut builder = RunLengthBuilder::new();
        runs.into_iter().try_for_each(|(start, run)| builder.push_run(start, run))?;
        builder.finish(len)
    }

    /// `len` bits of which those at `positions` are set; positions must increase.
    pub fn from_sorted(len: u64, positions: impl IntoIterator<Item = u64>) -> Result<Self, Error> {
        Self::from_runs(len, positions.into_iter().map(|position| (position, 1)))
    }
}

impl FromIterator<bool> for RunLengthVector {
    fn from_iter<I: IntoIterator<Item = bool>>(bits: I) -> Self {
        let (mut builder, fits) = (RunLengthBuilder::new(), "fewer than 2^64 bits are in memory");
        bits.into_iter().for_each(|bit| builder.push(bit).expect(fits));
        let len = builder.joiner.len;
        builder.finish(len).expect(fits)
    }
}
