//! Decodes sparse blocks to pieces of CSR: the interleaved rows of the document and of DAPHNE 0.1, DAPHNE's three
//! arrays, and coordinates.

use std::ops::Range;
use std::sync::Arc;

use arrow_buffer::{Buffer, MutableBuffer, ScalarBuffer};

use crate::cursor::{allocate, allocate_zeroed};
use crate::error::{Context, Error, Result};
use crate::kernels::csr::{self, Raw, Wanted};
use crate::limits::Budget;
use crate::source::{Source, Window};

use super::layout::{Block, Encoding};
use super::types::ValueType;

/// Rows are decoded from windows of this size, which fit in the second-level cache.
const WINDOW_BYTES: usize = 256 << 10;

/// Some rows of a block as CSR. Columns count from the block's first.
#[derive(Debug)]
pub(super) struct Piece {
    /// Rows of the object.
    pub(super) rows: Range<u64>,
    /// First column of the block.
    pub(super) col: u64,
    /// The end of each row, preceded by a zero. May be empty for a piece without entries.
    pub(super) ends: Vec<i64>,
    pub(super) cols: Vec<u32>,
    pub(super) value_type: ValueType,
    /// Aligned for their type.
    pub(super) values: Buffer,
}

/// The state of decoding between calls for one block.
#[derive(Debug, Default)]
pub(super) struct State {
    /// The next row of an interleaved block, its offset, and the number of entries before it.
    row: u64,
    offset: u64,
    entries: u64,
    coordinates: Option<Arc<Coordinates>>,
}

/// Evaluates `$body` with `$raw` bound to the unsigned type of `$size` bytes.
macro_rules! by_size {
    ($size:expr, $raw:ident => $body:expr) => {
        match $size {
            1 => {
                type $raw = u8;
                $body
            }
            2 => {
                type $raw = u16;
                $body
            }
            4 => {
                type $raw = u32;
                $body
            }
            8 => {
                type $raw = u64;
                $body
            }
            _ => {
                type $raw = i128;
                $body
            }
        }
    };
}
pub(super) use by_size;

/// Decodes `rows` (of the object) of a sparse block. Rows of an interleaved block must be requested in order.
pub(super) fn decode(
    source: &Source,
    budget: &Budget,
    (block, encoding): (&Block, Encoding),
    rows: Range<u64>,
    state: &mut State,
) -> Result<Piece> {
    let value_type = block.value_type.unwrap_or(ValueType::Float64);
    let local = rows.start - block.row..rows.end - block.row;
    let decoder = Decoder { source, budget, block };
    let (ends, cols, values) = if encoding == Encoding::CsrArrays {
        decoder.arrays(local, value_type.size() as u64)?
    } else {
        by_size!(value_type.size(), Bits => {
            let rows = match encoding {
                Encoding::Sparse => decoder.interleaved::<Bits, 4>(local, state)?,
                Encoding::WideSparse => decoder.interleaved::<Bits, 8>(local, state)?,
                _ => decoder.coordinates::<Bits>(local, state)?,
            };
            (rows.ends, rows.cols, Buffer::from_vec(rows.values))
        })
    };
    Ok(Piece { rows, col: block.col, ends, cols, value_type, values })
}

struct Decoder<'a> {
    source: &'a Source,
    budget: &'a Budget,
    block: &'a Block,
}

struct CsrRows<V> {
    ends: Vec<i64>,
    cols: Vec<u32>,
    values: Vec<V>,
}

impl Decoder<'_> {
    fn room<V: Raw>(&self, rows: u64) -> Result<CsrRows<V>> {
        // The estimate is the average, which the file's length bounds; vectors grow if it is too small.
        let share = u128::from(self.block.entries) * u128::from(rows) / u128::from(self.block.rows.max(1));
        let entries = u64::try_from(share).unwrap_or(u64::MAX);
        let entries = (entries + entries / 16 + 64).min(self.block.entries + 64);
        let mut ends = allocate(rows + 1, self.budget)?;
        ends.push(0);
        Ok(CsrRows { ends, cols: allocate(entries, self.budget)?, values: allocate(entries, self.budget)? })
    }

    /// Rows of a count and (column, value) pairs, where counts and columns have `WORD` bytes.
    fn interleaved<V: Raw, const WORD: usize>(
        &self,
        rows: Range<u64>,
        state: &mut State,
    ) -> Result<CsrRows<V>> {
        let mut out = self.room::<V>(rows.end - rows.start)?;
        let mut window = BlockWindow::new(self.source, self.block, self.budget);
        if state.row == 0 {
            *state = State { offset: self.block.data_offset, ..State::default() };
        }
        while state.row < rows.end {
            let bytes = window.at(state.offset, WORD as u64)?;
            let mut taken = self.take_rows::<V, WORD>(bytes, &rows, state, &mut out)?;
            if taken.rows == 0 {
                // The row is longer than the window, or malformed.
                let row = self.whole_rows::<WORD>(bytes, WORD + V::SIZE, 1, state)?;
                let bytes = window.at(state.offset, row.bytes)?;
                taken = self.take_rows::<V, WORD>(bytes, &rows, state, &mut out)?;
            }
            state.row += taken.rows;
            state.offset += taken.bytes;
            state.entries += taken.entries;
        }
        if state.row == self.block.rows && state.entries != self.block.entries {
            let expected = format!("{} entries in all rows, as the block says", self.block.entries);
            return Err(Error::malformed(expected, state.entries)
                .at(self.block.data_offset.saturating_sub(8))
                .field("entries")
                .rule("entry-count"));
        }
        Ok(out)
    }

    /// Splits the next rows that are complete in `bytes`; those before the first of `rows` are skipped.
    fn take_rows<V: Raw, const WORD: usize>(
        &self,
        bytes: &[u8],
        rows: &Range<u64>,
        state: &State,
        out: &mut CsrRows<V>,
    ) -> Result<Whole> {
        let pair = WORD + V::SIZE;
        if state.row < rows.start {
            return self.whole_rows::<WORD>(bytes, pair, rows.start - state.row, state);
        }
        let left = self.block.entries - state.entries;
        let (before_rows, before) = (out.ends.len() - 1, out.cols.len());
        let most = before as u64 + left.min((bytes.len() / pair) as u64);
        self.budget.check(most.saturating_mul(4 + V::SIZE as u64))?;
        let number = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
        let wanted = Wanted {
            rows: number(rows.end - state.row),
            entries: number(left),
            of_row: number(left.min(self.block.cols)),
        };
        let used = if WORD == 4 {
            csr::split_rows::<V>(bytes, wanted, &mut out.ends, &mut out.cols, &mut out.values)
        } else {
            split_wide_rows(bytes, wanted, out)
        };
        let ends = out.ends.get(before_rows..).unwrap_or_default();
        self.check_columns(ends, &out.cols, state.row, |row, entry| {
            entry_offset::<WORD>(bytes, pair, row, entry).map_or(0, |at| state.offset + at)
        })?;
        Ok(Whole {
            rows: (ends.len() - 1) as u64,
            bytes: used as u64,
            entries: (out.cols.len() - before) as u64,
        })
    }

    /// How many complete rows, at most `wanted`, are in `bytes`; if none, how many bytes the first one takes.
    fn whole_rows<const WORD: usize>(
        &self,
        bytes: &[u8],
        pair: usize,
        wanted: u64,
        state: &State,
    ) -> Result<Whole> {
        let mut whole = Whole::default();
        let mut rest = bytes;
        while whole.rows < wanted
            && let Some(count) = word::<WORD>(rest)
        {
            let left = self.block.entries - state.entries - whole.entries;
            if count > left.min(self.block.cols) {
                let expected = format!("at most {}", left.min(self.block.cols));
                return Err(Error::malformed(expected, count)
                    .at(state.offset + whole.bytes)
                    .field("count")
                    .index(state.row + whole.rows)
                    .field("row")
                    .rule("entry-count"));
            }
            // `entries` pairs fit the file, so this cannot overflow.
            let row_bytes = WORD as u64 + count * pair as u64;
            let Some(tail) = usize::try_from(row_bytes).ok().and_then(|end| rest.get(end..)) else {
                if whole.rows == 0 {
                    whole.bytes = row_bytes;
                }
                break;
            };
            rest = tail;
            whole.rows += 1;
            whole.bytes += row_bytes;
            whole.entries += count;
        }
        Ok(whole)
    }

    /// Checks that the columns of rows with these ends are within the block and do not repeat. `base` is the number of
    /// the first row; `place` returns the offset of an entry of a row, both counted from there.
    fn check_columns(
        &self,
        ends: &[i64],
        cols: &[u32],
        base: u64,
        place: impl Fn(usize, usize) -> u64,
    ) -> Result<()> {
        let limit = self.block.cols;
        let order = csr::order(ends, cols);
        if order.rising && (u64::from(order.most) < limit || ends.first() == ends.last()) {
            return Ok(());
        }
        let span = |from: i64, to: i64| cols.get(to_index(from)..to_index(to)).unwrap_or_default();
        for (row, pair) in ends.windows(2).enumerate() {
            let &[start, end] = pair else { continue };
            let columns = span(start, end);
            let outside = columns.iter().position(|col| u64::from(*col) >= limit);
            let (entry, expected, rule) = match outside {
                Some(entry) => (entry, format!("a column below {limit}"), "column-range"),
                None => match repeated(columns) {
                    Some(entry) => {
                        (entry, "columns that do not repeat in a row".to_owned(), "repeated-entry")
                    }
                    None => continue,
                },
            };
            let found = columns.get(entry).copied().unwrap_or_default();
            return Err(Error::malformed(expected, found)
                .at(place(row, entry))
                .field("col")
                .index(entry as u64)
                .field("entry")
                .index(base + row as u64)
                .field("row")
                .rule(rule));
        }
        Ok(())
    }

    /// DAPHNE's arrays: any rows can be read separately.
    fn arrays(&self, rows: Range<u64>, size: u64) -> Result<(Vec<i64>, Vec<u32>, Buffer)> {
        let block = self.block;
        let offsets_at = block.data_offset + rows.start * 8;
        let offsets = read_aligned(self.source, offsets_at, (rows.end - rows.start + 1) * 8, self.budget)?;
        let offsets: ScalarBuffer<u64> = Buffer::from(offsets).into();
        let bad = |index: usize, expected: String, found: u64| {
            Error::malformed(expected, found)
                .at(offsets_at + index as u64 * 8)
                .index(rows.start + index as u64)
                .field("row_offsets")
                .rule("row-offsets")
        };
        let (first, last) = (offsets.first().copied().unwrap_or(0), offsets.last().copied().unwrap_or(0));
        if rows.start == 0 && first != 0 {
            return Err(bad(0, "0".to_owned(), first));
        }
        if let Some(index) = offsets.windows(2).position(|pair| !pair.is_sorted()) {
            let before = offsets.get(index).copied().unwrap_or(0);
            let found = offsets.get(index + 1).copied().unwrap_or(0);
            return Err(bad(index + 1, format!("at least {before}"), found));
        }
        if last > block.entries {
            return Err(bad(offsets.len() - 1, format!("at most {} entries", block.entries), last));
        }
        if rows.end == block.rows && last != block.entries {
            return Err(bad(offsets.len() - 1, format!("{} entries", block.entries), last));
        }
        let entries = last - first;
        let all_cols_at = block.data_offset + (block.rows + 1) * 8;
        let cols_at = all_cols_at + first * 8;
        let cols = self.narrow_columns(cols_at, entries)?;
        let values_at = all_cols_at + block.entries * 8 + first * size;
        let values = read_aligned(self.source, values_at, entries * size, self.budget)?;
        // At most the number of entries, which the file's length bounds.
        let ends: Vec<i64> = offsets.iter().map(|end| (end - first).cast_signed()).collect();
        self.check_columns(&ends, &cols, rows.start, |row, entry| {
            cols_at + (ends.get(row).copied().map_or(0, to_index) + entry) as u64 * 8
        })?;
        Ok((ends, cols, values.into()))
    }

    /// Reads u64 columns, which are below the block's u32 width, as u32.
    fn narrow_columns(&self, at: u64, count: u64) -> Result<Vec<u32>> {
        let mut cols: Vec<u32> = allocate(count, self.budget)?;
        let mut window = BlockWindow::new(self.source, self.block, self.budget);
        let mut offset = at;
        let end = at + count * 8;
        while offset < end {
            let bytes = window.at(offset, 8)?;
            let most = usize::try_from(end - offset).unwrap_or(usize::MAX);
            let (words, _) = bytes.get(..bytes.len().min(most)).unwrap_or_default().as_chunks::<8>();
            let high = words.iter().fold(0, |all, word| all | u64::from_le_bytes(*word) >> 32);
            if high != 0
                && let Some(index) = words.iter().position(|word| u64::from_le_bytes(*word) >> 32 != 0)
            {
                let found = words.get(index).map_or(0, |word| u64::from_le_bytes(*word));
                return Err(Error::malformed(format_args!("a column below {}", self.block.cols), found)
                    .at(offset + index as u64 * 8)
                    .index((offset - at) / 8 + index as u64)
                    .field("column_indices")
                    .rule("column-range"));
            }
            cols.extend(words.iter().map(|[a, b, c, d, ..]| u32::from_le_bytes([*a, *b, *c, *d])));
            offset += words.len() as u64 * 8;
        }
        Ok(cols)
    }

    /// Rows of an ultra-sparse block, whose entries are read and sorted once.
    fn coordinates<V: Raw>(&self, rows: Range<u64>, state: &mut State) -> Result<CsrRows<V>> {
        let all = match &state.coordinates {
            Some(all) => Arc::clone(all),
            None => {
                let all = Arc::new(Coordinates::read(self.source, self.block, self.budget)?);
                state.coordinates = Some(Arc::clone(&all));
                all
            }
        };
        let from = all.entries.partition_point(|entry| u64::from(entry.row) < rows.start);
        let to = all.entries.partition_point(|entry| u64::from(entry.row) < rows.end);
        let chosen = all.entries.get(from..to).unwrap_or_default();
        // Without entries no ends are needed, so the cost depends on what the block stores, not on its number
        // of rows.
        if chosen.is_empty() {
            return Ok(CsrRows { ends: vec![0], cols: Vec::new(), values: Vec::new() });
        }
        let mut ends: Vec<i64> = allocate(rows.end - rows.start + 1, self.budget)?;
        ends.push(0);
        let mut done = 0;
        for row in rows {
            let rest = chosen.get(done..).unwrap_or_default();
            done += rest.iter().take_while(|entry| u64::from(entry.row) == row).count();
            ends.push(done as i64);
        }
        let value = |entry: &Coordinate| V::get(all.values.get(entry.index * V::SIZE..).unwrap_or_default());
        Ok(CsrRows {
            ends,
            cols: chosen.iter().map(|entry| entry.col).collect(),
            values: chosen.iter().map(value).collect(),
        })
    }
}

#[derive(Default)]
struct Whole {
    rows: u64,
    bytes: u64,
    entries: u64,
}

/// The entries of an ultra-sparse block, sorted by row; within a row in stored order.
#[derive(Debug)]
struct Coordinates {
    entries: Vec<Coordinate>,
    values: Vec<u8>,
}

#[derive(Debug, Clone, Copy)]
struct Coordinate {
    row: u32,
    col: u32,
    index: usize,
}

impl Coordinates {
    fn read(source: &Source, block: &Block, budget: &Budget) -> Result<Self> {
        let size = block.value_type.map_or(0, ValueType::size);
        let mut entries: Vec<Coordinate> = allocate(block.entries, budget)?;
        let mut values: Vec<u8> = allocate(block.entries * size as u64, budget)?;
        for_each_coordinate(source, block, budget, |index, offset, row, col, value| {
            let (found, limit, rule) = if u64::from(row) >= block.rows {
                (row, block.rows, "row-range")
            } else {
                (col, block.cols, "column-range")
            };
            if u64::from(found) >= limit {
                let what = if rule == "row-range" { "row" } else { "col" };
                let at = if rule == "row-range" { offset } else { offset + 4 };
                return Err(Error::malformed(format_args!("a {what} below {limit}"), found)
                    .at(at)
                    .field(what)
                    .index(index)
                    .field("entry")
                    .rule(rule));
            }
            entries.push(Coordinate { row, col, index: entries.len() });
            values.extend_from_slice(value);
            Ok(())
        })?;
        let key = |entry: &Coordinate| (entry.row, entry.col);
        if !entries.is_sorted_by(|one, next| key(one) < key(next)) {
            let mut sorted = entries.clone();
            sorted.sort_unstable_by_key(|entry| (entry.row, entry.col, entry.index));
            if let Some(pair) = sorted.windows(2).find(|pair| pair.first().map(key) == pair.last().map(key)) {
                return Err(repeated_coordinate(block, pair.last().copied()));
            }
            entries.sort_by_key(|entry| entry.row);
        }
        Ok(Coordinates { entries, values })
    }
}

fn repeated_coordinate(block: &Block, entry: Option<Coordinate>) -> Error {
    let (row, col, index) = entry.map_or((0, 0, 0), |entry| (entry.row, entry.col, entry.index as u64));
    let offset = block.data_offset + index * coordinate_bytes(block);
    Error::malformed("entries that do not repeat", format_args!("row {row}, column {col} again"))
        .at(offset)
        .index(index)
        .field("entry")
        .rule("repeated-entry")
}

/// Bytes of one entry of an ultra-sparse block.
pub(super) fn coordinate_bytes(block: &Block) -> u64 {
    let index_bytes = if block.cols == 1 { 4 } else { 8 };
    index_bytes + block.value_type.map_or(0, ValueType::size) as u64
}

/// Calls `each` with index, offset, row, column and value bytes of every entry of an ultra-sparse block.
pub(super) fn for_each_coordinate(
    source: &Source,
    block: &Block,
    budget: &Budget,
    mut each: impl FnMut(u64, u64, u32, u32, &[u8]) -> Result<()>,
) -> Result<()> {
    let step = coordinate_bytes(block);
    let mut window = BlockWindow::new(source, block, budget);
    let mut index = 0;
    while index < block.entries {
        let at = block.data_offset + index * step;
        let bytes = window.at(at, step)?;
        let entries = bytes.chunks_exact(usize::try_from(step).unwrap_or(usize::MAX));
        let left = usize::try_from(block.entries - index).unwrap_or(usize::MAX);
        for entry in entries.take(left) {
            let row = u32::get(entry);
            let (col, value) = if block.cols == 1 {
                (0, entry.get(4..))
            } else {
                (u32::get(entry.get(4..).unwrap_or_default()), entry.get(8..))
            };
            each(index, block.data_offset + index * step, row, col, value.unwrap_or_default())?;
            index += 1;
        }
    }
    Ok(())
}

/// The bytes of a block, a window at a time; bytes in memory are borrowed, not copied.
pub(super) struct BlockWindow {
    window: Window,
    end: u64,
}

impl BlockWindow {
    pub(super) fn new(source: &Source, block: &Block, budget: &Budget) -> Self {
        let end = block.data_offset + block.data_bytes;
        BlockWindow { window: Window::anywhere(source, end, WINDOW_BYTES, budget.clone()), end }
    }

    /// At least `least` bytes from `offset`, and as many more as are in memory.
    pub(super) fn at(&mut self, offset: u64, least: u64) -> Result<&[u8]> {
        if offset.checked_add(least).is_none_or(|end| end > self.end) {
            let left = self.end.saturating_sub(offset);
            return Err(Error::truncated(format_args!("{least} bytes in the block"), left).at(offset));
        }
        let least = usize::try_from(least)
            .map_err(|_| Error::limit("the address space", usize::MAX, format!("{least} bytes")))?;
        self.window.at(offset, least)
    }
}

/// A little-endian word of 4 or 8 bytes.
fn word<const WORD: usize>(bytes: &[u8]) -> Option<u64> {
    if WORD == 4 {
        bytes.first_chunk().map(|bytes| u64::from(u32::from_le_bytes(*bytes)))
    } else {
        bytes.first_chunk().map(|bytes| u64::from_le_bytes(*bytes))
    }
}

/// The same as the kernel, for the u64 counts and columns of DAPHNE 0.1.
fn split_wide_rows<V: Raw>(bytes: &[u8], wanted: Wanted, out: &mut CsrRows<V>) -> usize {
    let most = out.cols.len().saturating_add(wanted.entries);
    let mut rest = bytes;
    for _ in 0..wanted.rows {
        let Some((count, tail)) = rest.split_first_chunk() else { break };
        let count = usize::try_from(u64::from_le_bytes(*count)).unwrap_or(usize::MAX);
        if count > wanted.of_row || count > most - out.cols.len() {
            break;
        }
        let Some((row, tail)) = tail.split_at_checked(count.saturating_mul(8 + V::SIZE)) else { break };
        for pair in row.chunks_exact(8 + V::SIZE) {
            // A column past 32 bits is outside any block, and so is `u32::MAX`.
            out.cols.push(u32::try_from(u64::get(pair)).unwrap_or(u32::MAX));
            out.values.push(V::get(pair.get(8..).unwrap_or_default()));
        }
        out.ends.push(out.cols.len() as i64);
        rest = tail;
    }
    bytes.len() - rest.len()
}

/// The offset of an entry in complete rows of pairs.
fn entry_offset<const WORD: usize>(bytes: &[u8], pair: usize, row: usize, entry: usize) -> Option<u64> {
    let mut at = 0usize;
    for _ in 0..row {
        let count = usize::try_from(word::<WORD>(bytes.get(at..)?)?).ok()?;
        at += WORD + count * pair;
    }
    Some((at + WORD + entry * pair) as u64)
}

/// The index of an entry whose column is a repeat, if there is one.
pub(super) fn repeated(columns: &[u32]) -> Option<usize> {
    let mut order: Vec<usize> = (0..columns.len()).collect();
    let col = |index: &usize| columns.get(*index).copied();
    order.sort_by_key(col);
    let twice = order.windows(2).filter(|pair| pair.first().and_then(col) == pair.last().and_then(col));
    twice.filter_map(|pair| pair.last().copied()).min()
}

/// Bytes in memory that is aligned for any type.
pub(super) fn read_aligned(
    source: &Source,
    offset: u64,
    bytes: u64,
    budget: &Budget,
) -> Result<MutableBuffer> {
    let mut memory = allocate_zeroed(bytes, budget).at(offset)?;
    source.read_exact_at(offset, memory.as_slice_mut())?;
    Ok(memory)
}

fn to_index(end: i64) -> usize {
    usize::try_from(end).unwrap_or(usize::MAX)
}
