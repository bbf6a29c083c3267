//! How many values the longest row of a column with lists has, from the repetition levels of its pages: a row begins at level 0.

use std::sync::Arc;

use parquet::basic::Encoding;
use parquet::column::page::Page;
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::page_index::offset_index::PageLocation;
use parquet::file::serialized_reader::SerializedPageReader;

use super::layout::{Chunks, from_parquet};
use super::thrift::varint;
use crate::cursor::Cursor;
use crate::error::Result;

/// The values of the longest of `rows` rows, which are those of `group_rows` rows that begin at the first of the pages at `locations`,
/// or of the chunk. The pages must have been checked. Where they end with a fault, so do the rows.
pub(super) fn most_row_values(
    chunks: &Chunks,
    column: &ColumnChunkMetaData,
    locations: Option<Vec<PageLocation>>,
    group_rows: usize,
    rows: u64,
) -> Result<u64> {
    let levels = u64::try_from(column.column_descr().max_rep_level()).unwrap_or(0);
    let bits = (u64::BITS - levels.leading_zeros()) as usize;
    let mut counted = Counted { bits, ..Counted::default() };
    chunks.guarded(|| {
        let source = Arc::new(chunks.clone());
        let pages = SerializedPageReader::new(source, column, group_rows, locations).map_err(from_parquet)?;
        for page in pages.map_while(Result::ok) {
            counted.add_page(&page);
            if counted.begun > rows {
                break;
            }
        }
        Ok(counted.longest.max(counted.current))
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
    use parquet::file::properties::{WriterProperties, WriterVersion};
    use parquet::file::reader::{FileReader, SerializedFileReader};
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
            wanted in 0usize..60,
        ) {
            let (batch, counts) = lists(&rows);
            let version = if is_second { WriterVersion::PARQUET_2_0 } else { WriterVersion::PARQUET_1_0 };
            let properties = WriterProperties::builder().set_writer_version(version);
            let properties = properties.set_data_page_row_count_limit(page_rows).set_write_batch_size(1).build();
            let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), Some(properties)).unwrap();
            writer.write(&batch).unwrap();
            let bytes = writer.into_inner().unwrap();
            let file = SerializedFileReader::new(Bytes::from(bytes.clone())).unwrap();
            let column = file.metadata().row_group(0).column(0);
            let chunks = Chunks::new(Source::from_bytes("x", bytes), Budget::default());
            let all = most_row_values(&chunks, column, None, rows.len(), u64::MAX).unwrap();
            prop_assert_eq!(Some(&all), counts.iter().max());
            let wanted = wanted.min(rows.len());
            let some = most_row_values(&chunks, column, None, rows.len(), wanted as u64).unwrap();
            prop_assert!(counts[..wanted].iter().all(|count| *count <= some) && some <= all);
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
