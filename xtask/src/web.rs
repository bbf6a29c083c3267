//! The page of the viewer: `cargo xtask web` builds it, and the tests build it again and run it in a browser.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use crate::{Result, build_folder, root, run};

/// Where Debian puts the browser.
const CHROMIUM: &str = "/usr/bin/chromium";
/// What is built.
const BUILT: [&str; 3] = ["index.html", "page.css", "page.js"];

/// Builds `crates/viewer/dist` from `crates/viewer/web`.
pub(crate) fn build() -> Result {
    build_into(&root().join("crates/viewer/dist"))
}

/// The sources with their packages in the build folder, so that nothing is installed in the checkout.
fn packages() -> Result<PathBuf> {
    let (sources, folder) = (root().join("crates/viewer/web"), build_folder().join("web"));
    copy(&sources, &folder)?;
    let wanted = fs::read_to_string(folder.join("package-lock.json")).map_err(|error| error.to_string())?;
    let ready = folder.join("node_modules/.ready");
    if fs::read_to_string(&ready).is_ok_and(|text| text == wanted) {
        return Ok(folder);
    }
    run(Command::new("npm")
        .args(["ci", "--ignore-scripts", "--no-audit", "--no-fund"])
        .current_dir(&folder))?;
    fs::write(&ready, wanted).map_err(|error| error.to_string())?;
    Ok(folder)
}

fn build_into(out: &Path) -> Result {
    let folder = packages()?;
    run(Command::new("node").arg("build.mjs").arg(out).current_dir(folder))
}

/// Copies a folder without installed packages.
fn copy(from: &Path, to: &Path) -> Result {
    let wrong = |error: std::io::Error| format!("{}: {error}", from.display());
    fs::create_dir_all(to).map_err(wrong)?;
    for entry in fs::read_dir(from).map_err(wrong)? {
        let path = entry.map_err(wrong)?.path();
        let Some(name) = path.file_name() else { continue };
        match path.is_dir() {
            true if name == "node_modules" => {}
            true => copy(&path, &to.join(name))?,
            false => fs::copy(&path, to.join(name)).map(drop).map_err(wrong)?,
        }
    }
    Ok(())
}

/// Builds the page again and compares it byte for byte, then runs the browser tests. Without npm or a browser they are
/// left out.
pub(crate) fn tests(left_out: &mut Vec<String>) -> Result {
    if !Command::new("npm").arg("--version").output().is_ok_and(|output| output.status.success()) {
        left_out.push("crates/viewer/web: there is no npm".to_owned());
        return Ok(());
    }
    println!("xtask: the page of the viewer");
    let again = build_folder().join("web-dist");
    build_into(&again)?;
    for name in BUILT {
        let built = fs::read(again.join(name)).map_err(|error| format!("{name}: {error}"))?;
        let committed = root().join("crates/viewer/dist").join(name);
        if fs::read(&committed).ok().as_deref() != Some(built.as_slice()) {
            return Err(format!("{} is not what its sources make: run cargo xtask web", committed.display()));
        }
    }
    let browser = env::var("CHROMIUM").unwrap_or(CHROMIUM.to_owned());
    if !Path::new(&browser).exists() {
        left_out
            .push(format!("the viewer in a browser: there is no {browser} (cargo xtask setup installs it)"));
        return Ok(());
    }
    let command = build_folder().join(format!("pentaglot{}", env::consts::EXE_SUFFIX));
    run(Command::new("node")
        .arg("tests/browser.mjs")
        .current_dir(packages()?)
        .env("PENTAGLOT", command)
        .env("CHROMIUM", browser)
        .env("EXAMPLES", root().join("examples/data"))
        .env("ARTEFACTS", build_folder().join("screenshots")))
}
