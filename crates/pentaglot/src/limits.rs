//! The limits of a job ([`Limits`]), and the memory that it uses ([`Budget`], [`Reservation`]).

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::RecordBatch;
use arrow_buffer::{MemoryPool, MemoryReservation, MutableBuffer};

use crate::error::{Error, Result};

/// The limits of one job.
///
/// ```
/// let limits = pentaglot::Limits::default().with_max_alloc(64 << 20);
/// assert!(limits.budget().reserve(65 << 20).is_err());
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Bytes of memory that one job may hold at a time: reader, conversion and writer together.
    pub max_alloc: u64,
    /// How deep types and values may nest.
    pub max_depth: u32,
    /// The maximum ratio of decompressed to compressed bytes (checked past the first mebibyte).
    pub max_ratio: u64,
    /// The maximum number of rows or elements that take no bytes in the file.
    pub max_free_rows: u64,
    /// The maximum number of bytes of a stream that are spooled, in memory or a temporary file, where it must be
    /// read at any offset.
    pub max_spool: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            max_alloc: 4 << 30,
            max_depth: 128,
            max_ratio: 2048,
            max_free_rows: 1 << 28,
            max_spool: 16 << 30,
        }
    }
}

impl Limits {
    setters! {
        texts []
        values [
            with_max_alloc(max_alloc: u64),
            with_max_depth(max_depth: u32),
            with_max_ratio(max_ratio: u64),
            with_max_free_rows(max_free_rows: u64),
            with_max_spool(max_spool: u64),
        ]
    }

    /// A fresh budget under these limits.
    pub fn budget(&self) -> Budget {
        Budget(Arc::new(Shared { limits: self.clone(), used: AtomicU64::new(0) }))
    }

    /// Returns an error if `depth` exceeds `max_depth`.
    pub fn check_depth(&self, depth: u32) -> Result<()> {
        if depth > self.max_depth {
            return Err(
                Error::limit("max-depth", self.max_depth, format!("at least {depth} levels")).rule("depth")
            );
        }
        Ok(())
    }

    /// Returns an error if `rows` rows that take no bytes are more than allowed.
    pub fn check_free_rows(&self, rows: u64) -> Result<()> {
        if rows > self.max_free_rows {
            return Err(Error::limit(
                "max-free-rows",
                self.max_free_rows,
                format!("{rows} rows that take no bytes"),
            ));
        }
        Ok(())
    }

    /// Returns an error if `output` bytes are too many for `input` compressed bytes.
    pub fn check_ratio(&self, input: u64, output: u64) -> Result<()> {
        let free = 1 << 20;
        if output > free && output / self.max_ratio.max(1) > input {
            let found = format!("{output} bytes or more from {input} compressed bytes");
            return Err(Error::limit("max-ratio", self.max_ratio, found));
        }
        Ok(())
    }
}

/// From this budget on, the stages of a job overlap. Below it, a batch is a considerable part of the budget, and one that waits
/// could take what the next stage needs.
pub(crate) const OVERLAP_BUDGET: u64 = 256 << 20;

/// The smallest batch that a small `max_alloc` leads to.
const LEAST_BATCH_BYTES: u64 = 256 << 10;

/// The memory that one job may use, and how much of it is in use. Clones share the same memory.
///
/// Memory is counted in one of two ways. A [`Reservation`] counts the memory of a structure, whose owner keeps it. An
/// Arrow buffer carries its own reservation (see [`charge`](Self::charge)), which ends with the last array that
/// points to the buffer.
#[derive(Debug, Clone)]
pub struct Budget(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    limits: Limits,
    /// May exceed `max_alloc` for a moment: Arrow buffers are counted when they exist already.
    used: AtomicU64,
}

impl Budget {
    /// The limits that this budget was made from.
    pub fn limits(&self) -> &Limits {
        &self.0.limits
    }

    /// How many bytes are in use.
    pub fn used(&self) -> u64 {
        self.0.used.load(Ordering::Relaxed)
    }

    /// How many bytes are left.
    pub fn left(&self) -> u64 {
        self.0.limits.max_alloc.saturating_sub(self.used())
    }

    /// Takes `bytes` from the budget until the reservation is dropped.
    pub fn reserve(&self, bytes: u64) -> Result<Reservation> {
        let mut reservation = self.reservation();
        reservation.grow(bytes)?;
        Ok(reservation)
    }

    /// A reservation of zero bytes, for a structure that grows.
    pub fn reservation(&self) -> Reservation {
        Reservation { budget: self.clone(), bytes: 0 }
    }

    /// Returns an error if `bytes` could not be reserved now; reserves nothing.
    pub fn check(&self, bytes: u64) -> Result<()> {
        let used = self.used();
        match used.checked_add(bytes) {
            Some(total) if total <= self.0.limits.max_alloc => Ok(()),
            _ => Err(self.refusal(bytes, used)),
        }
    }

    /// Counts the buffers of a batch as in use until they are freed. A buffer that is counted already counts once.
    pub fn charge(&self, rows: &RecordBatch) -> Result<()> {
        rows.claim(&Pool(self));
        self.check(0)
    }

    /// The target size of a batch where `usual` bytes suit the format: less if the budget is small, because a batch,
    /// its input and its output are in memory at the same time.
    pub fn batch_bytes(&self, usual: u64) -> u64 {
        usual.min((self.0.limits.max_alloc / 16).max(LEAST_BATCH_BYTES))
    }

    #[cold]
    fn refusal(&self, bytes: u64, used: u64) -> Error {
        let needed = match (used, bytes) {
            (0, _) => format!("{bytes} bytes"),
            (_, 0) => format!("{used} bytes"),
            _ => format!("{bytes} bytes more than the {used} in use"),
        };
        Error::limit("max-alloc", self.0.limits.max_alloc, needed)
    }
}

impl Default for Budget {
    fn default() -> Self {
        Limits::default().budget()
    }
}

/// Bytes that are taken from a [`Budget`] and given back on drop.
///
/// ```
/// let budget = pentaglot::Limits::default().budget();
/// let mut held = budget.reserve(1000)?;
/// held.grow(24)?;
/// assert_eq!(budget.used(), 1024);
/// drop(held);
/// assert_eq!(budget.used(), 0);
/// # Ok::<(), pentaglot::Error>(())
/// ```
#[derive(Debug)]
pub struct Reservation {
    budget: Budget,
    bytes: u64,
}

impl Reservation {
    /// The budget that the bytes are taken from.
    pub fn budget(&self) -> &Budget {
        &self.budget
    }

    /// How many bytes are reserved.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Reserves `more` bytes, or leaves the reservation as it is.
    pub fn grow(&mut self, more: u64) -> Result<()> {
        let limit = self.budget.limits().max_alloc;
        let fits = |used: u64| used.checked_add(more).filter(|total| *total <= limit);
        let used = &self.budget.0.used;
        match used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits) {
            Ok(_) => {
                self.bytes += more;
                Ok(())
            }
            Err(used) => Err(self.budget.refusal(more, used)),
        }
    }

    /// Raises the reservation to `bytes`, if that is more than now.
    pub fn grow_to(&mut self, bytes: u64) -> Result<()> {
        self.grow(bytes.saturating_sub(self.bytes))
    }

    /// Releases the bytes in excess of `bytes`.
    pub fn shrink_to(&mut self, bytes: u64) {
        self.set(bytes.min(self.bytes));
    }

    /// Takes over the bytes of another reservation of the same budget.
    pub fn merge(&mut self, mut other: Reservation) {
        debug_assert!(Arc::ptr_eq(&self.budget.0, &other.budget.0), "both are of one budget");
        self.bytes += std::mem::take(&mut other.bytes);
    }

    /// Releases all bytes.
    pub fn clear(&mut self) {
        self.set(0);
    }

    /// Attaches the reservation to the memory that it counts, which then releases it.
    pub fn attach(self, memory: &MutableBuffer) {
        memory.claim(&Handover(Mutex::new(Some(self))));
    }

    /// Not checked, since the memory exists already.
    fn set(&mut self, bytes: u64) {
        let used = &self.budget.0.used;
        if bytes >= self.bytes {
            used.fetch_add(bytes - self.bytes, Ordering::Relaxed);
        } else {
            used.fetch_sub(self.bytes - bytes, Ordering::Relaxed);
        }
        self.bytes = bytes;
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.clear();
    }
}

impl MemoryReservation for Reservation {
    fn size(&self) -> usize {
        usize::try_from(self.bytes).unwrap_or(usize::MAX)
    }

    fn resize(&mut self, new_size: usize) {
        self.set(new_size as u64);
    }
}

/// A budget as a memory pool for Arrow's buffers: reserving never fails, the caller checks afterwards.
#[derive(Debug)]
struct Pool<'b>(&'b Budget);

impl MemoryPool for Pool<'_> {
    fn reserve(&self, size: usize) -> Box<dyn MemoryReservation> {
        let mut reservation = self.0.reservation();
        reservation.set(size as u64);
        Box::new(reservation)
    }

    fn available(&self) -> isize {
        let left = i128::from(self.0.limits().max_alloc) - i128::from(self.0.used());
        isize::try_from(left).unwrap_or(if left < 0 { isize::MIN } else { isize::MAX })
    }

    fn used(&self) -> usize {
        usize::try_from(self.0.used()).unwrap_or(usize::MAX)
    }

    fn capacity(&self) -> usize {
        usize::try_from(self.0.limits().max_alloc).unwrap_or(usize::MAX)
    }
}

/// A pool that returns one existing reservation, so that its bytes are not counted twice.
#[derive(Debug)]
struct Handover(Mutex<Option<Reservation>>);

impl MemoryPool for Handover {
    fn reserve(&self, size: usize) -> Box<dyn MemoryReservation> {
        let held = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        let mut reservation = held.expect("a buffer asks once for its reservation");
        reservation.set(size as u64);
        Box::new(reservation)
    }

    fn available(&self) -> isize {
        isize::MAX
    }

    fn used(&self) -> usize {
        0
    }

    fn capacity(&self) -> usize {
        usize::MAX
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{ArrayRef, Int64Array};

    use super::*;

    fn budget(max_alloc: u64) -> Budget {
        Limits { max_alloc, ..Limits::default() }.budget()
    }

    #[test]
    fn a_reservation_gives_back_on_drop() {
        let budget = budget(100);
        let first = budget.reserve(60).unwrap();
        let error = budget.reserve(50).unwrap_err();
        assert_eq!(error.to_string(), "needs 50 bytes more than the 60 in use, max-alloc is 100");
        drop(first);
        let mut again = budget.reserve(50).unwrap();
        again.grow_to(100).unwrap();
        assert!(again.grow(1).is_err());
        assert_eq!((again.bytes(), budget.used()), (100, 100));
    }

    #[test]
    fn a_batch_is_counted_until_its_last_buffer_is_freed() {
        let budget = budget(1 << 20);
        let column: ArrayRef = Arc::new(Int64Array::from(vec![7; 1024]));
        let batch = RecordBatch::try_from_iter([("a", Arc::clone(&column)), ("b", column)]).unwrap();
        budget.charge(&batch).unwrap();
        budget.charge(&batch.slice(0, 3)).unwrap();
        assert_eq!(budget.used(), 8192, "both columns and the slice share one buffer");
        let kept = batch.column(0).slice(5, 1);
        drop(batch);
        assert_eq!(budget.used(), 8192);
        drop(kept);
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn a_batch_that_does_not_fit_is_refused_and_counts_no_longer() {
        let budget = budget(4096);
        let column: ArrayRef = Arc::new(Int64Array::from(vec![7; 1024]));
        let batch = RecordBatch::try_from_iter([("a", column)]).unwrap();
        let error = budget.charge(&batch).unwrap_err();
        assert_eq!(error.to_string(), "needs 8192 bytes, max-alloc is 4096");
        drop(batch);
        budget.reserve(4096).unwrap();
    }

    #[test]
    fn small_budgets_have_small_batches() {
        assert_eq!(Budget::default().batch_bytes(16 << 20), 16 << 20);
        assert_eq!(budget(64 << 20).batch_bytes(16 << 20), 4 << 20);
        assert_eq!(budget(1000).batch_bytes(16 << 20), LEAST_BATCH_BYTES);
    }
}
