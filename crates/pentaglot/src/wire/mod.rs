//! Token readers and writers that formats share; private.

#[cfg(any(feature = "arrow_ipc", feature = "parquet"))]
pub(crate) mod arrow_flatbuffers;
#[cfg(any(feature = "arrow_ipc", feature = "parquet"))]
pub(crate) mod guard;
