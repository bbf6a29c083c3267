//! A store under several processes at once, and under processes that are killed.

#![cfg(unix)]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

fn pentaglot(store: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pentaglot"));
    command.env("PENTAGLOT_STORE", store).current_dir(store.parent().unwrap());
    command
}

/// Runs an action of the store; gives what it printed.
fn run(store: &Path, words: &[&str]) -> String {
    let done = pentaglot(store).arg("store").args(words).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    let (printed, said) = (text(done.stdout), text(done.stderr));
    assert!(done.status.success(), "{words:?}: {printed}{said}");
    printed
}

/// Numbers without a pattern, the same in every run.
fn numbers(seed: u64) -> impl Iterator<Item = u64> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    std::iter::repeat_with(move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.wrapping_mul(0x2545_f491_4f6c_dd1d)
    })
}

/// A table of which most rows are those of every other version.
fn version(folder: &Path, number: u64, rows: usize) -> PathBuf {
    let mut text = String::from("id,value,word\n");
    let mut lines = |numbers: &mut dyn Iterator<Item = u64>, count: usize| {
        for (row, value) in numbers.take(count).enumerate() {
            text.push_str(&format!("{row},{value},w{}\n", value % 1000));
        }
    };
    let mut common = numbers(1);
    lines(&mut common, rows / 2);
    lines(&mut numbers(100 + number), rows / 10);
    lines(&mut common, rows / 2);
    let path = folder.join(format!("version-{number}.csv"));
    std::fs::write(&path, text).unwrap();
    path
}

/// The first words of lines.
fn identities(printed: &str) -> BTreeSet<String> {
    printed.lines().filter_map(|line| line.split(' ').next()).map(str::to_owned).collect()
}

/// The store is sound, and has what it is said to have.
fn check(store: &Path, reported: &BTreeSet<String>) {
    assert_eq!(run(store, &["verify"]), "");
    let listed = identities(&run(store, &["ls"]));
    assert!(reported.is_subset(&listed), "{reported:?} in {listed:?}");
}

/// What comes out has the content that its name says.
fn check_content(store: &Path, id: &str) {
    run(store, &["get", id, "out.arrow", "--force"]);
    let hashed = pentaglot(store).args(["hash", "out.arrow"]).output().unwrap();
    assert_eq!(identities(&String::from_utf8(hashed.stdout).unwrap()), BTreeSet::from([id.to_owned()]));
}

#[test]
fn two_writers_and_a_collection_at_once() {
    let seconds =
        std::env::var("PENTAGLOT_STORE_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(5);
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("data.store");
    let files: Vec<PathBuf> = (0..8).map(|number| version(folder.path(), number, 4000)).collect();
    run(&store, &["put", files[0].to_str().unwrap()]);
    let end = Instant::now() + Duration::from_secs(seconds);
    let reported: Mutex<BTreeSet<String>> = Mutex::default();
    // Each writer has files of its own, so that neither removes what the other put in.
    let write = |own: &[PathBuf]| {
        for round in 0.. {
            let file = own[round % own.len()].to_str().unwrap();
            let id = identities(&run(&store, &["put", file]));
            reported.lock().unwrap().extend(id.clone());
            if Instant::now() > end {
                return;
            }
            if round % 3 == 2 {
                let id = id.into_iter().next().unwrap();
                run(&store, &["rm", &id]);
                reported.lock().unwrap().remove(&id);
            }
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(|| write(&files[1..4]));
        scope.spawn(|| write(&files[4..8]));
        scope.spawn(|| {
            while Instant::now() < end {
                run(&store, &["gc"]);
            }
        });
    });
    let reported = reported.into_inner().unwrap();
    check(&store, &reported);
    reported.iter().for_each(|id| check_content(&store, id));
}

#[test]
fn killed_at_any_time_a_store_is_sound() {
    let kills = std::env::var("PENTAGLOT_STORE_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(10);
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("data.store");
    let first = version(folder.path(), 0, 20_000);
    let start = Instant::now();
    let mut reported = identities(&run(&store, &["put", first.to_str().unwrap()]));
    let usual = start.elapsed();
    let mut times = numbers(7);
    for number in 1..=kills {
        let file = version(folder.path(), number, 20_000);
        let words = match number % 3 {
            0 => vec!["store", "gc"],
            _ => vec!["store", "put", file.to_str().unwrap()],
        };
        // What was removed is there for a collection to drop.
        if number % 3 == 2 && reported.len() > 1 {
            let id = reported.pop_last().unwrap();
            run(&store, &["rm", &id]);
        }
        let child =
            pentaglot(&store).args(&words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let id = child.id().to_string();
        std::thread::sleep(usual.mul_f64((times.next().unwrap() % 1200) as f64 / 1000.0));
        // It may have ended already.
        Command::new("kill").args(["-KILL", &id]).stderr(Stdio::null()).status().unwrap();
        let done = child.wait_with_output().unwrap();
        if number % 3 > 0 {
            reported.extend(identities(&String::from_utf8(done.stdout).unwrap()));
        }
        check(&store, &reported);
        // One after each kill, all at the end.
        let one = times.next().unwrap() as usize % reported.len();
        check_content(&store, reported.iter().nth(one).unwrap());
        std::fs::remove_file(&file).unwrap();
    }
    run(&store, &["gc"]);
    check(&store, &reported);
    reported.iter().for_each(|id| check_content(&store, id));
}
