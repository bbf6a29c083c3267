//! Converts structures to columns.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::builder::StringBuilder;
use arrow_array::{
    ArrayRef, BinaryArray, BooleanArray, FixedSizeListArray, RecordBatch, StringArray, StructArray,
    UInt32Array, UInt64Array,
};
use arrow_buffer::BooleanBuffer;
use arrow_schema::{DataType, SchemaRef};
use pentaglot_succinct::{BitQueries, BitVector, RawVector, RunLengthVector, SharedWords, SparseVector};

use super::containers::Content;
use super::graph::text;
use super::layout::{Object, byte_vector};
use super::schema::{kind_schema, pair_fields};
use super::type_text::SdsKind;
use crate::error::{Error, Result};
use crate::hub::rows;
use crate::limits::{Budget, Reservation};

/// Rows per batch.
pub(super) const BATCH_ROWS: usize = 1 << 16;

/// Creates batches of an open structure, one range of rows at a time.
pub(super) struct Reader {
    pub(super) object: Arc<Object>,
    pub(super) budget: Budget,
}

impl Reader {
    pub(super) fn batches(
        self,
        range: Range<u64>,
        size: u64,
        schema: SchemaRef,
    ) -> Result<Box<dyn Iterator<Item = Result<RecordBatch>> + Send>> {
        if let Object::RunLength(_) = self.object.as_ref() {
            return Ok(Box::new(RunBatches {
                object: self.object,
                skip: range.start,
                left: range.end - range.start,
                from: 0,
                ones: (range.start == 0 && range.end == u64::MAX).then_some(0),
                size,
                schema,
            }));
        }
        let mut next = range.start;
        let decoded = self.decode_wavelet(&range)?;
        Ok(Box::new(std::iter::from_fn(move || {
            if next >= range.end {
                return None;
            }
            let rows = next..range.end.min(next.saturating_add(size));
            next = rows.end;
            Some(self.columns(&rows, decoded.as_ref().map(|(values, _)| values.as_slice())).and_then(
                |columns| {
                    let count = usize::try_from(rows.end - rows.start).unwrap_or(0);
                    rows::batch(Arc::clone(&schema), columns, count)
                },
            ))
        })))
    }

    /// All values of a wavelet matrix, if most of them are selected and memory allows it: one pass over the levels
    /// is faster than a walk for each.
    fn decode_wavelet(&self, range: &Range<u64>) -> Result<Option<(Vec<u64>, Reservation)>> {
        match self.object.as_ref() {
            Object::Wavelet(matrix) if range.end - range.start > matrix.len() / 4 => {
                for (index, level) in matrix.core().levels().iter().enumerate() {
                    check_ones(level, index as u64)?;
                }
                let narrow = u64::from(matrix.width().max(1).div_ceil(8).next_power_of_two());
                // Two copies in the narrowest type while it works, then the values.
                let Ok(mut held) = self.budget.reserve(matrix.len().saturating_mul(2 * narrow + 8)) else {
                    return Ok(None);
                };
                let values: Vec<u64> = matrix.values().collect();
                held.shrink_to(values.len() as u64 * 8);
                Ok(Some((values, held)))
            }
            _ => Ok(None),
        }
    }

    pub(super) fn columns(&self, rows: &Range<u64>, decoded: Option<&[u64]>) -> Result<Vec<ArrayRef>> {
        let count = usize::try_from(rows.end - rows.start).unwrap_or(0);
        let start = rows.start;
        let numbers = |values: &mut dyn Iterator<Item = u64>| -> Result<Vec<ArrayRef>> {
            let values: Vec<u64> = values.take(count).collect();
            check_count(count, values.len())?;
            Ok(vec![Arc::new(UInt64Array::from(values))])
        };
        Ok(match self.object.as_ref() {
            Object::Container(_) => return Err(Error::unsupported("rows of several structures")),
            Object::RunLengthWavelet(matrix) => numbers(&mut matrix.iter_from(start))?,
            Object::Wavelet(matrix) => match decoded {
                Some(values) => {
                    numbers(&mut values.iter().copied().skip(usize::try_from(start).unwrap_or(usize::MAX)))?
                }
                None => numbers(&mut matrix.iter_from(start))?,
            },
            Object::WaveletCore(core) => numbers(&mut rows.clone().filter_map(|index| core.access(index)))?,
            Object::Sparse(vector) => vec![sparse(vector, start, count)?],
            Object::Bit(vector) => vec![bools(vector.bits(), rows)],
            Object::Raw(vector) => vec![bools(vector, rows)],
            Object::Int(vector) => numbers(&mut vector.iter_from(start))?,
            Object::Option(content) => {
                let words = content.as_ref().map_or(&[][..], |words| words.as_ref());
                numbers(&mut elements(words, rows))?
            }
            Object::Vec(words) => numbers(&mut elements(words.as_ref(), rows))?,
            Object::Element(value) => numbers(&mut std::iter::once(*value))?,
            Object::Items(width, words) => vec![items(*width, words, rows)?],
            Object::Pairs(words) => {
                let pairs: Vec<u64> = elements(words.as_ref(), &(rows.start * 2..rows.end * 2)).collect();
                let (pairs, _) = pairs.as_chunks::<2>();
                let first: ArrayRef = Arc::new(pairs.iter().map(|pair| pair[0]).collect::<UInt64Array>());
                let second: ArrayRef = Arc::new(pairs.iter().map(|pair| pair[1]).collect::<UInt64Array>());
                vec![Arc::new(StructArray::try_new(pair_fields(), vec![first, second], None)?)]
            }
            Object::String(bytes, words) => {
                let text = String::from_utf8(byte_vector(*bytes, words));
                let text = text.map_err(|error| Error::malformed("UTF-8", error).field("string"))?;
                vec![Arc::new(StringArray::from(vec![text]))]
            }
            Object::Bytes(bytes, words) => {
                vec![Arc::new(BinaryArray::from_vec(vec![&byte_vector(*bytes, words)]))]
            }
            Object::RunLength(_) => return Err(Error::unsupported("runs by their number")),
        })
    }
}

fn elements<'a>(words: &'a [u64], rows: &Range<u64>) -> impl Iterator<Item = u64> + 'a {
    let start = usize::try_from(rows.start).unwrap_or(usize::MAX);
    let end = usize::try_from(rows.end).unwrap_or(usize::MAX).min(words.len());
    words.get(start..end).unwrap_or_default().iter().copied()
}

/// Returns an error unless the number of items matches the lengths in the file.
fn check_count(expected: usize, found: usize) -> Result<()> {
    if expected == found {
        return Ok(());
    }
    Err(Error::malformed(format_args!("{expected} more items"), found).rule("count"))
}

/// Returns an error unless the number of set bits matches the level's count.
fn check_ones(level: &BitVector<SharedWords>, index: u64) -> Result<()> {
    let found = level.bits().count_ones();
    if found == level.count_ones() {
        return Ok(());
    }
    let error = Error::malformed(format_args!("{found} set bits"), level.count_ones());
    Err(error.field("ones").index(index).field("levels"))
}

/// Positions of a range of ranks: in ascending order, below the length.
fn sparse(vector: &SparseVector<SharedWords>, start: u64, count: usize) -> Result<ArrayRef> {
    let values: Vec<u64> = vector.iter_from(start).take(count).collect();
    check_count(count, values.len()).map_err(|error| error.field("high"))?;
    let limit = vector.len();
    let bounds = std::iter::once(0).chain(values.iter().copied());
    if let Some((row, (least, value))) = bounds
        .zip(values.iter().copied())
        .enumerate()
        .find(|(_, (least, value))| value < least || *value >= limit)
    {
        let expected = format!("a position from {least} to below {limit}");
        return Err(Error::malformed(expected, value).index(start + row as u64).field("low"));
    }
    Ok(Arc::new(UInt64Array::from(values)))
}

/// The first and the last position.
pub(super) fn sparse_bounds(vector: &SparseVector<SharedWords>) -> Option<(u64, u64)> {
    let last = vector.count_ones().checked_sub(1)?;
    Some((vector.iter_from(0).next()?, vector.iter_from(last).next()?))
}

/// The start of the first and of the last run.
pub(super) fn run_bounds(vector: &RunLengthVector<SharedWords>) -> Option<(u64, u64)> {
    let last = vector.select(vector.count_ones().checked_sub(1)?)?;
    // The last run starts after the last unset bit before its end.
    let start = match vector.rank0(last)?.checked_sub(1) {
        Some(unset) => vector.select0(unset)?.saturating_add(1),
        None => 0,
    };
    Some((vector.runs().next()?.0, start))
}

/// Items of several elements, as the rows of a matrix.
fn items(width: u64, words: &SharedWords, rows: &Range<u64>) -> Result<ArrayRef> {
    let values: Vec<u64> = elements(words.as_ref(), &(rows.start * width..rows.end * width)).collect();
    let schema = kind_schema(SdsKind::Items, width)?;
    let DataType::FixedSizeList(item, size) = schema.field(0).data_type() else {
        return Err(Error::unsupported(format!("items of {width} elements")));
    };
    let values = Arc::new(UInt64Array::from(values));
    Ok(Arc::new(FixedSizeListArray::try_new(Arc::clone(item), *size, values, None)?))
}

fn bools(vector: &RawVector<SharedWords>, rows: &Range<u64>) -> ArrayRef {
    let count = usize::try_from(rows.end - rows.start).unwrap_or(0);
    Arc::new(BooleanArray::new(vector.iter_from(rows.start).take(count).collect::<BooleanBuffer>(), None))
}

/// The columns of strings, of tags and of path names, for a range of rows.
pub(super) fn member_columns(content: &Content, rows: &Range<u64>) -> Result<Vec<ArrayRef>> {
    Ok(match content {
        Content::Tags(strings) => {
            let (mut keys, mut values) = (StringBuilder::new(), StringBuilder::new());
            for row in rows.clone() {
                keys.append_value(text(strings.get(row * 2), row * 2)?);
                values.append_value(text(strings.get(row * 2 + 1), row * 2 + 1)?);
            }
            vec![Arc::new(keys.finish()), Arc::new(values.finish())]
        }
        Content::Strings(strings) => {
            let mut texts = StringBuilder::new();
            rows.clone()
                .try_for_each(|row| text(strings.get(row), row).map(|text| texts.append_value(text)))?;
            vec![Arc::new(texts.finish())]
        }
        Content::Paths(words) => {
            let pairs: Vec<u64> = elements(words.as_ref(), &(rows.start * 2..rows.end * 2)).collect();
            let (paths, _) = pairs.as_chunks::<2>();
            #[expect(clippy::cast_possible_truncation, reason = "the two halves of an element")]
            let halves = |word: u64| (word as u32, (word >> 32) as u32);
            let column = |pick: &dyn Fn(&[u64; 2]) -> u32| -> ArrayRef {
                Arc::new(paths.iter().map(pick).collect::<UInt32Array>())
            };
            vec![
                column(&|path| halves(path[0]).0),
                column(&|path| halves(path[0]).1),
                column(&|path| halves(path[1]).0),
                column(&|path| halves(path[1]).1),
            ]
        }
        _ => return Err(Error::unsupported("rows of this member")),
    })
}

/// Runs have no index: each batch continues after the last run.
struct RunBatches {
    object: Arc<Object>,
    skip: u64,
    left: u64,
    from: u64,
    /// The number of set bits so far, if all runs are read.
    ones: Option<u64>,
    size: u64,
    schema: SchemaRef,
}

impl RunBatches {
    /// Returns an error unless runs are in order, within the length, and have as many bits as the vector
    /// declares.
    fn check(&mut self, vector: &RunLengthVector<SharedWords>, runs: &[(u64, u64)]) -> Result<()> {
        for (start, length) in runs {
            let end = start.saturating_add(*length);
            if *start < self.from || end > vector.len() {
                let expected = format!("a run from {} to {}", self.from, vector.len());
                return Err(Error::malformed(expected, format_args!("{start} to {end}")).field("data"));
            }
            self.from = end;
            self.ones = self.ones.map(|ones| ones.saturating_add(*length));
        }
        match self.ones {
            Some(ones) if runs.is_empty() && ones != vector.count_ones() => {
                let error = Error::malformed(format_args!("{ones} set bits"), vector.count_ones());
                Err(error.at(8).field("ones"))
            }
            _ => Ok(()),
        }
    }
}

impl Iterator for RunBatches {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        let object = Arc::clone(&self.object);
        let Object::RunLength(vector) = object.as_ref() else { return None };
        let skip = usize::try_from(std::mem::take(&mut self.skip)).unwrap_or(usize::MAX);
        let count = usize::try_from(self.size.min(self.left)).unwrap_or(usize::MAX);
        let runs: Vec<(u64, u64)> = vector.runs_from(self.from).skip(skip).take(count).collect();
        if self.left > 0
            && let Err(error) = self.check(vector, &runs)
        {
            (self.left, self.ones) = (0, None);
            return Some(Err(error));
        }
        if runs.is_empty() {
            self.left = 0;
            return None;
        }
        self.left -= runs.len() as u64;
        let starts: ArrayRef = Arc::new(runs.iter().map(|run| run.0).collect::<UInt64Array>());
        let lengths: ArrayRef = Arc::new(runs.iter().map(|run| run.1).collect::<UInt64Array>());
        Some(rows::batch(Arc::clone(&self.schema), vec![starts, lengths], runs.len()))
    }
}
