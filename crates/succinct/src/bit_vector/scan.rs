//! Finds the bit of a rank by counting the bits of words.

use std::hint::select_unpredictable;

use crate::cpu::{Isa, Wide};

/// The bit of the kind with `rank` others before it, counted from the start of word `index`.
///
/// The first chunk of words is nearly always enough.
#[inline(always)]
pub(crate) fn find<const ONE: bool, I: Isa>(isa: I, words: &[u64], index: usize, rank: u64) -> Option<u64> {
    if index.checked_add(I::CHUNK).is_none_or(|end| end > words.len()) {
        return find_slowly::<ONE, I>(isa, words, index, rank);
    }
    // SAFETY: there is a complete chunk from `index` on.
    match unsafe { isa.find_in_chunk::<ONE>(words.as_ptr().add(index), rank) } {
        Some(position) => Some(64 * index as u64 + position),
        None => find_slowly::<ONE, I>(isa, words, index, rank),
    }
}

/// The first set bit at or after `index`, if it is in the word of `index` or the seven that follow; without a branch on
/// which of them it is in.
#[inline(always)]
pub(crate) fn next_one(isa: Wide, words: &[u64], index: u64) -> Option<u64> {
    let first = (index / 64) as usize;
    if first.checked_add(8).is_none_or(|end| end > words.len()) {
        return None;
    }
    // SAFETY: eight words from `first` on are there, and `place` is one of them.
    unsafe {
        let chunk = words.as_ptr().add(first);
        let rest = *chunk & (u64::MAX << (index % 64));
        let found = isa.words_with_ones(chunk) & !1 | u64::from(rest != 0);
        if found == 0 {
            return None;
        }
        let place = found.trailing_zeros();
        let word = select_unpredictable(place == 0, rest, *chunk.add(place as usize));
        Some(64 * (first as u64 + u64::from(place)) + u64::from(word.trailing_zeros()))
    }
}

/// The last set bit at or before `index`, if it is in the word of `index` or the seven before.
#[inline(always)]
pub(crate) fn last_one(isa: Wide, words: &[u64], index: u64) -> Option<u64> {
    let last = (index / 64) as usize;
    let first = last.checked_sub(7)?;
    if last >= words.len() {
        return None;
    }
    // SAFETY: eight words from `first` on are there, and `place` is one of them.
    unsafe {
        let chunk = words.as_ptr().add(first);
        let rest = *chunk.add(7) & (u64::MAX >> (63 - index % 64));
        let found = isa.words_with_ones(chunk) & 0x7F | u64::from(rest != 0) << 7;
        if found == 0 {
            return None;
        }
        let place = found.ilog2();
        let word = select_unpredictable(place == 7, rest, *chunk.add(place as usize));
        Some(64 * (first as u64 + u64::from(place)) + 63 - u64::from(word.leading_zeros()))
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
