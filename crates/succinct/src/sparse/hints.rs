//! Where values are in the high part: the position of every 32nd or 64th set bit.

use std::hint::select_unpredictable;
use std::io;

use crate::bits::bit_len;
use crate::cpu::{Bmi2, Isa, prefetch};
use crate::cursor::WordCursor;
use crate::error::Error;
use crate::layout::WordSink;
use crate::storage::SharedWords;

/// The position of every 2^`log`-th set bit.
///
/// Between a third and half of the bits of a high part are set, so a stride spans about [`SPAN`] bits and the bit asked
/// for is in the three words from the stride's start on: no loop, no branch that is hard to predict. Where it is not
/// (values in clusters), the answer is none and the bit vector's own select is asked.
///
/// Space: 16 bits per stride and 64 per [`GROUP`] of strides; about half a bit per value. Cache misses: 2, of which
/// the second depends on the first.
#[derive(Debug, Clone)]
pub(super) struct Hints {
    log: u32,
    // Where the first stride of each group starts, or `FAR` if some stride of it starts too far from there.
    groups: SharedWords,
    // Where a stride starts, from the start of its group on; four to a word.
    offsets: SharedWords,
}

/// Aimed-at bits per stride.
const SPAN: u64 = 128;
/// The longest stride, as a logarithm.
const LOG_LIMIT: u32 = 6;
/// Strides per group.
const GROUP: u64 = 16;
/// Past the end of everything, also with an offset added.
const FAR: u64 = u64::MAX / 2;

impl Hints {
    /// For `count` set bits among `len`.
    pub(super) fn build<I: Isa>(isa: I, words: &[u64], len: u64, count: u64) -> Self {
        let per_span = (u128::from(count) * u128::from(SPAN) / u128::from(len.max(1))) as u64;
        let log = (bit_len(per_span) - 1).min(LOG_LIMIT);
        let (mut groups, mut offsets) = (Vec::new(), Vec::new());
        let (mut strides, mut next, mut seen, mut start) = (0_u64, 0_u64, 0_u64, 0_u64);
        for (index, &word) in words.iter().take(len.div_ceil(64) as usize).enumerate() {
            let at = index as u64 * 64;
            let valid = u64::MAX >> (at + 64).saturating_sub(len);
            let word = word & valid;
            let here = isa.popcount(word);
            while next < seen + here {
                let position = at + isa.select_in_word(word, next - seen);
                if strides.is_multiple_of(GROUP) {
                    start = position;
                    groups.push(position);
                }
                let offset = position - start;
                if let (true, Some(group)) = (offset > 0xFFFF, groups.last_mut()) {
                    *group = FAR;
                }
                match offsets.last_mut() {
                    Some(word) if strides % 4 != 0 => *word |= (offset & 0xFFFF) << (16 * (strides % 4)),
                    _ => offsets.push(offset & 0xFFFF),
                }
                strides += 1;
                next += 1 << log;
            }
            seen += here;
        }
        // A damaged file may have fewer bits than it should, or more.
        groups.resize(count.div_ceil(GROUP << log) as usize, FAR);
        offsets.resize(count.div_ceil(4 << log) as usize, 0);
        Hints { log, groups: SharedWords::new(groups), offsets: SharedWords::new(offsets) }
    }

    /// Where the stride of `rank` starts; past the end of the bits if that is not known.
    #[inline(always)]
    fn start(&self, isa: Bmi2, rank: u64) -> Option<u64> {
        let stride = isa.shift_right(rank, u64::from(self.log));
        let group = *self.groups.as_ref().get((stride / GROUP) as usize)?;
        let offsets = *self.offsets.as_ref().get((stride / 4) as usize)?;
        Some(group.wrapping_add(isa.shift_right(offsets, 16 * stride) & 0xFFFF))
    }

    /// The position of the bit of rank `rank`, if it is where it should be.
    ///
    /// In words: count the bits of the first word, and of the first two; the rank says in which of the three the bit
    /// is. Words here start at any byte.
    #[inline(always)]
    pub(super) fn select(&self, isa: Bmi2, words: &[u64], rank: u64) -> Option<u64> {
        let start = self.start(isa, rank)?;
        if (start / 64) as usize + 3 >= words.len() {
            return None;
        }
        // SAFETY: three words follow the one with the bit.
        let [a, b, c] = unsafe { read_words(isa, words, start) };
        let a = a & (u64::MAX << (start % 8));
        let rank = isa.low_bits(rank, u64::from(self.log));
        let in_a = isa.popcount(a);
        let in_ab = in_a + isa.popcount(b);
        let (after_a, after_b) = (rank >= in_a, rank >= in_ab);
        let word = select_unpredictable(after_b, c, select_unpredictable(after_a, b, a));
        let before = select_unpredictable(after_b, in_ab, select_unpredictable(after_a, in_a, 0));
        let bit = isa.deposit(1_u64.wrapping_shl((rank - before) as u32), word);
        let place = (u64::from(after_a) + u64::from(after_b)) * 64 + u64::from(bit.trailing_zeros());
        (bit != 0).then_some(start / 8 * 8 + place)
    }

    /// Asks for the hint of `rank`.
    #[inline(always)]
    pub(super) fn prefetch(&self, rank: u64) {
        let stride = rank >> self.log;
        prefetch(self.groups.as_ref(), (stride / GROUP) as usize);
        prefetch(self.offsets.as_ref(), (stride / 4) as usize);
    }

    /// Asks for the words that `select` will read.
    #[inline(always)]
    pub(super) fn prefetch_words(&self, isa: Bmi2, words: &[u64], rank: u64) {
        if let Some(start) = self.start(isa, rank) {
            prefetch(words, (start / 64) as usize);
            prefetch(words, (start / 64) as usize + 3);
        }
    }

    pub(super) fn write(&self, sink: &mut impl WordSink) -> io::Result<()> {
        sink.put(&[u64::from(self.log)])?;
        for words in [self.groups.as_ref(), self.offsets.as_ref()] {
            sink.put(&[words.len() as u64])?;
            sink.put(words)?;
        }
        Ok(())
    }

    /// Hints for `count` set bits.
    pub(super) fn read(cursor: &mut WordCursor<SharedWords>, count: u64) -> Result<Self, Error> {
        let at = cursor.position();
        let log = cursor.element("log")?;
        if log > u64::from(LOG_LIMIT) {
            return Err(Error::malformed(at, "log", format!("0 to {LOG_LIMIT}"), log));
        }
        let strides = count.div_ceil(1 << log);
        let mut vector = |name, needed: u64| {
            let at = cursor.position();
            let words = cursor.vector(1, name)?;
            match words.as_ref().len() as u64 {
                found if found == needed => Ok(words),
                found => Err(Error::malformed(at, name, needed, found)),
            }
        };
        let groups = vector("groups", strides.div_ceil(GROUP))?;
        let offsets = vector("offsets", strides.div_ceil(4))?;
        Ok(Hints { log: log as u32, groups, offsets })
    }
}

/// Three words from the byte of `bit` on.
///
/// # Safety
///
/// There must be three words after the one that holds the bit.
#[inline(always)]
unsafe fn read_words(_: Bmi2, words: &[u64], bit: u64) -> [u64; 3] {
    // SAFETY: the caller leaves at least 24 bytes from the bit's byte on, within one slice.
    // SAFETY: any eight bytes are a `u64`; the loads are unaligned; the processor, an x86-64, is little-endian.
    unsafe {
        let start = words.as_ptr().cast::<u8>().add((bit / 8) as usize).cast::<u64>();
        [0, 1, 2].map(|index| start.add(index).read_unaligned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::{dispatch, fast};

    fn agrees_with_the_plain_loop(words: &[u64], len: u64) -> usize {
        let all: Vec<u64> = (0..len).filter(|&i| words[(i / 64) as usize] >> (i % 64) & 1 == 1).collect();
        let hints = dispatch!(isa => Hints::build(isa, words, len, all.len() as u64));
        let Some(isa) = fast() else { return all.len() };
        let answered = all.iter().enumerate().filter(|&(rank, &position)| {
            let found = hints.select(isa, words, rank as u64);
            assert!(found.is_none_or(|found| found == position), "{rank}: {found:?}, not {position}");
            found.is_some()
        });
        let answered = answered.count();
        for rank in [all.len() as u64 + 5000, u64::MAX / 2, u64::MAX] {
            assert_eq!(hints.select(isa, words, rank), None);
        }
        answered
    }

    #[test]
    fn hints_find_the_bits_or_say_nothing() {
        let _ = crate::cpu::level();
        let mut state = 5_u64;
        let mut random = || {
            state = state.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(0x1405_7B7E_F767_814F);
            state ^ (state >> 29)
        };
        let even: Vec<u64> = (0..600).map(|_| random()).collect();
        let len = 600 * 64 - 7;
        assert!(agrees_with_the_plain_loop(&even, len) > 18_500);
        let clustered: Vec<u64> = (0..6000).map(|i| if i % 2000 < 50 { random() } else { 0 }).collect();
        for len in [6000 * 64, 5999 * 64 - 63] {
            agrees_with_the_plain_loop(&clustered, len);
        }
        for len in 0..300 {
            agrees_with_the_plain_loop(&even[..5], len);
        }
    }
}
