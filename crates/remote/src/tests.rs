//! Objects and uploads in a store that is memory: what is whole, what is absent, and when.

use std::sync::Arc;

use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt};
use pentaglot::sink::Output;
use pentaglot::{ErrorKind, Remote};

use crate::upload::Upload;
use crate::{Address, Place, Stores, object};

/// A bucket in memory, as `s3://test`.
fn bucket() -> (Stores, Arc<InMemory>) {
    let (stores, memory) = (Stores::default(), Arc::new(InMemory::new()));
    let connections = stores.shared.connections.here();
    connections.store("s3://test", || Ok(Arc::clone(&memory) as Arc<dyn ObjectStore>)).unwrap();
    (stores, memory)
}

fn place(stores: &Stores, key: &str) -> Place {
    stores.place(&format!("s3://test/{key}")).unwrap()
}

fn put(stores: &Stores, memory: &InMemory, key: &str, bytes: impl Into<object_store::PutPayload>) {
    stores.wait(memory.put(&Path::from(key), bytes.into())).unwrap();
}

fn get(stores: &Stores, memory: &InMemory, key: &str) -> Option<Vec<u8>> {
    let got = stores.wait(async { memory.get(&Path::from(key)).await?.bytes().await });
    got.ok().map(|bytes| bytes.to_vec())
}

fn random(count: usize) -> Vec<u8> {
    let mut state = 1u64;
    let next = || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 56) as u8
    };
    std::iter::repeat_with(next).take(count).collect()
}

#[test]
fn ranges_are_the_bytes_of_the_object() {
    let (stores, memory) = bucket();
    let bytes = random(9 << 20);
    put(&stores, &memory, "dir/x", bytes.clone());
    let source = object::open(place(&stores, "dir/x")).unwrap();
    assert_eq!((source.name(), source.len(), source.is_costly()), ("s3://test/dir/x", Some(9 << 20), true));
    for (offset, len) in [(0, 10), (65_530, 20), (5_000_000, 4_437_184), (9 << 20, 0), (1, 9_000_000)] {
        let read = source.read_range(offset, len, &pentaglot::Limits::default().budget()).unwrap();
        assert!(read.as_slice() == &bytes[offset as usize..(offset + len) as usize], "{offset} {len}");
    }
    let ranges = [3..9u64, 9 << 19..(9 << 19) + 5, 0..9 << 20];
    let read = source.read_ranges(&ranges, &pentaglot::Limits::default().budget()).unwrap();
    for (range, read) in ranges.iter().zip(read) {
        assert!(read.as_slice() == &bytes[range.start as usize..range.end as usize]);
    }
    assert!(source.unchanged().unwrap());
}

#[test]
fn empty_and_absent_objects_and_side_objects() {
    let (stores, memory) = bucket();
    put(&stores, &memory, "empty", Vec::new());
    put(&stores, &memory, "empty.meta", b"beside".to_vec());
    let source = object::open(place(&stores, "empty")).unwrap();
    assert_eq!(source.len(), Some(0));
    assert_eq!(source.sibling(".meta").unwrap().unwrap().head().unwrap(), b"beside");
    assert!(source.sibling(".idx").unwrap().is_none());
    let error = object::open(place(&stores, "absent")).unwrap_err();
    assert_eq!(
        (error.kind(), error.to_string().as_str()),
        (ErrorKind::Io, "cannot open: there is no such object")
    );
}

#[test]
fn an_object_that_is_replaced_is_an_error() {
    let (stores, memory) = bucket();
    put(&stores, &memory, "x", random(1 << 20));
    let source = object::open(place(&stores, "x")).unwrap();
    let mut buffer = vec![0; 100_000];
    source.read_exact_at(200_000, &mut buffer).unwrap();
    put(&stores, &memory, "x", vec![7; 1 << 20]);
    let error = source.read_exact_at(700_000, &mut buffer).unwrap_err();
    assert!(error.to_string().contains("the object changed while it was read"), "{error}");
    assert!(!source.unchanged().unwrap());
}

#[test]
fn uploads_appear_whole_at_the_end() {
    let (stores, memory) = bucket();
    for len in [0, 10, 5 << 20, (5 << 20) + 1, 8 << 20, 20 << 20] {
        let key = format!("upload-{len}");
        let bytes = random(len);
        let mut upload: Box<dyn Output> = Box::new(Upload::create(place(&stores, &key), false).unwrap());
        bytes.chunks(1_000_003).for_each(|chunk| upload.write(chunk).unwrap());
        assert!(get(&stores, &memory, &key).is_none(), "{len}");
        upload.commit().unwrap();
        assert!(get(&stores, &memory, &key).unwrap() == bytes, "{len}");
    }
    let mut dropped = Upload::create(place(&stores, "dropped"), false).unwrap();
    dropped.write(&random(17 << 20)).unwrap();
    drop(dropped);
    assert!(get(&stores, &memory, "dropped").is_none());
}

#[test]
fn what_exists_is_replaced_with_force_only() {
    let (stores, memory) = bucket();
    for len in [3, 6 << 20] {
        put(&stores, &memory, "x", b"old".to_vec());
        let error = Upload::create(place(&stores, "x"), false).err().unwrap();
        assert_eq!(
            (error.kind(), error.to_string().as_str()),
            (ErrorKind::Usage, "the object exists already")
        );
        // Another writer is first.
        let mut late: Box<dyn Output> = Box::new(Upload::create(place(&stores, "y"), false).unwrap());
        late.write(&random(len)).unwrap();
        put(&stores, &memory, "y", b"first".to_vec());
        assert!(pentaglot::Error::from(late.commit().unwrap_err()).to_string().contains("exists already"));
        assert_eq!(get(&stores, &memory, "y").unwrap(), b"first");
        let mut forced: Box<dyn Output> = Box::new(Upload::create(place(&stores, "y"), true).unwrap());
        forced.write(&random(len)).unwrap();
        forced.commit().unwrap();
        assert_eq!(get(&stores, &memory, "y").unwrap().len(), len);
        stores.wait(memory.delete(&Path::from("y"))).unwrap();
    }
}

#[test]
fn side_objects_appear_and_go_with_their_data() {
    let (stores, memory) = bucket();
    put(&stores, &memory, "x.idx", b"old".to_vec());
    let mut upload: Box<dyn Output> = Box::new(Upload::create(place(&stores, "x"), false).unwrap());
    upload.write(b"data").unwrap();
    let mut meta = upload.sibling(".meta").unwrap().unwrap();
    meta.write(b"{}").unwrap();
    meta.commit().unwrap();
    upload.remove_sibling(".idx").unwrap();
    upload.remove_sibling(".none").unwrap();
    assert!(get(&stores, &memory, "x.meta").is_none() && get(&stores, &memory, "x.idx").is_some());
    upload.commit().unwrap();
    assert_eq!(get(&stores, &memory, "x.meta").unwrap(), b"{}");
    assert!(get(&stores, &memory, "x.idx").is_none());
    // A failure leaves no side object without its data.
    let mut upload: Box<dyn Output> = Box::new(Upload::create(place(&stores, "z"), false).unwrap());
    let meta = upload.sibling(".meta").unwrap().unwrap();
    meta.commit().unwrap();
    put(&stores, &memory, "z", b"first".to_vec());
    upload.commit().unwrap_err();
    assert!(get(&stores, &memory, "z.meta").is_none());
}

#[test]
fn patterns_list_a_bucket() {
    let (stores, memory) = bucket();
    for key in ["day-2.csv", "day-1.csv", "day-10.csv", "sub/day-3.csv", ".day-4.csv", "sub/deep/day-5.csv"] {
        put(&stores, &memory, key, b"x".to_vec());
    }
    let list = |pattern: &str| stores.list(&format!("s3://test/{pattern}")).unwrap().unwrap().join(" ");
    assert_eq!(list("day-?.csv"), "s3://test/day-1.csv s3://test/day-2.csv");
    assert_eq!(list("sub/*.csv"), "s3://test/sub/day-3.csv");
    assert_eq!(list("sub/**/*.csv"), "s3://test/sub/day-3.csv s3://test/sub/deep/day-5.csv");
    assert_eq!(list("*.json"), "");
    assert_eq!(stores.list("https://host/*.csv?x").unwrap(), None);
    assert_eq!(stores.list("s3://test/a[.csv").unwrap_err().kind(), ErrorKind::Usage);
    assert!(Address::parse("s3://test/x").is_ok());
}
