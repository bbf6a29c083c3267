//! [`Lanes`]: items of one lane are done in order, those of different lanes side by side.

use std::any::Any;
use std::cmp::Reverse;
use std::collections::{BTreeSet, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use super::Control;
use crate::error::{Error, Result};

/// Lanes of work, each with a state `S` that its items `I` change.
///
/// Nobody waits for all lanes until [`all`](Self::all) is called, so that a thread which is done with one lane goes on with
/// another, also with items that came later. The calling thread does items too, while more than `most_waiting` bytes wait. In
/// a job with one thread it does all of them, at once.
pub(crate) struct Lanes<S, I> {
    shared: Arc<Shared<S, I>>,
    helpers: Vec<JoinHandle<()>>,
    most_waiting: usize,
}

struct Shared<S, I> {
    queues: Mutex<Queues<S, I>>,
    changed: Condvar,
    work: fn(&mut S, I) -> Result<()>,
    control: Control,
}

struct Queues<S, I> {
    lanes: Vec<Lane<S, I>>,
    /// The lanes whose next item can be done: how many bytes wait in each, and its number.
    ready: BTreeSet<(usize, Reverse<usize>)>,
    /// Items that wait or are being done.
    unfinished: usize,
    waiting_bytes: usize,
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
    /// A lane for each state. Its threads end when the lanes are dropped.
    pub(crate) fn new(
        control: &Control,
        states: Vec<S>,
        most_waiting: usize,
        work: fn(&mut S, I) -> Result<()>,
    ) -> Result<Self> {
        let count = control.threads().min(states.len()).saturating_sub(1);
        let lane = |state| Lane { state: Some(state), waiting: VecDeque::new(), waiting_bytes: 0 };
        let lanes = states.into_iter().map(lane).collect();
        let queues = Mutex::new(Queues {
            lanes,
            ready: BTreeSet::new(),
            unfinished: 0,
            waiting_bytes: 0,
            failed: None,
            is_closed: false,
        });
        let shared = Arc::new(Shared { queues, changed: Condvar::new(), work, control: control.clone() });
        let most_waiting = if count == 0 { 0 } else { most_waiting };
        let mut lanes = Lanes { shared, helpers: Vec::new(), most_waiting };
        for _ in 0..count {
            let shared = Arc::clone(&lanes.shared);
            lanes.helpers.push(control.start(move || shared.help())?);
        }
        Ok(lanes)
    }

    /// Adds an item of so many bytes to a lane. Returns the error of an earlier item, of this lane or another.
    pub(crate) fn send(&mut self, lane: usize, item: I, bytes: usize) -> Result<()> {
        let mut queues = self.shared.lock();
        queues.add(lane, item, bytes);
        self.shared.changed.notify_one();
        let is_alone = self.helpers.is_empty();
        while is_alone && queues.has_items() || queues.waiting_bytes > self.most_waiting {
            queues = self.shared.help_once(queues)?;
        }
        queues.check()
    }

    /// Waits until all items are done, and applies `take` to each state.
    pub(crate) fn all<T>(&mut self, take: impl FnMut(&mut S) -> T) -> Result<Vec<T>> {
        let mut queues = self.shared.lock();
        while queues.has_items() {
            queues = self.shared.help_once(queues)?;
        }
        queues.check()?;
        Ok(queues.lanes.iter_mut().filter_map(|lane| lane.state.as_mut()).map(take).collect())
    }
}

impl<S, I> Drop for Lanes<S, I> {
    fn drop(&mut self) {
        let mut queues = self.shared.lock();
        queues.is_closed = true;
        queues.ready.clear();
        queues.lanes.iter_mut().for_each(|lane| lane.waiting.clear());
        drop(queues);
        self.shared.changed.notify_all();
        // A panic in an item was caught.
        self.helpers.drain(..).for_each(|helper| drop(helper.join()));
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

    /// Whether an item waits or is being done.
    fn has_items(&self) -> bool {
        self.failed.is_none() && self.unfinished > 0
    }

    /// The next item that can be done: of the lane with most to do.
    fn take(&mut self) -> Option<(usize, S, I)> {
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
        if !lane.waiting.is_empty() {
            self.ready.insert((lane.waiting_bytes, Reverse(place)));
        }
    }

    fn check(&mut self) -> Result<()> {
        match self.failed.take() {
            None => Ok(()),
            Some(Failure::Panic(panic)) => resume_unwind(panic),
            Some(Failure::Error(error)) => {
                self.failed = Some(Failure::Error(Error::cancelled()));
                Err(error)
            }
        }
    }
}

impl<S, I> Shared<S, I> {
    fn lock(&self) -> MutexGuard<'_, Queues<S, I>> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does items until the lanes are dropped.
    fn help(&self) {
        let mut queues = self.lock();
        while !queues.is_closed {
            queues = self.next(queues);
        }
    }

    /// Does one item, or waits until something changes; returns the first error.
    fn help_once<'a>(&'a self, queues: MutexGuard<'a, Queues<S, I>>) -> Result<MutexGuard<'a, Queues<S, I>>> {
        let mut queues = self.next(queues);
        queues.check()?;
        Ok(queues)
    }

    fn next<'a>(&'a self, mut queues: MutexGuard<'a, Queues<S, I>>) -> MutexGuard<'a, Queues<S, I>> {
        let next = if queues.failed.is_none() { queues.take() } else { None };
        let Some((place, mut state, item)) = next else {
            return self.changed.wait(queues).unwrap_or_else(PoisonError::into_inner);
        };
        drop(queues);
        let done = catch_unwind(AssertUnwindSafe(|| {
            self.control.check().and_then(|()| (self.work)(&mut state, item))
        }));
        let mut queues = self.lock();
        queues.put_back(place, state);
        match done {
            Ok(Ok(())) => {}
            Ok(Err(error)) if queues.failed.is_none() => queues.failed = Some(Failure::Error(error)),
            Ok(Err(_)) => {}
            Err(panic) => queues.failed = Some(Failure::Panic(panic)),
        }
        self.changed.notify_all();
        queues
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
            })
            .unwrap();
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
    fn the_first_error_ends_all() {
        for threads in [1, 2, 7] {
            let control = Control::new(threads);
            let mut lanes = Lanes::new(&control, vec![0; 3], 10, |state: &mut i32, item: i32| {
                *state += item;
                if item == 7 { Err(Error::usage("seven")) } else { Ok(()) }
            })
            .unwrap();
            let sent = (0..1000).try_for_each(|item| lanes.send(1, item, 1)).and_then(|()| {
                let states = lanes.all(|state| *state)?;
                panic!("{states:?}")
            });
            assert_eq!(sent.unwrap_err().to_string(), "seven");
            assert!(lanes.all(|state| *state).is_err(), "nothing follows");
        }
    }

    #[test]
    fn a_cancelled_job_does_no_more_items() {
        let control = Control::new(2);
        let mut lanes = Lanes::new(&control, vec![(); 3], 10, |(), ()| Ok(())).unwrap();
        control.cancel();
        let error = lanes.send(0, (), 1).and_then(|()| lanes.all(|()| ())).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Cancelled);
    }

    #[test]
    fn a_panic_of_an_item_is_one_of_the_caller() {
        for threads in [1, 3] {
            let control = Control::new(threads);
            let work: fn(&mut (), bool) -> Result<()> =
                |(), panics| if panics { panic!("now") } else { Ok(()) };
            let mut lanes = Lanes::new(&control, vec![(); 3], 10, work).unwrap();
            let caught = catch_unwind(AssertUnwindSafe(|| {
                lanes.send(0, false, 1).and_then(|()| lanes.send(1, true, 1)).unwrap();
                lanes.all(|()| ()).unwrap();
            }));
            assert_eq!(caught.unwrap_err().downcast_ref(), Some(&"now"));
        }
    }
}
