//! Checks every value against every rule and continues after a finding: an invalid element is skipped by its
//! length.
//!
//! Rules: `header`, `type`, `duplicate`, `arity`, `mismatch`, `range`, `utf8`, `truncated`, `trailing`, `row_count`,
//! `image_size` (a plain image's bytes; a PNG file's pixels, channels, data), `base64`, `json`, `depth` (and `index` for a side index that does not fit).

use super::decode::{begin_cells, wrong_arity, wrong_row_count};
use super::index::Index;
use super::layout::{DsLayout, Encoded, json_rule};
use super::rows::{RowBuilder, Tail, WINDOW_BYTES, place, read_root_count, too_many};
use super::schema::{declared_rows, root_shape};
use crate::cursor::Cursor;
use crate::error::{Context, Error, ErrorKind, Result};
use crate::formats::Findings;
use crate::hub::Shape;
use crate::limits::Budget;
use crate::source::{Source, Window};
use crate::wire::json::{JsonKind as Kind, Scanner};
use crate::wire::msgpack;

/// `builder` decodes all columns, and compares images with their type.
pub(super) fn validate(
    layout: &DsLayout,
    budget: &Budget,
    builder: RowBuilder,
    findings: &mut Findings,
) -> Result<()> {
    // A side index that does not match is not used: the bundle itself may be valid.
    match Index::beside(layout, budget) {
        Err(error) if matches!(error.kind(), ErrorKind::Malformed | ErrorKind::Truncated) => {
            findings.warning(&error.rule("index").field("index"));
        }
        other => drop(other?),
    }
    match layout.wire {
        Encoded::MsgPack => validate_msgpack(layout, budget, builder, findings),
        Encoded::Json => validate_json(layout, budget, builder, findings),
    }
}

/// Adds errors of the file as findings; returns all others.
fn report(result: Result<()>, findings: &mut Findings) -> Result<()> {
    match result {
        Err(error) if matches!(error.kind(), ErrorKind::Malformed | ErrorKind::Truncated) => {
            findings.error(&error);
            Ok(())
        }
        other => other,
    }
}

fn validate_msgpack(
    layout: &DsLayout,
    budget: &Budget,
    mut builder: RowBuilder,
    findings: &mut Findings,
) -> Result<()> {
    let shape = root_shape(&layout.kind);
    let mut declared = declared_rows(&layout.kind);
    let mut window = Window::over(&layout.source, layout.body, None, WINDOW_BYTES, budget.clone())?;
    if shape == Shape::Array {
        match read_root_count(&mut window) {
            Ok(count) => declared = Some(u64::from(count)),
            Err(error) => return report(Err(error), findings),
        }
    }
    loop {
        let mut cursor = window.cursor();
        let mut reached = cursor.offset();
        let mut failure = None;
        while !cursor.is_empty() && !findings.is_full() {
            if shape != Shape::Table && Some(builder.row) >= declared {
                failure = Some(too_many(shape, builder.row, reached, cursor.remaining()));
                break;
            }
            let mut end = cursor.clone();
            if let Err(error) = msgpack::skip(&mut end) {
                // An error in the element may come before its truncation.
                failure = Some(match builder.read_msgpack(&mut cursor) {
                    Err(first) if window.is_last() => first,
                    _ => place(error, shape, builder.row),
                });
                builder.clear();
                break;
            }
            builder.check_msgpack(&mut cursor, &mut |error| report(Err(error), findings))?;
            cursor = end;
            reached = cursor.offset();
        }
        if findings.is_full() {
            return Ok(());
        }
        window.advance_to(reached);
        match failure {
            Some(error) if error.kind() == ErrorKind::Truncated && !window.is_last() => {}
            Some(error) => return report(Err(error), findings),
            None => {}
        }
        if !window.grow()? {
            break;
        }
    }
    let (rows, offset) = (builder.row, window.offset());
    report(check_count(shape, declared, rows, offset), findings)
}

fn check_count(shape: Shape, declared: Option<u64>, rows: u64, offset: u64) -> Result<()> {
    match declared {
        Some(declared) if declared != rows && shape == Shape::Table => {
            Err(wrong_row_count(declared, rows, offset))
        }
        Some(declared) if rows < declared => {
            Err(place(Error::truncated("an element", "the end").at(offset), shape, rows))
        }
        _ => Ok(()),
    }
}

impl RowBuilder {
    /// Reads one complete element at the cursor, and reports the errors of each of its cells.
    fn check_msgpack(
        &mut self,
        cursor: &mut Cursor<'_>,
        report: &mut dyn FnMut(Error) -> Result<()>,
    ) -> Result<()> {
        let header = self.begin_msgpack(cursor);
        match header {
            Err(error) => report(error)?,
            Ok(()) => {
                for index in 0..self.width() {
                    let mut end = cursor.clone();
                    msgpack::skip(&mut end)?;
                    if let Err(error) = self.cell_msgpack(index, cursor) {
                        report(error)?;
                    }
                    *cursor = end;
                }
            }
        }
        self.row += 1;
        self.clear();
        Ok(())
    }
}

fn validate_json(
    layout: &DsLayout,
    budget: &Budget,
    mut builder: RowBuilder,
    findings: &mut Findings,
) -> Result<()> {
    // To continue after a finding, the element must be read again from its start.
    let walk =
        JsonWalk { layout, budget, source: layout.source.seekable()?, shape: root_shape(&layout.kind) };
    let result = walk.run(&mut builder, findings).map_err(json_rule);
    report(result, findings)
}

struct JsonWalk<'a> {
    layout: &'a DsLayout,
    budget: &'a Budget,
    source: Source,
    shape: Shape,
}

type JsonScanner = Scanner<crate::source::SourceReader>;

impl JsonWalk<'_> {
    fn scanner_at(&self, offset: u64) -> Result<JsonScanner> {
        Scanner::over(&self.source, offset, self.budget.clone())
    }

    fn run(&self, builder: &mut RowBuilder, findings: &mut Findings) -> Result<()> {
        let declared = declared_rows(&self.layout.kind);
        let mut scanner = self.scanner_at(self.layout.body)?;
        if !self.layout.described {
            scanner.skip_byte_order_mark()?;
        }
        if self.shape == Shape::Value {
            self.cell(&mut scanner, findings, |scanner| builder.read_json(scanner))?;
        } else {
            begin_cells(&mut scanner).field("value")?;
            while scanner.next_element().map_err(|error| place(error, self.shape, builder.row))? {
                self.element(&mut scanner, builder, findings)?;
                builder.row += 1;
                builder.clear();
                if findings.is_full() {
                    return Ok(());
                }
            }
            let count = check_count(self.shape, declared, builder.row, scanner.offset());
            report(count, findings)?;
        }
        Tail::of(self.layout).check(&mut scanner)
    }

    fn element(
        &self,
        scanner: &mut JsonScanner,
        builder: &mut RowBuilder,
        findings: &mut Findings,
    ) -> Result<()> {
        let (shape, row) = (self.shape, builder.row);
        if shape != Shape::Table {
            return self.cell(scanner, findings, |scanner| builder.cell_json(0, scanner));
        }
        let kind = scanner.peek().map_err(|error| place(error, shape, row))?;
        let start = scanner.offset();
        let begun = begin_cells(scanner).map(drop).map_err(|error| place(error, shape, row));
        if kind != Kind::Array {
            report(begun, findings)?;
            return scanner.skip_value();
        }
        begun?;
        let (expected, mut found) = (builder.width(), 0);
        while scanner.next_element().map_err(|error| place(error, shape, row))? {
            if found < expected {
                self.cell(scanner, findings, |scanner| builder.cell_json(found, scanner))?;
            } else {
                scanner.skip_value()?;
            }
            found += 1;
        }
        if found != expected {
            let error = place(wrong_arity("a row", expected, found, start), shape, row);
            report(Err(error), findings)?;
        }
        Ok(())
    }

    /// Reads a part; if its value is invalid, skips it and continues. An error of JSON syntax ends the walk.
    fn cell(
        &self,
        scanner: &mut JsonScanner,
        findings: &mut Findings,
        read: impl FnOnce(&mut JsonScanner) -> Result<()>,
    ) -> Result<()> {
        scanner.peek()?;
        let start = scanner.offset();
        let Err(error) = read(scanner) else { return Ok(()) };
        let error = json_rule(error);
        if error.rule_name() == "json" {
            return Err(error);
        }
        report(Err(error), findings)?;
        *scanner = self.scanner_at(start)?;
        match scanner.peek()? {
            Kind::String => scanner.skip_broken_string(),
            _ => scanner.skip_value(),
        }
    }
}
