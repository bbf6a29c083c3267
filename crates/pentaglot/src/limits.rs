//! What a user allows a file to cost ([`Limits`]) and what is left of it while reading ([`Budget`]).

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::{Error, Result};

/// What reading a file may cost at the most.
///
/// ```
/// let mut limits = pentaglot::Limits::default();
/// limits.max_alloc = 64 << 20;
/// assert!(limits.budget().take(65 << 20).is_err());
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Bytes of memory that one open file may hold at a time.
    pub max_alloc: u64,
    /// How deep types and values may nest.
    pub max_depth: u32,
    /// How many bytes one compressed byte may become (checked past the first mebibyte).
    pub max_ratio: u64,
    /// How many rows or elements that take no bytes in the file are produced.
    pub max_free_rows: u64,
    /// How many bytes of a stream are spooled, in memory or a temporary file, where it must be read at any offset.
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
    /// A fresh budget under these limits.
    pub fn budget(&self) -> Budget {
        Budget { limits: Arc::new(self.clone()), left: Arc::new(AtomicU64::new(self.max_alloc)) }
    }

    /// Errs if `depth` is past `max_depth`.
    pub fn check_depth(&self, depth: u32) -> Result<()> {
        if depth > self.max_depth {
            return Err(Error::limit(
                "max-depth",
                self.max_depth,
                format!("more levels, at least {depth}, are"),
            )
            .rule("depth"));
        }
        Ok(())
    }

    /// Errs if `rows` rows that cost no bytes are more than allowed.
    pub fn check_free_rows(&self, rows: u64) -> Result<()> {
        if rows > self.max_free_rows {
            return Err(Error::limit("max-free-rows", self.max_free_rows, format!("{rows} are")));
        }
        Ok(())
    }

    /// Errs if `input` compressed bytes became too many.
    pub fn check_ratio(&self, input: u64, output: u64) -> Result<()> {
        let free = 1 << 20;
        if output > free && output / self.max_ratio.max(1) > input {
            let found = format!("{input} compressed bytes that become {output} or more are");
            return Err(Error::limit("max-ratio", self.max_ratio, found));
        }
        Ok(())
    }
}

/// What is left of the limits while one file is open. Clones share what is left.
#[derive(Debug, Clone)]
pub struct Budget {
    limits: Arc<Limits>,
    left: Arc<AtomicU64>,
}

impl Budget {
    /// The limits that this budget was made from.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Takes `bytes` of memory from the budget, for as long as they are held.
    pub fn take(&self, bytes: u64) -> Result<()> {
        self.left
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(bytes))
            .map(drop)
            .map_err(|left| self.refusal(bytes, left))
    }

    /// Gives back what [`take`](Self::take) took.
    pub fn give(&self, bytes: u64) {
        self.left.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Errs if `bytes` could not be taken now; takes nothing.
    pub fn check(&self, bytes: u64) -> Result<()> {
        let left = self.left.load(Ordering::Relaxed);
        if bytes > left { Err(self.refusal(bytes, left)) } else { Ok(()) }
    }

    #[cold]
    fn refusal(&self, bytes: u64, left: u64) -> Error {
        let used = self.limits.max_alloc.saturating_sub(left);
        let needed = if used == 0 {
            format!("{bytes} bytes are")
        } else {
            format!("{bytes} more than the {used} in use are")
        };
        Error::limit("max-alloc", self.limits.max_alloc, needed)
    }
}

impl Default for Budget {
    fn default() -> Self {
        Limits::default().budget()
    }
}
