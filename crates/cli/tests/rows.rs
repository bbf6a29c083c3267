//! Filters and several inputs on files that are larger than every buffer.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

fn run(args: &[&str]) -> String {
    let done = Command::new(env!("CARGO_BIN_EXE_pentaglot")).args(args).output().unwrap();
    assert!(done.status.success(), "{args:?}: {}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8(done.stdout).unwrap()
}

/// Rows `start..` of `id,tag,text` in at least `bytes` bytes; gives the end of the range of ids.
fn write_table(path: &Path, start: u64, bytes: usize) -> u64 {
    let mut text = String::from("id,tag,text\n");
    let mut id = start;
    while text.len() < bytes {
        writeln!(text, "{id},t{},some text that makes the row longer than a number is", id % 7).unwrap();
        id += 1;
    }
    fs::write(path, text).unwrap();
    id
}

#[test]
fn filters_and_ranges_reach_across_large_files() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (first, second) = (path("part-1.csv"), path("part-2.csv"));
    let middle = write_table(Path::new(&first), 0, 33 << 20);
    let end = write_table(Path::new(&second), middle, 4 << 20);

    // The matching rows of one file, from its middle on.
    let from = middle / 2;
    let matching: Vec<u64> = (from..middle).filter(|id| id % 7 == 3).collect();
    let filter = format!("id >= {from} and tag = 't3'");
    let found = run(&["cat", &first, "--where", &filter, "--columns", "id", "--rows", "10000..10002"]);
    assert_eq!(found, format!("{{\"id\":{}}}\n{{\"id\":{}}}\n", matching[10_000], matching[10_001]));
    let count = run(&["count", &first, "--where", &filter]);
    assert_eq!(count, format!("{}  {first}\n", matching.len()));

    // Rows on both sides of the border between the files, with a filter and without.
    let (both, all) = (path("part-*.csv"), path("all.parquet"));
    let range = format!("{}..{}", middle - 2, middle + 2);
    run(&["convert", &both, &all, "--rows", &range, "--columns", "id", "-q"]);
    let lines: String = (middle - 2..middle + 2).map(|id| format!("{{\"id\":{id}}}\n")).collect();
    assert_eq!(run(&["cat", &all]), lines);
    let matching: Vec<u64> = (0..end).filter(|id| id % 7 == 5).collect();
    let border = matching.partition_point(|id| *id < middle);
    let range = format!("{}..{}", border - 2, border + 2);
    run(&[
        "convert",
        &both,
        &all,
        "--rows",
        &range,
        "--columns",
        "id",
        "--where",
        "tag = 't5'",
        "-q",
        "--force",
    ]);
    let lines: String =
        matching[border - 2..border + 2].iter().map(|id| format!("{{\"id\":{id}}}\n")).collect();
    assert_eq!(run(&["cat", &all]), lines);
}
