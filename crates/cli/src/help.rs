//! Help: the verbs by purpose, and messages about arguments that do not parse.

use std::num::IntErrorKind;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, ArgMatches, Command, CommandFactory};

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
    let command = Cli::command();
    // `store get`: the innermost verb, and its whole name.
    let (mut verb, mut name) = (None, String::new());
    for word in arguments.iter().skip(1) {
        if let Some(inner) = verb.unwrap_or(&command).find_subcommand(word) {
            name.push_str(&format!(" {word}"));
            verb = Some(inner);
        }
    }
    let mut line = worded(error, verb, name.trim_start(), arguments).unwrap_or_else(|| first_lines(error));
    let suggested =
        [ContextKind::SuggestedSubcommand, ContextKind::SuggestedArg, ContextKind::SuggestedValue]
            .into_iter()
            .find_map(|kind| match error.get(kind) {
                Some(ContextValue::String(text)) => Some(text.clone()),
                // The most similar one comes last.
                Some(ContextValue::Strings(texts)) => texts.last().cloned(),
                _ => None,
            });
    // The parser also suggests options that have little in common with the given one.
    let first = |text: &str| text.trim_start_matches('-').chars().next();
    let found = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(found)) if error.kind() == ErrorKind::UnknownArgument => first(found),
        _ => None,
    };
    if let Some(suggested) = suggested.filter(|text| found.is_none() || first(text) == found) {
        line.push_str(&format!("; did you mean {suggested}?"));
    }
    line.push_str(&format!(" (see pentaglot help{name})"));
    line
}

/// The long options of the verb that was parsed.
pub(crate) fn long_options(found: &ArgMatches) -> Vec<String> {
    let command = Cli::command();
    let (mut verb, mut found) = (&command, found);
    while let Some((name, inner)) = found.subcommand() {
        let Some(subcommand) = verb.find_subcommand(name) else { break };
        (verb, found) = (subcommand, inner);
    }
    verb.get_arguments().filter_map(|argument| argument.get_long()).map(str::to_owned).collect()
}

/// The first paragraph of the parser's own message, for rare errors.
fn first_lines(error: &clap::Error) -> String {
    let text = error.to_string();
    let lines: Vec<&str> = text.lines().map(str::trim).take_while(|line| !line.is_empty()).collect();
    let line = lines.join(" ");
    line.strip_prefix("error: ").unwrap_or(&line).to_owned()
}

/// The error as other messages say it: the place, what is expected, what is found.
/// `name` is the whole name of the verb.
fn worded(error: &clap::Error, verb: Option<&Command>, name: &str, arguments: &[String]) -> Option<String> {
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    // `--rows <A..B>` is called by its flag.
    let argument = || text(ContextKind::InvalidArg).map(flag);
    Some(match error.kind() {
        ErrorKind::InvalidSubcommand => {
            let found = text(ContextKind::InvalidSubcommand)?;
            match verb {
                Some(_) => format!("{name} has no verb {found:?}"),
                None => format!("there is no verb {found:?}"),
            }
        }
        ErrorKind::UnknownArgument => {
            let found = text(ContextKind::InvalidArg)?;
            let is_dashed = found.starts_with('-');
            match value_of(found, verb?, arguments) {
                Some((argument, option, value)) if argument.is_require_equals_set() && !is_dashed => {
                    format!("{option}: write {option}={value}")
                }
                Some((argument, option, value)) if !argument.is_require_equals_set() && is_dashed => {
                    format!("{option}: expected a value that does not begin with -, found {value:?}")
                }
                _ if is_dashed => {
                    format!("{name} has no option {found}")
                }
                _ => format!("unexpected argument {found:?}"),
            }
        }
        ErrorKind::InvalidValue => {
            let expected = match error.get(ContextKind::ValidValue) {
                Some(ContextValue::Strings(words)) if !words.is_empty() => {
                    format!("one of {}", words.join(", "))
                }
                _ => "a value".to_owned(),
            };
            let found = text(ContextKind::InvalidValue).filter(|found| !found.is_empty());
            let found = found.map_or("nothing".to_owned(), |found| format!("{found:?}"));
            format!("{}: expected {expected}, found {found}", argument()?)
        }
        ErrorKind::ValueValidation => {
            let source = std::error::Error::source(error)?;
            let found = text(ContextKind::InvalidValue)?;
            format!("{}: {}", argument()?, value_error(source, found))
        }
        ErrorKind::MissingRequiredArgument => {
            let Some(ContextValue::Strings(missing)) = error.get(ContextKind::InvalidArg) else {
                return None;
            };
            let usage = match error.get(ContextKind::Usage) {
                Some(ContextValue::StyledStr(usage)) => usage.to_string(),
                _ => return None,
            };
            let usage = usage.trim_start_matches("Usage:").trim();
            format!("missing {}; usage: {usage}", missing.join(" and "))
        }
        _ => return None,
    })
}

/// The flag of an argument such as `--rows <A..B>` or `--progress[=<WHEN>]`; the name of one without a flag.
fn flag(argument: &str) -> &str {
    match argument.starts_with('-') {
        true => argument.split([' ', '[', '=']).next().unwrap_or(argument),
        false => argument,
    }
}

/// The option before a word, and that word: `--rows -1..2`, `--progress always`.
fn value_of<'a>(found: &str, verb: &Command, arguments: &'a [String]) -> Option<(Arg, &'a str, &'a str)> {
    let command = Cli::command();
    let option = |word: &str| {
        let same = |argument: &&Arg| match word.strip_prefix("--") {
            Some(long) => argument.get_long() == Some(long),
            None => word
                .strip_prefix('-')
                .is_some_and(|short| argument.get_short().is_some_and(|own| short.chars().eq([own]))),
        };
        let takes = |argument: &&Arg| argument.get_action().takes_values();
        verb.get_arguments().chain(command.get_arguments()).filter(takes).find(same).cloned()
    };
    let pairs = arguments.windows(2).filter_map(|pair| Some((pair.first()?.as_str(), pair.get(1)?.as_str())));
    let mut values = pairs.filter(|(_, value)| value.starts_with(found));
    values.find_map(|(word, value)| Some((option(word)?, word, value)))
}

/// What is wrong with a value. Our own parsers say what they expect; those of numbers are the standard library's.
fn value_error(source: &(dyn std::error::Error + 'static), found: &str) -> String {
    let said = source.to_string();
    let expected = match source.downcast_ref::<std::num::ParseIntError>().map(|error| error.kind()) {
        Some(IntErrorKind::PosOverflow) => "expected a smaller whole number".to_owned(),
        Some(_) => "expected a whole number".to_owned(),
        None => match said.split_once(" is not in ") {
            Some((_, range)) => format!("expected a whole number in {range}"),
            None => said,
        },
    };
    match expected.starts_with("expected") && !expected.contains(", found ") {
        true => format!("{expected}, found {found:?}"),
        false => expected,
    }
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
                "there is no verb \"inspct\"; did you mean inspect? (see pentaglot help)",
            ),
            (
                &["pentaglot", "cnvert", "x", "y"],
                "there is no verb \"cnvert\"; did you mean convert? (see pentaglot help)",
            ),
            (&["pentaglot", "store", "foo"], "store has no verb \"foo\" (see pentaglot help store)"),
            (
                &["pentaglot", "store", "get", "a", "b", "--forc"],
                "store get has no option --forc; did you mean --force? (see pentaglot help store get)",
            ),
            (
                &["pentaglot", "store", "get", "a", "b", "--allow-lossy", "precision"],
                "--allow-lossy: write --allow-lossy=precision (see pentaglot help store get)",
            ),
            (
                &["pentaglot", "inspect", "--jsn", "x"],
                "inspect has no option --jsn; did you mean --json? (see pentaglot help inspect)",
            ),
            (
                &["pentaglot", "cat", "x", "--output", "tabel"],
                "--output: expected one of table, json, jsonl, csv, arrow, found \"tabel\"; did you mean table? \
                 (see pentaglot help cat)",
            ),
            (
                &["pentaglot", "inspect"],
                "missing <FILE>...; usage: pentaglot inspect <FILE>... (see pentaglot help inspect)",
            ),
            (
                &["pentaglot", "convert"],
                "missing <FILE>...; usage: pentaglot convert [OPTIONS] <IN>... <OUT> (see pentaglot help convert)",
            ),
        ] {
            assert_eq!(parse_error_of(arguments), expected);
        }
    }

    fn parse_error_of(arguments: &[&str]) -> String {
        let words: Vec<String> = arguments.iter().map(ToString::to_string).collect();
        let error = command().try_get_matches_from(&words).unwrap_err();
        parse_error(&error, &words)
    }

    #[test]
    fn a_wrong_value_is_named_once_with_what_is_expected() {
        for (arguments, expected) in [
            (&["-n", "x"][..], "-n: expected a whole number, found \"x\""),
            (&["-n", ""], "-n: expected a whole number, found \"\""),
            (&["-n"], "-n: expected a value, found nothing"),
            (&["-n", "-3"], "-n: expected a value that does not begin with -, found \"-3\""),
            (&["--rows", "-1..2"], "--rows: expected a value that does not begin with -, found \"-1..2\""),
            (
                &["-n", "99999999999999999999"],
                "-n: expected a smaller whole number, found \"99999999999999999999\"",
            ),
            (&["--max-depth=-1"], "--max-depth: expected a whole number in 0..=4294967295, found \"-1\""),
            (&["--max-alloc=1X"], "--max-alloc: expected a size such as 512M, found \"1X\""),
            (&["--rows", "5"], "--rows: expected rows as A..B, found \"5\""),
            (&["-O", "zz"], "-O: expected KEY=VALUE, found \"zz\""),
            (
                &["--type", "@no-such-file"],
                "--type: cannot read no-such-file: No such file or directory (os error 2)",
            ),
            (&["--color", ""], "--color: expected one of auto, always, never, found nothing"),
            (&["--frm", "csv"], "cat has no option --frm; did you mean --from?"),
            (&["--ogress"], "cat has no option --ogress"),
            (&["y"], "unexpected argument \"y\""),
            (&["-n", "1", "1"], "unexpected argument \"1\""),
            (&["--progress", "always"], "--progress: write --progress=always"),
            (&["--progress", "-Z"], "cat has no option -Z"),
        ] {
            let arguments: Vec<&str> = ["pentaglot", "cat", "x"].iter().chain(arguments).copied().collect();
            assert_eq!(parse_error_of(&arguments), format!("{expected} (see pentaglot help cat)"));
        }
    }
}
