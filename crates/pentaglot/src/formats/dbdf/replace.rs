//! How a `.meta` file is replaced together with its data.
//!
//! Data with a `.meta` is replaced in three steps. If the process ends between two of them, old data is still read
//! with the old `.meta` and new data with the new one:
//!
//! ```text
//! 1. the .meta file gets the stamp of the old data; if the new data has a .meta, it is in the same file
//! 2. the new data appears
//! 3. the .meta file is that of the new data alone, or is removed
//! ```

use std::io::Write;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::formats::ReadOptions;
use crate::sink::Sink;
use crate::source::{Packing, Source};

use super::beside::read_meta;
use super::meta::{Meta, SUFFIX, Stamp};
use super::open::open;

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
        if open(content.clone(), &options).is_ok_and(|file| file.ignored_meta.is_some()) {
            return Ok(Old::Unusable);
        }
        meta.stamp = Stamp::of(&content)?;
    }
    meta.previous = None;
    Ok(if meta.stamp.is_some() { Old::Usable(Box::new(meta)) } else { Old::Unusable })
}
