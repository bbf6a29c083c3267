//! An open document: its summary, and rows from the columns that are asked for.

use crate::hub::Selection;
use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_schema::{Schema, SchemaRef};

use super::decode::Decoder;
use super::layout::{BsondfLayout, ColumnLayout};
use super::schema::{Type, arrow_fields};
use super::{ID, MONGODB_BYTES, outline, validate};
use crate::control::Control;
use crate::error::{Context, Error, ErrorKind, Result};
use crate::formats::{Document, Findings, Outline, ReadOptions, Summary};
use crate::hub::{Rows, distinct, native, rows};
use crate::limits::Budget;
use crate::source::Source;

/// Rows of a batch, unless a user asks for another number: batches are slices and cost nothing.
const BATCH_ROWS: usize = 64 << 10;

/// An open BSON DataFrame document.
pub(super) struct BsondfDocument {
    pub(super) source: Source,
    pub(super) layout: Arc<BsondfLayout>,
    pub(super) budget: Budget,
    pub(super) control: Control,
    summary: Summary,
}

impl BsondfDocument {
    /// Walks over the document's lengths; no buffer is read, unless text is to be told from bytes.
    pub(super) fn open(source: &Source, options: &ReadOptions) -> Result<Self> {
        let utf8 = options.options.word("utf8", &["text", "bytes"])?;
        // A length of at least 5, then a column or the end.
        let plausible = |head: &[u8]| matches!(head, [5, 0, 0, 0, 0] | [_, _, _, 0..=0x7f, 3, ..]);
        let source = source.seekable_if(plausible)?;
        let bytes = source.len().unwrap_or(0);
        let mut layout = BsondfLayout::read(&source, bytes, options.budget.limits(), options.damaged)?;
        let mut notes = Vec::new();
        if utf8 == Some("bytes") {
            demote_text(&mut layout, &source, &options.budget, &mut notes)?;
        }
        let mut summary = Summary::new(ID, Arc::new(schema(&layout)));
        summary.bytes = Some(bytes);
        match layout.rows() {
            Ok(rows) => summary.rows = Some(rows),
            Err(error) => notes.push(error.to_string()),
        }
        if bytes > MONGODB_BYTES {
            notes
                .push(format!("{bytes} bytes are more than MongoDB takes in one document ({MONGODB_BYTES})"));
        }
        summary.notes = notes;
        for column in &layout.columns {
            summary.part(format!("columns.{}", column.name), column.offset, column.bytes);
        }
        let (budget, control) = (options.budget.clone(), options.control.clone());
        Ok(BsondfDocument { source, layout: Arc::new(layout), budget, control, summary })
    }
}

/// The schema of all columns, with the format's own types.
fn schema(layout: &BsondfLayout) -> Schema {
    let columns: Vec<(String, Type)> =
        layout.columns.iter().map(|column| (column.name.clone(), column.array.kind.clone())).collect();
    let native = Type::Struct(columns.clone()).to_json();
    native::with(Schema::new(arrow_fields(&columns)), ID, native)
}

/// Changes the type of text that is not UTF-8 to bytes; for that it must be read.
fn demote_text(
    layout: &mut BsondfLayout,
    source: &Source,
    budget: &Budget,
    notes: &mut Vec<String>,
) -> Result<()> {
    for column in &mut layout.columns {
        let name = column.name.clone();
        let mut is_text = |array: &super::layout::Array| {
            let decoder = Decoder { source: source.clone(), budget: budget.clone(), first_rows: None };
            match decoder.array(array) {
                Err(error) if error.rule_name() == "utf8" => {
                    notes.push(format!("column {name:?}: text that is not UTF-8 is read as bytes"));
                    Ok(false)
                }
                // Another fault is reported when the rows are read.
                Err(error) if error.kind() != ErrorKind::Malformed => Err(error),
                _ => Ok(true),
            }
        };
        column.array.demote_text(&mut is_text).field(column.name.clone()).field("columns")?;
    }
    Ok(())
}

impl Document for BsondfDocument {
    fn summary(&self) -> &Summary {
        &self.summary
    }

    fn outline(&self) -> Outline {
        outline::outline(&self.source)
    }

    fn validate(&self, findings: &mut Findings) -> Result<()> {
        validate::validate(self, findings).in_format(ID)
    }

    fn rows(&self, request: &Selection) -> Result<Rows> {
        let total = self.layout.rows().in_format(ID)?;
        let range = request.range(total);
        let schema = Arc::clone(request.schema());
        let decode = Decode {
            decoder: Decoder {
                source: self.source.clone(),
                budget: self.budget.clone(),
                first_rows: self.source.is_costly().then_some(range.end),
            },
            layout: Arc::clone(&self.layout),
            wanted: request.fields(),
            control: self.control.clone(),
        };
        let batch_rows = request.batch_rows_or(BATCH_ROWS) as u64;
        let inner = Arc::clone(&schema);
        // Nothing is decoded before the first batch is asked for.
        let whole = std::iter::once_with(move || decode.columns().in_format(ID));
        let batches = whole.flat_map(move |columns| match columns {
            Ok(columns) => {
                let range = range.clone();
                Slices::Good { columns, schema: Arc::clone(&inner), range, batch_rows, first: true }
            }
            Err(error) => Slices::Bad(Some(error)),
        });
        Ok(rows::from_batches(schema, batches))
    }
}

/// What it takes to decode some columns.
struct Decode {
    decoder: Decoder,
    layout: Arc<BsondfLayout>,
    wanted: Vec<usize>,
    control: Control,
}

impl Decode {
    /// The wanted columns, each decoded once, however often it is wanted.
    fn columns(&self) -> Result<Vec<ArrayRef>> {
        let (once, places) = distinct(&self.wanted);
        let columns: Vec<&ColumnLayout> =
            once.iter().filter_map(|index| self.layout.columns.get(*index)).collect();
        let decoded = decode(&self.decoder, columns, &self.control)?;
        Ok(places.iter().filter_map(|place| decoded.get(*place)).map(Arc::clone).collect())
    }
}

/// The columns, decoded side by side.
pub(super) fn decode(
    decoder: &Decoder,
    columns: Vec<&ColumnLayout>,
    control: &Control,
) -> Result<Vec<ArrayRef>> {
    let column =
        |column: &ColumnLayout| decoder.array(&column.array).field(column.name.clone()).field("columns");
    control.map(columns, column)?.into_iter().collect()
}

/// The batches of decoded columns.
enum Slices {
    Good {
        columns: Vec<ArrayRef>,
        schema: SchemaRef,
        range: std::ops::Range<u64>,
        batch_rows: u64,
        /// The first batch comes even without rows: it holds the dictionaries.
        first: bool,
    },
    Bad(Option<Error>),
}

impl Iterator for Slices {
    type Item = Result<arrow_array::RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        let (columns, schema, range, batch_rows) = match self {
            Slices::Bad(error) => return error.take().map(Err),
            Slices::Good { columns, range, first, .. }
                if range.is_empty() && (!*first || columns.is_empty()) =>
            {
                return None;
            }
            Slices::Good { columns, schema, range, batch_rows, first } => {
                *first = false;
                (columns, schema, range, *batch_rows)
            }
        };
        let count = batch_rows.min(range.end.saturating_sub(range.start));
        // Both lie within rows that have been decoded, which `usize` counts.
        let (Ok(start), Ok(length)) = (usize::try_from(range.start), usize::try_from(count)) else {
            return None;
        };
        range.start += count;
        let slices = columns.iter().map(|column| column.slice(start, length)).collect();
        Some(rows::batch(Arc::clone(schema), slices, length))
    }
}
