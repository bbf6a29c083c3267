//! Which `.meta` file is used, and how one is replaced together with its data.
//!
//! A `.meta` written by this library has a stamp of the data it belongs to: with other data it is ignored. One
//! without a stamp, as DAPHNE writes it, is used if the file has no readable labels, or the same ones.
//!
//! Data with a `.meta` is replaced in three steps. If the process ends between two of them, old data is still read
//! with the old `.meta` and new data with the new one:
//!
//! ```text
//! 1. the .meta file gets the stamp of the old data; if the new data has a .meta, it is in the same file
//! 2. the new data appears
//! 3. the .meta file is that of the new data alone, or is removed
//! ```

use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use crate::error::{Context, Error, Result};
use crate::formats::ReadOptions;
use crate::sink::Sink;
use crate::source::{Packing, Source};

use super::layout::Header;
use super::meta::{Meta, SUFFIX};
use super::open;
use super::stamp::Stamp;
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
fn read_meta(source: &Source) -> Result<Option<Result<Meta>>> {
    let Some(side) = source.sibling(SUFFIX)? else { return Ok(None) };
    let mut text = Vec::new();
    side.reader()?.take(MOST_BYTES + 1).read_to_end(&mut text).field(SUFFIX)?;
    if text.len() as u64 > MOST_BYTES {
        return Err(Error::limit("the limit", MOST_BYTES, "more bytes for a .meta file").field(SUFFIX));
    }
    Ok(Some(Meta::parse(&text).map_err(|error| error.field(SUFFIX).rule("meta"))))
}

/// Step 3 of a replacement.
pub(super) enum Last {
    Nothing,
    Remove(PathBuf),
    Write(PathBuf, String),
}

/// Step 1: writes the `.meta` for the time of the replacement, and returns step 3. `new` is the stamped `.meta` of
/// the new data, if it has one. Returns `None` if side files are not possible.
pub(super) fn replace(sink: &mut Sink, new: Option<Meta>) -> Result<Option<Last>> {
    let old = match sink.path().filter(|_| sink.is_forced()) {
        Some(path) => old_meta(path, sink.is_packed())?,
        None => Old::None,
    };
    let path = sink.sibling_path(SUFFIX);
    let put = |sink: &mut Sink, meta: &Meta, last: Last| {
        Ok(sink.put_sibling(SUFFIX, meta.text().as_bytes())?.then_some(last))
    };
    match (old, new, path) {
        (Old::Usable(old), Some(mut new), Some(path)) => {
            let last = Last::Write(path, new.text());
            new.previous = Some(old);
            put(sink, &new, last)
        }
        (_, Some(new), _) => put(sink, &new, Last::Nothing),
        (Old::Usable(old), None, Some(path)) => put(sink, &old, Last::Remove(path)),
        (Old::Unusable, None, _) => sink.remove_sibling(SUFFIX).map(|()| Some(Last::Nothing)),
        (_, None, _) => Ok(Some(Last::Nothing)),
    }
}

impl Last {
    /// Carries out the step. Without it the files are still read correctly, so an error becomes a note.
    pub(super) fn run(self) -> Option<String> {
        let (done, what) = match self {
            Last::Nothing => return None,
            Last::Remove(path) => (std::fs::remove_file(path).map_err(Error::from), "removed"),
            Last::Write(path, text) => (write(&path, &text), "cleaned"),
        };
        let error = done.err()?;
        Some(format!(
            "the .meta file still describes the data that was replaced and could not be {what}: {error}"
        ))
    }
}

fn write(path: &Path, text: &str) -> Result<()> {
    let mut sink = Sink::create(path, true)?;
    sink.write_all(text.as_bytes())?;
    sink.finish().map(drop)
}

/// The `.meta` of the data that is replaced.
pub(super) enum Old {
    None,
    /// It describes no data, so it can be removed before the new data appears.
    Unusable,
    /// With a stamp.
    Usable(Box<Meta>),
}

pub(super) fn old_meta(path: &Path, packed: bool) -> Result<Old> {
    let Ok(source) = Source::open(path) else {
        // A `.meta` without its data.
        let mut side = path.as_os_str().to_owned();
        side.push(SUFFIX);
        return Ok(if Path::new(&side).exists() { Old::Unusable } else { Old::None });
    };
    let mut meta = match read_meta(&source)? {
        None => return Ok(Old::None),
        Some(Err(_)) => return Ok(Old::Unusable),
        Some(Ok(meta)) => meta,
    };
    if meta.stamp.is_none() {
        let options = ReadOptions::default();
        let content = match Packing::of_name(source.name()).filter(|_| packed) {
            Some(packing) => {
                source.unpack(packing, options.budget.limits()).and_then(|content| content.seekable())
            }
            None => Ok(source),
        };
        let Ok(content) = content else { return Ok(Old::Unusable) };
        // With a stamp it would be believed.
        if open::open(content.clone(), &options).is_ok_and(|file| file.ignored_meta.is_some()) {
            return Ok(Old::Unusable);
        }
        meta.stamp = Stamp::of(&content)?;
    }
    meta.previous = None;
    Ok(if meta.stamp.is_some() { Old::Usable(Box::new(meta)) } else { Old::Unusable })
}
