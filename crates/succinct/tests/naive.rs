//! Compares every query of every structure with a naive version, on shapes that reach the special cases.

mod support;

use pentaglot_succinct::*;
use proptest::prelude::*;
use support::{NaiveBits, Random, check_wavelet};

/// Bits in stretches of different densities, so that blocks, strides and superblocks of every kind occur.
fn bits() -> impl Strategy<Value = Vec<bool>> {
    let stretch =
        (0..3000_usize, prop_oneof![Just(0_u64), Just(1), Just(20), Just(500), Just(990), Just(1000)]);
    (prop::collection::vec(stretch, 0..6), any::<u64>()).prop_map(|(stretches, seed)| {
        let mut random = Random(seed);
        let mut bits = Vec::new();
        for (len, per_mille) in stretches {
            bits.extend((0..len).map(|_| random.next() % 1000 < per_mille));
        }
        bits
    })
}

fn twin(bits: &[bool]) -> NaiveBits {
    let ones = (0_u64..).zip(bits).filter(|(_, bit)| **bit).map(|(index, _)| index).collect();
    NaiveBits::new(bits.len() as u64, ones)
}

fn runs_of(bits: &[bool]) -> Vec<(u64, u64)> {
    let mut runs = Vec::new();
    let mut at = 0;
    for run in bits.chunk_by(|a, b| a == b) {
        if run[0] {
            runs.push((at, run.len() as u64));
        }
        at += run.len() as u64;
    }
    runs
}

fn from_each<T>(structure: &T, words: &[u64], check: impl Fn(&T))
where
    T: Structure<Vec<u64>>,
{
    check(structure);
    assert_eq!(structure.to_words(Supports::Lean), words);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn plain_bit_vectors_answer_as_their_twin(bits in bits()) {
        let (vector, naive): (BitVector, _) = (bits.iter().copied().collect(), twin(&bits));
        from_each(&vector, &vector.to_words(Supports::Lean), |vector| naive.check(vector));
        for supports in [Supports::Full, Supports::Lean] {
            let words = vector.to_words(supports);
            let opened = BitVector::from_words(&mut WordCursor::new(&words[..])).unwrap();
            naive.check(&opened);
            prop_assert_eq!(opened.validate(), []);
            let from = bits.len() as u64 / 3;
            let expected = |kind: bool| (0_u64..).zip(&bits).filter(move |(index, bit)| **bit == kind && *index >= from)
                .map(|(index, _)| index).collect::<Vec<_>>();
            prop_assert_eq!(opened.ones_from(from).collect::<Vec<_>>(), expected(true));
            prop_assert_eq!(opened.zeros_from(from).collect::<Vec<_>>(), expected(false));
            prop_assert_eq!(opened.ones().fold(Vec::new(), |mut all, one| { all.push(one); all }), &naive.ones[..]);
            prop_assert!(opened.bits().iter_from(from).eq(bits.iter().copied().skip(from as usize)));
            prop_assert_eq!(opened.runs_from(0).collect::<Vec<_>>(), runs_of(&bits));
            prop_assert_eq!(opened.ones_from(u64::MAX).next(), None);
            prop_assert_eq!(opened.zeros_from(bits.len() as u64).next(), None);
        }
        let shared = BitVector::from_words(&mut WordCursor::new(SharedWords::new(vector.to_words(Supports::Full)))).unwrap();
        naive.check(&shared);
        let rebuilt = BitVector::from_runs(bits.len() as u64, runs_of(&bits)).unwrap();
        prop_assert_eq!(rebuilt.to_words(Supports::Lean), vector.to_words(Supports::Lean));
        let rebuilt = BitVector::from_positions(bits.len() as u64, naive.ones.iter().copied()).unwrap();
        prop_assert_eq!(rebuilt.to_words(Supports::Lean), vector.to_words(Supports::Lean));
    }

    #[test]
    fn run_length_vectors_answer_as_their_twin(bits in bits()) {
        let (vector, naive): (RunLengthVector, _) = (bits.iter().copied().collect(), twin(&bits));
        let runs = runs_of(&bits);
        from_each(&vector, &vector.to_words(Supports::Lean), |vector| naive.check(vector));
        prop_assert_eq!(vector.validate(), []);
        prop_assert_eq!(&vector.runs().collect::<Vec<_>>(), &runs);
        prop_assert_eq!(&vector.runs().fold(Vec::new(), |mut all, run| { all.push(run); all }), &runs);
        let from = bits.len() as u64 / 3;
        let expected = |kind: bool| (0_u64..).zip(&bits).filter(move |(index, bit)| **bit == kind && *index >= from)
            .map(|(index, _)| index).collect::<Vec<_>>();
        prop_assert_eq!(vector.ones_from(from).collect::<Vec<_>>(), expected(true));
        prop_assert_eq!(vector.zeros_from(from).collect::<Vec<_>>(), expected(false));
        prop_assert_eq!(vector.zeros().count() as u64, vector.count_zeros());
        prop_assert!(vector.bools_from(from).eq(bits.iter().copied().skip(from as usize)));
        let again = RunLengthVector::from_sorted(bits.len() as u64, naive.ones.iter().copied()).unwrap();
        prop_assert_eq!(again.to_words(Supports::AsIs), vector.to_words(Supports::AsIs));
    }

    #[test]
    fn sparse_vectors_answer_as_their_twin(bits in bits()) {
        let naive = twin(&bits);
        let vector = SparseVector::from_sorted(naive.len, &naive.ones).unwrap();
        from_each(&vector, &vector.to_words(Supports::Lean), |vector| naive.check(vector));
        prop_assert_eq!(vector.validate(), []);
        prop_assert!(!vector.is_multiset());
        for supports in [Supports::Full, Supports::Lean] {
            let words = vector.to_words(supports);
            let opened = SparseVector::from_words(&mut WordCursor::new(&words[..])).unwrap();
            naive.check(&opened);
            prop_assert_eq!(opened.validate(), []);
        }
        prop_assert!(vector.iter().eq(naive.ones.iter().copied()));
        let from = naive.ones.len() / 2;
        prop_assert!(vector.iter_from(from as u64).eq(naive.ones[from..].iter().copied()));
        let from = naive.len / 3;
        prop_assert!(vector.ones_from(from).eq(naive.ones.iter().copied().filter(|&one| one >= from)));
        prop_assert!(vector.zeros_from(from).eq((from..naive.len).filter(|&index| !bits[index as usize])));
        prop_assert_eq!(vector.zeros().count() as u64, vector.count_zeros());
        prop_assert_eq!(vector.runs().collect::<Vec<_>>(), runs_of(&bits));
        let cut = |(start, run): (u64, u64)| (start.max(from), (start + run).saturating_sub(start.max(from)));
        let runs = runs_of(&bits).into_iter().map(cut).filter(|run| run.1 > 0);
        prop_assert!(vector.runs_from(from).eq(runs));
    }

    #[test]
    fn sparse_multisets_and_other_widths_answer_as_their_twin(
        mut values in prop::collection::vec(prop_oneof![0..5_u64, 0..1000_u64, 0..100_000_u64], 0..2000),
        extra in 0..3000_u64,
        width in prop_oneof![Just(None), (1..20_u32).prop_map(Some), Just(Some(64))],
    ) {
        values.sort_unstable();
        let universe = values.last().map_or(0, |last| last + 1) + extra;
        let mut options = SparseOptions::default().multiset(true);
        options.width = width;
        let vector = SparseVector::from_sorted_with(universe, values.iter().copied(), options).unwrap();
        let naive = NaiveBits::new(universe, values);
        prop_assert_eq!(vector.is_multiset(), naive.multiset);
        naive.check(&vector);
        let words = vector.to_words(Supports::Full);
        let opened = SparseVector::from_words(&mut WordCursor::new(&words[..])).unwrap();
        prop_assert_eq!(opened.is_multiset(), naive.multiset);
        prop_assert_eq!(opened.validate(), []);
        naive.check(&opened);
    }

    #[test]
    fn sparse_vectors_in_huge_universes_answer_as_their_twin(
        values in prop::collection::btree_set(prop_oneof![any::<u64>(), 0..1000_u64, (u64::MAX - 9)..u64::MAX], 0..300),
    ) {
        let values: Vec<u64> = values.into_iter().filter(|&value| value < u64::MAX).collect();
        prop_assume!(!values.is_empty());
        let vector = SparseVector::from_sorted(u64::MAX, &values).unwrap();
        NaiveBits::new(u64::MAX, values).check(&vector);
    }

    #[test]
    fn integer_vectors_hold_what_was_pushed(width in 1..=64_u32, values in prop::collection::vec(any::<u64>(), 0..300)) {
        let mask = u64::MAX >> (64 - width);
        let mut vector = IntVector::new(width).unwrap();
        let (some, rest) = values.split_at(values.len() / 2);
        some.iter().for_each(|&value| vector.push(value));
        vector.extend(rest.iter().copied());
        let expected: Vec<u64> = values.iter().map(|value| value & mask).collect();
        prop_assert!(vector.iter().eq(expected.iter().copied()));
        prop_assert!(vector.iter().rev().eq(expected.iter().rev().copied()));
        let mut answers = vec![None; expected.len() + 1];
        vector.get_many(&(0..=expected.len() as u64).collect::<Vec<_>>(), &mut answers);
        prop_assert!(answers.iter().copied().eq(expected.iter().map(|&value| Some(value)).chain([None])));
        let index = expected.len() as u64 / 2;
        prop_assert_eq!(vector.set(index, 5), index < vector.len());
        prop_assert_eq!(vector.get(index), (index < vector.len()).then_some(5 & mask));
        prop_assert_eq!(vector.get(u64::MAX), None);
        prop_assert_eq!(vector.validate(), []);
    }

    #[test]
    fn wavelet_matrices_answer_as_their_twin(
        runs in prop::collection::vec((any::<u64>(), 1..8_usize), 0..200),
        alphabet in prop_oneof![Just(1_u64), Just(2), Just(5), Just(256), Just(300), Just(70_000)],
    ) {
        let values: Vec<u64> = runs.iter().flat_map(|&(value, run)| std::iter::repeat_n(value % alphabet, run)).collect();
        let matrix = WaveletMatrix::from_values(&values).unwrap();
        check_wavelet(&values, &matrix);
        prop_assert_eq!(matrix.validate(), []);
        prop_assert!(matrix.values().eq(values.iter().copied()));
        let words = matrix.to_words(Supports::Full);
        let opened = WaveletMatrix::from_words(&mut WordCursor::new(&words[..])).unwrap();
        check_wavelet(&values, &opened);
        prop_assert_eq!(opened.validate(), []);
        let matrix = RunLengthWaveletMatrix::from_values(&values).unwrap();
        check_wavelet(&values, &matrix);
        prop_assert_eq!(matrix.validate(), []);
        let chunks: Vec<(u64, u64)> = values.chunk_by(|a, b| a == b).map(|run| (run[0], run.len() as u64)).collect();
        prop_assert_eq!(matrix.runs_from(0).collect::<Vec<_>>(), chunks);
    }
}

/// From some size on, queries prefetch lines speculatively.
#[test]
fn large_wavelet_matrices_answer_as_their_twin() {
    let mut random = Random(11);
    // Half of it random, half sorted: estimates are good in one half, bad in the other.
    let values: Vec<u64> =
        (0..135_000).map(|_| random.next() % 65_536).chain((0..135_000).map(|index| index / 7)).collect();
    let matrix = WaveletMatrix::from_values(&values).unwrap();
    check_wavelet(&values, &matrix);
    let words = matrix.to_words(Supports::Full);
    check_wavelet(&values, &WaveletMatrix::from_words(&mut WordCursor::new(&words[..])).unwrap());
}

#[test]
fn runs_of_any_length_are_found_again() {
    let mut random = Random(5);
    let (mut at, mut runs, mut total) = (0_u64, Vec::new(), 0);
    for _ in 0..500 {
        let gap = 1 + (random.next() >> (64 - 1 - random.next() % 50));
        let run = 1 + (random.next() >> (64 - 1 - random.next() % 50));
        runs.push((at + gap, run));
        at += gap + run;
        total += run;
    }
    let vector = RunLengthVector::from_runs(u64::MAX, runs.iter().copied()).unwrap();
    assert_eq!(vector.validate(), []);
    assert_eq!(vector.runs().collect::<Vec<_>>(), runs);
    assert_eq!(vector.count_ones(), total);
    let mut before = 0;
    for &(start, run) in &runs {
        assert_eq!(vector.rank(start), before);
        assert_eq!(vector.rank(start + run), before + run);
        assert_eq!(vector.select(before), Some(start));
        assert_eq!(vector.select(before + run - 1), Some(start + run - 1));
        assert_eq!(vector.select0(start - before), Some(start + run));
        assert_eq!(vector.predecessor(start - 1), before.checked_sub(1).and_then(|rank| vector.select(rank)));
        assert_eq!(vector.successor(start - 1), Some(start));
        before += run;
    }
}

/// One bit in a hundred, and enough bits for neighbours to be searched eight words at a time.
#[test]
fn neighbours_in_large_sparse_bits_are_found() {
    let mut random = Random(23);
    let (len, mut at, mut ones) = ((1_u64 << 24) + 5000, 0, Vec::new());
    while at < len {
        ones.push(at);
        // Now and then a gap of more than eight words.
        at += 1 + random.next() % if random.next().is_multiple_of(100) { 2000 } else { 190 };
    }
    let bits = BitVector::from_positions(len, ones.iter().copied()).unwrap();
    bits.build_index();
    let near = ones.iter().step_by(97).flat_map(|&one| [one.saturating_sub(1), one, one + 1]);
    let random = std::iter::repeat_with(|| random.next() % len).take(20_000);
    for index in near.chain(random).chain(0..1500).chain(len - 1500..len + 5).chain([u64::MAX]) {
        let before = ones.partition_point(|&one| one <= index).checked_sub(1).map(|rank| ones[rank]);
        let after = ones.get(ones.partition_point(|&one| one < index)).copied();
        assert_eq!(bits.predecessor(index), before, "before {index}");
        assert_eq!(bits.successor(index), after.filter(|_| index < len), "after {index}");
    }
}

#[test]
fn clustered_bits_use_every_kind_of_stride() {
    // Dense and empty stretches of growing length; strides that span up to 2^20 bits.
    let mut raw = RawVector::new();
    let mut random = Random(3);
    for round in 0..14 {
        for _ in 0..2000 {
            raw.push(!random.next().is_multiple_of(10));
        }
        for _ in 0..(1_u64 << round) * 40 {
            raw.push_int(u64::from(random.next().is_multiple_of(97)), 64);
        }
    }
    for raw in [raw.clone(), raw.iter().map(|bit| !bit).collect()] {
        let ones: Vec<u64> =
            (0_u64..).zip(raw.iter()).filter(|(_, bit)| *bit).map(|(index, _)| index).collect();
        let naive = NaiveBits::new(raw.len(), ones);
        let vector = BitVector::from(raw);
        naive.check(&vector);
        for (rank, &one) in naive.ones.iter().enumerate() {
            assert_eq!(vector.select(rank as u64), Some(one));
        }
        for (rank, zero) in vector.zeros().enumerate() {
            assert_eq!(vector.select0(rank as u64), Some(zero));
        }
    }
}
