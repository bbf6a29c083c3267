//! simple-sds loads what we write and writes what we load.

mod support;

use pentaglot_succinct as ours;
use pentaglot_succinct::{BitQueries, Structure, Supports, WordCursor};
use proptest::prelude::*;
use simple_sds::bit_vector::BitVector;
use simple_sds::int_vector::IntVector;
use simple_sds::ops::{Access, BitVec, PredSucc, Push, Rank, Select, SelectZero, Vector, VectorIndex};
use simple_sds::raw_vector::{PushRaw, RawVector};
use simple_sds::rl_vector::{RLBuilder, RLVector};
use simple_sds::rlwm::RLWM;
use simple_sds::serialize::Serialize;
use simple_sds::sparse_vector::{SparseBuilder, SparseVector};
use simple_sds::wavelet_matrix::WaveletMatrix;
use support::{bytes_of, words_of};

fn theirs_to_words(theirs: &impl Serialize) -> Vec<u64> {
    let mut bytes = Vec::new();
    theirs.serialize(&mut bytes).unwrap();
    words_of(&bytes)
}

fn load<T: Serialize>(words: &[u64]) -> T {
    let bytes = bytes_of(words);
    let mut reader = &bytes[..];
    let loaded = T::load(&mut reader).unwrap();
    assert!(reader.is_empty());
    loaded
}

fn same_answers<'a, T>(theirs: &'a T, ours: &impl BitQueries)
where
    T: BitVec<'a> + Rank<'a> + Select<'a> + SelectZero<'a> + PredSucc<'a>,
{
    let len = theirs.len();
    assert_eq!(ours.len(), len as u64);
    for index in (0..len).step_by(1 + len / 500).chain([len, len + 1]) {
        let at = index as u64;
        assert_eq!(ours.get(at), (index < len).then(|| theirs.get(index)));
        assert_eq!(ours.rank(at), theirs.rank(index) as u64);
        assert_eq!(ours.rank0(at), Some(theirs.rank_zero(index) as u64));
        assert_eq!(ours.select(at), theirs.select(index).map(|p| p as u64));
        assert_eq!(ours.select0(at), theirs.select_zero(index).map(|p| p as u64));
        assert_eq!(
            ours.inverse_select(at),
            theirs.inverse_select(index).map(|(rank, bit)| (rank as u64, bit))
        );
        let first =
            |pair: Option<(usize, usize)>| pair.map(|(rank, position)| (rank as u64, position as u64));
        assert_eq!(ours.predecessor_ranked(at), first(theirs.predecessor(index).next()));
        assert_eq!(ours.successor_ranked(at), first(theirs.successor(index).next()));
    }
}

fn bits() -> impl Strategy<Value = Vec<bool>> {
    (0..20_000_usize, 0..=1000_u64, 0..=1000_u64, any::<u64>()).prop_map(|(len, low, high, seed)| {
        let mut random = support::Random(seed);
        (0..len).map(|index| random.next() % 1000 < if index < len / 2 { low } else { high }).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn raw_and_integer_vectors_are_the_same_bytes(bits in bits(), width in 1..=64_usize) {
        let (mut theirs, mut items) = (RawVector::new(), IntVector::new(width).unwrap());
        bits.iter().for_each(|&bit| theirs.push_bit(bit));
        for index in 0..bits.len() as u64 {
            items.push(index.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (64 - width));
        }
        let raw: ours::RawVector = bits.iter().copied().collect();
        prop_assert_eq!(raw.to_words(Supports::AsIs), theirs_to_words(&theirs));
        prop_assert_eq!(load::<RawVector>(&raw.to_words(Supports::AsIs)), theirs);
        let words = theirs_to_words(&items);
        let opened = ours::IntVector::from_words(&mut WordCursor::new(&words[..])).unwrap();
        prop_assert!(opened.iter().eq(items.iter()));
        prop_assert_eq!(load::<IntVector>(&opened.to_words(Supports::Full)), items);
    }

    #[test]
    fn bit_vectors_are_the_same_bytes_and_answers(bits in bits()) {
        let mut theirs: BitVector = bits.iter().copied().collect();
        let vector: ours::BitVector = bits.iter().copied().collect();
        prop_assert_eq!(vector.to_words(Supports::Lean), theirs_to_words(&theirs));
        theirs.enable_rank();
        theirs.enable_select();
        theirs.enable_select_zero();
        theirs.enable_pred_succ();
        let words = theirs_to_words(&theirs);
        prop_assert_eq!(&vector.to_words(Supports::Full), &words);
        prop_assert_eq!(&load::<BitVector>(&vector.to_words(Supports::Full)), &theirs);
        let opened = ours::BitVector::from_words(&mut WordCursor::new(&words[..])).unwrap();
        same_answers(&theirs, &opened);
    }

    #[test]
    fn sparse_vectors_are_the_same_bytes_and_answers(bits in bits(), spread in 1..5000_u64) {
        let ones: Vec<usize> = (0..bits.len()).filter(|&index| bits[index]).map(|index| index * spread as usize).collect();
        let universe = bits.len() * spread as usize;
        let mut builder = SparseBuilder::new(universe, ones.len()).unwrap();
        builder.extend(ones.iter().copied());
        let theirs = SparseVector::try_from(builder).unwrap();
        let positions: Vec<u64> = ones.iter().map(|&one| one as u64).collect();
        let vector = ours::SparseVector::from_sorted(universe as u64, &positions).unwrap();
        let words = theirs_to_words(&theirs);
        prop_assert_eq!(&vector.to_words(Supports::Full), &words);
        prop_assert_eq!(load::<SparseVector>(&vector.to_words(Supports::Full)), theirs.clone());
        prop_assert_eq!(load::<SparseVector>(&vector.to_words(Supports::Lean)), theirs.clone());
        same_answers(&theirs, &ours::SparseVector::from_words(&mut WordCursor::new(&words[..])).unwrap());
    }

    #[test]
    fn multisets_are_the_same_bytes(mut values in prop::collection::vec(0..3000_usize, 0..2000)) {
        values.sort_unstable();
        let theirs = SparseVector::try_from_iter(values.iter().copied()).unwrap();
        let values: Vec<u64> = values.iter().map(|&value| value as u64).collect();
        let vector = ours::SparseVector::multiset_of(&values).unwrap();
        prop_assert_eq!(vector.to_words(Supports::Full), theirs_to_words(&theirs));
        prop_assert_eq!(vector.is_multiset(), theirs.is_multiset());
    }

    #[test]
    fn run_length_vectors_are_the_same_bytes_and_answers(bits in bits()) {
        let mut builder = RLBuilder::new();
        let vector: ours::RunLengthVector = bits.iter().copied().collect();
        for (start, len) in vector.runs() {
            builder.try_set(start as usize, len as usize).unwrap();
        }
        builder.set_len(bits.len());
        let theirs = RLVector::from(builder);
        let words = theirs_to_words(&theirs);
        prop_assert_eq!(&vector.to_words(Supports::Full), &words);
        prop_assert_eq!(load::<RLVector>(&vector.to_words(Supports::Full)), theirs.clone());
        same_answers(&theirs, &ours::RunLengthVector::from_words(&mut WordCursor::new(&words[..])).unwrap());
    }

    #[test]
    fn wavelet_matrices_are_the_same_bytes_and_answers(
        runs in prop::collection::vec((any::<u64>(), 1..20_u64), 0..300),
        alphabet in prop_oneof![Just(1_u64), Just(4), Just(200), Just(5000)],
    ) {
        let runs: Vec<(u64, u64)> = runs.into_iter().map(|(value, run)| (value % alphabet, run)).collect();
        let values: Vec<u64> = runs.iter().flat_map(|&(value, run)| std::iter::repeat_n(value, run as usize)).collect();
        let theirs = WaveletMatrix::from(values.clone());
        let matrix = ours::WaveletMatrix::from_values(&values).unwrap();
        let words = theirs_to_words(&theirs);
        prop_assert_eq!(&matrix.to_words(Supports::Full), &words);
        prop_assert_eq!(load::<WaveletMatrix>(&matrix.to_words(Supports::Full)), theirs.clone());
        for index in (0..values.len()).step_by(7) {
            let value = values[index];
            let at = index as u64;
            prop_assert_eq!(matrix.rank(at, value), theirs.rank(index, value) as u64);
            prop_assert_eq!(matrix.select(at / 3, value), theirs.select(index / 3, value).map(|p| p as u64));
        }
        let runs: Vec<(u64, usize)> = runs.iter().map(|&(value, run)| (value, run as usize)).collect();
        let theirs = RLWM::from(runs);
        let matrix = ours::RunLengthWaveletMatrix::from_values(&values).unwrap();
        prop_assert_eq!(&matrix.to_words(Supports::Full), &theirs_to_words(&theirs));
        prop_assert_eq!(theirs.len(), values.len());
        prop_assert_eq!(load::<RLWM>(&matrix.to_words(Supports::Lean)), theirs);
    }
}
