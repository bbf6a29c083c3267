//! What developers and CI run: `cargo xtask setup|test|bless|bench|fuzz|valgrind|lines`.

mod lines;
mod python;
mod select;
mod servers;
mod setup;
mod test;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::{env, fs};

const USAGE: &str = "usage: cargo xtask setup | lint | docs | test [light] | bless | bench NAME [ARGS] | fuzz FORMAT [SECONDS] | valgrind | lines";

type Result<T = ()> = std::result::Result<T, String>;

fn main() -> ExitCode {
    let args: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        ["setup"] => setup::run(),
        ["lint"] => run(cargo().arg("clippy").args(select::FULL).args([
            "--all-targets",
            "--locked",
            "--",
            "-D",
            "warnings",
        ])),
        ["docs"] => run(cargo().arg("doc").args(select::FULL).args(["--no-deps", "--locked"])),
        ["test"] => test::run(&select::FULL),
        ["test", "light"] => test::run(&select::LIGHT),
        ["bless"] => bless(),
        ["bench", name, rest @ ..] => bench(name, rest),
        ["fuzz", format] => fuzz(format, "60"),
        ["fuzz", format, seconds] => fuzz(format, seconds),
        ["valgrind"] => valgrind(),
        ["lines"] => lines::run(),
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

/// Rewrites the golden transcripts and the generated pages; read the diff before you commit it.
fn bless() -> Result {
    run(cargo()
        .arg("test")
        .args(select::LIGHT)
        .args(["--lib", "--test", "transcripts", "--test", "docs"])
        .env("TRYCMD", "overwrite"))
}

/// A bench of the separate workspace in `benches/`.
fn bench(name: &str, args: &[&str]) -> Result {
    run(cargo().args(["build", "--release", "--package", "pentaglot-cli"]))?;
    let manifest = root().join("benches/Cargo.toml");
    let mut command = cargo();
    command.args(["run", "--release", "--manifest-path"]).arg(manifest).args(["--package", name, "--"]);
    run(command.args(args))
}

/// What tells the fuzzer which code its bytes reach. These flags need no other compiler than the one at hand.
const COVERAGE: &str = "-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
    --cfg fuzzing -Cdebug-assertions -Coverflow-checks";

/// Feeds a format's reader with bytes made up from the test data, for so many seconds.
fn fuzz(format: &str, seconds: &str) -> Result {
    let (host, folder) = (host()?, root().join("fuzz"));
    let target = folder.join("target");
    run(cargo()
        .args(["build", "--release", "--bin", format, "--target", &host, "--manifest-path"])
        .arg(folder.join("Cargo.toml"))
        .env("CARGO_TARGET_DIR", &target)
        .env("RUSTFLAGS", COVERAGE))?;
    let corpus = folder.join("corpus").join(format);
    fs::create_dir_all(&corpus).map_err(|error| format!("{}: {error}", corpus.display()))?;
    run(Command::new(target.join(&host).join("release").join(format))
        .arg(&corpus)
        .arg(root().join("testdata").join(format))
        .args([&format!("-max_total_time={seconds}"), "-rss_limit_mb=2048", "-timeout=10"])
        .current_dir(&folder))
}

/// The tests of the unsafe code, under valgrind: those of the succinct structures and those of the kernels. A few minutes.
///
/// Its processor has POPCNT and BMI2, so the fast ways are the ones that run, but no AVX-512, which it hides. Left out
/// are the tests that would take longest: those that flip every single bit (garbage and indexes of other data are
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

/// Where cargo put this program, and so the command.
fn build_folder() -> PathBuf {
    let this = env::current_exe().unwrap_or_default();
    this.parent().map(Path::to_path_buf).unwrap_or_default()
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().map(Path::to_path_buf).unwrap_or_default()
}

fn cargo() -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or("cargo".into()));
    command.current_dir(root());
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
