//! Compares the differences with those of a naive comparison of random tables, by position and by key.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray};

use super::{Diff, DiffOptions, Difference, Place, Tolerance, diff};
use crate::error::ErrorKind;
use crate::job::{OpenOptions, Opened, open_source};
use crate::registry::Registry;
use crate::source::Source;
use crate::testing::arbitrary::Random;

type Row = (i64, Option<i64>, Option<f64>, Option<String>);

fn opened(rows: &[Row], batch_rows: usize) -> Opened {
    let batch = RecordBatch::try_from_iter([
        ("id", Arc::new(Int64Array::from_iter_values(rows.iter().map(|row| row.0))) as ArrayRef),
        ("n", Arc::new(rows.iter().map(|row| row.1).collect::<Int64Array>())),
        ("f", Arc::new(rows.iter().map(|row| row.2).collect::<Float64Array>())),
        ("s", Arc::new(rows.iter().map(|row| row.3.clone()).collect::<StringArray>())),
    ])
    .unwrap();
    ipc(&batch, batch_rows)
}

fn ipc(batch: &RecordBatch, batch_rows: usize) -> Opened {
    let mut bytes = Vec::new();
    let mut writer = arrow_ipc::writer::FileWriter::try_new(&mut bytes, &batch.schema()).unwrap();
    for start in (0..batch.num_rows()).step_by(batch_rows) {
        writer.write(&batch.slice(start, batch_rows.min(batch.num_rows() - start))).unwrap();
    }
    writer.finish().unwrap();
    drop(writer);
    let source = Source::from_bytes("x.arrow", bytes);
    open_source(&Registry::default(), source, None, &OpenOptions::default()).unwrap()
}

fn csv(text: &str) -> Opened {
    let source = Source::from_bytes("x.csv", text.as_bytes().to_vec());
    open_source(&Registry::default(), source, None, &OpenOptions::default()).unwrap()
}

fn random_rows(random: &mut Random, count: usize) -> Vec<Row> {
    let row = |id: usize, random: &mut Random| {
        let n = (!random.one_in(5)).then(|| random.below(3) as i64);
        let f = (!random.one_in(5)).then(|| [0.0, -0.0, f64::NAN, 1.5][random.below(4)]);
        let s = (!random.one_in(5)).then(|| "x".repeat(random.below(3)));
        (id as i64, n, f, s)
    };
    (0..count).map(|id| row(id, random)).collect()
}

/// Changes some cells, drops and adds some rows.
fn changed(random: &mut Random, rows: &[Row]) -> Vec<Row> {
    let mut out = Vec::new();
    for row in rows {
        let mut row = row.clone();
        match random.below(12) {
            0 => continue,
            1 => row.1 = Some(77),
            2 => row.2 = None,
            3 => row.3 = Some("other".to_owned()),
            _ => {}
        }
        out.push(row);
    }
    for _ in 0..random.below(4) {
        let id = 1000 + out.len() as i64;
        out.push((id, None, None, None));
    }
    out
}

/// How many cells of two rows differ, by column.
fn differing(a: &Row, b: &Row) -> [bool; 4] {
    let floats = match (a.2, b.2) {
        (Some(a), Some(b)) => a.to_bits() != b.to_bits() && !(a.is_nan() && b.is_nan()),
        (a, b) => a.is_some() != b.is_some(),
    };
    [a.0 != b.0, a.1 != b.1, floats, a.3 != b.3]
}

fn check(found: &Diff, pairs: &[(&Row, &Row)], removed: usize, added: usize) {
    let cells: Vec<[bool; 4]> = pairs.iter().map(|(a, b)| differing(a, b)).collect();
    let changed = cells.iter().filter(|cells| cells.contains(&true)).count();
    let rows = &found.rows;
    assert_eq!((rows.changed, rows.removed, rows.added), (changed as u64, removed as u64, added as u64));
    for (column, found) in found.columns.iter().enumerate() {
        let expected = cells.iter().filter(|cells| cells[column]).count();
        assert_eq!(found.changed, expected as u64, "{}", found.name);
        assert_eq!(found.first.len(), expected.min(20));
    }
}

#[test]
fn by_position_agrees_with_a_naive_comparison() {
    for seed in 0..60 {
        let mut random = Random::new(seed);
        let count = random.below(60);
        let a = random_rows(&mut random, count);
        let b = changed(&mut random, &a);
        let (first, second) = (opened(&a, 1 + random.below(20)), opened(&b, 1 + random.below(20)));
        let mut told = Vec::new();
        let mut listen = |difference: &Difference| {
            told.push(difference.clone());
            Ok(())
        };
        let found = diff(&first, &second, &DiffOptions::default(), Some(&mut listen)).unwrap();
        let pairs: Vec<(&Row, &Row)> = a.iter().zip(&b).collect();
        check(&found, &pairs, a.len().saturating_sub(b.len()), b.len().saturating_sub(a.len()));
        let cells: u64 = found.columns.iter().map(|column| column.changed).sum();
        assert_eq!(told.len() as u64, cells + found.rows.added + found.rows.removed);
        assert!(diff(&first, &opened(&a, 7), &DiffOptions::default(), None).unwrap().is_equal());
    }
}

#[test]
fn by_key_agrees_with_a_naive_comparison() {
    for seed in 0..60 {
        let mut random = Random::new(seed);
        let count = random.below(60);
        let a = random_rows(&mut random, count);
        let mut b = changed(&mut random, &a);
        // The order does not matter.
        let middle = b.len() / 2;
        b.rotate_left(middle);
        let mut options = DiffOptions::default();
        options.key = vec!["id".to_owned()];
        let found = diff(&opened(&a, 9), &opened(&b, 5), &options, None).unwrap();
        let by_id: BTreeMap<i64, &Row> = b.iter().map(|row| (row.0, row)).collect();
        let pairs: Vec<(&Row, &Row)> = a.iter().filter_map(|row| Some((row, *by_id.get(&row.0)?))).collect();
        if !found.columns.is_empty() {
            check(&found, &pairs, a.len() - pairs.len(), b.len() - pairs.len());
        } else {
            assert!(found.is_equal() && a.len() == b.len() && pairs.len() == a.len());
        }
    }
}

#[test]
fn keys_that_are_not_unique_or_not_there_are_refused() {
    let mut options = DiffOptions::default();
    for (key, a, b, expected) in [
        ("id", "id,x\n1,a\n", "id,x\n1,a\n1,b\n", "two rows of the second file have the key {\"id\":1}"),
        ("id", "id,x\n1,a\n1,b\n", "id,x\n1,a\n", "two rows of the first file have the key {\"id\":1}"),
        ("no", "id\n1\n", "id\n2\n", "the key \"no\" is not a column of both (there is id)"),
    ] {
        options.key = vec![key.to_owned()];
        let error = diff(&csv(a), &csv(b), &options, None).unwrap_err();
        assert_eq!((error.kind(), error.message()), (ErrorKind::Usage, expected));
    }
}

#[test]
fn a_keyed_comparison_past_the_limit_spills() {
    let mut random = Random::new(1);
    let a = random_rows(&mut random, 30_000);
    let by_id: BTreeMap<i64, Row> = changed(&mut random, &a).into_iter().map(|row| (row.0, row)).collect();
    let mut b: Vec<Row> = by_id.into_values().rev().collect();
    let mut options = DiffOptions::default();
    options.key = vec!["id".to_owned()];
    let whole = diff(&opened(&a, 999), &opened(&b, 777), &options, None).unwrap();
    for max_alloc in [1 << 20, 4 << 20] {
        options.open.budget = crate::Limits { max_alloc, ..crate::Limits::default() }.budget();
        let spilled = diff(&opened(&a, 999), &opened(&b, 777), &options, None).unwrap();
        assert_eq!(spilled.rows, whole.rows);
        for (spilled, whole) in spilled.columns.iter().zip(&whole.columns) {
            assert_eq!((spilled.changed, spilled.first.len()), (whole.changed, whole.first.len()));
        }
        assert_eq!(options.open.budget.used(), 0);
    }
    b.push(b[7].clone());
    let error = diff(&opened(&a, 999), &opened(&b, 777), &options, None).unwrap_err();
    assert!(error.message().starts_with("two rows of the second file have the key"), "{error}");
}

#[test]
fn a_limit_that_no_part_fits_is_reported() {
    let mut options = DiffOptions::default();
    options.key = vec!["id".to_owned()];
    options.open.budget = crate::Limits { max_alloc: 64, ..crate::Limits::default() }.budget();
    let rows = random_rows(&mut Random::new(1), 50);
    let error = diff(&opened(&rows, 10), &opened(&rows[1..], 10), &options, None).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Limit);
}

#[test]
fn tolerances_apply_to_floats_also_inside_lists() {
    let column = |values: Vec<f64>| {
        let lists = values.iter().map(|value| Some(vec![Some(*value), None]));
        let lists =
            arrow_array::ListArray::from_iter_primitive::<arrow_array::types::Float64Type, _, _>(lists);
        let batch = RecordBatch::try_from_iter([
            ("f", Arc::new(Float64Array::from(values)) as ArrayRef),
            ("l", Arc::new(lists)),
        ]);
        ipc(&batch.unwrap(), 10)
    };
    let next = f64::from_bits(1.0f64.to_bits() + 2);
    let a = column(vec![1.0, 100.0, 0.0, f64::INFINITY, f64::NAN, 1.0]);
    let b = column(vec![1.001, 101.0, -0.0, f64::MAX, -f64::NAN, next]);
    for (abs, rel, ulp, expected) in [
        (0.0, 0.0, 0, 5),
        (0.01, 0.0, 0, 2),
        (0.0, 0.02, 0, 1),
        (0.0, 0.0, 2, 3),
        (0.0, 0.0, 1, 4),
        (2.0, 0.0, 0, 1),
    ] {
        let mut options = DiffOptions::default();
        options.tolerance = Tolerance { abs, rel, ulp };
        let found = diff(&a, &b, &options, None).unwrap();
        assert_eq!(found.columns[0].changed, expected, "{abs} {rel} {ulp}");
        assert_eq!(found.columns[1].changed, expected, "{abs} {rel} {ulp}");
    }
}

#[test]
fn schemas_are_compared_and_columns_of_both_types_too() {
    let a = csv("a,b,c\n1,x,2020-01-01\n");
    let b = csv("b,a,d\nx,1.5,1\n");
    let found = diff(&a, &b, &DiffOptions::default(), None).unwrap();
    let text = |value: &Option<String>| value.clone().unwrap_or_default();
    let schema: Vec<(String, String, String)> =
        found.schema.iter().map(|found| (text(&found.column), text(&found.a), text(&found.b))).collect();
    let of = |column: &str, a: &str, b: &str| (column.to_owned(), a.to_owned(), b.to_owned());
    assert_eq!(
        schema,
        [
            of("a", "int64", "float64"),
            of("c", "date32", ""),
            of("d", "", "int64"),
            of("", "order a, b, c", "order b, a, d"),
        ]
    );
    assert!(!found.is_equal());
    // int64 and float64 have no common type that is exact, so only `b` is compared.
    assert_eq!(found.columns.iter().map(|column| column.changed).sum::<u64>(), 0);
    let shapes = diff(&a, &mtx("1 1 1\n1 1 5\n"), &DiffOptions::default(), None).unwrap();
    assert_eq!(shapes.schema.len(), 1);
}

fn mtx(body: &str) -> Opened {
    let text = format!("%%MatrixMarket matrix coordinate real general\n{body}");
    let source = Source::from_bytes("x.mtx", text.into_bytes());
    open_source(&Registry::default(), source, None, &OpenOptions::default()).unwrap()
}

#[test]
fn matrices_are_compared_by_their_entries() {
    let a = mtx("3 3 3\n1 1 1.0\n2 2 0\n3 3 4.0\n");
    let same = mtx("3 3 2\n1 1 1.0\n3 3 4.0\n");
    assert!(diff(&a, &same, &DiffOptions::default(), None).unwrap().is_equal());
    let b = mtx("3 3 3\n1 1 1.0\n1 3 7.0\n3 3 5.0\n");
    let found = diff(&a, &b, &DiffOptions::default(), None).unwrap();
    assert_eq!((found.rows.changed, found.columns[0].changed), (2, 2));
    let first = &found.columns[0].first[0];
    assert_eq!(first.place, Place::Entry { row: 0, col: 2 });
    assert_eq!((first.a.as_str(), first.b.as_str()), ("0", "7.0"));
}
