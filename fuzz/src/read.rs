//! Opens bytes as a format and looks at everything.

use pentaglot::formats::{Document, Findings, Node, Severity};
use pentaglot::job::{self, OpenOptions};
use pentaglot::{Error, ErrorKind, Registry, Result, Source};

use crate::exceptions::CHECKED_BY_VALIDATE_ONLY;

/// Parts looked at of one level of an outline.
const PARTS: usize = 8;

pub(crate) fn run(format: &str, data: &[u8]) {
    let options = crate::options(format);
    let source = Source::from_bytes("fuzz", data.to_vec());
    let Ok(opened) = job::open_source(&Registry::default(), source.clone(), None, &options) else { return };
    let document = opened.document.as_ref();
    look(&document.outline(), 4);
    let mut findings = Findings::new(false);
    let validated = document.validate(&mut findings);
    let read = read_all(document, &source, &options);
    agree(format, &findings, validated, read);
}

fn look(node: &Node, depth: u32) {
    let Some(parts) = &node.parts else { return };
    if depth == 0 {
        return;
    }
    for part in parts.nodes(0).take(PARTS).flatten() {
        look(&part, depth - 1);
    }
}

fn read(document: &dyn Document) -> Result<()> {
    document.all_rows()?.try_for_each(|batch| batch.map(drop).map_err(Error::from))
}

/// All rows; of a container, those of every member.
fn read_all(document: &dyn Document, source: &Source, options: &OpenOptions) -> Result<()> {
    let members = &document.summary().members;
    match read(document) {
        Err(error) if error.kind() == ErrorKind::Usage && !members.is_empty() => {}
        done => return done,
    }
    for member in members {
        let opened = job::open_source(&Registry::default(), source.clone(), Some(member), options)?;
        read(opened.document.as_ref())?;
    }
    Ok(())
}

/// What reading refuses, `validate` refuses too, and the other way round but for the listed rules.
fn agree(format: &str, findings: &Findings, validated: Result<()>, read: Result<()>) {
    let is_broken = |error: &Error| matches!(error.kind(), ErrorKind::Truncated | ErrorKind::Malformed);
    // A limit, or something that is not supported, is no verdict on the file.
    if validated.as_ref().is_err_and(|error| !is_broken(error))
        || read.as_ref().is_err_and(|error| !is_broken(error))
    {
        return;
    }
    let listed = |rule: &str, message: &str| {
        let mut known = CHECKED_BY_VALIDATE_ONLY.iter().filter(|(id, ..)| *id == format);
        known.any(|(_, known, _)| *known == rule || message.contains(known))
    };
    let errors = findings.list().iter().filter(|finding| finding.severity == Severity::Error);
    let mut errors =
        errors.map(|finding| (finding.rule.clone(), format!("{}: {}", finding.path, finding.message)));
    let unlisted = errors.clone().find(|(rule, message)| !listed(rule, message));
    match (read, validated.is_err() || errors.next().is_some(), unlisted) {
        (Err(error), false, _) => panic!("valid, but not read: {error}"),
        (Ok(()), _, Some((rule, message))) => panic!("read, but not valid: {rule}: {message}"),
        _ => {}
    }
}
