//! Coordinate entries that do not fit in memory: the text is parsed once, and the entries are kept in temporary
//! files, one per range of rows, until their rows are read.

use std::io::Write;
use std::marker::PhantomData;
use std::ops::Range;

use super::cell::Cell;
use super::parse::Body;
use crate::cursor::reserve;
use crate::error::Result;
use crate::hub::matrix::build::{self as csr, Entries, Index};
use crate::source::{Source, Spool};

/// Maximum number of temporary files. Each band in a file costs one more pass over that file, so a few files are
/// enough in most cases.
const MOST_BUCKETS: u64 = 64;
/// Entries that are read at a time.
const PIECE_ENTRIES: u64 = 1 << 16;
/// Pieces that are read in parallel.
const GROUP: usize = 16;

/// The entries of some rows, in the order of the file.
pub(super) struct Spill<I, T> {
    buckets: Vec<Source>,
    first_row: u64,
    bucket_rows: u64,
    entries: PhantomData<(I, T)>,
}

impl<I: Index, T: Cell> Spill<I, T> {
    /// Parses the file. Also returns bands of rows, each of which takes at most `band_bytes` of memory at `entry_bytes`
    /// per entry, unless a single row takes more.
    pub(super) fn fill(
        body: &Body,
        rows: Range<u64>,
        (entry_bytes, band_bytes): (u64, u64),
    ) -> Result<(Self, Vec<Range<u64>>)> {
        let row_count = rows.end - rows.start;
        let mut counts = reserve::<u32>(row_count, &body.budget)?;
        counts.resize(usize::try_from(row_count).unwrap_or(usize::MAX), 0);
        let bucket_rows = row_count.div_ceil(MOST_BUCKETS).max(1);
        let mut spools: Vec<Spool> = (0..row_count.div_ceil(bucket_rows)).map(|_| Spool::on_disk()).collect();
        let mut lines = 0;
        for group in body.pieces().chunks(body.group()) {
            let parsed = body.each(group, |text, offset| {
                let mut entries = Entries::<I, T>::default();
                let lines = body.entries(text, offset, &rows, &mut entries, None)?;
                let mut buckets = vec![Vec::new(); spools.len()];
                for ((row, col), value) in entries.rows.iter().zip(&entries.cols).zip(&entries.values) {
                    let bucket = usize::try_from((row.to_u64() - rows.start) / bucket_rows).ok();
                    if let Some(bytes) = bucket.and_then(|bucket| buckets.get_mut(bucket)) {
                        put(*row, *col, *value, bytes);
                    }
                }
                Ok((entries.rows, buckets, lines))
            })?;
            for (entry_rows, buckets, more) in parsed {
                lines += more;
                for row in entry_rows {
                    let slot = usize::try_from(row.to_u64() - rows.start).ok();
                    let count = slot.and_then(|slot| counts.get_mut(slot));
                    count.into_iter().for_each(|count| *count = count.saturating_add(1));
                }
                for (spool, bytes) in spools.iter_mut().zip(buckets) {
                    spool.write_all(&bytes)?;
                }
            }
        }
        body.check_count(lines)?;
        let mut bands = Vec::new();
        let (mut start, mut bytes) = (rows.start, 0u64);
        for (row, count) in (rows.start..).zip(counts.iter()) {
            let own = u64::from(*count) * entry_bytes + 16;
            if bytes + own > band_bytes && row > start {
                bands.push(start..row);
                (start, bytes) = (row, 0);
            }
            bytes += own;
        }
        bands.push(start..rows.end);
        let sources = spools.into_iter().map(|spool| spool.into_source("spool")).collect::<Result<_>>()?;
        let spill = Spill { buckets: sources, first_row: rows.start, bucket_rows, entries: PhantomData };
        Ok((spill, bands))
    }

    /// The rows of a band.
    pub(super) fn read(&self, body: &Body, band: &Range<u64>) -> Result<csr::Csr<I, T>> {
        let size = entry_size::<I, T>();
        let bucket =
            |row: u64| usize::try_from((row - self.first_row) / self.bucket_rows).unwrap_or(usize::MAX);
        let buckets = bucket(band.start)..=bucket(band.end.saturating_sub(1).max(band.start));
        let mut pieces = Vec::new();
        for source in self.buckets.get(buckets).unwrap_or_default() {
            let (bytes, step) = (source.len().unwrap_or(0), PIECE_ENTRIES * size);
            let starts = (0..bytes.div_ceil(step)).map(|piece| piece * step);
            pieces.extend(starts.map(|start| (source, start..bytes.min(start + step))));
        }
        let mut reserved = body.budget.reservation();
        let mut entries = Vec::new();
        for group in pieces.chunks(GROUP) {
            let read = |(source, place): (&Source, Range<u64>)| {
                let bytes = source.read_range(place.start, place.end - place.start, &body.budget)?;
                let mut part = Entries::<I, T>::default();
                for entry in bytes.chunks_exact(usize::try_from(size).unwrap_or(usize::MAX)) {
                    if let Some((row, col, value)) = get::<I, T>(entry)
                        && band.contains(&row.to_u64())
                    {
                        part.push(row, col, value);
                    }
                }
                part.shrink();
                Ok(part)
            };
            for part in body.control.map(group.to_vec(), read)? {
                let part = part?;
                reserved.grow(part.bytes())?;
                entries.push(part);
            }
        }
        csr::build(&entries, band.start, band.end - band.start, &body.budget)
    }
}

fn entry_size<I: Index, T: Cell>() -> u64 {
    (2 * size_of::<I>() + size_of::<T>()) as u64
}

fn put<I: Index, T: Cell>(row: I, col: I, value: T, bytes: &mut Vec<u8>) {
    for number in [row, col] {
        bytes.extend(number.to_u64().to_le_bytes().get(..size_of::<I>()).unwrap_or_default());
    }
    value.put(bytes);
}

fn get<I: Index, T: Cell>(entry: &[u8]) -> Option<(I, I, T)> {
    let number = |bytes: &[u8]| {
        let mut word = [0; 8];
        word.get_mut(..bytes.len())?.copy_from_slice(bytes);
        I::from_u64(u64::from_le_bytes(word))
    };
    let (row, rest) = entry.split_at_checked(size_of::<I>())?;
    let (col, value) = rest.split_at_checked(size_of::<I>())?;
    Some((number(row)?, number(col)?, T::get(value)))
}
