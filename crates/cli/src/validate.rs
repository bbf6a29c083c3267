//! `validate`: checks every value against every rule; prints one finding per line.

use std::io::Write;

use pentaglot::formats::Findings;
use pentaglot::job;
use serde_json::{Value, json};

use crate::args::{Profile, Validate};
use crate::screen::{self, escape};
use crate::{About, DONE, Outcome, Session, for_each};

pub(crate) fn run(session: &Session, args: &Validate) -> Outcome {
    let options = args.open.options(&session.global);
    for_each(session, &args.files, |file| {
        let mut findings = Findings::new(args.profile == Profile::Strict);
        let format = match job::validate(&session.registry, file, &options, &mut findings) {
            Ok(format) => format,
            Err(error) => {
                // There is one object for every file, also for errors that the file does not cause.
                if args.json && !error.is_broken_pipe() {
                    findings.error(&error);
                    screen::print(format!("{}\n", object(file, error.format(), &findings)).as_bytes())?;
                }
                return Err(error).about(file);
            }
        };
        if args.json {
            screen::print(format!("{}\n", object(file, format, &findings)).as_bytes())?;
        } else {
            print(file, format, &findings)?;
        }
        Ok(if findings.is_valid() { DONE } else { 1 })
    })
}

fn object(file: &str, format: Option<&str>, findings: &Findings) -> Value {
    let list: Vec<Value> = findings
        .list()
        .iter()
        .map(|finding| {
            json!({
                "severity": finding.severity.name(),
                "rule": finding.rule,
                "offset": finding.offset,
                "path": finding.path,
                "message": finding.message,
            })
        })
        .collect();
    json!({ "file": file, "format": format, "valid": findings.is_valid(), "findings": list })
}

fn print(file: &str, format: Option<&str>, findings: &Findings) -> std::io::Result<()> {
    let mut out = screen::lines();
    for finding in findings.list() {
        let line = finding.line.map_or(String::new(), |line| format!(" (line {line})"));
        let place = match (finding.offset, finding.path.is_empty()) {
            (Some(offset), true) => format!("at byte {offset}{line}: "),
            (Some(offset), false) => format!("at byte {offset}{line}, {}: ", finding.path),
            (None, false) => format!("{}: ", finding.path),
            (None, true) => String::new(),
        };
        let line =
            format!("{file}: {}: {place}{} [{}]", finding.severity.name(), finding.message, finding.rule);
        writeln!(out, "{}", screen::message(&escape(&line)))?;
    }
    if findings.more() > 0 {
        writeln!(out, "{}: … {}", escape(file), screen::count(findings.more(), "more finding"))?;
    }
    if findings.is_valid() {
        writeln!(out, "{}: valid {}", escape(file), format.unwrap_or("file"))?;
    }
    out.flush()
}
