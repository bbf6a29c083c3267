//! How every bench here measures: contestants interleaved in rotating order, medians, ratios in one run.
//!
//! `BENCH_ONLY=WORD` runs only the races that have WORD in their title.
//! `BENCH_CPU=1` measures the processor time of this process: steadier where other programs run, blind to peers in
//! processes of their own.
//! `BENCH_RECORDS=FILE` adds a line of JSON for each contestant to FILE.

mod peer;

pub use peer::Peer;

use std::io::Write;
use std::time::{Duration, Instant};

/// One thing to time; it returns a checksum so that answers can be compared and work is not optimised away.
pub struct Contestant<'a> {
    name: String,
    run: Box<dyn FnMut() -> u64 + 'a>,
}

/// A set of contestants that do the same work.
#[derive(Default)]
pub struct Race<'a> {
    title: String,
    contestants: Vec<Contestant<'a>>,
}

/// The median time of one contestant.
#[derive(Debug, Clone)]
pub struct Lap {
    /// The contestant's name.
    pub name: String,
    /// Median over the rounds.
    pub median: Duration,
    /// What the last run returned.
    pub checksum: u64,
}

impl<'a> Race<'a> {
    /// An empty race.
    pub fn new(title: impl Into<String>) -> Self {
        Race { title: title.into(), contestants: Vec::new() }
    }

    /// Adds a contestant; the first one added is the floor that ratios refer to.
    pub fn add(&mut self, name: impl Into<String>, run: impl FnMut() -> u64 + 'a) -> &mut Self {
        self.contestants.push(Contestant { name: name.into(), run: Box::new(run) });
        self
    }

    /// Runs `rounds` interleaved rounds (after one warm-up round), rotating who goes first, and prints
    /// one line per contestant: median time and speed relative to the floor (above 1 is faster).
    pub fn run(&mut self, rounds: usize) -> Vec<Lap> {
        if let Ok(word) = std::env::var("BENCH_ONLY")
            && !self.title.contains(&word)
        {
            return Vec::new();
        }
        let by_processor = std::env::var_os("BENCH_CPU").is_some();
        let count = self.contestants.len();
        let mut times: Vec<Vec<Duration>> = vec![Vec::new(); count];
        let mut checksums = vec![0; count];
        for round in 0..=rounds {
            for turn in 0..count {
                let index = (turn + round) % count;
                let (start, used) = (Instant::now(), processor_time());
                let checksum = std::hint::black_box((self.contestants[index].run)());
                let time = if by_processor { processor_time() - used } else { start.elapsed() };
                checksums[index] = checksum;
                if round > 0 {
                    times[index].push(time);
                }
            }
        }
        let laps: Vec<Lap> = (0..count)
            .map(|index| {
                let mut sorted = times[index].clone();
                sorted.sort();
                Lap {
                    name: self.contestants[index].name.clone(),
                    median: sorted[sorted.len() / 2],
                    checksum: checksums[index],
                }
            })
            .collect();
        println!("## {}", self.title);
        for lap in &laps {
            let ratio = laps[0].median.as_secs_f64() / lap.median.as_secs_f64();
            let milliseconds = lap.median.as_secs_f64() * 1e3;
            println!("{:<40} {milliseconds:>12.3} ms  {ratio:>6.2}x", lap.name);
            record(&self.title, &lap.name, milliseconds, ratio);
        }
        laps
    }
}

/// Adds a figure to the file that `BENCH_RECORDS` names.
pub fn record(race: &str, name: &str, milliseconds: f64, ratio: f64) {
    let Some(path) = std::env::var_os("BENCH_RECORDS") else { return };
    let program = std::env::current_exe().unwrap_or_default();
    let bench = program.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    // Titles and names are text of ours without control characters, for which this is JSON.
    let line = format!(
        "{{\"bench\": {bench:?}, \"race\": {race:?}, \"name\": {name:?}, \"ms\": {milliseconds}, \"ratio\": {ratio}}}\n"
    );
    let file = std::fs::OpenOptions::new().append(true).create(true).open(path);
    file.and_then(|mut file| file.write_all(line.as_bytes())).expect("the file of records can be written");
}

/// What all threads of this process have used, on Linux; elsewhere nothing.
fn processor_time() -> Duration {
    let tasks = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let used = tasks.filter_map(|task| {
        let text = std::fs::read_to_string(task.path().join("schedstat")).ok()?;
        text.split(' ').next()?.parse::<u64>().ok()
    });
    Duration::from_nanos(used.sum::<u64>())
}
