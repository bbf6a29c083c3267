//! [`overlapped`]: rows that are made on a thread of their own while earlier ones are used.

use std::collections::VecDeque;
use std::panic::resume_unwind;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, SchemaRef};

use super::{Rows, batch_bytes};
use crate::control::Control;
use crate::error::Result;
use crate::limits::{Budget, OVERLAP_BUDGET};

/// Bytes of batches that wait between two stages at the most, unless a single batch has more. What waits should fit in the
/// processor's cache: more of it makes both stages slower.
const WAITING_BYTES: usize = 16 << 20;
/// How many batches wait at the most.
const WAITING_BATCHES: usize = 16;

/// What happens to the thread when its rows are dropped before their end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Early {
    /// It is waited for: it makes one more batch at the most.
    Join,
    /// It ends by itself after its next batch. For rows from a stream, whose next bytes may never come.
    Detach,
}

/// The same rows in the same order, made on a thread of their own. The queue between is bounded, and is not used while
/// most of the budget is: then a batch is made only when it is asked for, as without a thread.
///
/// A job that has one thread, or little memory, gets the rows as they are.
pub(crate) fn overlapped(rows: Rows, early: Early, control: &Control, budget: &Budget) -> Result<Rows> {
    if control.threads() == 1 || budget.limits().max_alloc < OVERLAP_BUDGET {
        return Ok(rows);
    }
    let schema = rows.schema();
    let queue = Arc::new(Queue { state: Mutex::default(), changed: Condvar::new(), budget: budget.clone() });
    let theirs = Sender(Arc::clone(&queue));
    let thread = control.start(move || theirs.send_all(rows))?;
    Ok(Box::new(Overlapped { schema, queue, thread: Some(thread), early }))
}

type Item = Result<RecordBatch, ArrowError>;

#[derive(Default)]
struct State {
    waiting: VecDeque<Item>,
    waiting_bytes: usize,
    /// The bytes of the largest batch so far.
    largest: usize,
    /// Whether the receiver waits for a batch.
    is_wanted: bool,
    /// Whether no batch follows.
    has_ended: bool,
    /// Whether the receiver is gone.
    is_closed: bool,
}

struct Queue {
    state: Mutex<State>,
    changed: Condvar,
    budget: Budget,
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        self.changed.wait(state).unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a batch may be made now.
    fn has_room(&self, state: &State) -> bool {
        let next = (state.largest as u64).saturating_mul(4);
        let is_short = state.waiting.is_empty()
            || state.waiting.len() < WAITING_BATCHES
                && state.waiting_bytes.saturating_add(state.largest) <= WAITING_BYTES;
        state.is_wanted
            || is_short && self.budget.used().saturating_add(next) <= self.budget.limits().max_alloc / 2
    }
}

/// The end of the queue that batches enter. The queue has ended when it is dropped, also by a panic.
struct Sender(Arc<Queue>);

impl Sender {
    fn send_all(self, mut rows: Rows) {
        let queue = &self.0;
        loop {
            let mut state = queue.lock();
            while !state.is_closed && !queue.has_room(&state) {
                state = queue.wait(state);
            }
            if state.is_closed {
                return;
            }
            drop(state);
            let Some(item) = rows.next() else { return };
            let bytes = item.as_ref().map_or(0, batch_bytes);
            let mut state = queue.lock();
            state.largest = state.largest.max(bytes);
            state.waiting_bytes += bytes;
            state.waiting.push_back(item);
            state.is_wanted = false;
            queue.changed.notify_all();
        }
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        self.0.lock().has_ended = true;
        self.0.changed.notify_all();
    }
}

/// The end of the queue that batches leave.
struct Overlapped {
    schema: SchemaRef,
    queue: Arc<Queue>,
    thread: Option<JoinHandle<()>>,
    early: Early,
}

impl Iterator for Overlapped {
    type Item = Item;

    fn next(&mut self) -> Option<Item> {
        let mut state = self.queue.lock();
        loop {
            if let Some(item) = state.waiting.pop_front() {
                let bytes = item.as_ref().map_or(0, batch_bytes);
                state.waiting_bytes = state.waiting_bytes.saturating_sub(bytes);
                self.queue.changed.notify_all();
                return Some(item);
            }
            if state.has_ended {
                drop(state);
                // A panic of the thread is one of this thread, as if there were only one.
                if let Some(Err(panic)) = self.thread.take().map(JoinHandle::join) {
                    resume_unwind(panic);
                }
                return None;
            }
            state.is_wanted = true;
            self.queue.changed.notify_all();
            state = self.queue.wait(state);
        }
    }
}

impl RecordBatchReader for Overlapped {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}

impl Drop for Overlapped {
    fn drop(&mut self) {
        let mut state = self.queue.lock();
        state.is_closed = true;
        state.waiting.clear();
        drop(state);
        self.queue.changed.notify_all();
        if let (Some(thread), Early::Join) = (self.thread.take(), self.early) {
            // Whatever stopped it, nobody asks for its rows any more.
            drop(thread.join());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::{Duration, Instant};

    use arrow_array::{ArrayRef, Int64Array};
    use arrow_schema::Schema;

    use super::*;
    use crate::error::{Error, ErrorKind};
    use crate::hub::rows::from_batches;
    use crate::limits::Limits;

    fn batch(value: i64, rows: usize) -> RecordBatch {
        let column: ArrayRef = Arc::new(Int64Array::from(vec![value; rows]));
        RecordBatch::try_from_iter([("a", column)]).unwrap()
    }

    /// Batches of the numbers in order; `made` counts them. After `fault` of them comes an error.
    fn numbers(count: i64, rows: usize, fault: i64, made: &Arc<AtomicUsize>, budget: &Budget) -> Rows {
        let (made, budget) = (Arc::clone(made), budget.clone());
        let schema: Arc<Schema> = batch(0, 0).schema();
        let batches = (0..count).map(move |value| {
            made.fetch_add(1, Ordering::SeqCst);
            if value == fault {
                return Err(Error::malformed("a number", "none"));
            }
            let batch = batch(value, rows);
            budget.charge(&batch)?;
            Ok(batch)
        });
        from_batches(schema, batches)
    }

    fn first(batch: &RecordBatch) -> i64 {
        use arrow_array::cast::AsArray;
        batch.column(0).as_primitive::<arrow_array::types::Int64Type>().value(0)
    }

    #[test]
    fn batches_come_in_order_and_the_first_error_ends_them() {
        for threads in [1, 2, 7] {
            let (control, budget, made) = (Control::new(threads), Budget::default(), Arc::default());
            let rows = numbers(100, 10, 70, &made, &budget);
            let mut rows = overlapped(rows, Early::Join, &control, &budget).unwrap();
            let values: Vec<i64> = rows.by_ref().take(70).map(|batch| first(&batch.unwrap())).collect();
            assert_eq!(values, (0..70).collect::<Vec<_>>());
            let error = Error::from(rows.next().unwrap().unwrap_err());
            assert_eq!(error.kind(), ErrorKind::Malformed);
            assert!(rows.next().is_none());
            drop(rows);
            assert_eq!((made.load(Ordering::SeqCst), budget.used()), (71, 0));
        }
    }

    #[test]
    fn the_queue_is_bounded() {
        let (control, budget, made) = (Control::new(2), Budget::default(), Arc::default());
        let rows = numbers(100, (WAITING_BYTES / 4) / 8, -1, &made, &budget);
        let mut rows = overlapped(rows, Early::Join, &control, &budget).unwrap();
        for value in 0..100 {
            assert_eq!(first(&rows.next().unwrap().unwrap()), value);
            let ahead = made.load(Ordering::SeqCst) - 1 - value as usize;
            assert!(ahead <= 5, "{ahead} batches in advance");
        }
        assert!(rows.next().is_none());
    }

    #[test]
    fn a_batch_of_any_size_is_made_while_the_one_before_it_is_used() {
        let (control, budget, made) = (Control::new(2), Budget::default(), Arc::default());
        let rows = numbers(3, WAITING_BYTES / 8 + 1, -1, &made, &budget);
        let mut rows = overlapped(rows, Early::Join, &control, &budget).unwrap();
        assert!(rows.next().unwrap().is_ok());
        let start = Instant::now();
        while made.load(Ordering::SeqCst) < 2 {
            assert!(start.elapsed() < Duration::from_secs(60), "nobody makes the second batch");
            std::thread::yield_now();
        }
    }

    #[test]
    fn a_full_budget_has_batches_made_when_they_are_asked_for() {
        let budget = Limits::default().with_max_alloc(OVERLAP_BUDGET).budget();
        let (control, made) = (Control::new(2), Arc::default());
        let held = budget.reserve(OVERLAP_BUDGET / 2 + 1).unwrap();
        let rows = numbers(20, 1000, -1, &made, &budget);
        let mut rows = overlapped(rows, Early::Join, &control, &budget).unwrap();
        for asked in 1..=20 {
            assert!(rows.next().unwrap().is_ok());
            assert_eq!(made.load(Ordering::SeqCst), asked);
        }
        drop((rows, held));
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn rows_that_are_dropped_end_their_thread() {
        let (control, budget, made) = (Control::new(2), Budget::default(), Arc::default());
        let mut rows =
            overlapped(numbers(1000, 10, -1, &made, &budget), Early::Join, &control, &budget).unwrap();
        rows.next().unwrap().unwrap();
        drop(rows);
        let at_end = made.load(Ordering::SeqCst);
        assert!(at_end <= WAITING_BATCHES + 2);
        assert_eq!((Arc::strong_count(&made), budget.used()), (1, 0), "the thread has ended");
    }

    #[test]
    fn a_panic_of_the_thread_is_one_of_its_receiver() {
        let (control, budget) = (Control::new(2), Budget::default());
        let batches = (0..3).map(|value| if value == 1 { panic!("two") } else { Ok(batch(value, 1)) });
        let rows = from_batches(batch(0, 0).schema(), batches);
        let rows = overlapped(rows, Early::Join, &control, &budget).unwrap();
        let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| rows.count()));
        assert_eq!(caught.unwrap_err().downcast_ref(), Some(&"two"));
    }
}
