//! Which packages are built, with which features: the one place that says it.
//!
//! Another selection builds other features of the same dependencies, so each has a price of its own; see CONTRIBUTING.md.

/// Everything: what CI lints, tests and documents.
pub(crate) const FULL: [&str; 3] =
    ["--workspace", "--features", "pentaglot-cli/remote,pentaglot-cli/sql,pentaglot-cli/cluster"];

/// Without object stores, SQL and the cluster: the plain build, for work on formats.
pub(crate) const LIGHT: [&str; 7] = [
    "--workspace",
    "--exclude",
    "pentaglot-sql",
    "--exclude",
    "pentaglot-remote",
    "--exclude",
    "pentaglot-cluster",
];
