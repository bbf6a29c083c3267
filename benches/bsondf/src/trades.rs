//! A table of trades: time, symbol, price, quantity, and perhaps a note.

use std::sync::Arc;

use arrow_array::types::Int32Type;
use arrow_array::{
    ArrayRef, DictionaryArray, Float64Array, Int32Array, RecordBatch, StringArray, TimestampNanosecondArray,
};

/// A small generator of random numbers (SplitMix64).
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % end
    }
}

/// So many trades of one feed in eight symbols: some milliseconds apart, at a price in cents that walks, in lots.
pub fn table(rows: usize, note: bool) -> RecordBatch {
    let mut random = Random(7);
    let mut time = 1_567_843_200_000_000_000i64;
    let times: TimestampNanosecondArray = (0..rows)
        .map(|_| {
            time += (random.below(39) as i64 + 1) * 1_000_000;
            Some(time)
        })
        .collect();
    let symbols: Vec<i32> = (0..rows).map(|_| random.below(8) as i32).collect();
    let mut cents = 10_000i64;
    let prices = symbols.iter().map(|_| {
        cents = (cents + random.below(5) as i64 - 2).max(1);
        cents as f64 / 100.0
    });
    let prices: Vec<f64> = prices.collect();
    let quantities: Vec<i32> = (0..rows).map(|_| (random.below(19) as i32 + 1) * 100).collect();
    let names: StringArray = (0..8).map(|symbol| Some(format!("SYM{symbol:03}"))).collect();
    let symbols = DictionaryArray::<Int32Type>::new(symbols.into(), Arc::new(names));
    let mut columns: Vec<(&str, ArrayRef)> = vec![
        ("time", Arc::new(times)),
        ("symbol", Arc::new(symbols)),
        ("price", Arc::new(Float64Array::from(prices))),
        ("quantity", Arc::new(Int32Array::from(quantities))),
    ];
    if note {
        const NOTES: [&str; 6] =
            ["", "opening", "block trade", "odd lot", "late report", "crossed by the desk"];
        let notes: StringArray = (0..rows)
            .map(|row| Some(format!("{} {}", NOTES[random.below(6) as usize], row % 1000)))
            .collect();
        columns.push(("note", Arc::new(notes)));
    }
    RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, array)| (name, array, true)))
        .expect("columns of one length")
}
