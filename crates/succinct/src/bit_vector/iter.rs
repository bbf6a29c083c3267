//! Iterates over set bits, unset bits and runs, a word at a time.

use crate::bits::{low_mask, scan_forward};

/// Positions of bits of one kind, in order.
#[derive(Debug, Clone)]
pub struct Positions<'a> {
    // The words after the current one.
    rest: std::slice::Iter<'a, u64>,
    // The rest of the current word, and the position of its first bit.
    word: u64,
    base: u64,
    flip: u64,
    len: u64,
}

impl<'a> Positions<'a> {
    pub(crate) fn new(words: &'a [u64], len: u64, kind: bool, from: u64) -> Self {
        let flip = if kind { 0 } else { u64::MAX };
        let index = (from.min(len) / 64) as usize;
        let mut rest = words.get(index..).unwrap_or_default().iter();
        let first = rest.next().map_or(0, |word| word ^ flip);
        let word = if from >= len { 0 } else { first & (u64::MAX << (from % 64)) };
        if from >= len {
            rest = [].iter();
        }
        let mut positions = Positions { rest, word, base: index as u64 * 64, flip, len };
        positions.trim();
        positions
    }

    /// Bits past the end do not count.
    #[inline(always)]
    fn trim(&mut self) {
        if self.rest.len() == 0 {
            self.word &= low_mask(self.len.saturating_sub(self.base).min(64) as u32);
        }
    }
}

impl Iterator for Positions<'_> {
    type Item = u64;

    #[inline]
    fn next(&mut self) -> Option<u64> {
        while self.word == 0 {
            self.word = self.rest.next()? ^ self.flip;
            self.base += 64;
            self.trim();
        }
        let position = self.base + u64::from(self.word.trailing_zeros());
        self.word &= self.word - 1;
        Some(position)
    }

    #[inline]
    fn fold<B, F: FnMut(B, u64) -> B>(mut self, init: B, mut f: F) -> B {
        let mut state = init;
        loop {
            let (mut word, base) = (self.word, self.base);
            while word != 0 {
                state = f(state, base + u64::from(word.trailing_zeros()));
                word &= word - 1;
            }
            match self.rest.next() {
                Some(next) => self.word = next ^ self.flip,
                None => return state,
            }
            self.base += 64;
            self.trim();
        }
    }
}

impl std::iter::FusedIterator for Positions<'_> {}

/// Maximal runs of set bits as (start, length), in order.
#[derive(Debug, Clone)]
pub struct Runs<'a> {
    words: &'a [u64],
    len: u64,
    next: u64,
}

impl<'a> Runs<'a> {
    pub(crate) fn new(words: &'a [u64], len: u64, from: u64) -> Self {
        Runs { words, len, next: from }
    }
}

impl Iterator for Runs<'_> {
    type Item = (u64, u64);

    fn next(&mut self) -> Option<(u64, u64)> {
        if self.next >= self.len {
            return None;
        }
        let start = scan_forward(self.words, self.next, true, usize::MAX).unwrap_or(self.len).min(self.len);
        let end = scan_forward(self.words, start, false, usize::MAX).unwrap_or(self.len).min(self.len);
        self.next = end;
        (start < end).then_some((start, end - start))
    }
}

impl std::iter::FusedIterator for Runs<'_> {}
