//! The layers of the library: nothing calls upward or sideways.

mod tree;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use tree::rust_files;

/// The modules that each module may use, besides itself. `formats` has its own rules; `job` uses all.
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
    ("kernels", &["error", "limits", "cursor", "source", "pages"]),
    ("wire", &["error", "limits", "cursor", "source", "sink", "kernels"]),
    ("hub", &["error", "limits", "control", "cursor", "kernels", "wire"]),
    ("convert", &["error", "limits", "cursor", "source", "kernels", "hub"]),
    ("remote", &["error", "redact", "source", "sink", "formats"]),
    ("registry", &["error", "redact", "source", "formats", "remote"]),
    ("identity", &["error", "limits", "control", "source", "hub", "wire", "convert"]),
    (
        "store",
        &[
            "error", "redact", "limits", "control", "cursor", "source", "wire", "hub", "formats", "remote",
            "registry", "identity",
        ],
    ),
];

/// The modules outside `formats` and `registry` that use the types of one format, and why.
const FORMATS_BY_NAME: &[(&str, &str)] = &[
    // The roots of identities and stores are DyND values.
    ("identity", "dynd"),
    ("store::root", "dynd"),
    // `dynd:raw` has no type: to read it back, the type of its rows is given.
    ("job::verify::read_back", "dynd"),
    // Files of several structures, and queries of one.
    ("job::composite", "sds"),
    ("job::query", "sds"),
    // Folders of image files.
    ("job::image_files", "ds"),
    // Type texts in the languages of the formats, and the text of a `.meta` file.
    ("job::types", "dbdf"),
    ("job::types", "ds"),
    ("job::types", "dynd"),
    ("job::types", "sds"),
];

const CORE: &[&str] =
    &["error", "limits", "control", "cursor", "source", "sink", "map", "kernels", "hub", "wire", "testing"];

#[test]
fn nothing_calls_upward_or_sideways() {
    let source = tree::source();
    let formats = format_names(&source);
    let mut wrong = Vec::new();
    for file in rust_files(&source) {
        let relative = file.strip_prefix(&source).unwrap();
        let module = module_of(relative);
        if matches!(module.as_slice(), [] | ["testing", ..] | ["job", "honest"])
            || relative.to_string_lossy().contains("tests")
        {
            continue;
        }
        for named in named_modules(&fs::read_to_string(&file).unwrap(), &module) {
            if !may_name(&formats, &module, &named) {
                wrong.push(format!("{} names crate::{named}", relative.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Whether the code of a module may name another, of which at most three steps are given.
fn may_name(formats: &BTreeSet<String>, module: &[&str], named: &str) -> bool {
    let named: Vec<&str> = named.split("::").collect();
    // The root's re-exports of core types count as core.
    let (room, top) = (module[0], named[0]);
    if top == room && room != "formats" || top.starts_with(char::is_uppercase) {
        return true;
    }
    let format = named.iter().find(|step| top == "formats" && formats.contains(**step)).copied();
    match (room, format) {
        ("formats", Some(format)) => {
            // An archive is made of arrays.
            module.contains(&format) || module.contains(&"npz") && format == "npy"
        }
        // A format uses the core and the common parts of all formats.
        ("formats", None) => top == "formats" || CORE.contains(&top),
        ("registry", Some(_)) => true,
        (_, Some(format)) => FORMATS_BY_NAME.contains(&(&module.join("::"), format)),
        ("job", None) => top != "testing",
        (_, None) => {
            let allowed = ALLOWED.iter().find(|(name, _)| *name == room);
            allowed.is_some_and(|(_, allowed)| allowed.contains(&top))
        }
    }
}

/// The names of the formats: of each folder whose `mod.rs` implements `Format`.
fn format_names(source: &Path) -> BTreeSet<String> {
    let files = rust_files(&source.join("formats")).into_iter().filter(|file| file.ends_with("mod.rs"));
    files
        .filter(|file| fs::read_to_string(file).unwrap().contains("impl Format for"))
        .map(|file| file.parent().unwrap().file_name().unwrap().to_str().unwrap().to_owned())
        .collect()
}

/// The module of a file: `formats/ds/mod.rs` is `formats::ds`, `lib.rs` the root.
fn module_of(relative: &Path) -> Vec<&str> {
    let steps = relative.iter().map(|step| step.to_str().unwrap().trim_end_matches(".rs"));
    steps.filter(|step| !["mod", "lib"].contains(step)).collect()
}

/// The modules that the code of `module` names after `crate::` and `super::` (not in comments or unit tests), also in
/// lists: the first step, and up to three for `formats`.
fn named_modules(text: &str, module: &[&str]) -> BTreeSet<String> {
    let code: Vec<&str> = text
        .lines()
        .take_while(|line| *line != "mod tests {")
        .filter(|line| !line.trim_start().starts_with("//"))
        .collect();
    let code = code.join("\n");
    let mut paths = Vec::new();
    for rest in code.split("crate::").skip(1) {
        read_paths(rest, &[], &mut paths);
    }
    let mut rest = code.as_str();
    while let Some(at) = rest.find("super::") {
        rest = &rest[at..];
        let mut up = 0;
        while let Some(after) = rest.strip_prefix("super::") {
            (up, rest) = (up + 1, after);
        }
        let above: Vec<String> =
            module[..module.len().saturating_sub(up)].iter().map(|step| (*step).to_owned()).collect();
        read_paths(rest, &above, &mut paths);
    }
    let most = |steps: &[String]| if steps[0] == "formats" { 3 } else { 1 };
    let name = |steps: Vec<String>| steps[..steps.len().min(most(&steps))].join("::");
    paths.into_iter().filter(|steps| !steps.is_empty()).map(name).collect()
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
fn names_in_lists_and_above_are_seen() {
    let text = "use crate::{\n    error::{self, Error},\n    formats::{csv::Csv as C, dbdf},\n    hub,\n};\n\
        // use crate::job;\nlet x = crate::cursor::allocate(crate::wire::y());\nuse super::super::npy::{a, b::c};\n\
        use super::layout;\nmod tests {\nuse super::super::super::job;";
    let expected = [
        "cursor",
        "error",
        "formats::csv::Csv",
        "formats::dbdf",
        "formats::npy::a",
        "formats::npy::b",
        "formats::npz::layout",
        "hub",
        "wire",
    ];
    assert_eq!(named_modules(text, &["formats", "npz", "read"]), expected.map(str::to_owned).into());
}
