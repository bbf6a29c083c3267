//! A zip archive that is being written, with the headers that NumPy writes.

use std::io::{self, Write};
use std::sync::Arc;

use flate2::Crc;

use super::layout::{
    CENTRAL_MAGIC, DATE, DEFLATED, END_MAGIC, END64_MAGIC, Entry, LOCAL_MAGIC, LOCATOR_MAGIC, STORED,
};
use crate::control::Control;
use crate::error::{Error, Result};
use crate::sink::{Deflater, Sink};

/// Writes an archive member by member.
pub(super) struct ZipWriter {
    pub(super) sink: Sink,
    pub(super) compressed: bool,
    entries: Vec<Entry>,
    control: Control,
}

impl ZipWriter {
    pub(super) fn new(mut sink: Sink, compressed: bool, control: &Control) -> Result<ZipWriter> {
        sink.enable_patching()?;
        Ok(ZipWriter { sink, compressed, entries: Vec::new(), control: control.clone() })
    }

    /// Writes a member; `body` writes its bytes.
    pub(super) fn member(
        &mut self,
        name: &str,
        body: impl FnOnce(&mut dyn Write) -> Result<()>,
    ) -> Result<()> {
        let (mut entry, name_bytes) = self.begin(name)?;
        if self.compressed {
            let mut packed = Deflater::new(&mut self.sink, &self.control);
            body(&mut packed)?;
            let packed = packed.finish()?;
            (entry.crc, entry.bytes) = (packed.crc, packed.bytes);
        } else {
            let mut counted = Counted { inner: &mut self.sink, crc: Crc::new(), bytes: 0 };
            body(&mut counted)?;
            (entry.crc, entry.bytes) = (counted.crc.sum(), counted.bytes);
        }
        self.end(entry, name_bytes)
    }

    /// Writes a member that is not compressed, whose `header` has a count: `most` at the most. `body` writes what follows the
    /// header, and gives the count.
    pub(super) fn counted_member(
        &mut self,
        name: &str,
        most: u64,
        header: impl Fn(u64) -> Vec<u8>,
        body: impl FnOnce(&mut dyn Write) -> Result<u64>,
    ) -> Result<()> {
        let (mut entry, name_bytes) = self.begin(name)?;
        let expected = header(most);
        self.sink.write_all(&expected)?;
        let mut counted = Counted { inner: &mut self.sink, crc: Crc::new(), bytes: 0 };
        let found = header(body(&mut counted)?);
        let (body_crc, body_bytes) = (counted.crc, counted.bytes);
        if found != expected {
            // NumPy pads headers to a multiple of 64 bytes, so that digits do not matter.
            if found.len() != expected.len() {
                return Err(Error::malformed(format_args!("{most} entries or about as many"), "far fewer"));
            }
            self.sink.patch(entry.data_offset, &found)?;
        }
        let mut crc = Crc::new();
        crc.update(&found);
        crc.combine(&body_crc);
        (entry.crc, entry.bytes) = (crc.sum(), found.len() as u64 + body_bytes);
        self.end(entry, name_bytes)
    }

    /// Writes the local header of a member, which does not have its sizes yet.
    fn begin(&mut self, name: &str) -> Result<(Entry, u16)> {
        let file_name = format!("{name}.npy");
        let name_bytes = u16::try_from(file_name.len()).map_err(|_| {
            Error::unsupported(format!("a member name of {} bytes (65535 fit)", file_name.len()))
        })?;
        let mut entry = Entry {
            flags: if file_name.is_ascii() { 0 } else { 1 << 11 },
            file_name,
            method: if self.compressed { DEFLATED } else { STORED },
            crc: 0,
            packed_bytes: 0,
            bytes: 0,
            offset: self.sink.position(),
            data_offset: 0,
            checked: Arc::default(),
            is_suspect: false,
            is_cut: false,
        };
        self.sink.write_all(&entry.local_bytes(name_bytes))?;
        entry.data_offset = self.sink.position();
        Ok((entry, name_bytes))
    }

    /// Completes the local header of a member.
    fn end(&mut self, mut entry: Entry, name_bytes: u16) -> Result<()> {
        entry.packed_bytes = self.sink.position() - entry.data_offset;
        self.sink.patch(entry.offset, &entry.local_bytes(name_bytes))?;
        self.entries.push(entry);
        Ok(())
    }

    /// Writes the directory. Returns the size of the archive.
    pub(super) fn finish(mut self) -> Result<u64> {
        let offset = self.sink.position();
        for entry in &self.entries {
            self.sink.write_all(&entry.central_bytes())?;
        }
        let bytes = self.sink.position() - offset;
        let count = self.entries.len() as u64;
        let short = |value: u64| u32::try_from(value).unwrap_or(u32::MAX);
        let short_count = u16::try_from(count).unwrap_or(u16::MAX);
        let mut end = Vec::new();
        if short_count == u16::MAX || short(bytes) == u32::MAX || short(offset) == u32::MAX {
            let record = self.sink.position();
            end.extend(END64_MAGIC);
            end.extend(44u64.to_le_bytes());
            end.extend([45, 0, 45, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
            for value in [count, count, bytes, offset] {
                end.extend(value.to_le_bytes());
            }
            end.extend(LOCATOR_MAGIC);
            end.extend(0u32.to_le_bytes());
            end.extend(record.to_le_bytes());
            end.extend(1u32.to_le_bytes());
        }
        end.extend(END_MAGIC);
        end.extend([0; 4]);
        end.extend(short_count.to_le_bytes());
        end.extend(short_count.to_le_bytes());
        end.extend(short(bytes).to_le_bytes());
        end.extend(short(offset).to_le_bytes());
        end.extend([0; 2]);
        self.sink.write_all(&end)?;
        self.sink.finish()
    }
}

impl Entry {
    /// The local header; sizes are in a zip64 field, as NumPy writes them.
    fn local_bytes(&self, name_bytes: u16) -> Vec<u8> {
        let mut bytes = LOCAL_MAGIC.to_vec();
        for value in [45, self.flags, self.method, 0, DATE] {
            bytes.extend(value.to_le_bytes());
        }
        bytes.extend(self.crc.to_le_bytes());
        bytes.extend([0xff; 8]);
        bytes.extend(name_bytes.to_le_bytes());
        bytes.extend(20u16.to_le_bytes());
        bytes.extend(self.file_name.as_bytes());
        bytes.extend([1, 0, 16, 0]);
        bytes.extend(self.bytes.to_le_bytes());
        bytes.extend(self.packed_bytes.to_le_bytes());
        bytes
    }

    fn central_bytes(&self) -> Vec<u8> {
        let mut extra = Vec::new();
        let mut short = |value: u64| match u32::try_from(value) {
            Ok(value) if value < u32::MAX => value,
            _ => {
                extra.extend(value.to_le_bytes());
                u32::MAX
            }
        };
        let (size, packed, offset) = (short(self.bytes), short(self.packed_bytes), short(self.offset));
        if !extra.is_empty() {
            let len = u8::try_from(extra.len()).unwrap_or(24);
            extra.splice(0..0, [1, 0, len, 0]);
        }
        let mut bytes = CENTRAL_MAGIC.to_vec();
        // Version made by: 4.5 on Unix.
        for value in [0x032d, 45, self.flags, self.method, 0, DATE] {
            bytes.extend(value.to_le_bytes());
        }
        bytes.extend(self.crc.to_le_bytes());
        bytes.extend(packed.to_le_bytes());
        bytes.extend(size.to_le_bytes());
        bytes.extend(u16::try_from(self.file_name.len()).unwrap_or(u16::MAX).to_le_bytes());
        bytes.extend(u16::try_from(extra.len()).unwrap_or(0).to_le_bytes());
        bytes.extend([0; 6]);
        // Readable and writable by the owner, as in NumPy.
        bytes.extend(0o600u32.wrapping_shl(16).to_le_bytes());
        bytes.extend(offset.to_le_bytes());
        bytes.extend(self.file_name.as_bytes());
        bytes.extend(extra);
        bytes
    }
}

/// Counts the bytes written and computes their checksum.
struct Counted<'a, W> {
    inner: &'a mut W,
    crc: Crc,
    bytes: u64,
}

impl<W: Write> Write for Counted<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.inner.write(bytes)?;
        self.crc.update(bytes.get(..count).unwrap_or_default());
        self.bytes += count as u64;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}
