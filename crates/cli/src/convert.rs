//! `convert`: one format to another.

use std::io::Write;

use pentaglot::hub::Plan;
use pentaglot::job::{Conversion, ConvertOptions, parse_columns};
use serde_json::{Value, json};

use crate::args::Convert;
use crate::progress::Progress;
use crate::screen::{self, escape};
use crate::{About, DONE, Outcome, Session};

pub(crate) fn run(session: &Session, args: &Convert) -> Outcome {
    let mut options = ConvertOptions::default();
    options.open = args.open.options(&session.global);
    options.to = args.to.clone();
    options.as_type = args.as_type.clone();
    options.columns = args.columns.as_deref().map(parse_columns);
    options.rows = args.rows.clone();
    options.allow_lossy = args.allow_lossy;
    options.force = args.force;
    options.batch_rows = session.global.batch_rows;
    let conversion =
        Conversion::plan(&session.registry, &args.input, &args.output, &options).about(&args.input)?;
    if args.dry_run {
        return show(&conversion.plan, args);
    }
    if session.global.verbose {
        screen::say(escape_lines(&conversion.plan).trim_end());
    }
    let progress = Progress::follow(&session.global);
    let report = conversion.run(&args.output, args.force);
    drop(progress);
    let report = report.about(&args.input)?;
    if !session.global.quiet {
        for (name, notes) in [(&args.input, &report.input_notes), (&args.output, &report.notes)] {
            notes.iter().for_each(|note| screen::say(&escape(&format!("{name}: note: {note}"))));
        }
    }
    if args.json {
        let notes = [report.input_notes, report.notes].concat();
        let object = json!({
            "input": args.input, "output": args.output, "rows": report.rows, "bytes": report.bytes,
            "notes": notes,
        });
        screen::say_or_print(&object.to_string(), args.output == "-")?;
    } else if session.global.verbose {
        screen::say(&format!("{} rows, {} bytes", report.rows, report.bytes));
    }
    Ok(DONE)
}

/// Prints the plan; its status is what the run's would be.
fn show(plan: &Plan, args: &Convert) -> Outcome {
    if args.json {
        screen::print(format!("{}\n", object(plan)).as_bytes())?;
    } else {
        let mut out = screen::lines();
        write!(out, "{}", escape_lines(plan))?;
        out.flush()?;
    }
    plan.check(args.allow_lossy).about(&args.input)?;
    Ok(DONE)
}

fn escape_lines(plan: &Plan) -> String {
    plan.steps.iter().map(|step| escape(&step.to_string()) + "\n").collect()
}

fn object(plan: &Plan) -> Value {
    let steps: Vec<Value> = plan
        .steps
        .iter()
        .map(|step| {
            json!({
                "field": step.field, "from": step.from, "to": step.to,
                "verdict": step.verdict.name(), "note": step.note,
            })
        })
        .collect();
    json!({ "verdict": plan.verdict().name(), "steps": steps })
}
