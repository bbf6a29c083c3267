//! Arrays to documents: the fields d, m, t, p, o in this order, as the original programs write them.
//!
//! An array comes in chunks (one for each batch that was written); each becomes part of the same buffers, so a
//! document does not show how its rows arrived.

use std::borrow::Cow;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, BooleanArray, OffsetSizeTrait, UInt64Array};
use arrow_buffer::{BooleanBufferBuilder, Buffer, MutableBuffer, NullBuffer, ToByteSlice};
use arrow_cast::{CastOptions, cast, cast_with_options};
use arrow_ord::ord::make_comparator;
use arrow_schema::{DataType, SortOptions};
use arrow_select::concat::concat;
use arrow_select::take::take;

use super::schema::Type;
use super::values;
use crate::cursor::{allocate, allocate_zeroed};
use crate::error::{Context, Error, Result};
use crate::formats::OptionMap;
use crate::kernels::{arrays, scan};
use crate::limits::Budget;
use crate::wire::bson::{BsonKind, Writer};
use crate::wire::lz4;

/// How arrays are written.
#[derive(Debug, Clone)]
pub(super) struct Encoder {
    /// 0: `LZ4_compress_default`; 1 to 12: `LZ4_compress_HC`.
    level: i32,
    /// Whether an empty buffer is its length alone, as C++ writes it and Python cannot read it.
    short_empty: bool,
    /// Whether a missing value repeats the one before it, and is not zero.
    repeat: bool,
    pub(super) budget: Budget,
}

impl Encoder {
    pub(super) fn new(options: &OptionMap, budget: Budget) -> Result<Self> {
        let level = options.number("level")?.unwrap_or(0);
        let bad = || Error::usage(format!("option level: expected a number from 0 to 12, found {level}"));
        let level = i32::try_from(level).ok().filter(|level| *level <= 12).ok_or_else(bad)?;
        let short_empty = options.word("empty", &["5", "4"])? == Some("4");
        let repeat = options.word("nulls", &["zero", "repeat"])? == Some("repeat");
        Ok(Encoder { level, short_empty, repeat, budget })
    }

    /// Writes the element `key` that holds an array.
    pub(super) fn array(&self, out: &mut Writer, key: &str, kind: &Type, chunks: &[ArrayRef]) -> Result<()> {
        let chunks: Vec<ArrayRef> = chunks.iter().map(plain).collect::<Result<_>>()?;
        let rows: usize = chunks.iter().map(|chunk| chunk.len()).sum();
        let document = out.begin(Some((BsonKind::DOCUMENT, key)));
        let mut counts = None;
        match kind {
            Type::Null => out.int64("d", i64::try_from(rows).unwrap_or(i64::MAX)),
            Type::Bytes | Type::Utf8 => {
                let mut lengths = Lengths::new(rows, &self.budget)?;
                let parts: Vec<Buffer> =
                    chunks.iter().map(|chunk| lengths.append_bytes(chunk)).collect::<Result<_>>()?;
                self.buffer(out, "d", &self.joined(&parts)?).field("d")?;
                counts = Some(lengths);
            }
            Type::List(item) => {
                let mut lengths = Lengths::new(rows, &self.budget)?;
                let parts: Vec<ArrayRef> =
                    chunks.iter().map(|chunk| lengths.append_lists(chunk)).collect::<Result<_>>()?;
                self.array(out, "d", item, &parts).field("d")?;
                counts = Some(lengths);
            }
            Type::Factor { ordered, index, dictionary } => {
                let (indices, values) = unify(&chunks, *ordered)?;
                let data = out.begin(Some((BsonKind::DOCUMENT, "d")));
                self.array(out, "i", index, &indices).field("i").field("d")?;
                self.array(out, "d", dictionary, &values).field("d").field("d")?;
                out.end(data)?;
            }
            Type::Struct(fields) => {
                let data = out.begin(Some((BsonKind::DOCUMENT, "d")));
                out.int64("l", i64::try_from(rows).unwrap_or(i64::MAX));
                let documents = out.begin(Some((BsonKind::DOCUMENT, "f")));
                for (place, (name, kind)) in fields.iter().enumerate() {
                    let parts: Vec<ArrayRef> =
                        chunks.iter().map(|chunk| Arc::clone(chunk.as_struct().column(place))).collect();
                    self.array(out, name, kind, &parts).field(name.clone()).field("f").field("d")?;
                }
                out.end(documents)?;
                out.end(data)?;
            }
            _ => {
                let parts: Vec<Buffer> =
                    chunks.iter().map(|chunk| raw_values(chunk, width_of(kind))).collect();
                match as_they_are(kind, &chunks, &parts) {
                    Some(bytes) => self.buffer(out, "d", bytes),
                    None => self.buffer(out, "d", &self.values(kind, &chunks, &parts)?),
                }
                .field("d")?;
            }
        }
        self.buffer(out, "m", &mask(&chunks, rows)).field("m")?;
        write_type(out, kind)?;
        if let Some(counts) = counts {
            self.buffer(out, "o", counts.0.to_byte_slice()).field("o")?;
        }
        out.end(document)
    }

    /// Writes a buffer: its length and an LZ4 block.
    fn buffer(&self, out: &mut Writer, key: &str, plain: &[u8]) -> Result<()> {
        let packed = match plain {
            [] if self.short_empty => vec![0; 4],
            plain => lz4::compress_with_length(plain, self.level)?,
        };
        out.binary(key, packed)
    }

    /// The buffer `d` of values of fixed width.
    fn values(&self, kind: &Type, chunks: &[ArrayRef], parts: &[Buffer]) -> Result<MutableBuffer> {
        let width = width_of(kind);
        let rows: usize = chunks.iter().map(|chunk| chunk.len()).sum();
        let mut memory = allocate_zeroed(rows.saturating_mul(width) as u64, &self.budget)?;
        let mut rest = memory.as_slice_mut();
        let mut last = vec![0; width];
        let mut previous = 0;
        for (chunk, part) in chunks.iter().zip(parts) {
            let Some((place, more)) = rest.split_at_mut_checked(chunk.len().saturating_mul(width)) else {
                break;
            };
            rest = more;
            match chunk.as_any().downcast_ref::<BooleanArray>() {
                Some(bools) => {
                    place.iter_mut().zip(bools.values()).for_each(|(byte, bit)| *byte = u8::from(bit));
                }
                None => place.copy_from_slice(part),
            }
            if let Some(nulls) = chunk.nulls() {
                if !self.repeat {
                    last.fill(0);
                }
                fill_missing(place, nulls, &last);
                if self.repeat {
                    repeat_missing(place, nulls, width);
                }
            }
            if self.repeat
                && let Some(value) = place.rchunks_exact(width).next()
            {
                last.copy_from_slice(value);
            }
            if kind.is_difference_encoded() {
                previous = differences(place, width, previous);
            }
        }
        Ok(memory)
    }

    /// The parts as one piece of memory; slices of one array are not copied.
    fn joined<'p>(&self, parts: &'p [Buffer]) -> Result<Cow<'p, [u8]>> {
        if let Some(bytes) = arrays::adjacent(parts) {
            return Ok(Cow::Borrowed(bytes));
        }
        let bytes: usize = parts.iter().map(Buffer::len).sum();
        let mut joined = allocate(bytes as u64, &self.budget)?;
        parts.iter().for_each(|part| joined.extend_from_slice(part));
        Ok(Cow::Owned(joined))
    }
}

/// The bytes of a value of fixed width.
fn width_of(kind: &Type) -> usize {
    usize::try_from(kind.width().unwrap_or(1)).unwrap_or(1).max(1)
}

/// The values where they lie, if they need no work and no gathering.
fn as_they_are<'p>(kind: &Type, chunks: &[ArrayRef], parts: &'p [Buffer]) -> Option<&'p [u8]> {
    let untouched = *kind != Type::Bool
        && !kind.is_difference_encoded()
        && chunks.iter().all(|chunk| chunk.null_count() == 0);
    untouched.then(|| arrays::adjacent(parts)).flatten()
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
fn mask(chunks: &[ArrayRef], rows: usize) -> Vec<u8> {
    let mut bits = BooleanBufferBuilder::new(rows);
    for chunk in chunks {
        match chunk.nulls() {
            Some(nulls) => bits.append_buffer(nulls.inner()),
            None => bits.append_n(chunk.len(), *chunk.data_type() != DataType::Null),
        }
    }
    let mut bytes = bits.as_slice().to_vec();
    scan::reverse_bits(&mut bytes);
    bytes
}

/// The buffer `o`: 0, then the length of each element.
struct Lengths(Vec<i32>);

impl Lengths {
    fn new(rows: usize, budget: &Budget) -> Result<Self> {
        let mut lengths = allocate(rows as u64 + 1, budget)?;
        lengths.push(0);
        Ok(Lengths(lengths))
    }

    /// Adds the lengths of strings; gives their bytes. Nothing is kept under a missing one.
    fn append_bytes(&mut self, chunk: &ArrayRef) -> Result<Buffer> {
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
    fn append_lists(&mut self, chunk: &ArrayRef) -> Result<ArrayRef> {
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
        let first = self.0.len();
        let ends = offsets.iter().skip(1);
        let mut fits = true;
        self.0.extend(offsets.iter().zip(ends.clone()).map(|(start, end)| {
            let length = (*end - *start).as_usize();
            fits &= length <= i32::MAX as usize;
            i32::try_from(length).unwrap_or(i32::MAX)
        }));
        if !fits {
            return Err(Error::limit("the limit", i32::MAX, "more bytes or elements in one value"));
        }
        let lengths = self.0.get_mut(first..).unwrap_or_default();
        let mut dropped = false;
        if let Some(nulls) = nulls {
            each_missing_run(nulls, |start, end| {
                let run = lengths.get_mut(start..end).unwrap_or_default();
                dropped |= run.iter().any(|length| *length != 0);
                run.fill(0);
            });
        }
        let start = offsets.first().map_or(0, |offset| offset.as_usize());
        if !dropped {
            let end = offsets.last().map_or(0, |offset| offset.as_usize());
            return Ok(Kept::All { start, length: end - start });
        }
        let ranges = offsets.iter().zip(ends).map(|(start, end)| (start.as_usize(), end.as_usize()));
        let is_valid = |row: usize| nulls.is_none_or(|nulls| nulls.is_valid(row));
        Ok(Kept::Ranges(
            ranges.enumerate().filter(|(row, _)| is_valid(*row)).map(|(_, range)| range).collect(),
        ))
    }
}

/// Which elements belong to values that are present.
enum Kept {
    All { start: usize, length: usize },
    Ranges(Vec<(usize, usize)>),
}

/// The array in a form that the format knows: views and run ends are resolved, one level deep.
fn plain(array: &ArrayRef) -> Result<ArrayRef> {
    let target = match array.data_type() {
        DataType::Utf8View => DataType::LargeUtf8,
        DataType::BinaryView => DataType::LargeBinary,
        DataType::ListView(item) | DataType::LargeListView(item) => DataType::LargeList(Arc::clone(item)),
        DataType::RunEndEncoded(_, values) => {
            return plain(&cast(array, values.data_type())?);
        }
        _ => return Ok(Arc::clone(array)),
    };
    Ok(cast(array, &target)?)
}

/// Indices and one dictionary for all chunks.
///
/// Mostly the chunks share a dictionary, or each adds to the one before it: then nothing changes. Else the dictionary
/// is all values in the order of their first appearance, which would garble the order of an ordered one.
fn unify(chunks: &[ArrayRef], ordered: bool) -> Result<(Vec<ArrayRef>, Vec<ArrayRef>)> {
    let indices = chunks.iter().map(|chunk| {
        let keys = chunk.as_any_dictionary().keys();
        keys.slice(0, keys.len())
    });
    let dictionaries: Vec<&ArrayRef> =
        chunks.iter().map(|chunk| chunk.as_any_dictionary().values()).collect();
    let Some(longest) = dictionaries.iter().max_by_key(|values| values.len()) else {
        return Ok((Vec::new(), Vec::new()));
    };
    let is_prefix = |values: &&ArrayRef| {
        values.len() == longest.len() && values.to_data().ptr_eq(&longest.to_data())
            || longest.slice(0, values.len()).to_data() == values.to_data()
    };
    if dictionaries.iter().all(is_prefix) {
        return Ok((indices.collect(), vec![Arc::clone(longest)]));
    }
    if ordered {
        let message = "batches whose ordered dictionaries differ: one order cannot be told from them";
        return Err(Error::lossy(message));
    }
    let all: Vec<&dyn Array> = dictionaries.iter().map(|values| values.as_ref()).collect();
    let all = concat(&all)?;
    let (firsts, places) = distinct(&all)?;
    let values = take(&all, &UInt64Array::from(firsts), None)?;
    let mut base = 0;
    let mut moved = Vec::new();
    for (index, dictionary) in indices.zip(&dictionaries) {
        let wide = cast(&index, &DataType::UInt64)?;
        let wide = wide.as_primitive::<arrow_array::types::UInt64Type>();
        let place = |key: u64| usize::try_from(key).ok().and_then(|key| places.get(base + key)).copied();
        let keys: UInt64Array = wide.iter().map(|key| key.and_then(place)).collect();
        let options = CastOptions { safe: false, ..CastOptions::default() };
        moved.push(cast_with_options(&keys, index.data_type(), &options).map_err(|_| {
            let found = format!("the {} values of all batches together", values.len());
            Error::lossy(format!("a dictionary with {} indices cannot hold {found}", index.data_type()))
        })?);
        base += dictionary.len();
    }
    Ok((moved, vec![values]))
}

/// The first place of each distinct value, in order, and for each value which of those it is.
fn distinct(values: &ArrayRef) -> Result<(Vec<u64>, Vec<u64>)> {
    let compare = make_comparator(values, values, SortOptions::default())?;
    let mut sorted: Vec<usize> = (0..values.len()).collect();
    sorted.sort_by(|left, right| compare(*left, *right));
    // The sort is stable: the first of equal values is the one that appeared first.
    let mut first_of = vec![0; values.len()];
    let mut first = 0;
    for (place, value) in sorted.iter().enumerate() {
        let is_new = place == 0 || compare(first, *value).is_ne();
        if is_new {
            first = *value;
        }
        if let Some(slot) = first_of.get_mut(*value) {
            *slot = first;
        }
    }
    let mut firsts = Vec::new();
    let mut places: Vec<u64> = Vec::new();
    for (value, first) in first_of.iter().enumerate() {
        let place = match places.get(*first) {
            Some(place) => *place,
            None => {
                firsts.push(value as u64);
                firsts.len() as u64 - 1
            }
        };
        places.push(place);
    }
    Ok((firsts, places))
}

/// Writes the fields `t` and `p`.
fn write_type(out: &mut Writer, kind: &Type) -> Result<()> {
    out.string("t", kind.name())?;
    match kind {
        Type::Timestamp(_, Some(zone)) => out.string("p", zone),
        Type::Opaque(width) => {
            out.int32("p", *width);
            Ok(())
        }
        Type::Factor { index, dictionary, .. } => {
            let parameter = out.begin(Some((BsonKind::DOCUMENT, "p")));
            for (key, kind) in [("i", index), ("d", dictionary)] {
                let document = out.begin(Some((BsonKind::DOCUMENT, key)));
                write_type(out, kind)?;
                out.end(document)?;
            }
            out.end(parameter)
        }
        Type::List(item) => {
            let parameter = out.begin(Some((BsonKind::DOCUMENT, "p")));
            write_type(out, item)?;
            out.end(parameter)
        }
        Type::Struct(fields) => {
            let parameter = out.begin(Some((BsonKind::ARRAY, "p")));
            for (place, (name, kind)) in fields.iter().enumerate() {
                let document = out.begin(Some((BsonKind::DOCUMENT, &place.to_string())));
                out.string("n", name)?;
                write_type(out, kind)?;
                out.end(document)?;
            }
            out.end(parameter)
        }
        _ => Ok(()),
    }
}
