//! Rows of simple cells to columns: the loop that MessagePack and JSON tables share.
//!
//! The plain version: for each row, for each column, read a cell and push it. It is fast because it reports no errors
//! and tracks no places: [`read_rows`] stops before the first row that is not simple (cut off by the end of the window,
//! of another type, out of range, malformed), and its caller reads that row again with the careful reader, which
//! reports the error. Memory is reserved for many rows at once, and texts are checked to be UTF-8 many at a time.

#![allow(unsafe_code, reason = "vectors get the length that was written behind their end")]

mod json;
mod msgpack;
#[cfg(test)]
mod tests;
mod write;

use std::mem::MaybeUninit;

pub(crate) use json::Json;
pub(crate) use msgpack::MsgPack;
pub(crate) use write::{Cells, Given, write_rows};

/// How many rows are read before their texts are checked.
const ROWS: usize = 4096;

/// The destination of the cells of one column, which are appended.
pub(crate) struct RowColumn<'a> {
    pub(crate) values: Values<'a>,
    /// The validity of each cell, if the column is nullable.
    pub(crate) valid: Option<&'a mut Vec<bool>>,
}

/// The vectors of one column. Offsets already have their first element.
pub(crate) enum Values<'a> {
    /// The column is not selected.
    Skipped,
    Bool(&'a mut Vec<bool>),
    UInt8(&'a mut Vec<u8>),
    Int8(&'a mut Vec<i8>),
    UInt32(&'a mut Vec<u32>),
    Int32(&'a mut Vec<i32>),
    UInt64(&'a mut Vec<u64>),
    Int64(&'a mut Vec<i64>),
    Float32(&'a mut Vec<f32>),
    Float64(&'a mut Vec<f64>),
    /// UTF-8.
    Text(&'a mut Vec<i32>, &'a mut Vec<u8>),
    /// Byte strings of this length.
    Fixed(&'a mut Vec<i32>, &'a mut Vec<u8>, usize),
}

/// An integer of up to 64 bits.
pub(crate) trait Integer: Copy + Default + std::str::FromStr {
    const SIGNED: bool;
    /// From 64 bits, which are a negative number if their top bit is set, unless they are `unsigned`.
    fn from_bits(bits: u64, unsigned: bool) -> Option<Self>;
}

macro_rules! integer {
    ($($native:ty, $signed:literal;)*) => {
        $(impl Integer for $native {
            const SIGNED: bool = $signed;

            #[inline(always)]
            #[allow(clippy::unnecessary_cast, reason = "not for the narrow types")]
            fn from_bits(bits: u64, unsigned: bool) -> Option<Self> {
                let value = bits as $native;
                let same = value as i64 as u64 == bits;
                // The number is out of range if its top bit is a sign and `Self` is unsigned, or the reverse.
                let high = (bits >> 63 == 1) & (unsigned == $signed);
                (same & !high).then_some(value)
            }
        })*
    };
}

integer! { u8, false; i8, true; u32, false; i32, true; u64, false; i64, true; }

/// Cells of rows in some encoding. A method returns `None` for input that is not simple; the position is then
/// unspecified.
pub(crate) trait Wire: Clone {
    /// The total number of bytes.
    fn len(&self) -> usize;
    /// How many bytes have been read.
    fn position(&self) -> usize;
    /// Reads the bytes before the cells of a row.
    fn begin(&mut self, cells: usize) -> Option<()>;
    /// Reads the bytes before a cell.
    fn separator(&mut self, first: bool) -> Option<()>;
    /// Reads the bytes after the cells of a row.
    fn end(&mut self) -> Option<()>;
    /// Whether null comes next; it is then read.
    fn null(&mut self) -> bool;
    fn bool(&mut self) -> Option<bool>;
    fn integer<T: Integer>(&mut self) -> Option<T>;
    fn float64(&mut self) -> Option<f64>;
    fn float32(&mut self) -> Option<f32>;
    /// Appends a text, which need not be UTF-8.
    fn text(&mut self, text: &mut Vec<u8>) -> Option<()>;
    /// Appends a byte string of this length.
    fn bytes(&mut self, len: usize, bytes: &mut Vec<u8>) -> Option<()>;
    fn skip(&mut self) -> Option<()>;
}

/// The result of [`read_rows`].
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Taken {
    pub(crate) rows: usize,
    /// The bytes of placeholder values for nulls.
    pub(crate) placeholder_bytes: u64,
}

/// Reads simple rows: up to `limit` of them, none that begins at `until` or later.
pub(crate) fn read_rows<W: Wire>(
    wire: &mut W,
    columns: &mut [RowColumn<'_>],
    limit: usize,
    until: usize,
) -> Taken {
    // A row takes at least one byte per cell: memory is reserved for no more rows than the input can hold.
    let limit = limit.min(until.min(wire.len()) / (columns.len() + 1) + 1);
    let mut all = Taken::default();
    while all.rows < limit {
        let start = wire.clone();
        let wanted = ROWS.min(limit - all.rows);
        let mut taken = read_some(wire, columns, wanted, until);
        if let Some(sound) = first_broken_text(columns, taken.rows) {
            *wire = start;
            columns.iter_mut().for_each(|column| column.forget(taken.rows));
            taken = read_some(wire, columns, sound, until);
        }
        all.rows += taken.rows;
        all.placeholder_bytes += taken.placeholder_bytes;
        if taken.rows < wanted {
            break;
        }
    }
    all
}

/// The spare capacity of a column while rows are read.
enum Slot<'a> {
    Skipped,
    Bool(Room<'a, bool>),
    UInt8(Room<'a, u8>),
    Int8(Room<'a, i8>),
    UInt32(Room<'a, u32>),
    Int32(Room<'a, i32>),
    UInt64(Room<'a, u64>),
    Int64(Room<'a, i64>),
    Float32(Room<'a, f32>),
    Float64(Room<'a, f64>),
    Text(Room<'a, i32>, &'a mut Vec<u8>),
    Fixed(Room<'a, i32>, &'a mut Vec<u8>, usize),
}

type Room<'a, T> = &'a mut [MaybeUninit<T>];

fn read_some<W: Wire>(wire: &mut W, columns: &mut [RowColumn<'_>], limit: usize, until: usize) -> Taken {
    let left = until.min(wire.len()).saturating_sub(wire.position());
    let mut slots: Vec<(Slot<'_>, Option<Room<'_, bool>>)> =
        columns.iter_mut().map(|column| column.slot(limit, left)).collect();
    let mut taken = Taken::default();
    let mut placeholder_bytes = 0;
    while taken.rows < limit && wire.position() < until {
        let before = wire.clone();
        if read_row(wire, &mut slots, taken.rows, &mut placeholder_bytes).is_none() {
            *wire = before;
            break;
        }
        taken.rows += 1;
        taken.placeholder_bytes = placeholder_bytes;
    }
    // SAFETY: each column had room for `limit` more values, and the first `taken.rows` of them were written: a row
    // counts only if all its cells were read, and every code path that reads a cell of row `r` writes position
    // `r`.
    unsafe { columns.iter_mut().for_each(|column| column.keep(taken.rows)) };
    taken
}

#[inline(always)]
fn read_row<W: Wire>(
    wire: &mut W,
    slots: &mut [(Slot<'_>, Option<Room<'_, bool>>)],
    row: usize,
    placeholder_bytes: &mut u64,
) -> Option<()> {
    #[inline(always)]
    fn put<T>(room: &mut Room<'_, T>, row: usize, value: T) -> Option<()> {
        room.get_mut(row)?.write(value);
        Some(())
    }
    wire.begin(slots.len())?;
    for (index, (slot, valid)) in slots.iter_mut().enumerate() {
        wire.separator(index == 0)?;
        if let Some(valid) = valid {
            let null = wire.null();
            put(valid, row, !null)?;
            if null {
                *placeholder_bytes += slot.put_default(row)?;
                continue;
            }
        }
        match slot {
            Slot::Int32(room) => put(room, row, wire.integer()?)?,
            Slot::Int64(room) => put(room, row, wire.integer()?)?,
            Slot::Float64(room) => put(room, row, wire.float64()?)?,
            Slot::Bool(room) => put(room, row, wire.bool()?)?,
            Slot::Text(room, bytes) => {
                wire.text(bytes)?;
                put(room, row, i32::try_from(bytes.len()).ok()?)?;
            }
            Slot::Fixed(room, bytes, len) => {
                wire.bytes(*len, bytes)?;
                put(room, row, i32::try_from(bytes.len()).ok()?)?;
            }
            Slot::UInt8(room) => put(room, row, wire.integer()?)?,
            Slot::Int8(room) => put(room, row, wire.integer()?)?,
            Slot::UInt32(room) => put(room, row, wire.integer()?)?,
            Slot::UInt64(room) => put(room, row, wire.integer()?)?,
            Slot::Float32(room) => put(room, row, wire.float32()?)?,
            Slot::Skipped => wire.skip()?,
        }
    }
    wire.end()
}

impl Slot<'_> {
    /// Writes the placeholder value for a null; returns its size in bytes.
    fn put_default(&mut self, row: usize) -> Option<u64> {
        fn put<T: Default>(room: &mut Room<'_, T>, row: usize) -> Option<u64> {
            room.get_mut(row)?.write(T::default());
            Some(size_of::<T>() as u64)
        }
        match self {
            Slot::Skipped => Some(0),
            Slot::Bool(room) => put(room, row),
            Slot::UInt8(room) => put(room, row),
            Slot::Int8(room) => put(room, row),
            Slot::UInt32(room) => put(room, row),
            Slot::Int32(room) => put(room, row),
            Slot::UInt64(room) => put(room, row),
            Slot::Int64(room) => put(room, row),
            Slot::Float32(room) => put(room, row),
            Slot::Float64(room) => put(room, row),
            Slot::Text(room, bytes) | Slot::Fixed(room, bytes, _) => {
                room.get_mut(row)?.write(i32::try_from(bytes.len()).ok()?);
                Some(4)
            }
        }
    }
}

impl RowColumn<'_> {
    /// Reserves room for `limit` values, which are read from `left` bytes.
    fn slot(&mut self, limit: usize, left: usize) -> (Slot<'_>, Option<Room<'_, bool>>) {
        #[expect(clippy::disallowed_methods, reason = "the number of rows is bounded by the bytes in memory")]
        fn room<T>(values: &mut Vec<T>, limit: usize) -> Room<'_, T> {
            values.reserve(limit);
            &mut values.spare_capacity_mut()[..limit]
        }
        let slot = match &mut self.values {
            Values::Skipped => Slot::Skipped,
            Values::Bool(values) => Slot::Bool(room(values, limit)),
            Values::UInt8(values) => Slot::UInt8(room(values, limit)),
            Values::Int8(values) => Slot::Int8(room(values, limit)),
            Values::UInt32(values) => Slot::UInt32(room(values, limit)),
            Values::Int32(values) => Slot::Int32(room(values, limit)),
            Values::UInt64(values) => Slot::UInt64(room(values, limit)),
            Values::Int64(values) => Slot::Int64(room(values, limit)),
            Values::Float32(values) => Slot::Float32(room(values, limit)),
            Values::Float64(values) => Slot::Float64(room(values, limit)),
            Values::Text(offsets, bytes) => Slot::Text(room(offsets, limit), bytes),
            Values::Fixed(offsets, bytes, len) => {
                // The length comes from the type, not from the input.
                room(bytes, limit.min(left / len.saturating_add(1)) * *len);
                Slot::Fixed(room(offsets, limit), bytes, *len)
            }
        };
        (slot, self.valid.as_mut().map(|valid| room(valid, limit)))
    }

    /// Includes `rows` values that were written past the end in the column.
    ///
    /// # Safety
    /// The vectors (but for the bytes of byte strings) have room for `rows` more values, which were written.
    unsafe fn keep(&mut self, rows: usize) {
        /// # Safety
        /// As above.
        unsafe fn keep<T>(values: &mut Vec<T>, rows: usize) {
            // SAFETY: guaranteed by the caller.
            unsafe { values.set_len(values.len() + rows) };
        }
        // SAFETY: guaranteed by the caller, for each vector.
        unsafe {
            match &mut self.values {
                Values::Skipped => {}
                Values::Bool(values) => keep(values, rows),
                Values::UInt8(values) => keep(values, rows),
                Values::Int8(values) => keep(values, rows),
                Values::UInt32(values) => keep(values, rows),
                Values::Int32(values) => keep(values, rows),
                Values::UInt64(values) => keep(values, rows),
                Values::Int64(values) => keep(values, rows),
                Values::Float32(values) => keep(values, rows),
                Values::Float64(values) => keep(values, rows),
                Values::Text(offsets, bytes) | Values::Fixed(offsets, bytes, _) => {
                    keep(offsets, rows);
                    bytes.truncate(end(offsets));
                }
            }
            if let Some(valid) = &mut self.valid {
                keep(valid, rows);
            }
        }
    }

    /// Removes the last `rows` values.
    fn forget(&mut self, rows: usize) {
        fn cut<T>(values: &mut Vec<T>, rows: usize) {
            values.truncate(values.len() - rows);
        }
        match &mut self.values {
            Values::Skipped => {}
            Values::Bool(values) => cut(values, rows),
            Values::UInt8(values) => cut(values, rows),
            Values::Int8(values) => cut(values, rows),
            Values::UInt32(values) => cut(values, rows),
            Values::Int32(values) => cut(values, rows),
            Values::UInt64(values) => cut(values, rows),
            Values::Int64(values) => cut(values, rows),
            Values::Float32(values) => cut(values, rows),
            Values::Float64(values) => cut(values, rows),
            Values::Text(offsets, bytes) | Values::Fixed(offsets, bytes, _) => {
                cut(offsets, rows);
                bytes.truncate(end(offsets));
            }
        }
        if let Some(valid) = &mut self.valid {
            cut(valid, rows);
        }
    }
}

fn end(offsets: &[i32]) -> usize {
    offsets.last().map_or(0, |end| *end as usize)
}

/// Among the last `rows` rows, the first with a text that is not UTF-8.
fn first_broken_text(columns: &[RowColumn<'_>], rows: usize) -> Option<usize> {
    let broken = columns.iter().filter_map(|column| {
        let Values::Text(offsets, bytes) = &column.values else { return None };
        let offsets = &offsets[offsets.len() - rows - 1..];
        if bytes[offsets[0] as usize..].is_ascii() {
            return None;
        }
        let text = |ends: &[i32]| simdutf8::basic::from_utf8(&bytes[ends[0] as usize..ends[1] as usize]);
        offsets.windows(2).position(|ends| text(ends).is_err())
    });
    broken.min()
}

/// Appends the first `len` bytes of `rest`. A short text is copied as 32 bytes and truncated: a copy of constant
/// length is two instructions, any other a call.
#[inline(always)]
fn append(rest: &[u8], len: usize, to: &mut Vec<u8>) -> Option<()> {
    match rest.first_chunk::<32>() {
        Some(chunk) if len <= 32 => {
            let end = to.len() + len;
            to.extend_from_slice(chunk);
            to.truncate(end);
        }
        _ => to.extend_from_slice(rest.get(..len)?),
    }
    Some(())
}
