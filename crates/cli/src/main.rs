//! The command `pentaglot`: parses arguments, calls [`pentaglot::job`], prints. stdout is data, stderr is talk.

mod args;
mod cat;
mod convert;
mod dump;
mod formats;
mod inspect;
mod progress;
mod query;
mod schema;
mod screen;
mod table;
mod types;
mod validate;

use std::process::ExitCode;

use clap::{CommandFactory, Parser};
use pentaglot::{Control, Error, ErrorKind, Hint, Registry};

use args::{Cli, Verb};

/// What a verb needs beside its own arguments.
struct Session {
    registry: Registry,
    global: args::Global,
}

/// How a verb ended: a status, or an error and the file that it is about.
type Outcome = Result<Status, Failure>;

/// Exit statuses, worse ones greater.
type Status = u8;

const DONE: Status = 0;
const INTERRUPTED: Status = 130;

/// An error and the file that it is about.
struct Failure {
    file: Option<String>,
    error: Error,
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure { file: None, error }
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Error::from(error).into()
    }
}

/// Names the file that an error is about.
trait About<T> {
    fn about(self, file: &str) -> Result<T, Failure>;
}

impl<T> About<T> for pentaglot::Result<T> {
    fn about(self, file: &str) -> Result<T, Failure> {
        self.map_err(|error| Failure { file: Some(file.to_owned()), error })
    }
}

impl Failure {
    fn status(&self) -> Status {
        match self.error.kind() {
            ErrorKind::Truncated | ErrorKind::Malformed => 1,
            ErrorKind::Lossy => 3,
            ErrorKind::Limit => 4,
            ErrorKind::Cancelled => INTERRUPTED,
            _ => 2,
        }
    }

    /// Prints the one line and gives the status. A closed pipe is success.
    fn report(&self) -> Status {
        if self.error.is_broken_pipe() {
            return DONE;
        }
        let mut text = match &self.file {
            Some(file) => format!("{file}: {}", self.error),
            None => self.error.to_string(),
        };
        if let Some(hint) = self.error.advice() {
            text.push_str(&format!(" ({})", advice(hint)));
        }
        screen::say(&screen::escape(&text));
        self.status()
    }
}

/// A hint of the library in the words of the command line.
fn advice(hint: &Hint) -> String {
    match hint {
        Hint::From => "--from names one".to_owned(),
        Hint::To => "--to names one".to_owned(),
        Hint::Type => "--type gives the type".to_owned(),
        Hint::Force => "--force replaces it".to_owned(),
        Hint::AllowLossy => "--allow-lossy permits it".to_owned(),
        Hint::Limit(name) => format!("--{name} raises the limit"),
        Hint::Option(option) => format!("try -O {option}"),
        Hint::Advice(text) => text.clone().into_owned(),
        other => format!("{other:?}"),
    }
}

fn main() -> ExitCode {
    let Cli { verb, mut global } = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) if error.use_stderr() => {
            // One line; `--help` says the rest.
            let text = error.to_string();
            let lines: Vec<&str> = text.lines().map(str::trim).take_while(|line| !line.is_empty()).collect();
            let line = lines.join(" ");
            screen::say(line.strip_prefix("error: ").unwrap_or(&line));
            return ExitCode::from(2);
        }
        Err(help) => help.exit(),
    };
    global.control = Control::new(global.threads);
    catch_interrupts(global.control.clone());
    // A decoder that panics on a broken file is reported as that file's error, in one line.
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if !pentaglot::panic_is_guarded() {
            hook(panic);
        }
    }));
    screen::set_color(global.color);
    let session = Session { registry: Registry::default(), global };
    let status = run(&session, &verb).unwrap_or_else(|failure| failure.report());
    ExitCode::from(status)
}

/// The first interrupt ends the job at its next batch, which drops its output. A second one, or a job that does not end
/// soon because it waits for input, ends the process.
fn catch_interrupts(control: Control) {
    let handler = ctrlc::set_handler(move || {
        if control.is_cancelled() {
            std::process::exit(INTERRUPTED.into());
        }
        control.cancel();
        std::thread::spawn(|| {
            std::thread::sleep(std::time::Duration::from_secs(2));
            std::process::exit(INTERRUPTED.into());
        });
    });
    if let Err(error) = handler {
        screen::say(&format!("cannot catch interrupts: {error}"));
    }
}

fn run(session: &Session, verb: &Verb) -> Outcome {
    match verb {
        Verb::Inspect(args) => inspect::run(session, args),
        Verb::Schema(args) => schema::run(session, args),
        Verb::Cat(args) => cat::run(session, args),
        Verb::Head(args) => cat::head(session, args),
        Verb::Validate(args) => validate::run(session, args),
        Verb::Dump(args) => dump::run(session, args),
        Verb::Convert(args) => convert::run(session, args),
        Verb::Query(args) => query::run(session, args),
        Verb::Index(args) => query::index(session, args),
        Verb::Type(args) => types::run(session, args),
        Verb::Formats(args) => formats::run(session, args),
        Verb::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(*shell, &mut Cli::command(), "pentaglot", &mut script);
            screen::print(&script)?;
            Ok(DONE)
        }
        Verb::Man => {
            let mut page = Vec::new();
            clap_mangen::Man::new(Cli::command()).render(&mut page)?;
            for verb in Cli::command().get_subcommands() {
                let name = format!("pentaglot-{}", verb.get_name());
                clap_mangen::Man::new(verb.clone().name(name)).render(&mut page)?;
            }
            screen::print(&page)?;
            Ok(DONE)
        }
    }
}

/// Runs a verb for each of several files: all are done, the highest status is returned.
fn for_each(files: &[String], mut run: impl FnMut(&str) -> Outcome) -> Outcome {
    let mut highest = DONE;
    for file in files {
        highest = highest.max(run(file).unwrap_or_else(|failure| failure.report()));
        if highest == INTERRUPTED {
            break;
        }
    }
    Ok(highest)
}
