//! Long work: the interpreter's lock is released, signals are answered, and a callable hears how far the work has come.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use pentaglot::{Control, Error};
use pyo3::prelude::*;

use crate::error::{Outcome, internal};

/// How often signals are looked at and progress is told.
const STEP: Duration = Duration::from_millis(50);

/// Inputs up to so many bytes take less time than a thread.
const SMALL: u64 = 1 << 20;

/// Who hears of a job: signal handlers, and a callable that is told the bytes read and the bytes in all.
pub(crate) struct Teller {
    control: Control,
    progress: Option<Py<PyAny>>,
}

impl Teller {
    pub(crate) fn new(control: &Control, progress: Option<Py<PyAny>>) -> Self {
        Teller { control: control.clone(), progress }
    }

    /// Runs signal handlers and tells the callable how far the job is. An exception of either is the result.
    pub(crate) fn tell(&self, py: Python<'_>) -> PyResult<()> {
        py.check_signals()?;
        if let Some(progress) = &self.progress {
            let now = self.control.progress();
            progress.call1(py, (now.bytes, now.total_bytes))?;
        }
        Ok(())
    }
}

/// Long work and who hears of it.
pub(crate) struct Watch {
    pub(crate) teller: Teller,
    /// The bytes of the input, if known.
    pub(crate) bytes: Option<u64>,
}

impl Watch {
    /// Does the work without the interpreter's lock: in another thread if it may be long, while this one answers to
    /// signals. An exception that a handler or the callable raises ends the work.
    pub(crate) fn run<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce() -> Outcome<T> + Send,
    ) -> Outcome<T> {
        let done = if self.bytes.is_some_and(|bytes| bytes <= SMALL) {
            py.detach(work)?
        } else {
            py.detach(|| self.in_thread(work))?
        };
        self.teller.tell(py)?;
        Ok(done)
    }

    fn in_thread<T: Send>(&self, work: impl FnOnce() -> Outcome<T> + Send) -> Outcome<T> {
        thread::scope(|scope| {
            let (working, ended) = channel::<()>();
            let worker = scope.spawn(move || {
                let _working = working;
                work()
            });
            let mut raised = None;
            // Nothing is sent: the end of the work closes the channel.
            while let Err(RecvTimeoutError::Timeout) = ended.recv_timeout(STEP) {
                if raised.is_none()
                    && let Err(error) = Python::attach(|py| self.teller.tell(py))
                {
                    self.teller.control.cancel();
                    raised = Some(error);
                }
            }
            let result = worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            match raised {
                Some(error) => {
                    self.teller.control.resume();
                    Err(error.into())
                }
                None => result,
            }
        })
    }
}

/// Looks at signals now and then, between the steps of long work.
pub(crate) struct Pulse(Instant);

impl Pulse {
    pub(crate) fn new() -> Self {
        Pulse(Instant::now())
    }

    /// Runs signal handlers, unless that was done a moment ago. An exception of a handler is the result.
    pub(crate) fn look(&mut self) -> PyResult<()> {
        if self.0.elapsed() < STEP {
            return Ok(());
        }
        self.0 = Instant::now();
        Python::attach(|py| py.check_signals())
    }
}

/// Does work that cannot be cancelled in a thread that owns its data, while this one answers to signals. If a handler
/// raises an exception, that is the result, and the thread is left behind: it ends with its work.
pub(crate) fn apart<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce() -> Outcome<T> + Send + 'static,
) -> Outcome<T> {
    py.detach(|| {
        let (done, result) = channel();
        let worker = thread::Builder::new().spawn(move || drop(done.send(work())));
        let worker = worker.map_err(|error| Error::io("cannot start a thread", error))?;
        loop {
            match result.recv_timeout(STEP) {
                Ok(result) => return result,
                Err(RecvTimeoutError::Timeout) => Python::attach(|py| py.check_signals())?,
                // Nothing was sent: the work panicked.
                Err(RecvTimeoutError::Disconnected) => match worker.join() {
                    Ok(()) => return Err(internal("the work has no result").into()),
                    Err(panic) => std::panic::resume_unwind(panic),
                },
            }
        }
    })
}
