//! Asks two workers in turn, and prints medians and ratios.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

struct Worker {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    /// Row, name, operations.
    contestants: Vec<(String, String, u64)>,
}

impl Worker {
    fn start(program: &str, group: &[String]) -> Self {
        let mut child = Command::new(program)
            .arg("worker")
            .args(group)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("{program}: {error}"));
        let input = child.stdin.take().unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut contestants = Vec::new();
        loop {
            let mut line = String::new();
            assert!(output.read_line(&mut line).unwrap() > 0, "worker died");
            let fields: Vec<&str> = line.trim().split('|').collect();
            match fields[..] {
                [row, name, ops] => contestants.push((row.into(), name.into(), ops.parse().unwrap())),
                _ => return Worker { child, input, output, contestants },
            }
        }
    }

    fn lap(&mut self, index: usize) -> (u64, u64) {
        writeln!(self.input, "{index}").unwrap();
        self.input.flush().unwrap();
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        let (time, checksum) = line.trim().split_once(' ').expect("worker answers");
        (time.parse().unwrap(), checksum.parse().unwrap())
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What is measured if no groups are given: one of each kind, and the sizes for which there are targets.
const GROUPS: [&str; 6] =
    ["bits:1e6:0.5", "bits:1e8:0.5", "bits:1e9:0.5", "ef:1e8:0.1", "wavelet:1e6:256", "runs:1e8:8"];

/// `sds [--native PROGRAM] [--rounds N] [--only ROW] [GROUP:N:PARAMETER …]`
pub fn drive(arguments: &[String]) {
    let (mut native, mut rounds, mut only, mut groups) = (None, 7, None, Vec::new());
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--native" => native = arguments.next().cloned(),
            "--rounds" => rounds = arguments.next().and_then(|n| n.parse().ok()).expect("--rounds N"),
            "--only" => only = arguments.next().cloned(),
            group => groups.push(group.split(':').map(String::from).collect::<Vec<_>>()),
        }
    }
    if groups.is_empty() {
        groups = GROUPS.iter().map(|group| group.split(':').map(String::from).collect()).collect();
    }
    let own = std::env::current_exe().unwrap().to_string_lossy().into_owned();
    println!(
        "| group | row | ours ns | vs simple-sds ordinary | vs simple-sds native | vs best other | best other | all (ns) |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    for group in groups {
        let mut workers = vec![("ordinary", Worker::start(&own, &group))];
        if let Some(native) = &native {
            workers.push(("native", Worker::start(native, &group)));
        }
        let mut rows: Vec<String> = Vec::new();
        for (row, _, _) in &workers[0].1.contestants {
            if !rows.contains(row) && only.as_ref().is_none_or(|only| row.contains(only.as_str())) {
                rows.push(row.clone());
            }
        }
        for row in rows {
            race(&group.join(" "), &row, &mut workers, rounds);
        }
    }
}

fn race(group: &str, row: &str, workers: &mut [(&str, Worker)], rounds: usize) {
    let mut entries = Vec::new();
    for (number, (_, worker)) in workers.iter().enumerate() {
        for (index, contestant) in worker.contestants.iter().enumerate() {
            if contestant.0 == row {
                entries.push((number, index));
            }
        }
    }
    let mut times: BTreeMap<(usize, usize), Vec<f64>> = BTreeMap::new();
    let mut expected = None;
    for round in 0..=rounds {
        for turn in 0..entries.len() {
            let entry = entries[(turn + round) % entries.len()];
            let worker = &mut workers[entry.0].1;
            let (time, checksum) = worker.lap(entry.1);
            let (_, name, ops) = &worker.contestants[entry.1];
            assert_eq!(
                *expected.get_or_insert(checksum),
                checksum,
                "{group} {row}: {name} answers otherwise"
            );
            if round > 0 {
                times.entry(entry).or_default().push(time as f64 / *ops as f64);
            }
        }
    }
    let mut medians: Vec<(String, String, f64)> = Vec::new();
    for (entry, mut laps) in times {
        laps.sort_by(f64::total_cmp);
        let name = workers[entry.0].1.contestants[entry.1].1.clone();
        medians.push((name, workers[entry.0].0.to_owned(), laps[laps.len() / 2]));
    }
    record(group, row, &medians);
    let find = |name: &str, build: &str| medians.iter().find(|m| m.0 == name && m.1 == build).map(|m| m.2);
    let Some(ours) = find("ours", "ordinary") else { return };
    let ratio = |other: Option<f64>| other.map_or("–".into(), |other| format!("{:.2}x", other / ours));
    let best = medians
        .iter()
        .filter(|m| !m.0.starts_with("ours") && !m.0.starts_with("sds"))
        .min_by(|a, b| a.2.total_cmp(&b.2));
    let all: Vec<String> = medians.iter().map(|m| format!("{} {} {:.1}", m.0, &m.1[..3], m.2)).collect();
    println!(
        "| {group} | {row} | {ours:.2} | {} | {} | {} | {} | {} |",
        ratio(find("sds", "ordinary")),
        ratio(find("sds", "native")),
        ratio(best.map(|m| m.2)),
        best.map_or("–".into(), |m| format!("{} {}", m.0, m.1)),
        all.join(", ")
    );
}

/// Leaves the figures for the page of all benches: milliseconds of a million queries, which are the nanoseconds of one.
fn record(group: &str, row: &str, medians: &[(String, String, f64)]) {
    let mut sorted: Vec<_> = medians.iter().collect();
    sorted.sort_by_key(|(name, build, _)| (name != "sds", build != "ordinary"));
    let Some((_, _, first)) = sorted.first() else { return };
    for (name, build, nanoseconds) in &sorted {
        let name = match name.as_str() {
            "ours" => "pentaglot".to_owned(),
            "sds" => format!("simple-sds, {build} build"),
            other => format!("{other}, {build} build"),
        };
        harness::record(&format!("{group}: {row}, a million"), &name, *nanoseconds, first / nanoseconds);
    }
}
