//! [`Spare`]: memory that pieces of work use again, one after the other.

use std::sync::{Mutex, PoisonError};

/// Values whose memory the next piece of work uses. The system zeroes new memory page by page, which can cost more than to
/// parse or print what it then holds. What is kept is not taken from the budget: the caller bounds it.
pub(crate) struct Spare<T>(Mutex<Vec<T>>);

impl<T> Default for Spare<T> {
    fn default() -> Self {
        Spare(Mutex::default())
    }
}

impl<T: Default> Spare<T> {
    /// A value that was kept, or a new one.
    pub(crate) fn take(&self) -> T {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).pop().unwrap_or_default()
    }

    /// Keeps a value that is not needed any more.
    pub(crate) fn keep(&self, used: T) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(used);
    }
}
