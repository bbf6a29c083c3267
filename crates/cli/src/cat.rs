//! `cat`, `head`, `tail` and `sample`: a file's rows.

use std::hash::{BuildHasher, RandomState};

use pentaglot::Error;
use pentaglot::hub::json::JsonDocument;
use pentaglot::hub::{Form, LossKinds};
use pentaglot::job::{self, Conversion, ConvertOptions, Opened, View, parse_columns};

use crate::args::{Cat, Head, Open, Output, Sample, Tail};
use crate::progress::Progress;
use crate::{About, DONE, Outcome, Session, screen, table};

pub(crate) fn run(session: &Session, args: &Cat) -> Outcome {
    let mut view = View::default();
    view.rows = args.rows.clone();
    if let Some(count) = args.count {
        let rows = args.rows.clone().unwrap_or(0..u64::MAX);
        view.rows = Some(rows.start..rows.end.min(rows.start.saturating_add(count)));
    }
    view.columns = args.columns.as_deref().map(parse_columns);
    view.changes = args.changes.of_columns();
    view.filter = args.filter.clone();
    show(session, &args.file, &args.open, view, args.output, Choice::Rows)
}

pub(crate) fn head(session: &Session, args: &Head) -> Outcome {
    let mut view = View::default();
    view.rows = Some(0..args.count);
    view.columns = args.columns.as_deref().map(parse_columns);
    view.filter = args.filter.clone();
    show(session, &args.file, &args.open, view, args.output, Choice::Rows)
}

pub(crate) fn tail(session: &Session, args: &Tail) -> Outcome {
    let mut view = View::default();
    view.columns = args.columns.as_deref().map(parse_columns);
    view.filter = args.filter.clone();
    show(session, &args.file, &args.open, view, args.output, Choice::Last(args.count))
}

pub(crate) fn sample(session: &Session, args: &Sample) -> Outcome {
    let mut view = View::default();
    view.columns = args.columns.as_deref().map(parse_columns);
    view.filter = args.filter.clone();
    // The keys of the standard library's hash maps are random.
    let seed = args.seed.unwrap_or_else(|| RandomState::new().hash_one(0));
    show(session, &args.file, &args.open, view, args.output, Choice::Random(args.count, seed))
}

/// Which rows of the view are shown.
enum Choice {
    /// Those of the view.
    Rows,
    /// The last ones.
    Last(u64),
    /// This many, chosen with this seed.
    Random(u64, u64),
}

impl Choice {
    /// The document of which the view is shown.
    fn of(&self, opened: Opened, view: &mut View) -> pentaglot::Result<Opened> {
        let filtered = |opened: Opened, view: &mut View| match view.filter.take() {
            Some(filter) => opened.filtered(&filter),
            None => Ok(opened),
        };
        match self {
            Choice::Rows => Ok(opened),
            Choice::Last(count) => {
                let opened = filtered(opened, view)?;
                view.rows = Some(opened.last_rows(*count)?);
                Ok(opened)
            }
            Choice::Random(count, seed) => filtered(opened, view)?.sampled(*count, *seed),
        }
    }
}

fn show(
    session: &Session,
    file: &str,
    open: &Open,
    mut view: View,
    output: Option<Output>,
    choice: Choice,
) -> Outcome {
    let output = output.unwrap_or(if screen::stdout_is_terminal() { Output::Table } else { Output::Jsonl });
    if output == Output::Arrow {
        screen::check_binary("arrow")?;
    }
    let mut options = open.options(&session.global);
    // A stream is read twice: to count its rows, and for the chosen ones.
    options.spool = !matches!(choice, Choice::Rows);
    let opened = session.open(file, &options)?;
    view.batch_rows = session.global.batch_rows;
    // A progress bar would mix with the output on the same terminal.
    let _progress = (!screen::stdout_is_terminal()).then(|| Progress::follow(&session.global));
    let format = opened.format.info().id;
    let opened = choice.of(opened, &mut view).map_err(|error| error.in_format(format)).about(file)?;
    match output {
        Output::Json => json(&opened, view),
        Output::Table => print_table(&opened, view),
        Output::Jsonl => through(session, opened, view, "jsonl"),
        Output::Csv => through(session, opened, view, "csv"),
        Output::Arrow => through(session, opened, view, "arrow-stream"),
    }
    .map_err(|error| error.in_format(format))
    .about(file)?;
    Ok(DONE)
}

/// One document in the plain JSON form of its shape.
pub(crate) fn json(opened: &Opened, mut view: View) -> pentaglot::Result<()> {
    view.forms = vec![Form::Table, Form::Dense, Form::Sparse, Form::Array, Form::Value];
    let rows = opened.rows(&view)?;
    let mut document = JsonDocument::begin(screen::bytes(), rows.schema(), pentaglot::job::json_options())?;
    for batch in rows {
        document.write(&batch.map_err(Error::from)?)?;
    }
    let mut out = document.end()?;
    std::io::Write::flush(&mut out)?;
    Ok(())
}

pub(crate) fn print_table(opened: &Opened, mut view: View) -> pentaglot::Result<()> {
    view.forms = vec![Form::Table, Form::Columns, Form::Coo];
    let rows = opened.rows(&view)?;
    table::print(&mut screen::lines(), rows, screen::width())
}

/// The rows, written by the writer of another format.
pub(crate) fn through(session: &Session, opened: Opened, mut view: View, to: &str) -> pentaglot::Result<()> {
    // Filters and casts use the names of the file. A requested cast must be exact, unlike the printed output.
    let mut opened = opened;
    if !view.changes.cast.is_empty() || !view.changes.rename.is_empty() {
        if let Some(filter) = view.filter.take() {
            opened = opened.filtered(&filter)?;
        }
        opened = opened.changed(view.columns.take().as_deref(), &std::mem::take(&mut view.changes))?;
    }
    let mut options = ConvertOptions::default();
    options.columns = view.columns;
    options.changes = view.changes;
    options.rows = view.rows;
    options.filter = view.filter;
    options.batch_rows = view.batch_rows;
    // Printed output is for reading, so losses are allowed.
    options.allow_lossy = LossKinds::ALL;
    let target = job::target(&session.registry, to)?;
    Conversion::plan_opened(opened, target, None, &options)?.run_into(screen::sink())?;
    Ok(())
}
