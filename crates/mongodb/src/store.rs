//! The three collections of a store: versions and keys as they are read and changed, indexes, cleaning.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use arrow_array::new_empty_array;
use futures::TryStreamExt;
use mongodb::bson::oid::ObjectId;
use mongodb::bson::raw::RawDocumentBuf;
use mongodb::bson::{Bson, DateTime, Document, doc};
use mongodb::options::{ClientOptions, CollectionOptions};
use mongodb::{Client, Collection, Database, IndexModel};
use pentaglot::formats::bsondf::{BsonColumn, Type, read_document, write_document};
use pentaglot::formats::{ReadOptions, WriteOptions};
use pentaglot::{Error, Result};

use crate::{Address, Collections, Settings, fault};

/// An incomplete version whose heartbeat is older than this is removed.
pub(crate) const STALE: Duration = Duration::from_secs(600);

/// How many documents are named in one request.
pub(crate) const AT_ONCE: usize = 5_000;

pub(crate) async fn connect(uri: &str, settings: &Settings) -> mongodb::error::Result<Client> {
    let mut options = ClientOptions::parse(uri).await?;
    options.server_selection_timeout.get_or_insert(settings.connect_timeout);
    options.connect_timeout.get_or_insert(settings.connect_timeout);
    options.app_name.get_or_insert_with(|| "pentaglot".to_owned());
    Client::with_options(options)
}

/// The collections of one address.
#[derive(Clone)]
pub(crate) struct Store {
    pub(crate) collections: Collections,
    pub(crate) address: Address,
    database: Database,
    pub(crate) chunks: Collection<RawDocumentBuf>,
    pub(crate) versions: Collection<Document>,
    pub(crate) keys: Collection<Document>,
}

/// A version of a table.
#[derive(Debug, Clone)]
pub(crate) struct Version {
    pub(crate) id: ObjectId,
    pub(crate) key: String,
    pub(crate) is_done: bool,
    /// The last heartbeat of its writer; of a complete version, the time when it was completed. The server's clock.
    pub(crate) heartbeat: DateTime,
    pub(crate) rows: u64,
    pub(crate) columns: Vec<(String, Type)>,
    pub(crate) order: Option<String>,
    pub(crate) chunks: Vec<ChunkId>,
}

/// The `_id` of a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct ChunkId {
    pub(crate) version: ObjectId,
    pub(crate) number: i32,
}

impl ChunkId {
    pub(crate) fn to_bson(self) -> Document {
        doc! { "v": self.version, "n": self.number }
    }

    pub(crate) fn from_bson(id: &Document) -> Option<Self> {
        Some(ChunkId { version: id.get_object_id("v").ok()?, number: id.get_i32("n").ok()? })
    }
}

impl Store {
    pub(crate) fn new(collections: Collections, client: &Client, address: Address) -> Self {
        let database = client.database(address.database());
        let name = address.collection().to_owned();
        // What says that a version is complete, and which one a key has, must survive a crash of the server.
        let mut concern = database.write_concern().cloned().unwrap_or_default();
        concern.journal = Some(true);
        let durable = CollectionOptions::builder().write_concern(concern).build();
        let (chunks, versions, keys) = (
            database.collection(&name),
            database.collection_with_options(&format!("{name}.versions"), durable.clone()),
            database.collection_with_options(&format!("{name}.keys"), durable),
        );
        Store { collections, address, database, chunks, versions, keys }
    }

    /// Waits for a request.
    pub(crate) fn wait<T>(&self, request: impl Future<Output = mongodb::error::Result<T>>) -> Result<T> {
        self.collections.wait(&self.address, request)
    }

    /// The version that a key has now.
    pub(crate) fn current(&self, key: &str) -> Result<Option<ObjectId>> {
        let found = self.wait(async { self.keys.find_one(doc! { "_id": key }).await })?;
        found
            .map(|found| found.get_object_id("v").map_err(|_| broken("C.keys", "an object id v")))
            .transpose()
    }

    /// The ordering column of the table that an address names.
    pub(crate) fn current_order(&self) -> Result<Option<String>> {
        let key = self.address.key().unwrap_or_default();
        match self.current(key)? {
            Some(id) => Ok(self.version(id)?.order),
            None => Ok(None),
        }
    }

    /// The description of a version.
    pub(crate) fn version(&self, id: ObjectId) -> Result<Version> {
        let found = self.wait(async { self.versions.find_one(doc! { "_id": id }).await })?;
        let found = found.ok_or_else(|| Error::malformed(format_args!("version {id}"), "none"))?;
        Version::from_bson(&found)
    }

    /// Keys and their versions, at most `most`.
    pub(crate) fn all_keys(&self, most: i64) -> Result<Vec<(String, ObjectId)>> {
        let found: Vec<Document> = self.wait(async {
            self.keys.find(doc! {}).sort(doc! { "_id": 1 }).limit(most).await?.try_collect().await
        })?;
        let pair = |found: &Document| match (found.get_str("_id"), found.get_object_id("v")) {
            (Ok(key), Ok(version)) => Ok((key.to_owned(), version)),
            _ => Err(broken("C.keys", "a key of text and an object id v")),
        };
        found.iter().map(pair).collect()
    }

    /// The server's clock.
    pub(crate) fn now(&self) -> Result<DateTime> {
        let hello = self.wait(async { self.database.run_command(doc! { "hello": 1 }).await })?;
        hello.get_datetime("localTime").copied().map_err(|_| broken("hello", "the local time"))
    }

    /// Makes the indexes that reading uses.
    pub(crate) fn make_indexes(&self) -> Result<()> {
        let index = |keys: Document| IndexModel::builder().keys(keys).build();
        let chunks =
            [index(doc! { "k": 1, "_id.v": 1, "_id.n": 1 }), index(doc! { "k": 1, "min": 1, "max": 1 })];
        self.wait(async { self.chunks.create_indexes(chunks).await })?;
        let versions = [index(doc! { "k": 1, "state": 1 })];
        self.wait(async { self.versions.create_indexes(versions).await }).map(drop)
    }

    /// Removes incomplete versions whose heartbeat is ten minutes old by the server's clock; returns how many.
    ///
    /// The description is removed first, on the condition that its heartbeat is still old, so that a writer that is still running
    /// gets an error before its commit.
    pub(crate) fn clean(&self) -> Result<u64> {
        let limit = DateTime::from_millis(self.now()?.timestamp_millis() - STALE.as_millis() as i64);
        let stale = doc! { "state": "writing", "heartbeat": { "$lt": limit } };
        let found: Vec<Document> = self.wait(async {
            let only = doc! { "_id": 1 };
            self.versions.find(stale.clone()).projection(only).await?.try_collect().await
        })?;
        let mut cleaned = 0;
        for version in found {
            let Ok(id) = version.get_object_id("_id") else { continue };
            let mut exactly = stale.clone();
            exactly.insert("_id", id);
            if self.wait(async { self.versions.delete_one(exactly).await })?.deleted_count == 1 {
                self.delete_chunks_of(&[id])?;
                cleaned += 1;
            }
        }
        Ok(cleaned)
    }

    /// Deletes the chunks that were written for these versions.
    pub(crate) fn delete_chunks_of(&self, versions: &[ObjectId]) -> Result<u64> {
        let mut deleted = 0;
        for some in versions.chunks(AT_ONCE) {
            let ids: Vec<Bson> = some.iter().map(|id| Bson::ObjectId(*id)).collect();
            let filter = doc! { "_id.v": { "$in": ids } };
            deleted += self.wait(async { self.chunks.delete_many(filter).await })?.deleted_count;
        }
        Ok(deleted)
    }

    /// Deletes these chunks.
    pub(crate) fn delete_chunks(&self, chunks: &HashSet<ChunkId>) -> Result<u64> {
        let ids: Vec<Bson> = chunks.iter().map(|id| Bson::Document(id.to_bson())).collect();
        let mut deleted = 0;
        for some in ids.chunks(AT_ONCE) {
            let filter = doc! { "_id": { "$in": some.to_vec() } };
            deleted += self.wait(async { self.chunks.delete_many(filter).await })?.deleted_count;
        }
        Ok(deleted)
    }

    /// Moves a key from one version to another, or to none. `false`: it was not at `old` any more.
    ///
    /// Where the answer is lost, the key is looked at: it says which version won.
    pub(crate) fn move_key(&self, key: &str, old: Option<ObjectId>, new: Option<ObjectId>) -> Result<bool> {
        let moved = self.wait(async {
            match (old, new) {
                (None, Some(new)) => match self.keys.insert_one(doc! { "_id": key, "v": new }).await {
                    Ok(_) => Ok(true),
                    Err(error) if fault::is_duplicate(&error) => Ok(false),
                    Err(error) => Err(error),
                },
                (Some(old), Some(new)) => {
                    let update = doc! { "$set": { "v": new } };
                    Ok(self.keys.update_one(doc! { "_id": key, "v": old }, update).await?.matched_count == 1)
                }
                (Some(old), None) => {
                    Ok(self.keys.delete_one(doc! { "_id": key, "v": old }).await?.deleted_count == 1)
                }
                (None, None) => Ok(true),
            }
        });
        match moved {
            Ok(true) => Ok(true),
            // A repeated request finds what the first one did.
            Ok(false) => Ok(self.current(key)? == new),
            Err(error) => match self.current(key) {
                Ok(now) if now == new => Ok(true),
                Ok(now) if now == old => Err(error),
                Ok(_) => Ok(false),
                Err(_) => Err(error),
            },
        }
    }
}

impl Version {
    pub(crate) fn from_bson(found: &Document) -> Result<Self> {
        let wrong = |expected: &'static str| broken("C.versions", expected);
        let id = found.get_object_id("_id").map_err(|_| wrong("an object id"))?;
        let number = match found.get("rows") {
            Some(Bson::Int64(rows)) => *rows,
            Some(Bson::Int32(rows)) => i64::from(*rows),
            _ => return Err(wrong("a number of rows")),
        };
        let mut columns = Vec::new();
        let mut order = None;
        if let Ok(schema) = found.get_document("schema") {
            order = schema.get_str("order").ok().map(str::to_owned);
            let frame = schema.get_document("df").map_err(|_| wrong("a frame schema.df"))?;
            let bytes = frame.to_vec().map_err(|_| wrong("a frame schema.df"))?;
            let read =
                read_document(bytes, &ReadOptions::default()).map_err(|error| error.field("schema"))?;
            columns = read.into_iter().map(|column| (column.name, column.kind)).collect();
        }
        let chunks = found.get_array("chunks").map_err(|_| wrong("a list of chunks"))?;
        let chunk = |chunk: &Bson| {
            let id = chunk.as_document().and_then(ChunkId::from_bson);
            id.ok_or_else(|| wrong("chunk ids {v, n}"))
        };
        Ok(Version {
            id,
            key: found.get_str("k").unwrap_or_default().to_owned(),
            is_done: found.get_str("state").is_ok_and(|state| state == "done"),
            heartbeat: found.get_datetime("heartbeat").copied().unwrap_or(DateTime::MIN),
            rows: u64::try_from(number).map_err(|_| wrong("a number of rows"))?,
            columns,
            order,
            chunks: chunks.iter().map(chunk).collect::<Result<_>>()?,
        })
    }

    /// The field `schema`: a frame without rows, and the ordering column.
    pub(crate) fn schema(columns: &[(String, Type)], order: Option<&str>) -> Result<Document> {
        let empty = |(name, kind): &(String, Type)| {
            BsonColumn::new(name.clone(), kind.clone(), new_empty_array(&kind.to_arrow()))
        };
        let empty: Vec<BsonColumn> = columns.iter().map(empty).collect::<Result<_>>()?;
        let bytes = write_document(&empty, &WriteOptions::default())?;
        let frame = Document::from_reader(&bytes[..])
            .map_err(|error| Error::unsupported(format!("the schema as BSON: {error}")))?;
        Ok(doc! { "df": frame, "order": order.map(str::to_owned) })
    }

    /// What finds some chunks, whose ids were made by one version: the index of key, version and number serves it.
    pub(crate) fn chunk_filter(key: &str, chunks: &[ChunkId]) -> Document {
        let version = chunks.first().map(|chunk| chunk.version);
        let numbers: Vec<i32> = chunks.iter().map(|chunk| chunk.number).collect();
        doc! { "k": key, "_id.v": version, "_id.n": { "$in": numbers } }
    }

    /// Chunk ids in groups of at most `most`, the ids of each made by one version.
    pub(crate) fn groups(chunks: &[ChunkId], most: usize) -> impl Iterator<Item = &[ChunkId]> {
        chunks.chunk_by(|one, next| one.version == next.version).flat_map(move |same| same.chunks(most))
    }

    /// The chunk ids as a list.
    pub(crate) fn chunk_list(chunks: &[ChunkId]) -> Vec<Bson> {
        chunks.iter().map(|chunk| Bson::Document(chunk.to_bson())).collect()
    }

    /// The Arrow schema.
    pub(crate) fn arrow_schema(&self) -> Result<Arc<arrow_schema::Schema>> {
        Type::Struct(self.columns.clone()).to_schema().map(Arc::new)
    }
}

/// An error of a document that is not what the store writes.
fn broken(place: &str, expected: &str) -> Error {
    Error::malformed(format_args!("{expected} in {place}"), "another document").rule("mongodb-store")
}
