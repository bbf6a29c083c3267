//! The packages and features that all tasks build.
//!
//! Another selection builds the same dependencies with other features, which takes time; see CONTRIBUTING.md.

/// Everything: what CI lints, tests and documents.
pub(crate) const FULL: [&str; 3] = ["--workspace", "--features", "pentaglot-cli/remote,pentaglot-cli/sql"];

/// Without object stores and SQL: the plain build, for work on formats.
pub(crate) const LIGHT: [&str; 5] =
    ["--workspace", "--exclude", "pentaglot-sql", "--exclude", "pentaglot-remote"];
