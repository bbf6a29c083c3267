//! The files after any end of a run: outputs are complete or absent, and errors are reported.
#![cfg(target_os = "linux")]

use std::fs;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, Output, Stdio};

const COMMAND: &str = env!("CARGO_BIN_EXE_pentaglot");

/// Runs the command by a shell that first does `before`; `$0` is the command, `$@` its arguments.
fn shell(folder: &Path, before: &str, args: &[&str]) -> Output {
    Command::new("sh").args(["-c", before, COMMAND]).args(args).current_dir(folder).output().unwrap()
}

fn run(folder: &Path, args: &[&str]) -> Output {
    shell(folder, r#"exec "$0" "$@""#, args)
}

fn said(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// A folder with `in.csv`: a column of numbers.
fn folder(rows: u32) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let mut text = "number\n".to_owned();
    (0..rows).for_each(|row| text.push_str(&format!("{row}\n")));
    fs::write(folder.path().join("in.csv"), text).unwrap();
    folder
}

/// The input never ends, so that every signal arrives before the output is finished.
#[test]
fn a_killed_run_leaves_the_old_file_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out.csv");
    fs::write(&out, "old\n").unwrap();
    let lines = "1234567\n".repeat(1 << 13);
    for round in 0..18 {
        let signal = ["KILL", "TERM", "INT"][round % 3];
        let mut child = Command::new(COMMAND)
            .args(["convert", "-", "out.csv", "--from", "csv", "--force", "-q"])
            .current_dir(folder.path())
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        let mut input = child.stdin.take().unwrap();
        input.write_all(b"number\n").unwrap();
        // Several pipes full: the command has begun to read.
        (0..4 + round).for_each(|_| input.write_all(lines.as_bytes()).unwrap());
        let kill = format!("kill -{signal} {}", child.id());
        assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
        let status = child.wait().unwrap();
        assert_eq!(status.code(), if signal == "KILL" { None } else { Some(130) }, "{signal}");
        drop(input);
        assert_eq!(names(folder.path()), ["out.csv"], "{signal}");
        assert_eq!(fs::read(&out).unwrap(), b"old\n", "{signal}");
    }
}

/// At whatever point the signal arrives, the file is complete or absent.
#[test]
fn a_run_killed_near_its_end_leaves_a_whole_file_or_none() {
    let folder = folder(20_000);
    let whole = fs::read(folder.path().join("in.csv")).unwrap();
    for round in 0..24u64 {
        let mut child = Command::new(COMMAND)
            .args(["convert", "in.csv", "out.csv", "-q"])
            .current_dir(folder.path())
            .spawn()
            .unwrap();
        std::thread::sleep(std::time::Duration::from_millis(4 * round));
        child.kill().unwrap();
        child.wait().unwrap();
        let out = folder.path().join("out.csv");
        if out.exists() {
            assert_eq!(fs::read(&out).unwrap(), whole);
            fs::remove_file(out).unwrap();
        }
        assert_eq!(names(folder.path()), ["in.csv"]);
    }
}

#[test]
fn a_limit_on_file_sizes_is_an_error() {
    let folder = folder(50_000);
    fs::write(folder.path().join("out.npy"), "old").unwrap();
    let limited = r#"ulimit -f 64; exec "$0" "$@""#;
    let done = shell(folder.path(), limited, &["convert", "in.csv", "out.npy", "--force"]);
    assert_eq!(done.status.code(), Some(2), "{}", said(&done));
    assert_eq!(said(&done), "out.npy: npy: cannot write in .: File too large (os error 27)\n");
    assert_eq!(names(folder.path()), ["in.csv", "out.npy"]);
    assert_eq!(fs::read(folder.path().join("out.npy")).unwrap(), b"old");
}

/// Every verb that prints.
const PRINTING: &[&[&str]] = &[
    &["--help"],
    &["--version"],
    &["help", "convert"],
    &["convert", "--help"],
    &["formats"],
    &["completions", "bash"],
    &["man"],
    &["inspect", "in.csv"],
    &["inspect", "in.csv", "--json"],
    &["schema", "in.csv"],
    &["cat", "in.csv"],
    &["cat", "in.csv", "--output", "table"],
    &["cat", "in.csv", "--output", "json"],
    &["cat", "in.csv", "--output", "arrow"],
    &["head", "in.csv", "--output", "csv"],
    &["validate", "in.csv"],
    &["validate", "in.csv", "--json"],
    &["dump", "in.csv"],
    &["convert", "in.csv", "-", "--to", "jsonl"],
    &["convert", "in.csv", "-", "--to", "npy"],
    &["convert", "in.csv", "x.npy", "--dry-run"],
    &["type", "int32"],
    &["query", "in.sds", "len"],
];

#[test]
fn a_full_closed_or_unwritable_stdout_is_an_error() {
    let folder = folder(3);
    assert!(run(folder.path(), &["convert", "in.csv", "in.sds", "--to", "sds:int"]).status.success());
    let ways = [
        (r#"exec "$0" "$@" >/dev/full"#, "No space left on device (os error 28)"),
        (r#"exec "$0" "$@" >&-"#, "it is closed"),
        (r#"exec "$0" "$@" 1</dev/null"#, "Bad file descriptor (os error 9)"),
    ];
    for (way, why) in ways {
        for args in PRINTING {
            let done = shell(folder.path(), way, args);
            assert_eq!(done.status.code(), Some(2), "{way} {args:?}");
            let said = said(&done);
            assert!(said.starts_with("standard output: "), "{way} {args:?}: {said}");
            assert!(said.ends_with(&format!("cannot write: {why}\n")), "{way} {args:?}: {said}");
            assert_eq!(said.lines().count(), 1, "{said}");
        }
    }
    // A verb that prints nothing does not need it.
    let done = shell(folder.path(), r#"exec "$0" "$@" >&-"#, &["convert", "in.csv", "out.npy", "-q"]);
    assert_eq!((done.status.code(), said(&done).as_str()), (Some(0), ""));
}

#[test]
fn stdout_that_is_thrown_away_is_no_error() {
    let folder = folder(3);
    for way in [r#"exec "$0" "$@" >/dev/null"#, r#"exec "$0" "$@" 1<>/dev/null"#] {
        let done = shell(folder.path(), way, &["cat", "in.csv"]);
        assert_eq!((done.status.code(), said(&done).as_str()), (Some(0), ""));
    }
}

#[test]
fn a_closed_pipe_is_success() {
    let folder = folder(50_000);
    for verb in [&["cat", "in.csv"][..], &["convert", "in.csv", "-", "--to", "csv"], &["dump", "in.csv"]] {
        let mut child = Command::new(COMMAND)
            .args(verb)
            .current_dir(folder.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdout.take().unwrap().read_exact(&mut [0]).unwrap();
        let done = child.wait_with_output().unwrap();
        assert_eq!((done.status.code(), said(&done).as_str()), (Some(0), ""), "{verb:?}");
    }
}

#[test]
fn a_fault_of_the_output_names_the_output() {
    let folder = folder(3);
    let cases = [
        ("no/out.csv", "no/out.csv: there is no folder no (mkdir -p 'no' makes it)"),
        ("/dev/full", "/dev/full: csv: cannot write: No space left on device (os error 28)"),
        ("in.csv/out.csv", "in.csv/out.csv: cannot write in in.csv: Not a directory (os error 20)"),
        (".", ".: expected a file to write, found a directory"),
    ];
    for (out, expected) in cases {
        let done = run(folder.path(), &["convert", "in.csv", out, "--to", "csv"]);
        assert_eq!((done.status.code(), said(&done)), (Some(2), format!("{expected}\n")));
    }
}

/// With any limit on open files, the run succeeds or the message names the limit.
#[test]
fn too_many_open_files_are_called_that() {
    let folder = folder(3);
    let mut failed = 0;
    for files in 3..16 {
        let few = format!(r#"ulimit -n {files}; exec "$0" "$@""#);
        let done =
            shell(folder.path(), &few, &["convert", "in.csv", "out.npy", "--force", "--threads", "1", "-q"]);
        // The handler of interrupts needs descriptors of its own; without it the run goes on.
        let said = said(&done);
        assert!(!said.contains("uncategorized"), "{files}: {said}");
        // With too few the command cannot even be loaded.
        if done.status.code() == Some(2) {
            assert!(said.contains("Too many open files"), "{files}: {said}");
            failed += 1;
        }
    }
    assert!(failed > 0);
}

#[test]
fn a_stale_meta_renames_no_columns() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    fs::write(path.join("a.csv"), "old,names\n1,2\n").unwrap();
    fs::write(path.join("c.csv"), "new,labels\n3,4\n5,6\n").unwrap();
    assert!(run(path, &["convert", "a.csv", "x.dbdf", "--to", "dbdf:daphne"]).status.success());
    assert_eq!(names(path), ["a.csv", "c.csv", "x.dbdf", "x.dbdf.meta"]);
    // Data that another program put in its place.
    assert!(run(path, &["convert", "c.csv", "y.dbdf"]).status.success());
    fs::copy(path.join("y.dbdf"), path.join("x.dbdf")).unwrap();
    let rows = "{\"new\":3,\"labels\":4}\n{\"new\":5,\"labels\":6}\n";
    let cat = || String::from_utf8(run(path, &["cat", "x.dbdf"]).stdout).unwrap();
    assert_eq!(cat(), rows);
    assert!(run(path, &["convert", "c.csv", "x.dbdf", "--force"]).status.success());
    assert_eq!(names(path), ["a.csv", "c.csv", "x.dbdf", "y.dbdf"]);
    assert_eq!(cat(), rows);
    // A side file without its data would be taken for one of the new file.
    fs::write(path.join("z.dbdf.meta"), "whatever").unwrap();
    let done = run(path, &["convert", "c.csv", "z.dbdf"]);
    assert_eq!(done.status.code(), Some(2));
    assert_eq!(said(&done), "z.dbdf: dbdf: z.dbdf.meta exists already (--force replaces it)\n");
    // Other formats touch no side file.
    fs::write(path.join("z.csv.meta"), "whatever").unwrap();
    fs::write(path.join("z.csv.idx"), "PENTAIDX").unwrap();
    for force in [&[][..], &["--force"]] {
        assert!(run(path, &[&["convert", "c.csv", "z.csv"], force].concat()).status.success());
    }
    assert!(path.join("z.csv.meta").exists() && path.join("z.csv.idx").exists());
}

#[test]
fn an_index_goes_with_the_data_it_belongs_to() {
    let folder = folder(100);
    let path = folder.path();
    for (file, to) in [("x.sds", "sds:sparse"), ("x.ds", "ds")] {
        let index = path.join(format!("{file}.idx"));
        let convert =
            |more: &[&str]| run(path, &[&["convert", "in.csv", file, "--to", to, "-q"], more].concat());
        let done = convert(&[]);
        assert!(done.status.success(), "{}", said(&done));
        assert!(run(path, &["index", file]).status.success());
        assert!(index.exists());
        assert!(convert(&["--force"]).status.success());
        assert!(!index.exists());
        // Files of other programs are not removed.
        fs::write(&index, "somebody's").unwrap();
        assert!(convert(&["--force"]).status.success());
        assert!(index.exists());
        // An index without its data is an error.
        fs::remove_file(path.join(file)).unwrap();
        let done = convert(&[]);
        let format = to.split(':').next().unwrap();
        let expected = format!("{file}: {format}: {file}.idx exists already (--force replaces it)\n");
        assert_eq!((done.status.code(), said(&done)), (Some(2), expected));
    }
}
