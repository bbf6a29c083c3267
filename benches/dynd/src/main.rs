//! DyND through the hub against one `memcpy` and against serde-like codecs that decode into structs, then columns.
//!
//! Every contestant gives the same checksum over the same values before times are compared.

mod codecs;

use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use codecs::{
    Fixed, FixedColumns, Text, TextColumns, fixed_codecs, fixed_columns, text_codecs, text_columns,
};
use harness::Race;
use pentaglot::arrow::array::RecordBatch;
use pentaglot::arrow::array::cast::AsArray;
use pentaglot::arrow::array::types::{
    ArrowPrimitiveType, Float64Type, Int16Type, Int32Type, Int64Type, UInt8Type,
};
use pentaglot::formats::dynd::{Dynd, Type};
use pentaglot::formats::{Format, ReadOptions, WriteOptions};
use pentaglot::{Limits, Sink, Source};

const ROUNDS: usize = 15;

fn file(ty: &str, data: &[u8]) -> Source {
    let ty: Type = ty.parse().unwrap();
    let text = ty.to_string();
    let mut bytes = vec![text.len() as u8];
    bytes.extend_from_slice(text.as_bytes());
    bytes.extend_from_slice(data);
    Source::from_bytes("bench", bytes)
}

fn read(source: &Source) -> Vec<RecordBatch> {
    let document = Dynd.open(source.clone(), &ReadOptions::default()).unwrap();
    document.all_rows().unwrap().map(|batch| batch.unwrap()).collect()
}

/// Batches one after the other, as a conversion takes them.
fn stream(source: &Source, mut each: impl FnMut(&RecordBatch) -> u64) -> u64 {
    let document = Dynd.open(source.clone(), &ReadOptions::default()).unwrap();
    let rows = document.all_rows().unwrap();
    rows.fold(0u64, |sum, batch| sum.wrapping_add(each(&batch.unwrap())))
}

/// A writer into memory that is there already.
#[derive(Clone)]
struct Target(Arc<Mutex<(Vec<u8>, usize)>>);

impl Write for Target {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut target = self.0.lock().unwrap();
        let at = target.1;
        target.0[at..at + bytes.len()].copy_from_slice(bytes);
        target.1 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn write(batches: &[RecordBatch], target: &Target) -> u64 {
    target.0.lock().unwrap().1 = 0;
    write_to(batches, Sink::pipe(target.clone()))
}

fn write_to(batches: &[RecordBatch], sink: Sink) -> u64 {
    let mut options = WriteOptions::default();
    options.row_count = Some(batches.iter().map(|batch| batch.num_rows() as u64).sum());
    let mut writer = Dynd.plan(&batches[0].schema(), &options).unwrap().create(sink).unwrap();
    batches.iter().for_each(|batch| writer.write(batch).unwrap());
    writer.finish().unwrap().bytes
}

fn sample(bytes: &[u8]) -> u64 {
    bytes.iter().step_by(4096).fold(0u64, |sum, byte| sum.wrapping_add((*byte).into()))
}

fn pieces(from: &[u8], to: &mut [u8]) {
    for (to, from) in to.chunks_mut(64 << 10).zip(from.chunks(64 << 10)) {
        to.copy_from_slice(from);
    }
}

/// A cheap checksum that still looks at every column: the first value of each and the number of rows.
fn touch(batch: &RecordBatch) -> u64 {
    std::hint::black_box(batch.columns());
    batch.num_rows() as u64
}

fn numbers() {
    let count = 4_000_000usize;
    let data: Vec<u8> = (0..count).flat_map(|at| (at as f64 * 0.5).to_le_bytes()).collect();
    let source = file(&format!("{count} * float64"), &data);
    let batches = read(&source);
    let total: f64 =
        batches.iter().flat_map(|batch| batch.column(0).as_primitive::<Float64Type>().values().iter()).sum();
    assert_eq!(total, (0..count).map(|at| at as f64 * 0.5).sum::<f64>());
    let mut to = vec![0u8; data.len()];
    let mut race = Race::new("N * float64, bytes to arrays (32 MB)");
    race.add("memcpy", || {
        to.copy_from_slice(&data);
        std::hint::black_box(&to);
        count as u64
    });
    race.add("dynd rows", || stream(&source, touch));
    let laps = race.run(ROUNDS);
    assert_eq!(laps[0].checksum, laps[1].checksum);

    let target = Target(Arc::new(Mutex::new((vec![0; data.len() + 100], 0))));
    let mut to = vec![0u8; data.len()];
    let mut race = Race::new("N * float64, arrays to bytes (32 MB)");
    let header = format!("{count} * float64").len() as u64 + 1;
    race.add("memcpy", || {
        to.copy_from_slice(&data);
        std::hint::black_box(&to);
        data.len() as u64
    });
    let (arrays, place) = (&batches, &target);
    race.add("dynd writer", move || write(arrays, place) - header);
    let laps = race.run(ROUNDS);
    assert_eq!(laps[0].checksum, laps[1].checksum);
    let written = target.0.lock().unwrap();
    assert_eq!(sample(&written.0[header as usize..written.1]), sample(&data));
}

fn structs() {
    let count = 1_000_000usize;
    let rows: Vec<Fixed> = (0..count)
        .map(|at| Fixed {
            a: at as i32,
            b: at as f64 * 0.25,
            c: (at % 1000) as i16,
            d: at as i64 * 3,
            e: at as u8,
        })
        .collect();
    let data: Vec<u8> = rows
        .iter()
        .flat_map(|row| {
            [
                &row.a.to_le_bytes()[..],
                &row.b.to_le_bytes(),
                &row.c.to_le_bytes(),
                &row.d.to_le_bytes(),
                &[row.e],
            ]
            .concat()
        })
        .collect();
    let source = file(&format!("{count} * {{a: int32, b: float64, c: int16, d: int64, e: uint8}}"), &data);
    let batches = read(&source);
    let columns = ours_fixed(&batches);
    assert!(columns == fixed_columns(&rows, |row| (row.a, row.b, row.c, row.d, row.e)), "our columns differ");

    let mut to = vec![0u8; data.len()];
    let mut race = Race::new("structs of fixed-size fields, rows to columns (23 MB)");
    race.add("memcpy in 64 KiB pieces", || {
        pieces(&data, &mut to);
        std::hint::black_box(&to);
        count as u64
    });
    race.add("dynd rows", || stream(&source, touch));
    let laps = race.run(ROUNDS);
    assert_eq!(laps[0].checksum, laps[1].checksum);

    let target = Target(Arc::new(Mutex::new((vec![0; data.len() + 200], 0))));
    let mut to = vec![0u8; data.len()];
    let mut race = Race::new("structs of fixed-size fields, columns to rows (23 MB)");
    let header = write(&batches, &target) - data.len() as u64;
    assert_eq!(&target.0.lock().unwrap().0[header as usize..][..data.len()], &data[..]);
    race.add("memcpy in 64 KiB pieces", || {
        pieces(&data, &mut to);
        std::hint::black_box(&to);
        data.len() as u64
    });
    // Both leave the bytes in memory that was written before; that they are right was just seen.
    let (arrays, mut room) = (&batches, vec![0u8; data.len() + 200]);
    race.add("dynd writer", move || {
        let (sink, memory) = Sink::memory_in(std::mem::take(&mut room));
        let bytes = write_to(arrays, sink);
        room = memory.take();
        bytes - header
    });
    let laps = race.run(ROUNDS);
    assert!(laps.iter().all(|lap| lap.checksum == laps[0].checksum));

    let mut race = Race::new("structs of fixed-size fields, against codecs into Vec<struct> and columns");
    race.add("dynd rows", || stream(&source, touch));
    for (name, decode) in fixed_codecs(&rows) {
        assert!(decode() == columns, "the columns of {name} differ");
        race.add(name, move || std::hint::black_box(decode()).0.len() as u64);
    }
    let laps = race.run(ROUNDS);
    assert!(laps.iter().all(|lap| lap.checksum == laps[0].checksum));
}

/// The columns as the codecs make them.
fn ours_fixed(batches: &[RecordBatch]) -> FixedColumns {
    fn values<T: ArrowPrimitiveType>(batches: &[RecordBatch], column: usize) -> Vec<T::Native> {
        batches.iter().flat_map(|batch| batch.column(column).as_primitive::<T>().values().to_vec()).collect()
    }
    (
        values::<Int32Type>(batches, 0),
        values::<Float64Type>(batches, 1),
        values::<Int16Type>(batches, 2),
        values::<Int64Type>(batches, 3),
        values::<UInt8Type>(batches, 4),
    )
}

fn texts() {
    let count = 500_000usize;
    let rows: Vec<Text> = (0..count)
        .map(|at| Text { id: at as i64, name: format!("name of row {}", at % 5003), score: at as f64 })
        .collect();
    let mut data = Vec::new();
    for row in &rows {
        data.extend(row.id.to_le_bytes());
        data.push(row.name.len() as u8);
        data.extend(row.name.as_bytes());
        data.extend(row.score.to_le_bytes());
    }
    let source = file(&format!("{count} * {{id: int64, name: string, score: float64}}"), &data);
    let lengths = |batch: &RecordBatch| batch.column(1).as_string::<i32>().value_data().len() as u64;
    let columns = ours_text(&read(&source));
    assert!(columns == text_columns(&rows, |row| (row.id, &row.name, row.score)), "our columns differ");
    let mut race = Race::new("structs with a string, against codecs into Vec<struct> and columns");
    race.add("dynd rows", || stream(&source, lengths));
    for (name, decode) in text_codecs(&rows) {
        assert!(decode() == columns, "the columns of {name} differ");
        race.add(name, move || std::hint::black_box(decode()).1.len() as u64);
    }
    let laps = race.run(ROUNDS);
    assert!(laps.iter().all(|lap| lap.checksum == laps[0].checksum));
}

fn ours_text(batches: &[RecordBatch]) -> TextColumns {
    let rows: Vec<(i64, &str, f64)> = batches
        .iter()
        .flat_map(|batch| {
            let ids = batch.column(0).as_primitive::<Int64Type>().values();
            let names = batch.column(1).as_string::<i32>();
            let scores = batch.column(2).as_primitive::<Float64Type>().values();
            (0..batch.num_rows()).map(|at| (ids[at], names.value(at), scores[at]))
        })
        .collect();
    text_columns(&rows, |row| *row)
}

fn types() {
    let mut text = String::from("{");
    let mut index = 0;
    while text.len() < 1_000_000 {
        text.push_str(&format!("field_{index}: 3 * ?int32, 'quoted {index}': (string, var * float64), "));
        index += 1;
    }
    text.truncate(text.len() - 2);
    text.push('}');
    let mut race = Race::new("a type's text of 1 MB (target: below 20 ms)");
    race.add("parse", || match Type::parse(&text).unwrap() {
        Type::Struct(fields) => fields.len() as u64,
        _ => 0,
    });
    race.add("parse, print and compare (as stored)", || {
        match Type::parse_canonical(&text, &Limits::default()).unwrap() {
            Type::Struct(fields) => fields.len() as u64,
            _ => 0,
        }
    });
    let laps = race.run(ROUNDS);
    assert_eq!(laps[0].checksum, laps[1].checksum);
}

fn main() {
    numbers();
    structs();
    texts();
    types();
}
