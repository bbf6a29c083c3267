//! NumPy's arrays: `.npy` (one array) and `.npz` (a zip archive of them; also SciPy's sparse matrices).
//!
//! ```text
//! .npy   \x93NUMPY  version (2)  header_len (2 or 4)  header: {'descr': '<f8', 'fortran_order': False, 'shape': (3, 4), }
//!        spaces to a multiple of 64, newline          values, in C or Fortran order, without gaps
//!
//! .npz   [ local header  name.npy  .npy bytes, stored or deflated ]…   central directory   end record
//! ```
//!
//! | | read | written |
//! |---|---|---|
//! | versions | 1.0, 2.0, 3.0 | the lowest that holds the header, as NumPy does |
//! | dtypes | all but object, `f16`, `c32` and times finer than ns | the same, least significant byte first |
//! | order | C in constant memory, also from a pipe; Fortran by bands | C; Fortran if the native type says so |
//! | shapes | 2-D: dense matrix; 1-D: array; 0-D: value; n-D: array of tensors; structured: table | the same |
//! | archives | stored and deflated members, zip64; several members: `FILE::MEMBER` | stored, or deflated with `compressed=true` |
//! | sparse `.npz` | csr, csc, coo, bsr, dia as one sparse matrix, repeats summed | csr |

mod csr_stream;
mod decode;
mod encode;
mod layout;
mod literal;
mod npz;
mod outline;
mod read;
mod scipy;

#[cfg(test)]
mod tests;
mod types;
mod validate;
mod write;
mod zip;

pub use npz::Npz;

use crate::hub::Selection;
use arrow_schema::SchemaRef;
use std::sync::Arc;

use crate::error::{Context, Result};
use crate::formats::{
    Confidence, Document, Findings, Format, FormatInfo, Head, NULLS, Outline, ReadOptions, Split, Summary,
    TypeLanguage, WriteOptions, WritePlan, null_for_nan, planned, relaxed,
};
use crate::hub::relax::Rules;
use crate::hub::{Form, Rows};
use crate::source::Source;

use layout::Extent;
use read::ArrayFile;

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
        let budget = options.budget.clone();
        let array = ArrayFile::open(Extent::whole(source), INFO.id, &budget).in_format(INFO.id)?;
        let summary = summary(&array, INFO.id);
        null_for_nan(Arc::new(NpyDocument { array, summary }), options)
    }

    fn plan(&self, schema: &SchemaRef, options: &WriteOptions) -> Result<Box<dyn WritePlan>> {
        options.options.word(NULLS.key, &["nan"]).in_format(INFO.id)?;
        let (steps, target) = (write::plan(schema, INFO.id), write::Target::of(schema, INFO.id));
        let (schema, options) = (Arc::clone(schema), options.clone());
        Ok(planned(steps, move |sink| {
            let budget = options.budget.clone();
            let writer = write::NpyWriter::create(sink, schema, target?, budget, options.row_count)
                .in_format(INFO.id)?;
            let rules = Rules { nan_for_null: true, ..Rules::default() };
            Ok(relaxed(Box::new(writer), rules, &options))
        }))
    }
}

struct NpyDocument {
    array: ArrayFile,
    summary: Summary,
}

/// What an array says of itself.
fn summary(array: &ArrayFile, format: &'static str) -> Summary {
    let header = &array.header;
    let mut summary = Summary::new(format, SchemaRef::clone(&array.schema));
    summary.rows = Some(header.rows());
    summary.bytes = array.extent.len;
    summary.part("header", array.extent.base, header.bytes);
    summary.part("data", array.data_offset(), header.data_bytes().unwrap_or(0));
    let shape: Vec<String> = header.shape.iter().map(u64::to_string).collect();
    summary.metadata = vec![
        ("version".to_owned(), format!("{}.0", header.version)),
        ("descr".to_owned(), header.dtype.descr().to_string().trim_matches('\'').to_owned()),
        ("fortran_order".to_owned(), header.fortran_order.to_string()),
        ("shape".to_owned(), format!("({})", shape.join(", "))),
    ];
    summary
}

impl Document for NpyDocument {
    fn summary(&self) -> &Summary {
        &self.summary
    }

    fn splits(&self, wanted: usize) -> Vec<Split> {
        self.array.splits(wanted).unwrap_or_else(|| Split::whole(&self.summary))
    }

    fn outline(&self) -> Outline {
        let bytes = self.array.header.bytes + self.array.header.data_bytes().unwrap_or(0);
        Outline::new("npy", 0, bytes).parts(outline::parts(&self.array))
    }

    fn validate(&self, findings: &mut Findings) -> Result<()> {
        validate::validate(&self.array, findings).in_format(INFO.id)
    }

    fn rows(&self, request: &Selection) -> Result<Rows> {
        named(INFO.id, self.array.rows(request))
    }
}

/// Rows whose errors name the format.
fn named(format: &'static str, rows: Result<Rows>) -> Result<Rows> {
    let rows = rows.in_format(format)?;
    let schema = rows.schema();
    Ok(crate::hub::rows::from_batches(schema, rows.map(move |batch| batch.in_format(format))))
}
