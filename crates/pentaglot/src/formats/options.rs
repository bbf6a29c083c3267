//! Options of readers and writers.

use super::planned::ChangedRows;
use crate::control::Control;
use crate::error::{Error, Result};
use crate::hub::json::JsonOptions;
use crate::hub::{LossKinds, LossRecord};
use crate::limits::Budget;
use crate::map::InPlace;

/// Whether an option is for reading or for writing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Side {
    /// For reading.
    Read,
    /// For writing.
    Write,
    /// For both.
    Both,
}

impl Side {
    /// The text that is shown to a user.
    pub fn name(self) -> &'static str {
        match self {
            Side::Read => "reading",
            Side::Write => "writing",
            Side::Both => "reading, writing",
        }
    }

    /// Whether an option of this side is for `side`, which is [`Side::Read`] or [`Side::Write`].
    pub fn includes(self, side: Side) -> bool {
        self == Side::Both || self == side
    }
}

/// One option of a format.
#[derive(Debug, Clone, Copy)]
pub struct OptionInfo {
    /// The key.
    pub key: &'static str,
    /// Whether it is for reading, writing or both.
    pub side: Side,
    /// The valid values, as shown to a user: `auto|dense|sparse`, `0..12`, `N`.
    pub values: &'static str,
    /// The default, as shown to a user.
    pub default: &'static str,
    /// What it does.
    pub help: &'static str,
}

/// The formats' own options that a user gave, as pairs of key and value; formats get keys that their [`OptionInfo`]s list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OptionMap(Vec<(String, String)>);

impl OptionMap {
    /// The pairs; the last one of a key takes precedence.
    pub fn new(pairs: Vec<(String, String)>) -> Self {
        OptionMap(pairs)
    }

    /// Adds a pair.
    pub fn set(&mut self, key: impl Into<String>, value: impl Into<String>) {
        self.0.push((key.into(), value.into()));
    }

    /// Removes a key.
    pub fn remove(&mut self, key: &str) {
        self.0.retain(|(name, _)| name != key);
    }

    /// The value of a key.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.0.iter().rev().find(|(name, _)| name == key).map(|(_, value)| value.as_str())
    }

    /// The keys given.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(key, _)| key.as_str())
    }

    /// A `true|false` value.
    pub fn bool(&self, key: &str) -> Result<Option<bool>> {
        match self.get(key) {
            None => Ok(None),
            Some("true") => Ok(Some(true)),
            Some("false") => Ok(Some(false)),
            Some(other) => {
                Err(Error::usage(format!("option {key}: expected true or false, found {other:?}")))
            }
        }
    }

    /// An integer.
    pub fn number(&self, key: &str) -> Result<Option<u64>> {
        let Some(text) = self.get(key) else { return Ok(None) };
        let number = text.parse();
        number
            .map(Some)
            .map_err(|_| Error::usage(format!("option {key}: expected a whole number, found {text:?}")))
    }

    /// One of the given words; the first is the default.
    pub fn word<'w>(&self, key: &str, words: &[&'w str]) -> Result<Option<&'w str>> {
        let Some(text) = self.get(key) else { return Ok(None) };
        let word = words.iter().find(|word| **word == text);
        word.map(|word| Some(*word)).ok_or_else(|| {
            let one_of = if words.len() > 1 { "one of " } else { "" };
            Error::usage(format!("option {key}: expected {one_of}{}, found {text:?}", words.join(", ")))
        })
    }
}

/// Options for opening a file.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct ReadOptions {
    /// The dialect, if it is given.
    pub dialect: Option<String>,
    /// The part of a container to read.
    pub member: Option<String>,
    /// The type of data that does not carry its own.
    pub type_text: Option<String>,
    /// The format's own options.
    pub options: OptionMap,
    /// Whether the file is known to be damaged: the existing parts are opened, and missing parts are detected when they
    /// are read.
    pub damaged: bool,
    /// Permission to map a file into memory instead of reading it, if the format supports it.
    pub in_place: Option<InPlace>,
    /// The memory that the job may use, and its other limits.
    pub budget: Budget,
    /// The handle on the job: its threads, its progress, and the flag that cancels it.
    pub control: Control,
}

/// Options for writing a file.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct WriteOptions {
    /// The output's name, if it has one: its extension may determine the dialect.
    pub name: Option<String>,
    /// The dialect to write.
    pub dialect: Option<String>,
    /// The type to write, for formats that need one given.
    pub type_text: Option<String>,
    /// The format's own options.
    pub options: OptionMap,
    /// The memory that the job may use, and its other limits.
    pub budget: Budget,
    /// The handle on the job: its threads, its progress, and the flag that cancels it.
    pub control: Control,
    /// The number of rows, if known in advance.
    pub row_count: Option<u64>,
    /// The kinds of loss that are allowed.
    pub allow_lossy: LossKinds,
    /// The record of the writer's losses.
    pub lost: LossRecord,
    /// How text formats write nested values.
    pub json: JsonOptions,
    /// The rows as the writer's rules changed them.
    pub(crate) changed: ChangedRows,
}

impl ReadOptions {
    setters! {
        texts [
            with_dialect(dialect),
            with_member(member),
            with_type_text(type_text),
        ]
        values [
            with_in_place(in_place: InPlace),
            with_damaged(damaged: bool),
            with_budget(budget: Budget),
            with_control(control: Control),
        ]
    }

    /// Adds an option of the format.
    ///
    /// ```
    /// use pentaglot::formats::ReadOptions;
    /// let options = ReadOptions::default().with_option("utf8", "bytes");
    /// assert_eq!(options.options.get("utf8"), Some("bytes"));
    /// ```
    #[must_use]
    pub fn with_option(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.options.set(key, value);
        self
    }
}

impl WriteOptions {
    setters! {
        texts [
            with_name(name),
            with_dialect(dialect),
            with_type_text(type_text),
        ]
        values [
            with_budget(budget: Budget),
            with_control(control: Control),
            with_row_count(row_count: u64),
            with_allow_lossy(allow_lossy: LossKinds),
            with_lost(lost: LossRecord),
            with_json(json: JsonOptions),
        ]
    }

    /// Adds an option of the format.
    ///
    /// ```
    /// use pentaglot::formats::WriteOptions;
    /// let options = WriteOptions::default().with_option("compression", "zstd:9").with_row_count(100);
    /// assert_eq!(options.row_count, Some(100));
    /// ```
    #[must_use]
    pub fn with_option(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.options.set(key, value);
        self
    }
}
