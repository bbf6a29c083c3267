//! Succinct bit and integer structures, byte-compatible with simple-sds, that open in place.
//!
//! | structure | holds | paper |
//! |---|---|---|
//! | [`RawVector`] | bits | – |
//! | [`IntVector`] | integers of 1 to 64 bits | – |
//! | [`BitVector`] | bits, with rank and select | Vigna, WEA 2008 |
//! | [`SparseVector`] | sorted integers, sets and multisets | Elias 1974, Fano 1971 |
//! | [`RunLengthVector`] | runs of set bits | Sirén 2012 |
//! | [`WaveletMatrix`], [`RunLengthWaveletMatrix`] | integers, with rank and select for each | Claude, Navarro, Ordóñez 2015 |
//!
//! **Storage.** Every structure is generic over its storage: `Vec<u64>` when built, `&[u64]` or [`SharedWords`]
//! when opened in place from a memory map. Opening ([`Structure::from_words`]) checks lengths and reads a few
//! elements, independent of the size; [`Structure::validate`] reads everything.
//!
//! ***Queries** accept any argument and return a number or `None`. Plain, sparse and run-length bit vectors
//! share [`BitQueries`]. Batched forms prefetch, 32 queries at a time.
//!
//! **Index.** Additional data for fast queries, which is not in the file, is built on first use, see
//! [`Indexed`].
//!
//! **Damage.** A damaged file gives wrong answers at worst: no query panics, and no length from a file is used
//! for an allocation before it is checked.
//!
//! **Processors.** POPCNT, BMI2 and AVX-512 are used where they are found at run time; no compiler flags are
//! needed. The environment variable `PENTAGLOT_SUCCINCT_CPU=portable` (or `popcnt`, `bmi2`) limits them, for tests. The
//! crate has no dependencies.
//!
//! ```
//! use pentaglot_succinct::{BitQueries, SparseVector, Structure, Supports, WordCursor};
//! let starts = SparseVector::from_sorted(1_000_000, &[0, 17, 4096, 999_999]).unwrap();
//! let file: Vec<u64> = starts.to_words(Supports::Full); // what simple-sds writes
//! let opened = SparseVector::from_words(&mut WordCursor::new(&file[..])).unwrap();
//! assert_eq!(opened.predecessor(5000), Some(4096));
//! ```

#[cfg(not(target_pointer_width = "64"))]
compile_error!("vectors have up to 2^64 bits: a word's number must fit a `usize`");

mod bit_vector;
mod bits;
mod cpu;
mod cursor;
mod error;
mod index;
mod int_vector;
mod layout;
mod queries;
mod raw_vector;
mod run_length;
mod sparse;
mod storage;
mod stream;
mod wavelet;

pub use bit_vector::{BitVector, Positions, Runs};
pub use cursor::WordCursor;
pub use error::Error;
pub use index::Indexed;
pub use int_vector::{IntVector, Items};
pub use layout::{ByteSink, Finding, Part, Severity, Structure, Supports, Walk, WordSink};
pub use queries::{BitQueries, Zeros};
pub use raw_vector::{Bools, RawVector};
pub use run_length::{RunLengthBuilder, RunLengthOnes, RunLengthRuns, RunLengthVector};
pub use sparse::{SparseBuilder, SparseOptions, SparseRuns, SparseValues, SparseVector};
pub use storage::{Section, SharedWords, StableWords, Words};
pub use stream::{
    BitVectorWriter, IntVectorWriter, RawVectorWriter, Replay, RunLengthVectorWriter, SparseVectorWriter,
    write_bits, write_ints, write_raw, write_sparse,
};
pub use wavelet::{
    DEFAULT_ALPHABET_LIMIT, Level, RunLengthWaveletMatrix, Values, Wavelet, WaveletCore, WaveletMatrix,
};
