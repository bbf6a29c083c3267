//! Tasks for developers and CI: `cargo xtask setup|test|bless|bench|fuzz|valgrind|lines|pictures|web`.

mod bench;
mod fuzz;
mod lines;
mod pictures;
mod python;
mod select;
mod servers;
mod setup;
mod test;
mod web;

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

const USAGE: &str = "usage: cargo xtask setup | lint | docs | test [light] | bless | bench [--quick] | bench NAME [ARGS] | \
    fuzz [TARGET…] [--seconds N | --keep] | valgrind | lines | pictures | web";

type Result<T = ()> = std::result::Result<T, String>;

fn main() -> ExitCode {
    let args: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        ["setup"] => setup::run(),
        ["lint"] => lint(),
        ["docs"] => run(cargo().arg("doc").args(select::FULL).args(["--no-deps", "--locked"])),
        ["test"] => test::run(&select::FULL),
        ["test", "light"] => test::run(&select::LIGHT),
        ["bless"] => bless(),
        ["bench"] => bench::all(),
        ["bench", "--quick"] => bench::quick(),
        ["bench", name, rest @ ..] => bench::one(name, rest),
        ["fuzz", targets @ .., "--seconds", seconds] => fuzz::run(targets, &fuzz::Task::Run(seconds)),
        ["fuzz", targets @ .., "--keep"] => fuzz::run(targets, &fuzz::Task::Keep),
        ["fuzz", targets @ ..] => fuzz::run(targets, &fuzz::Task::Run("60")),
        ["valgrind"] => valgrind(),
        ["lines"] => lines::run(),
        ["pictures"] => pictures::make(),
        ["web"] => web::build(),
        _ => Err(USAGE.to_owned()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("xtask: {message}");
            ExitCode::FAILURE
        }
    }
}

/// Clippy over everything; a warning is an error. The benches are checked, so that none falls behind the library.
fn lint() -> Result {
    let rest = ["--all-targets", "--locked", "--", "-D", "warnings"];
    run(cargo().arg("clippy").args(select::FULL).args(rest))?;
    bench::check()
}

/// Rewrites the golden transcripts and the generated pages; read the diff before you commit it.
fn bless() -> Result {
    run(cargo()
        .arg("test")
        .args(select::LIGHT)
        .args(["--lib", "--test", "transcripts", "--test", "docs"])
        .env("TRYCMD", "overwrite"))
}

/// The tests of the unsafe code, under valgrind: those of the succinct structures and those of the kernels. A few minutes.
///
/// Its processor has POPCNT and BMI2, so the fast paths are tested, but not AVX-512, which it does not support. The
/// tests that would take longest are left out: those that flip every single bit (garbage and indexes of other data are
/// tried instead), and that of large clustered vectors.
fn valgrind() -> Result {
    let runner = "valgrind --quiet --error-exitcode=99 --leak-check=no";
    let key = format!("CARGO_TARGET_{}_RUNNER", host()?.to_uppercase().replace('-', "_"));
    run(cargo()
        .args(["test", "--package", "pentaglot-succinct", "--tests", "--"])
        .args(["--skip", "single_bit_flips", "--skip", "every_flip", "--skip", "clustered_bits"])
        .env(&key, runner)
        .env("PROPTEST_CASES", "4"))?;
    run(cargo()
        .arg("test")
        .args(select::LIGHT)
        .args(["--lib", "kernels::"])
        .env(&key, runner)
        .env("PROPTEST_CASES", "4"))
}

fn host() -> Result<String> {
    let output = Command::new("rustc").arg("-vV").output().map_err(|error| format!("rustc: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let line = text.lines().find_map(|line| line.strip_prefix("host: "));
    line.map(str::to_owned).ok_or("rustc does not name its host".to_owned())
}

/// The folder where cargo builds this program, and also the command.
fn build_folder() -> PathBuf {
    let this = env::current_exe().unwrap_or_default();
    this.parent().map(Path::to_path_buf).unwrap_or_default()
}

/// The checkout. Cargo says where it is when it runs this program, which may have been built in another checkout.
fn root() -> PathBuf {
    let manifest = env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
    Path::new(&manifest).parent().map(Path::to_path_buf).unwrap_or_default()
}

/// Cargo, without the variables that describe this program: a build script that depends on one of them would run again, and
/// what depends on it would be built again, whenever cargo is started in another way.
fn cargo() -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or("cargo".into()));
    command.current_dir(root());
    let of_package = |name: &str| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_");
    for (name, _) in env::vars_os().filter(|(name, _)| name.to_str().is_some_and(of_package)) {
        command.env_remove(name);
    }
    command
}

fn run(command: &mut Command) -> Result {
    let status =
        command.status().map_err(|error| format!("{}: {error}", command.get_program().to_string_lossy()))?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("{} ended with {status}", command.get_program().to_string_lossy()))
    }
}
