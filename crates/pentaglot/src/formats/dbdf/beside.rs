//! Which `.meta` file is used.
//!
//! A `.meta` written by this library has a stamp of the data it belongs to: with other data it is ignored. One
//! without a stamp, as DAPHNE writes it, is used if the file has no readable labels, or the same ones.

use std::io::Read;

use crate::error::{Context, Error, Result};
use crate::source::Source;

use super::layout::Header;
use super::meta::{Meta, SUFFIX, Stamp};
use super::types::Dialect;

/// Maximum length of a side file.
const MOST_BYTES: u64 = 64 << 20;

/// The `.meta` of a file if it is used, or the reason why it is not.
#[derive(Debug, Default)]
pub(super) struct Beside {
    meta: Option<Result<Meta>>,
    note: Option<String>,
}

impl Beside {
    /// Reads the side file of `source`; one with the stamp of other data is ignored.
    pub(super) fn read(source: &Source) -> Result<Beside> {
        let meta = match read_meta(source)? {
            None => return Ok(Beside::default()),
            Some(Ok(meta)) => meta,
            faulty => return Ok(Beside { meta: faulty, note: None }),
        };
        if meta.stamp.is_none() {
            return Ok(Beside { meta: Some(Ok(meta)), note: None });
        }
        let own = Stamp::of(source)?;
        let fitting = std::iter::successors(Some(meta), |meta| meta.previous.as_deref().cloned())
            .find(|meta| meta.stamp.is_some() && meta.stamp == own);
        Ok(match fitting {
            Some(meta) => Beside { meta: Some(Ok(meta)), note: None },
            None => Beside { meta: None, note: Some(ignored("it belongs to other data")) },
        })
    }

    /// The `.meta` that may decide between dialects.
    pub(super) fn candidate(&self) -> Option<&Meta> {
        self.meta.as_ref()?.as_ref().ok()
    }

    /// The `.meta` that is used for a file with this header, and a note if one is ignored.
    ///
    /// A file in the document's dialect needs no `.meta`: one that contradicts it is ignored. DAPHNE's
    /// dialects need it.
    pub(super) fn settle(self, header: &Header) -> Result<(Option<Meta>, Option<String>)> {
        let checked = match self.meta {
            None => return Ok((None, self.note)),
            Some(meta) => meta.and_then(|meta| {
                meta.check(header)?;
                if meta.stamp.is_none() {
                    check_labels(&meta, header)?;
                }
                Ok(meta)
            }),
        };
        match checked {
            Ok(meta) => Ok((Some(meta), self.note)),
            Err(error) if header.dialect == Dialect::Spec => Ok((None, Some(ignored(&error.to_string())))),
            Err(error) => Err(error),
        }
    }
}

fn ignored(why: &str) -> String {
    format!("the .meta file beside it is ignored: {why}")
}

/// Returns an error if a readable label differs from the one in the `.meta`.
fn check_labels(meta: &Meta, header: &Header) -> Result<()> {
    let (Dialect::Spec, Some(columns)) = (header.dialect, &meta.columns) else { return Ok(()) };
    for (index, (own, (label, _))) in (0u64..).zip(header.labels.iter().zip(columns)) {
        if let Ok(own) = std::str::from_utf8(own)
            && !label.is_empty()
            && own != label
        {
            let expected = format!("{own:?} as in the header");
            let error = Error::malformed(expected, format_args!("{label:?}")).field("label");
            return Err(error.index(index).field("schema").field(SUFFIX).rule("meta-disagrees"));
        }
    }
    Ok(())
}

/// The content of the side file of `source`: `None` if there is none, an inner error if it cannot be parsed.
pub(super) fn read_meta(source: &Source) -> Result<Option<Result<Meta>>> {
    let Some(side) = source.sibling(SUFFIX)? else { return Ok(None) };
    let mut text = Vec::new();
    side.reader()?.take(MOST_BYTES + 1).read_to_end(&mut text).field(SUFFIX)?;
    if text.len() as u64 > MOST_BYTES {
        return Err(Error::limit("the limit", MOST_BYTES, "more bytes for a .meta file").field(SUFFIX));
    }
    Ok(Some(Meta::parse(&text).map_err(|error| error.field(SUFFIX).rule("meta"))))
}
