//! `salvage`: what is sound in a damaged file.
//!
//! The parts that a format can read alone (row groups, blocks, batches; see [`Document::splits`]) are read one by one. Of a
//! part that breaks off, the whole rows before the fault are kept. Columns that can be read alone are kept instead where
//! that saves more. The members of a container are saved one by one.
//!
//! A file that ends early is taken for the beginning of a sound one. What a checksum contradicts is never kept.
//!
//! [`Document::splits`]: crate::formats::Document::splits

mod find;
mod members;
#[cfg(test)]
mod tests;

use std::ops::Range;

use serde_json::{Value, json};

use super::conversion::Conversion;
use super::convert_options::ConvertOptions;
use super::names::{self, split_member};
use super::open::{self, OpenOptions, Opened};
use super::report::Report;
use crate::error::{Error, ErrorKind, Result};
use crate::formats::MissingPart;
use crate::registry::Registry;
use crate::source::Source;
use find::Sound;

/// The option for the number of rows that types are guessed from.
const SAMPLE: &str = "sample";
/// Types are guessed from so many sound rows at the most.
const MOST_SAMPLED: u64 = 10_000;

/// What was lost of a damaged file.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Salvaged {
    /// What was written; `None` if nothing could be saved.
    pub report: Option<Report>,
    /// Rows that are sound.
    pub rows: u64,
    /// Rows that are lost.
    pub lost_rows: Vec<LostRows>,
    /// Columns that are lost.
    pub lost_columns: Vec<MissingPart>,
    /// Members that are lost.
    pub lost_members: Vec<MissingPart>,
}

/// Rows that are lost.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct LostRows {
    /// The member that they are rows of, where all members of a container are saved.
    pub member: Option<String>,
    /// The rows; the end is `u64::MAX` where it is not known. Empty if no row is lost, but bytes belong to none.
    pub rows: Range<u64>,
    /// The bytes of the file from the fault, or from the part that holds the rows, to the part's end; empty where they are
    /// not known.
    pub bytes: Range<u64>,
    /// Why.
    pub reason: String,
}

impl Salvaged {
    /// Whether anything is lost.
    pub fn is_lossy(&self) -> bool {
        !self.lost_rows.is_empty() || !self.lost_columns.is_empty() || !self.lost_members.is_empty()
    }

    /// One object: `{saved: {rows, bytes}, lost_rows: [{rows, bytes, reason}], lost_columns: [{name, bytes, reason}],
    /// lost_members: [{name, bytes, reason}]}`; `lost_rows` of a member have its name as `member`.
    pub fn to_json(&self) -> String {
        let rows = self.lost_rows.iter().map(|lost| {
            let end = (lost.rows.end != u64::MAX).then_some(lost.rows.end);
            let mut object = json!({
                "rows": [lost.rows.start, end], "bytes": [lost.bytes.start, lost.bytes.end], "reason": lost.reason,
            });
            if let (Some(member), Some(object)) = (&lost.member, object.as_object_mut()) {
                object.insert("member".to_owned(), json!(member));
            }
            object
        });
        let parts = |parts: &[MissingPart]| -> Vec<Value> {
            let part = |part: &MissingPart| json!({ "name": part.name, "bytes": [part.bytes.start, part.bytes.end], "reason": part.reason });
            parts.iter().map(part).collect()
        };
        json!({
            "saved": self.report.as_ref().map(|report| json!({ "rows": report.rows, "bytes": report.bytes })),
            "lost_rows": rows.collect::<Vec<_>>(),
            "lost_columns": parts(&self.lost_columns),
            "lost_members": parts(&self.lost_members),
        })
        .to_string()
    }
}

/// Writes what is sound in `input` to `output`. A file that cannot be opened at all is an error.
///
/// ```
/// use pentaglot::{Registry, job};
/// let folder = tempfile::tempdir()?;
/// let name = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
/// std::fs::write(name("cut.jsonl"), "{\"a\": 1}\n{\"a\": 2}\n{\"a\"")?;
/// let options = job::ConvertOptions::default();
/// let salvaged = job::salvage(&Registry::default(), &name("cut.jsonl"), &name("sound.csv"), &options)?;
/// assert_eq!(std::fs::read_to_string(name("sound.csv"))?, "a\n1\n2\n");
/// assert!(!salvaged.lost_rows.is_empty());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn salvage(registry: &Registry, input: &str, output: &str, options: &ConvertOptions) -> Result<Salvaged> {
    let mut options = options.clone();
    // It is read several times.
    options.open.spool = true;
    let (damaged, fault) = Damaged::open(registry, input, &mut options.open)?;
    damaged.opened.check_type(&options.open)?;
    if damaged.opened.document.summary().is_container() {
        return members::salvage(registry, &damaged, fault.as_ref(), output, &options);
    }
    let (mut salvaged, mut sound) = damaged.find(&damaged.opened, fault.as_ref())?;
    let mut opened = damaged.opened.clone();
    if let Some(again) = damaged.guessed_from(&sound, registry, &options.open)? {
        let (own, found) = damaged.find(&again, fault.as_ref())?;
        if own.rows >= salvaged.rows {
            (salvaged, sound, opened) = (own, found, again);
        }
    }
    if salvaged.is_lossy() && salvaged.rows == 0 {
        return Ok(salvaged);
    }
    let opened = sound.opened(&opened)?;
    let (target, options) = super::conversion::output_target(registry, output, &options)?;
    let conversion = Conversion::plan_opened(opened, target, Some(output), &options)?;
    salvaged.report = Some(conversion.run_to(registry, output, options.force)?);
    Ok(salvaged)
}

/// A file that is opened as one that is known to be damaged.
struct Damaged {
    source: Source,
    opened: Opened,
}

impl Damaged {
    /// Opens a file twice: as a sound one, which gives the fault that it has, if it has one, and as a damaged one.
    fn open(registry: &Registry, input: &str, options: &mut OpenOptions) -> Result<(Self, Option<Error>)> {
        let (source, member) = match input {
            "-" => {
                let source = Source::from_reader("-", std::io::stdin());
                source.set_budget(&options.budget);
                (source.seekable()?, None)
            }
            _ => {
                let (path, member) = split_member(input);
                (names::source(registry, path)?, member)
            }
        };
        Damaged::of_source(registry, source, member, options)
    }

    fn of_source(
        registry: &Registry,
        source: Source,
        member: Option<&str>,
        options: &mut OpenOptions,
    ) -> Result<(Self, Option<Error>)> {
        let fault = match open::open_source(registry, source.clone(), member, options) {
            Ok(_) => None,
            Err(fault) if is_damage(&fault) => Some(fault),
            Err(other) => return Err(other),
        };
        (options.damaged, options.again) = (true, true);
        match open::open_source(registry, source.clone(), member, options) {
            Ok(opened) => Ok((Damaged { source, opened }, fault)),
            Err(error) => Err(match (fault, error.advice()) {
                (Some(fault), Some(hint)) => fault.hint(hint.clone()),
                (Some(fault), None) => fault,
                (None, _) => error,
            }),
        }
    }

    /// The file opened anew with types that are guessed from the sound rows only, if its format guesses types and some of
    /// the rows that it looks at are not sound.
    fn guessed_from(
        &self,
        sound: &Sound,
        registry: &Registry,
        options: &OpenOptions,
    ) -> Result<Option<Opened>> {
        let count = match sound.rows.first() {
            Some(first) if first.start == 0 && !sound.lost_rows.is_empty() => first.end,
            _ => return Ok(None),
        };
        let info = self.opened.format.info();
        let guesses = info.options.iter().any(|option| option.key == SAMPLE);
        if !guesses || options.type_text.is_some() || options.options.get(SAMPLE).is_some() {
            return Ok(None);
        }
        let mut options = options.clone();
        options.from.get_or_insert_with(|| info.id.to_owned());
        options.options.set(SAMPLE, count.min(MOST_SAMPLED).to_string());
        open::open_source(registry, self.source.clone(), None, &options).map(Some)
    }

    /// Finds what is sound in a document of this file. `fault` is what keeps it from being opened as a sound one.
    fn find(&self, opened: &Opened, fault: Option<&Error>) -> Result<(Salvaged, Sound)> {
        let mut sound = Sound::find(opened.document.as_ref())?;
        let summary = opened.document.summary();
        sound.lost_columns.extend(summary.missing_columns.iter().cloned());
        let is_told = !sound.lost_rows.is_empty()
            || !sound.lost_columns.is_empty()
            || !summary.missing_members.is_empty();
        if let (Some(fault), false) = (fault, is_told) {
            sound.lost_rows.push(unknown_rows(&sound, fault, opened));
        }
        let salvaged = Salvaged {
            rows: sound.row_count(),
            lost_rows: sound.lost_rows.clone(),
            lost_columns: sound.lost_columns.clone(),
            lost_members: summary.missing_members.clone(),
            report: None,
        };
        Ok((salvaged, sound))
    }
}

/// What is missing of a file that can be read to its end, but did not open: rows or columns whose number is unknown.
fn unknown_rows(sound: &Sound, fault: &Error, opened: &Opened) -> LostRows {
    let len = opened.content.len().unwrap_or(0);
    let start = fault.offset().unwrap_or(len).min(len);
    let rows = sound.row_count()..u64::MAX;
    LostRows { member: None, rows, bytes: start..len, reason: fault.to_string() }
}

fn is_damage(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Truncated | ErrorKind::Malformed)
}
