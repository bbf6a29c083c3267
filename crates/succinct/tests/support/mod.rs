//! Common parts of the tests: words, vectors, and naive versions.
#![allow(dead_code)]

use std::fs;
use std::path::{Path, PathBuf};

use pentaglot_succinct::{BitQueries, Level, Wavelet, WaveletCore, Words};
use serde_json::Value;

/// The vectors in this repository, and the whole shared set where it is present.
pub(crate) fn vector_folders() -> Vec<PathBuf> {
    let crate_folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut folders = vec![crate_folder.join("../../testdata/sds")];
    let shared = crate_folder.join("../../../shared/vectors/sds");
    if shared.join("manifest.json").exists() {
        folders.push(shared);
    }
    folders
}

/// Entries of all manifests, each with the elements of its file.
pub(crate) fn entries() -> Vec<(Value, Vec<u64>)> {
    let mut entries = Vec::new();
    for folder in vector_folders() {
        let manifest: Value =
            serde_json::from_str(&fs::read_to_string(folder.join("manifest.json")).unwrap()).unwrap();
        for entry in manifest["entries"].as_array().unwrap() {
            let bytes = fs::read(folder.join(entry["file"].as_str().unwrap())).unwrap();
            entries.push((entry.clone(), words_of(&bytes)));
        }
    }
    entries
}

/// Little-endian elements.
pub(crate) fn words_of(bytes: &[u8]) -> Vec<u64> {
    assert_eq!(bytes.len() % 8, 0);
    bytes.as_chunks::<8>().0.iter().map(|bytes| u64::from_le_bytes(*bytes)).collect()
}

/// Little-endian bytes.
pub(crate) fn bytes_of(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// SplitMix64, as the manifests use it.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }
}

/// Arguments worth asking about, for a vector of `len` items.
pub(crate) fn arguments(len: u64) -> Vec<u64> {
    let mut all: Vec<u64> = (0..len.min(300)).collect();
    for near in [0, 63, 64, 127, 511, 512, 513, 4095, 4096, len / 2, len, 1 << 63, u64::MAX] {
        all.extend([near.wrapping_sub(1), near, near.wrapping_add(1)]);
    }
    let mut random = Random(len);
    all.extend((0..200).map(|_| random.next() % len.max(1)));
    all
}

/// The sorted positions and the universe, with naive queries.
pub(crate) struct NaiveBits {
    pub(crate) len: u64,
    pub(crate) ones: Vec<u64>,
    pub(crate) multiset: bool,
}

impl NaiveBits {
    pub(crate) fn new(len: u64, ones: Vec<u64>) -> Self {
        let multiset = ones.windows(2).any(|pair| pair[0] == pair[1]);
        NaiveBits { len, ones, multiset }
    }

    /// Only for sets in small universes.
    fn zeros(&self) -> Vec<u64> {
        let mut ones = self.ones.iter().peekable();
        (0..self.len).filter(|index| ones.next_if(|one| *one == index).is_none()).collect()
    }

    /// Compares every query of `bits`, single and batched, with the plain definition.
    pub(crate) fn check(&self, bits: &impl BitQueries) {
        let (len, ones) = (self.len, &self.ones);
        let zeros = if self.multiset || len > 1 << 20 { None } else { Some(self.zeros()) };
        assert_eq!(bits.len(), len);
        assert_eq!(bits.is_empty(), len == 0);
        assert_eq!(bits.count_ones(), ones.len() as u64);
        assert_eq!(bits.count_zeros(), len.saturating_sub(ones.len() as u64));
        let questions = arguments(len);
        let rank = |index: u64| {
            if index >= len { ones.len() as u64 } else { ones.partition_point(|&one| one < index) as u64 }
        };
        let select = |rank: u64| usize::try_from(rank).ok().and_then(|rank| ones.get(rank)).copied();
        let select0 =
            |rank: u64| usize::try_from(rank).ok().and_then(|rank| zeros.as_ref()?.get(rank)).copied();
        let get = |index: u64| (index < len).then(|| ones.binary_search(&index).is_ok());
        let rank0 = |index: u64| (!self.multiset).then(|| index.min(len) - rank(index));
        let inverse = |index: u64| {
            let bit = get(index).filter(|_| !self.multiset)?;
            Some((if bit { rank(index) } else { rank0(index)? }, bit))
        };
        let pred = |index: u64| {
            let after = ones.partition_point(|&one| one <= index);
            after.checked_sub(1).map(|rank| (rank as u64, ones[rank]))
        };
        let succ = |index: u64| {
            let rank = ones.partition_point(|&one| one < index);
            ones.get(rank).map(|&one| (rank as u64, one))
        };
        for &question in &questions {
            assert_eq!(bits.get(question), get(question), "get {question}");
            assert_eq!(bits.rank(question), rank(question), "rank {question}");
            assert_eq!(bits.rank0(question), rank0(question), "rank0 {question}");
            assert_eq!(bits.select(question), select(question), "select {question}");
            if zeros.is_some() || self.multiset {
                assert_eq!(bits.select0(question), select0(question), "select0 {question}");
            }
            assert_eq!(bits.inverse_select(question), inverse(question), "inverse_select {question}");
            assert_eq!(bits.predecessor(question), pred(question).map(|p| p.1), "predecessor {question}");
            assert_eq!(bits.successor(question), succ(question).map(|p| p.1), "successor {question}");
            assert_eq!(bits.predecessor_ranked(question), pred(question), "predecessor {question}");
            assert_eq!(bits.successor_ranked(question), succ(question), "successor {question}");
        }
        macro_rules! batched {
            ($method:ident, $naive:expr) => {
                let mut answers: Vec<_> = questions.iter().map(|_| Default::default()).collect();
                bits.$method(&questions, &mut answers);
                let expected: Vec<_> = questions.iter().map(|&question| $naive(question)).collect();
                assert_eq!(answers, expected, stringify!($method));
            };
        }
        batched!(get_many, get);
        batched!(rank_many, rank);
        batched!(rank0_many, rank0);
        batched!(select_many, select);
        if zeros.is_some() || self.multiset {
            batched!(select0_many, select0);
        }
        batched!(inverse_select_many, inverse);
        batched!(predecessor_many, |index| pred(index).map(|p| p.1));
        batched!(successor_many, |index| succ(index).map(|p| p.1));
    }
}

/// Compares every query of a wavelet matrix with the plain definition.
pub(crate) fn check_wavelet<L: Level, W: Words>(values: &[u64], matrix: &Wavelet<L, W>) {
    let len = values.len() as u64;
    assert_eq!(matrix.len(), len);
    assert_eq!(matrix.is_empty(), values.is_empty());
    let mut symbols: Vec<u64> = values.iter().copied().take(12).collect();
    symbols.extend([0, 1, 2, 255, 256, u64::MAX, values.iter().max().map_or(7, |max| max + 1)]);
    symbols.extend(values.iter().max());
    let indexes: Vec<u64> = arguments(len).into_iter().step_by(3).chain([len, u64::MAX]).collect();
    let at = |index: u64| usize::try_from(index).ok().and_then(|index| values.get(index)).copied();
    let rank = |index: u64, value: u64| {
        values.iter().take(usize::try_from(index).unwrap_or(usize::MAX)).filter(|v| **v == value).count()
            as u64
    };
    let inverse = |index: u64| at(index).map(|value| (rank(index, value), value));
    for &index in &indexes {
        assert_eq!(matrix.access(index), at(index), "access {index}");
        assert_eq!(matrix.inverse_select(index), inverse(index), "inverse_select {index}");
    }
    let mut accessed = vec![None; indexes.len()];
    matrix.access_many(&indexes, &mut accessed);
    assert!(accessed.iter().copied().eq(indexes.iter().map(|&index| at(index))));
    let mut inverted = vec![None; indexes.len()];
    matrix.inverse_select_many(&indexes, &mut inverted);
    assert!(inverted.iter().copied().eq(indexes.iter().map(|&index| inverse(index))));
    let (mut queries, mut ranks, mut selects, mut neighbours) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for &value in &symbols {
        let occurrences: Vec<u64> = (0..len).filter(|&index| at(index) == Some(value)).collect();
        assert_eq!(matrix.contains(value), !occurrences.is_empty());
        for &index in indexes.iter().step_by(5).chain([&u64::MAX]) {
            let before = occurrences.partition_point(|&occurrence| occurrence < index);
            let upto = occurrences.partition_point(|&occurrence| occurrence <= index);
            let select = usize::try_from(index).ok().and_then(|rank| occurrences.get(rank)).copied();
            let pred = upto.checked_sub(1).map(|rank| (rank as u64, occurrences[rank]));
            let succ = occurrences.get(before).map(|&occurrence| (before as u64, occurrence));
            assert_eq!(matrix.rank(index, value), before as u64, "rank {index} {value}");
            assert_eq!(matrix.select(index, value), select, "select {index} {value}");
            assert_eq!(matrix.predecessor(index, value), pred, "predecessor {index} {value}");
            assert_eq!(matrix.successor(index, value), succ, "successor {index} {value}");
            queries.push((index, value));
            ranks.push(before as u64);
            selects.push(select);
            neighbours.push((pred, succ));
        }
        for (rank, &occurrence) in occurrences.iter().enumerate().take(40) {
            assert_eq!(matrix.select(rank as u64, value), Some(occurrence));
        }
        check_core(matrix.core(), value, &occurrences, &indexes);
        assert_eq!(matrix.count(value), occurrences.len() as u64, "count {value}");
        assert!(matrix.positions_of(value).eq(occurrences.iter().copied()), "positions_of {value}");
    }
    let mut answers = vec![0; queries.len()];
    matrix.rank_many(&queries, &mut answers);
    assert_eq!(answers, ranks);
    let mut answers = vec![None; queries.len()];
    matrix.select_many(&queries, &mut answers);
    assert_eq!(answers, selects);
    let (mut before, mut after) = (vec![None; queries.len()], vec![None; queries.len()]);
    matrix.predecessor_many(&queries, &mut before);
    matrix.successor_many(&queries, &mut after);
    assert!(before.into_iter().zip(after).eq(neighbours));
    check_ranges(values, matrix, &symbols);
    assert!(matrix.iter().eq(values.iter().copied()));
    assert!(matrix.iter_from(len / 2).eq(values[values.len() / 2..].iter().copied()));
}

/// The levels alone give the same answers.
fn check_core<L: Level>(core: &WaveletCore<L>, value: u64, occurrences: &[u64], indexes: &[u64]) {
    assert_eq!(core.count(value), occurrences.len() as u64, "count {value}");
    assert!(
        core.positions_of(value).take(50).eq(occurrences.iter().copied().take(50)),
        "positions_of {value}"
    );
    assert_eq!(core.select(occurrences.len() as u64, value), None, "select {value}");
    for &index in indexes.iter().step_by(7).chain([&u64::MAX]) {
        let before = occurrences.partition_point(|&occurrence| occurrence < index);
        let upto = occurrences.partition_point(|&occurrence| occurrence <= index);
        let pred = upto.checked_sub(1).map(|rank| (rank as u64, occurrences[rank]));
        let succ = occurrences.get(before).map(|&occurrence| (before as u64, occurrence));
        assert_eq!(core.rank(index, value), before as u64, "rank {index} {value}");
        assert_eq!(core.predecessor(index, value), pred, "predecessor {index} {value}");
        assert_eq!(core.successor(index, value), succ, "successor {index} {value}");
    }
}

fn check_ranges<L: Level, W: Words>(values: &[u64], matrix: &Wavelet<L, W>, symbols: &[u64]) {
    let mut random = Random(values.len() as u64);
    for _ in 0..20 {
        let (a, b) = (random.next() % (values.len() as u64 + 2), random.next() % (values.len() as u64 + 2));
        let mut part: Vec<u64> = values[(a as usize).min(values.len())..]
            .iter()
            .take(b.saturating_sub(a) as usize)
            .copied()
            .collect();
        part.sort_unstable();
        for rank in [0, 1, part.len() as u64 / 2, part.len() as u64, u64::MAX] {
            let expected = usize::try_from(rank).ok().and_then(|rank| part.get(rank)).copied();
            assert_eq!(matrix.quantile(a..b, rank), expected);
            assert_eq!(matrix.core().quantile(a..b, rank), expected);
        }
        for pair in symbols.windows(2) {
            let range = pair[0]..pair[1];
            let expected = part.iter().filter(|value| range.contains(value)).count() as u64;
            assert_eq!(matrix.range_count(a..b, range), expected);
        }
    }
    assert_eq!(matrix.range_count(0..u64::MAX, 0..u64::MAX), values.len() as u64);
}
