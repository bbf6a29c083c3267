//! Token readers and writers that formats share; private.

#[cfg(feature = "bsondf")]
pub(crate) mod bson;
#[cfg(feature = "bsondf")]
pub(crate) mod lz4;
