//! DS against the peers that its users would reach for: rmp-serde, serde_json, arrow-json, memcpy, base64-simd and
//! (if `PYTHON` names an interpreter with msgpack and pyarrow) Python.
//!
//! `cargo run --release -p ds [ROWS] [IMAGES] [ROUNDS]`; equal answers are asserted before times are compared.

use std::hint::black_box;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int32Type, Int64Type};
use arrow_array::{ArrayRef, BooleanArray, Float64Array, Int32Array, Int64Array, RecordBatch, StringArray};
use harness::{Lap, Race};
use pentaglot::formats::ds::Ds;
use pentaglot::formats::{Format, ReadOptions, Selection, WriteOptions};
use pentaglot::{Sink, Source};
use serde::{Deserialize, Serialize};

type Row = (i32, i64, f64, bool, String);

/// The same fields for peers that want names.
#[derive(Serialize, Deserialize)]
struct Record {
    a: i32,
    b: i64,
    c: f64,
    d: bool,
    e: String,
}

fn random(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

fn rows(count: usize) -> Vec<Row> {
    let mut state = 0x9e37_79b9_7f4a_7c15;
    (0..count)
        .map(|_| {
            let seed = random(&mut state);
            let small = (random(&mut state) >> (seed % 31 + 33)) as i32;
            let large = (random(&mut state) as i64) >> (seed % 60);
            let float = (random(&mut state) % 1_000_000_000) as f64 / 1000.0;
            (small, large, float, seed % 2 == 0, format!("name {}", seed % 100_000))
        })
        .collect()
}

fn batch(rows: &[Row]) -> RecordBatch {
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("a", Arc::new(Int32Array::from_iter_values(rows.iter().map(|row| row.0)))),
        ("b", Arc::new(Int64Array::from_iter_values(rows.iter().map(|row| row.1)))),
        ("c", Arc::new(Float64Array::from_iter_values(rows.iter().map(|row| row.2)))),
        ("d", Arc::new(BooleanArray::from(rows.iter().map(|row| row.3).collect::<Vec<_>>()))),
        ("e", Arc::new(StringArray::from_iter_values(rows.iter().map(|row| &row.4)))),
    ];
    RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, array)| (name, array, false)))
        .unwrap()
}

fn write(batch: &RecordBatch, dialect: &str) -> Vec<u8> {
    let (sink, memory) = Sink::memory();
    let mut options = WriteOptions::default();
    options.dialect = Some(dialect.to_owned());
    let mut writer = Ds.create(sink, batch.schema(), &options).unwrap();
    writer.write(batch).unwrap();
    writer.finish().unwrap();
    memory.take()
}

fn read(source: &Source, mut each: impl FnMut(&RecordBatch) -> u64) -> u64 {
    let mut options = ReadOptions::default();
    options.control = pentaglot::Control::new(1);
    let document = Ds.open(source.clone(), &options).unwrap();
    document
        .all_rows()
        .unwrap()
        .fold(0, |sum: u64, batch| sum.wrapping_add(each(&batch.unwrap())))
}

/// A cheap sum over all columns: the same for every contestant.
fn checksum(batch: &RecordBatch) -> u64 {
    let a: u64 = batch
        .column(0)
        .as_primitive::<Int32Type>()
        .values()
        .iter()
        .map(|value| *value as u64)
        .fold(0, u64::wrapping_add);
    let b = batch
        .column(1)
        .as_primitive::<Int64Type>()
        .values()
        .iter()
        .map(|value| *value as u64)
        .fold(0, u64::wrapping_add);
    let c = batch
        .column(2)
        .as_primitive::<Float64Type>()
        .values()
        .iter()
        .map(|value| value.to_bits())
        .fold(0, u64::wrapping_add);
    let d = batch.column(3).as_boolean().true_count() as u64;
    let e = batch.column(4).as_string::<i32>().value_data().len() as u64;
    [a, b, c, d, e].into_iter().fold(0, u64::wrapping_add)
}

fn checksum_rows(rows: &[Row]) -> u64 {
    let one = |row: &Row| {
        let parts = [row.0 as u64, row.1 as u64, row.2.to_bits(), u64::from(row.3), row.4.len() as u64];
        parts.into_iter().fold(0, u64::wrapping_add)
    };
    rows.iter().map(one).fold(0, u64::wrapping_add)
}

fn equal(laps: &[Lap]) {
    assert!(laps.iter().all(|lap| lap.checksum == laps[0].checksum), "answers differ: {laps:?}");
}

fn table(count: usize, rounds: usize) {
    let rows = rows(count);
    let batch = batch(&rows);
    let expected = checksum_rows(&rows);
    let file = write(&batch, "msgpack");
    let opened = Ds.open(Source::from_bytes("bench", file.clone()), &ReadOptions::default()).unwrap();
    let header = opened.summary().parts[0].bytes as usize;
    let body = file[header..].to_vec();
    let source = Source::from_bytes("bench", file.clone());
    assert_eq!(read(&source, checksum), expected);

    let mut race = Race::new(format!("MessagePack to Arrow, {count} rows, one thread"));
    race.add("rmp-serde into Vec<tuple>", || {
        let mut input = body.as_slice();
        let mut rows: Vec<Row> = Vec::new();
        while !input.is_empty() {
            rows.push(rmp_serde::from_read(&mut input).unwrap());
        }
        checksum_rows(&rows)
    });
    race.add("rmp-serde from slices", || {
        let mut rows: Vec<Row> = Vec::new();
        let mut deserializer = rmp_serde::Deserializer::new(std::io::Cursor::new(body.as_slice()));
        while (deserializer.position() as usize) < body.len() {
            rows.push(Row::deserialize(&mut deserializer).unwrap());
        }
        checksum_rows(&rows)
    });
    race.add("pentaglot", || read(&source, checksum));
    equal(&race.run(rounds));

    let length = body.len() as u64;
    let mut race = Race::new(format!("Arrow to MessagePack, {count} rows, one thread"));
    race.add("rmp-serde from tuples", || {
        let mut output = Vec::new();
        for row in &rows {
            rmp_serde::encode::write(&mut output, row).unwrap();
        }
        black_box(&output).len() as u64
    });
    race.add("pentaglot", || black_box(write(&batch, "msgpack")).len() as u64 - header as u64);
    race.add("pentaglot, fixed profile (more bytes)", || {
        black_box(write(&batch, "msgpack-fixed"));
        length
    });
    equal(&race.run(rounds));

    let json = write(&batch, "json");
    let value = serde_json::to_vec(&rows).unwrap();
    let lines: Vec<u8> = rows
        .iter()
        .flat_map(|(a, b, c, d, e)| {
            let mut line = serde_json::to_vec(&Record { a: *a, b: *b, c: *c, d: *d, e: e.clone() }).unwrap();
            line.push(b'\n');
            line
        })
        .collect();
    let source = Source::from_bytes("bench", json);
    let schema = batch.schema();
    let mut race = Race::new(format!("JSON to Arrow, {count} rows, one thread"));
    race.add("serde_json into Vec<tuple>", || {
        checksum_rows(&serde_json::from_slice::<Vec<Row>>(&value).unwrap())
    });
    race.add("arrow-json (as JSON lines)", || {
        let reader = arrow_json::ReaderBuilder::new(Arc::clone(&schema)).with_batch_size(65536);
        let reader = reader.build(lines.as_slice()).unwrap();
        reader.map(|batch| checksum(&batch.unwrap())).fold(0, u64::wrapping_add)
    });
    race.add("pentaglot", || read(&source, checksum));
    equal(&race.run(rounds));
    python(&file, count);
}

/// Python's way: msgpack.Unpacker, then pyarrow.
fn python(file: &[u8], count: usize) {
    let Ok(interpreter) = std::env::var("PYTHON") else { return };
    let path = std::env::temp_dir().join("pentaglot-bench.ds");
    std::fs::write(&path, file).unwrap();
    let script = "import sys,time,msgpack,pyarrow as pa\n\
        data=open(sys.argv[1],'rb').read()\n\
        best=1e9\n\
        for _ in range(3):\n    \
            t=time.perf_counter()\n    \
            u=msgpack.Unpacker(max_buffer_size=len(data)+1)\n    \
            u.feed(data)\n    \
            next(u)\n    \
            cols=list(zip(*u))\n    \
            table=pa.table([pa.array(c,t) for c,t in zip(cols,[pa.int32(),pa.int64(),pa.float64(),pa.bool_(),pa.string()])],names=list('abcde'))\n    \
            best=min(best,time.perf_counter()-t)\n\
        print(table.num_rows,best)\n";
    let output = std::process::Command::new(interpreter).args(["-c", script]).arg(&path).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let mut words = text.split_whitespace();
    assert_eq!(
        words.next().map(str::to_owned),
        Some(count.to_string()),
        "{:?}",
        String::from_utf8(output.stderr)
    );
    let seconds: f64 = words.next().unwrap().parse().unwrap();
    let source = Source::from_bytes("bench", file.to_vec());
    let mut race = Race::new("the same as Python's msgpack and pyarrow read");
    race.add("pentaglot", || read(&source, checksum));
    let ours = race.run(5)[0].median.as_secs_f64();
    println!("Python msgpack + pyarrow {:>33.3} ms; pentaglot is {:.1}x", seconds * 1e3, seconds / ours);
}

fn images(count: usize, rounds: usize) {
    const SIZE: usize = 28 * 28;
    let mut state = 7;
    let pixels: Vec<u8> = (0..count * SIZE).map(|_| random(&mut state) as u8).collect();
    let text: Vec<String> =
        pixels.chunks(SIZE).map(|image| base64_simd::STANDARD.encode_to_string(image)).collect();
    let rows: Vec<String> =
        text.iter().enumerate().map(|(index, text)| format!("[\"{text}\",{}]", index % 10)).collect();
    let json = format!(
        r#"{{"type":{{"columns":{{"image":{{"type":"image","width":28,"height":28,"components":{{"black":{{"componentType":"uint8"}}}}}},"label":"uint8"}}}},"value":[{}]}}"#,
        rows.join(",")
    );
    let json = Source::from_bytes("bench", json.into_bytes());
    let batches: Vec<RecordBatch> = {
        let document = Ds.open(json.clone(), &ReadOptions::default()).unwrap();
        document.all_rows().unwrap().map(Result::unwrap).collect()
    };
    let (sink, memory) = Sink::memory();
    let mut writer = Ds.create(sink, batches[0].schema(), &WriteOptions::default()).unwrap();
    batches.iter().for_each(|batch| writer.write(batch).unwrap());
    writer.finish().unwrap();
    let file = Source::from_bytes("bench", memory.take());
    let bytes = |batch: &RecordBatch| batch.column(0).as_binary::<i32>().value_data().len() as u64;

    let mut race = Race::new(format!("MessagePack, {count} images of 28 x 28 and labels"));
    race.add("memcpy, an image at a time", || {
        let mut copy: Vec<u8> = Vec::new();
        let mut total = 0;
        for (index, image) in pixels.chunks(SIZE).enumerate() {
            // As many images a vector as we have in a batch.
            if index % 5000 == 0 {
                total += black_box(&copy).len() as u64;
                // Its memory is used again, as it is when a batch was dropped before the next is read.
                drop(std::mem::take(&mut copy));
                copy = Vec::with_capacity(5000 * SIZE);
            }
            copy.extend_from_slice(image);
        }
        total + black_box(&copy).len() as u64
    });
    race.add("pentaglot", || read(&file, bytes));
    equal(&race.run(rounds));

    let mut race = Race::new(format!("JSON, {count} images of 28 x 28 and labels"));
    race.add("base64-simd, an image at a time", || {
        let mut copy: Vec<u8> = Vec::new();
        let mut total = 0;
        for (index, text) in text.iter().enumerate() {
            if index % 5000 == 0 {
                total += black_box(&copy).len() as u64;
                // Its memory is used again, as it is when a batch was dropped before the next is read.
                drop(std::mem::take(&mut copy));
                copy = Vec::with_capacity(5000 * SIZE);
            }
            base64_simd::STANDARD.decode_append(text, &mut copy).unwrap();
        }
        total + black_box(&copy).len() as u64
    });
    race.add("pentaglot", || read(&json, bytes));
    equal(&race.run(rounds));
}

fn main() {
    let mut arguments = std::env::args().skip(1).map(|text| text.parse::<usize>().unwrap());
    let rows = arguments.next().unwrap_or(1_000_000);
    let images_count = arguments.next().unwrap_or(60_000);
    let rounds = arguments.next().unwrap_or(5);
    table(rows, rounds);
    images(images_count, rounds);
}
