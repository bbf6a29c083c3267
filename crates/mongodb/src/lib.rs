//! Collections of MongoDB as tables of [`pentaglot`].
//!
//! [`Collections`] is a [`Remote`]: a [`Registry`](pentaglot::Registry) that has it reads and writes
//! `mongodb://HOSTS/DB/COLLECTION?key=…` in every job.
//!
//! ```
//! use std::sync::Arc;
//! let collections = pentaglot_mongodb::Collections::from_env();
//! let registry = pentaglot::Registry::default().with_remote(Arc::new(collections));
//! assert!(registry.remote("mongodb://localhost/db/ticks?key=AAPL")?.is_some());
//! # Ok::<(), pentaglot::Error>(())
//! ```
//!
//! A collection `C` holds any number of tables, each under a key:
//!
//! ```text
//! C            {_id: {v: ObjectId, n: int32}, k, first: int64, rows: int64, min, max, df: {frame}}       a chunk of rows
//! C.versions   {_id, k, state: "writing" | "done", heartbeat, rows, schema: {df, order}, chunks: [chunk ids in order]}
//! C.keys       {_id: k, v}                                                       which version a key has now
//! ```
//!
//! A write makes a new version: its description, then chunks, then `state: "done"`; last, `C.keys` is changed on the
//! condition that it is what it was at the beginning. That last step is the commit: before it nobody sees the version, after it
//! everybody does, and of two writers one gets an error. An appended version lists the chunks of the older one before its
//! own. `schema.df` is a frame without rows, `schema.order` the ordering column, whose bounds each chunk has as `min` and
//! `max`.
//!
//! The calls block, on a runtime of their own: they must not be made on a thread that drives asynchronous tasks.

#![warn(missing_docs)]

mod address;
mod fault;
mod fetch;
mod manage;
mod read;
mod rows;
mod store;
#[cfg(test)]
mod tests;
mod write;

use std::collections::HashMap;
use std::future::Future;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use mongodb::Client;
use pentaglot::formats::{OptionMap, ReadOptions};
use pentaglot::sink::Output;
use pentaglot::{Error, ErrorKind, Remote, RemoteObject, RemoteTable, Result, Source};
use tokio::runtime::Runtime;

pub use self::address::Address;
pub use self::manage::{KeyInfo, Removed};
use self::store::Store;

/// A chunk is at most so long, unless asked otherwise or a single row is longer: a range of rows fetches whole chunks.
const CHUNK_BYTES: &str = "4M";
/// MongoDB takes documents of up to 16 MiB.
const MAX_BYTES: &str = "15M";

/// The format of the documents.
const FORMAT: &str = "bsondf";

/// How requests are made.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Settings {
    /// How long a request may take.
    pub timeout: Duration,
    /// How long a server is looked for.
    pub connect_timeout: Duration,
}

impl Default for Settings {
    /// 60 seconds a request, 10 to find a server.
    fn default() -> Self {
        Settings { timeout: Duration::from_secs(60), connect_timeout: Duration::from_secs(10) }
    }
}

/// The databases that names lead to. Clones share connections.
#[derive(Clone, Default)]
pub struct Collections {
    shared: Arc<Shared>,
    append: bool,
}

struct Shared {
    settings: Settings,
    /// The process that may use the runtime: a child made by `fork` has none of its threads.
    process: u32,
    runtime: OnceLock<Runtime>,
    clients: Mutex<HashMap<String, Client>>,
}

impl Default for Shared {
    fn default() -> Self {
        let (settings, process) = (Settings::default(), std::process::id());
        Shared { settings, process, runtime: OnceLock::new(), clients: Mutex::default() }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        if self.process != std::process::id() {
            std::mem::forget(self.runtime.take());
        }
    }
}

impl Collections {
    /// Databases whose hosts and passwords may be in `MONGODB_URI`. `PENTAGLOT_REMOTE_TIMEOUT` sets how many seconds a
    /// request may take.
    pub fn from_env() -> Self {
        let mut settings = Settings::default();
        let seconds = std::env::var("PENTAGLOT_REMOTE_TIMEOUT").ok();
        if let Some(seconds) = seconds.and_then(|text| text.parse().ok()).filter(|seconds| *seconds > 0) {
            settings.timeout = Duration::from_secs(seconds);
            settings.connect_timeout = settings.connect_timeout.min(settings.timeout);
        }
        Collections::new(settings)
    }

    /// As [`from_env`](Self::from_env), with these settings.
    pub fn new(settings: Settings) -> Self {
        let mut shared = Shared::default();
        shared.settings = settings;
        Collections { shared: Arc::new(shared), append: false }
    }

    /// The same databases, where an output is appended to the table that has its key: a new version that shares the chunks of
    /// the older one.
    #[must_use]
    pub fn appending(&self) -> Self {
        Collections { append: true, ..self.clone() }
    }

    fn store(&self, address: &Address) -> Result<Store> {
        let key = address.uri().to_owned();
        let known = self.shared.clients.lock().unwrap_or_else(PoisonError::into_inner).get(&key).cloned();
        let client = match known {
            Some(client) => client,
            None => {
                let client = self.wait(address, store::connect(address.uri(), &self.shared.settings))?;
                let mut clients = self.shared.clients.lock().unwrap_or_else(PoisonError::into_inner);
                clients.entry(key).or_insert(client).clone()
            }
        };
        Ok(Store::new(self.clone(), &client, address.clone()))
    }

    /// The threads of requests; errs in a child of the process that opened these databases.
    fn runtime(&self) -> Result<&Runtime> {
        if self.shared.process != std::process::id() {
            return Err(Error::usage("a collection that was opened before `fork`: open it in this process"));
        }
        Ok(self.shared.runtime.get_or_init(|| {
            tokio::runtime::Builder::new_multi_thread()
                .worker_threads(2)
                .thread_name("pentaglot-mongodb")
                .enable_all()
                .build()
                .expect("a runtime needs two threads")
        }))
    }

    /// Waits for a request; errs if it takes too long.
    fn wait<T>(
        &self,
        address: &Address,
        request: impl Future<Output = mongodb::error::Result<T>>,
    ) -> Result<T> {
        let timeout = self.shared.settings.timeout;
        let timed = async { tokio::time::timeout(timeout, request).await };
        match self.runtime()?.block_on(timed) {
            Ok(answer) => answer.map_err(|error| fault::error(address, &error)),
            Err(_) => Err(fault::timeout(address, timeout)),
        }
    }
}

impl Remote for Collections {
    fn schemes(&self) -> &[&str] {
        &["mongodb", "mongodb+srv"]
    }

    fn open(&self, _name: &str) -> Result<Source> {
        Err(Error::unsupported("a collection as bytes: it is a table"))
    }

    fn open_table(&self, name: &str, options: &ReadOptions) -> Result<Option<RemoteTable>> {
        let mut address = Address::parse(name)?;
        if let Some(key) = &options.member {
            address.set_key(key)?;
        }
        read::open(self.store(&address)?, options).map(Some)
    }

    fn table_format(&self, name: &str) -> Result<Option<(&'static str, OptionMap)>> {
        let address = Address::parse(name)?;
        let mut options = OptionMap::default();
        options.set("max-bytes", MAX_BYTES);
        options.set("target-bytes", CHUNK_BYTES);
        options.set("key", address.key().unwrap_or_default());
        let order = match (address.order(), self.append) {
            (Some(order), _) => Some(order.to_owned()),
            (None, true) => self.store(&address)?.current_order()?,
            (None, false) => None,
        };
        if let Some(order) = order {
            options.set("order", order);
        }
        Ok(Some((FORMAT, options)))
    }

    fn create(&self, name: &str, force: bool) -> Result<Box<dyn Output>> {
        let address = Address::parse(name)?;
        address.check_output()?;
        let upload = write::Upload::create(self.store(&address)?, force, self.append)?;
        Ok(Box::new(upload))
    }

    fn objects(&self, _name: &str) -> Result<Option<Vec<RemoteObject>>> {
        Ok(None)
    }

    fn list(&self, _pattern: &str) -> Result<Option<Vec<String>>> {
        // `?` begins a query.
        Ok(None)
    }

    fn remove(&self, name: &str) -> Result<()> {
        match self.delete(name) {
            Err(error) if error.kind() != ErrorKind::Usage => Err(error),
            _ => Ok(()),
        }
    }
}
