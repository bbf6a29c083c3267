//! The list of formats, and detection of the format of a source.

use std::sync::Arc;

use crate::error::{Error, Hint, Result};
use crate::formats::{Confidence, Format, Head, foreign};
use crate::redact::without_query;
use crate::remote::{self, Remote};
use crate::source::{Packing, Source};

/// A set of formats and of remote file systems. It is passed as an argument; there is no global registry.
///
/// ```
/// let registry = pentaglot::Registry::default();
/// assert!(registry.get("parquet").is_ok());
/// ```
#[derive(Clone)]
pub struct Registry {
    formats: Vec<Arc<dyn Format>>,
    remotes: Vec<Arc<dyn Remote>>,
}

impl Default for Registry {
    /// Every format that this build has.
    fn default() -> Self {
        Registry {
            remotes: Vec::new(),
            formats: vec![
                #[cfg(feature = "dbdf")]
                Arc::new(crate::formats::dbdf::Dbdf),
                #[cfg(feature = "ds")]
                Arc::new(crate::formats::ds::Ds),
                #[cfg(feature = "dynd")]
                Arc::new(crate::formats::dynd::Dynd),
                #[cfg(feature = "bsondf")]
                Arc::new(crate::formats::bsondf::Bsondf),
                #[cfg(feature = "sds")]
                Arc::new(crate::formats::sds::Sds),
                #[cfg(feature = "arrow_ipc")]
                Arc::new(crate::formats::arrow_ipc::ArrowFile),
                #[cfg(feature = "arrow_ipc")]
                Arc::new(crate::formats::arrow_ipc::ArrowStream),
                #[cfg(feature = "parquet")]
                Arc::new(crate::formats::parquet::Parquet),
                #[cfg(feature = "csv")]
                Arc::new(crate::formats::text::csv::Csv),
                #[cfg(feature = "json_lines")]
                Arc::new(crate::formats::text::json_lines::JsonLines),
                #[cfg(feature = "json")]
                Arc::new(crate::formats::text::json::Json),
                #[cfg(feature = "npy")]
                Arc::new(crate::formats::npy::Npy),
                #[cfg(feature = "npy")]
                Arc::new(crate::formats::npz::Npz),
                #[cfg(feature = "matrix_market")]
                Arc::new(crate::formats::matrix_market::MatrixMarket),
            ],
        }
    }
}

impl Registry {
    /// A registry of these formats only.
    pub fn new(formats: Vec<Arc<dyn Format>>) -> Self {
        Registry { formats, remotes: Vec::new() }
    }

    /// Adds a remote file system.
    #[must_use]
    pub fn with_remote(mut self, remote: Arc<dyn Remote>) -> Self {
        self.remotes.push(remote);
        self
    }

    /// The remote of a name such as `s3://bucket/key`; `None` for a local path, an error for an unknown scheme.
    pub fn remote(&self, name: &str) -> Result<Option<&Arc<dyn Remote>>> {
        remote::find(&self.remotes, name)
    }

    /// The formats, in the order of the list.
    pub fn formats(&self) -> impl Iterator<Item = &Arc<dyn Format>> {
        self.formats.iter()
    }

    /// The format with this id.
    pub fn get(&self, id: &str) -> Result<Arc<dyn Format>> {
        self.formats().find(|format| format.info().id == id).map(Arc::clone).ok_or_else(|| {
            let known: Vec<_> = self.formats().map(|format| format.info().id).collect();
            Error::usage(format!("expected a format ({}), found {id:?}", known.join(", ")))
        })
    }

    /// The format of an output by the extension of its name, without that of a compression.
    pub fn by_extension(&self, name: &str) -> Option<Arc<dyn Format>> {
        let name = without_query(name).to_lowercase();
        let name = Packing::strip(&name);
        // The longest extension wins: `.ds.json` before `.json`.
        let fits = |format: &&Arc<dyn Format>| {
            let extensions = format.info().extensions.iter();
            let fitting =
                extensions.filter(|end| name.strip_suffix(**end).is_some_and(|rest| rest.ends_with('.')));
            fitting.map(|end| end.len()).max()
        };
        self.formats()
            .filter(|format| fits(format).is_some())
            .max_by_key(|format| fits(format))
            .map(Arc::clone)
    }

    /// The format that a media type names, and the dialect where it names one. Parameters (`; charset=…`) and case are
    /// ignored. A media type specific to one format takes precedence over a shared one.
    ///
    /// ```
    /// let registry = pentaglot::Registry::default();
    /// let (format, dialect) = registry.by_media_type("application/x-msgpack").ok_or("unknown")?;
    /// assert_eq!((format.info().id, dialect), ("ds", Some("rows")));
    /// assert_eq!(format.media_type(Some("rows")), Some("application/x-msgpack"));
    /// # Ok::<(), &str>(())
    /// ```
    pub fn by_media_type(&self, media_type: &str) -> Option<(Arc<dyn Format>, Option<&'static str>)> {
        let wanted = media_type.split(';').next().unwrap_or_default().trim();
        let is_wanted = |known: &str| known.eq_ignore_ascii_case(wanted);
        let own =
            self.formats().find(|format| format.info().media_types.iter().any(|known| is_wanted(known)));
        let shares = |format: &&Arc<dyn Format>| {
            format.dialect_media_types().iter().any(|(_, known)| is_wanted(known))
        };
        let format = own.or_else(|| self.formats().find(shares))?;
        let mut dialects = format.dialect_media_types().iter();
        let dialect = dialects.find(|(_, known)| is_wanted(known)).map(|(dialect, _)| *dialect);
        Some((Arc::clone(format), dialect))
    }

    /// The format whose magic number or exact structure these first bytes of a source have.
    pub(crate) fn detect_certain(&self, source: &Source, head: &[u8]) -> Option<&Arc<dyn Format>> {
        let head = Head::new(source, head);
        self.formats().find(|format| format.detect(&head) == Confidence::Certain)
    }

    /// The format of a source, detected by its content; the extension breaks ties, and a remaining tie is an
    /// error.
    pub fn detect(&self, source: &Source) -> Result<Arc<dyn Format>> {
        let bytes = source.head()?;
        let head = Head::new(source, &bytes);
        let scores: Vec<_> = self.formats().map(|format| (format.detect(&head), format)).collect();
        let best = scores.iter().map(|(score, _)| *score).max().unwrap_or(Confidence::No);
        let mut candidates: Vec<Arc<dyn Format>> = scores
            .into_iter()
            .filter(|(score, _)| *score == best)
            .map(|(_, format)| Arc::clone(format))
            .collect();
        let by_extension = self.by_extension(&head.name());
        if best < Confidence::Likely
            && let Some(foreign) = foreign(&bytes)
        {
            let error =
                Error::usage(format!("this is {foreign}, which is not a format that can be read here"));
            let failed = "a download that fails often leaves such a page";
            return Err(if foreign.contains("HTML") {
                error.hint(Hint::Advice(failed.into()))
            } else {
                error
            });
        }
        if best == Confidence::No {
            // An empty or unrecognised file with the extension of a format is opened as that format, so that the error
            // says what is wrong with it.
            return by_extension.ok_or_else(|| {
                let error = Error::usage("unknown format: no format fits its content or its name");
                error.hint(match bytes.is_empty() {
                    true => Hint::Advice("the file is empty".into()),
                    false => Hint::From,
                })
            });
        }
        if candidates.len() > 1
            && let Some(named) = by_extension
            && candidates.iter().any(|format| format.info().id == named.info().id)
        {
            return Ok(named);
        }
        match (candidates.pop(), candidates.is_empty()) {
            (Some(format), true) => Ok(format),
            (last, _) => {
                candidates.extend(last);
                let ids: Vec<_> = candidates.iter().map(|format| format.info().id).collect();
                Err(Error::usage(format!("the content fits several formats: {}", ids.join(", ")))
                    .hint(Hint::From))
            }
        }
    }
}

impl std::fmt::Debug for Registry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.formats().map(|format| format.info().id)).finish()
    }
}
