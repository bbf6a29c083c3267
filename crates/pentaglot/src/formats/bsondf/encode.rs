//! Arrays to documents: the fields d, m, t, p, o in this order, as the original programs write them.
//!
//! An array comes in chunks (one for each batch that was written); each becomes part of the same buffers, so a
//! document does not show how its rows arrived.

use std::borrow::Cow;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, UInt64Array};
use arrow_buffer::Buffer;
use arrow_cast::{CastOptions, cast, cast_with_options};
use arrow_ord::ord::make_comparator;
use arrow_schema::{DataType, SortOptions};
use arrow_select::concat::concat;
use arrow_select::take::take;

use super::buffers::{FixedValues, Lengths, Mask, raw_values, width_of};
use super::gather::{Gathered, Values};
use super::schema::Type;
use crate::cursor::allocate;
use crate::error::{Context, Error, Result};
use crate::formats::OptionMap;
use crate::hub::Rows;
use crate::kernels::arrays;
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
    pub(super) repeat: bool,
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
                if let Some(bytes) = as_they_are(kind, &chunks, &parts) {
                    self.buffer(out, "d", bytes).field("d")?;
                } else {
                    let mut values = FixedValues::new(kind, rows, self.repeat, &self.budget)?;
                    chunks.iter().try_for_each(|chunk| values.append(chunk))?;
                    self.buffer(out, "d", &values.memory).field("d")?;
                }
            }
        }
        let mut mask = Mask::new();
        chunks.iter().for_each(|chunk| mask.append(chunk));
        self.end_array(out, kind, mask, counts)?;
        out.end(document)
    }

    /// As [`array`](Self::array), of `count` rows that are read while they are encoded: only values of the format are in memory
    /// together, not the batches that they came in.
    pub(super) fn read_array(
        &self,
        out: &mut Writer,
        key: &str,
        kind: &Type,
        rows: Rows,
        count: usize,
    ) -> Result<()> {
        let mut chunks = rows.map(|batch| {
            let batch = batch.map_err(Error::from)?;
            batch.columns().first().cloned().ok_or_else(|| Error::usage("a batch without columns"))
        });
        let Some(mut gathered) = Gathered::new(kind, count, self)? else {
            return self.array(out, key, kind, &chunks.collect::<Result<Vec<_>>>()?);
        };
        chunks.try_for_each(|chunk| gathered.append(&chunk?))?;
        if gathered.mask.len() != count {
            return Err(Error::malformed(format_args!("{count} rows"), gathered.mask.len()));
        }
        self.gathered(out, key, kind, gathered)
    }

    /// As [`array`](Self::array), of values that have been gathered, which are freed as soon as they are encoded.
    pub(super) fn gathered(
        &self,
        out: &mut Writer,
        key: &str,
        kind: &Type,
        Gathered { mask, values }: Gathered,
    ) -> Result<()> {
        let document = out.begin(Some((BsonKind::DOCUMENT, key)));
        let counts = match values {
            Values::Bytes(lengths, bytes) => {
                self.buffer(out, "d", &bytes).field("d")?;
                Some(lengths)
            }
            Values::Fixed(values) => {
                self.buffer(out, "d", &values.memory).field("d")?;
                None
            }
        };
        self.end_array(out, kind, mask, counts)?;
        out.end(document)
    }

    /// Writes the fields that follow `d`.
    fn end_array(&self, out: &mut Writer, kind: &Type, mask: Mask, counts: Option<Lengths>) -> Result<()> {
        self.buffer(out, "m", &mask.into_bytes()).field("m")?;
        write_type(out, kind)?;
        if let Some(counts) = counts {
            self.buffer(out, "o", counts.as_bytes()).field("o")?;
        }
        Ok(())
    }

    /// Writes a buffer: its length and an LZ4 block.
    fn buffer(&self, out: &mut Writer, key: &str, plain: &[u8]) -> Result<()> {
        let packed = match plain {
            [] if self.short_empty => vec![0; 4],
            plain => lz4::compress_with_length(plain, self.level)?,
        };
        out.binary(key, packed)
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

/// The values where they lie, if they need no work and no gathering.
fn as_they_are<'p>(kind: &Type, chunks: &[ArrayRef], parts: &'p [Buffer]) -> Option<&'p [u8]> {
    let untouched = *kind != Type::Bool
        && !kind.is_difference_encoded()
        && chunks.iter().all(|chunk| chunk.null_count() == 0);
    untouched.then(|| arrays::adjacent(parts)).flatten()
}

/// The array in a form that the format knows: views and run ends are resolved, one level deep.
pub(super) fn plain(array: &ArrayRef) -> Result<ArrayRef> {
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
