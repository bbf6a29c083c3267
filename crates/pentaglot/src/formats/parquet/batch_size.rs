//! How many rows make a batch: so many that it has a sensible size, also if every value is the longest that its column may have.

use arrow_schema::DataType;
use parquet::file::metadata::ColumnChunkMetaData;

use super::delta_lengths::PrefixedValues;
use super::dictionary::value_width;
use super::layout::Page;
use crate::error::{Error, Result};
use crate::limits::Limits;

/// The approximate bytes of a batch.
const BATCH_BYTES: u64 = 16 << 20;
pub(super) const MOST_BATCH_ROWS: u64 = 64 << 10;

/// What a value may take in addition to its bytes: an offset, a bit for null, levels, a type of Arrow that is wider than that of the file.
const MORE_BYTES: u64 = 8;

/// What a batch may take if all its values that are not in the pages as they are, are as long as they may be. The `parquet` crate makes
/// no batch of texts with more than 2 GiB.
pub(super) fn most_batch_bytes(limits: &Limits) -> u64 {
    (limits.max_alloc / 4).min(1 << 30)
}

/// What is known of the pages of a column chunk that are read.
#[derive(Debug, Clone)]
pub(super) struct ChunkSize {
    /// Where the chunk is among those of its row group.
    pub leaf: usize,
    /// The bytes of each value, if all have as many.
    width: Option<u64>,
    /// How many rows the pages have.
    rows: u64,
    /// The values and nulls of the pages.
    pub values: u64,
    /// The bytes of the pages, not packed.
    unpacked_bytes: u64,
    /// How many byte strings may be those of the dictionary, or begin like the one before.
    repeated: u64,
    /// The most bytes of such a byte string, and those of one on average.
    longest: u64,
    mean: u64,
    /// Whether there are pages of byte strings whose lengths must be looked at.
    pub has_lengths: bool,
    /// The most values of a row.
    pub row_values: u64,
    /// The bytes of a missing list of fixed size that is in another list: each value may be one.
    pub padding: u64,
}

impl ChunkSize {
    pub(super) fn new(leaf: usize, column: &ColumnChunkMetaData, rows: u64) -> Self {
        let row_values = if has_lists(column) { u64::MAX } else { 1 };
        let width = value_width(column);
        let (values, unpacked_bytes, repeated, longest, mean) = (0, 0, 0, 0, 0);
        let (has_lengths, padding) = (false, 0);
        ChunkSize {
            leaf,
            width,
            rows,
            values,
            unpacked_bytes,
            repeated,
            longest,
            mean,
            has_lengths,
            row_values,
            padding,
        }
    }

    /// Takes note of the dictionary, whose longest value has so many bytes.
    pub(super) fn add_dictionary(&mut self, page: &Page, longest: u64) {
        self.longest = self.longest.max(longest);
        self.mean = self.mean.max(page.header.unpacked_bytes / page.header.value_count.max(1));
    }

    /// Counts a page with values.
    pub(super) fn add(&mut self, page: &Page) {
        let header = &page.header;
        self.values = self.values.saturating_add(header.value_count);
        self.unpacked_bytes = self.unpacked_bytes.saturating_add(header.unpacked_bytes);
        // PLAIN_DICTIONARY, RLE_DICTIONARY and DELTA_BYTE_ARRAY
        if matches!(header.encoding, 2 | 8 | 7) {
            self.repeated = self.repeated.saturating_add(header.value_count);
        }
        self.has_lengths |= header.has_lengths();
    }

    /// Takes note of byte strings that may begin like the one before.
    pub(super) fn add_prefixed(&mut self, values: PrefixedValues) {
        self.longest = self.longest.max(values.longest);
        self.mean = self.mean.max(values.bytes / self.repeated.max(1));
    }

    /// The most bytes of so many rows, without those that are in the pages as they are.
    fn most_bytes(&self, rows: u64) -> u64 {
        let values = self.values.min(rows.saturating_mul(self.row_values));
        let longer = if self.width.is_some() { 0 } else { values.min(self.repeated) };
        let width = self.width.unwrap_or(0).saturating_add(MORE_BYTES).saturating_add(self.padding);
        values.saturating_mul(width).saturating_add(longer.saturating_mul(self.longest))
    }

    /// The bytes of a row on average, as far as is known.
    fn row_bytes(&self) -> u64 {
        let (count, each) = self.width.map_or((self.repeated, self.mean), |width| (self.values, width));
        count.saturating_mul(each).max(self.unpacked_bytes) / self.rows.max(1)
    }

    /// The most bytes of all its rows.
    fn all_bytes(&self) -> u64 {
        self.most_bytes(u64::MAX)
    }
}

fn has_lists(column: &ColumnChunkMetaData) -> bool {
    column.column_descr().max_rep_level() > 0
}

/// The sizes of the columns that are read.
pub(super) struct Sizes {
    pub chunks: Vec<ChunkSize>,
    /// The bytes that a row takes besides its values.
    padding: u64,
    limits: Limits,
}

impl Sizes {
    /// `types` are those of the columns.
    pub(super) fn new<'t>(
        chunks: Vec<ChunkSize>,
        types: impl Iterator<Item = &'t DataType>,
        limits: &Limits,
    ) -> Self {
        let padding = types.map(padding_bytes).fold(0, u64::saturating_add);
        Sizes { chunks, padding, limits: limits.clone() }
    }

    /// The columns with lists whose rows must be counted: one of them might have all values, and there are too many for that.
    pub(super) fn unknown_rows(&mut self) -> Vec<&mut ChunkSize> {
        let most = most_batch_bytes(&self.limits);
        let lists = self.chunks.iter_mut().filter(|chunk| chunk.row_values > 1);
        let mut lists: Vec<_> = lists.collect();
        let all = lists.iter().map(|chunk| chunk.all_bytes()).fold(0, u64::saturating_add);
        let share = if all > most { most / 2 / (lists.len() as u64).max(1) } else { u64::MAX };
        lists.retain(|chunk| chunk.all_bytes() > share);
        lists
    }

    /// The rows of a batch, at most `asked` unless that is 0.
    pub(super) fn batch_rows(&self, asked: usize) -> Result<u64> {
        let max_alloc = self.limits.max_alloc;
        if self.batch_bytes(1) > max_alloc {
            let needed = format_args!(
                "{} bytes for a row whose values are as long as they may be",
                self.batch_bytes(1)
            );
            return Err(Error::limit("max-alloc", max_alloc, needed));
        }
        let row_bytes = self
            .chunks
            .iter()
            .map(ChunkSize::row_bytes)
            .fold(0, u64::saturating_add)
            .max(self.padding)
            .max(1);
        let usual = self.limits.budget().batch_bytes(BATCH_BYTES) / row_bytes;
        let wanted = if asked == 0 { usual.clamp(1, MOST_BATCH_ROWS) } else { asked as u64 };
        let (mut rows, mut most) = (1, wanted);
        while rows < most {
            let middle = most - (most - rows) / 2;
            if self.batch_bytes(middle) <= most_batch_bytes(&self.limits) {
                rows = middle;
            } else {
                most = middle - 1;
            }
        }
        Ok(rows)
    }

    /// The most bytes of a batch, without those that are in the pages as they are.
    fn batch_bytes(&self, rows: u64) -> u64 {
        let bytes = self.chunks.iter().map(|chunk| chunk.most_bytes(rows)).fold(0, u64::saturating_add);
        bytes.saturating_add(rows.saturating_mul(self.padding))
    }

    /// The most bytes that a batch of so many rows takes in memory.
    pub(super) fn most_bytes(&self, rows: u64) -> u64 {
        let pages = self.chunks.iter().map(|chunk| chunk.unpacked_bytes).fold(0, u64::saturating_add);
        self.batch_bytes(rows).saturating_add(pages)
    }
}

/// The bytes of missing lists of fixed size in a row, those in other lists left out.
fn padding_bytes(data_type: &DataType) -> u64 {
    match data_type {
        DataType::FixedSizeList(_, _) => item_bytes(data_type),
        DataType::Struct(fields) => {
            fields.iter().map(|field| padding_bytes(field.data_type())).fold(0, u64::saturating_add)
        }
        _ => 0,
    }
}

/// The bytes of missing lists of fixed size in an item of a list.
pub(super) fn padding_in_lists(data_type: &DataType) -> u64 {
    match data_type {
        DataType::FixedSizeList(item, _) => padding_in_lists(item.data_type()),
        DataType::Struct(fields) => {
            fields.iter().map(|field| padding_in_lists(field.data_type())).fold(0, u64::saturating_add)
        }
        DataType::List(item)
        | DataType::LargeList(item)
        | DataType::ListView(item)
        | DataType::LargeListView(item)
        | DataType::Map(item, _) => {
            padding_bytes(item.data_type()).saturating_add(padding_in_lists(item.data_type()))
        }
        _ => 0,
    }
}

/// The bytes of a missing item of a list of fixed size.
fn item_bytes(data_type: &DataType) -> u64 {
    match data_type {
        DataType::FixedSizeList(item, count) => {
            u64::try_from(*count).unwrap_or(0).saturating_mul(item_bytes(item.data_type()))
        }
        DataType::FixedSizeBinary(size) => u64::try_from(*size).unwrap_or(0),
        DataType::Struct(fields) => {
            fields.iter().map(|field| item_bytes(field.data_type())).fold(0, u64::saturating_add)
        }
        other => other.primitive_width().map_or(8, |width| width as u64),
    }
}
