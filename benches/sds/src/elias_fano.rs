//! Elias-Fano.

use pentaglot_succinct::{BitQueries, Indexed, SparseVector};
use simple_sds::ops::{PredSucc, Rank as _, Select as _};
use sux::traits::{IndexedSeq, Pred, Succ};

use crate::lanes::{Field, Random, or_zero, random_words, sum};

fn leak<T>(value: T) -> &'static T {
    Box::leak(Box::new(value))
}

pub fn enter(field: &mut Field, n: u64, density: f64) {
    let words = random_words(n, density, 1);
    let mut positions = Vec::new();
    for (index, mut word) in words.into_iter().enumerate() {
        while word != 0 {
            positions.push(64 * index as u64 + u64::from(word.trailing_zeros()));
            word &= word - 1;
        }
    }
    let count = 1 << 19;
    let mut random = Random(3);
    let rank = random.below(positions.len() as u64, count);
    // Between the first and the last, where everybody has an answer.
    let (first, last) = (positions[0], positions[positions.len() - 1]);
    let index: &'static [u64] =
        random.below(last - first, count).iter().map(|i| i + first).collect::<Vec<_>>().leak();
    let all = positions.len();

    let ours = leak(SparseVector::from_sorted(n, &positions).unwrap());
    ours.build_index();
    let mut builder = simple_sds::sparse_vector::SparseBuilder::new(n as usize, all).unwrap();
    builder.extend(positions.iter().map(|&position| position as usize));
    let sds = leak(simple_sds::sparse_vector::SparseVector::try_from(builder).unwrap());
    let mut builder = sux::dict::EliasFanoBuilder::<usize>::new(all, n as usize);
    positions.iter().for_each(|&position| builder.push(position as usize));
    let sux = leak(builder.build_with_seq_and_dict());
    let vers = leak(vers_vecs::EliasFanoVec::from_slice(&positions));
    let mut builder = sucds::mii_sequences::EliasFanoBuilder::new(n, all).unwrap();
    builder.extend(positions.iter().copied()).unwrap();
    let sucds = leak(builder.build().enable_rank());

    field.add("get", "ours", count, move || sum(rank, |k| ours.select(k).unwrap_or(0)));
    field.add("get", "sds", count, move || sum(rank, |k| or_zero(sds.select(k as usize))));
    field.add("get", "sux", count, move || sum(rank, |k| sux.get(k as usize) as u64));
    field.add("get", "vers", count, move || sum(rank, |k| vers.get(k as usize).unwrap_or(0)));
    field.add("get", "sucds", count, move || sum(rank, |k| sucds.select(k as usize).unwrap_or(0)));

    field.add("get batch", "ours", count, move || {
        let mut answers = [None; 32];
        rank.chunks(32).fold(0_u64, |total, batch| {
            ours.select_many(batch, &mut answers);
            answers[..batch.len()].iter().fold(total, |t, a| t.wrapping_add(a.unwrap_or(0)))
        })
    });
    field.add("get batch", "sds", count, move || sum(rank, |k| or_zero(sds.select(k as usize))));
    field.add("get batch", "sux", count, move || sum(rank, |k| sux.get(k as usize) as u64));

    field.add("rank", "ours", count, move || sum(index, |i| ours.rank(i)));
    field.add("rank", "sds", count, move || sum(index, |i| sds.rank(i as usize) as u64));
    field.add("rank", "vers", count, move || sum(index, |i| vers.rank(i)));
    field.add("rank", "sucds", count, move || sum(index, |i| or_zero(sucds.rank(i))));
    field.add("rank", "sux", count, move || {
        sum(index, |i| sux.succ(i as usize).map_or(all, |(rank, _)| rank) as u64)
    });

    let position = |pair: Option<(usize, usize)>| pair.map_or(0, |(_, position)| position as u64);
    field.add("predecessor", "ours", count, move || sum(index, |i| ours.predecessor(i).unwrap_or(0)));
    field.add("predecessor", "sds", count, move || {
        sum(index, |i| position(sds.predecessor(i as usize).next()))
    });
    field.add("predecessor", "sux", count, move || sum(index, |i| position(sux.pred(i as usize))));
    field.add("predecessor", "vers", count, move || sum(index, |i| vers.predecessor(i).unwrap_or(0)));
    field.add("predecessor", "sucds", count, move || sum(index, |i| sucds.predecessor(i).unwrap_or(0)));
    field.add("successor", "ours", count, move || sum(index, |i| ours.successor(i).unwrap_or(0)));
    field.add("successor", "sds", count, move || sum(index, |i| position(sds.successor(i as usize).next())));
    field.add("successor", "sux", count, move || sum(index, |i| position(sux.succ(i as usize))));
    field.add("successor", "vers", count, move || sum(index, |i| vers.successor(i).unwrap_or(0)));
    field.add("successor", "sucds", count, move || sum(index, |i| sucds.successor(i).unwrap_or(0)));

    macro_rules! iterate {
        ($name:literal, $iter:expr) => {
            field.add("iterate", $name, all, move || {
                let mut total = 0_u64;
                for value in $iter {
                    total = total.wrapping_add(value as u64);
                }
                total
            });
        };
    }
    iterate!("ours", ours.iter());
    iterate!("sds", sds.one_iter().map(|(_, value)| value));
    iterate!("sux", sux.iter());
    iterate!("vers", vers.iter());
    iterate!("sucds", sucds.iter(0));
}
