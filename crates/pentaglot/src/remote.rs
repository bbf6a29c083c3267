//! [`Remote`]: storage outside the local file system, with names such as `s3://bucket/key`.

use std::sync::Arc;
use std::time::SystemTime;

use crate::error::{Error, Hint, Result};
use crate::formats::{Document, OptionMap, ReadOptions};
use crate::redact::scheme;
use crate::sink::Output;
use crate::source::Source;

/// Opens, creates, lists and removes objects whose names have certain schemes. A [`Registry`](crate::Registry) holds
/// the available ones.
pub trait Remote: Send + Sync {
    /// The schemes that it handles, such as `s3`.
    fn schemes(&self) -> &[&str];

    /// Opens the object of this name. Blocks until the server has answered.
    fn open(&self, name: &str) -> Result<Source>;

    /// An output that appears under this name when it is committed. An existing object is replaced only with `force`.
    fn create(&self, name: &str, force: bool) -> Result<Box<dyn Output>>;

    /// The names that match a pattern (`*`, `?`, `[a-z]`, `**`), sorted; `None` if the scheme has no patterns, so that
    /// the text is a name.
    fn list(&self, pattern: &str) -> Result<Option<Vec<String>>>;

    /// The objects directly below a name, as a folder has files, sorted by name; `None` if they cannot be listed.
    fn objects(&self, name: &str) -> Result<Option<Vec<RemoteObject>>>;

    /// Opens a name that means a table, and not bytes in some format. `None`, which is the default: it means bytes.
    fn open_table(&self, name: &str, options: &ReadOptions) -> Result<Option<RemoteTable>> {
        let _ = (name, options);
        Ok(None)
    }

    /// The format in which rows are sent to a name that means a table, and the options of its writer. `None`, which is the
    /// default: the name means bytes, in any format.
    fn table_format(&self, name: &str) -> Result<Option<(&'static str, OptionMap)>> {
        let _ = name;
        Ok(None)
    }

    /// Removes the object of this name, if it exists.
    fn remove(&self, name: &str) -> Result<()>;
}

/// An object as a listing shows it.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct RemoteObject {
    /// The last part of its name.
    pub name: String,
    /// Its length.
    pub bytes: u64,
    /// When it was written, by the server's clock.
    pub modified: SystemTime,
}

impl RemoteObject {
    /// An object.
    pub fn new(name: impl Into<String>, bytes: u64, modified: SystemTime) -> Self {
        RemoteObject { name: name.into(), bytes, modified }
    }
}

/// A table that is not in a file.
#[non_exhaustive]
pub struct RemoteTable {
    /// The id of the format that its rows are kept in.
    pub format: &'static str,
    /// The table.
    pub document: Arc<dyn Document>,
    /// Which rows are meant, as in [`crate::hub::filter`]; `None`: all.
    pub filter: Option<String>,
}

impl RemoteTable {
    /// A whole table.
    pub fn new(format: &'static str, document: Arc<dyn Document>) -> Self {
        RemoteTable { format, document, filter: None }
    }

    /// Those of its rows that match.
    #[must_use]
    pub fn with_filter(mut self, filter: Option<String>) -> Self {
        self.filter = filter;
        self
    }
}

/// The one of `remotes` that handles the scheme of a name; `None` for a local path.
pub(crate) fn find<'r>(remotes: &'r [Arc<dyn Remote>], name: &str) -> Result<Option<&'r Arc<dyn Remote>>> {
    let Some(scheme) = scheme(name) else { return Ok(None) };
    if let Some(found) = remotes.iter().find(|remote| remote.schemes().contains(&scheme)) {
        return Ok(Some(found));
    }
    let feature = match scheme {
        "s3" | "gs" | "az" | "http" | "https" => "remote",
        "mongodb" | "mongodb+srv" => "mongodb",
        _ => {
            let known = "s3, gs, az, http, https, mongodb or mongodb+srv";
            return Err(Error::usage(format!("expected a scheme such as {known}, found {scheme}")));
        }
    };
    let error = Error::unsupported(format!("names that begin with {scheme}:// in this build"));
    Err(error
        .hint(Hint::Advice(format!("builds with the Cargo feature `{feature}` read and write them").into())))
}
