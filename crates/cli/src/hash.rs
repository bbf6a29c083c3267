//! `hash`: content identities, and lists of them that are checked.

use std::fs::File;
use std::io::{self, BufRead, BufReader};

use pentaglot::Error;
use pentaglot::identity::Identity;
use pentaglot::job::{OpenOptions, RawDigest};
use serde_json::json;

use crate::args::{Hash, RawFunction};
use crate::progress::Progress;
use crate::screen::{self, escape};
use crate::{About, DONE, Failure, Outcome, Session, for_each};

/// A file's identity, or the requested digest.
enum Found {
    Identity(Box<Identity>),
    Digest(String),
}

impl Found {
    fn text(&self) -> pentaglot::Result<String> {
        match self {
            Found::Identity(identity) => Ok(identity.cid()?.to_string()),
            Found::Digest(hex) => Ok(hex.clone()),
        }
    }
}

pub(crate) fn run(session: &Session, args: &Hash) -> Outcome {
    let options = args.open.options(&session.global);
    if let Some(list) = &args.check {
        return check(session, args, &options, list);
    }
    for_each(session, &args.files, |file| {
        let found = find(session, args, &options, file)?;
        let text = found.text()?;
        let lines = match (&found, args.json) {
            (Found::Identity(identity), true) => format!("{}\n", identity.to_json(file)?),
            (Found::Digest(_), true) => {
                format!("{}\n", json!({ "file": file, function(args): text }))
            }
            (Found::Identity(identity), false) if args.by_column => {
                let column = |column: &pentaglot::identity::ColumnIdentity| {
                    format!("  {}  {}: {}\n", column.cid(), escape(&column.name), escape(&column.data_type))
                };
                let columns: String = identity.columns.iter().map(column).collect();
                format!("{}{columns}", line(&text, file))
            }
            _ => line(&text, file),
        };
        screen::print(lines.as_bytes())?;
        Ok(DONE)
    })
}

/// A line of a list. As in those of `sha256sum`, a backslash at its start says that the name has escapes.
fn line(text: &str, file: &str) -> String {
    let name = escape(&file.replace('\\', "\\\\"));
    match name == file {
        true => format!("{text}  {file}\n"),
        false => format!("\\{text}  {name}\n"),
    }
}

/// The identity and the name of a line.
fn parse_line(line: &str) -> Option<(&str, String)> {
    match line.strip_prefix('\\') {
        None => line.split_once("  ").map(|(text, name)| (text, name.to_owned())),
        Some(line) => {
            let (text, name) = line.split_once("  ")?;
            Some((text, unescape(name)?))
        }
    }
}

/// The text that [`escape`] has made this of; `None` if it has made no such text.
fn unescape(text: &str) -> Option<String> {
    let mut out = String::new();
    let mut rest = text.chars();
    while let Some(character) = rest.next() {
        if character != '\\' {
            out.push(character);
            continue;
        }
        out.push(match rest.next()? {
            '\\' => '\\',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'u' => {
                let (digits, after) = rest.as_str().strip_prefix('{')?.split_once('}')?;
                rest = after.chars();
                char::from_u32(u32::from_str_radix(digits, 16).ok()?)?
            }
            _ => return None,
        });
    }
    Some(out)
}

/// The name of the requested digest.
fn function(args: &Hash) -> &'static str {
    match args.raw {
        Some(RawFunction::Sha256) => "sha256",
        _ => "blake3",
    }
}

fn find(session: &Session, args: &Hash, options: &OpenOptions, file: &str) -> Result<Found, Failure> {
    let opened = session.open(file, options)?;
    let _progress = Progress::follow(&session.global);
    Ok(match args.raw {
        None => Found::Identity(Box::new(opened.identity(options).about(file)?)),
        Some(function) => {
            let function = match function {
                RawFunction::Blake3 => RawDigest::Blake3,
                RawFunction::Sha256 => RawDigest::Sha256,
            };
            Found::Digest(opened.raw_digest(function, options).about(file)?)
        }
    })
}

/// Compares each file of a list with its identity in the list. All are compared; the highest status is returned.
fn check(session: &Session, args: &Hash, options: &OpenOptions, list: &str) -> Outcome {
    let cannot = |error| Error::io("cannot read", error);
    let lines: Box<dyn BufRead> = match list {
        "-" => Box::new(BufReader::new(io::stdin())),
        path => Box::new(BufReader::new(File::open(path).map_err(cannot).about(list)?)),
    };
    let (mut highest, mut checked) = (DONE, 0);
    for (index, line) in lines.lines().enumerate() {
        let line = line.map_err(cannot).about(list)?;
        // Lines that begin with a space are those of columns.
        if line.trim().is_empty() || line.starts_with("  ") {
            continue;
        }
        let Some((expected, file)) = parse_line(&line) else {
            let message = format!("line {}: expected IDENTITY  FILE, found {line:?}", index + 1);
            return Err(Error::usage(message)).about(list);
        };
        let file = file.as_str();
        checked += 1;
        let found = find(session, args, options, file)
            .and_then(|found| found.text().about(file))
            .unwrap_or_else(|failure| {
                highest = highest.max(failure.report());
                String::new()
            });
        let same = found == expected;
        if !same && !found.is_empty() {
            highest = highest.max(1);
        }
        let line = match args.json {
            true => json!({ "file": file, "expected": expected, "found": found, "equal": same }).to_string(),
            false => format!("{}: {}", escape(file), if same { "OK" } else { "FAILED" }),
        };
        screen::print(format!("{line}\n").as_bytes())?;
    }
    match checked {
        0 => Err(Error::malformed("lines of IDENTITY  FILE", "none")).about(list),
        _ => Ok(highest),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_any_character_comes_back_from_its_line() {
        for name in ["x.csv", "a b", "a\\b", "a\nb", "\u{1b}[31m\r\t", "\\n", "ä  ö", " x"] {
            let line = line("bafk", name);
            assert_eq!(line.lines().count(), 1, "{line:?}");
            assert_eq!(parse_line(line.trim_end_matches('\n')), Some(("bafk", name.to_owned())), "{line:?}");
        }
        assert_eq!(line("bafk", "x.csv"), "bafk  x.csv\n");
        assert_eq!(line("bafk", "a\nb"), "\\bafk  a\\nb\n");
        assert_eq!(parse_line("\\bafk  a\\qb"), None);
    }
}
