//! The rooms of a format: every folder under `formats/` holds the same files with the same contents, and no type has a
//! name that does not say whose it is.

mod tree;

use std::fs;
use std::path::{Path, PathBuf};

use tree::{rust_files, source};

/// The files of every format folder. `tests` is a file or a folder.
const ROOMS: [&str; 8] = ["mod", "schema", "layout", "read", "write", "validate", "outline", "tests"];

/// Code that occurs in one file of a format and in no other.
const PLACES: [(&str, &str); 2] = [("impl Document for", "read"), ("fn plan(", "write")];

/// Names that several formats would use for different types.
const VAGUE: [&str; 3] = ["Column", "Layout", "Kind"];

#[test]
fn every_format_has_the_same_rooms() {
    let mut missing = Vec::new();
    for folder in format_folders() {
        for room in ROOMS {
            let file = folder.join(format!("{room}.rs"));
            if !file.is_file() && !folder.join(room).join("mod.rs").is_file() {
                missing.push(format!("{} has no {room}.rs", name(&folder)));
            }
        }
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}

#[test]
fn documents_are_read_in_read_and_planned_in_write() {
    let mut wrong = Vec::new();
    for folder in format_folders() {
        for (code, room) in PLACES {
            let found: Vec<String> = rust_files(&folder)
                .into_iter()
                .filter(|file| is_code(&folder, file))
                .filter(|file| fs::read_to_string(file).unwrap().contains(code))
                .map(|file| room_of(&folder, &file))
                // `impl Format` has a `plan` of its own, which calls that of `write`.
                .filter(|found| !(code == "fn plan(" && found == "mod"))
                .collect();
            if found != [room] {
                wrong.push(format!("{}: expected `{code}` in {room}, found it in {found:?}", name(&folder)));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn names_of_types_say_whose_they_are() {
    let source = source();
    let mut vague = Vec::new();
    for file in rust_files(&source) {
        for line in fs::read_to_string(&file).unwrap().lines() {
            if let Some(name) = defined_type(line)
                && VAGUE.contains(&name)
            {
                vague.push(format!("{}: {}", file.strip_prefix(&source).unwrap().display(), line.trim()));
            }
        }
    }
    assert!(vague.is_empty(), "{}", vague.join("\n"));
}

/// The name of the type that a line defines.
fn defined_type(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let line = line.strip_prefix("pub").map_or(line, |rest| match rest.strip_prefix('(') {
        Some(rest) => rest.split_once(')').map_or("", |(_, rest)| rest),
        None => rest,
    });
    let (keyword, rest) = line.trim_start().split_once(' ')?;
    ["struct", "enum", "type", "trait", "union"].contains(&keyword).then_some(())?;
    rest.split(|c: char| !c.is_alphanumeric() && c != '_').next()
}

#[test]
fn definitions_are_recognised() {
    assert_eq!(defined_type("pub(super) struct Column<'a> {"), Some("Column"));
    assert_eq!(defined_type("    enum Kind {"), Some("Kind"));
    assert_eq!(defined_type("pub type Layout = u8;"), Some("Layout"));
    assert_eq!(defined_type("pub(crate) struct JsonColumn<R> {"), Some("JsonColumn"));
    assert_eq!(defined_type("let kind = Kind::Batch;"), None);
}

/// The folder of every format: its `mod.rs` implements `Format`.
fn format_folders() -> Vec<PathBuf> {
    let formats = source().join("formats");
    let folders: Vec<PathBuf> = rust_files(&formats)
        .into_iter()
        .filter(|file| {
            file.ends_with("mod.rs") && fs::read_to_string(file).unwrap().contains("impl Format for")
        })
        .map(|file| file.parent().unwrap().to_owned())
        .collect();
    assert!(folders.len() >= 3, "{folders:?}");
    folders
}

fn name(path: &Path) -> String {
    path.file_stem().unwrap().to_string_lossy().into_owned()
}

/// The room that a file belongs to: its own name, or that of its folder inside the format's.
fn room_of(folder: &Path, file: &Path) -> String {
    let relative = file.strip_prefix(folder).unwrap();
    name(Path::new(relative.components().next().unwrap().as_os_str()))
}

fn is_code(folder: &Path, file: &Path) -> bool {
    room_of(folder, file) != "tests" && name(file) != "tests"
}
