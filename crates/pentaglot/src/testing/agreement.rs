//! `validate` and reading agree about which files are broken.
//!
//! Every file under `testdata`, as it is and damaged in many ways, is validated and read to its last row.

#![cfg(all(
    feature = "arrow_ipc",
    feature = "parquet",
    feature = "csv",
    feature = "json",
    feature = "json_lines",
    feature = "npy",
    feature = "matrix_market",
    feature = "dbdf",
    feature = "ds",
    feature = "dynd",
    feature = "bsondf",
    feature = "sds",
))]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::arbitrary::Random;
use super::columnar;
use super::exceptions::CHECKED_BY_VALIDATE_ONLY;
use crate::error::{Error, ErrorKind, Result};
use crate::formats::{Document, Findings, Format, ReadOptions, Severity};
use crate::registry::Registry;
use crate::source::Source;

/// Damaged variants of all files of a format together.
const VARIANTS: usize = 2400;

/// A file to damage, and how it is opened.
pub(crate) struct Case {
    pub(crate) format: &'static str,
    pub(crate) name: String,
    pub(crate) bytes: Vec<u8>,
    pub(crate) options: ReadOptions,
}

impl Case {
    fn new(format: &'static str, name: impl Into<String>, bytes: Vec<u8>) -> Self {
        let mut options = ReadOptions::default();
        let limits =
            crate::Limits { max_alloc: 64 << 20, max_free_rows: 1 << 12, ..crate::Limits::default() };
        options.budget = limits.budget();
        options.control = crate::Control::new(1);
        Case { format, name: name.into(), bytes, options }
    }
}

/// The verdict of an operation on a file.
#[derive(Debug, PartialEq)]
enum Opinion {
    Sound,
    /// Truncated or malformed: the rules that are broken, each with a message.
    Broken(Vec<(String, String)>),
    /// Not an error of the file: unsupported, or past a limit.
    Refused(ErrorKind),
}

fn blame(error: &Error) -> Opinion {
    match error.kind() {
        ErrorKind::Truncated | ErrorKind::Malformed => {
            Opinion::Broken(vec![(error.rule_name().to_owned(), error.to_string())])
        }
        kind => Opinion::Refused(kind),
    }
}

fn validated(document: &dyn Document) -> Opinion {
    let mut findings = Findings::new(false);
    if let Err(error) = document.validate(&mut findings) {
        return blame(&error);
    }
    let errors = findings.list().iter().filter(|finding| finding.severity == Severity::Error);
    let rules: Vec<_> = errors
        .map(|finding| {
            let place = finding.offset.map_or(String::new(), |offset| format!("at byte {offset}, "));
            (finding.rule.clone(), format!("{place}{}: {}", finding.path, finding.message))
        })
        .collect();
    if rules.is_empty() { Opinion::Sound } else { Opinion::Broken(rules) }
}

fn read(document: &dyn Document) -> Result<()> {
    for batch in document.all_rows()? {
        batch?;
    }
    Ok(())
}

/// All rows; of a container, those of every member.
fn read_all(format: &dyn Format, source: &Source, case: &Case, document: &dyn Document) -> Result<()> {
    let members = &document.summary().members;
    match read(document) {
        Err(error) if error.kind() == ErrorKind::Usage && !members.is_empty() => {}
        done => return done,
    }
    for member in members {
        let mut options = case.options.clone();
        options.member = Some(member.clone());
        read(format.open(source.clone(), &options)?.as_ref())?;
    }
    Ok(())
}

#[test]
fn validate_and_reading_agree_on_damaged_files() {
    let registry = Registry::default();
    let mut differences = BTreeMap::<String, (usize, String)>::new();
    let mut tried = 0;
    for (format, cases) in cases() {
        let format = registry.get(format).unwrap();
        let each = VARIANTS.div_ceil(cases.len());
        for case in &cases {
            for (what, bytes) in variants(case, each) {
                tried += 1;
                if let Some((kind, detail)) = difference(format.as_ref(), case, bytes) {
                    let entry = differences.entry(format!("{}: {kind}", case.format)).or_default();
                    entry.0 += 1;
                    if entry.1.is_empty() {
                        entry.1 = format!("{} {what}: {detail}", case.name);
                    }
                }
            }
        }
    }
    assert!(tried > 10_000, "{tried} variants were tried");
    let list: Vec<String> = differences
        .iter()
        .map(|(kind, (count, example))| format!("{kind} ({count} times), such as {example}"))
        .collect();
    assert!(list.is_empty(), "of {tried} variants:\n{}", list.join("\n"));
}

/// The kind of difference and its details; `None` if validating and reading agree.
fn difference(format: &dyn Format, case: &Case, bytes: Vec<u8>) -> Option<(String, String)> {
    let source = Source::from_bytes(case.name.clone(), bytes);
    // Both operations open the file first, so a failure to open is the same for both.
    let document = format.open(source.clone(), &case.options).ok()?;
    let validated = validated(document.as_ref());
    let read = read_all(format, &source, case, document.as_ref());
    let opinion = read.as_ref().map_or_else(blame, |()| Opinion::Sound);
    let said = read.err().map_or("it is read".to_owned(), |error| error.to_string());
    match (&validated, &opinion) {
        (Opinion::Sound, Opinion::Sound) | (Opinion::Broken(_), Opinion::Broken(_)) => None,
        (Opinion::Refused(left), Opinion::Refused(right)) if left == right => None,
        (Opinion::Broken(rules), Opinion::Sound) => {
            let listed = |rule: &str, message: &str| {
                let mut list = CHECKED_BY_VALIDATE_ONLY.iter().filter(|(id, ..)| *id == case.format);
                list.any(|(_, known, _)| *known == rule || message.contains(known))
            };
            let (rule, message) = rules.iter().find(|(rule, message)| !listed(rule, message))?;
            Some((format!("broken but read [{rule}]"), message.clone()))
        }
        (Opinion::Sound, Opinion::Broken(_)) => Some(("valid but not read".to_owned(), said)),
        // Only reading creates rows, which may exceed a limit.
        (_, Opinion::Refused(ErrorKind::Limit)) => None,
        (left, right) => Some((format!("{left:?} and {right:?}"), said)),
    }
}

/// The file itself, then damaged variants: truncated, bits flipped, bytes and words replaced. The same ones
/// in every run.
fn variants(case: &Case, count: usize) -> Vec<(String, Vec<u8>)> {
    let seed = case.name.bytes().fold(7u64, |seed, byte| seed.wrapping_mul(31).wrapping_add(byte.into()));
    let mut random = Random::new(seed);
    let mut all = vec![("as it is".to_owned(), case.bytes.clone())];
    let len = case.bytes.len();
    if len == 0 {
        return all;
    }
    for index in 0..count {
        let mut bytes = case.bytes.clone();
        let at = random.below(len);
        let what = match index % 8 {
            0 => {
                bytes.truncate(at);
                format!("cut at {at}")
            }
            1 => {
                bytes[at] = random.pick(&[0, 1, 0x7f, 0x80, 0xff]);
                format!("byte {at} is {}", bytes[at])
            }
            2 => {
                bytes.splice(at..at, [random.next() as u8]);
                format!("a byte {} before {at}", bytes[at])
            }
            _ => {
                let bit = random.below(8);
                bytes[at] ^= 1 << bit;
                format!("bit {bit} of byte {at} flipped")
            }
        };
        all.push((what, bytes));
    }
    all
}

/// All files of the test data by format.
pub(crate) fn cases() -> BTreeMap<&'static str, Vec<Case>> {
    let mut all = Vec::new();
    for (id, folder, extensions) in [
        ("arrow", "arrow", &["arrow", "feather"][..]),
        ("arrow-stream", "arrow", &["arrows"]),
        ("bsondf", "bsondf", &["bson"]),
        ("csv", "csv", &["csv", "tsv"]),
        ("dbdf", "dbdf", &["dbdf"]),
        ("json", "json", &["json"]),
        ("jsonl", "jsonl", &["jsonl", "ndjson"]),
        ("mtx", "mtx", &["mtx"]),
        ("npy", "npy", &["npy"]),
        ("npz", "npz", &["npz"]),
        ("parquet", "parquet", &["parquet"]),
        ("sds", "sds", &["sds", "gbz", "gbwt", "gg", "meta", "chains"]),
    ] {
        for path in files(&columnar::path(folder)) {
            let extension = path.extension().map(|extension| extension.to_string_lossy().into_owned());
            if extension.is_some_and(|extension| extensions.contains(&extension.as_str())) {
                let name = path.file_name().unwrap().to_string_lossy().into_owned();
                all.push(Case::new(id, name, fs::read(&path).unwrap()));
            }
        }
    }
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let golden = json("ds/golden.json");
    for vector in golden["golden"].as_array().unwrap() {
        if let Some(bundle) = vector["json"].as_str() {
            all.push(Case::new("ds", text(&vector["id"]) + ".json", bundle.as_bytes().to_vec()));
        }
        for key in ["msgpack", "msgpack_go"].into_iter().filter(|key| vector[*key].is_string()) {
            all.push(Case::new("ds", format!("{}.{key}", text(&vector["id"])), hex(&text(&vector[key]))));
        }
    }
    let golden = json("dynd/golden.json");
    for (list, key, dialect) in [("vectors", "hex", "raw"), ("cbor", "cbor", "cbor")] {
        for (index, vector) in golden[list].as_array().unwrap().iter().enumerate() {
            let mut case = Case::new("dynd", format!("{list}[{index}]"), hex(&text(&vector[key])));
            case.options.dialect = Some(dialect.to_owned());
            case.options.type_text = Some(text(&vector["type"]));
            all.push(case);
        }
    }
    let mut by_format = BTreeMap::<&'static str, Vec<Case>>::new();
    all.into_iter().for_each(|case| by_format.entry(case.format).or_default().push(case));
    assert_eq!(by_format.len(), Registry::default().formats().count(), "every format has files");
    by_format
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { all.extend(files(&path)) } else { all.push(path) }
    }
    all.sort();
    all
}

fn json(name: &str) -> Value {
    serde_json::from_str(&fs::read_to_string(columnar::path(name)).unwrap()).unwrap()
}

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u32> = text.chars().map(|digit| digit.to_digit(16).unwrap()).collect();
    digits.chunks(2).map(|pair| (pair[0] * 16 + pair[1]) as u8).collect()
}
