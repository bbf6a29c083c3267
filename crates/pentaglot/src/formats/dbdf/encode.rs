//! Writes blocks of the document: with the smallest block type for their cells, or a given one.

use std::io::Write;

use crate::error::{Error, Result};
use crate::formats::WriteOptions;
use crate::kernels::csr::{self, Raw};
use crate::sink::Sink;

use super::cast::{self, Number};
use super::sparse::{by_size, repeated};
use super::types::{BlockType, Dialect, ValueType};

/// Rows are assembled in pieces of about this size: they stay in a cache, and a sink writes them unbuffered.
const PIECE_BYTES: usize = 192 << 10;

/// How blocks are written.
#[derive(Debug, Clone, Default)]
pub(super) struct BlockOptions {
    /// The block type set by the user; `None` for the smallest.
    pub(super) forced: Option<BlockType>,
    pub(super) narrow: bool,
    pub(super) rows: Option<u64>,
    pub(super) cols: Option<u64>,
}

impl BlockOptions {
    pub(super) fn read(options: &WriteOptions) -> Result<Self> {
        let options = &options.options;
        let forced = match options.word("blocks", &["auto", "dense", "sparse", "ultra-sparse"])? {
            Some("dense") => Some(BlockType::Dense),
            Some("sparse") => Some(BlockType::Sparse),
            Some("ultra-sparse") => Some(BlockType::UltraSparse),
            _ => None,
        };
        let size = |key: &str| match options.number(key)? {
            Some(number) if number == 0 || number > u64::from(u32::MAX) => {
                Err(Error::usage(format!("option {key}: expected 1..=4294967295, found {number}")))
            }
            number => Ok(number),
        };
        let narrow = options.bool("narrow")?.unwrap_or(false);
        Ok(BlockOptions { forced, narrow, rows: size("block-rows")?, cols: size("block-cols")? })
    }
}

/// The position of a block.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    pub(super) row: u64,
    pub(super) col: u64,
    pub(super) rows: u32,
    pub(super) cols: u32,
}

impl Place {
    fn cells(&self) -> u64 {
        u64::from(self.rows) * u64::from(self.cols)
    }

    /// Writes position and block header, up to the count of entries.
    fn write(
        &self,
        sink: &mut Sink,
        block_type: BlockType,
        value_type: ValueType,
        entries: u64,
    ) -> Result<()> {
        let mut bytes = Vec::new();
        bytes.extend(self.row.to_le_bytes());
        bytes.extend(self.col.to_le_bytes());
        bytes.extend(self.rows.to_le_bytes());
        bytes.extend(self.cols.to_le_bytes());
        bytes.push(block_type.code());
        if block_type != BlockType::Empty {
            bytes.push(value_type.code(Dialect::Spec).unwrap_or(0));
        }
        match block_type {
            BlockType::Empty | BlockType::Dense => {}
            BlockType::Sparse => bytes.extend(entries.to_le_bytes()),
            BlockType::UltraSparse => bytes.extend(count_of(entries)?.to_le_bytes()),
        }
        Ok(sink.write_all(&bytes)?)
    }

    /// The block type that takes the fewest bytes; at a tie the first in the list.
    fn smallest(&self, entries: u64, size: u64, dense: bool) -> BlockType {
        let pair = 4 + size;
        let triple = if self.cols == 1 { pair } else { pair + 4 };
        let sparse = entries.saturating_mul(pair).saturating_add(18 + 4 * u64::from(self.rows));
        let ultra = entries.saturating_mul(triple).saturating_add(14);
        let candidates = [
            (BlockType::Empty, 9, entries == 0),
            (BlockType::Dense, self.cells().saturating_mul(size).saturating_add(10), dense),
            (BlockType::Sparse, sparse, true),
            (BlockType::UltraSparse, ultra, u32::try_from(entries).is_ok()),
        ];
        let fitting = candidates.into_iter().filter(|(_, _, possible)| *possible);
        fitting.min_by_key(|(_, bytes, _)| *bytes).map_or(BlockType::Sparse, |(block_type, _, _)| block_type)
    }
}

fn count_of(entries: u64) -> Result<u32> {
    u32::try_from(entries).map_err(|_| {
        Error::unsupported(format!("an ultra-sparse block of {entries} entries (at most 4294967295 fit)"))
    })
}

/// An object without cells is one empty block.
pub(super) fn write_void(sink: &mut Sink, place: Place) -> Result<()> {
    place.write(sink, BlockType::Empty, ValueType::UInt8, 0)
}

/// Writes a block of cells, given row by row in parts.
pub(super) fn write_cells(
    sink: &mut Sink,
    place: Place,
    value_type: ValueType,
    parts: &[&[u8]],
    options: &BlockOptions,
) -> Result<()> {
    let to = narrowest(value_type, parts.iter().copied(), options);
    let nonzeros = || -> u64 {
        by_size!(value_type.size(), Bits => parts.iter().map(|part| count_nonzero::<Bits>(part)).sum())
    };
    let (block_type, entries) = match options.forced {
        Some(BlockType::Dense) => (BlockType::Dense, 0),
        Some(forced) => (forced, nonzeros()),
        None => {
            let entries = nonzeros();
            (place.smallest(entries, to.size() as u64, true), entries)
        }
    };
    place.write(sink, block_type, to, entries)?;
    match block_type {
        BlockType::Empty => Ok(()),
        BlockType::Dense if to == value_type => parts.iter().try_for_each(|part| Ok(sink.write_all(part)?)),
        BlockType::Dense => {
            let mut out = Vec::new();
            for part in parts {
                for piece in part.chunks(PIECE_BYTES) {
                    out.clear();
                    out.resize(piece.len() / value_type.size() * to.size(), 0);
                    // Every value was checked to fit.
                    cast::cast(piece, value_type, to, &mut out)
                        .map_err(|_| Error::lossy("a value that changed"))?;
                    sink.write_all(&out)?;
                }
            }
            Ok(())
        }
        BlockType::Sparse | BlockType::UltraSparse => {
            by_size!(value_type.size(), Bits => {
                write_nonzeros::<Bits>(sink, place, block_type, parts, &mut |value, out| put(value, value_type, to, out))
            })
        }
    }
}

fn count_nonzero<V: Raw>(bytes: &[u8]) -> u64 {
    bytes.chunks_exact(V::SIZE).map(|cell| u64::from(V::get(cell) != V::default())).sum()
}

/// The cells with a non-zero bit, as rows of pairs or as triples.
fn write_nonzeros<V: Raw>(
    sink: &mut Sink,
    place: Place,
    block_type: BlockType,
    parts: &[&[u8]],
    put: &mut dyn FnMut(&[u8], &mut Vec<u8>),
) -> Result<()> {
    let mut out = Vec::new();
    let mut row = 0u32;
    let width = usize::try_from(place.cols).unwrap_or(usize::MAX).saturating_mul(V::SIZE).max(1);
    for part in parts {
        for cells in part.chunks_exact(width) {
            let start = out.len();
            if block_type == BlockType::Sparse {
                out.extend([0; 4]);
            }
            let mut count = 0u32;
            for (col, cell) in (0u32..).zip(cells.chunks_exact(V::SIZE)) {
                if V::get(cell) != V::default() {
                    if block_type == BlockType::UltraSparse {
                        out.extend(row.to_le_bytes());
                    }
                    if block_type == BlockType::Sparse || place.cols != 1 {
                        out.extend(col.to_le_bytes());
                    }
                    put(cell, &mut out);
                    count += 1;
                }
            }
            if block_type == BlockType::Sparse
                && let Some(place) = out.get_mut(start..start + 4)
            {
                place.copy_from_slice(&count.to_le_bytes());
            }
            row += 1;
            if out.len() >= PIECE_BYTES {
                sink.write_all(&out)?;
                out.clear();
            }
        }
    }
    Ok(sink.write_all(&out)?)
}

/// Rows of a sparse matrix: `ends` are positions in `cols` and `values`, beginning with the start of the
/// first row.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entries<'a> {
    pub(super) ends: &'a [i64],
    pub(super) cols: &'a [u32],
    pub(super) values: &'a [u8],
}

impl<'a> Entries<'a> {
    fn span(&self) -> std::ops::Range<usize> {
        position(self.ends.first())..position(self.ends.last())
    }

    fn count(&self) -> u64 {
        self.span().len() as u64
    }

    fn value_bytes(&self, size: usize) -> &'a [u8] {
        let span = self.span();
        self.values.get(span.start * size..span.end * size).unwrap_or_default()
    }

    fn rows(&self) -> impl Iterator<Item = std::ops::Range<usize>> + '_ {
        self.ends.windows(2).map(|pair| position(pair.first())..position(pair.last()))
    }
}

fn position(end: Option<&i64>) -> usize {
    end.and_then(|end| usize::try_from(*end).ok()).unwrap_or(0)
}

/// Writes a block of a sparse matrix. Stored zeros and the order of entries in a row are kept.
pub(super) fn write_entries(
    sink: &mut Sink,
    place: Place,
    value_type: ValueType,
    parts: &[Entries<'_>],
    options: &BlockOptions,
) -> Result<()> {
    let size = value_type.size();
    // If nothing depends on the order, the rows are checked while they are written.
    let late = options.forced == Some(BlockType::Sparse) && !options.narrow;
    let sorted = !late && check_entries(place, parts)?;
    let entries: u64 = parts.iter().map(Entries::count).sum();
    let to = narrowest(value_type, parts.iter().map(|part| part.value_bytes(size)), options);
    let stored_zero = || by_size!(size, Bits => find_zero::<Bits>(place, parts));
    let block_type = match options.forced {
        Some(BlockType::Dense) => {
            if let Some((row, col)) = stored_zero() {
                let found = "a dense block cannot hold an explicit zero (blocks=sparse keeps it)";
                return Err(Error::lossy(format!("row {row}, column \"col_{col}\": {found}")));
            }
            BlockType::Dense
        }
        Some(forced) => forced,
        None => {
            // Dense cells would lose the order of entries and the explicit zeros.
            match place.smallest(entries, to.size() as u64, sorted) {
                BlockType::Dense if stored_zero().is_some() => {
                    place.smallest(entries, to.size() as u64, false)
                }
                smallest => smallest,
            }
        }
    };
    place.write(sink, block_type, to, entries)?;
    let mut out = Vec::new();
    let mut row = 0u32;
    for part in parts {
        match block_type {
            BlockType::Empty => {}
            BlockType::Sparse if to == value_type => by_size!(size, Bits => {
                join_rows::<Bits>(sink, part, Place { row: place.row + u64::from(row), ..place })?;
                row += u32::try_from(part.ends.len().saturating_sub(1)).unwrap_or(u32::MAX);
            }),
            _ => {
                for span in part.rows() {
                    let cols = part.cols.get(span.clone()).unwrap_or_default();
                    let values = part.values.get(span.start * size..span.end * size).unwrap_or_default();
                    let pairs = cols.iter().zip(values.chunks_exact(size));
                    match block_type {
                        BlockType::Sparse => {
                            out.extend(u32::try_from(cols.len()).unwrap_or(u32::MAX).to_le_bytes());
                            pairs.for_each(|(col, value)| {
                                out.extend(col.to_le_bytes());
                                put(value, value_type, to, &mut out);
                            });
                        }
                        BlockType::UltraSparse => pairs.for_each(|(col, value)| {
                            out.extend(row.to_le_bytes());
                            if place.cols != 1 {
                                out.extend(col.to_le_bytes());
                            }
                            put(value, value_type, to, &mut out);
                        }),
                        _ => dense_row(place, pairs, value_type, to, &mut out),
                    }
                    row += 1;
                    if out.len() >= PIECE_BYTES {
                        sink.write_all(&out)?;
                        out.clear();
                    }
                }
            }
        }
    }
    Ok(sink.write_all(&out)?)
}

/// Writes rows of pairs, which begin at a row of the object; returns the same errors as [`check_entries`].
fn join_rows<V: Raw>(sink: &mut Sink, part: &Entries<'_>, mut place: Place) -> Result<()> {
    // Few enough rows at a time for a piece to stay in a cache.
    let mut ends = part.ends;
    while ends.len() > 1 {
        let start = position(ends.first());
        let room = PIECE_BYTES / (4 + V::SIZE);
        let rows = ends.partition_point(|end| position(Some(end)) <= start + room).clamp(2, PIECE_BYTES / 4);
        let (now, _) = ends.split_at(rows.min(ends.len()));
        let mut order = None;
        sink.append(|out| order = Some(csr::join_rows::<V>(now, part.cols, part.values, out)))?;
        if order.is_none_or(|order| !order.rising || order.most >= place.cols) {
            check_entries(place, &[Entries { ends: now, ..*part }])?;
        }
        place.row += now.len() as u64 - 1;
        ends = ends.get(now.len() - 1..).unwrap_or_default();
    }
    Ok(())
}

fn dense_row<'a>(
    place: Place,
    pairs: impl Iterator<Item = (&'a u32, &'a [u8])>,
    value_type: ValueType,
    to: ValueType,
    out: &mut Vec<u8>,
) {
    let (start, size) = (out.len(), to.size());
    out.resize(start + usize::try_from(place.cols).unwrap_or(usize::MAX) * size, 0);
    let mut cell = Vec::new();
    for (col, value) in pairs {
        cell.clear();
        put(value, value_type, to, &mut cell);
        let at = start + usize::try_from(*col).unwrap_or(usize::MAX) * size;
        if let Some(place) = out.get_mut(at..at + size) {
            place.copy_from_slice(&cell);
        }
    }
}

/// Returns an error for a column out of range or repeated in its row; otherwise whether the columns of every
/// row are increasing.
fn check_entries(place: Place, parts: &[Entries<'_>]) -> Result<bool> {
    let mut sorted = true;
    let mut row = place.row;
    for part in parts {
        let order = csr::order(part.ends, part.cols);
        if order.rising && (order.most < place.cols || part.count() == 0) {
            row += part.ends.len().saturating_sub(1) as u64;
            continue;
        }
        sorted &= order.rising;
        for span in part.rows() {
            let cols = part.cols.get(span).unwrap_or_default();
            if let Some(col) = cols.iter().find(|col| **col >= place.cols) {
                return Err(Error::lossy(format!("row {row}: column {col} is not below {}", place.cols)));
            }
            if !cols.is_sorted_by(|one, next| one < next)
                && let Some(entry) = repeated(cols)
            {
                let col = place.col + u64::from(cols.get(entry).copied().unwrap_or(0));
                return Err(Error::lossy(format!(
                    "row {row}, column \"col_{col}\": a second entry for the cell"
                )));
            }
            row += 1;
        }
    }
    Ok(sorted)
}

fn find_zero<V: Raw>(place: Place, parts: &[Entries<'_>]) -> Option<(u64, u64)> {
    let mut row = place.row;
    for part in parts {
        for span in part.rows() {
            let values = part.values.get(span.start * V::SIZE..span.end * V::SIZE).unwrap_or_default();
            if let Some(at) = values.chunks_exact(V::SIZE).position(|value| V::get(value) == V::default()) {
                let col = part.cols.get(span.start + at).copied().unwrap_or(0);
                return Some((row, place.col + u64::from(col)));
            }
            row += 1;
        }
    }
    None
}

/// The smallest type that holds every value; the type itself unless narrowing is enabled.
fn narrowest<'a>(
    value_type: ValueType,
    parts: impl Iterator<Item = &'a [u8]> + Clone,
    options: &BlockOptions,
) -> ValueType {
    if !options.narrow {
        return value_type;
    }
    let mut smaller: Vec<ValueType> =
        ValueType::NUMERIC.into_iter().filter(|other| other.size() < value_type.size()).collect();
    smaller.sort_by_key(|other| other.size());
    let mut cell = [0; 8];
    let mut fits = |to: ValueType| {
        let Some(cell) = cell.get_mut(..to.size()) else { return false };
        parts.clone().all(|part| {
            let numbers = part.chunks_exact(value_type.size()).map(|bytes| Number::read(value_type, bytes));
            cast::always_fits(value_type, to)
                || numbers
                    .into_iter()
                    .all(|number| number.and_then(|number| number.write(to, cell)).is_some())
        })
    };
    smaller.into_iter().find(|to| fits(*to)).unwrap_or(value_type)
}

/// Appends a value as another type, which is known to hold it.
fn put(value: &[u8], from: ValueType, to: ValueType, out: &mut Vec<u8>) {
    if from == to {
        out.extend_from_slice(value);
        return;
    }
    let start = out.len();
    out.resize(start + to.size(), 0);
    if let (Some(number), Some(place)) = (Number::read(from, value), out.get_mut(start..)) {
        let fitted = number.write(to, place);
        debug_assert!(fitted.is_some(), "every value has been seen to fit");
    }
}
