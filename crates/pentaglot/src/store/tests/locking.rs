//! Who waits for whom.

use std::fs::File;
use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array};

use super::super::files::Lock;
use super::{Scratch, table};
use crate::{Budget, Control, ErrorKind};

#[test]
fn removing_waits_for_readers_and_can_be_cancelled() {
    let scratch = Scratch::new();
    let batch = table(vec![("x", Arc::new(Int64Array::from_iter_values(0..10)) as ArrayRef)]);
    let id = scratch.put(&[batch]).identity.cid().unwrap().to_string();
    let document = scratch.store.document(&id, None, &Budget::default(), &Control::default()).unwrap();
    // An open document does not keep others from removing; rows that are being read do.
    let rows = document.all_rows().unwrap();
    let control = Control::default();
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| scratch.store.collect(&Budget::default(), &control));
        control.cancel();
        assert_eq!(waiting.join().unwrap().unwrap_err().kind(), ErrorKind::Cancelled);
    });
    assert_eq!(rows.map(|batch| batch.unwrap().num_rows()).sum::<usize>(), 10);
    scratch.store.remove(&id, &Budget::default(), &Control::default()).unwrap();
    scratch.collect();
    assert!(document.all_rows().unwrap().next().unwrap().is_err(), "it is gone");
}

#[test]
fn who_waits_to_remove_comes_before_new_readers() {
    let scratch = Scratch::new();
    let files = &scratch.store.files;
    let held = files.lock(Lock::Shared, &Control::default()).unwrap();
    let gate = File::open(scratch.folder.path().join("lock.gate")).unwrap();
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| drop(files.lock(Lock::Exclusive, &Control::default()).unwrap()));
        // Until the writer has the gate.
        while gate.try_lock_shared().is_ok() {
            gate.unlock().unwrap();
            std::thread::yield_now();
        }
        // A reader that comes now waits, though another reader has the lock.
        let control = Control::default();
        control.cancel();
        assert_eq!(files.lock(Lock::Shared, &control).unwrap_err().kind(), ErrorKind::Cancelled);
        assert!(!writer.is_finished());
        drop(held);
        writer.join().unwrap();
        files.lock(Lock::Shared, &Control::default()).unwrap();
    });
}
