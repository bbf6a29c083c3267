//! A progress bar (bytes, rate, time left) that shows when work lasts longer than a second.

use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use pentaglot::Control;

use crate::args::{Global, When};

/// A bar that follows how far the run has come, until it is dropped.
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
        let control = global.control.clone();
        let thread = wanted.then(|| thread::spawn(move || show(&control, &stop)));
        Progress { ended, thread }
    }
}

fn show(control: &Control, stop: &AtomicBool) {
    let start = Instant::now();
    let mut bar: Option<ProgressBar> = None;
    while !stop.load(Ordering::Relaxed) {
        thread::park_timeout(Duration::from_millis(100));
        if bar.is_none() && start.elapsed() >= Duration::from_secs(1) {
            let total = control.progress().total_bytes;
            let template = match total {
                Some(_) => "{bar:30} {bytes}/{total_bytes} {bytes_per_sec} {eta} left",
                None => "{spinner} {bytes} {bytes_per_sec}",
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
