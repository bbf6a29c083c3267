//! A table in a collection against the same bytes as plain binary documents, written and read by the same driver, and against
//! LZ4-packed NumPy columns as Arctic stores them (`arctic.py`).
//!
//! `MONGODB_URI` names the server, `PYTHON` an interpreter with pymongo, numpy and lz4. Usage: `collections [MEGABYTES]`.
//! Each figure is the median of three rounds, in which the contestants take turns.

use std::io::Read;
use std::process::Command;
use std::sync::Arc;
use std::time::Instant;

use futures::{StreamExt, TryStreamExt};
use mongodb::bson::spec::BinarySubtype;
use mongodb::bson::{Binary, Document, doc};
use mongodb::{Client, Collection};
use pentaglot::arrow::array::{Float64Array, Int64Array, RecordBatch, TimestampNanosecondArray};
use pentaglot::formats::WriteOptions;
use pentaglot::job::{self, Conversion, ConvertOptions, OpenOptions, View};
use pentaglot::{Registry, Sink};

type Outcome<T = ()> = Result<T, Box<dyn std::error::Error>>;

const ROUNDS: usize = 3;
const TABLE: &str = "mongodb:///pentaglot_bench/ticks?key=K&order=time";
/// How many documents are under way at a time, for both.
const AT_A_TIME: usize = 2;

fn main() -> Outcome {
    let megabytes: usize = std::env::args().nth(1).map_or(Ok(1000), |text| text.parse())?;
    let folder = std::env::temp_dir().join("pentaglot-collections");
    std::fs::create_dir_all(&folder)?;
    let (table, chunks) = (folder.join("ticks.arrow"), folder.join("ticks.bson"));
    make_ticks(megabytes << 20, &[("arrow", &table, false), ("bsondf", &chunks, true)])?;
    let registry = Registry::default().with_remote(Arc::new(pentaglot_mongodb::Collections::from_env()));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let client = runtime.block_on(async {
        Client::with_uri_str(std::env::var("MONGODB_URI")?).await.map_err(Box::<dyn std::error::Error>::from)
    })?;
    let plain: Collection<Document> = client.database("pentaglot_bench").collection("plain");
    let (mut writes, mut reads) = (vec![Vec::new(), Vec::new()], vec![Vec::new(), Vec::new()]);
    let name = table.to_str().ok_or("a folder whose name is UTF-8")?;
    let (mut bytes, mut rows) = (0, 0);
    for _ in 0..ROUNDS {
        let start = Instant::now();
        bytes = runtime.block_on(insert(&plain, &chunks))?;
        writes[0].push(start.elapsed().as_secs_f64());
        let start = Instant::now();
        let mut options = ConvertOptions::default();
        options.force = true;
        Conversion::plan(&registry, &[name], TABLE, &options)?.run_to(&registry, TABLE, true)?;
        writes[1].push(start.elapsed().as_secs_f64());
        let start = Instant::now();
        let fetched = runtime.block_on(fetch(&plain))?;
        reads[0].push(start.elapsed().as_secs_f64());
        assert_eq!(fetched, bytes, "all bytes come back");
        let start = Instant::now();
        let opened = job::open(&registry, TABLE, &OpenOptions::default())?;
        rows = 0;
        for batch in opened.rows(&View::default())? {
            rows += batch?.num_rows();
        }
        reads[1].push(start.elapsed().as_secs_f64());
    }
    println!("{rows} rows, {bytes} bytes encoded, {} bytes of values", megabytes << 20);
    for (what, target, times) in [("write", 0.8, &mut writes), ("read", 0.8, &mut reads)] {
        let (floor, ours) = (median(&mut times[0]), median(&mut times[1]));
        println!(
            "{what}: {ours:.2} s, of plain binary documents {floor:.2} s: {:.2}x (target {target}x)",
            floor / ours
        );
    }
    println!("resident: {} (target 300 MB, with the chunks of the floor)", resident()?);
    let python = std::env::var("PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/arctic.py");
    let done = Command::new(python).arg(script).arg(rows.to_string()).output()?;
    println!("LZ4-packed NumPy columns: {}", String::from_utf8_lossy(&done.stdout).trim());
    std::fs::remove_dir_all(folder)?;
    Ok(())
}

fn median(times: &mut [f64]) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// The greatest memory of this process so far.
fn resident() -> Outcome<String> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    Ok(line.unwrap_or("unknown").trim().to_owned())
}

/// Ten columns: a time, a volume, eight prices that wander.
fn make_ticks(bytes: usize, outputs: &[(&str, &std::path::Path, bool)]) -> Outcome {
    const BATCH: usize = 64 << 10;
    let registry = Registry::default();
    let batches = bytes / (BATCH * 80);
    let mut writers = Vec::new();
    let mut state = 7u64;
    let mut prices = [100.0f64; 8];
    for number in 0..batches.max(1) {
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            state >> 40
        };
        let first = (number * BATCH) as i64;
        let times: TimestampNanosecondArray = (first..first + BATCH as i64)
            .map(|row| Some(1_700_000_000_000_000_000 + row * 1_000_000))
            .collect();
        let volumes: Int64Array = (0..BATCH).map(|_| Some((next() % 500) as i64 * 100)).collect();
        let mut columns: Vec<(String, pentaglot::arrow::array::ArrayRef)> =
            vec![("time".to_owned(), Arc::new(times)), ("volume".to_owned(), Arc::new(volumes))];
        for (place, price) in prices.iter_mut().enumerate() {
            let values: Float64Array = (0..BATCH)
                .map(|_| {
                    *price += (next() % 21) as f64 / 100.0 - 0.1;
                    Some((*price * 100.0).round() / 100.0)
                })
                .collect();
            columns.push((format!("price_{place}"), Arc::new(values)));
        }
        let batch = RecordBatch::try_from_iter(columns)?;
        if writers.is_empty() {
            for (format, path, chunked) in outputs {
                let mut options = WriteOptions::default();
                if *chunked {
                    options.options.set("max-bytes", "15M");
                }
                let plan = registry.get(format)?.plan(&batch.schema(), &options)?;
                writers.push(plan.create(Sink::create(path, true)?)?);
            }
        }
        for writer in &mut writers {
            writer.write(&batch)?;
        }
    }
    for writer in writers {
        writer.finish()?;
    }
    Ok(())
}

/// The documents of a file, one by one.
fn documents(path: &std::path::Path) -> Outcome<impl Iterator<Item = Vec<u8>>> {
    let mut file = std::io::BufReader::new(std::fs::File::open(path)?);
    Ok(std::iter::from_fn(move || {
        let mut length = [0; 4];
        file.read_exact(&mut length).ok()?;
        let mut document = vec![0; u32::from_le_bytes(length) as usize];
        document[..4].copy_from_slice(&length);
        file.read_exact(&mut document[4..]).ok()?;
        Some(document)
    }))
}

async fn insert(plain: &Collection<Document>, path: &std::path::Path) -> Outcome<u64> {
    plain.drop().await?;
    let inserts = documents(path)?.enumerate().map(|(number, bytes)| {
        let (plain, length) = (plain.clone(), bytes.len() as u64);
        async move {
            let data = Binary { subtype: BinarySubtype::Generic, bytes };
            plain.insert_one(doc! { "_id": number as i64, "data": data }).await?;
            mongodb::error::Result::Ok(length)
        }
    });
    let inserted: Vec<u64> = futures::stream::iter(inserts).buffer_unordered(AT_A_TIME).try_collect().await?;
    Ok(inserted.iter().sum())
}

async fn fetch(plain: &Collection<Document>) -> Outcome<u64> {
    let count = plain.count_documents(doc! {}).await?;
    let fetches = (0..count as i64).map(|number| {
        let plain = plain.clone();
        async move {
            let found = plain.find_one(doc! { "_id": number }).await?;
            let length =
                found.as_ref().and_then(|found| found.get_binary_generic("data").ok()).map_or(0, Vec::len);
            mongodb::error::Result::Ok(length as u64)
        }
    });
    let fetched: Vec<u64> = futures::stream::iter(fetches).buffered(AT_A_TIME).try_collect().await?;
    Ok(fetched.iter().sum())
}
