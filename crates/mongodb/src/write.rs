//! A table that is being written: chunks go to the server as the format's writer finishes them; the key moves last.

use std::collections::{HashSet, VecDeque};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use mongodb::bson::doc;
use mongodb::bson::oid::ObjectId;
use mongodb::bson::raw::{RawBsonRef, RawDocument, RawDocumentBuf, cstr};
use pentaglot::formats::ReadOptions;
use pentaglot::formats::bsondf::{Type, read_document};
use pentaglot::sink::Output;
use pentaglot::{Error, Hint, Result};
use tokio::task::JoinHandle;

use crate::fault;
use crate::store::{ChunkId, Store, Version};

/// How often a writer updates the heartbeat of its version.
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(30);

/// How many chunks are under way at a time.
const AT_A_TIME: usize = 2;

/// What MongoDB takes in one document.
const MOST_BYTES: usize = 16 << 20;

/// A version that is being written.
pub(crate) struct Upload {
    store: Store,
    key: String,
    append: bool,
    /// The version that the key has at the beginning.
    old: Option<ObjectId>,
    /// What is appended to.
    base: Option<Version>,
    id: ObjectId,
    /// The bytes of a document that is not complete.
    waiting: Vec<u8>,
    under_way: VecDeque<JoinHandle<Result<()>>>,
    /// The chunks in order, those of the base first.
    chunks: Vec<ChunkId>,
    rows: u64,
    columns: Option<Vec<(String, Type)>>,
    heartbeat: Option<Heartbeat>,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Nothing has been written.
    New,
    Writing,
    /// The key has moved, or may have: nothing is removed.
    Settled,
}

/// The task that updates the heartbeat.
struct Heartbeat {
    task: JoinHandle<()>,
    /// Another process has removed the version.
    is_lost: Arc<AtomicBool>,
}

impl Drop for Heartbeat {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Upload {
    /// A new version of a key; an existing key is replaced with `force` only.
    pub(crate) fn create(store: Store, force: bool, append: bool) -> Result<Self> {
        let key = store.address.key().unwrap_or_default().to_owned();
        // In a collection of keyed tables, a name without a key is a slip.
        if store.address.key().is_none() && store.all_keys(2)?.iter().any(|(key, _)| !key.is_empty()) {
            let error = Error::usage("the collection holds tables under keys, and no key is named");
            return Err(error.hint(Hint::Advice("add key=KEY to the address".into())));
        }
        let old = store.current(&key)?;
        if old.is_some() && !force && !append {
            return Err(Error::usage(format!("the key {key:?} exists already")).hint(Hint::Force));
        }
        let base = match old.filter(|_| append) {
            Some(id) => Some(store.version(id)?),
            None => None,
        };
        if let (Some(base), Some(order)) = (&base, store.address.order())
            && base.order.as_deref() != Some(order)
        {
            let found = base.order.as_deref().unwrap_or("none");
            return Err(Error::usage(format!("order: expected {found}, as in the table, found {order}")));
        }
        let chunks = base.as_ref().map(|base| base.chunks.clone()).unwrap_or_default();
        let rows = base.as_ref().map_or(0, |base| base.rows);
        Ok(Upload {
            store,
            key,
            append,
            old,
            base,
            id: ObjectId::new(),
            waiting: Vec::new(),
            under_way: VecDeque::new(),
            chunks,
            rows,
            columns: None,
            heartbeat: None,
            state: State::New,
        })
    }

    fn order(&self) -> Option<&str> {
        self.base.as_ref().map_or(self.store.address.order(), |base| base.order.as_deref())
    }

    /// Inserts the description of the version, in the state `writing`, with the chunks that it shares.
    fn begin(&mut self, columns: Vec<(String, Type)>) -> Result<()> {
        if let Some(base) = self.base.as_ref().filter(|base| base.columns != columns) {
            return Err(mismatch(&base.columns, &columns));
        }
        self.store.clean()?;
        self.store.make_indexes()?;
        let version = doc! {
            "_id": self.id,
            "k": &self.key,
            "state": "writing",
            "heartbeat": self.store.now()?,
            "rows": i64::try_from(self.rows).unwrap_or(i64::MAX),
            "schema": Version::schema(&columns, self.order())?,
            "chunks": Version::chunk_list(&self.chunks),
        };
        self.columns = Some(columns);
        self.state = State::Writing;
        self.store.wait(async { self.store.versions.insert_one(version).await })?;
        self.heartbeat = Some(self.start_heartbeat()?);
        Ok(())
    }

    fn start_heartbeat(&self) -> Result<Heartbeat> {
        let is_lost = Arc::new(AtomicBool::new(false));
        let (versions, id, lost) = (self.store.versions.clone(), self.id, Arc::clone(&is_lost));
        let task = self.store.collections.runtime()?.spawn(async move {
            loop {
                tokio::time::sleep(HEARTBEAT_INTERVAL).await;
                let beat = doc! { "$currentDate": { "heartbeat": true } };
                let seen = versions.update_one(doc! { "_id": id, "state": "writing" }, beat).await;
                // A beat that does not arrive may be followed by one that does.
                if seen.is_ok_and(|seen| seen.matched_count == 0) {
                    lost.store(true, Ordering::Relaxed);
                    return;
                }
            }
        });
        Ok(Heartbeat { task, is_lost })
    }

    /// Sends a chunk as the format's writer made it, under the names of this version.
    fn send(&mut self, bytes: &[u8]) -> Result<()> {
        let wrong = |expected: &str| Error::malformed(expected, "another document").rule("mongodb-store");
        let written = RawDocument::from_bytes(bytes).map_err(|_| wrong("a BSON document"))?;
        let number = |name: &str| written.get_i64(name).ok().and_then(|number| u64::try_from(number).ok());
        let (Some(rows), Ok(frame)) = (number("rows"), written.get_document("df")) else {
            return Err(wrong("a chunk"));
        };
        if self.columns.is_none() {
            let read = read_document(frame.as_bytes().to_vec(), &ReadOptions::default())?;
            self.begin(read.into_iter().map(|column| (column.name, column.kind)).collect())?;
        }
        if self.heartbeat.as_ref().is_some_and(|heartbeat| heartbeat.is_lost.load(Ordering::Relaxed)) {
            return Err(was_removed());
        }
        let id = ChunkId { version: self.id, number: i32::try_from(self.chunks.len()).unwrap_or(i32::MAX) };
        let mut chunk = RawDocumentBuf::new();
        let mut own = RawDocumentBuf::new();
        own.append(cstr!("v"), id.version);
        own.append(cstr!("n"), id.number);
        chunk.append(cstr!("_id"), own);
        chunk.append(cstr!("k"), self.key.as_str());
        chunk.append(cstr!("first"), i64::try_from(self.rows).unwrap_or(i64::MAX));
        chunk.append(cstr!("rows"), i64::try_from(rows).unwrap_or(i64::MAX));
        let bound = |name: &str| written.get(name).ok().flatten().unwrap_or(RawBsonRef::Null);
        chunk.append(cstr!("min"), bound("min"));
        chunk.append(cstr!("max"), bound("max"));
        chunk.append(cstr!("df"), frame);
        let length = chunk.as_bytes().len();
        if length > MOST_BYTES {
            return Err(Error::limit(
                "MongoDB's limit for a document",
                MOST_BYTES,
                format!("{length} bytes"),
            ));
        }
        self.chunks.push(id);
        self.rows += rows;
        while self.under_way.len() >= AT_A_TIME {
            self.wait_for_one()?;
        }
        let (chunks, address) = (self.store.chunks.clone(), self.store.address.clone());
        let timeout = self.store.collections.shared.settings.timeout;
        let task = self.store.collections.runtime()?.spawn(async move {
            match tokio::time::timeout(timeout, chunks.insert_one(chunk)).await {
                Ok(Ok(_)) => Ok(()),
                Ok(Err(error)) => Err(fault::error(&address, &error)),
                Err(_) => Err(fault::timeout(&address, timeout)),
            }
        });
        self.under_way.push_back(task);
        Ok(())
    }

    fn wait_for_one(&mut self) -> Result<()> {
        let Some(task) = self.under_way.pop_front() else { return Ok(()) };
        match self.store.collections.runtime()?.block_on(task) {
            Ok(done) => done,
            Err(error) => Err(Error::unsupported(format!("a task of the driver ended: {error}"))),
        }
    }

    /// Completes the version and moves the key to it.
    fn settle(&mut self) -> Result<()> {
        while !self.under_way.is_empty() {
            self.wait_for_one()?;
        }
        if !self.waiting.is_empty() || self.columns.is_none() {
            return Err(Error::truncated("whole documents", "a part of one"));
        }
        let done = doc! {
            "$set": {
                "state": "done",
                "rows": i64::try_from(self.rows).unwrap_or(i64::MAX),
                "chunks": Version::chunk_list(&self.chunks),
            },
            // From now on this is the time at which the version was complete: `prune` compares it.
            "$currentDate": { "heartbeat": true },
        };
        let only = doc! { "_id": self.id, "state": "writing" };
        if self.store.wait(async { self.store.versions.update_one(only, done).await })?.matched_count != 1 {
            return Err(was_removed());
        }
        self.heartbeat = None;
        match self.store.move_key(&self.key, self.old, Some(self.id)) {
            Ok(true) => {
                self.state = State::Settled;
                self.check_kept()
            }
            Ok(false) => {
                let key = &self.key;
                let text =
                    format!("another writer changed the key {key:?} meanwhile; nothing of this one is kept");
                let error = Error::usage(text);
                Err(if self.append { error } else { error.hint(Hint::Force) })
            }
            Err(error) => {
                // The request may still arrive: what the key may point to must stay. `prune` removes it if it did not.
                self.state = State::Settled;
                Err(error)
            }
        }
    }

    /// Moves the key back if the version was deleted between its completion and the commit.
    fn check_kept(&self) -> Result<()> {
        let found = self.store.wait(async { self.store.versions.find_one(doc! { "_id": self.id }).await });
        if let Ok(None) = found {
            self.store.move_key(&self.key, Some(self.id), self.old)?;
            return Err(Error::usage("this version was deleted before its commit"));
        }
        Ok(())
    }

    /// Removes what was written. What cannot be removed now is cleaned by a later writer.
    fn forget(&mut self) {
        self.heartbeat = None;
        for task in self.under_way.drain(..) {
            task.abort();
            if let Ok(runtime) = self.store.collections.runtime() {
                let _ = runtime.block_on(task);
            }
        }
        let own: HashSet<ChunkId> =
            self.chunks.iter().copied().filter(|chunk| chunk.version == self.id).collect();
        let removed = self.store.delete_chunks(&own);
        if removed.is_ok() {
            let _ = self.store.wait(async { self.store.versions.delete_one(doc! { "_id": self.id }).await });
        }
    }
}

fn was_removed() -> Error {
    Error::usage("another process has removed this version: its heartbeat was ten minutes old")
}

/// Why rows cannot be appended.
fn mismatch(old: &[(String, Type)], new: &[(String, Type)]) -> Error {
    let text = |columns: &[(String, Type)]| {
        columns.iter().map(|(name, kind)| format!("{name}: {kind}")).collect::<Vec<_>>().join(", ")
    };
    let differing = old.iter().zip(new).find(|(old, new)| old != new);
    let (expected, found) = match differing {
        Some((old, new)) => (text(std::slice::from_ref(old)), text(std::slice::from_ref(new))),
        None => (format!("{} columns", old.len()), new.len().to_string()),
    };
    Error::usage(format!("only rows of the same columns can be appended: expected {expected}, found {found}"))
}

impl Output for Upload {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut rest = bytes;
        while !rest.is_empty() {
            let wanted = match self.waiting.first_chunk() {
                None => 4,
                Some(length) => {
                    let length = usize::try_from(i32::from_le_bytes(*length)).unwrap_or(0);
                    if !(5..=MOST_BYTES).contains(&length) {
                        let text = format!("{length} bytes");
                        return Err(Error::limit("MongoDB's limit for a document", MOST_BYTES, text).into());
                    }
                    length
                }
            };
            let (now, later) = rest.split_at(rest.len().min(wanted - self.waiting.len()));
            self.waiting.extend_from_slice(now);
            rest = later;
            if wanted > 4 && self.waiting.len() == wanted {
                let document = std::mem::take(&mut self.waiting);
                self.send(&document)?;
            }
        }
        Ok(())
    }

    fn can_patch(&self) -> bool {
        false
    }

    fn patch(&mut self, _offset: u64, _bytes: &[u8]) -> io::Result<()> {
        Err(Error::usage("what was sent cannot be patched").into())
    }

    fn sibling(&mut self, _suffix: &str) -> io::Result<Option<Box<dyn Output>>> {
        Ok(None)
    }

    fn commit(mut self: Box<Self>) -> io::Result<()> {
        Ok(self.settle()?)
    }
}

impl Drop for Upload {
    /// Removes what was written, unless it is complete and the key's.
    fn drop(&mut self) {
        if self.state == State::Writing {
            self.forget();
        }
    }
}
