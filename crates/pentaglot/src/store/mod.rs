//! A content-addressed store: data under its identity, in chunks that versions and formats share. Described in
//! `docs/store.md`.
//!
//! ```text
//! put:  rows --enc, cut, BLAKE3--> chunks --zstd--> packs/ID.pack      then roots/IDENTITY, which links its chunks
//! get:  roots/IDENTITY --> chunks, each checked --> rows, as those of any document
//! ```
//!
//! Files are written whole, roots last: a process that is killed leaves a store that verifies. Adding and reading take a shared
//! lock, removing an exclusive one.

mod bucket;
mod collect;
mod column;
mod cut;
mod decode;
mod document;
mod files;
mod index;
mod list;
mod pack;
mod put;
mod root;
mod schema;
#[cfg(test)]
mod tests;
mod verify;

use std::path::Path;
use std::sync::Arc;

pub use collect::Collected;
pub use document::StoredFormat;
pub use list::Listed;
pub use root::ROOT_TYPE;
pub use verify::{StoreFinding, Verification};

use self::bucket::Bucket;
use self::files::{Files, Folder, Lock, ROOTS};
use self::root::Root;
use crate::control::Control;
use crate::error::{Error, Result};
use crate::formats::Document;
use crate::hub::Rows;
use crate::identity::Identity;
use crate::limits::Budget;
use crate::registry::Registry;

/// How data is put into a store.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct PutOptions {
    /// The name that a listing shows.
    pub name: Option<String>,
    /// The id of the format that the data comes from.
    pub format: Option<String>,
    /// When it is put in, in ticks of 100 ns since 1970; now, if not given.
    pub time: Option<i64>,
    /// The memory that the job may use, and its other limits.
    pub budget: Budget,
    /// The handle on the job: its threads, the flag that ends it.
    pub control: Control,
}

impl PutOptions {
    setters! {
        texts [
            with_name(name),
            with_format(format),
        ]
        values [
            with_time(time: i64),
            with_budget(budget: Budget),
            with_control(control: Control),
        ]
    }
}

/// What was put in.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Stored {
    /// The identity of the data, which is its name in the store.
    pub identity: Identity,
    /// Bytes that the store has in addition.
    pub new_bytes: u64,
}

impl Stored {
    /// One object: `{file, identity, shape, rows, columns, new_bytes}`.
    pub fn to_json(&self, file: &str) -> Result<String> {
        let Identity { shape, rows, columns, .. } = &self.identity;
        let (identity, columns) = (self.identity.cid()?.to_string(), columns.len());
        let object = serde_json::json!({ "file": file, "identity": identity, "shape": shape, "rows": rows,
            "columns": columns, "new_bytes": self.new_bytes });
        Ok(object.to_string())
    }
}

/// A store in a folder or a bucket.
///
/// ```
/// use pentaglot::store::{PutOptions, Store};
/// use pentaglot::{Budget, Control, Registry, Source, job};
/// let folder = tempfile::tempdir().unwrap();
/// let store = Store::create(folder.path())?;
/// let source = Source::from_bytes("x.csv", b"a,b\n1,x\n2,y\n".to_vec());
/// let opened = job::open_source(&Registry::default(), source, None, &job::OpenOptions::default())?;
/// let stored = store.put(opened.rows(&job::View::default())?, &PutOptions::default())?;
/// let id = stored.identity.cid()?.to_string();
/// let document = store.document(&id, None, &Budget::default(), &Control::default())?;
/// assert_eq!(document.all_rows()?.next().unwrap()?.num_rows(), 2);
/// assert!(store.verify(&Budget::default(), &Control::default())?.findings.is_empty());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Store {
    files: Arc<dyn Files>,
}

impl Store {
    /// The store in a folder, which is made if it is not there.
    pub fn create(path: impl AsRef<Path>) -> Result<Self> {
        Ok(Store { files: Arc::new(Folder::create(path.as_ref())?) })
    }

    /// The store in a folder. A folder that is none is an error.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Ok(Store { files: Arc::new(Folder::open(path.as_ref())?) })
    }

    /// The store of this name: a folder, or a place such as `s3://bucket/folder` that the registry knows. With `create`, it is
    /// made if it is not there.
    ///
    /// A bucket has no locks. There, packs younger than a day are not collected, and chunks that are older than half a day are
    /// written again when data is added that has them.
    pub fn named(registry: &Registry, name: &str, create: bool) -> Result<Self> {
        let files: Arc<dyn Files> = match (registry.remote(name)?, create) {
            (Some(remote), true) => Arc::new(Bucket::create(Arc::clone(remote), name)?),
            (Some(remote), false) => Arc::new(Bucket::open(Arc::clone(remote), name)?),
            (None, true) => return Store::create(name),
            (None, false) => return Store::open(name),
        };
        Ok(Store { files })
    }

    /// Stores rows under their identity. A matrix in columns or as `row, col, value` is stored as that matrix.
    pub fn put(&self, rows: Rows, options: &PutOptions) -> Result<Stored> {
        let _lock = self.files.lock(Lock::Shared, &options.control)?;
        put::put(&self.files, rows, options)
    }

    /// Data as a document; see [`find`](Self::find) for what names it. Where it was put in from several formats, `format` says
    /// whose types it has; else those of the latest. Chunks are checked as they are read, and the store is locked while they are.
    pub fn document(
        &self,
        id: &str,
        format: Option<&str>,
        budget: &Budget,
        control: &Control,
    ) -> Result<Arc<dyn Document>> {
        let _lock = self.files.lock(Lock::Shared, control)?;
        let id = self.find(id, budget)?;
        let root = self.root(&id, budget)?;
        let files = Arc::clone(&self.files);
        Ok(Arc::new(document::StoredDocument::new(files, root, format, budget, control)?))
    }

    /// The identity that a text means: an identity, the beginning of just one, or a name; of several that were given the same
    /// name, the one that was put in last.
    pub fn find(&self, text: &str, budget: &Budget) -> Result<String> {
        let ids = self.identities()?;
        let begins = text.starts_with(root::PREFIX);
        let fitting: Vec<&String> = ids.iter().filter(|id| begins && id.starts_with(text)).collect();
        if let [one] = fitting.as_slice() {
            return Ok((*one).clone());
        }
        let (mut named, mut damaged) = (None, None);
        for id in ids.iter().filter(|_| !text.is_empty()) {
            match self.root(id, budget) {
                Ok(root) => {
                    let times =
                        root.origins.iter().filter(|origin| origin.name == text).map(|origin| origin.time);
                    named = named.max(times.max().map(|time| (time, id.clone())));
                }
                Err(error) => damaged = damaged.or(Some(error)),
            }
        }
        match (named, damaged) {
            (Some((_, id)), _) => Ok(id),
            (None, _) if !fitting.is_empty() => {
                let some = fitting.iter().take(3).map(|id| id.as_str()).collect::<Vec<_>>().join(", ");
                let more = if fitting.len() > 3 { ", …" } else { "" };
                let count = fitting.len();
                Err(Error::usage(format!(
                    "{count} identities in the store begin with {text:?}: {some}{more}"
                )))
            }
            // It may be the one that was meant.
            (None, Some(error)) => Err(error),
            (None, None) => {
                let error = Error::usage(format!("nothing in this store is named {text:?}"));
                Err(error.in_input(self.files.name()))
            }
        }
    }

    /// Removes what a text means; see [`find`](Self::find). Its chunks go with the next [`collect`](Self::collect). Gives the
    /// identity.
    pub fn remove(&self, id: &str, budget: &Budget, control: &Control) -> Result<String> {
        let _lock = self.files.lock(Lock::Exclusive, control)?;
        let id = self.find(id, budget)?;
        self.files.remove(&format!("{ROOTS}/{id}"))?;
        self.files.sync(ROOTS)?;
        Ok(id)
    }

    /// What the store has, the oldest first.
    pub fn list(&self, budget: &Budget, control: &Control) -> Result<Vec<Listed>> {
        let _lock = self.files.lock(Lock::Shared, control)?;
        list::list(self, budget, control)
    }

    /// Checks every byte of the packs and every root.
    pub fn verify(&self, budget: &Budget, control: &Control) -> Result<Verification> {
        let _lock = self.files.lock(Lock::Shared, control)?;
        verify::verify(self, budget, control)
    }

    /// Frees the space of chunks that no root needs.
    pub fn collect(&self, budget: &Budget, control: &Control) -> Result<Collected> {
        let _lock = self.files.lock(Lock::Exclusive, control)?;
        collect::collect(self, budget, control)
    }

    /// The identities of all data.
    fn identities(&self) -> Result<Vec<String>> {
        let items = self.files.list(ROOTS)?.into_iter().map(|item| item.name);
        Ok(items.filter(|name| root::is_identity(name)).collect())
    }

    fn root(&self, id: &str, budget: &Budget) -> Result<Root> {
        let name = format!("{ROOTS}/{id}");
        let root = self.files.open(&name).and_then(|source| Root::read(&source, id, budget));
        root.map_err(|error| error.in_input(name))
    }
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Store").field(&self.files.name()).finish()
    }
}
