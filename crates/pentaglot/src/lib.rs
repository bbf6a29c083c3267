//! Pentaglot reads, writes, checks, explains and converts typed data in five published formats, with Apache Arrow in
//! the middle.
//!
//! ```
//! use pentaglot::{Registry, Source, job};
//! let registry = Registry::default();
//! let source = Source::from_bytes("cities.csv", b"city,people\nBern,134000\n".to_vec());
//! let opened = job::open_source(&registry, source, None, &job::OpenOptions::default())?;
//! let batch = opened.rows(&job::View::default())?.next().unwrap()?;
//! assert_eq!((batch.num_rows(), batch.num_columns()), (1, 2));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Three levels, each usable alone: bytes and codes ([`Source`], [`Sink`], [`cursor`]); the formats' own types
//! ([`formats::dbdf`], [`formats::ds`], [`formats::dynd`], [`formats::bsondf`], [`formats::sds`]); the hub of Arrow rows
//! ([`hub`], [`convert`], [`job`]).

#![cfg_attr(
    not(all(
        feature = "arrow_ipc",
        feature = "parquet",
        feature = "csv",
        feature = "json",
        feature = "json_lines",
        feature = "npy",
        feature = "matrix_market",
        feature = "dbdf",
        feature = "ds",
        feature = "dynd",
        feature = "bsondf",
        feature = "sds",
    )),
    allow(
        dead_code,
        unused_imports,
        reason = "a build with few formats uses few of the parts that they share"
    )
)]

#[macro_use]
mod setters;

mod control;
pub mod convert;
pub mod cursor;
mod error;
pub mod formats;
pub mod hub;
#[cfg(feature = "dynd")]
pub mod identity;
pub mod job;
mod kernels;
mod limits;
pub mod map;
mod pages;
mod redact;
mod registry;
mod remote;
pub mod sink;
mod source;
#[cfg(feature = "dynd")]
pub mod store;
#[cfg(test)]
mod testing;
mod wire;

pub use control::{Control, Progress};
pub use error::{Context, Error, ErrorKind, Hint, Result, Step};
#[cfg(any(feature = "arrow_ipc", feature = "parquet", feature = "ds"))]
pub use formats::guard::panic_is_guarded;
pub use limits::{Budget, Limits, Reservation};
pub use redact::{redacted, redacted_text};
pub use registry::Registry;
pub use remote::{Remote, RemoteObject, RemoteTable};
pub use sink::Sink;
pub use source::{HEAD_BYTES, Packing, ReadAt, Source, SourceReader};

/// The versions of the Arrow crates that are part of this library's interface.
pub mod arrow {
    pub use arrow_array as array;
    pub use arrow_buffer as buffer;
    pub use arrow_schema as schema;
}
