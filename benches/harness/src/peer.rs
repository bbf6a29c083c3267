//! Peers in processes of their own, such as a Python script: one line in, one number out.

use std::cell::RefCell;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// A process that answers a line with a number.
pub struct Peer {
    child: Child,
    input: ChildStdin,
    output: RefCell<BufReader<ChildStdout>>,
}

impl Peer {
    /// Starts it; nothing if it cannot be started.
    pub fn start(mut command: Command) -> Option<Self> {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().ok()?;
        let (input, output) = (child.stdin.take()?, BufReader::new(child.stdout.take()?));
        Some(Peer { child, input, output: RefCell::new(output) })
    }

    /// Sends a line and waits for the number; nothing if the answer is none, or if the process has ended.
    pub fn ask(&self, line: &str) -> Option<u64> {
        writeln!(&self.input, "{line}").ok()?;
        let mut answer = String::new();
        self.output.borrow_mut().read_line(&mut answer).ok()?;
        answer.trim().parse().ok()
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // It ends with its input; nothing is left to be done if it is gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
