//! [`Control`]: the progress of a job, a flag that cancels it, and the threads that it may use.

mod ahead;
mod lanes;
mod spare;

pub(crate) use ahead::{Ahead, Chain};
pub(crate) use lanes::Lanes;
pub(crate) use spare::Spare;

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, mpsc};
use std::thread::JoinHandle;

use crate::error::{Error, Result};

/// A handle on one job, with which the caller observes and cancels it. Clones share the same state.
///
/// The control of a job is the one in the [`OpenOptions`](crate::job::OpenOptions) that its input is opened with.
///
/// ```
/// use pentaglot::job::{self, Conversion, ConvertOptions, OpenOptions};
/// use pentaglot::{Control, ErrorKind, Registry, Sink, Source};
/// let control = Control::new(1);
/// let handle = control.clone(); // for another thread: a progress bar, a button
/// let open = OpenOptions::default().with_control(control);
/// let registry = Registry::default();
/// let source = Source::from_bytes("x.csv", b"a\n1\n2\n".to_vec());
/// let opened = job::open_source(&registry, source, None, &open)?;
/// let options = ConvertOptions::default().with_open(open);
/// let conversion = Conversion::plan_opened(opened, job::target(&registry, "jsonl")?, None, &options)?;
/// handle.cancel();
/// let (sink, memory) = Sink::memory();
/// assert_eq!(conversion.run_into(sink).unwrap_err().kind(), ErrorKind::Cancelled);
/// assert_eq!((handle.progress().rows, memory.take()), (0, Vec::new()));
/// # Ok::<(), pentaglot::Error>(())
/// ```
#[derive(Clone, Default)]
pub struct Control(Arc<Shared>);

#[derive(Default)]
struct Shared {
    cancelled: AtomicBool,
    bytes: AtomicU64,
    /// Total bytes; meaningful unless `unbounded`.
    total_bytes: AtomicU64,
    /// An input whose length is not known has been opened.
    unbounded: AtomicBool,
    rows: AtomicU64,
    /// Total rows; meaningful unless `uncounted`.
    total_rows: AtomicU64,
    /// The job reads rows whose number is not known.
    uncounted: AtomicBool,
    /// 0 means one per core.
    threads: usize,
    /// Started on first use, so that a process that forks before it reads has no threads.
    pool: OnceLock<Pool>,
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The cores that this process may use. They are counted once: the system reads several files for it.
fn cores() -> usize {
    static CORES: OnceLock<usize> = OnceLock::new();
    *CORES.get_or_init(|| std::thread::available_parallelism().map_or(1, usize::from))
}

/// The threads of one process. A child made by `fork` has a copy of the pool, but none of its threads, so it starts a pool
/// of its own.
struct Pool {
    process: u32,
    /// `None` only while this value is dropped.
    threads: Option<std::result::Result<rayon::ThreadPool, String>>,
    /// The pool of a child process.
    of_child: OnceLock<Box<Pool>>,
}

impl Pool {
    fn start(threads: usize) -> Self {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
        let threads = Some(pool.map_err(|error| error.to_string()));
        Pool { process: std::process::id(), threads, of_child: OnceLock::new() }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        // The threads of another process cannot be woken or joined here, and the locks that they held stay locked.
        if self.process != std::process::id() {
            std::mem::forget(self.threads.take());
        }
    }
}

/// The progress of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Progress {
    /// Bytes of the input that have been read.
    pub bytes: u64,
    /// Total bytes of the input, if known.
    pub total_bytes: Option<u64>,
    /// Rows that have been returned by readers.
    pub rows: u64,
    /// Total rows requested, if known.
    pub total_rows: Option<u64>,
}

impl Control {
    /// A handle on a job that uses `threads` threads; 0 means one per core.
    pub fn new(threads: usize) -> Self {
        Control(Arc::new(Shared { threads, ..Shared::default() }))
    }

    /// Ends the job at its next batch, with an error of the kind `Cancelled`. Safe to call in any thread, at any time.
    pub fn cancel(&self) {
        self.0.cancelled.store(true, Ordering::Relaxed);
    }

    /// Clears the flag set by [`cancel`](Self::cancel), so that documents opened by the ended job can be used
    /// again.
    pub fn resume(&self) {
        self.0.cancelled.store(false, Ordering::Relaxed);
    }

    /// Whether the job has been cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.0.cancelled.load(Ordering::Relaxed)
    }

    /// Returns an error if the job has been cancelled. Long computations call it between their steps.
    pub fn check(&self) -> Result<()> {
        if self.is_cancelled() { Err(Error::cancelled()) } else { Ok(()) }
    }

    /// The progress so far.
    pub fn progress(&self) -> Progress {
        let shared = &*self.0;
        let total = |total: &AtomicU64, is_unknown: &AtomicBool| {
            Some(total.load(Ordering::Relaxed))
                .filter(|total| !is_unknown.load(Ordering::Relaxed) && *total > 0)
        };
        let total_bytes = total(&shared.total_bytes, &shared.unbounded);
        Progress {
            // Headers are read more than once.
            bytes: shared.bytes.load(Ordering::Relaxed).min(total_bytes.unwrap_or(u64::MAX)),
            total_bytes,
            rows: shared.rows.load(Ordering::Relaxed),
            total_rows: total(&shared.total_rows, &shared.uncounted),
        }
    }

    /// Adds an input of `bytes` bytes to the total; `None` if its length is not known.
    pub(crate) fn expect_bytes(&self, bytes: Option<u64>) {
        match bytes {
            Some(bytes) => drop(self.0.total_bytes.fetch_add(bytes, Ordering::Relaxed)),
            None => self.0.unbounded.store(true, Ordering::Relaxed),
        }
    }

    /// Adds rows that the job is going to read to the total; `None` if their number is not known.
    pub(crate) fn expect_rows(&self, rows: Option<u64>) {
        match rows {
            Some(rows) => drop(self.0.total_rows.fetch_add(rows, Ordering::Relaxed)),
            None => self.0.uncounted.store(true, Ordering::Relaxed),
        }
    }

    /// Counts bytes that have been read. Returns an error if the job has been cancelled.
    pub(crate) fn count_bytes(&self, bytes: u64) -> Result<()> {
        self.0.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.check()
    }

    /// Counts rows that a reader returns. Returns an error if the job has been cancelled.
    pub(crate) fn count_rows(&self, rows: u64) -> Result<()> {
        self.0.rows.fetch_add(rows, Ordering::Relaxed);
        self.check()
    }

    /// The number of threads of the job.
    pub fn threads(&self) -> usize {
        match self.0.threads {
            0 => cores(),
            threads => threads,
        }
    }

    /// Applies `work` to each item; results are in the order of the items. Runs on the calling thread if the job
    /// has one thread or there is one item, otherwise on the job's own threads and the calling one.
    pub(crate) fn map<I: Send, T: Send>(
        &self,
        items: Vec<I>,
        work: impl Fn(I) -> Result<T> + Send + Sync,
    ) -> Result<Vec<Result<T>>> {
        self.map_largest_first(items, |_| 0, work)
    }

    /// As [`map`](Self::map), beginning with the items that take longest, so that no thread is left with one of them at the end.
    pub(crate) fn map_largest_first<I: Send, T: Send>(
        &self,
        items: Vec<I>,
        size: impl Fn(&I) -> usize,
        work: impl Fn(I) -> Result<T> + Send + Sync,
    ) -> Result<Vec<Result<T>>> {
        let one = |item: I| self.check().and_then(|()| work(item));
        if self.threads() == 1 || items.len() < 2 {
            return Ok(items.into_iter().map(one).collect());
        }
        let mut items: Vec<(usize, I)> = items.into_iter().enumerate().collect();
        items.sort_by_cached_key(|(_, item)| Reverse(size(item)));
        let (helpers, items) = (self.threads().min(items.len()) - 1, Mutex::new(items.into_iter()));
        let done = Mutex::new(Vec::new());
        // Whoever is free takes the next item. The calling thread takes items too, instead of waiting.
        let take_all = || {
            loop {
                let next = lock(&items).next();
                let Some((place, item)) = next else { break };
                let result = one(item);
                lock(&done).push((place, result));
            }
        };
        self.pool()?.in_place_scope(|scope| {
            (0..helpers).for_each(|_| scope.spawn(|_| take_all()));
            take_all();
        });
        let mut done: Vec<(usize, Result<T>)> = done.into_inner().unwrap_or_else(PoisonError::into_inner);
        done.sort_unstable_by_key(|(place, _)| *place);
        Ok(done.into_iter().map(|(_, result)| result).collect())
    }

    /// How many pieces of work are given to [`each_in_order`](Self::each_in_order) at a time: so many that threads seldom wait at
    /// their end, and so few that the results which wait take little memory.
    pub(crate) fn pieces(&self) -> usize {
        let threads = self.threads();
        threads.saturating_mul(8).min(64).max(threads)
    }

    /// Applies `work` to each item on the job's threads, and `take` to each result on the calling thread, in the order of the
    /// items, while later ones are worked on. The first error ends both. Not for work on the job's own threads: the calling thread
    /// waits here for theirs.
    pub(crate) fn each_in_order<I: Send, T: Send>(
        &self,
        items: Vec<I>,
        work: impl Fn(I) -> Result<T> + Send + Sync,
        mut take: impl FnMut(T) -> Result<()> + Send,
    ) -> Result<()> {
        let has_failed = AtomicBool::new(false);
        let one = |item: I| {
            self.check()?;
            if has_failed.load(Ordering::Relaxed) { Err(Error::cancelled()) } else { work(item) }
        };
        if self.threads() == 1 || items.len() < 2 {
            return items.into_iter().try_for_each(|item| take(one(item)?));
        }
        let (sender, receiver) = mpsc::channel();
        self.pool()?.in_place_scope(|scope| {
            for (place, item) in items.into_iter().enumerate() {
                let (sender, one) = (sender.clone(), &one);
                scope.spawn(move |_| drop(sender.send((place, one(item)))));
            }
            drop(sender);
            let (mut waiting, mut next) = (BTreeMap::new(), 0);
            let mut take_ready = |place, result: Result<T>| {
                waiting.insert(place, result);
                while let Some(result) = waiting.remove(&next) {
                    take(result?)?;
                    next += 1;
                }
                Ok(())
            };
            let done = receiver.into_iter().try_for_each(|(place, result)| take_ready(place, result));
            has_failed.store(done.is_err(), Ordering::Relaxed);
            done
        })
    }

    /// Runs both, side by side if the job has several threads.
    pub(crate) fn both<A: Send, B: Send>(
        &self,
        one: impl FnOnce() -> A + Send,
        two: impl FnOnce() -> B + Send,
    ) -> Result<(A, B)> {
        match self.threads() {
            1 => Ok((one(), two())),
            _ => self.install(|| rayon::join(one, two)),
        }
    }

    /// Runs `work` in the job's thread pool, so that parallel iterators inside it use that pool.
    pub(crate) fn install<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T> {
        self.check()?;
        Ok(self.pool()?.install(work))
    }

    /// Runs `work` on one of the job's threads, some time.
    fn spawn(&self, work: impl FnOnce() + Send + 'static) -> Result<()> {
        self.pool()?.spawn(work);
        Ok(())
    }

    /// Starts a thread for one stage of the job, which overlaps with others. What a stage divides among threads it gives to
    /// [`map`](Self::map).
    pub(crate) fn start<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<JoinHandle<T>> {
        self.check()?;
        let started = std::thread::Builder::new().spawn(work);
        started.map_err(|error| Error::io("cannot start a thread", error))
    }

    /// The job's thread pool, started on first use, and again after a fork.
    fn pool(&self) -> Result<&rayon::ThreadPool> {
        let process = std::process::id();
        let mut pool = self.0.pool.get_or_init(|| Pool::start(self.threads()));
        while pool.process != process {
            pool = pool.of_child.get_or_init(|| Box::new(Pool::start(self.threads())));
        }
        let failed = |error: &str| Error::io("cannot start threads", std::io::Error::other(error.to_owned()));
        match &pool.threads {
            Some(Ok(threads)) => Ok(threads),
            Some(Err(error)) => Err(failed(error)),
            None => Err(failed("the pool has been dropped")),
        }
    }
}

impl fmt::Debug for Control {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Control")
            .field("threads", &self.0.threads)
            .field("cancelled", &self.is_cancelled())
            .field("progress", &self.progress())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    #[test]
    fn one_thread_is_the_calling_thread() {
        let here = std::thread::current().id();
        let control = Control::new(1);
        let ids = control.map(vec![(); 10], |()| Ok(std::thread::current().id())).unwrap();
        assert!(ids.into_iter().all(|id| id.unwrap() == here));
        assert!(control.0.pool.get().is_none(), "no pool is started");
    }

    #[test]
    fn results_come_in_order_from_the_own_pool() {
        for threads in [0, 1, 3] {
            let control = Control::new(threads);
            let all: Vec<usize> = control
                .map((0..100).collect(), |item| Ok(item * 2))
                .unwrap()
                .into_iter()
                .map(Result::unwrap)
                .collect();
            assert_eq!(all, (0..100).map(|item| item * 2).collect::<Vec<_>>());
        }
    }

    #[test]
    fn results_are_taken_in_order_and_the_first_error_ends_all() {
        for threads in [1, 2, 7] {
            let control = Control::new(threads);
            let mut taken = Vec::new();
            control
                .each_in_order(
                    (0..50).collect(),
                    |item| Ok(item * 2),
                    |item: usize| {
                        taken.push(item);
                        Ok(())
                    },
                )
                .unwrap();
            assert_eq!(taken, (0..50).map(|item| item * 2).collect::<Vec<_>>());
            let work = |item: usize| if item == 7 { Err(Error::usage("seven")) } else { Ok(item) };
            let mut taken = Vec::new();
            let error = control.each_in_order((0..50).collect(), work, |item| {
                taken.push(item);
                Ok(())
            });
            assert_eq!((error.unwrap_err().to_string(), taken.len()), ("seven".to_owned(), 7));
            let error = control.each_in_order((0..50).collect(), Ok, |item: usize| match item {
                3 => Err(Error::usage("three")),
                _ => Ok(()),
            });
            assert_eq!(error.unwrap_err().to_string(), "three");
        }
    }

    #[test]
    fn cancelled_work_ends_with_an_error_of_its_own_kind() {
        let control = Control::new(2);
        let results = control.map((0..50).collect(), |item: usize| {
            control.cancel();
            Ok(item)
        });
        let failed = results.unwrap().into_iter().filter_map(Result::err).collect::<Vec<_>>();
        assert!(!failed.is_empty());
        assert!(failed.iter().all(|error| error.kind() == ErrorKind::Cancelled));
        assert_eq!(Error::cancelled().to_string(), "cancelled");
        control.resume();
        assert!(control.check().is_ok());
    }

    #[test]
    fn an_input_of_unknown_length_makes_the_totals_unknown() {
        let control = Control::default();
        control.expect_bytes(Some(10));
        control.count_bytes(4).unwrap();
        control.count_rows(2).unwrap();
        control.expect_rows(Some(5));
        let expected = Progress { bytes: 4, total_bytes: Some(10), rows: 2, total_rows: Some(5) };
        assert_eq!(control.progress(), expected);
        control.expect_bytes(None);
        control.expect_rows(None);
        assert_eq!(control.progress(), Progress { total_bytes: None, total_rows: None, ..expected });
    }
}
