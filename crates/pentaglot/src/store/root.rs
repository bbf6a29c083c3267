//! Roots: the file `roots/IDENTITY` says what data is made of. It is a DyND `array[Any]` of [`ROOT_TYPE`], compressed with
//! zstd, so Pentaglot reads it as it reads any file.

use std::io::{Read, Write};

use super::pack::Digest;
use crate::cursor::Cursor;
use crate::error::{Context, Error, Result};
use crate::formats::dynd;
use crate::identity::{Cid, ColumnIdentity, Identity};
use crate::limits::{Budget, Reservation};
use crate::source::Source;
use crate::wire::varint;

/// The datashape of a root.
pub const ROOT_TYPE: &str = "{version: int32, shape: string, rows: uint64, cols: uint64, \
    columns: var * {name: string, type: string, digest: bytes[32], \
    chunks: var * {rows: uint32, bytes: uint32, data: merkle[bytes]}}, \
    origins: var * {format: string, name: string, time: datetime[tz='UTC'], schema: bytes, native: string, \
    dictionaries: var * {column: uint32, chunks: var * {rows: uint32, bytes: uint32, data: merkle[bytes]}}}, \
    seal: bytes[32]}";

const VERSION: u32 = 1;
/// The type of what a chunk's link leads to.
const LINKED: &[u8] = b"bytes";
/// The most rows of a chunk: a row takes a byte at least of what is cut.
const MAX_CHUNK_ROWS: u32 = super::cut::MAX_BYTES as u32;

/// A chunk of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Chunk {
    pub(super) rows: u32,
    /// Bytes when it is decompressed.
    pub(super) bytes: u32,
    pub(super) digest: Digest,
}

/// A dictionary of a column, whose values are in chunks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Dictionary {
    pub(super) column: u32,
    pub(super) chunks: Vec<Chunk>,
}

/// What data was put in from: not part of its identity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Origin {
    /// The id of the format, and its dialect behind a colon.
    pub(super) format: String,
    /// The name that a user gave.
    pub(super) name: String,
    /// Ticks of 100 ns since 1970.
    pub(super) time: i64,
    /// The schema as an Arrow IPC message, without the native type.
    pub(super) schema: Vec<u8>,
    /// The native type, as the schema's metadata says it; empty if there is none.
    pub(super) native: String,
    pub(super) dictionaries: Vec<Dictionary>,
}

impl Origin {
    /// The id of the format.
    pub(super) fn format_id(&self) -> &str {
        self.format.split_once(':').map_or(self.format.as_str(), |(id, _)| id)
    }
}

/// A root.
#[derive(Debug)]
pub(super) struct Root {
    pub(super) identity: Identity,
    /// The chunks of each column of the identity.
    pub(super) chunks: Vec<Vec<Chunk>>,
    /// The last one is the latest.
    pub(super) origins: Vec<Origin>,
    /// Pays for the chunks, where they were read.
    pub(super) held: Option<Reservation>,
}

impl Root {
    /// All chunks, those of dictionaries included.
    pub(super) fn all_chunks(&self) -> impl Iterator<Item = &Chunk> {
        let dictionaries = self.origins.iter().flat_map(|origin| &origin.dictionaries);
        let lists = self.chunks.iter().chain(dictionaries.map(|dictionary| &dictionary.chunks));
        lists.flatten()
    }

    /// Adds the origins of an older root of the same data, but those of the same formats.
    pub(super) fn keep_origins(&mut self, older: Root) {
        if older.chunks != self.chunks {
            return;
        }
        let formats: Vec<String> = self.origins.iter().map(|origin| origin.format.clone()).collect();
        let kept = older.origins.into_iter().filter(|origin| !formats.contains(&origin.format));
        self.origins.splice(0..0, kept);
    }

    /// Writes the file's bytes.
    pub(super) fn write(&self, out: impl Write) -> Result<()> {
        let cannot = |error| Error::io("cannot write a root", error);
        let mut out =
            Sealed { out: zstd::Encoder::new(out, 3).map_err(cannot)?, hasher: blake3::Hasher::new() };
        let mut bytes = Vec::new();
        put_bytes(ROOT_TYPE.as_bytes(), &mut bytes);
        bytes.extend_from_slice(&VERSION.to_le_bytes());
        put_bytes(self.identity.shape.as_bytes(), &mut bytes);
        bytes.extend_from_slice(&self.identity.rows.to_le_bytes());
        bytes.extend_from_slice(&self.identity.cols.to_le_bytes());
        varint::write(self.identity.columns.len() as u64, &mut bytes);
        for (column, chunks) in self.identity.columns.iter().zip(&self.chunks) {
            put_bytes(column.name.as_bytes(), &mut bytes);
            put_bytes(column.data_type.as_bytes(), &mut bytes);
            bytes.extend_from_slice(&column.digest);
            out.put(&mut bytes)?;
            out.chunks(chunks)?;
        }
        varint::write(self.origins.len() as u64, &mut bytes);
        for origin in &self.origins {
            put_bytes(origin.format.as_bytes(), &mut bytes);
            put_bytes(origin.name.as_bytes(), &mut bytes);
            bytes.extend_from_slice(&origin.time.to_le_bytes());
            put_bytes(&origin.schema, &mut bytes);
            put_bytes(origin.native.as_bytes(), &mut bytes);
            varint::write(origin.dictionaries.len() as u64, &mut bytes);
            for dictionary in &origin.dictionaries {
                bytes.extend_from_slice(&dictionary.column.to_le_bytes());
                out.put(&mut bytes)?;
                out.chunks(&dictionary.chunks)?;
            }
        }
        out.put(&mut bytes)?;
        let seal = *out.hasher.finalize().as_bytes();
        out.out.write_all(&seal).and_then(|()| out.out.finish()?.flush()).map_err(cannot)
    }

    /// Reads and checks a root that is to be of this identity.
    pub(super) fn read(source: &Source, identity: &str, budget: &Budget) -> Result<Self> {
        let bytes = decompressed(source, budget)?;
        let Some((body, seal)) = bytes.split_last_chunk::<32>() else {
            return Err(Error::truncated("a root", format_args!("{} bytes", bytes.len())));
        };
        if blake3::hash(body).as_bytes() != seal {
            return Err(Error::malformed("a root with its own seal", "a root that was changed"));
        }
        let mut root = parse(body).field("root")?;
        let found = root.identity.cid()?.to_string();
        if found != identity {
            return Err(Error::malformed(
                format_args!("the root of {identity}"),
                format_args!("that of {found}"),
            ));
        }
        root.held = Some(budget.reserve(root.all_chunks().count() as u64 * size_of::<Chunk>() as u64)?);
        Ok(root)
    }
}

/// Bytes that are compressed and hashed on their way.
struct Sealed<W: Write> {
    out: zstd::Encoder<'static, W>,
    hasher: blake3::Hasher,
}

impl<W: Write> Sealed<W> {
    /// Writes bytes and empties their buffer.
    fn put(&mut self, bytes: &mut Vec<u8>) -> Result<()> {
        self.hasher.update(bytes);
        self.out.write_all(bytes).map_err(|error| Error::io("cannot write a root", error))?;
        bytes.clear();
        Ok(())
    }

    fn chunks(&mut self, chunks: &[Chunk]) -> Result<()> {
        let mut bytes = Vec::new();
        varint::write(chunks.len() as u64, &mut bytes);
        for chunk in chunks {
            bytes.extend_from_slice(&chunk.rows.to_le_bytes());
            bytes.extend_from_slice(&chunk.bytes.to_le_bytes());
            put_bytes(LINKED, &mut bytes);
            put_bytes(&dynd::blake3_multihash(&chunk.digest), &mut bytes);
            if bytes.len() >= 60 << 10 {
                self.put(&mut bytes)?;
            }
        }
        self.put(&mut bytes)
    }
}

fn put_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    varint::write(bytes.len() as u64, out);
    out.extend_from_slice(bytes);
}

/// The bytes of a root's file, decompressed within the budget.
fn decompressed(source: &Source, budget: &Budget) -> Result<Vec<u8>> {
    let reader = source.reader()?;
    let malformed = |error: std::io::Error| Error::malformed("a root in zstd", error);
    let mut reader = zstd::Decoder::new(reader).map_err(malformed)?;
    let (mut bytes, mut held) = (Vec::new(), budget.reservation());
    loop {
        held.grow(1 << 20)?;
        if reader.by_ref().take(1 << 20).read_to_end(&mut bytes).map_err(malformed)? == 0 {
            return Ok(bytes);
        }
    }
}

fn take_bytes<'a>(cursor: &mut Cursor<'a>) -> Result<&'a [u8]> {
    let length = varint::read(cursor)?;
    cursor.take(length)
}

fn take_text(cursor: &mut Cursor<'_>) -> Result<String> {
    let offset = cursor.offset();
    let text = String::from_utf8(take_bytes(cursor)?.to_vec());
    text.map_err(|_| Error::malformed("UTF-8", "other bytes").at(offset))
}

fn take_chunks(cursor: &mut Cursor<'_>) -> Result<Vec<Chunk>> {
    // Two numbers, the type, and the multihash, each with its length.
    let chunk_bytes = 4 + 4 + 6 + 35;
    let count = varint::read(cursor)?;
    cursor.check_count(count, chunk_bytes)?;
    let mut chunks = Vec::new();
    for index in 0..count {
        let offset = cursor.offset();
        let (rows, bytes) = (cursor.u32_le()?, cursor.u32_le()?);
        let linked = take_bytes(cursor)?;
        let digest = dynd::blake3_digest(take_bytes(cursor)?).filter(|_| linked == LINKED);
        let digest = digest.ok_or_else(|| {
            Error::malformed("a link to bytes by BLAKE3", "another").at(offset).index(index).field("chunks")
        })?;
        if rows == 0 || rows > MAX_CHUNK_ROWS {
            let expected = format_args!("1 to {MAX_CHUNK_ROWS} rows in a chunk");
            return Err(Error::malformed(expected, rows).at(offset).index(index).field("chunks"));
        }
        chunks.push(Chunk { rows, bytes, digest });
    }
    Ok(chunks)
}

fn parse(body: &[u8]) -> Result<Root> {
    let mut cursor = Cursor::new(body);
    let ty = take_bytes(&mut cursor)?;
    if ty != ROOT_TYPE.as_bytes() {
        return Err(Error::malformed("the type of a root", String::from_utf8_lossy(ty)).at(0));
    }
    let version = cursor.u32_le()?;
    if version != VERSION {
        return Err(Error::unsupported(format!("a store of version {version}")));
    }
    let shape = take_text(&mut cursor)?;
    let shape = ["table", "matrix", "array", "value"].into_iter().find(|known| *known == shape);
    let shape = shape.ok_or_else(|| Error::malformed("a shape", "another word"))?;
    let (rows, cols) = (cursor.u64_le()?, cursor.u64_le()?);
    let (mut columns, mut chunks) = (Vec::new(), Vec::new());
    for index in 0..varint::read(&mut cursor)? {
        let (name, data_type) = (take_text(&mut cursor)?, take_text(&mut cursor)?);
        let digest = cursor.array::<32>()?;
        columns.push(ColumnIdentity::new(name, data_type, digest));
        let own = take_chunks(&mut cursor).index(index).field("columns")?;
        let sum: u64 = own.iter().map(|chunk| u64::from(chunk.rows)).sum();
        if sum != rows {
            let expected = format_args!("{rows} rows in the chunks of a column");
            return Err(Error::malformed(expected, sum).index(index).field("columns"));
        }
        chunks.push(own);
    }
    let mut origins = Vec::new();
    for _ in 0..varint::read(&mut cursor)? {
        let (format, name) = (take_text(&mut cursor)?, take_text(&mut cursor)?);
        let time = cursor.i64_le()?;
        let schema = take_bytes(&mut cursor)?.to_vec();
        let native = take_text(&mut cursor)?;
        let mut dictionaries = Vec::new();
        for _ in 0..varint::read(&mut cursor)? {
            let column = cursor.u32_le()?;
            dictionaries.push(Dictionary { column, chunks: take_chunks(&mut cursor)? });
        }
        origins.push(Origin { format, name, time, schema, native, dictionaries });
    }
    cursor.expect_end()?;
    if origins.is_empty() {
        return Err(Error::malformed("an origin", "none"));
    }
    let identity = Identity::new(shape, rows, cols, columns);
    Ok(Root { identity, chunks, origins, held: None })
}

/// What every identity begins with.
pub(super) const PREFIX: &str = "bafkr4i";

/// The identity that a file name under `roots` is.
pub(super) fn is_identity(name: &str) -> bool {
    name.len() == Cid::new([0; 32]).to_string().len()
        && name.starts_with(PREFIX)
        && name.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'2'..=b'7'))
}
