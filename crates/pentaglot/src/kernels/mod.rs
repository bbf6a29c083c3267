//! The hot loops that formats share, and the only place for this crate's unsafe code: loops that need run-time CPU
//! dispatch, or writes into uninitialised memory. One file per family; each unsafe loop has a plain version, which
//! tests compare it with and other processors run. Every function here is safe to call: the preconditions of its unsafe
//! blocks are checked first.

#[cfg(any(feature = "bsondf", feature = "dynd"))]
pub(crate) mod arrays;
#[cfg(feature = "dbdf")]
pub(crate) mod csr;
#[cfg(feature = "bsondf")]
pub(crate) mod lz4;
#[cfg(feature = "bsondf")]
pub(crate) mod lz4_search;
#[cfg(feature = "dynd")]
pub(crate) mod records;
#[cfg(feature = "ds")]
pub(crate) mod rows;
#[cfg(feature = "bsondf")]
pub(crate) mod scan;
#[cfg(feature = "dynd")]
pub(crate) mod slices;
