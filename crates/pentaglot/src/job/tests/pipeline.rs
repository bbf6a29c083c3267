//! The stages of a conversion overlap: what comes out is the same for any number of threads, and a fault in any stage ends
//! all of them.

use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray, TimestampMicrosecondArray};

use super::{TABLES, arrow_file};
use crate::control::Control;
use crate::error::{Error, Result};
use crate::hub::LossKinds;
use crate::job::{Conversion, ConvertOptions, open_source, target};
use crate::sink::Output;
use crate::{Registry, Sink, Source};

const THREADS: [usize; 3] = [1, 2, 7];
const ROWS: i64 = 25_000;

/// Rows that make several pieces of text: some values are missing, some texts are quoted and go over lines.
fn table(rows: std::ops::Range<i64>) -> RecordBatch {
    let text = |row: i64| match row % 50 {
        0 => format!("two\nlines, \"{row}\""),
        1 => String::new(),
        _ => format!("{} {row}", "a longer text that makes pieces ".repeat(2)),
    };
    let columns: [(&str, ArrayRef); 4] = [
        (
            "number",
            Arc::new(rows.clone().map(|row| (row % 9 > 0).then_some(row * 3)).collect::<Int64Array>()),
        ),
        ("measure", Arc::new(rows.clone().map(|row| Some(row as f64 / 7.0)).collect::<Float64Array>())),
        ("text", Arc::new(rows.clone().map(|row| Some(text(row))).collect::<StringArray>())),
        ("at", Arc::new(rows.map(|row| Some(row * 1_000_003)).collect::<TimestampMicrosecondArray>())),
    ];
    RecordBatch::try_from_iter_with_nullable(columns.map(|(name, column)| (name, column, true))).unwrap()
}

/// A matrix as a table of numbers.
fn numbers() -> RecordBatch {
    let column = |add: i64| -> ArrayRef {
        Arc::new((0..ROWS).map(|row| Some(row % 11 + add)).collect::<Int64Array>())
    };
    RecordBatch::try_from_iter([("a", column(0)), ("b", column(5))]).unwrap()
}

fn convert(options: &ConvertOptions, bytes: &[u8], from: &str, to: &str, sink: Sink) -> Result<()> {
    let registry = Registry::default();
    let mut options = options.clone();
    options.open.from = Some(from.to_owned());
    options.allow_lossy = LossKinds::ALL;
    let source = Source::from_bytes("data", bytes.to_vec());
    let opened = open_source(&registry, source, None, &options.open)?;
    let conversion = Conversion::plan_opened(opened, target(&registry, to)?, None, &options)?;
    conversion.run_into(sink).map(drop)
}

/// The output, which is the same for any number of threads.
fn converted(bytes: &[u8], from: &str, to: &str) -> Vec<u8> {
    let outputs = THREADS.map(|threads| {
        let mut options = ConvertOptions::default();
        options.open.control = Control::new(threads);
        let (sink, memory) = Sink::memory();
        convert(&options, bytes, from, to, sink).unwrap_or_else(|error| panic!("{from} to {to}: {error}"));
        assert_eq!(options.open.budget.used(), 0, "{from} to {to} with {threads} threads");
        memory.take()
    });
    let [one, two, seven] = outputs;
    assert!(one == two && one == seven, "{from} to {to}: the output depends on threads");
    one
}

#[test]
fn outputs_do_not_depend_on_the_number_of_threads() {
    let registry = Registry::default();
    let (half, end) = (table(0..ROWS / 2), table(ROWS / 2..ROWS));
    let arrow = arrow_file(&registry, &half.schema(), &[half, end]);
    for to in TABLES.into_iter().filter(|to| *to != "dbdf") {
        let bytes = converted(&arrow, "arrow", to);
        let from = to.split(':').next().unwrap();
        let back = converted(&bytes, from, "arrow");
        assert!(!back.is_empty());
        if matches!(from, "csv" | "jsonl" | "json") {
            assert!(bytes.len() > 2 << 20, "{from}: {} bytes are not several pieces", bytes.len());
        }
    }
    let numbers = numbers();
    let arrow = arrow_file(&registry, &numbers.schema(), &[numbers]);
    for to in ["dbdf", "dbdf:daphne", "npy", "npz", "mtx"] {
        let bytes = converted(&arrow, "arrow", to);
        converted(&bytes, to.split(':').next().unwrap(), "parquet");
    }
    let one = arrow_file(
        &registry,
        &table(0..1).project(&[0]).unwrap().schema(),
        &[table(2..9).project(&[0]).unwrap()],
    );
    converted(&one, "arrow", "sds");
}

/// An output that takes only so many bytes.
struct Small(usize);

impl Output for Small {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.0 = self.0.checked_sub(bytes.len()).ok_or_else(|| std::io::Error::other("no room"))?;
        Ok(())
    }

    fn can_patch(&self) -> bool {
        true
    }

    fn patch(&mut self, _: u64, _: &[u8]) -> std::io::Result<()> {
        Ok(())
    }

    fn sibling(&mut self, _: &str) -> std::io::Result<Option<Box<dyn Output>>> {
        Ok(None)
    }

    fn commit(self: Box<Self>) -> std::io::Result<()> {
        panic!("a run that failed is not committed")
    }
}

/// The error of a run, which is the same for any number of threads; nothing is left in memory.
fn fault(
    bytes: &[u8],
    from: &str,
    to: &str,
    change: impl Fn(&mut ConvertOptions),
    sink: impl Fn() -> Sink,
) -> Error {
    let errors = THREADS.map(|threads| {
        let mut options = ConvertOptions::default();
        options.open.control = Control::new(threads);
        change(&mut options);
        let error = convert(&options, bytes, from, to, sink()).unwrap_err();
        assert_eq!(options.open.budget.used(), 0, "{from} to {to} with {threads} threads");
        error
    });
    let [one, two, seven] = errors;
    assert_eq!(one.to_string(), two.to_string());
    assert_eq!(one.to_string(), seven.to_string());
    one
}

#[test]
fn a_fault_in_any_stage_ends_all_with_the_first_error_and_leaves_nothing() {
    let registry = Registry::default();
    let rows = table(0..ROWS);
    let arrow = arrow_file(&registry, &rows.schema(), &[rows]);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out");
    let file = || Sink::create(&path, false).unwrap();
    let unchanged = |_: &mut ConvertOptions| ();
    // Reading: the last record of the second piece and of the last one.
    for text in ["csv", "jsonl", "json"] {
        let bytes = converted(&arrow, "arrow", text);
        for cut in [bytes.len() * 2 / 3, bytes.len() - 20] {
            let mut broken = bytes[..cut].to_vec();
            broken.extend_from_slice(b"\nno record,{\"a\"\n");
            let error = fault(&broken, text, "parquet", unchanged, file);
            assert!(error.line_number().is_some_and(|line| line > 10_000), "{error}");
        }
    }
    let parquet = converted(&arrow, "arrow", "parquet");
    // The header of the first page.
    let mut broken = parquet.clone();
    broken[4..40].fill(0x5a);
    fault(&broken, "parquet", "csv", unchanged, file);
    // Reshaping: numbers past the type that is asked for.
    let narrow = |options: &mut ConvertOptions| {
        options.as_type =
            Some("struct{number: ?int16, measure: ?float64, text: ?utf8, at: ?timestamp[us]}".to_owned());
    };
    let mut errors = THREADS.map(|threads| {
        let mut options = ConvertOptions::default();
        narrow(&mut options);
        options.open.from = Some("arrow".to_owned());
        options.open.control = Control::new(threads);
        let source = Source::from_bytes("data", arrow.clone());
        let opened = open_source(&registry, source, None, &options.open).unwrap();
        let target = target(&registry, "csv").unwrap();
        let conversion = Conversion::plan_opened(opened, target, None, &options).unwrap();
        conversion.run_into(file()).unwrap_err().to_string()
    });
    assert!(errors[0].contains("number"), "{}", errors[0]);
    errors.sort_unstable();
    assert_eq!(errors[0], errors[2]);
    // Writing: an output without room.
    for to in TABLES.into_iter().filter(|to| *to != "dbdf") {
        for room in [0, 100_000] {
            let error = fault(&arrow, "arrow", to, unchanged, || Sink::from_output(Box::new(Small(room))));
            assert!(error.to_string().contains("no room"), "{to}: {error}");
        }
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "nothing is left");
}
