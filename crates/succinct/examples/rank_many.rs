//! Time for the ranks of many positions: `rank_many plain|sparse FILE POSITIONS`, where `POSITIONS` has eight bytes for each.
//!
//! It prints nanoseconds for each position, and the sum of the ranks.

use std::time::Instant;

use pentaglot_succinct::{BitQueries, BitVector, SharedWords, SparseVector, Structure, WordCursor};

fn words(path: &str) -> std::io::Result<Vec<u64>> {
    let bytes = std::fs::read(path)?;
    Ok(bytes.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word)).collect())
}

fn time(bits: &impl BitQueries, positions: &[u64]) {
    bits.rank(0);
    let start = Instant::now();
    let mut ranks = vec![0; positions.len()];
    bits.rank_many(positions, &mut ranks);
    let taken = start.elapsed();
    let sum: u64 = ranks.iter().sum();
    println!("{} {sum}", taken.as_nanos() as f64 / positions.len().max(1) as f64);
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [kind, file, positions] = arguments.as_slice() else {
        return Err("expected plain or sparse, a file, and a file of positions".into());
    };
    let mut cursor = WordCursor::new(SharedWords::new(words(file)?));
    let positions = words(positions)?;
    match kind.as_str() {
        "plain" => time(&BitVector::from_words(&mut cursor)?, &positions),
        _ => time(&SparseVector::from_words(&mut cursor)?, &positions),
    }
    Ok(())
}
