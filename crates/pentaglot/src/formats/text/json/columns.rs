//! An object of columns, whose columns are read side by side.

use std::io::Read;
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, StringArray};
use arrow_schema::{Fields, Schema, SchemaRef};

use super::layout::{ColumnPlace, ColumnPlaces};
use super::{ID, schema};
use crate::error::{Context, Error, ErrorKind, Result};
use crate::formats::text::json_rows::{BATCH_CELLS, BATCH_ROWS};
use crate::formats::text::sample::{BoxRead, GUESSED_NOTE, SampleSize, explain_guess};
use crate::formats::{Findings, ReadOptions, Summary};
use crate::hub::json::decode::{JsonColumn, fields_without_mixed};
use crate::hub::{Rows, Selection, rows};
use crate::limits::Budget;
use crate::source::{Source, Window};
use crate::wire::json::Scanner;

/// The windows of all columns together take about this many bytes.
const WINDOWS_BYTES: usize = 16 << 20;

/// An open object of columns.
pub(super) struct ColumnsDocument {
    pub(super) source: Source,
    pub(super) summary: Summary,
    pub(super) places: ColumnPlaces,
    fields: Fields,
    /// For each field its column; `None` for the labels of the rows.
    columns: Vec<Option<usize>>,
    guessed: bool,
    pub(super) budget: Budget,
}

impl ColumnsDocument {
    pub(super) fn open(source: &Source, options: &ReadOptions) -> Result<Self> {
        let (source, bytes) = (source.seekable()?, source.len());
        let size = SampleSize::new(&options.options)?;
        let places = ColumnPlaces::find(&source, size.rows(), &options.budget)?;
        let (fields, columns) = schema::fields(&places, options)?;
        let mut summary = Summary::new(ID, Arc::new(Schema::new(fields_without_mixed(&fields))));
        summary.rows = Some(places.rows);
        summary.bytes = bytes;
        for column in places.columns.iter().filter(|_| bytes.is_some()) {
            summary.part(column.name.clone(), column.offset, column.bytes);
        }
        let guessed = options.type_text.is_none();
        if guessed && places.rows > size.rows() {
            summary.notes.push(GUESSED_NOTE.to_owned());
        }
        let budget = options.budget.clone();
        Ok(ColumnsDocument { source, summary, places, fields, columns, guessed, budget })
    }

    /// A reader of the values of a field.
    fn values(&self, field: usize, open: usize) -> Result<Values> {
        let at = self.columns.get(field).copied().flatten();
        let place = self.places.columns.get(at.unwrap_or(0));
        let (Some(place), Some(wanted)) = (place, self.fields.get(field)) else {
            return Err(Error::usage("expected a column of this file"));
        };
        let builder = match at {
            Some(_) => Builder::Values(Box::new(JsonColumn::new(wanted, &self.budget)?)),
            None => Builder::Labels(Vec::new()),
        };
        Values::new(&self.source, place, builder, WINDOWS_BYTES / open.max(1), &self.budget)
            .field(wanted.name().clone())
    }

    pub(super) fn rows(&self, request: &Selection) -> Result<Rows> {
        let range = request.range(self.places.rows);
        let chosen = request.fields();
        let mut columns = Vec::new();
        for field in &chosen {
            let mut values = self.values(*field, chosen.len())?;
            values.skip(range.start)?;
            columns.push(values);
        }
        let rows_fit = (BATCH_CELLS / chosen.len().max(1)).clamp(1, BATCH_ROWS);
        let reader = Reader {
            columns,
            names: request.schema().fields().clone(),
            schema: Arc::clone(request.schema()),
            row: range.start,
            to: range.end,
            batch_rows: request.batch_rows_or(rows_fit) as u64,
            guessed: self.guessed,
        };
        Ok(rows::from_batches(Arc::clone(request.schema()), reader))
    }

    /// Reads every column up to its first fault.
    pub(super) fn validate(&self, findings: &mut Findings) -> Result<()> {
        for (index, field) in self.fields.iter().enumerate() {
            let mut values = self.values(index, 1)?;
            let mut row = 0;
            while row < self.places.rows && !findings.is_full() {
                match values.next() {
                    Ok(()) => {}
                    Err(error) if matches!(error.kind(), ErrorKind::Malformed | ErrorKind::Truncated) => {
                        findings.error(&explain_guess(
                            error.index(row).field(field.name().clone()),
                            self.guessed,
                        ));
                        break;
                    }
                    Err(error) => return Err(error.index(row).field(field.name().clone())),
                }
                row += 1;
                if row.is_multiple_of(BATCH_ROWS as u64) {
                    values.finish()?;
                }
            }
        }
        Ok(())
    }
}

enum Builder {
    Values(Box<JsonColumn<BoxRead>>),
    Labels(Vec<String>),
}

/// The values of one column, in order.
struct Values {
    scanner: Scanner<BoxRead>,
    is_labelled: bool,
    builder: Builder,
}

impl Values {
    fn new(
        source: &Source,
        place: &ColumnPlace,
        builder: Builder,
        window: usize,
        budget: &Budget,
    ) -> Result<Self> {
        let reader: BoxRead = Box::new(source.reader_at(place.offset)?.take(place.bytes));
        let window = Window::new(reader, place.offset, window.clamp(4 << 10, 64 << 10), budget.clone());
        let mut scanner = Scanner::of(window, budget.clone());
        if place.is_labelled {
            scanner.begin_object()?
        } else {
            scanner.begin_array()?
        }
        Ok(Values { scanner, is_labelled: place.is_labelled, builder })
    }

    /// Goes to the next value; gives its label where it is wanted.
    fn advance(&mut self) -> Result<Option<String>> {
        let label = match self.is_labelled {
            true => match self.scanner.next_key()? {
                Some(label) if matches!(self.builder, Builder::Labels(_)) => Some(label.to_owned()),
                Some(_) => None,
                None => return Err(self.scanner.unexpected("a value")),
            },
            false if self.scanner.next_element()? => None,
            false => return Err(self.scanner.unexpected("a value")),
        };
        Ok(label)
    }

    fn skip(&mut self, count: u64) -> Result<()> {
        for _ in 0..count {
            self.advance()?;
            self.scanner.skip_value()?;
        }
        Ok(())
    }

    fn next(&mut self) -> Result<()> {
        let label = self.advance()?;
        match &mut self.builder {
            Builder::Values(column) => column.read(&mut self.scanner),
            Builder::Labels(labels) => {
                labels.extend(label);
                self.scanner.skip_value()
            }
        }
    }

    fn finish(&mut self) -> Result<ArrayRef> {
        match &mut self.builder {
            Builder::Values(column) => column.finish(),
            Builder::Labels(labels) => Ok(Arc::new(StringArray::from(std::mem::take(labels)))),
        }
    }
}

struct Reader {
    columns: Vec<Values>,
    names: Fields,
    schema: SchemaRef,
    row: u64,
    to: u64,
    batch_rows: u64,
    guessed: bool,
}

impl Reader {
    fn batch(&mut self) -> Result<Option<RecordBatch>> {
        let count = self.batch_rows.min(self.to - self.row);
        if count == 0 {
            return Ok(None);
        }
        let mut arrays = Vec::new();
        for (values, field) in self.columns.iter_mut().zip(&self.names) {
            for row in self.row..self.row + count {
                values.next().map_err(|error| {
                    explain_guess(error.index(row).field(field.name().clone()), self.guessed)
                })?;
            }
            arrays.push(values.finish()?);
        }
        self.row += count;
        rows::batch(Arc::clone(&self.schema), arrays, usize::try_from(count).unwrap_or(usize::MAX)).map(Some)
    }
}

impl Iterator for Reader {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        self.batch().map_err(|error| error.in_format(ID)).transpose()
    }
}
