//! The findings of `validate`.

use crate::error::Error;

/// The severity of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Information only.
    Note,
    /// Valid, but not as the latest specification recommends.
    Warning,
    /// A rule is broken.
    Error,
}

impl Severity {
    /// The name that is printed.
    pub fn name(self) -> &'static str {
        match self {
            Severity::Note => "note",
            Severity::Warning => "warning",
            Severity::Error => "error",
        }
    }
}

/// One finding of `validate`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// Its severity.
    pub severity: Severity,
    /// The stable name of the rule.
    pub rule: String,
    /// The byte offset in the file, if known.
    pub offset: Option<u64>,
    /// The line of a text file, counted from 1, if known.
    pub line: Option<u64>,
    /// The path of the place, such as `block[0].value_type`.
    pub path: String,
    /// What was expected and what was found.
    pub message: String,
}

/// The findings of one file: up to a thousand are kept; the rest is counted.
#[derive(Debug, Default)]
pub struct Findings {
    list: Vec<Finding>,
    more: u64,
    errors: u64,
    strict: bool,
}

impl Findings {
    /// How many findings are kept.
    pub const KEPT: usize = 1000;

    /// No findings yet; `strict` makes a warning an error.
    pub fn new(strict: bool) -> Self {
        Findings { strict, ..Findings::default() }
    }

    /// Whether the strict profile is requested.
    pub fn is_strict(&self) -> bool {
        self.strict
    }

    /// Adds a broken rule.
    pub fn error(&mut self, error: &Error) {
        self.add(Severity::Error, error);
    }

    /// Adds a warning: an error in the strict profile.
    pub fn warning(&mut self, error: &Error) {
        self.add(if self.strict { Severity::Error } else { Severity::Warning }, error);
    }

    /// Adds a note.
    pub fn note(&mut self, error: &Error) {
        self.add(Severity::Note, error);
    }

    fn add(&mut self, severity: Severity, error: &Error) {
        self.errors += u64::from(severity == Severity::Error);
        if self.list.len() >= Findings::KEPT {
            self.more += 1;
            return;
        }
        self.list.push(Finding {
            severity,
            rule: error.rule_name().to_owned(),
            offset: error.offset(),
            line: error.line_number(),
            path: error.path(),
            message: error.message().to_owned(),
        });
    }

    /// Whether no rule is broken.
    pub fn is_valid(&self) -> bool {
        self.errors == 0
    }

    /// Whether the list is full, so that searching for more is of little use.
    pub fn is_full(&self) -> bool {
        self.list.len() >= Findings::KEPT
    }

    /// The findings that were kept.
    pub fn list(&self) -> &[Finding] {
        &self.list
    }

    /// How many were counted but not kept.
    pub fn more(&self) -> u64 {
        self.more
    }
}
