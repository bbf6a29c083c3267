//! `cargo xtask fuzz`: every fuzz target in turn, for a number of seconds each.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::{Result, cargo, host, root};

/// Flags for coverage instrumentation, which the stable compiler accepts.
const COVERAGE: &str = "-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
    --cfg fuzzing -Cdebug-assertions -Coverflow-checks";

/// Runs the targets that are named, or all. The seeds are our test data; interesting inputs are kept in
/// `fuzz/corpus`, and inputs that crash a target in `fuzz/artifacts`.
pub(crate) fn run(chosen: &[&str], seconds: &str) -> Result {
    let (host, folder) = (host()?, root().join("fuzz"));
    let build = folder.join("target");
    crate::run(
        cargo()
            .args(["build", "--release", "--target", &host, "--manifest-path"])
            .arg(folder.join("Cargo.toml"))
            .env("CARGO_TARGET_DIR", &build)
            .env("RUSTFLAGS", COVERAGE),
    )?;
    let program = build.join(&host).join("release/fuzz");
    let names = Command::new(&program).env("PENTAGLOT_FUZZ", "list").output();
    let names = names.map_err(|error| format!("{}: {error}", program.display()))?;
    let names = String::from_utf8_lossy(&names.stdout).into_owned();
    let names: Vec<&str> = names.lines().collect();
    if let Some(unknown) = chosen.iter().find(|name| !names.contains(name)) {
        return Err(format!("expected one of {}, found {unknown}", names.join(", ")));
    }
    let mut broken = Vec::new();
    for name in names.iter().filter(|name| chosen.is_empty() || chosen.contains(name)) {
        println!("fuzz {name}: {seconds} seconds");
        if target(&program, &folder, name, seconds)? {
            broken.push(*name);
        }
    }
    if broken.is_empty() {
        Ok(())
    } else {
        Err(format!("findings in fuzz/artifacts of {}", broken.join(", ")))
    }
}

/// Runs one target; returns whether it crashed.
fn target(program: &Path, folder: &Path, name: &str, seconds: &str) -> Result<bool> {
    let (corpus, artifacts) = (folder.join("corpus").join(name), folder.join("artifacts").join(name));
    for path in [&corpus, &artifacts] {
        fs::create_dir_all(path).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    let seeds = root().join("testdata").join(name);
    let mut command = Command::new(program);
    command
        .env("PENTAGLOT_FUZZ", name)
        .arg(&corpus)
        .args(seeds.exists().then_some(seeds))
        .arg(format!("-artifact_prefix={}/", artifacts.display()))
        .args([
            &format!("-max_total_time={seconds}"),
            "-rss_limit_mb=2048",
            "-timeout=10",
            "-print_final_stats=1",
        ])
        .arg("-max_len=65536");
    let status = command.status().map_err(|error| format!("{}: {error}", program.display()))?;
    Ok(!status.success())
}
