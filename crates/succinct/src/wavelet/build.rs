//! Builds wavelet matrices from values and from runs of values.

use super::partition::{Lane, partition};
use super::{RunLengthWaveletMatrix, Wavelet, WaveletCore, WaveletMatrix};
use crate::bit_vector::BitVector;
use crate::bits::bit_len;
use crate::error::Error;
use crate::int_vector::IntVector;
use crate::raw_vector::RawVector;
use crate::run_length::RunLengthBuilder;

/// `first` has an item for every value from 0 to the largest, so larger alphabets are an error by default.
pub const DEFAULT_ALPHABET_LIMIT: u64 = 1 << 30;

fn check_alphabet(max: u64, limit: u64) -> Result<(), Error> {
    if max < limit {
        return Ok(());
    }
    Err(Error::Limit { name: "alphabet of a wavelet matrix", limit, found: max.saturating_add(1) })
}

/// `first` from the start of each value that occurs; packed, values that do not occur get `len`.
fn first_vector(max: u64, len: u64, mut starts: Vec<(u64, u64)>) -> IntVector {
    starts.sort_unstable();
    let complete = starts.len() as u64 == max.saturating_add(1);
    let largest = starts.iter().map(|&(_, start)| start).max().unwrap_or(0);
    let width = bit_len(if complete { largest } else { len });
    let mut first = IntVector::new(width).expect("bit_len is from 1 to 64");
    let mut starts = starts.into_iter().peekable();
    first.extend((0..=max).map(|value| match starts.peek() {
        Some(&(occurring, start)) if occurring == value => {
            starts.next();
            start
        }
        _ => len,
    }));
    first
}

/// The levels of `values`, which end up in the order of the last one.
fn levels<T: Lane>(values: &mut [T], max: u64) -> Vec<BitVector> {
    let len = values.len() as u64;
    let mut spare = vec![T::default(); values.len()];
    let bits = (0..bit_len(max)).rev();
    bits.map(|bit| BitVector::from(RawVector::from_trimmed(len, partition(values, &mut spare, bit))))
        .collect()
}

impl WaveletCore<BitVector> {
    /// The levels of a matrix of `values`. Without `first` the alphabet is not limited.
    ///
    /// ```
    /// use pentaglot_succinct::WaveletCore;
    /// let core = WaveletCore::from_values(&[u64::MAX, 0, 1 << 40]);
    /// assert_eq!((core.len(), core.width()), (3, 64));
    /// ```
    pub fn from_values(values: &[u64]) -> Self {
        fn build<T: Lane>(values: &[u64], max: u64) -> Vec<BitVector> {
            levels(&mut values.iter().map(|&value| T::from_u64(value)).collect::<Vec<T>>(), max)
        }
        let max = values.iter().copied().max().unwrap_or(0);
        let levels = match bit_len(max) {
            0..=8 => build::<u8>(values, max),
            9..=16 => build::<u16>(values, max),
            17..=32 => build::<u32>(values, max),
            _ => build::<u64>(values, max),
        };
        WaveletCore { levels }
    }
}

impl WaveletMatrix {
    /// The matrix of `values`, whose alphabet must not exceed [`DEFAULT_ALPHABET_LIMIT`].
    pub fn from_values(values: &[u64]) -> Result<Self, Error> {
        Self::try_from_values(values, DEFAULT_ALPHABET_LIMIT)
    }

    /// The matrix of `values`, all below `alphabet_limit`.
    pub fn try_from_values(values: &[u64], alphabet_limit: u64) -> Result<Self, Error> {
        let max = values.iter().copied().max().unwrap_or(0);
        check_alphabet(max, alphabet_limit.max(1))?;
        Ok(match bit_len(max) {
            0..=8 => Self::build::<u8>(values, max),
            9..=16 => Self::build::<u16>(values, max),
            17..=32 => Self::build::<u32>(values, max),
            _ => Self::build::<u64>(values, max),
        })
    }

    fn build<T: Lane>(values: &[u64], max: u64) -> Self {
        let len = values.len() as u64;
        let mut values: Vec<T> = values.iter().map(|&value| T::from_u64(value)).collect();
        let levels = levels(&mut values, max);
        let (mut starts, mut last) = (Vec::new(), None);
        for (index, value) in values.iter().map(|value| value.to_u64()).enumerate() {
            if last != Some(value) {
                starts.push((value, index as u64));
                last = Some(value);
            }
        }
        Wavelet { core: WaveletCore { levels }, first: first_vector(max, len, starts) }
    }
}

impl RunLengthWaveletMatrix {
    /// The matrix of runs (value, length), whose alphabet must not exceed [`DEFAULT_ALPHABET_LIMIT`].
    pub fn from_runs(runs: &[(u64, u64)]) -> Result<Self, Error> {
        Self::try_from_runs(runs, DEFAULT_ALPHABET_LIMIT)
    }

    /// The matrix of `values`.
    pub fn from_values(values: &[u64]) -> Result<Self, Error> {
        let runs: Vec<_> = values.chunk_by(|a, b| a == b).map(|run| (run[0], run.len() as u64)).collect();
        Self::from_runs(&runs)
    }

    /// The matrix of runs (value, length), all values below `alphabet_limit`.
    pub fn try_from_runs(runs: &[(u64, u64)], alphabet_limit: u64) -> Result<Self, Error> {
        let mut runs: Vec<(u64, u64)> = runs.iter().copied().filter(|&(_, run)| run > 0).collect();
        let max = runs.iter().map(|&(value, _)| value).max().unwrap_or(0);
        check_alphabet(max, alphabet_limit.max(1))?;
        let len = runs.iter().try_fold(0_u64, |len, &(_, run)| len.checked_add(run));
        let len = len.ok_or(Error::Limit { name: "length", limit: u64::MAX, found: u64::MAX })?;
        let mut levels = Vec::new();
        for bit in (0..bit_len(max)).rev() {
            let (mut builder, mut at) = (RunLengthBuilder::new(), 0);
            for &(value, run) in &runs {
                if value >> bit & 1 == 1 {
                    builder.push_run(at, run)?;
                }
                at += run;
            }
            levels.push(builder.finish(len)?);
            let (mut zeros, ones): (Vec<_>, Vec<_>) =
                runs.iter().partition(|(value, _)| value >> bit & 1 == 0);
            zeros.extend(ones);
            runs = zeros;
            // Merge runs that have become adjacent.
            runs.dedup_by(|next, last| {
                let same = next.0 == last.0;
                last.1 += if same { next.1 } else { 0 };
                same
            });
        }
        let (mut starts, mut at) = (Vec::new(), 0);
        for (value, run) in runs {
            starts.push((value, at));
            at += run;
        }
        Ok(Wavelet { core: WaveletCore { levels }, first: first_vector(max, len, starts) })
    }
}
