//! `count`: how many rows files have.

use serde_json::json;

use crate::args::Count;
use crate::progress::Progress;
use crate::screen::{self, escape};
use crate::{About, DONE, Outcome, Session, for_each};

pub(crate) fn run(session: &Session, args: &Count) -> Outcome {
    let options = args.open.options(&session.global);
    for_each(session, &args.files, |file| {
        let opened = session.open(file, &options)?;
        let progress = Progress::follow(&session.global);
        let rows = opened.count(args.filter.as_deref()).about(file)?;
        drop(progress);
        let line = match args.json {
            true => json!({ "file": file, "rows": rows }).to_string(),
            false => format!("{rows}  {}", escape(file)),
        };
        screen::print(format!("{line}\n").as_bytes())?;
        Ok(DONE)
    })
}
