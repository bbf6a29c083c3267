//! The Python programs in `tests/python`, in a virtual environment of their own.

use std::path::PathBuf;
use std::process::Command;
use std::{env, fs};

use crate::{Result, build_folder, root, run};

/// What the Python tests import.
const PACKAGES: &[&str] = &["numpy", "pyarrow", "pandas", "scipy", "lz4", "msgpack", "blake3"];

/// Runs `tests/python/*.py`. Without python3 or its packages they are left out.
pub(crate) fn tests(left_out: &mut Vec<String>) -> Result {
    let folder = root().join("tests/python");
    let entries = fs::read_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut scripts: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    scripts.retain(|path| path.extension().is_some_and(|extension| extension == "py"));
    scripts.sort();
    let python = match virtual_environment() {
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
        match run(Command::new(&python).arg(script).env("PENTAGLOT", &command).current_dir(root())) {
            Ok(()) => passed += 1,
            Err(_) => failed.push(name),
        }
    }
    println!("python: {passed} passed, {} failed", failed.len());
    if failed.is_empty() { Ok(()) } else { Err(format!("failed: {}", failed.join(", "))) }
}

/// A Python with [`PACKAGES`], made once in the build folder.
fn virtual_environment() -> Result<PathBuf> {
    let version = Command::new("python3").arg("--version").output();
    if !version.is_ok_and(|output| output.status.success()) {
        return Err("there is no python3".to_owned());
    }
    let folder = build_folder().join("python");
    let python = if cfg!(windows) { folder.join("Scripts/python.exe") } else { folder.join("bin/python") };
    let ready = folder.join("ready");
    if fs::read_to_string(&ready).is_ok_and(|text| text == PACKAGES.join(" ")) {
        return Ok(python);
    }
    run(Command::new("python3").args(["-m", "venv"]).arg(&folder))?;
    run(Command::new(&python)
        .args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"])
        .args(PACKAGES))?;
    fs::write(&ready, PACKAGES.join(" ")).map_err(|error| error.to_string())?;
    Ok(python)
}
