//! `cat` and `head`: a file's rows.

use pentaglot::Error;
use pentaglot::hub::json::JsonDocument;
use pentaglot::hub::{Form, LossKinds};
use pentaglot::job::{self, Conversion, ConvertOptions, Opened, View, parse_columns};

use crate::args::{Cat, Head, Open, Output};
use crate::progress::Progress;
use crate::{About, DONE, Outcome, Session, screen, table};

pub(crate) fn run(session: &Session, args: &Cat) -> Outcome {
    let mut view = View::default();
    view.rows = args.rows.clone();
    view.columns = args.columns.as_deref().map(parse_columns);
    view.filter = args.filter.clone();
    show(session, &args.file, &args.open, view, args.output)
}

pub(crate) fn head(session: &Session, args: &Head) -> Outcome {
    let mut view = View::default();
    view.rows = Some(0..args.count);
    view.columns = args.columns.as_deref().map(parse_columns);
    view.filter = args.filter.clone();
    show(session, &args.file, &args.open, view, args.output)
}

fn show(session: &Session, file: &str, open: &Open, mut view: View, output: Option<Output>) -> Outcome {
    let output = output.unwrap_or(if screen::stdout_is_terminal() { Output::Table } else { Output::Jsonl });
    if output == Output::Arrow {
        screen::check_binary("arrow")?;
    }
    let options = open.options(&session.global);
    let opened = job::open(&session.registry, file, &options).about(file)?;
    opened.check_options(&options.options).about(file)?;
    view.batch_rows = session.global.batch_rows;
    // A bar would run through what is printed on the same terminal.
    let _progress = (!screen::stdout_is_terminal()).then(|| Progress::follow(&session.global));
    let format = opened.format.info().id;
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

/// The rows as another format's writer writes them.
pub(crate) fn through(session: &Session, opened: Opened, view: View, to: &str) -> pentaglot::Result<()> {
    let mut options = ConvertOptions::default();
    options.columns = view.columns;
    options.rows = view.rows;
    options.filter = view.filter;
    options.batch_rows = view.batch_rows;
    // What is printed is looked at, not kept.
    options.allow_lossy = LossKinds::ALL;
    let target = job::target(&session.registry, to)?;
    Conversion::plan_opened(opened, target, None, &options)?.run_into(screen::sink())?;
    Ok(())
}
