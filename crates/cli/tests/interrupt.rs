//! An interrupt ends the run at the next batch with status 130, and no files are left.

#![cfg(unix)]

use std::io::{Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};

#[test]
fn an_interrupted_conversion_leaves_nothing() {
    for signal in ["-INT", "-TERM"] {
        let folder = tempfile::tempdir().unwrap();
        let mut child = Command::new(env!("CARGO_BIN_EXE_pentaglot"))
            .args(["convert", "-", "out.arrow", "--from", "csv"])
            .current_dir(folder.path())
            .stdin(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut input = child.stdin.take().unwrap();
        let rows = b"1,2\n".repeat(1 << 16);
        // The input never ends: only the interrupt ends the command. A pipe holds less than what is written first, so
        // the command is at work by then.
        (0..64).for_each(|_| input.write_all(&rows).unwrap());
        let kill = Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap();
        assert!(kill.success());
        while input.write_all(&rows).is_ok() {}
        let status = child.wait().unwrap();
        let mut message = String::new();
        child.stderr.take().unwrap().read_to_string(&mut message).unwrap();
        assert_eq!((status.code(), status.signal()), (Some(130), None), "{message}");
        assert!(message.ends_with("cancelled\n"), "{message}");
        let left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().collect();
        assert!(left.is_empty(), "{left:?}");
    }
}
