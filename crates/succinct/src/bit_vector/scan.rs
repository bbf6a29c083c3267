//! Counting words to the bit of a rank.

use crate::cpu::Isa;

/// So many words are looked at without a branch.
const CHUNK: usize = 4;

/// The bit of the kind with `rank` others before it, counted from the start of word `index`.
///
/// In words: go from word to word, subtracting counts, until the rank is below the next count; the bit is in that
/// word. The first [`CHUNK`] words are nearly always enough, and how many of them are passed nobody could predict: so
/// they are all counted, and the rank is compared with each sum of counts, without a branch.
#[inline(always)]
pub(crate) fn find<const ONE: bool, I: Isa>(isa: I, words: &[u64], index: usize, rank: u64) -> Option<u64> {
    if index.checked_add(CHUNK).is_none_or(|end| end > words.len()) {
        return find_slowly::<ONE, I>(isa, words, index, rank);
    }
    // SAFETY: four words from `index` on are there; three of them are counted, and `place` is at most the fourth.
    let (rank, place, word) = unsafe {
        let chunk = words.as_ptr().add(index);
        let one = isa.popcount_at::<0>(chunk);
        let two = one + isa.popcount_at::<8>(chunk);
        let three = two + isa.popcount_at::<16>(chunk);
        let found = isa.step::<ONE, 64>(rank, (rank, index), one);
        let found = isa.step::<ONE, 128>(rank, found, two);
        let (left, place) = isa.step::<ONE, 192>(rank, found, three);
        (left, place, of_kind::<ONE>(*words.get_unchecked(place)))
    };
    if rank >= isa.popcount(word) {
        return find_slowly::<ONE, I>(isa, words, place, rank);
    }
    Some(place as u64 * 64 + isa.select_present(word, rank))
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
