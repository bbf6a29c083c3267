//! [`Lanes`]: items of one lane are done in order, those of different lanes side by side.

use std::any::Any;
use std::cmp::Reverse;
use std::collections::{BTreeSet, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use super::Control;
use crate::error::{Error, Result};

/// Lanes of work, each with a state `S` that its items `I` change.
///
/// Only [`all`](Self::all) and [`one`](Self::one) wait for lanes, so that a thread which is done with one lane goes on with another, also
/// with items that came later. Items are done on the job's threads, and on the calling one while more than
/// `most_waiting` bytes wait. In a job with one thread the calling one does all of them, at once.
pub(crate) struct Lanes<S, I> {
    shared: Arc<Shared<S, I>>,
    most_waiting: usize,
}

struct Shared<S, I> {
    queues: Mutex<Queues<S, I>>,
    changed: Condvar,
    work: fn(&mut S, I) -> Result<()>,
    control: Control,
    /// How many threads of the job help at the most.
    most_helpers: usize,
}

struct Queues<S, I> {
    lanes: Vec<Lane<S, I>>,
    /// The lanes whose next item can be done: how many bytes wait in each, and its number.
    ready: BTreeSet<(usize, Reverse<usize>)>,
    /// Items that wait or are being done.
    unfinished: usize,
    waiting_bytes: usize,
    /// Threads that have been asked to help, and those that do.
    asked: usize,
    helping: usize,
    failed: Option<Failure>,
    is_closed: bool,
}

struct Lane<S, I> {
    /// `None` while an item is being done.
    state: Option<S>,
    /// Items and their bytes.
    waiting: VecDeque<(I, usize)>,
    waiting_bytes: usize,
}

enum Failure {
    Error(Error),
    Panic(Box<dyn Any + Send>),
}

impl<S: Send + 'static, I: Send + 'static> Lanes<S, I> {
    /// A lane for each state.
    pub(crate) fn new(
        control: &Control,
        states: Vec<S>,
        most_waiting: usize,
        work: fn(&mut S, I) -> Result<()>,
    ) -> Self {
        let most_helpers = control.threads().min(states.len()).saturating_sub(1);
        let lane = |state| Lane { state: Some(state), waiting: VecDeque::new(), waiting_bytes: 0 };
        let queues = Mutex::new(Queues {
            lanes: states.into_iter().map(lane).collect(),
            ready: BTreeSet::new(),
            unfinished: 0,
            waiting_bytes: 0,
            asked: 0,
            helping: 0,
            failed: None,
            is_closed: false,
        });
        let control = control.clone();
        Lanes {
            shared: Arc::new(Shared { queues, changed: Condvar::new(), work, control, most_helpers }),
            most_waiting,
        }
    }

    /// Adds an item of so many bytes to a lane. Returns the error of an earlier item, of this lane or another.
    pub(crate) fn send(&mut self, lane: usize, item: I, bytes: usize) -> Result<()> {
        let mut queues = self.shared.lock();
        queues.check()?;
        queues.add(lane, item, bytes);
        self.shared.ask(&mut queues)?;
        let is_alone = self.shared.most_helpers == 0;
        while is_alone && queues.unfinished > 0 || queues.waiting_bytes > self.most_waiting {
            queues = self.shared.help_once(queues)?;
        }
        Ok(())
    }

    /// Waits until all items are done, and applies `take` to each state.
    pub(crate) fn all<T>(&mut self, take: impl FnMut(&mut S) -> T) -> Result<Vec<T>> {
        let mut queues = self.shared.lock();
        queues.check()?;
        while queues.unfinished > 0 {
            queues = self.shared.help_once(queues)?;
        }
        Ok(queues.lanes.iter_mut().filter_map(|lane| lane.state.as_mut()).map(take).collect())
    }

    /// Waits until all items of one lane are done, and applies `take` to its state. `None`: there is no such lane.
    pub(crate) fn one<T>(&mut self, lane: usize, take: impl FnOnce(&mut S) -> T) -> Result<Option<T>> {
        let mut queues = self.shared.lock();
        queues.check()?;
        while queues.lanes.get(lane).is_some_and(Lane::is_unfinished) {
            queues = self.shared.help_once(queues)?;
        }
        Ok(queues.lanes.get_mut(lane).and_then(|lane| lane.state.as_mut()).map(take))
    }
}

impl<S, I> Lane<S, I> {
    fn is_unfinished(&self) -> bool {
        self.state.is_none() || !self.waiting.is_empty()
    }
}

impl<S, I> Drop for Lanes<S, I> {
    fn drop(&mut self) {
        let mut queues = self.shared.lock();
        queues.is_closed = true;
        queues.ready.clear();
        queues.lanes.iter_mut().for_each(|lane| lane.waiting.clear());
        // What is being done ends here; a thread that was asked and has not begun finds nothing to do.
        while queues.helping > 0 {
            queues = self.shared.wait(queues);
        }
    }
}

impl<S, I> Queues<S, I> {
    fn add(&mut self, place: usize, item: I, bytes: usize) {
        let Some(lane) = self.lanes.get_mut(place) else { return };
        self.ready.remove(&(lane.waiting_bytes, Reverse(place)));
        lane.waiting.push_back((item, bytes));
        lane.waiting_bytes += bytes;
        self.waiting_bytes += bytes;
        self.unfinished += 1;
        if lane.state.is_some() {
            self.ready.insert((lane.waiting_bytes, Reverse(place)));
        }
    }

    /// The next item that can be done: of the lane with most to do. None after a failure.
    fn take(&mut self) -> Option<(usize, S, I)> {
        if self.failed.is_some() {
            return None;
        }
        let (_, Reverse(place)) = self.ready.pop_last()?;
        let lane = self.lanes.get_mut(place)?;
        let (item, bytes) = lane.waiting.pop_front()?;
        lane.waiting_bytes -= bytes;
        self.waiting_bytes -= bytes;
        Some((place, lane.state.take()?, item))
    }

    /// An item is done.
    fn put_back(&mut self, place: usize, state: S) {
        self.unfinished -= 1;
        let Some(lane) = self.lanes.get_mut(place) else { return };
        lane.state = Some(state);
        if !lane.waiting.is_empty() && !self.is_closed {
            self.ready.insert((lane.waiting_bytes, Reverse(place)));
        }
    }

    /// Returns the first failure; every later call returns an error, too.
    fn check(&mut self) -> Result<()> {
        let Some(failure) = self.failed.take() else { return Ok(()) };
        self.failed = Some(Failure::Error(Error::cancelled()));
        match failure {
            Failure::Panic(panic) => resume_unwind(panic),
            Failure::Error(error) => Err(error),
        }
    }
}

impl<S, I> Shared<S, I> {
    fn lock(&self) -> MutexGuard<'_, Queues<S, I>> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, queues: MutexGuard<'a, Queues<S, I>>) -> MutexGuard<'a, Queues<S, I>> {
        self.changed.wait(queues).unwrap_or_else(PoisonError::into_inner)
    }

    /// Does the next item, if one can be done; gives back the lock if not.
    fn work_once<'a>(
        &'a self,
        mut queues: MutexGuard<'a, Queues<S, I>>,
    ) -> (MutexGuard<'a, Queues<S, I>>, bool) {
        let Some((place, mut state, item)) = queues.take() else { return (queues, false) };
        drop(queues);
        let done = catch_unwind(AssertUnwindSafe(|| {
            self.control.check().and_then(|()| (self.work)(&mut state, item))
        }));
        let mut queues = self.lock();
        queues.put_back(place, state);
        if queues.failed.is_none() {
            queues.failed = match done {
                Ok(Ok(())) => None,
                Ok(Err(error)) => Some(Failure::Error(error)),
                Err(panic) => Some(Failure::Panic(panic)),
            };
        }
        self.changed.notify_all();
        (queues, true)
    }
}

impl<S: Send + 'static, I: Send + 'static> Shared<S, I> {
    /// Asks a thread of the job to help, if there is something to do for it.
    fn ask(self: &Arc<Self>, queues: &mut Queues<S, I>) -> Result<()> {
        if !queues.ready.is_empty() && queues.asked + queues.helping < self.most_helpers {
            let shared = Arc::clone(self);
            self.control.spawn(move || shared.help())?;
            queues.asked += 1;
        }
        Ok(())
    }

    /// Does items until none can be done.
    fn help(&self) {
        let mut queues = self.lock();
        queues.asked -= 1;
        queues.helping += 1;
        loop {
            let (still, did) = self.work_once(queues);
            queues = still;
            if !did {
                break;
            }
        }
        queues.helping -= 1;
        self.changed.notify_all();
    }

    /// The calling thread does one item, or waits until something changes. Returns the first failure.
    fn help_once<'a>(
        self: &'a Arc<Self>,
        queues: MutexGuard<'a, Queues<S, I>>,
    ) -> Result<MutexGuard<'a, Queues<S, I>>> {
        let (mut queues, did) = self.work_once(queues);
        queues.check()?;
        if did {
            self.ask(&mut queues)?;
        } else {
            queues = self.wait(queues);
            queues.check()?;
        }
        Ok(queues)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    #[test]
    fn items_of_a_lane_are_done_in_order() {
        for threads in [1, 2, 7] {
            let control = Control::new(threads);
            let mut lanes = Lanes::new(&control, vec![Vec::new(); 5], 1000, |done: &mut Vec<usize>, item| {
                done.push(item);
                Ok(())
            });
            for round in 0..3 {
                for item in 0..100 {
                    (0..5).try_for_each(|lane| lanes.send(lane, round * 100 + item, 50 * lane)).unwrap();
                }
                let done = lanes.all(std::mem::take).unwrap();
                let expected: Vec<usize> = (round * 100..round * 100 + 100).collect();
                assert!(done.iter().all(|done| *done == expected), "{threads} threads");
            }
        }
    }

    #[test]
    fn one_lane_is_waited_for_alone() {
        for threads in [1, 2, 7] {
            let control = Control::new(threads);
            let mut lanes = Lanes::new(&control, vec![0; 3], 1000, |sum: &mut usize, item: usize| {
                *sum += item;
                if item == 8 { Err(Error::usage("eight")) } else { Ok(()) }
            });
            for lane in 0..3 {
                (1..=5).try_for_each(|item| lanes.send(lane, item, 1)).unwrap();
            }
            let sums: Vec<_> = (0..4).map(|lane| lanes.one(lane, std::mem::take).unwrap()).collect();
            assert_eq!(sums, [Some(15), Some(15), Some(15), None], "{threads} threads");
            let failed = lanes.send(1, 8, 1).and_then(|()| lanes.one(1, |sum| *sum)).unwrap_err();
            assert_eq!(failed.to_string(), "eight");
        }
    }

    #[test]
    fn the_first_error_ends_all() {
        for threads in [1, 2, 7] {
            let control = Control::new(threads);
            let mut lanes = Lanes::new(&control, vec![0; 3], 10, |state: &mut i32, item: i32| {
                *state += item;
                if item == 7 { Err(Error::usage("seven")) } else { Ok(()) }
            });
            let sent = (0..1000).try_for_each(|item| lanes.send(1, item, 1));
            let error = sent.and_then(|()| lanes.all(|state| *state)).unwrap_err();
            assert_eq!(error.to_string(), "seven");
            assert!(lanes.send(0, 1, 1000).is_err() && lanes.all(|state| *state).is_err(), "nothing follows");
        }
    }

    #[test]
    fn lanes_that_are_dropped_leave_nothing_running() {
        for _ in 0..50 {
            let control = Control::new(4);
            let counted = Arc::new(());
            let mut lanes = Lanes::new(&control, vec![(); 5], 1000, |(), item: Arc<()>| {
                std::thread::yield_now();
                drop(item);
                Ok(())
            });
            (0..40).try_for_each(|item| lanes.send(item % 5, Arc::clone(&counted), 1)).unwrap();
            drop(lanes);
            assert_eq!(Arc::strong_count(&counted), 1);
        }
    }

    #[test]
    fn a_cancelled_job_does_no_more_items() {
        let control = Control::new(2);
        let mut lanes = Lanes::new(&control, vec![(); 3], 10, |(), ()| Ok(()));
        control.cancel();
        let sent = (0..100).try_for_each(|_| lanes.send(0, (), 1));
        let error = sent.and_then(|()| lanes.all(|()| ())).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Cancelled);
    }

    #[test]
    fn a_panic_of_an_item_is_one_of_the_caller() {
        for threads in [1, 3] {
            let control = Control::new(threads);
            let work: fn(&mut (), bool) -> Result<()> =
                |(), panics| if panics { panic!("now") } else { Ok(()) };
            let mut lanes = Lanes::new(&control, vec![(); 3], 10, work);
            let caught = catch_unwind(AssertUnwindSafe(|| {
                lanes.send(0, false, 1).and_then(|()| lanes.send(1, true, 1)).unwrap();
                lanes.all(|()| ()).unwrap();
            }));
            assert_eq!(caught.unwrap_err().downcast_ref(), Some(&"now"));
        }
    }
}
