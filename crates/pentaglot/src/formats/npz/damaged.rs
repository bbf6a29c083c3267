//! The members of a damaged archive: those of its directory that are there, or, without a directory, those whose own headers
//! follow each other from the first byte on.

use super::layout::{CENTRAL_MAGIC, Directory, Entry, LOCAL_MAGIC, local_header};
use crate::cursor::Cursor;
use crate::error::{Context, Error, Result};
use crate::formats::MissingPart;
use crate::limits::Budget;
use crate::source::Source;

/// What may follow the bytes of a member: its sizes, where they were not known before.
const DESCRIPTOR_MAGIC: [u8; 4] = *b"PK\x07\x08";
/// The flag of a header without sizes.
const NO_SIZES: u16 = 8;

/// The members that may be sound, and what is missing.
pub(super) fn read(source: &Source, budget: &Budget) -> Result<(Directory, Vec<MissingPart>)> {
    let total = source.len().ok_or_else(|| Error::usage("a stream cannot be read at an offset"))?;
    let (mut directory, missing) = match Directory::listed(source, total, budget) {
        Ok((listed, offset, bytes)) => {
            let mut missing = Vec::new();
            let mut entries = Vec::new();
            for entry in listed {
                let (name, start) = (entry.name().to_owned(), entry.offset);
                match local_header(entry, source, offset, budget) {
                    Ok(entry) => entries.push(entry),
                    Err(error) => {
                        let reason = error.to_string();
                        missing.push(MissingPart { name, bytes: start.min(offset)..offset, reason });
                    }
                }
            }
            (Directory { entries, offset, bytes }, missing)
        }
        Err(fault) => scan(source, total, fault, budget)?,
    };
    let mut names = std::collections::HashSet::new();
    directory.entries.retain(|entry| names.insert(entry.file_name.clone()));
    directory.entries.iter_mut().for_each(|entry| entry.is_suspect = true);
    Ok((directory, missing))
}

/// Follows the members from the first byte on. `fault` is what is wrong with the directory.
fn scan(source: &Source, total: u64, fault: Error, budget: &Budget) -> Result<(Directory, Vec<MissingPart>)> {
    let mut entries: Vec<Entry> = Vec::new();
    let mut offset = 0;
    while let Some(entry) = member_at(source, offset, total, budget)? {
        offset = after(source, &entry)?;
        budget.check((entries.len() as u64 + 1).saturating_mul(size_of::<Entry>() as u64))?;
        entries.push(entry);
    }
    if entries.is_empty() {
        return Err(fault);
    }
    let is_complete = peek(source, offset)? == CENTRAL_MAGIC;
    let reason = match is_complete {
        true => format!("only the directory is damaged: {fault}"),
        false => format!("members that the directory would name: {fault}"),
    };
    let missing = MissingPart { name: String::new(), bytes: offset..total, reason };
    Ok((Directory { entries, offset, bytes: 0 }, vec![missing]))
}

fn peek(source: &Source, offset: u64) -> Result<[u8; 4]> {
    let mut magic = [0; 4];
    source.read_at(offset, &mut magic)?;
    Ok(magic)
}

/// The member whose header is at `offset`, cut where the file ends; `None` if there is none that can be followed.
fn member_at(source: &Source, offset: u64, total: u64, budget: &Budget) -> Result<Option<Entry>> {
    if peek(source, offset)? != LOCAL_MAGIC || total - offset < 30 {
        return Ok(None);
    }
    let header = source.read_range(offset, 30, budget).field("local_header")?;
    let mut cursor = Cursor::at(&header, offset);
    cursor.skip(6)?;
    let (flags, method) = (cursor.u16_le()?, cursor.u16_le()?);
    cursor.skip(4)?;
    let crc = cursor.u32_le()?;
    let (packed, bytes) = (cursor.u32_le()?, cursor.u32_le()?);
    let (name_bytes, extra_bytes) = (u64::from(cursor.u16_le()?), u64::from(cursor.u16_le()?));
    let data_offset = offset + 30 + name_bytes + extra_bytes;
    if data_offset > total || flags & NO_SIZES != 0 && packed == 0 {
        return Ok(None);
    }
    let name = source.read_range(offset + 30, name_bytes, budget).field("local_header")?;
    let Ok(file_name) = std::str::from_utf8(&name) else { return Ok(None) };
    let mut entry = Entry {
        file_name: file_name.to_owned(),
        method,
        crc,
        packed_bytes: u64::from(packed),
        bytes: u64::from(bytes),
        offset,
        data_offset,
        flags,
        checked: std::sync::Arc::default(),
        is_suspect: true,
        is_cut: false,
    };
    let extra = source.read_range(offset + 30 + name_bytes, extra_bytes, budget).field("local_header")?;
    let mut extra = Cursor::at(&extra, offset + 30 + name_bytes);
    if entry.zip64(&mut extra).is_err() {
        return Ok(None);
    }
    let left = total - data_offset;
    entry.is_cut = entry.packed_bytes > left;
    entry.packed_bytes = entry.packed_bytes.min(left);
    Ok(Some(entry))
}

/// Where the next header is.
fn after(source: &Source, entry: &Entry) -> Result<u64> {
    let end = entry.data_offset + entry.packed_bytes;
    if entry.flags & NO_SIZES == 0 || peek(source, end)? != DESCRIPTOR_MAGIC {
        return Ok(end);
    }
    // With sizes of 4 bytes, or of 8.
    let is_header = |magic: [u8; 4]| magic == LOCAL_MAGIC || magic == CENTRAL_MAGIC;
    Ok(if is_header(peek(source, end + 16)?) { end + 16 } else { end + 24 })
}
