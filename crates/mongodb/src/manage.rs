//! What is done to stores apart from reading and writing tables: listing, deleting, pruning.

use std::collections::{HashMap, HashSet};

use futures::TryStreamExt;
use mongodb::bson::oid::ObjectId;
use mongodb::bson::{Bson, DateTime, Document, doc};
use pentaglot::{Error, Result};

use crate::store::{ChunkId, STALE, Store, Version};
use crate::{Address, Collections};

/// A table in a collection.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct KeyInfo {
    /// Its key.
    pub key: String,
    /// Its version, in hex digits.
    pub version: String,
    /// Whether this is the version that the key has now.
    pub is_current: bool,
    /// How many rows it has.
    pub rows: u64,
    /// In how many chunks.
    pub chunks: u64,
}

/// What was removed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Removed {
    /// How many versions.
    pub versions: u64,
    /// How many chunks.
    pub chunks: u64,
}

impl Collections {
    /// The tables of a collection, by key, or all versions of the key that an address names, the oldest first.
    pub fn tables(&self, name: &str) -> Result<Vec<KeyInfo>> {
        let store = self.store(&Address::parse(name)?)?;
        let filter = match store.address.key() {
            Some(key) => doc! { "k": key, "state": "done" },
            None => doc! { "state": "done" },
        };
        let keys: HashSet<ObjectId> = store.all_keys(0)?.into_iter().map(|(_, version)| version).collect();
        let versions = done_versions(&store, filter)?;
        let is_wanted = |version: &&Version| store.address.key().is_some() || keys.contains(&version.id);
        let info = |version: &Version| KeyInfo {
            key: version.key.clone(),
            version: version.id.to_hex(),
            is_current: keys.contains(&version.id),
            rows: version.rows,
            chunks: version.chunks.len() as u64,
        };
        let mut tables: Vec<KeyInfo> = versions.iter().filter(is_wanted).map(info).collect();
        tables.sort_by(|one, other| one.key.cmp(&other.key));
        Ok(tables)
    }

    /// Deletes a key with all its versions, or the one version that the address names, if the key has another one now.
    pub fn delete(&self, name: &str) -> Result<Removed> {
        let store = self.store(&Address::parse(name)?)?;
        let Some(key) = store.address.key().map(str::to_owned) else {
            return Err(Error::usage("expected a key to delete: key=…"));
        };
        let current = store.current(&key)?;
        if let Some(version) = store.address.version() {
            if current == Some(version) {
                return Err(Error::usage(format!("version {version} is the one that {key:?} has now")));
            }
            let found = store.version(version)?;
            if found.key != key || !found.is_done {
                return Err(Error::usage(format!("{version} is not a complete version of {key:?}")));
            }
            return remove(&store, &[version]);
        }
        let Some(current) = current else {
            return Err(Error::usage(format!("there is no key {key:?}")));
        };
        if !store.move_key(&key, Some(current), None)? {
            return Err(Error::usage(format!("another writer changed the key {key:?} meanwhile")));
        }
        let versions = done_versions(&store, doc! { "k": &key, "state": "done" })?;
        remove(&store, &versions.iter().map(|version| version.id).collect::<Vec<_>>())
    }

    /// Deletes all complete versions that no key has now, of one key or of all, but the newest `keep` of each key; removes
    /// incomplete versions of interrupted writers, and deletes chunks that no version has.
    ///
    /// A version that was completed after the one that its key has now may be just before its commit: it is deleted when it is
    /// ten minutes old.
    pub fn prune(&self, name: &str, keep: usize) -> Result<Removed> {
        let store = self.store(&Address::parse(name)?)?;
        let cleaned = store.clean()?;
        let mut filter = doc! { "state": "done" };
        if let Some(key) = store.address.key() {
            filter.insert("k", key);
        }
        let current: HashMap<String, ObjectId> = store.all_keys(0)?.into_iter().collect();
        let versions = done_versions(&store, filter)?;
        let completed: HashMap<ObjectId, DateTime> =
            versions.iter().map(|version| (version.id, version.heartbeat)).collect();
        let limit = DateTime::from_millis(store.now()?.timestamp_millis() - STALE.as_millis() as i64);
        let is_old = |version: &&Version| match current.get(&version.key) {
            Some(id) if *id == version.id => false,
            Some(id) => {
                let newer = completed.get(id).is_some_and(|completed| version.heartbeat < *completed);
                newer || version.heartbeat < limit
            }
            None => version.heartbeat < limit,
        };
        let mut old: Vec<&Version> = versions.iter().filter(is_old).collect();
        old.sort_by_key(|version| (version.key.clone(), std::cmp::Reverse(version.heartbeat)));
        let (mut key, mut kept) = (None, 0);
        let mut gone = Vec::new();
        for version in old {
            if key != Some(&version.key) {
                (key, kept) = (Some(&version.key), 0);
            }
            kept += 1;
            if kept > keep {
                gone.push(version.id);
            }
        }
        let mut removed = remove(&store, &gone)?;
        removed.versions += cleaned;
        removed.chunks += orphans(&store)?;
        Ok(removed)
    }
}

/// Complete versions, the oldest first. Ids say only in which second a version was begun.
fn done_versions(store: &Store, filter: Document) -> Result<Vec<Version>> {
    let found: Vec<Document> =
        store.wait(async { store.versions.find(filter).await?.try_collect().await })?;
    let mut versions: Vec<Version> = found.iter().map(Version::from_bson).collect::<Result<_>>()?;
    versions.sort_by_key(|version| (version.heartbeat, version.id));
    Ok(versions)
}

/// Removes complete versions, and those of their chunks that no other version has.
fn remove(store: &Store, versions: &[ObjectId]) -> Result<Removed> {
    if versions.is_empty() {
        return Ok(Removed::default());
    }
    let ids: Vec<Bson> = versions.iter().map(|id| Bson::ObjectId(*id)).collect();
    let gone = done_versions(store, doc! { "_id": { "$in": ids.clone() } })?;
    let deleted = store.wait(async { store.versions.delete_many(doc! { "_id": { "$in": ids } }).await })?;
    // Versions that are being written count: they may share chunks.
    let used: HashSet<ChunkId> =
        done_versions(store, doc! {})?.into_iter().flat_map(|one| one.chunks).collect();
    let unused = gone.into_iter().flat_map(|one| one.chunks).filter(|chunk| !used.contains(chunk)).collect();
    Ok(Removed { versions: deleted.deleted_count, chunks: store.delete_chunks(&unused)? })
}

/// Deletes chunks of versions that are not described any more and that no other version shares.
fn orphans(store: &Store) -> Result<u64> {
    let chunks = store.chunks.clone_with_type::<Document>();
    // Chunks first: a description is there before its chunks.
    let found: Vec<Document> = store
        .wait(async { chunks.find(doc! {}).projection(doc! { "_id": 1 }).await?.try_collect().await })?;
    let found = found.iter().filter_map(|chunk| ChunkId::from_bson(chunk.get_document("_id").ok()?));
    let versions = done_versions(store, doc! {})?;
    let described: HashSet<ObjectId> = versions.iter().map(|version| version.id).collect();
    let used: HashSet<ChunkId> = versions.into_iter().flat_map(|version| version.chunks).collect();
    let unused = found.filter(|chunk| !described.contains(&chunk.version) && !used.contains(chunk)).collect();
    store.delete_chunks(&unused)
}
