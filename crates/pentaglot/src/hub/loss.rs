//! The kinds of loss that a conversion may cause ([`LossKinds`]), and a record of actual losses
//! ([`LossRecord`]).

use std::collections::BTreeMap;
use std::fmt;
use std::ops::BitOr;
use std::str::FromStr;
use std::sync::{Arc, Mutex, PoisonError};

use crate::error::{Error, Hint, Result};

/// A kind of loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LossKind {
    /// Digits: floats and times are rounded to nearest even, floats that become integers are truncated towards
    /// zero.
    Precision,
    /// Values that the target cannot hold: they become null if the target is nullable.
    Range,
    /// The name of a time zone.
    Timezone,
    /// The difference between null and a value such as NaN.
    Nulls,
    /// Names of columns.
    Names,
    /// The order of values.
    Order,
    /// Whole columns, or parts of values.
    Dropped,
    /// Metadata: the shape, extension types, the meaning of numbers.
    Metadata,
}

impl LossKind {
    /// All kinds.
    pub const ALL: [LossKind; 8] = [
        LossKind::Precision,
        LossKind::Range,
        LossKind::Timezone,
        LossKind::Nulls,
        LossKind::Names,
        LossKind::Order,
        LossKind::Dropped,
        LossKind::Metadata,
    ];

    /// The name that is printed.
    pub fn name(self) -> &'static str {
        match self {
            LossKind::Precision => "precision",
            LossKind::Range => "range",
            LossKind::Timezone => "timezone",
            LossKind::Nulls => "nulls",
            LossKind::Names => "names",
            LossKind::Order => "order",
            LossKind::Dropped => "dropped",
            LossKind::Metadata => "metadata",
        }
    }
}

impl LossKind {
    /// The hint that this kind must be allowed.
    pub fn hint(self) -> Hint {
        Hint::AllowLossy(self.name().into())
    }
}

impl fmt::Display for LossKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for LossKind {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        LossKind::ALL.into_iter().find(|kind| kind.name() == text).ok_or_else(|| {
            let names: Vec<&str> = LossKind::ALL.iter().map(|kind| kind.name()).collect();
            Error::usage(format!("expected a kind of loss ({}), found {text:?}", names.join(", ")))
        })
    }
}

/// A set of kinds of loss: of a step of a plan, or those that a user allows.
///
/// ```
/// use pentaglot::hub::{LossKind, LossKinds};
/// let kinds: LossKinds = "precision,range".parse()?;
/// assert!(kinds.contains(LossKind::Range) && !kinds.contains(LossKind::Nulls));
/// assert_eq!(kinds, LossKind::Range | LossKind::Precision);
/// assert_eq!(kinds.to_string(), "precision,range");
/// # Ok::<(), pentaglot::Error>(())
/// ```
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct LossKinds(u8);

impl LossKinds {
    /// No kind.
    pub const NONE: LossKinds = LossKinds(0);
    /// Every kind.
    pub const ALL: LossKinds = LossKinds(u8::MAX);

    /// Whether a kind is among them.
    pub fn contains(self, kind: LossKind) -> bool {
        self.0 & LossKinds::from(kind).0 != 0
    }

    /// Whether all of `other` are among them.
    pub fn contains_all(self, other: LossKinds) -> bool {
        self.0 & other.0 == other.0
    }

    /// Whether it contains no kind.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The hint that these kinds must be allowed.
    pub fn hint(self) -> Hint {
        Hint::AllowLossy(self.to_string().into())
    }

    /// The kinds, in the order of [`LossKind::ALL`].
    pub fn iter(self) -> impl Iterator<Item = LossKind> {
        LossKind::ALL.into_iter().filter(move |kind| self.contains(*kind))
    }
}

impl From<LossKind> for LossKinds {
    fn from(kind: LossKind) -> Self {
        LossKinds(1 << kind as u8)
    }
}

impl<K: Into<LossKinds>> BitOr<K> for LossKinds {
    type Output = LossKinds;

    fn bitor(self, other: K) -> LossKinds {
        LossKinds(self.0 | other.into().0)
    }
}

impl<K: Into<LossKinds>> BitOr<K> for LossKind {
    type Output = LossKinds;

    fn bitor(self, other: K) -> LossKinds {
        LossKinds::from(self) | other
    }
}

impl FromStr for LossKinds {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        text.split(',').try_fold(LossKinds::NONE, |kinds, word| Ok(kinds | word.trim().parse::<LossKind>()?))
    }
}

impl fmt::Display for LossKinds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, kind) in self.iter().enumerate() {
            write!(f, "{}{kind}", if index > 0 { "," } else { "" })?;
        }
        Ok(())
    }
}

impl fmt::Debug for LossKinds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{{{self}}}")
    }
}

/// A loss in one column during a run.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Lost {
    /// The kind of loss.
    pub kind: LossKind,
    /// The column's name or path; empty for the whole.
    pub column: String,
    /// The number of changed values, or of dropped names or metadata entries.
    pub values: u64,
    /// The first of them.
    pub example: Option<String>,
}

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "loss ({})", self.kind)?;
        if !self.column.is_empty() {
            write!(f, " in column {:?}", self.column)?;
        }
        write!(f, ": {} {}", self.values, if self.values == 1 { "value" } else { "values" })?;
        match &self.example {
            Some(example) => write!(f, ", such as {example}"),
            None => Ok(()),
        }
    }
}

/// Counts the losses of a run, by kind and column. Clones share one record.
#[derive(Debug, Clone, Default)]
pub struct LossRecord(Arc<Mutex<Counts>>);

/// By kind and column: how many values, and the first of them.
type Counts = BTreeMap<(LossKind, String), (u64, Option<String>)>;

impl LossRecord {
    /// Adds values that were changed. Called once per batch and column, not per value.
    pub fn add(&self, kind: LossKind, column: &str, values: u64, example: impl FnOnce() -> Option<String>) {
        if values == 0 {
            return;
        }
        let mut record = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let entry = record.entry((kind, column.to_owned())).or_default();
        if entry.0 == 0 {
            entry.1 = example();
        }
        entry.0 += values;
    }

    /// The losses so far, by kind, then column.
    pub fn lost(&self) -> Vec<Lost> {
        let record = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let lost = record.iter().map(|((kind, column), (values, example))| Lost {
            kind: *kind,
            column: column.clone(),
            values: *values,
            example: example.clone(),
        });
        lost.collect()
    }

    /// Whether something of this kind was lost in a column.
    pub fn contains(&self, kind: LossKind, column: &str) -> bool {
        let record = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        record.contains_key(&(kind, column.to_owned()))
    }
}
