//! Stored data as a document: what is put in from any format goes out through the ordinary plan to any other.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, Int64Array, RecordBatch};
use arrow_cast::cast;
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use rayon::prelude::*;

use super::decode::{self, ValueReader};
use super::files::{Files, Lock, Locked};
use super::index::Index;
use super::root::{Chunk, Root};
use super::schema;
use crate::control::Control;
use crate::cursor::Cursor;
use crate::error::{Error, Result};
use crate::formats::{
    Confidence, Document, Findings, Format, FormatInfo, Head, Node, Outline, ReadOptions, Summary,
    TypeLanguage, WriteOptions, WritePlan,
};
use crate::hub::native::NATIVE_KEY;
use crate::hub::{Form, Rows, Selection, rows};
use crate::identity::{Encoder, HashedColumn};
use crate::limits::Budget;
use crate::source::Source;

/// Bytes of a batch.
const BATCH_BYTES: u64 = 16 << 20;
/// Rows of a batch.
const BATCH_ROWS: usize = 64 << 10;

static INFO: FormatInfo = FormatInfo {
    id: "store",
    title: "data in a store",
    dialects: &[],
    extensions: &[],
    media_types: &[],
    forms: &[],
    options: &[],
    type_language: TypeLanguage::None,
    has_members: false,
    has_whole_columns: false,
    index: None,
    gzip_by_magic: false,
    spec: "",
};

/// What stored data is called where a format is named. No file is of this format.
#[derive(Debug, Clone, Copy, Default)]
pub struct StoredFormat;

impl Format for StoredFormat {
    fn info(&self) -> &'static FormatInfo {
        &INFO
    }

    fn detect(&self, _: &Head<'_>) -> Confidence {
        Confidence::No
    }

    fn open(&self, _: Source, _: &ReadOptions) -> Result<Arc<dyn Document>> {
        Err(Error::unsupported("opening a file as data in a store"))
    }

    fn plan(&self, _: &SchemaRef, _: &WriteOptions) -> Result<Box<dyn WritePlan>> {
        Err(Error::unsupported("writing a file as data in a store"))
    }
}

/// Data of a store.
pub(super) struct StoredDocument {
    shared: Arc<Shared>,
    summary: Summary,
}

struct Shared {
    files: Arc<dyn Files>,
    root: Root,
    /// The origin whose types are used.
    origin: usize,
    is_matrix: bool,
    budget: Budget,
    control: Control,
}

/// The chunks of a store, which stays locked for those who remove as long as rows are read.
struct Chunks {
    index: Index,
    _lock: Locked,
}

impl StoredDocument {
    pub(super) fn new(
        files: Arc<dyn Files>,
        root: Root,
        format: Option<&str>,
        budget: &Budget,
        control: &Control,
    ) -> Result<Self> {
        let by_format = root.origins.iter().rposition(|origin| Some(origin.format_id()) == format);
        let origin = by_format.unwrap_or(root.origins.len().saturating_sub(1));
        let known = &root.origins[origin];
        let mut schema = schema::from_bytes(&known.schema, budget.limits())?;
        if !known.native.is_empty() {
            let mut metadata = schema.metadata().clone();
            metadata.insert(NATIVE_KEY.to_owned(), known.native.clone());
            schema = schema.with_metadata(metadata);
        }
        check_schema(&schema, &root)?;
        let is_matrix = matches!(Form::of(&schema), Form::Dense | Form::Sparse);
        let mut summary = Summary::new(INFO.id, Arc::new(schema));
        summary.rows = Some(root.identity.rows);
        if by_format.is_some() {
            let dialect =
                known.format.split_once(':').map(|(_, dialect)| ("dialect".to_owned(), dialect.to_owned()));
            summary.metadata.extend(dialect);
        }
        summary.bytes = Some(root.all_chunks().map(|chunk| u64::from(chunk.bytes)).sum());
        let (budget, control) = (budget.clone(), control.clone());
        let shared = Shared { files, root, origin, is_matrix, budget, control };
        Ok(StoredDocument { shared: Arc::new(shared), summary })
    }
}

/// Errs unless a schema is that of a root: an identity of the same shape, names and types.
fn check_schema(schema: &Schema, root: &Root) -> Result<()> {
    let hasher = crate::identity::RowHasher::new(&Arc::new(schema.clone()), &Default::default())?;
    let mut found = hasher.finish()?;
    // What is left of an identity without rows and digests is shape, names and types.
    found.rows = root.identity.rows;
    let columns = found.columns.iter_mut().zip(&root.identity.columns);
    columns.for_each(|(own, stored)| own.digest = stored.digest);
    match found.cid()? == root.identity.cid()? {
        true => Ok(()),
        false => Err(Error::malformed("a schema of the types of the data", "another").field("schema")),
    }
}

impl Document for StoredDocument {
    fn summary(&self) -> &Summary {
        &self.summary
    }

    fn outline(&self) -> Outline {
        Node::new("data", 0, 0)
    }

    fn validate(&self, _: &mut Findings) -> Result<()> {
        let document: &dyn Document = self;
        document.all_rows()?.try_for_each(|batch| batch.map(drop).map_err(Error::from))
    }

    fn rows(&self, selection: &Selection) -> Result<Rows> {
        let all = &self.summary.schema;
        let fields = selection.fields();
        let Shared { files, budget, control, .. } = self.shared.as_ref();
        let _lock = files.lock(Lock::Shared, control)?;
        let chunks = Chunks { index: Index::read(Arc::clone(files), budget, control)?, _lock };
        let column =
            |field: &usize| ColumnReader::new(*field, all.field(*field), &self.shared, &chunks.index);
        let columns = fields.iter().map(column).collect::<Result<_>>()?;
        // Rows are cut out of batches, and parts of lists out of lists, afterwards.
        let schema = match selection.columns() {
            Some(_) if !selection.cuts_lists() => {
                let chosen = fields.iter().map(|field| *field as u64..*field as u64 + 1).collect();
                let chosen = Selection::new(all, self.summary.rows).with_column_ranges(chosen)?;
                Arc::clone(chosen.schema())
            }
            _ => Arc::clone(all),
        };
        let shared = Arc::clone(&self.shared);
        let left = shared.root.identity.rows;
        let batch_rows = selection.batch_rows_or(BATCH_ROWS);
        let mut reader =
            StoredRows { schema: Arc::clone(&schema), shared, chunks, columns, batch_rows, left };
        let mut stream = rows::from_batches(schema, std::iter::from_fn(move || reader.next().transpose()));
        if selection.is_sliced() {
            stream = rows::slice(stream, selection.range(u64::MAX));
        }
        selection.project_lists(stream)
    }
}

/// Rows of stored data.
struct StoredRows {
    schema: SchemaRef,
    shared: Arc<Shared>,
    chunks: Chunks,
    columns: Vec<ColumnReader>,
    batch_rows: usize,
    left: u64,
}

impl StoredRows {
    fn next(&mut self) -> Result<Option<RecordBatch>> {
        if self.left == 0 {
            return Ok(None);
        }
        let count = self.count();
        let Shared { budget, control, root, is_matrix, .. } = self.shared.as_ref();
        let index = &self.chunks.index;
        let columns = &mut self.columns;
        let arrays = control.install(|| {
            // All chunks side by side, then all columns.
            let needed: Vec<(usize, Chunk)> = columns
                .iter()
                .enumerate()
                .flat_map(|(at, column)| column.needed(root, count).into_iter().map(move |chunk| (at, chunk)))
                .collect();
            let read = |(at, chunk): &(usize, Chunk)| Ok((*at, index.chunk(&chunk.digest, budget)?));
            let plain = needed.par_iter().map(read).collect::<Vec<Result<_>>>();
            for read in plain {
                let (at, plain) = read?;
                columns[at].waiting.push_back(plain);
                columns[at].next += 1;
            }
            let decode = |column: &mut ColumnReader| column.read(root, count, *is_matrix, budget);
            let arrays = columns.par_iter_mut().map(decode).collect::<Vec<Result<_>>>();
            // The error of the first column, whichever thread met one first.
            arrays.into_iter().collect::<Result<Vec<_>>>()
        })??;
        self.left -= count as u64;
        Ok(Some(rows::batch(Arc::clone(&self.schema), arrays, count)?))
    }

    /// How many rows the next batch has: fewer where they are long.
    fn count(&self) -> usize {
        let limit = self.shared.budget.batch_bytes(BATCH_BYTES);
        let mut count = self.batch_rows.min(usize::try_from(self.left).unwrap_or(usize::MAX));
        let bytes = |count: usize| -> u64 {
            self.columns.iter().map(|column| column.estimate(&self.shared.root, count)).sum()
        };
        while count > 1 && bytes(count) > limit {
            count = count.div_ceil(2);
        }
        count
    }
}

/// A column of stored data, and how far it was read.
struct ColumnReader {
    /// Its number in the root.
    column: usize,
    /// The type of its values, without a dictionary.
    plain: DataType,
    least_row_bytes: u64,
    dictionary: Option<StoredDictionary>,
    /// The next chunk that is not read yet.
    next: usize,
    /// Plain bytes of the chunks before it that are to be decoded; of the first, so many rows and bytes are decoded already.
    waiting: VecDeque<Vec<u8>>,
    decoded_rows: usize,
    decoded_bytes: usize,
}

impl ColumnReader {
    fn new(column: usize, field: &Field, shared: &Shared, index: &Index) -> Result<Self> {
        let plain = schema::plain(field).data_type().clone();
        let dictionary = match field.data_type() {
            DataType::Dictionary(_, _) => Some(StoredDictionary::read(column, field, &plain, shared, index)?),
            _ => None,
        };
        let least_row_bytes = decode::least_row_bytes(&plain);
        let waiting = VecDeque::new();
        let (next, decoded_rows, decoded_bytes) = (0, 0, 0);
        Ok(ColumnReader {
            column,
            plain,
            least_row_bytes,
            dictionary,
            next,
            waiting,
            decoded_rows,
            decoded_bytes,
        })
    }

    fn chunks<'r>(&self, root: &'r Root) -> &'r [Chunk] {
        root.chunks.get(self.column).map_or(&[], Vec::as_slice)
    }

    /// The chunks that `count` rows need in addition to those that wait.
    fn needed(&self, root: &Root, count: usize) -> Vec<Chunk> {
        let chunks = self.chunks(root);
        let waiting = &chunks[self.next - self.waiting.len()..self.next];
        let mut there = waiting.iter().map(|chunk| chunk.rows as usize).sum::<usize>() - self.decoded_rows;
        let mut needed = Vec::new();
        for chunk in &chunks[self.next..] {
            if there >= count {
                break;
            }
            there += chunk.rows as usize;
            needed.push(*chunk);
        }
        needed
    }

    /// About how many bytes the next `count` rows take in memory.
    fn estimate(&self, root: &Root, count: usize) -> u64 {
        let (mut rows, mut bytes) = (0u64, 0u64);
        for chunk in &self.chunks(root)[self.next - self.waiting.len()..] {
            let own = u64::from(chunk.rows).min(count as u64 - rows);
            let row_bytes = (u64::from(chunk.bytes) / u64::from(chunk.rows)).max(self.least_row_bytes);
            bytes = bytes.saturating_add(own.saturating_mul(row_bytes));
            rows += own;
            if rows == count as u64 {
                break;
            }
        }
        bytes
    }

    /// Decodes `count` rows, whose chunks wait.
    fn read(&mut self, root: &Root, count: usize, is_matrix: bool, budget: &Budget) -> Result<ArrayRef> {
        let chunks = self.chunks(root);
        let mut values = match is_matrix {
            true => ValueReader::matrix(&self.plain, budget)?,
            false => ValueReader::new(&self.plain, budget)?,
        };
        while values.len() < count {
            let chunk = self.next.checked_sub(self.waiting.len()).and_then(|first| chunks.get(first));
            let (Some(plain), Some(chunk)) = (self.waiting.front(), chunk) else {
                return Err(Error::malformed(format_args!("{count} rows in chunks"), values.len()));
            };
            let rows = chunk.rows as usize;
            if plain.len() != chunk.bytes as usize {
                return Err(Error::malformed(format_args!("{} bytes in a chunk", chunk.bytes), plain.len()));
            }
            let (validity, bytes) = decode::open_chunk(plain, rows)?;
            let take = (rows - self.decoded_rows).min(count - values.len());
            let validity = validity.map(|validity| validity.slice(self.decoded_rows, take));
            let mut cursor = Cursor::new(bytes);
            cursor.skip(self.decoded_bytes as u64)?;
            values.read_rows(take, validity, is_matrix, &mut cursor)?;
            self.decoded_rows += take;
            self.decoded_bytes = bytes.len() - cursor.remaining();
            if self.decoded_rows == rows {
                cursor.expect_end()?;
                (self.decoded_rows, self.decoded_bytes) = (0, 0);
                self.waiting.pop_front();
            }
        }
        let array = values.finish(&self.plain)?;
        match &self.dictionary {
            Some(dictionary) => dictionary.encode(&array),
            None => Ok(array),
        }
    }
}

/// A dictionary whose values are stored in their order.
struct StoredDictionary {
    data_type: DataType,
    values: ArrayRef,
    /// The number of each value, by its encoded bytes.
    numbers: HashMap<Vec<u8>, i64>,
}

/// The encoded bytes of a value.
fn encoded(values: &HashedColumn, index: usize, out: &mut Vec<u8>) -> Result<()> {
    out.clear();
    let mut take = |bytes: &[u8]| {
        out.extend_from_slice(bytes);
        Ok(())
    };
    let mut encoder = Encoder::new(&mut take);
    values.encode(index, &mut encoder)?;
    encoder.flush()
}

impl StoredDictionary {
    fn read(column: usize, field: &Field, plain: &DataType, shared: &Shared, index: &Index) -> Result<Self> {
        let mut dictionaries = shared.root.origins[shared.origin].dictionaries.iter();
        let dictionary = dictionaries.find(|dictionary| dictionary.column as usize == column);
        let dictionary = dictionary.ok_or_else(|| Error::malformed("the dictionary of a column", "none"))?;
        let mut values = ValueReader::new(plain, &shared.budget)?;
        for chunk in &dictionary.chunks {
            let bytes = index.chunk(&chunk.digest, &shared.budget)?;
            let (validity, bytes) = decode::open_chunk(&bytes, chunk.rows as usize)?;
            let mut cursor = Cursor::new(bytes);
            values.read_rows(chunk.rows as usize, validity, false, &mut cursor)?;
            cursor.expect_end()?;
        }
        let values = values.finish(plain)?;
        let column = HashedColumn::new(&values)?;
        let (mut numbers, mut bytes) = (HashMap::new(), Vec::new());
        for index in 0..values.len() {
            encoded(&column, index, &mut bytes)?;
            numbers.entry(bytes.clone()).or_insert(index as i64);
        }
        Ok(StoredDictionary { data_type: field.data_type().clone(), values, numbers })
    }

    /// The plain values as numbers of the dictionary.
    fn encode(&self, plain: &ArrayRef) -> Result<ArrayRef> {
        let DataType::Dictionary(key, _) = &self.data_type else {
            return Err(Error::malformed("a dictionary", "another type"));
        };
        let column = HashedColumn::new(plain)?;
        let mut bytes = Vec::new();
        let number = |index: usize| {
            if column.is_missing(index) {
                return Ok(None);
            }
            encoded(&column, index, &mut bytes)?;
            let number = self.numbers.get(&bytes).copied();
            number.map(Some).ok_or_else(|| Error::malformed("a value of the dictionary", "another"))
        };
        let keys: Int64Array = (0..plain.len()).map(number).collect::<Result<Vec<_>>>()?.into();
        let keys = cast(&keys, key)?.to_data();
        let array = keys.into_builder().data_type(self.data_type.clone());
        Ok(arrow_array::make_array(array.add_child_data(self.values.to_data()).build()?))
    }
}
