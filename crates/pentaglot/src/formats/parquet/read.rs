//! Documents, and the rows that are asked for.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use arrow_array::RecordBatch;
use arrow_schema::{Schema, SchemaRef};
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions};
use parquet::file::metadata::ParquetMetaData;

use super::batches::{Batches, Projection};
use super::footer::{Footer, MAGIC};
use super::layout::{Chunks, from_parquet};
use super::levels::{LEVELS_KEY, Levels};
use super::write::ROW_COUNT_KEY;
use super::{ID, outline, validate};
use super::{schema, storage};
use crate::control::Control;
use crate::error::{Context, Error, Result};
use crate::formats::guard::guarded;
use crate::formats::{
    Document, Findings, Outline, ReadOptions, Split, Statistics, Summary, arrow_flatbuffers,
};
use crate::hub::{Rows, Selection, rows};
use crate::limits::{Limits, Reservation};
use crate::source::Source;

/// The key under which Arrow keeps its schema.
const ARROW_SCHEMA_KEY: &str = "ARROW:schema";

/// An open Parquet file.
pub(super) struct ParquetDocument {
    store: Arc<Store>,
    summary: Summary,
}

impl ParquetDocument {
    /// Reads the footer.
    pub(super) fn open(source: &Source, options: &ReadOptions) -> Result<Self> {
        let source = source.seekable_if(|head| head.starts_with(MAGIC))?;
        let store = Store::open(Chunks::new(source, options.budget.clone()), options.control.clone())?;
        Ok(ParquetDocument { summary: store.summary(), store: Arc::new(store) })
    }
}

impl Document for ParquetDocument {
    fn summary(&self) -> &Summary {
        &self.summary
    }

    fn statistics(&self) -> Statistics {
        let mut statistics = Statistics::of(&self.summary);
        self.store.add_bounds(&mut statistics.columns);
        statistics
    }

    fn splits(&self, wanted: usize) -> Vec<Split> {
        match self.summary.schema.fields().is_empty() {
            true => Split::whole(&self.summary),
            false => self.store.splits(wanted),
        }
    }

    fn has_columns_apart(&self) -> bool {
        !self.store.chunks.source.is_costly()
    }

    fn outline(&self) -> Outline {
        outline::store(&self.store)
    }

    fn validate(&self, findings: &mut Findings) -> Result<()> {
        validate::store(&self.store, findings).in_format(ID)
    }

    fn rows(&self, request: &Selection) -> Result<Rows> {
        self.store.rows(request).in_format(ID)
    }
}

/// The footer of a file and what is needed to read its row groups.
pub(super) struct Store {
    pub chunks: Chunks,
    pub control: Control,
    pub footer: Footer,
    /// The schema of the rows.
    pub schema: SchemaRef,
    /// The schema that is stored, where rows must be converted from it.
    stored: Option<SchemaRef>,
    /// The levels of dictionaries.
    pub levels: Levels,
    pub total_rows: u64,
    /// Why the file's Arrow schema is not used, if it is not.
    pub schema_note: Option<String>,
    reader: ArrowReaderMetadata,
    indexed: OnceLock<Option<ArrowReaderMetadata>>,
    /// Pays for the levels.
    _reserved: Reservation,
}

impl Store {
    pub(super) fn open(chunks: Chunks, control: Control) -> Result<Store> {
        let footer = Footer::read(&chunks.source, &chunks.budget)?;
        let limits = chunks.budget.limits();
        let schema_note = embedded(&footer.metadata, ARROW_SCHEMA_KEY, limits).err();
        let schema_note = schema_note.map(|error| format!("its {ARROW_SCHEMA_KEY} is ignored: {error}"));
        let reader = reader_metadata(&footer.metadata, schema_note.is_some());
        let reader = reader.at(footer.offset).field("footer")?;
        check_depth(reader.schema(), limits).at(footer.offset)?;
        let mut metadata = reader.schema().metadata().clone();
        metadata.remove(schema::SCHEMA_KEY);
        let levels = metadata.remove(LEVELS_KEY).unwrap_or_default();
        // A level is at least `0,` in the footer, and an array's element in memory.
        let reserved = chunks.budget.reserve(levels.len().saturating_mul(16) as u64)?;
        let mut total_rows = footer.total_rows;
        if reader.schema().fields().is_empty() {
            let counted = metadata.remove(ROW_COUNT_KEY).and_then(|text| text.parse().ok());
            total_rows = counted.unwrap_or(total_rows);
            limits.check_free_rows(total_rows)?;
        }
        let plain = reader.schema().as_ref().clone().with_metadata(metadata.clone());
        // The true schema counts if it is stored as exactly what is here; else someone has changed the file.
        let restored = embedded(&footer.metadata, schema::SCHEMA_KEY, limits).ok().flatten();
        let restored = restored.filter(|schema| schema::stored_schema(schema).fields() == plain.fields());
        let (schema, stored) = match restored {
            Some(schema) => (schema.with_metadata(metadata), Some(Arc::clone(reader.schema()))),
            None => (plain, None),
        };
        let schema = schema::with_extensions(schema, footer.metadata.file_metadata().schema_descr());
        let levels = Levels::from_json(&levels, &schema);
        let (schema, indexed) = (Arc::new(schema), OnceLock::new());
        Ok(Store {
            chunks,
            control,
            footer,
            schema,
            stored,
            levels,
            total_rows,
            schema_note,
            reader,
            indexed,
            _reserved: reserved,
        })
    }

    pub(super) fn rows(self: &Arc<Self>, request: &Selection) -> Result<Rows> {
        let range = request.range(self.total_rows);
        let schema = Arc::clone(request.decoded_schema());
        let chosen = request.columns().filter(|_| !request.cuts_lists());
        let rows: Rows = if self.schema.fields().is_empty() {
            rows_without_columns(schema, range, request)
        } else {
            let projection = Projection::new(chosen, &self.schema);
            let batches =
                Batches::new(Arc::clone(self), Arc::clone(&schema), projection, request.batch_rows(), range);
            rows::from_batches(schema, batches)
        };
        request.project_lists(rows)
    }

    /// The schema that the `parquet` crate reads, before rows are converted from it.
    pub(super) fn stored_schema(&self) -> &SchemaRef {
        self.reader.schema()
    }

    /// The reader's metadata, without the offset index.
    pub(super) fn metadata(&self) -> &ArrowReaderMetadata {
        &self.reader
    }

    /// The reader's metadata with the offset index, if there is a sound one; read when it is first needed.
    pub(super) fn indexed(&self) -> Option<&ArrowReaderMetadata> {
        let load = || {
            let metadata = self.footer.with_page_index(&self.chunks).ok().flatten()?;
            reader_metadata(&metadata, self.schema_note.is_some()).ok()
        };
        self.indexed.get_or_init(load).as_ref()
    }

    /// A batch of the file as one of the hub.
    pub(super) fn restore(&self, batch: RecordBatch, schema: &SchemaRef) -> Result<RecordBatch> {
        if self.stored.is_some() {
            return guarded(|| storage::convert_batch(&batch, schema, 0));
        }
        let count = batch.num_rows();
        rows::batch(Arc::clone(schema), batch.columns().to_vec(), count)
    }
}

fn check_depth(schema: &Schema, limits: &Limits) -> Result<()> {
    fn depth(field: &arrow_schema::Field) -> u32 {
        use arrow_schema::DataType::*;
        1 + match field.data_type() {
            List(item) | LargeList(item) | ListView(item) | LargeListView(item) => depth(item),
            FixedSizeList(item, _) | Map(item, _) => depth(item),
            Struct(fields) => fields.iter().map(|field| depth(field)).max().unwrap_or(0),
            _ => 0,
        }
    }
    schema.fields().iter().try_for_each(|field| limits.check_depth(depth(field)))
}

/// The Arrow schema under a key of the footer, if it is valid.
fn embedded(metadata: &ParquetMetaData, key: &str, limits: &Limits) -> Result<Option<Schema>> {
    let pairs = metadata.file_metadata().key_value_metadata();
    let pair = pairs.and_then(|pairs| pairs.iter().find(|pair| pair.key == key));
    let Some(text) = pair.and_then(|pair| pair.value.as_ref()) else { return Ok(None) };
    let bytes = base64_simd::STANDARD
        .decode_to_vec(text.as_bytes())
        .map_err(|_| Error::malformed("base64", "other text"))?;
    let message = match bytes.strip_prefix(&[0xff; 4]) {
        Some(rest) => rest.get(4..),
        None => bytes.get(4..),
    };
    let message = message.ok_or_else(|| Error::truncated("a schema message", "less"))?;
    let message = arrow_flatbuffers::message(message, limits)?;
    let schema = message.header_as_schema().ok_or_else(|| Error::malformed("a schema", "another message"))?;
    arrow_flatbuffers::schema(schema, limits).map(Some)
}

fn reader_metadata(metadata: &Arc<ParquetMetaData>, skip: bool) -> Result<ArrowReaderMetadata> {
    let options = ArrowReaderOptions::new().with_skip_arrow_metadata(skip);
    guarded(|| ArrowReaderMetadata::try_new(Arc::clone(metadata), options).map_err(from_parquet))
}

/// Rows without columns.
fn rows_without_columns(schema: SchemaRef, range: Range<u64>, request: &Selection) -> Rows {
    let step = request.batch_rows_or(1 << 20);
    let inner = Arc::clone(&schema);
    let mut left = range.end - range.start;
    let batches = std::iter::from_fn(move || {
        let count = usize::try_from(left).unwrap_or(usize::MAX).min(step);
        left -= count as u64;
        (count > 0).then(|| rows::batch(Arc::clone(&inner), Vec::new(), count))
    });
    rows::from_batches(schema, batches)
}
