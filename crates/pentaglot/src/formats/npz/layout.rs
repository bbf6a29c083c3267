//! The subset of zip archives that `.npz` needs: the central directory, stored and deflated members, zip64.
//!
//! Every offset and length is checked against the file before it is used; the decompressed bytes of a member are
//! checked against its declared size, its CRC-32 and `max_ratio`.

use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use flate2::Crc;
use flate2::read::DeflateDecoder;

use crate::cursor::Cursor;
use crate::error::{Context, Error, Result};
use crate::formats::npy::layout::Extent;
use crate::formats::npy::read::wrong_crc;
use crate::limits::{Budget, Limits};
use crate::source::Source;

pub(super) const LOCAL_MAGIC: [u8; 4] = *b"PK\x03\x04";
pub(super) const END_MAGIC: [u8; 4] = *b"PK\x05\x06";
pub(super) const CENTRAL_MAGIC: [u8; 4] = *b"PK\x01\x02";
pub(super) const END64_MAGIC: [u8; 4] = *b"PK\x06\x06";
pub(super) const LOCATOR_MAGIC: [u8; 4] = *b"PK\x06\x07";
pub(super) const STORED: u16 = 0;
pub(super) const DEFLATED: u16 = 8;
/// 1980-01-01, the earliest date of a zip archive: a constant, so that the same data gives the same bytes.
pub(super) const DATE: u16 = 0x21;

/// One member of an archive.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    /// The name as in the archive.
    pub(super) file_name: String,
    pub(super) method: u16,
    pub(super) crc: u32,
    pub(super) packed_bytes: u64,
    pub(super) bytes: u64,
    /// The offset of its local header.
    pub(super) offset: u64,
    /// The offset of its bytes.
    pub(super) data_offset: u64,
    pub(super) flags: u16,
    /// Whether the checksum of its bytes has been compared by a reader of a part of them.
    pub(super) checked: Arc<AtomicBool>,
    /// Whether the archive is damaged: the checksum is compared before the first byte is used.
    pub(super) is_suspect: bool,
    /// Whether the archive ends before the member does.
    pub(super) is_cut: bool,
}

impl Entry {
    /// The name without `.npy`.
    pub(super) fn name(&self) -> &str {
        self.file_name.strip_suffix(".npy").unwrap_or(&self.file_name)
    }

    /// Takes the numbers that did not fit from the extra fields of its header.
    pub(super) fn zip64(&mut self, extra: &mut Cursor<'_>) -> Result<()> {
        let is_escaped = |number: u64| number == u64::from(u32::MAX);
        let (bytes, packed, offset) =
            (is_escaped(self.bytes), is_escaped(self.packed_bytes), is_escaped(self.offset));
        while extra.remaining() >= 4 {
            let (id, size) = (extra.u16_le()?, extra.u16_le()?);
            let mut body = extra.sub(u64::from(size))?;
            if id == 1 {
                // Zip64: only the fields that did not fit, in this order.
                if bytes {
                    self.bytes = body.u64_le()?;
                }
                if packed {
                    self.packed_bytes = body.u64_le()?;
                }
                if offset {
                    self.offset = body.u64_le()?;
                }
            }
        }
        Ok(())
    }

    /// The decompressed bytes. Each call for a deflated member creates a new stream.
    pub(super) fn extent(&self, source: &Source, limits: &Limits) -> Result<Extent> {
        if self.flags & 1 != 0 {
            return Err(Error::unsupported("an encrypted member")
                .at(self.offset)
                .field(self.name().to_owned()));
        }
        if self.is_suspect && !self.is_cut && !self.checked.load(Ordering::Relaxed) {
            let sound = Entry { is_suspect: false, ..self.clone() };
            sound.extent(source, limits)?.check_all()?;
            self.checked.store(true, Ordering::Relaxed);
        }
        match self.method {
            STORED => {
                let source = source.clone();
                let len = if self.is_cut { self.packed_bytes } else { self.bytes };
                Ok(Extent {
                    source,
                    base: self.data_offset,
                    len: Some(len),
                    crc: (!self.is_cut).then_some(self.crc),
                    checked: if self.is_cut { Arc::new(true.into()) } else { Arc::clone(&self.checked) },
                })
            }
            DEFLATED => {
                let packed = source.reader_at(self.data_offset)?.take(self.packed_bytes);
                // There is no end at which a cut member could be compared.
                let checked = source.is_costly() || self.is_cut || self.is_suspect;
                let checked = Arc::new(AtomicBool::new(checked));
                let unpacked = Inflated {
                    inner: DeflateDecoder::new(packed),
                    crc: Crc::new(),
                    left: self.bytes,
                    entry: self.clone(),
                    limits: limits.clone(),
                };
                let source = Source::from_reader(self.name().to_owned(), unpacked);
                Ok(Extent { source, base: 0, len: Some(self.bytes), crc: None, checked })
            }
            other => Err(Error::unsupported(format!("zip method {other} (stored and deflated are read)"))
                .at(self.offset)
                .field(self.name().to_owned())),
        }
    }
}

/// A decoder of a deflated member that checks its output against the directory.
struct Inflated<R> {
    inner: DeflateDecoder<R>,
    crc: Crc,
    left: u64,
    entry: Entry,
    limits: Limits,
}

impl<R: Read> Read for Inflated<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let at = self.entry.data_offset;
        let packed = self.inner.total_in();
        let count = self.inner.read(buffer).map_err(|error| match error.kind() {
            io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof => {
                io::Error::from(Error::malformed("valid deflate data", error).at(at + packed).rule("deflate"))
            }
            _ => error,
        })?;
        if buffer.is_empty() {
            return Ok(0);
        }
        self.crc.update(buffer.get(..count).unwrap_or_default());
        let promised = self.entry.bytes;
        match (count as u64).cmp(&self.left) {
            std::cmp::Ordering::Greater => {
                let expected = format_args!("{promised} unpacked bytes");
                return Err(Error::malformed(expected, "more").at(at).rule("zip-size").into());
            }
            _ if count == 0 && self.left > 0 => {
                let expected = format_args!("{promised} unpacked bytes");
                return Err(Error::truncated(expected, promised - self.left).at(at).rule("zip-size").into());
            }
            _ if count == 0 && self.crc.sum() != self.entry.crc => {
                return Err(wrong_crc(self.entry.crc, self.crc.sum()).at(at).into());
            }
            _ => self.left -= count as u64,
        }
        self.limits.check_ratio(self.inner.total_in(), self.inner.total_out())?;
        Ok(count)
    }
}

/// The members of an archive and the offset of its directory.
#[derive(Debug, Clone)]
pub(super) struct Directory {
    pub(super) entries: Vec<Entry>,
    pub(super) offset: u64,
    pub(super) bytes: u64,
}

impl Directory {
    /// Walks the central directory and every local header.
    pub(super) fn read(source: &Source, budget: &Budget) -> Result<Directory> {
        let total = source.len().ok_or_else(|| Error::usage("a stream cannot be read at an offset"))?;
        let (listed, offset, bytes) = Directory::listed(source, total, budget)?;
        let mut entries = Vec::new();
        for (index, entry) in (0u64..).zip(listed) {
            let entry = local_header(entry, source, offset, budget);
            entries.push(entry.index(index).field("directory")?);
        }
        let mut names: Vec<&str> = entries.iter().map(|entry| entry.file_name.as_str()).collect();
        names.sort_unstable();
        if let Some([name, _]) = names.array_windows::<2>().find(|[one, two]| one == two) {
            return Err(Error::malformed("distinct members", format_args!("{name:?} twice"))
                .at(offset)
                .field("directory")
                .rule("zip-name"));
        }
        Ok(Directory { entries, offset, bytes })
    }

    /// The entries of the central directory, before their bytes are looked for; its offset and its length.
    pub(super) fn listed(source: &Source, total: u64, budget: &Budget) -> Result<(Vec<Entry>, u64, u64)> {
        let (offset, bytes, count) = end_record(source, total, budget)?;
        let directory = source.read_range(offset, bytes, budget).field("directory")?;
        let mut cursor = Cursor::at(&directory, offset);
        cursor.check_count(count, 46).field("directory")?;
        let mut entries = Vec::new();
        for index in 0..count {
            entries.push(central_header(&mut cursor).index(index).field("directory")?);
        }
        cursor.expect_end().field("directory")?;
        Ok((entries, offset, bytes))
    }
}

/// `(offset, bytes, members)` of the central directory.
fn end_record(source: &Source, total: u64, budget: &Budget) -> Result<(u64, u64, u64)> {
    // The end record is at the end of the file, followed only by a comment of at most 65535 bytes.
    let tail_bytes = total.min(22 + 0xffff);
    let start = total - tail_bytes;
    let tail = source.read_range(start, tail_bytes, budget)?;
    let is_end = |at: &usize| {
        let record = tail.get(*at..).unwrap_or_default();
        let comment = record
            .get(20..22)
            .map(|size| size.iter().rev().fold(0usize, |sum, byte| sum << 8 | usize::from(*byte)));
        record.starts_with(&END_MAGIC) && comment.is_some_and(|comment| 22 + comment == record.len())
    };
    let last = usize::try_from(tail_bytes.saturating_sub(21)).unwrap_or(0);
    let Some(at) = (0..last).rev().find(is_end) else {
        return Err(Error::truncated("a zip end record", "none").at(total).field("end").rule("zip-end"));
    };
    let at64 = start + at as u64;
    let record = tail.get(at..).unwrap_or_default();
    let mut cursor = Cursor::at(record, at64);
    cursor.skip(4)?;
    let (disk, directory_disk) = (cursor.u16_le()?, cursor.u16_le()?);
    let (here, count) = (cursor.u16_le()?, cursor.u16_le()?);
    let (bytes, offset) = (cursor.u32_le()?, cursor.u32_le()?);
    let mut found = (u64::from(offset), u64::from(bytes), u64::from(count));
    let mut end = at64;
    let escaped = count == 0xffff || bytes == u32::MAX || offset == u32::MAX;
    if let Some(locator_offset) = at64.checked_sub(20) {
        let locator = source.read_range(locator_offset, 20, budget)?;
        if escaped && locator.starts_with(&LOCATOR_MAGIC) {
            let mut cursor = Cursor::at(&locator, locator_offset);
            cursor.skip(8)?;
            let record_offset = cursor.u64_le()?;
            let record = source.read_range(record_offset, 56, budget).field("end64")?;
            let mut cursor = Cursor::at(&record, record_offset);
            if cursor.array::<4>()? != END64_MAGIC {
                return Err(Error::malformed("a zip64 end record", "other bytes")
                    .at(record_offset)
                    .field("end64"));
            }
            cursor.skip(20)?;
            let (_, count) = (cursor.u64_le()?, cursor.u64_le()?);
            let (bytes, offset) = (cursor.u64_le()?, cursor.u64_le()?);
            found = (offset, bytes, count);
            end = record_offset;
        }
    }
    if (disk, directory_disk) != (0, 0) || here != count {
        return Err(Error::unsupported("a zip archive in several parts").at(at64));
    }
    if found.0.checked_add(found.1).is_none_or(|after| after != end) {
        let found = format_args!("{} bytes at {}", found.1, found.0);
        return Err(Error::malformed(format_args!("a directory that ends at byte {end}"), found)
            .at(at64)
            .field("end")
            .rule("zip-end"));
    }
    Ok(found)
}

fn central_header(cursor: &mut Cursor<'_>) -> Result<Entry> {
    let start = cursor.offset();
    if cursor.array::<4>()? != CENTRAL_MAGIC {
        return Err(Error::malformed("a directory entry", "other bytes").at(start).rule("zip-directory"));
    }
    cursor.skip(4)?;
    let (flags, method) = (cursor.u16_le()?, cursor.u16_le()?);
    cursor.skip(4)?;
    let crc = cursor.u32_le()?;
    let (packed, bytes) = (cursor.u32_le()?, cursor.u32_le()?);
    let (name_bytes, extra_bytes, comment_bytes) = (cursor.u16_le()?, cursor.u16_le()?, cursor.u16_le()?);
    cursor.skip(8)?;
    let offset = cursor.u32_le()?;
    let name_offset = cursor.offset();
    let name = cursor.take(u64::from(name_bytes))?;
    let file_name = std::str::from_utf8(name)
        .map_err(|_| Error::malformed("a name in UTF-8", "other bytes").at(name_offset).rule("zip-name"))?
        .to_owned();
    let mut extra = cursor.sub(u64::from(extra_bytes))?;
    cursor.skip(u64::from(comment_bytes))?;
    let mut entry = Entry {
        file_name,
        method,
        crc,
        packed_bytes: u64::from(packed),
        bytes: u64::from(bytes),
        offset: u64::from(offset),
        data_offset: 0,
        flags,
        checked: Arc::default(),
        is_suspect: false,
        is_cut: false,
    };
    entry.zip64(&mut extra)?;
    Ok(entry)
}

/// Finds the bytes of an entry, and checks that they are there.
pub(super) fn local_header(
    mut entry: Entry,
    source: &Source,
    directory: u64,
    budget: &Budget,
) -> Result<Entry> {
    let header = source.read_range(entry.offset, 30, budget).field("local_header")?;
    let mut cursor = Cursor::at(&header, entry.offset);
    if cursor.array::<4>()? != LOCAL_MAGIC {
        return Err(Error::malformed("a local header", "other bytes").at(entry.offset).rule("zip-local"));
    }
    cursor.skip(22)?;
    let (name_bytes, extra_bytes) = (u64::from(cursor.u16_le()?), u64::from(cursor.u16_le()?));
    let name = source.read_range(entry.offset + 30, name_bytes, budget).field("local_header")?;
    if name.as_slice() != entry.file_name.as_bytes() {
        return Err(Error::malformed(
            format_args!("the name {:?}", entry.file_name),
            format_args!("{}", name.escape_ascii()),
        )
        .at(entry.offset + 30)
        .rule("zip-name"));
    }
    entry.data_offset = entry.offset + 30 + name_bytes + extra_bytes;
    if entry.data_offset.checked_add(entry.packed_bytes).is_none_or(|end| end > directory) {
        let left = directory.saturating_sub(entry.data_offset);
        return Err(
            Error::truncated(format_args!("{} packed bytes", entry.packed_bytes), left).at(entry.data_offset)
        );
    }
    if entry.method == STORED && entry.packed_bytes != entry.bytes {
        return Err(Error::malformed(format_args!("{} stored bytes", entry.bytes), entry.packed_bytes)
            .at(entry.offset)
            .rule("zip-size"));
    }
    budget.limits().check_ratio(entry.packed_bytes, entry.bytes).at(entry.offset)?;
    Ok(entry)
}
