//! A file that appears complete or not at all, with its side files.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use tempfile::TempPath;

use super::Output;
use super::pending::{Pending, backup, folder_of, restore, sync_folder};
use super::reread::Reread;
use super::write_back::WriteBack;
use crate::error::{Error, ErrorKind, Hint};
use crate::source::ReadAt;

/// A side file that is complete and waits for the file that it belongs to.
struct SideFile {
    suffix: String,
    pending: Pending,
    path: PathBuf,
}

type Waiting = Arc<Mutex<Vec<SideFile>>>;

/// Bytes of one write. The page cache takes blocks of memory as large as one write, and large free blocks are what a virtual
/// machine returns to its host: with writes of 512 KiB and more, every other file took three times as long.
const WRITE_BYTES: usize = 128 << 10;

/// A file that gets its name when it is committed.
pub(super) struct FileOutput {
    pending: Pending,
    write_back: WriteBack,
    path: PathBuf,
    force: bool,
    siblings: Waiting,
    removals: Vec<PathBuf>,
    /// The suffix of a side file, and the list that it is added to when it is complete.
    main: Option<(String, Waiting)>,
}

impl FileOutput {
    /// A file that will be `path`; an existing one is replaced only with `force`.
    pub(super) fn create(path: &Path, force: bool) -> io::Result<Self> {
        let pending = Pending::beside(path).map_err(|error| fault(path, error))?;
        let (siblings, removals) = (Waiting::default(), Vec::new());
        let (write_back, path) = (WriteBack::default(), path.to_path_buf());
        Ok(FileOutput { pending, write_back, path, force, siblings, removals, main: None })
    }

    /// Writes everything to the disk.
    pub(super) fn sync(&self) -> io::Result<()> {
        self.pending.file.sync_all().map_err(|error| fault(&self.path, error))
    }

    /// The name that the data will have.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The names that the data and its side files will have, and those of side files that are removed.
    pub(super) fn paths(&self) -> Vec<PathBuf> {
        let siblings = self.siblings.lock().unwrap_or_else(PoisonError::into_inner);
        let siblings = siblings.iter().map(|sibling| &sibling.path);
        siblings.chain(&self.removals).chain([&self.path]).cloned().collect()
    }

    /// Gives all files their names, the data last.
    pub(super) fn place(self) -> io::Result<()> {
        let FileOutput { pending, path, force, siblings, removals, .. } = self;
        let siblings = std::mem::take(&mut *siblings.lock().unwrap_or_else(PoisonError::into_inner));
        let several = !siblings.is_empty() || !removals.is_empty();
        // The side files that are new or gone, and the old ones that they replaced.
        let mut changed: Vec<(PathBuf, Option<TempPath>)> = Vec::new();
        let place_all = || {
            // Where there are no hard links, a change cannot be undone.
            let old = |path: &Path| if force { backup(path).ok() } else { Some(None) };
            for SideFile { pending, path, .. } in siblings {
                let old = old(&path);
                pending.place(&path, force).map_err(|error| fault(&path, error))?;
                changed.extend(old.map(|old| (path, old)));
            }
            for path in removals {
                let old = old(&path);
                match std::fs::remove_file(&path) {
                    Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(fault(&path, error)),
                    _ => changed.extend(old.map(|old| (path, old))),
                }
            }
            if several {
                // So that the order of the renames also holds after a power failure.
                sync_folder(&path).map_err(|error| fault(&path, error))?;
            }
            pending.place(&path, force).map_err(|error| fault(&path, error))
        };
        if let Err(error) = place_all() {
            // Otherwise new side files would remain without their data, or beside the old data.
            changed.into_iter().rev().for_each(|(path, old)| restore(&path, old));
            return Err(error);
        }
        sync_folder(&path).map_err(|error| fault(&path, error))
    }
}

impl Output for FileOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        for piece in bytes.chunks(WRITE_BYTES) {
            self.pending.file.write_all(piece).map_err(|error| fault(&self.path, error))?;
            self.write_back.appended(&self.pending.file, piece.len());
        }
        Ok(())
    }

    fn can_patch(&self) -> bool {
        true
    }

    fn patch(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        patch_file(&mut self.pending.file, offset, bytes).map_err(|error| fault(&self.path, error))
    }

    fn sibling(&mut self, suffix: &str) -> io::Result<Option<Box<dyn Output>>> {
        let path = sibling_path(&self.path, suffix);
        if !self.force && path.symlink_metadata().is_ok() {
            return Err(exists(&path).into());
        }
        let mut sibling = FileOutput::create(&path, self.force)?;
        sibling.main = Some((suffix.to_owned(), Arc::clone(&self.siblings)));
        Ok(Some(Box::new(sibling)))
    }

    fn remove_sibling(&mut self, suffix: &str) -> io::Result<()> {
        self.removals.push(sibling_path(&self.path, suffix));
        Ok(())
    }

    fn reread(&mut self) -> io::Result<Option<Arc<dyn ReadAt>>> {
        let siblings = self.siblings.lock().unwrap_or_else(PoisonError::into_inner);
        let siblings = siblings.iter().map(|sibling| (sibling.suffix.as_str(), &sibling.pending.file));
        Ok(Some(Arc::new(Reread::new(&self.pending.file, siblings)?)))
    }

    fn commit(self: Box<Self>) -> io::Result<()> {
        self.sync()?;
        let Some((suffix, main)) = self.main else { return self.place() };
        let side_file = SideFile { suffix, pending: self.pending, path: self.path };
        main.lock().unwrap_or_else(PoisonError::into_inner).push(side_file);
        Ok(())
    }
}

/// Overwrites bytes of a file and returns to its end.
pub(super) fn patch_file(file: &mut File, offset: u64, bytes: &[u8]) -> io::Result<()> {
    file.seek(SeekFrom::Start(offset))?;
    file.write_all(bytes)?;
    file.seek(SeekFrom::End(0)).map(drop)
}

/// The path with `suffix` appended to its name.
pub(super) fn sibling_path(path: &Path, suffix: &str) -> PathBuf {
    let mut name: OsString = path.file_name().unwrap_or_default().to_owned();
    name.push(suffix);
    path.with_file_name(name)
}

/// The error for a file that exists and may not be replaced.
pub(super) fn exists(path: &Path) -> Error {
    Error::usage(format!("{} exists already", path.display())).hint(Hint::Force)
}

/// An error of the system, with the path that could not be written.
pub(super) fn fault(path: &Path, error: io::Error) -> io::Error {
    let folder = folder_of(path);
    let error = match error.kind() {
        io::ErrorKind::AlreadyExists => exists(path),
        io::ErrorKind::NotFound if !folder.exists() => {
            let folder = folder.display().to_string();
            Error::new(ErrorKind::Io, format!("there is no folder {folder}")).hint(Hint::MakeFolder(folder))
        }
        // Only pipes have a reader that can close them; for a file this is an ordinary error.
        io::ErrorKind::BrokenPipe => {
            Error::new(ErrorKind::Io, format!("cannot write in {}: {error}", folder.display()))
        }
        _ => Error::io(format_args!("cannot write in {}", folder.display()), error),
    };
    error.into()
}
