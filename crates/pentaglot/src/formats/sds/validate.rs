//! Checks every bit against every rule of the format.

use pentaglot_succinct::{Finding, Severity, SharedWords, Structure};

use super::containers::{Container, Content};
use super::graph::{Graph, Names, text};
use super::layout::Object;
use super::type_text::SdsKind;
use crate::control::Control;
use crate::error::{Error, ErrorKind, Result};
use crate::formats::Findings;
use crate::limits::Budget;

pub(super) fn validate(
    object: &Object,
    budget: &Budget,
    control: &Control,
    findings: &mut Findings,
) -> Result<()> {
    let Object::Container(container) = object else {
        check_structure(object, "", 0, findings);
        return Ok(());
    };
    check_container(container, findings);
    match check_tables(container, budget, control) {
        Err(error) if matches!(error.kind(), ErrorKind::Malformed | ErrorKind::Truncated) => {
            findings.error(&error);
            Ok(())
        }
        other => other,
    }
}

/// Checks every rule of a single structure at element `start` under `path`.
pub(super) fn check_structure(object: &Object, path: &str, start: u64, findings: &mut Findings) {
    let found = match object {
        Object::RunLengthWavelet(structure) => structure.validate(),
        Object::Wavelet(structure) => structure.validate(),
        Object::WaveletCore(structure) => structure.validate(),
        Object::RunLength(structure) => structure.validate(),
        Object::Sparse(structure) => structure.validate(),
        Object::Bit(structure) => structure.validate(),
        Object::Int(structure) => structure.validate(),
        Object::Raw(structure) => structure.validate(),
        Object::String(bytes, words) | Object::Bytes(bytes, words) => {
            return check_padding(*bytes, words, path, start, findings);
        }
        Object::Container(_)
        | Object::Option(_)
        | Object::Pairs(_)
        | Object::Vec(_)
        | Object::Element(_)
        | Object::Items(..) => return,
    };
    report(found, path, start, findings);
}

/// Errs if runs of a run-length wavelet matrix lie past the end of their level: its rows would not be those of the others.
pub(super) fn check_runs(object: &Object) -> Result<()> {
    let mut findings = Findings::new(false);
    check_structure(object, "", 0, &mut findings);
    let Some(wrong) = findings.list().iter().find(|finding| finding.rule == "length") else { return Ok(()) };
    let error = Error::new(ErrorKind::Malformed, wrong.message.clone()).rule("length");
    let error = match wrong.offset {
        Some(offset) => error.at(offset),
        None => error,
    };
    Err(error.field(wrong.path.clone()))
}

/// Checks names, records and sequences against the counts of a pangenome file, and follows every path to its
/// end.
fn check_tables(container: &Container, budget: &Budget, control: &Control) -> Result<()> {
    if matches!(container.kind(), SdsKind::Gbz | SdsKind::Gbwt) {
        let graph = Graph::open(container, budget)?;
        graph.check_visits()?;
        let (starts, _held) = graph.starts(budget)?;
        for (index, start) in starts.into_iter().enumerate() {
            control.check()?;
            graph.walk(start).map_err(|error| error.index(index as u64).field("sequences"))?;
        }
    }
    let Some(names) = Names::open(container)? else { return Ok(()) };
    (0..names.path_count()).try_for_each(|id| names.path(id).map(drop))
}

/// Adds the findings of a structure at element `start` under `path`.
fn report(found: Vec<Finding>, path: &str, start: u64, findings: &mut Findings) {
    for finding in found {
        let place = match (path.is_empty(), finding.path.is_empty()) {
            (true, _) => finding.path,
            (false, true) => path.to_owned(),
            (false, false) => format!("{path}.{}", finding.path),
        };
        let error = Error::malformed(finding.expected, finding.found)
            .at((start + finding.offset) * 8)
            .field(place)
            .rule(rule(finding.rule));
        match finding.severity {
            Severity::Error => findings.error(&error),
            Severity::Warning => findings.warning(&error),
        }
    }
}

/// The names of the structures' rules, as one word each.
fn rule(words: &'static str) -> &'static str {
    match words {
        "unused bits" => "unused-bits",
        "rank support" => "rank-support",
        "select support" => "select-support",
        "foreign support" => "foreign-support",
        "maximal runs" => "maximal-runs",
        "minimal width" => "minimal-width",
        other => other,
    }
}

/// Padding bytes after a vector of bytes are zero.
fn check_padding(bytes: u64, words: &SharedWords, path: &str, start: u64, findings: &mut Findings) {
    let used = bytes % 8;
    let last = words.as_ref().last().copied().unwrap_or(0);
    if used != 0 && last >> (8 * used) != 0 {
        let offset = (start + 1 + words.as_ref().len() as u64) * 8 - (8 - used);
        let error = Error::malformed("padding of zero bytes", "other bytes").at(offset).rule("padding");
        findings.error(&if path.is_empty() { error } else { error.field(path.to_owned()) });
    }
}

pub(super) fn check_container(container: &Container, findings: &mut Findings) {
    for part in container.parts() {
        match &part.content {
            Content::Object(object) => check_structure(object, &part.path, part.start, findings),
            Content::Strings(strings) | Content::Tags(strings) => {
                if let Some(error) =
                    (0..strings.len()).find_map(|index| text(strings.get(index), index).err())
                {
                    findings.error(&error.at(part.start * 8).field(part.path.clone()).rule("strings"));
                }
            }
            Content::Field(_) | Content::Paths(_) | Content::Table(_) | Content::Absent(_) => {}
        }
    }
}
