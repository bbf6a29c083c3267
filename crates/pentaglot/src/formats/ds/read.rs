//! An open bundle, and its elements as record batches: from a MessagePack stream, from JSON, or by a side index.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::RecordBatch;

use super::columns::Reading;
use super::decode::{begin_cells, wrong_row_count};
use super::images::holds_png;
use super::index::{Index, Segment, SegmentRows};
use super::layout::{DsLayout, Encoded, Profile, Stride, json_rule, open_given};
use super::outline::outline;
use super::rows::{
    BATCH_BYTES, BatchLimits, RowBuilder, Tail, WINDOW_BYTES, place, read_root_count, too_many,
};
use super::schema::{declared_rows, root_shape, schema_of};
use super::types::Type;
use super::validate::validate;
use crate::control::Control;
use crate::cursor::Cursor;
use crate::error::{Context, Error, ErrorKind, Result};
use crate::formats::{Document, Findings, Outline, ReadOptions, Split, Summary};
use crate::hub::rows::{Rows, from_batches};
use crate::hub::{Selection, Shape};
use crate::source::{Source, SourceReader, Window};
use crate::wire::json::Scanner;
use crate::wire::msgpack;

/// A batch ends at this many rows, unless the user sets another number.
const BATCH_ROWS: usize = 64 << 10;

/// An open bundle.
struct Bundle {
    layout: DsLayout,
    summary: Summary,
    reading: Reading,
    index: Option<Index>,
    stride: Option<Stride>,
    control: Control,
}

/// Opens a bundle: reads its type and finds the start of its elements.
pub(super) fn open(source: Source, options: &ReadOptions) -> Result<Arc<dyn Document>> {
    let reading = Reading {
        lenient: options.options.bool("lenient")?.unwrap_or(false),
        nan_null: options.options.word("nan", &["null"])?.is_some(),
        decode: options.options.word("images", &["decode", "encode"])? == Some("decode"),
        check_images: false,
        budget: options.budget.clone(),
        placeholder_bytes: 0,
    };
    let layout = open_given(source, options)?;
    Ok(Arc::new(Bundle::new(layout, reading, options.control.clone())?))
}

impl Bundle {
    fn new(layout: DsLayout, reading: Reading, control: Control) -> Result<Bundle> {
        let schema = schema_of(&layout.kind, reading.decode)?;
        let mut summary = Summary::new(super::ID, Arc::new(schema));
        let len = layout.source.len();
        summary.bytes = len;
        summary.metadata.push(("type".to_owned(), layout.kind.to_string()));
        if !layout.described {
            summary.notes.push("the file has no header: its type was given".to_owned());
        }
        if reading.decode && holds_png(&layout.kind) {
            let note = "images are decoded to the channels of their type; alpha, which DS does not have, is left out";
            summary.notes.push(note.to_owned());
        }
        let mut bundle = Bundle { layout, summary, reading, index: None, stride: None, control };
        bundle.summary.rows = match (&bundle.layout.kind, root_shape(&bundle.layout.kind)) {
            (Type::Tabular(table), _) => table.row_count,
            (_, Shape::Value) => Some(1),
            _ => None,
        };
        match bundle.layout.wire {
            Encoded::Json => bundle.describe_json(),
            Encoded::MsgPack => bundle.describe_msgpack()?,
        }
        Ok(bundle)
    }

    fn describe_json(&mut self) {
        self.summary.dialect = Some(self.layout.bare_dialect().unwrap_or("json"));
        self.summary.dialect_reason = Some("it is JSON text".to_owned());
        if let Some((offset, bytes)) = self.layout.type_place {
            self.summary.part("type", offset, bytes);
        }
        if let Some(len) = self.layout.source.len() {
            self.summary.part("value", self.layout.body, len.saturating_sub(self.layout.body));
        }
    }

    fn describe_msgpack(&mut self) -> Result<()> {
        let body = self.layout.body;
        if body > 0 {
            self.summary.part("header", 0, body);
        }
        let head = self.layout.source.head()?;
        let start = usize::try_from(body).ok().and_then(|body| head.get(body..)).unwrap_or_default();
        let (dialect, reason) = Profile::of(&self.layout.kind, start).dialect();
        self.summary.dialect = Some(self.layout.bare_dialect().unwrap_or(dialect));
        self.summary.dialect_reason = Some(reason.to_owned());
        if matches!(self.layout.kind, Type::Array(_)) {
            let count = msgpack::read_array_count(&mut Cursor::new(start));
            self.summary.rows = count.ok().map(u64::from);
        }
        let Some(len) = self.layout.source.len() else { return Ok(()) };
        let part = if self.is_table() { "rows" } else { "value" };
        self.summary.part(part, body, len.saturating_sub(body));
        if !self.is_table() {
            return Ok(());
        }
        if body == len {
            self.summary.rows = Some(0);
            return Ok(());
        }
        match Index::beside(&self.layout, &self.reading.budget) {
            Ok(Some(index)) => {
                self.summary.rows = Some(index.row_count);
                self.index = Some(index);
                return Ok(());
            }
            Ok(None) => {}
            Err(error) => self.summary.notes.push(format!("the side index is not used: {error}")),
        }
        self.stride = Stride::of(&self.layout.kind);
        let count = self.stride.as_ref().and_then(|stride| stride.count(&self.layout.source, body, len, &[]));
        match (count, &self.stride) {
            (Some(count), Some(stride)) => {
                self.summary.metadata.push(("row bytes".to_owned(), stride.bytes.to_string()));
                self.summary.rows = Some(count);
            }
            _ => self.stride = None,
        }
        Ok(())
    }

    fn is_table(&self) -> bool {
        root_shape(&self.layout.kind) == Shape::Table
    }

    fn builder(&self, selection: &Selection) -> Result<RowBuilder> {
        let schema = Arc::clone(selection.schema());
        RowBuilder::new(&self.layout.kind, selection.columns(), schema, self.reading.clone(), 0)
    }

    /// Decodes all columns, and images that are otherwise not decoded: for `validate`.
    fn checking_builder(&self) -> Result<RowBuilder> {
        let reading = Reading { check_images: true, ..self.reading.clone() };
        RowBuilder::new(&self.layout.kind, None, Arc::clone(&self.summary.schema), reading, 0)
    }

    /// The segments to read for the rows `wanted`, if seeking or parallel reading is useful.
    fn segments(&self, wanted: &Range<u64>, ranged: bool) -> Option<Vec<Segment>> {
        if let Some(index) = &self.index {
            return (ranged || self.control.threads() > 1).then(|| index.segments(wanted));
        }
        // The stride is only a guess without hashes, so a full read decodes row by row.
        let stride = self.stride.as_ref().filter(|_| ranged)?;
        let (body, len) = (self.layout.body, self.layout.source.len()?);
        let edges = [wanted.start, wanted.end.saturating_sub(1)];
        stride.count(&self.layout.source, body, len, &edges)?;
        let each = (BATCH_BYTES / 8 / stride.bytes).max(1);
        let mut segments = Vec::new();
        let mut start = wanted.start;
        while start < wanted.end {
            let end = start.saturating_add(each).min(wanted.end);
            let offset = body + start * stride.bytes;
            segments.push(Segment {
                offset,
                bytes: (end - start) * stride.bytes,
                rows: start..end,
                hash: None,
            });
            start = end;
        }
        Some(segments)
    }
}

impl Document for Bundle {
    fn summary(&self) -> &Summary {
        &self.summary
    }

    /// The segments of the side index, joined. Without one, the offsets of rows are not known.
    fn splits(&self, wanted: usize) -> Vec<Split> {
        let Some(index) = &self.index else { return Split::whole(&self.summary) };
        let segments = index.segments(&(0..index.row_count)).into_iter();
        let pieces = segments.map(|segment| Split {
            bytes: segment.offset..segment.offset + segment.bytes,
            rows: segment.rows,
        });
        Split::joined(pieces, wanted)
    }

    fn outline(&self) -> Outline {
        outline(&self.layout, &self.summary, self.stride.as_ref(), &self.reading.budget)
    }

    fn validate(&self, findings: &mut Findings) -> Result<()> {
        validate(&self.layout, &self.reading.budget, self.checking_builder()?, findings)
    }

    fn rows(&self, request: &Selection) -> Result<Rows> {
        let schema = Arc::clone(request.schema());
        let wanted = request.range(u64::MAX);
        let batch_rows = request.batch_rows_or(BATCH_ROWS);
        if self.layout.wire == Encoded::Json {
            let rows = self.json_rows(request, wanted, batch_rows)?;
            return Ok(from_batches(schema, rows));
        }
        let ranged = request.is_sliced();
        let known = wanted.start..wanted.end.min(self.summary.rows.unwrap_or(u64::MAX));
        if let Some(segments) = self.segments(&known, ranged) {
            let make =
                RowBuilder::maker(&self.layout.kind, request.columns().cloned(), &schema, &self.reading);
            let segments = SegmentRows {
                source: self.layout.source.clone(),
                budget: self.reading.budget.clone(),
                make,
                wanted: known,
                batch_rows,
                control: self.control.clone(),
                segments: segments.into(),
                ready: VecDeque::new(),
            };
            return Ok(from_batches(schema, segments.map(|batch| batch.in_format(super::ID))));
        }
        let builder = self.builder(request)?;
        let window = Window::over(
            &self.layout.source,
            self.layout.body,
            None,
            WINDOW_BYTES,
            self.reading.budget.clone(),
        )?;
        let rows = MsgPackRows {
            window,
            builder,
            shape: root_shape(&self.layout.kind),
            wanted,
            declared: declared_rows(&self.layout.kind),
            batch_rows,
            started: false,
            done: false,
        };
        Ok(from_batches(schema, rows.map(|batch| batch.in_format(super::ID))))
    }
}

/// The elements of a MessagePack stream, in order.
struct MsgPackRows {
    window: Window,
    builder: RowBuilder,
    shape: Shape,
    wanted: Range<u64>,
    /// How many elements there must be.
    declared: Option<u64>,
    batch_rows: usize,
    started: bool,
    done: bool,
}

impl Iterator for MsgPackRows {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Result<RecordBatch>> {
        if self.done {
            return None;
        }
        match self.fill() {
            Err(error) => {
                self.done = true;
                Some(Err(error))
            }
            Ok(()) if self.builder.len == 0 => None,
            Ok(()) => Some(self.builder.finish()),
        }
    }
}

impl MsgPackRows {
    /// Reads elements until the batch is full or there are no more.
    fn fill(&mut self) -> Result<()> {
        if !self.started {
            self.started = true;
            if self.shape == Shape::Array {
                self.declared = Some(u64::from(read_root_count(&mut self.window)?));
            }
        }
        let start = self.window.offset();
        loop {
            if self.builder.row >= self.wanted.end && self.builder.row < self.declared.unwrap_or(u64::MAX) {
                self.done = true;
                return Ok(());
            }
            let full = self.fill_from_window(start)?;
            if full {
                return Ok(());
            }
            if !self.window.grow()? {
                self.done = true;
                return self.check_end();
            }
        }
    }

    /// Reads elements that are complete in the window; returns whether the batch is full or the last selected
    /// row was read.
    fn fill_from_window(&mut self, start: u64) -> Result<bool> {
        let MsgPackRows { window, builder, wanted, declared, shape, .. } = self;
        let declared = declared.unwrap_or(u64::MAX);
        let mut cursor = window.cursor();
        let mut reached = cursor.offset();
        let mut full = false;
        let mut failure = None;
        while !cursor.is_empty() {
            if builder.row >= declared {
                failure = Some(too_many(*shape, declared, reached, cursor.remaining()));
                break;
            }
            if builder.row >= wanted.end {
                // Only the end of the elements is needed from here on, and it is near.
                full = true;
                break;
            }
            let read = if builder.row < wanted.start {
                builder.skip_msgpack(&mut cursor)
            } else {
                let rows =
                    (wanted.end.min(declared) - builder.row).min((self.batch_rows - builder.len) as u64);
                let bytes = BATCH_BYTES.saturating_sub(reached - start + builder.placeholder_bytes());
                builder.read_some_msgpack(&mut cursor, &BatchLimits { rows, bytes })
            };
            if let Err(error) = read {
                builder.undo();
                failure = Some(error);
                break;
            }
            reached = cursor.offset();
            if builder.len >= self.batch_rows || reached - start + builder.placeholder_bytes() >= BATCH_BYTES
            {
                full = builder.len > 0;
                if full {
                    break;
                }
            }
        }
        window.advance_to(reached);
        match failure {
            Some(error) if error.kind() == ErrorKind::Truncated && !window.is_last() => Ok(false),
            Some(error) => Err(error),
            None => Ok(full),
        }
    }

    /// At the end of the stream: checks that all elements were read.
    fn check_end(&self) -> Result<()> {
        let offset = self.window.offset();
        match (self.declared, self.shape) {
            (Some(declared), _) if self.builder.row >= declared => Ok(()),
            (Some(declared), Shape::Table) => Err(wrong_row_count(declared, self.builder.row, offset)),
            (Some(_), shape) => {
                Err(place(Error::truncated("an element", "the end").at(offset), shape, self.builder.row))
            }
            (None, _) => Ok(()),
        }
    }
}

impl Bundle {
    fn json_rows(
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
                || self.scanner.offset() - start + self.builder.placeholder_bytes() < BATCH_BYTES)
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
                let taken = self.scanner.offset() - start + self.builder.placeholder_bytes();
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
