//! Rows from a file, or from a stream that can be read at any offset.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{DataType, SchemaRef};

use super::body::{self, Dictionaries};
use super::dictionary::has_dictionary;
use super::layout::{Block, Footer, MAGIC, MessageKind, Next, first_message, read_message, wrong_kind};
use super::pipe::Pipe;
use super::schema::schema_message;
use super::{FILE, STREAM, outline, slice, validate};
use crate::error::{self, Context, Error, ErrorKind, Result};
use crate::formats::{Document, Findings, Node, Outline, ReadOptions, Split, Summary};
use crate::hub::{Columns, Rows, Selection, rows};
use crate::limits::Budget;
use crate::source::Source;

/// Bytes of a batch up to which it is read in one piece.
const WHOLE_BYTES: u64 = 16 << 20;
/// Bytes of the parts of a larger one.
const PART_BYTES: u64 = 4 << 20;

/// Opens a file: reads its footer and the headers of its batches.
pub(super) fn open_file(source: &Source, options: &ReadOptions) -> Result<Arc<dyn Document>> {
    let source = source.seekable_if(|head| head.starts_with(MAGIC))?;
    let mut magic = [0; 6];
    let count = source.read_at(0, &mut magic)?;
    if magic.starts_with(b"FEA1") {
        return Err(Error::unsupported("Feather version 1 (write it again as version 2)"));
    }
    if magic != *MAGIC {
        let found = error::hex(magic.get(..count).unwrap_or_default());
        let expected = "the magic ARROW1";
        let error = match count < MAGIC.len() && MAGIC.starts_with(magic.get(..count).unwrap_or_default()) {
            true => Error::truncated(expected, found),
            false => Error::malformed(expected, found),
        };
        return Err(error.at(0).rule("magic"));
    }
    let budget = options.budget.clone();
    // Without its footer a file is a stream that begins after the magic.
    let store = match Store::file(FILE.id, source.clone(), budget.clone()) {
        Err(_) if options.damaged => {
            Store::stream(FILE.id, source.clone(), first_message(&source)?, budget, true)?
        }
        store => store?,
    };
    Ok(Arc::new(StoreDocument { summary: store.summary()?, store: Arc::new(store) }))
}

/// Opens a stream: walks over the headers of its messages if it can be read at any offset.
pub(super) fn open_stream(source: Source, options: &ReadOptions) -> Result<Arc<dyn Document>> {
    let budget = &options.budget;
    if source.is_seekable() {
        let store = Store::stream(STREAM.id, source, 0, budget.clone(), options.damaged)?;
        return Ok(Arc::new(StoreDocument { summary: store.summary()?, store: Arc::new(store) }));
    }
    let pipe = Pipe::open(STREAM.id, source, budget.clone())?;
    Ok(Arc::new(PipeDocument { summary: Summary::new(STREAM.id, Arc::clone(&pipe.schema)), pipe }))
}

struct StoreDocument {
    store: Arc<Store>,
    summary: Summary,
}

impl Document for StoreDocument {
    fn summary(&self) -> &Summary {
        &self.summary
    }

    fn splits(&self, wanted: usize) -> Vec<Split> {
        self.store.splits(wanted)
    }

    fn has_columns_apart(&self) -> bool {
        !self.store.source.is_costly()
    }

    fn outline(&self) -> Outline {
        outline::store(&self.store)
    }

    fn validate(&self, findings: &mut Findings) -> Result<()> {
        validate::store(&self.store, findings).in_format(self.store.id)
    }

    fn rows(&self, request: &Selection) -> Result<Rows> {
        self.store.rows(request).in_format(self.store.id)
    }
}

struct PipeDocument {
    pipe: Pipe,
    summary: Summary,
}

impl Document for PipeDocument {
    fn summary(&self) -> &Summary {
        &self.summary
    }

    /// A pipe has no offsets to go back to.
    fn outline(&self) -> Outline {
        Node::new(self.pipe.id, 0, 0)
    }

    fn validate(&self, findings: &mut Findings) -> Result<()> {
        validate::pipe(&self.pipe, findings).in_format(self.pipe.id)
    }

    fn rows(&self, request: &Selection) -> Result<Rows> {
        self.pipe.rows(request).in_format(self.pipe.id)
    }
}

/// A message that is not read yet.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry {
    pub block: Block,
    pub kind: MessageKind,
}

/// An open file or seekable stream: where its messages are.
pub(super) struct Store {
    pub id: &'static str,
    pub source: Source,
    pub budget: Budget,
    pub schema: SchemaRef,
    /// Dictionaries and batches, in the order in which they are to be read.
    pub entries: Vec<Entry>,
    pub footer: Option<Footer>,
    /// Where a stream ends: the marker and its bytes.
    pub end: Range<u64>,
    pub total_rows: u64,
}

impl Store {
    /// Opens the file form: what the footer says, and the headers of its batches.
    pub(super) fn file(id: &'static str, source: Source, budget: Budget) -> Result<Store> {
        let footer = Footer::read(&source, &budget)?;
        let mut entries = Vec::new();
        let mut total_rows = 0u64;
        for (index, block) in footer.dictionaries.iter().enumerate() {
            let place = |result: Result<()>| result.index(index as u64).field("dictionary");
            let message = block.read(&source, &budget).index(index as u64).field("dictionary")?;
            if !matches!(message.kind, MessageKind::Dictionary { .. }) {
                place(Err(wrong_kind("a dictionary batch", &message)))?;
            }
            entries.push(Entry { block: *block, kind: message.kind });
        }
        for (index, block) in footer.batches.iter().enumerate() {
            let message = block.read(&source, &budget).index(index as u64).field("batch")?;
            let MessageKind::Batch { rows } = message.kind else {
                return Err(wrong_kind("a record batch", &message).index(index as u64).field("batch"));
            };
            total_rows = add_rows(total_rows, rows).at(block.offset)?;
            entries.push(Entry { block: *block, kind: message.kind });
        }
        let schema = Arc::new(footer.schema.clone());
        let end = footer.offset..footer.offset;
        Ok(Store { id, source, budget, schema, entries, footer: Some(footer), end, total_rows })
    }

    /// Opens the stream form: walks the headers of all messages, in a damaged stream as far as they are whole.
    pub(super) fn stream(
        id: &'static str,
        source: Source,
        start: u64,
        budget: Budget,
        damaged: bool,
    ) -> Result<Store> {
        let (schema, first) = schema_message(read_message(&source, start, &budget)?, &budget)?;
        let mut entries = Vec::new();
        let (mut offset, mut total_rows) = (first.end(), 0u64);
        let end = loop {
            let message = match read_message(&source, offset, &budget) {
                Ok(Next::End(bytes)) => break offset..offset + bytes,
                Ok(Next::Message(message)) => message,
                Err(error) if damaged && error.kind() != ErrorKind::Io => break offset..offset,
                Err(error) => return Err(error),
            };
            match message.kind {
                MessageKind::Batch { rows } => total_rows = add_rows(total_rows, rows).at(offset)?,
                MessageKind::Dictionary { .. } => {}
                MessageKind::Schema | MessageKind::Other(_) => {
                    return Err(wrong_kind("a record or dictionary batch", &message));
                }
            }
            let block = Block {
                offset,
                metadata_bytes: message.body_offset() - offset,
                body_bytes: message.body_bytes,
            };
            entries.push(Entry { block, kind: message.kind });
            offset = message.end();
        };
        Ok(Store { id, source, budget, schema, entries, footer: None, end, total_rows })
    }

    /// What the headers say.
    pub(super) fn summary(&self) -> Result<Summary> {
        let mut summary = Summary::new(self.id, Arc::clone(&self.schema));
        summary.rows = Some(self.total_rows);
        summary.bytes = self.source.len();
        let (mut dictionaries, mut batches) = (0, 0);
        let mut codecs = Vec::new();
        let columns = self.schema.fields().iter();
        // A dictionary may hold nulls among its values, a union or run-end column has no nulls of its own.
        let counted = |data_type: &DataType| {
            !matches!(data_type, DataType::Dictionary(..) | DataType::Union(..) | DataType::RunEndEncoded(..))
        };
        let mut nulls: Vec<Option<u64>> =
            columns.map(|field| counted(field.data_type()).then_some(0)).collect();
        for entry in &self.entries {
            let bytes = entry.block.metadata_bytes + entry.block.body_bytes;
            let path = if let MessageKind::Batch { .. } = entry.kind {
                batches += 1;
                self.count_nulls(entry, &mut nulls, &mut codecs)?;
                format!("batch[{}]", batches - 1)
            } else {
                dictionaries += 1;
                format!("dictionary[{}]", dictionaries - 1)
            };
            summary.part(path, entry.block.offset, bytes);
        }
        summary.null_counts = nulls;
        if let Some(footer) = &self.footer {
            summary.part("footer", footer.offset, footer.bytes);
            summary.metadata.push(("version".to_owned(), format!("V{}", footer.version.0 + 1)));
            summary.metadata.extend(footer.metadata.iter().map(short_pair));
        }
        summary.metadata.push(("batches".to_owned(), batches.to_string()));
        if dictionaries > 0 {
            summary.metadata.push(("dictionaries".to_owned(), dictionaries.to_string()));
        }
        if !codecs.is_empty() {
            summary.metadata.push(("compression".to_owned(), codecs.join(", ")));
        }
        let mut keys: Vec<(String, String)> = self
            .schema
            .metadata()
            .iter()
            .map(|(key, value)| short_pair(&(key.clone(), value.clone())))
            .collect();
        keys.sort();
        summary.metadata.extend(keys);
        Ok(summary)
    }

    /// Adds a batch's nulls per column; where its header cannot be walked, none are known.
    fn count_nulls(
        &self,
        entry: &Entry,
        nulls: &mut [Option<u64>],
        codecs: &mut Vec<&'static str>,
    ) -> Result<()> {
        let mut count = || -> Result<Vec<u64>> {
            let limits = self.budget.limits();
            let message = entry.block.read(&self.source, &self.budget)?;
            let batch = message.record_batch(limits)?;
            if let Some(compression) = batch.compression() {
                let name = if compression.codec().0 == 0 { "lz4" } else { "zstd" };
                if !codecs.contains(&name) {
                    codecs.push(name);
                }
            }
            let slots = body::slots(self.schema.fields(), batch, message.version, limits, None)?;
            let nodes: Vec<_> = batch.nodes().into_iter().flatten().collect();
            let first = slots.iter().map(|slots| nodes.get(slots.nodes.start));
            Ok(first
                .map(|node| node.and_then(|node| u64::try_from(node.null_count()).ok()).unwrap_or(0))
                .collect())
        };
        let counts = match count() {
            Err(error) if error.kind() == ErrorKind::Io => return Err(error),
            counts => counts.ok(),
        };
        for (index, known) in nulls.iter_mut().enumerate() {
            let more = counts.as_ref().and_then(|counts| counts.get(index));
            *known = known.zip(more).map(|(known, more)| known.saturating_add(*more));
        }
        Ok(())
    }

    /// The batches, joined.
    pub(super) fn splits(&self, wanted: usize) -> Vec<Split> {
        let mut row = 0u64;
        let pieces = self.entries.iter().filter_map(|entry| {
            let MessageKind::Batch { rows: rows @ 1.. } = entry.kind else { return None };
            let (start, offset) = (row, entry.block.offset);
            row = row.saturating_add(rows);
            let bytes = entry.block.metadata_bytes.saturating_add(entry.block.body_bytes);
            let end = offset.saturating_add(bytes);
            Some(Split { rows: start..row, bytes: offset..end })
        });
        Split::joined(pieces, wanted)
    }

    /// The rows of a request: whole batches outside it are not read, nor are columns that are not asked for.
    pub(super) fn rows(self: &Arc<Self>, request: &Selection) -> Result<Rows> {
        let range = request.range(self.total_rows);
        let schema = Arc::clone(request.decoded_schema());
        let chosen = request.columns().filter(|_| !request.cuts_lists());
        let selection = chosen.map(|columns| Projection::new(columns, &self.schema));
        let needed = selection.as_ref().map(|selection| selection.dictionaries(&self.schema));
        let reader = StoreReader {
            store: Arc::clone(self),
            schema: Arc::clone(&schema),
            selection,
            needed,
            dictionaries: Dictionaries::new(),
            next: 0,
            position: 0,
            rest: None,
            wants_values: range.is_empty()
                && self.schema.fields().iter().any(|field| has_dictionary(field.data_type())),
            range,
        };
        let rows = rows::from_batches(schema, reader);
        let rows = slice::split(rows, request.batch_rows());
        request.project_lists(rows)
    }

    /// Reads a dictionary batch and adds it to the others.
    pub(super) fn read_dictionary(&self, entry: &Entry, dictionaries: &mut Dictionaries) -> Result<()> {
        let message = entry.block.read(&self.source, &self.budget)?;
        let body = self.source.read_range(message.body_offset(), message.body_bytes, &self.budget)?;
        body::decode_dictionary(&message, &body, &self.schema, dictionaries, &self.budget)
    }

    /// How many rows of a batch are read at a time, if its columns can be read in part: all of them, unless they are
    /// large. Memory that is used again and again is faster than a large piece that is new each time.
    fn part_rows(&self, entry: &Entry, rows: u64) -> u64 {
        let bytes = entry.block.body_bytes;
        if bytes <= WHOLE_BYTES || self.source.is_costly() {
            return rows;
        }
        let part = PART_BYTES / (bytes / rows.max(1)).max(1);
        // Validity is in bytes of eight rows.
        (part & !7).max(8)
    }

    /// Reads a small part of the rows of a batch, if its columns can be read in part.
    fn read_slice(
        &self,
        entry: &Entry,
        chosen: Option<&[usize]>,
        rows: Range<u64>,
    ) -> Result<Option<RecordBatch>> {
        if self.source.memory().is_some() {
            return Ok(None);
        }
        let message = entry.block.read(&self.source, &self.budget)?;
        slice::decode(&message, &self.source, &self.schema, chosen, rows, &self.budget)
    }

    /// Reads a record batch, or some of its columns.
    pub(super) fn read_batch(
        &self,
        entry: &Entry,
        chosen: Option<&[usize]>,
        dictionaries: &Dictionaries,
    ) -> Result<RecordBatch> {
        let message = entry.block.read(&self.source, &self.budget)?;
        if let Some(chosen) = chosen {
            let (source, budget) = (&self.source, &self.budget);
            return body::decode_columns(&message, source, &self.schema, chosen, dictionaries, budget);
        }
        let body = self.source.read_range(message.body_offset(), message.body_bytes, &self.budget)?;
        body::decode(&message, &body, &self.schema, dictionaries, &self.budget)
    }
}

fn add_rows(total: u64, rows: u64) -> Result<u64> {
    total.checked_add(rows).ok_or_else(|| Error::malformed("a row count that fits", "more"))
}

/// A pair whose value is cut, for people to look at.
fn short_pair((key, value): &(String, String)) -> (String, String) {
    const MOST: usize = 200;
    match value.char_indices().nth(MOST) {
        Some((end, _)) => {
            let cut = value.get(..end).unwrap_or_default();
            (key.clone(), format!("{cut}… ({} bytes)", value.len()))
        }
        None => (key.clone(), value.clone()),
    }
}

/// Columns to read, each once and in file order, and where each wanted column is among them.
struct Projection {
    read: Vec<usize>,
    order: Vec<usize>,
}

impl Projection {
    fn new(columns: &Columns, schema: &SchemaRef) -> Self {
        let (read, order) = columns.distinct(schema.fields().len());
        Projection { read, order }
    }

    fn dictionaries(&self, schema: &SchemaRef) -> Vec<i64> {
        let fields = self.read.iter().filter_map(|index| schema.fields().get(*index)).cloned().collect();
        body::dictionary_fields(&fields).into_iter().map(|(id, _)| id).collect()
    }
}

struct StoreReader {
    store: Arc<Store>,
    schema: SchemaRef,
    selection: Option<Projection>,
    /// The dictionaries that the selection needs; `None`: all.
    needed: Option<Vec<i64>>,
    dictionaries: Dictionaries,
    next: usize,
    /// The first row of the next batch.
    position: u64,
    /// The rows of a batch that are still to be read, of how many.
    rest: Option<(Entry, u64, Range<u64>)>,
    range: Range<u64>,
    /// Whether a batch without rows is to come, for the values of its dictionaries.
    wants_values: bool,
}

impl StoreReader {
    fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        if let Some((entry, count, rows)) = self.rest.take() {
            return self.read(entry, count, rows).map(Some);
        }
        while let Some(entry) = self.store.entries.get(self.next).copied() {
            // A batch without rows holds nothing that is asked for, but a reader of all rows checks it.
            let whole = self.range == (0..self.store.total_rows);
            if self.position >= self.range.end && !whole && !self.wants_values {
                return Ok(None);
            }
            self.next += 1;
            match entry.kind {
                MessageKind::Dictionary { id, .. } => {
                    if self.needed.as_ref().is_none_or(|needed| needed.contains(&id)) {
                        self.store.read_dictionary(&entry, &mut self.dictionaries).field("dictionary")?;
                    }
                }
                MessageKind::Batch { rows } => {
                    let start = self.position;
                    self.position = start.saturating_add(rows);
                    let from = self.range.start.clamp(start, self.position) - start;
                    let to = self.range.end.clamp(start, self.position) - start;
                    if from < to || self.wants_values {
                        self.wants_values = false;
                        return self.read(entry, rows, from..to).map(Some);
                    }
                    if rows == 0 && whole {
                        self.read(entry, 0, 0..0)?;
                    }
                }
                MessageKind::Schema | MessageKind::Other(_) => {}
            }
        }
        Ok(None)
    }

    /// Reads some rows of a batch that has `count`, or the first part of them.
    fn read(&mut self, entry: Entry, count: u64, rows: Range<u64>) -> Result<RecordBatch> {
        let chosen = self.selection.as_ref().map(|selection| selection.read.as_slice());
        let end = rows.start.saturating_add(self.store.part_rows(&entry, count)).min(rows.end);
        let part = self.store.read_slice(&entry, chosen, rows.start..end).field("batch")?;
        let batch = match part {
            Some(part) => {
                self.rest = (end < rows.end).then_some((entry, count, end..rows.end));
                part
            }
            None => {
                let batch = self.store.read_batch(&entry, chosen, &self.dictionaries).field("batch")?;
                let size = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
                batch.slice(size(rows.start), size(rows.end - rows.start))
            }
        };
        let batch = match &self.selection {
            Some(selection) => batch.project(&selection.order)?,
            None => batch,
        };
        let count = batch.num_rows();
        rows::batch(Arc::clone(&self.schema), batch.columns().to_vec(), count)
    }
}

impl Iterator for StoreReader {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_batch().in_format(self.store.id).transpose()
    }
}
