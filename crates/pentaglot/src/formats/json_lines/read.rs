//! Opening, and rows.

use crate::hub::Selection;
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, StructArray};
use arrow_schema::{DataType, Field, Fields, Schema, SchemaRef};

use super::{ID, guess};
use crate::error::{Error, Result};
use crate::formats::{ReadOptions, Summary};
use crate::hub::json::decode::{Record, check_type, fields_without_mixed};
use crate::hub::type_text::{caret_line, parse_schema};
use crate::hub::{Rows, Shape, rows, shape};
use crate::limits::Budget;
use crate::source::Source;
use crate::wire::json::{self, Scanner};
use crate::wire::sample::{BoxRead, Sampled, explain_guess};

/// Rows per batch, unless asked otherwise.
const BATCH_ROWS: usize = 8192;
/// A batch has fewer rows where there are so many columns that it would have more cells than this.
pub(super) const BATCH_CELLS: usize = 8 << 20;
/// A batch ends early when it has taken this many bytes of text.
const BATCH_BYTES: u64 = 16 << 20;

/// An open file.
pub(super) struct JsonLinesDocument {
    pub(super) input: Sampled,
    pub(super) summary: Summary,
    /// The fields as they are read: a guess may say more than the schema shows.
    pub(super) fields: Fields,
    /// Whether each row is an element of an array, as the type given says, rather than a row of a table.
    elements: bool,
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
        let (fields, elements, guessed) = match &options.type_text {
            Some(text) => {
                let (fields, elements) = given_fields(text, options)?;
                (fields, elements, false)
            }
            None => (fields, false, true),
        };
        let shown = fields_without_mixed(&fields);
        let schema = Arc::new(match elements {
            true => shape::array_schema(Field::new_struct(shape::ITEM_FIELD, shown, false)),
            false => Schema::new(shown),
        });
        let mut summary = Summary::new(ID, schema);
        summary.rows = rows;
        summary.bytes = bytes;
        if let Some(bytes) = bytes {
            summary.part("row", 0, bytes);
        }
        if guessed {
            summary.notes.push("types are guessed from the first rows, unless they are given".to_owned());
        }
        Ok(JsonLinesDocument { input, summary, fields, elements, guessed, budget })
    }

    /// A scanner at the first row.
    pub(super) fn scanner(&self) -> Result<Scanner<BoxRead>> {
        let window = self.input.window(json::WINDOW_BYTES, self.budget.clone())?;
        let mut scanner = Scanner::of(window, self.budget.clone());
        scanner.skip_byte_order_mark()?;
        Ok(scanner)
    }
}

/// The fields of the type given, and whether it is that of an array of structs rather than of a table.
fn given_fields(text: &str, options: &ReadOptions) -> Result<(Fields, bool)> {
    let text = text.strip_prefix("arrow:").unwrap_or(text);
    let schema = parse_schema(text, options.budget.limits())
        .map_err(|error| Error::usage(format!("the given type: {}", caret_line(text, &error))))?;
    let (fields, elements) = match (Shape::of(&schema), schema.fields().as_ref()) {
        (Shape::Table, _) => (schema.fields().clone(), false),
        (Shape::Array, [item]) => match item.data_type() {
            DataType::Struct(fields) if !item.is_nullable() => (fields.clone(), true),
            _ => return Err(other_shape()),
        },
        _ => return Err(other_shape()),
    };
    for field in &fields {
        check_type(field).map_err(|error| error.field(field.name().clone()))?;
    }
    Ok((fields, elements))
}

fn other_shape() -> Error {
    Error::usage("the given type: expected struct{…} or array[struct{…}], found another shape")
}

/// The rows that are asked for.
pub(super) fn rows(document: &JsonLinesDocument, request: &Selection) -> Result<Rows> {
    let full = &document.summary.schema;
    let schema = Arc::clone(request.schema());
    // The only column of an array is the element.
    let chosen = request.columns().filter(|_| !document.elements).map(|_| request.fields());
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
        batch_rows: request.batch_rows_or((BATCH_CELLS / full.fields().len().max(1)).clamp(1, BATCH_ROWS)),
        elements: document.elements,
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
    elements: bool,
    batch_bytes: u64,
    guessed: bool,
}

impl Reader {
    fn batch(&mut self) -> Result<Option<RecordBatch>> {
        // Rows that are skipped do not count.
        let mut start = self.scanner.offset();
        while self.record.rows() < self.batch_rows
            && self.row < self.to
            && (self.record.rows() == 0 || self.scanner.offset() - start < self.batch_bytes)
            && self.scanner.skip_space()?.is_some()
        {
            if self.record.rows() == 0 {
                start = self.scanner.offset();
            }
            self.one().map_err(|error| {
                let error = self.scanner.with_line(error).index(self.row).field("row");
                explain_guess(error, self.guessed).in_format(ID)
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
        let item = self.schema.fields().first().filter(|_| self.elements);
        if let Some(DataType::Struct(fields)) = item.map(|item| item.data_type()) {
            columns = vec![Arc::new(StructArray::try_new_with_length(fields.clone(), columns, None, rows)?)];
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
