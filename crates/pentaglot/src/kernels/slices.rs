//! Rows of fixed-width values and slices (a varint and that many bytes) to columns, in one pass.
//!
//! The plain version: a row is its parts one after the other. A fixed part is copied to its column; the bytes of a
//! slice are appended to the column's bytes and their end to its offsets. The loop ends at the first incomplete row.
//! It is fast because room for all values of fixed width is reserved first, so such a part needs one check of the
//! bytes left; and short slices are copied as 16 or 32 bytes, since the next slice overwrites the surplus.

#![allow(unsafe_code, reason = "writes into memory that was reserved and not zeroed")]

use arrow_buffer::MutableBuffer;

/// One part of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// This many bytes.
    Fixed(usize),
    /// A varint, and as many bytes as it says.
    Slice,
}

/// The values of one part.
#[derive(Debug)]
pub(crate) enum SliceColumn {
    /// The bytes of values of fixed width.
    Fixed(MutableBuffer),
    /// The offsets of the slices, starting with 0, and the bytes.
    Slices(Vec<i32>, Vec<u8>),
    /// A part that is not wanted.
    Skipped,
}

/// The result of [`split`].
#[derive(Debug)]
pub(crate) struct Split {
    /// Whole rows.
    pub(crate) rows: usize,
    /// The bytes they take.
    pub(crate) bytes: usize,
    /// A column for each part.
    pub(crate) columns: Vec<SliceColumn>,
}

/// The most bytes that are copied for a short slice.
const SHORT: usize = 32;

/// Splits the whole rows at the start of `bytes`, at most `rows`. Stops before a row that is cut off, or whose varint
/// is not in its shortest form or past 32 bits.
#[expect(clippy::disallowed_methods, reason = "the size is bounded by the bytes in memory")]
pub(crate) fn split(bytes: &[u8], rows: usize, parts: &[(Part, bool)]) -> Split {
    let bytes = &bytes[..bytes.len().min(i32::MAX as usize)];
    let least = parts.iter().fold(0usize, |sum, (part, _)| match part {
        Part::Fixed(width) => sum.saturating_add(*width),
        Part::Slice => sum.saturating_add(1),
    });
    // Rows of zero bytes are not read here.
    let rows = bytes.len().checked_div(least).map_or(0, |most| rows.min(most));
    // The columns together reserve about as many bytes as the input has.
    let slices = parts.iter().filter(|part| **part == (Part::Slice, true)).count();
    let room = bytes.len() / slices.max(1) + SHORT;
    let mut columns: Vec<SliceColumn> = parts
        .iter()
        .map(|(part, wanted)| match part {
            _ if !wanted => SliceColumn::Skipped,
            Part::Fixed(width) => SliceColumn::Fixed(MutableBuffer::new(rows * width)),
            Part::Slice => {
                let mut offsets = Vec::with_capacity(rows + 1);
                offsets.push(0);
                SliceColumn::Slices(offsets, Vec::with_capacity(room))
            }
        })
        .collect();
    let (mut row, mut at) = (0, 0);
    while row < rows
        && let Some(next) = split_row(bytes, at, row, parts, &mut columns)
    {
        at = next;
        row += 1;
    }
    for ((part, _), column) in parts.iter().zip(&mut columns) {
        match (part, column) {
            // SAFETY: there was room for `rows` values, of which `row` have been written.
            (Part::Fixed(width), SliceColumn::Fixed(values)) => unsafe { values.set_len(row * width) },
            (Part::Slice, SliceColumn::Slices(offsets, bytes)) => {
                offsets.truncate(row + 1);
                bytes.truncate(offsets[row] as usize);
                bytes.shrink_to_fit();
            }
            _ => {}
        }
    }
    Split { rows: row, bytes: at, columns }
}

/// Splits one row; returns the start of the next.
#[inline(always)]
fn split_row(
    bytes: &[u8],
    mut at: usize,
    row: usize,
    parts: &[(Part, bool)],
    columns: &mut [SliceColumn],
) -> Option<usize> {
    for ((part, _), column) in parts.iter().zip(columns) {
        match *part {
            Part::Fixed(width) => {
                let value = bytes.get(at..at + width)?;
                if let SliceColumn::Fixed(values) = column {
                    // SAFETY: the column has room for `rows` values of this width, and `row` is below `rows`.
                    unsafe { copy_value(value, values.as_mut_ptr().add(row * width)) };
                }
                at += width;
            }
            Part::Slice => {
                let (length, start) = match *bytes.get(at)? {
                    byte if byte < 0x80 => (usize::from(byte), at + 1),
                    _ => long_varint(bytes, at)?,
                };
                if length > bytes.len() - start {
                    return None;
                }
                at = start + length;
                if let SliceColumn::Slices(offsets, out) = column {
                    let (end, whole) = (out.len(), bytes.len() - start >= SHORT);
                    if out.capacity() - end < length + SHORT {
                        more_room(out, length);
                    }
                    // SAFETY: `out` has room for the slice and SHORT bytes more, made above. `from` points into all of
                    // `bytes`, which has `length` bytes after `start` (checked above), and SHORT bytes where `whole` says
                    // so. The bytes up to the new length have been written.
                    unsafe {
                        let (from, to) = (bytes.as_ptr().add(start), out.as_mut_ptr().add(end));
                        match length {
                            0..=16 if whole => std::ptr::copy_nonoverlapping(from, to, 16),
                            17..=SHORT if whole => std::ptr::copy_nonoverlapping(from, to, SHORT),
                            _ => std::ptr::copy_nonoverlapping(from, to, length),
                        }
                        out.set_len(end + length);
                    }
                    offsets.push((end + length) as i32);
                }
            }
        }
    }
    Some(at)
}

/// Makes room for a slice, and [`SHORT`] bytes more.
#[cold]
#[expect(clippy::disallowed_methods, reason = "the size is that of a slice in memory")]
fn more_room(out: &mut Vec<u8>, length: usize) {
    out.reserve(length + SHORT);
}

/// # Safety
/// `to` has room for the value.
#[inline(always)]
unsafe fn copy_value(value: &[u8], to: *mut u8) {
    // SAFETY: guaranteed by the caller; the common widths are one load and one store.
    unsafe {
        match value.len() {
            1 => std::ptr::copy_nonoverlapping(value.as_ptr(), to, 1),
            2 => std::ptr::copy_nonoverlapping(value.as_ptr(), to, 2),
            4 => std::ptr::copy_nonoverlapping(value.as_ptr(), to, 4),
            8 => std::ptr::copy_nonoverlapping(value.as_ptr(), to, 8),
            16 => std::ptr::copy_nonoverlapping(value.as_ptr(), to, 16),
            width => std::ptr::copy_nonoverlapping(value.as_ptr(), to, width),
        }
    }
}

/// A varint of two to five bytes in its shortest form, and where it ends.
#[cold]
fn long_varint(bytes: &[u8], at: usize) -> Option<(usize, usize)> {
    let mut value = 0u64;
    for (index, byte) in bytes.get(at..)?.iter().take(5).enumerate() {
        value |= u64::from(byte & 0x7f) << (index * 7);
        if *byte < 0x80 {
            let value = usize::try_from(value).ok().filter(|_| *byte > 0 || index == 0)?;
            return Some((value, at + index + 1));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Encodes a row as the module documentation describes.
    fn encode(row: &[(Part, Vec<u8>)], out: &mut Vec<u8>) {
        for (part, value) in row {
            if *part == Part::Slice {
                let mut length = value.len();
                while length >= 0x80 {
                    out.push(length as u8 | 0x80);
                    length >>= 7;
                }
                out.push(length as u8);
            }
            out.extend(value);
        }
    }

    fn parts() -> impl Strategy<Value = Vec<(Part, bool)>> {
        let part = prop_oneof![
            prop::sample::select(vec![1usize, 2, 3, 4, 8, 16, 20]).prop_map(Part::Fixed),
            Just(Part::Slice),
        ];
        prop::collection::vec((part, prop::bool::weighted(0.8)), 1..6)
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn columns_are_what_was_written(parts in parts(), rows in 0usize..40, seed: u64, cut in 0usize..40) {
            let mut state = seed;
            let mut random = |end: u64| {
                state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                (state >> 33) % end
            };
            let rows: Vec<Vec<(Part, Vec<u8>)>> = (0..rows)
                .map(|_| {
                    let value = |(part, _): &(Part, bool)| {
                        let length = match part {
                            Part::Fixed(width) => *width,
                            Part::Slice if random(10) == 0 => random(400) as usize,
                            Part::Slice => random(40) as usize,
                        };
                        (*part, (0..length).map(|_| random(256) as u8).collect())
                    };
                    parts.iter().map(value).collect()
                })
                .collect();
            let (mut bytes, mut ends) = (Vec::new(), vec![0]);
            for row in &rows {
                encode(row, &mut bytes);
                ends.push(bytes.len());
            }
            bytes.truncate(bytes.len().saturating_sub(cut));
            for most in [rows.len(), rows.len() / 2, usize::MAX] {
                let found = split(&bytes, most, &parts);
                let whole = ends.iter().filter(|end| **end <= bytes.len()).count() - 1;
                prop_assert_eq!((found.rows, found.bytes), (whole.min(most), ends[whole.min(most)]));
                for (place, column) in found.columns.iter().enumerate() {
                    let values: Vec<&[u8]> = rows[..found.rows].iter().map(|row| &row[place].1[..]).collect();
                    match column {
                        SliceColumn::Skipped => prop_assert!(!parts[place].1),
                        SliceColumn::Fixed(bytes) => prop_assert_eq!(bytes.as_slice(), values.concat()),
                        SliceColumn::Slices(offsets, bytes) => {
                            prop_assert_eq!(bytes, &values.concat());
                            let got: Vec<&[u8]> =
                                offsets.windows(2).map(|pair| &bytes[pair[0] as usize..pair[1] as usize]).collect();
                            prop_assert_eq!(got, values);
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn a_long_form_of_a_short_length_ends_the_walk() {
        let parts = [(Part::Slice, true)];
        for bytes in [&[0x80, 0x00][..], &[0x81, 0x80, 0x00, 7], &[0xff; 12], &[0x05, 1, 2]] {
            assert_eq!(split(bytes, 10, &parts).rows, 0, "{bytes:?}");
        }
        let long: Vec<u8> = [&[0xc8, 0x01][..], &[9; 200]].concat();
        assert_eq!(split(&long, 10, &parts).bytes, 202);
    }

    #[test]
    fn widths_past_all_memory_end_the_walk() {
        let wide = Part::Fixed(usize::MAX / 2);
        for parts in [
            vec![(wide, true), (wide, true), (Part::Fixed(2), true), (Part::Slice, true)],
            vec![
                (Part::Slice, true),
                (wide, false),
                (wide, true),
                (Part::Fixed(1), true),
                (Part::Slice, false),
            ],
        ] {
            assert_eq!(split(&[1; 100], 3, &parts).rows, 0);
        }
    }

    #[test]
    fn many_slices_take_little_memory() {
        let parts = vec![(Part::Slice, true); 1000];
        let found = split(&vec![0; 1 << 20], usize::MAX, &parts);
        assert_eq!(found.rows, (1 << 20) / 1000);
        let room = |column: &SliceColumn| match column {
            SliceColumn::Slices(_, bytes) => bytes.capacity(),
            _ => 0,
        };
        assert!(found.columns.iter().map(room).sum::<usize>() < 1 << 21);
        // One column whose slices need the room reserved for both.
        let parts = [(Part::Slice, true), (Part::Slice, true)];
        let row: Vec<u8> = [&[0x00, 0xe8, 0x07][..], &[7; 1000]].concat();
        let found = split(&row.repeat(100), usize::MAX, &parts);
        let [SliceColumn::Slices(..), SliceColumn::Slices(offsets, bytes)] = &found.columns[..] else {
            panic!("two")
        };
        assert_eq!((found.rows, offsets.last(), bytes), (100, Some(&100_000), &vec![7; 100_000]));
    }
}
