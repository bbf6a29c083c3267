//! `cat` and `head`: a file's rows.

use std::ops::Range;

use pentaglot::Error;
use pentaglot::hub::Form;
use pentaglot::hub::json::JsonDocument;
use pentaglot::job::{self, Conversion, ConvertOptions, Opened, View, parse_columns};

use crate::args::{Cat, Head, Open, Output};
use crate::progress::Progress;
use crate::{About, DONE, Outcome, Session, screen, table};

pub(crate) fn run(session: &Session, args: &Cat) -> Outcome {
    show(session, &args.file, &args.open, args.columns.as_deref(), args.rows.clone(), args.output)
}

pub(crate) fn head(session: &Session, args: &Head) -> Outcome {
    show(session, &args.file, &args.open, args.columns.as_deref(), Some(0..args.count), args.output)
}

fn show(
    session: &Session,
    file: &str,
    open: &Open,
    columns: Option<&str>,
    rows: Option<Range<u64>>,
    output: Option<Output>,
) -> Outcome {
    let output = output.unwrap_or(if screen::stdout_is_terminal() { Output::Table } else { Output::Jsonl });
    if output == Output::Arrow {
        screen::check_binary("arrow")?;
    }
    let options = open.options(&session.global);
    let opened = job::open(&session.registry, file, &options).about(file)?;
    opened.check_options(&options.options).about(file)?;
    let mut view = View::default();
    view.columns = columns.map(parse_columns);
    view.rows = rows;
    view.batch_rows = session.global.batch_rows;
    // A bar would run through what is printed on the same terminal.
    let _progress =
        (!screen::stdout_is_terminal()).then(|| Progress::follow(opened.source.clone(), &session.global));
    let format = opened.format.info().id;
    match output {
        Output::Json => json(&opened, view, session),
        Output::Table => print_table(&opened, view, session),
        Output::Jsonl => through(session, opened, view, "jsonl"),
        Output::Csv => through(session, opened, view, "csv"),
        Output::Arrow => through(session, opened, view, "arrow-stream"),
    }
    .map_err(|error| error.in_format(format))
    .about(file)?;
    Ok(DONE)
}

/// One document in the plain JSON form of its shape.
fn json(opened: &Opened, mut view: View, session: &Session) -> pentaglot::Result<()> {
    view.forms = vec![Form::Table, Form::Dense, Form::Sparse, Form::Array, Form::Value];
    let rows = opened.rows(&view, &session.global.limits())?;
    let mut document = JsonDocument::begin(screen::bytes(), rows.schema(), pentaglot::job::json_options())?;
    for batch in rows {
        document.write(&batch.map_err(Error::from)?)?;
    }
    let mut out = document.end()?;
    std::io::Write::flush(&mut out)?;
    Ok(())
}

fn print_table(opened: &Opened, mut view: View, session: &Session) -> pentaglot::Result<()> {
    view.forms = vec![Form::Table, Form::Columns, Form::Coo];
    let rows = opened.rows(&view, &session.global.limits())?;
    table::print(&mut screen::lines(), rows, screen::width())
}

/// The rows as another format's writer writes them.
fn through(session: &Session, opened: Opened, view: View, to: &str) -> pentaglot::Result<()> {
    let mut options = ConvertOptions::default();
    options.columns = view.columns;
    options.rows = view.rows;
    options.batch_rows = view.batch_rows;
    options.open.limits = session.global.limits();
    options.open.threads = session.global.threads;
    // What is printed is looked at, not kept.
    options.allow_lossy = true;
    let target = job::target(&session.registry, to)?;
    Conversion::plan_opened(opened, target, None, &options)?.run_into(screen::sink())?;
    Ok(())
}
