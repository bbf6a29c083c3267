//! The few operations on files that a store needs, and the folder that does them; `bucket` does them elsewhere.
//!
//! ```text
//! lock              flock: shared while data is added or read, exclusive while data is removed
//! lock.gate         flock: who waits for the exclusive lock has it, so that no new reader comes in between
//! packs/ID.pack     chunks
//! roots/IDENTITY    one for each data
//! tmp/              files that are being written; what a killed process leaves here, the next collection removes
//! ```

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use tempfile::NamedTempFile;

use crate::control::Control;
use crate::error::{Error, Result};
use crate::source::Source;

/// The folder of chunks.
pub(super) const PACKS: &str = "packs";
/// The folder of roots.
pub(super) const ROOTS: &str = "roots";
const TEMPORARY: &str = "tmp";
const LOCK: &str = "lock";
const GATE: &str = "lock.gate";
/// How often a lock that another process has is asked for.
const POLL: Duration = Duration::from_millis(10);

/// A file of a store.
#[derive(Debug, Clone)]
pub(super) struct Item {
    pub(super) name: String,
    pub(super) bytes: u64,
    /// How long ago it was written, where nothing but time keeps those who add and those who remove apart.
    pub(super) age: Option<Duration>,
}

/// What a store does to its files. Names are `packs/…` and `roots/…`.
pub(super) trait Files: Send + Sync {
    /// How the store is called in messages.
    fn name(&self) -> String;
    /// The files of a folder, by name.
    fn list(&self, folder: &str) -> Result<Vec<Item>>;
    /// The bytes of a file.
    fn open(&self, name: &str) -> Result<Source>;
    /// A file of no name that is to become part of the store.
    fn create(&self) -> Result<NamedTempFile>;
    /// Bytes that no other pack has, if packs of the same chunks must have different names. `path` is that of a new file.
    fn salt(&self, path: &Path) -> Vec<u8> {
        let _ = path;
        Vec::new()
    }
    /// Gives a complete file its name, in place of one of the same name. It is on disk before it has its name.
    fn commit(&self, file: NamedTempFile, name: &str) -> Result<()>;
    /// Makes the names of a folder durable.
    fn sync(&self, folder: &str) -> Result<()>;
    /// Removes a file.
    fn remove(&self, name: &str) -> Result<()>;
    /// Removes what interrupted processes left. The caller has the exclusive lock.
    fn remove_temporary(&self) -> Result<()>;
    /// Waits until nobody has a lock that excludes this one, or the job ends.
    fn lock(&self, lock: Lock, control: &Control) -> Result<Locked>;
}

/// What a lock is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lock {
    /// Adding and reading: any number of processes at a time.
    Shared,
    /// Removing: one process alone.
    Exclusive,
}

/// A lock, until it is dropped.
#[derive(Debug)]
pub(super) struct Locked {
    _file: Option<File>,
}

impl Locked {
    /// No lock: the storage has none.
    pub(super) fn nothing() -> Self {
        Locked { _file: None }
    }
}

/// A store in a folder.
pub(super) struct Folder {
    path: PathBuf,
}

fn cannot(what: &str, path: &Path) -> impl FnOnce(io::Error) -> Error {
    let message = format!("cannot {what} {}", path.display());
    move |error| Error::io(message, error)
}

impl Folder {
    /// The store in a folder, which is made where there is none yet.
    pub(super) fn create(path: &Path) -> Result<Self> {
        if path.exists() && !path.is_dir() {
            return Err(Error::usage("expected a folder, found a file").in_input(path.display().to_string()));
        }
        for folder in [PACKS, ROOTS, TEMPORARY] {
            let folder = path.join(folder);
            fs::create_dir_all(&folder).map_err(cannot("make", &folder))?;
        }
        Folder::open(path)
    }

    /// The store in a folder, which must be one.
    pub(super) fn open(path: &Path) -> Result<Self> {
        for folder in [PACKS, ROOTS] {
            if !path.join(folder).is_dir() {
                let error = Error::usage(format!("this is not a store: it has no folder {folder}"));
                return Err(error.in_input(path.display().to_string()));
            }
        }
        Ok(Folder { path: path.to_path_buf() })
    }
}

impl Folder {
    fn lock_file(&self, name: &str, lock: Lock, control: &Control) -> Result<File> {
        let path = self.path.join(name);
        let file = File::options().create(true).truncate(false).read(true).write(true).open(&path);
        // A store that may only be read is locked all the same.
        let file = file.or_else(|error| File::open(&path).map_err(|_| error));
        let file = file.map_err(cannot("lock", &path))?;
        loop {
            let locked = match lock {
                Lock::Shared => file.try_lock_shared(),
                Lock::Exclusive => file.try_lock(),
            };
            match locked {
                Ok(()) => return Ok(file),
                Err(TryLockError::WouldBlock) => {
                    control.check()?;
                    std::thread::sleep(POLL);
                }
                Err(TryLockError::Error(error)) => return Err(cannot("lock", &path)(error)),
            }
        }
    }
}

impl Files for Folder {
    fn name(&self) -> String {
        self.path.display().to_string()
    }

    fn list(&self, folder: &str) -> Result<Vec<Item>> {
        let path = self.path.join(folder);
        let mut items = Vec::new();
        for entry in fs::read_dir(&path).map_err(cannot("list", &path))? {
            let entry = entry.map_err(cannot("list", &path))?;
            let metadata = entry.metadata().map_err(cannot("list", &path))?;
            if let (true, Ok(name)) = (metadata.is_file(), entry.file_name().into_string()) {
                items.push(Item { name, bytes: metadata.len(), age: None });
            }
        }
        items.sort_unstable_by(|one, other| one.name.cmp(&other.name));
        Ok(items)
    }

    fn open(&self, name: &str) -> Result<Source> {
        Source::open(self.path.join(name))
    }

    fn create(&self) -> Result<NamedTempFile> {
        let path = self.path.join(TEMPORARY);
        fs::create_dir_all(&path).map_err(cannot("make", &path))?;
        let mut builder = tempfile::Builder::new();
        // As any file that is created, not for this user alone.
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
        builder.tempfile_in(&path).map_err(cannot("write to", &path))
    }

    fn commit(&self, file: NamedTempFile, name: &str) -> Result<()> {
        let path = self.path.join(name);
        file.as_file().sync_all().map_err(cannot("write", &path))?;
        file.persist(&path).map_err(|error| cannot("write", &path)(error.error))?;
        Ok(())
    }

    fn sync(&self, folder: &str) -> Result<()> {
        let path = self.path.join(folder);
        File::open(&path).and_then(|folder| folder.sync_all()).map_err(cannot("write", &path))
    }

    fn remove(&self, name: &str) -> Result<()> {
        let path = self.path.join(name);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(cannot("remove", &path)(error)),
            _ => Ok(()),
        }
    }

    fn remove_temporary(&self) -> Result<()> {
        self.list(TEMPORARY)?.iter().try_for_each(|item| self.remove(&format!("{TEMPORARY}/{}", item.name)))
    }

    fn lock(&self, lock: Lock, control: &Control) -> Result<Locked> {
        let _gate = self.lock_file(GATE, lock, control)?;
        Ok(Locked { _file: Some(self.lock_file(LOCK, lock, control)?) })
    }
}

/// Seconds since 1970 and their fraction, in ticks of 100 ns.
pub(super) fn now() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_nanos() / 100).unwrap_or(i64::MAX)
}
