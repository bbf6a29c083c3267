//! Every row, every finding.

use crate::error::Result;
use crate::formats::Findings;
use crate::formats::text::json_rows::JsonRows;

/// The rules of `JsonRows::validate`; after a row that breaks one, the next line is read.
pub(super) fn validate(rows: &JsonRows, findings: &mut Findings) -> Result<()> {
    rows.validate(findings)
}
