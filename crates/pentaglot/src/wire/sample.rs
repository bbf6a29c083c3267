//! The beginning of a text file, looked at before it is read: formats that carry no types guess them from it.

use std::io::{Cursor, Read};
use std::sync::{Mutex, PoisonError};

use crate::error::{Error, ErrorKind, Result};
use crate::limits::Budget;
use crate::source::Source;

/// How many bytes are looked at.
pub(crate) const SAMPLE_BYTES: usize = 1 << 20;
/// How many rows are looked at.
pub(crate) const SAMPLE_ROWS: usize = 10_000;

pub(crate) type BoxRead = Box<dyn Read + Send>;

/// A source and its first bytes. A stream is not used up by the look.
pub(crate) struct Sampled {
    source: Source,
    sample: Vec<u8>,
    whole: bool,
    /// What is left of a stream after the sample, until it is first read.
    rest: Mutex<Option<BoxRead>>,
}

impl Sampled {
    /// Looks at the first [`SAMPLE_BYTES`]; further, as far as the budget allows, until `enough` is content.
    pub(crate) fn open(source: Source, budget: &Budget, enough: impl Fn(&[u8]) -> bool) -> Result<Self> {
        let mut reader = source.reader()?;
        let mut sample = Vec::new();
        let mut wanted = SAMPLE_BYTES;
        let whole = loop {
            budget.check(wanted as u64)?;
            reader.by_ref().take((wanted - sample.len()) as u64).read_to_end(&mut sample)?;
            if sample.len() < wanted {
                break true;
            }
            if enough(&sample) {
                break false;
            }
            wanted = wanted.saturating_mul(2);
        };
        let rest: Option<BoxRead> = if source.is_seekable() { None } else { Some(Box::new(reader)) };
        Ok(Sampled { source, sample, whole, rest: Mutex::new(rest) })
    }

    /// The bytes looked at.
    pub(crate) fn sample(&self) -> &[u8] {
        &self.sample
    }

    /// Whether the sample is all there is.
    pub(crate) fn is_whole(&self) -> bool {
        self.whole
    }

    /// The source itself.
    pub(crate) fn source(&self) -> &Source {
        &self.source
    }

    /// All bytes from the start. A stream gives them once.
    pub(crate) fn reader(&self) -> Result<BoxRead> {
        let rest = self.rest.lock().unwrap_or_else(PoisonError::into_inner).take();
        match rest {
            Some(rest) => Ok(Box::new(Cursor::new(self.sample.clone()).chain(rest))),
            None => Ok(Box::new(self.source.reader()?)),
        }
    }
}

/// Adds to the error of a value that does not fit a guessed type how to give the type.
pub(crate) fn explain_guess(error: Error, guessed: bool) -> Error {
    let about_types = matches!(error.rule_name(), "type" | "unknown-key" | "missing-key");
    if !guessed || !about_types || error.kind() != ErrorKind::Malformed {
        return error;
    }
    let message = format!("{} (types were guessed from the first rows; --type gives them)", error.message());
    let mut explained = Error::new(ErrorKind::Malformed, message).rule(error.rule_name());
    if let Some(offset) = error.offset() {
        explained = explained.at(offset);
    }
    if let Some(line) = error.line_number() {
        explained = explained.line(line);
    }
    match error.path() {
        path if path.is_empty() => explained,
        path => explained.field(path),
    }
}
