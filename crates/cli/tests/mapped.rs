//! Files that the command maps into memory.
#![cfg(unix)]

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Command, Stdio};

/// A vector of this many elements, each equal to its index.
fn vector(elements: u64) -> Vec<u8> {
    std::iter::once(elements).chain(0..elements).flat_map(u64::to_le_bytes).collect()
}

#[test]
fn a_file_that_shrinks_while_it_is_queried_ends_with_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.sds");
    let file = path.to_str().unwrap();
    std::fs::write(&path, vector(100_000)).unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_pentaglot"))
        .args(["query", file, "-", "--from", "sds:vec"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    input.write_all(b"get 7\n").unwrap();
    let mut answer = String::new();
    output.read_line(&mut answer).unwrap();
    assert_eq!(answer, "7\n");
    // The answer shows that the file is open.
    std::fs::File::options().write(true).open(&path).unwrap().set_len(8).unwrap();
    input.write_all(b"get 99999\n").unwrap();
    drop(input);
    let (mut rest, mut said) = (String::new(), String::new());
    output.read_to_string(&mut rest).unwrap();
    child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(2), "{said}");
    let expected = format!("{file}: the file became shorter, or could not be read, while it was in use\n");
    assert_eq!((rest.as_str(), said), ("", expected));
}
