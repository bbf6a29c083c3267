//! Plain bit vectors.

use bitm::{Rank as _, Select as _, Select0 as _};
use pentaglot_succinct::{BitQueries, BitVector, Indexed, RawVector};
use simple_sds::ops::{PredSucc, Rank as _, Select as _, SelectZero as _};
use simple_sds::raw_vector::PushRaw;
use sux::prelude::{Rank, Select, SelectZero};

use crate::lanes::{Field, Random, or_zero, random_words, sum};

type Sux = sux::rank_sel::SelectZeroAdapt<
    sux::rank_sel::SelectAdapt<sux::rank_sel::Rank9<sux::bits::BitVec>, Box<[usize]>>,
    Box<[usize]>,
>;

fn leak<T>(value: T) -> &'static T {
    Box::leak(Box::new(value))
}

pub fn ours_of(words: &[u64], n: u64) -> &'static BitVector {
    let bits = BitVector::from(RawVector::try_from_parts(n, words.to_vec()).unwrap());
    bits.build_index();
    leak(bits)
}

pub fn sds_of(words: &[u64], n: u64) -> simple_sds::bit_vector::BitVector {
    let mut raw = simple_sds::raw_vector::RawVector::with_capacity(n as usize);
    for (index, &word) in words.iter().enumerate() {
        // SAFETY: the width is from 1 to 64.
        unsafe { raw.push_int(word, (n - 64 * index as u64).min(64) as usize) };
    }
    simple_sds::bit_vector::BitVector::from(raw)
}

fn sux_of(words: &[u64], n: u64) -> &'static Sux {
    let words: Vec<usize> = words.iter().map(|&word| word as usize).collect();
    // SAFETY: there are enough words for n bits, unused ones are zero.
    let bits = unsafe { sux::bits::BitVec::from_raw_parts(words, n as usize) };
    let rank = sux::rank_sel::Rank9::new(bits);
    leak(sux::rank_sel::SelectZeroAdapt::new(sux::rank_sel::SelectAdapt::new(rank)))
}

fn vers_of(words: &[u64], n: u64) -> &'static vers_vecs::RsVec {
    let mut bits = vers_vecs::BitVec::with_capacity(n as usize);
    for (index, &word) in words.iter().enumerate() {
        bits.append_bits(word, (n - 64 * index as u64).min(64) as usize);
    }
    leak(vers_vecs::RsVec::from_bit_vec(bits))
}

/// Bitm's structure with its faster select: samples, where the default searches the ranks.
type Bitm = bitm::RankSelect101111<bitm::CombinedSampling, bitm::CombinedSampling>;

fn bools(words: &[u64], n: u64) -> impl Iterator<Item = bool> + '_ {
    (0..n as usize).map(|index| words[index / 64] >> (index % 64) & 1 == 1)
}

fn enter_selects(field: &mut Field, rows: [&'static str; 4], words: &'static [u64], n: u64) {
    let mut random = Random(2);
    let ours = ours_of(words, n);
    let (ones, zeros) = (ours.count_ones(), ours.count_zeros());
    let count = 1 << 19;
    let one = random.below(ones, count);
    let zero = random.below(zeros, count);
    let sds = {
        let mut sds = sds_of(words, n);
        sds.enable_rank();
        sds.enable_select();
        sds.enable_select_zero();
        sds.enable_pred_succ();
        leak(sds)
    };
    let sux = sux_of(words, n);
    let vers = vers_of(words, n);
    use sucds::bit_vectors::{Select as _, prelude::*};
    let sucds =
        leak(sucds::bit_vectors::Rank9Sel::from_bits(bools(words, n)).select1_hints().select0_hints());
    let qwt: &'static qwt::bitvector::rs_wide::RSWide =
        leak(qwt::bitvector::rs_wide::RSWide::new(bools(words, n).collect::<qwt::BitVector>()));
    let bitm: &'static Bitm = leak(Bitm::from(Box::from(words)));
    let answers: &'static mut [Option<u64>] = vec![None; 1024].leak();
    let answers = std::cell::RefCell::new(answers);
    let answers: &'static std::cell::RefCell<_> = leak(answers);
    let [select1, select0, batch1, batch0] = rows;

    field.add(select1, "ours", count, move || sum(one, |k| ours.select(k).unwrap_or(0)));
    field.add(select1, "sds", count, move || sum(one, |k| or_zero(sds.select(k as usize))));
    field.add(select1, "sux", count, move || sum(one, |k| or_zero(sux.select(k as usize))));
    field.add(select1, "vers", count, move || sum(one, |k| vers.select1(k as usize) as u64));
    field.add(select1, "sucds", count, move || sum(one, |k| or_zero(sucds.select1(k as usize))));
    field.add(select1, "qwt", count, move || sum(one, |k| or_zero(qwt::SelectBin::select1(qwt, k as usize))));
    field.add(select1, "bitm", count, move || sum(one, |k| or_zero(bitm.try_select(k as usize))));
    field.add(select0, "ours", count, move || sum(zero, |k| ours.select0(k).unwrap_or(0)));
    field.add(select0, "sds", count, move || sum(zero, |k| or_zero(sds.select_zero(k as usize))));
    field.add(select0, "sux", count, move || sum(zero, |k| or_zero(sux.select_zero(k as usize))));
    field.add(select0, "vers", count, move || sum(zero, |k| vers.select0(k as usize) as u64));
    field.add(select0, "sucds", count, move || sum(zero, |k| or_zero(sucds.select0(k as usize))));
    field
        .add(select0, "qwt", count, move || sum(zero, |k| or_zero(qwt::SelectBin::select0(qwt, k as usize))));
    field.add(select0, "bitm", count, move || sum(zero, |k| or_zero(bitm.try_select0(k as usize))));
    // The others have no batched form: their single one.
    for (row, kind, questions) in [(batch1, true, one), (batch0, false, zero)] {
        field.add(row, "ours", count, move || {
            let mut answers = answers.borrow_mut();
            let mut total = 0_u64;
            for batch in questions.chunks(32) {
                if kind {
                    ours.select_many(batch, &mut answers)
                } else {
                    ours.select0_many(batch, &mut answers)
                };
                total = answers[..batch.len()].iter().fold(total, |t, a| t.wrapping_add(a.unwrap_or(0)));
            }
            total
        });
        if kind {
            field.add(row, "sds", count, move || sum(questions, |k| or_zero(sds.select(k as usize))));
            field.add(row, "sux", count, move || sum(questions, |k| or_zero(sux.select(k as usize))));
        } else {
            field.add(row, "sds", count, move || sum(questions, |k| or_zero(sds.select_zero(k as usize))));
            field.add(row, "sux", count, move || sum(questions, |k| or_zero(sux.select_zero(k as usize))));
        }
    }
    if select1 != "select1" {
        return;
    }
    let index = random.below(n, count);
    field.add("rank", "ours", count, move || sum(index, |i| ours.rank(i)));
    field.add("rank", "sds", count, move || sum(index, |i| sds.rank(i as usize) as u64));
    field.add("rank", "sux", count, move || sum(index, |i| sux.rank(i as usize) as u64));
    field.add("rank", "vers", count, move || sum(index, |i| vers.rank1(i as usize) as u64));
    field.add("rank", "sucds", count, move || sum(index, |i| or_zero(sucds.rank1(i as usize))));
    field.add("rank", "qwt", count, move || sum(index, |i| or_zero(qwt::RankBin::rank1(qwt, i as usize))));
    field.add("rank", "bitm", count, move || sum(index, |i| or_zero(bitm.try_rank(i as usize))));
    field.add("rank batch", "ours", count, move || {
        let mut answers = [0; 32];
        let mut total = 0_u64;
        for batch in index.chunks(32) {
            ours.rank_many(batch, &mut answers);
            total = answers[..batch.len()].iter().fold(total, |t, a| t.wrapping_add(*a));
        }
        total
    });
    field.add("rank batch", "sds", count, move || sum(index, |i| sds.rank(i as usize) as u64));
    field.add("rank batch", "sux", count, move || sum(index, |i| sux.rank(i as usize) as u64));

    let position = |pair: Option<(usize, usize)>| pair.map_or(0, |(_, position)| position as u64);
    field.add("predecessor", "ours", count, move || sum(index, |i| ours.predecessor(i).unwrap_or(0)));
    field.add("predecessor", "sds", count, move || {
        sum(index, |i| position(sds.predecessor(i as usize).next()))
    });
    field.add("predecessor", "sux", count, move || {
        sum(index, |i| match sux.rank(i as usize + 1) {
            0 => 0,
            rank => or_zero(sux.select(rank - 1)),
        })
    });
    field.add("successor", "ours", count, move || sum(index, |i| ours.successor(i).unwrap_or(0)));
    field.add("successor", "sds", count, move || sum(index, |i| position(sds.successor(i as usize).next())));
    field.add("successor", "sux", count, move || sum(index, |i| or_zero(sux.select(sux.rank(i as usize)))));

    let all = ones as usize;
    field.add("iterate ones", "ours", all, move || {
        let mut total = 0_u64;
        for one in ours.ones() {
            total = total.wrapping_add(one);
        }
        total
    });
    field.add("iterate ones", "sds", all, move || {
        let mut total = 0_u64;
        for (_, one) in sds.one_iter() {
            total = total.wrapping_add(one as u64);
        }
        total
    });
    field.add("iterate ones", "sux", all, move || {
        let mut total = 0_u64;
        for one in sux::traits::BitVecOps::iter_ones(sux) {
            total = total.wrapping_add(one as u64);
        }
        total
    });
    field.add("iterate ones", "vers", all, move || {
        let mut total = 0_u64;
        for one in vers.iter1() {
            total = total.wrapping_add(one as u64);
        }
        total
    });
}

/// Uniform bits of one density.
pub fn enter(field: &mut Field, n: u64, density: f64) {
    let words: &'static [u64] = random_words(n, density, 1).leak();
    enter_selects(field, ["select1", "select0", "select1 batch", "select0 batch"], words, n);
}

/// The same number of ones, nearly all of them in a tenth of the bits.
pub fn enter_clustered(field: &mut Field, n: u64) {
    let uniform: &'static [u64] = random_words(n, 0.05, 1).leak();
    let mut words = random_words(n, 0.0005, 2);
    let dense = random_words(n / 10, 0.5, 3);
    let start = words.len() / 2;
    for (word, dense) in words[start..].iter_mut().zip(dense) {
        *word |= dense;
    }
    enter_selects(
        field,
        ["uniform select1", "uniform select0", "uniform batch1", "uniform batch0"],
        uniform,
        n,
    );
    let rows = ["clustered select1", "clustered select0", "clustered batch1", "clustered batch0"];
    enter_selects(field, rows, words.leak(), n);
}
