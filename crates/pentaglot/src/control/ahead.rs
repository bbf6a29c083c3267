//! [`Ahead`]: work that is begun before its result is needed.

use std::collections::{BTreeMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use super::Control;
use crate::error::{Error, Result};

/// Work that the job's threads do ahead; results are taken in the order in which it was begun.
///
/// The calling thread works too while the next result is not there, so that a job never has more threads at work here than it may
/// have, and a thread of the job may be the calling one. Who begins work bounds how much of it waits.
///
/// A child process made by `fork` has none of the threads: there, the result of earlier work is an error.
pub(crate) struct Ahead<T> {
    shared: Arc<Shared<T>>,
    begun: u64,
    taken: u64,
}

struct Shared<T> {
    state: Mutex<State<T>>,
    changed: Condvar,
    control: Control,
    /// The process that has the threads.
    process: u32,
}

struct State<T> {
    /// Work that nobody does yet, with its number.
    waiting: VecDeque<(u64, Work<T>)>,
    done: BTreeMap<u64, thread::Result<Result<T>>>,
    /// Threads that have been asked to help, and those that do.
    asked: usize,
    helping: usize,
}

type Work<T> = Box<dyn FnOnce() -> Result<T> + Send>;

impl<T: Send + 'static> Ahead<T> {
    pub(crate) fn new(control: &Control) -> Self {
        let state = State { waiting: VecDeque::new(), done: BTreeMap::new(), asked: 0, helping: 0 };
        let (control, process) = (control.clone(), std::process::id());
        let shared = Shared { state: Mutex::new(state), changed: Condvar::new(), control, process };
        Ahead { shared: Arc::new(shared), begun: 0, taken: 0 }
    }

    /// Has a thread of the job do `work`, or the calling one when it waits for a result.
    pub(crate) fn begin(&mut self, work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<()> {
        if self.begun == self.taken && !self.shared.is_here() {
            *self = Ahead::new(&self.shared.control.clone());
        }
        let shared = &self.shared;
        let mut state = shared.lock();
        state.waiting.push_back((self.begun, Box::new(work)));
        self.begun += 1;
        if state.asked + state.helping + 1 < shared.control.threads() {
            state.asked += 1;
            let theirs = Arc::clone(shared);
            shared.control.spawn(move || theirs.help())?;
        }
        Ok(())
    }

    /// The result of the work that was begun first. `None`: all results have been taken.
    pub(crate) fn next(&mut self) -> Option<Result<T>> {
        if self.taken == self.begun {
            return None;
        }
        if !self.shared.is_here() {
            self.taken += 1;
            return Some(Err(Error::cancelled()));
        }
        let mut state = self.shared.lock();
        loop {
            if let Some(done) = state.done.remove(&self.taken) {
                self.taken += 1;
                drop(state);
                return Some(done.unwrap_or_else(|panic| resume_unwind(panic)));
            }
            let (still, did) = self.shared.work_once(state);
            state = if did { still } else { self.shared.wait(still) };
        }
    }
}

impl<T> Ahead<T> {
    /// Drops work that nobody has begun to do and results that have not been taken; what is being done ends here.
    pub(crate) fn clear(&mut self) {
        self.taken = self.begun;
        if !self.shared.is_here() {
            return;
        }
        let mut state = self.shared.lock();
        let waiting = std::mem::take(&mut state.waiting);
        // A thread that was asked and has not begun finds nothing to do.
        while state.helping > 0 {
            state = self.shared.wait(state);
        }
        let done = std::mem::take(&mut state.done);
        drop((state, waiting, done));
    }
}

impl<T> Drop for Ahead<T> {
    fn drop(&mut self) {
        self.clear();
    }
}

impl<T> Shared<T> {
    fn is_here(&self) -> bool {
        self.process == std::process::id()
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State<T>>) -> MutexGuard<'a, State<T>> {
        self.changed.wait(state).unwrap_or_else(PoisonError::into_inner)
    }

    /// Does what waits longest, if anything does; gives back the lock.
    fn work_once<'a>(&'a self, mut state: MutexGuard<'a, State<T>>) -> (MutexGuard<'a, State<T>>, bool) {
        let Some((place, work)) = state.waiting.pop_front() else { return (state, false) };
        drop(state);
        let done = catch_unwind(AssertUnwindSafe(|| self.control.check().and_then(|()| work())));
        let mut state = self.lock();
        state.done.insert(place, done);
        self.changed.notify_all();
        (state, true)
    }

    /// Works until nothing waits.
    fn help(&self) {
        let mut state = self.lock();
        state.asked -= 1;
        state.helping += 1;
        loop {
            let (still, did) = self.work_once(state);
            state = still;
            if !did {
                break;
            }
        }
        state.helping -= 1;
        self.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::error::ErrorKind;

    #[test]
    fn results_come_in_the_order_of_the_work() {
        for threads in [1, 2, 7] {
            let mut ahead = Ahead::new(&Control::new(threads));
            assert!(ahead.next().is_none());
            for number in 0..50 {
                ahead
                    .begin(move || if number == 7 { Err(Error::usage("seven")) } else { Ok(number) })
                    .unwrap();
            }
            for number in 0..50 {
                match ahead.next().unwrap() {
                    Ok(result) => assert_eq!(result, number),
                    Err(error) => assert_eq!((error.to_string().as_str(), number), ("seven", 7)),
                }
            }
            assert!(ahead.next().is_none());
        }
    }

    #[test]
    fn no_more_threads_work_than_the_job_has() {
        for threads in [1, 2, 3] {
            let mut ahead = Ahead::new(&Control::new(threads));
            let (busy, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
            for _ in 0..40 {
                let (busy, most) = (Arc::clone(&busy), Arc::clone(&most));
                ahead
                    .begin(move || {
                        most.fetch_max(busy.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                        thread::yield_now();
                        busy.fetch_sub(1, Ordering::SeqCst);
                        Ok(())
                    })
                    .unwrap();
            }
            while let Some(done) = ahead.next() {
                done.unwrap();
            }
            assert!((1..=threads).contains(&most.load(Ordering::SeqCst)));
        }
    }

    #[test]
    fn every_thread_of_the_job_may_wait_for_results() {
        let control = Control::new(2);
        let sums = control.map(vec![10u64, 20, 30, 40], |count| {
            let mut ahead = Ahead::new(&control);
            (0..count).try_for_each(|number| ahead.begin(move || Ok(number)))?;
            std::iter::from_fn(|| ahead.next()).sum::<Result<u64>>()
        });
        let sums: Vec<u64> = sums.unwrap().into_iter().map(Result::unwrap).collect();
        assert_eq!(sums, [45, 190, 435, 780]);
    }

    #[test]
    fn a_cancelled_job_does_no_more_work() {
        let control = Control::new(2);
        let mut ahead: Ahead<()> = Ahead::new(&control);
        control.cancel();
        ahead.begin(|| unreachable!()).unwrap();
        assert_eq!(ahead.next().unwrap().unwrap_err().kind(), ErrorKind::Cancelled);
    }

    #[test]
    fn work_that_nobody_waits_for_has_ended_after_the_drop() {
        let counted = Arc::new(());
        let mut ahead = Ahead::new(&Control::new(3));
        for _ in 0..20 {
            let counted = Arc::clone(&counted);
            let work = move || {
                drop(counted);
                Ok(())
            };
            ahead.begin(work).unwrap();
        }
        drop(ahead);
        assert_eq!(Arc::strong_count(&counted), 1);
    }

    #[test]
    fn a_panic_of_the_work_is_one_of_its_receiver() {
        let mut ahead: Ahead<()> = Ahead::new(&Control::new(2));
        ahead.begin(|| panic!("two")).unwrap();
        let caught = catch_unwind(AssertUnwindSafe(|| ahead.next()));
        assert_eq!(caught.unwrap_err().downcast_ref(), Some(&"two"));
    }
}
