//! `store`: data under its identity, in chunks that versions and formats share.

use pentaglot::formats::OptionMap;
use pentaglot::job::{Conversion, ConvertOptions, OpenOptions};
use pentaglot::store::{Listed, Store};
use pentaglot::{Error, Hint};
use serde_json::json;

use crate::args::{self, StoreAction, StoreGet, StorePut};
use crate::progress::Progress;
use crate::screen::{self, escape};
use crate::{About, DONE, Outcome, Session, for_each};

/// The environment variable of the store's folder.
const VARIABLE: &str = "PENTAGLOT_STORE";

pub(crate) fn run(session: &Session, args: &args::Store) -> Outcome {
    let folder = match &args.folder {
        Some(folder) if !folder.is_empty() => folder.clone(),
        _ => std::env::var(VARIABLE).ok().filter(|folder| !folder.is_empty()).ok_or_else(|| {
            let advice = Hint::Advice(
                format!("--store STORE or ${VARIABLE} names a folder or a place in a bucket").into(),
            );
            Error::usage("no store is given").hint(advice)
        })?,
    };
    // Only what adds to a store makes one.
    let creates = matches!(args.action, StoreAction::Put(_));
    let store = Store::named(&session.registry, &folder, creates).about(&folder)?;
    let (budget, control) = (session.global.limits().budget(), session.global.control.clone());
    match &args.action {
        StoreAction::Put(args) => put(session, &store, args),
        StoreAction::Get(args) => get(session, &store, args),
        StoreAction::Ls(args) => {
            let listed = store.list(&budget, &control).about(&folder)?;
            let lines: String = match args.json {
                true => listed.iter().map(|one| one.to_json() + "\n").collect(),
                false => table(&listed),
            };
            screen::print(lines.as_bytes())?;
            Ok(DONE)
        }
        StoreAction::Rm(args) => {
            for id in &args.ids {
                let identity = store.remove(id, &budget, &control).about(&folder)?;
                let line = match args.json {
                    true => json!({ "identity": identity }).to_string(),
                    false => identity,
                };
                screen::print(format!("{line}\n").as_bytes())?;
            }
            Ok(DONE)
        }
        StoreAction::Verify(args) => {
            let progress = Progress::follow(&session.global);
            let verification = store.verify(&budget, &control);
            drop(progress);
            let verification = verification.about(&folder)?;
            if args.json {
                screen::print(format!("{}\n", verification.to_json()).as_bytes())?;
            } else {
                let findings = verification.findings.iter();
                let lines: String = findings
                    .map(|found| escape(&format!("{}: {}", found.path, found.message)) + "\n")
                    .collect();
                screen::print(lines.as_bytes())?;
                if session.global.verbose {
                    let (packs, roots) = (verification.packs, verification.roots);
                    let size = screen::size(verification.bytes);
                    screen::say(&format!("{packs} packs, {size}, {roots} roots"));
                }
            }
            Ok(if verification.findings.is_empty() { DONE } else { 1 })
        }
        StoreAction::Gc(args) => {
            let collected = store.collect(&budget, &control).about(&folder)?;
            let line = match args.json {
                true => collected.to_json(),
                false => format!(
                    "dropped {}, {} became {}",
                    screen::count(collected.chunks, "chunk"),
                    screen::size(collected.bytes_before),
                    screen::size(collected.bytes_after)
                ),
            };
            screen::print(format!("{line}\n").as_bytes())?;
            Ok(DONE)
        }
    }
}

fn put(session: &Session, store: &Store, args: &StorePut) -> Outcome {
    if args.name.is_some() && args.files.len() > 1 {
        return Err(Error::usage("a name can be given to one file only").into());
    }
    let options = args.open.options(&session.global);
    for_each(session, &args.files, |file| {
        let opened = session.open(file, &options)?;
        let progress = Progress::follow(&session.global);
        let stored = opened.put(store, args.name.as_deref(), &options);
        drop(progress);
        let stored = stored.about(file)?;
        let line = match args.json {
            true => stored.to_json(file)?,
            false => format!("{}  {}", stored.identity.cid()?, escape(file)),
        };
        screen::print(format!("{line}\n").as_bytes())?;
        if session.global.verbose {
            screen::say(&format!("{} new", screen::size(stored.new_bytes)));
        }
        Ok(DONE)
    })
}

fn get(session: &Session, store: &Store, args: &StoreGet) -> Outcome {
    let mut options = ConvertOptions::default();
    options.open = OpenOptions::default();
    options.open.options = OptionMap::new(args.options.clone());
    options.open.budget = session.global.limits().budget();
    options.open.control = session.global.control.clone();
    options.to = args.to.clone();
    options.allow_lossy = args.allow_lossy.unwrap_or_default();
    options.force = args.force;
    options.batch_rows = session.global.batch_rows;
    let conversion = Conversion::plan_stored(&session.registry, store, &args.id, &args.output, &options)
        .about(&args.id)?;
    let progress = Progress::follow(&session.global);
    let report = match args.output.as_str() {
        "-" => conversion.run_into(screen::sink()),
        output => conversion.run_to(&session.registry, output, args.force),
    };
    drop(progress);
    let report = report.about(&args.id)?;
    if !session.global.quiet {
        let notes = report.notes.iter().map(String::clone).chain(report.lost.iter().map(ToString::to_string));
        notes.for_each(|note| screen::say(&escape(&format!("{}: note: {note}", args.output))));
    }
    if args.json {
        let object =
            json!({ "id": args.id, "output": args.output, "rows": report.rows, "bytes": report.bytes });
        screen::say_or_print(&object.to_string(), args.output == "-")?;
    }
    Ok(DONE)
}

/// Lines whose columns are aligned; the identity comes first.
fn table(listed: &[Listed]) -> String {
    let cells = |one: &Listed| {
        [one.rows.to_string(), one.columns.to_string(), one.bytes.to_string(), one.shared_bytes.to_string()]
    };
    let mut widths = [0; 4];
    for one in listed {
        widths.iter_mut().zip(cells(one)).for_each(|(width, cell)| *width = cell.len().max(*width));
    }
    let line = |one: &Listed| {
        let numbers = widths.iter().zip(cells(one)).map(|(width, cell)| format!("{cell:>width$}"));
        let numbers: Vec<String> = numbers.collect();
        let line =
            format!("{}  {}  {}  {}", one.identity, numbers.join("  "), one.time_text(), escape(&one.name));
        format!("{}\n", line.trim_end())
    };
    listed.iter().map(line).collect()
}
