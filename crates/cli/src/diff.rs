//! `diff`: what differs between two files.

use std::io::Write;

use pentaglot::job::{self, Diff as Found, DiffOptions, DiffTable, OnDifference, Place, parse_columns};

use crate::args::Diff;
use crate::progress::Progress;
use crate::screen::{self, escape};
use crate::{About, DONE, Failure, Outcome, Session, Status};

/// The status for "different".
const DIFFERENT: Status = 1;

/// 0 equal, 1 different; a file that is malformed is 2 here.
pub(crate) fn run(session: &Session, args: &Diff) -> Outcome {
    Ok(compare(session, args).unwrap_or_else(|failure| match failure.report() {
        DIFFERENT => 2,
        status => status,
    }))
}

fn compare(session: &Session, args: &Diff) -> Result<Status, Failure> {
    let mut open = args.open.options(&session.global);
    // By key, both are read twice.
    open.spool = args.key.is_some();
    let (a, b) = (session.open_one_of(&args.a, &open)?, session.open_one_of(&args.b, &open)?);
    if a.check_type(&open).is_err() {
        b.check_type(&open).about(&args.b)?;
    }
    let mut options = DiffOptions::default();
    options.open = open.clone();
    options.key = args.key.as_deref().map(parse_columns).unwrap_or_default();
    options.tolerance.abs = args.abs;
    options.tolerance.rel = args.rel;
    options.tolerance.ulp = args.ulp;
    options.first = args.count;
    let mut table = match &args.output {
        Some(output) => Some(DiffTable::create(&session.registry, output, args.force).about(output)?),
        None => None,
    };
    let progress = Progress::follow(&session.global);
    let both = format!("{} and {}", args.a, args.b);
    let found = match &mut table {
        Some(table) => {
            let mut push = |difference: &job::Difference| table.push(difference);
            job::diff(&a, &b, &options, Some(&mut push as OnDifference<'_>))
        }
        None => job::diff(&a, &b, &options, None),
    };
    drop(progress);
    let found = found.about(&both)?;
    if let (Some(table), Some(output)) = (table, &args.output) {
        table.finish().about(output)?;
    }
    if args.json {
        screen::print(format!("{}\n", found.to_json()).as_bytes())?;
    } else if !found.is_equal() {
        print(&found, args)?;
    }
    Ok(if found.is_equal() { DONE } else { DIFFERENT })
}

fn print(found: &Found, args: &Diff) -> std::io::Result<()> {
    let mut out = screen::lines();
    let first = |text: &str| format!("\u{1b}[31m{}\u{1b}[0m", escape(text));
    let second = |text: &str| format!("\u{1b}[32m{}\u{1b}[0m", escape(text));
    for found in &found.schema {
        let name = found.column.as_deref().map_or("schema".to_owned(), |name| format!("column {name:?}"));
        let name = escape(&name);
        match (&found.a, &found.b) {
            (Some(a), Some(b)) => writeln!(out, "{name}: {} | {}", first(a), second(b))?,
            (Some(a), None) => writeln!(out, "{name}: {} only in {}", first(a), escape(&args.a))?,
            (_, b) => {
                let b = b.as_deref().unwrap_or_default();
                writeln!(out, "{name}: {} only in {}", second(b), escape(&args.b))?;
            }
        }
    }
    for column in found.columns.iter().filter(|column| column.changed > 0) {
        let name = if column.name.is_empty() { "values" } else { &column.name };
        writeln!(out, "{}: {} changed", screen::bold(&escape(name)), column.changed)?;
        for cell in &column.first {
            let place = place_text(&cell.place);
            let (a, b) = (screen::cut(&cell.a, 200), screen::cut(&cell.b, 200));
            writeln!(out, "  {}: {} | {}", escape(&place), first(&a), second(&b))?;
        }
        let more = column.changed - column.first.len() as u64;
        if more > 0 {
            writeln!(out, "  … {more} more")?;
        }
    }
    let rows = &found.rows;
    for (count, what, list, color) in [
        (rows.removed, "removed", &found.first_removed, &first as &dyn Fn(&str) -> String),
        (rows.added, "added", &found.first_added, &second),
    ] {
        if count == 0 {
            continue;
        }
        writeln!(out, "{}", screen::bold(&format!("{count} {what}")))?;
        for (place, values) in list {
            let place = escape(&place_text(place));
            match values.is_empty() {
                true => writeln!(out, "  {place}")?,
                false => writeln!(out, "  {place}: {}", color(&screen::cut(values, 200)))?,
            }
        }
        let more = count - list.len() as u64;
        if more > 0 {
            writeln!(out, "  … {more} more")?;
        }
    }
    // Data of two shapes have no rows in common.
    match found.schema.iter().any(|found| found.column.is_none()) && found.columns.is_empty() {
        true => writeln!(out, "the rows were not compared")?,
        false => {
            writeln!(out, "rows: {} added, {} removed, {} changed", rows.added, rows.removed, rows.changed)?;
        }
    }
    out.flush()
}

fn place_text(place: &Place) -> String {
    match place {
        Place::Row(row) => format!("row {row}"),
        Place::Entry { row, col } => format!("row {row}, column {col}"),
        Place::Key(key) => key.clone(),
        other => format!("{other:?}"),
    }
}
