//! `salvage`: the intact rows and columns of a damaged file.

use std::ops::Range;

use pentaglot::job::{self, ConvertOptions, Salvaged};

use crate::args::Salvage;
use crate::screen::{self, escape};
use crate::{About, DONE, Outcome, Session};

/// 0 nothing is lost, 1 something is, 2 nothing was saved.
pub(crate) fn run(session: &Session, args: &Salvage) -> Outcome {
    let mut options = ConvertOptions::default();
    options.open = args.open.options(&session.global);
    options.to = args.to.clone();
    options.force = args.force;
    let salvaged = match job::salvage(&session.registry, &args.input, &args.output, &options) {
        Ok(salvaged) => salvaged,
        Err(error) => {
            // Nothing was saved: a file that cannot be opened is 2 here.
            return match Err::<(), _>(error).about(&args.input) {
                Err(failure) => Ok(failure.report().max(2)),
                Ok(()) => Ok(DONE),
            };
        }
    };
    if let Some(report) = &salvaged.report {
        session.say_notes(&args.input, &report.input_notes);
    }
    if args.json {
        screen::print(format!("{}\n", salvaged.to_json()).as_bytes())?;
    } else {
        say(&salvaged, &args.input);
    }
    Ok(match (salvaged.is_lossy(), &salvaged.report) {
        (false, _) => DONE,
        (true, Some(_)) => 1,
        (true, None) => 2,
    })
}

fn say(salvaged: &Salvaged, input: &str) {
    let line = |text: String| screen::say(&escape(&format!("{input}: {text}")));
    let within = |bytes: &Range<u64>| match bytes.is_empty() {
        true => String::new(),
        false => format!(", in bytes {}..{}", bytes.start, bytes.end),
    };
    for lost in &salvaged.lost_rows {
        let rows = match (lost.rows.end, lost.rows.is_empty()) {
            (u64::MAX, _) => format!("rows from {} on", lost.rows.start),
            (_, true) => "no row".to_owned(),
            (end, false) => format!("rows {}..{end}", lost.rows.start),
        };
        let member = lost.member.as_ref().map(|member| format!(" of member {member:?}")).unwrap_or_default();
        line(format!("lost {rows}{member}{}: {}", within(&lost.bytes), lost.reason));
    }
    for (kind, parts) in [("column", &salvaged.lost_columns), ("member", &salvaged.lost_members)] {
        for lost in parts {
            let name = if lost.name.is_empty() { String::new() } else { format!(" {:?}", lost.name) };
            line(format!("lost {kind}{name}{}: {}", within(&lost.bytes), lost.reason));
        }
    }
    line(match &salvaged.report {
        Some(_) => format!("saved {}", screen::count(salvaged.rows, "row")),
        None => "saved nothing".to_owned(),
    });
}
