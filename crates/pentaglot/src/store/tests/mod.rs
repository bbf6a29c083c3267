//! Tests of the store.

mod cutting;
mod damage;
mod locking;
mod round_trip;
mod sharing;

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{Field, Schema, SchemaRef};

use super::{PutOptions, Store, Stored};
use crate::hub::rows::{self, Rows};
pub(super) use crate::testing::arbitrary::Random;
use crate::{Budget, Control, Error};

/// A store in a folder that goes away.
pub(super) struct Scratch {
    pub(super) folder: tempfile::TempDir,
    pub(super) store: Store,
}

impl Scratch {
    pub(super) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::create(folder.path()).unwrap();
        Scratch { folder, store }
    }

    pub(super) fn put(&self, batches: &[RecordBatch]) -> Stored {
        self.store.put(stream(batches), &PutOptions::default()).unwrap()
    }

    pub(super) fn get(&self, stored: &Stored) -> Vec<RecordBatch> {
        let id = stored.identity.cid().unwrap().to_string();
        self.try_get(&id).unwrap()
    }

    pub(super) fn try_get(&self, id: &str) -> crate::Result<Vec<RecordBatch>> {
        let document = self.store.document(id, None, &Budget::default(), &Control::default())?;
        document.all_rows()?.map(|batch| batch.map_err(Error::from)).collect()
    }

    /// Bytes of packs.
    pub(super) fn pack_bytes(&self) -> u64 {
        self.store.files.list("packs").unwrap().iter().map(|item| item.bytes).sum()
    }

    pub(super) fn check_sound(&self) {
        let verification = self.store.verify(&Budget::default(), &Control::default()).unwrap();
        assert!(verification.findings.is_empty(), "{:?}", verification.findings);
    }

    pub(super) fn collect(&self) -> super::Collected {
        self.store.collect(&Budget::default(), &Control::default()).unwrap()
    }
}

pub(super) fn stream(batches: &[RecordBatch]) -> Rows {
    let batches = batches.to_vec();
    rows::from_batches(batches[0].schema(), batches.into_iter().map(Ok))
}

pub(super) fn table(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    let fields: Vec<Field> =
        columns.iter().map(|(name, array)| Field::new(*name, array.data_type().clone(), true)).collect();
    let schema: SchemaRef = Arc::new(Schema::new(fields));
    RecordBatch::try_new(schema, columns.into_iter().map(|(_, array)| array).collect()).unwrap()
}

pub(super) fn one(batches: &[RecordBatch]) -> RecordBatch {
    arrow_select::concat::concat_batches(&batches[0].schema(), batches).unwrap()
}
