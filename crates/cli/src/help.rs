//! Help: the verbs by purpose, and messages about arguments that do not parse.

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Command, CommandFactory};

use crate::args::Cli;

/// The verbs by purpose, in the order of the help.
const GROUPS: &[(&str, &[&str])] = &[
    (
        "Look at a file",
        &["inspect", "schema", "head", "tail", "sample", "cat", "count", "describe", "plot", "view", "dump"],
    ),
    ("Check a file", &["validate", "hash", "diff"]),
    ("Change a file", &["convert", "salvage"]),
    ("Keep data", &["store"]),
    ("Ask files", &["sql", "cluster"]),
    ("Tables in MongoDB", &["mongodb"]),
    ("Ask succinct structures", &["query", "index"]),
    ("Types and formats", &["type", "formats"]),
    ("The command itself", &["help", "completions", "man"]),
];

/// The whole command line, for parsing, help, manual page and completions.
pub(crate) fn command() -> Command {
    let command = Cli::command();
    let mut verbs = String::new();
    for (purpose, names) in GROUPS {
        verbs.push_str(&format!("{purpose}:\n"));
        for name in *names {
            let about = match command.find_subcommand(name).and_then(Command::get_about) {
                Some(about) => about.to_string(),
                None => "This text, or the help of a verb".to_owned(),
            };
            verbs.push_str(&format!("  {name:<12} {about}\n"));
        }
        verbs.push('\n');
    }
    let template = format!(
        "{{about-with-newline}}\nUsage: pentaglot VERB [OPTIONS]\n\n{verbs}Options of every verb:\n{{options}}{{after-help}}"
    );
    command
        .help_template(template)
        .after_help("`pentaglot help VERB` shows a verb's own options, and examples.")
}

/// The error in the arguments, in one line, with a suggestion if there is one.
pub(crate) fn parse_error(error: &clap::Error, arguments: &[String]) -> String {
    let text = error.to_string();
    let lines: Vec<&str> = text.lines().map(str::trim).take_while(|line| !line.is_empty()).collect();
    let line = lines.join(" ");
    let mut line = line.strip_prefix("error: ").unwrap_or(&line).to_owned();
    let suggested =
        [ContextKind::SuggestedSubcommand, ContextKind::SuggestedArg, ContextKind::SuggestedValue]
            .into_iter()
            .find_map(|kind| match error.get(kind) {
                Some(ContextValue::String(text)) => Some(text.clone()),
                // The most similar one comes last.
                Some(ContextValue::Strings(texts)) => texts.last().cloned(),
                _ => None,
            });
    if let Some(suggested) = suggested {
        line.push_str(&format!("; did you mean '{suggested}'?"));
    }
    let command = Cli::command();
    let verb = arguments.iter().skip(1).find(|word| command.find_subcommand(word).is_some());
    match verb {
        Some(verb) if error.kind() != ErrorKind::InvalidSubcommand => {
            line.push_str(&format!(" (see pentaglot help {verb})"));
        }
        _ => line.push_str(" (see pentaglot help)"),
    }
    line
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    fn verbs() -> Vec<String> {
        Cli::command().get_subcommands().map(|verb| verb.get_name().to_owned()).collect()
    }

    #[test]
    fn every_verb_has_one_purpose() {
        let mut grouped: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        grouped.retain(|name| *name != "help");
        grouped.sort_unstable();
        let mut all = verbs();
        all.sort_unstable();
        assert_eq!(grouped, all);
    }

    /// The words of a command as a shell would split them, up to a pipe or redirection.
    fn words(line: &str) -> Vec<String> {
        let mut words = Vec::new();
        let mut rest = line;
        while let Some(at) = rest.find(['\'', '"']) {
            let (before, quoted) = rest.split_at(at);
            let (mark, quoted) = quoted.split_at(1);
            let (inside, after) = quoted.split_once(mark).unwrap();
            words.extend(before.split_whitespace().map(str::to_owned));
            words.push(inside.to_owned());
            rest = after;
        }
        words.extend(rest.split_whitespace().map(str::to_owned));
        words.into_iter().take_while(|word| !["|", ">"].contains(&word.as_str())).collect()
    }

    #[test]
    fn every_verb_has_two_examples_that_parse() {
        for verb in Cli::command().get_subcommands() {
            let name = verb.get_name();
            let text = verb.get_after_help().map(ToString::to_string).unwrap_or_default();
            let start = format!("pentaglot {name}");
            let examples: Vec<&str> =
                text.lines().map(str::trim).filter(|line| line.starts_with(&start)).collect();
            assert_eq!(examples.len(), 2, "{name}: {text}");
            for example in examples {
                if let Err(error) = Cli::try_parse_from(words(example)) {
                    panic!("{example}: {error}");
                }
            }
        }
    }

    #[test]
    fn a_mistyped_word_gets_a_suggestion_and_a_pointer() {
        for (arguments, expected) in [
            (
                &["pentaglot", "inspct", "x"][..],
                "unrecognized subcommand 'inspct'; did you mean 'inspect'? (see pentaglot help)",
            ),
            (
                &["pentaglot", "cnvert", "x", "y"],
                "unrecognized subcommand 'cnvert'; did you mean 'convert'? (see pentaglot help)",
            ),
            (
                &["pentaglot", "inspect", "--jsn", "x"],
                "unexpected argument '--jsn' found; did you mean '--json'? (see pentaglot help inspect)",
            ),
            (
                &["pentaglot", "cat", "x", "--output", "tabel"],
                "invalid value 'tabel' for '--output <FORM>' [possible values: table, json, jsonl, csv, arrow]; \
                 did you mean 'table'? (see pentaglot help cat)",
            ),
            (
                &["pentaglot", "inspect"],
                "the following required arguments were not provided: <FILE>... (see pentaglot help inspect)",
            ),
        ] {
            let words: Vec<String> = arguments.iter().map(ToString::to_string).collect();
            let error = command().try_get_matches_from(&words).unwrap_err();
            assert_eq!(parse_error(&error, &words), expected);
        }
    }
}
