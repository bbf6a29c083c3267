//! DS against the peers that its users would reach for: rmp-serde, serde_json, simd-json, arrow-json, memcpy, base64-simd
//! and (if `PYTHON` names an interpreter with msgpack, msgspec and pyarrow) Python.
//!
//! `cargo run --release -p ds [ROWS] [IMAGES] [ROUNDS]`; equal answers are asserted before times are compared.

use std::hint::black_box;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int32Type, Int64Type};
use arrow_array::{ArrayRef, BooleanArray, Float64Array, Int32Array, Int64Array, RecordBatch, StringArray};
use harness::{Lap, Peer, Race};
use pentaglot::formats::ds::Ds;
use pentaglot::formats::{Format, ReadOptions, WriteOptions};
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
    options.control = pentaglot::Control::new(1);
    let mut writer = Ds.plan(&batch.schema(), &options).unwrap().create(sink).unwrap();
    writer.write(batch).unwrap();
    writer.finish().unwrap();
    memory.take()
}

fn read(source: &Source, mut each: impl FnMut(&RecordBatch) -> u64) -> u64 {
    let mut options = ReadOptions::default();
    options.control = pentaglot::Control::new(1);
    let document = Ds.open(source.clone(), &options).unwrap();
    document.all_rows().unwrap().fold(0, |sum: u64, batch| sum.wrapping_add(each(&batch.unwrap())))
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
    let source = Source::from_bytes("bench", file);
    assert_eq!(read(&source, checksum), expected);
    let array = rmp_serde::to_vec(&rows).unwrap();
    let value = serde_json::to_vec(&rows).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let python = python(folder.path(), &array, &value);
    let ask = |python: &Peer, line: &str| python.ask(line).expect("Python has msgpack, msgspec and pyarrow");

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
    if let Some(python) = &python {
        race.add("Python msgpack and pyarrow", || ask(python, "msgpack read"));
        race.add("Python msgspec and pyarrow", || ask(python, "msgspec read"));
    }
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
    if let Some(python) = &python {
        let array_header = array.len() as u64 - length;
        race.add("Python msgpack from tuples", move || ask(python, "msgpack write") - array_header);
        race.add("Python msgspec from tuples", move || ask(python, "msgspec write") - array_header);
    }
    equal(&race.run(rounds));

    let json = write(&batch, "json");
    // The bundle is `{"type":…,"value":` and the rows as the others write them.
    let around = json.len() - value.len();
    assert!(json[around - 1..json.len() - 1] == value && json.ends_with(b"}"), "the rows in JSON differ");
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
    race.add("simd-json into Vec<tuple>", || {
        // It decodes in place, so that each round needs a copy of the text.
        checksum_rows(&simd_json::from_slice::<Vec<Row>>(&mut value.clone()).unwrap())
    });
    race.add("arrow-json (as JSON lines)", || {
        let reader = arrow_json::ReaderBuilder::new(Arc::clone(&schema)).with_batch_size(65536);
        let reader = reader.build(lines.as_slice()).unwrap();
        reader.map(|batch| checksum(&batch.unwrap())).fold(0, u64::wrapping_add)
    });
    race.add("pentaglot", || read(&source, checksum));
    if let Some(python) = &python {
        race.add("Python msgspec and pyarrow", || ask(python, "msgspec-json read"));
    }
    equal(&race.run(rounds));

    let mut race = Race::new(format!("Arrow to JSON, {count} rows, one thread"));
    race.add("serde_json from tuples", || black_box(serde_json::to_vec(&rows).unwrap()).len() as u64);
    race.add("simd-json from tuples", || black_box(simd_json::to_vec(&rows).unwrap()).len() as u64);
    race.add("pentaglot", || (black_box(write(&batch, "json")).len() - around) as u64);
    if let Some(python) = &python {
        race.add("Python msgspec from tuples", || ask(python, "msgspec-json write"));
    }
    equal(&race.run(rounds));
}

/// Python's msgpack and msgspec, which are given the rows as one array.
fn python(folder: &Path, packed: &[u8], text: &[u8]) -> Option<Peer> {
    let interpreter = std::env::var_os("PYTHON")?;
    let [packed_path, text_path] = ["rows.msgpack", "rows.json"].map(|name| folder.join(name));
    std::fs::write(&packed_path, packed).unwrap();
    std::fs::write(&text_path, text).unwrap();
    let mut command = Command::new(interpreter);
    command.args(["-c", include_str!("peers.py")]).args([packed_path, text_path]);
    Peer::start(command)
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
    let mut writer = Ds.plan(&batches[0].schema(), &WriteOptions::default()).unwrap().create(sink).unwrap();
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
