//! Integers of a fixed width, packed.

use std::io;

use crate::bits::{bit_len, low_mask, read_int};
use crate::cpu::prefetch;
use crate::cursor::WordCursor;
use crate::error::Error;
use crate::layout::{Structure, Supports, Walk, WordSink};
use crate::raw_vector::RawVector;
use crate::storage::{Section, Words};

/// An integer vector: items of 1 to 64 bits, one after the other.
///
/// Space: `width` bits per item. Cache misses per access: 1 (2 where an item crosses a line).
///
/// ```
/// use pentaglot_succinct::IntVector;
/// let mut ages = IntVector::new(7).unwrap();
/// ages.extend([30, 99, 127]);
/// assert_eq!(ages.get(1), Some(99));
/// assert_eq!(ages.get(3), None);
/// assert_eq!(ages.iter_from(1).collect::<Vec<_>>(), [99, 127]);
/// assert!(IntVector::new(65).is_err());
/// ```
#[derive(Debug, Clone, Copy)]
pub struct IntVector<W = Vec<u64>> {
    len: u64,
    width: u32,
    bits: RawVector<W>,
}

impl<W: Words> IntVector<W> {
    /// A vector of `len` items of `width` bits in `bits`; the three must be consistent.
    pub fn try_from_parts(len: u64, width: u64, bits: RawVector<W>) -> Result<Self, Error> {
        let width = check_shape(len, width, bits.len(), 0)?;
        Ok(IntVector { len, width, bits })
    }

    /// The number of items.
    #[inline]
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether there are no items.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Bits per item.
    #[inline]
    pub fn width(&self) -> u32 {
        self.width
    }

    /// The packed bits.
    pub fn bits(&self) -> &RawVector<W> {
        &self.bits
    }

    /// Item `index`, or `None` past the end.
    #[inline]
    pub fn get(&self, index: u64) -> Option<u64> {
        (index < self.len).then(|| self.read(index))
    }

    /// Item `index`, or an unspecified number past the end.
    #[inline]
    pub(crate) fn read(&self, index: u64) -> u64 {
        read_int(self.bits.words(), index.wrapping_mul(u64::from(self.width)), self.width)
    }

    #[inline]
    pub(crate) fn prefetch(&self, index: u64) {
        prefetch(self.bits.words(), (index.wrapping_mul(u64::from(self.width)) / 64) as usize);
    }

    /// Looks up many items, their cache lines fetched 32 at a time.
    ///
    /// # Panics
    ///
    /// If `answers` is shorter than `indexes`.
    pub fn get_many(&self, indexes: &[u64], answers: &mut [Option<u64>]) {
        let answers = &mut answers[..indexes.len()];
        for (indexes, answers) in indexes.chunks(32).zip(answers.chunks_mut(32)) {
            indexes.iter().for_each(|&index| self.prefetch(index));
            for (answer, &index) in answers.iter_mut().zip(indexes) {
                *answer = self.get(index);
            }
        }
    }

    /// The items from `from` on.
    pub fn iter_from(&self, from: u64) -> Items<'_, W> {
        Items { vector: self, next: from.min(self.len), end: self.len }
    }

    /// All items.
    pub fn iter(&self) -> Items<'_, W> {
        self.iter_from(0)
    }

    /// The smallest width that holds every item.
    pub fn minimal_width(&self) -> u32 {
        bit_len(self.iter().fold(0, |seen, item| seen | item))
    }

    /// A copy that owns its storage.
    pub fn to_owned_vector(&self) -> IntVector {
        IntVector { len: self.len, width: self.width, bits: self.bits.to_owned_vector() }
    }
}

/// Checks an integer vector's header; `at` is the element offset of its length.
fn check_shape(len: u64, width: u64, bits: u64, at: u64) -> Result<u32, Error> {
    if !(1..=64).contains(&width) {
        return Err(Error::malformed(at + 1, "width", "1 to 64", width));
    }
    match len.checked_mul(width) {
        Some(needed) if needed == bits => Ok(width as u32),
        Some(needed) => {
            Err(Error::malformed(at + 2, "bits.len", format!("{len} items of {width} bits, {needed}"), bits))
        }
        None => Err(Error::malformed(at, "len", format!("at most {} items", u64::MAX / width), len)),
    }
}

impl IntVector {
    /// No items, of `width` bits each.
    pub fn new(width: u32) -> Result<Self, Error> {
        Self::try_from_parts(0, u64::from(width), RawVector::new())
    }

    /// The lowest `width` bits of each value.
    pub fn from_values(width: u32, values: impl IntoIterator<Item = u64>) -> Result<Self, Error> {
        let mut vector = Self::new(width)?;
        vector.extend(values);
        Ok(vector)
    }

    /// The values in the smallest width that holds them; no values get width 64, as in simple-sds.
    pub fn from_values_packed(values: &[u64]) -> Self {
        let width = if values.is_empty() { 64 } else { bit_len(values.iter().fold(0, |seen, v| seen | v)) };
        Self::from_values(width, values.iter().copied()).expect("bit_len is from 1 to 64")
    }

    /// Appends the lowest `width` bits of `value`.
    #[inline]
    pub fn push(&mut self, value: u64) {
        self.bits.push_int(value, self.width);
        self.len += 1;
    }

    pub(crate) fn reserve(&mut self, items: u64) {
        self.bits.reserve(items.saturating_mul(u64::from(self.width)));
    }

    /// Sets item `index` to the lowest `width` bits of `value`; returns false, and does nothing, past the end.
    pub fn set(&mut self, index: u64, value: u64) -> bool {
        index < self.len && self.bits.set_int(index * u64::from(self.width), self.width, value)
    }
}

impl Extend<u64> for IntVector {
    /// Appends values, the current word kept in a register.
    fn extend<I: IntoIterator<Item = u64>>(&mut self, values: I) {
        let width = self.width;
        let used = (self.bits.len() % 64) as u32;
        let len = self.bits.len();
        let mut words = std::mem::take(&mut self.bits).into_words();
        let (mut word, mut used) = if used == 0 { (0, 0) } else { (words.pop().unwrap_or(0), used) };
        let mut count = 0;
        for value in values {
            let value = value & low_mask(width);
            word |= value << used;
            used += width;
            if used >= 64 {
                words.push(word);
                used -= 64;
                word = if used == 0 { 0 } else { value >> (width - used) };
            }
            count += 1;
        }
        if used > 0 {
            words.push(word);
        }
        self.len += count;
        self.bits = RawVector::from_trimmed(len + count * u64::from(width), words);
    }
}

impl<V: Words, W: Words> PartialEq<IntVector<V>> for IntVector<W> {
    fn eq(&self, other: &IntVector<V>) -> bool {
        self.width == other.width && self.bits == other.bits
    }
}

impl<W: Words> Structure<W> for IntVector<W> {
    fn from_words(cursor: &mut WordCursor<W>) -> Result<Self, Error>
    where
        W: Section,
    {
        let at = cursor.position();
        let (len, width) = (cursor.element("len")?, cursor.element("width")?);
        // Checked before the bits are read, since this error is more helpful than the ones that would follow.
        check_shape(len, width, len.wrapping_mul(width), at)?;
        let bits = RawVector::from_words(cursor).map_err(|error| error.within("bits"))?;
        let width = check_shape(len, width, bits.len(), at)?;
        Ok(IntVector { len, width, bits })
    }

    fn write_words(&self, supports: Supports, sink: &mut impl WordSink) -> io::Result<()> {
        sink.put(&[self.len, u64::from(self.width)])?;
        self.bits.write_words(supports, sink)
    }

    fn walk(&self, walk: &mut Walk) {
        walk.part("len", 1);
        walk.part("width", 1);
        walk.nest("bits", &self.bits);
    }
}

/// Items in order, from both ends.
#[derive(Debug, Clone)]
pub struct Items<'a, W> {
    vector: &'a IntVector<W>,
    next: u64,
    end: u64,
}

impl<W: Words> Iterator for Items<'_, W> {
    type Item = u64;

    #[inline]
    fn next(&mut self) -> Option<u64> {
        if self.next >= self.end {
            return None;
        }
        let item = self.vector.read(self.next);
        self.next += 1;
        Some(item)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = (self.end - self.next) as usize;
        (left, Some(left))
    }

    fn nth(&mut self, n: usize) -> Option<u64> {
        self.next = self.next.saturating_add(n as u64).min(self.end);
        self.next()
    }
}

impl<W: Words> DoubleEndedIterator for Items<'_, W> {
    fn next_back(&mut self) -> Option<u64> {
        if self.next >= self.end {
            return None;
        }
        self.end -= 1;
        Some(self.vector.read(self.end))
    }
}

impl<W: Words> ExactSizeIterator for Items<'_, W> {}
impl<W: Words> std::iter::FusedIterator for Items<'_, W> {}
