//! Tests for all kinds of input: files, streams and compressed ones; distant rows, wrong first bytes, files
//! that change.

use std::io::{self, Write};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;

use super::conformance::collect;
use super::costly::Costly;
use crate::error::{Error, ErrorKind};
use crate::job::{Conversion, ConvertOptions, OpenOptions, View, open_all, open_source};
use crate::registry::Registry;
use crate::source::Source;

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(bytes).unwrap();
    packed.finish().unwrap()
}

/// A text of `rows` rows of about a kilobyte, each with its number.
fn long_rows(format: &str, rows: usize) -> Vec<u8> {
    let filler = "x".repeat(1000);
    let mut text = match format {
        "csv" => "name,number\n".to_owned(),
        "jsonl" => String::new(),
        "json" => "[".to_owned(),
        _ => r#"{"type":{"columns":{"name":"string","number":"int64"}},"value":["#.to_owned(),
    };
    for row in 0..rows {
        match format {
            "csv" => text += &format!("{filler},{row}\n"),
            "jsonl" => text += &format!("{{\"name\":\"{filler}\",\"number\":{row}}}\n"),
            "json" => {
                let comma = if row > 0 { "," } else { "" };
                text += &format!("{comma}{{\"name\":\"{filler}\",\"number\":{row}}}");
            }
            _ => text += &format!("{}[\"{filler}\",{row}]", if row > 0 { "," } else { "" }),
        }
    }
    match format {
        "ds.json" => text += "]}",
        "json" => text += "]",
        _ => {}
    }
    text.into_bytes()
}

#[test]
fn rows_far_from_the_start_are_found() {
    let registry = Registry::default();
    let rows = 18_000;
    for format in ["csv", "jsonl", "json", "ds.json"] {
        let text = long_rows(format, rows);
        let name = format!("x.{format}");
        let sources = [
            Source::from_bytes(name.clone(), text.clone()),
            Source::from_reader(name.clone(), io::Cursor::new(text.clone())),
            Source::from_read_at(name.clone(), Costly::new(text.clone())),
            Source::from_bytes(format!("{name}.gz"), gzip(&text)),
        ];
        for source in sources {
            let opened = open_source(&registry, source, None, &OpenOptions::default()).unwrap();
            let mut view = View::default();
            view.rows = Some(17_500..17_503);
            let batch = collect(opened.rows(&view).unwrap()).unwrap();
            let numbers = batch.column(1).as_primitive::<Int64Type>();
            assert_eq!(numbers.values().to_vec(), [17_500, 17_501, 17_502], "{format}");
        }
    }
}

#[test]
fn a_stream_that_begins_wrong_is_not_spooled() {
    let registry = Registry::default();
    let mut options = OpenOptions::default();
    options.budget = crate::Limits { max_spool: 1 << 20, ..crate::Limits::default() }.budget();
    for name in ["x.arrow", "x.parquet", "x.npz", "x.npy", "x.bson", "x.dbdf", "x.mtx", "x.unknown"] {
        for spool in [false, true] {
            options.spool = spool;
            let endless = Source::from_reader(name, io::repeat(0xfe));
            let error = open_source(&registry, endless, None, &options).err().unwrap();
            assert_ne!(error.kind(), ErrorKind::Limit, "{name}: {error}");
        }
    }
    // A plausible stream is spooled up to the limit.
    options.spool = false;
    let endless = io::Read::chain(&b"PAR1"[..], io::repeat(0));
    let error = open_source(&registry, Source::from_reader("x", endless), None, &options).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Limit, "{error}");
}

#[test]
fn detection_reads_little_of_a_large_file() {
    let registry = Registry::default();
    let mut npy =
        b"\x93NUMPY\x01\x00\x76\x00{'descr': '<f8', 'fortran_order': False, 'shape': (4194304,), }".to_vec();
    npy.resize(127, b' ');
    npy.push(b'\n');
    npy.resize(npy.len() + (32 << 20), 0);
    let mut frame = vec![1, 3];
    frame.resize(32 << 20, 0);
    let ones = (0..4u64 << 20).flat_map(|_| 1u64.to_le_bytes()).collect();
    for (name, bytes) in [("x.npy", npy), ("x.bin", vec![0; 32 << 20]), ("x.dbdf", frame), ("x.sds", ones)] {
        let costly = Costly::new(bytes);
        let source = Source::from_read_at(name, Arc::clone(&costly) as _);
        let _ = registry.detect(&source);
        let (requests, bytes) = costly.counts();
        assert!(requests <= 8 && bytes <= 512 << 10, "{name}: {requests} requests, {bytes} bytes");
    }
}

#[test]
fn a_text_that_is_cut_while_it_is_read_is_an_error() {
    let registry = Registry::default();
    for format in ["csv", "jsonl", "json", "ds.json"] {
        let file = tempfile::Builder::new().suffix(&format!(".{format}")).tempfile().unwrap();
        std::fs::write(file.path(), long_rows(format, 9_000)).unwrap();
        let source = Source::open(file.path()).unwrap();
        let opened = open_source(&registry, source, None, &OpenOptions::default()).unwrap();
        let mut view = View::default();
        view.batch_rows = 100;
        let mut rows = opened.rows(&view).unwrap();
        assert_eq!(rows.next().unwrap().unwrap().num_rows(), 100);
        // Cut at the end of a row, so that the rest looks complete.
        let text = std::fs::read(file.path()).unwrap();
        let end =
            text.windows(2).rposition(|pair| pair == b"}\n" || pair == b"9\n").map_or(4 << 20, |at| at + 2);
        let cut = if format.ends_with("json") { 4 << 20 } else { end / 2 };
        file.as_file().set_len(cut as u64).unwrap();
        let error = rows.find_map(|batch| batch.err()).map(Error::from).unwrap();
        assert!(error.to_string().contains("the file changed while it was read"), "{format}: {error}");
    }
}

/// Gives the file another time of change, as if it had been written with bytes of the same length.
fn touch(path: &std::path::Path) {
    let file = std::fs::File::options().write(true).open(path).unwrap();
    file.set_modified(std::time::SystemTime::now() + std::time::Duration::from_secs(5)).unwrap();
}

#[test]
fn every_one_of_several_files_must_stay_as_it_is() {
    let registry = Registry::default();
    let folder = tempfile::tempdir().unwrap();
    let paths = ["a.csv", "b.csv", "c.csv"].map(|name| folder.path().join(name));
    let names = paths.each_ref().map(|path| path.to_str().unwrap());
    for (changed, rows, expected) in [
        (None, None, false),
        (Some(0), None, true),
        (Some(1), None, true),
        (Some(2), None, true),
        (Some(2), Some(0..2000), false),
    ] {
        paths.iter().for_each(|path| std::fs::write(path, long_rows("csv", 1_000)).unwrap());
        let mut view = View::default();
        (view.rows, view.batch_rows) = (rows, 100);
        let mut found = open_all(&registry, &names, &OpenOptions::default()).unwrap().rows(&view).unwrap();
        let (mut read, mut changed) = (0, changed);
        let error = found.find_map(|batch| {
            read += batch.as_ref().map_or(0, |batch| batch.num_rows());
            // Some rows of that file have been read.
            if let Some(index) = changed.take_if(|index| read > *index * 1000) {
                touch(&paths[index]);
            }
            batch.err()
        });
        let error = error.map(|error| Error::from(error).to_string());
        assert_eq!(error.is_some(), expected, "{error:?}");
        assert!(error.is_none_or(|error| error.contains("the file changed")));
    }
}

#[test]
fn an_input_with_other_rows_than_were_planned_is_an_error() {
    let registry = Registry::default();
    let folder = tempfile::tempdir().unwrap();
    let paths = ["a.npy", "b.npy"].map(|name| folder.path().join(name));
    let names = paths.each_ref().map(|path| path.to_str().unwrap());
    let write = |path: &std::path::Path, rows: usize| {
        let head = format!("{{'descr': '<i8', 'fortran_order': False, 'shape': ({rows},), }}");
        let mut bytes =
            [&b"\x93NUMPY\x01\x00"[..], &(head.len() as u16).to_le_bytes(), head.as_bytes()].concat();
        (0..rows as i64).for_each(|value| bytes.extend_from_slice(&value.to_le_bytes()));
        std::fs::write(path, bytes).unwrap();
    };
    for (rows, expected) in [(10, false), (11, true), (9, true)] {
        paths.iter().for_each(|path| write(path, 10));
        let opened = open_all(&registry, &names, &OpenOptions::default()).unwrap();
        write(&paths[1], rows);
        let error = opened.rows(&View::default()).unwrap().find_map(|batch| batch.err());
        let error = error.map(|error| Error::from(error).to_string());
        assert_eq!(error.is_some(), expected, "{error:?}");
        assert!(error.is_none_or(|error| error.contains("changed since")));
    }
}

#[test]
fn a_file_that_is_written_again_while_it_is_read_is_an_error() {
    let registry = Registry::default();
    let folder = tempfile::tempdir().unwrap();
    let text = folder.path().join("rows.csv");
    std::fs::write(&text, long_rows("csv", 9_000)).unwrap();
    for format in ["csv", "jsonl", "arrow", "arrows", "parquet", "dynd", "ds", "bson"] {
        let path = folder.path().join(format!("x.{format}"));
        let (from, to) = (text.to_str().unwrap(), path.to_str().unwrap());
        Conversion::plan(&registry, &[from], to, &ConvertOptions::default()).unwrap().run(to, false).unwrap();
        let open = || {
            let source = Source::open(&path).unwrap();
            open_source(&registry, source, None, &OpenOptions::default()).unwrap()
        };
        let read = |range: Option<std::ops::Range<u64>>| {
            let mut view = View::default();
            (view.rows, view.batch_rows) = (range, 100);
            let mut found = open().rows(&view).unwrap();
            found.next().unwrap().unwrap();
            touch(&path);
            found.find_map(|batch| batch.err()).map(|error| Error::from(error).to_string())
        };
        let error = read(None).unwrap();
        assert!(error.contains("the file changed while it was read"), "{format}: {error}");
        // The first rows of a file that changes later are what they are.
        assert_eq!(read(Some(0..300)), None, "{format}");
    }
}
