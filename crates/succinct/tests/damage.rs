//! Damaged words: an error or wrong answers, never a panic, never an allocation of an unchecked size.

mod support;

use pentaglot_succinct::*;
use support::{Random, arguments, entries};

fn ask(bits: &impl BitQueries) {
    let mut questions = arguments(bits.len());
    questions.truncate(40);
    questions.extend([bits.len().wrapping_sub(1), bits.len(), bits.count_ones(), 1 << 63, u64::MAX]);
    for &question in &questions {
        let _ = (bits.get(question), bits.rank(question), bits.rank0(question), bits.select(question));
        let _ = (bits.select0(question), bits.inverse_select(question));
        let _ = (bits.predecessor_ranked(question), bits.successor_ranked(question));
    }
    let mut numbers = vec![0; questions.len()];
    let mut answers = vec![None; questions.len()];
    bits.rank_many(&questions, &mut numbers);
    bits.rank0_many(&questions, &mut answers);
    bits.select_many(&questions, &mut answers);
    bits.select0_many(&questions, &mut answers);
    bits.predecessor_many(&questions, &mut answers);
    bits.successor_many(&questions, &mut answers);
    bits.inverse_select_many(&questions, &mut vec![None; questions.len()]);
    bits.get_many(&questions, &mut vec![None; questions.len()]);
}

fn ask_matrix<L: Level, W: Words>(matrix: &Wavelet<L, W>) {
    let mut pairs = Vec::new();
    for index in [0, 1, 64, matrix.len().wrapping_sub(1), matrix.len(), u64::MAX] {
        let _ = (matrix.access(index), matrix.inverse_select(index), matrix.quantile(0..index, 3));
        for value in [0, 1, 2, 77, u64::MAX] {
            let _ = (
                matrix.rank(index, value),
                matrix.select(index, value),
                matrix.range_count(1..index, 0..value),
            );
            let _ = (matrix.predecessor(index, value), matrix.successor(index, value));
            pairs.push((index, value));
        }
    }
    matrix.rank_many(&pairs, &mut vec![0; pairs.len()]);
    matrix.select_many(&pairs, &mut vec![None; pairs.len()]);
    matrix.predecessor_many(&pairs, &mut vec![None; pairs.len()]);
    matrix.successor_many(&pairs, &mut vec![None; pairs.len()]);
    matrix.access_many(&[0, 5, u64::MAX], &mut [None; 3]);
    matrix.inverse_select_many(&[0, 5, u64::MAX], &mut [None; 3]);
    matrix.iter_from(matrix.len() / 2).take(100).for_each(drop);
}

/// Opens `words` as `kind` and runs all queries if that succeeds; returns whether it did.
fn try_everything(kind: &str, words: &[u64]) -> bool {
    fn open<'a, T: Structure<&'a [u64]>>(words: &'a [u64], ask: impl Fn(&T)) -> bool {
        let Ok(opened) = T::from_words(&mut WordCursor::new(words)) else { return false };
        ask(&opened);
        let _ = (opened.validate(), opened.parts());
        let written = opened.to_words(Supports::AsIs);
        assert_eq!(written, words[..written.len()]);
        true
    }
    match kind {
        "RawVector" => open(words, |raw: &RawVector<&[u64]>| {
            let _ = (raw.count_ones(), raw.get(u64::MAX), raw.int(raw.len(), 64), raw.iter().count());
        }),
        "IntVector" => open(words, |ints: &IntVector<&[u64]>| {
            let _ = (ints.get(0), ints.get(ints.len()), ints.minimal_width());
        }),
        "BitVector" => open(words, |bits: &BitVector<&[u64]>| {
            ask(bits);
            let _ = (bits.ones().count(), bits.zeros().count(), bits.runs_from(1).count());
        }),
        "SparseVector" => open(words, |sparse: &SparseVector<&[u64]>| {
            ask(sparse);
            let _ = (sparse.iter().count(), sparse.iter_from(3).count(), sparse.ones_from(1 << 40).count());
            let _ = (sparse.runs_from(1).count(), sparse.zeros_from(5).take(99).count());
        }),
        "RLVector" => open(words, |runs: &RunLengthVector<&[u64]>| {
            ask(runs);
            let _ = (runs.runs().count(), runs.runs_from(99).count(), runs.ones_from(5).take(99).count());
            let _ = (runs.zeros_from(5).take(99).count(), runs.bools_from(1).take(99).count());
        }),
        "WMCore<BitVector>" => open(words, |core: &WaveletCore<BitVector<&[u64]>>| ask(&core.levels()[0])),
        "WaveletMatrix" => open(words, |matrix: &WaveletMatrix<&[u64]>| {
            ask_matrix(matrix);
            matrix.values().for_each(drop);
        }),
        "RLWM" => open(words, |matrix: &RunLengthWaveletMatrix<&[u64]>| {
            ask_matrix(matrix);
            matrix.runs_from(0).take(99).for_each(drop);
        }),
        _ => false,
    }
}

fn small_files(limit: usize) -> Vec<(String, Vec<u64>)> {
    let mut files: Vec<(String, Vec<u64>)> = entries()
        .into_iter()
        .filter(|(_, words)| words.len() <= limit)
        .map(|(entry, words)| (entry["type"].as_str().unwrap().to_owned(), words))
        .collect();
    files.sort();
    files.dedup();
    files
}

#[test]
fn truncation_at_every_element_is_an_error() {
    for (kind, words) in small_files(120) {
        for end in 0..words.len() {
            assert!(
                !try_everything(&kind, &words[..end]),
                "{kind} opened from {end} of {} elements",
                words.len()
            );
        }
    }
}

#[test]
fn single_bit_flips_never_panic() {
    for (kind, mut words) in small_files(40) {
        for bit in 0..words.len() * 64 {
            words[bit / 64] ^= 1 << (bit % 64);
            try_everything(&kind, &words);
            words[bit / 64] ^= 1 << (bit % 64);
        }
    }
}

#[test]
fn garbage_elements_never_panic() {
    let mut random = Random(11);
    let extremes = [0, 1, 63, 64, 65, 1 << 32, 1 << 60, (1 << 61) + 1, 1 << 63, u64::MAX - 1, u64::MAX];
    for (kind, words) in small_files(500) {
        for _ in 0..30 {
            let mut words = words.clone();
            for _ in 0..1 + random.next() % 3 {
                let (place, value) = (random.next() as usize % words.len(), random.next());
                words[place] =
                    if value & 1 == 0 { extremes[(value >> 1) as usize % extremes.len()] } else { value };
            }
            try_everything(&kind, &words);
        }
    }
}

#[test]
fn every_flip_of_the_content_is_found() {
    // Flips that still open must be reported, except in the words of integer vectors and raw vectors, which may
    // hold anything.
    for (kind, mut words) in small_files(60) {
        if !["BitVector", "WaveletMatrix", "WMCore<BitVector>"].contains(&&kind[..]) {
            continue;
        }
        for bit in 0..words.len() * 64 {
            if kind == "BitVector" && bit / 64 == 1 || kind == "WMCore<BitVector>" && bit / 64 == 2 {
                // Another length may be as good.
                continue;
            }
            words[bit / 64] ^= 1 << (bit % 64);
            let mut cursor = WordCursor::new(&words[..]);
            let findings = match &kind[..] {
                "BitVector" => BitVector::from_words(&mut cursor).map(|opened| opened.validate()),
                "WaveletMatrix" => WaveletMatrix::from_words(&mut cursor).map(|opened| opened.validate()),
                _ => {
                    WaveletCore::<BitVector<&[u64]>>::from_words(&mut cursor).map(|opened| opened.validate())
                }
            };
            let clean = matches!(findings, Ok(ref findings) if findings.is_empty()) && cursor.left() == 0;
            assert!(!clean, "{kind}: bit {bit} of {} elements", words.len());
            words[bit / 64] ^= 1 << (bit % 64);
        }
    }
}

#[test]
fn errors_name_place_expectation_and_finding() {
    let open = |words: &[u64]| IntVector::from_words(&mut WordCursor::new(words)).unwrap_err().to_string();
    assert_eq!(open(&[3, 0, 0, 0]), "width at element 1: expected 1 to 64, found 0");
    assert_eq!(open(&[3, 65, 195, 4]), "width at element 1: expected 1 to 64, found 65");
    assert_eq!(
        open(&[u64::MAX, 64, 0, 0]),
        "len at element 0: expected at most 288230376151711743 items, found 18446744073709551615"
    );
    assert_eq!(open(&[3, 7, 22, 1, 0]), "bits.len at element 2: expected 3 items of 7 bits, 21, found 22");
    assert_eq!(
        open(&[3, 7, 21, 2, 0, 0]),
        "bits.words.len at element 3: expected 1 words for 21 bits, found 2"
    );
    assert_eq!(open(&[3, 7, 21, 1]), "bits.words at element 4: expected 1 more elements, found 0");
    assert_eq!(
        open(&[1 << 58, 64, 0, 1 << 58]),
        "len at element 0: expected at most 288230376151711743 items, found 288230376151711744"
    );
    let raw = |words: &[u64]| RawVector::from_words(&mut WordCursor::new(words)).unwrap_err().to_string();
    assert_eq!(
        raw(&[1 << 63, 1 << 57]),
        "words at element 2: expected 144115188075855872 more elements, found 0"
    );
}

#[test]
fn findings_name_place_and_path() {
    let bits: BitVector = (0..100).map(|index| index % 3 == 0).collect();
    let mut words = bits.to_words(Supports::Full);
    words[4] |= 1 << 63;
    let opened = BitVector::from_words(&mut WordCursor::new(&words[..])).unwrap();
    let findings = opened.validate();
    assert_eq!(
        (findings[0].path.as_str(), findings[0].offset, findings[0].rule),
        ("bits.words[1]", 4, "unused bits")
    );
    assert_eq!((findings[1].path.as_str(), findings[1].offset, findings[1].rule), ("ones", 0, "count"));
    // A support of another kind is skipped by its length, and only noted.
    let mut words = bits.to_words(Supports::Lean);
    words.splice(5..6, [3, 7, 8, 9]);
    let opened = BitVector::from_words(&mut WordCursor::new(&words[..])).unwrap();
    assert_eq!(opened.rank(50), 17);
    assert_eq!(opened.to_words(Supports::AsIs), words);
    let findings = opened.validate();
    assert_eq!(findings.len(), 1);
    assert_eq!((findings[0].severity, findings[0].path.as_str()), (Severity::Warning, "rank_support"));
}

#[test]
fn builders_refuse_what_does_not_fit() {
    assert!(SparseVector::from_sorted(10, &[3, 3]).is_err());
    assert!(SparseVector::from_sorted(10, &[4, 3]).is_err());
    assert!(SparseVector::from_sorted(10, &[10]).is_err());
    assert!(SparseVector::from_sorted(2, &[0, 1, 1]).is_err());
    assert!(matches!(SparseVector::from_sorted(1 << 50, &[]), Err(Error::Limit { .. })));
    assert!(matches!(SparseVector::multiset_of(&[u64::MAX]), Err(Error::Limit { .. })));
    assert!(matches!(WaveletMatrix::from_values(&[1 << 40]), Err(Error::Limit { .. })));
    assert!(matches!(WaveletMatrix::from_values(&[u64::MAX]), Err(Error::Limit { .. })));
    assert!(matches!(RunLengthWaveletMatrix::from_runs(&[(1 << 40, 1)]), Err(Error::Limit { .. })));
    assert!(RunLengthWaveletMatrix::from_runs(&[(1, u64::MAX), (0, 1)]).is_err());
    assert!(RunLengthVector::from_runs(10, [(5, 6)]).is_err());
    assert!(RunLengthVector::from_runs(u64::MAX, [(5, u64::MAX)]).is_err());
    assert!(BitVector::from_positions(10, [10]).is_err());
    assert!(BitVector::from_runs(10, [(9, 2)]).is_err());
    assert!(RawVector::try_from_parts(65, vec![0]).is_err());
    assert!(RawVector::try_from_parts(63, vec![u64::MAX]).is_err());
}

#[test]
fn indexes_of_other_data_never_panic() {
    let mut random = Random(17);
    let bits: BitVector = (0..5000).map(|_| random.next().is_multiple_of(50)).collect();
    let sparse = SparseVector::from_sorted(5000, &bits.ones().collect::<Vec<_>>()).unwrap();
    let runs: RunLengthVector = bits.bits().iter().collect();
    let mut sides = [Vec::new(), Vec::new(), Vec::new()];
    bits.write_index(&mut sides[0]).unwrap();
    sparse.write_index(&mut sides[1]).unwrap();
    runs.write_index(&mut sides[2]).unwrap();
    for round in 0..2000 {
        let mut side = sides[round % 3].clone();
        let place = random.next() as usize % side.len();
        side[place] ^= random.next() >> (random.next() % 64);
        side.truncate(side.len() - (random.next() % 2) as usize);
        let mut cursor = WordCursor::new(SharedWords::new(side));
        match round % 3 {
            0 => {
                let bits = BitVector::from(bits.bits().clone());
                let _ = bits.attach_index(&mut cursor);
                ask(&bits);
            }
            1 => {
                let sparse = SparseVector::from_words(&mut WordCursor::new(SharedWords::new(
                    sparse.to_words(Supports::Lean),
                )))
                .unwrap();
                let _ = sparse.attach_index(&mut cursor);
                ask(&sparse);
            }
            _ => {
                let runs = RunLengthVector::try_from_parts(
                    5000,
                    runs.count_ones(),
                    runs.samples().clone(),
                    runs.data().clone(),
                );
                let runs = runs.unwrap();
                let _ = runs.attach_index(&mut cursor);
                ask(&runs);
            }
        }
    }
}

/// Levels that do not belong together, and indexes of other levels; large enough for queries to look ahead.
#[test]
fn large_matrices_of_nonsense_never_panic() {
    let mut random = Random(19);
    let words = |random: &mut Random| (0..1100).map(|_| random.next()).collect::<Vec<_>>();
    let levels: Vec<RawVector> =
        (0..60).map(|_| RawVector::try_from_parts(1100 * 64, words(&mut random)).unwrap()).collect();
    let first = IntVector::from_values_packed(&[0, 70_399, 5, 70_400, 1 << 40]);
    let matrix = || {
        let levels = levels.iter().cloned().map(BitVector::from).collect();
        WaveletMatrix::try_from_parts(WaveletCore::try_from_levels(levels).unwrap(), first.clone()).unwrap()
    };
    ask_matrix(&matrix());
    let mut side = Vec::new();
    matrix().write_index(&mut side).unwrap();
    for _ in 0..20 {
        let mut side = side.clone();
        for _ in 0..20 {
            let place = random.next() as usize % side.len();
            side[place] ^= random.next() >> (random.next() % 64);
        }
        let matrix = matrix();
        let _ = matrix.attach_index(&mut WordCursor::new(SharedWords::new(side)));
        ask_matrix(&matrix);
    }
}

#[test]
fn zeros_stay_below_the_length_and_in_order() {
    let high: BitVector = [true, false].into_iter().collect();
    let past_the_end = IntVector::from_values(60, [1 << 59]).unwrap();
    let vector = SparseVector::try_from_parts(5000, high, past_the_end).unwrap();
    assert_eq!(vector.zeros().count(), 5000);
    let high: BitVector = [true, true].into_iter().chain([false; 313]).collect();
    let out_of_order = IntVector::from_values(4, [9, 3]).unwrap();
    let vector = SparseVector::try_from_parts(5000, high, out_of_order).unwrap();
    assert!(vector.zeros().is_sorted_by(|one, two| one < two));
}

#[test]
fn values_are_read_up_to_the_last_of_the_longest_sequence() {
    let matrix = RunLengthWaveletMatrix::from_runs(&[(1, u64::MAX)]).unwrap();
    assert_eq!(matrix.iter_from(u64::MAX - 2).collect::<Vec<_>>(), [1, 1]);
}
