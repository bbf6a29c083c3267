//! Data and `.meta` are two files: in every state between two renames, the old data or the new is read.

use std::fs;
use std::path::Path;
use std::sync::Mutex;

use arrow_array::{Float64Array, Int64Array};

use super::super::replace::{Old, old_meta};
use super::*;
use crate::sink::Output;

/// The changes of the side file by a write, before the data appears.
#[derive(Debug, Clone, PartialEq)]
enum Side {
    Kept,
    Put(Vec<u8>),
    Removed,
}

type Seen = Arc<Mutex<(Vec<u8>, Side)>>;

/// An output that records which files appear, and in which step.
struct Recorder {
    seen: Seen,
    bytes: Vec<u8>,
    path: PathBuf,
    is_side: bool,
}

impl Output for Recorder {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.bytes.extend(bytes);
        Ok(())
    }

    fn can_patch(&self) -> bool {
        true
    }

    fn patch(&mut self, offset: u64, bytes: &[u8]) -> std::io::Result<()> {
        self.bytes[offset as usize..][..bytes.len()].copy_from_slice(bytes);
        Ok(())
    }

    fn sibling(&mut self, suffix: &str) -> std::io::Result<Option<Box<dyn Output>>> {
        assert_eq!(suffix, ".meta");
        let (seen, path) = (Arc::clone(&self.seen), self.path.clone());
        Ok(Some(Box::new(Recorder { seen, bytes: Vec::new(), path, is_side: true })))
    }

    fn remove_sibling(&mut self, suffix: &str) -> std::io::Result<()> {
        assert_eq!(suffix, ".meta");
        self.seen.lock().unwrap().1 = Side::Removed;
        Ok(())
    }

    fn commit(self: Box<Self>) -> std::io::Result<()> {
        let mut seen = self.seen.lock().unwrap();
        if self.is_side {
            seen.1 = Side::Put(self.bytes);
            return Ok(());
        }
        let side = self.path.with_extension("dbdf.meta");
        match &seen.1 {
            Side::Kept => {}
            Side::Put(bytes) => fs::write(side, bytes)?,
            Side::Removed => fs::remove_file(side)?,
        }
        fs::write(&self.path, &self.bytes)?;
        seen.0 = self.bytes;
        Ok(())
    }
}

fn frame(names: [&str; 2], rows: i64) -> RecordBatch {
    let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(0..rows));
    let halves: ArrayRef = Arc::new(Float64Array::from_iter_values((0..rows).map(|row| row as f64 / 2.0)));
    RecordBatch::try_from_iter([(names[0], numbers), (names[1], halves)]).unwrap()
}

fn matrix(file: &str) -> RecordBatch {
    all(&*open(&fs::read(testdata(file)).unwrap()).unwrap()).unwrap()
}

fn write_to(sink: Sink, batch: &RecordBatch, options: &WriteOptions) {
    let mut writer = Dbdf.create(sink, batch.schema(), options).unwrap();
    writer.write(batch).unwrap();
    let written = writer.finish().unwrap();
    // The document's dialect is always noted.
    assert!(written.notes.iter().all(|note| note.contains("dbdf:spec")), "{:?}", written.notes);
}

/// Names and columns, as they are read.
fn content(path: &Path) -> (Vec<String>, Vec<ArrayRef>) {
    let document = Dbdf.open(Source::open(path).unwrap(), &ReadOptions::default());
    let batch = all(&*document.unwrap_or_else(|error| panic!("{error}"))).unwrap();
    let names = batch.schema().fields().iter().map(|field| field.name().clone()).collect();
    (names, batch.columns().to_vec())
}

#[test]
fn every_state_reads_as_old_or_new() {
    let frames = [frame(["id", "half"], 3), frame(["number", "value"], 3), frame(["a", "b"], 500)];
    let matrices = [matrix("dense_f64_5x3.dbdf"), matrix("csr_f64_3x3_slack10.dbdf")];
    let batches: Vec<&RecordBatch> = frames.iter().chain(&matrices).collect();
    let ways: [(&str, &[(&str, &str)]); 4] =
        [("daphne", &[]), ("daphne", &[("meta", "false")]), ("spec", &[]), ("spec", &[("meta", "true")])];
    let folder = tempfile::tempdir().unwrap();
    let (path, side) = (folder.path().join("x.dbdf"), folder.path().join("x.dbdf.meta"));
    let set = |data: &[u8], meta: Option<&[u8]>| {
        fs::write(&path, data).unwrap();
        match meta {
            Some(meta) => fs::write(&side, meta).unwrap(),
            None => drop(fs::remove_file(&side)),
        }
    };
    let mut transitions = 0;
    for (old, (old_dialect, old_pairs)) in batches.iter().flat_map(|old| ways.map(|way| (old, way))) {
        drop((fs::remove_file(&path), fs::remove_file(&side)));
        write_to(Sink::create(&path, false).unwrap(), old, &options(old_dialect, old_pairs));
        let old_data = fs::read(&path).unwrap();
        let own_meta = fs::read(&side).ok();
        // As DAPHNE writes it: without a stamp.
        let plain_meta = own_meta.as_ref().map(|text| {
            let mut value: serde_json::Value = serde_json::from_slice(text).unwrap();
            value.as_object_mut().unwrap().shift_remove("pentaglotData").unwrap();
            value.to_string().into_bytes()
        });
        for old_meta in [own_meta.clone(), plain_meta] {
            for (new, (dialect, pairs)) in batches.iter().flat_map(|new| ways.map(|way| (new, way))) {
                set(&old_data, old_meta.as_deref());
                let before = content(&path);
                let seen: Seen = Arc::new(Mutex::new((Vec::new(), Side::Kept)));
                let seen_by = Arc::clone(&seen);
                let recorder =
                    Recorder { seen: seen_by, bytes: Vec::new(), path: path.clone(), is_side: false };
                let sink = Sink::in_place_of(path.clone(), Box::new(recorder));
                write_to(sink, new, &options(dialect, pairs));
                let (new_data, step) = seen.lock().unwrap().clone();
                let after = content(&path);
                let last = fs::read_to_string(&side).unwrap_or_default();
                // Nothing of the old data is left.
                assert!(!last.contains("pentaglotPrevious"), "{last}");
                assert_eq!(
                    last.is_empty(),
                    pairs == [("meta", "false")] || (dialect, pairs) == ("spec", &[])
                );
                let between = match step {
                    Side::Kept => old_meta.clone(),
                    Side::Put(meta) => Some(meta),
                    Side::Removed => None,
                };
                // Equal data may be read with either `.meta`.
                let either = [before, after];
                let what = format!("{old_dialect} {old_pairs:?} by {dialect} {pairs:?}");
                set(&old_data, between.as_deref());
                assert!(either.contains(&content(&path)), "old data, {what}");
                set(&new_data, between.as_deref());
                assert!(either.contains(&content(&path)), "new data, {what}");
                transitions += usize::from(between != old_meta);
            }
        }
    }
    assert!(transitions > 100, "{transitions}");
}

/// The same with real files, to the end.
#[test]
fn new_data_is_never_read_by_an_old_meta() {
    let folder = tempfile::tempdir().unwrap();
    let (path, side) = (folder.path().join("x.dbdf"), folder.path().join("x.dbdf.meta"));
    let write = |batch: &RecordBatch, dialect: &str, pairs: &[(&str, &str)]| {
        write_to(Sink::create(&path, true).unwrap(), batch, &options(dialect, pairs));
        content(&path).0
    };
    assert_eq!(write(&frame(["a", "b"], 3), "daphne", &[]), ["a", "b"]);
    assert_eq!(write(&frame(["c", "d"], 4), "daphne", &[]), ["c", "d"]);
    let text = fs::read_to_string(&side).unwrap();
    assert!(text.contains("pentaglotData") && !text.contains("pentaglotPrevious"), "{text}");
    assert_eq!(write(&frame(["e", "f"], 4), "spec", &[]), ["e", "f"]);
    assert!(!side.exists());
    assert_eq!(write(&frame(["g", "h"], 5), "daphne", &[]), ["g", "h"]);
    assert_eq!(write(&frame(["i", "j"], 5), "daphne", &[("meta", "false")]), ["col_0", "col_1"]);
    assert!(!side.exists());
    // One without its data.
    fs::remove_file(&path).unwrap();
    fs::write(&side, r#"{"numCols":2,"numRows":3,"schema":[]}"#).unwrap();
    let sink = Sink::create(&path, false).unwrap();
    let batch = frame(["k", "l"], 3);
    let error = Dbdf.create(sink, batch.schema(), &options("spec", &[])).err().unwrap();
    assert_eq!((error.kind(), error.advice()), (crate::ErrorKind::Usage, Some(&crate::Hint::Force)));
    assert!(error.to_string().ends_with("x.dbdf.meta exists already"), "{error}");
    assert_eq!(write(&batch, "spec", &[]), ["k", "l"]);
    assert!(!side.exists());
}

#[test]
fn a_packed_file_and_its_meta_belong_together() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.dbdf.gz");
    for names in [["a", "b"], ["c", "d"]] {
        write_to(
            Sink::create(&path, true).unwrap().packed(crate::source::Packing::Gzip),
            &frame(names, 9),
            &options("daphne", &[]),
        );
        let source = Source::open(&path)
            .unwrap()
            .unpack(crate::source::Packing::Gzip, &crate::Limits::default())
            .unwrap();
        let document = Dbdf.open(source, &ReadOptions::default()).unwrap();
        assert_eq!(document.summary().schema.field(0).name(), names[0]);
        assert!(document.summary().notes.is_empty(), "{:?}", document.summary().notes);
        // As DAPHNE writes it, without a stamp: it gets that of the data before a new `.meta` appears.
        let side = folder.path().join("x.dbdf.gz.meta");
        let mut meta: serde_json::Value = serde_json::from_slice(&fs::read(&side).unwrap()).unwrap();
        let stamp = meta.as_object_mut().unwrap().remove("pentaglotData").unwrap();
        fs::write(&side, meta.to_string()).unwrap();
        let Old::Usable(old) = old_meta(&path, true).unwrap() else { panic!("{meta}") };
        assert_eq!(old.stamp.unwrap().to_json(), stamp);
    }
}

#[test]
fn files_of_a_group_are_replaced_in_the_same_steps() {
    let folder = tempfile::tempdir().unwrap();
    let (path, side) = (folder.path().join("x.dbdf"), folder.path().join("x.dbdf.meta"));
    let (old, new) = (frame(["id", "half"], 3), frame(["number", "value"], 3));
    write_to(Sink::create(&path, false).unwrap(), &old, &options("daphne", &[]));
    let old_data = fs::read(&path).unwrap();
    let group = crate::sink::SinkGroup::new(true);
    let sink = group.create(&path).unwrap();
    // What is beside the data when it has just been replaced.
    let between = Arc::new(Mutex::new(Vec::new()));
    let (seen, place) = (Arc::clone(&between), side.clone());
    sink.later().unwrap().lock().unwrap().push(Box::new(move || {
        *seen.lock().unwrap() = fs::read(place).unwrap();
    }));
    write_to(sink, &new, &options("daphne", &[]));
    assert_eq!(content(&path).0, ["id", "half"]);
    group.commit().unwrap();
    let (new_data, new_meta) = (fs::read(&path).unwrap(), fs::read(&side).unwrap());
    assert_eq!(content(&path).0, ["number", "value"]);
    let between = between.lock().unwrap().clone();
    assert_ne!(between, new_meta);
    for (data, names) in [(&old_data, ["id", "half"]), (&new_data, ["number", "value"])] {
        fs::write(&path, data).unwrap();
        fs::write(&side, &between).unwrap();
        assert_eq!(content(&path).0, names);
    }
}
