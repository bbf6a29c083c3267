//! [`Cursor`] over bytes, and [`allocate`]: the one place where a length from a file becomes an allocation.

use arrow_buffer::{ArrowNativeType, MutableBuffer};

use crate::error::{self, Error, Result};
use crate::limits::{Budget, Reservation};
use crate::pages::prefer_large;

/// An empty vector with room for `count` items, if the budget allows their bytes. Nothing is taken from the budget:
/// this is for memory that is freed soon, or that becomes a column of a batch, which is charged as a whole.
///
/// ```
/// use pentaglot::{Limits, cursor::allocate};
/// assert!(allocate::<u64>(10, &Limits::default().budget()).unwrap().capacity() >= 10);
/// assert!(allocate::<u64>(u64::MAX, &Limits::default().budget()).is_err());
/// ```
pub fn allocate<T>(count: u64, budget: &Budget) -> Result<Vec<T>> {
    budget.check(count.saturating_mul(size_of::<T>() as u64))?;
    with_room(count)
}

/// An empty vector with room for `count` items, and the reservation for its memory.
pub(crate) fn reserve<T>(count: u64, budget: &Budget) -> Result<Reserved<T>> {
    let reservation = budget.reserve(count.saturating_mul(size_of::<T>() as u64))?;
    Ok(Reserved { items: with_room(count)?, reservation })
}

fn with_room<T>(count: u64) -> Result<Vec<T>> {
    let mut items = Vec::new();
    grow(&mut items, count)?;
    Ok(items)
}

/// Makes room for `count` items in all. The system moves the pages of a large vector, not their bytes.
#[expect(clippy::disallowed_methods, reason = "the callers check the size against the budget")]
fn grow<T>(items: &mut Vec<T>, count: u64) -> Result<()> {
    let count = usize::try_from(count)
        .map_err(|_| Error::limit("the address space", usize::MAX, format!("{count} items")))?;
    items.try_reserve_exact(count.saturating_sub(items.len())).map_err(|_| {
        Error::limit("memory", "exhausted", format!("{} bytes", count.saturating_mul(size_of::<T>())))
    })?;
    prefer_large(items.as_mut_ptr(), count * size_of::<T>());
    Ok(())
}

/// A vector together with the reservation for its memory, for structures that outlive a batch.
#[derive(Debug)]
pub(crate) struct Reserved<T> {
    items: Vec<T>,
    reservation: Reservation,
}

impl<T> Reserved<T> {
    /// An empty vector that grows by [`extend_from_slice`](Self::extend_from_slice).
    pub(crate) fn new(budget: &Budget) -> Self {
        Reserved { items: Vec::new(), reservation: budget.reservation() }
    }

    /// The budget that its memory is taken from.
    pub(crate) fn budget(&self) -> &Budget {
        self.reservation.budget()
    }

    /// Makes room for `more` items; the reservation covers the old and the new memory while items move.
    pub(crate) fn make_room(&mut self, more: usize) -> Result<()> {
        let needed = self.items.len().saturating_add(more);
        if needed <= self.items.capacity() {
            return Ok(());
        }
        let item = size_of::<T>() as u64;
        let old = self.items.capacity() as u64 * item;
        // Grow by half; if the budget is too small for that, only as much as needed.
        let generous = needed.max(self.items.capacity() + self.items.capacity() / 2) as u64;
        let mut count = generous;
        if self.reservation.grow_to(old + generous.saturating_mul(item)).is_err() {
            count = needed as u64;
            self.reservation.grow_to(old + count.saturating_mul(item))?;
        }
        grow(&mut self.items, count)?;
        self.reservation.shrink_to(count.saturating_mul(item));
        Ok(())
    }

    /// Appends items, within the budget.
    pub(crate) fn extend_from_slice(&mut self, items: &[T]) -> Result<()>
    where
        T: Clone,
    {
        self.make_room(items.len())?;
        self.items.extend_from_slice(items);
        Ok(())
    }

    /// The items as memory for Arrow, which releases the reservation.
    pub(crate) fn into_memory(self) -> MutableBuffer
    where
        T: ArrowNativeType,
    {
        let memory = MutableBuffer::from(self.items);
        self.reservation.attach(&memory);
        memory
    }

    /// The items, and the reservation for them.
    pub(crate) fn into_parts(self) -> (Vec<T>, Reservation) {
        (self.items, self.reservation)
    }
}

impl<T> std::ops::Deref for Reserved<T> {
    type Target = Vec<T>;

    fn deref(&self) -> &Vec<T> {
        &self.items
    }
}

impl<T> std::ops::DerefMut for Reserved<T> {
    fn deref_mut(&mut self) -> &mut Vec<T> {
        &mut self.items
    }
}

/// `bytes` zeroed bytes in memory aligned for any Arrow type. They are taken from the budget until they are freed.
pub fn allocate_zeroed(bytes: u64, budget: &Budget) -> Result<MutableBuffer> {
    let reservation = budget.reserve(bytes)?;
    let bytes = usize::try_from(bytes)
        .map_err(|_| Error::limit("the address space", usize::MAX, format!("{bytes} bytes")))?;
    // With an alignment of 16 at most, the allocator can use pages that the system has zeroed; with more, it writes the
    // zeros itself.
    let mut memory = MutableBuffer::from(vec![0i128; bytes.div_ceil(size_of::<i128>())]);
    prefer_large(memory.as_mut_ptr(), memory.len());
    reservation.attach(&memory);
    memory.truncate(bytes);
    Ok(memory)
}

/// A position in a slice of bytes; every read is checked against what is left, and errors know their offset.
#[derive(Debug, Clone)]
pub struct Cursor<'a> {
    bytes: &'a [u8],
    position: usize,
    base: u64,
}

macro_rules! read_numbers {
    ($($name:ident $type:ty, $from:ident, $doc:literal;)*) => {
        $(
            #[doc = $doc]
            #[inline]
            pub fn $name(&mut self) -> Result<$type> {
                self.array().map(<$type>::$from)
            }
        )*
    };
}

impl<'a> Cursor<'a> {
    /// A cursor at the start of `bytes`, which are a whole file.
    pub fn new(bytes: &'a [u8]) -> Self {
        Cursor::at(bytes, 0)
    }

    /// A cursor at the start of `bytes`, which begin at `base` in the file.
    pub fn at(bytes: &'a [u8], base: u64) -> Self {
        Cursor { bytes, position: 0, base }
    }

    /// The offset in the file of the next byte.
    #[inline]
    pub fn offset(&self) -> u64 {
        self.base + self.position as u64
    }

    /// How many bytes are left.
    #[inline]
    pub fn remaining(&self) -> usize {
        self.bytes.len() - self.position
    }

    /// Whether nothing is left.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.remaining() == 0
    }

    /// The remaining bytes, without reading them.
    #[inline]
    pub fn rest(&self) -> &'a [u8] {
        self.bytes.get(self.position..).unwrap_or_default()
    }

    /// The next byte, without reading it.
    #[inline]
    pub fn peek(&self) -> Option<u8> {
        self.bytes.get(self.position).copied()
    }

    /// The next `count` bytes.
    #[inline]
    pub fn take(&mut self, count: u64) -> Result<&'a [u8]> {
        let end = usize::try_from(count).ok().and_then(|count| self.position.checked_add(count));
        match end.and_then(|end| self.bytes.get(self.position..end)) {
            Some(bytes) => {
                self.position += bytes.len();
                Ok(bytes)
            }
            None => Err(self.short(count)),
        }
    }

    /// The next `N` bytes.
    #[inline]
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        match self.rest().first_chunk() {
            Some(bytes) => {
                self.position += N;
                Ok(*bytes)
            }
            None => Err(self.short(N as u64)),
        }
    }

    /// Skips `count` bytes.
    pub fn skip(&mut self, count: u64) -> Result<()> {
        self.take(count).map(drop)
    }

    /// A cursor over the next `count` bytes, which this cursor skips.
    pub fn sub(&mut self, count: u64) -> Result<Cursor<'a>> {
        let base = self.offset();
        Ok(Cursor::at(self.take(count)?, base))
    }

    /// Checks that the bytes left can hold `count` items of at least `item_bytes` bytes each.
    pub fn check_count(&self, count: u64, item_bytes: u64) -> Result<usize> {
        let needed = count.checked_mul(item_bytes);
        match (needed, usize::try_from(count)) {
            (Some(needed), Ok(count)) if needed <= self.remaining() as u64 => Ok(count),
            _ => Err(Error::truncated(
                format_args!("{count} items of {item_bytes} bytes"),
                format_args!("{} bytes", self.remaining()),
            )
            .at(self.offset())),
        }
    }

    /// Returns an error unless all bytes have been read.
    pub fn expect_end(&self) -> Result<()> {
        match self.remaining() {
            0 => Ok(()),
            more => Err(Error::malformed("the end", format_args!("{more} more bytes"))
                .at(self.offset())
                .rule("trailing")),
        }
    }

    #[cold]
    fn short(&self, count: u64) -> Error {
        Error::truncated(error::count(count, "byte"), self.remaining()).at(self.offset())
    }

    read_numbers! {
        u8 u8, from_le_bytes, "One byte.";
        i8 i8, from_le_bytes, "One signed byte.";
        u16_le u16, from_le_bytes, "Two bytes, little-endian.";
        u32_le u32, from_le_bytes, "Four bytes, little-endian.";
        u64_le u64, from_le_bytes, "Eight bytes, little-endian.";
        i16_le i16, from_le_bytes, "Two signed bytes, little-endian.";
        i32_le i32, from_le_bytes, "Four signed bytes, little-endian.";
        i64_le i64, from_le_bytes, "Eight signed bytes, little-endian.";
        f32_le f32, from_le_bytes, "A float32, little-endian.";
        f64_le f64, from_le_bytes, "A float64, little-endian.";
        u16_be u16, from_be_bytes, "Two bytes, big-endian.";
        u32_be u32, from_be_bytes, "Four bytes, big-endian.";
        u64_be u64, from_be_bytes, "Eight bytes, big-endian.";
        i16_be i16, from_be_bytes, "Two signed bytes, big-endian.";
        i32_be i32, from_be_bytes, "Four signed bytes, big-endian.";
        i64_be i64, from_be_bytes, "Eight signed bytes, big-endian.";
        f32_be f32, from_be_bytes, "A float32, big-endian.";
        f64_be f64, from_be_bytes, "A float64, big-endian.";
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_read_names_its_offset_and_leaves_the_cursor() {
        let mut cursor = Cursor::at(&[1, 2, 3], 100);
        assert_eq!(cursor.u16_le().unwrap(), 0x0201);
        let error = cursor.u32_le().unwrap_err();
        assert_eq!(error.to_string(), "at byte 102: expected 4 bytes, found 1");
        assert_eq!(cursor.u8().unwrap(), 3);
        cursor.expect_end().unwrap();
    }

    #[test]
    fn memory_is_paid_for_until_it_is_freed() {
        let budget = crate::limits::Limits { max_alloc: 4096, ..Default::default() }.budget();
        let buffer = arrow_buffer::Buffer::from(allocate_zeroed(1000, &budget).unwrap());
        let part = buffer.slice(10);
        drop(buffer);
        assert_eq!(budget.used(), 1000);
        drop(part);
        let mut items = Reserved::<u64>::new(&budget);
        for _ in 0..8 {
            items.extend_from_slice(&[1; 25]).unwrap();
        }
        assert_eq!(budget.used(), items.capacity() as u64 * 8);
        assert!(
            items.extend_from_slice(&[0; 400]).is_err(),
            "the old and the new memory do not fit together"
        );
        let (items, reservation) = items.into_parts();
        assert_eq!((items.len(), reservation.bytes()), (200, budget.used()));
        drop(reservation);
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn counts_that_overflow_are_refused() {
        let cursor = Cursor::new(&[0; 16]);
        assert!(cursor.check_count(u64::MAX, u64::MAX).is_err());
        assert!(cursor.check_count(2, 8).is_ok());
        assert!(cursor.check_count(3, 8).is_err());
    }
}
