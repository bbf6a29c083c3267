//! A format ([`Format`]), an open file ([`Document`]) and a file being written ([`Writer`]); then one folder per
//! format, with the same files in each: `mod.rs` (what it is, detection, options), `schema.rs` (its types and Arrow's),
//! `layout.rs`, `read.rs` (`impl Document`), `write.rs` (`plan`), `validate.rs`, `outline.rs`, `tests.rs`.
//!
//! The order of calls, as a small grammar:
//!
//! ```text
//! reading := detect? open (summary | outline | validate | rows)*     (a stream: one of validate and rows, once)
//! writing := plan create (write* | write_columns) finish      (the plan is the object that creates the writer)
//! ```

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

#[cfg(any(feature = "arrow_ipc", feature = "parquet", feature = "dynd"))]
pub(crate) mod arrow_flatbuffers;
#[cfg(any(feature = "npy", feature = "matrix_market"))]
pub(crate) mod column_major;
mod detect;
mod findings;
#[cfg(any(feature = "arrow_ipc", feature = "parquet", feature = "ds"))]
pub(crate) mod guard;
mod nan;
mod options;
mod outline;
mod planned;
#[cfg(any(feature = "csv", feature = "ds", feature = "dynd", feature = "json", feature = "json_lines"))]
pub(crate) mod row_output;
#[cfg(any(feature = "ds", feature = "sds"))]
mod side_index;
mod splits;
mod summary;

#[cfg(feature = "arrow_ipc")]
pub mod arrow_ipc;
#[cfg(feature = "bsondf")]
pub mod bsondf;
#[cfg(feature = "dbdf")]
pub mod dbdf;
#[cfg(feature = "ds")]
pub mod ds;
#[cfg(feature = "dynd")]
pub mod dynd;
#[cfg(feature = "matrix_market")]
pub mod matrix_market;
#[cfg(feature = "npy")]
pub mod npy;
#[cfg(feature = "npy")]
pub mod npz;
#[cfg(feature = "parquet")]
pub mod parquet;
#[cfg(feature = "sds")]
pub mod sds;
#[cfg(any(feature = "csv", feature = "json", feature = "json_lines"))]
pub mod text;

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;

pub(crate) use detect::foreign;
pub use detect::{Confidence, Head};
pub use findings::{Finding, Findings, Severity};
#[cfg(any(feature = "dbdf", feature = "npy", feature = "matrix_market"))]
pub(crate) use nan::{NULLS, null_for_nan};
pub use options::{OptionInfo, OptionMap, ReadOptions, Side, WriteOptions};
pub use outline::{Expand, Node, Outline, Strided};
pub(crate) use planned::{ChangedRows, allowed, planned, planned_as, relaxed};
pub use splits::{ColumnStatistics, Split, Statistics};
pub use summary::{MissingPart, Part, Summary};

use crate::error::Result;
use crate::hub::filter::Interval;
use crate::hub::{Form, Plan, Rows, Selection};
use crate::sink::Sink;
use crate::source::Source;

/// A format: its name, its detection, and how to open and write it. Object-safe and stateless.
pub trait Format: Send + Sync {
    /// Names, extensions, options.
    fn info(&self) -> &'static FormatInfo;

    /// Media types of dialects, if they have their own; the first of a dialect is the one to send.
    fn dialect_media_types(&self) -> &'static [(&'static str, &'static str)] {
        &[]
    }

    /// The media type of a dialect, or of the default one.
    fn media_type(&self, dialect: Option<&str>) -> Option<&'static str> {
        let dialects = self.info().dialects.iter();
        let dialect =
            dialect.or_else(|| dialects.filter(|dialect| dialect.write).map(|dialect| dialect.name).next());
        match self.dialect_media_types() {
            [] => self.info().media_types.first().copied(),
            own => own.iter().find(|(name, _)| Some(*name) == dialect).map(|(_, media_type)| *media_type),
        }
    }

    /// Whether files keep extension types of other programs. Ours are the business of each plan.
    fn keeps_extensions(&self) -> bool {
        false
    }

    /// Whether these bytes look like this format. The work is bounded; never fails.
    fn detect(&self, head: &Head<'_>) -> Confidence;

    /// Opens a file. Reads only headers, if the format has them.
    fn open(&self, source: Source, options: &ReadOptions) -> Result<Arc<dyn Document>>;

    /// The effect of writing rows of this schema on each field. A field that cannot be written is an `Impossible` step;
    /// `Err` is for invalid options.
    fn plan(&self, schema: &SchemaRef, options: &WriteOptions) -> Result<Box<dyn WritePlan>>;

    /// Plans a file of several members; `None` if files of this format have none that are written one by one.
    fn archive(&self, options: &WriteOptions) -> Result<Option<Box<dyn ArchivePlan>>> {
        let _ = options;
        Ok(None)
    }
}

/// A file of several members that is planned but not started.
pub trait ArchivePlan: Send {
    /// Plans one more member. Gives what writing its rows does to each field.
    fn member(&mut self, name: &str, schema: &SchemaRef) -> Plan;

    /// Starts the file.
    fn create(self: Box<Self>, sink: Sink) -> Result<Box<dyn Archive>>;
}

/// A file of several members that is being written.
pub trait Archive: Send {
    /// Writes the next of the planned members. It is the same data as in a file of its own.
    fn member(&mut self, rows: Rows) -> Result<u64>;

    /// Ends the file; only now does it appear under its name.
    fn finish(self: Box<Self>) -> Result<Written>;
}

/// A file that is planned but not started: its steps can be shown, and [`create`](Self::create) carries them
/// out.
pub trait WritePlan: Send {
    /// The effect on each field.
    fn plan(&self) -> &Plan;

    /// The dialect that is written, if the options do not name it and the name of the output decides it.
    fn dialect(&self) -> Option<&'static str> {
        None
    }

    /// Starts the file. Returns an error if a step is impossible.
    fn create(self: Box<Self>, sink: Sink) -> Result<Box<dyn Writer>>;
}

/// An open file. Shared between threads: [`rows`](Self::rows) may be called from several at once.
pub trait Document: Send + Sync {
    /// The content of the header: shape, schema, rows, parts.
    fn summary(&self) -> &Summary;

    /// Statistics of columns that the file stores, so that values need not be read.
    fn statistics(&self) -> Statistics {
        Statistics::of(self.summary())
    }

    /// At most about `wanted` ranges of rows that together cover all rows and can be read in parallel at a
    /// reasonable cost; one range if the format cannot be divided. A document that is known to have no rows has no
    /// split.
    fn splits(&self, wanted: usize) -> Vec<Split> {
        let _ = wanted;
        Split::whole(self.summary())
    }

    /// The rows among which all are whose values lie in these intervals, as ranges in order. `None`, which is the default:
    /// the document cannot tell without reading values.
    fn candidates(&self, intervals: &[Interval]) -> Result<Option<Vec<std::ops::Range<u64>>>> {
        let _ = intervals;
        Ok(None)
    }

    /// Whether the rows of one column are read for about the price of its bytes, so that a writer may ask for the columns one
    /// by one, or for a sparse matrix twice. By default they are not.
    fn has_columns_apart(&self) -> bool {
        false
    }

    /// Named byte ranges, expanded lazily.
    fn outline(&self) -> Outline;

    /// Checks every value against every rule of the format and continues after a finding. `Err` is for errors
    /// that the file does not cause (I/O, limits).
    fn validate(&self, findings: &mut Findings) -> Result<()>;

    /// The selected rows, as a stream. The selection must be one of this document.
    fn rows(&self, selection: &Selection) -> Result<Rows>;
}

impl dyn Document + '_ {
    /// All rows and columns, to be narrowed.
    pub fn selection(&self) -> Selection {
        let summary = self.summary();
        Selection::new(&summary.schema, summary.rows)
    }

    /// All rows.
    pub fn all_rows(&self) -> Result<Rows> {
        self.rows(&self.selection())
    }
}

/// A file being written.
pub trait Writer: Send {
    /// Writes some rows; they have the schema that the file was created with.
    fn write(&mut self, rows: &RecordBatch) -> Result<()>;

    /// Writes all rows, column by column, instead of [`write`](Self::write): for a format that would otherwise hold or spool the
    /// rows until the last has come. `false`, the default: nothing was written, since the file is written from rows.
    fn write_columns(&mut self, columns: &ColumnReader<'_>) -> Result<bool> {
        let _ = columns;
        Ok(false)
    }

    /// Ends the file; only now does it appear under its name.
    fn finish(self: Box<Self>) -> Result<Written>;
}

/// Rows whose columns can be read one by one, and more than once.
#[derive(Clone, Copy)]
pub struct ColumnReader<'r> {
    /// The number of rows.
    pub rows: u64,
    /// The number of stored entries of a sparse matrix, at the most, if it is known.
    pub most_entries: Option<u64>,
    /// All rows of the column at an index, alone. Called from any thread.
    pub read: &'r (dyn Fn(usize) -> Result<Rows> + Sync),
}

/// The result of writing a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Written {
    /// Rows.
    pub rows: u64,
    /// Bytes, before compression.
    pub bytes: u64,
    /// Notes for the user.
    pub notes: Vec<String>,
}

impl Written {
    /// `rows` rows in `bytes` bytes, without notes.
    pub fn new(rows: u64, bytes: u64) -> Self {
        Written { rows, bytes, notes: Vec::new() }
    }
}

/// The static description of a format.
#[derive(Debug)]
pub struct FormatInfo {
    /// The id that names the format.
    pub id: &'static str,
    /// The full name.
    pub title: &'static str,
    /// The dialects; the first that can be written is the default on write.
    pub dialects: &'static [DialectInfo],
    /// File extensions, without the dot, the usual one first.
    pub extensions: &'static [&'static str],
    /// Media types.
    pub media_types: &'static [&'static str],
    /// The forms that a writer accepts, the preferred one first.
    pub forms: &'static [Form],
    /// The options of the format.
    pub options: &'static [OptionInfo],
    /// The language of the type text for reading (`ReadOptions::type_text`).
    pub type_language: TypeLanguage,
    /// Whether files have members that can be opened one by one.
    pub has_members: bool,
    /// Whether a table has each of its columns in one buffer: all rows at once are then read fastest, if all are kept.
    pub has_whole_columns: bool,
    /// Builds the side index that lets a reader seek, if the format has one.
    pub index: Option<IndexBuilder>,
    /// Whether compression around the file is detected by its magic number; otherwise only by the name.
    pub gzip_by_magic: bool,
    /// The address of the specification.
    pub spec: &'static str,
}

impl FormatInfo {
    /// Whether compression around a file of this dialect is detected by its magic number. If any bytes are a valid
    /// file, it is detected only by the name.
    pub fn is_packed_by_magic(&self, dialect: Option<&str>) -> bool {
        let takes_any_bytes =
            self.dialects.iter().any(|known| Some(known.name) == dialect && known.takes_any_bytes);
        self.gzip_by_magic && !takes_any_bytes
    }
}

/// Builds the bytes of a side index of a file.
pub type IndexBuilder = fn(&Source, &ReadOptions) -> Result<Vec<u8>>;

/// The language of the type text for reading a format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum TypeLanguage {
    /// None: files store their types.
    None,
    /// Arrow type text: `job` translates from the other languages.
    Arrow,
    /// The format's own.
    Own,
}

/// One dialect of a format.
#[derive(Debug)]
pub struct DialectInfo {
    /// The name after the colon.
    pub name: &'static str,
    /// A short description.
    pub title: &'static str,
    /// Whether it is read.
    pub read: bool,
    /// Whether it is written.
    pub write: bool,
    /// Whether any bytes are a valid file.
    pub takes_any_bytes: bool,
}
