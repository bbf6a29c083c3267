//! Counting words to the bit of a rank.

use crate::cpu::Isa;

/// The bit of the kind with `rank` others before it, counted from the start of word `index`.
///
/// The first chunk of words is nearly always enough.
#[inline(always)]
pub(crate) fn find<const ONE: bool, I: Isa>(isa: I, words: &[u64], index: usize, rank: u64) -> Option<u64> {
    if index.checked_add(I::CHUNK).is_none_or(|end| end > words.len()) {
        return find_slowly::<ONE, I>(isa, words, index, rank);
    }
    // SAFETY: a chunk from `index` on is there.
    match unsafe { isa.find_in_chunk::<ONE>(words.as_ptr().add(index), rank) } {
        Some(position) => Some(64 * index as u64 + position),
        None => find_slowly::<ONE, I>(isa, words, index, rank),
    }
}

/// The bit of the kind with `rank` others before it, counted from bit `from` on.
#[inline]
pub(crate) fn find_from<const ONE: bool, I: Isa>(isa: I, words: &[u64], from: u64, rank: u64) -> Option<u64> {
    let index = (from / 64) as usize;
    let before = isa.popcount(isa.low_bits(of_kind::<ONE>(*words.get(index)?), from));
    find::<ONE, I>(isa, words, index, rank.wrapping_add(before))
}

#[cold]
#[inline(never)]
fn find_slowly<const ONE: bool, I: Isa>(
    isa: I,
    words: &[u64],
    mut index: usize,
    mut rank: u64,
) -> Option<u64> {
    for &word in words.get(index..)? {
        let word = of_kind::<ONE>(word);
        let count = isa.popcount(word);
        if rank < count {
            return Some(index as u64 * 64 + isa.select_in_word(word, rank));
        }
        rank -= count;
        index += 1;
    }
    None
}

#[inline(always)]
fn of_kind<const ONE: bool>(word: u64) -> u64 {
    if ONE { word } else { !word }
}
