//! The hot loops that need unchecked memory access or run-time CPU dispatch: the fence round unsafe code.
//!
//! One file per family. Every function here is safe to call: what its unsafe blocks need is checked first.

#[cfg(feature = "dynd")]
pub(crate) mod records;
