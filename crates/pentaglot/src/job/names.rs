//! Names of inputs as a user gives them: files, members of files, patterns.

use std::path::Path;

use glob::{MatchOptions, glob_with};

use crate::error::{Error, Result};
use crate::redact::redacted;
use crate::registry::Registry;
use crate::sink::{Kept, Output, Sink};
use crate::source::Source;

/// The file and the member of a name; a file of the literal name takes precedence.
///
/// ```
/// use pentaglot::job::split_member;
/// assert_eq!(split_member("arrays.npz::x"), ("arrays.npz", Some("x")));
/// assert_eq!(split_member("arrays.npz"), ("arrays.npz", None));
/// ```
pub fn split_member(name: &str) -> (&str, Option<&str>) {
    match name.rsplit_once("::") {
        // `[::1]` is a host.
        Some((path, _)) if path.ends_with("://[") || path.ends_with("@[") => (name, None),
        Some((path, member)) if !Path::new(name).exists() => (path, Some(member)),
        _ => (name, None),
    }
}

/// The bytes of a file, or of a remote object such as `s3://bucket/key`.
pub fn source(registry: &Registry, name: &str) -> Result<Source> {
    match registry.remote(name)? {
        Some(remote) => remote.open(name),
        None => Source::open(name),
    }
}

/// An output of this name: a file, or a remote object such as `s3://bucket/key`. With `.gz`, `.zst` or `.bz2` it is
/// compressed. An existing output is replaced only with `force`.
pub fn create(registry: &Registry, name: &str, force: bool) -> Result<Sink> {
    create_kept(registry, name, force, false)
}

/// As [`create`], with a copy of what is elsewhere if it is to be read back.
pub(super) fn create_kept(registry: &Registry, name: &str, force: bool, is_reread: bool) -> Result<Sink> {
    let sink = match registry.remote(name)? {
        Some(remote) => {
            let shown = redacted(name);
            let output = remote.create(name, force).map_err(|error| error.in_output(shown.as_ref()))?;
            let output = if is_reread { Box::new(Kept::new(output)?) as Box<dyn Output> } else { output };
            let is_table = remote.table_format(name)?.is_some();
            let sink = Sink::from_output(output).named(shown);
            return Ok(if is_table { sink } else { sink.packed_for(name) });
        }
        None => Sink::create(name, force)?,
    };
    Ok(sink.packed_for(name))
}

/// The inputs that names and patterns (`*`, `?`, `[a-z]`, `**`) match, in order; those of a pattern are sorted by
/// name.
///
/// A file of the literal name takes precedence over a pattern. A pattern matches files, not folders, and no hidden ones
/// unless it begins with a dot itself; one that matches nothing is an error.
///
/// ```
/// use pentaglot::{Registry, job};
/// let folder = tempfile::tempdir()?;
/// let name = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
/// for day in ["mon.csv", "tue.csv", "notes.txt"] {
///     std::fs::write(name(day), "x\n1\n")?;
/// }
/// assert_eq!(job::expand(&Registry::default(), &[name("*.csv")])?, [name("mon.csv"), name("tue.csv")]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn expand(registry: &Registry, names: &[impl AsRef<str>]) -> Result<Vec<String>> {
    let mut expanded = Vec::new();
    for name in names.iter().map(AsRef::as_ref) {
        let (path, member) = split_member(name);
        let is_pattern = path.contains(['*', '?', '[']);
        if name == "-" || !is_pattern || Path::new(path).exists() {
            expanded.push(name.to_owned());
            continue;
        }
        let found = match registry.remote(path)? {
            Some(remote) => remote.list(path)?,
            None => Some(matches(path)?),
        };
        let Some(mut found) = found else {
            expanded.push(name.to_owned());
            continue;
        };
        if found.is_empty() {
            return Err(Error::usage("no file matches this pattern").in_input(path));
        }
        found.sort_unstable();
        expanded.extend(found.into_iter().map(|path| match member {
            Some(member) => format!("{path}::{member}"),
            None => path,
        }));
    }
    Ok(expanded)
}

fn matches(pattern: &str) -> Result<Vec<String>> {
    let options = MatchOptions {
        case_sensitive: true,
        require_literal_separator: true,
        require_literal_leading_dot: true,
    };
    let paths = glob_with(pattern, options).map_err(|error| pattern_error(&error).in_input(pattern))?;
    let mut found = Vec::new();
    for path in paths {
        let path = path.map_err(|error| {
            let place = error.path().display().to_string();
            Error::io(format!("cannot list {place}"), error.into())
        })?;
        if path.is_dir() {
            continue;
        }
        let name = path.to_str().ok_or_else(|| {
            Error::usage(format!("{pattern} matches a name that is not UTF-8: {}", path.display()))
        })?;
        found.push(name.to_owned());
    }
    Ok(found)
}

/// The error for a pattern that does not parse: a `[` without its `]`, or stars in a wrong place.
fn pattern_error(error: &glob::PatternError) -> Error {
    let at = error.pos;
    Error::usage(match error.msg.contains("range") {
        true => format!("at character {at} of the pattern: expected a closing ], found none"),
        false => format!("at character {at} of the pattern: expected * or a whole /**/, found other stars"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    #[test]
    fn patterns_give_sorted_files_and_literal_names_come_first() {
        let registry = Registry::default();
        let folder = tempfile::tempdir().unwrap();
        for name in ["b.csv", "a.csv", ".hidden.csv", "c.txt", "odd[1].csv", "d.npz"] {
            std::fs::write(folder.path().join(name), "x\n1\n").unwrap();
        }
        std::fs::create_dir(folder.path().join("folder.csv")).unwrap();
        let root = format!("{}/", folder.path().to_str().unwrap());
        let expanded = |names: &[&str]| -> Vec<String> {
            let names: Vec<String> = names.iter().map(|name| format!("{root}{name}")).collect();
            let found = expand(&registry, &names).unwrap();
            found.iter().map(|name| name.strip_prefix(&root).unwrap().to_owned()).collect()
        };
        assert_eq!(expanded(&["*.csv"]), ["a.csv", "b.csv", "odd[1].csv"]);
        assert_eq!(expanded(&["c.txt", "[ab].csv"]), ["c.txt", "a.csv", "b.csv"]);
        assert_eq!(expanded(&["odd[1].csv", "missing.csv"]), ["odd[1].csv", "missing.csv"]);
        assert_eq!(expanded(&["*.npz::x"]), ["d.npz::x"]);
        assert_eq!(expand(&registry, &["-"]).unwrap(), ["-"]);
        let error = expand(&registry, &[format!("{root}*.json")]).unwrap_err();
        assert_eq!(
            (error.kind(), error.to_string()),
            (ErrorKind::Usage, "no file matches this pattern".to_owned())
        );
        for (pattern, expected) in [
            ("a[.csv", "at character 1 of the pattern: expected a closing ], found none"),
            ("a/b**/c", "at character 2 of the pattern: expected * or a whole /**/, found other stars"),
        ] {
            let error = expand(&registry, &[pattern]).unwrap_err();
            assert_eq!((error.kind(), error.input()), (ErrorKind::Usage, Some(pattern)));
            assert_eq!(error.to_string(), expected);
        }
    }
}
