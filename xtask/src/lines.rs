//! `cargo xtask lines`: how long the Rust code of the workspace is, folder by folder.
//!
//! Every `.rs` file under `crates/` and `xtask/` is counted line by line. A line is a *test* line if its file is
//! `tests.rs` or lies in a folder `tests` or `testing`, or if it is in a `#[cfg(test)] mod … { … }` block; else a
//! *comment* if it begins with `//`; else *blank* or *code*. Blank lines are not counted. The length of a file is
//! that of all its lines, blank ones included.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::{Result, root};

/// A file longer than this should be split.
const LONG: usize = 600;

#[derive(Default, Clone, Copy)]
struct Count {
    files: usize,
    code: usize,
    tests: usize,
    comments: usize,
}

impl Count {
    fn add(&mut self, other: Count) {
        self.files += other.files;
        self.code += other.code;
        self.tests += other.tests;
        self.comments += other.comments;
    }
}

pub(crate) fn run() -> Result {
    let (mut folders, mut total) = (BTreeMap::<String, Count>::new(), Count::default());
    let mut lengths = Vec::new();
    for top in ["crates", "xtask"] {
        for file in rust_files(&root().join(top))? {
            let text = fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display()))?;
            let relative = file.strip_prefix(root()).unwrap_or(&file);
            let count = count(&text, is_test(relative));
            folders.entry(folder_of(relative)).or_default().add(count);
            total.add(count);
            lengths.push((text.lines().count(), relative.display().to_string()));
        }
    }
    println!("{:<48} {:>6} {:>7} {:>7} {:>8}", "folder", "files", "code", "tests", "comments");
    folders.insert("all".to_owned(), total);
    let mut rows: Vec<_> = folders.iter().collect();
    rows.sort_by_key(|(name, _)| (*name == "all", *name));
    for (name, count) in rows {
        println!("{name:<48} {:>6} {:>7} {:>7} {:>8}", count.files, count.code, count.tests, count.comments);
    }
    lengths.sort_unstable();
    let median = lengths.get(lengths.len() / 2).map_or(0, |(length, _)| *length);
    let long: Vec<_> = lengths.iter().rev().take_while(|(length, _)| *length > LONG).collect();
    println!("median file: {median} lines; files over {LONG} lines: {}", long.len());
    long.iter().for_each(|(length, name)| println!("  {length} {name}"));
    Ok(())
}

fn rust_files(folder: &Path) -> Result<Vec<PathBuf>> {
    let wrong = |error| format!("{}: {error}", folder.display());
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).map_err(wrong)? {
        let path = entry.map_err(wrong)?.path();
        if path.is_dir() {
            files.extend(rust_files(&path)?);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    Ok(files)
}

fn steps(file: &Path) -> Vec<String> {
    file.components().map(|step| step.as_os_str().to_string_lossy().into_owned()).collect()
}

fn is_test(file: &Path) -> bool {
    steps(file).iter().any(|step| ["tests", "testing", "tests.rs"].contains(&step.as_str()))
}

/// The folder that a file is counted under: a crate's `src` and its folders, a format each.
fn folder_of(file: &Path) -> String {
    let steps = steps(file);
    let deep = if steps.iter().any(|step| step == "formats") { 5 } else { 4 };
    let folders = steps.len().saturating_sub(1);
    steps[..folders.min(deep)].join("/")
}

fn count(text: &str, all_tests: bool) -> Count {
    let mut count = Count { files: 1, ..Count::default() };
    // Inside a block `#[cfg(test)] mod … {`, which ends at the next brace in the first column.
    let (mut in_tests, mut after_attribute) = (all_tests, false);
    for line in text.lines() {
        let trimmed = line.trim();
        if !in_tests && after_attribute && line.starts_with("mod ") && line.ends_with('{') {
            in_tests = true;
        }
        after_attribute = line == "#[cfg(test)]" || (after_attribute && line.starts_with("#["));
        match () {
            () if trimmed.is_empty() => {}
            () if in_tests => count.tests += 1,
            () if trimmed.starts_with("//") => count.comments += 1,
            () => count.code += 1,
        }
        if !all_tests && line == "}" {
            in_tests = false;
        }
    }
    count
}
