//! Storage of words: owned, borrowed, or shared with the owner of a memory map.

use std::fmt;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::Arc;

/// The storage of a structure's words: `Vec<u64>`, `&[u64]`, [`SharedWords`], boxes and reference counts of slices.
///
/// # Safety
///
/// `as_ref` must return the same slice of the same words on every call as long as the value is only reachable through
/// `&self` or is moved: structures check their lengths once and rely on it.
pub unsafe trait Words: AsRef<[u64]> {}

// SAFETY: the heap buffer of a vector does not move, and does not change without `&mut self`.
unsafe impl Words for Vec<u64> {}
// SAFETY: as for `Vec`.
unsafe impl Words for Box<[u64]> {}
// SAFETY: a shared slice does not move and does not change.
unsafe impl Words for &[u64] {}
// SAFETY: the counted slice does not move and does not change while it is shared.
unsafe impl Words for Arc<[u64]> {}
// SAFETY: `StableWords` guarantees the same for the owner.
unsafe impl Words for SharedWords {}

/// Words that can be divided into sections without copying: the input of a [`WordCursor`](crate::WordCursor).
pub trait Section: Words + Clone {
    /// The words in `range`, or `None` if it does not lie within `self`.
    fn section(&self, range: Range<usize>) -> Option<Self>;
}

impl Section for &[u64] {
    #[inline]
    fn section(&self, range: Range<usize>) -> Option<Self> {
        self.get(range)
    }
}

/// An owner of words that do not move.
///
/// # Safety
///
/// `stable_words` must return the same slice on every call, even if the owner is moved, and the words must
/// not change while the owner lives.
pub unsafe trait StableWords: Send + Sync + 'static {
    /// The words.
    fn stable_words(&self) -> &[u64];
}

// SAFETY: the heap buffer of a vector that is only reachable through `&self` neither moves nor changes.
unsafe impl StableWords for Vec<u64> {
    fn stable_words(&self) -> &[u64] {
        self
    }
}

// SAFETY: as for `Vec`.
unsafe impl StableWords for Box<[u64]> {
    fn stable_words(&self) -> &[u64] {
        self
    }
}

/// A section of words that keeps its owner alive: structures over `SharedWords` borrow nothing.
///
/// ```
/// use pentaglot_succinct::{IntVector, SharedWords, Structure, Supports, WordCursor};
/// let mut file = Vec::new();
/// IntVector::from_values(7, [1, 2, 3]).unwrap().write_words(Supports::AsIs, &mut file).unwrap();
/// let mut cursor = WordCursor::new(SharedWords::new(file));
/// let opened = IntVector::from_words(&mut cursor).unwrap();
/// drop(cursor);
/// assert_eq!(opened.get(2), Some(3));
/// ```
#[derive(Clone)]
pub struct SharedWords {
    // Keeps `start` valid; never read through.
    _owner: Arc<dyn StableWords>,
    start: NonNull<u64>,
    len: usize,
}

// SAFETY: the words are never written to, and the owner is `Send + Sync`.
unsafe impl Send for SharedWords {}
// SAFETY: as above.
unsafe impl Sync for SharedWords {}

impl SharedWords {
    /// All the words of `owner`.
    pub fn new(owner: impl StableWords) -> Self {
        let owner: Arc<dyn StableWords> = Arc::new(owner);
        let words = owner.stable_words();
        let (start, len) = (NonNull::from(words).cast(), words.len());
        SharedWords { _owner: owner, start, len }
    }
}

impl AsRef<[u64]> for SharedWords {
    #[inline]
    fn as_ref(&self) -> &[u64] {
        // SAFETY: `start` and `len` describe a part of the slice that `StableWords` guarantees not to move or
        // change as long as the owner lives. SAFETY: the owner lives as long as `self`.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl Section for SharedWords {
    fn section(&self, range: Range<usize>) -> Option<Self> {
        let words = self.as_ref().get(range)?;
        let (start, len) = (NonNull::from(words).cast(), words.len());
        Some(SharedWords { _owner: Arc::clone(&self._owner), start, len })
    }
}

impl fmt::Debug for SharedWords {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedWords").field("len", &self.len).finish_non_exhaustive()
    }
}
