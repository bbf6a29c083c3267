//! Opening, and rows.

use crate::hub::Selection;
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{Fields, Schema, SchemaRef};

use super::{ID, guess};
use crate::error::{Error, Result};
use crate::formats::{ReadOptions, Summary};
use crate::hub::type_text::{caret_line, parse_schema};
use crate::hub::{Rows, Shape, rows};
use crate::limits::Budget;
use crate::source::Source;
use crate::wire::columns::{Record, check_type, fields_without_mixed};
use crate::wire::json::Scanner;
use crate::wire::sample::{BoxRead, Sampled, explain_guess};

/// Rows per batch, unless asked otherwise.
const BATCH_ROWS: usize = 8192;
/// A batch ends early when it has taken this many bytes of text.
const BATCH_BYTES: u64 = 16 << 20;

/// An open file.
pub(super) struct JsonLinesDocument {
    pub(super) input: Sampled,
    pub(super) summary: Summary,
    /// The fields as they are read: a guess may say more than the schema shows.
    pub(super) fields: Fields,
    /// Whether the types were guessed.
    pub(super) guessed: bool,
    pub(super) budget: Budget,
}

impl JsonLinesDocument {
    pub(super) fn open(source: Source, options: &ReadOptions) -> Result<Self> {
        let budget = options.budget.clone();
        let bytes = source.len();
        let input = Sampled::open(source, &budget, |sample| sample.contains(&b'\n'))?;
        let (fields, rows) = guess::fields(input.sample(), input.is_whole(), &budget)?;
        let (fields, guessed) = match &options.type_text {
            Some(text) => (given_fields(text, options)?, false),
            None => (fields, true),
        };
        let schema = Arc::new(Schema::new(fields_without_mixed(&fields)));
        let mut summary = Summary::new(ID, schema);
        summary.rows = rows;
        summary.bytes = bytes;
        if let Some(bytes) = bytes {
            summary.part("row", 0, bytes);
        }
        if guessed {
            summary.notes.push("types are guessed from the first rows; --type gives them".to_owned());
        }
        Ok(JsonLinesDocument { input, summary, fields, guessed, budget })
    }

    /// A scanner at the first row.
    pub(super) fn scanner(&self) -> Result<Scanner<BoxRead>> {
        let mut scanner = Scanner::new(self.input.reader()?, self.budget.clone());
        scanner.skip_byte_order_mark()?;
        Ok(scanner)
    }
}

/// The fields that `--type` says.
fn given_fields(text: &str, options: &ReadOptions) -> Result<Fields> {
    let text = text.strip_prefix("arrow:").unwrap_or(text);
    let schema = parse_schema(text, options.budget.limits())
        .map_err(|error| Error::usage(format!("--type: {}", caret_line(text, &error))))?;
    if Shape::of(&schema) != Shape::Table {
        return Err(Error::usage("--type: expected struct{…}, found another shape"));
    }
    for field in schema.fields() {
        check_type(field).map_err(|error| error.field(field.name().clone()))?;
    }
    Ok(schema.fields().clone())
}

/// The rows that are asked for.
pub(super) fn rows(document: &JsonLinesDocument, request: &Selection) -> Result<Rows> {
    let _full = &document.summary.schema;
    let schema = Arc::clone(request.schema());
    let chosen = request.columns().map(|_| request.fields());
    let wanted = |index: usize| chosen.as_ref().is_none_or(|chosen| chosen.contains(&index));
    let record = Record::new(&document.fields, wanted, &document.budget)?;
    // Columns come out in the order of the file; the request may want another, or one twice.
    let order = chosen.map(|chosen| {
        let mut sorted = chosen.clone();
        sorted.sort_unstable();
        sorted.dedup();
        chosen.iter().filter_map(|index| sorted.binary_search(index).ok()).collect()
    });
    let range = request.range(u64::MAX);
    let reader = Reader {
        scanner: document.scanner()?,
        record,
        order,
        schema: Arc::clone(&schema),
        row: 0,
        from: range.start,
        to: range.end,
        batch_rows: request.batch_rows_or(BATCH_ROWS),
        batch_bytes: document.budget.batch_bytes(BATCH_BYTES),
        guessed: document.guessed,
    };
    Ok(rows::from_batches(schema, reader))
}

struct Reader {
    scanner: Scanner<BoxRead>,
    record: Record<BoxRead>,
    order: Option<Vec<usize>>,
    schema: SchemaRef,
    row: u64,
    from: u64,
    to: u64,
    batch_rows: usize,
    batch_bytes: u64,
    guessed: bool,
}

impl Reader {
    fn batch(&mut self) -> Result<Option<RecordBatch>> {
        let start = self.scanner.offset();
        while self.record.rows() < self.batch_rows
            && self.row < self.to
            && self.scanner.offset() - start < self.batch_bytes
            && self.scanner.skip_space()?.is_some()
        {
            self.one().map_err(|error| {
                explain_guess(error.index(self.row).field("row"), self.guessed).in_format(ID)
            })?;
            self.row += 1;
        }
        let rows = self.record.rows();
        if rows == 0 {
            return Ok(None);
        }
        let mut columns: Vec<ArrayRef> = self.record.finish()?;
        if let Some(order) = &self.order {
            columns = order.iter().filter_map(|index| columns.get(*index).map(Arc::clone)).collect();
        }
        rows::batch(Arc::clone(&self.schema), columns, rows).map(Some)
    }

    fn one(&mut self) -> Result<()> {
        if self.row < self.from {
            self.scanner.skip_value()?;
        } else {
            self.record.read(&mut self.scanner)?;
        }
        self.scanner.end_line()
    }
}

impl Iterator for Reader {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        self.batch().map_err(|error| error.in_format(ID)).transpose()
    }
}
