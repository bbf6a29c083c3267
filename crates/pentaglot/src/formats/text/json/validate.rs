//! Every value, every finding.

use super::read::JsonDocument;
use crate::error::Result;
use crate::formats::Findings;

/// The rules of `JsonRows::validate`. An object of columns is checked for `length`, `labels` and `repeated-key` when it is
/// opened; after that each column is read up to its first fault.
pub(super) fn validate(document: &JsonDocument, findings: &mut Findings) -> Result<()> {
    match document {
        JsonDocument::Records(rows) => rows.validate(findings),
        JsonDocument::Columns(columns) => columns.validate(findings),
    }
}
