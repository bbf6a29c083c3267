//! NumPy's arrays: `.npy`.
//!
//! ```text
//! .npy   \x93NUMPY  version (2)  header_len (2 or 4)  header: {'descr': '<f8', 'fortran_order': False, 'shape': (3, 4), }
//!        spaces to a multiple of 64, newline          values, in C or Fortran order, without gaps
//! ```
//!
//! | | read | written |
//! |---|---|---|
//! | versions | 1.0, 2.0, 3.0 | the lowest that holds the header, as NumPy does |
//! | dtypes | all but object, `f16`, `c32` and times finer than ns | the same, least significant byte first |
//! | order | C in constant memory, also from a pipe; Fortran by bands | C; Fortran if the native type says so |
//! | shapes | 2-D: dense matrix; 1-D: array; 0-D: value; n-D: array of tensors; structured: table | the same |

pub(super) mod decode;
pub(super) mod encode;
pub(super) mod layout;
mod literal;
pub(super) mod outline;
pub(super) mod read;
pub(super) mod schema;
#[cfg(test)]
pub(super) mod tests;
pub(super) mod types;
pub(super) mod validate;
pub(super) mod write;

use std::sync::Arc;

use arrow_schema::SchemaRef;

use crate::error::{Context, Result};
use crate::formats::{
    Confidence, Document, Format, FormatInfo, Head, NULLS, ReadOptions, TypeLanguage, WriteOptions,
    WritePlan, null_for_nan,
};
use crate::hub::Form;
use crate::source::Source;

use read::NpyDocument;

/// The format `.npy`.
///
/// ```
/// use pentaglot::formats::{Format, ReadOptions, npy::Npy};
/// let mut file = b"\x93NUMPY\x01\x00\x3a\x00{'descr': '<i2', 'fortran_order': False, 'shape': (2,), }\n".to_vec();
/// file.extend(b"\x07\x00\x08\x00");
/// let source = pentaglot::Source::from_bytes("two.npy", file);
/// let document = Npy.open(source, &ReadOptions::default())?;
/// assert_eq!(document.summary().rows, Some(2));
/// # Ok::<(), pentaglot::Error>(())
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct Npy;

static INFO: FormatInfo = FormatInfo {
    id: "npy",
    title: "NumPy array",
    dialects: &[],
    extensions: &["npy"],
    media_types: &["application/x-npy"],
    forms: &[Form::Dense, Form::Array, Form::Value, Form::Table],
    options: &[NULLS],
    type_language: TypeLanguage::None,
    has_members: false,
    has_whole_columns: false,
    index: None,
    gzip_by_magic: true,
    spec: "https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html",
};

impl Format for Npy {
    fn info(&self) -> &'static FormatInfo {
        &INFO
    }

    fn detect(&self, head: &Head<'_>) -> Confidence {
        if head.bytes().starts_with(&layout::MAGIC) { Confidence::Certain } else { Confidence::No }
    }

    fn open(&self, source: Source, options: &ReadOptions) -> Result<Arc<dyn Document>> {
        let document = NpyDocument::open(source, options).in_format(INFO.id)?;
        null_for_nan(Arc::new(document), options)
    }

    fn plan(&self, schema: &SchemaRef, options: &WriteOptions) -> Result<Box<dyn WritePlan>> {
        write::plan(schema, options).in_format(INFO.id)
    }
}
