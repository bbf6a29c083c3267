//! Checks every line against every rule.
//!
//! | rule | what |
//! |---|---|
//! | `row`, `column` | an index is within the matrix, counted from 1 |
//! | `value`, `line-end` | a value of the field, and nothing after it |
//! | `diagonal` | a skew-symmetric matrix stores no diagonal |
//! | `entries` | as many entries as the size line says |
//! | `line` | no line is longer than a mebibyte |
//! | `repeat` | each entry occurs once (note: repeats are summed) |

use super::cell::Cell;
use super::layout::{MarketField, MarketLayout, Symmetry};
use super::parse::{Body, Fault};
use crate::error::{Error, Result};
use crate::formats::Findings;
use crate::hub::matrix::build::Entries;

pub(super) fn validate(body: &Body, findings: &mut Findings) -> Result<()> {
    match body.header.kind {
        MarketField::Real => typed::<f64>(body, findings),
        MarketField::Integer => typed::<i64>(body, findings),
        MarketField::Unsigned => typed::<u64>(body, findings),
        MarketField::Complex => typed::<[f64; 2]>(body, findings),
        MarketField::Pattern => typed::<i8>(body, findings),
    }
}

fn typed<T: Cell>(body: &Body, findings: &mut Findings) -> Result<()> {
    let header = &body.header;
    let coordinate = header.layout == MarketLayout::Coordinate;
    let all = 0..header.rows;
    let mut count = 0;
    let mut places: Vec<(u64, u64)> = Vec::new();
    // Repeats are searched for only if the entries fit in the budget.
    let look = header.entries.saturating_mul(32) <= body.budget.limits().max_alloc;
    for group in body.pieces().chunks(body.group()) {
        let checked = body.each(group, |text, offset| {
            let mut faults: Vec<Fault> = Vec::new();
            let (places, lines) = if coordinate {
                let mut entries = Entries::<u64, T>::default();
                let lines = body.entries(text, offset, &all, &mut entries, Some(&mut faults))?;
                (entries.rows.into_iter().zip(entries.cols).collect(), lines)
            } else {
                (Vec::new(), body.values::<T>(text, offset, Some(&mut faults))?.1)
            };
            Ok((faults, places, lines))
        });
        let checked = match checked {
            Err(error) if error.rule_name() == "line" => {
                findings.error(&error);
                return Ok(());
            }
            other => other?,
        };
        for (faults, found, lines) in checked {
            count += lines;
            faults.iter().for_each(|fault| findings.error(fault));
            if look {
                places.extend(found);
            }
        }
    }
    if let Err(error) = body.check_count(count) {
        findings.error(&error);
    }
    places.sort_unstable();
    let repeats = places.array_windows::<2>().filter(|[one, two]| one == two).count();
    let mirrored = header.symmetry != Symmetry::General;
    if repeats > 0 {
        let first =
            places.array_windows::<2>().find(|[one, two]| one == two).map(|[one, _]| (one.0 + 1, one.1 + 1));
        let expected =
            if mirrored { "each place once, on one side of the diagonal" } else { "each place once" };
        let found =
            format!("{repeats} repeats, the first at {:?}; they are summed", first.unwrap_or_default());
        findings
            .note(&Error::malformed(expected, found).at(header.body_offset).field("entries").rule("repeat"));
    }
    Ok(())
}
