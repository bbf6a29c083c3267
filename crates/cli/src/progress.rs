//! A progress bar (bytes, rate, time left) that appears after a second; lines of text if stderr is not a terminal and
//! `--progress=always` is set.

use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use pentaglot::{Control, Progress as Done};

use crate::args::{Global, When};
use crate::screen::{self, size};

/// A bar that shows the progress of the run until it is dropped.
pub(crate) struct Progress {
    ended: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Progress {
    pub(crate) fn follow(global: &Global) -> Self {
        let wanted = match global.progress {
            When::Auto => !global.quiet && std::io::stderr().is_terminal(),
            When::Always => true,
            When::Never => false,
        };
        let ended = Arc::new(AtomicBool::new(false));
        let stop = Arc::clone(&ended);
        let work = Work::begin(&global.control);
        let bar = std::io::stderr().is_terminal();
        let show = move || if bar { show(&work, &stop) } else { say(&work, &stop) };
        let thread = wanted.then(|| thread::spawn(show));
        Progress { ended, thread }
    }
}

/// What has been done since a moment: a shell runs one statement after the other.
struct Work {
    control: Control,
    before: Done,
}

impl Work {
    fn begin(control: &Control) -> Self {
        Work { control: control.clone(), before: control.progress() }
    }

    fn progress(&self) -> Done {
        let (mut now, before) = (self.control.progress(), &self.before);
        let since = |now: Option<u64>, before: Option<u64>| {
            Some(now?.saturating_sub(before.unwrap_or(0))).filter(|total| *total > 0)
        };
        now.bytes = now.bytes.saturating_sub(before.bytes);
        now.rows = now.rows.saturating_sub(before.rows);
        now.total_bytes = since(now.total_bytes, before.total_bytes);
        now.total_rows = since(now.total_rows, before.total_rows);
        now
    }
}

fn show(control: &Work, stop: &AtomicBool) {
    let start = Instant::now();
    let mut bar: Option<ProgressBar> = None;
    while !stop.load(Ordering::Relaxed) {
        thread::park_timeout(Duration::from_millis(100));
        if bar.is_none() && start.elapsed() >= Duration::from_secs(1) {
            let total = control.progress().total_bytes;
            let template = match total {
                Some(_) => "{bar:30} {binary_bytes}/{binary_total_bytes} {binary_bytes_per_sec} {eta} left",
                None => "{spinner} {binary_bytes} {binary_bytes_per_sec}",
            };
            let style =
                ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
            let shown = ProgressBar::with_draw_target(total, ProgressDrawTarget::stderr()).with_style(style);
            shown.reset_elapsed();
            bar = Some(shown);
        }
        if let Some(bar) = &bar {
            bar.set_position(control.progress().bytes);
        }
    }
    if let Some(bar) = bar {
        bar.finish_and_clear();
    }
}

/// Without a terminal: a line every ten seconds, and one at the end.
fn say(control: &Work, stop: &AtomicBool) {
    let start = Instant::now();
    let mut next = Duration::from_secs(10);
    loop {
        let ended = stop.load(Ordering::Relaxed);
        if ended || start.elapsed() >= next {
            next += Duration::from_secs(10);
            let progress = control.progress();
            let of = progress.total_bytes.map_or(String::new(), |total| format!(" of {}", size(total)));
            // Headers are read more than once, so the count may exceed the total.
            let done = size(progress.bytes.min(progress.total_bytes.unwrap_or(u64::MAX)));
            let rows = match (progress.rows, progress.total_rows) {
                (0, _) => String::new(),
                (rows, Some(total)) => format!(", {rows} of {}", screen::count(total, "row")),
                (rows, None) => format!(", {}", screen::count(rows, "row")),
            };
            let seconds = start.elapsed().as_secs_f64();
            screen::say(&format!("read {done}{of}{rows} in {seconds:.1} s"));
        }
        if ended {
            return;
        }
        thread::park_timeout(Duration::from_millis(100));
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // An error of the progress bar is ignored.
            let _ = thread.join();
        }
    }
}
