//! Opening, and rows.

use std::io::{Cursor, Read};
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, Fields, Schema, SchemaRef};

use super::dialect::CsvDialect;
use super::layout::{Cell, Records, WINDOW_BYTES};
use super::schema::SeenCells;
use super::{ID, encoding, outline, schema, validate};
use crate::control::Control;
use crate::error::{Context, Error, ErrorKind, Hint, Result};
use crate::formats::text::file_order;
use crate::formats::text::pieces::{Cuts, Pieces, batch_text_bytes};
use crate::formats::text::sample::{
    BoxRead, GUESSED_NOTE, SampleSize, Sampled, explain_guess, without_offset,
};
use crate::formats::{Document, Findings, Outline, ReadOptions, Summary};
use crate::hub::json::decode::{JsonColumn, check_type, text_only};
use crate::hub::shape::column_name;
use crate::hub::type_text::{caret_line, parse_schema};
use crate::hub::{Rows, Selection, Shape, rows};
use crate::limits::{Budget, Reservation};
use crate::source::Source;
use crate::wire::json::Scanner;

/// A batch of as many rows as were asked for ends early when it has taken this many bytes of text.
const BATCH_BYTES: u64 = 16 << 20;

/// An open file.
pub(super) struct CsvDocument {
    pub(super) input: Sampled,
    pub(super) summary: Summary,
    pub(super) dialect: CsvDialect,
    /// Whether the text was decoded, so that offsets in it are not offsets in the file.
    is_decoded: bool,
    /// Whether the types were guessed.
    pub(super) guessed: bool,
    pub(super) budget: Budget,
    control: Control,
}

/// Errs if lines end with a carriage return alone, as they did on old Macs: all of the file would be one line.
fn check_line_ends(sample: &[u8], quote: Option<u8>) -> Result<()> {
    if sample.contains(&b'\n') {
        return Ok(());
    }
    let mut is_quoted = false;
    // A carriage return at the very end is no line end between lines.
    let inner = sample.split_last().map_or(sample, |(_, inner)| inner);
    for byte in inner {
        is_quoted ^= Some(*byte) == quote;
        if *byte == b'\r' && !is_quoted {
            let advice = "convert them first, for example by `tr '\\r' '\\n'`";
            return Err(Error::unsupported("lines that end with a carriage return alone")
                .hint(Hint::Advice(advice.into())));
        }
    }
    Ok(())
}

impl CsvDocument {
    pub(super) fn open(source: Source, options: &ReadOptions) -> Result<Self> {
        let mut dialect = CsvDialect::new(&options.options, source.name())?;
        dialect.needs_line_ends = options.damaged;
        let budget = options.budget.clone();
        let bytes = source.len();
        let encoding = encoding::encoding(&options.options, &source)?;
        let source = encoding.map_or(Ok(source.clone()), |encoding| encoding::decoded(&source, encoding))?;
        let size = SampleSize::new(&options.options)?;
        // A header and a first record, if there is no line end in quotes; longer ones are cut short in the guess only.
        let enough = |sample: &[u8]| sample.iter().filter(|byte| **byte == b'\n').count() > 1;
        let input = Sampled::open(size.source(source)?, &budget, enough)?;
        check_line_ends(input.sample(), dialect.quote)?;
        if !dialect.is_given {
            dialect.delimiter = schema::find_delimiter(input.sample(), input.is_whole(), &dialect);
        }
        let sample = match size {
            SampleSize::Usual => {
                let cut = (!input.is_whole()).then_some(input.sample().len() as u64);
                let records = Records::new(input.sample(), &dialect, budget.clone());
                Sample::read(records, &dialect, size.rows(), cut, &budget)
            }
            SampleSize::Rows(_) => {
                let window = input.window(WINDOW_BYTES, budget.clone())?;
                let records = Records::of(window, &dialect);
                let cut = (!size.is_all()).then_some(u64::MAX);
                Sample::read(records, &dialect, size.rows(), cut, &budget)
            }
        }?;
        let (fields, guessed) = match &options.type_text {
            Some(text) => (given_fields(text, &sample, &dialect, options)?, false),
            None => (sample.fields(), true),
        };
        let mut summary = Summary::new(ID, Arc::new(Schema::new(fields)));
        summary.rows = sample.rows;
        summary.bytes = bytes;
        summary.metadata.push(("header".to_owned(), dialect.header.to_string()));
        summary.metadata.push(("delimiter".to_owned(), char::from(dialect.delimiter).to_string()));
        if let Some(encoding) = encoding {
            summary.metadata.push(("encoding".to_owned(), encoding.name().to_owned()));
        }
        if let Some(bytes) = bytes.filter(|_| encoding.is_none()) {
            if dialect.header {
                summary.part("header", 0, sample.header_bytes);
            }
            let start = if dialect.header { sample.header_bytes } else { 0 };
            summary.part("row", start, bytes.saturating_sub(start));
        }
        if guessed && !size.is_all() && !summary.schema.fields().is_empty() {
            summary.notes.push(GUESSED_NOTE.to_owned());
        }
        if !dialect.is_given && dialect.delimiter != b',' {
            let delimiter = match dialect.delimiter {
                b'\t' => "tabs".to_owned(),
                other => format!("{:?}", char::from(other)),
            };
            summary.notes.push(format!("fields are separated by {delimiter}, as the first lines show"));
        }
        let (is_decoded, control) = (encoding.is_some(), options.control.clone());
        Ok(CsvDocument { input, summary, dialect, is_decoded, guessed, budget, control })
    }

    /// The fields as their values are decoded.
    pub(super) fn decoded_fields(&self) -> Fields {
        let fields = self.summary.schema.fields();
        match self.guessed {
            true => fields.iter().map(|field| text_only(field.as_ref().clone())).collect(),
            false => fields.clone(),
        }
    }

    /// The records, past the header.
    pub(super) fn records(&self) -> Result<Records<BoxRead>> {
        let window = self.input.window(WINDOW_BYTES, self.budget.clone())?;
        let mut records = Records::of(window, &self.dialect);
        records.begin()?;
        if self.dialect.header {
            records.next_record().field("header")?;
        }
        Ok(records)
    }

    /// An error of this file, with its line and what helps.
    pub(super) fn explain(&self, error: Error, row: u64, records: &Records<BoxRead>) -> Error {
        explained(error, row, records, (self.guessed, self.is_decoded))
    }
}

fn explained(error: Error, row: u64, records: &Records<BoxRead>, how: (bool, bool)) -> Error {
    explain(records.with_line(error).index(row).field("row"), how.0, how.1)
}

fn explain(error: Error, guessed: bool, is_decoded: bool) -> Error {
    let error = explain_guess(error, guessed);
    let error = if is_decoded { without_offset(error) } else { error };
    match error.rule_name() {
        "utf8" if !is_decoded => error.hint(Hint::Option("encoding=latin1".into())),
        _ => error,
    }
}

impl Document for CsvDocument {
    fn summary(&self) -> &Summary {
        &self.summary
    }

    fn outline(&self) -> Outline {
        outline::outline(self)
    }

    fn validate(&self, findings: &mut Findings) -> Result<()> {
        validate::validate(self, findings).in_format(ID)
    }

    fn rows(&self, selection: &Selection) -> Result<Rows> {
        rows(self, selection).in_format(ID)
    }
}

/// What a column costs while types are guessed, beside its name: what was seen of its values, and its field.
const NAME_BYTES: u64 = 512;

/// What the first records say.
struct Sample {
    names: Vec<String>,
    seen: Vec<SeenCells>,
    /// How many rows there are, if the sample is the whole file and sound.
    rows: Option<u64>,
    header_bytes: u64,
    /// Pays for names and guesses.
    _held: Reservation,
}

impl Sample {
    /// Looks at up to `most` records. `cut` is the offset at which the sample ends, if that is not the end of the file.
    fn read<R: Read>(
        mut records: Records<R>,
        dialect: &CsvDialect,
        most: u64,
        cut: Option<u64>,
        budget: &Budget,
    ) -> Result<Self> {
        let mut memory = Vec::new();
        records.begin()?;
        let mut names = Vec::new();
        let mut held = budget.reservation();
        let mut known = dialect.header;
        if dialect.header && records.next_record().field("header")? && !records.is_blank() {
            for (index, cell) in records.cells().enumerate() {
                let name = std::str::from_utf8(cell.text(&mut memory)).map_err(|_| {
                    let error = Error::malformed("UTF-8", "other bytes").rule("utf8");
                    let error = records.with_line(error.at(cell.offset)).index(index as u64).field("header");
                    explain(error, false, false)
                })?;
                held.grow(NAME_BYTES + name.len() as u64)?;
                names.push(name.to_owned());
            }
        }
        let header_bytes = if dialect.header { records.offset() } else { 0 };
        let mut seen: Vec<SeenCells> = names.iter().map(|_| SeenCells::default()).collect();
        let mut rows = 0;
        let mut sound = true;
        loop {
            match records.next_record() {
                Ok(false) => break,
                Ok(true) => {}
                // The reader will meet it again and say so.
                Err(error) => {
                    sound = false;
                    if matches!(error.kind(), ErrorKind::Malformed | ErrorKind::Truncated) {
                        continue;
                    }
                    // Past a limit, there is no next record.
                    break;
                }
            }
            // The last record of a sample may be cut.
            if cut.is_some_and(|cut| records.offset() == cut || rows == most) {
                break;
            }
            if !known {
                known = true;
                held.grow((records.len() as u64).saturating_mul(NAME_BYTES))?;
                names.extend((0..records.len()).map(|index| column_name(index as u64)));
                seen.extend((0..records.len()).map(|_| SeenCells::default()));
            }
            if skipped(&records, seen.len()) {
                continue;
            }
            if rows < most {
                for (seen, cell) in seen.iter_mut().zip(records.cells()) {
                    if !cell.is_empty() && !dialect.is_null_text(&cell, &mut memory) {
                        seen.include(cell.text(&mut memory));
                    }
                }
            }
            rows += 1;
        }
        Ok(Sample { names, seen, rows: (cut.is_none() && sound).then_some(rows), header_bytes, _held: held })
    }

    fn fields(&self) -> Fields {
        self.names.iter().zip(&self.seen).map(|(name, seen)| seen.field(name)).collect()
    }
}

/// Whether a record is an empty line, which is not a row.
pub(super) fn skipped<R: Read>(records: &Records<R>, columns: usize) -> bool {
    columns > 1 && records.is_blank()
}

/// The fields of the given type, compared with the header.
fn given_fields(text: &str, sample: &Sample, dialect: &CsvDialect, options: &ReadOptions) -> Result<Fields> {
    let text = text.strip_prefix("arrow:").unwrap_or(text);
    let schema = parse_schema(text, options.budget.limits())
        .map_err(|error| Error::usage(format!("the given type: {}", caret_line(text, &error))))?;
    if Shape::of(&schema) != Shape::Table {
        return Err(Error::usage(format!("the given type: expected struct{{…}}, found {text}")));
    }
    for field in schema.fields() {
        check_type(field).map_err(|error| error.field(field.name().clone()))?;
    }
    let names: Vec<&String> = schema.fields().iter().map(|field| field.name()).collect();
    if dialect.header && names != sample.names.iter().collect::<Vec<_>>() {
        let list = |names: &[&String]| {
            let shown: Vec<String> = names.iter().take(20).map(|name| format!("{name:?}")).collect();
            let more = names.len().saturating_sub(shown.len());
            if more > 0 { format!("{} and {more} more", shown.join(", ")) } else { shown.join(", ") }
        };
        let message = format!(
            "the given type: expected the columns of the header ({}), found {}",
            list(&sample.names.iter().collect::<Vec<_>>()),
            list(&names)
        );
        return Err(Error::usage(message));
    }
    Ok(schema.fields().clone())
}

/// The bytes of one cell, for a scanner of JSON text.
pub(super) type CellInput = Cursor<Vec<u8>>;

/// The columns of records, of which some may not be wanted.
pub(super) struct Table {
    fields: Fields,
    columns: Vec<Option<JsonColumn<CellInput>>>,
    names: Vec<String>,
    /// What an empty field is in each column.
    empty: Vec<Empty>,
    scanner: Scanner<CellInput>,
    dialect: CsvDialect,
    memory: Vec<u8>,
    pub(super) rows: usize,
    budget: Budget,
}

impl Table {
    pub(super) fn new(
        fields: &Fields,
        wanted: impl Fn(usize) -> bool,
        dialect: &CsvDialect,
        budget: &Budget,
    ) -> Result<Self> {
        let columns = fields.iter().enumerate().map(|(index, field)| {
            let column = || JsonColumn::new(field, budget).field(field.name().clone());
            wanted(index).then(column).transpose()
        });
        Ok(Table {
            fields: fields.clone(),
            columns: columns.collect::<Result<_>>()?,
            names: fields.iter().map(|field| field.name().clone()).collect(),
            empty: fields.iter().map(|field| Empty::of(field)).collect(),
            scanner: Scanner::new(CellInput::default(), budget.clone()),
            dialect: dialect.clone(),
            memory: Vec::new(),
            rows: 0,
            budget: budget.clone(),
        })
    }

    /// What makes a table of the same columns, without rows, on any thread.
    fn of_same_columns(&self) -> impl FnOnce() -> Result<Self> + Send + use<> {
        let (fields, dialect, budget) = (self.fields.clone(), self.dialect.clone(), self.budget.clone());
        let wanted: Vec<bool> = self.columns.iter().map(Option::is_some).collect();
        move || Table::new(&fields, |index| wanted.get(index) == Some(&true), &dialect, &budget)
    }

    /// Appends a record. `found` gets each error; the caller decides whether to go on.
    pub(super) fn read<R: Read>(
        &mut self,
        records: &Records<R>,
        mut found: impl FnMut(Error) -> Result<()>,
    ) -> Result<()> {
        let blank_row = self.columns.is_empty() && records.is_blank();
        if records.len() != self.columns.len() && !blank_row {
            let expected = match self.columns.len() {
                1 => "1 field".to_owned(),
                count => format!("{count} fields"),
            };
            let error = Error::malformed(expected, records.len()).rule("field-count");
            return found(error.at(records.record_offset()));
        }
        for (index, cell) in records.cells().enumerate() {
            let Some(Some(column)) = self.columns.get_mut(index) else { continue };
            let empty = self.empty.get(index).copied().unwrap_or(Empty::Null);
            let result = if empty != Empty::Value && self.dialect.is_null_text(&cell, &mut self.memory) {
                column.null()
            } else {
                read_cell(column, &cell, empty, &mut self.scanner, &mut self.memory)
            };
            if let Err(error) = result {
                let name = self.names.get(index).cloned().unwrap_or_default();
                found(error.at(cell.offset).field(name))?;
            }
        }
        self.rows += 1;
        Ok(())
    }

    /// Takes the wanted columns out, in order.
    pub(super) fn finish(&mut self) -> Result<Vec<ArrayRef>> {
        self.rows = 0;
        self.columns.iter_mut().flatten().map(JsonColumn::finish).collect()
    }
}

/// What an empty field is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Empty {
    /// A null, in quotes too: no value of the type is empty text (programs that quote every field write nulls so).
    Null,
    /// A null; a quoted empty field is an empty value.
    Quoted,
    /// The empty value: the column has no nulls.
    Value,
}

impl Empty {
    fn of(field: &Field) -> Self {
        fn texts(data_type: &DataType) -> bool {
            match data_type {
                DataType::Dictionary(_, value) => texts(value),
                DataType::RunEndEncoded(_, value) => texts(value.data_type()),
                DataType::FixedSizeBinary(_) => true,
                other => other.is_string() || other.is_binary(),
            }
        }
        match (texts(field.data_type()), field.is_nullable()) {
            (false, _) => Empty::Null,
            (true, true) => Empty::Quoted,
            (true, false) => Empty::Value,
        }
    }
}

#[inline]
fn read_cell(
    column: &mut JsonColumn<CellInput>,
    cell: &Cell<'_>,
    empty: Empty,
    scanner: &mut Scanner<CellInput>,
    memory: &mut Vec<u8>,
) -> Result<()> {
    if cell.is_empty() && (empty == Empty::Null || empty == Empty::Quoted && !cell.quoted) {
        return column.null();
    }
    let text = cell.text(memory);
    if !column.is_nested() {
        return column.text(text);
    }
    // Where quotes are doubled, an offset is that of as many characters into the field.
    scanner.reset(Cursor::new(text.to_vec()), cell.offset + u64::from(cell.quoted));
    column.read(scanner)?;
    scanner.end()
}

/// The rows that are asked for.
fn rows(document: &CsvDocument, request: &Selection) -> Result<Rows> {
    let full = &document.summary.schema;
    let schema = Arc::clone(request.schema());
    let chosen = request.columns().map(|_| request.fields());
    let wanted = |index: usize| chosen.as_ref().is_none_or(|chosen| chosen.contains(&index));
    let table = Table::new(&document.decoded_fields(), wanted, &document.dialect, &document.budget)?;
    // Columns come out in the order of the file; the request may want another, or one twice.
    let order = chosen.map(|chosen| file_order(&chosen));
    let range = request.range(u64::MAX);
    let (budget, is_own_size) = (&document.budget, request.batch_rows() == 0);
    let batch_bytes = match is_own_size {
        true => batch_text_bytes(budget),
        false => budget.batch_bytes(BATCH_BYTES),
    };
    let in_pieces = is_own_size && range == (0..u64::MAX) && document.dialect.comment.is_none();
    let pieces = Pieces::new(in_pieces.then_some(Cuts::AfterLines), &document.control, budget);
    let reader = Reader {
        records: document.records()?,
        columns: full.fields().len(),
        table,
        layout: Arc::new(RowBatches { schema: Arc::clone(&schema), order }),
        row: 0,
        from: range.start,
        to: range.end,
        batch_rows: request.batch_rows_or(usize::MAX),
        batch_bytes,
        explain: (document.guessed, document.is_decoded),
        pieces,
    };
    Ok(rows::from_batches(schema, reader))
}

/// How decoded columns become a batch.
struct RowBatches {
    schema: SchemaRef,
    /// For each column its place among those that are decoded; `None`: as they are.
    order: Option<Vec<usize>>,
}

impl RowBatches {
    fn batch(&self, table: &mut Table) -> Result<RecordBatch> {
        let rows = table.rows;
        let mut columns = table.finish()?;
        if let Some(order) = &self.order {
            columns = order.iter().filter_map(|index| columns.get(*index).map(Arc::clone)).collect();
        }
        rows::batch(Arc::clone(&self.schema), columns, rows)
    }
}

struct Reader {
    records: Records<BoxRead>,
    columns: usize,
    table: Table,
    layout: Arc<RowBatches>,
    row: u64,
    from: u64,
    to: u64,
    batch_rows: usize,
    batch_bytes: u64,
    /// Whether types were inferred, and whether the text was decoded.
    explain: (bool, bool),
    pieces: Pieces<RecordBatch>,
}

impl Reader {
    fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        let (table, layout, columns) = (&self.table, &self.layout, self.columns);
        let read = self.records.next_piece(&mut self.pieces, |mut records| {
            let (new_table, layout) = (table.of_same_columns(), Arc::clone(layout));
            move || {
                let mut table = new_table()?;
                while records.next_record()? {
                    match skipped(&records, columns) {
                        // The batch begins where its first row does.
                        true if table.rows == 0 => return Err(Error::malformed("a record", "an empty line")),
                        true => {}
                        false => table.read(&records, Err)?,
                    }
                }
                layout.batch(&mut table)
            }
        })?;
        let Some(batch) = read else { return self.batch() };
        self.row += batch.num_rows() as u64;
        Ok(Some(batch))
    }

    fn batch(&mut self) -> Result<Option<RecordBatch>> {
        // Rows that are skipped do not count.
        let mut start = self.records.offset();
        while self.table.rows < self.batch_rows
            && self.row < self.to
            && (self.table.rows == 0 || self.records.offset() - start < self.batch_bytes)
            && self
                .records
                .next_record()
                .map_err(|error| explained(error, self.row, &self.records, self.explain))?
        {
            if skipped(&self.records, self.columns) {
                continue;
            }
            if self.row >= self.from {
                if self.table.rows == 0 {
                    start = self.records.record_offset();
                }
                self.table.read(&self.records, |error| {
                    Err(explained(error, self.row, &self.records, self.explain))
                })?;
            }
            self.row += 1;
        }
        match self.table.rows {
            0 => Ok(None),
            _ => self.layout.batch(&mut self.table).map(Some),
        }
    }
}

impl Iterator for Reader {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_batch().map_err(|error| error.in_format(ID)).transpose()
    }
}
