//! The shell: statements that end with `;`, history, completion, `\d`, `\q`. Ctrl-C cancels a query.

use std::path::PathBuf;

use pentaglot::{Control, Error};
use pentaglot_sql::{Engine, split_statements};
use rustyline::completion::Completer;
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::DefaultHistory;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{Editor, Helper};

use super::{one, report};
use crate::args::Sql;
use crate::{DONE, Failure, INTERRUPTED, Outcome, Session, screen};

const HELP: &str = "\
Statements end with ; and may take several lines. A quoted name is a file: SELECT * FROM 'x.csv';
\\d        tables          \\d NAME   columns of a table or a 'file'
\\q        quit            \\?        this help";

const KEYWORDS: &[&str] = &[
    "ALL",
    "AND",
    "AS",
    "ASC",
    "BETWEEN",
    "BY",
    "CASE",
    "CAST",
    "COPY",
    "COUNT",
    "CREATE",
    "CROSS",
    "DESC",
    "DESCRIBE",
    "DISTINCT",
    "DROP",
    "ELSE",
    "END",
    "EXCEPT",
    "EXISTS",
    "EXPLAIN",
    "EXTERNAL",
    "FALSE",
    "FROM",
    "FULL",
    "GROUP",
    "HAVING",
    "IN",
    "INNER",
    "INTERSECT",
    "IS",
    "JOIN",
    "LEFT",
    "LIKE",
    "LIMIT",
    "LOCATION",
    "NOT",
    "NULL",
    "OFFSET",
    "ON",
    "OPTIONS",
    "OR",
    "ORDER",
    "OUTER",
    "OVER",
    "PARTITION",
    "PARTITIONED",
    "RIGHT",
    "SELECT",
    "SHOW",
    "STORED",
    "SUMMARIZE",
    "TABLE",
    "THEN",
    "TO",
    "TRUE",
    "UNION",
    "USING",
    "VALUES",
    "VIEW",
    "WHEN",
    "WHERE",
    "WITH",
];

pub(super) fn run(session: &Session, args: &Sql, engine: &Engine) -> Outcome {
    let cannot = |error: ReadlineError| {
        Failure::from(Error::unsupported(format!("cannot read the terminal: {error}")))
    };
    let mut editor: Editor<Words, DefaultHistory> = Editor::new().map_err(cannot)?;
    editor.set_helper(Some(Words::default()));
    let history = history_file();
    if let Some(file) = &history {
        // There is no history file at first.
        let _ = editor.load_history(file);
    }
    loop {
        if let Some(words) = editor.helper_mut() {
            words.update(engine);
        }
        match editor.readline("sql> ") {
            Ok(line) => {
                let _ = editor.add_history_entry(line.trim());
                if !execute(session, args, engine, line.trim()) {
                    break;
                }
            }
            Err(ReadlineError::Interrupted) => {}
            Err(ReadlineError::Eof) => break,
            Err(error) => return Err(cannot(error)),
        }
    }
    if let Some(file) = &history {
        let saved = file.parent().map_or(Ok(()), std::fs::create_dir_all);
        if saved.is_ok() {
            let _ = editor.save_history(file);
        }
    }
    Ok(DONE)
}

/// Executes one line; returns whether to continue.
fn execute(session: &Session, args: &Sql, engine: &Engine, line: &str) -> bool {
    let statements = match line.strip_prefix('\\') {
        Some("q") => return false,
        Some("?") => {
            screen::say(HELP);
            return true;
        }
        Some("d") => {
            for (name, columns) in engine.tables() {
                screen::say(&screen::escape(&format!("{name} ({})", columns.join(", "))));
            }
            return true;
        }
        Some(command) => match command.strip_prefix("d ") {
            Some(name) => vec![format!("DESCRIBE {}", name.trim())],
            None => {
                screen::say(&screen::escape(&format!("there is no command \\{command} (\\? lists them)")));
                return true;
            }
        },
        None => split_statements(line),
    };
    for statement in statements {
        let control = Control::new(session.global.threads);
        engine.follow(control.clone());
        crate::interrupt_query(Some(control));
        let done = one(session, args, engine, &statement);
        crate::interrupt_query(None);
        if let Err(failure) = done {
            if report(failure) == INTERRUPTED {
                screen::say("the query was cancelled");
            }
            break;
        }
    }
    true
}

/// The file of the history.
fn history_file() -> Option<PathBuf> {
    let folder = std::env::var_os("XDG_STATE_HOME").map(PathBuf::from);
    let folder = folder.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".local/state")))?;
    Some(folder.join("pentaglot/sql_history"))
}

/// The words that Tab completes.
#[derive(Default)]
struct Words {
    names: Vec<String>,
}

impl Words {
    fn update(&mut self, engine: &Engine) {
        let tables = engine.tables();
        self.names =
            tables.into_iter().flat_map(|(table, columns)| [vec![table], columns].concat()).collect();
        self.names.sort();
        self.names.dedup();
    }
}

impl Completer for Words {
    type Candidate = String;

    fn complete(
        &self,
        line: &str,
        at: usize,
        _: &rustyline::Context<'_>,
    ) -> rustyline::Result<(usize, Vec<String>)> {
        let start = line[..at].rfind(|c: char| !c.is_alphanumeric() && c != '_');
        let start =
            start.map_or(0, |before| before + line[before..].chars().next().map_or(1, char::len_utf8));
        let begun = &line[start..at];
        if begun.is_empty() {
            return Ok((start, Vec::new()));
        }
        let fits = |word: &str| {
            word.len() > begun.len()
                && word.get(..begun.len()).is_some_and(|head| head.eq_ignore_ascii_case(begun))
        };
        let names = self.names.iter().filter(|name| fits(name)).cloned();
        let lower = begun.chars().all(|c| c.is_lowercase());
        let keyword = |word: &&str| if lower { word.to_lowercase() } else { (*word).to_owned() };
        let keywords = KEYWORDS.iter().filter(|word| fits(word)).map(keyword);
        Ok((start, names.chain(keywords).collect()))
    }
}

impl Validator for Words {
    fn validate(&self, context: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        let text = context.input().trim();
        let is_whole = text.is_empty() || text.starts_with('\\') || text.ends_with(';');
        Ok(if is_whole { ValidationResult::Valid(None) } else { ValidationResult::Incomplete })
    }
}

impl Hinter for Words {
    type Hint = String;
}

impl Highlighter for Words {}

impl Helper for Words {}
