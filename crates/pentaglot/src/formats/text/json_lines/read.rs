//! An open file: its rows are read by `json_rows`.

use super::{ID, outline, schema, validate};
use crate::error::{Context, Result};
use crate::formats::text::json_rows::JsonRows;
use crate::formats::{Document, Findings, Outline, ReadOptions, Summary};
use crate::hub::{Rows, Selection};
use crate::source::Source;

pub(super) struct JsonLinesDocument {
    pub(super) rows: JsonRows,
}

impl JsonLinesDocument {
    pub(super) fn open(source: Source, options: &ReadOptions) -> Result<Self> {
        Ok(JsonLinesDocument { rows: schema::open(source, options)? })
    }
}

impl Document for JsonLinesDocument {
    fn summary(&self) -> &Summary {
        &self.rows.summary
    }

    fn outline(&self) -> Outline {
        outline::outline(&self.rows)
    }

    fn validate(&self, findings: &mut Findings) -> Result<()> {
        validate::validate(&self.rows, findings).in_format(ID)
    }

    fn rows(&self, selection: &Selection) -> Result<Rows> {
        self.rows.rows(selection).in_format(ID)
    }
}
