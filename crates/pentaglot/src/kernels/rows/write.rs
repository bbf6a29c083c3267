//! Columns of simple cells to rows of MessagePack (its codes: `wire/msgpack.rs`).
//!
//! The plain version: for each row the header of an array, then for each column its token. Here the columns of some rows are
//! written one after the other, each row to a line of its own in a small scratch memory: the type of a column is matched once for
//! all of them, and no token waits for the length of the one before it. The lines are then copied to the output. A token is
//! stored with a fixed size (a code and eight bytes, or the first 32 bytes of a text), and the next one begins at its actual end.

use std::mem::MaybeUninit;
use std::ops::Range;

use arrow_buffer::{BooleanBuffer, NullBuffer, OffsetBuffer};

/// The cells of one column.
pub(crate) struct Cells<'a> {
    pub(crate) values: Given<'a>,
    /// A null is written as nil.
    pub(crate) nulls: Option<&'a NullBuffer>,
}

/// The values of one column.
pub(crate) enum Given<'a> {
    Bool(&'a BooleanBuffer),
    UInt8(&'a [u8]),
    Int8(&'a [i8]),
    UInt32(&'a [u32]),
    Int32(&'a [i32]),
    UInt64(&'a [u64]),
    Int64(&'a [i64]),
    Float32(&'a [f32]),
    Float64(&'a [f64]),
    Text(&'a OffsetBuffer<i32>, &'a [u8]),
    Bytes(&'a OffsetBuffer<i32>, &'a [u8]),
}

/// A short text is copied as this many bytes.
const SHORT: usize = 32;
/// Rows that are written side by side at the most.
const LINES: usize = 128;
/// The bytes of their lines together: they fit in the first-level cache.
const SCRATCH: usize = 16 << 10;
/// A line is copied in pieces of this size.
const PIECE: usize = 64;

impl Cells<'_> {
    /// How many rows there are.
    fn len(&self) -> usize {
        match &self.values {
            Given::Bool(values) => values.len(),
            Given::UInt8(values) => values.len(),
            Given::Int8(values) => values.len(),
            Given::UInt32(values) => values.len(),
            Given::Int32(values) => values.len(),
            Given::UInt64(values) => values.len(),
            Given::Int64(values) => values.len(),
            Given::Float32(values) => values.len(),
            Given::Float64(values) => values.len(),
            Given::Text(offsets, _) | Given::Bytes(offsets, _) => offsets.len() - 1,
        }
    }

    /// The maximum number of bytes of the tokens of some rows.
    fn most_bytes(&self, rows: &Range<usize>) -> usize {
        let token = 9 * rows.len();
        match &self.values {
            Given::Text(offsets, _) | Given::Bytes(offsets, _) => {
                token + (offsets[rows.end] - offsets[rows.start]) as usize
            }
            _ => token,
        }
    }

    /// The maximum number of bytes of a token of some rows.
    fn longest(&self, rows: &Range<usize>) -> usize {
        match &self.values {
            Given::Text(offsets, _) | Given::Bytes(offsets, _) => {
                let ends = &offsets[rows.start..=rows.end];
                9 + ends.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or(0) as usize
            }
            _ => 9,
        }
    }
}

/// Appends rows. Integers take the fewest bytes, or with `fixed` the full width of their type.
///
/// # Panics
/// If a column ends before the rows do, or its byte strings before its offsets.
pub(crate) fn write_rows(columns: &[Cells<'_>], rows: Range<usize>, fixed: bool, out: &mut Vec<u8>) {
    for cells in columns {
        assert!(cells.len() >= rows.end, "a column that has these rows");
        assert!(cells.nulls.is_none_or(|nulls| nulls.len() >= rows.end), "nulls of these rows");
        if let Given::Text(offsets, bytes) | Given::Bytes(offsets, bytes) = cells.values {
            assert!(offsets[rows.end] as usize <= bytes.len(), "bytes up to the last offset");
        }
    }
    let header = array_header(columns.len());
    let most: usize = columns.iter().map(|cells| cells.most_bytes(&rows)).sum();
    #[expect(clippy::disallowed_methods, reason = "the size is about that of the values in memory")]
    out.reserve(most + header.0.len() * rows.len() + SHORT.max(PIECE));
    let mut scratch = [MaybeUninit::<u8>::uninit(); SCRATCH + PIECE];
    for start in rows.clone().step_by(LINES) {
        let near = start..rows.end.min(start + LINES);
        // A line ends with room for what the copy of a short text writes past its end.
        let cells: usize = columns.iter().map(|cells| cells.longest(&near)).sum();
        let stride = header.0.len() + cells + SHORT;
        let step = (SCRATCH / stride).max(1);
        for start in near.clone().step_by(step) {
            let some = start..near.end.min(start + step);
            let (len, count) = (out.len(), some.len());
            // A single row is written where it belongs.
            let to = out.spare_capacity_mut().as_mut_ptr();
            let base = if count == 1 { to } else { scratch.as_mut_ptr() };
            let mut lines = Lines { base: base.cast(), stride, lens: [0; LINES] };
            // SAFETY: `count` lines of `stride` bytes are in the scratch memory; or there is one, and the output has room for
            // the longest tokens of all rows, with `SHORT` bytes after them. A header takes no more than 5 bytes, each cell of
            // these rows no more than `longest`; surplus bytes of a store are in the room of later cells or in the last `SHORT`
            // bytes. Every column has these rows.
            unsafe {
                lines.each(&some, None, |pen, _| pen.put(header.0, header.1));
                columns.iter().for_each(|cells| lines.write_column(cells, &some, fixed));
            }
            let added = match count {
                1 => lines.lens[0],
                // SAFETY: the lines have been written, and the output has room for them and `PIECE` bytes more.
                _ => unsafe { lines.copy_to(to.cast(), count) },
            };
            // SAFETY: so many bytes have been written after the end, within the capacity.
            unsafe { out.set_len(len + added) };
        }
    }
}

/// Rows that are written side by side: row `i` from `base + i * stride`.
struct Lines {
    base: *mut u8,
    stride: usize,
    /// The bytes of each so far.
    lens: [usize; LINES],
}

impl Lines {
    /// Does `write` at the end of each line.
    ///
    /// # Safety
    /// There is a line for each row, with room for what is written. A row that is not null may be given to `write`.
    #[inline(always)]
    unsafe fn each(
        &mut self,
        rows: &Range<usize>,
        nulls: Option<&NullBuffer>,
        write: impl Fn(&mut Pen, usize),
    ) {
        for (line, (len, row)) in self.lens.iter_mut().zip(rows.clone()).enumerate() {
            // SAFETY: guaranteed by the caller.
            unsafe {
                let start = self.base.add(line * self.stride);
                let mut pen = Pen { at: start.add(*len) };
                match nulls {
                    Some(nulls) if nulls.is_null(row) => pen.put([0xc0], 1),
                    _ => write(&mut pen, row),
                }
                *len = pen.at.offset_from_unsigned(start);
            }
        }
    }

    /// Writes a cell of each row.
    ///
    /// # Safety
    /// There is a line for each row, with room for its longest cell and [`SHORT`] bytes more. The column has these rows, and
    /// their bytes if they are byte strings.
    unsafe fn write_column(&mut self, cells: &Cells<'_>, rows: &Range<usize>, fixed: bool) {
        let nulls = cells.nulls;
        macro_rules! integers {
            ($values:expr, $code:expr, $shortest:ident) => {
                match fixed {
                    true => self.each(rows, nulls, |pen, row| {
                        pen.number($code, $values.get_unchecked(row).to_be_bytes())
                    }),
                    false => {
                        self.each(rows, nulls, |pen, row| pen.$shortest((*$values.get_unchecked(row)).into()))
                    }
                }
            };
        }
        // SAFETY: guaranteed by the caller: a token takes at most 9 bytes, or 5 and its bytes.
        unsafe {
            match &cells.values {
                Given::UInt8(values) => integers!(values, 0xcc, unsigned),
                Given::UInt32(values) => integers!(values, 0xce, unsigned),
                Given::UInt64(values) => integers!(values, 0xcf, unsigned),
                Given::Int8(values) => integers!(values, 0xd0, signed),
                Given::Int32(values) => integers!(values, 0xd2, signed),
                Given::Int64(values) => integers!(values, 0xd3, signed),
                Given::Float32(values) => self.each(rows, nulls, |pen, row| {
                    pen.number(0xca, values.get_unchecked(row).to_be_bytes());
                }),
                Given::Float64(values) => self.each(rows, nulls, |pen, row| {
                    pen.number(0xcb, values.get_unchecked(row).to_be_bytes());
                }),
                Given::Bool(values) => self.each(rows, nulls, |pen, row| {
                    pen.put([0xc2 + u8::from(values.value_unchecked(row))], 1);
                }),
                Given::Text(offsets, bytes) => self.each(rows, nulls, |pen, row| {
                    pen.string([0xd9, 0xda, 0xdb], true, offsets, bytes, row);
                }),
                Given::Bytes(offsets, bytes) => self.each(rows, nulls, |pen, row| {
                    pen.string([0xc4, 0xc5, 0xc6], false, offsets, bytes, row);
                }),
            }
        }
    }

    /// Copies the first `count` lines, one after the other; returns their bytes.
    ///
    /// # Safety
    /// These lines have been written, with [`PIECE`] bytes of memory after the last. `to` has room for them and as many bytes
    /// more.
    unsafe fn copy_to(&self, to: *mut u8, count: usize) -> usize {
        let mut end = to;
        for (line, len) in self.lens.iter().take(count).enumerate() {
            let mut done = 0;
            // Nearly every row is one piece.
            while done < *len {
                // SAFETY: guaranteed by the caller; the surplus of a piece is overwritten by the next one.
                unsafe {
                    let from = self.base.add(line * self.stride + done);
                    from.copy_to_nonoverlapping(end.add(done), PIECE);
                }
                done += PIECE;
            }
            // SAFETY: as above.
            end = unsafe { end.add(*len) };
        }
        // SAFETY: both are in the same memory.
        unsafe { end.offset_from_unsigned(to) }
    }
}

fn array_header(count: usize) -> ([u8; 5], usize) {
    let [.., c, d, a, b] = (count as u64).to_be_bytes();
    match count {
        0..16 => ([0x90 | b, 0, 0, 0, 0], 1),
        16..0x1_0000 => ([0xdc, a, b, 0, 0], 3),
        _ => ([0xdd, c, d, a, b], 5),
    }
}

/// The shortest form of an integer: what its code holds, and how many bytes follow.
#[derive(Clone, Copy)]
struct Form {
    code: u8,
    /// Which bits of the number are in the code itself.
    inside: u8,
    /// How far the number must be shifted to be at the front of eight bytes.
    shift: u8,
    len: u8,
}

/// The shortest form by the number of bits of an integer (0 to 64), and for negative integers by the number of bits of
/// `!number`. Widths follow no pattern: a branch would often be mispredicted, a table lookup has no branch.
const FORMS: [[Form; 65]; 2] = {
    let mut forms = [[Form { code: 0, inside: 0xff, shift: 0, len: 1 }; 65]; 2];
    let mut bits = 0;
    while bits <= 64 {
        let mut width = 0;
        while width < 4 && bits > 8 << width {
            width += 1;
        }
        if bits > 7 {
            let shift = 64 - (8 << width);
            forms[0][bits] = Form { code: 0xcc + width, inside: 0, shift, len: 1 + (1 << width) };
        }
        // One bit more for the sign.
        let mut width = 0;
        while width < 3 && bits + 1 > 8 << width {
            width += 1;
        }
        if bits > 5 {
            let shift = 64 - (8 << width);
            forms[1][bits] = Form { code: 0xd0 + width, inside: 0, shift, len: 1 + (1 << width) };
        }
        bits += 1;
    }
    forms
};

/// The address of the next byte.
struct Pen {
    at: *mut u8,
}

impl Pen {
    /// Stores all of `token`, of which the first `len` bytes count.
    ///
    /// # Safety
    /// There is room for all of it.
    #[inline(always)]
    unsafe fn put<const N: usize>(&mut self, token: [u8; N], len: usize) {
        // SAFETY: guaranteed by the caller.
        unsafe {
            self.at.cast::<[u8; N]>().write_unaligned(token);
            self.at = self.at.add(len);
        }
    }

    /// # Safety
    /// There is room for a code and `N` bytes.
    #[inline(always)]
    unsafe fn number<const N: usize>(&mut self, code: u8, bytes: [u8; N]) {
        // SAFETY: guaranteed by the caller.
        unsafe {
            self.put([code], 1);
            self.put(bytes, N);
        }
    }

    /// # Safety
    /// There is room for 9 bytes.
    #[inline(always)]
    unsafe fn shortest(&mut self, bits: u64, form: Form) {
        let [.., low] = bits.to_be_bytes();
        // SAFETY: guaranteed by the caller.
        unsafe {
            self.put([form.code | (low & form.inside)], 1);
            self.put((bits << form.shift).to_be_bytes(), form.len as usize - 1);
        }
    }

    /// # Safety
    /// There is room for 9 bytes.
    #[inline(always)]
    unsafe fn unsigned(&mut self, value: u64) {
        let bits = 64 - value.leading_zeros() as usize;
        // SAFETY: guaranteed by the caller.
        unsafe { self.shortest(value, FORMS[0][bits]) };
    }

    /// # Safety
    /// There is room for 9 bytes.
    #[inline(always)]
    unsafe fn signed(&mut self, value: i64) {
        let bits = 64 - (value ^ (value >> 63)).leading_zeros() as usize;
        // SAFETY: guaranteed by the caller.
        unsafe { self.shortest(value.cast_unsigned(), FORMS[usize::from(value < 0)][bits]) };
    }

    /// A text (whose length is part of its code if it is short) or bytes.
    ///
    /// # Safety
    /// There is room for 5 bytes, byte string `row` and [`SHORT`] bytes more; it is within `bytes`.
    #[inline(always)]
    unsafe fn string(
        &mut self,
        codes: [u8; 3],
        text: bool,
        offsets: &OffsetBuffer<i32>,
        bytes: &[u8],
        row: usize,
    ) {
        // SAFETY: guaranteed by the callers. `SHORT` bytes are read only if at least that many are left.
        unsafe {
            let start = *offsets.get_unchecked(row) as usize;
            let len = *offsets.get_unchecked(row + 1) as usize - start;
            let from = bytes.as_ptr().add(start);
            let [.., c, d, a, b] = (len as u64).to_be_bytes();
            match len {
                0..SHORT if text => {
                    self.put([0xa0 | b], 1);
                    if bytes.len() - start >= SHORT {
                        let short = from.cast::<[u8; SHORT]>().read_unaligned();
                        return self.put(short, len);
                    }
                }
                0..0x100 => self.put([codes[0], b], 2),
                0x100..0x1_0000 => self.put([codes[1], a, b], 3),
                _ => self.put([codes[2], c, d, a, b], 5),
            }
            std::ptr::copy_nonoverlapping(from, self.at, len);
            self.at = self.at.add(len);
        }
    }
}
