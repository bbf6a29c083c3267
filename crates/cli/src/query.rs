//! `query`: one answer a line. `index`: the side file that makes queries fast.

use std::io::{BufRead, Write};

use pentaglot::job::{self, Queries};
use pentaglot::{Error, Sink};

use crate::args::{Index, Query};
use crate::screen::{self, escape};
use crate::{About, DONE, Failure, Outcome, Session};

pub(crate) fn run(session: &Session, args: &Query) -> Outcome {
    let options = args.open.options(&session.global);
    let queries = Queries::open(&session.registry, &args.file, &options).about(&args.file)?;
    if let (Some(note), false) = (queries.note(), session.global.quiet) {
        screen::say(&escape(&format!("{}: note: {note}", args.file)));
    }
    let mut out = screen::bytes();
    let words: Vec<&str> = args.query.iter().map(String::as_str).collect();
    if words != ["-"] {
        let answer = queries.answer(words).about(&args.file)?;
        writeln!(out, "{}", answer.as_deref().unwrap_or("-"))?;
        out.flush()?;
        return Ok(DONE);
    }
    for (line, number) in std::io::stdin().lock().lines().zip(1u64..) {
        let line = line?;
        match queries.answer(line.split_whitespace()) {
            Ok(answer) => writeln!(out, "{}", answer.as_deref().unwrap_or("-"))?,
            Err(error) => {
                // Earlier answers stand.
                out.flush()?;
                return Err(Failure {
                    file: Some("-".to_owned()),
                    error: Error::usage(format!("line {number}: {error}")),
                });
            }
        }
    }
    out.flush()?;
    Ok(DONE)
}

pub(crate) fn index(session: &Session, args: &Index) -> Outcome {
    let options = args.open.options(&session.global);
    let bytes = job::index(&session.registry, &args.file, &options).about(&args.file)?;
    let path = format!("{}.idx", args.file);
    let mut sink = Sink::create(&path, args.force).about(&path)?;
    sink.write_all(&bytes)?;
    sink.finish().about(&path)?;
    Ok(DONE)
}
