//! Run-length encoded vectors: only simple-sds has them.

use pentaglot_succinct::{BitQueries, Indexed, RunLengthVector};
use simple_sds::ops::{BitVec as _, PredSucc, Rank as _, Select as _, SelectZero as _};

use crate::lanes::{Field, Random, or_zero, sum};

fn leak<T>(value: T) -> &'static T {
    Box::leak(Box::new(value))
}

/// Gaps below `gap`, runs below half of it.
pub fn enter(field: &mut Field, n: u64, gap: u64) {
    let mut random = Random(5);
    let (mut runs, mut at) = (Vec::new(), 0);
    loop {
        let start = at + 1 + random.next() % gap;
        let run = 1 + random.next() % (gap / 2);
        if start + run > n {
            break;
        }
        runs.push((start, run));
        at = start + run;
    }
    let ours = leak(RunLengthVector::from_runs(n, runs.iter().copied()).unwrap());
    ours.build_index();
    let mut builder = simple_sds::rl_vector::RLBuilder::new();
    for &(start, run) in &runs {
        builder.try_set(start as usize, run as usize).unwrap();
    }
    builder.set_len(n as usize);
    let sds = leak(simple_sds::rl_vector::RLVector::from(builder));
    let count = 1 << 18;
    let index = random.below(n, count);
    let one = random.below(ours.count_ones(), count);
    let zero = random.below(ours.count_zeros(), count);
    let position = |pair: Option<(usize, usize)>| pair.map_or(0, |(_, position)| position as u64);

    field.add("rank", "ours", count, move || sum(index, |i| ours.rank(i)));
    field.add("rank", "sds", count, move || sum(index, |i| sds.rank(i as usize) as u64));
    field.add("rank batch", "ours", count, move || {
        let mut answers = [0; 32];
        index.chunks(32).fold(0_u64, |total, batch| {
            ours.rank_many(batch, &mut answers);
            answers[..batch.len()].iter().fold(total, |t, a| t.wrapping_add(*a))
        })
    });
    field.add("rank batch", "sds", count, move || sum(index, |i| sds.rank(i as usize) as u64));
    field.add("get", "ours", count, move || sum(index, |i| u64::from(ours.get(i) == Some(true))));
    field.add("get", "sds", count, move || sum(index, |i| u64::from(sds.get(i as usize))));
    field.add("select", "ours", count, move || sum(one, |k| ours.select(k).unwrap_or(0)));
    field.add("select", "sds", count, move || sum(one, |k| or_zero(sds.select(k as usize))));
    field.add("select0", "ours", count, move || sum(zero, |k| ours.select0(k).unwrap_or(0)));
    field.add("select0", "sds", count, move || sum(zero, |k| or_zero(sds.select_zero(k as usize))));
    field.add("predecessor", "ours", count, move || sum(index, |i| ours.predecessor(i).unwrap_or(0)));
    field.add("predecessor", "sds", count, move || {
        sum(index, |i| position(sds.predecessor(i as usize).next()))
    });
    field.add("iterate runs", "ours", runs.len(), move || {
        let mut total = 0_u64;
        for (start, run) in ours.runs() {
            total = total.wrapping_add(start ^ run);
        }
        total
    });
    field.add("iterate runs", "sds", runs.len(), move || {
        let mut total = 0_u64;
        for (start, run) in sds.run_iter() {
            total = total.wrapping_add((start ^ run) as u64);
        }
        total
    });
}
