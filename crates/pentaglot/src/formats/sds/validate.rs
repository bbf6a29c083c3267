//! Every rule of the format, held against every bit.

use pentaglot_succinct::{Finding, Severity, SharedWords, Structure};

use super::containers::{Container, Content};
use super::layout::Object;
use crate::error::Error;
use crate::formats::Findings;

pub(super) fn validate(object: &Object, findings: &mut Findings) {
    match object {
        Object::Container(container) => check_container(container, findings),
        Object::RunLengthWavelet(structure) => report(structure.validate(), "", 0, findings),
        Object::Wavelet(structure) => report(structure.validate(), "", 0, findings),
        Object::WaveletCore(structure) => report(structure.validate(), "", 0, findings),
        Object::RunLength(structure) => report(structure.validate(), "", 0, findings),
        Object::Sparse(structure) => report(structure.validate(), "", 0, findings),
        Object::Bit(structure) => report(structure.validate(), "", 0, findings),
        Object::Int(structure) => report(structure.validate(), "", 0, findings),
        Object::Raw(structure) => report(structure.validate(), "", 0, findings),
        Object::String(bytes, words) | Object::Bytes(bytes, words) => {
            check_padding(*bytes, words, "", 0, findings)
        }
        Object::Option(_) | Object::Pairs(_) | Object::Vec(_) => {}
    }
}

/// Takes over what a structure found about itself; it stands at element `start` under `path`.
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

/// The structures' own words for rules, as one word each.
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

fn check_container(container: &Container, findings: &mut Findings) {
    for part in container.parts() {
        match &part.content {
            Content::Sparse(vector) => report(vector.validate(), &part.path, part.start, findings),
            Content::Int(vector) => report(vector.validate(), &part.path, part.start, findings),
            Content::Bytes(bytes, words) => check_padding(*bytes, words, &part.path, part.start, findings),
            Content::Strings(strings) => {
                let broken = (0..strings.len()).find(|index| strings.get(*index).is_none());
                if let Some(index) = broken {
                    let error =
                        Error::malformed("starts within the characters, codes within the alphabet", "others");
                    let error =
                        error.at(part.start * 8).index(index).field(part.path.clone()).rule("strings");
                    findings.error(&error);
                }
            }
            Content::Field(_) | Content::Elements(_) | Content::Paths(_) => {}
        }
    }
}
