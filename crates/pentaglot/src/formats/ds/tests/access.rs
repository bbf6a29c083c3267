//! Random access: by constant stride, by side index, on several threads; bytes are counted at the source.

use crate::testing::asked::Asked;
use std::path::{Path, PathBuf};

use super::*;
use crate::formats::ds::{Type, build_index};

/// A temporary folder.
fn folder() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

fn rows_request(rows: std::ops::Range<u64>) -> Asked {
    let mut request = Asked::default();
    request.rows = Some(rows);
    request
}

/// `count` rows of an integer and a string, written to a file.
fn strings_file(folder: &Path, count: u32, dialect: &str) -> PathBuf {
    let rows: Vec<Value> =
        (0..count).map(|index| serde_json::json!([index, format!("name {}", index % 977)])).collect();
    let json = serde_json::json!({"type": {"columns": {"n": "int32", "s": "string"}}, "value": rows});
    let batch = read(json.to_string().as_bytes(), &[]).unwrap();
    let path = folder.join("strings.ds");
    std::fs::write(&path, write(&batch, dialect, &[]).unwrap()).unwrap();
    path
}

fn index_file(path: &Path) {
    let source = Source::open(path).unwrap();
    let index = build_index(&source, &ReadOptions::default()).unwrap();
    std::fs::write(source.sibling_path(".idx").unwrap(), index).unwrap();
}

fn numbers(batches: &[RecordBatch]) -> Vec<i32> {
    use arrow_array::cast::AsArray;
    let column = |batch: &RecordBatch| {
        batch.column(0).as_primitive::<arrow_array::types::Int32Type>().values().to_vec()
    };
    batches.iter().flat_map(column).collect()
}

#[test]
fn an_index_seeks_and_reads_little() {
    let folder = folder();
    let path = strings_file(folder.path(), 200_000, "msgpack");
    let wanted = rows_request(150_000..150_010);
    let expected: Vec<i32> = (150_000..150_010).collect();

    let plain = Source::open(&path).unwrap();
    let document = Ds.open(plain.clone(), &ReadOptions::default()).unwrap();
    assert_eq!(document.summary().rows, None);
    assert_eq!(numbers(&collect(document.as_ref(), &wanted).unwrap()), expected);
    let without = plain.bytes_read();

    index_file(&path);
    let source = Source::open(&path).unwrap();
    let document = Ds.open(source.clone(), &ReadOptions::default()).unwrap();
    assert_eq!(document.summary().rows, Some(200_000));
    assert_eq!(numbers(&collect(document.as_ref(), &wanted).unwrap()), expected);
    // The segment of these rows, and the last one, which shows that the index is that of the file.
    assert!(source.bytes_read() < 800_000 && without > 2_000_000, "{} of {without}", source.bytes_read());
    assert_eq!(collect(document.as_ref(), &rows_request(300_000..300_001)).unwrap().len(), 0);
}

#[test]
fn an_indexed_stream_is_decoded_on_several_threads_in_order() {
    let folder = folder();
    let path = strings_file(folder.path(), 100_000, "msgpack");
    index_file(&path);
    let expected: Vec<i32> = (0..100_000).collect();
    for threads in ["1", "2", "7"] {
        let document = Ds.open(Source::open(&path).unwrap(), &read_options(&[("threads", threads)])).unwrap();
        assert_eq!(numbers(&collect(document.as_ref(), &Asked::default()).unwrap()), expected);
        assert_eq!(
            numbers(&collect(document.as_ref(), &rows_request(5..70_001)).unwrap()),
            expected[5..70_001]
        );
    }
}

#[test]
fn a_stale_index_is_never_used() {
    let folder = folder();
    let path = strings_file(folder.path(), 50_000, "msgpack");
    index_file(&path);
    // The same length with other content is detected by the segment's hash.
    let mut bytes = std::fs::read(&path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&path, &bytes).unwrap();
    let document = Ds.open(Source::open(&path).unwrap(), &ReadOptions::default()).unwrap();
    let error = collect(document.as_ref(), &rows_request(20_000..30_000)).unwrap_err();
    assert!(error.to_string().contains("does not fit the file any more"), "{error}");
    bytes[middle] ^= 1;
    // At the end it is detected at once: the index tells no number of rows.
    let last = bytes.len() - 1;
    bytes[last] = b'0' + (bytes[last] - b'0' + 1) % 10;
    std::fs::write(&path, &bytes).unwrap();
    let document = Ds.open(Source::open(&path).unwrap(), &ReadOptions::default()).unwrap();
    assert_eq!(document.summary().rows, None);
    assert!(document.summary().notes[0].contains("other rows"), "{:?}", document.summary().notes);
    assert_eq!(numbers(&collect(document.as_ref(), &rows_request(49_999..60_000)).unwrap()), [49_999]);
    // Another length: the index is not used, and a note says so.
    bytes.extend_from_slice(&[0x92, 7, 0xa1, b'x']);
    std::fs::write(&path, &bytes).unwrap();
    let document = Ds.open(Source::open(&path).unwrap(), &ReadOptions::default()).unwrap();
    assert!(document.summary().notes[0].contains("another length"), "{:?}", document.summary().notes);
    assert_eq!(numbers(&collect(document.as_ref(), &rows_request(50_000..60_000)).unwrap()), [7]);
    // A damaged index.
    let side = path.with_file_name("strings.ds.idx");
    let mut index = std::fs::read(&side).unwrap();
    for at in 0..index.len() {
        index[at] ^= 0x10;
        std::fs::write(&side, &index[..]).unwrap();
        let document = Ds.open(Source::open(&path).unwrap(), &ReadOptions::default()).unwrap();
        assert_eq!(document.summary().rows, None);
        index[at] ^= 0x10;
    }
}

#[test]
fn the_oracles_row_offsets_are_found() {
    let golden = golden();
    for vector in list(&golden, "golden") {
        let Some(offsets) = vector["row_offsets"].as_array() else { continue };
        let document = open(&unhex(vector["msgpack"].as_str().unwrap()), &[]).unwrap();
        let outline = document.outline();
        let parts: Vec<_> = outline.parts.as_ref().unwrap().nodes(0).map(Result::unwrap).collect();
        let rows = &parts[1];
        assert_eq!((parts[0].name.as_str(), rows.name.as_str()), ("header", "rows"));
        let starts: Vec<u64> =
            rows.parts.as_ref().unwrap().nodes(0).map(|node| node.unwrap().offset).take(19).collect();
        let expected: Vec<u64> = offsets.iter().map(|offset| offset.as_u64().unwrap()).collect();
        let expected = if expected.len() < 20 { &expected[..expected.len() - 1] } else { &expected[..19] };
        assert_eq!(starts, expected, "{}", vector["id"]);
    }
}

const FIXED: &str = r#"{"columns":{"i":{"type":"image","width":28,"height":28,"components":{"black":{"componentType":"uint8"}}},
    "l":"uint8","f":"float32","n":"int64","b":"bool","v":"void","t":{"type":"tensor","shape":[3],"componentType":"int32"}}}"#;

fn fixed_bytes(count: usize) -> Vec<u8> {
    let image = base64_simd::STANDARD.encode_to_string(vec![7; 784]);
    let rows: Vec<Value> = (0..count)
        .map(|index| serde_json::json!([image, index % 256, 1.5, index, index % 2 == 0, null, [1, -1, 100]]))
        .collect();
    let json = serde_json::json!({"type": serde_json::from_str::<Value>(FIXED).unwrap(), "value": rows});
    write(&read(json.to_string().as_bytes(), &[]).unwrap(), "msgpack-fixed", &[]).unwrap()
}

#[test]
fn rows_of_constant_size_are_found_without_an_index() {
    let bytes = fixed_bytes(3000);
    let header = Type::parse(FIXED).unwrap().header().unwrap().len();
    // The reference's own example of such rows: 822 bytes each.
    assert_eq!(bytes.len(), header + 3000 * 822);
    let source = Source::from_bytes("fixed", bytes.clone());
    let document = Ds.open(source.clone(), &ReadOptions::default()).unwrap();
    assert_eq!((document.summary().rows, document.summary().dialect), (Some(3000), Some("msgpack-fixed")));
    let before = source.bytes_read();
    let batches = collect(document.as_ref(), &rows_request(2000..2003)).unwrap();
    assert!(source.bytes_read() - before < 16 * 822, "{}", source.bytes_read() - before);
    use arrow_array::cast::AsArray;
    let column = batches[0].column(3).as_primitive::<arrow_array::types::Int64Type>();
    assert_eq!(column.values(), &[2000, 2001, 2002]);
    // With integers in the fewest bytes the size of rows varies, so they are read one by one.
    let minimal = through(&bytes, "msgpack").unwrap();
    let document = open(&minimal, &[]).unwrap();
    assert_eq!((document.summary().rows, document.summary().dialect), (None, Some("msgpack")));
    let batches = collect(document.as_ref(), &rows_request(2000..2003)).unwrap();
    assert_eq!(
        batches[0].column(3).as_primitive::<arrow_array::types::Int64Type>().values(),
        &[2000, 2001, 2002]
    );
}

#[test]
fn columns_and_ranges_give_what_is_asked_for() {
    let bytes = fixed_bytes(100);
    for dialect in ["msgpack", "msgpack-fixed", "json"] {
        let bytes = through(&bytes, dialect).unwrap();
        let document = open(&bytes, &[]).unwrap();
        let mut request = rows_request(10..90);
        request.columns = Some(vec![3..4, 1..2, 3..4]);
        request.batch_rows = 7;
        let rows = document.ask(&request).unwrap();
        let names: Vec<String> = rows.schema().fields().iter().map(|field| field.name().clone()).collect();
        assert_eq!(names, ["n", "l", "n"]);
        let batches: Vec<RecordBatch> = rows.map(Result::unwrap).collect();
        assert!(batches.iter().all(|batch| batch.num_rows() <= 7));
        assert_eq!(batches.iter().map(RecordBatch::num_rows).sum::<usize>(), 80);
    }
}

#[test]
fn a_stream_is_read_once_in_constant_memory() {
    let bytes = fixed_bytes(2000);
    let mut options = ReadOptions::default();
    // Much less than the size of the stream.
    options.budget = crate::Limits { max_alloc: 3 << 20, ..crate::Limits::default() }.budget();
    let mut endless = Type::parse(FIXED).unwrap().header().unwrap();
    let header = endless.len();
    for _ in 0..10 {
        endless.extend_from_slice(&bytes[header..]);
    }
    let document = Ds.open(Source::from_reader("-", std::io::Cursor::new(endless)), &options).unwrap();
    let rows: usize = document.all_rows().unwrap().map(|batch| batch.unwrap().num_rows()).sum();
    assert_eq!(rows, 20_000);
    assert!(document.all_rows().is_err());
}
