//! Packed records (structs without padding, one after the other) to columns and back.
//!
//! The plain version: column `c` of record `r` is at `r * record_bytes + offset(c)` in the records and at
//! `r * width(c)` in the column; [`split`] copies it one way, [`join`] the other. Both process 256 records at a time,
//! which stay in the first-level cache while each of their columns is copied. A generic loop over a layout known only
//! at run time would cost a bounds check and a `memcpy` call per value; here each common width has a loop with one
//! load and one store.

#![allow(unsafe_code, reason = "one load and one store per value; bounds are checked once per column")]

use arrow_buffer::MutableBuffer;

/// Records per piece.
const PIECE: usize = 256;

/// Copies columns out of packed records. `wanted` gives offset and width of each column within a record.
///
/// # Panics
/// If the length of the records is not a multiple of `record_bytes`, or a column extends past its
/// record.
pub(crate) fn split(records: &[u8], record_bytes: usize, wanted: &[(usize, usize)]) -> Vec<MutableBuffer> {
    let count = check(records.len(), record_bytes, wanted);
    let mut columns: Vec<MutableBuffer> =
        wanted.iter().map(|(_, width)| MutableBuffer::new(count * width)).collect();
    let mut done = 0;
    while done < count {
        let piece = PIECE.min(count - done);
        for (column, (offset, width)) in columns.iter_mut().zip(wanted) {
            // SAFETY: `check` established count * record_bytes == records.len() and offset + width <= record_bytes, so
            // the last byte read, at (done + piece - 1) * record_bytes + offset + width - 1, is within `records`.
            // The column was made with room for count * width bytes, of which done * width are taken; its memory is
            // its own, so source and target do not overlap.
            unsafe {
                let from = records.as_ptr().add(done * record_bytes + offset);
                let to = column.as_mut_ptr().add(done * width);
                copy(from, record_bytes, to, *width, *width, piece);
                column.set_len((done + piece) * width);
            }
        }
        done += piece;
    }
    columns
}

/// Copies columns into packed records: the inverse of [`split`], where the columns fill the records without gaps.
/// `columns` are the bytes of each column, `widths` how many of them each record takes.
///
/// # Panics
/// If a column does not have `count * width` bytes.
pub(crate) fn join(columns: &[&[u8]], widths: &[usize], count: usize, records: &mut Vec<u8>) {
    let record_bytes: usize = widths.iter().sum();
    assert_eq!(columns.len(), widths.len(), "a width for each column");
    for (column, width) in columns.iter().zip(widths) {
        assert_eq!(column.len(), count * width, "a column fills its part of the records");
    }
    let start = records.len();
    let total = count * record_bytes;
    #[expect(clippy::disallowed_methods, reason = "the columns in memory have the same size")]
    records.reserve(total);
    let mut done = 0;
    while done < count {
        let piece = PIECE.min(count - done);
        let mut offset = 0;
        for (column, width) in columns.iter().zip(widths) {
            // SAFETY: the column has count * width bytes (asserted above), done + piece <= count. `records` has room for
            // count * record_bytes bytes past `start` (reserved above); offset + width <= record_bytes, since offsets are
            // the sums of the widths before. A `&mut Vec` overlaps no column.
            unsafe {
                let from = column.as_ptr().add(done * width);
                let to = records.as_mut_ptr().add(start + done * record_bytes + offset);
                copy(from, *width, to, record_bytes, *width, piece);
            }
            offset += width;
        }
        done += piece;
    }
    // SAFETY: the capacity was reserved; each of the `total` bytes was written, since the widths fill every record.
    unsafe { records.set_len(start + total) };
}

fn check(len: usize, record_bytes: usize, wanted: &[(usize, usize)]) -> usize {
    assert!(record_bytes > 0 && len.is_multiple_of(record_bytes), "whole records");
    for (offset, width) in wanted {
        assert!(
            offset.checked_add(*width).is_some_and(|end| end <= record_bytes),
            "a column within its record"
        );
    }
    len / record_bytes
}

/// Copies `count` values of `width` bytes from every `from_step` bytes to every `to_step` bytes.
///
/// # Safety
/// `from + (count - 1) * from_step + width` bytes are readable, the same of `to` writable; they do not overlap.
unsafe fn copy(from: *const u8, from_step: usize, to: *mut u8, to_step: usize, width: usize, count: usize) {
    macro_rules! each {
        ($type:ty) => {
            for index in 0..count {
                // SAFETY: guaranteed by the caller; the accesses are unaligned ones.
                unsafe {
                    let value = from.add(index * from_step).cast::<$type>().read_unaligned();
                    to.add(index * to_step).cast::<$type>().write_unaligned(value);
                }
            }
        };
    }
    match width {
        0 => {}
        1 => each!(u8),
        2 => each!(u16),
        4 => each!(u32),
        8 => each!(u64),
        16 => each!(u128),
        _ => {
            for index in 0..count {
                // SAFETY: guaranteed by the caller.
                unsafe {
                    let (from, to) = (from.add(index * from_step), to.add(index * to_step));
                    std::ptr::copy_nonoverlapping(from, to, width);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The plain version of `split`, value by value.
    fn naive_split(records: &[u8], record_bytes: usize, wanted: &[(usize, usize)]) -> Vec<Vec<u8>> {
        let column = |(offset, width): &(usize, usize)| -> Vec<u8> {
            records.chunks(record_bytes).flat_map(|record| record[*offset..offset + width].to_vec()).collect()
        };
        wanted.iter().map(column).collect()
    }

    #[test]
    fn split_and_join_equal_the_plain_versions() {
        let layouts: &[&[usize]] =
            &[&[1], &[4, 8], &[8, 4, 2, 1, 16], &[3, 0, 7, 8], &[1, 1, 1], &[5], &[16, 16, 1, 32]];
        for widths in layouts {
            let record_bytes: usize = widths.iter().sum();
            let wanted: Vec<(usize, usize)> = widths
                .iter()
                .scan(0, |offset, width| {
                    *offset += width;
                    Some((*offset - width, *width))
                })
                .collect();
            for count in [0, 1, 2, 1023, 1024, 1025, 3000] {
                let records: Vec<u8> = (0..count * record_bytes).map(|at| (at * 7 % 251) as u8).collect();
                let columns = split(&records, record_bytes, &wanted);
                let naive = naive_split(&records, record_bytes, &wanted);
                assert!(columns.iter().map(MutableBuffer::as_slice).eq(naive.iter().map(Vec::as_slice)));
                let parts: Vec<&[u8]> = naive.iter().map(Vec::as_slice).collect();
                let mut joined = vec![9];
                join(&parts, widths, count, &mut joined);
                assert_eq!(joined[1..], records);
                // Some columns, in another order.
                let some: Vec<_> = wanted.iter().rev().step_by(2).copied().collect();
                let columns = split(&records, record_bytes, &some);
                let naive = naive_split(&records, record_bytes, &some);
                assert!(columns.iter().map(MutableBuffer::as_slice).eq(naive.iter().map(Vec::as_slice)));
            }
        }
    }

    #[test]
    #[should_panic(expected = "a column within its record")]
    fn a_column_past_its_record_is_refused() {
        split(&[0; 8], 4, &[(2, 3)]);
    }
}
