//! Errors of opening and building structures.

use std::fmt;

/// Why a structure could not be opened or built.
///
/// `at` is an element (64-bit word) offset from the start of the words that the cursor was given; `path`
/// names the field, such as `high.bits.words`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// The words end before the structure does.
    Truncated {
        /// Element offset of the field that does not fit.
        at: u64,
        /// The field.
        path: String,
        /// Elements that the field needs.
        needed: u64,
        /// Elements that are left.
        left: u64,
    },
    /// The words contradict the format.
    Malformed {
        /// Element offset of the contradiction.
        at: u64,
        /// The field.
        path: String,
        /// What the format requires.
        expected: String,
        /// What was found.
        found: String,
    },
    /// A limit that protects memory was exceeded.
    Limit {
        /// The limit's name.
        name: &'static str,
        /// Its value.
        limit: u64,
        /// The requested value.
        found: u64,
    },
}

impl Error {
    /// A [`Error::Malformed`] at `at`.
    pub fn malformed(
        at: u64,
        path: impl Into<String>,
        expected: impl fmt::Display,
        found: impl fmt::Display,
    ) -> Error {
        Error::Malformed { at, path: path.into(), expected: expected.to_string(), found: found.to_string() }
    }

    /// The same error, its path prefixed with the field that holds the failing structure.
    #[must_use]
    pub fn within(mut self, parent: &str) -> Error {
        if let Error::Truncated { path, .. } | Error::Malformed { path, .. } = &mut self {
            *path = join(parent, path);
        }
        self
    }
}

/// `parent.child`, or the one that is not empty.
pub(crate) fn join(parent: &str, child: &str) -> String {
    match (parent.is_empty(), child.is_empty()) {
        (true, _) => child.to_owned(),
        (_, true) => parent.to_owned(),
        _ => format!("{parent}.{child}"),
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Truncated { at, path, needed, left } => {
                write!(f, "{path} at element {at}: expected {needed} more elements, found {left}")
            }
            Error::Malformed { at, path, expected, found } => {
                write!(f, "{path} at element {at}: expected {expected}, found {found}")
            }
            Error::Limit { name, limit, found } => write!(f, "{name}: the limit is {limit}, found {found}"),
        }
    }
}

impl std::error::Error for Error {}
