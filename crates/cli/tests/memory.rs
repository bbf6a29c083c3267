//! `--max-alloc` limits the memory of a run: every verb on larger files succeeds or ends with status 4, and never
//! uses much more memory.

#![cfg(target_os = "linux")]

use std::fs::{self, File};
use std::io::{BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The size of the files.
const BYTES: usize = 300_000_000;
/// Verbs that read a part of a file.
const LOOK: [&str; 5] = ["inspect", "schema", "head", "dump", "cat"];
/// Verbs that need little memory, however many rows there are.
const FRUGAL: [&str; 3] = ["inspect", "schema", "count"];
/// `--max-alloc`, and the additional memory of the command itself.
const MAX_ALLOC: u64 = 64 << 20;
const OVERHEAD: u64 = 40 << 20;
/// The output of `cat` is read up to this size; then its pipe is closed, which is success.
const SHOWN_BYTES: u64 = 4 << 20;

struct Folder {
    folder: tempfile::TempDir,
    /// Verbs that must succeed.
    frugal: &'static [&'static str],
}

impl Folder {
    fn new() -> Self {
        Folder { folder: tempfile::tempdir().unwrap(), frugal: &FRUGAL }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pentaglot"));
        command.args(arguments).current_dir(self.folder.path()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Runs with no limit but the default, to make a file.
    fn make(&self, arguments: &[&str]) {
        let output = self.command(arguments).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    }

    /// Runs under the limit; the status must be 0 or 4, and the memory within bounds.
    fn run(&self, arguments: &[&str]) {
        let limit = MAX_ALLOC.to_string();
        let arguments = [arguments, &["--max-alloc", &limit]].concat();
        let mut child = self.command(&arguments).spawn().unwrap();
        let mut output = child.stdout.take().unwrap().take(SHOWN_BYTES);
        let mut errors = child.stderr.take().unwrap();
        let ended = AtomicBool::new(false);
        let (status, peak) = std::thread::scope(|scope| {
            let ended = &ended;
            let path = format!("/proc/{}/status", child.id());
            let sampler = scope.spawn(move || sample(&path, ended));
            // Reading until the limit, then closing the pipe.
            std::io::copy(&mut output, &mut std::io::sink()).unwrap();
            drop(output);
            let status = wait(&mut child);
            ended.store(true, Ordering::Relaxed);
            (status, sampler.join().unwrap())
        });
        let mut message = String::new();
        errors.read_to_string(&mut message).unwrap();
        let most = if self.frugal.contains(&arguments[0]) { 0 } else { 4 };
        assert!(matches!(status, Some(0 | 4)), "{arguments:?}: {status:?}, {message}");
        assert!(status <= Some(most), "{arguments:?}: {status:?}, {message}");
        assert!(status == Some(0) || message.contains("max-alloc is "), "{arguments:?}: {message}");
        assert!(peak <= MAX_ALLOC + OVERHEAD, "{arguments:?}: {} MiB, {message}", peak >> 20);
    }

    /// All verbs on a file, which is removed afterwards.
    fn all_verbs(&self, name: &str, more: &[&str]) {
        self.reading_verbs(name, more);
        self.run(&[&["hash", name], more].concat());
        fs::hard_link(self.path(name), self.path("twin")).unwrap();
        self.run(&[&["diff", name, "twin"], more].concat());
        let saved = Path::new(name).extension().unwrap().to_str().unwrap();
        self.run(&[&["salvage", name, &format!("saved.{saved}"), "--force"], more].concat());
        for name in [name, "twin", &format!("saved.{saved}")] {
            let _ = fs::remove_file(self.path(name));
        }
    }

    /// The verbs that look at a file, and those that read all of it once. The others take the same rows from the same
    /// readers, and a build without optimisation reads 300 MB of text for ten seconds each time.
    fn reading_verbs(&self, name: &str, more: &[&str]) {
        for verb in LOOK.into_iter().chain(["validate", "count"]) {
            self.run(&[&[verb, name], more].concat());
        }
        // All rows as a table; the other writers are tested when the files are created.
        self.run(&[&["convert", name, "out.arrow", "--force"], more].concat());
        let _ = fs::remove_file(self.path("out.arrow"));
    }

    /// All verbs on a file of text, in a build that is fast enough.
    fn text_verbs(&self, name: &str) {
        if cfg!(debug_assertions) { self.reading_verbs(name, &[]) } else { self.all_verbs(name, &[]) }
    }
}

fn wait(child: &mut Child) -> Option<i32> {
    child.wait().unwrap().code()
}

/// The most anonymous memory that was resident at a time.
fn sample(path: &str, ended: &AtomicBool) -> u64 {
    let mut peak = 0;
    while !ended.load(Ordering::Relaxed) {
        let text = fs::read_to_string(path).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("RssAnon:"));
        let kilobytes = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok());
        peak = peak.max(kilobytes.unwrap_or(0) << 10);
        std::thread::sleep(Duration::from_millis(5));
    }
    peak
}

/// Bytes that do not compress.
fn noise(count: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let words = std::iter::from_fn(|| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        Some(state.to_le_bytes())
    });
    words.take(count / 8).flatten().collect()
}

fn repeat(path: &Path, head: &[u8], block: &[u8], tail: &[u8], bytes: usize) {
    let mut file = BufWriter::new(File::create(path).unwrap());
    file.write_all(head).unwrap();
    for _ in 0..bytes / block.len() {
        file.write_all(block).unwrap();
    }
    file.write_all(tail).unwrap();
    file.flush().unwrap();
}

/// A matrix of eight columns as `.npy`.
fn npy(path: &Path, bytes: usize) {
    let block = noise(1 << 20);
    let rows = bytes / block.len() * block.len() / 64;
    let text = format!("{{'descr': '<i8', 'fortran_order': False, 'shape': ({rows}, 8), }}");
    let head = [b"\x93NUMPY\x01\x00\x76\x00", format!("{text:<117}\n").as_bytes()].concat();
    repeat(path, &head, &block, b"", bytes);
}

/// All verbs on the file that a matrix becomes.
fn converted(name: &str) {
    let folder = Folder::new();
    npy(&folder.path("base.npy"), BYTES);
    folder.run(&["convert", "base.npy", name]);
    // Formats that keep everything in memory reach the limit; their files are created without it.
    if !folder.path(name).exists() {
        folder.make(&["convert", "base.npy", name]);
    }
    fs::remove_file(folder.path("base.npy")).unwrap();
    folder.all_verbs(name, &[]);
}

#[test]
fn npy_stays_within_the_limit() {
    let folder = Folder::new();
    npy(&folder.path("base.npy"), BYTES);
    folder.all_verbs("base.npy", &[]);
}

#[test]
fn npz_stays_within_the_limit() {
    converted("a.npz");
}

#[test]
fn arrow_stays_within_the_limit() {
    converted("a.arrow");
}

#[test]
fn arrow_streams_stay_within_the_limit() {
    converted("a.arrows");
}

#[test]
fn parquet_stays_within_the_limit() {
    converted("a.parquet");
}

#[test]
fn dbdf_stays_within_the_limit() {
    converted("a.dbdf");
}

#[test]
fn dynd_stays_within_the_limit() {
    converted("a.dynd");
}

#[test]
fn bsondf_stays_within_the_limit() {
    converted("a.bsondf");
}

#[test]
fn ds_stays_within_the_limit() {
    let folder = Folder::new();
    let mut head = b"\x81\xa6format\x82\xa4type\xa7tabular\xa7columns\x88".to_vec();
    (0..8).for_each(|column| head.extend(format!("?c{column}?int64").bytes()));
    for (place, byte) in [(0, 0xa2), (3, 0xa5)] {
        let first = head.len() - 8 * 9;
        (0..8).for_each(|column| head[first + column * 9 + place] = byte);
    }
    let mut rows = Vec::new();
    for (index, value) in noise(1 << 20).chunks_exact(8).enumerate() {
        rows.extend((index % 8 == 0).then_some(0x98));
        rows.push(0xd3);
        rows.extend(value);
    }
    repeat(&folder.path("a.ds"), &head, &rows, b"", BYTES);
    folder.text_verbs("a.ds");
}

#[test]
fn csv_stays_within_the_limit() {
    let folder = Folder::new();
    let block = b"12345,0.5,hello world,2020-01-01,true,99.25\n".repeat(1 << 12);
    repeat(&folder.path("a.csv"), b"a,b,c,d,e,f\n", &block, b"", BYTES);
    folder.text_verbs("a.csv");
}

#[test]
fn jsonl_stays_within_the_limit() {
    let folder = Folder::new();
    let block =
        b"{\"a\":12345,\"b\":0.5,\"c\":\"hello world\",\"d\":[1,2,3],\"e\":{\"x\":1}}\n".repeat(1 << 12);
    repeat(&folder.path("a.jsonl"), b"", &block, b"", BYTES);
    folder.text_verbs("a.jsonl");
}

#[test]
fn matrix_market_stays_within_the_limit() {
    let folder = Folder::new();
    let entries: String =
        (0..10_000).map(|entry| format!("{} {} 1.5\n", entry * 7 % 1000 + 1, entry % 997 + 1)).collect();
    let count = BYTES / entries.len() * 10_000;
    let head = format!("%%MatrixMarket matrix coordinate real general\n1000 1000 {count}\n");
    repeat(&folder.path("a.mtx"), head.as_bytes(), entries.as_bytes(), b"", BYTES);
    folder.text_verbs("a.mtx");
}

#[test]
fn sds_stays_within_the_limit() {
    let folder = Folder::new();
    let block = noise(1 << 20);
    let count = (BYTES / block.len() * block.len() / 8) as u64;
    repeat(&folder.path("a.sds"), &count.to_le_bytes(), &block, b"", BYTES);
    for question in [&["get", "5"][..], &["len"]] {
        folder.run(&[&["query", "a.sds", "--from", "sds:vec"], question].concat());
    }
    folder.all_verbs("a.sds", &["--from", "sds:vec"]);
    // A wavelet matrix that fits the limit, while its values do not.
    let values = noise(6 << 20);
    let text = format!("{{'descr': '|u1', 'fortran_order': False, 'shape': ({},), }}", values.len());
    let head = [b"\x93NUMPY\x01\x00\x76\x00", format!("{text:<117}\n").as_bytes()].concat();
    repeat(&folder.path("values.npy"), &head, &values, b"", values.len());
    folder.run(&["convert", "values.npy", "wm.sds", "--to", "sds:wm"]);
    if !folder.path("wm.sds").exists() {
        folder.make(&["convert", "values.npy", "wm.sds", "--to", "sds:wm"]);
    }
    folder.run(&["query", "wm.sds", "rank", "1000000", "7"]);
    folder.all_verbs("wm.sds", &["--from", "sds:wm"]);
}

/// Vectors are written with little memory, however long they are; wavelet matrices are built in memory.
#[test]
fn sds_vectors_are_written_with_constant_memory() {
    let folder = Folder::new();
    let count = 2 << 20;
    let positions: Vec<u8> =
        (0..count).flat_map(|index: u64| (3 * index + index % 2).to_le_bytes()).collect();
    let text = format!("{{'descr': '<u8', 'fortran_order': False, 'shape': ({count},), }}");
    let head = [b"\x93NUMPY\x01\x00\x76\x00", format!("{text:<117}\n").as_bytes()].concat();
    fs::write(folder.path("positions.npy"), [head, positions].concat()).unwrap();
    let limited = |kind: &str| {
        let arguments = ["convert", "positions.npy", "out.sds", "--force", "--max-alloc", "6M", "--to"];
        let output = folder.command(&[&arguments[..], &[kind]].concat()).output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    for kind in ["sds:int", "sds:vec", "sds:raw", "sds:bit", "sds:sparse", "sds:rl"] {
        let (status, message) = limited(kind);
        assert_eq!(status, Some(0), "{kind}: {message}");
    }
    let (status, message) = limited("sds:wm");
    assert_eq!(status, Some(4), "{message}");
}

#[test]
fn a_million_columns_stay_within_the_limit() {
    // The columns alone are too many.
    let folder = Folder { frugal: &[], ..Folder::new() };
    let names: Vec<String> = (0..1_000_000).map(|index| format!("c{index}")).collect();
    let ones = vec!["1"; names.len()].join(",");
    fs::write(folder.path("a.csv"), format!("{}\n{ones}\n{ones}\n", names.join(","))).unwrap();
    folder.reading_verbs("a.csv", &[]);
    let pairs: Vec<String> = names.iter().map(|name| format!("\"{name}\":1")).collect();
    fs::write(folder.path("a.jsonl"), format!("{{{}}}\n", pairs.join(","))).unwrap();
    folder.reading_verbs("a.jsonl", &[]);
}
