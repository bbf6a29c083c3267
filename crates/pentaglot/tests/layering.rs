//! The layers of the library: nothing calls upward or sideways.

mod tree;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use tree::rust_files;

/// The modules that each module may use with `crate::`. The root's re-exports of core types count as core.
const ALLOWED: &[(&str, &[&str])] = &[
    ("redact", &[]),
    ("error", &["redact"]),
    ("limits", &["error"]),
    ("control", &["error"]),
    ("cursor", &["error", "limits", "pages"]),
    ("source", &["error", "redact", "limits", "cursor", "control"]),
    ("sink", &["error", "limits", "source", "control"]),
    ("map", &["error"]),
    ("pages", &[]),
    ("kernels", &["error", "limits", "cursor", "source"]),
    ("wire", &["error", "limits", "cursor", "source", "sink", "kernels", "wire"]),
    ("hub", &["error", "limits", "control", "cursor", "kernels", "wire", "hub"]),
    ("convert", &["error", "limits", "cursor", "source", "kernels", "hub", "convert"]),
    ("remote", &["error", "redact", "source", "sink", "formats"]),
    ("registry", &["error", "redact", "source", "formats", "remote"]),
    ("identity", &["error", "limits", "control", "source", "hub", "wire", "convert", "identity"]),
    (
        "store",
        &[
            "error", "redact", "limits", "control", "cursor", "source", "wire", "hub", "remote", "registry",
            "identity", "store",
        ],
    ),
];

const CORE: &[&str] =
    &["error", "limits", "control", "cursor", "source", "sink", "map", "kernels", "hub", "wire", "testing"];

#[test]
fn nothing_calls_upward_or_sideways() {
    let source = tree::source();
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
                // A format uses the core, the common parts of all formats, and itself.
                "formats" => match named.split_once("::") {
                    // An archive is made of arrays.
                    Some(("formats", "npy")) if format == "npz" => true,
                    Some(("formats", inner)) => !is_format(&source, inner) || inner == format,
                    None if named == "formats" => true,
                    _ => CORE.contains(&named.as_str()) || named.starts_with(char::is_uppercase),
                },
                // Its root is a DyND value.
                "identity" if named == "formats::dynd" => true,
                // Its roots are DyND values, its data are documents.
                "store" if named.starts_with("formats::") => {
                    named == "formats::dynd" || !is_format(&source, &named["formats::".len()..])
                }
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

/// The module names after `crate::` in code (not in comments), also in lists; for `formats` also the next
/// segment.
fn named_rooms(text: &str) -> BTreeSet<String> {
    let code: Vec<&str> = text.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
    let mut paths = Vec::new();
    for rest in code.join("\n").split("crate::").skip(1) {
        read_paths(rest, &[], &mut paths);
    }
    let room = |steps: Vec<String>| match steps.as_slice() {
        [top, inner, ..] if top == "formats" => format!("formats::{inner}"),
        [top, ..] => top.clone(),
        [] => String::new(),
    };
    paths.into_iter().map(room).filter(|room| !room.is_empty()).collect()
}

/// Reads a path, or a list of paths in braces, that continues `before`. Returns the rest of the text.
fn read_paths<'t>(text: &'t str, before: &[String], paths: &mut Vec<Vec<String>>) -> &'t str {
    let text = text.trim_start();
    if let Some(mut rest) = text.strip_prefix('{') {
        loop {
            rest = rest.trim_start();
            match rest.strip_prefix('}') {
                Some(after) => return after,
                None if rest.is_empty() => return rest,
                None => rest = read_paths(rest, before, paths).trim_start(),
            }
            // An alias (`as x`) or a comma.
            rest = rest.trim_start_matches(|c: char| c != ',' && c != '}');
            rest = rest.strip_prefix(',').unwrap_or(rest);
        }
    }
    let end = text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len());
    let (step, rest) = text.split_at(end);
    let mut steps = before.to_vec();
    steps.extend((!step.is_empty()).then(|| step.to_owned()));
    match rest.strip_prefix("::") {
        Some(rest) => read_paths(rest, &steps, paths),
        None => {
            paths.push(steps);
            rest
        }
    }
}

#[test]
fn names_in_lists_are_seen() {
    let text = "use crate::{\n    error::{self, Error},\n    formats::{csv::Csv as C, dbdf},\n    hub,\n};\n\
        // use crate::job;\nlet x = crate::cursor::allocate(crate::wire::y());";
    let expected = ["cursor", "error", "formats::csv", "formats::dbdf", "hub", "wire"];
    assert_eq!(named_rooms(text), expected.map(str::to_owned).into());
}
