//! The body of a batch: its nodes and buffers are walked against the schema before `arrow-ipc` sees them, and narrowed
//! to the columns that are wanted.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_buffer::{Buffer, MutableBuffer};
use arrow_ipc::reader::RecordBatchDecoder;
use arrow_ipc::{FieldNode, MetadataVersion};
use arrow_schema::{ArrowError, DataType, Field, Fields, Schema, SchemaRef, UnionMode};
use flatbuffers::FlatBufferBuilder;

use super::layout::Message;
use crate::cursor::allocate_zeroed;
use crate::error::{Context, Error, Result};
use crate::formats::guard::guarded;
use crate::hub::inner_fields;
use crate::limits::{Budget, Limits};
use crate::source::Source;

/// The dictionaries read so far, by id.
pub(super) type Dictionaries = HashMap<i64, ArrayRef>;

/// A buffer of a body, in the body's own offsets, checked against its length.
pub(super) type Extent = Range<u64>;

/// The buffers of a batch.
pub(super) fn extents(batch: arrow_ipc::RecordBatch<'_>, message: &Message) -> Result<Vec<Extent>> {
    let buffers = batch.buffers().into_iter().flatten().enumerate();
    buffers
        .map(|(index, buffer)| {
            let start = u64::try_from(buffer.offset()).ok();
            let end = start.zip(u64::try_from(buffer.length()).ok());
            let end = end.and_then(|(start, len)| start.checked_add(len));
            match (start, end) {
                (Some(start), Some(end)) if end <= message.body_bytes => Ok(start..end),
                _ => Err(Error::malformed(
                    format_args!("a buffer within the body of {} bytes", message.body_bytes),
                    format_args!("{} bytes at {}", buffer.length(), buffer.offset()),
                )
                .at(message.metadata_offset())
                .index(index as u64)
                .field("buffers")
                .rule("buffer")),
            }
        })
        .collect()
}

/// Which nodes, buffers and variadic counts belong to a column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Slots {
    pub nodes: Range<usize>,
    pub buffers: Range<usize>,
    pub variadics: Range<usize>,
}

/// A walk over the nodes and buffers of a batch along its schema.
struct Walk<'a> {
    nodes: Vec<FieldNode>,
    variadics: Vec<i64>,
    buffer_count: usize,
    version: MetadataVersion,
    /// How many bytes each buffer has once it is unpacked; without them only the structure is walked.
    lengths: Option<&'a [u64]>,
    limits: &'a Limits,
    next: Slots,
}

/// The slots of every column, in order.
pub(super) fn slots(
    fields: &Fields,
    batch: arrow_ipc::RecordBatch<'_>,
    version: MetadataVersion,
    limits: &Limits,
    lengths: Option<&[u64]>,
) -> Result<Vec<Slots>> {
    let rows = batch.length();
    if fields.is_empty() {
        limits.check_free_rows(u64::try_from(rows).unwrap_or(u64::MAX))?;
    }
    let mut walk = Walk {
        nodes: batch.nodes().into_iter().flatten().copied().collect(),
        variadics: batch.variadicBufferCounts().into_iter().flatten().collect(),
        buffer_count: batch.buffers().map_or(0, |buffers| buffers.len()),
        version,
        lengths,
        limits,
        next: Slots { nodes: 0..0, buffers: 0..0, variadics: 0..0 },
    };
    let mut all = Vec::new();
    for field in fields {
        let start = walk.next.clone();
        let len = walk.field(field.data_type()).field(field.name().clone())?;
        if len != u64::try_from(rows).unwrap_or(u64::MAX) {
            return Err(bad(format_args!("{rows} rows"), len).field(field.name().clone()));
        }
        all.push(Slots {
            nodes: start.nodes.end..walk.next.nodes.end,
            buffers: start.buffers.end..walk.next.buffers.end,
            variadics: start.variadics.end..walk.next.variadics.end,
        });
    }
    let used = (walk.next.nodes.end, walk.next.buffers.end, walk.next.variadics.end);
    let found = (walk.nodes.len(), walk.buffer_count, walk.variadics.len());
    if used != found {
        return Err(bad(
            format_args!("{} nodes, {} buffers, {} variadic counts", used.0, used.1, used.2),
            format_args!("{}, {}, {}", found.0, found.1, found.2),
        ));
    }
    Ok(all)
}

impl Walk<'_> {
    /// Walks one field; gives its length.
    fn field(&mut self, data_type: &DataType) -> Result<u64> {
        let node = self.nodes.get(self.next.nodes.end).copied();
        let node = node.ok_or_else(|| bad("a node for every field", self.nodes.len()))?;
        self.next.nodes.end += 1;
        let len = u64::try_from(node.length()).map_err(|_| bad("a length of 0 or more", node.length()))?;
        let nulls = u64::try_from(node.null_count()).ok().filter(|nulls| *nulls <= len);
        let nulls = nulls.ok_or_else(|| bad(format_args!("0..={len} nulls"), node.null_count()))?;
        self.parts(data_type, len, nulls)?;
        Ok(len)
    }

    fn parts(&mut self, data_type: &DataType, len: u64, nulls: u64) -> Result<()> {
        let validity = if nulls > 0 { len.div_ceil(8) } else { 0 };
        match data_type {
            DataType::Null => {
                if nulls != len {
                    return Err(bad(format_args!("{len} nulls in a null column"), nulls));
                }
                return self.limits.check_free_rows(len);
            }
            DataType::Union(fields, mode) => {
                if self.version < MetadataVersion::V5 {
                    self.buffer(0)?;
                }
                self.buffer(len)?;
                if *mode == UnionMode::Dense {
                    self.values(len, 4)?;
                }
                for (_, field) in fields.iter() {
                    let child = self.field(field.data_type()).field(field.name().clone())?;
                    if *mode == UnionMode::Sparse && child != len {
                        return Err(bad(format_args!("{len} values"), child).field(field.name().clone()));
                    }
                }
                return Ok(());
            }
            DataType::RunEndEncoded(ends, values) => {
                let runs = self.field(ends.data_type()).field("run_ends")?;
                let count = self.field(values.data_type()).field("values")?;
                if runs != count || (runs == 0 && len > 0) {
                    return Err(bad(format_args!("as many values as the {runs} run ends"), count));
                }
                return self.limits.check_free_rows(len);
            }
            _ => self.buffer(validity)?,
        }
        match data_type {
            DataType::Boolean => self.buffer(len.div_ceil(8)),
            DataType::Utf8 | DataType::Binary => {
                self.offsets(len, 4)?;
                self.buffer(0)
            }
            DataType::LargeUtf8 | DataType::LargeBinary => {
                self.offsets(len, 8)?;
                self.buffer(0)
            }
            DataType::Utf8View | DataType::BinaryView => {
                self.values(len, 16)?;
                let count = self.variadics.get(self.next.variadics.end).copied();
                self.next.variadics.end += 1;
                let count = count.and_then(|count| u64::try_from(count).ok());
                let left = (self.buffer_count - self.next.buffers.end) as u64;
                let count = count.filter(|count| *count <= left);
                let count = count.ok_or_else(|| bad("a count of variadic buffers", "none that fits"))?;
                (0..count).try_for_each(|_| self.buffer(0))
            }
            DataType::FixedSizeBinary(width) => {
                let width = u64::try_from(*width).unwrap_or(0);
                if width == 0 {
                    self.limits.check_free_rows(len)?;
                }
                self.buffer(times(len, width)?)
            }
            DataType::List(item) | DataType::Map(item, _) => {
                self.offsets(len, 4)?;
                self.field(item.data_type()).field(item.name().clone()).map(drop)
            }
            DataType::LargeList(item) => {
                self.offsets(len, 8)?;
                self.field(item.data_type()).field(item.name().clone()).map(drop)
            }
            DataType::ListView(item) | DataType::LargeListView(item) => {
                let width = if matches!(data_type, DataType::ListView(_)) { 4 } else { 8 };
                self.values(len, width)?;
                self.values(len, width)?;
                self.field(item.data_type()).field(item.name().clone()).map(drop)
            }
            DataType::FixedSizeList(item, size) => {
                let size = u64::try_from(*size).unwrap_or(0);
                if size == 0 {
                    self.limits.check_free_rows(len)?;
                }
                let needed = times(len, size)?;
                let child = self.field(item.data_type()).field(item.name().clone())?;
                if child < needed {
                    return Err(bad(format_args!("{needed} values"), child).field(item.name().clone()));
                }
                Ok(())
            }
            DataType::Struct(fields) => {
                if fields.is_empty() {
                    self.limits.check_free_rows(len)?;
                }
                fields.iter().try_for_each(|field| {
                    let child = self.field(field.data_type()).field(field.name().clone())?;
                    if child == len {
                        return Ok(());
                    }
                    Err(bad(format_args!("{len} values"), child).field(field.name().clone()))
                })
            }
            DataType::Dictionary(key, _) => self.values(len, key.primitive_width().unwrap_or(1) as u64),
            other => self.values(len, other.primitive_width().unwrap_or(1) as u64),
        }
    }

    /// An offsets buffer; that of an empty array may be empty.
    fn offsets(&mut self, len: u64, width: u64) -> Result<()> {
        self.values(if len == 0 { 0 } else { len + 1 }, width)
    }

    /// A buffer of `len` values. Arrow looks at all of it as values: it must not end within one.
    fn values(&mut self, len: u64, width: u64) -> Result<()> {
        let index = self.next.buffers.end;
        self.buffer(times(len, width)?)?;
        match self.lengths.and_then(|lengths| lengths.get(index)) {
            Some(found) if !found.is_multiple_of(width.clamp(1, 16)) => {
                Err(bad(format_args!("a multiple of {width} bytes"), found)
                    .index(index as u64)
                    .field("buffers"))
            }
            _ => Ok(()),
        }
    }

    fn buffer(&mut self, needed: u64) -> Result<()> {
        let index = self.next.buffers.end;
        if index >= self.buffer_count {
            return Err(bad("a buffer for every field", format_args!("{} in all", self.buffer_count)));
        }
        self.next.buffers.end += 1;
        match self.lengths.and_then(|lengths| lengths.get(index)) {
            Some(found) if *found < needed => {
                Err(bad(format_args!("{needed} bytes or more"), found).index(index as u64).field("buffers"))
            }
            _ => Ok(()),
        }
    }
}

fn times(len: u64, width: u64) -> Result<u64> {
    // Arrow counts bits in a `usize`: what passes here does not overflow there.
    let bytes = len.checked_mul(width).filter(|bytes| *bytes < 1 << 60 && len < 1 << 60);
    bytes.ok_or_else(|| bad("a length that fits", len))
}

fn bad(expected: impl std::fmt::Display, found: impl std::fmt::Display) -> Error {
    Error::malformed(expected, found).rule("batch")
}

/// How many bytes each buffer has once it is unpacked, checked against the limits.
fn unpacked_lengths(
    batch: arrow_ipc::RecordBatch<'_>,
    extents: &[Extent],
    body: &[u8],
    budget: &Budget,
) -> Result<Vec<u64>> {
    let Some(compression) = batch.compression() else {
        return Ok(extents.iter().map(|extent| extent.end - extent.start).collect());
    };
    if !matches!(compression.codec().0, 0 | 1) {
        return Err(Error::malformed("codec 0 (LZ4) or 1 (Zstd)", compression.codec().0)
            .field("compression")
            .rule("compression"));
    }
    if compression.method().0 != 0 {
        return Err(Error::malformed("method 0 (per buffer)", compression.method().0)
            .field("compression")
            .rule("compression"));
    }
    let mut total = 0u64;
    let mut lengths = Vec::new();
    for (index, extent) in extents.iter().enumerate() {
        let packed = extent.end - extent.start;
        let start = usize::try_from(extent.start).unwrap_or(usize::MAX);
        let prefix = body.get(start..).and_then(|bytes| bytes.first_chunk::<8>()).filter(|_| packed >= 8);
        let len = match (packed, prefix.map(|prefix| i64::from_le_bytes(*prefix))) {
            (0, _) => 0,
            (_, Some(-1)) => packed - 8,
            (_, Some(len)) if len >= 0 => u64::try_from(len).unwrap_or(0),
            (_, found) => {
                let found = found.map_or_else(|| format!("{packed} bytes"), |len| len.to_string());
                return Err(Error::malformed("an unpacked length of -1 or more before the bytes", found)
                    .index(index as u64)
                    .field("buffers")
                    .rule("compression"));
            }
        };
        budget.limits().check_ratio(packed, len)?;
        total = total.saturating_add(len);
        lengths.push(len);
    }
    budget.check(total)?;
    Ok(lengths)
}

/// The decoder works in memory: what it calls an I/O error is a packed buffer that does not unpack.
fn from_decoder(error: ArrowError) -> Error {
    match error {
        ArrowError::IoError(text, _) => Error::malformed("buffers that unpack", text).rule("compression"),
        other => Error::from(other),
    }
}

/// Decodes the batch that a message holds, all columns of it.
pub(super) fn decode(
    message: &Message,
    body: &Buffer,
    schema: &SchemaRef,
    dictionaries: &Dictionaries,
    budget: &Budget,
) -> Result<RecordBatch> {
    let batch = message.record_batch(budget.limits())?;
    decode_batch(batch, &extents(batch, message)?, body, schema, dictionaries, message.version, budget)
        .at(message.body_offset())
}

fn decode_batch(
    batch: arrow_ipc::RecordBatch<'_>,
    extents: &[Extent],
    body: &Buffer,
    schema: &SchemaRef,
    dictionaries: &Dictionaries,
    version: MetadataVersion,
    budget: &Budget,
) -> Result<RecordBatch> {
    let lengths = unpacked_lengths(batch, extents, body, budget)?;
    slots(schema.fields(), batch, version, budget.limits(), Some(&lengths))?;
    guarded(|| {
        RecordBatchDecoder::try_new(body, batch, Arc::clone(schema), dictionaries, &version)
            .and_then(RecordBatchDecoder::read_record_batch)
            .map_err(from_decoder)
    })
}

/// Decodes the columns `chosen` (ascending) of the batch of a message, reading only their buffers.
pub(super) fn decode_columns(
    message: &Message,
    source: &Source,
    schema: &SchemaRef,
    chosen: &[usize],
    dictionaries: &Dictionaries,
    budget: &Budget,
) -> Result<RecordBatch> {
    let limits = budget.limits();
    let batch = message.record_batch(limits)?;
    let extents = extents(batch, message)?;
    let slots = slots(schema.fields(), batch, message.version, limits, None).at(message.metadata_offset())?;
    let narrow: Vec<&Slots> = chosen.iter().filter_map(|index| slots.get(*index)).collect();
    let wanted: Vec<&Extent> =
        narrow.iter().flat_map(|slots| extents.get(slots.buffers.clone())).flatten().collect();
    // Each buffer starts at a multiple of 64, as if it had been written so.
    let mut moved = Vec::new();
    let mut total = 0u64;
    for extent in &wanted {
        moved.push(total..total + (extent.end - extent.start));
        total = (total + (extent.end - extent.start)).next_multiple_of(64);
    }
    let mut body: MutableBuffer = allocate_zeroed(total, budget).at(message.body_offset())?;
    for (from, to) in wanted.iter().zip(&moved) {
        let range = usize::try_from(to.start).ok().zip(usize::try_from(to.end).ok());
        let target = range.and_then(|(start, end)| body.as_slice_mut().get_mut(start..end));
        source.read_exact_at(message.body_offset() + from.start, target.unwrap_or_default())?;
    }
    let schema: SchemaRef = Arc::new(Schema::new(
        chosen.iter().filter_map(|index| schema.fields().get(*index)).cloned().collect::<Vec<_>>(),
    ));
    let metadata = narrowed(batch, &narrow, &moved)?;
    let narrowed = crate::formats::arrow_flatbuffers::message(&metadata, limits)?;
    let batch = narrowed.header_as_record_batch().ok_or_else(|| bad("a record batch", "none"))?;
    decode_batch(batch, &moved, &body.into(), &schema, dictionaries, message.version, budget)
        .at(message.body_offset())
}

/// A message for some columns of a batch, whose buffers have moved.
fn narrowed(batch: arrow_ipc::RecordBatch<'_>, slots: &[&Slots], moved: &[Extent]) -> Result<Vec<u8>> {
    let all: Vec<FieldNode> = batch.nodes().into_iter().flatten().copied().collect();
    let nodes: Vec<FieldNode> =
        slots.iter().flat_map(|slots| all.get(slots.nodes.clone())).flatten().copied().collect();
    let all: Vec<i64> = batch.variadicBufferCounts().into_iter().flatten().collect();
    let variadics: Vec<i64> =
        slots.iter().flat_map(|slots| all.get(slots.variadics.clone())).flatten().copied().collect();
    let buffers = moved.iter().map(|extent| -> Result<arrow_ipc::Buffer> {
        let signed = |value: u64| i64::try_from(value).map_err(|_| bad("an offset that fits", value));
        Ok(arrow_ipc::Buffer::new(signed(extent.start)?, signed(extent.end - extent.start)?))
    });
    let buffers = buffers.collect::<Result<Vec<_>>>()?;
    let mut builder = FlatBufferBuilder::new();
    let nodes = builder.create_vector(&nodes);
    let buffers = builder.create_vector(&buffers);
    let variadics = builder.create_vector(&variadics);
    let compression = batch.compression().map(|from| {
        let args = arrow_ipc::BodyCompressionArgs { codec: from.codec(), method: from.method() };
        arrow_ipc::BodyCompression::create(&mut builder, &args)
    });
    let args = arrow_ipc::RecordBatchArgs {
        length: batch.length(),
        nodes: Some(nodes),
        buffers: Some(buffers),
        compression,
        variadicBufferCounts: Some(variadics),
    };
    let header = arrow_ipc::RecordBatch::create(&mut builder, &args);
    let args = arrow_ipc::MessageArgs {
        version: MetadataVersion::V5,
        header_type: arrow_ipc::MessageHeader::RecordBatch,
        header: Some(header.as_union_value()),
        ..arrow_ipc::MessageArgs::default()
    };
    let message = arrow_ipc::Message::create(&mut builder, &args);
    builder.finish(message, None);
    Ok(builder.finished_data().to_vec())
}

/// Adds the dictionary of a message to the others.
pub(super) fn decode_dictionary(
    message: &Message,
    body: &Buffer,
    schema: &Schema,
    dictionaries: &mut Dictionaries,
    budget: &Budget,
) -> Result<()> {
    let limits = budget.limits();
    let batch = message.record_batch(limits)?;
    let flatbuffer = message.flatbuffer(limits)?;
    let dictionary = flatbuffer
        .header_as_dictionary_batch()
        .ok_or_else(|| bad("a dictionary batch", "none").at(message.metadata_offset()))?;
    let id = dictionary.id();
    let values = dictionary_fields(schema.fields()).into_iter().find(|(field_id, _)| *field_id == id);
    let Some((_, values)) = values else {
        return Err(Error::malformed("a dictionary id of the schema", id)
            .at(message.metadata_offset())
            .rule("dictionary"));
    };
    if dictionary.isDelta() && !dictionaries.contains_key(&id) {
        return Err(Error::malformed(format_args!("dictionary {id} before its delta"), "none")
            .at(message.metadata_offset())
            .rule("dictionary"));
    }
    let extents = extents(batch, message)?;
    let check = || -> Result<()> {
        let lengths = unpacked_lengths(batch, &extents, body, budget)?;
        let fields = Fields::from(vec![Field::new("values", values, true)]);
        slots(&fields, batch, message.version, limits, Some(&lengths)).map(drop)
    };
    check().at(message.body_offset())?;
    guarded(|| {
        arrow_ipc::reader::read_dictionary(body, dictionary, schema, dictionaries, &message.version)
            .map_err(from_decoder)
    })
    .at(message.body_offset())
}

/// The dictionary ids of these fields, and of the fields in them, with the types of their values.
pub(super) fn dictionary_fields(fields: &Fields) -> Vec<(i64, DataType)> {
    let mut found = Vec::new();
    for field in fields {
        collect_dictionaries(field, &mut found);
    }
    found
}

fn collect_dictionaries(field: &Field, found: &mut Vec<(i64, DataType)>) {
    if let DataType::Dictionary(_, values) = field.data_type() {
        #[expect(deprecated, reason = "the only place where arrow-ipc keeps a dictionary's id")]
        let id = field.dict_id().unwrap_or_default();
        found.push((id, values.as_ref().clone()));
    }
    in_type(field.data_type(), found);
    fn in_type(data_type: &DataType, found: &mut Vec<(i64, DataType)>) {
        match data_type {
            DataType::Dictionary(_, values) => in_type(values, found),
            _ => inner_fields(data_type).into_iter().for_each(|field| collect_dictionaries(field, found)),
        }
    }
}
