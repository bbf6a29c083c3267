//! Encoding runs.

use super::RunLengthVector;
use super::decode::BLOCK_UNITS;
use crate::bits::bit_len;
use crate::error::Error;
use crate::int_vector::IntVector;

/// Takes runs in order; runs that touch become one.
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
    // The run that may still grow, if its length is not 0.
    start: u64,
    run: u64,
    // Bits so far, unset ones at the end included.
    len: u64,
    encoder: Encoder,
}

/// Writes finished runs.
#[derive(Debug)]
struct Encoder {
    samples: Vec<u64>,
    data: IntVector,
    ones: u64,
    tail: u64,
}

impl Default for Encoder {
    fn default() -> Self {
        let data = IntVector::new(4).expect("4 is a width");
        Encoder { samples: Vec::new(), data, ones: 0, tail: 0 }
    }
}

impl Encoder {
    fn put(&mut self, start: u64, run: u64) {
        let numbers = [start - self.tail, run - 1];
        let needed: u64 = numbers.iter().map(|&number| u64::from(bit_len(number).div_ceil(3))).sum();
        let room = self.samples.len() as u64 / 2 * BLOCK_UNITS;
        if self.data.len() + needed > room {
            // The rest of a block that is left is padded.
            self.data.extend(std::iter::repeat_n(0, (room - self.data.len()) as usize));
            self.samples.extend([self.ones, self.tail]);
        }
        for mut number in numbers {
            while number > 7 {
                self.data.push(number & 7 | 8);
                number >>= 3;
            }
            self.data.push(number);
        }
        self.ones += run;
        self.tail = start + run;
    }
}

impl RunLengthBuilder {
    /// No bits.
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends a run of set bits that starts at `start`, at or after the end of what there is; a run of length 0
    /// only extends the vector to `start`.
    pub fn push_run(&mut self, start: u64, run: u64) -> Result<(), Error> {
        let end = start.checked_add(run);
        let (true, Some(end)) = (start >= self.len, end) else {
            let expected = format!("a run at or after {} that ends by {}", self.len, u64::MAX);
            return Err(Error::malformed(0, "runs", expected, format!("{start} + {run}")));
        };
        if run > 0 {
            if self.run > 0 && start == self.start + self.run {
                self.run += run;
            } else {
                self.flush();
                (self.start, self.run) = (start, run);
            }
        }
        self.len = end;
        Ok(())
    }

    /// Appends unset bits until there are `len` bits.
    pub fn extend_to(&mut self, len: u64) -> Result<(), Error> {
        self.push_run(len, 0)
    }

    /// Appends a bit.
    pub fn push(&mut self, bit: bool) -> Result<(), Error> {
        if bit { self.push_run(self.len, 1) } else { self.extend_to(self.len.saturating_add(1)) }
    }

    fn flush(&mut self) {
        if self.run > 0 {
            self.encoder.put(self.start, self.run);
        }
        self.run = 0;
    }

    /// The vector of `len` bits, which must not be fewer than there are.
    pub fn finish(mut self, len: u64) -> Result<RunLengthVector, Error> {
        self.extend_to(len)?;
        self.flush();
        let Encoder { samples, data, ones, .. } = self.encoder;
        // Spec, "minimal width": simple-sds takes that of the bits before the last block, and 1 without blocks.
        let width = samples.last().map_or(1, |&bits| bit_len(bits));
        RunLengthVector::try_from_parts(len, ones, IntVector::from_values(width, samples)?, data)
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
        let len = builder.len;
        builder.finish(len).expect(fits)
    }
}
