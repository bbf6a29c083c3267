//! Memory that pieces of work use again, one after the other.

use std::sync::{Mutex, PoisonError};

/// Values whose memory the next piece of work uses. The system zeroes new memory page by page, which can cost more than to
/// parse or print what it then holds.
pub(super) struct Kept<T>(Mutex<Vec<T>>);

impl<T> Default for Kept<T> {
    fn default() -> Self {
        Kept(Mutex::default())
    }
}

impl<T: Default> Kept<T> {
    pub(super) fn take(&self) -> T {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).pop().unwrap_or_default()
    }

    pub(super) fn keep(&self, used: T) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(used);
    }
}
