//! Token readers and writers that formats share; private.

#[cfg(any(feature = "npy", feature = "matrix_market"))]
pub(crate) mod spool;
