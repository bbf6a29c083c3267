//! The queries that all bit vectors share, for any encoding.

/// Queries on a vector of bits, or on the sorted positions of its set bits.
///
/// Every argument up to `u64::MAX` is allowed. The batched forms (`…_many`) give the same answers and
/// prefetch the cache lines of 32 queries at a time.
///
/// A [`SparseVector`](crate::SparseVector) may hold a *multiset*: then `select` is the sorted array, `rank`
/// counts values below the argument, and queries about unset bits (`rank0`, `select0`, `inverse_select`)
/// return `None`.
///
/// ```
/// use pentaglot_succinct::{BitQueries, BitVector};
/// let bits: BitVector = [true, false, false, true].into_iter().collect();
/// assert_eq!(bits.rank(3), 1);
/// assert_eq!(bits.rank(u64::MAX), 2);
/// assert_eq!(bits.select(1), Some(3));
/// assert_eq!(bits.select0(2), None);
/// assert_eq!(bits.predecessor(2), Some(0));
/// assert_eq!(bits.successor(4), None);
/// assert_eq!(bits.inverse_select(2), Some((1, false)));
/// ```
pub trait BitQueries {
    /// The number of bits: the size of the universe.
    fn len(&self) -> u64;

    /// Whether there are no bits.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number of set bits, or of values in a multiset.
    fn count_ones(&self) -> u64;

    /// The number of unset bits; 0 if a multiset has more values than its universe.
    fn count_zeros(&self) -> u64 {
        self.len().saturating_sub(self.count_ones())
    }

    /// Bit `index`, or `None` past the end.
    fn get(&self, index: u64) -> Option<bool>;

    /// The number of set bits before `index`; all of them past the end.
    fn rank(&self, index: u64) -> u64;

    /// The number of unset bits before `index`; all of them past the end. `None` for a multiset.
    fn rank0(&self, index: u64) -> Option<u64> {
        Some(index.min(self.len()).wrapping_sub(self.rank(index)))
    }

    /// The position of the set bit that has `rank` set bits before it.
    fn select(&self, rank: u64) -> Option<u64>;

    /// The position of the unset bit that has `rank` unset bits before it. `None` for a multiset.
    fn select0(&self, rank: u64) -> Option<u64>;

    /// Bit `index`, and how many bits of the same value come before it. `None` for a multiset.
    fn inverse_select(&self, index: u64) -> Option<(u64, bool)> {
        let bit = self.get(index)?;
        Some((if bit { self.rank(index) } else { self.rank0(index)? }, bit))
    }

    /// The position of the last set bit at or before `index`.
    fn predecessor(&self, index: u64) -> Option<u64>;

    /// The position of the first set bit at or after `index`.
    fn successor(&self, index: u64) -> Option<u64>;

    /// Rank and position of the last set bit at or before `index`: the last of equal values.
    fn predecessor_ranked(&self, index: u64) -> Option<(u64, u64)> {
        let position = self.predecessor(index)?;
        let after = position.checked_add(1).map_or_else(|| self.count_ones(), |next| self.rank(next));
        Some((after.wrapping_sub(1), position))
    }

    /// Rank and position of the first set bit at or after `index`: the first of equal values.
    fn successor_ranked(&self, index: u64) -> Option<(u64, u64)> {
        let position = self.successor(index)?;
        Some((self.rank(position), position))
    }

    /// [`get`](Self::get) for many indexes; panics if `answers` is shorter than the queries, as do the other
    /// batched forms.
    fn get_many(&self, indexes: &[u64], answers: &mut [Option<bool>]) {
        each(indexes, answers, |index| self.get(index));
    }

    /// [`rank`](Self::rank) for many indexes.
    fn rank_many(&self, indexes: &[u64], answers: &mut [u64]) {
        each(indexes, answers, |index| self.rank(index));
    }

    /// [`rank0`](Self::rank0) for many indexes.
    fn rank0_many(&self, indexes: &[u64], answers: &mut [Option<u64>]) {
        each(indexes, answers, |index| self.rank0(index));
    }

    /// [`select`](Self::select) for many ranks.
    fn select_many(&self, ranks: &[u64], answers: &mut [Option<u64>]) {
        each(ranks, answers, |rank| self.select(rank));
    }

    /// [`select0`](Self::select0) for many ranks.
    fn select0_many(&self, ranks: &[u64], answers: &mut [Option<u64>]) {
        each(ranks, answers, |rank| self.select0(rank));
    }

    /// [`inverse_select`](Self::inverse_select) for many indexes.
    fn inverse_select_many(&self, indexes: &[u64], answers: &mut [Option<(u64, bool)>]) {
        each(indexes, answers, |index| self.inverse_select(index));
    }

    /// [`predecessor`](Self::predecessor) for many indexes.
    fn predecessor_many(&self, indexes: &[u64], answers: &mut [Option<u64>]) {
        each(indexes, answers, |index| self.predecessor(index));
    }

    /// [`successor`](Self::successor) for many indexes.
    fn successor_many(&self, indexes: &[u64], answers: &mut [Option<u64>]) {
        each(indexes, answers, |index| self.successor(index));
    }
}

fn each<T>(questions: &[u64], answers: &mut [T], answer: impl Fn(u64) -> T) {
    for (place, &question) in answers[..questions.len()].iter_mut().zip(questions) {
        *place = answer(question);
    }
}

/// Positions of unset bits, in order: those between runs.
#[derive(Debug, Clone)]
pub struct Zeros<R> {
    runs: R,
    next: u64,
    end: u64,
    // The end of the run after `end`.
    after: u64,
    len: u64,
}

impl<R> Zeros<R> {
    /// The positions from `from` on, below `len`, that are in none of the `runs` (start, length) from there on.
    pub(crate) fn new(runs: R, from: u64, len: u64) -> Self {
        Zeros { runs, next: from, end: from, after: from, len }
    }
}

impl<R: Iterator<Item = (u64, u64)>> Iterator for Zeros<R> {
    type Item = u64;

    #[inline]
    fn next(&mut self) -> Option<u64> {
        while self.next >= self.end {
            // Runs of a damaged file may be out of order, or past the end.
            self.next = self.next.max(self.after);
            match self.runs.next() {
                Some((start, len)) => {
                    (self.end, self.after) = (start.min(self.len), start.saturating_add(len));
                }
                None if self.next < self.len => (self.end, self.after) = (self.len, self.len),
                None => return None,
            }
        }
        self.next += 1;
        Some(self.next - 1)
    }
}

/// How many queries a batched form has in flight.
pub(crate) const BATCH: usize = 32;
