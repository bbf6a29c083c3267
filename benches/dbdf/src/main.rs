//! dbdf against the floor (`read`, `write`, `memcpy`) and against its peers.
//!
//! `DBDF_BENCH_MB` sets the size of the objects (1000 by default), `DBDF_BENCH_ROUNDS` the rounds, `DBDF_BENCH_DENSE=0`
//! leaves out the dense ones, `PYTHON` is an
//! interpreter with NumPy, SciPy and h5py.

use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};

use arrow_array::cast::AsArray;
use arrow_array::types::Float64Type;
use arrow_array::{
    Array, FixedSizeListArray, Float64Array, LargeListArray, RecordBatch, StructArray, UInt32Array,
};
use harness::{Peer, Race};
use pentaglot::arrow::buffer::{MutableBuffer, OffsetBuffer};
use pentaglot::arrow::schema::{DataType, SchemaRef};
use pentaglot::formats::dbdf::{Dbdf, Matrix, read_matrix};
use pentaglot::formats::{Format, ReadOptions, WriteOptions};
use pentaglot::hub::shape;
use pentaglot::{Sink, Source};

fn setting(name: &str, default: usize) -> usize {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// The sum of every 4096th value's bits: enough to compare answers, little enough not to be measured.
fn checksum(values: &[f64]) -> u64 {
    values.iter().step_by(4096).fold(0, |sum, value| sum.wrapping_add(value.to_bits()))
}

fn threads(count: usize) -> ReadOptions {
    let mut options = ReadOptions::default();
    options.control = pentaglot::Control::new(count);
    let mut limits = pentaglot::Limits::default();
    limits.max_alloc = 64 << 30;
    options.budget = limits.budget();
    options
}

fn writing(dialect: &str, pairs: &[(&str, &str)], rows: u64) -> WriteOptions {
    let mut options = WriteOptions::default();
    options.dialect = Some(dialect.to_owned());
    options.row_count = Some(rows);
    pairs.iter().for_each(|(key, value)| options.options.set(*key, *value));
    options
}

/// Writes to a sink that keeps nothing, or to a file.
fn write(sink: Sink, batches: &[RecordBatch], schema: &SchemaRef, options: &WriteOptions) {
    let mut writer = Dbdf.plan(schema, options).and_then(|plan| plan.create(sink)).expect("a writer");
    for batch in batches {
        writer.write(batch).expect("a batch is written");
    }
    writer.finish().expect("the file is finished");
}

fn compile_reader(folder: &Path) -> Option<Peer> {
    let (source, program) = (folder.join("reader.cpp"), folder.join("reader"));
    std::fs::write(&source, include_str!("reader.cpp")).ok()?;
    let done = Command::new("c++").arg("-O2").arg("-o").arg(&program).arg(&source).status().ok()?;
    if done.success() { Peer::start(Command::new(program)) } else { None }
}

fn python(folder: &Path) -> Option<Peer> {
    let script = folder.join("peers.py");
    std::fs::write(&script, include_str!("peers.py")).ok()?;
    let mut command = Command::new(std::env::var("PYTHON").unwrap_or_else(|_| "python3".to_owned()));
    command.arg(script);
    let peer = Peer::start(command)?;
    (peer.ask("have numpy")? == 1).then_some(peer)
}

fn dense(megabytes: usize, cols: usize) -> (SchemaRef, Vec<RecordBatch>) {
    let rows = megabytes * 1_000_000 / 8 / cols;
    let schema =
        Arc::new(shape::dense_schema(DataType::Float64, Some(rows as u64), cols as u64).expect("a schema"));
    let DataType::FixedSizeList(item, width) = schema.field(0).data_type().clone() else { unreachable!() };
    let step = (8 << 20) / 8 / cols;
    let batches = (0..rows)
        .step_by(step)
        .map(|first| {
            let count = step.min(rows - first) * cols;
            let values: Float64Array = (0..count).map(|cell| (first * cols + cell) as f64 + 0.5).collect();
            let list = FixedSizeListArray::new(Arc::clone(&item), width, Arc::new(values), None);
            RecordBatch::try_new(Arc::clone(&schema), vec![Arc::new(list)]).expect("a batch")
        })
        .collect();
    (schema, batches)
}

fn sparse(entries: usize, per_row: usize) -> (SchemaRef, Vec<RecordBatch>) {
    let rows = entries / per_row;
    let schema = Arc::new(shape::sparse_schema(DataType::Float64, Some(rows as u64), 1 << 20));
    let DataType::LargeList(entry) = schema.field(0).data_type().clone() else { unreachable!() };
    let fields = shape::entry_fields(DataType::Float64, 1 << 20);
    let step = (400_000 / per_row).max(1);
    let batches = (0..rows)
        .step_by(step)
        .map(|first| {
            let count = step.min(rows - first);
            let cols: UInt32Array = (0..count * per_row)
                .map(|at| ((at % per_row) * 10_000 + at / per_row % 9_999) as u32)
                .collect();
            let values: Float64Array =
                (0..count * per_row).map(|at| (first * per_row + at) as f64 + 0.5).collect();
            let pairs = StructArray::new(fields.clone(), vec![Arc::new(cols), Arc::new(values)], None);
            let offsets = OffsetBuffer::from_lengths(std::iter::repeat_n(per_row, count));
            let list = LargeListArray::new(Arc::clone(&entry), offsets, Arc::new(pairs), None);
            RecordBatch::try_new(Arc::clone(&schema), vec![Arc::new(list)]).expect("a batch")
        })
        .collect();
    (schema, batches)
}

/// Reads a file into one aligned buffer: the floor. Its values begin at `skip`.
fn read_floor(path: &Path, skip: usize) -> MutableBuffer {
    let mut file = File::open(path).expect("the file");
    let len = file.metadata().expect("its length").len() as usize - skip;
    let mut head = vec![0; skip];
    file.read_exact(&mut head).expect("its head");
    let mut memory = MutableBuffer::from_len_zeroed(len);
    file.read_exact(memory.as_slice_mut()).expect("its values");
    memory
}

fn bits_checksum(bytes: &[u8]) -> u64 {
    let words = bytes.chunks_exact(8).step_by(4096);
    words.fold(0, |sum, word| sum.wrapping_add(u64::from_le_bytes(word.try_into().expect("eight bytes"))))
}

fn dense_races(folder: &Path, megabytes: usize, rounds: usize) {
    let (schema, batches) = dense(megabytes, 100);
    let rows: usize = batches.iter().map(RecordBatch::num_rows).sum();
    let path = folder.join("dense.dbdf");
    write(
        Sink::create(&path, true).expect("a file"),
        &batches,
        &schema,
        &writing("daphne", &[], rows as u64),
    );
    let npy = folder.join("dense.npy");
    write_npy(&npy, rows, 100, &batches);
    let (python, reader) = (python(folder), compile_reader(folder));
    let ask = |what: &str, path: &Path| python.as_ref()?.ask(&format!("{what} {}", path.display()));
    let h5 = folder.join("dense.h5");
    let has_numpy = ask("hold", &npy).is_some();
    let has_h5py = ask("save-h5", &h5).is_some();

    let mut race = Race::new(format!("dense float64 read, {megabytes} MB"));
    race.add("read(2) into an aligned buffer", || bits_checksum(read_floor(&path, 45).as_slice()));
    for (name, count) in [("pentaglot, one thread", 1), ("pentaglot, all threads", 0)] {
        let path = path.clone();
        race.add(name, move || read_dense(&path, count));
    }
    if has_numpy {
        race.add("numpy.load", || ask("npy", &npy).expect("an answer"));
    }
    if has_h5py {
        race.add("h5py, read", || ask("h5", &h5).expect("an answer"));
    }
    if let Some(reader) = &reader {
        race.add("C++, element by element", || {
            reader.ask(&format!("dense {}", path.display())).expect("an answer")
        });
    }
    same(&race.run(rounds));

    let target = folder.join("out.dbdf");
    let plain: PathBuf = folder.join("out.bin");
    let (saved_npy, saved_h5) = (folder.join("out.npy"), folder.join("out.h5"));
    let mut race = Race::new(format!("dense float64 write, {megabytes} MB"));
    race.add("write(2) of the same bytes, and sync", || {
        let mut file = File::create(&plain).expect("a file");
        for batch in &batches {
            let values = batch.column(0).as_fixed_size_list().values().to_data();
            file.write_all(values.buffers()[0].as_slice()).expect("written");
        }
        file.sync_all().expect("synced");
        0
    });
    for (name, dialect) in [("pentaglot, daphne", "daphne"), ("pentaglot, spec, blocks=auto", "spec")] {
        let (target, batches, schema) = (target.clone(), &batches, &schema);
        race.add(name, move || {
            write(
                Sink::create(&target, true).expect("a file"),
                batches,
                schema,
                &writing(dialect, &[("meta", "false")], rows as u64),
            );
            0
        });
    }
    if has_numpy {
        race.add("numpy.save, and sync", || ask("save-npy", &saved_npy).expect("an answer"));
    }
    if has_h5py {
        race.add("h5py, write, and sync", || ask("save-h5", &saved_h5).expect("an answer"));
    }
    if race.run(rounds).is_empty() {
        return;
    }
    // Everybody wrote the same values: those that the files have when they are read again.
    let expected = read_dense(&target, 1);
    assert_eq!(bits_checksum(read_floor(&plain, 0).as_slice()), expected, "the bytes written plainly differ");
    for (is_there, what, path) in [(has_numpy, "npy", &saved_npy), (has_h5py, "h5", &saved_h5)] {
        assert!(!is_there || ask(what, path) == Some(expected), "the {what} file differs");
    }
}

/// The checksum of a dense file of ours.
fn read_dense(path: &Path, thread_count: usize) -> u64 {
    let source = Source::open(path).expect("the file");
    let Matrix::Dense { values, .. } = read_matrix(&source, &threads(thread_count)).expect("a matrix") else {
        unreachable!()
    };
    checksum(values.as_primitive::<Float64Type>().values())
}

fn same(laps: &[harness::Lap]) {
    assert!(laps.iter().all(|lap| lap.checksum == laps[0].checksum), "the answers differ: {laps:?}");
}

fn write_npy(path: &Path, rows: usize, cols: usize, batches: &[RecordBatch]) {
    let mut file = File::create(path).expect("a file");
    let mut header = format!("{{'descr': '<f8', 'fortran_order': False, 'shape': ({rows}, {cols}), }}");
    while (10 + header.len() + 1) % 64 != 0 {
        header.push(' ');
    }
    header.push('\n');
    file.write_all(b"\x93NUMPY\x01\x00").expect("written");
    file.write_all(&(header.len() as u16).to_le_bytes()).expect("written");
    file.write_all(header.as_bytes()).expect("written");
    for batch in batches {
        let values = batch.column(0).as_fixed_size_list().values().to_data();
        file.write_all(values.buffers()[0].as_slice()).expect("written");
    }
}

/// What a batch of the reader takes, about.
const BATCH_BYTES: usize = 16 << 20;

fn sparse_races(folder: &Path, entries: usize, rounds: usize) {
    for per_row in [10, 100] {
        let (schema, batches) = sparse(entries, per_row);
        let rows = (entries / per_row) as u64;
        let (sink, memory) = Sink::memory();
        write(sink, &batches, &schema, &writing("spec", &[("blocks", "sparse")], rows));
        let source = Source::from_bytes("sparse", memory.take());
        let bytes = source.memory().expect("in memory").clone();
        let out_bytes = entries * 12 + rows as usize * 8;
        let expected: u64 = batches.iter().fold(0, |sum, batch| sum.wrapping_add(batch_sum(batch)));

        let mut race = Race::new(format!("spec CSR decode, {entries} entries, {per_row} a row, one thread"));
        let from = bytes.clone();
        // Both sides read all of the source and keep all they make, in memory that earlier rounds have used.
        race.add("memcpy of the output bytes in 64 KiB", move || {
            let mut kept: Vec<Vec<u8>> = Vec::new();
            let mut left = out_bytes;
            for part in from.as_slice().chunks(BATCH_BYTES).cycle() {
                let part = &part[..left.min(part.len())];
                let mut room: Vec<u8> = Vec::with_capacity(part.len());
                part.chunks(64 << 10).for_each(|piece| room.extend_from_slice(piece));
                left -= part.len();
                kept.push(room);
                if left == 0 {
                    break;
                }
            }
            std::hint::black_box(kept);
            expected
        });
        race.add("pentaglot, in batches", || {
            let document = Dbdf.open(source.clone(), &threads(1)).expect("a document");
            let rows = document.all_rows().expect("rows");
            let batches: Vec<RecordBatch> = rows.map(|batch| batch.expect("a batch")).collect();
            batches.iter().fold(0, |sum, batch| sum.wrapping_add(batch_sum(batch)))
        });
        same(&race.run(rounds));

        let mut race = Race::new(format!("spec CSR encode, {entries} entries, {per_row} a row, one thread"));
        let from = bytes.clone();
        let (entries_of, shape) = (&batches, &schema);
        // Both sides leave the bytes in the same memory, which was written before.
        let target = Arc::new(Mutex::new(vec![1u8; bytes.len()]));
        let to = Arc::clone(&target);
        race.add("memcpy of the output bytes in 64 KiB", move || {
            let mut to = to.lock().expect("one writer");
            let pieces = to.chunks_mut(64 << 10).zip(from.as_slice().chunks(64 << 10));
            pieces.for_each(|(to, from)| to.copy_from_slice(from));
            0
        });
        race.add("pentaglot", move || {
            let mut target = target.lock().expect("one writer");
            let (sink, memory) = Sink::memory_in(std::mem::take(&mut target));
            write(sink, entries_of, shape, &writing("spec", &[("blocks", "sparse")], rows));
            *target = memory.take();
            0
        });
        race.run(rounds);

        if per_row == 10 {
            daphne_csr_race(folder, &schema, &batches, rows, rounds);
        }
    }
}

/// How many entries a batch has: the sum is the same however rows are cut into batches.
fn batch_sum(batch: &RecordBatch) -> u64 {
    let list = batch.column(0).as_list::<i64>();
    let offsets = list.value_offsets();
    (offsets[offsets.len() - 1] - offsets[0]) as u64
}

fn daphne_csr_race(folder: &Path, schema: &SchemaRef, batches: &[RecordBatch], rows: u64, rounds: usize) {
    let path = folder.join("sparse.dbdf");
    write(Sink::create(&path, true).expect("a file"), batches, schema, &writing("daphne", &[], rows));
    let npz = folder.join("sparse.npz");
    let made = scipy_npz(&path, &npz, rows);
    let (python, reader) = (python(folder).filter(|_| made), compile_reader(folder));
    let values_at = 53 + 8 * (rows as usize + 1);
    let mut race = Race::new("DAPHNE CSR read".to_owned());
    race.add("read(2) into an aligned buffer", || {
        let memory = read_floor(&path, 53);
        let words = memory.as_slice();
        let entries = (words.len() - (values_at - 53)) / 16;
        bits_checksum(&words[values_at - 53 + entries * 8..])
    });
    for (name, count) in [("pentaglot, one thread", 1), ("pentaglot, all threads", 0)] {
        let path = path.clone();
        race.add(name, move || {
            let source = Source::open(&path).expect("the file");
            let Matrix::Sparse { values, .. } = read_matrix(&source, &threads(count)).expect("a matrix")
            else {
                unreachable!()
            };
            checksum(values.as_primitive::<Float64Type>().values())
        });
    }
    if let Some(python) = &python {
        race.add("scipy.sparse.load_npz", || {
            python.ask(&format!("npz {}", npz.display())).expect("an answer")
        });
    }
    if let Some(reader) = &reader {
        race.add("C++, element by element", || {
            reader.ask(&format!("csr {}", path.display())).expect("an answer")
        });
    }
    same(&race.run(rounds));
}

/// Has SciPy write the same matrix, uncompressed.
fn scipy_npz(path: &Path, npz: &Path, rows: u64) -> bool {
    let script = format!(
        "import numpy as np, scipy.sparse as s\n\
         f = open({path:?}, 'rb'); f.seek(45); n = int(np.fromfile(f, '<u8', 1)[0])\n\
         p = np.fromfile(f, '<i8', {rows} + 1); i = np.fromfile(f, '<i8', n); v = np.fromfile(f, '<f8', n)\n\
         s.save_npz({npz:?}, s.csr_matrix((v, i.astype('i4'), p), shape=({rows}, 1 << 20)), compressed=False)\n"
    );
    let interpreter = std::env::var("PYTHON").unwrap_or_else(|_| "python3".to_owned());
    Command::new(interpreter).arg("-c").arg(script).status().is_ok_and(|status| status.success())
}

/// Starts this program again with an allocator that keeps what is freed, so that the rounds after the first compare
/// work and not the faults of fresh pages.
fn keep_memory() {
    const KEEP: [(&str, &str); 2] =
        [("MALLOC_MMAP_THRESHOLD_", "33554432"), ("MALLOC_TRIM_THRESHOLD_", "68719476736")];
    if std::env::var_os(KEEP[0].0).is_none() {
        let me = std::env::current_exe().expect("a path");
        let ended =
            Command::new(me).args(std::env::args_os().skip(1)).envs(KEEP).status().expect("it starts");
        std::process::exit(ended.code().unwrap_or(1));
    }
}

fn main() {
    keep_memory();
    let megabytes = setting("DBDF_BENCH_MB", 1000);
    let rounds = setting("DBDF_BENCH_ROUNDS", 5);
    let folder = tempfile::tempdir().expect("a folder");
    if setting("DBDF_BENCH_DENSE", 1) == 1 {
        dense_races(folder.path(), megabytes, rounds);
    }
    sparse_races(folder.path(), megabytes * 50_000, rounds);
}
