//! Wavelet matrices.

use pentaglot_succinct::{Indexed, WaveletMatrix};
use qwt::{AccessUnsigned, RankUnsigned, SelectUnsigned};
use simple_sds::ops::{Access, VectorIndex};

use crate::lanes::{Field, Random, or_zero, sum};

fn leak<T>(value: T) -> &'static T {
    Box::leak(Box::new(value))
}

fn compact(values: &[u64]) -> sucds::int_vectors::CompactVector {
    sucds::int_vectors::CompactVector::from_slice(values)
}

type Sucds = sucds::char_sequences::WaveletMatrix<sucds::bit_vectors::Rank9Sel>;

fn sucds_of(values: &[u64]) -> Sucds {
    Sucds::new(compact(values), |bits| {
        sucds::bit_vectors::Rank9Sel::new(bits).select1_hints().select0_hints()
    })
    .unwrap()
}

fn ours_of(values: &[u64]) -> WaveletMatrix {
    let matrix = WaveletMatrix::from_values(values).unwrap();
    matrix.build_index();
    matrix
}

pub fn enter(field: &mut Field, n: u64, alphabet: u64) {
    let mut random = Random(4);
    let values: &'static [u64] = random.below(alphabet, n as usize);
    let width = 64 - (alphabet - 1).leading_zeros() as u16;
    let count = 1 << 17;
    let index = random.below(n, count);
    let queries: &'static [(u64, u64)] =
        index.iter().map(|&i| (i, values[(i * 7 % n) as usize])).collect::<Vec<_>>().leak();
    let selects: &'static [(u64, u64)] =
        queries.iter().map(|&(i, value)| (i % (n / alphabet / 2).max(1), value)).collect::<Vec<_>>().leak();
    let order: &'static [u64] = (0..count as u64).collect::<Vec<_>>().leak();

    let ours = leak(ours_of(values));
    let sds = leak(simple_sds::wavelet_matrix::WaveletMatrix::from(values.to_vec()));
    let vers = leak(vers_vecs::WaveletMatrix::from_slice(values, width));
    let sucds = leak(sucds_of(values));
    let narrow: &'static [u32] = values.iter().map(|&value| value as u32).collect::<Vec<_>>().leak();
    let qwt = leak(qwt::QWT256Pfs::from(narrow.to_vec()));

    field.add("access", "ours", count, move || sum(index, |i| ours.access(i).unwrap_or(0)));
    field.add("access", "sds", count, move || sum(index, |i| sds.get(i as usize)));
    field.add("access", "vers", count, move || sum(index, |i| vers.get_u64(i as usize).unwrap_or(0)));
    field.add("access", "sucds", count, move || sum(index, |i| sucds.access(i as usize).unwrap_or(0)));
    field.add("access", "qwt", count, move || sum(index, |i| u64::from(qwt.get(i as usize).unwrap_or(0))));
    field.add("access batch", "ours", count, move || {
        let mut answers = [None; 32];
        index.chunks(32).fold(0_u64, |total, batch| {
            ours.access_many(batch, &mut answers);
            answers[..batch.len()].iter().fold(total, |t, a| t.wrapping_add(a.unwrap_or(0)))
        })
    });
    field.add("access batch", "sds", count, move || sum(index, |i| sds.get(i as usize)));
    field.add("access batch", "qwt", count, move || {
        sum(index, |i| u64::from(qwt.get(i as usize).unwrap_or(0)))
    });

    let query = |q: u64| queries[q as usize];
    field.add("rank", "ours", count, move || sum(order, |q| ours.rank(query(q).0, query(q).1)));
    field.add("rank", "sds", count, move || sum(order, |q| sds.rank(query(q).0 as usize, query(q).1) as u64));
    field.add("rank", "vers", count, move || {
        sum(order, |q| or_zero(vers.rank_u64(query(q).0 as usize, query(q).1)))
    });
    field.add("rank", "sucds", count, move || {
        sum(order, |q| or_zero(sucds.rank(query(q).0 as usize, query(q).1)))
    });
    field.add("rank", "qwt", count, move || {
        sum(order, |q| or_zero(qwt.rank_prefetch(query(q).1 as u32, query(q).0 as usize)))
    });
    field.add("rank batch", "ours", count, move || {
        let mut answers = [0; 32];
        queries.chunks(32).fold(0_u64, |total, batch| {
            ours.rank_many(batch, &mut answers);
            answers[..batch.len()].iter().fold(total, |t, a| t.wrapping_add(*a))
        })
    });
    field.add("rank batch", "sds", count, move || {
        sum(order, |q| sds.rank(query(q).0 as usize, query(q).1) as u64)
    });
    field.add("rank batch", "qwt", count, move || {
        sum(order, |q| or_zero(qwt.rank_prefetch(query(q).1 as u32, query(q).0 as usize)))
    });
    field.add("rank batch", "qwt plain", count, move || {
        sum(order, |q| or_zero(qwt.rank(query(q).1 as u32, query(q).0 as usize)))
    });

    let query = |q: u64| selects[q as usize];
    field.add("select", "ours", count, move || {
        sum(order, |q| ours.select(query(q).0, query(q).1).unwrap_or(0))
    });
    field.add("select", "sds", count, move || {
        sum(order, |q| or_zero(sds.select(query(q).0 as usize, query(q).1)))
    });
    field.add("select", "qwt", count, move || {
        sum(order, |q| or_zero(qwt.select(query(q).1 as u32, query(q).0 as usize)))
    });
    field.add("select batch", "ours", count, move || {
        let mut answers = [None; 32];
        selects.chunks(32).fold(0_u64, |total, batch| {
            ours.select_many(batch, &mut answers);
            answers[..batch.len()].iter().fold(total, |t, a| t.wrapping_add(a.unwrap_or(0)))
        })
    });
    field.add("select batch", "sds", count, move || {
        sum(order, |q| or_zero(sds.select(query(q).0 as usize, query(q).1)))
    });

    let all = n as usize;
    field.add("iterate", "ours", all, move || {
        let mut total = 0_u64;
        for value in ours.values() {
            total = total.wrapping_add(value);
        }
        total
    });
    field.add("iterate", "sds", all, move || {
        let mut total = 0_u64;
        for value in sds.iter() {
            total = total.wrapping_add(value);
        }
        total
    });
    // Ready for all queries, ours too; what each answers at the end shows that it was built.
    field.add("build", "ours", all, move || ours_of(values).access(n / 2).unwrap_or(0));
    field.add("build", "sds", all, move || {
        simple_sds::wavelet_matrix::WaveletMatrix::from(values.to_vec()).get(n as usize / 2)
    });
    field.add("build", "vers", all, move || {
        vers_vecs::WaveletMatrix::from_slice(values, width).get_u64(n as usize / 2).unwrap_or(0)
    });
    field.add("build", "sucds", all, move || sucds_of(values).access(n as usize / 2).unwrap_or(0));
    field.add("build", "qwt", all, move || {
        u64::from(qwt::QWT256Pfs::from(narrow.to_vec()).get(n as usize / 2).unwrap_or(0))
    });
}
