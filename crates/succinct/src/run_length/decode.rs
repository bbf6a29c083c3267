//! Decodes the runs of a block.

use crate::bits::{low_mask, read_int, read_window};
use crate::cpu::Isa;

/// Units of 4 bits per block.
pub(crate) const BLOCK_UNITS: u64 = 64;

/// The continuation flags of the 15 units that a window always has.
const FLAGS: u64 = 0x0888_8888_8888_8888;

/// Decodes a block, run by run.
#[derive(Debug, Clone)]
pub(crate) struct Block<'a> {
    words: &'a [u64],
    unit: u64,
    limit: u64,
    /// Ones before the next run.
    pub(crate) ones: u64,
    /// The bit after the last run.
    pub(crate) tail: u64,
    // The value of `ones` after the last run: the units that follow are padding.
    end_ones: u64,
}

/// A run of set bits.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Run {
    pub(crate) start: u64,
    pub(crate) len: u64,
}

impl<'a> Block<'a> {
    #[inline(always)]
    pub(crate) fn new(words: &'a [u64], unit: u64, limit: u64, ones: u64, tail: u64, end_ones: u64) -> Self {
        Block { words, unit, limit, ones, tail, end_ones }
    }

    /// The next run; updates `ones` and `tail`.
    ///
    /// An integer ends at the first unit without the flag; its value is the low three bits of its units, lowest
    /// first. One load has 15 units, which is mostly enough for both the gap and the length.
    #[inline(always)]
    pub(crate) fn next_run<I: Isa>(&mut self, isa: I) -> Option<Run> {
        if self.ones >= self.end_ones || self.unit >= self.limit {
            return None;
        }
        let window = self.window();
        if window & 0x88 == 0 {
            // Both take one unit. If the branch is predicted, the next unit is known without waiting for the
            // window.
            self.unit += 2;
            return Some(self.advance(window & 7, (window >> 4) & 7));
        }
        let gap_stops = !window & FLAGS;
        let gap_end = gap_stops & gap_stops.wrapping_neg();
        let run_stops = gap_stops ^ gap_end;
        let (gap, run) = if run_stops != 0 {
            // Bits up to and including the flag of the last unit of each integer.
            let gap_bits = gap_end | (gap_end - 1);
            let run_end = run_stops.trailing_zeros();
            let gap = isa.join_octal(window & gap_bits);
            let run = isa.join_octal((window & low_mask(run_end + 1)) >> (gap_stops.trailing_zeros() + 1));
            self.unit += u64::from(run_end) / 4 + 1;
            (gap, run)
        } else {
            let (gap, after_gap) = long_integer(self.words, self.unit, self.limit);
            let (run, after_run) = long_integer(self.words, after_gap, self.limit);
            self.unit = after_run;
            (gap, run)
        };
        Some(self.advance(gap, run))
    }

    /// A run of `run + 1` ones after `gap` zeros.
    #[inline(always)]
    fn advance(&mut self, gap: u64, run: u64) -> Run {
        let start = self.tail.wrapping_add(gap);
        let len = run.wrapping_add(1);
        self.tail = start.wrapping_add(len);
        self.ones = self.ones.wrapping_add(len);
        Run { start, len }
    }

    /// The next unit.
    pub(crate) fn unit(&self) -> u64 {
        self.unit
    }

    /// The units from `unit` on: 15 of them at least, 0 past the end.
    #[inline(always)]
    fn window(&self) -> u64 {
        let bit = self.unit * 4;
        if ((bit / 64) as usize) + 1 < self.words.len() {
            // SAFETY: there is another word after the one with the bit.
            return unsafe { read_window(self.words, bit) };
        }
        read_int(self.words, self.unit * 4, 64)
    }
}

/// One integer, unit by unit, and the unit after it; bits past 64 are lost, units past the block are 0.
///
/// It takes no reference to the decoder, so that loops keep the decoder in registers.
#[cold]
#[inline(never)]
fn long_integer(words: &[u64], mut unit: u64, limit: u64) -> (u64, u64) {
    let (mut value, mut shift) = (0_u64, 0_u32);
    while unit < limit {
        let bits = read_int(words, unit * 4, 4);
        unit += 1;
        value |= (bits & 7).checked_shl(shift).unwrap_or(0);
        shift += 3;
        if bits & 8 == 0 {
            break;
        }
    }
    (value, unit)
}
