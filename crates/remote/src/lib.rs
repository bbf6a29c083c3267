//! Objects in S3, Google Cloud Storage, Azure Blob Storage and behind HTTP, as inputs and outputs of [`pentaglot`].
//!
//! [`Stores`] is a [`Remote`]: a [`Registry`](pentaglot::Registry) that has it opens and creates `s3://bucket/key`,
//! `gs://bucket/key`, `az://container/key`, `http://…` and `https://…` in every job.
//!
//! ```
//! use std::sync::Arc;
//! let stores = pentaglot_remote::Stores::from_env();
//! let registry = pentaglot::Registry::default().with_remote(Arc::new(stores));
//! assert!(registry.remote("s3://bucket/key")?.is_some());
//! # Ok::<(), pentaglot::Error>(())
//! ```
//!
//! An object is read by ranges, several at a time, each on the condition that the object is still the one that was
//! opened (`object.rs`). An upload appears when it is complete, or not at all (`upload.rs`).
//!
//! The calls block, on a runtime of their own: they must not be made on a thread that drives asynchronous tasks.

#![warn(missing_docs)]

mod address;
mod connections;
mod fault;
mod object;
#[cfg(test)]
mod tests;
mod upload;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures::TryStreamExt;
use glob::{MatchOptions, Pattern};
use object_store::path::Path;
use object_store::{ObjectMeta, ObjectStore, ObjectStoreExt};
use pentaglot::sink::Output;
use pentaglot::{Error, Remote, RemoteObject, Result, Source};
use tokio::runtime::Runtime;

pub use self::address::Address;
use self::connections::Connections;
use self::fault::Fault;

/// How requests are made.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Settings {
    /// How long a request may take.
    pub timeout: Duration,
    /// How long a connection may take to come about.
    pub connect_timeout: Duration,
    /// How often a request that failed on the server's side or on the way is repeated.
    pub retries: usize,
}

impl Default for Settings {
    /// 30 seconds a request, 5 to connect, 4 repetitions.
    fn default() -> Self {
        Settings { timeout: Duration::from_secs(30), connect_timeout: Duration::from_secs(5), retries: 4 }
    }
}

/// The object stores that names lead to. Clones share connections.
#[derive(Clone, Default)]
pub struct Stores {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    settings: Settings,
    connections: Connections,
}

impl Stores {
    /// Stores whose credentials are in the usual environment variables (`AWS_ACCESS_KEY_ID`, `GOOGLE_…`, `AZURE_…`). They are
    /// read when a store is first used. `PENTAGLOT_REMOTE_TIMEOUT` sets how many seconds a request may take.
    pub fn from_env() -> Self {
        let mut settings = Settings::default();
        let seconds = std::env::var("PENTAGLOT_REMOTE_TIMEOUT").ok();
        if let Some(seconds) = seconds.and_then(|text| text.parse().ok()).filter(|seconds| *seconds > 0) {
            settings.timeout = Duration::from_secs(seconds);
        }
        Stores::new(settings)
    }

    /// As [`from_env`](Self::from_env), with these settings.
    pub fn new(settings: Settings) -> Self {
        Stores { shared: Arc::new(Shared { settings, ..Shared::default() }) }
    }

    /// The store of an address, and the object's place in it.
    pub fn object_store(&self, address: &Address) -> Result<(Arc<dyn ObjectStore>, Path)> {
        let connect = || address.connect(&self.shared.settings);
        let store = self.shared.connections.here().store(address.store_key(), connect)?;
        Ok((store, address.path().clone()))
    }

    fn place(&self, name: &str) -> Result<Place> {
        let address = Address::parse(name)?;
        let (_, path) = self.object_store(&address)?;
        Ok(Place { stores: self.clone(), path, address })
    }

    fn runtime(&self) -> &Runtime {
        self.shared.connections.here().runtime()
    }

    /// Waits for a task on the runtime of these stores.
    fn wait<T>(&self, task: impl Future<Output = T>) -> T {
        self.runtime().block_on(task)
    }
}

/// One object, or a place where one may be.
#[derive(Clone)]
struct Place {
    stores: Stores,
    path: Path,
    address: Address,
}

impl Place {
    /// The store, by a connection of this process.
    fn store(&self) -> object_store::Result<Arc<dyn ObjectStore>> {
        let found = self.stores.object_store(&self.address);
        let fault = |error: Error| object_store::Error::Generic { store: "remote", source: Box::new(error) };
        found.map(|(store, _)| store).map_err(fault)
    }

    /// The object whose name is this one's and `suffix`.
    fn sibling(&self, suffix: &str) -> Self {
        Place { path: Path::from(format!("{}{suffix}", self.path)), ..self.clone() }
    }

    /// What is there now; `None` if nothing is, or nothing that may be seen.
    fn look(&self) -> std::result::Result<Option<ObjectMeta>, Fault> {
        use object_store::Error as Stored;
        let head = self.stores.wait(async { self.store()?.head(&self.path).await });
        match head {
            Ok(meta) => Ok(Some(meta)),
            Err(Stored::NotFound { .. } | Stored::PermissionDenied { .. }) => Ok(None),
            Err(error) => Err(Fault::new(&self.address, error)),
        }
    }
}

impl Remote for Stores {
    fn schemes(&self) -> &[&str] {
        address::SCHEMES
    }

    fn open(&self, name: &str) -> Result<Source> {
        object::open(self.place(name)?)
    }

    fn create(&self, name: &str, force: bool) -> Result<Box<dyn Output>> {
        Ok(Box::new(upload::Upload::create(self.place(name)?, force)?))
    }

    fn list(&self, pattern: &str) -> Result<Option<Vec<String>>> {
        // Behind HTTP nothing can be listed, and `?` begins a query.
        let Some((bucket, keys)) = address::bucket_and_pattern(pattern) else { return Ok(None) };
        let matching = Pattern::new(keys)
            .map_err(|error| Error::usage(format!("{pattern}, at byte {}: {}", error.pos, error.msg)))?;
        let literal = &keys[..keys.find(['*', '?', '[']).unwrap_or(keys.len())];
        let folder = literal.rsplit_once('/').map_or("", |(folder, _)| folder);
        let address = Address::parse(&format!("{bucket}/{folder}"))?;
        let (store, prefix) = self.object_store(&address)?;
        let listed = self.wait(store.list(Some(&prefix)).try_collect::<Vec<ObjectMeta>>());
        let options = MatchOptions {
            case_sensitive: true,
            require_literal_separator: true,
            require_literal_leading_dot: true,
        };
        let keys = listed.map_err(|error| Fault::new(&address, error).doing("cannot list"))?;
        let keys = keys.into_iter().map(|meta| meta.location.to_string());
        let keys = keys.filter(|key| matching.matches_with(key, options));
        let mut names: Vec<String> = keys.map(|key| format!("{bucket}/{key}")).collect();
        names.sort_unstable();
        Ok(Some(names))
    }

    fn objects(&self, name: &str) -> Result<Option<Vec<RemoteObject>>> {
        if address::bucket_and_pattern(name).is_none() {
            return Ok(None);
        }
        let place = self.place(name)?;
        let listed = self.wait(async { place.store()?.list_with_delimiter(Some(&place.path)).await });
        let listed = listed.map_err(|error| Fault::new(&place.address, error).doing("cannot list"))?;
        let object = |meta: ObjectMeta| {
            let name = meta.location.filename().unwrap_or_default();
            RemoteObject::new(name, meta.size, meta.last_modified.into())
        };
        let mut objects: Vec<RemoteObject> = listed.objects.into_iter().map(object).collect();
        objects.sort_unstable_by(|one, other| one.name.cmp(&other.name));
        Ok(Some(objects))
    }

    fn remove(&self, name: &str) -> Result<()> {
        let place = self.place(name)?;
        match self.wait(async { place.store()?.delete(&place.path).await }) {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(Fault::new(&place.address, error).doing("cannot remove").into()),
        }
    }
}
