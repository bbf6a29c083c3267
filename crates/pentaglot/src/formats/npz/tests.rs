use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, RecordBatch};
use serde_json::json;

use super::Npz;
use crate::Sink;
use crate::formats::npy::tests::{all, npy_with, open};
use crate::formats::{Format, ReadOptions, WriteOptions};
use crate::hub::{Selection, Verdict, native, rows};
use crate::source::Source;
use crate::testing::plain::testdata;

/// Also if values are read in another order than they are stored, and in members of metadata.
#[test]
fn every_member_that_is_read_to_its_end_is_compared_with_its_checksum() {
    let column_major = npy_with(
        "{'descr': '<f8', 'fortran_order': True, 'shape': (2, 2), }\n",
        &[1.0f64, 2.0, 3.0, 5.0].iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<_>>(),
    );
    let mut bytes = archive(&[("x", column_major)]);
    let at = bytes.windows(8).position(|window| window == 5.0f64.to_le_bytes()).unwrap();
    bytes[at] ^= 1;
    let document = open(&Npz, bytes).unwrap();
    assert_eq!(all(document.as_ref()).unwrap_err().rule_name(), "crc");
    let bytes = std::fs::read(testdata("npz/csr.npz")).unwrap();
    let shape = bytes.windows(9).position(|window| window == b"shape.npy").unwrap();
    let padding = shape + bytes[shape..].windows(4).position(|window| window == b"    ").unwrap();
    let mut flipped = bytes;
    flipped[padding] = b'\t';
    assert_eq!(open(&Npz, flipped).err().unwrap().rule_name(), "crc");
}

fn archive(members: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let (sink, memory) = Sink::memory();
    let mut zip = super::zip_write::ZipWriter::new(sink, false, &crate::Control::new(1)).unwrap();
    for (name, bytes) in members {
        zip.member(name, |out| Ok(out.write_all(bytes)?)).unwrap();
    }
    zip.finish().unwrap();
    memory.take()
}

#[test]
fn sparse_matrices_that_contradict_themselves_say_where() {
    let numbers = |values: &[i32]| {
        let header = format!("{{'descr': '<i4', 'fortran_order': False, 'shape': ({},), }}\n", values.len());
        npy_with(&header, &values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<_>>())
    };
    let format = npy_with("{'descr': '|S3', 'fortran_order': False, 'shape': (), }\n", b"csr");
    let build = |indices: &[i32], indptr: &[i32]| {
        let bytes = archive(&[
            ("indices", numbers(indices)),
            ("indptr", numbers(indptr)),
            ("format", format.clone()),
            ("shape", numbers(&[2, 3])),
            ("data", numbers(&[7, 8])),
        ]);
        match open(&Npz, bytes) {
            Ok(document) => all(document.as_ref()).map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        }
    };
    assert_eq!(build(&[0, 2], &[0, 1, 2]).unwrap()["entries"], json!([[0, 0, 7], [1, 2, 8]]));
    for (indices, indptr, text) in [
        (&[0, 3][..], &[0, 1, 2][..], "npz: at byte 112, indices[1]: expected an index below 3, found 3"),
        (&[0, -1], &[0, 1, 2], "npz: at byte 112, indices[1]: expected a number from 0 on, found -1"),
        (&[0, 1], &[0, 3, 2], "npz: at byte 236, indptr[1]: expected a pointer in 0..=2, found 3"),
        (&[0, 1], &[0, 2, 1], "npz: at byte 240, indptr[2]: expected a pointer in 2..=2, found 1"),
        (&[0, 1], &[1, 2, 2], "npz: at byte 232, indptr[0]: expected 0, found 1"),
        (&[0, 1], &[0, 2], "npz: at byte 162, indptr: expected 3 numbers, found shape [2]"),
        (&[0], &[0, 1, 2], "npz: at byte 38, indices: expected 2 numbers, found shape [1]"),
    ] {
        let error = build(indices, indptr).unwrap_err();
        let (place, rest) = error.split_once(", ").unwrap();
        let (_, expected) = text.split_once(", ").unwrap();
        assert_eq!(rest, expected);
        assert!(place.starts_with("npz: at byte "), "{place}");
    }
}

#[test]
fn diagonals_that_contradict_themselves_say_where() {
    let numbers = |shape: &str, values: &[i32]| {
        let header = format!("{{'descr': '<i4', 'fortran_order': False, 'shape': ({shape}), }}\n");
        npy_with(&header, &values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<_>>())
    };
    let format = npy_with("{'descr': '|S3', 'fortran_order': False, 'shape': (), }\n", b"dia");
    let build = |offsets: &[i32], data: (&str, &[i32])| {
        let bytes = archive(&[
            ("data", numbers(data.0, data.1)),
            ("offsets", numbers(&format!("{},", offsets.len()), offsets)),
            ("format", format.clone()),
            ("shape", numbers("2,", &[2, 3])),
        ]);
        match open(&Npz, bytes) {
            Ok(document) => all(document.as_ref()).map_err(|error| error.message().to_owned()),
            Err(error) => Err(error.message().to_owned()),
        }
    };
    let cells = ("2, 3", &[1, 2, 3, 4, 0, 6][..]);
    let found = build(&[0, 1], cells).unwrap();
    assert_eq!(found["entries"], json!([[0, 0, 1], [1, 1, 2], [1, 2, 6]]));
    // Diagonals outside the matrix have no cells.
    assert_eq!(build(&[i32::MIN, i32::MAX], cells).unwrap()["entries"], json!([]));
    assert_eq!(build(&[1, 1], cells).unwrap_err(), "expected offsets that do not repeat, found 1 twice");
    assert_eq!(build(&[1], cells).unwrap_err(), "expected 2 numbers, found shape [1]");
    assert_eq!(build(&[1], ("3,", &[1, 2, 3])).unwrap_err(), "expected 2 dimensions, found 1");
}

#[test]
fn an_archive_takes_any_members() {
    let bytes = std::fs::read(testdata("npz/several.npz")).unwrap();
    let members = ["a", "b"].map(|name| {
        let options = ReadOptions { member: Some(name.to_owned()), ..ReadOptions::default() };
        (name, Npz.open(Source::from_bytes("several", bytes.clone()), &options).unwrap())
    });
    let mut plan = Npz.archive(&WriteOptions::default()).unwrap().unwrap();
    for (name, document) in &members {
        assert_eq!(plan.member(name, &document.summary().schema).verdict(), Verdict::Exact);
    }
    let (sink, memory) = Sink::memory();
    let mut archive = plan.create(sink).unwrap();
    for (_, document) in &members {
        archive.member(document.all_rows().unwrap()).unwrap();
    }
    archive.finish().unwrap();
    // The same members with the same headers: NumPy's own bytes.
    assert_eq!(memory.take(), bytes);
}

#[test]
fn nan_is_null_on_both_sides_if_asked_for() {
    let column: ArrayRef = Arc::new(Float64Array::from(vec![Some(1.0), None, Some(f64::INFINITY)]));
    let batch = RecordBatch::try_from_iter_with_nullable([("x", column, true)]).unwrap();
    let mut options = WriteOptions::default();
    options.options.set("nulls", "nan");
    let (sink, memory) = Sink::memory();
    let mut writer = Npz.plan(&batch.schema(), &options).unwrap().create(sink).unwrap();
    writer.write(&batch).unwrap();
    writer.finish().unwrap();
    let bytes = memory.take();
    let read = |nulls: bool| {
        let mut options = ReadOptions::default();
        if nulls {
            options.options.set("nulls", "nan");
        }
        let document = Npz.open(Source::from_bytes("x.npz", bytes.clone()), &options).unwrap();
        let selection = document.selection().with_rows(1..3).with_batch_rows(1);
        let found: Vec<_> = document.rows(&selection).unwrap().map(|batch| batch.unwrap()).collect();
        let schema = found[0].schema();
        let array = arrow_select::concat::concat_batches(&schema, &found).unwrap();
        rows::batch(schema, array.columns().to_vec(), array.num_rows()).unwrap().column(0).clone()
    };
    let expected: ArrayRef = Arc::new(Float64Array::from(vec![None, Some(f64::INFINITY)]));
    assert_eq!(read(true).as_ref(), expected.as_ref());
    assert_eq!(read(false).null_count(), 0);
    options.options.set("nulls", "none");
    let error = Npz.plan(&batch.schema(), &options).err().unwrap();
    assert_eq!(error.to_string(), "npz: option nulls: expected nan, found \"none\"");
}

#[test]
fn a_checksum_is_compared_once_for_all_parts_of_a_member() {
    let values: Vec<u8> = (0..2000).flat_map(|value| f64::from(value).to_le_bytes()).collect();
    let member = npy_with("{'descr': '<f8', 'fortran_order': False, 'shape': (2000,), }\n", &values);
    let source = Source::from_bytes("x.npz", archive(&[("x", member)]));
    let document = Npz.open(source.clone(), &ReadOptions::default()).unwrap();
    let cost = |row: u64| {
        let before = source.bytes_read();
        let rows = document.rows(&document.selection().with_rows(row..row + 1)).unwrap();
        assert_eq!(rows.map(|batch| batch.unwrap().num_rows()).sum::<usize>(), 1);
        source.bytes_read() - before
    };
    assert!(cost(5) >= 16_000, "the first part needs the whole member");
    assert!(cost(7) < 1000, "the next one does not");
}

#[test]
fn a_sparse_matrix_keeps_its_layout_and_the_width_of_its_indices() {
    let numbers = |width: usize, values: &[i64]| {
        let header =
            format!("{{'descr': '<i{width}', 'fortran_order': False, 'shape': ({},), }}\n", values.len());
        let bytes = values.iter().flat_map(|value| value.to_le_bytes()[..width].to_vec());
        npy_with(&header, &bytes.collect::<Vec<_>>())
    };
    let word = |word: &[u8; 3]| npy_with("{'descr': '|S3', 'fortran_order': False, 'shape': (), }\n", word);
    for width in [4, 8] {
        // 0 7 0
        // 5 6 0
        let data = |values: &[i64]| ("data", numbers(2, values));
        let shape = ("shape", numbers(8, &[2, 3]));
        let csr = archive(&[
            ("indices", numbers(width, &[1, 0, 1])),
            ("indptr", numbers(width, &[0, 1, 3])),
            ("format", word(b"csr")),
            shape.clone(),
            data(&[7, 5, 6]),
        ]);
        let csc = archive(&[
            ("indices", numbers(width, &[1, 0, 1])),
            ("indptr", numbers(width, &[0, 1, 3, 3])),
            ("format", word(b"csc")),
            shape.clone(),
            data(&[5, 7, 6]),
            ("_is_array", npy_with("{'descr': '|b1', 'fortran_order': False, 'shape': (), }\n", &[1])),
        ]);
        let coo = archive(&[
            ("row", numbers(width, &[0, 1, 1])),
            ("col", numbers(width, &[1, 0, 1])),
            ("format", word(b"coo")),
            shape,
            data(&[7, 5, 6]),
        ]);
        for file in [&csr, &csc, &coo] {
            let write = |layout: Option<&str>| {
                let document = open(&Npz, file.clone()).unwrap();
                let mut options = WriteOptions::default();
                if let Some(layout) = layout {
                    options.options.set("layout", layout);
                }
                let (sink, memory) = Sink::memory();
                let mut writer =
                    Npz.plan(&document.summary().schema, &options).unwrap().create(sink).unwrap();
                let selection = Selection::new(&document.summary().schema, None);
                document.rows(&selection).unwrap().for_each(|batch| writer.write(&batch.unwrap()).unwrap());
                writer.finish().unwrap();
                memory.take()
            };
            let expected = all(open(&Npz, file.clone()).unwrap().as_ref()).unwrap();
            let own = native_of(file);
            assert_eq!(own["index_bytes"], width);
            assert_eq!(own.get("is_array").is_some(), *file == csc);
            for layout in [None, Some("csr"), Some("csc"), Some("coo")] {
                let written = write(layout);
                let native = native_of(&written);
                assert_eq!(native["layout"], layout.map_or(own["layout"].clone(), Into::into));
                assert_eq!(native["index_bytes"], width);
                assert_eq!(native.get("is_array"), own.get("is_array"));
                assert_eq!(all(open(&Npz, written).unwrap().as_ref()).unwrap(), expected, "{layout:?}");
            }
        }
    }
}

fn native_of(file: &[u8]) -> serde_json::Value {
    native::of(&open(&Npz, file.to_vec()).unwrap().summary().schema, "npz").unwrap()
}
