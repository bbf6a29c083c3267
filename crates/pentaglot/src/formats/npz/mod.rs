//! NumPy's archives: `.npz`, a zip archive of `.npy` files; also SciPy's sparse matrices.
//!
//! ```text
//! [ local header  name.npy  .npy bytes, stored or deflated ]…   central directory   end record
//! ```
//!
//! | | read | written |
//! |---|---|---|
//! | archives | stored and deflated members, zip64; several members: `FILE::MEMBER`, or all at once | stored, or deflated with `compressed=true` |
//! | sparse | csr, csc, coo, bsr, dia as one sparse matrix, repeats summed | the layout of the input, else csr |
//!
//! Members are read and written with the codec of `formats/npy`.

mod blocks;
mod by_column;
mod csr_stream;
mod damaged;
mod layout;
mod outline;
mod read;
mod schema;
mod scipy;
mod sparse_write;
#[cfg(test)]
mod tests;
mod validate;
mod write;
mod zip_write;

use std::sync::Arc;

use arrow_schema::SchemaRef;

use crate::error::{Context, Result};
use crate::formats::{
    ArchivePlan, Confidence, Document, Format, FormatInfo, Head, NULLS, OptionInfo, ReadOptions, Side,
    TypeLanguage, WriteOptions, WritePlan, null_for_nan,
};
use crate::hub::Form;
use crate::source::Source;

use read::NpzDocument;

/// The format `.npz`.
///
/// ```
/// use pentaglot::formats::{Format, ReadOptions, npz::Npz};
/// let source = pentaglot::Source::from_bytes("not.npz", b"PK".to_vec());
/// let error = Npz.open(source, &ReadOptions::default()).err().unwrap();
/// assert_eq!(error.to_string(), "npz: at byte 2, end: expected a zip end record, found none");
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct Npz;

/// How a sparse matrix is written.
const LAYOUT: OptionInfo = OptionInfo {
    key: "layout",
    side: Side::Write,
    values: "csr|csc|coo",
    default: "that of the input, else csr",
    help: "how SciPy holds a sparse matrix",
};

static INFO: FormatInfo = FormatInfo {
    id: "npz",
    title: "NumPy archive, also SciPy sparse matrix",
    dialects: &[],
    extensions: &["npz"],
    media_types: &["application/x-npz"],
    forms: &[Form::Sparse, Form::Dense, Form::Array, Form::Value, Form::Table],
    options: &[
        OptionInfo {
            key: "compressed",
            side: Side::Write,
            values: "true|false",
            default: "false",
            help: "deflate the members on writing",
        },
        LAYOUT,
        NULLS,
    ],
    type_language: TypeLanguage::None,
    has_members: true,
    has_whole_columns: false,
    index: None,
    gzip_by_magic: true,
    spec: "https://numpy.org/doc/stable/reference/generated/numpy.savez.html",
};

impl Format for Npz {
    fn info(&self) -> &'static FormatInfo {
        &INFO
    }

    fn detect(&self, head: &Head<'_>) -> Confidence {
        let bytes = head.bytes();
        let by_name = head.has_extension(INFO.extensions);
        if bytes.starts_with(&layout::LOCAL_MAGIC) {
            let size = |at: usize| {
                bytes.get(at..at + 2).map_or(0, |size| {
                    size.iter().rev().fold(0usize, |sum, byte| sum << 8 | usize::from(*byte))
                })
            };
            let name = bytes.get(30..30 + size(26)).unwrap_or_default();
            return match name.ends_with(b".npy") {
                true => Confidence::Certain,
                false if by_name => Confidence::Likely,
                false => Confidence::No,
            };
        }
        if bytes.starts_with(&layout::END_MAGIC) && by_name { Confidence::Likely } else { Confidence::No }
    }

    fn open(&self, source: Source, options: &ReadOptions) -> Result<Arc<dyn Document>> {
        let document = NpzDocument::open(source, options).in_format(INFO.id)?;
        null_for_nan(Arc::new(document), options)
    }

    fn plan(&self, schema: &SchemaRef, options: &WriteOptions) -> Result<Box<dyn WritePlan>> {
        write::plan(schema, options).in_format(INFO.id)
    }

    fn archive(&self, options: &WriteOptions) -> Result<Option<Box<dyn ArchivePlan>>> {
        write::archive(options).in_format(INFO.id).map(Some)
    }
}
