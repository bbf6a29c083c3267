//! What versions, columns and formats share.

use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray};
use arrow_select::concat::concat_batches;

use super::super::PutOptions;
use super::{Random, Scratch, one, stream, table};
use crate::{Budget, Control, Registry, Sink, Source, job};

/// A table of readings: sorted times, noisy numbers, a few words.
fn readings(rows: usize, seed: u64) -> RecordBatch {
    let mut random = Random::new(seed);
    let mut time = 1_700_000_000_000i64 + (seed as i64) * 1_000_000_007;
    let times: Vec<i64> = (0..rows)
        .map(|_| {
            time += 500 + random.below(1000) as i64;
            time
        })
        .collect();
    let values: Vec<f64> = (0..rows).map(|_| (random.next() >> 11) as f64 / 1e15).collect();
    let words: Vec<String> = (0..rows).map(|_| format!("station {}", random.below(5000))).collect();
    let missing: Vec<Option<i64>> =
        (0..rows).map(|_| Some(random.next() as i64).filter(|value| value % 7 != 0)).collect();
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("time", Arc::new(Int64Array::from(times))),
        ("value", Arc::new(Float64Array::from(values))),
        ("station", Arc::new(StringArray::from(words))),
        ("code", Arc::new(Int64Array::from(missing))),
    ];
    table(columns)
}

fn inserted(into: &RecordBatch, at: usize, rows: &RecordBatch) -> RecordBatch {
    let (before, after) = (into.slice(0, at), into.slice(at, into.num_rows() - at));
    concat_batches(&into.schema(), [&before, rows, &after]).unwrap()
}

#[test]
fn one_percent_inserted_costs_at_most_three() {
    let scratch = Scratch::new();
    let first = readings(600_000, 1);
    let base = scratch.put(std::slice::from_ref(&first)).new_bytes;
    for at in [0, 300_001, 599_999] {
        let second = inserted(&first, at, &readings(6_000, 2 + at as u64));
        let cost = scratch.put(std::slice::from_ref(&second)).new_bytes;
        assert!(cost * 100 <= base * 3, "at {at}: {cost} of {base}");
    }
    // Changed in place.
    let changed = concat_batches(
        &first.schema(),
        [&first.slice(0, 200_000), &readings(6_000, 9), &first.slice(206_000, 394_000)],
    );
    let cost = scratch.put(&[changed.unwrap()]).new_bytes;
    assert!(cost * 100 <= base * 3, "changed: {cost} of {base}");
    // Appended: what is appended, the last chunk of each column, and the root.
    let appended = inserted(&first, 600_000, &readings(60_000, 20));
    let cost = scratch.put(&[appended]).new_bytes;
    assert!(cost * 100 <= base * 12, "appended: {cost} of {base}");
    scratch.check_sound();
}

#[test]
fn an_added_column_costs_that_column() {
    let scratch = Scratch::new();
    let first = readings(100_000, 1);
    let base = scratch.put(std::slice::from_ref(&first)).new_bytes;
    let mut columns: Vec<(&str, ArrayRef)> = vec![("new", Arc::new(Int64Array::from(vec![5; 100_000])))];
    let schema = first.schema();
    columns.extend(schema.fields().iter().map(|field| field.name().as_str()).zip(first.columns().to_vec()));
    let cost = scratch.put(&[table(columns)]).new_bytes;
    assert!(cost * 50 < base, "{cost} of {base}");
}

/// Twenty versions that grow, with inserts and changed columns, take little more than what is new in each.
#[test]
fn twenty_versions_share_what_is_the_same() {
    let scratch = Scratch::new();
    let mut random = Random::new(77);
    let mut version = readings(100_000, 1);
    let base = scratch.put(std::slice::from_ref(&version)).new_bytes;
    let mut stored = vec![scratch.put(std::slice::from_ref(&version))];
    let mut whole = base;
    for number in 1..20u64 {
        let at = random.below(version.num_rows());
        version = inserted(&version, at, &readings(1_000, 100 + number));
        if number % 5 == 0 {
            let rows = version.num_rows();
            let mut columns = version.columns().to_vec();
            let fresh = readings(rows, 1000 + number);
            columns[1] = Arc::clone(fresh.column(1));
            version = RecordBatch::try_new(version.schema(), columns).unwrap();
        }
        stored.push(scratch.put(std::slice::from_ref(&version)));
        whole += base;
    }
    let total = scratch.pack_bytes();
    assert!(total * 4 < whole, "{total} of {whole} if nothing were shared");
    assert_eq!(one(&scratch.get(&stored[19])), version);
    let listed = scratch.store.list(&Budget::default(), &Control::default()).unwrap();
    assert_eq!(listed.len(), 20);
    assert!(listed.iter().all(|one| one.shared_bytes > one.bytes / 4 && one.shared_bytes < one.bytes));
    // Removing versions frees what they alone need.
    for one in &stored[1..19] {
        let id = one.identity.cid().unwrap().to_string();
        scratch.store.remove(&id, &Budget::default(), &Control::default()).unwrap();
    }
    let collected = scratch.collect();
    assert_eq!(collected.bytes_after, scratch.pack_bytes());
    assert!(collected.bytes_after < collected.bytes_before, "{collected:?}");
    scratch.check_sound();
    assert_eq!(one(&scratch.get(&stored[19])), version);
    for one in [&stored[0], &stored[19]] {
        let id = one.identity.cid().unwrap().to_string();
        scratch.store.remove(&id[..20], &Budget::default(), &Control::default()).unwrap();
    }
    scratch.collect();
    assert_eq!(scratch.pack_bytes(), 0);
}

/// Every format that holds a table gives the same root, and nothing but the root is new.
#[test]
fn formats_share_all_chunks() {
    let registry = Registry::default();
    let scratch = Scratch::new();
    let batch = table(vec![
        ("a", Arc::new(Int64Array::from_iter_values(0..5000)) as ArrayRef),
        ("b", Arc::new(StringArray::from_iter_values((0..5000).map(|i| format!("x{}", i % 91)))) as ArrayRef),
    ]);
    let written = |target: &str| {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.arrow").to_str().unwrap().to_owned();
        let plan = registry.get("arrow").unwrap().plan(&batch.schema(), &Default::default()).unwrap();
        let mut writer = plan.create(Sink::create(&path, true).unwrap()).unwrap();
        writer.write(&batch).unwrap();
        writer.finish().unwrap();
        let mut options = job::ConvertOptions::default();
        options.to = Some(target.to_owned());
        options.allow_lossy = crate::hub::LossKinds::ALL;
        let (sink, memory) = Sink::memory();
        job::Conversion::plan(&registry, &[path], "x", &options).unwrap().run_into(sink).unwrap();
        memory.take()
    };
    let mut ids = std::collections::BTreeSet::new();
    let mut packs = None;
    let open = job::OpenOptions::default();
    for target in [
        "arrow",
        "arrow-stream",
        "parquet",
        "csv",
        "jsonl",
        "json",
        "dbdf",
        "ds:msgpack",
        "ds:json",
        "dynd",
        "bsondf",
    ] {
        if target == "dbdf" {
            // It has no text.
            continue;
        }
        let bytes = written(target);
        let mut options = open.clone();
        options.from = Some(target.to_owned());
        let opened =
            job::open_source(&registry, Source::from_bytes("x", bytes.clone()), None, &options).unwrap();
        let stored = opened.put(&scratch.store, Some(target), &options).unwrap();
        ids.insert(stored.identity.cid().unwrap().to_string());
        let found = *packs.get_or_insert_with(|| scratch.pack_bytes());
        assert_eq!(scratch.pack_bytes(), found, "{target} adds no chunk");
        // The original comes back, byte for byte, where the format is deterministic.
        let mut convert = job::ConvertOptions::default();
        convert.to = Some(target.to_owned());
        let id = stored.identity.cid().unwrap().to_string();
        let conversion = job::Conversion::plan_stored(&registry, &scratch.store, &id, "x", &convert).unwrap();
        let (sink, memory) = Sink::memory();
        conversion.run_into(sink).unwrap();
        if ["csv", "jsonl", "json", "ds:msgpack", "ds:json", "dynd", "bsondf"].contains(&target) {
            assert!(memory.take() == bytes, "{target}");
        }
    }
    assert_eq!(ids.len(), 1);
    let listed = scratch.store.list(&Budget::default(), &Control::default()).unwrap();
    assert_eq!((listed.len(), listed[0].name.as_str(), listed[0].rows), (1, "bsondf", 5000));
}

#[test]
fn small_packs_are_joined() {
    let scratch = Scratch::new();
    let stored: Vec<_> = (0..5).map(|seed| scratch.put(&[readings(2000, seed)])).collect();
    assert_eq!(scratch.store.files.list("packs").unwrap().len(), 5);
    scratch.collect();
    assert_eq!(scratch.store.files.list("packs").unwrap().len(), 1);
    scratch.check_sound();
    for (seed, one_stored) in stored.iter().enumerate() {
        assert_eq!(one(&scratch.get(one_stored)), readings(2000, seed as u64));
    }
    assert_eq!(scratch.collect().chunks, 0);
}

#[test]
fn a_name_means_the_latest_and_a_beginning_must_mean_one() {
    let scratch = Scratch::new();
    let mut options = PutOptions::default();
    options.name = Some("twice".to_owned());
    let mut ids = Vec::new();
    for seed in 0..2 {
        options.time = Some(i64::try_from(10 - seed).unwrap());
        let stored = scratch.store.put(stream(&[readings(10, seed)]), &options).unwrap();
        ids.push(stored.identity.cid().unwrap().to_string());
    }
    let find = |text: &str| scratch.store.find(text, &Budget::default());
    assert_eq!(find("twice").unwrap(), ids[0]);
    assert_eq!(find(&ids[1][..20]).unwrap(), ids[1]);
    let error = find("bafkr4i").unwrap_err().to_string();
    assert!(error.starts_with("2 identities in the store begin with \"bafkr4i\": bafkr4i"), "{error}");
    // What cannot be read may be what was meant.
    let root = scratch.folder.path().join("roots").join(&ids[0]);
    std::fs::write(&root, b"damaged").unwrap();
    assert_eq!(find("nowhere").unwrap_err().kind(), crate::ErrorKind::Malformed);
    std::fs::remove_file(root).unwrap();
    let error = scratch.store.find("nowhere", &Budget::default()).unwrap_err();
    assert!(error.to_string().ends_with("is named \"nowhere\""), "{error}");
}
