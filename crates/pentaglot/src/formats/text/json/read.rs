//! Open files: an array of records, read by `json_rows`, or an object of columns.

use std::sync::Arc;

use super::columns::ColumnsDocument;
use super::{ID, layout, outline, validate};
use crate::error::{Context, Result};
use crate::formats::text::json_layout::Framing;
use crate::formats::text::json_rows::JsonRows;
use crate::formats::{Document, Findings, Outline, ReadOptions, Summary};
use crate::hub::{Rows, Selection};
use crate::source::Source;

/// An open file.
pub(super) enum JsonDocument {
    Records(Box<JsonRows>),
    Columns(Box<ColumnsDocument>),
}

pub(super) fn open(source: Source, options: &ReadOptions) -> Result<Arc<dyn Document>> {
    Ok(Arc::new(match layout::is_object(&source)? {
        true => JsonDocument::Columns(Box::new(ColumnsDocument::open(&source, options)?)),
        false => JsonDocument::Records(Box::new(JsonRows::open(ID, source, Framing::Array, options)?)),
    }))
}

impl Document for JsonDocument {
    fn summary(&self) -> &Summary {
        match self {
            JsonDocument::Records(rows) => &rows.summary,
            JsonDocument::Columns(columns) => &columns.summary,
        }
    }

    fn outline(&self) -> Outline {
        outline::outline(self)
    }

    fn validate(&self, findings: &mut Findings) -> Result<()> {
        validate::validate(self, findings).in_format(ID)
    }

    fn rows(&self, selection: &Selection) -> Result<Rows> {
        let rows = match self {
            JsonDocument::Records(rows) => rows.rows(selection),
            JsonDocument::Columns(columns) => columns.rows(selection),
        };
        rows.in_format(ID)
    }
}
