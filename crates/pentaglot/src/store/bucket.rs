//! A store in a bucket: objects are written whole, and there are no locks.
//!
//! Time keeps those who add and those who remove apart instead: `put` writes a chunk again rather than rely on a pack that is
//! older than [`REUSED_FOR`], and `gc` removes no pack that is younger than [`SPARED_FOR`]. So a `put` that takes less than the
//! time between them finds its chunks, whatever is collected meanwhile. Packs have random names, in effect, so that no pack is
//! written while it is being removed.

use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tempfile::NamedTempFile;

use super::files::{Files, Item, Lock, Locked, PACKS, ROOTS, now};
use crate::control::Control;
use crate::error::{Error, Result};
use crate::redact::redacted;
use crate::remote::Remote;
use crate::source::Source;

const HOUR: Duration = Duration::from_secs(3600);
/// Chunks of a pack of this age are not relied on any more when data is added.
pub(super) const REUSED_FOR: Duration = HOUR.saturating_mul(12);
/// A pack of this age may be removed.
pub(super) const SPARED_FOR: Duration = HOUR.saturating_mul(24);

/// A store below a name such as `s3://bucket/folder`.
pub(super) struct Bucket {
    remote: Arc<dyn Remote>,
    name: String,
}

impl Bucket {
    /// The store below a name; it exists as soon as it has objects.
    pub(super) fn create(remote: Arc<dyn Remote>, name: &str) -> Result<Self> {
        let bucket = Bucket { remote, name: name.trim_end_matches('/').to_owned() };
        // Whether the storage can be listed is known before anything is written.
        bucket.list(ROOTS)?;
        Ok(bucket)
    }

    /// The store below a name, which must have objects.
    pub(super) fn open(remote: Arc<dyn Remote>, name: &str) -> Result<Self> {
        let bucket = Bucket::create(remote, name)?;
        if bucket.list(ROOTS)?.is_empty() && bucket.list(PACKS)?.is_empty() {
            return Err(Error::usage("this is not a store: it has no objects").in_input(bucket.name()));
        }
        Ok(bucket)
    }

    fn path(&self, name: &str) -> String {
        format!("{}/{name}", self.name)
    }
}

impl Files for Bucket {
    fn name(&self) -> String {
        redacted(&self.name).into_owned()
    }

    fn list(&self, folder: &str) -> Result<Vec<Item>> {
        let objects = self.remote.objects(&self.path(folder))?;
        let objects = objects.ok_or_else(|| Error::unsupported("a store where objects cannot be listed"))?;
        let now = SystemTime::now();
        // An object that seems to be of the future is new: clocks differ.
        let age = |modified: SystemTime| Some(now.duration_since(modified).unwrap_or_default());
        let items = objects.into_iter();
        Ok(items
            .map(|object| Item { age: age(object.modified), name: object.name, bytes: object.bytes })
            .collect())
    }

    fn open(&self, name: &str) -> Result<Source> {
        self.remote.open(&self.path(name))
    }

    fn create(&self) -> Result<NamedTempFile> {
        NamedTempFile::new()
            .map_err(|error| Error::io("cannot write to the folder of temporary files", error))
    }

    /// A collection may be removing a pack of the same chunks, which it found old and without use: a new pack must not have
    /// that name.
    fn salt(&self, path: &Path) -> Vec<u8> {
        let mut hasher = blake3::Hasher::new();
        hasher.update(path.as_os_str().as_encoded_bytes()).update(&now().to_le_bytes());
        hasher.finalize().as_bytes()[..16].to_vec()
    }

    fn commit(&self, file: NamedTempFile, name: &str) -> Result<()> {
        let cannot = |error| Error::io(format!("cannot write {name}"), error);
        let mut input = file.reopen().map_err(cannot)?;
        let mut output = self.remote.create(&self.path(name), true)?;
        let mut buffer = vec![0; 1 << 20];
        loop {
            let count = input.read(&mut buffer).map_err(cannot)?;
            if count == 0 {
                return output.commit().map_err(cannot);
            }
            output.write(&buffer[..count]).map_err(cannot)?;
        }
    }

    fn sync(&self, _folder: &str) -> Result<()> {
        Ok(())
    }

    fn remove(&self, name: &str) -> Result<()> {
        self.remote.remove(&self.path(name))
    }

    fn remove_temporary(&self) -> Result<()> {
        Ok(())
    }

    fn lock(&self, _lock: Lock, control: &Control) -> Result<Locked> {
        control.check()?;
        Ok(Locked::nothing())
    }
}
