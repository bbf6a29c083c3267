//! The packages and features that all tasks build.
//!
//! Another selection builds the same dependencies with other features, which takes time; see CONTRIBUTING.md.

/// Everything: what CI lints, tests and documents.
pub(crate) const FULL: [&str; 3] = [
    "--workspace",
    "--features",
    "pentaglot-cli/cluster,pentaglot-cli/mongodb,pentaglot-cli/remote,pentaglot-cli/sql",
];

/// Without MongoDB, object stores, SQL and the cluster: the plain build, for work on formats.
pub(crate) const LIGHT: [&str; 9] = [
    "--workspace",
    "--exclude",
    "pentaglot-sql",
    "--exclude",
    "pentaglot-remote",
    "--exclude",
    "pentaglot-mongodb",
    "--exclude",
    "pentaglot-cluster",
];
