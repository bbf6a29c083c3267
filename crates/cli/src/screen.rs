//! What reaches a terminal: escaped text, colours if wanted, stdout and stderr.

use std::io::{self, IsTerminal, Write};

use crate::args::When;
use crate::stdout::Stdout;

/// Control characters, and what could make a terminal do something, written as escapes.
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

/// The first `width` characters, with an ellipsis if that cuts.
pub(crate) fn cut(text: &str, width: usize) -> String {
    match text.char_indices().nth(width) {
        None => text.to_owned(),
        Some(_) => text.chars().take(width - 1).chain(['…']).collect(),
    }
}

/// Obeys `--color` and `NO_COLOR`.
pub(crate) fn set_color(when: When) {
    match when {
        When::Auto => {}
        When::Always => anstream::ColorChoice::Always.write_global(),
        When::Never => anstream::ColorChoice::Never.write_global(),
    }
}

/// Text in bold, where colours are wanted (`anstream` takes it out elsewhere).
pub(crate) fn bold(text: &str) -> String {
    format!("\u{1b}[1m{text}\u{1b}[0m")
}

/// Text in a faint colour, where colours are wanted.
pub(crate) fn faint(text: &str) -> String {
    format!("\u{1b}[2m{text}\u{1b}[0m")
}

/// One line on stderr. That stderr is closed is nobody's fault.
pub(crate) fn say(line: &str) {
    let _ = writeln!(anstream::stderr(), "{line}");
}

/// Bytes on stdout, as they are.
pub(crate) fn print(bytes: &[u8]) -> io::Result<()> {
    Stdout.write_all(bytes)
}

/// Text with colours on stdout, at once.
pub(crate) fn show(text: &str) -> io::Result<()> {
    let mut out = lines();
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// A buffered, colour-aware stdout for lines.
pub(crate) fn lines() -> io::BufWriter<anstream::AutoStream<Box<dyn Write>>> {
    let choice = anstream::AutoStream::choice(&io::stdout());
    io::BufWriter::new(anstream::AutoStream::new(Box::new(Stdout), choice))
}

/// A buffered stdout for bytes.
pub(crate) fn bytes() -> io::BufWriter<Stdout> {
    io::BufWriter::new(Stdout)
}

/// Stdout as a sink.
pub(crate) fn sink() -> pentaglot::Sink {
    pentaglot::Sink::pipe(Stdout).named(crate::stdout::NAME)
}

pub(crate) fn stdout_is_terminal() -> bool {
    io::stdout().is_terminal()
}

/// `1234567` as `1.2 MB`.
pub(crate) fn size(bytes: u64) -> String {
    let units = ["B", "kB", "MB", "GB", "TB", "PB", "EB"];
    let mut value = bytes as f64;
    let mut unit = 0;
    while value >= 999.5 && unit + 1 < units.len() {
        value /= 1000.0;
        unit += 1;
    }
    if unit == 0 { format!("{bytes} B") } else { format!("{value:.1} {}", units[unit]) }
}

/// A report line: on stdout, or on stderr where stdout carries data.
pub(crate) fn say_or_print(line: &str, stdout_is_data: bool) -> io::Result<()> {
    if stdout_is_data {
        say(line);
        return Ok(());
    }
    print(format!("{line}\n").as_bytes())
}
