//! A progress bar (bytes, rate, time left) that shows when work lasts longer than a second; lines where stderr is not a
//! terminal and `--progress=always` asks for them.

use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use pentaglot::Source;

use crate::args::{Global, When};
use crate::screen::{self, size};

/// A bar that follows how much of a source has been read, until it is dropped.
pub(crate) struct Progress {
    ended: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Progress {
    pub(crate) fn follow(source: Source, global: &Global) -> Self {
        let wanted = match global.progress {
            When::Auto => !global.quiet && std::io::stderr().is_terminal(),
            When::Always => true,
            When::Never => false,
        };
        let ended = Arc::new(AtomicBool::new(false));
        let stop = Arc::clone(&ended);
        let bar = std::io::stderr().is_terminal();
        let show = move || if bar { show(&source, &stop) } else { say(&source, &stop) };
        let thread = wanted.then(|| thread::spawn(show));
        Progress { ended, thread }
    }
}

fn show(source: &Source, stop: &AtomicBool) {
    let start = Instant::now();
    let mut bar: Option<ProgressBar> = None;
    while !stop.load(Ordering::Relaxed) {
        thread::park_timeout(Duration::from_millis(100));
        if bar.is_none() && start.elapsed() >= Duration::from_secs(1) {
            let template = match source.len() {
                Some(_) => "{bar:30} {binary_bytes}/{binary_total_bytes} {binary_bytes_per_sec} {eta} left",
                None => "{spinner} {binary_bytes} {binary_bytes_per_sec}",
            };
            let style =
                ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
            let shown =
                ProgressBar::with_draw_target(source.len(), ProgressDrawTarget::stderr()).with_style(style);
            shown.reset_elapsed();
            bar = Some(shown);
        }
        if let Some(bar) = &bar {
            bar.set_position(source.bytes_read());
        }
    }
    if let Some(bar) = bar {
        bar.finish_and_clear();
    }
}

/// Where stderr is not a terminal: a line every ten seconds, and one at the end.
fn say(source: &Source, stop: &AtomicBool) {
    let start = Instant::now();
    let mut next = Duration::from_secs(10);
    loop {
        let ended = stop.load(Ordering::Relaxed);
        if ended || start.elapsed() >= next {
            next += Duration::from_secs(10);
            let of = source.len().map_or(String::new(), |total| format!(" of {}", size(total)));
            // Headers are read more than once.
            let done = size(source.bytes_read().min(source.len().unwrap_or(u64::MAX)));
            let seconds = start.elapsed().as_secs_f64();
            screen::say(&screen::escape(&format!("{}: read {done}{of} in {seconds:.1} s", source.name())));
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
            // A bar that failed is no reason to fail.
            let _ = thread.join();
        }
    }
}
