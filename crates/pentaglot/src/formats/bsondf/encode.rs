//! Arrays to documents: the fields d, m, t, p, o in this order, as the original programs write them.
//!
//! An array comes in chunks (one for each batch that was written); each becomes part of the same buffers, so a
//! document does not show how its rows arrived. Buffers are compressed while chunks come: of a chunk nothing is kept, but of
//! dictionaries, which only all chunks together decide.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef};
use arrow_cast::cast;
use arrow_schema::DataType;

use super::buffers::{FixedValues, Lengths, Mask};
use super::factors::unify;
use super::schema::Type;
use crate::error::{Context, Error, Result};
use crate::formats::OptionMap;
use crate::limits::{Budget, Reservation};
use crate::wire::bson::{BsonKind, Writer};
use crate::wire::lz4::BlockWriter;

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

    /// The most bytes that a value of fixed width takes until its column is written: the compressed value, and on higher levels the
    /// value itself, in memory that grows.
    pub(super) fn value_bytes(&self) -> u64 {
        if self.level == 0 { 9 } else { 28 }
    }

    /// An empty buffer.
    pub(super) fn block(&self) -> BlockWriter {
        BlockWriter::new(self.level, &self.budget)
    }

    /// An array without rows.
    pub(super) fn array(&self, kind: &Type) -> ArrayWriter {
        let values = match kind {
            Type::Null => Values::Null,
            Type::Bytes | Type::Utf8 => Values::Bytes(Lengths::new(self), self.block()),
            Type::List(item) => Values::List(Lengths::new(self), Box::new(self.array(item))),
            Type::Factor { .. } => Values::Factor(Vec::new()),
            Type::Struct(fields) => {
                let array = |(name, kind): &(String, Type)| (name.clone(), self.array(kind));
                Values::Struct(fields.iter().map(array).collect())
            }
            _ => Values::Fixed(FixedValues::new(kind, self)),
        };
        ArrayWriter { mask: Mask::new(), values }
    }

    /// An array of which all chunks are there.
    pub(super) fn whole(&self, kind: &Type, chunks: &[ArrayRef]) -> Result<ArrayWriter> {
        let mut array = self.array(kind);
        chunks.iter().try_for_each(|chunk| array.append(chunk))?;
        Ok(array)
    }

    /// Writes the element `key` that holds an array.
    pub(super) fn finish(&self, out: &mut Output, key: &str, kind: &Type, array: ArrayWriter) -> Result<()> {
        let rows = i64::try_from(array.rows()).unwrap_or(i64::MAX);
        let document = out.bson.begin(Some((BsonKind::DOCUMENT, key)));
        let mut counts = None;
        match (kind, array.values) {
            (_, Values::Null) => out.bson.int64("d", rows),
            (_, Values::Fixed(values)) => self.buffer(out, "d", values.into_block()).field("d")?,
            (_, Values::Bytes(lengths, bytes)) => {
                self.buffer(out, "d", bytes).field("d")?;
                counts = Some(lengths);
            }
            (Type::List(item), Values::List(lengths, items)) => {
                self.finish(out, "d", item, *items).field("d")?;
                counts = Some(lengths);
            }
            (Type::Factor { ordered, index, dictionary }, Values::Factor(chunks)) => {
                let (indices, values) = unify(&chunks, *ordered)?;
                drop(chunks);
                let data = out.bson.begin(Some((BsonKind::DOCUMENT, "d")));
                for (key, kind, chunks) in [("i", index, indices), ("d", dictionary, values)] {
                    let array = self.whole(kind, &chunks);
                    array.and_then(|array| self.finish(out, key, kind, array)).field(key).field("d")?;
                }
                out.bson.end(data)?;
            }
            (Type::Struct(fields), Values::Struct(arrays)) => {
                let data = out.bson.begin(Some((BsonKind::DOCUMENT, "d")));
                out.bson.int64("l", rows);
                let documents = out.bson.begin(Some((BsonKind::DOCUMENT, "f")));
                for ((_, kind), (name, array)) in fields.iter().zip(arrays) {
                    self.finish(out, &name, kind, array).field(name).field("f").field("d")?;
                }
                out.bson.end(documents)?;
                out.bson.end(data)?;
            }
            (kind, _) => return Err(Error::usage(format!("expected an array of the type {kind}"))),
        }
        let mut mask = self.block();
        mask.append(&array.mask.into_bytes()).field("m")?;
        self.buffer(out, "m", mask).field("m")?;
        write_type(&mut out.bson, kind)?;
        if let Some(counts) = counts {
            counts.into_block().and_then(|block| self.buffer(out, "o", block)).field("o")?;
        }
        out.bson.end(document)
    }

    /// Writes a buffer: its length and an LZ4 block.
    fn buffer(&self, out: &mut Output, key: &str, block: BlockWriter) -> Result<()> {
        if block.bytes() == 0 && self.short_empty {
            return out.bson.binary(key, vec![0; 4]);
        }
        let (packed, held) = block.finish()?;
        out.held.merge(held);
        out.bson.binary_in_pieces(key, packed)
    }
}

/// Documents that are being written, and what pays for them.
pub(super) struct Output {
    pub(super) bson: Writer,
    pub(super) held: Reservation,
}

impl Output {
    pub(super) fn new(budget: &Budget) -> Self {
        Output { bson: Writer::default(), held: budget.reservation() }
    }

    /// Appends elements that were written apart.
    pub(super) fn append(&mut self, other: Output) {
        self.bson.append(other.bson);
        self.held.merge(other.held);
    }
}

/// An array whose chunks are coming.
pub(super) struct ArrayWriter {
    mask: Mask,
    values: Values,
}

enum Values {
    Null,
    Fixed(FixedValues),
    Bytes(Lengths, BlockWriter),
    List(Lengths, Box<ArrayWriter>),
    Factor(Vec<ArrayRef>),
    Struct(Vec<(String, ArrayWriter)>),
}

impl ArrayWriter {
    /// How many rows have come.
    pub(super) fn rows(&self) -> usize {
        self.mask.len()
    }

    pub(super) fn append(&mut self, chunk: &ArrayRef) -> Result<()> {
        let chunk = plain(chunk)?;
        self.mask.append(&chunk);
        match &mut self.values {
            Values::Null => Ok(()),
            Values::Fixed(values) => values.append(&chunk).field("d"),
            Values::Bytes(lengths, bytes) => {
                let own = lengths.append_bytes(&chunk).field("o")?;
                bytes.append(&own).field("d")
            }
            Values::List(lengths, items) => {
                let own = lengths.append_lists(&chunk).field("o")?;
                items.append(&own).field("d")
            }
            Values::Factor(chunks) => {
                chunks.push(chunk);
                Ok(())
            }
            Values::Struct(arrays) => {
                let mut fields = arrays.iter_mut().zip(chunk.as_struct().columns());
                fields.try_for_each(|((name, array), field)| {
                    array.append(field).field(name.clone()).field("f").field("d")
                })
            }
        }
    }
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
