//! How rows of JSON text follow each other, what a row looks like, and how rows become columns.

use std::io::Read;
use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_schema::{Field, Fields, Schema, SchemaRef};

use super::pieces::Cuts;
use crate::error::{Context, Error, Result};
use crate::hub::json::decode::{JsonColumn, Record, fields_without_mixed, without_mixed};
use crate::hub::shape;
use crate::limits::Budget;
use crate::source::Window;
use crate::wire::json::Scanner;

/// The most bytes that tell where a row of an array begins.
const MOST_BEGIN_BYTES: usize = 256;

/// How rows follow each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Framing {
    /// A row a line.
    Lines,
    /// The elements of one array.
    Array,
}

impl Framing {
    pub(super) fn begin(self) -> Frame {
        Frame { framing: self, state: State::Before }
    }

    /// Reads text that begins with a row, but not with the first one of an array.
    pub(super) fn within<R: Read>(self, text: Window<R>, budget: &Budget) -> (Frame, Scanner<R>) {
        let scanner = Scanner::of(text, budget.clone());
        match self {
            Framing::Lines => (self.begin(), scanner),
            Framing::Array => (Frame { framing: self, state: State::AfterComma }, scanner.at_depth(1)),
        }
    }

    /// Where text of such rows may be cut, as its first bytes show; `None` if they do not.
    pub(super) fn cuts(self, sample: &[u8], budget: &Budget) -> Option<Cuts> {
        match self {
            Framing::Lines => Some(Cuts::AfterLines),
            Framing::Array => row_begin(sample, budget).map(Cuts::before),
        }
    }
}

/// The bytes with which the first row of an array begins, up to the end of its first key; `None` if it is no object.
fn row_begin<'s>(sample: &'s [u8], budget: &Budget) -> Option<&'s [u8]> {
    let mut scanner = Scanner::new(sample, budget.clone());
    scanner.skip_byte_order_mark().ok()?;
    scanner.begin_array().ok()?;
    scanner.next_element().ok()?.then_some(())?;
    let begin = usize::try_from(scanner.offset()).ok()?;
    scanner.begin_object().ok()?;
    scanner.str_bytes().ok()?;
    let end = usize::try_from(scanner.offset()).ok()?;
    sample.get(begin..end.min(begin + MOST_BEGIN_BYTES))
}

#[derive(PartialEq)]
enum State {
    Before,
    /// Before or after a row, whose comma has not been read.
    Within,
    /// Where the next row begins.
    AfterComma,
    After,
}

/// Where a scanner is among the rows.
pub(super) struct Frame {
    framing: Framing,
    state: State,
}

impl Frame {
    /// Goes to the next row; `false` at the end, after which nothing but white space may follow.
    pub(super) fn next<R: Read>(&mut self, scanner: &mut Scanner<R>) -> Result<bool> {
        let is_row = self.advance(scanner)?;
        scanner.window().begin_record();
        Ok(is_row)
    }

    fn advance<R: Read>(&mut self, scanner: &mut Scanner<R>) -> Result<bool> {
        if self.framing == Framing::Lines {
            return Ok(scanner.skip_space()?.is_some());
        }
        if self.state == State::Before {
            scanner.begin_array()?;
            self.state = State::Within;
        }
        if self.state == State::AfterComma {
            self.state = State::Within;
            scanner.element_after_comma()?;
        } else if self.state == State::Within && !scanner.next_element()? {
            self.state = State::After;
            scanner.end()?;
        }
        Ok(self.state == State::Within)
    }

    /// Goes past what ends a row, to where the next one begins.
    pub(super) fn end_row<R: Read>(&mut self, scanner: &mut Scanner<R>) -> Result<()> {
        if self.framing == Framing::Lines {
            return scanner.end_line();
        }
        match scanner.skip_space()? {
            Some(b',') => {
                self.state = State::AfterComma;
                scanner.bump();
                // A fault of the input is not one of this row.
                if let Err(error) = scanner.skip_space() {
                    scanner.window().fail(error);
                }
            }
            Some(_) => self.state = State::Within,
            // A number at the end of the input may be cut.
            None => {
                let error = Error::truncated("`,` or `]`", "the end of the input");
                return Err(error.at(scanner.offset()));
            }
        }
        Ok(())
    }

    /// Whether the scanner is where a row begins or might begin, but not at the first one of an array.
    pub(super) fn is_at_row(&self) -> bool {
        self.framing == Framing::Lines || self.state == State::AfterComma
    }
}

/// What a row looks like. The fields may say more than the schema shows.
#[derive(Debug, Clone)]
pub(super) enum RowLayout {
    /// An object with a key per column.
    Objects(Fields),
    /// An array with a value per column.
    Positions(Fields),
    /// A value of any kind, which is the only column: an element of an array, a row of a matrix.
    Items(SchemaRef),
}

impl RowLayout {
    /// Elements of an array.
    pub(super) fn items(item: &Field) -> Self {
        RowLayout::Items(Arc::new(shape::array_schema(item.clone())))
    }

    pub(super) fn schema(&self) -> Schema {
        match self {
            RowLayout::Objects(fields) | RowLayout::Positions(fields) => {
                Schema::new(fields_without_mixed(fields))
            }
            RowLayout::Items(schema) => {
                let fields: Vec<Field> = schema.fields().iter().map(|field| without_mixed(field)).collect();
                Schema::new_with_metadata(fields, schema.metadata().clone())
            }
        }
    }

    pub(super) fn len(&self) -> usize {
        match self {
            RowLayout::Objects(fields) | RowLayout::Positions(fields) => fields.len(),
            RowLayout::Items(_) => 1,
        }
    }
}

/// Builds columns from rows.
pub(super) enum RowDecoder<R> {
    Objects(Record<R>),
    Positions(Positions<R>),
    Items(Box<JsonColumn<R>>, usize),
}

impl<R: Read + Send + 'static> RowDecoder<R> {
    pub(super) fn new(layout: &RowLayout, wanted: impl Fn(usize) -> bool, budget: &Budget) -> Result<Self> {
        Ok(match layout {
            RowLayout::Objects(fields) => RowDecoder::Objects(Record::new(fields, wanted, budget)?),
            RowLayout::Positions(fields) => RowDecoder::Positions(Positions::new(fields, wanted, budget)?),
            RowLayout::Items(schema) => {
                let item = schema.fields().first().ok_or_else(|| Error::usage("expected one column"))?;
                RowDecoder::Items(Box::new(JsonColumn::new(item, budget)?), 0)
            }
        })
    }

    pub(super) fn rows(&self) -> usize {
        match self {
            RowDecoder::Objects(record) => record.rows(),
            RowDecoder::Positions(positions) => positions.rows,
            RowDecoder::Items(_, rows) => *rows,
        }
    }

    pub(super) fn read(&mut self, scanner: &mut Scanner<R>) -> Result<()> {
        match self {
            RowDecoder::Objects(record) => record.read(scanner),
            RowDecoder::Positions(positions) => positions.read(scanner),
            RowDecoder::Items(column, rows) => {
                column.read(scanner)?;
                *rows += 1;
                Ok(())
            }
        }
    }

    /// Takes the wanted columns out, in the order of the file.
    pub(super) fn finish(&mut self) -> Result<Vec<ArrayRef>> {
        match self {
            RowDecoder::Objects(record) => record.finish(),
            RowDecoder::Positions(positions) => positions.finish(),
            RowDecoder::Items(column, rows) => {
                *rows = 0;
                Ok(vec![column.finish()?])
            }
        }
    }
}

/// Rows that are arrays: values at the end may be missing, which is null.
pub(super) struct Positions<R> {
    columns: Vec<Option<JsonColumn<R>>>,
    rows: usize,
}

impl<R: Read + Send + 'static> Positions<R> {
    fn new(fields: &Fields, wanted: impl Fn(usize) -> bool, budget: &Budget) -> Result<Self> {
        let columns = fields.iter().enumerate().map(|(index, field)| {
            let column = || JsonColumn::new(field, budget).field(field.name().clone());
            wanted(index).then(column).transpose()
        });
        Ok(Positions { columns: columns.collect::<Result<_>>()?, rows: 0 })
    }

    fn read(&mut self, scanner: &mut Scanner<R>) -> Result<()> {
        scanner.skip_space()?;
        let offset = scanner.offset();
        scanner.begin_array()?;
        let mut count = 0;
        while scanner.next_element()? {
            match self.columns.get_mut(count) {
                Some(Some(column)) => column.read(scanner).index(count as u64)?,
                Some(None) => scanner.skip_value()?,
                None => {
                    let expected = format!("at most {} values", self.columns.len());
                    return Err(Error::malformed(expected, "more").at(scanner.offset()).rule("type"));
                }
            }
            count += 1;
        }
        for (index, column) in self.columns.iter_mut().enumerate().skip(count) {
            if let Some(column) = column {
                column.null().map_err(|error| error.at(offset)).index(index as u64)?;
            }
        }
        self.rows += 1;
        Ok(())
    }

    fn finish(&mut self) -> Result<Vec<ArrayRef>> {
        self.rows = 0;
        self.columns.iter_mut().flatten().map(JsonColumn::finish).collect()
    }
}
