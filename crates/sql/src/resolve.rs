//! From a quoted name to files: one file, a member, a pattern, a folder; with the values of `key=value` folders.

use std::path::{Path, PathBuf};

use pentaglot::{Error, Registry, Result, job};

/// A file of a table, and the values that its folders give to partition columns.
#[derive(Debug, Clone)]
pub(crate) struct Found {
    pub(crate) name: String,
    pub(crate) values: Vec<(String, Option<String>)>,
}

/// The files that a name means, sorted by name.
pub(crate) fn resolve(registry: &Registry, name: &str) -> Result<Vec<Found>> {
    let (names, several) = if registry.remote(name)?.is_some() {
        let pattern = if name.ends_with('/') { format!("{name}**/*") } else { name.to_owned() };
        let mut names = job::expand(registry, &[&pattern])?;
        let several = names.as_slice() != [name];
        if name.ends_with('/') {
            names.retain(|found| !found.get(name.len()..).is_some_and(is_left_out));
        }
        (without_side_files(names), several)
    } else if Path::new(name).is_dir() {
        let mut files = Vec::new();
        walk(Path::new(name), &mut files)?;
        let names: Result<Vec<String>> = files.into_iter().map(text).collect();
        let names = without_side_files(names?);
        if names.is_empty() {
            return Err(Error::usage("the folder holds no files").in_input(name));
        }
        (names, true)
    } else {
        let names = job::expand(registry, &[name])?;
        let several = names.as_slice() != [name];
        (names, several)
    };
    let found = names.into_iter().map(|name| {
        let values = if several { values(&name) } else { Vec::new() };
        Found { name, values }
    });
    let found: Vec<Found> = found.collect();
    check_keys(&found)?;
    Ok(found)
}

/// All files below a folder, sorted; hidden ones and those that begin with `_` are left out.
fn walk(folder: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    let cannot = |error| Error::io(format!("cannot list {}", folder.display()), error);
    let mut entries: Vec<PathBuf> = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(cannot)? {
        entries.push(entry.map_err(cannot)?.path());
    }
    entries.sort();
    for entry in entries {
        let name = entry.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if name.starts_with(['.', '_']) {
            continue;
        }
        if entry.is_dir() {
            walk(&entry, files)?;
        } else {
            files.push(entry);
        }
    }
    Ok(())
}

/// Whether a path below a folder has a part that is hidden or begins with `_`.
fn is_left_out(path: &str) -> bool {
    path.split('/').any(|part| part.starts_with(['.', '_']))
}

/// Files without those that belong to another one, such as `x.dbdf.meta` to `x.dbdf`.
fn without_side_files(names: Vec<String>) -> Vec<String> {
    let all: std::collections::HashSet<String> = names.iter().cloned().collect();
    let is_beside = |name: &String| {
        [".meta", ".idx"]
            .iter()
            .any(|suffix| name.strip_suffix(suffix).is_some_and(|main| all.contains(main)))
    };
    names.into_iter().filter(|name| !is_beside(name)).collect()
}

fn text(path: PathBuf) -> Result<String> {
    let shown = path.display().to_string();
    path.into_os_string()
        .into_string()
        .map_err(|_| Error::usage(format!("a name that is not UTF-8: {shown}")))
}

/// The values of the folders `key=value` of a name.
fn values(name: &str) -> Vec<(String, Option<String>)> {
    let folders = name.rsplit_once('/').map_or("", |(folders, _)| folders);
    let pairs = folders.split('/').filter_map(|folder| folder.split_once('='));
    let decoded = |text: &str| percent_encoding::percent_decode_str(text).decode_utf8_lossy().into_owned();
    pairs
        .filter(|(key, _)| !key.is_empty())
        .map(|(key, value)| {
            let value = (value != "__HIVE_DEFAULT_PARTITION__").then(|| decoded(value));
            (decoded(key), value)
        })
        .collect()
}

/// Errs if files are in folders of different keys.
fn check_keys(found: &[Found]) -> Result<()> {
    let keys = |file: &Found| file.values.iter().map(|(key, _)| key.clone()).collect::<Vec<_>>();
    for pair in found.windows(2) {
        if keys(&pair[0]) != keys(&pair[1]) {
            let text = |file: &Found| match keys(file).as_slice() {
                [] => format!("{} has no partition columns", file.name),
                some => format!("{} has {}", file.name, some.join(", ")),
            };
            return Err(Error::usage(format!("{}, {}", text(&pair[0]), text(&pair[1]))));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_give_values() {
        let found = values("root/year=2024/kind=a%20b/none=__HIVE_DEFAULT_PARTITION__/x=1.csv");
        let text = |text: &str| Some(text.to_owned());
        let expected = [("year", text("2024")), ("kind", text("a b")), ("none", None)];
        assert_eq!(found, expected.map(|(key, value)| (key.to_owned(), value)));
    }
}
