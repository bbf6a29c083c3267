//! Rank supports: rank9 as simple-sds lays it out, and our own counts.

use crate::cpu::{Bmi2, Isa, prefetch};

/// Bits per block of rank9.
pub(crate) const BLOCK: u64 = 512;
/// Words per large count of our own.
pub(crate) const LARGE: usize = 1024;

/// Elements that the pairs for `len` bits take.
pub(crate) fn pair_elements(len: u64) -> u64 {
    2 * len.div_ceil(BLOCK)
}

/// Elements that our own counts for `words` words take.
pub(crate) fn count_elements(words: usize) -> usize {
    words.div_ceil(4) + words.div_ceil(LARGE)
}

/// The source of the number of ones before a word.
#[derive(Debug, Clone, Copy)]
pub(crate) enum RankSupport<'a> {
    /// A file's own: block k of 512 bits has a pair, the ones before the block, and seven 9-bit counts of the ones before
    /// words 1 to 7 within it.
    Pairs(&'a [u64]),
    /// Ours, of the same size but faster: 16 bits for each word, the ones before it since the last large count; every
    /// 1024 words a large count, the ones before it. The large counts stay in the first-level cache.
    Counts(Counts<'a>),
}

impl<'a> RankSupport<'a> {
    /// Ones before the word of number `word`; an unspecified number past the last one.
    #[inline(always)]
    pub(crate) fn before(self, word: usize) -> u64 {
        match self {
            RankSupport::Pairs(pairs) => {
                let pair = pairs.get(word / 8 * 2..).and_then(|pairs| pairs.first_chunk::<2>());
                let &[before, packed] = pair.unwrap_or(&[0, 0]);
                // For word 0 the shift ends at bit 63, which is 0.
                let field = (word as u64).wrapping_sub(1) & 7;
                before.wrapping_add((packed >> (9 * field)) & 511)
            }
            RankSupport::Counts(counts) => {
                let small =
                    counts.small.get(word / 4).map_or(0, |small| (small >> (16 * (word % 4))) & 0xFFFF);
                counts.large.get(word / LARGE).map_or(0, |large| large.wrapping_add(small))
            }
        }
    }

    /// Ones before `index`, which must be below the length.
    #[inline(always)]
    pub(crate) fn rank<I: Isa>(self, isa: I, words: &[u64], index: u64) -> u64 {
        let word = (index / 64) as usize;
        let bits = words.get(word).map_or(0, |bits| bits & !(u64::MAX << (index % 64)));
        self.before(word).wrapping_add(isa.popcount(bits))
    }

    /// Prefetches the line that the ones before a word are read from.
    #[inline(always)]
    pub(crate) fn prefetch(self, word: usize) {
        match self {
            RankSupport::Pairs(pairs) => prefetch(pairs, word / 8 * 2),
            RankSupport::Counts(counts) => prefetch(counts.small, word / 4),
        }
    }
}

/// Our own counts: the small ones, four to an element, then the large ones.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Counts<'a> {
    pub(crate) small: &'a [u64],
    pub(crate) large: &'a [u64],
}

impl<'a> Counts<'a> {
    /// The counts of `words` words in `elements`, if that is how many there are.
    #[inline(always)]
    pub(crate) fn new(elements: &'a [u64], words: usize) -> Option<Self> {
        if elements.len() != count_elements(words) {
            return None;
        }
        let (small, large) = elements.split_at(words.div_ceil(4));
        Some(Counts { small, large })
    }
}

/// Computes our own counts in one pass, block by block.
pub(crate) struct Counter {
    small: Vec<u64>,
    large: Vec<u64>,
    words: usize,
    ones: u64,
}

impl Counter {
    pub(crate) fn new(words: usize) -> Self {
        let small = Vec::with_capacity(count_elements(words));
        Counter { small, large: Vec::with_capacity(words.div_ceil(LARGE)), words: 0, ones: 0 }
    }

    /// The next eight words, or the last ones.
    #[inline(always)]
    pub(crate) fn take<I: Isa>(&mut self, isa: I, block: &[u64]) {
        if self.words.is_multiple_of(LARGE) {
            self.large.push(self.ones);
        }
        let mut count = self.ones - self.large.last().copied().unwrap_or(0);
        let before = count;
        for four in block.chunks(4) {
            let mut packed = 0;
            for (lane, &word) in four.iter().enumerate() {
                packed |= count << (16 * lane);
                count += isa.popcount(word);
            }
            self.small.push(packed);
        }
        self.ones += count - before;
        self.words += block.len();
    }

    pub(crate) fn finish(mut self) -> Vec<u64> {
        self.small.append(&mut self.large);
        self.small
    }
}

/// The packed counts of a block. Spec by example: simple-sds writes the field after each word that exists, so
/// the one after the last word is the block's total and later ones are 0; bit 63 is always 0.
#[inline(always)]
pub(crate) fn pack_block<I: Isa>(isa: I, words: &[u64]) -> (u64, u64) {
    let (mut packed, mut count) = (0, 0);
    for (index, &word) in words.iter().enumerate() {
        count += isa.popcount(word);
        packed |= count << (9 * index);
    }
    (packed & (u64::MAX >> 1), count)
}

/// The pairs of `words`, as simple-sds writes them.
pub(crate) fn pairs_of<I: Isa>(isa: I, words: &[u64]) -> Vec<u64> {
    let mut before = 0;
    let mut pairs = Vec::with_capacity(2 * words.len().div_ceil(8));
    for block in words.chunks(8) {
        let (packed, count) = pack_block(isa, block);
        pairs.extend_from_slice(&[before, packed]);
        before += count;
    }
    pairs
}

/// [`RankSupport::rank`] from pairs on a fast processor, without checks.
///
/// # Safety
///
/// `index` must be below the number of bits that `words` holds and `pairs` is the rank support of.
#[inline(always)]
pub(crate) unsafe fn rank_in_pairs(isa: Bmi2, pairs: *const u64, words: *const u64, index: u64) -> u64 {
    let (pair, word) = ((index / 512 * 2) as usize, (index / 64) as usize);
    // SAFETY: the caller keeps `index` within the bits, whose words have a pair for each eight
    // of them.
    let (before, packed, bits) = unsafe { (*pairs.add(pair), *pairs.add(pair + 1), *words.add(word)) };
    let within = isa.shift_right(packed, 9 * ((word as u64).wrapping_sub(1) & 7)) & 511;
    before.wrapping_add(within).wrapping_add(isa.popcount(isa.low_bits(bits, index)))
}
