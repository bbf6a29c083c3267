//! Compares the fast paths with sorted arrays, and checks that they are used.

use super::buckets::{Buckets, Lanes};
use super::*;
use crate::bits::low_mask;
use crate::cpu::fast;

fn random(seed: u64) -> impl FnMut() -> u64 {
    let mut state = seed;
    move || {
        state = state.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(0x1405_7B7E_F767_814F);
        state ^ (state >> 29)
    }
}

#[test]
fn low_parts_are_counted_as_by_a_plain_loop() {
    dispatch!(_isa => ());
    let Some(isa) = fast() else { return };
    for width in 1..=57 {
        let mut next = random(u64::from(width));
        // Sorted sequences, in half of which all values are small.
        let shift = next() % 2 * u64::from(width / 2);
        let mut items: Vec<u64> = (0..40).map(|_| (next() & low_mask(width)) >> shift).collect();
        items.chunks_mut(10).for_each(<[u64]>::sort_unstable);
        let low = IntVector::from_values(width, items.iter().copied().chain([0; 64])).unwrap();
        let lanes = Lanes::new(width);
        for rank in 0..40_usize {
            for count in 0..=10 - rank % 10 {
                let bucket = &items[rank..rank + count];
                let limits = bucket.iter().flat_map(|&item| [item, item + 1]);
                for limit in limits.chain([0, 1 << width]) {
                    let below = bucket.iter().filter(|&&item| item < limit).count() as u64;
                    let found = lanes.count_below(isa, low.bits().words(), rank as u64, count as u64, limit);
                    assert_eq!(found, Some(below), "width {width} rank {rank} of {bucket:?} below {limit}");
                }
            }
        }
        assert_eq!(lanes.count_below(isa, low.bits().words(), u64::MAX, 1, 0), None);
    }
}

#[test]
fn buckets_start_where_they_start_or_nothing_is_said() {
    dispatch!(_isa => ());
    let Some(isa) = fast() else { return };
    let mut next = random(3);
    let even: Vec<u64> = (0..500).map(|_| next()).collect();
    let crowded: Vec<u64> = (0..500).map(|i| if i % 100 < 20 { u64::MAX } else { next() }).collect();
    for (words, answered) in [(&even, 15_000), (&crowded, 8_000)] {
        let len = 500 * 64 - 9;
        let zeros: Vec<u64> = (0..len).filter(|&i| words[(i / 64) as usize] >> (i % 64) & 1 == 0).collect();
        let buckets = Buckets::build(isa, words, len, zeros.len() as u64, 5);
        let found = zeros.iter().zip(1..).filter(|&(&zero, bucket)| {
            let start =
                buckets.find(isa, words, &[], bucket).map(|found| found.from.wrapping_add(found.start));
            assert!(
                start.is_none_or(|start| start == zero + 1),
                "bucket {bucket}: {start:?}, not {zero} + 1"
            );
            start.is_some()
        });
        assert!(found.count() > answered);
        let first = buckets.find(isa, words, &[], 0);
        let first = first.map(|found| (found.from.wrapping_add(found.start), found.end - found.start));
        assert_eq!(first, (zeros[0] < 63).then_some((0, zeros[0])));
        for bucket in [zeros.len() as u64 + 200, u64::MAX] {
            assert!(buckets.find(isa, words, &[], bucket).is_none());
        }
    }
}

#[test]
fn every_width_and_density_answers_as_a_sorted_array() {
    for (count, universe, width) in [
        (3000, 10_000, None),
        (3000, 30_000, None),
        (2000, 1 << 22, None),
        (1500, 1 << 36, None),
        (1500, 1 << 50, None),
        (1000, 1 << 20, Some(3)),
        (1000, u64::MAX, Some(57)),
        (1000, u64::MAX, Some(58)),
        (300, u64::MAX, Some(64)),
    ] {
        for clustered in [false, true] {
            let mut next = random(count ^ universe);
            let mut values: Vec<u64> = (0..count)
                .map(|i| if clustered { next() % 7000 + i % 3 * (universe / 3) } else { next() })
                .map(|value| value % universe)
                .collect();
            values.sort_unstable();
            let options = SparseOptions { multiset: true, width };
            let vector = SparseVector::from_sorted_with(universe, values.iter().copied(), options).unwrap();
            vector.build_index();
            let mut asked: Vec<u64> = (0..1000).map(|_| next() % universe).collect();
            asked.extend(values.iter().flat_map(|&v| [v, v.saturating_sub(1), v.saturating_add(1)]));
            asked.extend([0, universe - 1, universe, u64::MAX]);
            let pairs = |rank: usize| Some((rank as u64, *values.get(rank)?));
            for &value in &asked {
                let below = values.partition_point(|&v| v < value);
                let upto = values.partition_point(|&v| v <= value);
                let inside = value < universe;
                assert_eq!(vector.rank(value), below as u64, "rank({value})");
                assert_eq!(vector.predecessor_ranked(value), upto.checked_sub(1).and_then(pairs));
                assert_eq!(vector.successor_ranked(value), pairs(below).filter(|_| inside));
                assert_eq!(vector.get(value), inside.then_some(below < upto));
            }
            let mut many = vec![None; asked.len()];
            vector.predecessor_many(&asked, &mut many);
            assert!(many.iter().zip(&asked).all(|(&found, &value)| found == vector.predecessor(value)));
            vector.successor_many(&asked, &mut many);
            assert!(many.iter().zip(&asked).all(|(&found, &value)| found == vector.successor(value)));
            for (rank, &value) in values.iter().enumerate() {
                assert_eq!(vector.select(rank as u64), Some(value));
            }
            assert_eq!(vector.iter().collect::<Vec<_>>(), values);
            assert_eq!(vector.iter_from(count / 2).collect::<Vec<_>>(), values[count as usize / 2..]);
        }
    }
}
