//! Token readers and writers that formats share; private.

#[cfg(feature = "dynd")]
pub(crate) mod cbor;
#[cfg(feature = "dynd")]
pub(crate) mod varint;
