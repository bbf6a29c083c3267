//! The beginning of a text file, looked at before it is read: formats that carry no types guess them from it.

use std::io::{Cursor, Read};
use std::sync::{Arc, Mutex, PoisonError};

use crate::error::{Error, ErrorKind, Hint, Result};
use crate::limits::Budget;
use crate::source::{Source, Window};

/// How many bytes are looked at.
pub(crate) const SAMPLE_BYTES: usize = 1 << 20;
/// How many rows are looked at.
pub(crate) const SAMPLE_ROWS: usize = 10_000;

pub(crate) type BoxRead = Box<dyn Read + Send>;

/// A source and its first bytes. A stream is not used up by the look.
pub(crate) struct Sampled {
    source: Source,
    /// The first `len` bytes, unless the source is in memory.
    sample: Arc<[u8]>,
    len: usize,
    whole: bool,
    /// What is left of a stream after the sample, until it is first read.
    rest: Mutex<Option<BoxRead>>,
}

impl Sampled {
    /// Looks at the first [`SAMPLE_BYTES`]; further, as far as the budget allows, until `enough` is content.
    pub(crate) fn open(source: Source, budget: &Budget, enough: impl Fn(&[u8]) -> bool) -> Result<Self> {
        if let Some(memory) = source.memory() {
            let mut size = SAMPLE_BYTES;
            while memory.get(..size).is_some_and(|sample| !enough(sample)) {
                size = size.saturating_mul(2);
                budget.check(size as u64)?;
            }
            let (whole, len) = (size > memory.len(), size.min(memory.len()));
            return Ok(Sampled { source, sample: Arc::default(), len, whole, rest: Mutex::default() });
        }
        let mut reader = source.reader()?;
        let mut sample = Vec::new();
        let mut wanted = SAMPLE_BYTES;
        let whole = loop {
            budget.check(wanted as u64)?;
            let held = sample.len();
            sample.resize(wanted, 0);
            let read = read_full(&mut reader, sample.get_mut(held..).unwrap_or_default())?;
            sample.truncate(held + read);
            if sample.len() < wanted {
                break true;
            }
            if enough(&sample) {
                break false;
            }
            wanted = wanted.saturating_mul(2);
        };
        let rest: Option<BoxRead> = if source.is_seekable() { None } else { Some(Box::new(reader)) };
        let len = sample.len();
        Ok(Sampled { source, sample: sample.into(), len, whole, rest: Mutex::new(rest) })
    }

    /// The bytes looked at.
    pub(crate) fn sample(&self) -> &[u8] {
        self.source.memory().and_then(|memory| memory.get(..self.len)).unwrap_or(&self.sample)
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
    pub(crate) fn window(&self, step: usize, budget: Budget) -> Result<Window<BoxRead>> {
        let rest = self.rest.lock().unwrap_or_else(PoisonError::into_inner).take();
        let rest: BoxRead = match rest {
            Some(rest) => rest,
            None if self.source.is_seekable() => Box::new(self.source.reader_at(self.sample.len() as u64)?),
            None => return Ok(Window::new(Box::new(self.source.reader()?), 0, step, budget)),
        };
        let all = Cursor::new(Arc::clone(&self.sample)).chain(rest);
        Ok(Window::with_input(&self.source, Box::new(all), 0, None, step, budget))
    }
}

/// Reads until the buffer is full or the input ends; a costly source is asked once.
fn read_full(input: &mut impl Read, buffer: &mut [u8]) -> Result<usize> {
    let mut done = 0;
    while let Some(rest) = buffer.get_mut(done..).filter(|rest| !rest.is_empty()) {
        match input.read(rest) {
            Ok(0) => break,
            Ok(count) => done += count,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(done)
}

/// Adds to the error of a value that does not fit a guessed type how to give the type.
pub(crate) fn explain_guess(error: Error, guessed: bool) -> Error {
    let about_types = matches!(error.rule_name(), "type" | "unknown-key" | "missing-key");
    if !guessed || !about_types || error.kind() != ErrorKind::Malformed {
        return error;
    }
    let message = format!("{} (types were guessed from the first rows)", error.message());
    let mut explained = Error::new(ErrorKind::Malformed, message).rule(error.rule_name()).hint(Hint::Type);
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
