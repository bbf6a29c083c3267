//! `convert`: one format to another.

use std::io::Write;
use std::path::Path;

use pentaglot::hub::{LossKinds, Plan};
use pentaglot::job::{self, Conversion, ConvertOptions, Members, Report, Target, Verified, parse_columns};
use pentaglot::{Error, Hint, Sink};
use serde_json::{Value, json};

use crate::args::Convert;
use crate::progress::Progress;
use crate::screen::{self, escape};
use crate::{About, DONE, Outcome, Session};

pub(crate) fn run(session: &Session, args: &Convert) -> Outcome {
    if args.inputs().is_empty() {
        let message = "missing <OUT>; usage: pentaglot convert [OPTIONS] <IN>... <OUT>";
        return Err(Error::usage(message).hint(Hint::Advice("see pentaglot help convert".into())).into());
    }
    check_kinds(args)?;
    check_folder(args.output())?;
    if args.verify && args.output() == "-" {
        return Err(Error::usage("output to a pipe cannot be verified").into());
    }
    let mut options = ConvertOptions::default();
    options.open = args.open.options(&session.global);
    options.to = args.to.clone();
    options.as_type = args.as_type.clone();
    options.columns = args.columns.as_deref().map(parse_columns);
    options.changes = args.changes.of_columns();
    options.rows = args.rows.clone();
    options.filter = args.filter.clone();
    options.allow_lossy = args.allow_lossy.unwrap_or_default();
    options.force = args.force;
    options.verify = args.verify;
    options.batch_rows = session.global.batch_rows;
    let input = label(args.inputs());
    let members = Members::plan(&session.registry, args.inputs(), args.output(), &options).about(&input)?;
    if let Some(members) = members {
        return run_members(session, args, members, &input);
    }
    let conversion =
        Conversion::plan(&session.registry, args.inputs(), args.output(), &options).about(&input)?;
    if args.output() == "-" && !is_text(conversion.target()) {
        screen::check_binary(conversion.target().format.info().id)?;
    }
    if args.dry_run {
        show(&conversion.plan, args)?;
        conversion.check().about(&input)?;
        if !args.json {
            session.say_notes(&input, &conversion.opened().document.summary().notes);
        }
        session.say_notes(args.output(), conversion.notes());
        // The parts of a split output have other names.
        let keys = ["split-rows", "out.split-rows"];
        if !args.open.options.iter().any(|(key, _)| keys.contains(&key.as_str())) {
            say_existing(session, args)?;
        }
        return Ok(DONE);
    }
    if session.global.verbose {
        screen::say(escape_lines(&conversion.plan).trim_end());
    }
    if let Some(file) = &args.receipt {
        check_receipt(session, file, args)?;
    }
    // An existing receipt is an error before anything is written.
    let receipt =
        args.receipt.as_ref().map(|file| job::create(&session.registry, file, args.force)).transpose()?;
    let about = receipt.as_ref().map(|_| about(&conversion));
    let progress = Progress::follow(&session.global);
    let report = match args.output() {
        "-" => conversion.run_into(screen::sink()),
        output => conversion.run_to(&session.registry, output, args.force),
    };
    drop(progress);
    let report = report.about(&input)?;
    if let (Some(sink), Some(about)) = (receipt, about) {
        write_receipt(sink, about, args, &report)?;
    }
    print_report(session, args, report, &input)
}

/// All members of the input at once.
fn run_members(session: &Session, args: &Convert, members: Members, input: &str) -> Outcome {
    if args.verify || args.receipt.is_some() {
        return Err(
            Error::usage("a conversion of several members cannot be verified or have a receipt").into()
        );
    }
    if args.dry_run {
        show(&members.plan, args)?;
        members.plan.check(args.allow_lossy.unwrap_or_default()).about(input)?;
        if !Path::new(args.output()).is_dir() {
            say_existing(session, args)?;
        }
        return Ok(DONE);
    }
    let progress = Progress::follow(&session.global);
    let report = members.run(args.force);
    drop(progress);
    print_report(session, args, report.about(input)?, input)
}

/// Prints the report of a run.
fn print_report(session: &Session, args: &Convert, report: Report, input: &str) -> Outcome {
    if !session.global.quiet {
        // Notes on several inputs name the input.
        let of_input = if args.inputs().len() > 1 { String::new() } else { format!("{input}: ") };
        let of_output = format!("{}: ", args.output());
        for (name, notes) in [(of_input, &report.input_notes), (of_output, &report.notes)] {
            notes.iter().for_each(|note| screen::say(&escape(&format!("{name}note: {note}"))));
        }
        if !args.json {
            let lines = report.lost.iter().map(|lost| format!("{}: note: {lost}", args.output()));
            lines.for_each(|line| screen::say(&escape(&line)));
        }
    }
    if args.json {
        let notes = [report.input_notes, report.notes].concat();
        let given = match args.inputs() {
            [one] => json!(one),
            several => json!(several),
        };
        let lost = report.lost.iter().map(|lost| {
            json!({
                "kind": lost.kind.name(), "column": lost.column, "values": lost.values, "example": lost.example,
            })
        });
        let lost: Vec<Value> = lost.collect();
        let object = json!({
            "input": given, "output": args.output(), "rows": report.rows, "bytes": report.bytes,
            "notes": notes, "lost": lost, "verified": report.verified.as_ref().map(identities),
        });
        screen::say_or_print(&object.to_string(), args.output() == "-")?;
    } else if session.global.verbose {
        screen::say(&format!("{}, {}", screen::count(report.rows, "row"), screen::size(report.bytes)));
    }
    Ok(DONE)
}

/// The content of a receipt that is known before the conversion runs.
fn about(conversion: &Conversion) -> Value {
    let target = conversion.target();
    json!({
        "pentaglot": env!("CARGO_PKG_VERSION"),
        "from": conversion.opened().format.info().id,
        "to": target.format.info().id,
        "dialect": target.dialect,
        "plan": object(&conversion.plan),
    })
}

fn identities(verified: &Verified) -> Value {
    json!({
        "source": verified.source.map(|source| source.to_string()),
        "written": verified.written.to_string(),
        "read": verified.read.to_string(),
    })
}

fn write_receipt(mut sink: Sink, mut about: Value, args: &Convert, report: &Report) -> pentaglot::Result<()> {
    about["input"] = json!(args.inputs());
    about["output"] = json!(args.output());
    about["rows"] = json!(report.rows);
    about["bytes"] = json!(report.bytes);
    about["identities"] = json!(report.verified.as_ref().map(identities));
    sink.write_all(format!("{about:#}\n").as_bytes())?;
    sink.finish().map(drop)
}

/// Whether a target is text that a terminal shows.
fn is_text(target: &Target) -> bool {
    let info = target.format.info();
    let dialect = target.dialect.unwrap_or_default();
    matches!(info.id, "csv" | "jsonl" | "json" | "mtx")
        || ["json", "gfa"].contains(&dialect)
        || dialect.ends_with("-json")
}

/// Says what a run would refuse: an output that exists already. A folder cannot be replaced at all.
fn say_existing(session: &Session, args: &Convert) -> pentaglot::Result<()> {
    let path = Path::new(args.output());
    if args.output() == "-" || args.output().contains("://") || !path.exists() {
        return Ok(());
    }
    if path.is_dir() {
        let error = Error::usage("expected a file to write, found a directory");
        return Err(error.in_output(args.output()));
    }
    if path.is_file() && !args.force {
        session.say_notes(args.output(), &["the file exists already; --force replaces it".to_owned()]);
    }
    Ok(())
}

/// Returns an error if a kind of loss was written after a space, where it is taken for a name.
fn check_kinds(args: &Convert) -> pentaglot::Result<()> {
    let is_kinds = |name: &&String| name.parse::<LossKinds>().is_ok() && !Path::new(name).exists();
    let mut names = args.places.iter();
    match names.find(is_kinds) {
        Some(name) if args.allow_lossy == Some(LossKinds::ALL) => {
            Err(Error::usage(format!("{name:?} is taken for a file: write --allow-lossy={name}")))
        }
        _ => Ok(()),
    }
}

/// Returns an error if the folder of the output is missing, before the input is read.
fn check_folder(output: &str) -> pentaglot::Result<()> {
    let folder = Path::new(output).parent().filter(|folder| !folder.as_os_str().is_empty());
    match folder {
        Some(folder) if output != "-" && !output.contains("://") && is_missing(folder) => {
            let folder = folder.display().to_string();
            let error = Error::usage(format!("there is no folder {folder}")).in_output(output);
            Err(error.hint(Hint::MakeFolder(folder)))
        }
        _ => Ok(()),
    }
}

/// Returns an error if the receipt would replace the output or an input.
fn check_receipt(session: &Session, receipt: &str, args: &Convert) -> pentaglot::Result<()> {
    let place = |name: &str| {
        let path = Path::new(name);
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        path.canonicalize().ok().or_else(|| Some(folder.canonicalize().ok()?.join(path.file_name()?)))
    };
    let is_same = |name: &str| name == receipt || place(name).is_some_and(|own| Some(own) == place(receipt));
    let inputs = job::expand(&session.registry, args.inputs())?;
    let files = inputs.iter().map(|input| job::split_member(input).0);
    match files.chain([args.output()]).find(|name| is_same(name)) {
        Some(name) => Err(Error::usage(format!("the receipt would replace {name}"))),
        None => Ok(()),
    }
}

/// Whether there is no file of this name; other errors are reported when the output is created.
fn is_missing(folder: &Path) -> bool {
    std::fs::metadata(folder).is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound)
}

/// The inputs in a message.
fn label(inputs: &[String]) -> String {
    match inputs {
        [first, more @ ..] if !more.is_empty() => format!("{first} and {} more", more.len()),
        _ => inputs.concat(),
    }
}

/// Prints the plan.
fn show(plan: &Plan, args: &Convert) -> std::io::Result<()> {
    if args.json {
        return screen::print(format!("{}\n", object(plan)).as_bytes());
    }
    let mut out = screen::lines();
    write!(out, "{}", escape_lines(plan))?;
    out.flush()
}

fn escape_lines(plan: &Plan) -> String {
    plan.steps.iter().map(|step| escape(&step.to_string()) + "\n").collect()
}

fn object(plan: &Plan) -> Value {
    let steps: Vec<Value> = plan
        .steps
        .iter()
        .map(|step| {
            let kind = (!step.kinds.is_empty()).then(|| step.kinds.to_string());
            json!({
                "field": step.field, "from": step.from, "to": step.to,
                "verdict": step.verdict.name(), "kind": kind, "note": step.note,
            })
        })
        .collect();
    json!({ "verdict": plan.verdict().name(), "steps": steps })
}
