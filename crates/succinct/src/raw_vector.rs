//! A vector of bits and nothing else.

use std::io;

use crate::bits::{count_ones, low_mask, read_int, write_int};
use crate::cursor::WordCursor;
use crate::error::Error;
use crate::layout::{Structure, Supports, Walk, WordSink};
use crate::storage::{Section, Words};

/// A raw bit vector: bit `i` is bit `i % 64` of word `i / 64`, unused bits of the last word are zero.
///
/// Space: 1 bit per bit. Cache misses per access: 1.
///
/// ```
/// use pentaglot_succinct::RawVector;
/// let mut bits: RawVector = [true, false, true].into_iter().collect();
/// bits.push_int(0b1011, 4);
/// assert_eq!((bits.len(), bits.count_ones()), (7, 5));
/// assert_eq!(bits.int(3, 4), Some(0b1011));
/// assert_eq!(bits.get(u64::MAX), None);
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct RawVector<W = Vec<u64>> {
    len: u64,
    words: W,
}

impl<W: Words> RawVector<W> {
    /// A vector of `len` bits in `words`: there must be exactly as many words as needed, and unused bits must
    /// be zero.
    pub fn try_from_parts(len: u64, words: W) -> Result<Self, Error> {
        let (needed, found) = (len.div_ceil(64), words.as_ref().len() as u64);
        if found != needed {
            return Err(Error::malformed(1, "words.len", format!("{needed} words for {len} bits"), found));
        }
        let vector = RawVector { len, words };
        match vector.unused_bits() {
            0 => Ok(vector),
            bits => {
                let path = format!("words[{}]", needed - 1);
                Err(Error::malformed(1 + needed, path, "unused bits that are 0", format!("{bits:#x}")))
            }
        }
    }

    /// The number of bits.
    #[inline]
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether there are no bits.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The words that hold the bits.
    #[inline]
    pub fn words(&self) -> &[u64] {
        self.words.as_ref()
    }

    /// Bit `index`, or `None` past the end.
    #[inline]
    pub fn get(&self, index: u64) -> Option<bool> {
        if index >= self.len {
            return None;
        }
        self.words().get((index / 64) as usize).map(|word| word >> (index % 64) & 1 == 1)
    }

    /// Bit `index`.
    ///
    /// # Safety
    ///
    /// `index` must be below [`len`](Self::len).
    #[inline]
    pub unsafe fn get_unchecked(&self, index: u64) -> bool {
        // SAFETY: the caller keeps `index` below `len`, and every constructor checks that there are `len / 64`
        // words, rounded up.
        let word = unsafe { self.words().get_unchecked((index / 64) as usize) };
        word >> (index % 64) & 1 == 1
    }

    /// The integer of `width` (at most 64) bits that starts at bit `offset`, or `None` if it ends past the end.
    #[inline]
    pub fn int(&self, offset: u64, width: u32) -> Option<u64> {
        let end = offset.checked_add(u64::from(width))?;
        if width > 64 || end > self.len {
            return None;
        }
        Some(if width == 0 { 0 } else { read_int(self.words(), offset, width) })
    }

    /// The number of set bits; reads all words.
    pub fn count_ones(&self) -> u64 {
        count_ones(self.words())
    }

    /// The bits from `from` on.
    pub fn iter_from(&self, from: u64) -> Bools<'_> {
        let next = from.min(self.len);
        let word = self.words().get((next / 64) as usize).map_or(0, |word| word >> (next % 64));
        Bools { words: self.words(), word, next, end: self.len }
    }

    /// All bits.
    pub fn iter(&self) -> Bools<'_> {
        self.iter_from(0)
    }

    /// A copy that owns its storage.
    pub fn to_owned_vector(&self) -> RawVector {
        RawVector { len: self.len, words: self.words().to_vec() }
    }

    fn unused_bits(&self) -> u64 {
        match self.words().last() {
            Some(word) if !self.len.is_multiple_of(64) => word & !low_mask((self.len % 64) as u32),
            _ => 0,
        }
    }
}

impl RawVector {
    /// No bits.
    pub fn new() -> Self {
        Self::default()
    }

    /// `len` bits, all equal to `bit`.
    pub fn with_len(len: u64, bit: bool) -> Self {
        let mut words = vec![if bit { u64::MAX } else { 0 }; len.div_ceil(64) as usize];
        if let (Some(last), false) = (words.last_mut(), len.is_multiple_of(64)) {
            *last &= low_mask((len % 64) as u32);
        }
        RawVector { len, words }
    }

    /// Appends a bit.
    #[inline]
    pub fn push(&mut self, bit: bool) {
        if self.len.is_multiple_of(64) {
            self.words.push(0);
        }
        if bit {
            *self.words.last_mut().expect("pushed above if it was missing") |= 1 << (self.len % 64);
        }
        self.len += 1;
    }

    /// Appends the lowest `width` bits of `value`; widths above 64 count as 64.
    #[inline]
    pub fn push_int(&mut self, value: u64, width: u32) {
        let (width, used) = (width.min(64), (self.len % 64) as u32);
        if width == 0 {
            return;
        }
        let value = value & low_mask(width);
        if used == 0 {
            self.words.push(value);
        } else {
            *self.words.last_mut().expect("the last word is in use") |= value << used;
            if used + width > 64 {
                self.words.push(value >> (64 - used));
            }
        }
        self.len += u64::from(width);
    }

    /// Sets bit `index`; returns false, and does nothing, past the end.
    pub fn set(&mut self, index: u64, bit: bool) -> bool {
        let inside = index < self.len;
        if inside {
            write_int(&mut self.words, index, 1, u64::from(bit));
        }
        inside
    }

    /// Overwrites the `width` bits from `offset`; returns false, and does nothing, if they end past the end.
    pub fn set_int(&mut self, offset: u64, width: u32, value: u64) -> bool {
        let inside = self.int(offset, width).is_some();
        if inside && width > 0 {
            write_int(&mut self.words, offset, width, value);
        }
        inside
    }

    pub(crate) fn reserve(&mut self, bits: u64) {
        self.words.reserve(bits.div_ceil(64) as usize);
    }

    pub(crate) fn words_mut(&mut self) -> &mut [u64] {
        &mut self.words
    }

    pub(crate) fn into_words(self) -> Vec<u64> {
        self.words
    }

    pub(crate) fn from_trimmed(len: u64, words: Vec<u64>) -> Self {
        debug_assert_eq!(words.len() as u64, len.div_ceil(64));
        RawVector { len, words }
    }
}

impl FromIterator<bool> for RawVector {
    fn from_iter<I: IntoIterator<Item = bool>>(bits: I) -> Self {
        let mut vector = RawVector::new();
        vector.extend(bits);
        vector
    }
}

impl Extend<bool> for RawVector {
    fn extend<I: IntoIterator<Item = bool>>(&mut self, bits: I) {
        bits.into_iter().for_each(|bit| self.push(bit));
    }
}

impl<V: Words, W: Words> PartialEq<RawVector<V>> for RawVector<W> {
    fn eq(&self, other: &RawVector<V>) -> bool {
        self.len == other.len && self.words() == other.words()
    }
}

impl<W: Words> Structure<W> for RawVector<W> {
    fn from_words(cursor: &mut WordCursor<W>) -> Result<Self, Error>
    where
        W: Section,
    {
        let len = cursor.element("len")?;
        let at = cursor.position();
        let (needed, found) = (len.div_ceil(64), cursor.element("words.len")?);
        if found != needed {
            return Err(Error::malformed(at, "words.len", format!("{needed} words for {len} bits"), found));
        }
        Ok(RawVector { len, words: cursor.section(needed, "words")? })
    }

    fn write_words(&self, _: Supports, sink: &mut impl WordSink) -> io::Result<()> {
        sink.put(&[self.len, self.words().len() as u64])?;
        sink.put(self.words())
    }

    fn walk(&self, walk: &mut Walk) {
        walk.part("len", 1);
        walk.part("words.len", 1);
        walk.part("words", self.words().len() as u64);
        let unused = self.unused_bits();
        if unused != 0 {
            let name = format!("words[{}]", self.words().len() - 1);
            let found = format!("{unused:#x}");
            walk.error("unused bits", walk.offset() - 1, &name, "unused bits that are 0", found);
        }
    }
}

/// Bits in order.
#[derive(Debug, Clone)]
pub struct Bools<'a> {
    words: &'a [u64],
    word: u64,
    next: u64,
    end: u64,
}

impl Iterator for Bools<'_> {
    type Item = bool;

    #[inline]
    fn next(&mut self) -> Option<bool> {
        if self.next >= self.end {
            return None;
        }
        let bit = self.word & 1 == 1;
        self.word >>= 1;
        self.next += 1;
        if self.next.is_multiple_of(64) {
            self.word = self.words.get((self.next / 64) as usize).copied().unwrap_or(0);
        }
        Some(bit)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = (self.end - self.next) as usize;
        (left, Some(left))
    }
}

impl ExactSizeIterator for Bools<'_> {}
impl std::iter::FusedIterator for Bools<'_> {}
