//! Standard output on a terminal goes through a pager, as in `git` and `bat`.
//!
//! The pager is `$PENTAGLOT_PAGER`, else `$PAGER`, else `less`; an empty one or `cat` disables it. It starts with the
//! first byte printed, so that a verb that fails at once prints only its error. Without `$LESS`, `less` gets `FRX`: it
//! exits at once if everything fits on the screen, shows colours, and does not clear the screen.

use std::io::{self, IsTerminal, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::stdout::Stdout;

static STATE: Mutex<State> = Mutex::new(State::Plain);
static RUNNING: AtomicBool = AtomicBool::new(false);

/// The destination of standard output. There is one pager per run.
enum State {
    Plain,
    /// A pager is started with the first byte printed.
    Wanted,
    Running(Child, ChildStdin),
}

fn state() -> MutexGuard<'static, State> {
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Allows a pager, if standard output is a terminal.
pub(crate) fn allow() {
    let dumb = std::env::var_os("TERM").is_none_or(|terminal| terminal == "dumb");
    if io::stdout().is_terminal() && !dumb {
        *state() = State::Wanted;
    }
}

/// Whether a pager is running, which then handles interrupts.
pub(crate) fn is_running() -> bool {
    RUNNING.load(Ordering::Relaxed)
}

/// Ends the pager's input and waits until the user quits it, if one is running.
pub(crate) fn wait() {
    if let State::Running(mut child, input) = std::mem::replace(&mut *state(), State::Plain) {
        drop(input);
        let _ = child.wait();
    }
}

/// The words of the pager's command; none where no pager is wanted.
fn words(own: Option<String>, general: Option<String>) -> Vec<String> {
    let command = own.or(general).unwrap_or_else(|| "less".to_owned());
    let words: Vec<String> = command.split_whitespace().map(str::to_owned).collect();
    if words.first().is_some_and(|program| program == "cat") { Vec::new() } else { words }
}

/// A pager, or plain output where there is none.
fn start() -> State {
    let variable = |name: &str| std::env::var(name).ok();
    let words = words(variable("PENTAGLOT_PAGER"), variable("PAGER"));
    let Some((program, arguments)) = words.split_first() else { return State::Plain };
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::piped());
    if std::env::var_os("LESS").is_none() {
        command.env("LESS", "FRX");
    }
    let Ok(mut child) = command.spawn() else { return State::Plain };
    let Some(input) = child.stdin.take() else { return State::Plain };
    RUNNING.store(true, Ordering::Relaxed);
    State::Running(child, input)
}

/// Standard output, through a pager where one is wanted.
pub(crate) struct Out;

impl Write for Out {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut state = state();
        if let State::Wanted = *state {
            *state = start();
        }
        match &mut *state {
            State::Running(_, input) => input.write(bytes),
            _ => Stdout.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut *state() {
            State::Running(_, input) => input.flush(),
            _ => Stdout.flush(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::words;

    #[test]
    fn the_own_variable_comes_first_and_may_say_none() {
        let text = |text: &str| Some(text.to_owned());
        assert_eq!(words(text("most -w"), text("more")), ["most", "-w"]);
        assert_eq!(words(None, text("more")), ["more"]);
        assert_eq!(words(None, None), ["less"]);
        for none in ["", " ", "cat", "cat -v"] {
            assert!(words(text(none), text("more")).is_empty(), "{none:?}");
        }
    }
}
