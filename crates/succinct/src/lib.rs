//! Succinct bit and integer structures.
#[macro_use]
mod cpu;
mod bit_vector;
mod bits;
mod cursor;
mod error;
mod index;
mod int_vector;
mod layout;
mod queries;
mod raw_vector;
mod storage;

pub use bit_vector::{BitVector, Positions, Runs};
pub use cursor::WordCursor;
pub use error::Error;
pub use index::Indexed;
pub use int_vector::{IntVector, Items};
pub use layout::{ByteSink, Finding, Part, Severity, Structure, Supports, Walk, WordSink};
pub use queries::BitQueries;
pub use raw_vector::{Bools, RawVector};
pub use storage::{Section, SharedWords, StableWords};
