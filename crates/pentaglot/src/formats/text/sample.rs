//! The beginning of a text file, looked at before it is read: formats that carry no types guess them from it.

use std::io::{Cursor, Read};
use std::sync::{Arc, Mutex, PoisonError};

use crate::error::{Error, ErrorKind, Hint, Result};
use crate::formats::{OptionInfo, OptionMap, Side};
use crate::limits::Budget;
use crate::source::{Source, Window, read_until_full};

/// How many bytes are looked at.
pub(super) const SAMPLE_BYTES: usize = 1 << 20;
/// How many rows are looked at.
pub(super) const SAMPLE_ROWS: usize = 10_000;

/// The note of a document whose types are inferred from a sample.
pub(super) const GUESSED_NOTE: &str = "types are guessed from the first rows, unless they are given";

/// `-O sample=`.
pub(super) const SAMPLE_OPTION: OptionInfo = OptionInfo {
    key: "sample",
    side: Side::Read,
    values: "N|all",
    default: "the first 10000 rows within 1 MiB",
    help: "how many rows types are inferred from; all reads the file twice",
};

/// How much types are inferred from.
#[derive(Debug, Clone, Copy)]
pub(super) enum SampleSize {
    /// The first [`SAMPLE_ROWS`] rows within the first [`SAMPLE_BYTES`].
    Usual,
    /// So many rows, however long they are.
    Rows(u64),
}

impl SampleSize {
    /// What `-O sample=` says.
    pub(super) fn new(options: &OptionMap) -> Result<Self> {
        match options.get("sample") {
            None => Ok(SampleSize::Usual),
            Some("all") => Ok(SampleSize::Rows(u64::MAX)),
            Some(text) => text.parse().map(SampleSize::Rows).map_err(|_| {
                Error::usage(format!("option sample: expected a number of rows or all, found {text:?}"))
            }),
        }
    }

    pub(super) fn rows(self) -> u64 {
        match self {
            SampleSize::Usual => SAMPLE_ROWS as u64,
            SampleSize::Rows(rows) => rows,
        }
    }

    pub(super) fn is_all(self) -> bool {
        self.rows() == u64::MAX
    }

    /// The source, spooled if it would have to be read twice and cannot.
    pub(super) fn source(self, source: Source) -> Result<Source> {
        match self {
            SampleSize::Usual => Ok(source),
            SampleSize::Rows(_) => source.seekable(),
        }
    }
}

pub(super) type BoxRead = Box<dyn Read + Send>;

/// A source and its first bytes. A stream is not used up by the look.
pub(super) struct Sampled {
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
    pub(super) fn open(source: Source, budget: &Budget, enough: impl Fn(&[u8]) -> bool) -> Result<Self> {
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
        // One byte more than a small file has shows that it ends.
        let all = source
            .len()
            .and_then(|len| usize::try_from(len).ok())
            .map_or(usize::MAX, |len| len.saturating_add(1));
        let mut wanted = SAMPLE_BYTES.min(all);
        let whole = loop {
            budget.check(wanted as u64)?;
            let held = sample.len();
            sample.resize(wanted, 0);
            let read = read_until_full(&mut reader, sample.get_mut(held..).unwrap_or_default())?;
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
    pub(super) fn sample(&self) -> &[u8] {
        self.source.memory().and_then(|memory| memory.get(..self.len)).unwrap_or(&self.sample)
    }

    /// Whether the sample is all there is.
    pub(super) fn is_whole(&self) -> bool {
        self.whole
    }

    /// The source itself.
    pub(super) fn source(&self) -> &Source {
        &self.source
    }

    /// All bytes from the start. A stream gives them once.
    pub(super) fn window(&self, step: usize, budget: Budget) -> Result<Window<BoxRead>> {
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

/// Adds to the error of a value that does not fit a guessed type how to give the type.
pub(super) fn explain_guess(error: Error, guessed: bool) -> Error {
    let about_types = matches!(error.rule_name(), "type" | "unknown-key" | "missing-key");
    if !guessed || !about_types || error.kind() != ErrorKind::Malformed {
        return error;
    }
    let message = format!("{} (types were guessed from the first rows)", error.message());
    let hint = Hint::Option("sample=all".into());
    rebuilt(&error, message, error.offset()).hint(hint)
}

/// The error without its offset: its place is its line.
pub(super) fn without_offset(error: Error) -> Error {
    // Faults of the encoding were met in the file itself.
    if error.rule_name() == "encoding" || error.kind() != ErrorKind::Malformed {
        return error;
    }
    error.without_offset()
}

/// The same error with another message and offset.
fn rebuilt(error: &Error, message: String, offset: Option<u64>) -> Error {
    let mut rebuilt = Error::new(error.kind(), message).rule(error.rule_name());
    if let Some(offset) = offset {
        rebuilt = rebuilt.at(offset);
    }
    if let Some(line) = error.line_number() {
        rebuilt = rebuilt.line(line);
    }
    match error.path() {
        path if path.is_empty() => rebuilt,
        path => rebuilt.field(path),
    }
}
