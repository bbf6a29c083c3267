//! Writing: row groups close at 64 MiB, pages are small enough that many columns at once stay small.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{Schema, SchemaRef};
use parquet::arrow::arrow_writer::{ArrowWriter, ArrowWriterOptions};
use parquet::arrow::{ArrowSchemaConverter, encode_arrow_schema};
use parquet::basic::{BrotliLevel, Compression, Encoding, GzipLevel, Type as PhysicalType, ZstdLevel};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{CdcOptions, WriterProperties, WriterPropertiesBuilder};
use parquet::schema::types::SchemaDescriptor;

use super::ID;
use super::layout::from_parquet;
use super::levels::{self, LEVELS_KEY, Levels};
use super::row_groups::{RowGroupSize, RowGroups};
use super::{schema, storage};
use crate::error::{Context, Error, Result};
use crate::formats::{OptionMap, WriteOptions, WritePlan, Writer, Written, planned, relaxed};
use crate::hub::relax::Rules;
use crate::hub::type_text::print_field;
use crate::hub::{Effect, LossKind, Plan, Verdict, batch_bytes};
use crate::limits::Budget;
use crate::sink::Sink;

/// Footer key of the rows of a table without columns.
pub(super) const ROW_COUNT_KEY: &str = "pentaglot.row_count";

const ROW_GROUP_BYTES: usize = 64 << 20;
const ROW_GROUP_ROWS: usize = 1 << 20;
/// What the open pages of all columns may take together.
const OPEN_PAGES_BYTES: usize = 32 << 20;
/// A batch is handed on in slices of about this size, so that a row group can close inside it.
const SLICE_BYTES: usize = 8 << 20;

/// What writing this schema will do, and the writer that does it.
pub(super) fn plan(schema: &SchemaRef, options: &WriteOptions) -> Result<Box<dyn WritePlan>> {
    let compression = compression(&options.options)?;
    let cdc = options.options.bool("cdc")?.unwrap_or(false).then(CdcOptions::default);
    let (inner, options) = (Arc::clone(schema), options.clone());
    Ok(planned(steps(schema), move |sink| {
        let writer = ParquetWriter::create(sink, &inner, (compression, cdc), &options);
        let writer = Box::new(writer.in_format(ID)?);
        Ok(relaxed(writer, Rules { whole_days: true, ..Rules::default() }, &options))
    }))
}

/// What each field becomes.
fn steps(rows: &Schema) -> Plan {
    let mut plan = Plan::default();
    for field in rows.fields() {
        let (to, mut stored) = schema::stored_field(field);
        if levels::is_ordered(field) && levels::kept(field).is_some() {
            stored.effect =
                Effect::checked(LossKind::Order).because("all batches must have one order of values");
        }
        let from = print_field(field);
        let is_impossible = stored.effect.verdict == Verdict::Impossible;
        let to = if is_impossible { "nothing".to_owned() } else { print_field(&to) };
        plan.step(field.name(), from, to, stored.effect);
    }
    plan
}

/// The compression that the options ask for.
fn compression(options: &OptionMap) -> Result<Compression> {
    let text = options.get("compression").unwrap_or("zstd");
    let (name, level) = match text.split_once(':') {
        Some((name, level)) => (name, Some(level)),
        None => (text, None),
    };
    let number = |range: std::ops::RangeInclusive<i32>, default: i32| -> Result<i32> {
        let Some(level) = level else { return Ok(default) };
        let number = level.parse().ok().filter(|number| range.contains(number));
        number.ok_or_else(|| {
            let (first, last) = range.into_inner();
            Error::usage(format!("option compression: expected a level {first}..{last}, found {level:?}"))
        })
    };
    let bad = |error| Error::usage(format!("option compression: {error}"));
    let plain = |codec| match level {
        None => Ok(codec),
        Some(_) => Err(Error::usage(format!("option compression: {name} has no levels"))),
    };
    match name {
        "none" => plain(Compression::UNCOMPRESSED),
        "snappy" => plain(Compression::SNAPPY),
        "lz4" => plain(Compression::LZ4_RAW),
        "gzip" => {
            let level = u32::try_from(number(0..=9, 6)?).unwrap_or(6);
            Ok(Compression::GZIP(GzipLevel::try_new(level).map_err(bad)?))
        }
        "brotli" => {
            let level = u32::try_from(number(0..=11, 1)?).unwrap_or(1);
            Ok(Compression::BROTLI(BrotliLevel::try_new(level).map_err(bad)?))
        }
        "zstd" => Ok(Compression::ZSTD(ZstdLevel::try_new(number(1..=22, 1)?).map_err(bad)?)),
        other => Err(Error::usage(format!(
            "option compression: expected none, snappy, gzip, brotli, lz4 or zstd (gzip, brotli and zstd with an optional :level), found {other:?}"
        ))),
    }
}

/// What takes the rows.
enum Encoder {
    /// Columns are encoded side by side.
    SideBySide(Box<RowGroups>),
    /// Pages end where the content says. Only the crate's own writer cuts them.
    ContentDefined(Box<ArrowWriter<Sink>>),
}

impl Encoder {
    fn write(&mut self, rows: &RecordBatch) -> Result<()> {
        match self {
            Encoder::SideBySide(groups) => groups.write(rows),
            Encoder::ContentDefined(file) => file.write(rows).map_err(from_writer),
        }
    }

    /// Adds to what the footer says beside the schema.
    fn add_metadata(&mut self, pair: KeyValue) {
        match self {
            Encoder::SideBySide(groups) => groups.add_metadata(pair),
            Encoder::ContentDefined(file) => file.append_key_value_metadata(pair),
        }
    }

    fn finish(self) -> Result<Sink> {
        match self {
            Encoder::SideBySide(groups) => groups.finish(),
            Encoder::ContentDefined(file) => file.into_inner().map_err(from_writer),
        }
    }
}

struct ParquetWriter {
    encoder: Encoder,
    stored: SchemaRef,
    levels: Levels,
    converts: bool,
    rows: u64,
}

impl ParquetWriter {
    fn create(
        sink: Sink,
        schema: &SchemaRef,
        (compression, cdc): (Compression, Option<CdcOptions>),
        options: &WriteOptions,
    ) -> Result<Self> {
        let stored: SchemaRef = Arc::new(schema::stored_schema(schema));
        // Dictionaries that come back as their values are not part of what is restored.
        let restored = schema::restored_schema(schema);
        let converts = stored.fields() != schema.fields();
        let mut pairs: Vec<KeyValue> = schema
            .metadata()
            .iter()
            .map(|(key, value)| KeyValue { key: key.clone(), value: Some(value.clone()) })
            .collect();
        pairs.sort_by(|one, other| one.key.cmp(&other.key));
        if restored.fields() != stored.fields() {
            let text = encode_arrow_schema(&restored);
            pairs.push(KeyValue { key: schema::SCHEMA_KEY.to_owned(), value: Some(text) });
        }
        let descriptor = ArrowSchemaConverter::new().convert(&stored).map_err(from_writer)?;
        let size = row_group_size(&options.budget);
        let properties = properties(&descriptor, compression, size).set_content_defined_chunking(cdc);
        let properties = properties.set_key_value_metadata(Some(pairs)).build();
        let descriptor = schema::with_logical_types(descriptor, &stored).map_err(from_writer)?;
        let write = ArrowWriterOptions::new().with_properties(properties).with_parquet_schema(descriptor);
        let file =
            ArrowWriter::try_new_with_options(sink, Arc::clone(&stored), write).map_err(from_writer)?;
        let encoder = match cdc {
            Some(_) => Encoder::ContentDefined(Box::new(file)),
            None => Encoder::SideBySide(Box::new(RowGroups::new(file, &stored, size, &options.control)?)),
        };
        let levels = Levels::gather(schema);
        Ok(ParquetWriter { encoder, stored, levels, converts, rows: 0 })
    }

    fn write_rows(&mut self, rows: &RecordBatch) -> Result<()> {
        if self.stored.fields().is_empty() {
            return Ok(());
        }
        self.levels.add(rows)?;
        let first = self.rows - rows.num_rows() as u64;
        let bytes = batch_bytes(rows).max(1);
        let step = (rows.num_rows().saturating_mul(SLICE_BYTES) / bytes).clamp(1, rows.num_rows().max(1));
        for start in (0..rows.num_rows()).step_by(step) {
            let slice = rows.slice(start, step.min(rows.num_rows() - start));
            if self.converts {
                self.encoder.write(&storage::convert_batch(&slice, &self.stored, first + start as u64)?)?;
            } else {
                self.encoder.write(&slice)?;
            }
        }
        Ok(())
    }
}

/// What fails in the writer is the sink: whatever the target cannot hold was refused before.
fn from_writer(error: parquet::errors::ParquetError) -> Error {
    from_parquet(error)
}

/// A row group is held encoded until it is complete.
fn row_group_size(budget: &Budget) -> RowGroupSize {
    let room = usize::try_from(budget.limits().max_alloc / 4).unwrap_or(usize::MAX).max(1 << 20);
    RowGroupSize { bytes: ROW_GROUP_BYTES.min(room), rows: ROW_GROUP_ROWS }
}

fn properties(
    descriptor: &SchemaDescriptor,
    compression: Compression,
    size: RowGroupSize,
) -> WriterPropertiesBuilder {
    let page =
        (OPEN_PAGES_BYTES.min(size.bytes / 2) / descriptor.num_columns().max(1)).clamp(32 << 10, 1 << 20);
    let mut builder = WriterProperties::builder()
        .set_compression(compression)
        .set_max_row_group_bytes(Some(size.bytes))
        .set_max_row_group_row_count(Some(size.rows))
        .set_data_page_size_limit(page)
        .set_dictionary_page_size_limit(page)
        .set_created_by(concat!("pentaglot ", env!("CARGO_PKG_VERSION")).to_owned());
    for column in descriptor.columns() {
        let path = column.path().clone();
        builder = match column.physical_type() {
            // Measured values seldom repeat: a table of them costs memory per column and gains nothing.
            PhysicalType::FLOAT | PhysicalType::DOUBLE => builder.set_column_dictionary_enabled(path, false),
            // Where the dictionary is full, whole numbers are stored as differences, so that there is less to compress. Texts stay
            // plain: engines of a few years ago do not read their lengths stored so.
            PhysicalType::INT32 | PhysicalType::INT64 => {
                builder.set_column_encoding(path, Encoding::DELTA_BINARY_PACKED)
            }
            _ => builder,
        };
    }
    builder
}

impl Writer for ParquetWriter {
    fn write(&mut self, rows: &RecordBatch) -> Result<()> {
        self.rows += rows.num_rows() as u64;
        self.write_rows(rows).in_format(ID)
    }

    fn finish(mut self: Box<Self>) -> Result<Written> {
        if self.stored.fields().is_empty() {
            let count = KeyValue::new(ROW_COUNT_KEY.to_owned(), self.rows.to_string());
            self.encoder.add_metadata(count);
        }
        if let Some(text) = self.levels.to_json(&self.stored).in_format(ID)? {
            self.encoder.add_metadata(KeyValue::new(LEVELS_KEY.to_owned(), text));
        }
        let sink = self.encoder.finish().in_format(ID)?;
        Ok(Written::new(self.rows, sink.finish()?))
    }
}
