//! A file that has no name yet, or a temporary one, until it is complete.
//!
//! On Linux it has no name at all (`O_TMPFILE`), so the file system frees it however the process ends. Elsewhere, and
//! on file systems without such files, it is `.NAME.pentaglot-RANDOM.tmp` and locked; a later write to NAME removes
//! files of interrupted writes: see [`sweep`].

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::path::Path;
use std::time::Duration;

use tempfile::TempPath;

/// A temporary file that is older than this and not locked belongs to a process that was killed.
const STALE: Duration = Duration::from_secs(60);

/// How many entries of a folder [`sweep`] examines, so that a folder with very many files does not slow down every
/// write.
const MOST_ENTRIES: usize = 10_000;

/// A file that is being written.
pub(super) struct Pending {
    pub(super) file: File,
    name: Option<TempPath>,
}

impl Pending {
    /// A file that will be placed at `path`.
    pub(super) fn beside(path: &Path) -> io::Result<Pending> {
        sweep(path);
        let pending = match unnamed::open(folder_of(path))? {
            Some(file) => Pending { file, name: None },
            None => Pending::named(path)?,
        };
        // On a file system without locks, `sweep` gets no lock either and removes nothing.
        let _ = pending.file.try_lock();
        Ok(pending)
    }

    /// A file with a temporary name, for file systems without unnamed files.
    fn named(path: &Path) -> io::Result<Pending> {
        let create = |path: &Path| File::options().read(true).write(true).create_new(true).open(path);
        let (file, name) = make_temporary(path, create)?.into_parts();
        Ok(Pending { file, name: Some(name) })
    }

    /// Gives the file its name. An existing file is replaced only with `force`.
    pub(super) fn place(self, path: &Path, force: bool) -> io::Result<()> {
        // Who may read the file that is replaced may read the new one, and nobody else.
        if force && let Ok(old) = path.metadata() {
            let _ = self.file.set_permissions(old.permissions());
        }
        let name = match self.name {
            Some(name) => name,
            None => match unnamed::link(&self.file, path) {
                Err(error) if force && error.kind() == io::ErrorKind::AlreadyExists => {
                    make_temporary(path, |path: &Path| unnamed::link(&self.file, path))?.into_temp_path()
                }
                linked => return linked,
            },
        };
        let placed = if force { name.persist(path) } else { name.persist_noclobber(path) };
        placed.map_err(|error| error.error)
    }
}

/// The folder of a file.
pub(super) fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// Makes the names in a folder durable, where the system supports it.
pub(super) fn sync_folder(path: &Path) -> io::Result<()> {
    let synced =
        if cfg!(unix) { File::open(folder_of(path)).and_then(|folder| folder.sync_all()) } else { Ok(()) };
    match synced {
        // A folder that cannot be read, or a file system that cannot sync one.
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::PermissionDenied | io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported
            ) =>
        {
            Ok(())
        }
        synced => synced,
    }
}

const SUFFIX: &str = ".tmp";

/// The prefix of a file's temporary names. Long names are truncated, since a file name has at most 255 bytes.
fn prefix(path: &Path) -> OsString {
    let name = path.file_name().unwrap_or_default();
    let mut prefix = OsString::from(".");
    if name.len() <= 200 {
        prefix.push(name);
    } else {
        let text = name.to_string_lossy();
        prefix.push(&text[..text.floor_char_boundary(200)]);
    }
    prefix.push(".pentaglot-");
    prefix
}

/// Creates something under a temporary name in the folder of `path`.
fn make_temporary<R>(
    path: &Path,
    make: impl FnMut(&Path) -> io::Result<R>,
) -> io::Result<tempfile::NamedTempFile<R>> {
    let prefix = prefix(path);
    let mut builder = tempfile::Builder::new();
    builder.prefix(&prefix).suffix(SUFFIX).rand_bytes(12).make_in(folder_of(path), make)
}

/// A second, temporary name for a file that is about to be replaced; `None` if there is no such file.
pub(super) fn backup(path: &Path) -> io::Result<Option<TempPath>> {
    if !path.is_file() {
        return Ok(None);
    }
    make_temporary(path, |name: &Path| std::fs::hard_link(path, name)).map(|made| Some(made.into_temp_path()))
}

/// Undoes a change of a file: the old one returns, or the new one goes. Errors are ignored, since another one is reported.
pub(super) fn restore(path: &Path, old: Option<TempPath>) {
    let _ = match &old {
        Some(old) => std::fs::rename(old, path),
        None => std::fs::remove_file(path),
    };
    // If both names are those of one file, the rename has done nothing: the other name goes with `old`.
}

/// Removes temporary files of killed writes to `path`: those that are old and not locked.
///
/// Errors are ignored, so that the write itself does not fail.
fn sweep(path: &Path) {
    let prefix = prefix(path);
    let Ok(entries) = std::fs::read_dir(folder_of(path)) else { return };
    for entry in entries.take(MOST_ENTRIES).flatten() {
        let name = entry.file_name();
        let random = name.as_encoded_bytes().strip_prefix(prefix.as_encoded_bytes());
        let random = random.and_then(|rest| rest.strip_suffix(SUFFIX.as_bytes()));
        if !random.is_some_and(|random| !random.is_empty() && random.iter().all(u8::is_ascii_alphanumeric)) {
            continue;
        }
        // Metadata of the entry itself: a link is not followed.
        let is_old = entry.metadata().is_ok_and(|meta| {
            meta.is_file() && meta.modified().is_ok_and(|time| time.elapsed().is_ok_and(|age| age >= STALE))
        });
        if is_old
            && let Ok(file) = File::options().write(true).open(entry.path())
            && file.try_lock().is_ok()
        {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

/// Files without a name.
#[cfg(target_os = "linux")]
mod unnamed {
    use std::fs::File;
    use std::io;
    use std::os::fd::AsRawFd;
    use std::path::Path;

    use rustix::fs::{AtFlags, CWD, Mode, OFlags};
    use rustix::io::Errno;

    /// A new file in `folder`; `None` if its file system has no unnamed files, or there is no way to name one later.
    pub(super) fn open(folder: &Path) -> io::Result<Option<File>> {
        if !Path::new("/proc/self/fd").is_dir() {
            return Ok(None);
        }
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
        match rustix::fs::open(folder, flags, Mode::from_raw_mode(0o666)) {
            Ok(file) => Ok(Some(File::from(file))),
            // Kernels and file systems without `O_TMPFILE` return one of these.
            Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::NOENT | Errno::INVAL) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Gives the file a name. Returns an error if the name exists.
    pub(super) fn link(file: &File, path: &Path) -> io::Result<()> {
        let from = format!("/proc/self/fd/{}", file.as_raw_fd());
        Ok(rustix::fs::linkat(CWD, from, CWD, path, AtFlags::SYMLINK_FOLLOW)?)
    }
}

/// Other systems have no unnamed files.
#[cfg(not(target_os = "linux"))]
mod unnamed {
    use std::fs::File;
    use std::io;
    use std::path::Path;

    pub(super) fn open(_: &Path) -> io::Result<Option<File>> {
        Ok(None)
    }

    pub(super) fn link(_: &File, _: &Path) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::time::SystemTime;

    use super::*;

    #[test]
    fn only_old_unlocked_files_of_the_same_name_are_swept() {
        let folder = tempfile::tempdir().unwrap();
        let old = SystemTime::now() - 2 * STALE;
        let make = |name: &str, time: SystemTime| {
            let file = File::create(folder.path().join(name)).unwrap();
            file.set_modified(time).unwrap();
            file
        };
        make(".x.npy.pentaglot-a1B2.tmp", old);
        let names = [
            ".x.npy.pentaglot-young.tmp",
            ".x.npy.pentaglot-locked.tmp",
            ".x.npy.pentaglot-.tmp",
            ".x.npy.pentaglot-no-word.tmp",
            ".x.npy.pentaglot-other.txt",
            ".y.npy.pentaglot-a1B2.tmp",
            "x.npy.pentaglot-a1B2.tmp",
        ];
        make(names[0], SystemTime::now());
        let locked = make(names[1], old);
        locked.lock().unwrap();
        names[2..].iter().for_each(|name| drop(make(name, old)));
        sweep(&folder.path().join("x.npy"));
        let mut left: Vec<String> = fs::read_dir(folder.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        left.sort();
        let mut expected = names.map(str::to_owned).to_vec();
        expected.sort();
        assert_eq!(left, expected);
    }

    #[test]
    fn a_name_of_any_length_has_a_temporary_one() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["x".repeat(255), "ü".repeat(127)] {
            let path = folder.path().join(name);
            for force in [false, true] {
                Pending::beside(&path).unwrap().place(&path, force).unwrap();
            }
            assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
            fs::remove_file(path).unwrap();
        }
    }

    /// As on file systems without unnamed files.
    #[test]
    fn a_named_file_is_placed_or_removed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        let named = || Pending::named(&path).unwrap();
        drop(named());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        named().place(&path, false).unwrap();
        assert_eq!(named().place(&path, false).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        named().place(&path, true).unwrap();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
