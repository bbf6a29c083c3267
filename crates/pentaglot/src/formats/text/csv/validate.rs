//! Every record, every finding.

use super::read::{CsvDocument, Table, skipped};
use crate::error::{Error, ErrorKind, Result};
use crate::formats::Findings;
use crate::formats::text::sample::explain_guess;

/// Rules: `field-count` (a record of another width), `type` (a field that is not of its column's type), `quote` (text after a
/// closing quote), `truncated` (a quote that is never closed), `utf8`.
pub(super) fn validate(document: &CsvDocument, findings: &mut Findings) -> Result<()> {
    let fields = document.summary.schema.fields();
    let fresh = || Table::new(fields, |_| true, &document.budget);
    let mut records = document.records()?;
    let mut table = fresh()?;
    let mut row = 0u64;
    while !findings.is_full() {
        let place = |error: Error| explain_guess(error.index(row).field("row"), document.guessed);
        match records.next_record() {
            Ok(false) => break,
            Ok(true) if skipped(&records, fields.len()) => continue,
            Ok(true) => {
                let mut broken = false;
                table.read(&records, |error| {
                    if !matches!(error.kind(), ErrorKind::Malformed | ErrorKind::Truncated) {
                        return Err(place(error));
                    }
                    broken = true;
                    findings.error(&place(records.with_line(error)));
                    Ok(())
                })?;
                if broken || table.rows >= 4096 {
                    table = fresh()?;
                }
            }
            Err(error) if matches!(error.kind(), ErrorKind::Malformed | ErrorKind::Truncated) => {
                findings.error(&place(records.with_line(error)));
            }
            Err(error) => return Err(place(error)),
        }
        row += 1;
    }
    Ok(())
}
