//! How many values the longest row of a column with lists has, from the repetition levels of its pages: a row begins at level 0.

use std::ops::Range;
use std::sync::Arc;

use parquet::basic::Encoding;
use parquet::column::page::{Page, PageReader};
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::page_index::offset_index::PageLocation;
use parquet::file::serialized_reader::SerializedPageReader;

use super::layout::{Chunks, from_parquet};
use super::thrift::varint;
use crate::cursor::Cursor;
use crate::error::{self, Result};

/// The values of the longest of the first `rows` rows of a chunk, or of the rows of some of its pages, which are `wanted` of the ones at
/// `locations`. These pages must have been checked.
pub(super) fn most_row_values(
    chunks: &Chunks,
    column: &ColumnChunkMetaData,
    pages: Option<(&[PageLocation], Range<usize>)>,
    rows: u64,
) -> Result<u64> {
    let levels = u64::try_from(column.column_descr().max_rep_level()).unwrap_or(0);
    let bits = (u64::BITS - levels.leading_zeros()) as usize;
    let mut counted = Counted { bits, ..Counted::default() };
    each_page(chunks, column, pages, |page| {
        counted.add_page(page);
        Ok(counted.begun <= rows)
    })?;
    Ok(counted.longest.max(counted.current))
}

/// Calls `visit` with the pages of a chunk, or those that are `wanted` of the ones at `locations`, until it returns `false`. The headers
/// of these pages must have been checked.
pub(super) fn each_page(
    chunks: &Chunks,
    column: &ColumnChunkMetaData,
    pages: Option<(&[PageLocation], Range<usize>)>,
    mut visit: impl FnMut(&Page) -> Result<bool>,
) -> Result<()> {
    chunks.guarded(|| {
        let source = Arc::new(chunks.clone());
        let locations =
            pages.as_ref().map(|(all, wanted)| all.get(..wanted.end).unwrap_or_default().to_vec());
        let mut reader = SerializedPageReader::new(source, column, 0, locations).map_err(from_parquet)?;
        if let Some((all, wanted)) = pages {
            let first = all.first().and_then(|page| u64::try_from(page.offset).ok());
            let before = usize::from(first != Some(column.byte_range().0)) + wanted.start;
            (0..before).try_for_each(|_| reader.skip_next_page().map_err(from_parquet))?;
        }
        for page in reader {
            if !visit(&page.map_err(|error| error::undecodable(&error.to_string()))?)? {
                break;
            }
        }
        Ok(())
    })
}

/// The rows that have been counted.
#[derive(Default)]
struct Counted {
    /// The bits of a level.
    bits: usize,
    begun: u64,
    longest: u64,
    /// The values of the row that may go on.
    current: u64,
}

impl Counted {
    fn add_page(&mut self, page: &Page) {
        let (levels, values) = match page {
            Page::DataPage { buf, num_values, rep_level_encoding: Encoding::RLE, .. } => {
                let mut cursor = Cursor::new(buf);
                let levels = cursor.u32_le().and_then(|length| cursor.take(length.into()));
                (levels.unwrap_or_default(), *num_values)
            }
            // An old encoding: one row might have them all.
            Page::DataPage { num_values, .. } => (&[][..], *num_values),
            Page::DataPageV2 { buf, num_values, rep_levels_byte_len, .. } => {
                (buf.get(..*rep_levels_byte_len as usize).unwrap_or_default(), *num_values)
            }
            Page::DictionaryPage { .. } => return,
        };
        let left = self.add_levels(&mut Cursor::new(levels), values.into());
        self.current += left;
    }

    /// Counts values by their levels, which are runs and groups of eight; gives how many values are left where they end.
    fn add_levels(&mut self, levels: &mut Cursor<'_>, mut values: u64) -> u64 {
        while values > 0 {
            let Ok(head) = varint(levels) else { return values };
            if head & 1 == 0 {
                let Ok(level) = levels.take(self.bits.div_ceil(8) as u64) else { return values };
                let run = (head >> 1).min(values);
                self.add(level.iter().all(|byte| *byte == 0), run);
                values -= run;
                continue;
            }
            for _ in 0..head >> 1 {
                let Ok(group) = levels.take(self.bits as u64) else { return values };
                let mut word = [0; 16];
                word.iter_mut().zip(group).for_each(|(byte, found)| *byte = *found);
                let mut word = u128::from_le_bytes(word);
                for _ in 0..values.min(8) {
                    self.add(word & ((1 << self.bits) - 1) == 0, 1);
                    word >>= self.bits;
                }
                values = values.saturating_sub(8);
            }
        }
        0
    }

    /// So many values, which all begin a row or none does.
    fn add(&mut self, is_begin: bool, count: u64) {
        if is_begin && count > 0 {
            self.longest = self.longest.max(self.current);
            self.begun += count;
            self.current = 1;
        } else {
            self.current += count;
        }
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::builder::{Int64Builder, ListBuilder};
    use arrow_array::{ArrayRef, RecordBatch};
    use bytes::Bytes;
    use parquet::arrow::ArrowWriter;
    use parquet::basic::Compression;
    use parquet::file::properties::{WriterProperties, WriterVersion};
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::file::serialized_reader::ReadOptionsBuilder;
    use proptest::prelude::*;

    use super::*;
    use crate::limits::Budget;
    use crate::source::Source;

    /// A list of lists a row, and how many values and missing values each row has.
    fn lists(rows: &[Option<Vec<usize>>]) -> (RecordBatch, Vec<u64>) {
        let mut outer = ListBuilder::new(ListBuilder::new(Int64Builder::new()));
        for row in rows {
            for length in row.iter().flatten() {
                outer.values().values().extend((0..*length).map(|value| Some(value as i64)));
                outer.values().append(true);
            }
            outer.append(row.is_some());
        }
        let count = |row: &Option<Vec<usize>>| {
            let values = row.iter().flatten().map(|length| (*length).max(1) as u64);
            values.sum::<u64>().max(1)
        };
        let column: ArrayRef = Arc::new(outer.finish());
        (RecordBatch::try_from_iter([("l", column)]).unwrap(), rows.iter().map(count).collect())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]
        #[test]
        fn the_longest_row_is_found(
            rows in prop::collection::vec(prop::option::of(prop::collection::vec(0usize..40, 0..6)), 1..60),
            is_second in any::<bool>(),
            page_rows in 1usize..70,
            is_packed in any::<bool>(),
            wanted in 0usize..60,
        ) {
            let (batch, counts) = lists(&rows);
            let version = if is_second { WriterVersion::PARQUET_2_0 } else { WriterVersion::PARQUET_1_0 };
            let properties = WriterProperties::builder().set_writer_version(version);
            let packing = if is_packed { Compression::SNAPPY } else { Compression::UNCOMPRESSED };
            let properties = properties.set_data_page_row_count_limit(page_rows).set_write_batch_size(1);
            let properties = properties.set_compression(packing).build();
            let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), Some(properties)).unwrap();
            writer.write(&batch).unwrap();
            let bytes = writer.into_inner().unwrap();
            let options = ReadOptionsBuilder::new().with_page_index().build();
            let file = SerializedFileReader::new_with_options(Bytes::from(bytes.clone()), options).unwrap();
            let column = file.metadata().row_group(0).column(0);
            let chunks = Chunks::new(Source::from_bytes("x", bytes), Budget::default());
            let all = most_row_values(&chunks, column, None, u64::MAX).unwrap();
            prop_assert_eq!(Some(&all), counts.iter().max());
            let wanted = wanted.min(rows.len());
            let some = most_row_values(&chunks, column, None, wanted as u64).unwrap();
            prop_assert!(counts[..wanted].iter().all(|count| *count <= some) && some <= all);
            // The pages from the one of that row on.
            let locations = file.metadata().offset_index().unwrap()[0][0].page_locations();
            let row = |index: usize| locations.get(index).map_or(rows.len(), |page| page.first_row_index as usize);
            let first = (0..locations.len()).rfind(|index| row(*index) <= wanted).unwrap();
            for end in first + 1..=locations.len() {
                let found = most_row_values(&chunks, column, Some((locations, first..end)), u64::MAX).unwrap();
                prop_assert_eq!(Some(&found), counts[row(first)..row(end)].iter().max());
            }
        }
    }

    #[test]
    fn levels_that_end_early_leave_all_values_to_one_row() {
        // Three rows of a run, a group of eight, of which every other one begins a row, then nothing.
        let levels = [3 << 1, 0, 3, 0b1010_1010];
        let mut counted = Counted { bits: 1, ..Counted::default() };
        assert_eq!(counted.add_levels(&mut Cursor::new(&levels), 100), 100 - 3 - 8);
        assert_eq!((counted.begun, counted.longest, counted.current), (3 + 4, 2, 2));
        for cut in 0..levels.len() {
            let mut counted = Counted { bits: 1, ..Counted::default() };
            let left = counted.add_levels(&mut Cursor::new(&levels[..cut]), 100);
            assert_eq!(left, if cut < 2 { 100 } else { 97 });
        }
    }
}
