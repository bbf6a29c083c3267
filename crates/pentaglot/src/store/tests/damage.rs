//! Damage is found and named, never handed out.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch};

use super::{Random, Scratch, one, table};
use crate::{Budget, Control, ErrorKind};

fn numbers(rows: usize, seed: u64) -> RecordBatch {
    let mut random = Random::new(seed);
    table(vec![(
        "x",
        Arc::new(Int64Array::from_iter_values((0..rows).map(|_| random.next() as i64))) as ArrayRef,
    )])
}

fn only_pack(scratch: &Scratch) -> PathBuf {
    let mut packs = fs::read_dir(scratch.folder.path().join("packs")).unwrap();
    packs.next().unwrap().unwrap().path()
}

#[test]
fn a_flipped_bit_is_found_named_and_refused() {
    let scratch = Scratch::new();
    let stored = scratch.put(&[numbers(3000, 1)]);
    let id = stored.identity.cid().unwrap().to_string();
    let pack = only_pack(&scratch);
    let name = pack.file_name().unwrap().to_str().unwrap().to_owned();
    let sound = fs::read(&pack).unwrap();
    let mut random = Random::new(5);
    let mut refused = 0;
    // The ends of the file, and places anywhere.
    let places =
        (0..16).chain(sound.len() - 80..sound.len()).chain((0..40).map(|_| random.below(sound.len())));
    for place in places.collect::<Vec<_>>() {
        let mut bytes = sound.clone();
        bytes[place] ^= 1 << (place % 8);
        fs::write(&pack, &bytes).unwrap();
        let found = scratch.store.verify(&Budget::default(), &Control::default()).unwrap().findings;
        assert!(found.iter().any(|found| found.path == format!("packs/{name}")), "{place}: {found:?}");
        match scratch.try_get(&id) {
            // A bit of a frame that says nothing.
            Ok(found) => assert!(place >= 8 && one(&found) == numbers(3000, 1), "{place}"),
            Err(error) => {
                assert!(
                    matches!(error.kind(), ErrorKind::Malformed | ErrorKind::Truncated),
                    "{place}: {error}"
                );
                refused += 1;
            }
        }
    }
    assert!(refused > 100, "{refused}");
    fs::write(&pack, &sound).unwrap();
    scratch.check_sound();
}

#[test]
fn a_damaged_chunk_is_named_by_its_pack() {
    let scratch = Scratch::new();
    let id = scratch.put(&[numbers(3000, 1)]).identity.cid().unwrap().to_string();
    let pack = only_pack(&scratch);
    let mut bytes = fs::read(&pack).unwrap();
    bytes[1000] ^= 4;
    fs::write(&pack, &bytes).unwrap();
    let found = scratch.store.verify(&Budget::default(), &Control::default()).unwrap().findings;
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(
        found[0].message.starts_with("expected the content that its name says, found bafkr4i"),
        "{found:?}"
    );
    assert!(found[1].message.starts_with("at byte 8: expected the chunk bafkr4i"), "{found:?}");
    let error = scratch.try_get(&id).unwrap_err();
    assert!(error.to_string().contains("expected the chunk bafkr4i"), "{error}");
    assert!(error.input().is_some_and(|input| input.starts_with("packs/bafkr4i")), "{:?}", error.input());
    // What is damaged is not copied either: the chunk is needed, its neighbours are not.
    scratch.put(&[numbers(10, 2)]);
    let error = scratch.store.collect(&Budget::default(), &Control::default()).unwrap_err();
    assert!(error.to_string().contains("expected the chunk"), "{error}");
    assert!(pack.exists());
}

#[test]
fn a_root_that_was_changed_is_found() {
    let scratch = Scratch::new();
    let id = scratch.put(&[numbers(3000, 1)]).identity.cid().unwrap().to_string();
    let root = scratch.folder.path().join("roots").join(&id);
    let sound = fs::read(&root).unwrap();
    for place in 0..sound.len() {
        let mut bytes = sound.clone();
        bytes[place] ^= 0x10;
        fs::write(&root, &bytes).unwrap();
        let found = scratch.store.verify(&Budget::default(), &Control::default()).unwrap().findings;
        match scratch.try_get(&id) {
            // A bit of zstd's own that means nothing.
            Ok(rows) => assert_eq!(one(&rows), numbers(3000, 1)),
            Err(_) => assert_eq!(found[0].path, format!("roots/{id}"), "{place}"),
        }
    }
    // The root of other data under this name.
    let other = scratch.put(&[numbers(5, 9)]).identity.cid().unwrap().to_string();
    fs::copy(scratch.folder.path().join("roots").join(&other), &root).unwrap();
    let found = scratch.store.verify(&Budget::default(), &Control::default()).unwrap().findings;
    assert_eq!(found[0].message, format!("expected the root of {id}, found that of {other}"));
    // Cut short.
    for end in [0, 1, sound.len() / 2, sound.len() - 1] {
        fs::write(&root, &sound[..end]).unwrap();
        assert!(scratch.try_get(&id).is_err(), "{end}");
    }
}

#[test]
fn a_missing_pack_is_found() {
    let scratch = Scratch::new();
    let id = scratch.put(&[numbers(3000, 1)]).identity.cid().unwrap().to_string();
    fs::remove_file(only_pack(&scratch)).unwrap();
    let found = scratch.store.verify(&Budget::default(), &Control::default()).unwrap().findings;
    assert_eq!(found[0].path, format!("roots/{id}"));
    assert!(found[0].message.contains("chunks are missing, the first is bafkr4i"), "{found:?}");
    assert!(scratch.try_get(&id).unwrap_err().to_string().contains("no such chunk"));
    // Put in again, it is whole again.
    scratch.put(&[numbers(3000, 1)]);
    scratch.check_sound();
    assert_eq!(one(&scratch.try_get(&id).unwrap()), numbers(3000, 1));
}

#[test]
fn what_an_interrupted_process_left_is_removed() {
    let scratch = Scratch::new();
    scratch.put(&[numbers(10, 1)]);
    let left = scratch.folder.path().join("tmp/left");
    fs::write(&left, b"half a pack").unwrap();
    scratch.check_sound();
    scratch.collect();
    assert!(!left.exists());
    scratch.check_sound();
}

#[test]
fn a_folder_that_is_no_store_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let error = super::super::Store::open(folder.path()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Usage);
    assert!(error.to_string().ends_with("is not a store: it has no folder packs"), "{error}");
}
