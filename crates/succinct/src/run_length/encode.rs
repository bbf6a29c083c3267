//! Encodes runs, a block at a time.

use super::decode::BLOCK_UNITS;
use crate::bits::bit_len;
use crate::error::Error;

/// Words of a full block.
pub(crate) const BLOCK_WORDS: usize = BLOCK_UNITS as usize / 16;

/// Merges adjacent runs.
#[derive(Debug, Default)]
pub(crate) struct Joiner {
    // The run that may still grow, if its length is not 0.
    start: u64,
    run: u64,
    /// Bits so far, including unset ones at the end.
    pub(crate) len: u64,
}

impl Joiner {
    /// Adds a run at or after the current end, or only unset bits before `start` if its length is 0; returns the
    /// previous run, if it is complete.
    pub(crate) fn push(&mut self, start: u64, run: u64) -> Result<Option<(u64, u64)>, Error> {
        let end = start.checked_add(run);
        let (true, Some(end)) = (start >= self.len, end) else {
            let expected = format!("a run at or after {} that ends by {}", self.len, u64::MAX);
            return Err(Error::malformed(0, "runs", expected, format!("{start} + {run}")));
        };
        self.len = end;
        if run == 0 {
            return Ok(None);
        }
        if self.run > 0 && start == self.start + self.run {
            self.run += run;
            return Ok(None);
        }
        let complete = self.last();
        (self.start, self.run) = (start, run);
        Ok(complete)
    }

    /// The run that is still open.
    pub(crate) fn last(&self) -> Option<(u64, u64)> {
        (self.run > 0).then_some((self.start, self.run))
    }
}

/// A block: its sample and its units.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct CodedBlock {
    /// Ones and bits before it.
    pub(crate) sample: [u64; 2],
    pub(crate) words: [u64; BLOCK_WORDS],
    pub(crate) units: u64,
}

/// Encodes maximal runs.
#[derive(Debug, Default)]
pub(crate) struct Encoder {
    block: CodedBlock,
    /// Ones so far.
    pub(crate) ones: u64,
    tail: u64,
}

impl Encoder {
    /// Encodes a run; returns the previous block, if the run did not fit in it.
    pub(crate) fn put(&mut self, start: u64, run: u64) -> Option<CodedBlock> {
        let numbers = [start - self.tail, run - 1];
        let needed: u64 = numbers.iter().map(|&number| u64::from(bit_len(number).div_ceil(3))).sum();
        let mut complete = None;
        if self.block.units == 0 || self.block.units + needed > BLOCK_UNITS {
            complete = self.last();
            // The rest of the old block is padding: units of 0.
            self.block = CodedBlock { sample: [self.ones, self.tail], ..CodedBlock::default() };
        }
        for mut number in numbers {
            while number > 7 {
                self.put_unit(number & 7 | 8);
                number >>= 3;
            }
            self.put_unit(number);
        }
        self.ones += run;
        self.tail = start + run;
        complete
    }

    fn put_unit(&mut self, unit: u64) {
        self.block.words[self.block.units as usize / 16] |= unit << (4 * (self.block.units % 16));
        self.block.units += 1;
    }

    /// The block that is still open.
    pub(crate) fn last(&self) -> Option<CodedBlock> {
        (self.block.units > 0).then_some(self.block)
    }
}

/// The width of samples of which the last is `last`: simple-sds takes that of the bits before the last block, and 1
/// without blocks.
pub(crate) fn sample_width(last: Option<[u64; 2]>) -> u32 {
    last.map_or(1, |[_, bits]| bit_len(bits))
}
