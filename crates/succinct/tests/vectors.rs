//! Every golden file: opened in place, written back byte for byte, rebuilt, its answers equal.

mod support;

use pentaglot_succinct::*;
use serde_json::Value;
use support::entries;

/// A number, or a number in a string; `None` for null in either form.
fn number(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| value.as_str().and_then(|text| text.parse().ok()))
}

fn pair(value: &Value) -> Option<(u64, u64)> {
    Some((number(&value[0])?, number(&value[1])?))
}

fn rows<'a>(entry: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> {
    entry["expected"][key].as_array().into_iter().flatten()
}

fn open<'a, T: Structure<&'a [u64]>>(name: &str, words: &'a [u64]) -> T {
    let mut cursor = WordCursor::new(words);
    let opened = T::from_words(&mut cursor).unwrap_or_else(|error| panic!("{name}: {error}"));
    assert_eq!(cursor.left(), 0, "{name}");
    assert_eq!(opened.to_words(Supports::AsIs), words, "{name}");
    assert_eq!(opened.size_in_elements(Supports::AsIs), words.len() as u64, "{name}");
    assert_eq!(opened.validate(), [], "{name}");
    let mut next = 0;
    for part in opened.parts() {
        assert_eq!(part.start, next, "{name} {}", part.path);
        next += part.len;
    }
    assert_eq!(next, words.len() as u64, "{name}: parts cover the structure");
    let lean = opened.to_words(Supports::Lean);
    assert_eq!(opened.size_in_elements(Supports::Lean), lean.len() as u64);
    let again = T::from_words(&mut WordCursor::new(words)).unwrap();
    assert_eq!(again.to_words(Supports::Lean), lean);
    opened
}

fn check_bits(name: &str, entry: &Value, bits: &impl BitQueries) {
    let expected = &entry["expected"];
    assert_eq!(Some(bits.count_ones()), number(&expected["ones"]), "{name}");
    if let Some(len) = number(&expected["len"]) {
        assert_eq!(bits.len(), len, "{name}");
    }
    for row in rows(entry, "get") {
        assert_eq!(bits.get(number(&row[0]).unwrap()), row[1].as_bool(), "{name} get {row}");
    }
    for row in rows(entry, "rank") {
        assert_eq!(Some(bits.rank(number(&row[0]).unwrap())), number(&row[1]), "{name} rank {row}");
    }
    for row in rows(entry, "select") {
        assert_eq!(bits.select(number(&row[0]).unwrap()), number(&row[1]), "{name} select {row}");
    }
    for row in rows(entry, "select_zero") {
        assert_eq!(bits.select0(number(&row[0]).unwrap()), number(&row[1]), "{name} select0 {row}");
    }
    for row in rows(entry, "inverse_select") {
        let answer = row[1].as_array().map(|answer| (number(&answer[0]).unwrap(), answer[1] == true));
        assert_eq!(bits.inverse_select(number(&row[0]).unwrap()), answer, "{name} inverse_select {row}");
    }
    for row in rows(entry, "pred") {
        assert_eq!(bits.predecessor_ranked(number(&row[0]).unwrap()), pair(&row[1]), "{name} pred {row}");
    }
    for row in rows(entry, "succ") {
        assert_eq!(bits.successor_ranked(number(&row[0]).unwrap()), pair(&row[1]), "{name} succ {row}");
    }
    for row in rows(entry, "rank_pred_succ") {
        let index = number(&row[0]).unwrap();
        assert_eq!(Some(bits.rank(index)), number(&row[1]), "{name} rank {row}");
        assert_eq!(bits.predecessor(index), number(&row[2]), "{name} pred {row}");
        assert_eq!(bits.successor(index), number(&row[3]), "{name} succ {row}");
    }
}

fn check_matrix<L: Level, W: Words>(name: &str, entry: &Value, matrix: &Wavelet<L, W>) {
    let at = |row: &Value, index: usize| number(&row[index]).unwrap();
    for row in rows(entry, "access") {
        assert_eq!(matrix.access(at(row, 0)), number(&row[1]), "{name} access {row}");
    }
    for row in rows(entry, "inverse_select") {
        let answer = Some((at(row, 1), at(row, 2)));
        assert_eq!(matrix.inverse_select(at(row, 0)), answer, "{name} inverse_select {row}");
    }
    for row in rows(entry, "rank") {
        assert_eq!(matrix.rank(at(row, 0), at(row, 1)), at(row, 2), "{name} rank {row}");
    }
    for row in rows(entry, "select") {
        assert_eq!(matrix.select(at(row, 0), at(row, 1)), number(&row[2]), "{name} select {row}");
    }
    for row in rows(entry, "pred") {
        assert_eq!(matrix.predecessor(at(row, 0), at(row, 1)), pair(&row[2]), "{name} pred {row}");
    }
    for row in rows(entry, "succ") {
        assert_eq!(matrix.successor(at(row, 0), at(row, 1)), pair(&row[2]), "{name} succ {row}");
    }
}

#[test]
fn golden_files_are_written_back_and_answer_as_expected() {
    let mut seen = 0;
    for (entry, words) in entries() {
        let name = entry["file"].as_str().unwrap();
        let words = &words[..];
        seen += 1;
        match entry["type"].as_str().unwrap() {
            "RawVector" => {
                let raw: RawVector<&[u64]> = open(name, words);
                assert_eq!(Some(raw.count_ones()), number(&entry["expected"]["ones"]));
                assert_eq!(raw.iter().collect::<RawVector>().to_words(Supports::AsIs), words);
            }
            "IntVector" => {
                let ints: IntVector<&[u64]> = open(name, words);
                for row in rows(&entry, "get") {
                    assert_eq!(ints.get(number(&row[0]).unwrap()), number(&row[1]), "{name} {row}");
                }
                let rebuilt = IntVector::from_values(ints.width(), ints.iter()).unwrap();
                assert_eq!(rebuilt.to_words(Supports::AsIs), words, "{name}");
            }
            "BitVector" => {
                let bits: BitVector<&[u64]> = open(name, words);
                check_bits(name, &entry, &bits);
                let stored = bits.stored_supports().map(|support| support.is_some());
                let rebuilt: BitVector = bits.bits().iter().collect();
                if stored == [true; 3] {
                    assert_eq!(rebuilt.to_words(Supports::Full), words, "{name}");
                }
                if stored == [false; 3] {
                    assert_eq!(rebuilt.to_words(Supports::AsIs), words, "{name}");
                }
                // What each support holds is what a full file would hold there.
                let full = rebuilt.to_words(Supports::Full);
                let full = BitVector::from_words(&mut WordCursor::new(&full[..])).unwrap();
                for (found, expected) in bits.stored_supports().into_iter().zip(full.stored_supports()) {
                    assert!(found.is_none() || found == expected, "{name}");
                }
            }
            "SparseVector" => {
                let sparse: SparseVector<&[u64]> = open(name, words);
                check_bits(name, &entry, &sparse);
                if let Some(multiset) = entry["expected"]["is_multiset"].as_bool() {
                    assert_eq!(sparse.is_multiset(), multiset, "{name}");
                }
                assert_eq!(sparse.to_words(Supports::Full), words, "{name}");
                let positions: Vec<u64> = sparse.iter().collect();
                let options = SparseOptions::default().multiset(sparse.is_multiset());
                let rebuilt = SparseVector::from_sorted_with(sparse.len(), positions, options).unwrap();
                assert_eq!(rebuilt.to_words(Supports::Full), words, "{name}");
            }
            "RLVector" => {
                let runs: RunLengthVector<&[u64]> = open(name, words);
                check_bits(name, &entry, &runs);
                let rebuilt = RunLengthVector::from_runs(runs.len(), runs.runs()).unwrap();
                assert_eq!(rebuilt.to_words(Supports::AsIs), words, "{name}");
            }
            "WMCore<BitVector>" => {
                let core: WaveletCore<BitVector<&[u64]>> = open(name, words);
                assert_eq!(Some(core.len()), number(&entry["expected"]["len"]), "{name}");
                assert_eq!(Some(u64::from(core.width())), number(&entry["expected"]["width"]), "{name}");
                assert_eq!(core.to_words(Supports::Full), words, "{name}");
            }
            "WaveletMatrix" => {
                let matrix: WaveletMatrix<&[u64]> = open(name, words);
                check_matrix(name, &entry, &matrix);
                let values: Vec<u64> = matrix.values().collect();
                let rebuilt = WaveletMatrix::from_values(&values).unwrap();
                assert_eq!(rebuilt.to_words(Supports::Full), words, "{name}");
            }
            "RLWM" => {
                let matrix: RunLengthWaveletMatrix<&[u64]> = open(name, words);
                check_matrix(name, &entry, &matrix);
                let runs: Vec<_> = matrix.runs_from(0).collect();
                let rebuilt = RunLengthWaveletMatrix::from_runs(&runs).unwrap();
                assert_eq!(rebuilt.to_words(Supports::Full), words, "{name}");
            }
            // Vectors, strings and options have no structure of their own here.
            "Vec<u64>" => assert_eq!(cursor_vector(words, 1), words.len() as u64 - 1),
            "Vec<(u64,u64)>" => assert_eq!(cursor_vector(words, 2), words.len() as u64 - 1),
            "Vec<u8>" | "String" => {
                let mut cursor = WordCursor::new(words);
                cursor.bytes("bytes").unwrap();
                assert_eq!(cursor.left(), 0, "{name}");
            }
            "Option<Vec<u64>>" | "Option<String>" => {
                let mut cursor = WordCursor::new(words);
                cursor.option("option").unwrap();
                assert_eq!(cursor.left(), 0, "{name}");
            }
            other => panic!("{name}: {other}"),
        }
    }
    assert!(seen >= 100);
}

fn cursor_vector(words: &[u64], item: u64) -> u64 {
    let mut cursor = WordCursor::new(words);
    let items = cursor.vector(item, "items").unwrap();
    assert_eq!(cursor.left(), 0);
    items.len() as u64
}
