//! `hash`: content identities, and lists of them that are checked.

use std::fs::File;
use std::io::{self, BufRead, BufReader};

use pentaglot::Error;
use pentaglot::identity::Identity;
use pentaglot::job::{self, OpenOptions, RawDigest};
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
                format!("{text}  {}\n{columns}", escape(file))
            }
            _ => format!("{text}  {}\n", escape(file)),
        };
        screen::print(lines.as_bytes())?;
        Ok(DONE)
    })
}

/// The name of the requested digest.
fn function(args: &Hash) -> &'static str {
    match args.raw {
        Some(RawFunction::Sha256) => "sha256",
        _ => "blake3",
    }
}

fn find(session: &Session, args: &Hash, options: &OpenOptions, file: &str) -> Result<Found, Failure> {
    let opened = job::open(&session.registry, file, options).about(file)?;
    opened.check_options(&options.options).about(file)?;
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
    let mut highest = DONE;
    for (index, line) in lines.lines().enumerate() {
        let line = line.map_err(cannot).about(list)?;
        // Lines that begin with a space are those of columns.
        if line.trim().is_empty() || line.starts_with("  ") {
            continue;
        }
        let Some((expected, file)) = line.split_once("  ") else {
            let message = format!("line {}: expected IDENTITY  FILE, found {line:?}", index + 1);
            return Err(Error::usage(message)).about(list);
        };
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
    Ok(highest)
}
