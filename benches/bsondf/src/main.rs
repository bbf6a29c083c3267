//! BSON DataFrame against bare LZ4 of the same buffers and against Feather (LZ4), on a table of trades.
//!
//! `cargo run --release -p bsondf -- [ROWS] [ROUNDS]`; Feather runs if `PENTAGLOT_PYTHON` names a Python that has
//! pyarrow. `cargo run --release -p bsondf -- memory FILE` prints what reading a file costs.

#[allow(dead_code, unsafe_code)]
#[path = "../../../crates/pentaglot/src/kernels/scan.rs"]
mod scan;
mod trades;
/// Where `values` expects it.
mod kernels {
    pub(crate) use crate::scan;
}
#[allow(dead_code)]
#[path = "../../../crates/pentaglot/src/formats/bsondf/values.rs"]
mod values;

/// What pyarrow allocates with: it keeps freed memory at hand, so the rounds compare work and not the faults of new pages.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use arrow_array::RecordBatch;
use bson::{RawBsonRef, RawDocument};
use harness::Race;
use pentaglot::formats::bsondf::Bsondf;
use pentaglot::formats::{Format, ReadOptions, WriteOptions};
use pentaglot::{Sink, Source};
use rayon::prelude::*;

/// Rows of the batches that are written, as a reader of another format would hand them over.
const BATCH_ROWS: usize = 64 << 10;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [command, file] = &arguments[..]
        && command == "memory"
    {
        return memory(file);
    }
    let number = |place: usize, default| {
        arguments.get(place).map_or(default, |text: &String| text.parse().expect("a number"))
    };
    let (rows, rounds) = (number(0, 10_000_000), number(1, 5));
    kernels(rounds);
    for (title, table) in
        [("trades", trades::table(rows, false)), ("trades with a note", trades::table(rows, true))]
    {
        for threads in [1, 2] {
            compare(title, &table, threads, rounds);
        }
    }
}

fn write(table: &RecordBatch, threads: usize, options: &[(&str, &str)]) -> Vec<u8> {
    let mut write = WriteOptions::default();
    write.control = pentaglot::Control::new(threads);
    options.iter().for_each(|(key, value)| write.options.set(*key, *value));
    let (sink, memory) = Sink::memory();
    let plan = Bsondf.plan(&table.schema(), &write);
    let mut writer = plan.and_then(|plan| plan.create(sink)).expect("a document starts");
    for start in (0..table.num_rows()).step_by(BATCH_ROWS) {
        let batch = table.slice(start, BATCH_ROWS.min(table.num_rows() - start));
        writer.write(&batch).expect("rows are written");
    }
    writer.finish().expect("a document ends");
    memory.take()
}

/// All rows, in batches of `rows` rows; 0 is the usual number.
fn read(source: &Source, threads: usize, rows: usize) -> impl Iterator<Item = RecordBatch> {
    let mut options = ReadOptions::default();
    options.control = pentaglot::Control::new(threads);
    let document = Bsondf.open(source.clone(), &options).expect("the document opens");
    let selection = document.selection().with_batch_rows(rows);
    let rows = document.rows(&selection).expect("it has rows");
    rows.map(|batch| batch.expect("they can be read"))
}

/// The buffers of each column: length and block.
fn blocks(document: &RawDocument) -> Vec<Vec<(i32, Vec<u8>)>> {
    fn collect(document: &RawDocument, into: &mut Vec<(i32, Vec<u8>)>) {
        for element in document {
            match element.expect("sound BSON").1 {
                RawBsonRef::Binary(binary) => {
                    let (length, block) = binary.bytes.split_first_chunk().expect("a length");
                    into.push((i32::from_le_bytes(*length), block.to_vec()));
                }
                RawBsonRef::Document(inner) => collect(inner, into),
                _ => {}
            }
        }
    }
    let columns = document.into_iter().map(|element| {
        let mut buffers = Vec::new();
        collect(element.expect("sound BSON").1.as_document().expect("a column"), &mut buffers);
        buffers
    });
    columns.collect()
}

fn compare(title: &str, table: &RecordBatch, threads: usize, rounds: usize) {
    let bytes = write(table, threads, &[]);
    let source = Source::from_bytes("trades.bson", bytes.clone());
    let found: Vec<_> = read(&source, threads, 0).collect();
    let found =
        arrow_select::concat::concat_batches(&found[0].schema(), &found).expect("batches of one schema");
    assert_eq!(found.columns(), table.columns(), "equal answers come first");
    drop(found);
    let columns = blocks(RawDocument::from_bytes(&bytes).expect("the bson crate reads it"));
    let unpack = |(length, block): &(i32, Vec<u8>)| {
        lz4::block::decompress(block, Some(*length)).expect("a sound block")
    };
    let plain: Vec<Vec<Vec<u8>>> =
        columns.iter().map(|buffers| buffers.iter().map(unpack).collect()).collect();
    let pack = |plain: &Vec<u8>| lz4::block::compress(plain, None, true).expect("it packs");
    for (plain, packed) in plain.iter().flatten().zip(columns.iter().flatten()) {
        assert_eq!(pack(plain)[4..], packed.1, "the blocks are those of LZ4_compress_default");
    }
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads start");
    let mut peer = Feather::start(table, threads);
    let total: u64 = plain.iter().flatten().map(|buffer| buffer.len() as u64).sum();
    println!(
        "\n# {title}, {threads} thread(s): {} rows, {total} bytes unpacked, {} packed",
        table.num_rows(),
        bytes.len()
    );
    if let Some(peer) = &peer {
        println!("size: {:.3}x of Feather LZ4 ({} bytes)", bytes.len() as f64 / peer.size as f64, peer.size);
    }
    let repeat = write(table, threads, &[("nulls", "repeat")]).len();
    println!("size with nulls=repeat: {:.3}x", repeat as f64 / bytes.len() as f64);
    let peer = std::cell::RefCell::new(&mut peer);

    let mut race = Race::new(format!("read {title}, {threads} thread(s)"));
    race.add("bare LZ4 into fresh memory", || {
        let column = |buffers: &Vec<(i32, Vec<u8>)>| -> Vec<Vec<u8>> { buffers.iter().map(unpack).collect() };
        let unpacked: Vec<_> = pool.install(|| columns.par_iter().map(column).collect());
        std::hint::black_box(unpacked);
        table.num_rows() as u64
    });
    race.add("pentaglot, one batch", || {
        read(&source, threads, table.num_rows()).map(|batch| batch.num_rows() as u64).sum()
    });
    race.add("pentaglot, batch by batch", || {
        read(&source, threads, 0).map(|batch| batch.num_rows() as u64).sum()
    });
    if peer.borrow().is_some() {
        race.add("Feather LZ4 (pyarrow)", || peer.borrow_mut().as_mut().expect("it runs").ask("read"));
    }
    race.run(rounds);

    let mut race = Race::new(format!("write {title}, {threads} thread(s)"));
    race.add("bare LZ4 into fresh memory", || {
        let column = |buffers: &Vec<Vec<u8>>| -> Vec<Vec<u8>> { buffers.iter().map(pack).collect() };
        let packed: Vec<_> = pool.install(|| plain.par_iter().map(column).collect());
        packed.iter().flatten().map(|block| block.len() as u64).sum()
    });
    race.add("pentaglot", || write(table, threads, &[]).len() as u64);
    if peer.borrow().is_some() {
        race.add("Feather LZ4 (pyarrow)", || peer.borrow_mut().as_mut().expect("it runs").ask("write"));
    }
    race.run(rounds);
}

/// pyarrow in a process of its own, which does one thing per line it is sent.
struct Feather {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    size: u64,
    _file: tempfile::NamedTempFile,
}

impl Feather {
    fn start(table: &RecordBatch, threads: usize) -> Option<Self> {
        let python = std::env::var_os("PENTAGLOT_PYTHON")?;
        let file = tempfile::NamedTempFile::new().expect("a temporary file");
        let mut writer =
            arrow_ipc::writer::FileWriter::try_new(&file, &table.schema()).expect("an Arrow file");
        writer.write(table).expect("it takes the table");
        writer.finish().expect("it ends");
        let mut child = Command::new(python)
            .args(["-c", include_str!("feather.py")])
            .arg(file.path())
            .arg(threads.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("Python starts");
        let input = child.stdin.take().expect("piped");
        let output = BufReader::new(child.stdout.take().expect("piped"));
        let mut this = Feather { child, input, output, size: 0, _file: file };
        this.size = this.answer();
        Some(this)
    }

    fn ask(&mut self, what: &str) -> u64 {
        writeln!(self.input, "{what}").expect("Python listens");
        self.answer()
    }

    fn answer(&mut self) -> u64 {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("Python answers");
        line.trim().parse().expect("with a number")
    }
}

impl Drop for Feather {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The loops over decoded memory, against a copy of the same bytes in pieces of 64 KiB.
fn kernels(rounds: usize) {
    let bytes = 64 << 20;
    let source = vec![1u8; bytes];
    let mut copy = vec![0u8; bytes];
    let mut others = vec![[0u8; 8]; bytes / 8];
    let mut halves = vec![0u32; bytes / 4];
    let mut mask = vec![1u8; bytes];
    let mut race = Race::new("loops in place, pieces of 64 KiB");
    race.add("memcpy", || {
        copy.chunks_mut(64 << 10)
            .zip(source.chunks(64 << 10))
            .for_each(|(to, from)| to.copy_from_slice(from));
        0
    });
    race.add("sums of u32 (dates, offsets)", || {
        u64::from(!halves.chunks_mut(16 << 10).all(scan::prefix_sums_u32))
    });
    race.add("bit order (masks)", || {
        mask.chunks_mut(64 << 10).for_each(scan::reverse_bits);
        0
    });
    race.add("differences of u64", || {
        others.chunks_mut(8 << 10).fold(0, |previous, piece| values::differences_u64(piece, previous))
    });
    race.run(rounds);
}

/// What reading a file costs at its peak, beside what is decoded.
fn memory(file: &str) {
    let peak = || {
        let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
        let line = status.lines().find(|line| line.starts_with("VmHWM")).expect("a peak").to_owned();
        line.split_whitespace().nth(1).expect("a number").parse::<u64>().expect("a number") << 10
    };
    let before = peak();
    let source = Source::open(file).expect("the file opens");
    let batches = read(&source, 2, 0).collect::<Vec<_>>();
    let mut seen = std::collections::HashSet::new();
    let mut decoded = 0u64;
    fn held(data: &arrow_data::ArrayData, seen: &mut std::collections::HashSet<usize>, total: &mut u64) {
        let nulls = data.nulls().map(|nulls| nulls.buffer());
        for buffer in data.buffers().iter().chain(nulls) {
            if seen.insert(buffer.data_ptr().addr().get()) {
                *total += buffer.capacity() as u64;
            }
        }
        data.child_data().iter().for_each(|child| held(child, seen, total));
    }
    for batch in &batches {
        for column in batch.columns() {
            held(&arrow_array::Array::to_data(column), &mut seen, &mut decoded);
        }
    }
    let more = peak().saturating_sub(before).saturating_sub(decoded);
    let packed = source.len().expect("a file");
    println!("decoded {decoded} bytes of {packed}; at the peak {more} bytes more than that");
}
