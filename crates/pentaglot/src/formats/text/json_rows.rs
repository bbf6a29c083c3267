//! An open text of JSON rows: its schema, batches of rows, and what is wrong with them.

use std::io::{Empty, Read};
use std::sync::Arc;

use arrow_array::{RecordBatch, StructArray};
use arrow_schema::{DataType, Field, Schema, SchemaRef};

use super::file_order;
use super::json_infer::SeenRows;
use super::json_layout::{Frame, Framing, RowDecoder, RowLayout};
use super::pieces::{Pieces, batch_rows, batch_text_bytes};
use super::sample::{BoxRead, SampleSize, Sampled, explain_guess};
use crate::control::Control;
use crate::error::{Error, ErrorKind, Result};
use crate::formats::{Findings, ReadOptions, Summary};
use crate::hub::json::decode::check_type;
use crate::hub::type_text::{caret_line, parse_schema};
use crate::hub::{Form, Rows, Selection, Shape, rows, shape};
use crate::limits::Budget;
use crate::source::{Source, Window};
use crate::wire::json::{self, Scanner};

#[cfg(test)]
mod tests;

/// Rows per batch of a document that is read whole, unless asked otherwise.
pub(super) const BATCH_ROWS: usize = 8192;
/// A batch has fewer rows where there are so many columns that it would have more cells than this.
pub(super) const BATCH_CELLS: usize = 8 << 20;
/// A batch of as many rows as were asked for ends early when it has taken this many bytes of text.
const BATCH_BYTES: u64 = 16 << 20;
/// An open text of rows.
pub(super) struct JsonRows {
    pub(super) input: Sampled,
    pub(super) summary: Summary,
    framing: Framing,
    layout: RowLayout,
    /// Whether each row is an element of an array, as the type given says, rather than a row of a table.
    elements: bool,
    /// Whether the types were inferred.
    guessed: bool,
    pub(super) budget: Budget,
    control: Control,
}

impl JsonRows {
    pub(super) fn open(
        id: &'static str,
        source: Source,
        framing: Framing,
        options: &ReadOptions,
    ) -> Result<Self> {
        let budget = options.budget.clone();
        let bytes = source.len();
        let size = SampleSize::new(&options.options)?;
        let enough = |sample: &[u8]| match framing {
            Framing::Lines => sample.contains(&b'\n'),
            Framing::Array => has_element(sample, &budget),
        };
        let input = Sampled::open(size.source(source)?, &budget, enough)?;
        let (seen, rows) = match size {
            SampleSize::Usual => {
                let mut scanner = Scanner::new(input.sample(), budget.clone());
                SeenRows::infer(&mut scanner, framing, size.rows(), input.is_whole())?
            }
            SampleSize::Rows(_) => {
                let window = input.window(json::WINDOW_BYTES, budget.clone())?;
                let mut scanner = Scanner::of(window, budget.clone());
                SeenRows::infer(&mut scanner, framing, size.rows(), size.is_all())?
            }
        };
        let (layout, elements) = match &options.type_text {
            Some(text) => given_layout(text, &seen, framing, options)?,
            None => (seen.layout(framing)?, false),
        };
        let guessed = options.type_text.is_none();
        let mut schema = layout.schema();
        if elements {
            let item = Field::new_struct(shape::ITEM_FIELD, schema.fields().clone(), false);
            schema = shape::array_schema(item);
        }
        if let (Form::Dense, Some(rows)) = (Form::of(&schema), rows) {
            let cols = shape::matrix_cols(&schema).unwrap_or(0);
            schema = schema.with_metadata(shape::matrix_metadata(Some(rows), cols));
        }
        let mut summary = Summary::new(id, Arc::new(schema));
        summary.rows = rows;
        summary.bytes = bytes;
        if let Some(bytes) = bytes {
            summary.part("row", 0, bytes);
        }
        if guessed && !size.is_all() {
            summary.notes.push(super::sample::GUESSED_NOTE.to_owned());
        }
        let control = options.control.clone();
        Ok(JsonRows { input, summary, framing, layout, elements, guessed, budget, control })
    }

    /// A scanner before the first row.
    fn scanner(&self) -> Result<Scanner<BoxRead>> {
        let window = self.input.window(json::WINDOW_BYTES, self.budget.clone())?;
        let mut scanner = Scanner::of(window, self.budget.clone());
        scanner.skip_byte_order_mark()?;
        Ok(scanner)
    }

    /// The rows that are asked for.
    pub(super) fn rows(&self, request: &Selection) -> Result<Rows> {
        let schema = Arc::clone(request.decoded_schema());
        request.project_lists(rows::from_batches(schema, self.reader(request)?))
    }

    fn reader(&self, request: &Selection) -> Result<Reader> {
        let full = &self.summary.schema;
        // The only column of an array or a matrix is the element.
        let is_table = Shape::of(full) == Shape::Table;
        let chosen = request.columns().filter(|_| is_table).map(|_| request.fields());
        let wanted: Option<Arc<[usize]>> = chosen.as_deref().map(Arc::from);
        let range = request.range(u64::MAX);
        let is_own_size = request.batch_rows() == 0;
        let batch_bytes = match is_own_size {
            true => batch_text_bytes(&self.budget),
            false => self.budget.batch_bytes(BATCH_BYTES),
        };
        let in_pieces = is_own_size && range == (0..u64::MAX);
        let cuts = if in_pieces { self.framing.cuts(self.input.sample(), &self.budget) } else { None };
        let piece = Arc::new(PieceDecoder {
            framing: self.framing,
            layout: self.layout.clone(),
            wanted,
            batch_rows: request.batch_rows_or(batch_rows(self.layout.len(), &self.budget)),
            batch_bytes,
            budget: self.budget.clone(),
        });
        let decoder = piece.decoder()?;
        // A selection without columns of an array has no column either.
        let keep = match (request.columns(), is_table) {
            (Some(_), true) => chosen.as_deref().map(file_order),
            (Some(columns), false) if !request.cuts_lists() => Some(columns.indices().map(|_| 0).collect()),
            _ => None,
        };
        Ok(Reader {
            frame: self.framing.begin(),
            scanner: self.scanner()?,
            decoder,
            batches: Arc::new(RowBatches {
                order: keep,
                schema: Arc::clone(request.decoded_schema()),
                elements: self.elements,
            }),
            row: 0,
            from: range.start,
            to: range.end,
            guessed: self.guessed,
            id: self.summary.format,
            pieces: Pieces::new(cuts, &self.control, &self.budget),
            piece,
        })
    }

    /// Reads every row. Rules: `type` (a value that is not of its column's type), `unknown-key`, `missing-key`, `repeated-key`,
    /// `utf8`, `surrogate`, `malformed` and `truncated` (no JSON), `trailing`, `byte-order-mark` (a warning).
    pub(super) fn validate(&self, findings: &mut Findings) -> Result<()> {
        let mut scanner = self.scanner()?;
        if scanner.offset() > 0 {
            let error = Error::malformed("no byte order mark before JSON", "one").at(0);
            findings.warning(&error.rule("byte-order-mark"));
        }
        let fresh = || RowDecoder::<BoxRead>::new(&self.layout, |_| true, &self.budget);
        let is_fault = |error: &Error| matches!(error.kind(), ErrorKind::Malformed | ErrorKind::Truncated);
        let mut frame = self.framing.begin();
        let mut decoder = fresh()?;
        let mut row = 0u64;
        let mut lines = true;
        while !findings.is_full() {
            let place = |error: Error, scanner: &Scanner<BoxRead>| {
                let error = if lines { scanner.with_line(error) } else { error };
                explain_guess(error.index(row).field("row"), self.guessed)
            };
            match frame.next(&mut scanner) {
                Ok(true) => {}
                Ok(false) => break,
                Err(error) if is_fault(&error) => {
                    findings.error(&if lines { scanner.with_line(error) } else { error });
                    break;
                }
                Err(error) => return Err(error),
            }
            scanner.skip_space()?;
            let start = scanner.offset();
            match decoder.read(&mut scanner).and_then(|()| frame.end_row(&mut scanner)) {
                Ok(()) => {}
                Err(error) if is_fault(&error) => {
                    findings.error(&place(error, &scanner));
                    decoder = fresh()?;
                    match self.framing {
                        Framing::Lines => scanner.skip_line()?,
                        Framing::Array => match self.after_element(start)? {
                            Some(after) => (scanner, lines) = (after, false),
                            None => break,
                        },
                    }
                }
                Err(error) => return Err(error.index(row).field("row")),
            }
            row += 1;
            // Where there are many columns, fewer rows are held.
            if decoder.rows() >= 4096.min(BATCH_CELLS / self.layout.len().max(1)) {
                decoder.finish()?;
            }
        }
        Ok(())
    }

    /// A scanner after the element of an array that begins at `start`; `None` if it is no JSON, or cannot be read again.
    fn after_element(&self, start: u64) -> Result<Option<Scanner<BoxRead>>> {
        if !self.input.source().is_seekable() {
            return Ok(None);
        }
        let reader: BoxRead = Box::new(self.input.source().reader_at(start)?);
        let window = Window::new(reader, start, json::WINDOW_BYTES, self.budget.clone());
        let mut scanner = Scanner::of(window, self.budget.clone());
        Ok(scanner.skip_value().is_ok().then_some(scanner))
    }
}

/// Whether a sample has a whole first element of an array, or the whole array.
fn has_element(sample: &[u8], budget: &Budget) -> bool {
    let mut scanner = Scanner::new(sample, budget.clone());
    let first = |scanner: &mut Scanner<&[u8]>| {
        scanner.skip_byte_order_mark()?;
        scanner.begin_array()?;
        if scanner.next_element()? { scanner.skip_value() } else { Ok(()) }
    };
    // What is no JSON does not become so with more bytes.
    first(&mut scanner).map_or_else(|error| error.kind() != ErrorKind::Truncated, |()| true)
}

/// How the rows of the type given are to be read, and whether the type is that of an array of structs.
fn given_layout(
    text: &str,
    seen: &SeenRows,
    framing: Framing,
    options: &ReadOptions,
) -> Result<(RowLayout, bool)> {
    let schema = given_schema(text, options)?;
    let (layout, elements) = match (Form::of(&schema), schema.fields().as_ref()) {
        (Form::Table, _) if seen.only_arrays() => (RowLayout::Positions(schema.fields().clone()), false),
        (Form::Table, _) => (RowLayout::Objects(schema.fields().clone()), false),
        (Form::Array | Form::Dense, _) if framing == Framing::Array => {
            (RowLayout::Items(Arc::new(schema.clone())), false)
        }
        (Form::Array, [item]) => match item.data_type() {
            DataType::Struct(fields) if !item.is_nullable() => (RowLayout::Objects(fields.clone()), true),
            _ => return Err(other_shape(framing, text)),
        },
        _ => return Err(other_shape(framing, text)),
    };
    Ok((layout, elements))
}

/// The schema that a type given says; every field of it can be read.
pub(super) fn given_schema(text: &str, options: &ReadOptions) -> Result<Schema> {
    let text = text.strip_prefix("arrow:").unwrap_or(text);
    let schema = parse_schema(text, options.budget.limits())
        .map_err(|error| Error::usage(format!("the given type: {}", caret_line(text, &error))))?;
    for field in schema.fields() {
        check_type(field).map_err(|error| error.field(field.name().clone()))?;
    }
    Ok(schema)
}

fn other_shape(framing: Framing, text: &str) -> Error {
    let expected = match framing {
        Framing::Lines => "struct{…} or array[struct{…}]",
        Framing::Array => "struct{…}, array[…] or matrix[…]",
    };
    let found = text.strip_prefix("arrow:").unwrap_or(text);
    Error::usage(format!("the given type: expected {expected}, found {found}"))
}

/// How decoded columns become a batch.
struct RowBatches {
    order: Option<Vec<usize>>,
    schema: SchemaRef,
    elements: bool,
}

impl RowBatches {
    fn batch<R: Read + Send + 'static>(&self, decoder: &mut RowDecoder<R>) -> Result<RecordBatch> {
        let rows = decoder.rows();
        let mut columns = decoder.finish()?;
        if self.elements
            && let Some(DataType::Struct(fields)) = self.schema.fields().first().map(|item| item.data_type())
        {
            columns = vec![Arc::new(StructArray::try_new_with_length(fields.clone(), columns, None, rows)?)];
        }
        if let Some(order) = &self.order {
            columns = order.iter().filter_map(|index| columns.get(*index).map(Arc::clone)).collect();
        }
        rows::batch(Arc::clone(&self.schema), columns, rows)
    }
}

/// Reads pieces of rows.
struct PieceDecoder {
    framing: Framing,
    layout: RowLayout,
    /// The columns that are wanted; `None`: all.
    wanted: Option<Arc<[usize]>>,
    /// A batch ends with the row that has this number, or that ends at so many bytes or later.
    batch_rows: usize,
    batch_bytes: u64,
    budget: Budget,
}

impl PieceDecoder {
    fn decoder<R: Read + Send + 'static>(&self) -> Result<RowDecoder<R>> {
        let wanted = |index: usize| self.wanted.as_ref().is_none_or(|wanted| wanted.contains(&index));
        RowDecoder::new(&self.layout, wanted, &self.budget)
    }

    /// The rows of a piece: an error unless the batch that is read elsewhere ends at the same row.
    fn read(&self, piece: Window<Empty>) -> Result<RowDecoder<Empty>> {
        let mut decoder = self.decoder()?;
        let (mut frame, mut scanner) = self.framing.within(piece, &self.budget);
        let start = scanner.offset();
        while let Some(byte) = scanner.peek_byte()? {
            let is_full =
                decoder.rows() + 1 >= self.batch_rows || scanner.offset() - start >= self.batch_bytes;
            if byte.is_ascii_whitespace() || is_full || !frame.is_at_row() {
                return Err(Error::malformed("the begin of a row", "something else, or one row too many"));
            }
            decoder.read(&mut scanner)?;
            frame.end_row(&mut scanner)?;
        }
        Ok(decoder)
    }
}

struct Reader {
    frame: Frame,
    scanner: Scanner<BoxRead>,
    decoder: RowDecoder<BoxRead>,
    batches: Arc<RowBatches>,
    row: u64,
    from: u64,
    to: u64,
    guessed: bool,
    id: &'static str,
    pieces: Pieces<RecordBatch>,
    piece: Arc<PieceDecoder>,
}

impl Reader {
    fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        if !self.frame.is_at_row() {
            return self.batch();
        }
        let (piece, batches) = (&self.piece, &self.batches);
        let read = self.pieces.next(self.scanner.window(), |window| {
            let (piece, batches) = (Arc::clone(piece), Arc::clone(batches));
            move || batches.batch(&mut piece.read(window)?)
        })?;
        let Some(batch) = read else { return self.batch() };
        self.row += batch.num_rows() as u64;
        Ok(Some(batch))
    }

    fn batch(&mut self) -> Result<Option<RecordBatch>> {
        // Rows that are skipped do not count.
        let mut start = self.scanner.offset();
        while self.decoder.rows() < self.piece.batch_rows
            && self.row < self.to
            && (self.decoder.rows() == 0 || self.scanner.offset() - start < self.piece.batch_bytes)
            && self.frame.next(&mut self.scanner).map_err(|error| self.scanner.with_line(error))?
        {
            if self.decoder.rows() == 0 {
                start = self.scanner.offset();
            }
            self.one().map_err(|error| {
                let error = self.scanner.with_line(error).index(self.row).field("row");
                explain_guess(error, self.guessed)
            })?;
            self.row += 1;
        }
        match self.decoder.rows() {
            0 => Ok(None),
            _ => self.batches.batch(&mut self.decoder).map(Some),
        }
    }

    fn one(&mut self) -> Result<()> {
        if self.row < self.from {
            self.scanner.skip_value()?;
        } else {
            self.decoder.read(&mut self.scanner)?;
        }
        self.frame.end_row(&mut self.scanner)
    }
}

impl Iterator for Reader {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_batch().map_err(|error| error.in_format(self.id)).transpose()
    }
}
