//! `query`: one answer per line. `index`: the side file that makes queries fast.

use std::io::{BufRead, BufReader, Write};

use pentaglot::Error;
use pentaglot::job::{self, Queries};

use crate::args::{Index, Query};
use crate::screen::{self, escape};
use crate::{About, DONE, Failure, Outcome, Session, bus_error};

pub(crate) fn run(session: &Session, args: &Query) -> Outcome {
    let mut options = args.open.options(&session.global);
    options.in_place = bus_error::permit_map(&args.file);
    let queries = Queries::open(&session.registry, &args.file, &options).about(&args.file)?;
    if let (Some(note), false) = (queries.note(), session.global.quiet) {
        screen::say(&escape(&format!("{}: note: {note}", args.file)));
    }
    let mut out = screen::bytes();
    let words: Vec<&str> = args.query.iter().map(String::as_str).collect();
    if words != ["-"] {
        queries.answer(words).about(&args.file)?.write_line(&mut out)?;
        out.flush()?;
        return Ok(DONE);
    }
    let mut input = BufReader::with_capacity(64 << 10, std::io::stdin().lock());
    let (mut line, mut number) = (String::new(), 0u64);
    loop {
        number += 1;
        let read =
            input.read_line(&mut line).map_err(|error| Error::io(format_args!("line {number}"), error));
        // Earlier answers remain valid.
        match read {
            Ok(0) => break,
            Ok(_) => {}
            Err(error) => {
                out.flush()?;
                return Err(error).about("-");
            }
        }
        match queries.answer(line.split_whitespace()) {
            Ok(answer) => answer.write_line(&mut out)?,
            Err(error) => {
                // Earlier answers remain valid.
                out.flush()?;
                return Err(Failure {
                    file: Some("-".to_owned()),
                    error: Error::usage(format!("line {number}: {error}")),
                });
            }
        }
        line.clear();
        // An interactive user gets each answer at once.
        if input.buffer().is_empty() {
            out.flush()?;
        }
    }
    out.flush()?;
    Ok(DONE)
}

pub(crate) fn index(session: &Session, args: &Index) -> Outcome {
    let options = args.open.options(&session.global);
    let bytes = job::index(&session.registry, &args.file, &options).about(&args.file)?;
    let path = format!("{}.idx", args.file);
    let mut sink = job::create(&session.registry, &path, args.force).about(&path)?;
    sink.write_all(&bytes)?;
    sink.finish().about(&path)?;
    Ok(DONE)
}
