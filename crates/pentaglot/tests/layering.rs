//! The layers of the library: nothing calls upward or sideways.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// What each room may name with `crate::`. The root's re-exports of core types count as core.
const ALLOWED: &[(&str, &[&str])] = &[
    ("error", &[]),
    ("limits", &["error"]),
    ("control", &["error"]),
    ("cursor", &["error", "limits"]),
    ("source", &["error", "limits", "cursor", "control"]),
    ("sink", &["error"]),
    ("map", &["error"]),
    ("kernels", &["error", "limits", "cursor", "source"]),
    ("hub", &["error", "limits", "cursor", "kernels", "hub"]),
    ("convert", &["error", "limits", "cursor", "kernels", "hub", "convert"]),
    ("wire", &["error", "limits", "cursor", "source", "sink", "kernels", "hub", "wire"]),
    ("registry", &["error", "source", "formats"]),
];

const CORE: &[&str] =
    &["error", "limits", "control", "cursor", "source", "sink", "map", "kernels", "hub", "wire", "testing"];

#[test]
fn nothing_calls_upward_or_sideways() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut wrong = Vec::new();
    for file in rust_files(&source) {
        let relative = file.strip_prefix(&source).unwrap();
        let mut steps = relative.components().map(|step| step.as_os_str().to_string_lossy().into_owned());
        let room = steps.next().unwrap().trim_end_matches(".rs").to_owned();
        let format = steps.next().unwrap_or_default();
        if ["lib", "job", "testing"].contains(&room.as_str()) || relative.to_string_lossy().contains("tests")
        {
            continue;
        }
        for named in named_rooms(&fs::read_to_string(&file).unwrap()) {
            let fits = match room.as_str() {
                // A format names the core, what all formats share, and itself.
                "formats" => match named.split_once("::") {
                    Some(("formats", inner)) => !is_format(&source, inner) || inner == format,
                    None if named == "formats" => true,
                    _ => CORE.contains(&named.as_str()) || named.starts_with(char::is_uppercase),
                },
                _ => {
                    let top = named.split("::").next().unwrap();
                    let allowed = ALLOWED.iter().find(|(name, _)| *name == room).map(|(_, allowed)| *allowed);
                    allowed.is_some_and(|allowed| allowed.contains(&top))
                        || top.starts_with(char::is_uppercase)
                }
            };
            if !fits {
                wrong.push(format!("{} names crate::{named}", relative.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn is_format(source: &Path, name: &str) -> bool {
    source.join("formats").join(name).is_dir()
}

fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(rust_files(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files
}

/// What follows `crate::` in code (not in comments); of `formats` also the next step.
fn named_rooms(text: &str) -> BTreeSet<String> {
    let mut rooms = BTreeSet::new();
    for line in text.lines().filter(|line| !line.trim_start().starts_with("//")) {
        for rest in line.split("crate::").skip(1) {
            let path: String =
                rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_' || *c == ':').collect();
            let steps: Vec<&str> = path.split("::").filter(|step| !step.is_empty()).collect();
            let listed =
                rest.strip_prefix("formats::{").map(|list| list.split('}').next().unwrap_or_default());
            let names =
                listed.into_iter().flat_map(|list| list.split(|c: char| !c.is_alphanumeric() && c != '_'));
            rooms.extend(names.filter(|name| !name.is_empty()).map(|name| format!("formats::{name}")));
            match steps.as_slice() {
                ["formats", inner, ..] => rooms.insert(format!("formats::{inner}")),
                [top, ..] => rooms.insert((*top).to_owned()),
                [] => false,
            };
        }
    }
    rooms
}
