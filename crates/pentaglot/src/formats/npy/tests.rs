use crate::testing::asked::Asked;
use std::sync::Arc;

use arrow_array::builder::{Int64Builder, StringBuilder};
use arrow_array::{Array, ArrayRef, Float64Array, Int32Array, RecordBatch, TimestampSecondArray};
use arrow_schema::{DataType, Field, Schema};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::Npy;
use crate::error::Result;
use crate::formats::npz::Npz;
use crate::formats::{Document, Findings, Format, ReadOptions, WriteOptions};
use crate::hub::{Verdict, native, shape};
use crate::testing::plain::{expectations, plain, testdata};
use crate::testing::writing::Writing as _;
use crate::{ErrorKind, Limits, Sink, Source};

fn format_of(path: &std::path::Path) -> &'static dyn Format {
    if path.extension().is_some_and(|end| end == "npz") { &Npz } else { &Npy }
}

pub(in crate::formats) fn open(format: &dyn Format, bytes: Vec<u8>) -> Result<Arc<dyn Document>> {
    format.open(Source::from_bytes("test", bytes), &ReadOptions::default())
}

fn write(format: &dyn Format, document: &dyn Document, options: &WriteOptions) -> Result<Vec<u8>> {
    let rows = document.all_rows()?;
    let schema = rows.schema();
    format.steps(&schema, options).check(crate::hub::LossKinds::NONE)?;
    let (sink, memory) = Sink::memory();
    let mut writer = format.create(sink, schema, options)?;
    for batch in rows {
        writer.write(&batch?)?;
    }
    writer.finish()?;
    Ok(memory.take())
}

fn write_batches(format: &dyn Format, schema: &Schema, batches: &[RecordBatch]) -> Result<Vec<u8>> {
    let (sink, memory) = Sink::memory();
    let mut writer = format.create(sink, Arc::new(schema.clone()), &WriteOptions::default())?;
    for batch in batches {
        writer.write(batch)?;
    }
    writer.finish()?;
    Ok(memory.take())
}

pub(in crate::formats) fn all(document: &dyn Document) -> Result<Value> {
    plain(document.all_rows()?)
}

#[test]
fn what_numpy_and_scipy_wrote_is_read() {
    let mut seen = 0;
    for (path, expected) in expectations("npy", "npy").into_iter().chain(expectations("npz", "npz")) {
        let Some(expected) = expected else { continue };
        let format = format_of(&path);
        let document = format.open(Source::open(&path).unwrap(), &ReadOptions::default()).unwrap();
        assert_eq!(all(document.as_ref()).unwrap(), expected, "{}", path.display());
        let mut findings = Findings::new(false);
        document.validate(&mut findings).unwrap();
        assert!(findings.is_valid(), "{}: {:?}", path.display(), findings.list());
        seen += 1;
    }
    assert!(seen > 80, "{seen}");
}

#[test]
fn streams_are_read_like_files() {
    for (path, expected) in expectations("npy", "npy").into_iter().chain(expectations("npz", "npz")) {
        let Some(expected) = expected else { continue };
        let source = Source::from_reader("pipe", std::fs::File::open(&path).unwrap());
        let document = format_of(&path).open(source, &ReadOptions::default()).unwrap();
        assert_eq!(all(document.as_ref()).unwrap(), expected, "{}", path.display());
    }
}

#[test]
fn arrays_come_back_byte_for_byte() {
    for (path, _) in expectations("npy", "npy") {
        let bytes = std::fs::read(&path).unwrap();
        let name = path.file_stem().unwrap().to_str().unwrap();
        let document = open(&Npy, bytes.clone()).unwrap();
        let again = write(&Npy, document.as_ref(), &WriteOptions::default()).unwrap();
        if name.starts_with("big_") || name == "titled" {
            // Big-endian values are read, but not written.
            let twin = open(&Npy, again).unwrap();
            assert_eq!(all(twin.as_ref()).unwrap(), all(document.as_ref()).unwrap(), "{name}");
        } else {
            assert!(again == bytes, "{name}: {} and {}", again.escape_ascii(), bytes.escape_ascii());
        }
    }
}

#[test]
fn without_the_native_type_numpys_bytes_are_still_met() {
    for (path, _) in expectations("npy", "npy") {
        let name = path.file_stem().unwrap().to_str().unwrap();
        if !(name.starts_with("c_")
            || ["one", "value", "empty", "no_rows", "no_cols", "tensor_c", "text"].contains(&name))
        {
            continue;
        }
        let bytes = std::fs::read(&path).unwrap();
        let document = open(&Npy, bytes.clone()).unwrap();
        let rows: Vec<RecordBatch> = document.all_rows().unwrap().map(Result::unwrap).collect();
        let schema = native::without(&document.summary().schema);
        let mut metadata = schema.metadata().clone();
        metadata.remove(shape::ROWS_KEY);
        let schema = schema.as_ref().clone().with_metadata(metadata);
        let again = write_batches(&Npy, &schema, &rows).unwrap();
        assert!(again == bytes, "{name}: {} and {}", again.escape_ascii(), bytes.escape_ascii());
    }
}

#[test]
fn row_ranges_and_batches_cut_the_same_rows() {
    for (path, expected) in expectations("npy", "npy").into_iter().chain(expectations("npz", "npz")) {
        let Some(Value::Array(expected)) = expected else { continue };
        let document = format_of(&path).open(Source::open(&path).unwrap(), &ReadOptions::default()).unwrap();
        for range in [0..1, 1..3, 2..100, 5..5] {
            let request = Asked { rows: Some(range.clone()), batch_rows: 1, ..Asked::default() };
            let (start, end) =
                ((range.start as usize).min(expected.len()), (range.end as usize).min(expected.len()));
            let cut = expected.get(start..end).unwrap_or_default();
            assert_eq!(
                plain(document.ask(&request).unwrap()).unwrap(),
                json!(cut),
                "{} {range:?}",
                path.display()
            );
        }
    }
}

#[test]
fn sparse_row_ranges_keep_their_entries() {
    for name in ["csr", "csc", "coo", "bsr", "csr_packed"] {
        let path = testdata(&format!("npz/{name}.npz"));
        let document = Npz.open(Source::open(path).unwrap(), &ReadOptions::default()).unwrap();
        let request = Asked { rows: Some(2..4), batch_rows: 1, ..Asked::default() };
        let found = plain(document.ask(&request).unwrap()).unwrap();
        let plain_entries = found["entries"].as_array().unwrap();
        let values: Vec<_> = plain_entries.iter().filter(|entry| entry[2] != json!(0.0)).cloned().collect();
        assert_eq!(json!(values), json!([[0, 0, -2.0], [0, 3, 4.0], [1, 2, 0.25]]), "{name}");
    }
}

#[test]
fn a_row_range_of_a_big_file_reads_only_that() {
    let file = testdata("npy/c_f8.npy");
    let source = Source::open(file).unwrap();
    let document = Npy.open(source.clone(), &ReadOptions::default()).unwrap();
    let before = source.bytes_read();
    let request = Asked { rows: Some(1..2), ..Asked::default() };
    document.ask(&request).unwrap().for_each(|batch| drop(batch.unwrap()));
    assert_eq!(source.bytes_read() - before, 4 * 8);
}

#[test]
fn members_are_named_or_listed() {
    let source = || Source::open(testdata("npz/several.npz")).unwrap();
    let whole = Npz.open(source(), &ReadOptions::default()).unwrap();
    assert!(whole.summary().is_container());
    let error = whole.all_rows().err().unwrap();
    assert_eq!(error.message(), "several members and none named: FILE::MEMBER with one of a, b");
    assert_eq!(error.kind(), ErrorKind::Usage);
    for (member, expected) in [("a", json!([0, 1, 2])), ("b.npy", json!([[1.0, 1.0], [1.0, 1.0]]))] {
        let options = ReadOptions { member: Some(member.to_owned()), ..ReadOptions::default() };
        let document = Npz.open(source(), &options).unwrap();
        assert_eq!(document.summary().members, ["a", "b"]);
        assert_eq!(all(document.as_ref()).unwrap(), expected);
    }
    let options = ReadOptions { member: Some("c".to_owned()), ..ReadOptions::default() };
    let error = Npz.open(source(), &options).err().unwrap();
    assert_eq!(error.to_string(), "npz: there is no member \"c\"; the members are a, b");
}

#[test]
fn archives_come_back_equal_stored_and_deflated() {
    for (path, expected) in expectations("npz", "npz") {
        let Some(expected) = expected else { continue };
        for compressed in ["false", "true"] {
            let mut options = WriteOptions::default();
            options.options.set("compressed", compressed);
            let document = open(&Npz, std::fs::read(&path).unwrap()).unwrap();
            let again = open(&Npz, write(&Npz, document.as_ref(), &options).unwrap()).unwrap();
            let mut findings = Findings::new(true);
            again.validate(&mut findings).unwrap();
            assert!(findings.is_valid(), "{:?}", findings.list());
            assert_eq!(all(again.as_ref()).unwrap(), expected, "{} {compressed}", path.display());
        }
    }
}

#[test]
fn a_table_becomes_an_archive_of_columns() {
    let schema =
        Schema::new(vec![Field::new("x", DataType::Int32, false), Field::new("name", DataType::Utf8, true)]);
    let columns: Vec<ArrayRef> = vec![
        Arc::new(Int32Array::from(vec![1, 2])),
        Arc::new(arrow_array::StringArray::from(vec![Some("a"), Some("bcd")])),
    ];
    let batch = RecordBatch::try_new(Arc::new(schema.clone()), columns).unwrap();
    assert_eq!(Npz.steps(&schema, &WriteOptions::default()).verdict(), Verdict::Checked);
    let bytes = write_batches(&Npz, &schema, &[batch.clone(), batch]).unwrap();
    for (member, expected) in [("x", json!([1, 2, 1, 2])), ("name", json!(["a", "bcd", "a", "bcd"]))] {
        let options = ReadOptions { member: Some(member.to_owned()), ..ReadOptions::default() };
        let document = Npz.open(Source::from_bytes("t", bytes.clone()), &options).unwrap();
        assert_eq!(all(document.as_ref()).unwrap(), expected);
    }
}

#[test]
fn values_that_do_not_fit_name_their_row_and_column() {
    let mut numbers = Int64Builder::new();
    numbers.append_value(1);
    numbers.append_null();
    let mut texts = StringBuilder::new();
    texts.append_value("a");
    texts.append_value("b\0");
    let lowest = TimestampSecondArray::from(vec![0, i64::MIN]);
    for (column, why) in [
        (Arc::new(numbers.finish()) as ArrayRef, "NumPy has no null"),
        (Arc::new(texts.finish()) as ArrayRef, "a text that ends in NUL cannot be told from padding"),
        (Arc::new(lowest) as ArrayRef, "-9223372036854775808 does not fit <M8[s]"),
    ] {
        let field = Field::new("item", column.data_type().clone(), true);
        let schema = shape::array_schema(field);
        let batch = RecordBatch::try_new(Arc::new(schema.clone()), vec![column]).unwrap();
        assert_eq!(Npy.steps(&schema, &WriteOptions::default()).verdict(), Verdict::Checked);
        let error = write_batches(&Npy, &schema, &[batch]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Lossy);
        assert_eq!(error.to_string(), format!("row 1, column \"item\": {why}"));
    }
}

#[test]
fn what_numpy_cannot_hold_is_refused_by_the_plan() {
    let list = DataType::new_list(DataType::Int8, false);
    for kind in [list, DataType::Null, DataType::Decimal128(5, 2)] {
        let schema = shape::array_schema(Field::new("item", kind, false));
        assert_eq!(Npy.steps(&schema, &WriteOptions::default()).verdict(), Verdict::Impossible);
    }
    let zoned = DataType::Timestamp(arrow_schema::TimeUnit::Second, Some("UTC".into()));
    let schema = shape::array_schema(Field::new("item", zoned, false));
    assert_eq!(Npy.steps(&schema, &WriteOptions::default()).verdict(), Verdict::Lossy);
    assert_eq!(Npy.steps(&Schema::empty(), &WriteOptions::default()).verdict(), Verdict::Impossible);
}

pub(in crate::formats) fn npy_with(header: &str, data: &[u8]) -> Vec<u8> {
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend(u16::try_from(header.len()).unwrap().to_le_bytes());
    bytes.extend(header.as_bytes());
    bytes.extend(data);
    bytes
}

#[test]
fn bad_headers_say_what_and_where() {
    let header = |descr: &str, shape: &str| {
        format!("{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}\n")
    };
    for (bytes, text) in [
        (
            b"\x93NUMPZ\x01\x00\x00\x00".to_vec(),
            "at byte 0, magic: expected the bytes \\x93NUMPY, found \\x93NUMPZ",
        ),
        (
            b"\x93NUMPY\x04\x00\x00\x00".to_vec(),
            "at byte 6, version: not supported: version 4.0 (1.0, 2.0 and 3.0 are read)",
        ),
        (b"\x93NUM".to_vec(), "at byte 0, magic: expected 8 bytes, found 4"),
        (
            b"\x93NUMPY\x02\x00\xff\xff\xff\xff{".to_vec(),
            "at byte 12, header: expected 4294967295 bytes, found 1",
        ),
        (npy_with("[1]", b""), "at byte 10, header: expected a dictionary, found [1]"),
        (
            npy_with("{'a': 1}", b""),
            "at byte 10, header: expected the keys descr, fortran_order and shape, found 'a'",
        ),
        (
            npy_with("{'descr': '<f8'}", b""),
            "at byte 10, header: expected the key \"fortran_order\", found none",
        ),
        (
            npy_with(&header("'<f3'", "(1,)"), b""),
            "at byte 10, header.descr: not supported: dtype \"<f3\": Arrow has no float of that size",
        ),
        (
            npy_with(&header("'<q8'", "(1,)"), b""),
            "at byte 10, header.descr: expected a dtype such as '<f8', found \"<q8\"",
        ),
        (
            npy_with(&header("'|O'", "(1,)"), b""),
            "at byte 10, header.descr: not supported: dtype object ('|O'): its elements are Python pickles, which are programs",
        ),
        (
            npy_with(&header("'<f8'", "(-1,)"), b""),
            "at byte 10, header.shape[0]: expected a dimension 0..=2^63-1, found -1",
        ),
        (npy_with(&header("'<f8'", "(2"), b""), "at byte 64, header: expected a Python value, found '}'"),
        (
            npy_with(&header("'<f8'", "(2000000000000000000,)"), b"12345678"),
            "at byte 0, shape: expected a shape whose bytes are below 2^63, found [2000000000000000000]",
        ),
        (
            npy_with(&header("'<f8'", "(100000000000000000,)"), b"12345678"),
            "at byte 85, data: expected 800000000000000000 bytes of values, found 8",
        ),
        (npy_with(&header("'|u1'", "(1,)"), b"12"), "at byte 69: expected the end, found 1 more bytes"),
        (
            npy_with(&header("[('x', '<i4'), ('x', '<i4')]", "(0,)"), b""),
            "at byte 10, header.descr: expected distinct field names, found \"x\" twice",
        ),
    ] {
        let error = open(&Npy, bytes.clone()).err().unwrap();
        assert_eq!(error.to_string(), format!("npy: {text}"), "{}", bytes.escape_ascii());
    }
}

#[test]
fn bad_values_say_what_and_where() {
    let header = |descr: &str| format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': (2,), }}\n");
    for (descr, data, text) in [
        ("|b1", &[1u8, 2][..], "at byte 69, data: expected a bool, 0 or 1, found 2"),
        (
            "<U1",
            &[65, 0, 0, 0, 0, 0xd8, 0, 0],
            "at byte 72, data: expected Unicode code points, found 0xd800",
        ),
        (
            "<M8[D]",
            &[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0],
            "at byte 79, data: not supported: 4294967296 D do not fit a 32-bit date",
        ),
    ] {
        let document = open(&Npy, npy_with(&header(descr), data)).unwrap();
        let error = all(document.as_ref()).unwrap_err();
        assert_eq!(error.to_string(), format!("npy: {text}"));
        let mut findings = Findings::new(false);
        match document.validate(&mut findings) {
            Ok(()) => {
                let here = findings.list().iter().filter(|finding| finding.offset == error.offset());
                assert_eq!((here.count(), findings.is_valid()), (1, false));
            }
            // The file is valid.
            Err(same) => assert_eq!((same.kind(), same.offset()), (ErrorKind::Unsupported, error.offset())),
        }
    }
}

#[test]
fn rows_that_cost_nothing_are_limited() {
    let header = "{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000000000, 0), }\n";
    let document = open(&Npy, npy_with(header, b"")).unwrap();
    assert_eq!(document.all_rows().err().unwrap().kind(), ErrorKind::Limit);
    let mut findings = Findings::new(false);
    document.validate(&mut findings).unwrap();
    let header = "{'descr': '|V0', 'fortran_order': False, 'shape': (1000, 100000000000), }\n";
    assert!(open(&Npy, npy_with(header, b"")).is_err());
}

#[test]
fn fortran_order_stays_within_a_small_budget() {
    let (rows, cols) = (3000u32, 70u32);
    let header = format!("{{'descr': '<u4', 'fortran_order': True, 'shape': ({rows}, {cols}), }}\n");
    let values: Vec<u8> = (0..cols)
        .flat_map(|col| (0..rows).map(move |row| row * cols + col))
        .flat_map(u32::to_le_bytes)
        .collect();
    let limits = Limits { max_alloc: 1 << 19, ..Limits::default() };
    let options = ReadOptions { budget: limits.budget(), ..ReadOptions::default() };
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), npy_with(&header, &values)).unwrap();
    let document = Npy.open(Source::open(file.path()).unwrap(), &options).unwrap();
    let mut next = 0;
    for batch in document.all_rows().unwrap() {
        let list =
            arrow_array::cast::as_fixed_size_list_array(batch.as_ref().unwrap().column(0)).values().clone();
        for value in list.as_any().downcast_ref::<arrow_array::UInt32Array>().unwrap().values() {
            assert_eq!(*value, next);
            next += 1;
        }
    }
    assert_eq!(next, rows * cols);
}

/// Opens and reads any bytes to the end; this must not panic or allocate much.
fn exhaust(format: &dyn Format, bytes: Vec<u8>) -> Result<()> {
    let limits = Limits { max_alloc: 16 << 20, max_free_rows: 1 << 16, ..Limits::default() };
    let options = ReadOptions { budget: limits.budget(), ..ReadOptions::default() };
    let document = format.open(Source::from_bytes("t", bytes), &options)?;
    let mut findings = Findings::new(false);
    let checked = document.validate(&mut findings);
    for part in
        document.outline().parts.iter().flat_map(|parts| parts.nodes(0).take(9).collect::<Vec<_>>()).flatten()
    {
        part.parts.iter().for_each(|parts| parts.nodes(0).take(3).for_each(drop));
    }
    for batch in document.all_rows()? {
        batch?;
    }
    checked
}

const SMALL: [&str; 8] = [
    "npy/f_i2.npy",
    "npy/records.npy",
    "npy/text.npy",
    "npy/datetime_M.npy",
    "npz/single.npz",
    "npz/csr.npz",
    "npz/coo_packed.npz",
    "npz/bsr.npz",
];

#[test]
fn every_truncation_is_an_error() {
    for name in SMALL {
        let path = testdata(name);
        let bytes = std::fs::read(&path).unwrap();
        for len in 0..bytes.len() {
            let error = exhaust(format_of(&path), bytes[..len].to_vec()).unwrap_err();
            assert!(
                matches!(error.kind(), ErrorKind::Truncated | ErrorKind::Malformed),
                "{name} {len}: {error:?}"
            );
        }
    }
}

#[test]
fn flipped_bits_never_panic_and_archives_notice() {
    for name in SMALL {
        let path = testdata(name);
        let bytes = std::fs::read(&path).unwrap();
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            // Without a checksum, a flipped bit in a value is not detected.
            let _ = exhaust(format_of(&path), flipped);
        }
    }
}

#[test]
fn a_flipped_value_in_an_archive_breaks_its_checksum() {
    let bytes = std::fs::read(testdata("npz/single.npz")).unwrap();
    let at = bytes.windows(8).position(|window| window == 5.0f64.to_le_bytes()).unwrap();
    let mut flipped = bytes;
    flipped[at] ^= 1;
    let document = open(&Npz, flipped).unwrap();
    let error = all(document.as_ref()).unwrap_err();
    assert_eq!((error.kind(), error.rule_name()), (ErrorKind::Malformed, "crc"));
    // Also if other rows are selected.
    let first = document.selection().with_rows(0..1);
    let error = document.rows(&first).and_then(plain).unwrap_err();
    assert_eq!(error.rule_name(), "crc");
    let mut findings = Findings::new(false);
    document.validate(&mut findings).unwrap();
    assert_eq!(findings.list()[0].rule, "crc");
}

#[test]
fn bombs_are_defused() {
    // A deflated member that claims far more than it has.
    let bytes = std::fs::read(testdata("npz/several_packed.npz")).unwrap();
    let at = bytes.windows(4).rposition(|window| window == b"PK\x01\x02").unwrap();
    let mut lying = bytes;
    lying[at + 24..at + 28].copy_from_slice(&0x7fff_ffffu32.to_le_bytes());
    let error = open(&Npz, lying).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Limit);
}

fn matrix(values: &[f64], cols: usize) -> (Schema, RecordBatch) {
    let rows = values.len() / cols.max(1);
    let schema = shape::dense_schema(DataType::Float64, None, cols as u64).unwrap();
    let DataType::FixedSizeList(item, width) = schema.field(0).data_type() else { unreachable!() };
    let values = Arc::new(Float64Array::from(values.to_vec()));
    let list =
        arrow_array::FixedSizeListArray::try_new_with_length(Arc::clone(item), *width, values, None, rows)
            .unwrap();
    let batch = RecordBatch::try_new(Arc::new(schema.clone()), vec![Arc::new(list)]).unwrap();
    (schema, batch)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn dense_matrices_come_back(cols in 1usize..6, rows in 0usize..9, seed: Vec<f64>, slice in 0usize..4) {
        let values: Vec<f64> = seed.iter().copied().cycle().take(if seed.is_empty() { 0 } else { rows * cols }).collect();
        let (schema, batch) = matrix(&values, cols);
        // A slice must be written as the slice, not as the whole array.
        let from = slice.min(batch.num_rows());
        let cut = batch.slice(from, batch.num_rows() - from);
        for format in [&Npy as &dyn Format, &Npz] {
            let bytes = write_batches(format, &schema, std::slice::from_ref(&cut)).unwrap();
            let document = open(format, bytes).unwrap();
            let found: Vec<RecordBatch> = document.all_rows().unwrap().map(Result::unwrap).collect();
            let found: Vec<u64> = found
                .iter()
                .flat_map(|batch| {
                    let list = arrow_array::cast::as_fixed_size_list_array(batch.column(0)).clone();
                    list.values().as_any().downcast_ref::<Float64Array>().unwrap().values().to_vec()
                })
                .map(f64::to_bits)
                .collect();
            let expected: Vec<u64> = values[from * cols..].iter().map(|value| value.to_bits()).collect();
            prop_assert_eq!(found, expected);
        }
    }
}
