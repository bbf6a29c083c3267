//! Where everything is: encapsulated messages, the footer's blocks, and how both are found.

use std::io::Read;

use arrow_buffer::{Buffer, MutableBuffer};
use arrow_ipc::{MessageHeader, MetadataVersion};

use crate::cursor::{Cursor, allocate_zeroed};
use crate::error::{self, Context, Error, Result};
use crate::formats::arrow_flatbuffers;
use crate::limits::{Budget, Limits};
use crate::source::Source;

/// The magic at both ends of a file.
pub(super) const MAGIC: &[u8; 6] = b"ARROW1";
/// The magic and its padding at the start of a file.
pub(super) const FILE_HEAD_BYTES: u64 = 8;
/// The footer's length and the magic at the end of a file.
pub(super) const FILE_TAIL_BYTES: u64 = 10;
/// What comes before the length of a message since Arrow 0.15.
pub(super) const CONTINUATION: [u8; 4] = [0xff; 4];

/// A message without its body.
#[derive(Debug, Clone)]
pub(super) struct Message {
    /// Where the prefix begins.
    pub offset: u64,
    /// 8 with a continuation marker, 4 before Arrow 0.15.
    pub prefix_bytes: u64,
    /// The verified flatbuffer and its padding.
    pub metadata: Buffer,
    pub version: MetadataVersion,
    pub body_bytes: u64,
    pub kind: MessageKind,
}

/// What a message is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MessageKind {
    Schema,
    Dictionary { id: i64, delta: bool, rows: u64 },
    Batch { rows: u64 },
    Other(MessageHeader),
}

impl MessageKind {
    /// The name in messages.
    pub(super) fn name(&self) -> &'static str {
        match self {
            MessageKind::Schema => "a schema",
            MessageKind::Dictionary { .. } => "a dictionary batch",
            MessageKind::Batch { .. } => "a record batch",
            MessageKind::Other(MessageHeader::Tensor) => "a tensor",
            MessageKind::Other(MessageHeader::SparseTensor) => "a sparse tensor",
            MessageKind::Other(_) => "a message of no known kind",
        }
    }
}

impl Message {
    pub(super) fn metadata_offset(&self) -> u64 {
        self.offset + self.prefix_bytes
    }

    pub(super) fn body_offset(&self) -> u64 {
        self.metadata_offset() + self.metadata.len() as u64
    }

    pub(super) fn end(&self) -> u64 {
        self.body_offset().saturating_add(self.body_bytes)
    }

    /// The flatbuffer, verified once more: it is cheap compared to a body, and borrows from here.
    pub(super) fn flatbuffer(&self, limits: &Limits) -> Result<arrow_ipc::Message<'_>> {
        arrow_flatbuffers::message(&self.metadata, limits).at(self.metadata_offset())
    }

    /// The record batch that the message is, or that a dictionary message holds.
    pub(super) fn record_batch(&self, limits: &Limits) -> Result<arrow_ipc::RecordBatch<'_>> {
        let message = self.flatbuffer(limits)?;
        let batch = match self.kind {
            MessageKind::Dictionary { .. } => {
                message.header_as_dictionary_batch().and_then(|batch| batch.data())
            }
            _ => message.header_as_record_batch(),
        };
        batch.ok_or_else(|| Error::malformed("a record batch", "none").at(self.metadata_offset()))
    }

    fn parse(offset: u64, prefix_bytes: u64, metadata: Buffer, limits: &Limits) -> Result<Message> {
        let at = offset + prefix_bytes;
        let message = arrow_flatbuffers::message(&metadata, limits).at(at)?;
        let (version, header) = (message.version(), message.header_type());
        if !matches!(version, MetadataVersion::V4 | MetadataVersion::V5) {
            return Err(
                Error::unsupported(format!("Arrow metadata version {}", i32::from(version.0) + 1)).at(at)
            );
        }
        let body_bytes = u64::try_from(message.bodyLength())
            .map_err(|_| Error::malformed("a body length of 0 or more", message.bodyLength()).at(at))?;
        let missing = || Error::malformed("a record batch", "none").at(at);
        let count = |rows: i64| {
            u64::try_from(rows).map_err(|_| Error::malformed("a row count of 0 or more", rows).at(at))
        };
        let kind = match header {
            MessageHeader::Schema => MessageKind::Schema,
            MessageHeader::RecordBatch => MessageKind::Batch {
                rows: count(message.header_as_record_batch().ok_or_else(missing)?.length())?,
            },
            MessageHeader::DictionaryBatch => {
                let batch = message.header_as_dictionary_batch().ok_or_else(missing)?;
                let rows = count(batch.data().ok_or_else(missing)?.length())?;
                MessageKind::Dictionary { id: batch.id(), delta: batch.isDelta(), rows }
            }
            other => MessageKind::Other(other),
        };
        Ok(Message { offset, prefix_bytes, metadata, version, body_bytes, kind })
    }
}

/// Where the schema message of a file begins: after the magic's padding, which arrow-rs and Polars write 58 bytes long.
pub(super) fn first_message(source: &Source) -> Result<u64> {
    let mut head = [0; 64];
    let count = source.read_at(0, &mut head)?;
    let padding = head.get(MAGIC.len()..count).unwrap_or_default();
    let zeros = padding.iter().take_while(|byte| **byte == 0).count();
    Ok(if zeros == padding.len() && count == 64 { 64 } else { FILE_HEAD_BYTES })
}

/// What comes next in a run of messages.
#[derive(Debug)]
pub(super) enum Next {
    Message(Message),
    /// The end-of-stream marker and its length in bytes; 0 where the bytes just end.
    End(u64),
}

/// The message at `offset` of a seekable source.
pub(super) fn read_message(source: &Source, offset: u64, budget: &Budget) -> Result<Next> {
    let total = source.len().unwrap_or(0);
    if offset >= total {
        return Ok(Next::End(0));
    }
    let mut prefix = [0; 8];
    let count = source.read_at(offset, &mut prefix)?;
    let Some((prefix_bytes, len)) = read_prefix(prefix.get(..count).unwrap_or_default(), offset)? else {
        return Ok(Next::End(if prefix.starts_with(&CONTINUATION) { 8 } else { 4 }));
    };
    let metadata = source.read_range(offset + prefix_bytes, len, budget).field("metadata")?;
    let message = Message::parse(offset, prefix_bytes, metadata, budget.limits())?;
    if message.end() > total {
        let left = total.saturating_sub(message.body_offset());
        return Err(Error::truncated(format_args!("a body of {} bytes", message.body_bytes), left)
            .at(message.body_offset()));
    }
    Ok(Next::Message(message))
}

/// The bytes before the flatbuffer and the flatbuffer's length; `None` at the end of the stream.
fn read_prefix(bytes: &[u8], offset: u64) -> Result<Option<(u64, u64)>> {
    let mut cursor = Cursor::at(bytes, offset);
    let first = cursor.array::<4>().field("prefix")?;
    let (prefix_bytes, len) = if first == CONTINUATION {
        (8, cursor.i32_le().field("prefix")?)
    } else {
        (4, i32::from_le_bytes(first))
    };
    match u64::try_from(len) {
        Ok(0) => Ok(None),
        Ok(len) => Ok(Some((prefix_bytes, len))),
        Err(_) => Err(Error::malformed("a metadata length of 0 or more", len)
            .at(offset + prefix_bytes - 4)
            .field("prefix")
            .rule("metadata-length")),
    }
}

/// Messages from a stream of bytes, in order.
pub(super) struct Tape<R> {
    reader: R,
    offset: u64,
    budget: Budget,
}

impl<R: Read> Tape<R> {
    pub(super) fn new(reader: R, offset: u64, budget: Budget) -> Self {
        Tape { reader, offset, budget }
    }

    /// The next message; its body must be taken before the next one.
    pub(super) fn next(&mut self) -> Result<Next> {
        let offset = self.offset;
        let first = self.take(4, "prefix");
        let mut prefix = match first {
            Ok(bytes) => bytes.as_slice().to_vec(),
            // A stream may end without a marker: by its bytes ending where a message would begin.
            Err(error) if self.offset == offset && error.kind() == crate::ErrorKind::Truncated => {
                return Ok(Next::End(0));
            }
            Err(error) => return Err(error),
        };
        if prefix == CONTINUATION {
            prefix.extend_from_slice(&self.take(4, "prefix")?);
        }
        let bytes = prefix.len() as u64;
        let Some((prefix_bytes, len)) = read_prefix(&prefix, offset)? else {
            return Ok(Next::End(bytes));
        };
        let metadata = self.take(len, "metadata")?;
        Ok(Next::Message(Message::parse(offset, prefix_bytes, metadata, self.budget.limits())?))
    }

    /// The body of the message that came last.
    pub(super) fn body(&mut self, message: &Message) -> Result<Buffer> {
        self.take(message.body_bytes, "body")
    }

    /// `len` bytes. Memory grows with the bytes that are there, whatever the length says.
    fn take(&mut self, len: u64, what: &'static str) -> Result<Buffer> {
        const STEP: u64 = 16 << 20;
        self.budget.check(len).at(self.offset).field(what)?;
        let mut memory = MutableBuffer::new(0);
        let mut done = 0u64;
        while done < len {
            // Doubling keeps the copies few; a body that fits the first step is never copied.
            let step = (len - done).min(STEP.max(done));
            let (start, end) = (memory.len(), done.saturating_add(step));
            if start == 0 {
                memory = allocate_zeroed(end, &self.budget).at(self.offset)?;
            } else {
                memory.resize(usize::try_from(end).unwrap_or(usize::MAX), 0);
            }
            let mut rest = memory.as_slice_mut().get_mut(start..).unwrap_or_default();
            while !rest.is_empty() {
                let count = match self.reader.read(rest) {
                    Ok(count) => count,
                    Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                    Err(error) => return Err(Error::from(error).at(self.offset)),
                };
                if count == 0 {
                    let found = end - rest.len() as u64;
                    return Err(Error::truncated(format_args!("{len} bytes"), found)
                        .at(self.offset - found)
                        .field(what));
                }
                self.offset += count as u64;
                rest = rest.get_mut(count..).unwrap_or_default();
            }
            done = end;
        }
        Ok(memory.into())
    }
}

/// What the footer of a file says.
#[derive(Debug)]
pub(super) struct Footer {
    pub offset: u64,
    pub bytes: u64,
    pub version: MetadataVersion,
    pub schema: arrow_schema::Schema,
    pub dictionaries: Vec<Block>,
    pub batches: Vec<Block>,
    pub metadata: Vec<(String, String)>,
}

/// Where a footer says that a message is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Block {
    pub offset: u64,
    /// Prefix, flatbuffer and padding.
    pub metadata_bytes: u64,
    pub body_bytes: u64,
}

impl Footer {
    /// Reads the end of a file whose magics have been seen.
    pub(super) fn read(source: &Source, budget: &Budget) -> Result<Footer> {
        let total = source.len().unwrap_or(0);
        let tail_offset = total.saturating_sub(FILE_TAIL_BYTES);
        if tail_offset < FILE_HEAD_BYTES {
            return Err(Error::truncated("a footer", format_args!("{total} bytes in all")).at(total));
        }
        let mut tail = [0; 10];
        source.read_exact_at(tail_offset, &mut tail)?;
        let mut cursor = Cursor::at(&tail, tail_offset);
        let len = cursor.i32_le()?;
        let magic = cursor.array::<6>()?;
        if magic != *MAGIC {
            return Err(Error::truncated("the magic ARROW1 at the end", error::hex(&magic))
                .at(tail_offset + 4)
                .rule("magic"));
        }
        let room = tail_offset - FILE_HEAD_BYTES;
        let bytes = u64::try_from(len).ok().filter(|bytes| (1..=room).contains(bytes));
        let bytes = bytes.ok_or_else(|| {
            Error::malformed(format_args!("a footer length 1..={room}"), len)
                .at(tail_offset)
                .field("footer_length")
                .rule("footer-length")
        })?;
        let offset = tail_offset - bytes;
        let flatbuffer = source.read_range(offset, bytes, budget).field("footer")?;
        Footer::parse(offset, &flatbuffer, budget.limits()).at(offset).field("footer")
    }

    fn parse(offset: u64, flatbuffer: &[u8], limits: &Limits) -> Result<Footer> {
        let options = arrow_flatbuffers::verifier_options(flatbuffer.len(), limits);
        let footer = arrow_ipc::root_as_footer_with_opts(&options, flatbuffer)
            .map_err(|error| arrow_flatbuffers::damaged("a footer", &error))?;
        let version = footer.version();
        let from = footer.schema().ok_or_else(|| Error::malformed("a schema", "none").rule("schema"))?;
        let schema = arrow_flatbuffers::schema(from, limits)?;
        let blocks = |list: Option<flatbuffers::Vector<'_, arrow_ipc::Block>>| -> Result<Vec<Block>> {
            let blocks = list.into_iter().flatten().enumerate();
            blocks.map(|(index, block)| Block::check(block, offset).index(index as u64)).collect()
        };
        let pairs = footer.custom_metadata().into_iter().flatten();
        let text = |text: Option<&str>| text.unwrap_or_default().to_owned();
        Ok(Footer {
            offset,
            bytes: flatbuffer.len() as u64,
            version,
            schema,
            dictionaries: blocks(footer.dictionaries()).field("dictionaries")?,
            batches: blocks(footer.recordBatches()).field("record_batches")?,
            metadata: pairs.map(|pair| (text(pair.key()), text(pair.value()))).collect(),
        })
    }
}

impl Block {
    fn check(from: &arrow_ipc::Block, end: u64) -> Result<Block> {
        let offset = u64::try_from(from.offset()).ok();
        let metadata_bytes = u64::try_from(from.metaDataLength()).ok();
        let body_bytes = u64::try_from(from.bodyLength()).ok();
        let (Some(offset), Some(metadata_bytes), Some(body_bytes)) = (offset, metadata_bytes, body_bytes)
        else {
            return Err(Error::malformed("an offset and lengths of 0 or more", format_args!("{from:?}"))
                .rule("block"));
        };
        let last = offset.checked_add(metadata_bytes).and_then(|last| last.checked_add(body_bytes));
        if offset < FILE_HEAD_BYTES || last.is_none_or(|last| last > end) {
            let found = format!("{offset} and {metadata_bytes} + {body_bytes} bytes");
            return Err(Error::malformed(format_args!("a block within 8..{end}"), found).rule("block"));
        }
        Ok(Block { offset, metadata_bytes, body_bytes })
    }

    /// The message at this place; it must be as long as the footer says.
    pub(super) fn read(&self, source: &Source, budget: &Budget) -> Result<Message> {
        let message = match read_message(source, self.offset, budget)? {
            Next::Message(message) => message,
            Next::End(_) => {
                return Err(Error::malformed("a message", "the end of the stream")
                    .at(self.offset)
                    .rule("block"));
            }
        };
        let metadata_bytes = message.body_offset() - message.offset;
        if (metadata_bytes, message.body_bytes) != (self.metadata_bytes, self.body_bytes) {
            return Err(Error::malformed(
                format_args!("{} + {} bytes as in the footer", self.metadata_bytes, self.body_bytes),
                format_args!("{metadata_bytes} + {}", message.body_bytes),
            )
            .at(self.offset)
            .rule("block"));
        }
        Ok(message)
    }
}

/// The error that a message of another kind is where `expected` should be.
pub(super) fn wrong_kind(expected: &str, message: &Message) -> Error {
    Error::malformed(expected, message.kind.name()).at(message.offset).rule("order")
}
