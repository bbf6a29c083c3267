//! Token readers and writers that formats share; private.

#![warn(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation
)]
#![cfg_attr(
    test,
    allow(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::indexing_slicing,
        clippy::cast_possible_truncation,
        reason = "a test that meets a surprise should stop there"
    )
)]

#[cfg(feature = "bsondf")]
pub(crate) mod bson;
#[cfg(feature = "dynd")]
pub(crate) mod cbor;
pub(crate) mod json;
#[cfg(feature = "bsondf")]
pub(crate) mod lz4;
#[cfg(feature = "ds")]
pub(crate) mod msgpack;
#[cfg(feature = "dynd")]
pub(crate) mod varint;
