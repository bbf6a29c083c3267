//! Transcripts of the command: every `console` block of the README, of `docs/store.md` and of `tests/cmd/*.md` is run and
//! compared.
//!
//! `cargo xtask bless` rewrites them.

use std::path::{Path, PathBuf};
use std::{env, fs};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Transcripts run in a copy of the examples, so that their outputs are not written to the repository.
#[test]
fn transcripts_hold() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("examples/data");
    fs::create_dir_all(&data).unwrap();
    for entry in fs::read_dir(root().join("examples/data")).unwrap() {
        let path = entry.unwrap().path();
        fs::copy(&path, data.join(path.file_name().unwrap())).unwrap();
    }
    let mut pages = vec![root().join("README.md"), root().join("docs/store.md")];
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

fn run(args: &[&str]) -> (Option<i32>, String, String) {
    let done = std::process::Command::new(env!("CARGO_BIN_EXE_pentaglot")).args(args).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (done.status.code(), text(done.stdout), text(done.stderr))
}

#[test]
fn dump_names_the_format_of_what_is_broken_inside() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cut.json");
    fs::write(&path, r#"{"type":{"columns":{"x":"int32"}},"value":[[1],[2"#).unwrap();
    let file = path.to_str().unwrap();
    for more in [["--depth", "9"], ["--at", "value[1]"]] {
        let (status, _, said) = run(&["dump", file, more[0], more[1]]);
        assert_eq!(status, Some(1));
        let expected = "ds: at byte 49 (line 1): expected `,` or `]`, found the end of the input";
        assert_eq!(said, format!("{file}: {expected}\n"));
    }
}

/// Also of a file that is missing or that a limit stops; the status says which.
#[test]
fn validate_prints_an_object_for_every_file() {
    let ticks = root().join("examples/data/ticks.bson");
    let ticks = ticks.to_str().unwrap();
    for (more, status) in [(&["nowhere.npy"][..], 2), (&["--max-alloc", "1K"], 4)] {
        let (found, printed, _) = run(&[&["validate", "--json", ticks], more].concat());
        assert_eq!(found, Some(status));
        let last = printed.lines().last().unwrap();
        assert!(last.contains("\"valid\":false"), "{last}");
        let (rule, format) = if status == 2 { ("io", "null") } else { ("limit", "\"bsondf\"") };
        assert!(last.contains(&format!("\"rule\":\"{rule}\"")), "{last}");
        assert!(last.contains(&format!("\"format\":{format}")), "{last}");
        assert_eq!(printed.lines().count(), if status == 2 { 2 } else { 1 });
    }
}
