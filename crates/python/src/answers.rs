//! Many questions to a succinct structure at a time: without the interpreter's lock, with looks at signals in between.

use numpy::{PyArray1, PyReadonlyArray1};
use pentaglot::Error;
use pyo3::exceptions::PyOverflowError;
use pyo3::prelude::*;

use crate::error::{Outcome, internal};
use crate::watch::{Pulse, apart};

pub(crate) type Questions<'py> = PyReadonlyArray1<'py, u64>;
pub(crate) type Answers<'py> = Bound<'py, PyArray1<i64>>;
/// Answers that are numbers of 64 bits: an array of int64, or of uint64 if one of them needs it.
pub(crate) type Numbers<'py> = Bound<'py, PyAny>;

/// Questions that are answered between two looks at the answers: they stay in the cache.
const CHUNK: usize = 4096;

/// So few numbers take less time than a thread.
const FEW: usize = 1 << 14;

/// The questions as a slice.
pub(crate) fn slice<'a>(questions: &'a Questions<'_>) -> Outcome<&'a [u64]> {
    Ok(questions.as_slice().map_err(|error| internal(&error.to_string()))?)
}

/// Answers the questions chunk by chunk; `take` gets the index of a chunk's first question and its answers.
fn in_chunks<Q, T: Copy>(
    questions: &[Q],
    empty: T,
    answer: impl Fn(&[Q], &mut [T]),
    mut take: impl FnMut(usize, &[T]),
) -> PyResult<()> {
    let mut room = vec![empty; CHUNK.min(questions.len())];
    let mut pulse = Pulse::new();
    for (index, chunk) in questions.chunks(CHUNK).enumerate() {
        let room = &mut room[..chunk.len()];
        answer(chunk, room);
        take(index * CHUNK, room);
        pulse.look()?;
    }
    Ok(())
}

/// Answers that are positions and counts. Where there is none, it is -1.
pub(crate) fn many<'py, Q: Sync, T: Copy + Send + Sync>(
    py: Python<'py>,
    questions: &[Q],
    empty: T,
    answer: impl Fn(&[Q], &mut [T]) + Sync,
    number: impl Fn(T) -> Option<u64> + Sync,
) -> Outcome<Answers<'py>> {
    let (mut answers, mut is_past) = (Vec::with_capacity(questions.len()), false);
    py.detach(|| {
        in_chunks(questions, empty, &answer, |_, found| {
            answers.extend(found.iter().map(|found| match number(*found) {
                Some(found) => {
                    is_past |= found > i64::MAX as u64;
                    found as i64
                }
                None => -1,
            }));
        })
    })?;
    if is_past {
        return Err(PyOverflowError::new_err("an answer is past 2**63 - 1").into());
    }
    Ok(PyArray1::from_vec(py, answers))
}

/// Answers that are values, which may need all 64 bits.
pub(crate) fn many_values<'py>(
    py: Python<'py>,
    questions: &[u64],
    answer: impl Fn(&[u64], &mut [Option<u64>]) + Sync,
) -> Outcome<Numbers<'py>> {
    let mut values = Values::new(questions.len());
    py.detach(|| {
        in_chunks(questions, None, &answer, |first, found| {
            found.iter().zip(first..).for_each(|(found, index)| values.set(index, *found));
        })
    })?;
    values.into_array(py)
}

/// Answers that are a count, -1 where there is none, and a value each.
pub(crate) fn many_pairs<'py>(
    py: Python<'py>,
    questions: &[u64],
    answer: impl Fn(&[u64], &mut [Option<(u64, u64)>]) + Sync,
) -> Outcome<(Answers<'py>, Numbers<'py>)> {
    let (mut ranks, mut values) = (vec![-1; questions.len()], Values::new(questions.len()));
    py.detach(|| {
        in_chunks(questions, None, &answer, |first, found| {
            for (found, index) in found.iter().zip(first..) {
                ranks[index] = found.map_or(-1, |(rank, _)| rank as i64);
                values.set(index, found.map(|(_, value)| value));
            }
        })
    })?;
    Ok((PyArray1::from_vec(py, ranks), values.into_array(py)?))
}

/// Values that are gathered.
struct Values {
    /// All bits set where there is none.
    values: Vec<u64>,
    has_none: bool,
    is_past: bool,
}

impl Values {
    fn new(count: usize) -> Self {
        Values { values: vec![u64::MAX; count], has_none: false, is_past: false }
    }

    fn set(&mut self, index: usize, value: Option<u64>) {
        match value {
            Some(value) => {
                self.values[index] = value;
                self.is_past |= value > i64::MAX as u64;
            }
            None => self.has_none = true,
        }
    }

    /// An array of int64 with -1 where there is no value, or of uint64 if a value needs it.
    fn into_array(self, py: Python<'_>) -> Outcome<Numbers<'_>> {
        if self.is_past && self.has_none {
            let message = "an index is past the end, and no number of uint64 is left to say so";
            return Err(Error::usage(message).into());
        }
        if self.is_past {
            return Ok(PyArray1::from_vec(py, self.values).into_any());
        }
        let signed = self.values.into_iter().map(|value| value as i64).collect();
        Ok(PyArray1::from_vec(py, signed).into_any())
    }
}

/// All values of a structure.
pub(crate) fn all<'py>(
    py: Python<'py>,
    values: impl Iterator<Item = u64> + Send,
) -> Outcome<Bound<'py, PyArray1<u64>>> {
    let found = py.detach(|| -> PyResult<Vec<u64>> {
        let (mut found, mut pulse, mut values) = (Vec::new(), Pulse::new(), values);
        loop {
            let before = found.len();
            found.extend(values.by_ref().take(CHUNK));
            if found.len() == before {
                return Ok(found);
            }
            pulse.look()?;
        }
    });
    Ok(PyArray1::from_vec(py, found?))
}

/// Builds a structure from numbers: in another thread if they are many, or if it takes so many bits.
pub(crate) fn build<T: Send + 'static>(
    py: Python<'_>,
    numbers: &Questions<'_>,
    bits: u64,
    make: impl FnOnce(&[u64]) -> Result<T, Error> + Send + 'static,
) -> Outcome<T> {
    let numbers = slice(numbers)?;
    if numbers.len() <= FEW && bits <= FEW as u64 * 64 {
        return Ok(py.detach(|| make(numbers))?);
    }
    let numbers = numbers.to_vec();
    apart(py, move || Ok(make(&numbers)?))
}
