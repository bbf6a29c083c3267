//! [`Ahead`]: work that is begun before its result is needed.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use super::Control;
use crate::error::{Error, Result};

/// Work that the job's threads do ahead; results are taken in the order in which it was begun.
///
/// Pieces of work that change the same thing are a chain: they are done one after the other, while others are done side by side.
///
/// The calling thread works too while the next result is not there, so that a job never has more threads at work here than it may
/// have, and a thread of the job may be the calling one. Who begins work bounds how much of it waits.
///
/// A child process made by `fork` has none of the threads: there, the result of earlier work is an error.
pub(crate) struct Ahead<T> {
    shared: Arc<Shared<T>>,
    begun: u64,
    taken: u64,
    chains: u64,
}

/// A number that pieces of work have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Chain(u64);

struct Shared<T> {
    state: Mutex<State<T>>,
    changed: Condvar,
    control: Control,
    /// The process that has the threads.
    process: u32,
}

struct State<T> {
    /// Work that nobody does yet.
    waiting: VecDeque<Waiting<T>>,
    /// The chains whose work is being done.
    busy: BTreeSet<Chain>,
    done: BTreeMap<u64, thread::Result<Result<T>>>,
    /// Threads that have been asked to help, and those that do.
    asked: usize,
    helping: usize,
}

struct Waiting<T> {
    place: u64,
    chain: Option<Chain>,
    work: Work<T>,
}

type Work<T> = Box<dyn FnOnce() -> Result<T> + Send>;

impl<T: Send + 'static> Ahead<T> {
    pub(crate) fn new(control: &Control) -> Self {
        let state = State {
            waiting: VecDeque::new(),
            busy: BTreeSet::new(),
            done: BTreeMap::new(),
            asked: 0,
            helping: 0,
        };
        let (control, process) = (control.clone(), std::process::id());
        let shared = Shared { state: Mutex::new(state), changed: Condvar::new(), control, process };
        Ahead { shared: Arc::new(shared), begun: 0, taken: 0, chains: 0 }
    }

    /// A chain to which no work belongs yet.
    pub(crate) fn chain(&mut self) -> Chain {
        self.chains += 1;
        Chain(self.chains)
    }

    /// Queues `work`. A thread of the job does it, or the caller while it waits in [`next`](Self::next).
    pub(crate) fn begin(&mut self, work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<()> {
        self.begin_work(None, Box::new(work))
    }

    /// The same with work that is done after all earlier work of its chain.
    pub(crate) fn begin_in(
        &mut self,
        chain: Chain,
        work: impl FnOnce() -> Result<T> + Send + 'static,
    ) -> Result<()> {
        self.begin_work(Some(chain), Box::new(work))
    }

    fn begin_work(&mut self, chain: Option<Chain>, work: Work<T>) -> Result<()> {
        if !self.shared.is_here() {
            if self.begun > self.taken {
                // Its result is an error. A thread of the other process may have held the lock, which then stays locked here.
                self.begun += 1;
                return Ok(());
            }
            let chains = self.chains;
            *self = Ahead::new(&self.shared.control.clone());
            self.chains = chains;
        }
        let mut state = self.shared.lock();
        state.waiting.push_back(Waiting { place: self.begun, chain, work });
        self.begun += 1;
        self.shared.ask(&mut state)
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
        let (mut state, mut has_worked) = (self.shared.lock(), false);
        loop {
            if let Some(done) = state.done.remove(&self.taken) {
                self.taken += 1;
                // Threads may have found nothing to do but the rest of a chain that the caller worked on.
                let asked = if has_worked { self.shared.ask(&mut state) } else { Ok(()) };
                drop(state);
                let done = done.unwrap_or_else(|panic| resume_unwind(panic));
                return Some(asked.and(done));
            }
            let (still, did) = self.shared.work_once(state);
            has_worked |= did;
            state = if did { still } else { self.shared.wait(still) };
        }
    }
}

impl<T> Ahead<T> {
    /// Whether its threads are those of this process.
    pub(crate) fn is_here(&self) -> bool {
        self.shared.is_here()
    }

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

impl<T: Send + 'static> Shared<T> {
    /// Asks another thread to help, if there is work that it could do and the job may have one more.
    fn ask(self: &Arc<Self>, state: &mut State<T>) -> Result<()> {
        if state.asked + state.helping + 1 < self.control.threads() && state.next_index().is_some() {
            let theirs = Arc::clone(self);
            self.control.spawn(move || theirs.help())?;
            state.asked += 1;
        }
        Ok(())
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

    /// Does what waits longest of what can be done, if there is anything; gives back the lock.
    fn work_once<'a>(&'a self, mut state: MutexGuard<'a, State<T>>) -> (MutexGuard<'a, State<T>>, bool) {
        let Some(Waiting { place, chain, work }) = state.next_work() else { return (state, false) };
        drop(state);
        let done = catch_unwind(AssertUnwindSafe(|| self.control.check().and_then(|()| work())));
        let mut state = self.lock();
        state.done.insert(place, done);
        chain.map(|chain| state.busy.remove(&chain));
        self.changed.notify_all();
        (state, true)
    }

    /// Works until nothing waits that can be done.
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

impl<T> State<T> {
    /// Where among the waiting is what waits longest of what can be done.
    fn next_index(&self) -> Option<usize> {
        let can_be_done = |work: &Waiting<T>| work.chain.is_none_or(|chain| !self.busy.contains(&chain));
        self.waiting.iter().position(can_be_done)
    }

    fn next_work(&mut self) -> Option<Waiting<T>> {
        let index = self.next_index()?;
        let work = self.waiting.remove(index)?;
        self.busy.extend(work.chain);
        Some(work)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::mpsc;
    use std::time::Duration;

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
    fn work_of_a_chain_is_done_in_order_and_other_work_beside_it() {
        for threads in [1, 2, 3, 7] {
            let mut ahead = Ahead::new(&Control::new(threads));
            let chains: Vec<_> = (0..4).map(|_| (ahead.chain(), Arc::new(Mutex::new(0)))).collect();
            for number in 0..60 {
                for (chain, count) in &chains {
                    let count = Arc::clone(count);
                    let work = move || {
                        // Work of the same chain would hold it.
                        let mut count = count.try_lock().map_err(|_| Error::usage("side by side"))?;
                        thread::yield_now();
                        *count += 1;
                        Ok(*count - 1)
                    };
                    ahead.begin_in(*chain, work).unwrap();
                }
                ahead.begin(move || Ok(number)).unwrap();
            }
            for number in 0..60 {
                for _ in 0..=chains.len() {
                    assert_eq!(ahead.next().unwrap().unwrap(), number);
                }
            }
            assert!(ahead.next().is_none());
        }
    }

    #[test]
    fn a_chain_goes_on_after_the_caller_did_the_first_of_it() {
        let mut ahead = Ahead::new(&Control::new(2));
        let chain = ahead.chain();
        let (begin, begun) = mpsc::channel();
        let (release, released) = mpsc::channel();
        ahead.begin(move || Ok(begin.send(()).is_ok() && released.recv().is_ok())).unwrap();
        let (sender, receiver) = mpsc::channel();
        let shared = Arc::clone(&ahead.shared);
        let is_alone = move || {
            let state = shared.lock();
            state.asked + state.helping == 0
        };
        let first = sender.clone();
        // The caller does this while the other thread has the work before it, which then finds nothing else to do.
        let work = move || {
            release.send(()).unwrap();
            while !is_alone() {
                thread::yield_now();
            }
            Ok(first.send(0).is_ok())
        };
        ahead.begin_in(chain, work).unwrap();
        for number in 1..200 {
            let sender = sender.clone();
            ahead.begin_in(chain, move || Ok(sender.send(number).is_ok())).unwrap();
        }
        begun.recv().unwrap();
        assert!(ahead.next().unwrap().unwrap());
        // Nobody asks for another result, and all work is done.
        for number in 0..200 {
            assert_eq!(receiver.recv_timeout(Duration::from_secs(60)), Ok(number));
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
