//! Pages whose byte strings are stored with differences of their lengths (`DELTA_LENGTH_BYTE_ARRAY`) and of what they share with the one
//! before (`DELTA_BYTE_ARRAY`). The `parquet` crate allocates as many lengths as such a page claims to have, and copies what is shared,
//! so that a small page may become any number of bytes: both are looked at before.

use parquet::basic::Encoding;
use parquet::column::page::Page;
use parquet::file::metadata::ColumnChunkMetaData;

use super::thrift::{varint, zigzag};
use crate::cursor::Cursor;
use crate::error::{Error, Result};

/// The bits of a length.
const LENGTH_BITS: u8 = 32;

/// What is known of the byte strings of pages that are stored so.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct PrefixedValues {
    /// The most bytes of one.
    pub longest: u64,
    /// The bytes of all.
    pub bytes: u64,
}

impl PrefixedValues {
    /// Checks a page and, if its values share bytes, counts them.
    pub(super) fn add_page(&mut self, page: &Page, column: &ColumnChunkMetaData) -> Result<()> {
        // An offset would be that in the page.
        self.add(page, column).map_err(|error| error.without_offset().field("page"))
    }

    fn add(&mut self, page: &Page, column: &ColumnChunkMetaData) -> Result<()> {
        let most = u64::from(page.num_values());
        let has_prefixes = match page.encoding() {
            Encoding::DELTA_BYTE_ARRAY => true,
            Encoding::DELTA_LENGTH_BYTE_ARRAY => false,
            _ => return Ok(()),
        };
        let mut values = values_of(page, column)?;
        if values.is_empty() {
            // All are missing; if not, the decoder says so.
            return Ok(());
        }
        if !has_prefixes {
            return Header::read(&mut values, most).map(drop);
        }
        let prefixes = Lengths::read(&mut values, most)?;
        let suffixes = Lengths::read(&mut values, most)?;
        self.longest = self.longest.max(prefixes.longest.saturating_add(suffixes.longest));
        self.bytes = self.bytes.saturating_add(prefixes.sum).saturating_add(suffixes.sum);
        Ok(())
    }
}

/// What follows the levels of a page.
fn values_of<'p>(page: &'p Page, column: &ColumnChunkMetaData) -> Result<Cursor<'p>> {
    let mut values = Cursor::new(page.buffer());
    match page {
        Page::DataPage { num_values, def_level_encoding, rep_level_encoding, .. } => {
            let descriptor = column.column_descr();
            let repetition = (descriptor.max_rep_level(), *rep_level_encoding);
            for (most, encoding) in [repetition, (descriptor.max_def_level(), *def_level_encoding)] {
                let bytes = match (u64::try_from(most).unwrap_or(0), encoding) {
                    (0, _) => 0,
                    (_, Encoding::RLE) => values.u32_le()?.into(),
                    // BIT_PACKED
                    (most, _) => {
                        let bits = u64::from(u64::BITS - most.leading_zeros());
                        (u64::from(*num_values) * bits).div_ceil(8)
                    }
                };
                values.skip(bytes)?;
            }
        }
        Page::DataPageV2 { def_levels_byte_len, rep_levels_byte_len, .. } => {
            values.skip(u64::from(*def_levels_byte_len) + u64::from(*rep_levels_byte_len))?;
        }
        Page::DictionaryPage { .. } => {}
    }
    Ok(values)
}

/// How differences are stored (`DELTA_BINARY_PACKED`).
struct Header {
    mini_blocks: u64,
    mini_block_values: u64,
    count: u64,
    first: i64,
}

impl Header {
    /// Reads the header of at most so many lengths.
    fn read(bytes: &mut Cursor<'_>, most: u64) -> Result<Self> {
        let (block_values, mini_blocks, count) = (varint(bytes)?, varint(bytes)?, varint(bytes)?);
        let first = zigzag(bytes)?;
        if count > most {
            let expected = format_args!("lengths of at most {most} values, which the page has");
            return Err(Error::malformed(expected, count).rule("page-values"));
        }
        // As the format has it: the blocks are multiples of 128, their parts of 32.
        let is_sound = block_values > 0
            && block_values.is_multiple_of(128)
            && mini_blocks > 0
            && block_values.is_multiple_of(mini_blocks)
            && (block_values / mini_blocks).is_multiple_of(32);
        if !is_sound {
            let expected = "blocks of a multiple of 128 lengths, in parts of a multiple of 32";
            let found = format_args!("{block_values} in {mini_blocks} parts");
            return Err(Error::malformed(expected, found).rule("page-values"));
        }
        Ok(Header { mini_blocks, mini_block_values: block_values / mini_blocks, count, first })
    }
}

/// Lengths that have been counted.
#[derive(Debug, Default, PartialEq, Eq)]
struct Lengths {
    longest: u64,
    sum: u64,
}

impl Lengths {
    /// Counts at most so many lengths; the cursor goes behind them.
    fn read(bytes: &mut Cursor<'_>, most: u64) -> Result<Self> {
        let header = Header::read(bytes, most)?;
        let mut lengths = Lengths::default();
        let mut last = wrap(header.first);
        let mut left = header.count;
        if left > 0 {
            lengths.add(last)?;
            left -= 1;
        }
        while left > 0 {
            let least = wrap(zigzag(bytes)?);
            let widths = bytes.take(header.mini_blocks)?;
            for width in widths {
                // What follows the last length is not there, whatever its width.
                let width = if left > 0 { *width } else { 0 };
                if width > LENGTH_BITS {
                    let expected = format_args!("differences of at most {LENGTH_BITS} bits");
                    return Err(Error::malformed(expected, width).rule("page-values"));
                }
                let packed = bytes.take(header.mini_block_values.saturating_mul(width.into()) / 8)?;
                let mut bits = Bits { packed, held: 0, count: 0 };
                for _ in 0..left.min(header.mini_block_values) {
                    last = last.wrapping_add(least).wrapping_add(bits.next(width));
                    lengths.add(last)?;
                }
                left = left.saturating_sub(header.mini_block_values);
            }
        }
        Ok(lengths)
    }

    fn add(&mut self, length: i32) -> Result<()> {
        let length = u64::try_from(length)
            .map_err(|_| Error::malformed("lengths of 0 or more", length).rule("page-values"))?;
        self.longest = self.longest.max(length);
        self.sum = self.sum.saturating_add(length);
        Ok(())
    }
}

/// Numbers of some bits each, the least significant ones first.
struct Bits<'b> {
    packed: &'b [u8],
    held: u64,
    count: u8,
}

impl Bits<'_> {
    fn next(&mut self, width: u8) -> i32 {
        while self.count < width {
            let Some((byte, rest)) = self.packed.split_first() else { break };
            self.held |= u64::from(*byte) << self.count;
            self.count += 8;
            self.packed = rest;
        }
        let number = self.held & ((1 << width) - 1);
        self.held >>= width;
        self.count = self.count.saturating_sub(width);
        wrap(number.cast_signed())
    }
}

/// Lengths have 32 bits, and their differences wrap.
#[expect(clippy::cast_possible_truncation, reason = "as the decoder does")]
fn wrap(number: i64) -> i32 {
    number as i32
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::builder::{ListBuilder, StringBuilder};
    use arrow_array::{ArrayRef, LargeStringArray, RecordBatch, StringArray};
    use bytes::Bytes;
    use parquet::arrow::ArrowWriter;
    use parquet::file::properties::{WriterProperties, WriterVersion};
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use proptest::prelude::*;

    use super::*;
    use crate::Registry;
    use crate::error::ErrorKind;
    use crate::formats::parquet::Parquet;
    use crate::formats::parquet::layout::Chunks;
    use crate::formats::parquet::row_values::each_page;
    use crate::formats::{Findings, Format, ReadOptions};
    use crate::job::{OpenOptions, View, open_source};
    use crate::limits::{Budget, Limits};
    use crate::source::Source;

    fn file(column: ArrayRef, encoding: Encoding, is_second: bool, page_rows: usize) -> Vec<u8> {
        let batch = RecordBatch::try_from_iter_with_nullable([("c", column, true)]).unwrap();
        let version = if is_second { WriterVersion::PARQUET_2_0 } else { WriterVersion::PARQUET_1_0 };
        let properties = WriterProperties::builder().set_writer_version(version).set_encoding(encoding);
        let properties = properties.set_dictionary_enabled(false).set_write_batch_size(1);
        let properties = properties.set_data_page_row_count_limit(page_rows).build();
        let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), Some(properties)).unwrap();
        writer.write(&batch).unwrap();
        writer.into_inner().unwrap()
    }

    /// The values of all rows, within a budget; how much of it was used at the most is left to the budget.
    fn read(bytes: Vec<u8>, max_alloc: u64) -> Result<Vec<RecordBatch>> {
        let mut options = OpenOptions::default();
        options.budget = Limits::default().with_max_alloc(max_alloc).budget();
        options.from = Some("parquet".to_owned());
        let opened = open_source(&Registry::default(), Source::from_bytes("x", bytes), None, &options)?;
        opened.rows(&View::default())?.map(|batch| Ok(batch?)).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(100))]
        #[test]
        fn lengths_are_those_of_the_values(
            rows in prop::collection::vec(prop::option::of("[ab]{0,3}[c]{0,40}"), 0..300),
            is_second: bool,
            is_list: bool,
            page_rows in 1usize..400,
        ) {
            let column: ArrayRef = if is_list {
                let mut lists = ListBuilder::new(StringBuilder::new());
                rows.chunks(3).for_each(|row| {
                    row.iter().for_each(|value| lists.values().append_option(value.as_deref()));
                    lists.append(row.len() > 1);
                });
                Arc::new(lists.finish())
            } else {
                Arc::new(StringArray::from(rows.clone()))
            };
            for encoding in [Encoding::DELTA_BYTE_ARRAY, Encoding::DELTA_LENGTH_BYTE_ARRAY] {
                let bytes = file(Arc::clone(&column), encoding, is_second, page_rows);
                let reader = SerializedFileReader::new(Bytes::from(bytes.clone())).unwrap();
                if let Some(group) = reader.metadata().row_groups().first() {
                    let chunks = Chunks::new(Source::from_bytes("x", bytes.clone()), Budget::default());
                    let mut found = PrefixedValues::default();
                    let add = |page: &Page| found.add_page(page, group.column(0)).map(|()| true);
                    each_page(&chunks, group.column(0), None, add).unwrap();
                    let values = rows.iter().flatten().map(|value| value.len() as u64);
                    if encoding == Encoding::DELTA_BYTE_ARRAY && !is_list {
                        prop_assert_eq!(found.bytes, values.clone().sum::<u64>());
                        prop_assert!(found.longest >= values.clone().max().unwrap_or(0));
                        prop_assert!(found.longest <= 2 * values.max().unwrap_or(0));
                    }
                }
                let batches = read(bytes, 4 << 30).unwrap();
                let columns: Vec<_> = batches.iter().map(|batch| batch.column(0).as_ref()).collect();
                if !columns.is_empty() {
                    prop_assert_eq!(&arrow_select::concat::concat(&columns).unwrap(), &column);
                }
            }
        }
    }

    #[test]
    fn a_page_with_more_lengths_than_values_is_refused_before_memory_is_taken() {
        let texts: ArrayRef = Arc::new(StringArray::from_iter_values((0..200).map(|row| format!("{row}"))));
        for encoding in [Encoding::DELTA_BYTE_ARRAY, Encoding::DELTA_LENGTH_BYTE_ARRAY] {
            for is_second in [false, true] {
                let mut bytes = file(Arc::clone(&texts), encoding, is_second, 1000);
                let header = [0x80, 1, 4, 0xc8, 1];
                let places: Vec<usize> =
                    (0..bytes.len() - 5).filter(|place| bytes[*place..*place + 5] == header).collect();
                assert_eq!(places.len(), if encoding == Encoding::DELTA_BYTE_ARRAY { 2 } else { 1 });
                for place in places {
                    let kept = bytes.clone();
                    bytes[place + 3..place + 9].copy_from_slice(&[0xff, 0xff, 0xff, 0xff, 0xff, 0x3f]);
                    let document =
                        Parquet.open(Source::from_bytes("x", bytes.clone()), &ReadOptions::default());
                    let mut findings = Findings::new(false);
                    document.unwrap().validate(&mut findings).unwrap();
                    let path = "row_group[0].columns[0].c.page";
                    assert!(
                        findings.list().iter().any(|finding| finding.path == path),
                        "{:?}",
                        findings.list()
                    );
                    let error = read(bytes, 4 << 30).unwrap_err();
                    assert_eq!(error.kind(), ErrorKind::Malformed, "{error}");
                    assert!(
                        error.to_string().contains("columns[0].c.page: expected lengths of at most 200"),
                        "{error}"
                    );
                    bytes = kept;
                }
            }
        }
    }

    #[test]
    fn long_values_that_take_few_bytes_in_the_file_are_read_a_few_at_a_time() {
        let long = "x".repeat(100_000);
        let texts: ArrayRef = Arc::new(LargeStringArray::from_iter_values((0..500).map(|_| &long)));
        let bytes = file(texts, Encoding::DELTA_BYTE_ARRAY, true, 1000);
        assert!(bytes.len() < 200_000);
        let batches = read(bytes.clone(), 64 << 20).map(|batches| batches.len());
        // All batches together are more; each is less.
        assert_eq!(batches.unwrap_err().kind(), ErrorKind::Limit);
        let mut options = OpenOptions::default();
        options.budget = Limits::default().with_max_alloc(64 << 20).budget();
        let source = Source::from_bytes("x", bytes);
        let opened = open_source(&Registry::default(), source, None, &options).unwrap();
        let rows = opened.rows(&View::default()).unwrap();
        let counts: Vec<usize> = rows.map(|batch| batch.unwrap().num_rows()).collect();
        assert_eq!(counts.iter().sum::<usize>(), 500);
        assert!(counts.iter().all(|count| *count <= 160), "{counts:?}");
    }
}
