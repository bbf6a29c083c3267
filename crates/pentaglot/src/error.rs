//! The error type of the library: the cause, the place in the file, what was expected and what was found.
//!
//! An [`Error`] is one pointer wide. A decoder reports what it knows (`Error::malformed(…).at(offset)`); its
//! callers add the path with [`Context`]: `read_block(…).index(7).field("block")`.

mod words;

use std::borrow::Cow;
use std::fmt;

use arrow_schema::ArrowError;

use crate::redact::redacted;

pub(crate) use words::{count, excerpt, hex, list, undecodable};
use words::{io_words, shortened};

/// The result type of the library.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The cause of an [`Error`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The file ends before its content does.
    Truncated,
    /// The file breaks a rule of its format.
    Malformed,
    /// The file or the request is valid, but this library does not support it; also an impossible conversion.
    Unsupported,
    /// A limit was reached; the message names it and its value.
    Limit,
    /// The target cannot represent a value.
    Lossy,
    /// The arguments contradict each other or name something that is not there.
    Usage,
    /// The operating system reported an error.
    Io,
    /// The caller cancelled the job.
    Cancelled,
}

/// One step of the path to the faulty place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// A named part: `header`.
    Field(Cow<'static, str>),
    /// An element of the named part before it: `[3]`.
    Index(u64),
}

/// What a user can do about an error. The library names no command-line flags; each front end words the hint
/// itself.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Hint {
    /// Name the input's format.
    From,
    /// Name the input's format as this one.
    FromOne(Cow<'static, str>),
    /// Name the output's format.
    To,
    /// Give the type of the data.
    Type,
    /// Allow an existing output to be replaced.
    Force,
    /// Allow lossy steps of these kinds, named as in [`LossKinds`](crate::hub::LossKinds).
    AllowLossy(Cow<'static, str>),
    /// Raise a limit, by its name in [`Limits`](crate::Limits), such as `max-alloc`.
    Limit(&'static str),
    /// Set an option of a format: `key=value`.
    Option(Cow<'static, str>),
    /// Give an argument of the job: its name on the command line, such as `columns`, and its value, not quoted. Names of columns are
    /// separated by commas; one in a name is written `\,`.
    Argument(&'static str, Cow<'static, str>),
    /// Make this folder, in which the output would be.
    MakeFolder(String),
    /// Advice in plain words.
    Advice(Cow<'static, str>),
}

/// An error: its cause, its place and its message.
///
/// ```
/// use pentaglot::{Error, ErrorKind};
/// let error = Error::malformed("a value type code 1..=10", 17).at(44).field("value_type").index(0).field("block");
/// assert_eq!(error.kind(), ErrorKind::Malformed);
/// assert_eq!(
///     error.in_format("dbdf").to_string(),
///     "dbdf: at byte 44, block[0].value_type: expected a value type code 1..=10, found 17"
/// );
/// ```
pub struct Error(Box<Inner>);

struct Inner {
    kind: ErrorKind,
    input: Option<String>,
    format: Option<&'static str>,
    offset: Option<u64>,
    line: Option<u64>,
    /// Innermost step first: callers append their steps.
    path: Vec<Step>,
    rule: Option<&'static str>,
    message: String,
    hint: Option<Hint>,
    output: Option<String>,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

/// The first words of every message of the kind [`ErrorKind::Unsupported`].
pub(crate) const NOT_SUPPORTED: &str = "not supported: ";

impl Error {
    /// An error of `kind` whose message is `message`.
    #[cold]
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Error(Box::new(Inner {
            kind,
            input: None,
            format: None,
            offset: None,
            line: None,
            path: Vec::new(),
            rule: None,
            message: message.into(),
            hint: None,
            output: None,
            source: None,
        }))
    }

    /// The file breaks a rule: `expected …, found …`.
    #[cold]
    pub fn malformed(expected: impl fmt::Display, found: impl fmt::Display) -> Self {
        Error::new(ErrorKind::Malformed, format!("expected {expected}, found {}", excerpt(found)))
    }

    /// The file ends too early: `expected …, found …`.
    #[cold]
    pub fn truncated(expected: impl fmt::Display, found: impl fmt::Display) -> Self {
        Error::new(ErrorKind::Truncated, format!("expected {expected}, found {}", excerpt(found)))
    }

    /// Something valid that this library does not support: `not supported: …`.
    #[cold]
    pub fn unsupported(what: impl fmt::Display) -> Self {
        let what = what.to_string();
        match what.starts_with(NOT_SUPPORTED) {
            true => Error::new(ErrorKind::Unsupported, what),
            false => Error::new(ErrorKind::Unsupported, format!("{NOT_SUPPORTED}{what}")),
        }
    }

    /// The arguments are at fault.
    #[cold]
    pub fn usage(message: impl Into<String>) -> Self {
        Error::new(ErrorKind::Usage, message)
    }

    /// A value that the target cannot hold.
    #[cold]
    pub fn lossy(message: impl Into<String>) -> Self {
        Error::new(ErrorKind::Lossy, message)
    }

    /// A limit was reached: what was needed, the limit's name and its value. A name that begins with `max-` is one of
    /// [`Limits`](crate::Limits), which a user can raise; others are fixed, such as `the limit`.
    ///
    /// ```
    /// use pentaglot::Error;
    /// let error = Error::limit("max-alloc", 1024, "1070 bytes");
    /// assert_eq!(error.to_string(), "needs 1070 bytes, max-alloc is 1024");
    /// ```
    #[cold]
    pub fn limit(name: &'static str, value: impl fmt::Display, needed: impl fmt::Display) -> Self {
        let error = Error::new(ErrorKind::Limit, format!("needs {needed}, {name} is {value}"));
        match name.starts_with("max-") {
            true => error.hint(Hint::Limit(name)),
            false => error,
        }
    }

    /// The caller cancelled the job.
    #[cold]
    pub fn cancelled() -> Self {
        Error::new(ErrorKind::Cancelled, "cancelled")
    }

    /// An operating-system error, with the operation that failed.
    #[cold]
    pub fn io(doing: impl fmt::Display, error: std::io::Error) -> Self {
        let mut this = Error::new(ErrorKind::Io, format!("{doing}: {}", io_words(&error)));
        this.0.source = Some(Box::new(error));
        this
    }

    /// Sets the byte offset, unless it is already set.
    #[must_use]
    pub fn at(mut self, offset: u64) -> Self {
        self.0.offset.get_or_insert(offset);
        self
    }

    /// Forgets the byte offset: it refers to decoded text, not to the file.
    #[must_use]
    pub(crate) fn without_offset(mut self) -> Self {
        self.0.offset = None;
        self
    }

    /// Sets the line of a text file, counted from 1, unless it is already set.
    #[must_use]
    pub fn line(mut self, line: u64) -> Self {
        self.0.line.get_or_insert(line);
        self
    }

    /// Prepends a named part to the path.
    #[must_use]
    pub fn field(mut self, name: impl Into<Cow<'static, str>>) -> Self {
        self.0.path.push(Step::Field(name.into()));
        self
    }

    /// Prepends an element index to the path.
    #[must_use]
    pub fn index(mut self, index: u64) -> Self {
        self.0.path.push(Step::Index(index));
        self
    }

    /// Names the format, unless it is named already.
    #[must_use]
    pub fn in_format(mut self, id: &'static str) -> Self {
        self.0.format.get_or_insert(id);
        self
    }

    /// Sets the name of the input that caused the error, where a job reads several, unless it is already set. Not
    /// part of the message.
    #[must_use]
    pub fn in_input(mut self, name: impl Into<String>) -> Self {
        self.0.input.get_or_insert_with(|| redacted(&name.into()).into_owned());
        self
    }

    /// The name of the input that caused the error, where a job reads several.
    pub fn input(&self) -> Option<&str> {
        self.0.input.as_deref()
    }

    /// Names the broken rule (a stable word for `validate`), unless it is named already.
    #[must_use]
    pub fn rule(mut self, rule: &'static str) -> Self {
        self.0.rule.get_or_insert(rule);
        self
    }

    /// Sets a hint for the user, unless there is one already. Not part of the message.
    #[must_use]
    pub fn hint(mut self, hint: Hint) -> Self {
        self.0.hint.get_or_insert(hint);
        self
    }

    /// The hint for the user, if there is one.
    pub fn advice(&self) -> Option<&Hint> {
        self.0.hint.as_ref()
    }

    /// Attributes the error to the output of this name, unless one is already set. Not part of the message.
    #[must_use]
    pub fn in_output(mut self, name: impl Into<String>) -> Self {
        self.0.output.get_or_insert_with(|| redacted(&name.into()).into_owned());
        self
    }

    /// The name of the output that caused the error; `None` if the input caused it, or the output has no
    /// name.
    pub fn output(&self) -> Option<&str> {
        self.0.output.as_deref()
    }

    /// The kind of error: its cause.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The format's id, if known.
    pub fn format(&self) -> Option<&'static str> {
        self.0.format
    }

    /// The byte offset of the faulty place, if known.
    pub fn offset(&self) -> Option<u64> {
        self.0.offset
    }

    /// The line of the faulty place in a text file, counted from 1, if known.
    pub fn line_number(&self) -> Option<u64> {
        self.0.line
    }

    /// The path of the faulty place, such as `block[0].value_type`; empty if unknown.
    pub fn path(&self) -> String {
        let mut text = String::new();
        for step in self.0.path.iter().rev() {
            match step {
                Step::Field(name) if text.is_empty() => text.push_str(name),
                Step::Field(name) => {
                    text.push('.');
                    text.push_str(name);
                }
                Step::Index(index) => text.push_str(&format!("[{index}]")),
            }
        }
        text
    }

    /// The stable name of the broken rule; by default the name of the kind.
    pub fn rule_name(&self) -> &'static str {
        self.0.rule.unwrap_or(match self.0.kind {
            ErrorKind::Truncated => "truncated",
            ErrorKind::Malformed => "malformed",
            ErrorKind::Unsupported => "unsupported",
            ErrorKind::Limit => "limit",
            ErrorKind::Lossy => "lossy",
            ErrorKind::Usage => "usage",
            ErrorKind::Io => "io",
            ErrorKind::Cancelled => "cancelled",
        })
    }

    /// The message without format, place or path.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// Whether the reader of our output has closed the pipe, which a command treats as success.
    pub fn is_broken_pipe(&self) -> bool {
        self.0
            .source
            .as_ref()
            .and_then(|source| source.downcast_ref::<std::io::Error>())
            .is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(format) = self.0.format {
            write!(f, "{format}: ")?;
        }
        let path = shortened(self.path());
        if let Some(offset) = self.0.offset {
            write!(f, "at byte {offset}")?;
            self.0.line.iter().try_for_each(|line| write!(f, " (line {line})"))?;
            f.write_str(if path.is_empty() { ": " } else { ", " })?;
        } else if let Some(line) = self.0.line {
            write!(f, "line {line}{}", if path.is_empty() { ": " } else { ", " })?;
        }
        if !path.is_empty() {
            write!(f, "{path}: ")?;
        }
        f.write_str(&self.0.message)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}({self})", self.0.kind)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source.as_deref().map(|source| source as _)
    }
}

/// Arrow's readers return our errors as `ExternalError`; they are unpacked here.
impl From<ArrowError> for Error {
    fn from(error: ArrowError) -> Self {
        match error {
            ArrowError::ExternalError(inner) => match inner.downcast::<Error>() {
                Ok(ours) => *ours,
                Err(other) => undecodable(&other.to_string()),
            },
            ArrowError::IoError(_, error) => Error::from(error),
            ArrowError::NotYetImplemented(message) => Error::unsupported(message),
            ArrowError::MemoryError(message) => Error::new(ErrorKind::Limit, message),
            other => undecodable(&other.to_string()),
        }
    }
}

impl From<Error> for ArrowError {
    fn from(error: Error) -> Self {
        ArrowError::ExternalError(Box::new(error))
    }
}

/// An I/O error may carry one of ours through a dependency; it is unpacked here.
impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Self {
        if error.get_ref().is_some_and(|inner| inner.is::<Error>()) {
            let inner = error.into_inner().expect("an inner error was just seen");
            return *inner.downcast::<Error>().expect("its type was just seen");
        }
        if error.kind() == std::io::ErrorKind::UnexpectedEof {
            return Error::truncated("more bytes", "the end of the file");
        }
        let mut this = Error::new(ErrorKind::Io, io_words(&error));
        this.0.source = Some(Box::new(error));
        this
    }
}

impl From<Error> for std::io::Error {
    fn from(error: Error) -> Self {
        std::io::Error::other(error)
    }
}

/// Adds the place to the error of a result.
pub trait Context<T> {
    /// See [`Error::at`].
    fn at(self, offset: u64) -> Result<T>;
    /// See [`Error::field`].
    fn field(self, name: impl Into<Cow<'static, str>>) -> Result<T>;
    /// See [`Error::index`].
    fn index(self, index: u64) -> Result<T>;
    /// See [`Error::in_format`].
    fn in_format(self, id: &'static str) -> Result<T>;
}

impl<T, E: Into<Error>> Context<T> for std::result::Result<T, E> {
    fn at(self, offset: u64) -> Result<T> {
        self.map_err(|error| error.into().at(offset))
    }

    fn field(self, name: impl Into<Cow<'static, str>>) -> Result<T> {
        self.map_err(|error| error.into().field(name))
    }

    fn index(self, index: u64) -> Result<T> {
        self.map_err(|error| error.into().index(index))
    }

    fn in_format(self, id: &'static str) -> Result<T> {
        self.map_err(|error| error.into().in_format(id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_one_pointer_wide() {
        assert_eq!(size_of::<Error>(), size_of::<usize>());
    }

    #[test]
    fn our_errors_survive_the_way_through_arrow_and_io() {
        let error = Error::malformed("1", "2").at(7).in_format("npy");
        let through: Error = ArrowError::from(error).into();
        assert_eq!((through.kind(), through.offset()), (ErrorKind::Malformed, Some(7)));
        let through: Error = std::io::Error::from(through).into();
        assert_eq!(through.to_string(), "npy: at byte 7: expected 1, found 2");
    }

    #[test]
    fn a_line_is_named_with_the_byte() {
        let error = Error::malformed("1", "2").at(7).line(3);
        assert_eq!(error.to_string(), "at byte 7 (line 3): expected 1, found 2");
        assert_eq!(error.field("x").to_string(), "at byte 7 (line 3), x: expected 1, found 2");
    }

    #[test]
    fn the_deepest_place_wins() {
        assert_eq!(Error::malformed("a", "b").at(5).at(1).offset(), Some(5));
    }
}
