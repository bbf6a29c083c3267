//! Output to a terminal: escaped text, optional colours, stdout and stderr.

use std::io::{self, IsTerminal, Write};

use pentaglot::{Error, Hint, redacted_text};

use crate::args::When;
use crate::pager::Out;

/// Maximum number of characters of an error or note.
const LINE: usize = 500;
/// Maximum number of characters of a value quoted in such a line.
const QUOTE: usize = 200;

/// Writes control characters, and others that a terminal interprets, as escapes.
pub(crate) fn escape(text: &str) -> String {
    let harmless = |character: char| {
        !character.is_control()
            && !matches!(character, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    if text.chars().all(harmless) {
        return text.to_owned();
    }
    let escape = |character: char| match character {
        character if harmless(character) => character.to_string(),
        other => other.escape_default().to_string(),
    };
    text.chars().map(escape).collect()
}

/// The first `width` characters, with an ellipsis if the text is longer.
pub(crate) fn cut(text: &str, width: usize) -> String {
    match text.char_indices().nth(width) {
        None => text.to_owned(),
        Some(_) => text.chars().take(width - 1).chain(['…']).collect(),
    }
}

/// Applies `--color` and `NO_COLOR`.
pub(crate) fn set_color(when: When) {
    match when {
        When::Auto => {}
        When::Always => anstream::ColorChoice::Always.write_global(),
        When::Never => anstream::ColorChoice::Never.write_global(),
    }
}

/// Text in bold (`anstream` removes it if colours are disabled).
pub(crate) fn bold(text: &str) -> String {
    format!("\u{1b}[1m{text}\u{1b}[0m")
}

/// Text in a faint colour, unless colours are disabled.
pub(crate) fn faint(text: &str) -> String {
    format!("\u{1b}[2m{text}\u{1b}[0m")
}

/// Prints one line on stderr, shortened if it is very long. A closed stderr is not an error.
pub(crate) fn say(line: &str) {
    let _ = writeln!(anstream::stderr(), "{}", message(line));
}

/// A line of an error or note as it is printed: long quotations are shortened, then the line.
pub(crate) fn message(line: &str) -> String {
    cut(&cut_quotes(&redacted_text(line)), LINE)
}

/// The text with each quotation shortened to [`QUOTE`] characters.
fn cut_quotes(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(start) = rest.find(['"', '\'', '`']) {
        let (before, quoted) = rest.split_at(start);
        let mark = quoted.chars().next().unwrap_or('"');
        // After a letter it is an apostrophe.
        let opens = !before.chars().next_back().is_some_and(char::is_alphanumeric);
        let mut escaped = false;
        let closing = quoted[1..].find(|character| {
            let closes = character == mark && !escaped;
            escaped = character == '\\' && !escaped;
            closes
        });
        let (inside, after) = match closing.filter(|_| opens) {
            Some(end) => (&quoted[1..=end], &quoted[end + 1..]),
            None => ("", &quoted[1..]),
        };
        out.push_str(before);
        out.push(mark);
        out.push_str(&cut(inside, QUOTE));
        rest = match closing.filter(|_| opens) {
            Some(_) => {
                out.push(mark);
                &after[1..]
            }
            None => after,
        };
    }
    out + rest
}

/// Prints a message followed by advice; only the message is shortened.
pub(crate) fn say_with(message: &str, advice: Option<&str>) {
    match advice {
        None => say(message),
        Some(advice) => {
            let advice = format!(" ({})", cut(advice, LINE / 2));
            say(&(cut(message, LINE - advice.chars().count()) + &advice));
        }
    }
}

/// Writes bytes to stdout unchanged.
pub(crate) fn print(bytes: &[u8]) -> io::Result<()> {
    let mut out = Out;
    out.write_all(bytes)?;
    out.flush()
}

/// Prints text with colours on stdout, unbuffered.
pub(crate) fn show(text: &str) -> io::Result<()> {
    let mut out = lines();
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// A buffered stdout for lines, without colours if they are disabled.
pub(crate) fn lines() -> io::BufWriter<Box<dyn Write>> {
    let out: Box<dyn Write> = match anstream::AutoStream::choice(&io::stdout()) {
        anstream::ColorChoice::Never => Box::new(anstream::StripStream::new(Box::new(Out) as Box<dyn Write>)),
        _ => Box::new(Out),
    };
    io::BufWriter::new(out)
}

/// A buffered stdout for bytes.
pub(crate) fn bytes() -> io::BufWriter<Out> {
    io::BufWriter::new(Out)
}

/// Stdout as a sink.
pub(crate) fn sink() -> pentaglot::Sink {
    pentaglot::Sink::pipe(Out).named(crate::stdout::NAME)
}

/// Returns an error if stdout is a terminal, since binary data would garble it.
pub(crate) fn check_binary(format: &str) -> pentaglot::Result<()> {
    if !stdout_is_terminal() {
        return Ok(());
    }
    let advice = "redirect it: > FILE";
    Err(Error::usage(format!("{format} is binary, and standard output is a terminal"))
        .hint(Hint::Advice(advice.into())))
}

/// The number of characters per line of the terminal; `None` if stdout is not a terminal.
pub(crate) fn width() -> Option<usize> {
    if !stdout_is_terminal() {
        return None;
    }
    let said = || std::env::var("COLUMNS").ok()?.parse().ok();
    let width = match terminal_size::terminal_size_of(io::stdout()) {
        Some((width, _)) => usize::from(width.0),
        None => said().unwrap_or(80),
    };
    Some(width.max(20))
}

pub(crate) fn stdout_is_terminal() -> bool {
    io::stdout().is_terminal()
}

/// `1 row`, `2 rows`.
pub(crate) fn count(number: u64, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}s") }
}

/// A size in bytes, and past 1024 in the units that options take: `1234567 bytes (1.2 MiB)`.
pub(crate) fn size(bytes: u64) -> String {
    let units = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let exact = count(bytes, "byte");
    let mut value = bytes as f64 / 1024.0;
    let mut unit = 0;
    while value >= 1023.95 && unit + 1 < units.len() {
        value /= 1024.0;
        unit += 1;
    }
    if bytes < 1024 { exact } else { format!("{exact} ({value:.1} {})", units[unit]) }
}

/// Prints a report line on stdout, or on stderr if stdout is used for data.
pub(crate) fn say_or_print(line: &str, stdout_is_data: bool) -> io::Result<()> {
    if stdout_is_data {
        say(line);
        return Ok(());
    }
    print(format!("{line}\n").as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_one_unit_style() {
        for (bytes, text) in [
            (0, "0 bytes"),
            (1, "1 byte"),
            (1023, "1023 bytes"),
            (1024, "1024 bytes (1.0 KiB)"),
            (1_048_575, "1048575 bytes (1.0 MiB)"),
            (u64::MAX, "18446744073709551615 bytes (16.0 EiB)"),
        ] {
            assert_eq!(size(bytes), text);
        }
    }

    #[test]
    fn long_quotations_are_cut() {
        for same in ["", "a file's end", "expected `,` or `}`, found \"x\\\"y\"", "open \"quote", "it's 'x'"]
        {
            assert_eq!(cut_quotes(same), same);
        }
        let long = "y".repeat(1000);
        for mark in ['"', '\'', '`'] {
            let text = cut_quotes(&format!("found {mark}{long}{mark}, then {mark}b{mark}"));
            assert_eq!(text, format!("found {mark}{}…{mark}, then {mark}b{mark}", &long[..QUOTE - 1]));
        }
        assert_eq!(message(&long).chars().count(), LINE);
    }

    #[test]
    fn cut_counts_characters() {
        assert_eq!(cut("äöü", 3), "äöü");
        assert_eq!(cut("äöüß", 3), "äö…");
    }
}
