//! [`Behind`]: an output that is written on a thread of its own, while the next bytes are encoded.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use super::Output;
use crate::control::Control;
use crate::source::ReadAt;

/// Bytes that are handed over at a time.
const BUFFER_BYTES: usize = 1 << 20;
/// Buffers that wait to be written at the most.
const WAITING: usize = 4;
/// The thread is started when so many bytes have been written.
const START_BYTES: u64 = 4 << 20;

/// An output whose bytes are written later. An error is reported by the next call.
pub(super) struct Behind {
    shared: Arc<Shared>,
    can_patch: bool,
    control: Control,
    buffer: Vec<u8>,
    written: u64,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    /// `None` once it has been committed.
    output: Mutex<Option<Box<dyn Output>>>,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<Vec<u8>>,
    /// Buffers that have been written.
    free: Vec<Vec<u8>>,
    /// Whether a buffer is being written.
    is_busy: bool,
    /// The first error, until it is reported.
    error: Option<io::Error>,
    /// Whether there was an error.
    has_failed: bool,
    /// Whether nothing more will be written.
    is_closed: bool,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        self.changed.wait(state).unwrap_or_else(PoisonError::into_inner)
    }

    fn with_output<T>(&self, work: impl FnOnce(&mut dyn Output) -> io::Result<T>) -> io::Result<T> {
        match self.output.lock().unwrap_or_else(PoisonError::into_inner).as_deref_mut() {
            Some(output) => work(output),
            None => Err(io::Error::other("the output has been committed")),
        }
    }

    /// Writes what comes until nothing more will.
    fn write_all(&self) {
        loop {
            let mut state = self.state();
            while state.waiting.is_empty() && !state.is_closed {
                state = self.wait(state);
            }
            let Some(buffer) = state.waiting.pop_front() else { return };
            state.is_busy = true;
            drop(state);
            let written = self.with_output(|output| output.write(&buffer));
            let mut state = self.state();
            state.is_busy = false;
            state.free.push(buffer);
            if let Err(error) = written {
                state.fail(error);
            }
            self.changed.notify_all();
        }
    }
}

impl State {
    fn fail(&mut self, error: io::Error) {
        self.waiting.clear();
        self.has_failed = true;
        self.error.get_or_insert(error);
    }

    fn check(&mut self) -> io::Result<()> {
        match (self.error.take(), self.has_failed) {
            (Some(error), _) => Err(error),
            (None, true) => Err(io::Error::other("an earlier write failed")),
            (None, false) => Ok(()),
        }
    }
}

/// Fails the output if its thread ends before it was told to, which only a panic does.
struct Ending(Arc<Shared>);

impl Drop for Ending {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.is_busy = false;
        if !state.is_closed {
            state.fail(io::Error::other("the thread that writes has ended"));
        }
        drop(state);
        self.0.changed.notify_all();
    }
}

impl Behind {
    pub(super) fn new(output: Box<dyn Output>, control: &Control) -> Self {
        let can_patch = output.can_patch();
        let shared =
            Shared { output: Mutex::new(Some(output)), state: Mutex::default(), changed: Condvar::new() };
        let (shared, control) = (Arc::new(shared), control.clone());
        Behind { shared, can_patch, control, buffer: Vec::new(), written: 0, thread: None }
    }

    /// Hands the buffer over. Small outputs are written at once.
    fn hand_over(&mut self) -> io::Result<()> {
        self.shared.state().check()?;
        self.written += self.buffer.len() as u64;
        if self.thread.is_none() && self.written < START_BYTES {
            let written = self.shared.with_output(|output| output.write(&self.buffer));
            // What was written in part is not written again, and never committed.
            self.shared.state().has_failed |= written.is_err();
            self.buffer.clear();
            return written;
        }
        if self.thread.is_none() {
            let ending = Ending(Arc::clone(&self.shared));
            self.thread = Some(self.control.start(move || ending.0.write_all())?);
        }
        let mut state = self.shared.state();
        while state.waiting.len() >= WAITING && !state.has_failed {
            state = self.shared.wait(state);
        }
        state.check()?;
        let mut next = state.free.pop().unwrap_or_default();
        next.clear();
        state.waiting.push_back(std::mem::replace(&mut self.buffer, next));
        self.shared.changed.notify_all();
        Ok(())
    }

    /// Waits until everything is written.
    fn drain(&mut self) -> io::Result<()> {
        if !self.buffer.is_empty() {
            self.hand_over()?;
        }
        let mut state = self.shared.state();
        while (state.is_busy || !state.waiting.is_empty()) && !state.has_failed {
            state = self.shared.wait(state);
        }
        state.check()
    }

    fn close(&mut self) {
        let mut state = self.shared.state();
        state.is_closed = true;
        state.waiting.clear();
        drop(state);
        self.shared.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            // A panic was turned into an error.
            drop(thread.join());
        }
    }
}

impl Output for Behind {
    fn write(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let room = BUFFER_BYTES - self.buffer.len();
            let (now, later) = bytes.split_at(room.min(bytes.len()));
            self.buffer.extend_from_slice(now);
            bytes = later;
            if self.buffer.len() == BUFFER_BYTES {
                self.hand_over()?;
            }
        }
        Ok(())
    }

    fn can_patch(&self) -> bool {
        self.can_patch
    }

    fn patch(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.drain()?;
        self.shared.with_output(|output| output.patch(offset, bytes))
    }

    fn sibling(&mut self, suffix: &str) -> io::Result<Option<Box<dyn Output>>> {
        self.shared.with_output(|output| output.sibling(suffix))
    }

    fn remove_sibling(&mut self, suffix: &str) -> io::Result<()> {
        self.shared.with_output(|output| output.remove_sibling(suffix))
    }

    fn reread(&mut self) -> io::Result<Option<Arc<dyn ReadAt>>> {
        self.drain()?;
        self.shared.with_output(|output| output.reread())
    }

    fn commit(mut self: Box<Self>) -> io::Result<()> {
        self.drain()?;
        self.close();
        let output = self.shared.output.lock().unwrap_or_else(PoisonError::into_inner).take();
        output.map_or(Ok(()), |output| output.commit())
    }
}

impl Drop for Behind {
    fn drop(&mut self) {
        self.close();
    }
}
