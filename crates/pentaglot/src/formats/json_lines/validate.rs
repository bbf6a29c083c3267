//! Every row, every finding.

use super::read::{BATCH_CELLS, JsonLinesDocument};
use crate::error::{Error, ErrorKind, Result};
use crate::formats::Findings;
use crate::hub::json::decode::Record;
use crate::wire::sample::explain_guess;

/// Rules: `type` (a value that is not of its column's type), `unknown-key`, `missing-key`, `repeated-key`, `utf8`, `surrogate`,
/// `malformed` and `truncated` (no JSON), `byte-order-mark` (a warning).
pub(super) fn validate(document: &JsonLinesDocument, findings: &mut Findings) -> Result<()> {
    let mut scanner = document.scanner()?;
    if scanner.offset() > 0 {
        let error = Error::malformed("no byte order mark before JSON", "one").at(0).rule("byte-order-mark");
        findings.warning(&error);
    }
    let fresh = || Record::new(&document.fields, |_| true, &document.budget);
    let mut record = fresh()?;
    let mut row = 0u64;
    while !findings.is_full() && scanner.skip_space()?.is_some() {
        let result = record.read(&mut scanner).and_then(|()| scanner.end_line());
        match result {
            Ok(()) => {}
            Err(error) if matches!(error.kind(), ErrorKind::Malformed | ErrorKind::Truncated) => {
                let error = scanner.with_line(error).index(row).field("row");
                findings.error(&explain_guess(error, document.guessed));
                scanner.skip_line()?;
                record = fresh()?;
            }
            Err(error) => return Err(error.index(row).field("row")),
        }
        row += 1;
        // Where there are many columns, fewer rows are held.
        if record.rows() >= 4096.min(BATCH_CELLS / document.fields.len().max(1)) {
            record.finish()?;
        }
    }
    Ok(())
}
