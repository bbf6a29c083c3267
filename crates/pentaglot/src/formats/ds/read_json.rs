//! The elements of a JSON value as record batches, and what may stand behind it.

use std::ops::Range;

use arrow_array::RecordBatch;

use super::from_json::begin_cells;
use super::from_msgpack::wrong_row_count;
use super::layout::{Layout, json_rule};
use super::read::{BATCH_BYTES, Bundle, declared_rows};
use super::rows::{BatchLimits, RowBuilder, place, root_shape};
use crate::error::{Context, Error, Result};
use crate::hub::Selection;
use crate::hub::Shape;
use crate::source::SourceReader;
use crate::wire::json::Scanner;

impl Bundle {
    pub(super) fn json_rows(
        &self,
        request: &Selection,
        wanted: Range<u64>,
        batch_rows: usize,
    ) -> Result<impl Iterator<Item = Result<RecordBatch>> + Send + use<>> {
        let rows = JsonRows {
            scanner: self.scanner()?,
            builder: self.builder(request)?,
            shape: root_shape(&self.layout.kind),
            wanted,
            declared: declared_rows(&self.layout.kind),
            batch_rows,
            tail: Tail::of(&self.layout),
            state: State::Start,
        };
        Ok(rows.map(|batch| batch.map_err(json_rule).in_format(super::ID)))
    }

    /// A scanner at the value.
    fn scanner(&self) -> Result<Scanner<SourceReader>> {
        let body = self.layout.body;
        let mut scanner = Scanner::over(&self.layout.source, body, self.reading.budget.clone())?;
        if !self.layout.described {
            scanner.skip_byte_order_mark()?;
        }
        Ok(scanner)
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Start,
    Elements,
    Done,
}

/// The elements of a JSON value, in order.
struct JsonRows {
    scanner: Scanner<SourceReader>,
    builder: RowBuilder,
    shape: Shape,
    wanted: Range<u64>,
    declared: Option<u64>,
    batch_rows: usize,
    tail: Tail,
    state: State,
}

impl Iterator for JsonRows {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Result<RecordBatch>> {
        if self.state == State::Done {
            return None;
        }
        match self.fill() {
            Err(error) => {
                self.state = State::Done;
                Some(Err(error))
            }
            Ok(()) if self.builder.len == 0 => None,
            Ok(()) => Some(self.builder.finish()),
        }
    }
}

impl JsonRows {
    fn fill(&mut self) -> Result<()> {
        if self.state == State::Start {
            self.state = State::Elements;
            if self.shape != Shape::Value {
                begin_cells(&mut self.scanner).field("value")?;
            }
        }
        let mut start = self.scanner.offset();
        let declared = self.declared.unwrap_or(u64::MAX);
        while self.builder.len < self.batch_rows
            && (self.builder.len == 0
                || self.scanner.offset() - start + self.builder.stand_ins() < BATCH_BYTES)
        {
            // Elements that are skipped do not count.
            if self.builder.len == 0 {
                start = self.scanner.offset();
            }
            let row = self.builder.row;
            if row >= self.wanted.end && row < declared {
                self.state = State::Done;
                return Ok(());
            }
            if row >= self.wanted.start && row < self.wanted.end.min(declared) {
                let rows =
                    (self.wanted.end.min(declared) - row).min((self.batch_rows - self.builder.len) as u64);
                let taken = self.scanner.offset() - start + self.builder.stand_ins();
                let bytes = BATCH_BYTES.saturating_sub(taken);
                let limits = BatchLimits { rows, bytes };
                if self.builder.read_plain_json(&mut self.scanner, &limits)? > 0 {
                    continue;
                }
            }
            let another = match self.shape {
                Shape::Value => row == 0,
                _ => self.scanner.next_element().map_err(|error| place(error, self.shape, row))?,
            };
            if !another {
                self.state = State::Done;
                if let Some(declared) = self.declared
                    && declared != row
                {
                    return Err(wrong_row_count(declared, row, self.scanner.offset()));
                }
                return self.tail.check(&mut self.scanner);
            }
            if row >= declared {
                return Err(wrong_row_count(declared, "more", self.scanner.offset()));
            }
            if row < self.wanted.start || row >= self.wanted.end {
                self.scanner.skip_value()?;
                self.builder.row += 1;
            } else {
                self.builder.read_json(&mut self.scanner)?;
            }
        }
        Ok(())
    }
}

/// What may stand behind the value.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tail {
    /// Whether the value is a part of a bundle.
    bundle: bool,
    /// Whether the type stood before it.
    typed: bool,
}

impl Tail {
    pub(super) fn of(layout: &Layout) -> Tail {
        let typed = layout.type_place.is_some_and(|(offset, _)| offset < layout.body);
        Tail { bundle: layout.described, typed }
    }

    /// Reads what stands behind the value and errs if it should not.
    pub(super) fn check<R: std::io::Read>(self, scanner: &mut Scanner<R>) -> Result<()> {
        let mut typed = self.typed;
        if self.bundle {
            while let Some(key) = scanner.next_key()? {
                let twice = match key {
                    "value" => true,
                    "type" => std::mem::replace(&mut typed, true),
                    _ => false,
                };
                if twice {
                    let found = format!("{key:?} twice");
                    let error = Error::malformed("every key once", found).rule("duplicate");
                    return Err(error.at(scanner.offset()));
                }
                scanner.skip_value()?;
            }
        }
        match scanner.skip_space()? {
            None => Ok(()),
            Some(_) => Err(scanner.unexpected("the end of the input").rule("json")),
        }
    }
}
