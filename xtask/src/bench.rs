//! The benches: programs of the separate workspace `benches/`, and the command against other programs (`python.rs`).

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{Result, build_folder, cargo, python, root, run};

/// What `all` measures, beside the command.
const BENCHES: [&str; 6] = ["bsondf", "dbdf", "ds", "dynd", "everyday", "sds"];

/// Those that run alone, by name: `xtask bench NAME`.
const ALONE: [&str; 2] = ["sql", "store"];

/// Those that have peers in Python, which `PYTHON` or `PENTAGLOT_PYTHON` names if it is not to be the one made for them.
const PYTHON_PEERS: [&str; 3] = ["bsondf", "dbdf", "ds"];

/// Compiles the benches as far as to see that they fit the library.
pub(crate) fn check() -> Result {
    let mut command = cargo();
    command.args(["check", "--quiet", "--locked", "--manifest-path"]).arg(root().join("benches/Cargo.toml"));
    command.arg("--target-dir").arg(build_folder().join("benches"));
    run(command.args(BENCHES.iter().chain(&ALONE).flat_map(|name| ["--package", name])))
}

/// All benches. Those of the formats leave their figures for that of the command, which writes all to `benches/RESULTS.md`.
pub(crate) fn all() -> Result {
    build_command(&[])?;
    build(&BENCHES)?;
    let native = native("sds")?;
    let records = build_folder().join("bench-records.jsonl");
    std::fs::write(&records, "").map_err(|error| format!("{}: {error}", records.display()))?;
    for name in BENCHES {
        let mut command = program(name);
        if name == "sds" {
            command.arg("--native").arg(&native);
        }
        run(command.env("BENCH_RECORDS", &records))?;
    }
    python::bench(Some(&records))
}

/// The command against other programs, on less data.
pub(crate) fn quick() -> Result {
    build_command(&[])?;
    python::bench(None)
}

/// One bench of `benches/`.
pub(crate) fn one(name: &str, args: &[&str]) -> Result {
    build_command(if name == "sql" { &["--features", "sql"] } else { &[] })?;
    build(&[name])?;
    let mut command = program(name);
    if name == "sds" && args.is_empty() {
        command.arg("--native").arg(native(name)?);
    }
    run(command.args(args))
}

fn build_command(features: &[&str]) -> Result {
    run(cargo().args(["build", "--release", "--package", "pentaglot-cli"]).args(features))
}

/// Builds benches, in one go: one at a time, each would build the library again with the features that it needs.
fn build(names: &[&str]) -> Result {
    let packages = names.iter().flat_map(|name| ["--package", name]);
    run(cargo_build(&root().join("benches/target")).args(packages))
}

/// Builds a bench for the processor of this machine.
fn native(name: &str) -> Result<PathBuf> {
    let folder = build_folder().join("native");
    run(cargo_build(&folder).args(["--package", name]).env("RUSTFLAGS", "-Ctarget-cpu=native"))?;
    Ok(folder.join("release").join(name))
}

fn cargo_build(target: &Path) -> Command {
    let mut command = cargo();
    command.args(["build", "--release", "--manifest-path"]).arg(root().join("benches/Cargo.toml"));
    command.arg("--target-dir").arg(target);
    command
}

/// A bench that has been built, with its peers in Python.
fn program(name: &str) -> Command {
    let mut command = Command::new(root().join("benches/target/release").join(name));
    command.current_dir(root());
    if PYTHON_PEERS.contains(&name) {
        match python::bench_environment() {
            Ok(python) => {
                for key in ["PYTHON", "PENTAGLOT_PYTHON"].into_iter().filter(|key| env::var_os(key).is_none())
                {
                    command.env(key, &python);
                }
            }
            Err(reason) => println!("xtask: {name} without its peers in Python: {reason}"),
        }
    }
    command
}
