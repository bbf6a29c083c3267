//! `sql`: statements over files, and a shell for them.

mod shell;

use std::io::{IsTerminal, Read};
use std::sync::Arc;
use std::time::Duration;

use pentaglot::arrow::array::cast::AsArray;
use pentaglot::job::{Opened, View};
use pentaglot::{Error, Hint};
use pentaglot_sql::{Answer, Cluster, Engine, EngineOptions, split_statements};

use crate::args::{Open, Sql, SqlOutput};
use crate::progress::Progress;
use crate::screen::escape;
use crate::{DONE, Failure, INTERRUPTED, Outcome, Session, Status, bus_error, cat, screen};

/// Seconds that a statement may take on a cluster: what waits for a lost process must end some time.
const CLUSTER_DEADLINE: u64 = 3600;

pub(crate) fn run(session: &Session, args: &Sql) -> Outcome {
    let text = match (&args.statements, &args.file) {
        (Some(text), _) => Some(text.clone()),
        (None, Some(file)) if file != "-" => {
            let text = std::fs::read_to_string(file).map_err(|error| Error::io("cannot read", error));
            Some(text.map_err(|error| Failure { file: Some(file.clone()), error })?)
        }
        (None, None) if std::io::stdin().is_terminal() => None,
        _ => {
            let mut text = String::new();
            let read = std::io::stdin().read_to_string(&mut text);
            read.map_err(|error| Failure {
                file: Some("-".to_owned()),
                error: Error::io("cannot read", error),
            })?;
            Some(text)
        }
    };
    let engine = engine(session, args)?;
    match text {
        None => shell::run(session, args, &engine),
        Some(text) => Ok(statements(session, args, &engine, &text)),
    }
}

fn engine(session: &Session, args: &Sql) -> Result<Engine, Failure> {
    let mut options = EngineOptions::default();
    let none = Open { from: None, type_text: None, options: Vec::new() };
    options.open = none.options(&session.global);
    options.open.in_place = bus_error::permit_map("");
    options.threads = session.global.threads;
    options.batch_rows = session.global.batch_rows;
    options.force = args.force;
    options.allow_lossy = args.allow_lossy.unwrap_or_default();
    if let Some(address) = &args.cluster {
        options.cluster = Some(cluster(session, address)?);
    }
    let deadline = args.deadline.unwrap_or(if args.cluster.is_some() { CLUSTER_DEADLINE } else { 0 });
    options.deadline = (deadline > 0).then(|| Duration::from_secs(deadline));
    Ok(Engine::new(session.registry.clone(), options)?)
}

#[cfg(feature = "cluster")]
fn cluster(session: &Session, address: &str) -> Result<Arc<dyn Cluster>, Failure> {
    let place = crate::cluster::place(session, &[])?;
    Ok(Arc::new(pentaglot_cluster::Client::new(address, place)?))
}

#[cfg(not(feature = "cluster"))]
fn cluster(_: &Session, _: &str) -> Result<Arc<dyn Cluster>, Failure> {
    Err(crate::without("cluster"))
}

/// Runs the statements of a text in turn, up to the first that fails.
fn statements(session: &Session, args: &Sql, engine: &Engine, text: &str) -> Status {
    let statements = split_statements(text);
    if args.write.is_some() && statements.iter().filter(|one| Engine::is_query(one)).count() != 1 {
        return report(
            Error::usage("-o takes the rows of one query: expected one among the statements").into(),
        );
    }
    let is_binary = matches!(args.output, Some(SqlOutput::Arrow | SqlOutput::Parquet));
    if is_binary && args.write.is_none() && statements.iter().filter(|one| Engine::is_query(one)).count() > 1
    {
        return report(Error::usage("arrow and parquet hold the rows of one query: expected one").into());
    }
    for statement in statements {
        let done = match &args.write {
            Some(file) if Engine::is_query(&statement) => {
                let _progress = Progress::follow_statement(&session.global);
                engine.write(&statement, file, args.to.as_deref()).map(drop).map_err(Failure::from)
            }
            _ => one(session, args, engine, &statement),
        };
        if let Err(failure) = done {
            return report(failure);
        }
    }
    DONE
}

/// Runs one statement and prints its result.
fn one(session: &Session, args: &Sql, engine: &Engine, statement: &str) -> Result<(), Failure> {
    let progress = Progress::follow_statement(&session.global);
    let answer = engine.run(statement)?;
    // A bar and rows on one terminal would be written over each other.
    let _progress = (!screen::stdout_is_terminal()).then_some(progress);
    match answer {
        Answer::Rows(rows) => {
            let default = if screen::stdout_is_terminal() { SqlOutput::Table } else { SqlOutput::Jsonl };
            let view = View::default();
            match args.output.unwrap_or(default) {
                SqlOutput::Table if is_plan(&rows) => print_plan(&rows),
                SqlOutput::Table => cat::print_table(&rows, view),
                SqlOutput::Json => cat::json(&rows, view),
                SqlOutput::Jsonl => cat::through(session, rows, view, "jsonl"),
                SqlOutput::Csv => cat::through(session, rows, view, "csv"),
                SqlOutput::Arrow => {
                    screen::check_binary("arrow")?;
                    cat::through(session, rows, view, "arrow-stream")
                }
                SqlOutput::Parquet => {
                    screen::check_binary("parquet")?;
                    cat::through(session, rows, view, "parquet")
                }
            }?;
        }
        Answer::Written(rows) if !session.global.quiet => {
            screen::say(&format!("{} written", screen::count(rows, "row")))
        }
        Answer::Written(_) | Answer::Done => {}
    }
    Ok(())
}

/// Whether the rows of a statement are those of `EXPLAIN`.
fn is_plan(rows: &Opened) -> bool {
    let fields = rows.document.summary().schema.fields();
    fields.iter().map(|field| field.name().as_str()).eq(["plan_type", "plan"])
}

/// Prints plans as they are laid out: a table would cut them.
fn print_plan(rows: &Opened) -> pentaglot::Result<()> {
    for batch in rows.rows(&View::default())? {
        let batch = batch?;
        let texts = |index: usize| batch.column(index).as_string_opt::<i32>();
        let (Some(kinds), Some(plans)) = (texts(0), texts(1)) else { continue };
        for (kind, plan) in kinds.iter().zip(plans) {
            let lines = plan.unwrap_or_default().lines().map(|line| format!("  {}\n", escape(line)));
            let text = format!("{}\n{}", escape(kind.unwrap_or_default()), lines.collect::<String>());
            screen::print(text.as_bytes())?;
        }
    }
    Ok(())
}

/// Prints an error. The status is that of SQL errors, except for an interrupt and a closed pipe.
fn report(mut failure: Failure) -> Status {
    if failure.error.advice() == Some(&Hint::Force) && failure.file.is_some() {
        failure.error = Error::usage(failure.error.to_string())
            .hint(Hint::Advice("--force or OPTIONS (overwrite true) replaces it".into()));
    }
    match failure.report() {
        DONE => DONE,
        INTERRUPTED => INTERRUPTED,
        _ => 2,
    }
}
