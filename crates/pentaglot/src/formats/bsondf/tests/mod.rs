//! Documents of others, broken documents, and what we write ourselves.

mod bad;
mod documents;
mod json;
mod options;
mod vectors;

use crate::testing::asked::Asked;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::{Array as _, ArrayRef, RecordBatch};
use arrow_schema::{Schema, SchemaRef};

use super::Bsondf;
use crate::error::Result;
use crate::formats::{Document, Findings, Format, ReadOptions, WriteOptions};
use crate::hub::Verdict;
use crate::sink::Sink;
use crate::source::Source;
use crate::testing::arbitrary::Random;
use crate::testing::conformance::{Suite, collect};
use crate::testing::writing::Writing as _;

fn testdata() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/bsondf")
}

fn load(name: &str) -> Vec<u8> {
    std::fs::read(testdata().join(name)).unwrap()
}

/// The names, without the extension, of the files in a folder that have this extension, sorted.
fn names(folder: &str, extension: &str) -> Vec<String> {
    let files = std::fs::read_dir(testdata().join(folder)).unwrap();
    let paths = files.map(|entry| entry.unwrap().path());
    let mut names: Vec<String> = paths
        .filter(|path| path.extension().is_some_and(|found| found == extension))
        .map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned())
        .collect();
    names.sort();
    names
}

fn open_with(bytes: &[u8], options: &ReadOptions) -> Result<Arc<dyn Document>> {
    Bsondf.open(Source::from_bytes("data.bson", bytes.to_vec()), options)
}

fn read_with(bytes: &[u8], options: &ReadOptions) -> Result<RecordBatch> {
    collect(open_with(bytes, options)?.all_rows()?)
}

fn read(bytes: &[u8]) -> Result<RecordBatch> {
    read_with(bytes, &ReadOptions::default())
}

fn write_options(pairs: &[(&str, &str)]) -> WriteOptions {
    let mut options = WriteOptions::default();
    pairs.iter().for_each(|(key, value)| options.options.set(*key, *value));
    options
}

fn read_options(pairs: &[(&str, &str)]) -> ReadOptions {
    let mut options = ReadOptions::default();
    pairs.iter().for_each(|(key, value)| options.options.set(*key, *value));
    options
}

fn write_batches(schema: SchemaRef, batches: &[RecordBatch], options: &WriteOptions) -> Result<Vec<u8>> {
    let (sink, memory) = Sink::memory();
    let mut writer = Bsondf.create(sink, schema, options)?;
    batches.iter().try_for_each(|batch| writer.write(batch))?;
    writer.finish()?;
    Ok(memory.take())
}

fn write(batch: &RecordBatch) -> Vec<u8> {
    write_batches(batch.schema(), std::slice::from_ref(batch), &WriteOptions::default()).unwrap()
}

fn table(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, array)| (name, array, true)))
        .unwrap()
}

/// What `validate` finds, as `severity rule path`.
fn findings(bytes: &[u8], strict: bool) -> Vec<String> {
    let mut findings = Findings::new(strict);
    match open_with(bytes, &ReadOptions::default()) {
        Ok(document) => document.validate(&mut findings).unwrap(),
        Err(error) => findings.error(&error),
    }
    let line = |finding: &crate::formats::Finding| {
        format!("{} {} {}", finding.severity.name(), finding.rule, finding.path)
    };
    findings.list().iter().map(line).collect()
}

#[test]
fn whatever_the_plan_allows_comes_back() {
    let plain = Suite::new(&Bsondf);
    let other = Suite::new(&Bsondf).option("nulls", "repeat").option("empty", "4").option("level", "3");
    for seed in 0..120 {
        let suite = if seed % 4 == 0 { &other } else { &plain };
        let mut random = Random::new(seed);
        let schema = random.schema_of(|field| {
            let alone = Schema::new(vec![field.clone()]);
            // Maps come back as lists, which Arrow cannot cast to maps: they have a test of their own.
            Bsondf.steps(&alone, &suite.write).verdict() < Verdict::Lossy
                && !format!("{field:?}").contains("Map(")
        });
        let batches = random.batches(&schema);
        let check = || suite.check(&schema, &batches);
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(check));
        assert!(outcome.is_ok(), "seed {seed}, schema {schema:#?}");
    }
}

#[test]
fn truncations_and_flipped_bits_are_survived() {
    for name in names("", "bson") {
        let bytes = load(&format!("{name}.bson"));
        let stride = bytes.len() / 300 + 1;
        Suite::new(&Bsondf).bad_input(&bytes, stride);
    }
}

#[test]
fn a_cut_document_is_refused_at_every_byte() {
    for name in ["toy_seed", "factors", "structs", "list_struct_list"] {
        let bytes = load(&format!("{name}.bson"));
        for cut in 0..bytes.len() {
            let error = read(&bytes[..cut]).unwrap_err();
            assert_eq!(error.kind(), crate::ErrorKind::Truncated, "{name} cut at {cut}: {error}");
        }
    }
}

#[test]
fn what_is_projected_is_all_that_is_read() {
    let bytes = load("ticks_5k.bson");
    let source = Source::from_bytes("ticks.bson", bytes.clone());
    let document = Bsondf.open(source.clone(), &ReadOptions::default()).unwrap();
    let walked = source.bytes_read();
    let columns = document.summary().schema.fields().len();
    assert!(walked < 4096 * columns as u64, "the walk over the lengths reads little, read {walked}");
    for index in 0..columns {
        let before = source.bytes_read();
        let column = std::iter::once(index as u64..index as u64 + 1).collect();
        let request = Asked { columns: Some(column), ..Asked::default() };
        collect(document.ask(&request).unwrap()).unwrap();
        let part = &document.summary().parts[index];
        assert!(source.bytes_read() - before <= part.bytes, "column {index}");
    }
    assert_eq!(Arc::strong_count(&document.summary().schema), 1);
}

/// Rows are decoded in chunks that begin anywhere in a byte of a mask: 20 rows or a few less here.
#[test]
fn batches_of_all_sizes_are_the_table() {
    use arrow_array::builder::{Int32Builder, ListBuilder};
    use arrow_array::types::Int16Type;
    use arrow_array::{
        BooleanArray, Date32Array, DictionaryArray, Int64Array, StringArray, StructArray,
        TimestampMillisecondArray,
    };
    let rows = 0..301i64;
    let present = |row: &i64| row % 7 != 3;
    let mut lists = ListBuilder::new(Int32Builder::new());
    for row in rows.clone() {
        lists.append_option(
            present(&row).then(|| (0..row % 4).map(|item| (item != 2).then_some(item as i32))),
        );
    }
    let texts: Vec<String> = rows.clone().map(|row| "ä".repeat(row as usize % 9)).collect();
    let texts = texts.iter().zip(rows.clone()).map(|(text, row)| present(&row).then_some(text.as_str()));
    let words: DictionaryArray<Int16Type> =
        rows.clone().map(|row| present(&row).then_some(["x", "y", "zz"][row as usize % 3])).collect();
    let numbers: ArrayRef = Arc::new(rows.clone().map(Some).collect::<Int64Array>());
    let dates = rows.clone().map(|row| present(&row).then_some((row * row) as i32));
    let times = rows.clone().map(|row| Some(row * 86_400_001 - 77));
    let bits = rows.map(|row| present(&row).then_some(row % 5 < 2));
    let texts: ArrayRef = Arc::new(texts.collect::<StringArray>());
    let field =
        |name: &str, array: &ArrayRef| arrow_schema::Field::new(name, array.data_type().clone(), true);
    let fields = vec![field("n", &numbers), field("t", &texts)];
    let parts = StructArray::new(fields.into(), vec![Arc::clone(&numbers), Arc::clone(&texts)], None);
    let whole = table(vec![
        ("numbers", numbers),
        ("texts", texts),
        ("lists", Arc::new(lists.finish())),
        ("words", Arc::new(words)),
        ("dates", Arc::new(dates.collect::<Date32Array>())),
        ("times", Arc::new(times.collect::<TimestampMillisecondArray>())),
        ("bits", Arc::new(bits.collect::<BooleanArray>())),
        ("parts", Arc::new(parts)),
    ]);
    let document = open_with(&write(&whole), &ReadOptions::default()).unwrap();
    for (batch_rows, start) in [(1, 0), (3, 0), (7, 5), (8, 8), (13, 99), (100, 1), (1000, 0)] {
        let selection = document.selection().with_batch_rows(batch_rows).with_rows(start..301);
        let found = collect(document.rows(&selection).unwrap()).unwrap();
        let start = start as usize;
        assert_eq!(found.columns(), whole.slice(start, 301 - start).columns(), "{batch_rows} {start}");
    }
}

#[test]
fn an_error_in_a_later_batch_names_its_row() {
    let bytes = (0..90).map(|row| Some(if row == 77 { &b"\xff"[..] } else { b"ok" }));
    let column: ArrayRef = Arc::new(bytes.collect::<arrow_array::BinaryArray>());
    let mut document = bson::Document::from_reader(&write(&table(vec![("c", column)]))[..]).unwrap();
    document.get_document_mut("c").unwrap().insert("t", "utf8");
    let document = open_with(&document.to_vec().unwrap(), &ReadOptions::default()).unwrap();
    let mut rows = document.rows(&document.selection().with_batch_rows(3)).unwrap();
    let error = rows.find_map(|batch| batch.err()).unwrap();
    assert_eq!(crate::Error::from(error).path(), "columns.c.d[77]");
}

#[test]
fn columns_that_are_decoded_side_by_side_tell_the_same_error() {
    const ROWS: i64 = 200_000;
    let text = |at: i64| -> ArrayRef {
        let bytes =
            (0..ROWS).map(|row| (row % 3 != 0).then_some(if row == at { &b"\xff"[..] } else { b"word" }));
        Arc::new(bytes.collect::<arrow_array::BinaryArray>())
    };
    let numbers: ArrayRef = Arc::new((0..ROWS).map(Some).collect::<arrow_array::Int64Array>());
    let whole = table(vec![("late", text(140_000)), ("n", numbers), ("early", text(100_000))]);
    let mut document = bson::Document::from_reader(&write(&whole)[..]).unwrap();
    for name in ["late", "early"] {
        document.get_document_mut(name).unwrap().insert("t", "utf8");
    }
    let bytes = document.to_vec().unwrap();
    for threads in [1, 2, 7] {
        let options = ReadOptions { control: crate::Control::new(threads), ..ReadOptions::default() };
        let document = open_with(&bytes, &options).unwrap();
        for (names, place) in
            [(&["early"][..], 100_000), (&["late", "n", "early"][..], 100_000), (&["n", "late"][..], 140_000)]
        {
            let selection = document.selection().with_columns(names).unwrap();
            let mut rows = document.rows(&selection).unwrap();
            let mut count = 0;
            let error = rows.find_map(|batch| batch.map(|batch| count += batch.num_rows()).err()).unwrap();
            let column =
                names.iter().find(|name| **name != "n" && (place == 140_000 || **name == "early")).unwrap();
            assert_eq!(
                crate::Error::from(error).path(),
                format!("columns.{column}.d[{place}]"),
                "{threads} threads"
            );
            assert_eq!(count, place / 65_536 * 65_536);
            assert!(rows.next().is_none());
        }
    }
}
