//! Columns of simple cells to rows of MessagePack (its codes: `wire/msgpack.rs`).
//!
//! The plain version: for each row the header of an array, then for each column its token. Room for the longest tokens
//! of many rows is reserved at once. Shortest integers are stored as a code and eight bytes, short texts as 32 bytes, and the
//! next token begins at the actual end.

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
        let token = rows.len().saturating_mul(9);
        match &self.values {
            Given::Text(offsets, _) | Given::Bytes(offsets, _) => {
                token.saturating_add((offsets[rows.end] - offsets[rows.start]) as usize)
            }
            _ => token,
        }
    }
}

/// The maximum number of bytes of some rows, including what copies of short texts write past their end.
fn most_bytes(columns: &[Cells<'_>], rows: &Range<usize>) -> usize {
    let more = rows.len().saturating_mul(5).saturating_add(SHORT);
    columns.iter().fold(more, |bytes, cells| bytes.saturating_add(cells.most_bytes(rows)))
}

/// Appends rows. Integers take the fewest bytes, or with `fixed` the full width of their type.
///
/// # Panics
/// If a column or its nulls end before the rows do, or its byte strings before its offsets.
pub(crate) fn write_rows(columns: &[Cells<'_>], rows: Range<usize>, fixed: bool, out: &mut Vec<u8>) {
    for cells in columns {
        assert!(cells.len() >= rows.end, "a column that has these rows");
        assert!(cells.nulls.is_none_or(|nulls| nulls.len() >= rows.end), "nulls of these rows");
        if let Given::Text(offsets, bytes) | Given::Bytes(offsets, bytes) = cells.values {
            assert!(offsets[rows.end] as usize <= bytes.len(), "bytes up to the last offset");
        }
    }
    #[expect(clippy::disallowed_methods, reason = "the size is about that of the values in memory")]
    out.reserve(most_bytes(columns, &rows));
    let header = array_header(columns.len());
    let start = out.len();
    let mut pen = Pen { at: out.spare_capacity_mut().as_mut_ptr().cast() };
    for row in rows {
        // SAFETY: there is room for the longest tokens of these rows, with `SHORT` bytes after them. The rows before
        // this one take no more than their part, a header no more than 5 bytes, and each cell below no more than 9 (or
        // 5 and its bytes); surplus bytes of a store are in the room of later cells or in the last `SHORT` bytes.
        unsafe { pen.put(header.0, header.1) };
        for cells in columns {
            // SAFETY: as above; `row` is one of the rows that every column has.
            unsafe { write_cell(&mut pen, cells, row, fixed) };
        }
    }
    // SAFETY: the pen has written everything between where it started and where it is, within the capacity.
    unsafe { out.set_len(start + pen.at.offset_from_unsigned(out.as_ptr().add(start))) };
}

/// # Safety
/// The pen has room for the cell and [`SHORT`] bytes more. Row `row` exists, and its bytes if it is a byte
/// string.
#[inline(always)]
unsafe fn write_cell(pen: &mut Pen, cells: &Cells<'_>, row: usize, fixed: bool) {
    // SAFETY: guaranteed by the callers: a token takes at most 9 bytes.
    unsafe {
        if cells.nulls.is_some_and(|nulls| nulls.is_null(row)) {
            return pen.put([0xc0], 1);
        }
        match &cells.values {
            Given::Int32(values) => {
                let value = *values.get_unchecked(row);
                if fixed { pen.number(0xd2, value.to_be_bytes()) } else { pen.signed(value.into()) }
            }
            Given::Int64(values) => {
                let value = *values.get_unchecked(row);
                if fixed { pen.number(0xd3, value.to_be_bytes()) } else { pen.signed(value) }
            }
            Given::Float64(values) => pen.number(0xcb, values.get_unchecked(row).to_be_bytes()),
            Given::Bool(values) => pen.put([0xc2 + u8::from(values.value_unchecked(row))], 1),
            Given::Text(offsets, bytes) => pen.string([0xd9, 0xda, 0xdb], true, offsets, bytes, row),
            Given::Bytes(offsets, bytes) => pen.string([0xc4, 0xc5, 0xc6], false, offsets, bytes, row),
            Given::UInt8(values) => {
                let value = *values.get_unchecked(row);
                if fixed { pen.number(0xcc, value.to_be_bytes()) } else { pen.unsigned(value.into()) }
            }
            Given::Int8(values) => {
                let value = *values.get_unchecked(row);
                if fixed { pen.number(0xd0, value.to_be_bytes()) } else { pen.signed(value.into()) }
            }
            Given::UInt32(values) => {
                let value = *values.get_unchecked(row);
                if fixed { pen.number(0xce, value.to_be_bytes()) } else { pen.unsigned(value.into()) }
            }
            Given::UInt64(values) => {
                let value = *values.get_unchecked(row);
                if fixed { pen.number(0xcf, value.to_be_bytes()) } else { pen.unsigned(value) }
            }
            Given::Float32(values) => pen.number(0xca, values.get_unchecked(row).to_be_bytes()),
        }
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
