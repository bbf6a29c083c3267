//! The store against Parquet with content-defined pages in a FastCDC chunk store (as Xet keeps it), and against zstd and
//! BLAKE3 on the same bytes.
//!
//! `STORE_ROWS=N` rows in the first version (default 500,000). `BENCH_ONLY=WORD` as in all benches.

mod versions;

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use fastcdc::v2020::FastCDC;
use harness::Race;
use pentaglot::arrow::array::RecordBatch;
use pentaglot::formats::{Format, WriteOptions, arrow_ipc, parquet};
use pentaglot::hub::rows;
use pentaglot::job::{Conversion, ConvertOptions, OpenOptions, open};
use pentaglot::store::{PutOptions, Store};
use pentaglot::{Budget, Control, Registry, Sink};

const ROUNDS: usize = 5;

fn main() {
    let rows = std::env::var("STORE_ROWS").ok().and_then(|text| text.parse().ok()).unwrap_or(500_000);
    sizes(rows);
    speed(rows);
}

fn written(format: &dyn Format, rows: &RecordBatch, options: &[(&str, &str)]) -> Vec<u8> {
    let mut write = WriteOptions::default();
    options.iter().for_each(|(key, value)| write.options.set(*key, *value));
    let (sink, memory) = Sink::memory();
    let mut writer = format.plan(&rows.schema(), &write).unwrap().create(sink).unwrap();
    writer.write(rows).unwrap();
    writer.finish().unwrap();
    memory.take()
}

/// Chunks of 64 KiB in the mean, each once, and 32 bytes for each link: what Xet keeps.
#[derive(Default)]
struct ChunkStore {
    chunks: HashMap<[u8; 32], usize>,
    links: usize,
}

impl ChunkStore {
    fn put(&mut self, bytes: &[u8]) {
        for chunk in FastCDC::new(bytes, 8 << 10, 64 << 10, 128 << 10) {
            let chunk = &bytes[chunk.offset..chunk.offset + chunk.length];
            self.chunks.insert(*blake3::hash(chunk).as_bytes(), chunk.len());
            self.links += 1;
        }
    }

    /// Each chunk with its digest in an index.
    fn bytes(&self) -> usize {
        self.chunks.values().sum::<usize>() + 32 * (self.links + self.chunks.len())
    }
}

fn folder_bytes(folder: &Path) -> u64 {
    let files = ["packs", "roots"].map(|name| fs::read_dir(folder.join(name)).unwrap());
    files.into_iter().flatten().map(|file| file.unwrap().metadata().unwrap().len()).sum()
}

fn put(store: &Store, version: &RecordBatch) -> u64 {
    let batches: Vec<RecordBatch> = (0..version.num_rows())
        .step_by(8192)
        .map(|at| version.slice(at, 8192.min(version.num_rows() - at)))
        .collect();
    let rows = rows::from_batches(version.schema(), batches.into_iter().map(Ok));
    store.put(rows, &PutOptions::default()).unwrap().new_bytes
}

/// Twenty versions both ways.
fn sizes(rows: usize) {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::create(folder.path()).unwrap();
    let (mut with, mut without) = (ChunkStore::default(), ChunkStore::default());
    println!("## 20 versions of {rows} rows and more: bytes after each\n");
    println!(
        "| version | change | Arrow | Parquet | Parquet in chunks | Parquet cdc in chunks | store |\n|---|---|---|---|---|---|---|"
    );
    let (mut arrow, mut plain) = (0, 0);
    for (number, (change, version)) in versions::versions(rows).enumerate() {
        arrow += written(&arrow_ipc::ArrowFile, &version, &[]).len();
        let parquet = written(&parquet::Parquet, &version, &[]);
        plain += parquet.len();
        without.put(&parquet);
        with.put(&written(&parquet::Parquet, &version, &[("cdc", "true")]));
        put(&store, &version);
        let own = folder_bytes(folder.path());
        println!(
            "| {} | {change} | {arrow} | {plain} | {} | {} | {own} |",
            number + 1,
            without.bytes(),
            with.bytes()
        );
    }
    let own = folder_bytes(folder.path());
    println!("\nstore / Parquet cdc in chunks: {:.3}\n", own as f64 / with.bytes() as f64);
}

fn speed(rows: usize) {
    let folder = tempfile::tempdir().unwrap();
    let (_, version) = versions::versions(rows * 4).next().unwrap();
    let bytes = written(&arrow_ipc::ArrowFile, &version, &[]);
    let input = folder.path().join("in.arrow").to_str().unwrap().to_owned();
    fs::write(&input, &bytes).unwrap();
    let output = folder.path().join("out.arrow").to_str().unwrap().to_owned();
    let registry = Registry::new(vec![Arc::new(arrow_ipc::ArrowFile)]);
    let options = OpenOptions::default();
    let packed = zstd::bulk::compress(&bytes, 1).unwrap();
    let kept = folder.path().join("kept");
    let store = Store::create(&kept).unwrap();
    put(&store, &version);
    let megabytes = bytes.len() >> 20;
    let fresh = folder.path().join("fresh");
    Race::new(format!("put {megabytes} MB, against zstd -1"))
        .add("zstd -1", || {
            let packed = zstd::bulk::compress(&fs::read(&input).unwrap(), 1).unwrap();
            fs::write(folder.path().join("out.zst"), &packed).unwrap();
            fs::File::open(folder.path().join("out.zst")).unwrap().sync_all().unwrap();
            0
        })
        .add("store put", || {
            let _ = fs::remove_dir_all(&fresh);
            let store = Store::create(&fresh).unwrap();
            open(&registry, &input, &options).unwrap().put(&store, None, &options).unwrap();
            0
        })
        .add("store put, all known", || {
            open(&registry, &input, &options).unwrap().put(&store, None, &options).unwrap();
            0
        })
        .run(ROUNDS);
    Race::new(format!("get {megabytes} MB to Arrow IPC, against zstd -d"))
        .add("zstd -d", || {
            fs::write(&output, zstd::bulk::decompress(&packed, bytes.len()).unwrap()).unwrap();
            0
        })
        .add("store get", || {
            let conversion =
                Conversion::plan_stored(&registry, &store, "bafkr4i", &output, &ConvertOptions::default())
                    .unwrap();
            conversion.run(&output, true).unwrap();
            0
        })
        .run(ROUNDS);
    let packs: Vec<_> = fs::read_dir(kept.join("packs")).unwrap().map(|file| file.unwrap().path()).collect();
    Race::new("verify, against BLAKE3 of the packs on as many threads")
        .add("BLAKE3", || {
            std::thread::scope(|scope| {
                for pack in &packs {
                    scope.spawn(move || {
                        let mut hasher = blake3::Hasher::new();
                        hasher.update_reader(fs::File::open(pack).unwrap()).unwrap();
                        std::hint::black_box(hasher.finalize())
                    });
                }
            });
            0
        })
        .add("store verify", || {
            let found = store.verify(&Budget::default(), &Control::default()).unwrap();
            assert!(found.findings.is_empty());
            0
        })
        .run(ROUNDS);
}
