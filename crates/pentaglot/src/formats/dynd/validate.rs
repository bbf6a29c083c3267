//! Checks every value against every rule; continues after a finding if the type determines the start of the
//! next value.

use super::read::{DyndDocument, RowWindow};
use super::walk::{Walker, is_free_of_rules};
use crate::cursor::Cursor;
use crate::error::{Error, ErrorKind, Result};
use crate::formats::Findings;

pub(super) fn validate(document: &DyndDocument, findings: &mut Findings) -> Result<()> {
    let (header, limits) = (&document.header, document.budget.limits());
    let row = match &header.layout.stored {
        // The rules do not depend on the order of elements, so the data is walked in storage order.
        Some(_) => &header.ty,
        None => &header.layout.row,
    };
    let rows = match (row.least_size(), &header.layout.stored) {
        // Values without bytes break no rule, but bytes after them do.
        (0, _) => 0,
        (_, Some(_)) => 1,
        (_, None) => header.rows,
    };
    if let Err(error) = header.check_end() {
        findings.error(&error);
        return Ok(());
    }
    if header.end.is_some() && is_free_of_rules(row) {
        return Ok(());
    }
    let mut window = RowWindow::open(header, row, &document.budget)?;
    let mut walker = Walker::collecting(limits);
    let mut position = 0;
    while position < rows && !findings.is_full() {
        let (count, offset, bytes) = match window.rows(row, (rows - position).min(8192), position) {
            Ok(rows) => rows,
            Err(error) => return report(error, findings),
        };
        let mut cursor = Cursor::at(bytes, offset);
        for index in position..position + count {
            let walked = walker.row(index, row, &mut cursor);
            walker.found().iter().for_each(|error| findings.error(error));
            if let Err(error) = walked {
                return report(error, findings);
            }
        }
        window.advance();
        position += count;
    }
    if position == rows
        && let Err(error) = window.expect_end()
    {
        return report(error, findings);
    }
    Ok(())
}

/// Adds an error of the file as a finding; returns all others.
fn report(error: Error, findings: &mut Findings) -> Result<()> {
    match error.kind() {
        ErrorKind::Malformed | ErrorKind::Truncated => {
            findings.error(&error);
            Ok(())
        }
        _ => Err(error),
    }
}
