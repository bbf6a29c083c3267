//! [`Remote`]: storage outside the local file system, with names such as `s3://bucket/key`.

use crate::error::{Error, Hint, Result};
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

    /// Removes the object of this name, if it exists.
    fn remove(&self, name: &str) -> Result<()>;
}

/// The one of `remotes` that handles the scheme of a name; `None` for a local path.
pub(crate) fn find<'r>(
    remotes: &'r [std::sync::Arc<dyn Remote>],
    name: &str,
) -> Result<Option<&'r dyn Remote>> {
    let Some(scheme) = scheme(name) else { return Ok(None) };
    if let Some(found) = remotes.iter().find(|remote| remote.schemes().contains(&scheme)) {
        return Ok(Some(&**found));
    }
    let error = Error::usage(format!("names that begin with {scheme}:// are not known to this build"));
    Err(match scheme {
        "s3" | "gs" | "az" | "http" | "https" => {
            error.hint(Hint::Advice("builds with the Cargo feature `remote` read and write them".into()))
        }
        _ => error,
    })
}
