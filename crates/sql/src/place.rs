//! Where a plan runs: in this process, or on an executor, which opens only names that all machines share and, where it is
//! confined, only those below its data roots.

use std::fmt;
use std::path::{Path, PathBuf};

use datafusion::error::DataFusionError;
use pentaglot::job::{OpenOptions, split_member};
use pentaglot::{Error, Registry, Result, redacted};

use crate::fault;

/// The suffixes of files that readers look for beside the one that is opened.
const SIDE_FILES: [&str; 2] = [".meta", ".idx"];

/// What the nodes of a plan need to open and write files.
pub struct Place {
    pub(crate) registry: Registry,
    pub(crate) open: OpenOptions,
    access: Access,
}

/// Which names may be opened.
enum Access {
    /// Those of this process: any, also relative ones.
    Here,
    /// Those that mean the same on every machine.
    Shared,
    /// Of these, those below one of the roots.
    Below(Vec<Root>),
}

enum Root {
    /// A folder, without links.
    Folder(PathBuf),
    /// The beginning of addresses; it ends with `/`.
    Address(String),
}

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Place").field("registry", &self.registry).finish_non_exhaustive()
    }
}

impl Place {
    pub(crate) fn here(registry: Registry, open: OpenOptions) -> Self {
        Place { registry, open, access: Access::Here }
    }

    /// An executor of a cluster. With roots (folders, or addresses such as `s3://bucket/data`), it opens and writes only
    /// what is below one of them, after all links are followed.
    pub fn executor(registry: Registry, open: OpenOptions, roots: &[String]) -> Result<Self> {
        if roots.is_empty() {
            return Ok(Place { registry, open, access: Access::Shared });
        }
        let roots = roots.iter().map(|root| {
            if is_address(root) {
                return Ok(Root::Address(format!("{}/", root.trim_end_matches('/'))));
            }
            let folder = std::fs::canonicalize(root);
            let folder = folder.and_then(|folder| std::fs::read_dir(&folder).map(|_| folder));
            folder
                .map(Root::Folder)
                .map_err(|error| Error::io("cannot use the data root", error).in_input(root.clone()))
        });
        Ok(Place { registry, open, access: Access::Below(roots.collect::<Result<_>>()?) })
    }

    /// An error as it leaves a node: as it is in this process, else as text that the client recognises.
    pub(crate) fn fault(&self, error: Error) -> DataFusionError {
        match self.access {
            Access::Here => fault::theirs(error),
            _ => fault::travelling(&error),
        }
    }

    /// The name by which an input is opened; an error if it may not be opened here.
    pub(crate) fn input(&self, name: &str) -> Result<String> {
        let Some((path, member)) = self.shared(name)? else { return Ok(name.to_owned()) };
        let Access::Below(_) = &self.access else { return Ok(name.to_owned()) };
        let real = match std::fs::canonicalize(path) {
            Ok(real) => real,
            // The message does not reveal whether a file outside the roots exists.
            Err(error) if self.is_below(&nearest(path)) => return Err(Error::io("cannot open", error)),
            Err(_) => return Err(outside()),
        };
        if !self.is_below(&real) {
            return Err(outside());
        }
        let real = real.to_str().ok_or_else(|| Error::usage("a name that is not UTF-8"))?;
        for suffix in SIDE_FILES {
            let beside = PathBuf::from(format!("{real}{suffix}"));
            if beside.is_symlink()
                && !std::fs::canonicalize(&beside).is_ok_and(|beside| self.is_below(&beside))
            {
                return Err(outside());
            }
        }
        Ok(member.map_or_else(|| real.to_owned(), |member| format!("{real}::{member}")))
    }

    /// Errs if nothing may be written to this folder.
    pub(crate) fn output(&self, folder: &str) -> Result<()> {
        if self.shared(folder)?.is_none() {
            return Ok(());
        }
        let real = std::fs::canonicalize(folder).map_err(|error| {
            Error::io("the folder that the client made is not here: is the storage shared?", error)
                .in_output(folder)
        })?;
        match &self.access {
            Access::Below(_) if !self.is_below(&real) => Err(outside().in_output(folder)),
            _ => Ok(()),
        }
    }

    /// The path and the member of a name; `None` if nothing more is to be checked.
    fn shared<'n>(&self, name: &'n str) -> Result<Option<(&'n str, Option<&'n str>)>> {
        if let Access::Here = self.access {
            return Ok(None);
        }
        if is_address(name) {
            return match &self.access {
                Access::Below(roots) => {
                    let begins =
                        |root: &Root| matches!(root, Root::Address(start) if name.starts_with(start));
                    let climbs = name.split(['/', '\\']).any(|step| step == "..");
                    if climbs || !roots.iter().any(begins) { Err(outside()) } else { Ok(None) }
                }
                _ => Ok(None),
            };
        }
        let (path, member) = split_member(name);
        if !Path::new(path).is_absolute() {
            return Err(Error::usage(format!(
                "expected an absolute name, which means the same on every machine, found {:?}",
                redacted(name)
            )));
        }
        Ok(Some((path, member)))
    }

    fn is_below(&self, path: &Path) -> bool {
        match &self.access {
            Access::Below(roots) => {
                roots.iter().any(|root| matches!(root, Root::Folder(folder) if path.starts_with(folder)))
            }
            _ => true,
        }
    }
}

pub(crate) fn is_address(name: &str) -> bool {
    name.split_once("://").is_some_and(|(scheme, _)| {
        !scheme.is_empty()
            && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
    })
}

/// The nearest folder above a path that exists, without links.
fn nearest(path: &str) -> PathBuf {
    let above = Path::new(path).ancestors().skip(1);
    above.into_iter().find_map(|folder| std::fs::canonicalize(folder).ok()).unwrap_or_default()
}

fn outside() -> Error {
    Error::usage("outside the data root of the executor")
}

/// A name that means the same on every machine.
pub(crate) fn absolute(name: &str) -> Result<String> {
    if is_address(name) {
        return Ok(name.to_owned());
    }
    if name == "-" {
        return Err(Error::usage("standard input cannot be read on a cluster"));
    }
    let path = std::path::absolute(name).map_err(|error| Error::io("cannot tell the whole name", error))?;
    path.into_os_string().into_string().map_err(|_| Error::usage("a name that is not UTF-8"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_outside_the_roots_are_refused_links_included() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
        for (name, text) in
            [("in/a.csv", "x\n1\n"), ("in/b.dbdf", "b"), ("out/secret.csv", "x\n1\n"), ("inner/c", "c")]
        {
            std::fs::create_dir_all(Path::new(&path(name)).parent().unwrap()).unwrap();
            std::fs::write(path(name), text).unwrap();
        }
        std::os::unix::fs::symlink(path("out/secret.csv"), path("in/link.csv")).unwrap();
        std::os::unix::fs::symlink(path("out"), path("in/folder")).unwrap();
        std::os::unix::fs::symlink(path("out/secret.csv"), path("in/b.dbdf.meta")).unwrap();
        std::os::unix::fs::symlink(path("in/a.csv"), path("in/inside.csv")).unwrap();
        let place =
            |roots: &[String]| Place::executor(Registry::default(), OpenOptions::default(), roots).unwrap();
        let confined = place(&[path("in"), "s3://bucket/data".to_owned()]);
        let real = std::fs::canonicalize(path("in/a.csv")).unwrap().to_str().unwrap().to_owned();
        assert_eq!(confined.input(&path("in/a.csv")).unwrap(), real);
        assert_eq!(confined.input(&path("in/inside.csv")).unwrap(), real);
        assert_eq!(confined.input(&path("in/../in/a.csv")).unwrap(), real);
        assert_eq!(confined.input(&path("in/a.csv::m")).unwrap(), format!("{real}::m"));
        assert_eq!(confined.input("s3://bucket/data/x.csv").unwrap(), "s3://bucket/data/x.csv");
        let bad = [
            path("out/secret.csv"),
            path("in/link.csv"),
            path("in/folder/secret.csv"),
            path("in/../out/secret.csv"),
            path("in/b.dbdf"),
            path("inner/c"),
            path("out/none.csv"),
            "s3://bucket/database/x.csv".to_owned(),
            "s3://bucket/data/../x.csv".to_owned(),
            "http://host/x.csv".to_owned(),
            path("in/folder/none.csv::m"),
        ];
        for name in bad {
            assert_eq!(confined.input(&name).unwrap_err().to_string(), outside().to_string(), "{name}");
        }
        for name in ["a.csv", "-", "../x"] {
            assert!(confined.input(name).is_err(), "{name}");
            assert!(place(&[]).input(name).is_err(), "{name}");
        }
        assert!(confined.input(&path("in/none.csv")).unwrap_err().to_string().contains("cannot open"));
        assert!(confined.output(&path("in")).is_ok());
        for name in [path("in/folder"), path("out"), path("in/none"), "s3://other/x".to_owned()] {
            assert!(confined.output(&name).is_err(), "{name}");
        }
        assert!(place(&[]).input(&path("out/secret.csv")).is_ok());
        assert!(Place::executor(Registry::default(), OpenOptions::default(), &[path("absent")]).is_err());
    }
}
