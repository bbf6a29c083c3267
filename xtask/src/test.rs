//! `cargo xtask test`: every test. It installs nothing outside the build folder.

use std::process::Command;
use std::{env, fs};

use crate::{Result, build_folder, cargo, python, root, select, web};

/// Runs those of a selection of packages. Tests that could not be run are listed at the end; with `CI` in the
/// environment that is a failure.
pub(crate) fn run(selection: &[&str]) -> Result {
    let mut left_out = Vec::new();
    all(selection, &mut left_out)?;
    if left_out.is_empty() {
        return Ok(());
    }
    println!("xtask: left out:");
    left_out.iter().for_each(|what| println!("  {what}"));
    if env::var_os("CI").is_some() {
        return Err(format!("{} left out, which CI does not allow", left_out.len()));
    }
    Ok(())
}

/// Rust, documentation, transcripts of the command, each format alone, the page of the viewer, the Python programs that read what we write, and the
/// Python package.
fn all(selection: &[&str], left_out: &mut Vec<String>) -> Result {
    // This builds the command too. Always the same selection: another one would build the dependencies again
    // with other features.
    crate::run(cargo().arg("test").args(selection).arg("--locked"))?;
    // The tests of the succinct structures again, with the code paths of other processors.
    for processor in ["bmi2", "popcnt", "portable"] {
        crate::run(
            cargo()
                .arg("test")
                .args(selection)
                .args(["--locked", "--test", "naive", "--test", "vectors", "--test", "damage"])
                .env("PENTAGLOT_SUCCINCT_CPU", processor),
        )?;
    }
    each_format_alone()?;
    dependencies(left_out)?;
    web::tests(left_out)?;
    python::tests(selection == select::FULL, left_out)?;
    python::package(left_out)
}

/// The version of cargo-deny that is installed.
const DENY: &str = "0.20.2";

/// Licences, banned crates and sources of all dependencies, by `deny.toml`. The checker is built once, into the build folder.
fn dependencies(left_out: &mut Vec<String>) -> Result {
    let tools = build_folder().join("tools");
    let install = cargo()
        .args(["install", "--quiet", "--locked", "cargo-deny", "--version", DENY, "--root"])
        .arg(&tools)
        .env("CARGO_TARGET_DIR", build_folder().join("tools-target"))
        // It runs only for a second, so the time to build it matters more.
        .env("CARGO_PROFILE_RELEASE_OPT_LEVEL", "0")
        .env("CARGO_PROFILE_RELEASE_LTO", "false")
        .status();
    if !install.is_ok_and(|status| status.success()) {
        left_out.push("the licences of dependencies: cargo-deny cannot be installed".to_owned());
        return Ok(());
    }
    let _ = fs::remove_dir_all(build_folder().join("tools-target"));
    println!("xtask: licences and sources of dependencies");
    // Those of other systems too, which no build on this one has fetched.
    crate::run(cargo().args(["fetch", "--quiet", "--locked"]))?;
    let program = tools.join("bin").join(format!("cargo-deny{}", env::consts::EXE_SUFFIX));
    crate::run(
        Command::new(program).args(["--offline", "check", "licenses", "bans", "sources"]).current_dir(root()),
    )
}

/// The library with one format at a time: common code must not depend on a particular format.
fn each_format_alone() -> Result {
    let manifest = root().join("crates/pentaglot/Cargo.toml");
    let text = fs::read_to_string(&manifest).map_err(|error| format!("{}: {error}", manifest.display()))?;
    let features = features(&text);
    if features.len() < 2 {
        return Err(format!(
            "{}: expected a feature for each format, found {features:?}",
            manifest.display()
        ));
    }
    for feature in features {
        println!("xtask: the library with the format {feature} alone");
        crate::run(
            cargo()
                .args(["clippy", "--quiet", "--locked", "--package", "pentaglot", "--no-default-features"])
                .args(["--features", feature, "--", "-D", "warnings"]),
        )?;
    }
    Ok(())
}

/// The names in the `[features]` table of a manifest, without `default`.
fn features(manifest: &str) -> Vec<&str> {
    let table = manifest.lines().skip_while(|line| *line != "[features]").skip(1);
    let lines = table.take_while(|line| !line.starts_with('['));
    let names = lines.filter_map(|line| line.split_once(" = ["));
    names.map(|(name, _)| name).filter(|name| *name != "default").collect()
}
