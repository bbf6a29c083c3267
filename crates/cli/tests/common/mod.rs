//! What the tests of the command share.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

pub(crate) fn run(args: &[&str]) -> (Option<i32>, String, String) {
    let done = Command::new(env!("CARGO_BIN_EXE_pentaglot")).args(args).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (done.status.code(), text(done.stdout), text(done.stderr))
}

/// The output of a run that must succeed.
pub(crate) fn good(args: &[&str]) -> String {
    let (status, printed, said) = run(args);
    assert_eq!(status, Some(0), "{args:?}: {said}");
    printed
}

pub(crate) fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

/// A folder, and a function that creates names in it.
pub(crate) fn folder() -> (tempfile::TempDir, impl Fn(&str) -> String) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_owned();
    (folder, move |name: &str| path.join(name).to_str().unwrap().to_owned())
}

/// A few files of each folder of the test data, and the examples.
pub(crate) fn files() -> Vec<PathBuf> {
    let mut all = Vec::new();
    let mut folders: Vec<PathBuf> = vec![root().join("examples/data")];
    folders.extend(fs::read_dir(root().join("testdata")).unwrap().map(|entry| entry.unwrap().path()));
    for folder in folders.iter().filter(|folder| folder.is_dir()) {
        let mut files: Vec<PathBuf> =
            fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        files.retain(|file| file.is_file());
        files.sort();
        let step = (files.len() / 6).max(1);
        all.extend(files.into_iter().step_by(step));
    }
    assert!(all.len() > 30);
    all
}
