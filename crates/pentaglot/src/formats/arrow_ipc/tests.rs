use crate::sink::Sink;
use crate::testing::asked::Asked;
use arrow_schema::Schema;
use std::io::Cursor;

use arrow_array::cast::AsArray;
use arrow_array::{Array, Float64Array, RecordBatch};
use arrow_schema::{DataType, Field};

use super::*;
use crate::ErrorKind;
use crate::hub::Verdict;
use crate::testing::arbitrary::Random;
use crate::testing::columnar::{self, assert_same, expected};
use crate::testing::conformance::{Suite, collect};
use crate::testing::writing::Writing as _;

#[test]
fn files_pass_the_conformance_suite() {
    let done = Suite::new(&ArrowFile).keeping_metadata().run(0..250);
    assert!(done > 150, "{done}");
}

#[test]
fn streams_pass_the_conformance_suite() {
    let done = Suite::new(&ArrowStream).keeping_metadata().run(0..250);
    assert!(done > 150, "{done}");
}

#[test]
fn what_pyarrow_writes_reads_equal() {
    for name in ["lz4.feather", "zstd.feather", "two_batches.arrow", "legacy.arrow"] {
        let found = columnar::read(&ArrowFile, &format!("arrow/{name}"));
        assert_eq!(found, expected(), "{name}");
    }
    for name in ["two_batches.arrows", "zstd.arrows", "legacy.arrows"] {
        let found = columnar::read(&ArrowStream, &format!("arrow/{name}"));
        assert_eq!(found, expected(), "{name}");
    }
    let none = columnar::read(&ArrowFile, "arrow/no_rows.arrow");
    assert_eq!(none, expected().slice(0, 0));
}

#[test]
fn dictionaries_that_grow_or_are_replaced_read_equal() {
    let words = |batch: &RecordBatch| -> Vec<String> {
        let plain = arrow_cast::cast(batch.column(0), &DataType::Utf8).unwrap();
        plain.as_string::<i32>().iter().map(|word| word.unwrap().to_owned()).collect()
    };
    let grown = ["a", "b", "a", "c", "a", "b"];
    assert_eq!(words(&columnar::read(&ArrowFile, "arrow/delta.arrow")), grown);
    assert_eq!(words(&columnar::read(&ArrowStream, "arrow/delta.arrows")), grown);
    let replaced = ["a", "b", "a", "c", "b", "c"];
    assert_eq!(words(&columnar::read(&ArrowStream, "arrow/replaced.arrows")), replaced);
    // The same from a pipe, where nothing can be read twice.
    let bytes = std::fs::read(columnar::path("arrow/replaced.arrows")).unwrap();
    let source = Source::from_reader("pipe", Cursor::new(bytes));
    let document = ArrowStream.open(source, &ReadOptions::default()).unwrap();
    assert_eq!(words(&collect(document.all_rows().unwrap()).unwrap()), replaced);
}

#[test]
fn a_file_joins_the_dictionaries_of_its_batches() {
    let schema = columnar::open(&ArrowStream, "arrow/replaced.arrows").summary().schema.clone();
    let document = columnar::open(&ArrowStream, "arrow/replaced.arrows");
    let batches: Vec<RecordBatch> = document.all_rows().unwrap().collect::<Result<_, _>>().unwrap();
    let (_, bytes) = Suite::new(&ArrowFile).encode(&schema, &batches).unwrap();
    let document = ArrowFile.open(Source::from_bytes("x", bytes), &ReadOptions::default()).unwrap();
    let found: Vec<RecordBatch> = document.all_rows().unwrap().collect::<Result<_, _>>().unwrap();
    assert_eq!(found, batches);
    let last = found.last().unwrap().column(0).as_any_dictionary().values().clone();
    assert_eq!(last.as_string::<i32>().iter().flatten().collect::<Vec<_>>(), ["a", "b", "c"]);
}

#[test]
fn a_dictionary_that_outgrows_its_index_is_refused_by_row() {
    let kind = DataType::Dictionary(Box::new(DataType::Int8), Box::new(DataType::Int32));
    let schema: SchemaRef = Arc::new(Schema::new(vec![Field::new("c", kind.clone(), false)]));
    assert_eq!(ArrowFile.steps(&schema, &WriteOptions::default()).verdict(), Verdict::Checked);
    let batch = |start: i32| {
        let values = arrow_array::Int32Array::from((start..start + 100).collect::<Vec<_>>());
        let column = arrow_cast::cast(&values, &kind).unwrap();
        RecordBatch::try_new(Arc::clone(&schema), vec![column]).unwrap()
    };
    let (sink, _) = Sink::memory();
    let mut writer = ArrowFile.create(sink, Arc::clone(&schema), &WriteOptions::default()).unwrap();
    writer.write(&batch(0)).unwrap();
    let error = writer.write(&batch(1000)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "arrow: row 128, column \"c\": the dictionary of the whole file has more values than Int8 can count"
    );
    assert_eq!(error.kind(), ErrorKind::Lossy);
}

#[test]
fn columns_and_batches_that_are_not_asked_for_are_not_read() {
    let fields: Vec<Field> =
        (0..8).map(|index| Field::new(format!("c{index}"), DataType::Float64, false)).collect();
    let schema: SchemaRef = Arc::new(Schema::new(fields));
    let batch = |start: usize| {
        let column = |index: usize| -> arrow_array::ArrayRef {
            Arc::new(Float64Array::from_iter_values((0..10_000).map(|row| (start + row * 8 + index) as f64)))
        };
        RecordBatch::try_new(Arc::clone(&schema), (0..8).map(column).collect()).unwrap()
    };
    let batches: Vec<RecordBatch> = (0..4).map(batch).collect();
    for format in [&ArrowFile as &dyn Format, &ArrowStream] {
        let (_, bytes) = Suite::new(format).encode(&schema, &batches).unwrap();
        let source = Source::from_bytes("x", bytes);
        let document = format.open(source.clone(), &ReadOptions::default()).unwrap();
        assert!(source.bytes_read() < 100_000, "headers only: {}", source.bytes_read());
        let before = source.bytes_read();
        let column = std::iter::once(5..6).collect();
        let request = Asked { columns: Some(column), rows: Some(25_000..25_010), batch_rows: 0 };
        let found = collect(document.ask(&request).unwrap()).unwrap();
        assert_eq!(found.column(0), &batches[2].column(5).slice(5_000, 10));
        let read = source.bytes_read() - before;
        assert!(read < 90_000, "one column of one batch: {read}");
    }
}

#[test]
fn zero_columns_keep_their_rows() {
    let schema: SchemaRef = Arc::new(Schema::empty());
    let batch = crate::hub::rows::batch(Arc::clone(&schema), Vec::new(), 7).unwrap();
    assert!(Suite::new(&ArrowFile).keeping_metadata().check(&schema, &[batch.clone(), batch.clone()]));
    assert!(Suite::new(&ArrowStream).keeping_metadata().check(&schema, &[batch]));
}

#[test]
fn a_dictionary_of_dictionaries_is_refused_by_the_plan() {
    let inner = DataType::Dictionary(Box::new(DataType::Int8), Box::new(DataType::Utf8));
    let outer = DataType::Dictionary(Box::new(DataType::Int8), Box::new(inner));
    let schema = Schema::new(vec![Field::new("c", outer, true)]);
    for format in [&ArrowFile as &dyn Format, &ArrowStream] {
        assert_eq!(format.steps(&schema, &WriteOptions::default()).verdict(), Verdict::Impossible);
    }
}

#[test]
fn errors_say_what_and_where() {
    let whole = std::fs::read(columnar::path("arrow/two_batches.arrow")).unwrap();
    let error = |format: &dyn Format, bytes: Vec<u8>| {
        let open = format.open(Source::from_bytes("x", bytes), &ReadOptions::default());
        let result = open.and_then(|document| collect(document.all_rows()?).map(drop));
        result.unwrap_err().to_string()
    };
    let cut = whole[..whole.len() - 1].to_vec();
    assert_eq!(
        error(&ArrowFile, cut),
        "arrow: at byte 4403: expected the magic ARROW1 at the end, found 00 41 52 52 4f 57"
    );
    assert_eq!(
        error(&ArrowFile, b"ARROW2\0\0".to_vec()),
        "arrow: at byte 0: expected the magic ARROW1, found 41 52 52 4f 57 32"
    );
    assert_eq!(
        error(&ArrowFile, b"FEA1\0\0\0\0".to_vec()),
        "arrow: not supported: Feather version 1 (write it again as version 2)"
    );
    let mut long = whole.clone();
    let at = whole.len() - 10;
    long[at..at + 4].copy_from_slice(&i32::MAX.to_le_bytes());
    assert_eq!(
        error(&ArrowFile, long),
        "arrow: at byte 4400, footer_length: expected a footer length 1..=4392, found 2147483647"
    );
    let stream = std::fs::read(columnar::path("arrow/two_batches.arrows")).unwrap();
    assert_eq!(
        error(&ArrowStream, stream[..stream.len() - 100].to_vec()),
        "arrow-stream: at byte 3096: expected a body of 368 bytes, found 276"
    );
    assert_eq!(
        error(&ArrowStream, vec![0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0x80]),
        "arrow-stream: at byte 4, prefix: expected a metadata length of 0 or more, found -2147483648"
    );
}

#[test]
fn every_cut_and_every_flipped_bit_of_small_files_is_told_or_harmless() {
    for name in ["delta.arrow", "two_batches.arrow"] {
        let bytes = std::fs::read(columnar::path("arrow").join(name)).unwrap();
        Suite::new(&ArrowFile).bad_input(&bytes, if bytes.len() < 2000 { 1 } else { 23 });
    }
    for name in ["replaced.arrows", "zstd.arrows"] {
        let bytes = std::fs::read(columnar::path("arrow").join(name)).unwrap();
        Suite::new(&ArrowStream).bad_input(&bytes, if bytes.len() < 2000 { 1 } else { 23 });
    }
    let bytes = std::fs::read(columnar::path("arrow/lz4.feather")).unwrap();
    Suite::new(&ArrowFile).bad_input(&bytes, 23);
}

#[test]
fn bad_input_never_panics() {
    for seed in 0..12 {
        let mut random = Random::new(1000 + seed);
        let schema = random.schema();
        let batch = random.batch(&schema, 5);
        for format in [&ArrowFile as &dyn Format, &ArrowStream] {
            let suite = Suite::new(format);
            let Some((_, bytes)) = suite.encode(&schema, std::slice::from_ref(&batch)) else { continue };
            suite.bad_input(&bytes, 11);
        }
    }
}

#[test]
fn the_summary_counts_nulls_and_names_parts() {
    let document = columnar::open(&ArrowFile, "arrow/two_batches.arrow");
    let summary = document.summary();
    assert_eq!(summary.rows, Some(5));
    let nulls: Vec<Option<u64>> = expected()
        .columns()
        .iter()
        .map(|column| column.as_any_dictionary_opt().is_none().then(|| column.null_count() as u64))
        .collect();
    assert_eq!(summary.null_counts, nulls);
    let parts: Vec<&str> = summary.parts.iter().map(|part| part.path.as_str()).collect();
    assert_eq!(parts, ["dictionary[0]", "batch[0]", "batch[1]", "footer"]);
    assert_same("two_batches.arrow", &expected(), &columnar::read(&ArrowFile, "arrow/two_batches.arrow"));
}

#[test]
fn a_large_batch_is_read_in_parts() {
    let count = 2_000_003;
    let numbers: Float64Array = (0..count).map(|row| (row % 7 != 0).then_some(f64::from(row))).collect();
    let flags: arrow_array::BooleanArray =
        (0..count).map(|row| (row % 5 != 0).then_some(row % 3 == 0)).collect();
    let small = arrow_array::Int16Array::from_iter_values((0..count).map(|row| row as i16));
    let batch = RecordBatch::try_from_iter([
        ("numbers", Arc::new(numbers) as arrow_array::ArrayRef),
        ("flags", Arc::new(flags)),
        ("small", Arc::new(small)),
    ])
    .unwrap();
    let (_, bytes) = Suite::new(&ArrowFile).encode(&batch.schema(), std::slice::from_ref(&batch)).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("large.arrow");
    std::fs::write(&path, bytes).unwrap();
    let document = ArrowFile.open(Source::open(&path).unwrap(), &ReadOptions::default()).unwrap();
    let parts: Vec<RecordBatch> = document.all_rows().unwrap().collect::<Result<_, _>>().unwrap();
    assert!(parts.len() > 4 && parts.iter().all(|part| part.get_array_memory_size() < 5 << 20));
    assert_eq!(arrow_select::concat::concat_batches(&batch.schema(), &parts).unwrap(), batch);
    let asked = Asked { columns: Some(vec![2..3, 0..1]), rows: Some(5..1_999_999), batch_rows: 0 };
    let found = collect(document.ask(&asked).unwrap()).unwrap();
    assert_eq!(found, batch.slice(5, 1_999_994).project(&[2, 0]).unwrap());
}
