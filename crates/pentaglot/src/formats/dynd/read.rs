//! An open file and its rows. Rows of fixed size are read at their offsets; others are read through a window.

use crate::hub::Selection;
use std::io::Read;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_buffer::Buffer;
use arrow_schema::{Fields, SchemaRef};

use super::ID;
use super::decode::{ColumnDecoder, slice_array};
use super::layout::{Header, trailing};
use super::schema::with_ticks;
use super::types::Type;
use super::unpack::{to_logical_order, unpack, unpack_columns};
use super::walk::{Care, Passage, Walker, is_free_of_rules};
use super::{outline, validate};
use crate::cursor::{Cursor, allocate_zeroed};
use crate::error::{Context, Error, ErrorKind, Hint, Result};
use crate::formats::{self, Document, Findings, Outline, ReadOptions, Summary};
use crate::hub::Shape;
use crate::hub::rows::{self, Rows};
use crate::kernels::slices::{self, Part, Split};
use crate::limits::{Budget, Limits};
use crate::source::{Source, Window, read_until_full};

/// Bytes of a batch, unless one row is larger.
const BATCH_BYTES: u64 = 1 << 20;
/// The same, or less if the limits require it.
fn batch_bytes(limits: &Limits) -> u64 {
    BATCH_BYTES.min(limits.max_alloc / 4).max(1)
}

/// How many rows `times=auto` examines.
const TIMES_ROWS: u64 = 10_000;
/// Maximum number of rows in a batch.
const BATCH_ROWS: u64 = 1 << 17;
/// Maximum memory of a batch in which all values are missing.
const MISSING_BYTES: u64 = 64 << 20;

pub(super) struct DyndDocument {
    pub(super) header: Header,
    summary: Summary,
    pub(super) budget: Budget,
}

impl DyndDocument {
    pub(super) fn open(source: Source, options: &ReadOptions) -> Result<Self> {
        let file_bytes = source.len();
        let header = Header::read(source, options)?;
        let times = options.options.word("times", &["auto", "timestamps", "ticks"])?;
        let schema = header.ty.to_schema()?;
        let ticks = with_ticks(&schema);
        let by_content = ticks != schema && times.unwrap_or("auto") == "auto";
        let schema = Arc::new(if times == Some("ticks") { ticks } else { schema });
        let mut document = DyndDocument::new(header, schema, file_bytes, options);
        if by_content && document.begins_with_far_times()? {
            let summary = &mut document.summary;
            summary.schema = Arc::new(with_ticks(&summary.schema));
            let note = "times are numbers of 100 ns: one of the first does not fit 64 bits of nanoseconds";
            summary.notes.push(note.to_owned());
        }
        Ok(document)
    }

    /// Whether a time in the first rows is too far from 1970 for 64 bits of nanoseconds. Other errors are reported when
    /// rows are read. Of a stream only the rows in its head are examined, so that it is not consumed.
    fn begins_with_far_times(&self) -> Result<bool> {
        let is_far = |batch: std::result::Result<RecordBatch, arrow_schema::ArrowError>| {
            batch.err().map(|error| Error::from(error).kind() == ErrorKind::Lossy)
        };
        let header = match self.header.source.is_seekable() {
            true => None,
            false => Some(self.header.beginning()?),
        };
        let header = header.as_ref().unwrap_or(&self.header);
        let first = Selection::new(&self.summary.schema, Some(header.rows)).with_rows(0..TIMES_ROWS);
        Ok(self.rows_of(header, &first).is_ok_and(|mut rows| rows.find_map(is_far).unwrap_or(false)))
    }

    fn rows_of(&self, header: &Header, request: &Selection) -> Result<Rows> {
        header.check_end().in_format(ID)?;
        let range = request.range(header.rows);
        // Fields of a table are read separately; columns of a matrix are selected after reading.
        let schema = Arc::clone(request.decoded_schema());
        let decoder = Decoder {
            is_table: header.layout.shape == Shape::Table,
            row: header.layout.row.clone(),
            types: header.layout.columns(),
            wanted: request.fields(),
            schema: Arc::clone(&schema),
            budget: self.budget.clone(),
        };
        let batch_rows = self.batch_rows(request);
        let rows = match header.row_bytes() {
            Some(size) => fixed_rows(header, decoder, size, range, batch_rows),
            None => window_rows(header, decoder, range, batch_rows),
        };
        request.project_lists(rows.in_format(ID)?)
    }

    fn new(header: Header, schema: SchemaRef, file_bytes: Option<u64>, options: &ReadOptions) -> Self {
        let mut summary = Summary::new(ID, schema);
        summary.dialect = Some(header.dialect.name());
        summary.dialect_reason = Some(header.reason.clone());
        summary.rows = Some(header.rows);
        summary.bytes = file_bytes;
        summary.metadata.push(("type".to_owned(), header.ty.to_string()));
        if let Some(bytes) = header.recoded {
            summary.part("item", 0, bytes);
            return DyndDocument { header, summary, budget: options.budget.clone() };
        }
        if let Some((offset, bytes)) = header.type_text {
            summary.part("type", offset, bytes);
        }
        if header.first_row > header.data {
            summary.part("count", header.data, header.first_row - header.data);
        }
        if let Some(end) = header.end {
            summary.part("data", header.first_row, end.saturating_sub(header.first_row));
        }
        DyndDocument { header, summary, budget: options.budget.clone() }
    }

    /// How many rows a batch has.
    fn batch_rows(&self, request: &Selection) -> u64 {
        let row = &self.header.layout.row;
        let suits = match self.header.row_bytes() {
            Some(size) => (batch_bytes(self.budget.limits()) / size.max(1)).clamp(1, BATCH_ROWS),
            None => BATCH_ROWS.min(8192),
        };
        let wanted = request.batch_rows_or(usize::try_from(suits).unwrap_or(1)) as u64;
        // A requested size is reduced if it would exceed Arrow's 32-bit offsets or the memory limit.
        let memory = (MISSING_BYTES / row.hub_size().max(1)).max(1);
        if request.batch_rows() == 0 { wanted.min(memory) } else { wanted.min(memory.saturating_mul(16)) }
    }
}

impl Document for DyndDocument {
    fn summary(&self) -> &Summary {
        &self.summary
    }

    /// Rows of fixed size can be split anywhere, if they are stored unchanged in the file.
    fn splits(&self, wanted: usize) -> Vec<formats::Split> {
        let header = &self.header;
        let in_place =
            header.layout.stored.is_none() && header.recoded.is_none() && header.source.is_seekable();
        match header.row_bytes().filter(|_| in_place) {
            Some(size) => formats::Split::strided(0..header.rows, header.first_row, size, wanted),
            None => formats::Split::whole(&self.summary),
        }
    }

    fn outline(&self) -> Outline {
        outline::outline(&self.header, &self.budget)
    }

    fn validate(&self, findings: &mut Findings) -> Result<()> {
        validate::validate(self, findings).in_format(ID)
    }

    fn rows(&self, request: &Selection) -> Result<Rows> {
        self.rows_of(&self.header, request)
    }
}

/// Decodes the bytes of rows to batches.
struct Decoder {
    is_table: bool,
    row: Type,
    /// The types of all columns.
    types: Vec<Type>,
    /// The selected columns, in order.
    wanted: Vec<usize>,
    schema: SchemaRef,
    budget: Budget,
}

impl Decoder {
    /// The batch of rows at `offset`; `first` is the number of the first.
    fn decode(&self, bytes: &Buffer, offset: u64, first: u64, count: usize) -> Result<RecordBatch> {
        let columns = self.columns(bytes, count, &self.wanted, self.schema.fields());
        let columns = columns.map_err(|error| self.locate(error, bytes, offset, first, count))?;
        rows::batch(Arc::clone(&self.schema), columns, count)
    }

    fn columns(
        &self,
        bytes: &Buffer,
        count: usize,
        wanted: &[usize],
        fields: &Fields,
    ) -> Result<Vec<ArrayRef>> {
        if self.row.fixed_size().is_some() {
            return match (self.is_table, fields.first()) {
                (false, Some(field)) => Ok(vec![unpack(&self.row, field, bytes.clone(), count, None)?]),
                _ => {
                    let types: Vec<&Type> = self.types.iter().collect();
                    unpack_columns(&types, fields, wanted, bytes.clone(), count)
                }
            };
        }
        let budget = &self.budget;
        let mut columns: Vec<ColumnDecoder> = (self.types.iter().enumerate())
            .map(|(index, ty)| match wanted.contains(&index) {
                true => ColumnDecoder::new(ty, budget),
                false => ColumnDecoder::skipped(ty, budget),
            })
            .collect();
        let mut cursor = Cursor::new(bytes);
        for _ in 0..count {
            for column in &mut columns {
                column.read(&mut cursor)?;
            }
        }
        let mut arrays: Vec<Option<ArrayRef>> = columns.iter().map(|_| None).collect();
        for ((index, column), slot) in columns.into_iter().enumerate().zip(&mut arrays) {
            if let Some(field) = wanted.iter().position(|want| *want == index).and_then(|at| fields.get(at)) {
                *slot = Some(column.finish(field, None)?);
            }
        }
        let array = |index: &usize| arrays.get(*index).cloned().flatten();
        wanted
            .iter()
            .map(|index| array(index).ok_or_else(|| Error::usage(format!("there is no column {index}"))))
            .collect()
    }

    /// The parts of a row and whether they are selected, if each column is one part.
    fn parts(&self) -> Option<Vec<(Part, bool)>> {
        let part = |ty: &Type| {
            let part = match ty {
                Type::String | Type::Json | Type::Bytes { .. } => Part::Slice,
                _ => Part::Fixed(usize::try_from(ty.fixed_size()?).ok()?),
            };
            Some((part, false))
        };
        let mut parts: Vec<_> = self.types.iter().map(part).collect::<Option<_>>()?;
        for index in &self.wanted {
            parts.get_mut(*index)?.1 = true;
        }
        Some(parts).filter(|_| self.is_table)
    }

    /// The batch of rows that were split.
    fn assemble(&self, found: Split) -> Result<RecordBatch> {
        let rows = found.rows;
        let mut columns: Vec<Option<slices::SliceColumn>> = found.columns.into_iter().map(Some).collect();
        let mut arrays: Vec<Option<ArrayRef>> = vec![None; columns.len()];
        for (index, field) in self.wanted.iter().zip(self.schema.fields()) {
            let column = columns.get_mut(*index).and_then(Option::take);
            let (Some(column), Some(ty), Some(slot)) =
                (column, self.types.get(*index), arrays.get_mut(*index))
            else {
                continue;
            };
            *slot = match column {
                slices::SliceColumn::Skipped => None,
                slices::SliceColumn::Fixed(bytes) => Some(unpack(ty, field, bytes.into(), rows, None)?),
                slices::SliceColumn::Slices(offsets, bytes) => Some(slice_array(ty, offsets, bytes)?),
            };
        }
        rows::batch(Arc::clone(&self.schema), self.in_order(&arrays)?, rows)
    }

    /// The selected ones of all arrays.
    fn in_order(&self, arrays: &[Option<ArrayRef>]) -> Result<Vec<ArrayRef>> {
        let array = |index: &usize| {
            let array = arrays.get(*index).cloned().flatten();
            array.ok_or_else(|| Error::usage(format!("there is no column {index}")))
        };
        self.wanted.iter().map(array).collect()
    }

    /// The error of a batch, found again with its place by a careful walk.
    #[cold]
    fn locate(&self, error: Error, bytes: &Buffer, offset: u64, first: u64, count: usize) -> Error {
        if matches!(error.kind(), ErrorKind::Malformed | ErrorKind::Truncated) {
            let mut walker = Walker::new(self.budget.limits(), Care::Strict);
            let mut cursor = Cursor::at(bytes, offset);
            let walked =
                (first..first + count as u64).try_for_each(|row| walker.row(row, &self.row, &mut cursor));
            return walked.err().unwrap_or(error);
        }
        if error.kind() != ErrorKind::Lossy {
            return error;
        }
        let mut walker = Walker::new(self.budget.limits(), Care::Extent);
        let mut cursor = Cursor::new(bytes);
        for row in first..first + count as u64 {
            let (start, before) = (cursor.rest(), cursor.remaining());
            if walker.value(&self.row, &mut cursor).is_err() {
                break;
            }
            let one = Buffer::from(start.get(..before - cursor.remaining()).unwrap_or_default());
            for (index, field) in self.wanted.iter().zip(self.schema.fields()) {
                let fields = Fields::from(vec![Arc::clone(field)]);
                if let Err(error) = self.columns(&one, 1, &[*index], &fields) {
                    let name = field.name();
                    return Error::lossy(format!("row {row}, column {name:?}: {}", error.message()))
                        .hint(Hint::Option("times=ticks".into()));
                }
            }
        }
        error
    }
}

/// Rows of fixed size: each batch is read at its offset.
fn fixed_rows(
    header: &Header,
    decoder: Decoder,
    size: u64,
    range: Range<u64>,
    batch_rows: u64,
) -> Result<Rows> {
    let (mut source, mut first_row) = (header.source.clone(), header.first_row);
    let budget = decoder.budget.clone();
    if let Some((of, axis)) = &header.layout.stored {
        // In another order than that of rows, all data is read into memory.
        let source_bytes = source.seekable()?;
        let len = size.saturating_mul(header.rows);
        let stored = source_bytes.read_range(first_row, len, &budget)?;
        if !is_free_of_rules(of) {
            let mut cursor = Cursor::at(&stored, first_row);
            Walker::new(decoder.budget.limits(), Care::Strict).value(&header.ty, &mut cursor)?;
        }
        budget.check(len.saturating_mul(2))?;
        let logical = to_logical_order(of, axis, &stored, 1);
        source = Source::from_bytes(header.source.name(), logical);
        first_row = 0;
    }
    let schema = Arc::clone(&decoder.schema);
    let (rows, mut position, mut ended) = (header.rows, range.start, false);
    let mut reader = match source.is_seekable() {
        true => None,
        false => Some(source.reader_at(first_row + range.start * size)?),
    };
    let batches = std::iter::from_fn(move || {
        if position >= range.end {
            // A stream without rows may still have bytes.
            let reader = reader.as_mut().filter(|_| rows == 0 && !std::mem::replace(&mut ended, true))?;
            return expect_end(reader, first_row).in_format(ID).err().map(Err);
        }
        let count = batch_rows.min(range.end - position);
        let offset = first_row + position * size;
        let bytes = match &mut reader {
            None => source.read_range(offset, count * size, &budget),
            Some(reader) => read_some(reader, offset, count * size, &budget),
        };
        let mut batch = bytes.and_then(|bytes| {
            decoder.decode(&bytes, offset, position, usize::try_from(count).unwrap_or(usize::MAX))
        });
        position += count;
        if let (Some(reader), true) = (&mut reader, position == rows) {
            batch = batch.and_then(|batch| expect_end(reader, first_row + rows * size).map(|()| batch));
        }
        Some(batch.in_format(ID))
    });
    Ok(rows::from_batches(schema, batches))
}

fn read_some(reader: &mut impl Read, offset: u64, len: u64, budget: &Budget) -> Result<Buffer> {
    let mut memory = allocate_zeroed(len, budget).at(offset)?;
    let filled = read_until_full(reader, memory.as_slice_mut())?;
    if (filled as u64) < len {
        return Err(Error::truncated(format_args!("{len} bytes"), filled).at(offset));
    }
    Ok(memory.into())
}

fn expect_end(reader: &mut impl Read, offset: u64) -> Result<()> {
    let more = std::io::copy(reader, &mut std::io::sink())?;
    if more > 0 { Err(trailing(more).at(offset)) } else { Ok(()) }
}

/// Rows of any size: finds their ends first, then decodes them.
fn window_rows(header: &Header, decoder: Decoder, range: Range<u64>, batch_rows: u64) -> Result<Rows> {
    let mut window = RowWindow::open(header, &decoder.row, &decoder.budget)?;
    let parts = decoder.parts();
    let schema = Arc::clone(&decoder.schema);
    let (rows, mut position, mut ended) = (header.rows, 0, false);
    let batches = std::iter::from_fn(move || {
        let mut next = || -> Result<Option<RecordBatch>> {
            loop {
                if position == rows && !std::mem::replace(&mut ended, true) {
                    window.expect_end()?;
                }
                if position >= range.end {
                    return Ok(None);
                }
                let skips = position < range.start;
                let wanted =
                    if skips { range.start - position } else { batch_rows.min(range.end - position) };
                if let (false, Some(parts)) = (skips, &parts) {
                    let (offset, bytes) = window.bytes()?;
                    let most = usize::try_from(wanted).unwrap_or(usize::MAX);
                    let found = slices::split(bytes, most, parts);
                    // If no row is complete, the walk below enlarges the window, or reports the error.
                    if let (used, count @ 1..) = (found.bytes, found.rows) {
                        let batch = decoder.assemble(found).map_err(|error| {
                            let bytes = bytes.get(..used).unwrap_or_default();
                            decoder.locate(error, &Buffer::from(bytes), offset, position, count)
                        })?;
                        window.take(used);
                        position += count as u64;
                        return Ok(Some(batch));
                    }
                }
                let (count, offset, bytes) = window.rows(&decoder.row, wanted, position)?;
                let batch = match skips {
                    true => None,
                    false => {
                        let count = usize::try_from(count).unwrap_or(usize::MAX);
                        Some(decoder.decode(&Buffer::from(bytes), offset, position, count)?)
                    }
                };
                window.advance();
                position += count;
                if batch.is_some() {
                    return Ok(batch);
                }
            }
        };
        next().in_format(ID).transpose()
    });
    Ok(rows::from_batches(schema, batches))
}

/// The rows of a file, some at a time.
pub(super) struct RowWindow {
    window: Window<Box<dyn Read + Send>>,
    /// The size of the rows returned last.
    given: usize,
    passage: Passage,
    budget: Budget,
}

impl RowWindow {
    /// A window over rows of type `row`.
    pub(super) fn open(header: &Header, row: &Type, budget: &Budget) -> Result<Self> {
        let input = header.reader(header.first_row)?;
        let step = usize::try_from(batch_bytes(budget.limits())).unwrap_or(usize::MAX);
        let window =
            Window::with_input(&header.source, input, header.first_row, header.end, step, budget.clone());
        Ok(RowWindow { window, given: 0, passage: Passage::new(row), budget: budget.clone() })
    }

    /// The next rows, at least one and up to `wanted`: their number, offset and bytes.
    pub(super) fn rows(&mut self, ty: &Type, wanted: u64, first: u64) -> Result<(u64, u64, &[u8])> {
        let mut target = usize::try_from(batch_bytes(self.budget.limits())).unwrap_or(usize::MAX);
        loop {
            self.window.fill(target)?;
            let mut cursor = self.window.cursor();
            let held = cursor.remaining();
            let mut walker = Walker::new(self.budget.limits(), Care::Extent);
            let (mut count, mut end) = (0, 0);
            while count < wanted && (end as u64) < BATCH_BYTES {
                let start = cursor.clone();
                match self.passage.pass(&mut walker, &mut cursor) {
                    Ok(()) => {
                        count += 1;
                        end = held - cursor.remaining();
                    }
                    Err(error) if error.kind() == ErrorKind::Truncated && !self.window.is_last() => break,
                    // The rows before a broken one are still valid.
                    Err(_) if count > 0 => break,
                    Err(error) => {
                        return Err(walker.row(first, ty, &mut start.clone()).err().unwrap_or(error));
                    }
                }
            }
            if count > 0 || wanted == 0 {
                self.given = end;
                let bytes = self.window.rest().get(..end).unwrap_or_default();
                return Ok((count, self.window.offset(), bytes));
            }
            target = target.max(held).saturating_mul(2);
        }
    }

    /// The bytes of the next rows in memory, and their offset.
    fn bytes(&mut self) -> Result<(u64, &[u8])> {
        self.window.fill(usize::try_from(batch_bytes(self.budget.limits())).unwrap_or(usize::MAX))?;
        let bytes = self.window.rest();
        let most = usize::try_from(BATCH_BYTES).unwrap_or(usize::MAX);
        Ok((self.window.offset(), bytes.get(..most).unwrap_or(bytes)))
    }

    /// Advances past this many bytes of complete rows.
    fn take(&mut self, bytes: usize) {
        self.window.advance(bytes);
    }

    /// Advances past the rows returned last.
    pub(super) fn advance(&mut self) {
        self.window.advance(self.given);
    }

    /// Returns an error if bytes are left.
    pub(super) fn expect_end(&mut self) -> Result<()> {
        let offset = self.window.offset();
        let more = self.window.drain()?;
        if more > 0 { Err(trailing(more).at(offset)) } else { Ok(()) }
    }
}
