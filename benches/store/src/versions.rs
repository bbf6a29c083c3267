//! Versions of a table of readings that grows: rows are appended and inserted, columns change.

use std::sync::Arc;

use pentaglot::arrow::array::{ArrayRef, Float64Array, Int32Array, Int64Array, RecordBatch, StringArray};
use pentaglot::arrow::schema::{Field, Schema};

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }
}

/// A row of a table.
#[derive(Clone)]
struct Reading {
    time: i64,
    station: i32,
    temperature: f64,
    pressure: f64,
    quality: Option<i32>,
    note: String,
}

const WORDS: [&str; 8] =
    ["calm", "gusty", "rain", "sensor replaced", "snow", "fog", "clear", "storm warning"];

fn readings(count: usize, seed: u64) -> Vec<Reading> {
    let mut random = Random(seed);
    let mut time = 1_700_000_000_000_000 + (seed as i64) * 1_000_000_000;
    let reading = |_| {
        time += 400_000 + random.below(200_000) as i64;
        let note = format!("{} {}", WORDS[random.below(8) as usize], random.below(100_000));
        Reading {
            time,
            station: random.below(500) as i32,
            temperature: (random.below(60_000) as f64 - 20_000.0) / 1000.0,
            pressure: 900.0 + (random.next() >> 11) as f64 / (1u64 << 53) as f64 * 150.0,
            quality: Some(random.below(5) as i32).filter(|quality| *quality > 0),
            note,
        }
    };
    (0..count).map(reading).collect()
}

fn table(rows: &[Reading]) -> RecordBatch {
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("time", Arc::new(rows.iter().map(|row| row.time).collect::<Int64Array>())),
        ("station", Arc::new(rows.iter().map(|row| row.station).collect::<Int32Array>())),
        ("temperature", Arc::new(rows.iter().map(|row| row.temperature).collect::<Float64Array>())),
        ("pressure", Arc::new(rows.iter().map(|row| row.pressure).collect::<Float64Array>())),
        ("quality", Arc::new(rows.iter().map(|row| row.quality).collect::<Int32Array>())),
        ("note", Arc::new(rows.iter().map(|row| Some(row.note.as_str())).collect::<StringArray>())),
    ];
    let field = |(name, array): &(&str, ArrayRef)| Field::new(*name, array.data_type().clone(), true);
    let schema = Schema::new(columns.iter().map(field).collect::<Vec<_>>());
    RecordBatch::try_new(Arc::new(schema), columns.into_iter().map(|(_, array)| array).collect()).unwrap()
}

/// Twenty versions: what changed, and the table.
pub fn versions(rows: usize) -> impl Iterator<Item = (&'static str, RecordBatch)> {
    let mut current = readings(rows, 1);
    let mut random = Random(99);
    (0..20u64).map(move |number| {
        let one_percent = current.len() / 100;
        let change = match number {
            0 => "first",
            _ if number % 5 == 0 => {
                current.iter_mut().for_each(|row| row.temperature += 0.5);
                "a column is corrected"
            }
            _ if number % 3 == 0 => {
                let at = random.below((current.len() - one_percent) as u64) as usize;
                let fresh = readings(one_percent, 1000 + number);
                current.splice(at..at + one_percent, fresh);
                "1 % changed"
            }
            _ if number % 2 == 0 => {
                let at = random.below(current.len() as u64) as usize;
                current.splice(at..at, readings(one_percent, 2000 + number));
                "1 % inserted"
            }
            _ => {
                current.extend(readings(one_percent, 3000 + number));
                "1 % appended"
            }
        };
        (change, table(&current))
    })
}
