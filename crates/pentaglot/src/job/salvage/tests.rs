//! Every file of the test data, cut at many places and with flipped bits: what is saved validates, and of a cut file every
//! saved row is the row that the whole file has at its place.

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

use super::*;
use crate::formats::{Document, Findings};
use crate::hub::json::Columns;
use crate::hub::type_text::print_exact_schema;
use crate::hub::{LossKinds, Rows};
use crate::job::{OpenOptions, open_source, target, validate_opened};
use crate::sink::Sink;
use crate::testing::agreement::{Case, cases};
use crate::testing::arbitrary::Random;

/// Damaged variants of all files of a format together, of each kind of damage.
const CUTS: usize = 500;
const FLIPS: usize = 200;

/// A row as the JSON texts of its columns.
type Row = BTreeMap<String, String>;

fn texts(rows: Rows) -> Result<Vec<Row>> {
    let mut all = Vec::new();
    for batch in rows {
        let batch = batch.map_err(Error::from)?;
        let columns = Columns::new(&batch, &crate::job::json_options())?;
        for row in 0..batch.num_rows() {
            let cell = |index: usize| -> Result<(String, String)> {
                let mut text = Vec::new();
                columns.write_cell(index, row, &mut text)?;
                Ok((batch.schema().field(index).name().clone(), String::from_utf8(text).unwrap()))
            };
            all.push((0..batch.num_columns()).map(cell).collect::<Result<Row>>()?);
        }
    }
    Ok(all)
}

fn all_texts(document: &dyn Document) -> Result<Vec<Row>> {
    texts(document.all_rows()?)
}

/// The rows of a sound file, by the name of the member; those of a file without members have none.
fn original(case: &Case, options: &OpenOptions) -> Result<BTreeMap<Option<String>, Vec<Row>>> {
    let registry = Registry::default();
    let source = Source::from_bytes(case.name.clone(), case.bytes.clone());
    let opened = open_source(&registry, source.clone(), None, options)?;
    let mut all = BTreeMap::new();
    let summary = opened.document.summary();
    if !summary.is_container() {
        all.insert(None, all_texts(opened.document.as_ref())?);
    }
    for member in &summary.members {
        let opened = open_source(&registry, source.clone(), Some(member), options)?;
        all.insert(Some(member.clone()), all_texts(opened.document.as_ref())?);
    }
    Ok(all)
}

/// How a case is opened: nothing is inferred from the content that a cut could change.
fn options_of(case: &Case) -> OpenOptions {
    let mut options = OpenOptions::default();
    options.budget = case.options.budget.clone();
    options.control = case.options.control.clone();
    options.spool = true;
    options.type_text = case.options.type_text.clone();
    let mut id = case.format.to_owned();
    let registry = Registry::default();
    let source = Source::from_bytes(case.name.clone(), case.bytes.clone());
    let opened = registry.get(case.format).unwrap().open(source, &case.options);
    match (&case.options.dialect, &opened) {
        (Some(dialect), _) => id = format!("{id}:{dialect}"),
        (None, Ok(document)) if matches!(case.format, "sds" | "dbdf") => {
            id = format!("{id}:{}", document.summary().dialect.unwrap());
        }
        _ => {}
    }
    if let (Ok(document), "csv" | "jsonl" | "json") = (&opened, case.format) {
        options.type_text = Some(print_exact_schema(&document.summary().schema));
    }
    options.from = Some(id);
    options
}

/// What is saved of these bytes: the rows of each member with their places, and whether anything is lost.
type Saved = (BTreeMap<Option<String>, Vec<(u64, Row)>>, bool);

/// Salvages bytes, and validates what is written. `None` if they do not open.
fn saved(case: &Case, bytes: Vec<u8>, options: &OpenOptions) -> Option<Saved> {
    let registry = Registry::default();
    let mut options = options.clone();
    let source = Source::from_bytes(case.name.clone(), bytes);
    let (damaged, fault) = match Damaged::of_source(&registry, source.clone(), None, &mut options) {
        Ok(found) => found,
        Err(error) => {
            assert_ne!(error.kind(), ErrorKind::Io, "{}: {error}", case.name);
            return None;
        }
    };
    let summary = damaged.opened.document.summary();
    let members = match summary.is_container() {
        true => summary.members.iter().map(|member| Some(member.as_str())).collect(),
        false => vec![None],
    };
    let (mut all, mut is_lossy) = (BTreeMap::new(), fault.is_some());
    for member in members {
        let opened = match member {
            None => damaged.opened.clone(),
            Some(_) => match open_source(&registry, source.clone(), member, &options) {
                Ok(opened) => opened,
                Err(_) => {
                    is_lossy = true;
                    continue;
                }
            },
        };
        // A limit, or what is not supported, is no verdict on the file.
        let Ok((salvaged, sound)) = damaged.find(&opened, fault.as_ref()) else { continue };
        is_lossy |= salvaged.is_lossy();
        if salvaged.is_lossy() && salvaged.rows == 0 {
            continue;
        }
        let places: Vec<u64> = sound.rows.iter().cloned().flatten().collect();
        let opened = sound.opened(&opened).unwrap();
        let rows = all_texts(opened.document.as_ref());
        let rows = rows.unwrap_or_else(|error| panic!("{} {member:?}: {error}", case.name));
        if salvaged.is_lossy() {
            assert_eq!(rows.len(), places.len(), "{} {member:?}", case.name);
        }
        write(&opened, &case.name);
        let places = if places.len() == rows.len() { places } else { (0..rows.len() as u64).collect() };
        // The only member that is left of several.
        let only = summary.members.first().filter(|_| !summary.missing_members.is_empty());
        let member = member.or(only.filter(|_| summary.members.len() == 1).map(String::as_str));
        all.insert(member.map(str::to_owned), places.into_iter().zip(rows).collect());
    }
    Some((all, is_lossy))
}

/// Writes what is sound; it validates. What Arrow cannot hold is not written.
fn write(opened: &Opened, name: &str) {
    let registry = Registry::default();
    let mut options = ConvertOptions::default();
    options.allow_lossy = LossKinds::ALL;
    let arrow = target(&registry, "arrow").unwrap();
    let conversion = match Conversion::plan_opened(opened.clone(), arrow, None, &options) {
        Ok(conversion) => conversion,
        Err(error) => {
            assert!(matches!(error.kind(), ErrorKind::Lossy | ErrorKind::Unsupported), "{name}: {error}");
            return;
        }
    };
    let (sink, memory) = Sink::memory();
    conversion.run_into(sink).unwrap_or_else(|error| panic!("{name}: {error}"));
    let options = OpenOptions::default();
    let mut findings = Findings::new(false);
    let source = Source::from_bytes("saved.arrow", memory.take());
    validate_opened(open_source(&registry, source, None, &options), &options, &mut findings).unwrap();
    assert!(findings.is_valid(), "{name}: {:?}", findings.list());
}

/// Whether the arrays of one value are the beginnings of those of another.
fn is_beginning(text: &str, of: &str) -> bool {
    fn begins(value: &Value, of: &Value) -> bool {
        match (value, of) {
            (Value::Array(values), Value::Array(of)) => {
                values.len() <= of.len() && values.iter().zip(of).all(|(value, of)| begins(value, of))
            }
            (value, of) => value == of,
        }
    }
    match (serde_json::from_str::<Value>(text), serde_json::from_str::<Value>(of)) {
        (Ok(value), Ok(of)) => begins(&value, &of),
        _ => false,
    }
}

/// Errs with what differs.
fn compare(case: &Case, original: &BTreeMap<Option<String>, Vec<Row>>, saved: &Saved) -> Result<u64, String> {
    let mut count = 0;
    for (member, rows) in &saved.0 {
        let Some(whole) = original.get(member) else { return Err(format!("there is no {member:?}")) };
        for (place, row) in rows {
            count += 1;
            // Entries of a damaged coordinate file are a table of their own.
            if case.format == "mtx" && row.contains_key("col") {
                continue;
            }
            let Some(expected) = whole.get(usize::try_from(*place).unwrap()) else {
                return Err(format!("{member:?} row {place} is not there"));
            };
            for (name, text) in row {
                let expected = expected.get(name).ok_or_else(|| format!("{member:?}: there is no {name}"))?;
                // Of a matrix that is stored column by column, the first columns may be saved.
                let by_columns = matches!(case.format, "npy" | "npz" | "mtx") && is_beginning(text, expected);
                if text != expected && !by_columns {
                    return Err(format!(
                        "{member:?} row {place} column {name}: {text} in place of {expected}"
                    ));
                }
            }
        }
    }
    Ok(count)
}

#[test]
fn saved_rows_of_cut_files_are_the_rows_at_their_places() {
    let mut figures = BTreeMap::new();
    let mut wrong = Vec::new();
    for (format, cases) in cases() {
        let each = CUTS.div_ceil(cases.len());
        let (mut saved_rows, mut cut_rows) = (0, 0);
        for case in &cases {
            let options = options_of(case);
            // Files that are no sound ones are of no use here.
            let Ok(original) = original(case, &options) else { continue };
            let rows: usize = original.values().map(Vec::len).sum();
            let whole = saved(case, case.bytes.clone(), &options);
            let seed = case.name.bytes().fold(3u64, |seed, byte| seed.wrapping_mul(31) + u64::from(byte));
            let mut random = Random::new(seed);
            let len = case.bytes.len();
            let step = (len / each).max(1);
            let cuts = (0..len).step_by(step).map(|at| (at + random.below(step)).min(len - 1));
            for cut in cuts.chain(len.checked_sub(1)) {
                let Some(found) = saved(case, case.bytes[..cut].to_vec(), &options) else { continue };
                match compare(case, &original, &found) {
                    Ok(count) => saved_rows += count,
                    Err(what) => wrong.push(format!("{format} {} cut at {cut} of {len}: {what}", case.name)),
                }
                cut_rows += rows as u64;
            }
            // A sound file is saved as it is. A last line without its end may be cut, so it is not saved, nor is the column
            // of a matrix that it ends.
            let unended = matches!(case.format, "csv" | "mtx") && case.bytes.last() != Some(&b'\n');
            match whole {
                Some(whole) if !unended => {
                    let is_same = compare(case, &original, &whole).is_ok_and(|count| count == rows as u64);
                    if whole.1 || !is_same && format != "mtx" && !original.contains_key(&None) {
                        wrong.push(format!("{format} {}: sound, but not saved as it is", case.name));
                    }
                }
                None if !unended => wrong.push(format!("{format} {}: sound, but not opened", case.name)),
                _ => {}
            }
        }
        figures.insert(format, (saved_rows, cut_rows));
    }
    wrong.truncate(40);
    assert!(wrong.is_empty(), "{}\n{figures:?}", wrong.join("\n"));
    // Rows or columns of every format are saved, but of those that can only be read whole.
    for (format, (saved, _)) in &figures {
        assert!(*saved > 0 || matches!(*format, "parquet"), "nothing is saved of {format}: {figures:?}");
    }
}

#[test]
fn what_is_saved_of_files_with_flipped_bits_validates() {
    let mut wrong = Vec::new();
    for (format, cases) in cases() {
        let each = FLIPS.div_ceil(cases.len());
        for case in cases.iter().filter(|case| !case.bytes.is_empty()) {
            let options = options_of(case);
            let Ok(original) = original(case, &options) else { continue };
            let mut random = Random::new(case.bytes.len() as u64);
            for _ in 0..each {
                let (at, bit) = (random.below(case.bytes.len()), random.below(8));
                let mut bytes = case.bytes.clone();
                bytes[at] ^= 1 << bit;
                let Some(found) = saved(case, bytes, &options) else { continue };
                // Only checksums tell of a changed value.
                if format == "npz"
                    && let Err(what) = compare(case, &original, &found)
                {
                    wrong.push(format!("{format} {} bit {bit} of byte {at}: {what}", case.name));
                }
            }
        }
    }
    wrong.truncate(40);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
