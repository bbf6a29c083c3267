//! Every record, every finding.

use super::read::{CsvDocument, Table, skipped};
use crate::error::{ErrorKind, Result};
use crate::formats::Findings;

/// Rules: `field-count` (a record of another width), `type` (a field that is not of its column's type), `quote` (text after a
/// closing quote), `truncated` (a quote that is never closed), `utf8`, `encoding`.
pub(super) fn validate(document: &CsvDocument, findings: &mut Findings) -> Result<()> {
    let fields = document.decoded_fields();
    let fresh = || Table::new(&fields, |_| true, &document.dialect, &document.budget);
    let mut records = document.records()?;
    let mut table = fresh()?;
    let mut row = 0u64;
    while !findings.is_full() {
        match records.next_record() {
            Ok(false) => break,
            Ok(true) if skipped(&records, fields.len()) => continue,
            Ok(true) => {
                let mut broken = false;
                table.read(&records, |error| {
                    if !matches!(error.kind(), ErrorKind::Malformed | ErrorKind::Truncated) {
                        return Err(error.index(row).field("row"));
                    }
                    broken = true;
                    findings.error(&document.explain(error, row, &records));
                    Ok(())
                })?;
                if broken || table.rows >= 4096 {
                    table = fresh()?;
                }
            }
            Err(error) if matches!(error.kind(), ErrorKind::Malformed | ErrorKind::Truncated) => {
                findings.error(&document.explain(error, row, &records));
            }
            Err(error) => return Err(error.index(row).field("row")),
        }
        row += 1;
    }
    Ok(())
}
