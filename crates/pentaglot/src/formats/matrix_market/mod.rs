//! Matrix Market: matrices as text, one entry per line.
//!
//! ```text
//! %%MatrixMarket matrix coordinate real general        the banner: object, format, field, symmetry
//! % comments
//! 3 4 2                                                rows, columns, entries (an array: rows, columns)
//! 1 2 -0.5                                             row, column (from 1), value; an array: values, column by column
//! 3 4 1e10
//! ```
//!
//! | | read | written |
//! |---|---|---|
//! | `coordinate` | sparse rows; explicit zeros and stored order kept, repeats summed as SciPy does | from sparse rows |
//! | `array` | dense rows; kept in memory, or spooled to disk | from dense rows |
//! | `real`, `double` | Float64, correctly rounded | shortest text that parses back |
//! | `integer`, `unsigned-integer` | Int64 (option `integers=uint64`: UInt64); values out of range are errors | yes |
//! | `complex` | `pentaglot.complex` | yes |
//! | `pattern` | Int8, each entry 1, as SciPy does | if it was read from one and every entry is 1 |
//! | `general`, `symmetric`, `skew-symmetric`, `hermitian` | expanded | `general` |
//!
//! Entries are parsed in parallel; those in row order are not sorted. Past `max_alloc` a coordinate file is parsed once per band of rows that fits.

mod cell;
mod damaged;
mod decimal;
mod entries;
mod layout;
mod line;
mod number_text;
mod outline;
mod parse;
mod quick;
mod read;
mod schema;
mod spill;
#[cfg(test)]
mod tests;
mod validate;
mod write;

use std::sync::Arc;

use arrow_schema::SchemaRef;

use crate::error::{Context, Result};
use crate::formats::{
    Confidence, Document, Format, FormatInfo, Head, NULLS, OptionInfo, ReadOptions, TypeLanguage,
    WriteOptions, WritePlan, null_for_nan,
};
use crate::hub::Form;
use crate::source::Source;

use read::MarketDocument;

/// The format Matrix Market.
///
/// ```
/// use pentaglot::formats::{Format, ReadOptions, matrix_market::MatrixMarket};
/// let text = "%%MatrixMarket matrix coordinate real general\n2 3 1\n2 3 0.5\n";
/// let source = pentaglot::Source::from_bytes("small.mtx", text.as_bytes().to_vec());
/// let document = MatrixMarket.open(source, &ReadOptions::default())?;
/// assert_eq!((document.summary().rows, document.summary().nonzeros), (Some(2), Some(1)));
/// # Ok::<(), pentaglot::Error>(())
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct MatrixMarket;

static INFO: FormatInfo = FormatInfo {
    id: "mtx",
    title: "Matrix Market",
    dialects: &[],
    extensions: &["mtx"],
    media_types: &["text/x-matrix-market"],
    forms: &[Form::Sparse, Form::Dense],
    options: &[
        OptionInfo {
            key: "integers",
            side: super::Side::Read,
            values: "int64|uint64",
            default: "int64",
            help: "how the field `integer` is read",
        },
        NULLS,
    ],
    type_language: TypeLanguage::None,
    has_members: false,
    has_whole_columns: false,
    index: None,
    gzip_by_magic: true,
    spec: "https://math.nist.gov/MatrixMarket/formats.html",
};

impl Format for MatrixMarket {
    fn info(&self) -> &'static FormatInfo {
        &INFO
    }

    fn detect(&self, head: &Head<'_>) -> Confidence {
        if has_banner(head.bytes()) { Confidence::Certain } else { Confidence::No }
    }

    fn open(&self, source: Source, options: &ReadOptions) -> Result<Arc<dyn Document>> {
        let document = MarketDocument::open(source, options).in_format(INFO.id)?;
        let document = match options.damaged {
            true => document.of_damaged().in_format(INFO.id)?,
            false => Arc::new(document),
        };
        null_for_nan(document, options)
    }

    fn plan(&self, schema: &SchemaRef, options: &WriteOptions) -> Result<Box<dyn WritePlan>> {
        write::plan(schema, options).in_format(INFO.id)
    }
}

fn has_banner(head: &[u8]) -> bool {
    let banner = head.get(..layout::BANNER.len());
    banner.is_some_and(|banner| banner.eq_ignore_ascii_case(layout::BANNER.as_bytes()))
}
