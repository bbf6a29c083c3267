//! Common parts of the tests of all formats: random schemas and batches, and the suite that every format
//! passes.

#![allow(dead_code, reason = "a build with few formats uses few of these")]
#![allow(clippy::print_stderr, reason = "a failed case says which one it was")]

pub(crate) mod agreement;
pub(crate) mod arbitrary;
mod arrays;
pub(crate) mod asked;
pub(crate) mod columnar;
pub(crate) mod conformance;
pub(crate) mod costly;
mod every_format;
mod exceptions;
mod faults;
#[cfg(any(feature = "npy", feature = "matrix_market"))]
pub(crate) mod plain;
#[cfg(test)]
mod requests;
pub(crate) mod statistics;
mod streams;
mod survival;
pub(crate) mod writing;
