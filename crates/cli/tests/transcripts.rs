//! Transcripts of the command: every `console` block of the README and of `tests/cmd/*.md` is run and compared.
//!
//! `cargo xtask bless` rewrites them.

use std::path::{Path, PathBuf};
use std::{env, fs};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Transcripts run beside a copy of the examples, so that what they write stays out of the repository.
#[test]
fn transcripts_hold() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("examples/data");
    fs::create_dir_all(&data).unwrap();
    for entry in fs::read_dir(root().join("examples/data")).unwrap() {
        let path = entry.unwrap().path();
        fs::copy(&path, data.join(path.file_name().unwrap())).unwrap();
    }
    let mut pages = vec![root().join("README.md")];
    let own = fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cmd")).unwrap();
    pages.extend(own.map(|entry| entry.unwrap().path()));
    let copy = |page: &Path| folder.path().join(page.file_name().unwrap());
    for page in &pages {
        fs::copy(page, copy(page)).unwrap();
    }
    // Commands run where the test runs.
    env::set_current_dir(folder.path()).unwrap();
    let cases = trycmd::TestCases::new();
    cases.register_bin("pentaglot", Path::new(env!("CARGO_BIN_EXE_pentaglot")));
    for page in &pages {
        cases.case(copy(page));
    }
    cases.run();
    if env::var("TRYCMD").is_ok_and(|mode| mode == "overwrite") {
        for page in &pages {
            fs::copy(copy(page), page).unwrap();
        }
    }
}

/// The first command of the README, which runs the main job.
#[test]
fn the_main_job_of_the_readme_runs() {
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    let line = readme.lines().find_map(|line| line.strip_prefix("cargo run --release -- ")).unwrap();
    let words: Vec<&str> = line.split('#').next().unwrap().split_whitespace().collect();
    let [verb, input, output] = words[..] else { panic!("{line}") };
    let folder = tempfile::tempdir().unwrap();
    let status = std::process::Command::new(env!("CARGO_BIN_EXE_pentaglot"))
        .args([verb, input, folder.path().join(output).to_str().unwrap()])
        .current_dir(root())
        .status()
        .unwrap();
    assert!(status.success());
    assert!(folder.path().join(output).metadata().unwrap().len() > 1000);
}
