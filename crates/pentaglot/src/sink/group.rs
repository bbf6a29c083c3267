//! Files that appear together: all of them, or none.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use super::file::FileOutput;
use super::pending::{backup, restore};
use super::{Later, Output, Sink};
use crate::error::{Error, Hint, Result};
use crate::source::ReadAt;

/// Files that are complete and wait for the others.
type Waiting = Arc<Mutex<Vec<FileOutput>>>;

/// Several files that get their names in one step, after the last is complete. If the group is dropped before that,
/// no file is left.
pub(crate) struct SinkGroup {
    waiting: Waiting,
    force: bool,
    later: Later,
}

impl SinkGroup {
    /// An empty group; existing files are replaced only with `force`.
    pub(crate) fn new(force: bool) -> Self {
        SinkGroup { waiting: Waiting::default(), force, later: Later::default() }
    }

    /// Adds a file. An existing one is an error at once, unless it may be replaced.
    pub(crate) fn create(&self, path: &Path) -> Result<Sink> {
        let name = path.display().to_string();
        let refused = match std::fs::metadata(path) {
            Ok(meta) if !meta.is_file() => {
                Some(Error::usage("expected a file to write, found something else"))
            }
            Ok(_) if !self.force => Some(Error::usage("the file exists already").hint(Hint::Force)),
            _ => None,
        };
        if let Some(error) = refused {
            return Err(error.in_output(name));
        }
        // A link stays a link: the file that it names is replaced.
        let cannot = |error| Error::io("cannot write", error).in_output(name.clone());
        let path = match path.is_symlink() {
            true => &std::fs::canonicalize(path).map_err(cannot)?,
            false => path,
        };
        let file = FileOutput::create(path, self.force).map_err(cannot)?;
        let output = Box::new(Member { file, waiting: Arc::clone(&self.waiting) });
        let (path, later) = (Some(path.to_path_buf()), Some(Arc::clone(&self.later)));
        Ok(Sink { path, force: self.force, later, ..Sink::from_output(output) }.named(name))
    }

    /// Gives all files their names. If one rename fails, the others are undone and the files that they replaced are
    /// restored.
    pub(crate) fn commit(self) -> Result<()> {
        let waiting = std::mem::take(&mut *self.waiting.lock().unwrap_or_else(PoisonError::into_inner));
        let mut placed: Vec<(PathBuf, Option<tempfile::TempPath>)> = Vec::new();
        let result = waiting.into_iter().try_for_each(|file| {
            let (paths, data) = (file.paths(), file.path().to_path_buf());
            let old = paths.into_iter().map(|path| {
                let old = if self.force { backup(&path)? } else { None };
                Ok((path, old))
            });
            let old: Vec<_> = old.collect::<io::Result<_>>()?;
            let done = file.place();
            // Files that have no name yet, or that we did not create, are not removed below.
            let is_ours = |path: &PathBuf| done.is_ok() || self.force && *path != data;
            placed.extend(old.into_iter().filter(|(path, old)| old.is_some() || is_ours(path)));
            done
        });
        if result.is_err() {
            placed.into_iter().rev().for_each(|(path, old)| restore(&path, old));
        }
        result.map_err(|error| match error.get_ref() {
            Some(inner) if inner.is::<Error>() => Error::from(error),
            _ => Error::io("cannot write", error),
        })?;
        let later = std::mem::take(&mut *self.later.lock().unwrap_or_else(PoisonError::into_inner));
        later.into_iter().for_each(|step| step());
        Ok(())
    }
}

/// A file of a group.
struct Member {
    file: FileOutput,
    waiting: Waiting,
}

impl Output for Member {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write(bytes)
    }

    fn can_patch(&self) -> bool {
        self.file.can_patch()
    }

    fn patch(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.file.patch(offset, bytes)
    }

    fn sibling(&mut self, suffix: &str) -> io::Result<Option<Box<dyn Output>>> {
        self.file.sibling(suffix)
    }

    fn remove_sibling(&mut self, suffix: &str) -> io::Result<()> {
        self.file.remove_sibling(suffix)
    }

    fn reread(&mut self) -> io::Result<Option<Arc<dyn ReadAt>>> {
        self.file.reread()
    }

    fn commit(self: Box<Self>) -> io::Result<()> {
        let Member { file, waiting } = *self;
        file.sync()?;
        waiting.lock().unwrap_or_else(PoisonError::into_inner).push(file);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(folder).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn files_appear_together_or_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let put = |group: &SinkGroup, name: &str| {
            let mut sink = group.create(&path(name)).unwrap();
            sink.write_all(name.as_bytes()).unwrap();
            sink.put_sibling(".meta", b"{}").unwrap();
            sink.finish().unwrap();
        };
        let group = SinkGroup::new(false);
        put(&group, "a");
        put(&group, "b");
        assert!(names(folder.path()).is_empty());
        drop(group);
        assert!(names(folder.path()).is_empty());
        let group = SinkGroup::new(false);
        put(&group, "a");
        put(&group, "b");
        group.commit().unwrap();
        assert_eq!(names(folder.path()), ["a", "a.meta", "b", "b.meta"]);
        let error = SinkGroup::new(false).create(&path("a")).unwrap_err();
        assert_eq!(error.to_string(), "the file exists already");
    }

    #[test]
    fn a_name_that_is_taken_meanwhile_undoes_the_others() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        for force in [false, true] {
            if force {
                std::fs::write(path("a"), "old").unwrap();
                std::fs::write(path("b.meta"), "old").unwrap();
            }
            let group = SinkGroup::new(force);
            for name in ["a", "b"] {
                let mut sink = group.create(&path(name)).unwrap();
                sink.write_all(b"new").unwrap();
                if force && name == "b" {
                    sink.put_sibling(".meta", b"new").unwrap();
                }
                sink.finish().unwrap();
            }
            // No file can replace a folder, with or without force.
            std::fs::create_dir_all(path("b").join("inside")).unwrap();
            group.commit().unwrap_err();
            let expected: &[&str] = if force { &["a", "b", "b.meta"] } else { &["b"] };
            assert_eq!(names(folder.path()), expected);
            assert!(path("b").is_dir());
            if force {
                assert_eq!(std::fs::read(path("b.meta")).unwrap(), b"old");
            }
            if force {
                assert_eq!(std::fs::read(path("a")).unwrap(), b"old");
            }
            std::fs::remove_dir_all(path("b")).unwrap();
        }
    }
}
