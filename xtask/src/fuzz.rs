//! `cargo xtask fuzz`: every fuzz target in turn, for a number of seconds each.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::{Result, cargo, host, root};

/// Flags for coverage instrumentation, which the stable compiler accepts.
const COVERAGE: &str = "-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
    --cfg fuzzing -Cdebug-assertions -Coverflow-checks";

/// What is done with targets.
pub(crate) enum Task<'t> {
    /// They run for so many seconds.
    Run(&'t str),
    /// The short inputs of their corpora are kept in the repository.
    Keep,
}

/// Runs the targets that are named, or all. The seeds are our test data and what earlier runs found (`fuzz/seeds`); interesting
/// inputs are added to `fuzz/corpus`, and inputs that crash a target to `fuzz/artifacts`.
pub(crate) fn run(chosen: &[&str], task: &Task<'_>) -> Result {
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
        match task {
            Task::Run(seconds) => {
                println!("fuzz {name}: {seconds} seconds");
                if target(&program, &folder, name, seconds)? {
                    broken.push(*name);
                }
            }
            Task::Keep => keep(&program, &folder, name)?,
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
    let kept = folder.join("seeds").join(format!("{name}.tar.gz"));
    let is_empty = fs::read_dir(&corpus).is_ok_and(|mut files| files.next().is_none());
    if kept.exists() && is_empty {
        crate::run(Command::new("tar").arg("-xzf").arg(kept).arg("-C").arg(&corpus))?;
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

/// Inputs that are longer are not kept.
const KEPT_BYTES: u32 = 2048;

/// Packs those short inputs of a corpus that reach different code.
fn keep(program: &Path, folder: &Path, name: &str) -> Result {
    let (corpus, short) = (folder.join("corpus").join(name), folder.join("target/short").join(name));
    let seeds = folder.join("seeds");
    drop(fs::remove_dir_all(&short));
    for path in [&short, &seeds] {
        fs::create_dir_all(path).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    let mut merge = Command::new(program);
    merge.env("PENTAGLOT_FUZZ", name).args(["-merge=1", &format!("-max_len={KEPT_BYTES}")]);
    crate::run(merge.arg(&short).arg(&corpus))?;
    let file = seeds.join(format!("{name}.tar.gz"));
    let mut tar = Command::new("tar");
    tar.args(["--sort=name", "--owner=0", "--group=0", "--mtime=@0", "-czf"]).arg(file).arg("-C").arg(&short);
    crate::run(tar.arg("."))
}
