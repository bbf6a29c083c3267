use crate::testing::asked::Asked;
use std::sync::Arc;

use arrow_array::{Array, RecordBatch};
use arrow_schema::{DataType, Field};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::MatrixMarket;
use crate::error::Result;
use crate::formats::{Document, Findings, Format, ReadOptions, WriteOptions};
use crate::hub::matrix::build::{Csr, Entries, build};
use crate::hub::{Verdict, native, shape};
use crate::testing::plain::{expectations, plain, testdata};
use crate::testing::writing::Writing as _;
use crate::{Budget, ErrorKind, Limits, Sink, Source};

fn open(text: impl Into<Vec<u8>>, options: &ReadOptions) -> Result<Arc<dyn Document>> {
    MatrixMarket.open(Source::from_bytes("test", text.into()), options)
}

fn read(text: &str) -> Result<Value> {
    plain(open(text, &ReadOptions::default())?.all_rows()?)
}

fn write(document: &dyn Document) -> Result<String> {
    let rows = document.all_rows()?;
    let (sink, memory) = Sink::memory();
    let mut writer = MatrixMarket.create(sink, rows.schema(), &WriteOptions::default())?;
    for batch in rows {
        writer.write(&batch?)?;
    }
    writer.finish()?;
    Ok(String::from_utf8(memory.take()).unwrap())
}

#[test]
fn what_scipy_and_the_spec_allow_is_read() {
    let files = expectations("mtx", "mtx");
    assert!(files.len() > 20);
    for (path, expected) in files {
        for threads in [1, 3] {
            let options = ReadOptions { control: crate::Control::new(threads), ..ReadOptions::default() };
            let document = MatrixMarket.open(Source::open(&path).unwrap(), &options).unwrap();
            let found = plain(document.all_rows().unwrap()).unwrap();
            assert_eq!(found, expected.clone().unwrap(), "{}", path.display());
            let mut findings = Findings::new(false);
            document.validate(&mut findings).unwrap();
            assert!(findings.is_valid(), "{}: {:?}", path.display(), findings.list());
        }
    }
}

#[test]
fn what_is_written_reads_back() {
    for (path, expected) in expectations("mtx", "mtx") {
        let document = open(std::fs::read(&path).unwrap(), &ReadOptions::default()).unwrap();
        let text = write(document.as_ref()).unwrap();
        assert_eq!(read(&text).unwrap(), expected.unwrap(), "{}: {text}", path.display());
    }
}

#[test]
fn the_text_is_plain() {
    let text = "%%MatrixMarket matrix coordinate pattern general\n3 3 2\n1 2\n3 1\n";
    let written = write(open(text, &ReadOptions::default()).unwrap().as_ref()).unwrap();
    let lines: Vec<&str> = written.lines().map(str::trim_end).collect();
    assert_eq!(lines, ["%%MatrixMarket matrix coordinate pattern general", "%", "3 3 2", "1 2", "3 1"]);
    let text = "%%MatrixMarket matrix array real general\n2 2\n1\n0.1\n-2.5e-300\n1e22\n";
    assert_eq!(write(open(text, &ReadOptions::default()).unwrap().as_ref()).unwrap(), text);
}

#[test]
fn row_ranges_keep_their_entries() {
    let path = testdata("mtx/scipy_symmetric.mtx");
    let document = MatrixMarket.open(Source::open(path).unwrap(), &ReadOptions::default()).unwrap();
    let request = Asked { rows: Some(1..2), ..Asked::default() };
    let found = plain(document.ask(&request).unwrap()).unwrap();
    assert_eq!(found, json!({ "rows": 1, "cols": 3, "entries": [[0, 0, -1.0], [0, 1, 2.0], [0, 2, 0.5]] }));
}

#[test]
fn a_file_past_the_budget_is_parsed_once_and_read_in_bands() {
    let (rows, entries) = (500, 20_000);
    // All batches are kept in memory: those of a symmetric matrix have twice the entries.
    for (symmetry, field, max_alloc) in [("general", "integer", 600_000), ("symmetric", "real", 1_000_000)] {
        let mut text =
            format!("%%MatrixMarket matrix coordinate {field} {symmetry}\n{rows} {rows} {entries}\n");
        for index in 0..entries {
            text.push_str(&format!("{} {} {index}\n", index * 7 % rows + 1, index / rows % 97 + 1));
        }
        let whole = read(&text).unwrap();
        let len = text.len() as u64;
        let limits = Limits { max_alloc, ..Limits::default() };
        let options = ReadOptions { budget: limits.budget(), ..ReadOptions::default() };
        let source = Source::from_bytes("test", text.into_bytes());
        let document = MatrixMarket.open(source.clone(), &options).unwrap();
        let opening = source.bytes_read();
        assert_eq!(plain(document.all_rows().unwrap()).unwrap(), whole, "{symmetry} {field}");
        assert!(source.bytes_read() - opening <= len, "{symmetry} {field}: parsed more than once");
    }
}

#[test]
fn pieces_meet_at_line_ends() {
    // Several pieces, with lines of many lengths across their boundaries.
    let entries = 400_000u64;
    let mut text = format!("%%MatrixMarket matrix coordinate integer general\n1000 1000 {entries}\n");
    for index in 0..entries {
        let blanks = " ".repeat(1 + index as usize % 9);
        text.push_str(&format!("{}{blanks}{}{blanks}{index}\n", index % 1000 + 1, index / 1000 + 1));
    }
    for threads in [1, 4] {
        let document = open(
            text.clone(),
            &ReadOptions { control: crate::Control::new(threads), ..ReadOptions::default() },
        )
        .unwrap();
        let mut sum = 0i64;
        for batch in document.all_rows().unwrap() {
            let batch = batch.unwrap();
            let list = arrow_array::cast::as_large_list_array(batch.column(0)).clone();
            let range = list.value_offsets()[0] as usize..list.value_offsets()[list.len()] as usize;
            let values = arrow_array::cast::as_struct_array(list.values()).column(1).clone();
            let values = values.as_any().downcast_ref::<arrow_array::Int64Array>().unwrap();
            sum += values.values()[range].iter().sum::<i64>();
        }
        assert_eq!(sum as u64, entries * (entries - 1) / 2);
    }
}

#[test]
fn bad_files_say_what_and_where() {
    let coordinate = |body: &str| format!("%%MatrixMarket matrix coordinate real general\n{body}");
    for (text, error) in [
        (String::new(), "at byte 0, banner: expected %%MatrixMarket, found no bytes"),
        (
            "hello\n".to_owned(),
            "at byte 0, banner: expected the banner, object, format, field and symmetry, found no banner",
        ),
        (
            "%%MatrixMarket matrix coordinate real\n".to_owned(),
            "at byte 0, banner: expected the banner, object, format, field and symmetry, found 4 words",
        ),
        (
            "%%MatrixMarket matrix coordinate real odd\n".to_owned(),
            "at byte 0, banner.symmetry: expected general, symmetric, skew-symmetric, hermitian, found \"odd\"",
        ),
        (
            "%%MatrixMarket matrix array pattern general\n1 1\n".to_owned(),
            "at byte 0, banner: expected a field with values for an array, found pattern",
        ),
        (coordinate("%\n"), "at byte 48, size: expected a size line, found the end of the file"),
        (coordinate("2 2\n"), "at byte 46, size: expected rows, columns and entries, found \"2 2\""),
        (
            coordinate("2 2 1 1\n1 1 1\n"),
            "at byte 46, size: expected rows, columns and entries, found \"2 2 1 1\"",
        ),
        (
            coordinate("2 2 1000000000000000000\n1 1 1\n"),
            "at byte 70, entries: expected 1000000000000000000 entries of at least 6 bytes, found 6 bytes",
        ),
        (coordinate("2 2 1\n3 1 1.5\n"), "at byte 52, row: expected a row in 1..=2, found \"3\""),
        (coordinate("2 2 1\n0 1 1.5\n"), "at byte 52, row: expected a row in 1..=2, found \"0\""),
        (coordinate("2 2 1\n1 x 1.5\n"), "at byte 54, column: expected a column in 1..=2, found \"x\""),
        (coordinate("2 2 1\n1 1 1,5\n"), "at byte 56, value: expected a real number, found \"1,5\""),
        (
            coordinate("2 2 1\n1 1    \n"),
            "at byte 59, value: expected a real number, found the end of the line",
        ),
        (coordinate("2 2 1\n1 1 1 5\n"), "at byte 58, entry: expected the end of the line, found \"5\""),
        (coordinate("2 2 2\n1 1 1.000000\n"), "at byte 65, entries: expected 2 entries, found 1"),
        (coordinate("2 2 1\n1 1 1\n1 2 1\n"), "at byte 46, entries: expected 1 entries, found 2"),
        (
            "%%MatrixMarket matrix coordinate integer general\n1 1 1\n1 1 9223372036854775808\n".to_owned(),
            "at byte 59, value: expected a whole number of 64 bits (the option integers=uint64 reads them without a sign), found \"9223372036854775808\"",
        ),
        (
            "%%MatrixMarket matrix coordinate integer skew-symmetric\n2 2 1\n1 1 1\n".to_owned(),
            "at byte 62, entry: expected no entry on the diagonal of a skew-symmetric matrix, found one",
        ),
        (
            "%%MatrixMarket matrix array real symmetric\n2 3\n".to_owned(),
            "at byte 43, size: expected a square matrix, as symmetric is, found 2 x 3",
        ),
    ] {
        let found = read(&text).unwrap_err();
        assert_eq!(found.to_string(), format!("mtx: {error}"), "{text}");
        assert!(matches!(found.kind(), ErrorKind::Malformed | ErrorKind::Truncated), "{text}");
    }
}

#[test]
fn unsigned_numbers_are_read_on_request() {
    let text = "%%MatrixMarket matrix coordinate integer general\n1 1 1\n1 1 18446744073709551615\n";
    let mut options = ReadOptions::default();
    options.options.set("integers", "uint64");
    let found = plain(open(text, &options).unwrap().all_rows().unwrap()).unwrap();
    assert_eq!(found["entries"], json!([[0, 0, u64::MAX]]));
}

#[test]
fn rows_on_trust_are_a_limit() {
    let text = "%%MatrixMarket matrix coordinate real general\n1000000000000000000 1 0\n";
    assert_eq!(read(text).unwrap_err().kind(), ErrorKind::Limit);
}

#[test]
fn validate_finds_everything_and_goes_on() {
    let text = "%%MatrixMarket matrix coordinate real general\n2 2 5\n9 1 1\n1 1 x\n1 1 2 3\n2 2 1\n2 2 1\n";
    let mut findings = Findings::new(false);
    open(text, &ReadOptions::default()).unwrap().validate(&mut findings).unwrap();
    let rules: Vec<&str> = findings.list().iter().map(|finding| finding.rule.as_str()).collect();
    assert_eq!(rules, ["row", "value", "line-end", "repeat"]);
    assert!(!findings.is_valid());
}

#[test]
fn a_pattern_that_is_none_is_refused_by_row() {
    let text = "%%MatrixMarket matrix coordinate pattern general\n2 2 2\n2 2\n2 2\n";
    let document = open(text, &ReadOptions::default()).unwrap();
    assert_eq!(
        MatrixMarket.steps(&document.summary().schema, &WriteOptions::default()).verdict(),
        Verdict::Checked
    );
    let error = write(document.as_ref()).unwrap_err();
    assert_eq!(
        (error.kind(), error.to_string().as_str()),
        (ErrorKind::Lossy, "row 1, column \"row\": an entry of a pattern is 1")
    );
    let plain = native::without(&document.summary().schema);
    assert_eq!(MatrixMarket.steps(&plain, &WriteOptions::default()).verdict(), Verdict::Widened);
}

#[test]
fn what_is_no_matrix_of_numbers_is_refused_by_the_plan() {
    let array = shape::array_schema(Field::new("item", DataType::Float64, false));
    let texts = shape::dense_schema(DataType::Utf8, None, 3).unwrap();
    for schema in [array, texts] {
        assert_eq!(MatrixMarket.steps(&schema, &WriteOptions::default()).verdict(), Verdict::Impossible);
    }
}

fn exhaust(bytes: Vec<u8>) -> Result<()> {
    let limits = Limits { max_alloc: 16 << 20, max_free_rows: 1 << 16, ..Limits::default() };
    let document = open(
        bytes,
        &ReadOptions { budget: limits.budget(), control: crate::Control::new(1), ..ReadOptions::default() },
    )?;
    let checked = document.validate(&mut Findings::new(false));
    for part in document.outline().parts.iter().flat_map(|parts| parts.nodes(0).collect::<Vec<_>>()).flatten()
    {
        part.parts.iter().for_each(|parts| parts.nodes(0).take(9).for_each(drop));
    }
    for batch in document.all_rows()? {
        batch?;
    }
    checked
}

#[test]
fn truncations_and_flipped_bits_never_panic() {
    for name in ["odd", "scipy_hermitian_array", "scipy_complex", "pattern_symmetric", "scipy_skew_array"] {
        let bytes = std::fs::read(testdata(&format!("mtx/{name}.mtx"))).unwrap();
        for len in 0..bytes.len() {
            // Text truncated inside its last number may still be valid.
            let _ = exhaust(bytes[..len].to_vec());
        }
        let last_line = bytes[..bytes.len() - 1].iter().rposition(|byte| *byte == b'\n').unwrap();
        for len in 0..last_line {
            assert!(exhaust(bytes[..len].to_vec()).is_err(), "{name} {len}");
        }
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            let _ = exhaust(flipped);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn sparse_matrices_come_back(entries in prop::collection::btree_map((0u32..9, 0u32..7), any::<f64>(), 0..40)) {
        let mut list = Entries::<u32, f64>::default();
        entries.iter().for_each(|((row, col), value)| list.push(*row, *col, *value));
        let csr: Csr<u32, f64> = build(&[list], 0, 9, &Budget::default()).unwrap();
        let schema = Arc::new(shape::sparse_schema(DataType::Float64, Some(9), 7));
        let batches: Vec<RecordBatch> = csr.batches(schema.clone(), 4).unwrap().map(Result::unwrap).collect();
        let (sink, memory) = Sink::memory();
        let mut writer = MatrixMarket.create(sink, schema.clone(), &WriteOptions::default()).unwrap();
        batches.iter().for_each(|batch| writer.write(batch).unwrap());
        writer.finish().unwrap();
        let document = open(memory.take(), &ReadOptions::default()).unwrap();
        let found = plain(document.all_rows().unwrap()).unwrap();
        let expected = plain(crate::hub::rows::from_batches(schema, batches.into_iter().map(Ok))).unwrap();
        prop_assert_eq!(found, expected);
    }
}
