//! Where columns are cut.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, BinaryArray, Int64Array, NullArray, StringArray};

use super::super::column::{ColumnCutter, Plain};
use super::super::cut::{self, Ends, MAX_BYTES, MEAN_BYTES, MIN_BYTES};
use super::Random;

fn cut(pieces: &[ArrayRef]) -> Vec<Plain> {
    let mut cutter = ColumnCutter::new(pieces[0].data_type(), false);
    let mut chunks = Vec::new();
    pieces.iter().for_each(|piece| cutter.push(piece, &mut chunks).unwrap());
    cutter.finish(&mut chunks);
    chunks
}

fn random_bytes(count: usize, seed: u64) -> Vec<u8> {
    let mut random = Random::new(seed);
    (0..count).map(|_| random.next().to_le_bytes()[3]).collect()
}

#[test]
fn chunks_have_about_the_mean_length() {
    let mut random = Random::new(1);
    let array: ArrayRef = Arc::new(Int64Array::from_iter_values((0..1 << 20).map(|_| random.next() as i64)));
    let chunks = cut(&[array]);
    let lengths: Vec<usize> = chunks.iter().map(|chunk| chunk.bytes.len() - 1).collect();
    let mean = lengths.iter().sum::<usize>() / lengths.len();
    assert!((MEAN_BYTES * 3 / 4..MEAN_BYTES * 3 / 2).contains(&mean), "{mean}");
    let inner = &lengths[..lengths.len() - 1];
    assert!(inner.iter().all(|length| (MIN_BYTES..=MAX_BYTES).contains(length)));
    assert!(lengths.iter().all(|length| length % 8 == 0), "cut at values");
}

/// Another cut would share nothing with what is stored already.
#[test]
fn cut_points_do_not_change() {
    let bytes = random_bytes(200_000, 7);
    let (mut points, mut start) = (Vec::new(), 0);
    while let Some(length) = cut::point(&bytes[start..]) {
        start += length;
        points.push(start);
    }
    assert_eq!(cut::point(&bytes[..100]), None, "more bytes decide");
    assert_eq!(cut::point(&vec![0; 1 << 20]), Some(MAX_BYTES), "a constant has no cut");
    assert_eq!(points, [17110, 34799, 54199, 71677, 89430, 107_772, 124_622, 147_946, 165_594, 191_286]);
}

#[test]
fn batches_do_not_move_cuts() {
    let mut random = Random::new(3);
    let texts: Vec<Option<String>> = (0..60_000)
        .map(|_| {
            (random.below(10) > 0)
                .then(|| random.next() >> random.below(60))
                .map(|number| format!("{number:x}"))
        })
        .collect();
    let whole: ArrayRef = Arc::new(StringArray::from(texts.clone()));
    let expected = cut(&[Arc::clone(&whole)]);
    assert!(expected.len() > 10);
    for step in [1, 97, 8192] {
        let pieces: Vec<ArrayRef> =
            (0..texts.len()).step_by(step).map(|at| whole.slice(at, step.min(texts.len() - at))).collect();
        let found = cut(&pieces);
        assert!(found.iter().map(|chunk| &chunk.bytes).eq(expected.iter().map(|chunk| &chunk.bytes)));
    }
}

#[test]
fn a_value_longer_than_a_chunk_is_alone() {
    let long = vec![7u8; 300_000];
    let values: Vec<&[u8]> = vec![b"a", b"b", &long, b"c", &long, &long, b"d"];
    let rows: Vec<u32> = cut(&[Arc::new(BinaryArray::from(values))]).iter().map(|chunk| chunk.rows).collect();
    assert_eq!(rows, [2, 1, 1, 1, 1, 1]);
    let ends = Ends(&[10, 20, 100_000]);
    assert_eq!(cut::end(&vec![1; 100_000], 0, &ends, true), Some(20));
    assert_eq!(cut::end(&vec![1; 100_000], 20, &ends, true), Some(100_000));
}

#[test]
fn values_without_bytes_are_counted() {
    let chunks = cut(&[Arc::new(NullArray::new(200_000))]);
    assert_eq!(chunks.iter().map(|chunk| chunk.rows).collect::<Vec<_>>(), [65_536, 65_536, 65_536, 3392]);
    assert_eq!(chunks[0].bytes.len(), 1 + 65_536 / 8);
    assert!(chunks[0].bytes == chunks[1].bytes);
}
