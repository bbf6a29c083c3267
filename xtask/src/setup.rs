//! `cargo xtask setup`: the system packages that tests need. For root, as CI runs it.

use std::process::Command;

use crate::Result;

/// Debian packages that a test needs, besides what builds the workspace: the browser of the viewer's tests, and a font for it.
const PACKAGES: &[&str] = &["chromium", "fonts-dejavu-core"];

/// Installs only the missing packages of [`PACKAGES`], and prints what it does.
pub(crate) fn run() -> Result {
    let missing: Vec<&str> = PACKAGES.iter().copied().filter(|package| !is_installed(package)).collect();
    if missing.is_empty() {
        println!("xtask: {} system packages are needed, none is missing", PACKAGES.len());
        return Ok(());
    }
    println!("xtask: installing {}", missing.join(" "));
    crate::run(Command::new("apt-get").args(["update", "--quiet"]))?;
    crate::run(
        Command::new("apt-get")
            .args(["install", "--quiet", "--yes", "--no-install-recommends"])
            .args(missing)
            .env("DEBIAN_FRONTEND", "noninteractive"),
    )
}

fn is_installed(package: &str) -> bool {
    let query = Command::new("dpkg-query").args(["--show", "--showformat=${Status}", package]).output();
    query.is_ok_and(|output| output.stdout.ends_with(b"ok installed"))
}
