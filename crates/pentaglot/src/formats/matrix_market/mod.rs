//! Matrix Market: matrices as text, one entry a line.
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
//! | `array` | dense rows; held, or spooled to disk | from dense rows |
//! | `real`, `double` | Float64, correctly rounded | shortest text that reads back |
//! | `integer`, `unsigned-integer` | Int64 (`-O integers=uint64`: UInt64); what does not fit is an error | yes |
//! | `complex` | `pentaglot.complex` | yes |
//! | `pattern` | Int8, each entry 1, as SciPy does | if it was read from one and every entry is 1 |
//! | `general`, `symmetric`, `skew-symmetric`, `hermitian` | expanded | `general` |
//!
//! Entries are parsed in parallel. Past `max_alloc` a coordinate file is parsed once per band of rows that fits.

mod layout;
mod outline;
mod parse;
mod read;
#[cfg(test)]
mod tests;
mod types;
mod validate;
mod write;

use arrow_schema::SchemaRef;
use std::sync::Arc;

use crate::error::{Context, Result};
use crate::formats::{
    Confidence, Document, Findings, Format, FormatInfo, Head, OptionInfo, Outline, ReadOptions, Summary,
    TypeLanguage, WriteOptions, WritePlan, planned, relaxed,
};
use crate::hub::Selection;
use crate::hub::relax::Rules;
use crate::hub::{Form, Rows};
use crate::source::Source;

use layout::{Header, Kind, Layout};
use parse::Body;

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
    options: &[OptionInfo {
        key: "integers",
        side: super::Side::Read,
        values: "int64|uint64",
        default: "int64",
        help: "how the field `integer` is read",
    }],
    type_language: TypeLanguage::None,
    has_members: false,
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
        Ok(Arc::new(document))
    }

    fn plan(&self, schema: &SchemaRef, options: &WriteOptions) -> Result<Box<dyn WritePlan>> {
        let (steps, kind) = write::plan(schema);
        let (schema, options) = (Arc::clone(schema), options.clone());
        Ok(planned(steps, move |sink| {
            let writer = write::MarketWriter::create(sink, &schema, kind, options.budget.clone());
            let writer = writer.in_format(INFO.id)?;
            let rules = Rules { nan_for_null: true, ..Rules::default() };
            Ok(relaxed(Box::new(writer), rules, &options))
        }))
    }
}

fn has_banner(head: &[u8]) -> bool {
    let banner = head.get(..layout::BANNER.len());
    banner.is_some_and(|banner| banner.eq_ignore_ascii_case(layout::BANNER.as_bytes()))
}

struct MarketDocument {
    body: Body,
    summary: Summary,
}

impl MarketDocument {
    fn open(source: Source, options: &ReadOptions) -> Result<MarketDocument> {
        let source = source.seekable_if(has_banner)?;
        let mut header = Header::read(&source)?;
        if options.options.word("integers", &["int64", "uint64"])? == Some("uint64")
            && header.kind == Kind::Integer
        {
            header.kind = Kind::Unsigned;
        }
        let mut summary = Summary::new(INFO.id, read::schema(&header)?);
        summary.rows = Some(header.rows);
        summary.bytes = source.len();
        summary.part("header", 0, header.body_offset);
        summary.part(
            "entries",
            header.body_offset,
            source.len().unwrap_or(0).saturating_sub(header.body_offset),
        );
        summary.metadata = vec![
            ("format".to_owned(), header.layout.word().to_owned()),
            ("field".to_owned(), header.kind.word().to_owned()),
            ("symmetry".to_owned(), header.symmetry.word().to_owned()),
        ];
        if header.layout == Layout::Coordinate {
            // Entries off the diagonal of a symmetric matrix stand for two; how many there are is not known yet.
            summary.nonzeros = (header.symmetry == layout::Symmetry::General).then_some(header.entries);
            summary.metadata.push(("entries".to_owned(), header.entries.to_string()));
            summary.metadata.push(("repeats".to_owned(), "summed, as SciPy does".to_owned()));
        }
        let comments =
            header.comments.iter().map(|comment| ("comment".to_owned(), comment.trim().to_owned()));
        summary.metadata.extend(comments.filter(|(_, comment)| !comment.is_empty()));
        let body = Body { source, header, budget: options.budget.clone(), control: options.control.clone() };
        Ok(MarketDocument { body, summary })
    }
}

impl Document for MarketDocument {
    fn summary(&self) -> &Summary {
        &self.summary
    }

    fn outline(&self) -> Outline {
        outline::outline(&self.body.source, &self.body.header)
    }

    fn validate(&self, findings: &mut Findings) -> Result<()> {
        validate::validate(&self.body, findings).in_format(INFO.id)
    }

    fn rows(&self, request: &Selection) -> Result<Rows> {
        let rows = read::read(&self.body, request).in_format(INFO.id)?;
        let schema = rows.schema();
        Ok(crate::hub::rows::from_batches(schema, rows.map(|batch| batch.in_format(INFO.id))))
    }
}
