//! Batches that are decoded ahead, and files with unusual pages.

use arrow_array::builder::{FixedSizeListBuilder, Float64Builder, ListBuilder, StringBuilder};
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, BooleanArray, Int64Array, ListArray, StringArray};
use arrow_select::concat::concat_batches;
use bytes::Bytes;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::column::writer::ColumnCloseResult;
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::serialized_reader::ReadOptionsBuilder;
use parquet::file::writer::SerializedFileWriter;

use super::*;
use crate::control::Control;

use crate::formats::parquet::Parquet;
use crate::formats::{Document, Format, ReadOptions};
use crate::limits::Limits;
use crate::source::Source;
use crate::testing::asked::Asked;

const ROWS: usize = 10_000;
const GROUP_ROWS: usize = 1000;

/// A file of ten row groups, and its rows.
fn groups() -> (Vec<u8>, RecordBatch) {
    let number = |row: usize| (row * 7919) as i64;
    let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values((0..ROWS).map(number)));
    let texts = (0..ROWS).map(|row| format!("text {}", row * row));
    let texts: ArrayRef = Arc::new(StringArray::from_iter_values(texts));
    let halves: ArrayRef =
        Arc::new((0..ROWS).map(|row| (row % 3 > 0).then_some(row as i64)).collect::<Int64Array>());
    let rows = RecordBatch::try_from_iter([("n", numbers), ("t", texts), ("h", halves)]).unwrap();
    let properties = WriterProperties::builder()
        .set_max_row_group_row_count(Some(GROUP_ROWS))
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .build();
    let mut writer = ArrowWriter::try_new(Vec::new(), rows.schema(), Some(properties)).unwrap();
    writer.write(&rows).unwrap();
    (writer.into_inner().unwrap(), rows)
}

fn open(bytes: &[u8], threads: usize) -> Arc<dyn Document> {
    let options = ReadOptions::default().with_control(Control::new(threads));
    Parquet.open(Source::from_bytes("x", bytes.to_vec()), &options).unwrap()
}

#[test]
fn batches_are_the_same_with_any_number_of_threads() {
    let (bytes, rows) = groups();
    let whole = 0..ROWS as u64;
    for range in [whole, 0..1, 999..1001, 1500..7300, 9999..10_000, 4000..4000] {
        for (batch_rows, columns) in [(0, None), (300, None), (1000, Some(1..2)), (7, Some(1..3))] {
            let read = |threads| {
                let columns = columns.clone().map(|columns| std::iter::once(columns).collect());
                let request = Asked { columns, rows: Some(range.clone()), batch_rows };
                open(&bytes, threads).ask(&request).unwrap().collect::<Result<Vec<_>, _>>().unwrap()
            };
            let one = read(1);
            assert_eq!(one, read(2));
            assert_eq!(one, read(7));
            let (start, count) = (range.start as usize, (range.end - range.start) as usize);
            let expected = match &columns {
                Some(columns) => {
                    rows.project(&columns.clone().map(|column| column as usize).collect::<Vec<_>>()).unwrap()
                }
                None => rows.clone(),
            };
            let found = concat_batches(&expected.schema(), &one).unwrap();
            assert_eq!(found, expected.slice(start, count));
        }
    }
}

/// A data page in plain encoding without values.
const EMPTY_PAGE: &[u8] = b"\x15\0\x15\0\x15\0\x2c\x15\0\x15\0\x15\x06\x15\x06\0\0";
/// The same in a column with lists: without levels of both kinds.
const EMPTY_LIST_PAGE: &[u8] = b"\x15\0\x15\x10\x15\x10\x2c\x15\0\x15\0\x15\x06\x15\x06\0\0\0\0\0\0\0\0\0\0";

/// A file of two row groups with pages of 200 rows; before the page `at` of each are `count` pages without values.
fn with_empty_pages(rows: &RecordBatch, at: usize, count: usize) -> Vec<u8> {
    let properties = WriterProperties::builder()
        .set_dictionary_enabled(false)
        .set_data_page_row_count_limit(200)
        .set_write_batch_size(200)
        .build();
    let properties = Arc::new(properties);
    let mut writer = ArrowWriter::try_new(Vec::new(), rows.schema(), Some((*properties).clone())).unwrap();
    writer.write(rows).unwrap();
    let bytes = Bytes::from(writer.into_inner().unwrap());
    let options = ReadOptionsBuilder::new().with_page_index().build();
    let reader = SerializedFileReader::new_with_options(bytes.clone(), options).unwrap();
    let metadata = reader.metadata();
    let column = metadata.row_group(0).column(0);
    let (start, length) = column.byte_range();
    let mut chunk = bytes[start as usize..(start + length) as usize].to_vec();
    let page = metadata.offset_index().unwrap()[0][0].page_locations().get(at);
    let place = page.map_or(chunk.len(), |page| page.offset as usize - start as usize);
    let page = if column.column_descr().max_rep_level() > 0 { EMPTY_LIST_PAGE } else { EMPTY_PAGE };
    chunk.splice(place..place, page.repeat(count));
    let added = (page.len() * count) as i64;
    let column = column.clone().into_builder().set_data_page_offset(0);
    let column = column.set_total_compressed_size(length as i64 + added);
    let column = column.set_total_uncompressed_size(length as i64 + added).build().unwrap();
    let schema = metadata.file_metadata().schema_descr().root_schema_ptr();
    let mut writer = SerializedFileWriter::new(Vec::new(), schema, properties).unwrap();
    for _ in 0..2 {
        let mut group = writer.next_row_group().unwrap();
        let closed = ColumnCloseResult {
            bytes_written: chunk.len() as u64,
            rows_written: rows.num_rows() as u64,
            bloom_filter: None,
            metadata: column.clone(),
            column_index: None,
            offset_index: None,
        };
        group.append_column(&Bytes::from(chunk.clone()), closed).unwrap();
        group.close().unwrap();
    }
    writer.into_inner().unwrap()
}

#[test]
fn a_page_without_values_changes_no_rows() {
    let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(0..1000));
    let rows = RecordBatch::try_from_iter([("n", numbers)]).unwrap();
    let twice = concat_batches(&rows.schema(), [&rows, &rows]).unwrap();
    // At the end, several of them are nothing but the end.
    for (at, count) in [(0, 1), (1, 1), (4, 1), (5, 1), (5, 2), (5, 5)] {
        let bytes = with_empty_pages(&rows, at, count);
        for (threads, batch_rows) in [(1, 0), (2, 0), (2, 100), (2, 300), (7, 500), (2, 1000), (2, 5000)] {
            for range in [0..2000, 150..950, 200..1900, 801..1001] {
                let (start, length) = (range.start as usize, (range.end - range.start) as usize);
                let request = Asked { columns: None, rows: Some(range), batch_rows };
                let found = open(&bytes, threads).ask(&request).unwrap();
                let found = found.collect::<Result<Vec<_>, _>>().unwrap();
                let most = if batch_rows == 0 { 1000 } else { batch_rows };
                assert!(found.iter().all(|batch| batch.num_rows() <= most));
                let found = concat_batches(&rows.schema(), &found).unwrap();
                assert_eq!(found, twice.slice(start, length));
            }
        }
    }
}

#[test]
fn several_pages_without_values_are_refused() {
    let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(0..1000));
    let rows = RecordBatch::try_from_iter([("n", numbers)]).unwrap();
    for (at, count) in [(0, 2), (1, 2), (2, 3), (4, 5)] {
        let bytes = with_empty_pages(&rows, at, count);
        for (threads, batch_rows) in [(1, 0), (2, 300), (7, 200)] {
            let request = Asked { columns: None, rows: None, batch_rows };
            let found = open(&bytes, threads).ask(&request).unwrap().collect::<Result<Vec<_>, _>>();
            let error = Error::from(found.unwrap_err());
            assert_eq!(error.kind(), ErrorKind::Unsupported);
            assert!(error.to_string().contains("pages without values"), "{error}");
            assert!(error.offset().is_some());
        }
    }
}

#[test]
fn a_page_without_values_is_refused_at_the_end_of_lists() {
    let lists = (0..1000).map(|row| Some(vec![Some(row); 1 + row as usize % 3]));
    let lists: ArrayRef = Arc::new(ListArray::from_iter_primitive::<Int64Type, _, _>(lists));
    let rows = RecordBatch::try_from_iter([("l", lists)]).unwrap();
    let twice = concat_batches(&rows.schema(), [&rows, &rows]).unwrap();
    for at in 0..=5 {
        let bytes = with_empty_pages(&rows, at, 1);
        for (threads, batch_rows) in [(1, 0), (2, 0), (2, 300), (7, 200)] {
            let request = Asked { columns: None, rows: None, batch_rows };
            let found = open(&bytes, threads).ask(&request).unwrap().collect::<Result<Vec<_>, _>>();
            if at < 5 {
                assert_eq!(concat_batches(&rows.schema(), &found.unwrap()).unwrap(), twice);
            } else {
                let error = Error::from(found.unwrap_err());
                assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
            }
        }
    }
}

/// Columns of every kind, with long values in their second half.
fn uneven(rows: usize) -> RecordBatch {
    let text = |row: usize| if row < rows / 2 { "short".to_owned() } else { "long".repeat(1000 + row % 3) };
    let texts: ArrayRef = Arc::new(StringArray::from_iter_values((0..rows).map(text)));
    let distinct = (0..rows).map(|row| format!("{row}{}", text(row)));
    let distinct: ArrayRef = Arc::new(StringArray::from_iter_values(distinct));
    let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values((0..rows).map(|row| row as i64 / 7)));
    let nulls: ArrayRef = Arc::new((0..rows).map(|row| (row % 5 > 3).then_some(1)).collect::<Int64Array>());
    let bools: ArrayRef = Arc::new((0..rows).map(|row| Some(row % 2 > 0)).collect::<BooleanArray>());
    let lists = (0..rows).map(|row| Some(vec![Some(row as i64 % 4); if row < rows / 2 { 1 } else { 50 }]));
    let lists: ArrayRef = Arc::new(ListArray::from_iter_primitive::<Int64Type, _, _>(lists));
    let columns = [("t", texts), ("d", distinct), ("n", numbers), ("x", nulls), ("b", bools), ("l", lists)];
    RecordBatch::try_from_iter(columns).unwrap()
}

#[test]
fn no_batch_takes_more_than_its_bound() {
    let rows = uneven(3000);
    let plain = WriterProperties::builder().set_dictionary_enabled(false);
    let deltas = WriterProperties::builder()
        .set_dictionary_enabled(false)
        .set_encoding(Encoding::DELTA_BINARY_PACKED)
        .set_column_encoding("t".into(), Encoding::DELTA_BYTE_ARRAY)
        .set_column_encoding("d".into(), Encoding::DELTA_LENGTH_BYTE_ARRAY)
        .set_column_encoding("b".into(), Encoding::RLE);
    for properties in [WriterProperties::builder(), plain, deltas] {
        let properties = properties.set_max_row_group_row_count(Some(1000)).build();
        let mut writer = ArrowWriter::try_new(Vec::new(), rows.schema(), Some(properties)).unwrap();
        writer.write(&rows).unwrap();
        let source = Source::from_bytes("x", writer.into_inner().unwrap());
        let control = Control::new(2);
        let store = Store::open(Chunks::new(source, Limits::default().budget()), control.clone()).unwrap();
        for (group, batch_rows) in [(0, 0), (1, 0), (2, 0), (1, 100), (2, 333)] {
            for columns in [&[0, 1, 2, 3, 4, 5][..], &[0], &[1], &[2], &[3], &[4], &[5]] {
                let mut ahead = Ahead::new(&control);
                let group = store.read_group(group, columns, 0..1000, batch_rows, &mut ahead).unwrap();
                group.begin_batch(&mut ahead).unwrap();
                let batch = group.next_batch(&mut ahead).unwrap().unwrap();
                let bytes = batch.get_array_memory_size() as u64;
                // Vectors grow by half or to twice their size, and have a head.
                let most = group.most_bytes.saturating_mul(2).saturating_add(4096);
                assert!(bytes <= most, "{bytes} of {most}");
            }
        }
    }
}

#[test]
fn nothing_is_decoded_ahead_that_might_not_fit() {
    const LONG: usize = 100 << 10;
    let texts = |text: &str| -> RecordBatch {
        let texts: ArrayRef = Arc::new(StringArray::from_iter_values((0..3000).map(|_| text)));
        RecordBatch::try_from_iter([("t", texts)]).unwrap()
    };
    let (short, long) = (texts("short"), texts(&"long".repeat(LONG / 4)));
    let mut writer = ArrowWriter::try_new(Vec::new(), short.schema(), None).unwrap();
    for rows in [&short, &long] {
        writer.write(rows).unwrap();
        writer.flush().unwrap();
    }
    let source = Source::from_bytes("x", writer.into_inner().unwrap());
    drop(long);
    for threads in [1, 2, 7] {
        let limits = Limits::default().with_max_alloc(OVERLAP_BUDGET);
        let options = ReadOptions::default().with_budget(limits.budget()).with_control(Control::new(threads));
        let document = Parquet.open(source.clone(), &options).unwrap();
        let rows = document.ask(&Asked { columns: None, rows: None, batch_rows: 1000 }).unwrap();
        let mut found = Vec::new();
        for batch in rows {
            let batch = batch.unwrap();
            found.push(batch.column(0).as_string::<i32>().values().len());
            // Another part of the job needs memory: one batch is in use, and there is room for one more of 64 MB.
            if batch.column(0).as_string::<i32>().value(0) != "short" {
                options.budget.reserve(OVERLAP_BUDGET / 2).unwrap();
            }
        }
        assert_eq!(found.iter().sum::<usize>(), 3000 * 5 + 3000 * LONG);
        // Batches are smaller than was asked for, too.
        assert!(found.iter().all(|bytes| *bytes as u64 <= OVERLAP_BUDGET / 4));
    }
}

fn read_within_8_mib(source: &Source) -> std::result::Result<Vec<RecordBatch>, arrow_schema::ArrowError> {
    let options = ReadOptions::default().with_budget(Limits::default().with_max_alloc(8 << 20).budget());
    let document = Parquet.open(source.clone(), &options).unwrap();
    document.ask(&Asked::default()).unwrap().collect()
}

#[test]
fn rows_with_lists_are_as_long_as_their_values() {
    const LONG: usize = 100 << 10;
    let long = "x".repeat(LONG);
    // A list of each row; the second is the only one with long values.
    let file = |rows: usize, short: usize, long_values: usize| {
        let values = |row: usize| {
            let long = std::iter::repeat_n(Some(long.as_str()), if row == 1 { long_values } else { 0 });
            Some((0..short).map(|index| Some(if index % 2 > 0 { "a" } else { "b" })).chain(long))
        };
        let mut lists = ListBuilder::new(StringBuilder::new());
        lists.extend((0..rows).map(values));
        let lists: ArrayRef = Arc::new(lists.finish());
        let rows = RecordBatch::try_from_iter([("l", lists)]).unwrap();
        let mut writer = ArrowWriter::try_new(Vec::new(), rows.schema(), None).unwrap();
        writer.write(&rows).unwrap();
        (rows, Source::from_bytes("x", writer.into_inner().unwrap()))
    };
    // If each value were the longest, one gigabyte.
    let (rows, source) = file(1000, 10, 1);
    let found = read_within_8_mib(&source).unwrap();
    assert_eq!(concat_batches(&rows.schema(), &found).unwrap(), rows);
    // Ten megabytes in one row, which takes little more than one value in the file.
    let (_, source) = file(3, 0, 100);
    let error = Error::from(read_within_8_mib(&source).unwrap_err());
    assert_eq!(error.kind(), ErrorKind::Limit, "{error}");
}

#[test]
fn missing_lists_of_fixed_size_count() {
    // Rows of so many missing lists of a hundred numbers each.
    let file = |rows: usize, missing: usize| {
        let lists = FixedSizeListBuilder::new(Float64Builder::new(), 100);
        let mut rows_of_lists = ListBuilder::new(lists);
        for _ in 0..rows {
            for _ in 0..missing {
                (0..100).for_each(|_| rows_of_lists.values().values().append_null());
                rows_of_lists.values().append(false);
            }
            rows_of_lists.append(true);
        }
        let column: ArrayRef = Arc::new(rows_of_lists.finish());
        let rows = RecordBatch::try_from_iter([("l", column)]).unwrap();
        let mut writer = ArrowWriter::try_new(Vec::new(), rows.schema(), None).unwrap();
        writer.write(&rows).unwrap();
        (rows, Source::from_bytes("x", writer.into_inner().unwrap()))
    };
    let (rows, source) = file(400, 10);
    assert_eq!(concat_batches(&rows.schema(), &read_within_8_mib(&source).unwrap()).unwrap(), rows);
    let (_, source) = file(1, 20_000);
    let error = Error::from(read_within_8_mib(&source).unwrap_err());
    assert_eq!(error.kind(), ErrorKind::Limit, "{error}");
}

#[test]
fn rows_before_a_fault_come_first() {
    let (bytes, rows) = groups();
    let reader = SerializedFileReader::new(Bytes::from(bytes.clone())).unwrap();
    for (group, column) in [(0, 1), (1, 0), (3, 2), (9, 1)] {
        let (start, length) = reader.metadata().row_group(group).column(column).byte_range();
        let (start, end) = (start as usize, (start + length) as usize);
        let frame = memchr::memmem::rfind(&bytes[start..end], b"\x28\xb5\x2f\xfd").unwrap();
        // A header, which is looked at when the row group is opened, or a compressed page, which is decoded later; there the
        // last column has a fault too.
        let (last, length) = reader.metadata().row_group(group).column(2).byte_range();
        let last = last as usize..(last + length) as usize;
        let also = last.start + memchr::memmem::rfind(&bytes[last], b"\x28\xb5\x2f\xfd").unwrap();
        for places in [vec![start], vec![start + frame], vec![start + frame, also + 2]] {
            let mut damaged = bytes.clone();
            places.into_iter().for_each(|place| damaged[place] ^= 0x7f);
            let read = |threads| {
                let mut found = open(&damaged, threads).all_rows().unwrap();
                let good: Vec<RecordBatch> = found.by_ref().map_while(Result::ok).collect();
                assert!(found.next().is_none(), "nothing follows an error");
                let error = open(&damaged, threads).all_rows().unwrap().find_map(Result::err).unwrap();
                (concat_batches(&rows.schema(), &good).unwrap(), error.to_string())
            };
            let (good, error) = read(1);
            assert_eq!(good, rows.slice(0, group * GROUP_ROWS), "{error}");
            assert!(error.contains(&format!("row_group[{group}]")), "{error}");
            assert_eq!((good.clone(), error.clone()), read(2));
            assert_eq!((good, error), read(7));
        }
    }
}
