//! Select support in the layout of simple-sds: written exactly, and read if there is no inventory yet.
//!
//! Values (ones, or zeros) come in superblocks of 4096. A superblock that spans at least bit_len(n)^4 bits is
//! *long*: all its positions are listed as offsets from its first. Otherwise it is *short*: every 64th is.

use super::scan::find_from;
use crate::bits::{bit_len, scan_forward};
use crate::cpu::{Isa, dispatch};
use crate::cursor::WordCursor;
use crate::int_vector::IntVector;
use crate::layout::Structure;

const SUPERBLOCK: u64 = 4096;
const BLOCK: u64 = 64;

/// A select support over owned words or those of a file.
#[derive(Debug, Clone)]
pub(crate) struct SelectSupport<W> {
    pub(crate) samples: IntVector<W>,
    pub(crate) long: IntVector<W>,
    pub(crate) short: IntVector<W>,
}

impl SelectSupport<Vec<u64>> {
    /// The support for the bits of one kind among `len` bits.
    pub(crate) fn build<const ONE: bool>(words: &[u64], len: u64) -> Self {
        let every_64th = dispatch!(isa => positions_of_every_64th::<ONE, _>(isa, words, len));
        let long_span = u64::from(bit_len(len)).pow(4);
        let (mut samples, mut long, mut short) = (Vec::new(), Vec::new(), Vec::new());
        let per_superblock = (SUPERBLOCK / BLOCK) as usize;
        for (index, chunk) in every_64th.chunks(per_superblock).enumerate() {
            let start = chunk[0];
            let limit = every_64th.get((index + 1) * per_superblock).copied().unwrap_or(len);
            samples.push(start);
            if limit - start >= long_span {
                samples.push(2 * long.len() as u64);
                let mut at = start;
                while let Some(position) = scan_forward(words, at, ONE, usize::MAX).filter(|&p| p < limit) {
                    long.push(position - start);
                    at = position + 1;
                }
            } else {
                samples.push(2 * short.len() as u64 + 1);
                short.extend(chunk.iter().map(|position| position - start));
            }
        }
        let [samples, long, short] = [samples, long, short].map(|v| IntVector::from_values_packed(&v));
        SelectSupport { samples, long, short }
    }
}

fn positions_of_every_64th<const ONE: bool, I: Isa>(isa: I, words: &[u64], len: u64) -> Vec<u64> {
    let (mut positions, mut count, mut next) = (Vec::new(), 0, 0);
    for (index, &word) in words.iter().enumerate() {
        let at = 64 * index as u64;
        let valid = crate::bits::low_mask((len - at).min(64) as u32);
        let word = if ONE { word } else { !word } & valid;
        let in_word = isa.popcount(word);
        if next < count + in_word {
            positions.push(at + isa.select_in_word(word, next - count));
            next += BLOCK;
        }
        count += in_word;
    }
    positions
}

impl<'a> SelectSupport<&'a [u64]> {
    /// The support in `words`, if they have that structure: three integer vectors and nothing after them.
    pub(crate) fn open(words: &'a [u64]) -> Option<Self> {
        let mut cursor = WordCursor::new(words);
        let samples = IntVector::from_words(&mut cursor).ok()?;
        let long = IntVector::from_words(&mut cursor).ok()?;
        let short = IntVector::from_words(&mut cursor).ok()?;
        (cursor.left() == 0).then_some(SelectSupport { samples, long, short })
    }

    /// The position of the bit of rank `rank`, if the support leads to a bit of the kind.
    pub(crate) fn select<const ONE: bool>(&self, words: &[u64], len: u64, rank: u64) -> Option<u64> {
        let (superblock, within) = (rank / SUPERBLOCK, rank % SUPERBLOCK);
        let start = self.samples.get(2 * superblock)?;
        let pointer = self.samples.get(2 * superblock + 1)?;
        let position = if pointer & 1 == 0 {
            start.checked_add(self.long.get((pointer / 2).checked_add(within)?)?)?
        } else {
            let from = start.checked_add(self.short.get((pointer / 2).checked_add(within / BLOCK)?)?)?;
            dispatch!(isa => find_from::<ONE, _>(isa, words, from, within % BLOCK))?
        };
        let bit = words.get((position / 64) as usize)? >> (position % 64) & 1 == 1;
        (bit == ONE && position < len).then_some(position)
    }
}
