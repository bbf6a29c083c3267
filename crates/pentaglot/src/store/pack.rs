//! Packs: many chunks in one file, which is written once and named by its own digest.
//!
//! ```text
//! "pgpack 1"                                                                8 bytes
//! random bytes, where a pack that is written again must have another name   16 bytes, or none
//! a zstd frame for each chunk
//! for each chunk: digest of its plain bytes, offset, length, plain length   32 + 8 + 4 + 4 bytes
//! how many chunks, "pgpack 1"                                               8 + 8 bytes
//! ```
//!
//! Numbers are little endian. The name of a pack is the CID of the whole file, so that every bit of it can be checked without
//! decompressing anything.

use std::cell::RefCell;
use std::io::{self, BufWriter, Write};

use tempfile::NamedTempFile;
use zstd::bulk::{Compressor, Decompressor};

use super::files::{Files, PACKS};
use crate::cursor::Cursor;
use crate::error::{Error, Result};
use crate::identity::Cid;
use crate::limits::Budget;
use crate::source::Source;

/// A pack has at most so many bytes, unless it is a single chunk.
pub(super) const PACK_BYTES: u64 = 64 << 20;
const MAGIC: &[u8; 8] = b"pgpack 1";
const ENTRY_BYTES: u64 = 48;
const FOOTER_BYTES: u64 = 16;
pub(super) const SUFFIX: &str = ".pack";

/// The compression level: what is fast.
const LEVEL: i32 = 1;

thread_local! {
    /// Chunks are small: making what compresses and decompresses them takes as long as their bytes do.
    static COMPRESSOR: RefCell<Option<Compressor<'static>>> = const { RefCell::new(None) };
    static DECOMPRESSOR: RefCell<Option<Decompressor<'static>>> = const { RefCell::new(None) };
}

/// The zstd frame of a chunk.
pub(super) fn compress(plain: &[u8]) -> Result<Vec<u8>> {
    let compressed = COMPRESSOR.with_borrow_mut(|kept| {
        let compressor = match kept.take() {
            Some(compressor) => kept.insert(compressor),
            None => kept.insert(Compressor::new(LEVEL)?),
        };
        compressor.compress(plain)
    });
    compressed.map_err(|error| Error::io("cannot compress", error))
}

fn decompress(frame: &[u8], capacity: usize) -> io::Result<Vec<u8>> {
    DECOMPRESSOR.with_borrow_mut(|kept| {
        let decompressor = match kept.take() {
            Some(decompressor) => kept.insert(decompressor),
            None => kept.insert(Decompressor::new()?),
        };
        decompressor.decompress(frame, capacity)
    })
}

/// The digest of a chunk's plain bytes: its name.
pub(super) type Digest = [u8; 32];

/// Where a chunk is in a pack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) digest: Digest,
    pub(super) offset: u64,
    /// Bytes in the pack.
    pub(super) stored: u32,
    /// Bytes when it is decompressed.
    pub(super) plain: u32,
}

impl Entry {
    fn take(cursor: &mut Cursor<'_>) -> Result<Self> {
        let (digest, offset) = (cursor.array()?, cursor.u64_le()?);
        Ok(Entry { digest, offset, stored: cursor.u32_le()?, plain: cursor.u32_le()? })
    }
}

/// A pack that is being written.
pub(super) struct PackWriter {
    file: BufWriter<NamedTempFile>,
    hasher: blake3::Hasher,
    offset: u64,
    entries: Vec<Entry>,
}

impl PackWriter {
    pub(super) fn new(files: &dyn Files) -> Result<Self> {
        let file = BufWriter::with_capacity(1 << 20, files.create()?);
        let salt = files.salt(file.get_ref().path());
        let mut pack = PackWriter { file, hasher: blake3::Hasher::new(), offset: 0, entries: Vec::new() };
        pack.write(MAGIC)?;
        pack.write(&salt)?;
        Ok(pack)
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.hasher.update(bytes);
        self.offset += bytes.len() as u64;
        self.file.write_all(bytes).map_err(|error| Error::io("cannot write a pack", error))
    }

    /// Whether a frame of so many bytes still fits.
    pub(super) fn fits(&self, frame: usize) -> bool {
        let index = (self.entries.len() as u64 + 1) * ENTRY_BYTES + FOOTER_BYTES;
        self.entries.is_empty() || self.offset + frame as u64 + index <= PACK_BYTES
    }

    /// Adds a compressed chunk; gives its number in the pack.
    pub(super) fn push(&mut self, digest: Digest, plain: u32, frame: &[u8]) -> Result<u32> {
        let too_long = || Error::limit("the limit", u32::MAX, format!("a chunk of {} bytes", frame.len()));
        let stored = u32::try_from(frame.len()).map_err(|_| too_long())?;
        let entry = Entry { digest, offset: self.offset, stored, plain };
        self.write(frame)?;
        self.entries.push(entry);
        Ok(self.entries.len() as u32 - 1)
    }

    /// The chunks so far.
    pub(super) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Ends the pack; gives its file's name and its bytes. It becomes part of the store.
    pub(super) fn finish(mut self, files: &dyn Files) -> Result<(String, u64)> {
        let mut index = Vec::new();
        for entry in &self.entries {
            index.extend_from_slice(&entry.digest);
            index.extend_from_slice(&entry.offset.to_le_bytes());
            index.extend_from_slice(&entry.stored.to_le_bytes());
            index.extend_from_slice(&entry.plain.to_le_bytes());
        }
        index.extend_from_slice(&(self.entries.len() as u64).to_le_bytes());
        index.extend_from_slice(MAGIC);
        self.write(&index)?;
        let name = format!("{}{SUFFIX}", Cid::new(*self.hasher.finalize().as_bytes()));
        let file = self.file.into_inner();
        let file = file.map_err(|error| Error::io("cannot write a pack", error.into_error()))?;
        files.commit(file, &format!("{PACKS}/{name}"))?;
        Ok((name, self.offset))
    }
}

/// The index of a pack, which is checked: every chunk is within the file.
pub(super) fn read_entries(pack: &Source, budget: &Budget) -> Result<Vec<Entry>> {
    let length = pack.len().unwrap_or(0);
    let least = MAGIC.len() as u64 + FOOTER_BYTES;
    if length < least {
        return Err(Error::truncated(format_args!("a pack of at least {least} bytes"), length));
    }
    let footer = pack.read_range(length - FOOTER_BYTES, FOOTER_BYTES, budget)?;
    let mut cursor = Cursor::at(&footer, length - FOOTER_BYTES);
    let count = cursor.u64_le()?;
    if cursor.rest() != MAGIC {
        return Err(Error::malformed("a pack that ends with its mark", "other bytes").at(cursor.offset()));
    }
    // Each request to a bucket costs; there, what reads or verifies chunks finds every other fault.
    if !pack.is_costly() && *pack.read_range(0, MAGIC.len() as u64, budget)? != *MAGIC {
        return Err(Error::malformed("a pack that begins with its mark", "other bytes").at(0));
    }
    let index_bytes = count.checked_mul(ENTRY_BYTES).filter(|bytes| *bytes <= length - least);
    let index_bytes = index_bytes.ok_or_else(|| {
        Error::malformed(format_args!("an index within {length} bytes"), format_args!("{count} chunks"))
            .at(length - FOOTER_BYTES)
    })?;
    let start = length - FOOTER_BYTES - index_bytes;
    let bytes = pack.read_range(start, index_bytes, budget)?;
    let mut cursor = Cursor::at(&bytes, start);
    let mut entries = Vec::new();
    while !cursor.is_empty() {
        let at = cursor.offset();
        let entry = Entry::take(&mut cursor)?;
        let Entry { offset, stored, .. } = entry;
        if offset < MAGIC.len() as u64 || offset.checked_add(stored.into()).is_none_or(|end| end > start) {
            let found = format_args!("bytes {offset} and {stored} more");
            return Err(Error::malformed(format_args!("a chunk within {start} bytes"), found).at(at));
        }
        entries.push(entry);
    }
    Ok(entries)
}

/// Chunks of the index of a pack that has so many bytes and chunks: `count` from number `first` on, or as many as there are.
pub(super) fn read_some_entries(
    pack: &Source,
    bytes: u64,
    chunks: u32,
    first: u32,
    count: u32,
) -> Result<Vec<Entry>> {
    let left = chunks.saturating_sub(first);
    let offset = bytes.saturating_sub(u64::from(left) * ENTRY_BYTES + FOOTER_BYTES);
    let mut entries = vec![0; count.min(left) as usize * ENTRY_BYTES as usize];
    pack.read_exact_at(offset, &mut entries)?;
    let mut cursor = Cursor::at(&entries, offset);
    (0..count.min(left)).map(|_| Entry::take(&mut cursor)).collect()
}

/// The plain bytes of a chunk, which are checked against its name.
pub(super) fn read_chunk(pack: &Source, entry: &Entry, budget: &Budget) -> Result<Vec<u8>> {
    let frame = pack.read_range(entry.offset, entry.stored.into(), budget)?;
    // A frame that becomes longer than its entry says is refused by the decoder.
    budget.check(entry.plain.into())?;
    let damaged = |found: String| {
        let expected = format!("the chunk {}", Cid::new(entry.digest));
        Error::malformed(expected, found).at(entry.offset)
    };
    let plain = decompress(&frame, entry.plain as usize)
        .map_err(|error| damaged(format!("bytes that do not decompress ({error})")))?;
    let digest = *blake3::hash(&plain).as_bytes();
    match digest == entry.digest {
        true => Ok(plain),
        false => Err(damaged(format!("the content {}", Cid::new(digest)))),
    }
}

/// The digest of a whole pack, by pieces.
pub(super) fn digest(pack: &Source, check: impl Fn(u64) -> Result<()>) -> Result<Cid> {
    let mut hasher = blake3::Hasher::new();
    let mut buffer = vec![0; 1 << 20];
    let mut offset = 0;
    loop {
        let count = pack.read_at(offset, &mut buffer)?;
        if count == 0 {
            return Ok(Cid::new(*hasher.finalize().as_bytes()));
        }
        hasher.update(&buffer[..count]);
        offset += count as u64;
        check(count as u64)?;
    }
}
