//! The command `pentaglot`: parses arguments, calls [`pentaglot::job`], prints. stdout is for data, stderr for
//! messages.

mod args;
mod bus_error;
mod cat;
#[cfg(feature = "cluster")]
mod cluster;
mod convert;
mod count;
mod describe;
mod diff;
mod dump;
mod formats;
mod hash;
mod help;
mod inspect;
#[cfg(feature = "mongodb")]
mod mongodb;
mod open;
mod pager;
mod plot;
mod process;
mod progress;
mod query;
mod salvage;
mod schema;
mod screen;
mod secrets;
#[cfg(feature = "sql")]
mod sql;
mod stdout;
mod store;
mod table;
mod types;
mod validate;
mod view;

use std::ffi::OsString;
use std::io::Read;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use clap::FromArgMatches;
use pentaglot::{Control, Error, ErrorKind, Hint, Registry};

use args::{Cli, Verb};
use secrets::Secrets;

/// The common context of all verbs.
struct Session {
    registry: Registry,
    /// The addresses behind the names that verbs see.
    #[cfg(feature = "mongodb")]
    secrets: Secrets,
    global: args::Global,
}

/// The result of a verb: a status, or an error and its file.
type Outcome = Result<Status, Failure>;

/// Exit statuses, worse ones greater.
type Status = u8;

const DONE: Status = 0;
const INTERRUPTED: Status = 130;

/// Lines of a text file are counted for an error up to this offset.
const TEXT_BYTES: u64 = 64 << 20;

/// An error and the file that it is about.
struct Failure {
    file: Option<String>,
    error: Error,
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure { file: error.output().or(error.input()).map(str::to_owned), error }
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Error::from(error).into()
    }
}

/// Adds the file name to an error, unless the error is about the output or already names an input.
trait About<T> {
    fn about(self, file: &str) -> Result<T, Failure>;
}

impl<T> About<T> for pentaglot::Result<T> {
    fn about(self, file: &str) -> Result<T, Failure> {
        self.map_err(|error| {
            let file = error.output().or(error.input()).unwrap_or(file).to_owned();
            Failure { file: Some(file), error }
        })
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

    /// The line of the faulty byte in a text file whose reader does not count lines.
    fn text_line(&self) -> Option<u64> {
        let is_text = matches!(self.error.format()?, "ds" | "bsondf" | "mtx");
        let (true, None, Some(offset)) = (is_text, self.error.line_number(), self.error.offset()) else {
            return None;
        };
        let mut bytes = Vec::new();
        std::fs::File::open(self.file.as_deref()?)
            .ok()?
            .take(offset.min(TEXT_BYTES))
            .read_to_end(&mut bytes)
            .ok()?;
        // The same formats also have binary forms.
        let text = bytes.len() as u64 == offset
            && bytes.trim_ascii_start().first().is_some_and(|first| b"{[%\"".contains(first));
        text.then(|| bytes.iter().filter(|byte| **byte == b'\n').count() as u64 + 1)
    }

    /// A suggestion for a file that does not exist: its folder, or a file that differs only in its extension.
    fn next_step(&self) -> Option<String> {
        let path = Path::new(self.file.as_deref().filter(|name| !name.contains("://"))?);
        if self.error.kind() != ErrorKind::Io || path.exists() {
            return None;
        }
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let entries = match std::fs::read_dir(folder) {
            Ok(entries) => entries,
            Err(_) if folder.exists() => return None,
            Err(_) => return Some(format!("there is no folder {}", folder.display())),
        };
        if path.to_string_lossy().contains(['*', '?', '[']) {
            return Some(
                "a name is one file here; convert, count, inspect and others take patterns".to_owned(),
            );
        }
        let similar = entries.flatten().map(|entry| entry.path());
        let mut similar: Vec<_> = similar
            .filter(|other| other.file_stem() == path.file_stem() && other.file_name() != path.file_name())
            .collect();
        similar.sort();
        Some(format!("there is {}", path.with_file_name(similar.first()?.file_name()?).display()))
    }

    /// Prints the error in one line and returns the status. A closed pipe is success.
    fn report(mut self) -> Status {
        if self.error.is_broken_pipe() {
            return DONE;
        }
        if let Some(line) = self.text_line() {
            self.error = self.error.line(line);
        }
        let text = match &self.file {
            Some(file) => format!("{file}: {}", self.error),
            None => self.error.to_string(),
        };
        let advice = self.error.advice().map(advice).or_else(|| self.next_step());
        let advice = advice.map(|advice| screen::escape(&advice));
        screen::say_with(&screen::escape(&text), advice.as_deref());
        self.status()
    }
}

/// The long options of the verb that runs, which hints name.
static OPTIONS: Mutex<Vec<String>> = Mutex::new(Vec::new());

fn has_option(name: &str) -> bool {
    OPTIONS.lock().unwrap_or_else(PoisonError::into_inner).iter().any(|option| option == name)
}

/// Whether the verb that runs is `sql`, which has no `-O`.
static IS_SQL: AtomicBool = AtomicBool::new(false);

/// A hint of the library, with the flags of the command line.
fn advice(hint: &Hint) -> String {
    let is_sql = IS_SQL.load(Ordering::Relaxed);
    match hint {
        Hint::From | Hint::To if is_sql => "STORED AS names one".to_owned(),
        Hint::FromOne(format) if is_sql => {
            format!("try CREATE EXTERNAL TABLE … STORED AS {}", format.to_uppercase())
        }
        Hint::Type if is_sql => "CREATE EXTERNAL TABLE … OPTIONS (type '…') gives the type".to_owned(),
        Hint::From => "--from names one".to_owned(),
        Hint::FromOne(format) => format!("try --from {format}"),
        Hint::To => "--to names one".to_owned(),
        Hint::Type => "--type gives the type".to_owned(),
        Hint::Force => "--force replaces it".to_owned(),
        Hint::AllowLossy(kinds) if has_option("allow-lossy") => {
            format!("--allow-lossy={kinds} permits it")
        }
        Hint::AllowLossy(kinds) => format!("convert with --allow-lossy={kinds} permits it"),
        Hint::Limit(name) => format!("--{name} raises the limit"),
        Hint::Option(option) if is_sql => {
            let (key, value) = option.split_once('=').unwrap_or((option, ""));
            format!("try CREATE EXTERNAL TABLE … OPTIONS ({key} '{value}')")
        }
        Hint::Option(option) => format!("try -O {option}"),
        Hint::Argument("to", format) => format!("--to {format} names a format"),
        Hint::Argument("type", value) if is_sql => {
            format!("CREATE EXTERNAL TABLE … OPTIONS (type …) gives the type: {value}")
        }
        Hint::Argument("columns" | "exclude" | "where" | "as", _) if is_sql => {
            "the query chooses rows and columns".to_owned()
        }
        Hint::Argument(name, value) if has_option(name) => format!("try --{name} {}", quoted(value)),
        Hint::Argument(name, value) => format!("convert with --{name} {}", quoted(value)),
        Hint::MakeFolder(folder) => format!("mkdir -p '{folder}' makes it"),
        Hint::Advice(text) => text.clone().into_owned(),
        _ => "pentaglot help says more".to_owned(),
    }
}

/// A word as a shell reads it.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "_-.,:=/".contains(c);
    if word.chars().all(is_plain) { word.to_owned() } else { format!("'{}'", word.replace('\'', r"'\''")) }
}

/// Runs the command with these arguments, of which the first is its own name, and returns its exit status. It sets the
/// signal handlers and the panic hook of the process.
pub fn run_command(words: &[OsString]) -> u8 {
    process::ignore_file_size_signal();
    let (words, secrets) = Secrets::hide(words);
    let parsed = help::command().try_get_matches_from(&words).and_then(|found| {
        *OPTIONS.lock().unwrap_or_else(PoisonError::into_inner) = help::long_options(&found);
        Cli::from_arg_matches(&found)
    });
    let Cli { verb, mut global } = match parsed {
        Ok(cli) => cli,
        // No verb: the help, on stderr and with the status of a usage error.
        Err(help) if help.kind() == clap::error::ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            let _ = help.print();
            return 2;
        }
        Err(error) if error.use_stderr() => {
            let words: Vec<String> = words.iter().map(|word| word.to_string_lossy().into()).collect();
            screen::say(&screen::escape(&help::parse_error(&error, &words)));
            return 2;
        }
        Err(help) => {
            // `--help` and `--version`: printing them may fail.
            let shown = screen::show(&help.render().ansi().to_string());
            return shown.map_or_else(|error| Failure::from(error).report(), |()| DONE);
        }
    };
    global.control = Control::new(global.threads);
    process::set_up_allocator(global.limits().max_alloc, global.control.threads());
    catch_interrupts(global.control.clone());
    // A decoder that panics on a broken file is reported as that file's error, in one line.
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if !pentaglot::panic_is_guarded() {
            hook(panic);
        }
    }));
    screen::set_color(global.color);
    IS_SQL.store(matches!(verb, Verb::Sql(_)), Ordering::Relaxed);
    // A shell uses the terminal itself.
    let is_shell = matches!(&verb, Verb::Sql(args) if args.statements.is_none() && args.file.is_none());
    if !global.no_pager && !is_shell {
        pager::allow();
    }
    let session = Session {
        #[cfg(feature = "mongodb")]
        registry: registry(secrets.clone(), pentaglot_mongodb::Collections::from_env()),
        #[cfg(not(feature = "mongodb"))]
        registry: registry(secrets),
        #[cfg(feature = "mongodb")]
        secrets,
        global,
    };
    let status = run(&session, &verb).unwrap_or_else(|failure| failure.report());
    pager::wait();
    status
}

/// The formats, and the remote file systems of this build.
#[cfg_attr(
    not(any(feature = "remote", feature = "mongodb")),
    expect(unused_variables, reason = "this build reaches files only")
)]
fn registry(
    secrets: Secrets,
    #[cfg(feature = "mongodb")] collections: pentaglot_mongodb::Collections,
) -> Registry {
    let registry = Registry::default();
    #[cfg(feature = "mongodb")]
    let registry = registry.with_remote(std::sync::Arc::new(secrets::Revealed {
        secrets: secrets.clone(),
        remote: collections,
    }));
    #[cfg(feature = "remote")]
    let registry = registry.with_remote(std::sync::Arc::new(secrets::Revealed {
        secrets,
        remote: pentaglot_remote::Stores::from_env(),
    }));
    registry
}

/// The query that a shell runs: an interrupt cancels it, not the shell.
static QUERY: Mutex<Option<Control>> = Mutex::new(None);

/// Sets the query that an interrupt cancels.
#[cfg(feature = "sql")]
fn interrupt_query(query: Option<Control>) {
    *QUERY.lock().unwrap_or_else(PoisonError::into_inner) = query;
}

/// The first interrupt cancels the job, which ends at its next batch and drops its output. A second one, or a job that
/// does not end soon because it waits for input, ends the process.
fn catch_interrupts(control: Control) {
    let handler = ctrlc::set_handler(move || {
        // The pager handles interrupts.
        if pager::is_running() {
            return;
        }
        if let Some(query) = &*QUERY.lock().unwrap_or_else(PoisonError::into_inner) {
            query.cancel();
            return;
        }
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
        Verb::Tail(args) => cat::tail(session, args),
        Verb::Sample(args) => cat::sample(session, args),
        Verb::Validate(args) => validate::run(session, args),
        Verb::Dump(args) => dump::run(session, args),
        Verb::Convert(args) => convert::run(session, args),
        Verb::Count(args) => count::run(session, args),
        Verb::Describe(args) => describe::run(session, args),
        Verb::Plot(args) => plot::run(session, args),
        Verb::View(args) => view::run(session, args),
        Verb::Hash(args) => hash::run(session, args),
        Verb::Diff(args) => diff::run(session, args),
        Verb::Salvage(args) => salvage::run(session, args),
        Verb::Store(args) => store::run(session, args),
        Verb::Query(args) => query::run(session, args),
        Verb::Index(args) => query::index(session, args),
        #[cfg(feature = "sql")]
        Verb::Sql(args) => sql::run(session, args),
        #[cfg(not(feature = "sql"))]
        Verb::Sql(_) => Err(without("sql")),
        #[cfg(feature = "cluster")]
        Verb::Cluster(args) => cluster::run(session, args),
        #[cfg(not(feature = "cluster"))]
        Verb::Cluster(_) => Err(without("cluster")),
        #[cfg(feature = "mongodb")]
        Verb::Mongodb(args) => mongodb::run(session, args),
        #[cfg(not(feature = "mongodb"))]
        Verb::Mongodb(_) => Err(without("mongodb")),
        Verb::Type(args) => types::run(session, args),
        Verb::Formats(args) => formats::run(session, args),
        Verb::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(*shell, &mut help::command(), "pentaglot", &mut script);
            screen::print(&script)?;
            Ok(DONE)
        }
        Verb::Man => {
            let mut page = Vec::new();
            let command = help::command();
            clap_mangen::Man::new(command.clone()).render(&mut page)?;
            for verb in command.get_subcommands() {
                let name = format!("pentaglot-{}", verb.get_name());
                clap_mangen::Man::new(verb.clone().name(name)).render(&mut page)?;
            }
            screen::print(&page)?;
            Ok(DONE)
        }
    }
}

/// A verb that this build does not have.
#[cfg(not(all(feature = "sql", feature = "mongodb", feature = "cluster")))]
fn without(feature: &'static str) -> Failure {
    let advice = format!("cargo install --path crates/cli --features {feature}");
    let error = Error::unsupported(format!("this build has no {feature}: it needs the feature `{feature}`"));
    error.hint(Hint::Advice(advice.into())).into()
}

/// Runs a verb for each of several files and of those that patterns match: all are done, the highest status is returned.
fn for_each(session: &Session, files: &[String], mut run: impl FnMut(&str) -> Outcome) -> Outcome {
    let mut highest = DONE;
    for file in files {
        match pentaglot::job::expand(&session.registry, &[file]) {
            Ok(found) => {
                for file in found {
                    highest = highest.max(run(&file).unwrap_or_else(|failure| failure.report()));
                    if highest == INTERRUPTED {
                        return Ok(highest);
                    }
                }
            }
            Err(error) => highest = highest.max(Failure::from(error).report()),
        }
    }
    Ok(highest)
}
