//! The buffers of an array, filled chunk by chunk: `d` of values of fixed width, `m` and `o`. Values and lengths are compressed
//! as they come.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, BooleanArray, OffsetSizeTrait, UInt64Array};
use arrow_buffer::{BooleanBufferBuilder, Buffer, NullBuffer, ToByteSlice};
use arrow_schema::DataType;
use arrow_select::take::take;

use super::encode::Encoder;
use super::schema::Type;
use super::values;
use crate::error::{Error, Result};
use crate::kernels::scan;
use crate::wire::lz4::BlockWriter;

/// The bytes of values of fixed width, or of lengths, that are worked on at a time: what they become stays in a near cache.
const STEP_BYTES: usize = 64 << 10;

/// The buffer `d` of values of fixed width, filled chunk by chunk.
pub(super) struct FixedValues {
    block: BlockWriter,
    width: usize,
    is_difference_encoded: bool,
    repeat: bool,
    /// The value that is repeated where one is missing.
    last: Vec<u8>,
    /// The last value before the differences.
    previous: u64,
}

impl FixedValues {
    pub(super) fn new(kind: &Type, encoder: &Encoder) -> Self {
        let width = usize::try_from(kind.width().unwrap_or(1)).unwrap_or(1).max(1);
        FixedValues {
            block: encoder.block(),
            width,
            is_difference_encoded: kind.is_difference_encoded(),
            repeat: encoder.repeat,
            last: vec![0; width],
            previous: 0,
        }
    }

    pub(super) fn append(&mut self, chunk: &ArrayRef) -> Result<()> {
        let is_stored_so =
            !self.is_difference_encoded && *chunk.data_type() != DataType::Boolean && chunk.null_count() == 0;
        if is_stored_so {
            let values = raw_values(chunk, self.width);
            if let Some(value) = values.rchunks_exact(self.width).next() {
                self.last.copy_from_slice(value);
            }
            return self.block.append(&values);
        }
        let mut stored = Vec::new();
        let step = (STEP_BYTES / self.width).max(1);
        (0..chunk.len()).step_by(step).try_for_each(|start| {
            let some = chunk.slice(start, step.min(chunk.len() - start));
            match some.as_any().downcast_ref::<BooleanArray>() {
                Some(bools) => stored.extend(bools.values().iter().map(u8::from)),
                None => stored.extend_from_slice(&raw_values(&some, self.width)),
            }
            self.fill(&mut stored, some.nulls());
            self.block.append(&stored)?;
            stored.clear();
            Ok(())
        })
    }

    /// Makes the values those that are stored.
    fn fill(&mut self, values: &mut [u8], nulls: Option<&NullBuffer>) {
        let width = self.width;
        if let Some(nulls) = nulls {
            if !self.repeat {
                self.last.fill(0);
            }
            fill_missing(values, nulls, &self.last);
            if self.repeat {
                repeat_missing(values, nulls, width);
            }
        }
        if self.repeat
            && let Some(value) = values.rchunks_exact(width).next()
        {
            self.last.copy_from_slice(value);
        }
        if self.is_difference_encoded {
            self.previous = differences(values, width, self.previous);
        }
    }

    pub(super) fn into_block(self) -> BlockWriter {
        self.block
    }
}

/// Difference encoding of values of 4 or 8 bytes, after the value `previous`; gives the last value.
fn differences(values: &mut [u8], width: usize, previous: u64) -> u64 {
    match width {
        4 => {
            let previous = u32::try_from(previous).unwrap_or_default();
            u64::from(values::differences_u32(values.as_chunks_mut().0, previous))
        }
        _ => values::differences_u64(values.as_chunks_mut().0, previous),
    }
}

/// The bytes of the values of an array of fixed width; nothing for booleans, whose values are bits.
fn raw_values(array: &ArrayRef, width: usize) -> Buffer {
    let data = array.to_data();
    match data.buffers() {
        _ if *array.data_type() == DataType::Boolean => Buffer::default(),
        [values, ..] => values.slice_with_length(data.offset() * width, data.len() * width),
        [] => Buffer::default(),
    }
}

/// Calls `fill` with each run of missing values and the rows before it.
fn each_missing_run(nulls: &NullBuffer, mut run: impl FnMut(usize, usize)) {
    let mut position = 0;
    for (start, end) in nulls.valid_slices() {
        if position < start {
            run(position, start);
        }
        position = end;
    }
    if position < nulls.len() {
        run(position, nulls.len());
    }
}

/// Puts `value` under each missing value.
fn fill_missing(values: &mut [u8], nulls: &NullBuffer, value: &[u8]) {
    let width = value.len();
    each_missing_run(nulls, |start, end| {
        let run = values.get_mut(start * width..end * width).unwrap_or_default();
        run.chunks_exact_mut(width).for_each(|place| place.copy_from_slice(value));
    });
}

/// Repeats the last present value under each missing one; those before the first are left as they are.
fn repeat_missing(values: &mut [u8], nulls: &NullBuffer, width: usize) {
    each_missing_run(nulls, |start, end| {
        let Some((before, run)) =
            values.get_mut(..end * width).and_then(|all| all.split_at_mut_checked(start * width))
        else {
            return;
        };
        if let Some(value) = before.rchunks_exact(width).next() {
            run.chunks_exact_mut(width).for_each(|place| place.copy_from_slice(value));
        }
    });
}

/// The buffer `m`: a bit for each row, the most significant first.
pub(super) struct Mask(BooleanBufferBuilder);

impl Mask {
    /// It grows with its chunks: a number of rows from a file is not verified.
    pub(super) fn new() -> Self {
        Mask(BooleanBufferBuilder::new(0))
    }

    pub(super) fn append(&mut self, chunk: &ArrayRef) {
        match chunk.nulls() {
            Some(nulls) => self.0.append_buffer(nulls.inner()),
            None => self.0.append_n(chunk.len(), *chunk.data_type() != DataType::Null),
        }
    }

    /// How many rows it has.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn into_bytes(self) -> Vec<u8> {
        let mut bytes = self.0.as_slice().to_vec();
        scan::reverse_bits(&mut bytes);
        bytes
    }
}

/// The buffer `o`: 0, then the length of each element.
pub(super) struct Lengths {
    block: BlockWriter,
    /// The lengths of a chunk.
    own: Vec<i32>,
}

impl Lengths {
    pub(super) fn new(encoder: &Encoder) -> Self {
        // The first is 0.
        Lengths { block: encoder.block(), own: vec![0] }
    }

    pub(super) fn into_block(mut self) -> Result<BlockWriter> {
        self.block.append(self.own.to_byte_slice())?;
        Ok(self.block)
    }

    /// Adds the lengths of strings; gives their bytes. Nothing is kept under a missing one.
    pub(super) fn append_bytes(&mut self, chunk: &ArrayRef) -> Result<Buffer> {
        match chunk.data_type() {
            DataType::Utf8 => self.append_bytes_of(chunk, chunk.as_string::<i32>().value_offsets()),
            DataType::LargeUtf8 => self.append_bytes_of(chunk, chunk.as_string::<i64>().value_offsets()),
            DataType::Binary => self.append_bytes_of(chunk, chunk.as_binary::<i32>().value_offsets()),
            _ => self.append_bytes_of(chunk, chunk.as_binary::<i64>().value_offsets()),
        }
    }

    fn append_bytes_of<O: OffsetSizeTrait>(&mut self, chunk: &ArrayRef, offsets: &[O]) -> Result<Buffer> {
        let data = chunk.to_data();
        let [_, values] = data.buffers() else { return Ok(Buffer::default()) };
        match self.append(offsets, chunk.nulls())? {
            Kept::All { start, length } => Ok(values.slice_with_length(start, length)),
            Kept::Ranges(ranges) => {
                let kept = ranges.into_iter().filter_map(|(start, end)| values.get(start..end));
                Ok(Buffer::from(kept.collect::<Vec<_>>().concat()))
            }
        }
    }

    /// Adds the lengths of lists; gives their items. Nothing is kept under a missing one.
    pub(super) fn append_lists(&mut self, chunk: &ArrayRef) -> Result<ArrayRef> {
        let nulls = chunk.nulls();
        let (kept, items) = match chunk.data_type() {
            DataType::LargeList(_) => {
                let lists = chunk.as_list::<i64>();
                (self.append(lists.value_offsets(), nulls)?, Arc::clone(lists.values()))
            }
            DataType::Map(..) => {
                let maps = chunk.as_map();
                let entries: ArrayRef = Arc::new(maps.entries().clone());
                (self.append(maps.value_offsets(), nulls)?, entries)
            }
            DataType::FixedSizeList(_, size) => {
                let offsets: Vec<i64> = (0..=chunk.len() as i64).map(|row| row * i64::from(*size)).collect();
                let lists = chunk.as_fixed_size_list();
                (self.append(&offsets, nulls)?, Arc::clone(lists.values()))
            }
            _ => {
                let lists = chunk.as_list::<i32>();
                (self.append(lists.value_offsets(), nulls)?, Arc::clone(lists.values()))
            }
        };
        match kept {
            Kept::All { start, length } => Ok(items.slice(start, length)),
            Kept::Ranges(ranges) => {
                let indices = ranges.into_iter().flat_map(|(start, end)| start as u64..end as u64);
                Ok(take(&items, &UInt64Array::from_iter_values(indices), None)?)
            }
        }
    }

    /// Adds the lengths between offsets; says which elements they leave.
    fn append<O: OffsetSizeTrait>(&mut self, offsets: &[O], nulls: Option<&NullBuffer>) -> Result<Kept> {
        let rows = offsets.len().saturating_sub(1);
        let mut dropped = false;
        for start in (0..rows).step_by(STEP_BYTES / 4) {
            let some = offsets.get(start..=rows.min(start + STEP_BYTES / 4)).unwrap_or_default();
            let nulls = nulls.map(|nulls| nulls.slice(start, some.len() - 1));
            dropped |= self.append_some(some, nulls.as_ref())?;
        }
        let start = offsets.first().map_or(0, |offset| offset.as_usize());
        if !dropped {
            let end = offsets.last().map_or(0, |offset| offset.as_usize());
            return Ok(Kept::All { start, length: end - start });
        }
        let ranges = offsets.iter().zip(offsets.iter().skip(1));
        let ranges = ranges.map(|(start, end)| (start.as_usize(), end.as_usize()));
        let is_valid = |row: usize| nulls.is_none_or(|nulls| nulls.is_valid(row));
        Ok(Kept::Ranges(
            ranges.enumerate().filter(|(row, _)| is_valid(*row)).map(|(_, range)| range).collect(),
        ))
    }

    /// Adds some lengths; says whether a missing value has elements.
    fn append_some<O: OffsetSizeTrait>(&mut self, offsets: &[O], nulls: Option<&NullBuffer>) -> Result<bool> {
        let first = self.own.len();
        let mut fits = true;
        self.own.extend(offsets.iter().zip(offsets.iter().skip(1)).map(|(start, end)| {
            let length = (*end - *start).as_usize();
            fits &= length <= i32::MAX as usize;
            i32::try_from(length).unwrap_or(i32::MAX)
        }));
        if !fits {
            return Err(Error::limit("the limit", i32::MAX, "more bytes or elements in one value"));
        }
        let lengths = self.own.get_mut(first..).unwrap_or_default();
        let mut dropped = false;
        if let Some(nulls) = nulls {
            each_missing_run(nulls, |start, end| {
                let run = lengths.get_mut(start..end).unwrap_or_default();
                dropped |= run.iter().any(|length| *length != 0);
                run.fill(0);
            });
        }
        self.block.append(self.own.to_byte_slice())?;
        self.own.clear();
        Ok(dropped)
    }
}

/// Which elements belong to values that are present.
enum Kept {
    All { start: usize, length: usize },
    Ranges(Vec<(usize, usize)>),
}
