//! Conversions that read their input column by column, or a sparse matrix twice: what comes out is what comes of rows.

use std::path::Path;
use std::sync::Arc;

use arrow_array::builder::{ListBuilder, StringDictionaryBuilder};
use arrow_array::types::{Float64Type, Int8Type};
use arrow_array::{
    ArrayRef, BooleanArray, Date32Array, FixedSizeListArray, Int64Array, RecordBatch, StringArray,
    StringViewArray, TimestampMillisecondArray,
};

use super::arrow_file;
use crate::control::Control;
use crate::error::{ErrorKind, Result};
use crate::job::{Conversion, ConvertOptions, Report, open_source, target};
use crate::{Registry, Sink, Source};

const THREADS: [usize; 3] = [1, 2, 7];

/// Values of all kinds that are encoded in ways of their own, some of them missing.
fn table(rows: std::ops::Range<i64>) -> RecordBatch {
    let some = |row: i64, every: i64| row % every > 0;
    let text = |row: i64| some(row, 5).then(|| "é".repeat((row % 7) as usize));
    let mut words = StringDictionaryBuilder::<Int8Type>::new();
    let mut lists = ListBuilder::new(arrow_array::builder::Float64Builder::new());
    for row in rows.clone() {
        words.append_value(["one", "two", "three"][(row % 3) as usize]);
        (0..row % 4).for_each(|item| lists.values().append_value(item as f64));
        lists.append(some(row, 6));
    }
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("id", Arc::new(Int64Array::from_iter_values(rows.clone()))),
        ("maybe", Arc::new(rows.clone().map(|row| some(row, 3).then_some(row)).collect::<Int64Array>())),
        (
            "flag",
            Arc::new(rows.clone().map(|row| some(row, 4).then_some(row % 2 == 0)).collect::<BooleanArray>()),
        ),
        ("text", Arc::new(rows.clone().map(text).collect::<StringArray>())),
        ("view", Arc::new(rows.clone().map(text).collect::<StringViewArray>())),
        (
            "day",
            Arc::new(rows.clone().map(|row| some(row, 9).then_some(row as i32 * 3)).collect::<Date32Array>()),
        ),
        ("at", Arc::new(rows.map(|row| Some(row * 1000)).collect::<TimestampMillisecondArray>())),
        ("word", Arc::new(words.finish())),
        ("list", Arc::new(lists.finish())),
    ];
    let columns = columns.into_iter().map(|(name, column)| (name, column, true));
    RecordBatch::try_from_iter_with_nullable(columns).unwrap()
}

fn convert(bytes: &[u8], (from, to): (&str, &str), threads: usize, sink: Sink) -> Result<(Report, Control)> {
    let registry = Registry::default();
    let mut options = ConvertOptions::default();
    options.open.from = Some(from.to_owned());
    options.open.control = Control::new(threads);
    let opened = open_source(&registry, Source::from_bytes("data", bytes.to_vec()), None, &options.open)?;
    let conversion = Conversion::plan_opened(opened, target(&registry, to)?, None, &options)?;
    let report = conversion.run_into(sink)?;
    assert_eq!(options.open.budget.used(), 0);
    Ok((report, options.open.control))
}

fn into_memory(bytes: &[u8], kinds: (&str, &str)) -> Vec<u8> {
    let (sink, memory) = Sink::memory();
    convert(bytes, kinds, 1, sink).unwrap();
    memory.take()
}

fn into_file(bytes: &[u8], kinds: (&str, &str), threads: usize, path: &Path) -> Result<(Report, Control)> {
    convert(bytes, kinds, threads, Sink::create(path, true).unwrap())
}

#[test]
fn columns_that_are_read_alone_become_the_document_that_rows_become() {
    let registry = Registry::default();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.bson");
    let batches = [table(0..1000), table(1000..1001), table(1001..4000)];
    let arrow = arrow_file(&registry, &batches[0].schema(), &batches);
    let parquet = into_memory(&arrow, ("arrow", "parquet"));
    for (bytes, from) in [(&arrow, "arrow"), (&parquet, "parquet")] {
        // Memory is not patched, so that its document is made of rows.
        let expected = into_memory(bytes, (from, "bsondf"));
        for threads in THREADS {
            let (report, control) = into_file(bytes, (from, "bsondf"), threads, &path).unwrap();
            assert!(std::fs::read(&path).unwrap() == expected, "{from} with {threads} threads");
            let progress = control.progress();
            assert_eq!((report.rows, progress.rows, progress.total_rows), (4000, 4000, Some(4000)));
        }
    }
}

#[test]
fn a_damaged_column_is_the_same_error_for_any_number_of_threads() {
    let registry = Registry::default();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.bson");
    let texts: ArrayRef = Arc::new(StringArray::from_iter_values((0..3000).map(|row| format!("é{row}"))));
    let batch = RecordBatch::try_from_iter([("a", texts.clone()), ("b", texts)]).unwrap();
    let mut arrow = arrow_file(&registry, &batch.schema(), &[batch]);
    let last = arrow.windows(2).rposition(|pair| pair == "é".as_bytes()).unwrap();
    arrow[last] = 0xff;
    let errors = THREADS.map(|threads| {
        let Err(error) = into_file(&arrow, ("arrow", "bsondf"), threads, &path) else { panic!("no error") };
        assert_eq!(error.kind(), ErrorKind::Malformed);
        error.to_string()
    });
    assert!(errors[0] == errors[1] && errors[0] == errors[2], "{errors:?}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "nothing is left");
}

#[test]
fn a_sparse_matrix_that_is_read_twice_becomes_the_archive_that_spooled_rows_become() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.npz");
    let header = "%%MatrixMarket matrix coordinate real general\n";
    let many: String = (1..3000).map(|row| format!("{row} {} {row}.5\n", row % 40 + 1)).collect();
    for body in [
        "4 3 0\n".to_owned(),
        "1 1 1\n1 1 2.5\n".to_owned(),
        // Without entries in the first, a middle and the last row.
        "6 4 5\n2 1 1\n2 4 2\n3 2 0\n5 3 -1.5\n5 4 7\n".to_owned(),
        format!("5000 40 2999\n{many}"),
    ] {
        let market = format!("{header}{body}").into_bytes();
        // Text is parsed once, so that the entries are spooled.
        let expected = into_memory(&market, ("mtx", "npz"));
        for dialect in ["dbdf", "dbdf:daphne"] {
            let dbdf = into_memory(&market, ("mtx", dialect));
            for threads in THREADS {
                into_file(&dbdf, ("dbdf", "npz"), threads, &path).unwrap();
                let found = std::fs::read(&path).unwrap();
                assert!(found == expected, "{dialect} with {threads} threads: {body:.20}");
            }
        }
    }
}

#[test]
fn fixed_size_lists_go_by_column_too() {
    let registry = Registry::default();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.bson");
    let pairs = FixedSizeListArray::from_iter_primitive::<Float64Type, _, _>(
        (0..10).map(|row| (row != 4).then(|| vec![Some(f64::from(row)), None])),
        2,
    );
    let batch = RecordBatch::try_from_iter([("pair", Arc::new(pairs) as ArrayRef)]).unwrap();
    let arrow = arrow_file(&registry, &batch.schema(), &[batch]);
    into_file(&arrow, ("arrow", "bsondf"), 2, &path).unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), into_memory(&arrow, ("arrow", "bsondf")));
}

#[test]
fn a_row_count_that_nothing_confirms_is_refused_before_memory_is_taken() {
    const ROWS: i64 = 1237;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.bson");
    let batch = table(0..ROWS);
    let arrow = arrow_file(&Registry::default(), &batch.schema(), &[batch]);
    let places = arrow.windows(8).enumerate().filter(|(_, bytes)| *bytes == ROWS.to_le_bytes());
    let places: Vec<usize> = places.map(|(place, _)| place).collect();
    let mut refused = 0;
    for place in places {
        for claimed in [1 << 40, 1 << 50, i64::MAX] {
            let mut changed = arrow.clone();
            changed[place..place + 8].copy_from_slice(&claimed.to_le_bytes());
            refused += usize::from(into_file(&changed, ("arrow", "bsondf"), 2, &path).is_err());
        }
    }
    // The length of the batch and those of its columns.
    assert!(refused >= 3 * 10, "{refused}");
}

#[test]
fn memory_does_not_depend_on_the_number_of_threads() {
    let rows = 400_000;
    let column = |place: i64| -> ArrayRef { Arc::new(Int64Array::from_iter_values(place..place + rows)) };
    let names = ["a", "b", "c", "d", "e", "f", "g", "h"];
    let columns = names.into_iter().zip(0..).map(|(name, place)| (name, column(place)));
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let registry = Registry::default();
    let arrow = arrow_file(&registry, &batch.schema(), &[batch]);
    let parquet = into_memory(&arrow, ("arrow", "parquet"));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.bson");
    let run = |threads: usize, max_alloc: u64| {
        let mut options = ConvertOptions::default();
        options.open.from = Some("parquet".to_owned());
        options.open.control = Control::new(threads);
        options.open.budget = crate::Limits::default().with_max_alloc(max_alloc).budget();
        let source = Source::from_bytes("data", parquet.clone());
        let opened = open_source(&registry, source, None, &options.open)?;
        let conversion = Conversion::plan_opened(opened, target(&registry, "bsondf")?, None, &options)?;
        conversion.run_into(Sink::create(&path, true)?)?;
        Ok::<_, crate::Error>(std::fs::read(&path).unwrap())
    };
    let expected = run(1, 4 << 30).unwrap();
    // Two compressed columns, and what is being read of them, where all eight would take 13 MB.
    for threads in THREADS {
        assert!(run(threads, 10 << 20).unwrap() == expected, "{threads} threads");
    }
}
