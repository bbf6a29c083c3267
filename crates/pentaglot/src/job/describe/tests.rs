use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, StringArray};
use proptest::prelude::*;
use serde_json::Value;

use super::column::ColumnState;
use super::distinct::HyperLogLog;
use super::frequent::{EXACT, Frequent, hash_bytes, hash_word};
use super::quantiles::{self, Quantiles};
use super::{ColumnDescription, Description};
use crate::job::{OpenOptions, View, open_source};
use crate::registry::Registry;
use crate::source::Source;

fn column(arrays: &[ArrayRef]) -> ColumnDescription {
    let field = Arc::new(arrow_schema::Field::new("x", arrays[0].data_type().clone(), true));
    let mut states = arrays.iter().map(|array| {
        let mut state = ColumnState::new(&field);
        state.push(array).unwrap();
        state
    });
    let mut all = states.next().unwrap();
    states.for_each(|state| all.merge(state));
    all.finish().unwrap()
}

fn described(name: &str, bytes: &[u8], view: &View) -> Value {
    let source = Source::from_bytes(name, bytes.to_vec());
    let opened = open_source(&Registry::default(), source, None, &OpenOptions::default()).unwrap();
    serde_json::from_str(&opened.describe(view).unwrap().to_json()).unwrap()
}

fn number(text: &Option<String>) -> f64 {
    text.as_ref().unwrap().parse().unwrap()
}

#[test]
fn nan_is_outside_all_figures() {
    let array: ArrayRef =
        Arc::new(Float64Array::from(vec![Some(1.0), Some(f64::NAN), None, Some(4.0), Some(-0.0), Some(0.0)]));
    let column = column(&[array]);
    assert_eq!((column.count, column.nulls, column.nans), (4, 1, 1));
    assert_eq!((column.distinct, column.distinct_exact), (3, true));
    assert_eq!((column.min.as_deref(), column.max.as_deref()), (Some("0.0"), Some("4.0")));
    assert_eq!(number(&column.mean), 1.25);
    assert_eq!(column.top[0], ("0.0".to_owned(), 2));
}

#[test]
fn a_column_without_values_has_no_figures() {
    for array in [
        Arc::new(Float64Array::from(vec![None, Some(f64::NAN)])) as ArrayRef,
        Arc::new(Int64Array::from(Vec::<i64>::new())),
        Arc::new(StringArray::from(vec![None::<&str>])),
        Arc::new(BooleanArray::from(vec![None])),
        Arc::new(arrow_array::NullArray::new(3)),
    ] {
        let column = column(&[array]);
        assert_eq!((column.count, column.distinct, column.distinct_exact), (0, 0, true));
        assert_eq!((column.min, column.max, column.mean, column.std), (None, None, None, None));
        assert!(column.quantiles.is_none() && column.top.is_empty() && column.top_exact);
    }
}

#[test]
fn large_whole_numbers_are_exact() {
    let array: ArrayRef = Arc::new(Int64Array::from(vec![i64::MAX, i64::MIN, i64::MAX - 1]));
    let column = column(&[array]);
    assert_eq!(column.max.as_deref(), Some("9223372036854775807"));
    assert_eq!(column.min.as_deref(), Some("-9223372036854775808"));
    assert_eq!(column.distinct, 3);
}

#[test]
fn strings_have_lengths_in_characters() {
    let array: ArrayRef = Arc::new(StringArray::from(vec![Some("äöü"), Some(""), None, Some("a\u{1f600}")]));
    let column = column(&[array]);
    let lengths = column.lengths.unwrap();
    assert_eq!((lengths.min, lengths.max, lengths.sum, lengths.count), (0, 3, 5, 3));
    assert_eq!((column.min.as_deref(), column.max.as_deref()), (Some("\"\""), Some("\"äöü\"")));
}

#[test]
fn nested_values_are_told_apart() {
    let json = br#"{"type":{"type":"tabular","columns":{"x":{"type":"array","underlying":"int32"}}},"value":[[[1,2]],[[1]],[[1,2]]]}"#;
    let found = described("x.ds.json", json, &View::default());
    let x = &found["columns"][0];
    assert_eq!(x["distinct"], 2);
    assert_eq!(x["top"][0], serde_json::json!([[1, 2], 2]));
    assert_eq!(x["min"], Value::Null);
}

#[test]
fn times_have_figures_of_their_own_type() {
    let text = "t\n2024-01-01T00:00:00\n2024-01-03T00:00:00\n2024-01-02T00:00:00\n";
    let found = described("x.csv", text.as_bytes(), &View::default());
    let t = &found["columns"][0];
    assert_eq!(t["min"], "2024-01-01T00:00:00");
    assert_eq!(t["mean"], "2024-01-02T00:00:00");
    assert_eq!(t["quantiles"]["0.25"], "2024-01-01T12:00:00");
    assert_eq!(t["std"], Value::Null);
}

#[test]
fn a_filter_and_columns_narrow() {
    let mut view = View::default();
    view.filter = Some("a > 1".to_owned());
    view.columns = Some(vec!["b".to_owned()]);
    let found = described("x.csv", b"a,b\n1,x\n2,y\n3,y\n", &view);
    assert_eq!(found["rows"], 2);
    assert_eq!(found["columns"].as_array().unwrap().len(), 1);
    assert_eq!(found["columns"][0]["top"], serde_json::json!([["y", 2]]));
}

#[test]
fn matrices_have_figures_of_their_own() {
    let text =
        b"%%MatrixMarket matrix coordinate real general\n4 4 5\n1 1 2\n1 3 -1.5\n3 1 -1.5\n4 4 7\n2 2 0\n";
    let found = described("x.mtx", text, &View::default());
    assert_eq!((&found["rows"], &found["cols"], &found["nonzeros"]), (&4.into(), &4.into(), &5.into()));
    assert_eq!(found["density"], 0.3125);
    assert_eq!((&found["min"], &found["max"]), (&(-1.5).into(), &7.0.into()));
    assert_eq!(found["mean"], 1.2);
    assert_eq!((&found["symmetric"], &found["bandwidth"]), (&true.into(), &2.into()));
    assert_eq!(found["row_counts"]["0.5"], 1.0);
    let other = String::from_utf8(text.to_vec()).unwrap().replace("3 1 -1.5", "3 1 1.5");
    assert_eq!(described("x.mtx", other.as_bytes(), &View::default())["symmetric"], false);
    let dense = b"%%MatrixMarket matrix array integer general\n2 2\n1\n0\n0\n5\n";
    let found = described("x.mtx", dense, &View::default());
    assert_eq!(
        (&found["nonzeros"], &found["bandwidth"], &found["mean"]),
        (&2.into(), &0.into(), &1.5.into())
    );
    assert_eq!(found["col_counts"]["0.5"], 1.0);
}

#[test]
fn an_empty_matrix_has_no_density() {
    let found =
        described("x.mtx", b"%%MatrixMarket matrix coordinate real general\n0 3 0\n", &View::default());
    assert_eq!((&found["rows"], &found["density"], &found["min"]), (&0.into(), &Value::Null, &Value::Null));
    assert_eq!((&found["bandwidth"], &found["row_counts"]), (&Value::Null, &Value::Null));
}

#[test]
fn succinct_structures_have_figures_of_their_own() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/data/exons.sds");
    let bytes = std::fs::read(file).unwrap();
    let source = Source::from_bytes("exons.sds", bytes.clone());
    let opened = open_source(&Registry::default(), source, None, &OpenOptions::default()).unwrap();
    let rows: u64 =
        opened.rows(&View::default()).unwrap().map(|batch| batch.unwrap().num_rows() as u64).sum();
    let Description::Succinct(found) = opened.describe(&View::default()).unwrap() else {
        panic!("it is sds")
    };
    assert_eq!(found.bits, bytes.len() as u64 * 8);
    assert_eq!(found.kind, opened.document.summary().dialect.unwrap());
    match found.kind.as_str() {
        "sparse" => assert_eq!(found.ones, Some(rows)),
        "rl" => assert_eq!(found.runs, Some(rows)),
        _ => assert_eq!(found.len, rows),
    }
    let (len, ones) = (found.len as f64, found.ones.unwrap() as f64);
    let entropy = ones * (len / ones).log2() + (len - ones) * (len / (len - ones)).log2();
    assert!((found.entropy_bits.unwrap() - entropy).abs() < 1e-9);
}

#[test]
fn distinct_is_exact_to_its_bound_and_then_close() {
    for (count, exact) in [(EXACT as u64, true), (EXACT as u64 + 1, false), (300_000, false)] {
        let mut frequent = Frequent::new();
        for _ in 0..2 {
            for word in 0..count {
                let word = word.wrapping_mul(0x1234_5678_9abc_def1);
                frequent.push(hash_word(word), |other| *other == word, 0, || word);
            }
        }
        let (found, is_exact) = frequent.distinct();
        assert_eq!(is_exact, exact);
        assert!(
            found.abs_diff(count) as f64 <= if exact { 0.0 } else { 0.03 * count as f64 },
            "{found} {count}"
        );
    }
}

#[test]
fn estimates_hold_for_texts_and_any_division() {
    for count in [10_001u64, 65_536, 1_000_000] {
        let (mut whole, mut parts) = (HyperLogLog::new(), vec![HyperLogLog::new(); 3]);
        for number in 0..count {
            let hash = hash_bytes(format!("user-{number}").as_bytes());
            whole.insert(hash);
            parts[number as usize % 3].insert(hash);
        }
        let mut merged = parts.pop().unwrap();
        parts.iter().for_each(|part| merged.merge(part));
        assert_eq!(merged.estimate(), whole.estimate());
        let error = whole.estimate().abs_diff(count) as f64 / count as f64;
        assert!(error < 0.03, "{count}: {error}");
    }
}

#[test]
fn ranks_are_within_one_percent_past_the_bound() {
    let count = 3_000_000u64;
    let orders: [fn(u64, u64) -> u64; 4] = [
        |index, _| index,
        |index, count| count - 1 - index,
        |index, count| (index * 1_299_709) % count,
        |index, count| if index % 2 == 0 { index / 2 } else { count - 1 - index / 2 },
    ];
    for order in orders {
        let (mut first, mut second) = (Quantiles::default(), Quantiles::default());
        for start in (0..count).step_by(5000) {
            let keys: Vec<u64> = (start..start + 5000).map(|index| order(index, count)).collect();
            if start < count / 3 { first.extend(&keys) } else { second.extend(&keys) }
        }
        first.merge(second);
        assert!(first.bytes() < 1 << 20);
        let sorted = first.sorted();
        for quantile in [0.0, 0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99, 1.0] {
            let (key, _, _) = sorted.at(quantile).unwrap();
            let error = (key as f64 / count as f64 - quantile).abs();
            assert!(error < 0.01, "{quantile}: {error}");
        }
    }
}

#[test]
fn quantiles_are_exact_to_their_bound() {
    let keys: Vec<u64> = (0..quantiles::EXACT as u64).rev().collect();
    let mut parts = keys.chunks(30_000).map(|keys| {
        let mut part = Quantiles::default();
        part.extend(keys);
        part
    });
    let mut all = parts.next().unwrap();
    parts.for_each(|part| all.merge(part));
    assert_eq!(all.sorted().at(0.25), Some((24_999, 25_000, 0.75)));
}

#[test]
fn frequent_values_survive_any_number_of_rare_ones() {
    let mut parts = Vec::new();
    for part in 0..3u64 {
        let mut frequent = Frequent::new();
        for index in 0..200_000u64 {
            let word = if index % 10 < 3 { index % 3 } else { 1_000_000 * (part + 1) + index };
            frequent.push(hash_word(word), |other| *other == word, 0, || word);
        }
        assert!(frequent.bytes() < 4 << 20);
        parts.push(frequent);
    }
    let mut all = parts.pop().unwrap();
    parts.into_iter().for_each(|part| all.merge(part));
    let top = all.top();
    let counts: Vec<u64> = top.values.iter().take(3).map(|(_, count)| *count).collect();
    let words: Vec<u64> = top.values.iter().take(3).map(|(word, _)| *word).collect();
    assert_eq!(counts.iter().sum::<u64>(), 180_000);
    assert!(words.iter().all(|word| *word < 3));
    assert!(!top.is_exact, "the fourth value is one of many that occur once");
}

#[test]
fn merged_tables_promise_only_what_is_true() {
    let mut counts: BTreeMap<u64, u64> = BTreeMap::new();
    let mut parts = Vec::new();
    let mut state = 1u64;
    for _ in 0..4 {
        let mut frequent = Frequent::new();
        for _ in 0..25_000 {
            state = hash_word(state);
            let word = state % 50_000;
            *counts.entry(word).or_default() += 1;
            frequent.push(hash_word(word), |other| *other == word, 0, || word);
        }
        parts.push(frequent);
    }
    let mut all = parts.pop().unwrap();
    parts.into_iter().for_each(|part| all.merge(part));
    let top = all.top();
    let mut most: Vec<u64> = counts.values().copied().collect();
    most.sort_unstable_by(|a, b| b.cmp(a));
    assert!(top.values.iter().all(|(word, count)| *count <= counts[word]));
    let found: Vec<u64> = top.values.iter().map(|(_, count)| *count).collect();
    assert!(!top.is_exact || found == most[..10], "{found:?} {:?}", &most[..10]);
}

/// Values from a small range, so that they repeat.
fn numbers() -> impl Strategy<Value = Vec<Option<f64>>> {
    let value = prop_oneof![
        1 => Just(None),
        1 => Just(Some(f64::NAN)),
        8 => (-20i32..20).prop_map(|number| Some(f64::from(number) / 4.0)),
        1 => any::<f32>().prop_map(|number| Some(f64::from(number))),
    ];
    proptest::collection::vec(value, 1..300)
}

proptest! {
    #[test]
    fn figures_are_those_of_the_definition(values in numbers(), cut in 0usize..300) {
        let array: ArrayRef = Arc::new(Float64Array::from(values.clone()));
        let cut = cut.min(array.len());
        let found = column(&[array.slice(0, cut), array.slice(cut, array.len() - cut)]);
        let mut known: Vec<f64> = values.iter().flatten().copied().filter(|value| !value.is_nan()).collect();
        known.sort_by(f64::total_cmp);
        prop_assert_eq!(found.nulls, values.iter().filter(|value| value.is_none()).count() as u64);
        prop_assert_eq!(found.nans as usize, values.iter().flatten().filter(|value| value.is_nan()).count());
        prop_assert_eq!(found.count as usize, known.len());
        let mut counts = BTreeMap::new();
        for value in &known {
            *counts.entry((value + 0.0).to_bits()).or_insert(0u64) += 1;
        }
        prop_assert_eq!(found.distinct as usize, counts.len());
        let mut most: Vec<u64> = counts.values().copied().collect();
        most.sort_unstable_by(|a, b| b.cmp(a));
        most.truncate(10);
        prop_assert_eq!(found.top.iter().map(|(_, count)| *count).collect::<Vec<_>>(), most);
        prop_assert!(found.top_exact && found.distinct_exact);
        if known.is_empty() || known.iter().any(|value| value.is_infinite()) {
            return Ok(());
        }
        let n = known.len() as f64;
        let scale = known.iter().fold(1e-30f64, |most, value| most.max(value.abs()));
        let mean = known.iter().map(|value| value / scale).sum::<f64>() / n;
        prop_assert!((number(&found.mean) / scale - mean).abs() < 1e-12);
        if known.len() > 1 && scale < 1e30 {
            let squares: f64 = known.iter().map(|value| (value / scale - mean).powi(2)).sum();
            prop_assert!((number(&found.std) / scale - (squares / (n - 1.0)).sqrt()).abs() < 1e-9);
        }
        for (quantile, text) in super::QUANTILES.iter().zip(found.quantiles.as_ref().unwrap()) {
            let place = quantile * (n - 1.0);
            let (low, high) = (known[place.floor() as usize], known[place.ceil() as usize]);
            let expected = low + (high - low) * place.fract();
            let text: f64 = text.parse().unwrap();
            prop_assert!((text - expected).abs() <= 1e-12 * scale, "{} {}", text, expected);
        }
        let histogram = found.histogram.unwrap();
        prop_assert_eq!(histogram.counts.iter().sum::<u64>(), found.count);
    }

    #[test]
    fn threads_and_batches_change_nothing(values in proptest::collection::vec(any::<Option<i16>>(), 1..500), threads in 1usize..4) {
        let array: ArrayRef = Arc::new(arrow_array::Int16Array::from(values));
        let batch = RecordBatch::try_from_iter_with_nullable([("x", array, true)]).unwrap();
        let mut bytes = Vec::new();
        let mut writer = arrow_ipc::writer::FileWriter::try_new(&mut bytes, &batch.schema()).unwrap();
        for start in (0..batch.num_rows()).step_by(64) {
            writer.write(&batch.slice(start, 64.min(batch.num_rows() - start))).unwrap();
        }
        writer.finish().unwrap();
        drop(writer);
        let describe = |threads: usize| {
            let mut options = OpenOptions::default();
            options.control = crate::control::Control::new(threads);
            let source = Source::from_bytes("x.arrow", bytes.clone());
            let opened = open_source(&Registry::default(), source, None, &options).unwrap();
            let mut found: Value = serde_json::from_str(&opened.describe(&View::default()).unwrap().to_json()).unwrap();
            // Sums of floats depend slightly on their order.
            let std = found["columns"][0]["std"].take();
            (found, std)
        };
        let ((one, one_std), (many, many_std)) = (describe(1), describe(threads));
        prop_assert_eq!(one, many);
        if let (Some(one), Some(many)) = (one_std.as_f64(), many_std.as_f64()) {
            prop_assert!((one - many).abs() <= 1e-9 * one.abs());
        }
    }
}

#[test]
fn mean_and_quantiles_of_times_are_rounded_to_their_unit() {
    use arrow_array::TimestampSecondArray;
    let described = |seconds: Vec<i64>| column(&[Arc::new(TimestampSecondArray::from(seconds)) as ArrayRef]);
    // 5 / 3, and -5 / 3.
    assert_eq!(described(vec![1, 2, 2]).mean.as_deref(), Some("\"1970-01-01T00:00:02\""));
    assert_eq!(described(vec![-1, -2, -2]).mean.as_deref(), Some("\"1969-12-31T23:59:58\""));
    let quantiles = described(vec![0, 1]).quantiles.unwrap();
    assert_eq!(quantiles.map(|text| text[18..20].to_owned()), ["00", "00", "00", "01", "01"]);
}

#[test]
fn figures_of_numbers_at_the_ends_of_their_range_do_not_overflow() {
    let values = vec![1e308, 1e308, -1e308];
    for arrays in [vec![values.clone()], values.iter().map(|value| vec![*value]).collect()] {
        let arrays: Vec<ArrayRef> =
            arrays.into_iter().map(|values| Arc::new(Float64Array::from(values)) as ArrayRef).collect();
        let column = column(&arrays);
        assert!((number(&column.mean) / 1e308 - 1.0 / 3.0).abs() < 1e-12, "{:?}", column.mean);
        assert!((number(&column.std) / 1e308 - (4.0f64 / 3.0).sqrt()).abs() < 1e-12, "{:?}", column.std);
        let quantiles = column.quantiles.unwrap().map(|text| text.parse::<f64>().unwrap() / 1e308);
        let expected = [-0.8, 0.0, 1.0, 1.0, 1.0];
        assert!(
            quantiles.iter().zip(expected).all(|(found, expected)| (found - expected).abs() < 1e-12),
            "{quantiles:?}"
        );
        let histogram = column.histogram.unwrap();
        assert_eq!((histogram.counts[0], *histogram.counts.last().unwrap()), (1, 2));
        assert!(histogram.width.is_finite());
    }
    let large = 1i64 << 62;
    let both: ArrayRef = Arc::new(Int64Array::from(vec![large + 1, large + 3]));
    let apart = [large + 1, large + 3].map(|value| Arc::new(Int64Array::from(vec![value])) as ArrayRef);
    for column in [column(&[both]), column(&apart)] {
        assert_eq!(number(&column.std), 2f64.sqrt());
    }
}

#[test]
fn the_rows_of_a_matrix_that_match_are_a_matrix() {
    let matrix = b"%%MatrixMarket matrix array real general\n3 2\n1\n2\n3\n-1\n5\n0\n";
    let mut view = View::default();
    view.filter = Some("col_1 >= 0".to_owned());
    let found = described("x.mtx", matrix, &view);
    assert_eq!((&found["rows"], &found["cols"], &found["nonzeros"]), (&2.into(), &2.into(), &3.into()));
    assert_eq!((&found["max"], &found["min"]), (&5.0.into(), &0.0.into()));
}
